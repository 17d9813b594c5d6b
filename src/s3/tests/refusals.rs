//! DeleteObjects, and every answer that is not a success.

use super::*;
use crate::{
    auth,
    s3::{
        body,
        config::{ConfigError, Unset},
        error::Error,
    },
    store,
};
use expect_test::expect;

async fn delete(world: &World, body: &str, headers: &[(&str, &str)]) -> Reply {
    let ask = Ask::post("/lake?delete").body(body.to_owned());
    world.send(headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value))).await
}

#[tokio::test]
async fn many_keys_are_deleted_with_one_document() {
    let world = World::new().await;
    for key in ["a%26%3Cb", "a%0Ab", "a+b", "f/", "f"] {
        world.put(key, "x").await;
    }
    let body = "<?xml version=\"1.0\"?>\r\n<s:Delete xmlns:s=\"http://s3.amazonaws.com/doc/2006-03-01/\">\r\n\
                <s:Object><s:Key>a&amp;&lt;b</s:Key></s:Object><s:Object><s:Key>a&#10;b</s:Key></s:Object>\r\n\
                <s:Object><s:Key>a+b</s:Key></s:Object><s:Object><s:Key>f/</s:Key></s:Object>\
                <s:Object><s:Key>f/</s:Key><s:VersionId>null</s:VersionId></s:Object>\
                <s:Object><s:Key>none</s:Key></s:Object></s:Delete>";
    let deleted = delete(&world, body, &[("content-md5", &md5_base64(body.as_bytes()))]).await;
    let deleted = deleted.document("DeleteResult");
    assert_eq!(texts(&deleted, "Deleted/Key"), ["a&<b", "a\nb", "a+b", "f/", "f/", "none"]);
    let left = world.send(Ask::get("/lake")).await.document("ListBucketResult");
    assert_eq!(texts(&left, "Contents/Key"), ["f"]);
}

#[tokio::test]
async fn the_document_needs_a_digest_and_all_given_count() {
    let world = World::new().await;
    world.put("k", "x").await;
    let body = "<Delete><Object><Key>k</Key></Object><Quiet>true</Quiet></Delete>";
    let md5 = md5_base64(body.as_bytes());
    let crc32 = {
        use base64::Engine;
        let crc32 = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, body.as_bytes());
        base64::prelude::BASE64_STANDARD.encode(u32::try_from(crc32).expect("32 bits").to_be_bytes())
    };
    let md5 = ("content-md5", md5.as_str());
    let (crc32, algorithm) = (("x-amz-checksum-crc32", crc32.as_str()), ("x-amz-sdk-checksum-algorithm", "CRC32"));
    for (headers, answer) in [
        (&[][..], "400 InvalidRequest: Missing required header for this request: Content-MD5 OR x-amz-checksum-*"),
        (
            &[("x-amz-checksum-crc32", "AAAAAA=="), algorithm],
            "400 BadDigest: The CRC32 you specified did not match the calculated checksum.",
        ),
        (
            &[crc32, ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")],
            "400 BadDigest: The Content-MD5 you specified did not match what we received.",
        ),
    ] {
        assert_eq!(delete(&world, body, headers).await.error(), answer);
        assert_eq!(world.get("k").await.status, StatusCode::OK);
    }
    for headers in [&[md5][..], &[crc32, algorithm], &[md5, crc32]] {
        world.put("k", "x").await;
        let quiet = delete(&world, body, headers).await.document("DeleteResult");
        assert!(quiet.children.is_empty(), "{quiet:?}");
        world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    }
}

#[tokio::test]
async fn a_thousand_keys_are_deleted_and_not_one_more() {
    let world = World::new().await;
    let body = |count: usize| {
        let objects: String = (0..count).map(|n| format!("<Object><Key>k{n}</Key></Object>")).collect();
        format!("<Delete>{objects}</Delete>")
    };
    for (count, status) in [(1000, StatusCode::OK), (1001, StatusCode::BAD_REQUEST), (0, StatusCode::BAD_REQUEST)] {
        let body = body(count);
        let reply = delete(&world, &body, &[("content-md5", &md5_base64(body.as_bytes()))]).await;
        assert_eq!(reply.status, status, "{count}");
        if status == StatusCode::BAD_REQUEST {
            reply.expect_error(status, "MalformedXML");
        }
    }
}

#[tokio::test]
async fn keys_that_cannot_be_deleted_are_listed_with_their_errors() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let long = "k".repeat(1025);
    let body = format!(
        "<Delete><Object><Key>{long}</Key></Object><Object><Key>k</Key><VersionId>x</VersionId></Object>\
         <Object><Key>k</Key><ETag>\"other\"</ETag></Object></Delete>"
    );
    let reply = delete(&world, &body, &[("content-md5", &md5_base64(body.as_bytes()))]).await;
    let codes = ["KeyTooLongError", "NoSuchVersion", "PreconditionFailed"];
    assert_eq!(texts(&reply.document("DeleteResult"), "Error/Code"), codes);
    assert_eq!(world.get("k").await.body, "hello");
    let body = "<Delete><Object><Key>k</Key><ETag>5d41402abc4b2a76b9719d911017c592</ETag></Object></Delete>";
    let reply = delete(&world, body, &[("content-md5", &md5_base64(body.as_bytes()))]).await;
    assert_eq!(texts(&reply.document("DeleteResult"), "Deleted/Key"), ["k"]);
}

