//! Which S3 operation a request asks for: a pure function of method, host, raw path, raw query and one header.
//!
//! Paths are taken as sent: `//`, `..` and a trailing slash belong to the key, and percent-encoding is undone once.
//! Sub-resources in the query decide the operation. What S3 knows and this server does not is an operation too
//! ([`Operation::NotImplemented`]), so that it is never mistaken for another one.

use super::{
    config::ConfigCall,
    error::{Error, Result},
    query::Query,
};
use crate::store::{BucketName, ObjectKey};
use http::Method;

/// Longest key. Bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 1024;
/// Parts of an upload are numbered from 1 to this.
pub const PART_NUMBER_MAX: u32 = 10_000;
/// Most entries of one page of any listing.
pub const PAGE_MAX: usize = 1000;

/// The parts of a request that decide its operation.
pub struct Request<'a> {
    pub method: &'a Method,
    /// `Host` or `:authority`, with or without port.
    pub host: Option<&'a str>,
    /// As sent, starting with a slash.
    pub path: &'a str,
    /// As sent, without the question mark.
    pub query: &'a str,
    /// Whether there is an `x-amz-copy-source` header.
    pub copies: bool,
}

impl Request<'_> {
    /// The bucket that is named, where the request names one.
    pub fn bucket(&self, base_host: Option<&str>) -> Option<BucketName> {
        target(self, base_host).ok()?.0
    }
}

/// An object named by a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub bucket: BucketName,
    pub key: ObjectKey,
}

/// A part of a multipart upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub object: Object,
    pub upload_id: String,
    pub number: u32,
}

/// What all listings of a bucket share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub prefix: String,
    /// An empty delimiter groups nothing.
    pub delimiter: Option<String>,
    /// As asked for; the page is never larger than [`PAGE_MAX`].
    pub limit: usize,
    /// Whether names are answered percent-encoded.
    pub url_encoded: bool,
}

/// Everything a request can ask for, with the parameters of its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A cross-origin preflight: answered without authentication.
    Preflight {
        bucket: Option<BucketName>,
    },
    /// A browser's form: who sends it, and its key, are in its body.
    PostObject {
        bucket: BucketName,
    },
    /// A call of the Security Token Service, named in its body.
    SecurityTokens,
    /// What a bucket is configured with.
    Configure {
        bucket: BucketName,
        call: ConfigCall,
    },
    ListBuckets {
        prefix: String,
        after: Option<String>,
        limit: Option<usize>,
    },
    CreateBucket {
        bucket: BucketName,
    },
    HeadBucket {
        bucket: BucketName,
    },
    DeleteBucket {
        bucket: BucketName,
    },
    GetBucketLocation {
        bucket: BucketName,
    },
    GetBucketVersioning {
        bucket: BucketName,
    },
    ListObjects {
        bucket: BucketName,
        listing: Listing,
        marker: Option<String>,
    },
    ListObjectsV2 {
        bucket: BucketName,
        listing: Listing,
        start_after: Option<String>,
        continuation_token: Option<String>,
        fetch_owner: bool,
    },
    ListObjectVersions {
        bucket: BucketName,
        listing: Listing,
        key_marker: Option<String>,
    },
    ListMultipartUploads {
        bucket: BucketName,
        listing: Listing,
        key_marker: Option<String>,
        upload_id_marker: Option<String>,
    },
    DeleteObjects {
        bucket: BucketName,
    },
    GetObject {
        object: Object,
        part: Option<u32>,
    },
    HeadObject {
        object: Object,
        part: Option<u32>,
    },
    GetObjectAttributes {
        object: Object,
    },
    PutObject {
        object: Object,
    },
    CopyObject {
        object: Object,
    },
    DeleteObject {
        object: Object,
    },
    CreateMultipartUpload {
        object: Object,
    },
    UploadPart(Part),
    UploadPartCopy(Part),
    CompleteMultipartUpload {
        object: Object,
        upload_id: String,
    },
    AbortMultipartUpload {
        object: Object,
        upload_id: String,
    },
    ListParts {
        object: Object,
        upload_id: String,
        after: u32,
        limit: usize,
        url_encoded: bool,
    },
    /// An operation of S3 that this server does not have. Holds its name.
    NotImplemented(&'static str),
}

