//! What may be signed for another store, with keys that open more than one table. Pure.
//!
//! Stores read requests differently: which of two equal headers or parameters counts, whether `..` in a key is a step up.
//! So only requests are signed that every store reads as we do, and that ask for nothing beyond objects and their bytes.

use super::{Error, Result};
use crate::{auth::grants::Action, s3::intent::Intent};
use aws_lc_rs::digest;
use http::{HeaderMap, HeaderName, Uri};
use object_store::path::Path;

/// Query parameters of the operations on objects, each at most once.
const PARAMETERS: [&str; 25] = [
    "attributes",
    "continuation-token",
    "delete",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "list-type",
    "marker",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "prefix",
    "start-after",
    "tagging",
    "upload-id-marker",
    "uploadId",
    "uploads",
    "version-id-marker",
    "versionId",
    "versions",
    // Which operation a client means; stores ignore it.
    "x-id",
    "response-content-type",
];

/// `x-amz-` headers that say what to store or how it is checked, whole names and beginnings. None of them gives others
/// access, locks an object or passes over a lock.
const HEADERS: [&str; 13] = [
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-metadata-directive",
    "x-amz-object-attributes",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-security-token",
    "x-amz-storage-class",
    "x-amz-tagging",
    "x-amz-tagging-directive",
    "x-amz-trailer",
    "x-amz-te",
];
const HEADER_BEGINNINGS: [&str; 4] =
    ["x-amz-checksum-", "x-amz-copy-source-if-", "x-amz-meta-", "x-amz-server-side-encryption"];

/// # Errors
/// `Error::Forbidden` naming what is not signed.
pub fn check(uri: &Uri, headers: &HeaderMap, body: Option<&str>, intent: &Intent) -> Result<()> {
    parameters(uri.query().unwrap_or_default(), intent)?;
    for name in headers.keys().filter(|name| name.as_str().starts_with("x-amz-")) {
        if !is_plain(name) {
            return refuse(format!("requests with the header {name}"));
        }
        if headers.get_all(name).iter().count() > 1 {
            return refuse(format!("requests with the header {name} twice"));
        }
    }
    for touch in &intent.touches {
        let key = if touch.action == Action::ListObjects { touch.key.trim_end_matches('/') } else { &touch.key };
        if key.contains('\\') || Path::parse(key).map_or(true, |path| path.as_ref() != key) {
            return refuse(format!("requests about a key with empty or dotted segments: {}", touch.key));
        }
    }
    if intent.operation == "DeleteObjects" {
        deletion(headers, body)?;
    }
    Ok(())
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::Forbidden(format!("{what} are not signed for this storage")))
}

fn is_plain(name: &HeaderName) -> bool {
    HEADERS.contains(&name.as_str()) || HEADER_BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning))
}

fn parameters(query: &str, intent: &Intent) -> Result<()> {
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        // Names of known parameters need no encoding: one that has it is not among them.
        let name = pair.split('=').next().unwrap_or_default();
        if !PARAMETERS.contains(&name) {
            return refuse(format!("requests with the parameter {name}"));
        }
        if seen.contains(&name) {
            return refuse(format!("requests with the parameter {name} twice"));
        }
        let deletes = intent.touches.iter().any(|touch| touch.action == Action::DeleteObject);
        if name == "versionId" && deletes {
            return refuse("deletions of versions".to_owned());
        }
        seen.push(name);
    }
    Ok(())
}

