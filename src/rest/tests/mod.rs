//! The protocol over the real router, with a database and a store in a folder of its own.

mod commits;
mod delegation;
mod functions;
mod idempotency;
mod metrics;
mod namespaces;
mod protocol;
mod purge;
mod register;
mod tables;
mod tokens;
mod transactions;
mod views;

use super::*;
use crate::app::Parts;
use crate::{
    auth::{Auth, AuthSettings, NewKey},
    catalog::Caches,
    config::Settings,
    db::{
        Db,
        testing::on_both,
        warehouses::{Create, WarehouseRow},
    },
    store::{BucketName, Store, StoreSettings},
};
use http::StatusCode;
use http_body_util::BodyExt;
use object_store::ObjectStore;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};
use tower::ServiceExt;
use uuid::Uuid;

const WAREHOUSE: &str = "lakehouse";
const LOCATION: &str = "s3://lake/wh";
const KEY: &str = "AKIATEST";
const SECRET: &str = "s3cret:with+odd%characters";

/// A server without sockets.
pub(super) struct Server {
    pub app: App,
    router: Router,
    token: String,
    _folder: tempfile::TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
    pub bytes: bytes::Bytes,
    pub answered: Option<Answered>,
}

impl Server {
    pub async fn start(db: Db) -> Server {
        Server::start_with(db, |_| {}).await
    }

    pub async fn start_with(db: Db, change: impl FnOnce(&mut Settings)) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::on_free_ports(folder.path());
        settings.warehouse = WAREHOUSE.to_owned();
        settings.disk_reserve_bytes = 0;
        change(&mut settings);
        add_warehouse(&db, WAREHOUSE, LOCATION).await;
        let auth_settings = AuthSettings {
            keys_folder: settings.keys_folder(),
            master_key: None,
            root_key: Some(NewKey { id: KEY.to_owned(), secret: SECRET.into() }),
            token_lifetime_s: settings.token_lifetime_s,
            vended_lifetime_s: settings.vended_lifetime_s,
        };
        let auth = Auth::open(auth_settings, db.clone(), now_ms()).await.unwrap();
        let store = open_store(folder.path(), &settings).await;
        let token = auth.issue(KEY, &SECRET.into(), now_ms()).await.unwrap();
        let catalog = Caches::new(settings.metadata_cache_bytes);
        let app = App::new(crate::app::Parts { settings, db, auth, store, catalog });
        let token = token.access_token.expose_secret().to_owned();
        Server { router: router(app.clone()), app, token, _folder: folder }
    }

    /// Another process on the same database and store: nothing in memory is shared.
    pub async fn replica_of(server: &Server) -> Server {
        let Parts { settings, db, auth, store, .. } = &*server.app;
        let (settings, db, auth, store) = (settings.clone(), db.clone(), auth.clone(), store.clone());
        let catalog = Caches::new(settings.metadata_cache_bytes);
        let app = App::new(Parts { settings, db, auth, store, catalog });
        let token = server.token.clone();
        Server { router: router(app.clone()), app, token, _folder: tempfile::tempdir().unwrap() }
    }

    pub async fn raw(&self, request: Request) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (mut parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = match bytes.is_empty() || parts.headers.contains_key("content-encoding") {
            true => Value::Null,
            false => serde_json::from_slice(&bytes).expect("every body is JSON"),
        };
        let answered = parts.extensions.remove::<Answered>();
        answered.iter().for_each(|answered| check_described(answered.operation, parts.status));
        Reply { status: parts.status, headers: parts.headers, body, bytes, answered }
    }

    /// With the root's token; `path` starts behind `/v1`.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Reply {
        let mut request = http::Request::builder().method(method).uri(format!("/v1{path}"));
        request = request.header("authorization", format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(body.into()).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &[], body.to_string()).await
    }

    pub fn objects(&self) -> Arc<dyn ObjectStore> {
        self.app.store.bucket(BucketName::parse("lake").unwrap())
    }

    /// All keys of the bucket below `prefix`, in order.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        use futures_util::TryStreamExt;
        let all: Vec<_> = self.objects().list(None).try_collect().await.unwrap();
        let mut keys: Vec<String> = all.into_iter().map(|object| object.location.to_string()).collect();
        keys.retain(|key| key.starts_with(prefix));
        keys.sort();
        keys
    }

    pub async fn with_namespace(db: Db, name: &str) -> Server {
        let server = Server::start(db).await;
        server.post("/namespaces", json!({"namespace": [name]})).await.expect(200);
        server
    }

    pub async fn create_table(&self, namespace: &str, name: &str) -> Value {
        self.post(&format!("/namespaces/{namespace}/tables"), new_table(name)).await.expect(200)
    }
}

impl Reply {
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }

    /// An error in the protocol's shape, as `status type message`.
    #[track_caller]
    pub fn error(&self) -> String {
        let object = self.body.as_object().expect("an error has a body");
        assert_eq!(object.keys().collect::<Vec<_>>(), ["error"]);
        let error = &self.body["error"];
        assert_eq!(error["code"], self.status.as_u16());
        assert_eq!(self.headers["content-type"], "application/json");
        format!("{} {} {}", self.status.as_u16(), error["type"].as_str().unwrap(), error["message"].as_str().unwrap())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Whatever these tests ask for, its answer's status is one that the OpenAPI document names.
fn check_described(operation: &'static str, status: StatusCode) {
    static STATUSES: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
        let document = serde_json::to_value(crate::server::openapi()).unwrap();
        let items = document["paths"].as_object().unwrap().values();
        let operations = items.flat_map(|item| item.as_object().unwrap().values());
        let statuses = operations.flat_map(|operation| {
            let id = operation["operationId"].as_str().unwrap();
            operation["responses"].as_object().unwrap().keys().map(|status| (id.to_owned(), status.clone()))
        });
        statuses.collect()
    });
    let is_described = STATUSES.contains(&(operation.to_owned(), status.as_str().to_owned()));
    assert!(is_described || operation == "unknown", "{operation} answered {status}, which the document does not name");
}

/// The store with its bucket; the bucket comes first, since a full store takes none.
async fn open_store(folder: &std::path::Path, settings: &Settings) -> Store {
    let folder = folder.join("store");
    let with_reserve =
        |reserve_bytes| StoreSettings { small_object_bytes_max: settings.small_object_bytes_max, reserve_bytes };
    let store = Store::open(&folder, with_reserve(0)).await.unwrap();
    store.create_bucket(&BucketName::parse("lake").unwrap(), now_ms()).await.unwrap();
    if settings.disk_reserve_bytes == 0 {
        return store;
    }
    store.close().await;
    Store::open(&folder, with_reserve(settings.disk_reserve_bytes)).await.unwrap()
}

async fn add_warehouse(db: &Db, name: &str, location: &str) {
    let (id, name, location) = (Uuid::now_v7(), name.to_owned(), location.to_owned());
    let row = WarehouseRow { id, name, location, storage: None, sealed_secret: None };
    assert_eq!(crate::db::warehouses::create(db, &row).await.unwrap(), Create::Done);
}

pub(super) fn new_table(name: &str) -> Value {
    json!({"name": name, "schema": schema()})
}

pub(super) fn schema() -> Value {
    json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": false, "type": "long"},
        {"id": 2, "name": "s", "required": false, "type": "string"},
    ]})
}
