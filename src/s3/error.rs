//! What can go wrong on the S3 side, and AWS's code, status and text for each.
//!
//! One exhaustive match, [`Error::describe`], says how each is answered; clients and conformance checks compare codes
//! and texts word for word. Nothing here shows the words of a database or a path of our disk.

use super::{body, sigv4, xml};
use crate::{auth, store};
use http::StatusCode;
use std::borrow::Cow;

/// A request that is not answered with success.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("access denied")]
    AccessDenied,
    /// A vended key would overwrite or delete a metadata file that a table stands on.
    #[error("a table stands on this metadata file")]
    MetadataInUse,
    #[error("access control lists are not kept")]
    AccessControlListNotSupported,
    #[error("signature refused: {0}")]
    Signature(sigv4::Error),
    #[error("body refused: {0}")]
    Body(body::Error),
    #[error("session token has expired")]
    ExpiredToken,
    #[error("access key is not known")]
    InvalidAccessKeyId(String),
    #[error("a digest of the body does not match")]
    BadDigest { algorithm: &'static str },
    #[error("Content-MD5 does not match the body")]
    BadContentMd5 { calculated: String, expected: String },
    #[error("a part's checksum is of another algorithm")]
    BadPartDigest { algorithm: &'static str, part: u32 },
    #[error("bucket already exists")]
    BucketAlreadyOwnedByYou(String),
    #[error("bucket is not empty")]
    BucketNotEmpty(String),
    #[error("bucket does not exist")]
    NoSuchBucket(String),
    #[error("bucket name is not valid")]
    InvalidBucketName(String),
    #[error("object does not exist")]
    NoSuchKey(String),
    #[error("version does not exist")]
    NoSuchVersion { key: String, version_id: String },
    #[error("multipart upload does not exist")]
    NoSuchUpload(String),
    #[error(transparent)]
    Config(super::config::ConfigError),
    #[error(transparent)]
    Post(super::post_policy::PostError),
    #[error("cross-origin request refused")]
    CorsNotEnabled,
    #[error("cross-origin preflight without an origin")]
    CorsOriginMissing,
    #[error("a part other than the last is too small")]
    EntityTooSmall,
    #[error("argument {name} is not valid")]
    InvalidArgument { name: &'static str, value: String, message: Cow<'static, str> },
    #[error("Content-MD5 is not an MD5")]
    InvalidDigest(String),
    #[error("location constraint is not this server's region")]
    InvalidLocationConstraint(String),
    #[error("a part is missing or has another etag")]
    InvalidPart(String),
    #[error("part number is not satisfiable")]
    InvalidPartNumber { requested: u32, actual: u32 },
    #[error("parts are not in ascending order")]
    InvalidPartOrder,
    #[error("range is not satisfiable")]
    InvalidRange { requested: String, size: u64 },
    #[error("request is not valid: {0}")]
    InvalidRequest(Cow<'static, str>),
    #[error("website redirect location is not valid")]
    InvalidRedirectLocation,
    #[error("session token is not valid")]
    InvalidToken,
    #[error("the object was replaced while it was looked at")]
    Replaced,
    #[error("storage class is not valid")]
    InvalidStorageClass,
    #[error("request target is not valid")]
    InvalidUri,
    #[error("object key is too long")]
    KeyTooLong { size: usize },
    #[error("document is not well-formed or not of the expected shape")]
    MalformedXml,
    #[error("document is larger than {0} bytes")]
    MaxMessageLengthExceeded(u64),
    #[error("user metadata is too large")]
    MetadataTooLarge { size: usize },
    #[error("method is not allowed")]
    MethodNotAllowed { method: String, resource: &'static str, allowed: &'static str },
    #[error("not implemented: {0}")]
    NotImplemented(&'static str),
    #[error("header {header} asks for what is not implemented")]
    HeaderNotImplemented { header: &'static str },
    #[error("object has not changed")]
    NotModified { etag: String, last_modified_ms: i64 },
    #[error("condition {0} does not hold")]
    PreconditionFailed(&'static str),
    #[error("the disk is full up to its reserve")]
    InsufficientStorage,
    #[error("the store failed")]
    Store(#[source] store::Error),
    #[error("credentials could not be checked")]
    Credentials(#[source] auth::Error),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How an error is answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: Cow<'static, str>,
    /// Elements beside code and message, in order.
    pub details: Vec<(&'static str, String)>,
}

impl Error {
    pub fn invalid_argument(
        name: &'static str,
        value: impl Into<String>,
        message: impl Into<Cow<'static, str>>,
    ) -> Error {
        Error::InvalidArgument { name, value: value.into(), message: message.into() }
    }

    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Error {
        Error::InvalidRequest(message.into())
    }

    /// Whether the server is to blame, so that the answer is logged as an error.
    pub fn is_fault(&self) -> bool {
        matches!(self, Error::Store(_) | Error::Credentials(_) | Error::InsufficientStorage)
    }

    /// Status, code, text and details of the answer.
    pub fn describe(&self) -> Answer {
        use StatusCode as S;
        let plain = |status, code, message: &'static str| answer(status, code, message, Vec::new());
        match self {
            Error::AccessDenied => plain(S::FORBIDDEN, "AccessDenied", "Access Denied."),
            Error::MetadataInUse => plain(
                S::FORBIDDEN,
                "AccessDenied",
                "A table stands on this metadata file: only its catalog changes it.",
            ),
            Error::AccessControlListNotSupported => {
                plain(S::BAD_REQUEST, "AccessControlListNotSupported", "The bucket does not allow ACLs.")
            }
            Error::Signature(error) => answer(error.status(), error.code(), error.to_string(), error.details()),
            Error::Body(error) => answer(error.status(), error.code(), error.to_string(), error.details()),
            Error::ExpiredToken => plain(S::BAD_REQUEST, "ExpiredToken", "The provided token has expired."),
            Error::InvalidAccessKeyId(id) => answer(
                S::FORBIDDEN,
                "InvalidAccessKeyId",
                "The AWS Access Key Id you provided does not exist in our records.",
                vec![("AWSAccessKeyId", id.clone())],
            ),
            Error::BadDigest { algorithm } => answer(
                S::BAD_REQUEST,
                "BadDigest",
                format!("The {algorithm} you specified did not match the calculated checksum."),
                Vec::new(),
            ),
            Error::BadContentMd5 { calculated, expected } => answer(
                S::BAD_REQUEST,
                "BadDigest",
                "The Content-MD5 you specified did not match what we received.",
                vec![("CalculatedDigest", calculated.clone()), ("ExpectedDigest", expected.clone())],
            ),
            Error::BadPartDigest { algorithm, part } => answer(
                S::BAD_REQUEST,
                "BadDigest",
                format!(
                    "The {} you specified for part {part} did not match what we received.",
                    algorithm.to_ascii_lowercase()
                ),
                Vec::new(),
            ),
            Error::BucketAlreadyOwnedByYou(bucket) => answer(
                S::CONFLICT,
                "BucketAlreadyOwnedByYou",
                "Your previous request to create the named bucket succeeded and you already own it.",
                vec![("BucketName", bucket.clone())],
            ),
            Error::BucketNotEmpty(bucket) => answer(
                S::CONFLICT,
                "BucketNotEmpty",
                "The bucket you tried to delete is not empty.",
                vec![("BucketName", bucket.clone())],
            ),
            Error::NoSuchBucket(bucket) => answer(
                S::NOT_FOUND,
                "NoSuchBucket",
                "The specified bucket does not exist.",
                vec![("BucketName", bucket.clone())],
            ),
            Error::InvalidBucketName(bucket) => answer(
                S::BAD_REQUEST,
                "InvalidBucketName",
                "The specified bucket is not valid.",
                vec![("BucketName", bucket.clone())],
            ),
            Error::NoSuchKey(key) => {
                answer(S::NOT_FOUND, "NoSuchKey", "The specified key does not exist.", vec![("Key", key.clone())])
            }
            Error::NoSuchVersion { key, version_id } => answer(
                S::NOT_FOUND,
                "NoSuchVersion",
                "The specified version does not exist.",
                vec![("Key", key.clone()), ("VersionId", version_id.clone())],
            ),
            Error::NoSuchUpload(upload_id) => answer(
                S::NOT_FOUND,
                "NoSuchUpload",
                "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have \
                 been aborted or completed.",
                vec![("UploadId", upload_id.clone())],
            ),
            Error::Config(error) => error.describe(),
            Error::Post(error) => error.describe(),
            Error::CorsNotEnabled => {
                plain(S::FORBIDDEN, "AccessForbidden", "CORSResponse: CORS is not enabled for this bucket.")
            }
            Error::CorsOriginMissing => {
                plain(S::BAD_REQUEST, "BadRequest", "Insufficient information. Origin request header needed.")
            }
            Error::EntityTooSmall => {
                plain(S::BAD_REQUEST, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
            }
            Error::InvalidArgument { name, value, message } => answer(
                S::BAD_REQUEST,
                "InvalidArgument",
                message.clone(),
                vec![("ArgumentName", (*name).to_owned()), ("ArgumentValue", value.clone())],
            ),
            Error::InvalidDigest(given) => answer(
                S::BAD_REQUEST,
                "InvalidDigest",
                "The Content-Md5 you specified is not valid.",
                vec![("Content-MD5", given.clone())],
            ),
            Error::InvalidLocationConstraint(given) => answer(
                S::BAD_REQUEST,
                "InvalidLocationConstraint",
                "The specified location-constraint is not valid",
                vec![("LocationConstraint", given.clone())],
            ),
            Error::InvalidPart(upload_id) => answer(
                S::BAD_REQUEST,
                "InvalidPart",
                "One or more of the specified parts could not be found.  The part may not have been uploaded, or the \
                 specified entity tag may not match the part's entity tag.",
                vec![("UploadId", upload_id.clone())],
            ),
            Error::InvalidPartNumber { requested, actual } => answer(
                S::RANGE_NOT_SATISFIABLE,
                "InvalidPartNumber",
                "The requested partnumber is not satisfiable.",
                vec![("ActualPartCount", actual.to_string()), ("PartNumberRequested", requested.to_string())],
            ),
            Error::InvalidPartOrder => plain(
                S::BAD_REQUEST,
                "InvalidPartOrder",
                "The list of parts was not in ascending order. Parts must be ordered by part number.",
            ),
            Error::InvalidRange { requested, size } => answer(
                S::RANGE_NOT_SATISFIABLE,
                "InvalidRange",
                "The requested range is not satisfiable",
                vec![("RangeRequested", requested.clone()), ("ActualObjectSize", size.to_string())],
            ),
            Error::InvalidRequest(message) => answer(S::BAD_REQUEST, "InvalidRequest", message.clone(), Vec::new()),
            Error::InvalidRedirectLocation => plain(
                S::BAD_REQUEST,
                "InvalidRedirectLocation",
                "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
            ),
            Error::InvalidToken => {
                plain(S::BAD_REQUEST, "InvalidToken", "The provided token is malformed or otherwise invalid.")
            }
            Error::Replaced => plain(S::SERVICE_UNAVAILABLE, "SlowDown", "Please reduce your request rate."),
            Error::InvalidStorageClass => {
                plain(S::BAD_REQUEST, "InvalidStorageClass", "The storage class you specified is not valid")
            }
            Error::InvalidUri => plain(S::BAD_REQUEST, "InvalidURI", "The specified URI couldn't be parsed."),
            Error::KeyTooLong { size } => answer(
                S::BAD_REQUEST,
                "KeyTooLongError",
                "Your key is too long.",
                vec![("Size", size.to_string()), ("MaxSizeAllowed", super::operation::KEY_BYTES_MAX.to_string())],
            ),
            Error::MalformedXml => plain(
                S::BAD_REQUEST,
                "MalformedXML",
                "The XML you provided was not well-formed or did not validate against our published schema.",
            ),
            Error::MaxMessageLengthExceeded(limit) => answer(
                S::BAD_REQUEST,
                "MaxMessageLengthExceeded",
                "Your request was too big.",
                vec![("MaxMessageLengthBytes", limit.to_string())],
            ),
            Error::MetadataTooLarge { size } => answer(
                S::BAD_REQUEST,
                "MetadataTooLarge",
                "Your metadata headers exceed the maximum allowed metadata size",
                vec![("Size", size.to_string()), ("MaxSizeAllowed", super::headers::METADATA_BYTES_MAX.to_string())],
            ),
            Error::MethodNotAllowed { method, resource, allowed: _ } => answer(
                S::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                "The specified method is not allowed against this resource.",
                vec![("Method", method.clone()), ("ResourceType", (*resource).to_owned())],
            ),
            Error::NotImplemented(_) => plain(
                S::NOT_IMPLEMENTED,
                "NotImplemented",
                "A header you provided implies functionality that is not implemented.",
            ),
            Error::HeaderNotImplemented { header } => answer(
                S::NOT_IMPLEMENTED,
                "NotImplemented",
                "A header you provided implies functionality that is not implemented.",
                vec![("Header", (*header).to_owned())],
            ),
            Error::NotModified { .. } => plain(S::NOT_MODIFIED, "NotModified", "Not Modified"),
            Error::PreconditionFailed(condition) => answer(
                S::PRECONDITION_FAILED,
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold.",
                vec![("Condition", (*condition).to_owned())],
            ),
            Error::InsufficientStorage => {
                plain(S::INSUFFICIENT_STORAGE, "InsufficientStorage", "No space left on device.")
            }
            Error::Store(_) | Error::Credentials(_) => {
                plain(S::INTERNAL_SERVER_ERROR, "InternalError", "We encountered an internal error, please try again.")
            }
        }
    }
}

impl Answer {
    /// The XML document of the answer. `resource` is the request's path as sent.
    pub fn document(&self, resource: &str, request_id: &str) -> String {
        xml::document("Error", None, |out| {
            out.text("Code", self.code);
            out.text("Message", &self.message);
            for (name, value) in &self.details {
                out.text(name, value);
            }
            out.text("Resource", resource);
            out.text("RequestId", request_id);
        })
    }
}

fn answer(
    status: StatusCode,
    code: &'static str,
    message: impl Into<Cow<'static, str>>,
    details: Vec<(&'static str, String)>,
) -> Answer {
    Answer { status, code, message: message.into(), details }
}

/// What the store's outcomes mean for a request on `bucket` and, where there is one, `key` and `upload_id`.
#[derive(Clone, Copy, Default)]
pub struct Subject<'a> {
    pub bucket: &'a str,
    pub key: &'a str,
    pub upload_id: &'a str,
    /// The header whose condition a failed precondition means.
    pub condition: &'static str,
}

impl Subject<'_> {
    pub fn error(&self, error: store::Error) -> Error {
        match error {
            store::Error::NoSuchBucket => Error::NoSuchBucket(self.bucket.to_owned()),
            store::Error::BucketExists => Error::BucketAlreadyOwnedByYou(self.bucket.to_owned()),
            store::Error::BucketNotEmpty => Error::BucketNotEmpty(self.bucket.to_owned()),
            store::Error::NoSuchKey => Error::NoSuchKey(self.key.to_owned()),
            store::Error::NoSuchUpload => Error::NoSuchUpload(self.upload_id.to_owned()),
            store::Error::PreconditionFailed => Error::PreconditionFailed(self.condition),
            store::Error::InvalidPart => Error::InvalidPart(self.upload_id.to_owned()),
            store::Error::InvalidPartOrder => Error::InvalidPartOrder,
            store::Error::EntityTooSmall => Error::EntityTooSmall,
            store::Error::BadDigest => Error::BadDigest { algorithm: "checksum" },
            store::Error::Full => Error::InsufficientStorage,
            fault @ (store::Error::Damaged(_)
            | store::Error::Io(_)
            | store::Error::Index(_)
            | store::Error::Folder(_)) => Error::Store(fault),
        }
    }
}
