//! The front over a real store in a folder of its own, asked with signed requests.

mod access;
mod buckets;
mod conditional;
mod config;
mod connections;
mod copies;
mod listings;
mod multiparts;
mod objects;
mod operations;
mod policies;
mod posts;
mod refusals;
mod retries;
mod uploads;

use super::{
    Answered, Credentials, Front, Limits, S3Body,
    sigv4::{Payload, SERVICE_S3, Signer},
    xml::{self, Element},
};
use crate::{
    app::now_ms,
    auth::grants::{Access, Authority, Scope},
    store::{Store, StoreSettings},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use std::sync::Arc;
use tempfile::TempDir;

const ACCESS_KEY: &str = "AKIATESTER";
const SECRET: &str = "a secret for tests";
const REGION: &str = "us-east-1";
const HOST: &str = "127.0.0.1:9000";
const BUCKET: &str = "lake";

/// A front with one bucket, and the folder that goes with it.
struct World {
    front: Arc<Front>,
    _folder: TempDir,
}

impl World {
    async fn new() -> World {
        World::with(Authority::Full, Limits::default()).await
    }

    /// Whose caller reaches one prefix of the bucket only.
    async fn scoped(prefix: &str, access: Access) -> World {
        let prefixes = vec![format!("{BUCKET}/{prefix}")];
        let scope = Scope { warehouse: "lakehouse".to_owned(), prefixes, access, table: uuid::Uuid::nil() };
        World::with(Authority::Scoped(Arc::new(scope)), Limits::default()).await
    }

    async fn with(authority: Authority, limits: Limits) -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = StoreSettings { small_object_bytes_max: 64 << 10, reserve_bytes: 0 };
        let store = Store::open(folder.path(), settings).await.expect("the store opens");
        let bucket = crate::store::BucketName::parse(BUCKET).expect("a valid name");
        store.create_bucket(&bucket, now_ms()).await.expect("the bucket is new");
        let root = authority == Authority::Full;
        let credentials = Credentials::Fixed { access_key_id: ACCESS_KEY, secret: SECRET, authority, root };
        let front = Front { store, credentials, region: REGION.to_owned(), base_host: None, limits };
        World { front: Arc::new(front), _folder: folder }
    }

    /// Whose key is not the root key, so that policies count for it.
    async fn user() -> World {
        let mut world = World::new().await;
        let front = Arc::get_mut(&mut world.front).expect("nobody else holds it");
        if let Credentials::Fixed { root, .. } = &mut front.credentials {
            *root = false;
        }
        world
    }

    /// Sends a request without a key.
    async fn send_anonymous(&self, ask: Ask) -> Reply {
        let Ask { method, target, mut headers, body, .. } = ask;
        headers.insert("host", HeaderValue::from_static(HOST));
        headers.insert("content-length", HeaderValue::from(body.len()));
        let mut request = Request::builder().method(method).uri(&target).body(body).expect("a valid request");
        *request.headers_mut() = headers;
        self.send_raw(request).await
    }

    /// Sends a signed request.
    async fn send(&self, ask: Ask) -> Reply {
        let mut request = ask.signed(SECRET);
        if request.method() == http::Method::PUT || request.method() == http::Method::POST {
            let length = request.body().len();
            request.headers_mut().entry("content-length").or_insert_with(|| HeaderValue::from(length));
        }
        self.send_raw(request).await
    }

    async fn send_raw(&self, request: Request<Bytes>) -> Reply {
        let handled = self.front.handle(request.map(Full::new));
        // What a server needs of it.
        let handled: std::pin::Pin<Box<dyn Future<Output = Response<S3Body>> + Send>> = Box::pin(handled);
        let (parts, body) = handled.await.into_parts();
        let answered = parts.extensions.get::<Answered>().cloned().expect("each answer says what it answered");
        let body = body.collect().await.expect("the body is whole").to_bytes();
        Reply { status: parts.status, headers: parts.headers, body, answered }
    }

    async fn put(&self, key: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Ask::put(&format!("/{BUCKET}/{key}")).body(body)).await.expect_status(StatusCode::OK)
    }

    async fn get(&self, key: &str) -> Reply {
        self.send(Ask::get(&format!("/{BUCKET}/{key}"))).await
    }
}

