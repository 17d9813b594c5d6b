//! A small S3 client on the signing side of `tidewater::s3::sigv4`: path style, answers as they came.

use crate::{
    catalog::{Answer, send},
    server::{ROOT_ID, ROOT_SECRET, Server},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use md5::{Digest, Md5};
use reqwest::Method;
use tidewater::{
    app::now_ms,
    s3::sigv4::{Payload, SERVICE_S3, Signer, encode_component, encode_path},
};

pub const REGION: &str = "us-east-1";
pub const BUCKET: &str = "lakehouse-warehouse";

/// Speaks to one server with one key. Cheap to clone.
#[derive(Clone)]
pub struct S3 {
    pub http: reqwest::Client,
    pub url: String,
    pub access_key_id: String,
    pub secret: String,
    pub session_token: Option<String>,
    /// Added to the clock that signs. Milliseconds.
    pub skew_ms: i64,
}

impl S3 {
    /// With the root key.
    pub fn root(server: &Server) -> S3 {
        S3 {
            http: reqwest::Client::new(),
            url: server.s3_url(),
            access_key_id: ROOT_ID.to_owned(),
            secret: ROOT_SECRET.to_owned(),
            session_token: None,
            skew_ms: 0,
        }
    }

    /// With vended keys: the `config` of a load or create answer.
    pub fn vended(server: &Server, config: &serde_json::Value) -> S3 {
        let text = |name: &str| config[name].as_str().unwrap_or_else(|| panic!("no {name} in {config}")).to_owned();
        S3 {
            access_key_id: text("s3.access-key-id"),
            secret: text("s3.secret-access-key"),
            session_token: Some(text("s3.session-token")),
            ..S3::root(server)
        }
    }

    fn signer(&self) -> Signer<'_> {
        Signer {
            access_key_id: &self.access_key_id,
            secret: &self.secret,
            security_token: self.session_token.as_deref(),
            region: REGION,
            service: SERVICE_S3,
        }
    }

    fn host(&self) -> HeaderValue {
        HeaderValue::from_str(self.url.trim_start_matches("http://")).expect("an address is a header value")
    }

    /// Signs and sends. `path` and `query` are encoded here; `query` is in the order sent.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        send(self.request(method, path, query, headers, body)).await
    }

    /// The same, signed but not sent.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> reqwest::RequestBuilder {
        let (path, query, body) = (encode_path(path.as_bytes()), encode_query(query), body.into());
        let mut signed = HeaderMap::new();
        signed.insert("host", self.host());
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).expect("a header name");
            signed.append(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let payload = Payload::of_bytes(&body);
        self.signer()
            .sign(method.as_str(), &path, &query, &mut signed, &payload, now_ms() + self.skew_ms)
            .expect("keys are header values");
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{}{path}{separator}{query}", self.url);
        self.http.request(method, url).headers(signed).body(body)
    }

    /// A presigned URL for a request without further headers.
    pub fn presigned(&self, method: Method, bucket: &str, key: &str, expires_s: u32) -> String {
        let path = encode_path(format!("/{bucket}/{key}").as_bytes());
        let mut headers = HeaderMap::new();
        headers.insert("host", self.host());
        let now_ms = now_ms() + self.skew_ms;
        let query = self.signer().presign(method.as_str(), &path, "", &headers, expires_s, now_ms);
        format!("{}{path}?{query}", self.url)
    }

    pub async fn put(&self, bucket: &str, key: &str, body: impl Into<Bytes>) -> Answer {
        self.send(Method::PUT, &format!("/{bucket}/{key}"), &[], &[], body).await
    }
    pub async fn get(&self, bucket: &str, key: &str) -> Answer {
        self.send(Method::GET, &format!("/{bucket}/{key}"), &[], &[], Bytes::new()).await
    }
    pub async fn delete(&self, bucket: &str, key: &str) -> Answer {
        self.send(Method::DELETE, &format!("/{bucket}/{key}"), &[], &[], Bytes::new()).await
    }
    pub async fn delete_many(&self, bucket: &str, keys: &[&str]) -> Answer {
        let objects: String = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        let document = format!("<Delete>{objects}</Delete>");
        let md5 = BASE64.encode(Md5::digest(document.as_bytes()));
        self.send(Method::POST, &format!("/{bucket}"), &[("delete", "")], &[("content-md5", &md5)], document).await
    }
    /// The XML of one page of ListObjectsV2.
    pub async fn list(&self, bucket: &str, prefix: &str) -> Answer {
        let query = [("list-type", "2"), ("prefix", prefix)];
        self.send(Method::GET, &format!("/{bucket}"), &query, &[], Bytes::new()).await
    }

    /// All keys under a prefix, in order, page by page.
    pub async fn keys(&self, bucket: &str, prefix: &str) -> Vec<String> {
        let (mut keys, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", prefix), ("encoding-type", "url")];
            if let Some(token) = &token {
                query.insert(0, ("continuation-token", token));
            }
            let page = self.send(Method::GET, &format!("/{bucket}"), &query, &[], Bytes::new()).await;
            assert_eq!(page.status, 200, "{}", page.text());
            let xml = page.text();
            for key in elements(&xml, "Key") {
                let key = percent_encoding::percent_decode_str(key).decode_utf8().expect("keys are UTF-8");
                keys.push(key.into_owned());
            }
            token = elements(&xml, "NextContinuationToken").next().map(str::to_owned);
            if token.is_none() {
                return keys;
            }
        }
    }
}

/// The texts of all elements of a name in an S3 answer, as they stand.
pub fn elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (text, behind) = after.split_once(&close)?;
        rest = behind;
        Some(text)
    })
}

impl Answer {
    /// Checks the status and the `Code` of an S3 error, and answers its message.
    #[track_caller]
    pub fn s3_error(&self, status: u16, code: &str) -> String {
        let xml = self.text();
        let first = |name| elements(&xml, name).next().unwrap_or_default().to_owned();
        assert_eq!((self.status, first("Code").as_str()), (status, code), "{xml}");
        first("Message")
    }
}

fn encode_query(query: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        format!("{}={}", encode_component(name.as_bytes()), encode_component(value.as_bytes()))
    };
    query.iter().map(pair).collect::<Vec<_>>().join("&")
}
