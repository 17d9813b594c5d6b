//! The server under load: a real `tidewater serve` with its own folder and database, and what a client needs of it.

use crate::http::{Body, Connection};
use serde_json::{Value, json};
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub const ACCESS_KEY_ID: &str = "TWBENCHBENCHBENCH";
pub const SECRET_ACCESS_KEY: &str = "benchbenchbenchbenchbenchbenchbenchbench";
pub const BUCKET: &str = "lakehouse-warehouse";
const READY_WITHIN: Duration = Duration::from_secs(30);

pub struct Target {
    child: Child,
    pub catalog: SocketAddr,
    pub s3: SocketAddr,
    pub token: String,
}

impl Target {
    /// Starts a server on `folder`; `database_url` `None` is SQLite in that folder.
    pub fn start(folder: &std::path::Path, database_url: Option<&str>) -> Target {
        let (catalog, s3, metrics) = (free_addr(), free_addr(), free_addr());
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(["--data".as_ref(), folder.as_os_str()])
            .args(["--catalog-addr", &catalog.to_string(), "--s3-addr", &s3.to_string()])
            .args(["--metrics-addr", &metrics.to_string(), "--log", "warn"])
            .env("TIDEWATER_ROOT_ACCESS_KEY_ID", ACCESS_KEY_ID)
            .env("TIDEWATER_ROOT_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
            .stdout(Stdio::null());
        if let Some(url) = database_url {
            command.args(["--database-url", url]);
        }
        let child = command.spawn().expect("the server binary starts");
        let mut target = Target { child, catalog, s3, token: String::new() };
        target.wait_until_ready();
        target.token = target.fetch_token();
        target
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + READY_WITHIN;
        let head = format!("GET /health/ready HTTP/1.1\r\nHost: {}\r\n\r\n", self.catalog);
        loop {
            let answer = Connection::open(self.catalog).and_then(|mut c| c.send(head.as_bytes(), b"", Body::Discard));
            if answer.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended at start: {status}");
            }
            assert!(Instant::now() < deadline, "the server is not ready after {READY_WITHIN:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn fetch_token(&self) -> String {
        let form = format!(
            "grant_type=client_credentials&client_id={ACCESS_KEY_ID}&client_secret={SECRET_ACCESS_KEY}&scope=catalog"
        );
        let head = format!(
            "POST /v1/oauth/tokens HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            self.catalog,
            form.len()
        );
        let answer = Connection::open(self.catalog)
            .and_then(|mut c| c.send(head.as_bytes(), form.as_bytes(), Body::Keep))
            .expect("a token");
        let body: Value = serde_json::from_slice(&answer.body).expect("a token answer");
        body["access_token"].as_str().expect("an access token").to_owned()
    }

    /// The head of a catalog request with a body of `length` bytes.
    pub fn head(&self, method: &str, path: &str, length: usize) -> Vec<u8> {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            self.catalog, self.token
        )
        .into_bytes()
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = Connection::open(self.catalog)
            .and_then(|mut c| c.send(&self.head(method, path, bytes.len()), &bytes, Body::Keep))
            .expect("an answer");
        assert!(
            answer.status < 300,
            "{method} {path} answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }

    pub fn load_answer_bytes(&self, path: &str) -> usize {
        let answer = Connection::open(self.catalog)
            .and_then(|mut c| c.send(&self.head("GET", path, 0), b"", Body::Discard))
            .expect("an answer");
        usize::try_from(answer.body_bytes).expect("an answer fits memory")
    }

    pub fn create_namespace(&self, name: &str) {
        self.call("POST", "/v1/namespaces", &json!({"namespace": [name]}));
    }

    pub fn create_table(&self, namespace: &str, name: &str) -> Value {
        self.call("POST", &format!("/v1/namespaces/{namespace}/tables"), &new_table(name))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plain table of the kind people make: the sales table of the README.
pub fn new_table(name: &str) -> Value {
    json!({
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "order_id", "required": false, "type": "long"},
            {"id": 2, "name": "customer_id", "required": false, "type": "long"},
            {"id": 3, "name": "amount", "required": false, "type": "double"},
            {"id": 4, "name": "order_date", "required": false, "type": "date"}
        ]},
        "partition-spec": {"spec-id": 0, "fields": [
            {"field-id": 1000, "name": "order_date_day", "transform": "day", "source-id": 4}
        ]},
        "stage-create": false,
        "properties": {}
    })
}

pub fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tidewater"))
}

pub fn free_addr() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port on loopback")
}