/// Sub-resources of a bucket that are answered with `NotImplemented`, and the noun of their operations' names.
const BUCKET_SUBRESOURCES: &[(&str, &str)] = &[
    ("abac", "BucketAbac"),
    ("accelerate", "BucketAccelerateConfiguration"),
    ("acl", "BucketAcl"),
    ("analytics", "BucketAnalyticsConfiguration"),
    ("cors", "BucketCors"),
    ("encryption", "BucketEncryption"),
    ("intelligent-tiering", "BucketIntelligentTieringConfiguration"),
    ("inventory", "BucketInventoryConfiguration"),
    ("lifecycle", "BucketLifecycleConfiguration"),
    ("logging", "BucketLogging"),
    ("metadataConfiguration", "BucketMetadataConfiguration"),
    ("metadataTable", "BucketMetadataTableConfiguration"),
    ("metrics", "BucketMetricsConfiguration"),
    ("notification", "BucketNotificationConfiguration"),
    ("object-lock", "ObjectLockConfiguration"),
    ("ownershipControls", "BucketOwnershipControls"),
    ("policy", "BucketPolicy"),
    ("policyStatus", "BucketPolicyStatus"),
    ("publicAccessBlock", "PublicAccessBlock"),
    ("replication", "BucketReplication"),
    ("requestPayment", "BucketRequestPayment"),
    ("session", "Session"),
    ("tagging", "BucketTagging"),
    ("website", "BucketWebsite"),
];

/// The same for objects.
const OBJECT_SUBRESOURCES: &[(&str, &str)] = &[
    ("acl", "ObjectAcl"),
    ("encryption", "ObjectEncryption"),
    ("legal-hold", "ObjectLegalHold"),
    ("renameObject", "RenameObject"),
    ("restore", "RestoreObject"),
    ("retention", "ObjectRetention"),
    ("select", "SelectObjectContent"),
    ("tagging", "ObjectTagging"),
    ("torrent", "ObjectTorrent"),
];

impl Operation {
    /// Reads the operation off a request. `base_host` is the name whose subdomains are buckets, if there is one.
    ///
    /// # Errors
    /// The request names no operation of S3, or names one with a bucket, key or parameter that is not valid.
    pub fn parse(request: &Request<'_>, base_host: Option<&str>) -> Result<Operation> {
        let query = Query::parse(request.query)?;
        let (bucket, key) = target(request, base_host)?;
        if request.method == Method::OPTIONS {
            return Ok(Operation::Preflight { bucket });
        }
        match (bucket, key) {
            (None, _) => service_operation(request.method, &query),
            (Some(bucket), None) => bucket_operation(request.method, bucket, &query),
            (Some(bucket), Some(key)) => object_operation(request, Object { bucket, key }, &query),
        }
    }

    /// The operation's name in the S3 API reference.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Preflight { .. } => "Preflight",
            Operation::PostObject { .. } => "PostObject",
            Operation::SecurityTokens => "SecurityTokens",
            Operation::Configure { call, .. } => call.name(),
            Operation::ListBuckets { .. } => "ListBuckets",
            Operation::CreateBucket { .. } => "CreateBucket",
            Operation::HeadBucket { .. } => "HeadBucket",
            Operation::DeleteBucket { .. } => "DeleteBucket",
            Operation::GetBucketLocation { .. } => "GetBucketLocation",
            Operation::GetBucketVersioning { .. } => "GetBucketVersioning",
            Operation::ListObjects { .. } => "ListObjects",
            Operation::ListObjectsV2 { .. } => "ListObjectsV2",
            Operation::ListObjectVersions { .. } => "ListObjectVersions",
            Operation::ListMultipartUploads { .. } => "ListMultipartUploads",
            Operation::DeleteObjects { .. } => "DeleteObjects",
            Operation::GetObject { .. } => "GetObject",
            Operation::HeadObject { .. } => "HeadObject",
            Operation::GetObjectAttributes { .. } => "GetObjectAttributes",
            Operation::PutObject { .. } => "PutObject",
            Operation::CopyObject { .. } => "CopyObject",
            Operation::DeleteObject { .. } => "DeleteObject",
            Operation::CreateMultipartUpload { .. } => "CreateMultipartUpload",
            Operation::UploadPart(_) => "UploadPart",
            Operation::UploadPartCopy(_) => "UploadPartCopy",
            Operation::CompleteMultipartUpload { .. } => "CompleteMultipartUpload",
            Operation::AbortMultipartUpload { .. } => "AbortMultipartUpload",
            Operation::ListParts { .. } => "ListParts",
            Operation::NotImplemented(name) => name,
        }
    }
}

