//! Operations as a table: requests on one side, what they ask for on the other.

use crate::s3::{
    error::Error,
    operation::{KEY_BYTES_MAX, Operation, Request},
};
use expect_test::{Expect, expect};
use http::Method;
use std::fmt::Write;

const BASE_HOST: &str = "s3.example.com";

/// One line a request: operation and parameters, or code and message.
fn check(requests: &[(&str, &str)], expected: &Expect) {
    let mut lines = String::new();
    for (line, host) in requests {
        let (method, target) = line.split_once(' ').expect("a request line");
        let (method, copies) = method.strip_suffix("+copy").map_or((method, false), |method| (method, true));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = Request { method: &method, host: Some(host), path, query, copies };
        let parsed = match Operation::parse(&request, Some(BASE_HOST)) {
            Ok(operation) => format!("{operation:?}"),
            Err(error) => format!("{}: {}", error.describe().code, error.describe().message),
        };
        // Names are shown as plain text: their own type says no more.
        let parsed = parsed.replace("BucketName(", "(").replace("ObjectKey(", "(");
        writeln!(lines, "{line} => {parsed}").expect("a string takes all");
    }
    expected.assert_eq(&lines);
}

fn by_path<'a>(lines: &[&'a str]) -> Vec<(&'a str, &'static str)> {
    lines.iter().map(|line| (*line, "127.0.0.1:9000")).collect()
}

