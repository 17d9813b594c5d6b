//! A small client of the catalog: plain requests, answers as they came.

use crate::server::{ROOT_ID, ROOT_SECRET, Server};
use bytes::Bytes;
use http::HeaderMap;
use reqwest::Method;
use serde_json::{Value, json};

/// An answer read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub async fn of(response: reqwest::Response) -> reqwest::Result<Answer> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await? })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The JSON of a success.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// Checks the protocol's error body, whole, and answers its message.
    #[track_caller]
    pub fn error(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        let error = &body["error"];
        assert_eq!(error["code"], status, "{body}");
        assert_eq!(error["type"], kind, "{body}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{body}");
        let message = error["message"].as_str().unwrap_or_else(|| panic!("no message in {body}"));
        assert!(!message.is_empty(), "{body}");
        message.to_owned()
    }
}

/// Speaks to one server with one bearer token. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

impl Catalog {
    /// With a token got for the root key.
    pub async fn login(server: &Server) -> Catalog {
        let anonymous = Catalog::anonymous(server);
        let form = [("grant_type", "client_credentials"), ("client_id", ROOT_ID), ("client_secret", ROOT_SECRET)];
        let token = anonymous.token(&form).await.ok()["access_token"].as_str().map(str::to_owned);
        Catalog { token, ..anonymous }
    }

    pub fn anonymous(server: &Server) -> Catalog {
        Catalog { http: reqwest::Client::new(), url: server.catalog_url(), token: None }
    }

    pub fn with_token(&self, token: &str) -> Catalog {
        Catalog { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The bearer token of a catalog that logged in.
    pub fn bearer(&self) -> &str {
        self.token.as_deref().expect("logged in")
    }

    /// Posts a form to the token endpoint.
    pub async fn token(&self, form: &[(&str, &str)]) -> Answer {
        send(self.request(Method::POST, "/v1/oauth/tokens").form(form)).await
    }

    /// A request to a path of the server, to be completed and sent.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }
    pub async fn head(&self, path: &str) -> Answer {
        send(self.request(Method::HEAD, path)).await
    }
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }
    /// Posts bytes that need not be JSON as JSON.
    pub async fn post_bytes(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        send(self.request(Method::POST, path).header("content-type", "application/json").body(body)).await
    }

    pub async fn create_namespace(&self, namespace: &str) {
        self.post("/v1/namespaces", &json!({"namespace": [namespace], "properties": {}})).await.ok();
    }

    /// A table with one column `id`; answers the load result.
    pub async fn create_table(&self, namespace: &str, table: &str) -> Value {
        let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
        let body = json!({"name": table, "schema": {"type": "struct", "schema-id": 0, "fields": fields}});
        self.post(&format!("/v1/namespaces/{namespace}/tables"), &body).await.ok()
    }

    pub async fn load_table(&self, namespace: &str, table: &str) -> Answer {
        self.get(&format!("/v1/namespaces/{namespace}/tables/{table}")).await
    }

    pub async fn commit(&self, namespace: &str, table: &str, requirements: Value, updates: Value) -> Answer {
        let body = json!({"requirements": requirements, "updates": updates});
        self.post(&format!("/v1/namespaces/{namespace}/tables/{table}"), &body).await
    }

    /// A commit that sets one property and requires nothing: it retries on the server and never conflicts.
    pub async fn set_property(&self, namespace: &str, table: &str, key: &str, value: &str) -> Answer {
        let updates = json!([{"action": "set-properties", "updates": {key: value}}]);
        self.commit(namespace, table, json!([]), updates).await
    }
}

/// For servers that may die amid the answer.
pub async fn try_send(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    Answer::of(request.send().await?).await
}

pub async fn send(request: reqwest::RequestBuilder) -> Answer {
    try_send(request).await.expect("a whole answer")
}