#[tokio::test]
async fn documents_are_bounded() {
    let limits = Limits { document_bytes_max: 100, ..Limits::default() };
    let world = World::with(Authority::Full, limits).await;
    let body = "x".repeat(101);
    let reply = delete(&world, &body, &[("content-md5", &md5_base64(body.as_bytes()))]).await;
    reply.expect_error(StatusCode::BAD_REQUEST, "MaxMessageLengthExceeded");
}

#[tokio::test]
async fn what_s3_knows_and_we_do_not_is_not_implemented() {
    let world = World::new().await;
    for (ask, operation) in [
        (Ask::put("/lake?versioning"), "PutBucketVersioning"),
        (Ask::get("/lake/k?tagging"), "GetObjectTagging"),
        (Ask::put("/lake?encryption"), "PutBucketEncryption"),
        (Ask::get("/lake?inventory"), "GetBucketInventoryConfiguration"),
        (Ask::post("/lake/k?select&select-type=2"), "SelectObjectContent"),
    ] {
        let reply = world.send(ask).await.expect_error(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
        assert_eq!(reply.answered.operation, operation);
    }
    let reply = world.send(Ask::new(http::Method::PATCH, "/lake/k")).await;
    let reply = reply.expect_error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    assert_eq!(reply.header("allow"), "HEAD, GET, PUT, DELETE");
}

#[tokio::test]
async fn chunked_payloads_are_for_objects_only() {
    let world = World::new().await;
    let mut ask = Ask::get("/lake/k");
    ask.payload = Payload::ChunkedUnsignedTrailer;
    let reply = world.send(ask).await;
    assert_eq!(reply.error(), "400 InvalidRequest: The value of x-amz-content-sha256 header is invalid.");
}

#[tokio::test]
async fn a_preflight_is_refused_without_authentication() {
    let world = World::new().await;
    let ask = |origin: bool| {
        let request = Request::options("/lake/k").header("host", HOST);
        let request = request.header("access-control-request-method", "GET");
        let request = if origin { request.header("origin", "https://example.com") } else { request };
        world.send_raw(request.body(Bytes::new()).expect("a request"))
    };
    let refused = ask(true).await.expect_error(StatusCode::FORBIDDEN, "AccessForbidden");
    assert!(refused.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    ask(false).await.expect_error(StatusCode::BAD_REQUEST, "BadRequest");
}

/// Every error there is, once: status, code, text, details.
#[test]
fn errors_are_answered_in_aws_s_words() {
    let text = || "x".to_owned();
    let io = || store::Error::Io(std::io::Error::other("/secret/path"));
    let errors = vec![
        Error::AccessDenied,
        Error::AccessControlListNotSupported,
        Error::Body(body::Error::Timeout),
        Error::ExpiredToken,
        Error::InvalidAccessKeyId(text()),
        Error::BadDigest { algorithm: "CRC32" },
        Error::BadContentMd5 { calculated: "a".into(), expected: "b".into() },
        Error::BadPartDigest { algorithm: "SHA256", part: 2 },
        Error::BucketAlreadyOwnedByYou(text()),
        Error::BucketNotEmpty(text()),
        Error::NoSuchBucket(text()),
        Error::InvalidBucketName(text()),
        Error::NoSuchKey(text()),
        Error::NoSuchVersion { key: "k".into(), version_id: "v".into() },
        Error::NoSuchUpload(text()),
        Error::CorsNotEnabled,
        Error::CorsOriginMissing,
        Error::EntityTooSmall,
        Error::invalid_argument("name", "value", "what is wrong"),
        Error::InvalidDigest(text()),
        Error::InvalidLocationConstraint(text()),
        Error::InvalidPart(text()),
        Error::InvalidPartNumber { requested: 3, actual: 2 },
        Error::InvalidPartOrder,
        Error::InvalidRange { requested: "bytes=9-".into(), size: 3 },
        Error::invalid_request("what is wrong"),
        Error::InvalidRedirectLocation,
        Error::InvalidToken,
        Error::Replaced,
        Error::Config(ConfigError::Unset(Unset::Website)),
        Error::Config(ConfigError::CorsForbidden),
        Error::Config(ConfigError::CorsMethod(text())),
        Error::Config(ConfigError::CorsHeaders(text())),
        Error::Config(ConfigError::InvalidTag("what is wrong")),
        Error::Config(ConfigError::TooManyTags),
        Error::Config(ConfigError::AclWithOwnership),
        Error::InvalidStorageClass,
        Error::InvalidUri,
        Error::KeyTooLong { size: 1025 },
        Error::MalformedXml,
        Error::MaxMessageLengthExceeded(100),
        Error::MetadataTooLarge { size: 2049 },
        Error::MethodNotAllowed { method: "PATCH".into(), resource: "OBJECT", allowed: "GET" },
        Error::NotImplemented("PutBucketEncryption"),
        Error::HeaderNotImplemented { header: "x-amz-tagging" },
        Error::NotModified { etag: text(), last_modified_ms: 0 },
        Error::PreconditionFailed("If-Match"),
        Error::InsufficientStorage,
        Error::Store(io()),
        Error::Credentials(auth::Error::Database(sqlx_error())),
    ];
    let lines: Vec<String> = errors
        .iter()
        .map(|error| {
            let answer = error.describe();
            let details: Vec<String> = answer.details.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{} {}: {}{}\n", answer.status.as_u16(), answer.code, answer.message, details.concat())
        })
        .collect();
    expect![[r#"
        403 AccessDenied: Access Denied.
        400 AccessControlListNotSupported: The bucket does not allow ACLs.
        400 RequestTimeout: Your socket connection to the server was not read from or written to within the timeout period.
        400 ExpiredToken: The provided token has expired.
        403 InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records. AWSAccessKeyId=x
        400 BadDigest: The CRC32 you specified did not match the calculated checksum.
        400 BadDigest: The Content-MD5 you specified did not match what we received. CalculatedDigest=a ExpectedDigest=b
        400 BadDigest: The sha256 you specified for part 2 did not match what we received.
        409 BucketAlreadyOwnedByYou: Your previous request to create the named bucket succeeded and you already own it. BucketName=x
        409 BucketNotEmpty: The bucket you tried to delete is not empty. BucketName=x
        404 NoSuchBucket: The specified bucket does not exist. BucketName=x
        400 InvalidBucketName: The specified bucket is not valid. BucketName=x
        404 NoSuchKey: The specified key does not exist. Key=x
        404 NoSuchVersion: The specified version does not exist. Key=k VersionId=v
        404 NoSuchUpload: The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed. UploadId=x
        403 AccessForbidden: CORSResponse: CORS is not enabled for this bucket.
        400 BadRequest: Insufficient information. Origin request header needed.
        400 EntityTooSmall: Your proposed upload is smaller than the minimum allowed size
        400 InvalidArgument: what is wrong ArgumentName=name ArgumentValue=value
        400 InvalidDigest: The Content-Md5 you specified is not valid. Content-MD5=x
        400 InvalidLocationConstraint: The specified location-constraint is not valid LocationConstraint=x
        400 InvalidPart: One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag. UploadId=x
        416 InvalidPartNumber: The requested partnumber is not satisfiable. ActualPartCount=2 PartNumberRequested=3
        400 InvalidPartOrder: The list of parts was not in ascending order. Parts must be ordered by part number.
        416 InvalidRange: The requested range is not satisfiable RangeRequested=bytes=9- ActualObjectSize=3
        400 InvalidRequest: what is wrong
        400 InvalidRedirectLocation: The website redirect location must have a prefix of 'http://' or 'https://' or '/'.
        400 InvalidToken: The provided token is malformed or otherwise invalid.
        503 SlowDown: Please reduce your request rate.
        404 NoSuchWebsiteConfiguration: The specified bucket does not have a website configuration
        403 AccessForbidden: CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.
        400 BadRequest: Invalid Access-Control-Request-Method: x
        400 BadRequest: Access-Control-Request-Headers "x" contains invalid character.
        400 InvalidTag: what is wrong
        400 BadRequest: Bucket tag count cannot be greater than 50
        400 InvalidBucketAclWithObjectOwnership: Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting
        400 InvalidStorageClass: The storage class you specified is not valid
        400 InvalidURI: The specified URI couldn't be parsed.
        400 KeyTooLongError: Your key is too long. Size=1025 MaxSizeAllowed=1024
        400 MalformedXML: The XML you provided was not well-formed or did not validate against our published schema.
        400 MaxMessageLengthExceeded: Your request was too big. MaxMessageLengthBytes=100
        400 MetadataTooLarge: Your metadata headers exceed the maximum allowed metadata size Size=2049 MaxSizeAllowed=2048
        405 MethodNotAllowed: The specified method is not allowed against this resource. Method=PATCH ResourceType=OBJECT
        501 NotImplemented: A header you provided implies functionality that is not implemented.
        501 NotImplemented: A header you provided implies functionality that is not implemented. Header=x-amz-tagging
        304 NotModified: Not Modified
        412 PreconditionFailed: At least one of the pre-conditions you specified did not hold. Condition=If-Match
        507 InsufficientStorage: No space left on device.
        500 InternalError: We encountered an internal error, please try again.
        500 InternalError: We encountered an internal error, please try again.
    "#]].assert_eq(&lines.concat());
}

fn sqlx_error() -> sqlx::Error {
    sqlx::Error::PoolTimedOut
}