#[test]
fn paths_and_hosts_name_buckets_and_keys_to_the_letter() {
    check(
        &[
            ("GET /", "127.0.0.1:9000"),
            ("HEAD /lake", "127.0.0.1:9000"),
            ("HEAD /lake/", "127.0.0.1:9000"),
            ("GET /lake//", "127.0.0.1:9000"),
            ("GET /lake/a//b/../c/", "127.0.0.1:9000"),
            ("GET /lake/%2e%2e/a%2Fb+c%20d%2525", "127.0.0.1:9000"),
            ("GET /lake/%FF", "127.0.0.1:9000"),
            ("GET /L%41KE/k", "127.0.0.1:9000"),
            ("GET //k", "127.0.0.1:9000"),
            ("GET /k", "lake.s3.example.com"),
            ("GET //k/", "LAKE.s3.Example.com:9000"),
            ("GET //k/", "lake.S3.Example.com:9000"),
            ("HEAD /", "lake.s3.example.com"),
            ("GET /lake/k", "s3.example.com"),
            ("GET /lake/k", "evils3.example.com"),
            ("GET /", ".s3.example.com"),
            ("GET /b/k", "[::1]:9000"),
        ],
        &expect![[r#"
            GET / => ListBuckets { prefix: "", after: None, limit: None }
            HEAD /lake => HeadBucket { bucket: ("lake") }
            HEAD /lake/ => HeadBucket { bucket: ("lake") }
            GET /lake// => GetObject { object: Object { bucket: ("lake"), key: ("/") }, part: None }
            GET /lake/a//b/../c/ => GetObject { object: Object { bucket: ("lake"), key: ("a//b/../c/") }, part: None }
            GET /lake/%2e%2e/a%2Fb+c%20d%2525 => GetObject { object: Object { bucket: ("lake"), key: ("../a/b+c d%25") }, part: None }
            GET /lake/%FF => InvalidURI: The specified URI couldn't be parsed.
            GET /L%41KE/k => InvalidBucketName: The specified bucket is not valid.
            GET //k => InvalidBucketName: The specified bucket is not valid.
            GET /k => GetObject { object: Object { bucket: ("lake"), key: ("k") }, part: None }
            GET //k/ => GetObject { object: Object { bucket: ("lake"), key: ("/k/") }, part: None }
            GET //k/ => GetObject { object: Object { bucket: ("lake"), key: ("/k/") }, part: None }
            HEAD / => HeadBucket { bucket: ("lake") }
            GET /lake/k => GetObject { object: Object { bucket: ("lake"), key: ("k") }, part: None }
            GET /lake/k => GetObject { object: Object { bucket: ("lake"), key: ("k") }, part: None }
            GET / => ListBuckets { prefix: "", after: None, limit: None }
            GET /b/k => InvalidBucketName: The specified bucket is not valid.
        "#]],
    );
}

#[test]
fn a_key_has_at_most_1024_bytes() {
    let parse = |key: &str| {
        let path = format!("/lake/{key}");
        let request = Request { method: &Method::GET, host: None, path: &path, query: "", copies: false };
        Operation::parse(&request, None)
    };
    assert!(parse(&"k".repeat(KEY_BYTES_MAX)).is_ok());
    assert!(matches!(parse(&"k".repeat(KEY_BYTES_MAX + 1)), Err(Error::KeyTooLong { size: 1025 })));
    // Bytes count, not characters.
    assert!(matches!(parse(&"%C3%BC".repeat(513)), Err(Error::KeyTooLong { size: 1026 })));
}

#[test]
fn sub_resources_decide() {
    check(
        &by_path(&[
            "POST /",
            "GET /lake?location",
            "GET /lake?versioning=",
            "PUT /lake?versioning",
            "GET /lake?uploads&max-uploads=2&key-marker=k&upload-id-marker=u&delimiter=/",
            "GET /lake?versions&prefix=a%2Bb&key-marker=k&encoding-type=url",
            "GET /lake/?list-type=2&delimiter=&prefix=p/&start-after=p/1&max-keys=5000&fetch-owner=true",
            "GET /lake?list-type=2&continuation-token=x",
            "GET /lake?marker=m&max-keys=0",
            "GET /lake?policyStatus",
            "GET /lake?object-lock",
            "PUT /lake",
            "PUT /lake?cors",
            "DELETE /lake",
            "DELETE /lake?lifecycle",
            "POST /lake?delete",
            "POST /lake",
            "PATCH /lake",
            "OPTIONS /lake/k",
            "GET /lake/k?x-id=GetObject&versionId=null",
            "GET /lake/k?partNumber=3",
            "HEAD /lake/k",
            "GET /lake/k?attributes",
            "GET /lake/k?tagging",
            "PUT /lake/k?acl",
            "POST /lake/k?restore",
            "PUT /lake/k",
            "PUT+copy /lake/k",
            "PUT /lake/k?partNumber=1&uploadId=u",
            "PUT+copy /lake/k?uploadId=u&partNumber=10000",
            "POST /lake/k?uploads",
            "POST /lake/k?uploadId=u",
            "DELETE /lake/k?uploadId=u",
            "GET /lake/k?uploadId=u&part-number-marker=5&max-parts=7&encoding-type=url",
            "DELETE /lake/k",
            "DELETE /lake/k?tagging",
        ]),
        &expect![[r#"
            POST / => SecurityTokens
            GET /lake?location => GetBucketLocation { bucket: ("lake") }
            GET /lake?versioning= => GetBucketVersioning { bucket: ("lake") }
            PUT /lake?versioning => NotImplemented("PutBucketVersioning")
            GET /lake?uploads&max-uploads=2&key-marker=k&upload-id-marker=u&delimiter=/ => ListMultipartUploads { bucket: ("lake"), listing: Listing { prefix: "", delimiter: Some("/"), limit: 2, url_encoded: false }, key_marker: Some("k"), upload_id_marker: Some("u") }
            GET /lake?versions&prefix=a%2Bb&key-marker=k&encoding-type=url => ListObjectVersions { bucket: ("lake"), listing: Listing { prefix: "a+b", delimiter: None, limit: 1000, url_encoded: true }, key_marker: Some("k") }
            GET /lake/?list-type=2&delimiter=&prefix=p/&start-after=p/1&max-keys=5000&fetch-owner=true => ListObjectsV2 { bucket: ("lake"), listing: Listing { prefix: "p/", delimiter: None, limit: 1000, url_encoded: false }, start_after: Some("p/1"), continuation_token: None, fetch_owner: true }
            GET /lake?list-type=2&continuation-token=x => ListObjectsV2 { bucket: ("lake"), listing: Listing { prefix: "", delimiter: None, limit: 1000, url_encoded: false }, start_after: None, continuation_token: Some("x"), fetch_owner: false }
            GET /lake?marker=m&max-keys=0 => ListObjects { bucket: ("lake"), listing: Listing { prefix: "", delimiter: None, limit: 0, url_encoded: false }, marker: Some("m") }
            GET /lake?policyStatus => Configure { bucket: ("lake"), call: GetPolicyStatus }
            GET /lake?object-lock => NotImplemented("GetObjectLockConfiguration")
            PUT /lake => CreateBucket { bucket: ("lake") }
            PUT /lake?cors => Configure { bucket: ("lake"), call: PutCors }
            DELETE /lake => DeleteBucket { bucket: ("lake") }
            DELETE /lake?lifecycle => NotImplemented("DeleteBucketLifecycleConfiguration")
            POST /lake?delete => DeleteObjects { bucket: ("lake") }
            POST /lake => PostObject { bucket: ("lake") }
            PATCH /lake => MethodNotAllowed: The specified method is not allowed against this resource.
            OPTIONS /lake/k => Preflight { bucket: Some(("lake")) }
            GET /lake/k?x-id=GetObject&versionId=null => GetObject { object: Object { bucket: ("lake"), key: ("k") }, part: None }
            GET /lake/k?partNumber=3 => GetObject { object: Object { bucket: ("lake"), key: ("k") }, part: Some(3) }
            HEAD /lake/k => HeadObject { object: Object { bucket: ("lake"), key: ("k") }, part: None }
            GET /lake/k?attributes => GetObjectAttributes { object: Object { bucket: ("lake"), key: ("k") } }
            GET /lake/k?tagging => NotImplemented("GetObjectTagging")
            PUT /lake/k?acl => NotImplemented("PutObjectAcl")
            POST /lake/k?restore => NotImplemented("RestoreObject")
            PUT /lake/k => PutObject { object: Object { bucket: ("lake"), key: ("k") } }
            PUT+copy /lake/k => CopyObject { object: Object { bucket: ("lake"), key: ("k") } }
            PUT /lake/k?partNumber=1&uploadId=u => UploadPart(Part { object: Object { bucket: ("lake"), key: ("k") }, upload_id: "u", number: 1 })
            PUT+copy /lake/k?uploadId=u&partNumber=10000 => UploadPartCopy(Part { object: Object { bucket: ("lake"), key: ("k") }, upload_id: "u", number: 10000 })
            POST /lake/k?uploads => CreateMultipartUpload { object: Object { bucket: ("lake"), key: ("k") } }
            POST /lake/k?uploadId=u => CompleteMultipartUpload { object: Object { bucket: ("lake"), key: ("k") }, upload_id: "u" }
            DELETE /lake/k?uploadId=u => AbortMultipartUpload { object: Object { bucket: ("lake"), key: ("k") }, upload_id: "u" }
            GET /lake/k?uploadId=u&part-number-marker=5&max-parts=7&encoding-type=url => ListParts { object: Object { bucket: ("lake"), key: ("k") }, upload_id: "u", after: 5, limit: 7, url_encoded: true }
            DELETE /lake/k => DeleteObject { object: Object { bucket: ("lake"), key: ("k") } }
            DELETE /lake/k?tagging => NotImplemented("DeleteObjectTagging")
        "#]],
    );
}

#[test]
fn bad_requests_have_their_own_answers() {
    check(
        &by_path(&[
            "GET /lake?max-keys=-1",
            "GET /lake?max-keys=a",
            "GET /lake?max-keys=2147483648",
            "GET /lake?list-type=1",
            "GET /lake?encoding-type=base64",
            "GET /?max-buckets=0",
            "GET /?max-buckets=10001",
            "GET /lake?prefix=%FF",
            "GET /lake/k?uploads",
            "GET /lake/k?versions",
            "GET /lake/k?versionId=",
            "GET /lake/k?versionId=not_one",
            "GET /lake/k?versionId=3HL4kqtJlcpXroDTDmJ",
            "GET /lake/k?uploadId=u&part-number-marker=-1",
            "GET /lake/k?uploadId=u&part-number-marker=x",
            "GET /lake/k?partNumber=0",
            "PUT /lake/k?partNumber=10001&uploadId=u",
            "PUT /lake/k?partNumber=1",
            "PUT /lake/k?uploadId=u",
            "POST /lake/k",
            "PATCH /lake/k",
            "GET /ab/k",
            "PUT /-lake",
        ]),
        &expect![[r#"
            GET /lake?max-keys=-1 => InvalidArgument: Argument -1 must be an integer between 0 and 2147483647
            GET /lake?max-keys=a => InvalidArgument: Provided a not an integer or within integer range
            GET /lake?max-keys=2147483648 => InvalidArgument: Provided 2147483648 not an integer or within integer range
            GET /lake?list-type=1 => InvalidArgument: Invalid List Type specified in Query
            GET /lake?encoding-type=base64 => InvalidArgument: Invalid Encoding Method specified in Request
            GET /?max-buckets=0 => InvalidArgument: Argument max-buckets must be an integer between 1 and 10000.
            GET /?max-buckets=10001 => InvalidArgument: Argument max-buckets must be an integer between 1 and 10000.
            GET /lake?prefix=%FF => InvalidURI: The specified URI couldn't be parsed.
            GET /lake/k?uploads => InvalidRequest: Key is not expected for the GET method ?uploads subresource
            GET /lake/k?versions => InvalidRequest: There is no such thing as the ?versions sub-resource for a key
            GET /lake/k?versionId= => InvalidArgument: Version id cannot be the empty string
            GET /lake/k?versionId=not_one => InvalidArgument: Invalid version id specified
            GET /lake/k?versionId=3HL4kqtJlcpXroDTDmJ => NoSuchVersion: The specified version does not exist.
            GET /lake/k?uploadId=u&part-number-marker=-1 => InvalidArgument: Argument -1 must be an integer between 0 and 2147483647
            GET /lake/k?uploadId=u&part-number-marker=x => InvalidArgument: Provided x not an integer or within integer range
            GET /lake/k?partNumber=0 => InvalidArgument: Part number must be an integer between 1 and 10000, inclusive.
            PUT /lake/k?partNumber=10001&uploadId=u => InvalidArgument: Part number must be an integer between 1 and 10000, inclusive.
            PUT /lake/k?partNumber=1 => InvalidArgument: This operation does not accept partNumber without uploadId
            PUT /lake/k?uploadId=u => MethodNotAllowed: The specified method is not allowed against this resource.
            POST /lake/k => MethodNotAllowed: The specified method is not allowed against this resource.
            PATCH /lake/k => MethodNotAllowed: The specified method is not allowed against this resource.
            GET /ab/k => InvalidBucketName: The specified bucket is not valid.
            PUT /-lake => InvalidBucketName: The specified bucket is not valid.
        "#]],
    );
}

proptest::proptest! {
    /// Whatever is asked, there is an operation or an error.
    #[test]
    fn nothing_a_client_writes_breaks_the_parser(
        path in "/[a-z0-9.%/+-]{0,20}\\PC{0,20}", query in "(\\PC{0,8}|uploads|uploadId|partNumber|versionId|[&=%0-9-]){0,12}", host in "\\PC{0,20}",
    ) {
        for method in [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::HEAD] {
            let request = Request { method: &method, host: Some(&host), path: &path, query: &query, copies: false };
            if let Err(error) = Operation::parse(&request, Some(BASE_HOST)) {
                proptest::prop_assert!(error.describe().status.is_client_error());
            }
        }
    }

    #[test]
    fn nothing_a_client_sends_breaks_the_reader_of_documents(document in "(<[a-c/!?]{0,3}>|&[a-z#0-9]{0,4};|\\PC{0,3}|<!\\[CDATA\\[|\\]\\]>){0,20}") {
        let _ = crate::s3::xml::parse(document.as_bytes(), "a");
    }
}