/// Bucket and key that a request names, by path or by virtual host.
fn target(request: &Request<'_>, base_host: Option<&str>) -> Result<(Option<BucketName>, Option<ObjectKey>)> {
    let path = request.path.strip_prefix('/').ok_or(Error::InvalidUri)?;
    let (bucket, key) = match virtual_bucket(request.host, base_host) {
        Some(bucket) => (bucket.to_ascii_lowercase(), path),
        None => match path.split_once('/') {
            Some((bucket, key)) => (decode(bucket)?, key),
            None => (decode(path)?, ""),
        },
    };
    if bucket.is_empty() {
        return if key.is_empty() { Ok((None, None)) } else { Err(Error::InvalidBucketName(bucket)) };
    }
    let Some(bucket_name) = BucketName::parse(&bucket) else { return Err(Error::InvalidBucketName(bucket)) };
    let key = match decode(key)? {
        key if key.is_empty() => None,
        key => Some(object_key(&key)?),
    };
    Ok((Some(bucket_name), key))
}

/// A key that was named by a client.
///
/// # Errors
/// `Error::KeyTooLong`; `Error::InvalidUri` for one that is empty or otherwise no key.
pub fn object_key(key: &str) -> Result<ObjectKey> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { size: key.len() });
    }
    ObjectKey::parse(key).ok_or(Error::InvalidUri)
}

/// The bucket in front of `base_host`, compared without case and port.
fn virtual_bucket<'a>(host: Option<&'a str>, base_host: Option<&str>) -> Option<&'a str> {
    let (host, base) = (host?, base_host?);
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let cut = name.len().checked_sub(base.len())?;
    let (front, back) = (name.get(..cut)?, name.get(cut..)?);
    if !back.eq_ignore_ascii_case(base) {
        return None;
    }
    front.strip_suffix('.').filter(|bucket| !bucket.is_empty())
}

fn decode(raw: &str) -> Result<String> {
    super::query::percent_decode(raw).ok_or(Error::InvalidUri)
}

fn service_operation(method: &Method, query: &Query) -> Result<Operation> {
    match *method {
        Method::GET => Ok(Operation::ListBuckets {
            prefix: query.text("prefix").unwrap_or_default(),
            after: query.text("continuation-token").filter(|token| !token.is_empty()),
            limit: max_buckets(query)?,
        }),
        Method::POST => Ok(Operation::SecurityTokens),
        _ => Err(not_allowed(method, "SERVICE", "GET, POST")),
    }
}

fn bucket_operation(method: &Method, bucket: BucketName, query: &Query) -> Result<Operation> {
    if let Some(call) = ConfigCall::of(method, query) {
        return Ok(Operation::Configure { bucket, call });
    }
    let known = |method: &Method| {
        let found = BUCKET_SUBRESOURCES.iter().find(|(name, _)| query.has(name));
        found.map(|(_, noun)| Operation::NotImplemented(not_implemented_name(method, noun)))
    };
    match *method {
        Method::HEAD => Ok(Operation::HeadBucket { bucket }),
        Method::GET if query.has("location") => Ok(Operation::GetBucketLocation { bucket }),
        Method::GET if query.has("versioning") => Ok(Operation::GetBucketVersioning { bucket }),
        Method::GET if query.has("uploads") => Ok(Operation::ListMultipartUploads {
            bucket,
            listing: listing(query, "max-uploads")?,
            key_marker: marker(query, "key-marker"),
            upload_id_marker: marker(query, "upload-id-marker"),
        }),
        Method::GET if query.has("versions") => Ok(Operation::ListObjectVersions {
            bucket,
            listing: listing(query, "max-keys").map_err(versions_limit)?,
            key_marker: marker(query, "key-marker"),
        }),
        Method::GET => match known(method) {
            Some(operation) => Ok(operation),
            None => list_objects(bucket, query),
        },
        Method::PUT if query.has("versioning") => Ok(Operation::NotImplemented("PutBucketVersioning")),
        Method::PUT => Ok(known(method).unwrap_or(Operation::CreateBucket { bucket })),
        Method::DELETE => Ok(known(method).unwrap_or(Operation::DeleteBucket { bucket })),
        Method::POST if query.has("delete") => Ok(Operation::DeleteObjects { bucket }),
        Method::POST => Ok(known(method).unwrap_or(Operation::PostObject { bucket })),
        _ => Err(not_allowed(method, "BUCKET", "HEAD, GET, PUT, POST, DELETE")),
    }
}