/// A request to be signed and sent.
#[derive(Clone)]
struct Ask {
    method: http::Method,
    /// Path and query, encoded as sent.
    target: String,
    headers: HeaderMap,
    body: Bytes,
    payload: Payload,
}

impl Ask {
    fn new(method: http::Method, target: &str) -> Ask {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Ask { method, target: target.to_owned(), headers, body, payload: Payload::Unsigned }
    }
    fn get(target: &str) -> Ask {
        Ask::new(http::Method::GET, target)
    }
    fn head(target: &str) -> Ask {
        Ask::new(http::Method::HEAD, target)
    }
    fn put(target: &str) -> Ask {
        Ask::new(http::Method::PUT, target)
    }
    fn post(target: &str) -> Ask {
        Ask::new(http::Method::POST, target)
    }
    fn delete(target: &str) -> Ask {
        Ask::new(http::Method::DELETE, target)
    }

    fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Ask {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a valid header name");
        self.headers.append(name, HeaderValue::from_bytes(value.as_ref()).expect("a valid header"));
        self
    }

    fn body(mut self, body: impl Into<Bytes>) -> Ask {
        self.body = body.into();
        self
    }

    /// Says the body is `aws-chunked` without signatures, of `decoded` bytes.
    fn chunked(mut self, decoded: usize) -> Ask {
        self.payload = Payload::ChunkedUnsignedTrailer;
        self.header("content-encoding", "aws-chunked").header("x-amz-decoded-content-length", decoded.to_string())
    }

    fn signed(self, secret: &str) -> Request<Bytes> {
        let Ask { method, target, mut headers, body, payload } = self;
        headers.insert("host", HeaderValue::from_static(HOST));
        let token = headers.remove("x-amz-security-token");
        let token = token.as_ref().map(|token| token.to_str().expect("text"));
        let signer =
            Signer { access_key_id: ACCESS_KEY, secret, security_token: token, region: REGION, service: SERVICE_S3 };
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        signer.sign(method.as_str(), path, query, &mut headers, &payload, now_ms()).expect("signable");
        let mut request = Request::builder().method(method).uri(&target).body(body).expect("a valid request");
        *request.headers_mut() = headers;
        request
    }
}

/// An answer, read whole.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    answered: Answered,
}

impl Reply {
    #[track_caller]
    fn expect_status(self, status: StatusCode) -> Reply {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    #[track_caller]
    fn expect_error(self, status: StatusCode, code: &str) -> Reply {
        let reply = self.expect_status(status);
        let document = xml::parse(&reply.body, "Error").expect("errors are documents");
        assert_eq!(document.child_text("Code"), Some(code), "{}", String::from_utf8_lossy(&reply.body));
        assert_eq!(document.child_text("RequestId"), Some(&*reply.answered.request_id));
        assert_eq!(reply.headers["x-amz-request-id"], &*reply.answered.request_id);
        assert_eq!(reply.headers["content-type"], "application/xml");
        reply
    }

    /// `CODE: message` of an error.
    fn error(&self) -> String {
        let document = xml::parse(&self.body, "Error").expect("errors are documents");
        let text = |name| document.child_text(name).unwrap_or_default().to_owned();
        format!("{} {}: {}", self.status.as_u16(), text("Code"), text("Message"))
    }

    #[track_caller]
    fn document(&self, root: &str) -> Element {
        assert_eq!(self.status, StatusCode::OK, "{}", String::from_utf8_lossy(&self.body));
        xml::parse(&self.body, root).expect("the answer is a document")
    }

    /// A header's text; empty where there is none.
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| std::str::from_utf8(value.as_bytes()).expect("text"))
    }
}

/// Texts of all elements under `path`, as `Contents/Key`.
fn texts<'a>(document: &'a Element, path: &str) -> Vec<&'a str> {
    let mut found = vec![document];
    for name in path.split('/') {
        found = found
            .into_iter()
            .flat_map(|element| element.children.iter().filter(|c| c.name == name).collect::<Vec<_>>())
            .collect();
    }
    found.into_iter().map(|element| element.text.as_str()).collect()
}

fn md5_base64(bytes: &[u8]) -> String {
    use base64::Engine;
    use md5::Digest;
    base64::prelude::BASE64_STANDARD.encode(md5::Md5::digest(bytes))
}