/// What a deletion of many names is in its body: that very body must be what the signature is for.
fn deletion(headers: &HeaderMap, body: Option<&str>) -> Result<()> {
    let Some(body) = body else {
        return refuse("deletions of many objects without their body".to_owned());
    };
    let hash = hex::encode(digest::digest(&digest::SHA256, body.as_bytes()));
    match headers.get("x-amz-content-sha256") {
        Some(given) if given.as_bytes() != hash.as_bytes() => {
            refuse("deletions of many objects whose x-amz-content-sha256 is not their body's".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::intent;
    use expect_test::{Expect, expect};
    use http::{HeaderValue, Method};

    fn check_request(method: &str, target: &str, sent: &[(&'static str, &str)], body: Option<&str>, expected: Expect) {
        let uri: Uri = format!("http://store{target}").parse().unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let intent = Intent::of(&intent::Request {
            method: &method.parse::<Method>().unwrap(),
            uri: &uri,
            copy_source: headers.get("x-amz-copy-source").and_then(|value| value.to_str().ok()),
            document: body.map(str::as_bytes),
            base_host: None,
        });
        let outcome = match intent {
            None => "nothing to sign".to_owned(),
            Some(intent) => match super::check(&uri, &headers, body, &intent) {
                Ok(()) => "signed".to_owned(),
                Err(error) => error.to_string(),
            },
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn what_clients_send_is_signed() {
        for (method, target) in [
            ("GET", "/lake/t/data/a.parquet"),
            ("GET", "/lake/t/data/a%20b=c.parquet?versionId=1"),
            ("HEAD", "/lake/t/a"),
            ("PUT", "/lake/t/a?partNumber=1&uploadId=u"),
            ("POST", "/lake/t/a?uploads="),
            ("GET", "/lake?list-type=2&prefix=t%2Fdata%2F&max-keys=1000"),
            ("DELETE", "/lake/t/a?x-id=DeleteObject"),
        ] {
            check_request(method, target, &[], None, expect!["signed"]);
        }
        let headers = [("x-amz-meta-a", "b"), ("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-content-sha256", "e3b0")];
        check_request("PUT", "/lake/t/a", &headers, None, expect!["signed"]);
        check_request("PUT", "/lake/t/a", &[("x-amz-copy-source", "/lake/t/b")], None, expect!["signed"]);
    }

    #[test]
    fn what_stores_read_differently_is_not() {
        for target in ["/lake/t/../u/a", "/lake/t/%2e%2e/u/a", "/lake/t%2F..%2Fu/a"] {
            check_request(
                "GET",
                target,
                &[],
                None,
                expect![
                    "not allowed: requests about a key with empty or dotted segments: t/../u/a are not signed for this storage"
                ],
            );
        }
        check_request(
            "GET",
            "/lake/t//a",
            &[],
            None,
            expect![
                "not allowed: requests about a key with empty or dotted segments: t//a are not signed for this storage"
            ],
        );
        check_request(
            "GET",
            "/lake/t/..%5Cu",
            &[],
            None,
            expect![
                "not allowed: requests about a key with empty or dotted segments: t/..\\u are not signed for this storage"
            ],
        );
        check_request(
            "GET",
            "/lake?list-type=2&prefix=t%2F&prefix=u%2F",
            &[],
            None,
            expect!["not allowed: requests with the parameter prefix twice are not signed for this storage"],
        );
        check_request(
            "GET",
            "/lake/t/a?X-Amz-Signature=1",
            &[],
            None,
            expect!["not allowed: requests with the parameter X-Amz-Signature are not signed for this storage"],
        );
        check_request(
            "PUT",
            "/lake/t/a",
            &[("x-amz-copy-source", "/lake/t/b"), ("x-amz-copy-source", "/lake/u/b")],
            None,
            expect!["not allowed: requests with the header x-amz-copy-source twice are not signed for this storage"],
        );
    }

    #[test]
    fn what_goes_beyond_bytes_is_not() {
        for (name, value) in [
            ("x-amz-acl", "public-read"),
            ("x-amz-grant-read", "uri=x"),
            ("x-amz-bypass-governance-retention", "true"),
            ("x-amz-object-lock-mode", "COMPLIANCE"),
            ("x-amz-website-redirect-location", "/x"),
        ] {
            let mut outcome = String::from("not allowed: requests with the header ");
            outcome.push_str(name);
            outcome.push_str(" are not signed for this storage");
            let uri: Uri = "http://store/lake/t/a".parse().unwrap();
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            let intent = Intent { operation: "PutObject", touches: Vec::new() };
            assert_eq!(check(&uri, &headers, None, &intent).unwrap_err().to_string(), outcome);
        }
        check_request(
            "DELETE",
            "/lake/t/a?versionId=1",
            &[],
            None,
            expect!["not allowed: deletions of versions are not signed for this storage"],
        );
    }

    #[test]
    fn a_deletion_is_signed_for_the_body_that_was_shown() {
        let body = "<Delete><Object><Key>t/a</Key></Object></Delete>";
        let hash = hex::encode(digest::digest(&digest::SHA256, body.as_bytes()));
        check_request("POST", "/lake?delete", &[], Some(body), expect!["signed"]);
        check_request("POST", "/lake?delete", &[("x-amz-content-sha256", &hash)], Some(body), expect!["signed"]);
        for other in ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "e3b0c44298fc"] {
            check_request(
                "POST",
                "/lake?delete",
                &[("x-amz-content-sha256", other)],
                Some(body),
                expect![
                    "not allowed: deletions of many objects whose x-amz-content-sha256 is not their body's are not signed for this storage"
                ],
            );
        }
        check_request(
            "POST",
            "/lake?delete",
            &[],
            None,
            expect!["not allowed: deletions of many objects without their body are not signed for this storage"],
        );
    }
}