fn list_objects(bucket: BucketName, query: &Query) -> Result<Operation> {
    let listing = listing(query, "max-keys")?;
    match query.text("list-type").as_deref() {
        None => Ok(Operation::ListObjects { bucket, listing, marker: marker(query, "marker") }),
        Some("2") => Ok(Operation::ListObjectsV2 {
            bucket,
            listing,
            start_after: marker(query, "start-after"),
            continuation_token: query.text("continuation-token"),
            fetch_owner: query.text("fetch-owner").is_some_and(|value| value.eq_ignore_ascii_case("true")),
        }),
        Some(other) => Err(Error::invalid_argument("list-type", other, "Invalid List Type specified in Query")),
    }
}

fn object_operation(request: &Request<'_>, object: Object, query: &Query) -> Result<Operation> {
    let method = request.method;
    if let Some((_, noun)) = OBJECT_SUBRESOURCES.iter().find(|(name, _)| query.has(name)) {
        return Ok(Operation::NotImplemented(not_implemented_name(method, noun)));
    }
    check_version(&object, query)?;
    let upload_id = query.text("uploadId");
    match (method, upload_id) {
        (&Method::HEAD, _) => Ok(Operation::HeadObject { part: optional_part(query)?, object }),
        (&Method::GET, _) if query.has("attributes") => Ok(Operation::GetObjectAttributes { object }),
        (&Method::GET, _) if query.has("uploads") => {
            Err(Error::invalid_request("Key is not expected for the GET method ?uploads subresource"))
        }
        (&Method::GET, _) if query.has("versions") => {
            Err(Error::invalid_request("There is no such thing as the ?versions sub-resource for a key"))
        }
        (&Method::GET, Some(upload_id)) => list_parts(object, upload_id, query),
        (&Method::GET, None) => Ok(Operation::GetObject { part: optional_part(query)?, object }),
        (&Method::PUT, upload_id) => put_operation(request, object, upload_id, query),
        (&Method::POST, Some(upload_id)) => Ok(Operation::CompleteMultipartUpload { object, upload_id }),
        (&Method::POST, None) if query.has("uploads") => Ok(Operation::CreateMultipartUpload { object }),
        (&Method::DELETE, Some(upload_id)) => Ok(Operation::AbortMultipartUpload { object, upload_id }),
        (&Method::DELETE, None) => Ok(Operation::DeleteObject { object }),
        _ => Err(not_allowed(method, "OBJECT", "HEAD, GET, PUT, DELETE")),
    }
}

fn put_operation(request: &Request<'_>, object: Object, upload_id: Option<String>, query: &Query) -> Result<Operation> {
    match (upload_id, query.text("partNumber")) {
        (Some(upload_id), Some(number)) => {
            let part = Part { object, upload_id, number: part_number(&number)? };
            Ok(if request.copies { Operation::UploadPartCopy(part) } else { Operation::UploadPart(part) })
        }
        (None, Some(_)) => Err(Error::invalid_argument(
            "partNumber",
            "partNumber",
            "This operation does not accept partNumber without uploadId",
        )),
        (Some(_), None) => Err(not_allowed(request.method, "UPLOAD", "DELETE, POST, GET")),
        (None, None) if request.copies => Ok(Operation::CopyObject { object }),
        (None, None) => Ok(Operation::PutObject { object }),
    }
}

fn list_parts(object: Object, upload_id: String, query: &Query) -> Result<Operation> {
    let after = match query.text("part-number-marker").filter(|marker| !marker.is_empty()) {
        Some(marker) => bounded(&marker, "part-number-marker")?,
        None => 0,
    };
    Ok(Operation::ListParts {
        object,
        upload_id,
        after: u32::try_from(after).unwrap_or(u32::MAX),
        limit: limit(query, "max-parts")?,
        url_encoded: url_encoded(query)?,
    })
}

/// Buckets have no versions: only the version every object has, `null`, can be named.
fn check_version(object: &Object, query: &Query) -> Result<()> {
    match query.text("versionId") {
        None => Ok(()),
        Some(version_id) if version_id == "null" => Ok(()),
        Some(version_id) if version_id.is_empty() => {
            Err(Error::invalid_argument("versionId", "", "Version id cannot be the empty string"))
        }
        Some(version_id) if version_id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err(Error::NoSuchVersion { key: object.key.as_str().to_owned(), version_id })
        }
        Some(version_id) => Err(Error::invalid_argument("versionId", version_id, "Invalid version id specified")),
    }
}

