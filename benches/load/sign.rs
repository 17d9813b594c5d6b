//! Heads of signed S3 requests.

use crate::target::{ACCESS_KEY_ID, SECRET_ACCESS_KEY};
use http::{HeaderMap, HeaderValue};
use std::net::SocketAddr;
use tidewater::{
    app::now_ms,
    s3::sigv4::{self, Payload, SERVICE_S3},
};

pub struct Signer {
    host: String,
}

impl Signer {
    pub fn new(s3: SocketAddr) -> Signer {
        Signer { host: s3.to_string() }
    }

    /// Request line and headers of a request with a body of `length` bytes that is not hashed.
    pub fn head(&self, method: &str, path: &str, length: u64) -> Vec<u8> {
        self.request(method, path, "", &[], &Payload::Unsigned, length)
    }

    /// The same with a query (encoded and in its order) and further headers.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        query: &str,
        more: &[(&'static str, &str)],
        payload: &Payload,
        length: u64,
    ) -> Vec<u8> {
        let signer = sigv4::Signer {
            access_key_id: ACCESS_KEY_ID,
            secret: SECRET_ACCESS_KEY,
            security_token: None,
            region: "us-east-1",
            service: SERVICE_S3,
        };
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_str(&self.host).expect("an address is a header value"));
        for (name, value) in more {
            headers.insert(*name, HeaderValue::from_str(value).expect("a header value"));
        }
        signer.sign(method, path, query, &mut headers, payload, now_ms()).expect("keys are header values");
        let mark = if query.is_empty() { "" } else { "?" };
        let mut head = format!("{method} {path}{mark}{query} HTTP/1.1\r\n").into_bytes();
        for (name, value) in &headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(format!("content-length: {length}\r\n\r\n").as_bytes());
        head
    }
}
