//! What a request to S3 would touch, for those who sign it for others. Pure.

use super::{
    copy, delete,
    front::required,
    operation::{self, Operation},
};
use crate::auth::grants::{Action, Resource};
use http::{Method, Uri};

/// A request that is not sent yet.
pub struct Request<'a> {
    pub method: &'a Method,
    /// Absolute, as it will be sent.
    pub uri: &'a Uri,
    /// The `x-amz-copy-source` header.
    pub copy_source: Option<&'a str>,
    /// The body, where the request is a document and its sender shows it.
    pub document: Option<&'a [u8]>,
    /// The name whose subdomains are buckets.
    pub base_host: Option<&'a str>,
}

/// What a request would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The operation's name in the S3 API reference.
    pub operation: &'static str,
    pub touches: Vec<Touch>,
}

/// One object, or for a listing the prefix of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    pub action: Action,
    pub bucket: String,
    pub key: String,
}

impl Intent {
    /// What the request would do to objects. `None` when it is about anything else: buckets, what is not served, or
    /// nothing that could be told from the request.
    pub fn of(request: &Request<'_>) -> Option<Intent> {
        let parsed = operation::Request {
            method: request.method,
            host: request.uri.authority().map(http::uri::Authority::as_str),
            path: request.uri.path(),
            query: request.uri.query().unwrap_or(""),
            copies: request.copy_source.is_some(),
        };
        let operation = Operation::parse(&parsed, request.base_host).ok()?;
        let touches = match &operation {
            Operation::DeleteObjects { bucket } => deletions(bucket.as_str(), request.document)?,
            Operation::CopyObject { .. } | Operation::UploadPartCopy(_) => {
                let source = copy::parse_source(request.copy_source?).ok()?;
                vec![touch(required(&operation)?)?, touch((Action::GetObject, source.object.resource()))?]
            }
            _ => vec![touch(required(&operation)?)?],
        };
        Some(Intent { operation: operation.name(), touches })
    }

    /// Whether nothing is written; never so of what cannot be told.
    pub fn only_reads(&self) -> bool {
        !self.touches.is_empty()
            && self.touches.iter().all(|touch| matches!(touch.action, Action::GetObject | Action::ListObjects))
    }
}

fn touch((action, resource): (Action, Resource<'_>)) -> Option<Touch> {
    match resource {
        // What binds everybody, such as a lock, is nobody's own.
        Resource::Object { .. } if action == Action::ConfigureBucket => None,
        Resource::Object { bucket, key } => Some(Touch { action, bucket: bucket.to_owned(), key: key.to_owned() }),
        Resource::Server | Resource::Bucket(_) => None,
    }
}

/// The keys a deletion names; none where the document is not shown.
fn deletions(bucket: &str, document: Option<&[u8]>) -> Option<Vec<Touch>> {
    let Some(document) = document else { return Some(Vec::new()) };
    let keys = delete::keys_named(document).ok()?;
    let deletion = |key| Touch { action: Action::DeleteObject, bucket: bucket.to_owned(), key };
    Some(keys.into_iter().map(deletion).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(request: &str, copy_source: Option<&str>, document: Option<&str>, expected: Expect) {
        let (method, uri) = request.split_once(' ').unwrap();
        let intent = Intent::of(&Request {
            method: &method.parse().unwrap(),
            uri: &uri.parse().unwrap(),
            copy_source,
            document: document.map(str::as_bytes),
            base_host: Some("s3.lake"),
        });
        let shown = intent.map(|intent| {
            let touch = |touch: &Touch| format!("{:?} {} {}", touch.action, touch.bucket, touch.key);
            let touches: Vec<String> = intent.touches.iter().map(touch).collect();
            format!(
                "{}: {}{}",
                intent.operation,
                touches.join(", "),
                if intent.only_reads() { "" } else { " (writes)" }
            )
        });
        expected.assert_eq(&shown.unwrap_or_else(|| "nothing to sign".to_owned()));
    }

    #[test]
    fn objects_are_named_as_the_store_would_read_them() {
        let ask = |request, expected| check(request, None, None, expected);
        ask("GET http://s3.lake/bkt/t/data/x%20y", expect!["GetObject: GetObject bkt t/data/x y"]);
        ask("GET http://bkt.s3.lake/t/a", expect!["GetObject: GetObject bkt t/a"]);
        ask("GET http://s3.lake/bkt/t/../u/a", expect!["GetObject: GetObject bkt t/../u/a"]);
        ask("GET http://s3.lake/bkt/t%2F..%2Fu", expect!["GetObject: GetObject bkt t/../u"]);
        ask("HEAD http://s3.lake/bkt/t//a", expect!["HeadObject: GetObject bkt t//a"]);
        ask("PUT http://s3.lake/bkt/t/a", expect!["PutObject: PutObject bkt t/a (writes)"]);
        ask("DELETE http://s3.lake/bkt/t/a", expect!["DeleteObject: DeleteObject bkt t/a (writes)"]);
        ask("POST http://s3.lake/bkt/t/a?uploads", expect!["CreateMultipartUpload: PutObject bkt t/a (writes)"]);
        ask("PUT http://s3.lake/bkt/t/a?partNumber=1&uploadId=u", expect!["UploadPart: PutObject bkt t/a (writes)"]);
        ask("GET http://s3.lake/bkt?list-type=2&prefix=t%2F", expect!["ListObjectsV2: ListObjects bkt t/"]);
        ask("GET http://s3.lake/bkt?list-type=2", expect!["ListObjectsV2: ListObjects bkt "]);
    }

    #[test]
    fn copies_and_deletions_touch_all_they_name() {
        check(
            "PUT http://s3.lake/bkt/t/a",
            Some("/bkt/u/secret"),
            None,
            expect!["CopyObject: PutObject bkt t/a, GetObject bkt u/secret (writes)"],
        );
        let document = "<Delete><Object><Key>t/a</Key></Object><Object><Key>u/b</Key></Object></Delete>";
        check(
            "POST http://s3.lake/bkt?delete",
            None,
            Some(document),
            expect!["DeleteObjects: DeleteObject bkt t/a, DeleteObject bkt u/b (writes)"],
        );
        check("POST http://s3.lake/bkt?delete", None, Some("rubbish"), expect!["nothing to sign"]);
    }

    #[test]
    fn buckets_and_what_is_not_served_are_signed_for_nobody() {
        for request in [
            "GET http://s3.lake/",
            "PUT http://s3.lake/bkt",
            "DELETE http://s3.lake/bkt",
            "HEAD http://s3.lake/bkt",
            "GET http://s3.lake/bkt?policy",
            "PUT http://s3.lake/bkt/t/a?acl",
            "OPTIONS http://s3.lake/bkt/t/a",
            "PATCH http://s3.lake/bkt/t/a",
        ] {
            check(request, None, None, expect!["nothing to sign"]);
        }
    }
}