fn listing(query: &Query, limit_name: &'static str) -> Result<Listing> {
    Ok(Listing {
        prefix: query.text("prefix").unwrap_or_default(),
        delimiter: query.text("delimiter").filter(|delimiter| !delimiter.is_empty()),
        limit: limit(query, limit_name)?,
        url_encoded: url_encoded(query)?,
    })
}

fn url_encoded(query: &Query) -> Result<bool> {
    match query.text("encoding-type") {
        None => Ok(false),
        Some(kind) if kind.is_empty() => Ok(false),
        Some(kind) if kind.eq_ignore_ascii_case("url") => Ok(true),
        Some(kind) => {
            Err(Error::invalid_argument("encoding-type", kind, "Invalid Encoding Method specified in Request"))
        }
    }
}

/// A page's size: [`PAGE_MAX`] unless fewer are asked for.
fn limit(query: &Query, name: &'static str) -> Result<usize> {
    match query.text(name).filter(|value| !value.is_empty()) {
        None => Ok(PAGE_MAX),
        Some(value) => Ok(usize::try_from(bounded(&value, name)?).unwrap_or(PAGE_MAX).min(PAGE_MAX)),
    }
}

/// A number from 0 to 2^31 - 1.
///
/// # Errors
/// `Error::InvalidArgument` about `name`.
pub fn bounded(value: &str, name: &'static str) -> Result<i32> {
    match value.parse::<i32>() {
        Ok(number) if number >= 0 => Ok(number),
        Ok(_) => Err(Error::invalid_argument(
            name,
            value,
            format!("Argument {value} must be an integer between 0 and 2147483647"),
        )),
        Err(_) => Err(Error::invalid_argument(
            name,
            value,
            format!("Provided {value} not an integer or within integer range"),
        )),
    }
}

/// Of versions, S3 words a negative limit in its own way.
fn versions_limit(error: Error) -> Error {
    match error {
        Error::InvalidArgument { name: "max-keys", value, .. } if value.starts_with('-') => {
            Error::invalid_argument("maxKeys", value, "max-keys cannot be negative")
        }
        other => other,
    }
}

fn max_buckets(query: &Query) -> Result<Option<usize>> {
    let Some(value) = query.text("max-buckets").filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.parse::<usize>() {
        Ok(limit @ 1..=10_000) => Ok(Some(limit)),
        _ => Err(Error::invalid_argument(
            "max-buckets",
            value,
            "Argument max-buckets must be an integer between 1 and 10000.",
        )),
    }
}

fn marker(query: &Query, name: &str) -> Option<String> {
    query.text(name).filter(|marker| !marker.is_empty())
}

fn optional_part(query: &Query) -> Result<Option<u32>> {
    query.text("partNumber").map(|number| part_number(&number)).transpose()
}

fn part_number(value: &str) -> Result<u32> {
    match value.parse::<u32>() {
        Ok(number @ 1..=PART_NUMBER_MAX) => Ok(number),
        _ => Err(Error::invalid_argument(
            "partNumber",
            value,
            "Part number must be an integer between 1 and 10000, inclusive.",
        )),
    }
}

fn not_allowed(method: &Method, resource: &'static str, allowed: &'static str) -> Error {
    Error::MethodNotAllowed { method: method.as_str().to_owned(), resource, allowed }
}

/// Names such operations for logs: the noun alone says enough when the verb is unusual.
fn not_implemented_name(method: &Method, noun: &'static str) -> &'static str {
    macro_rules! named {
        ($($noun:literal)*) => {
            match (method.as_str(), noun) {
                $(
                    ("GET", $noun) => concat!("Get", $noun),
                    ("PUT", $noun) => concat!("Put", $noun),
                    ("DELETE", $noun) => concat!("Delete", $noun),
                )*
                _ => noun,
            }
        };
    }
    named!(
        "BucketAbac" "BucketAccelerateConfiguration" "BucketAcl" "BucketAnalyticsConfiguration" "BucketCors"
        "BucketEncryption" "BucketIntelligentTieringConfiguration" "BucketInventoryConfiguration"
        "BucketLifecycleConfiguration" "BucketLogging" "BucketMetricsConfiguration"
        "BucketNotificationConfiguration" "BucketOwnershipControls" "BucketPolicy" "BucketReplication"
        "BucketRequestPayment" "BucketTagging" "BucketWebsite" "ObjectAcl" "ObjectLegalHold"
        "ObjectLockConfiguration" "ObjectRetention" "ObjectTagging" "PublicAccessBlock"
    )
}
