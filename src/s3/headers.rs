//! What clients keep beside an object, read from request headers and written back to answers.

use super::{
    checksum, conditions,
    error::{Error, Result},
    operation::Operation,
    query::Query,
};
use crate::store::{Checksum, ObjectHeaders, ObjectInfo};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// User metadata of one object: names without their prefix, and values. Bytes.
pub const METADATA_BYTES_MAX: usize = 2048;

/// Where a website redirects to. Bytes.
const REDIRECT_LOCATION_BYTES_MAX: usize = 2048;

const REDIRECT_LOCATION: HeaderName = HeaderName::from_static("x-amz-website-redirect-location");
const METADATA_PREFIX: &str = "x-amz-meta-";
const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";
const STORAGE_CLASS: &str = "STANDARD";
/// Classes whose objects can be read at once; all are kept alike and shown as `STANDARD`.
const STORAGE_CLASSES: [&str; 6] =
    ["STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"];
/// Canned lists that say what holds anyhow.
const ACLS_HARMLESS: [&str; 3] = ["private", "bucket-owner-read", "bucket-owner-full-control"];
const ACLS_KNOWN: [&str; 5] =
    ["public-read", "public-read-write", "authenticated-read", "aws-exec-read", "log-delivery-write"];

/// Headers of writes that ask for what this server does not do. Empty values ask for nothing.
const NOT_IMPLEMENTED: [&str; 10] = [
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-context",
    "x-amz-server-side-encryption-bucket-key-enabled",
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
    "x-amz-copy-source-server-side-encryption-customer-algorithm",
    "x-amz-tagging",
    "x-amz-write-offset-bytes",
];

/// Query parameters that replace a header of the answer.
const OVERRIDES: [(&str, HeaderName); 6] = [
    ("response-cache-control", header::CACHE_CONTROL),
    ("response-content-disposition", header::CONTENT_DISPOSITION),
    ("response-content-encoding", header::CONTENT_ENCODING),
    ("response-content-language", header::CONTENT_LANGUAGE),
    ("response-content-type", header::CONTENT_TYPE),
    ("response-expires", header::EXPIRES),
];

/// The text of a header that may be there once.
///
/// # Errors
/// `Error::InvalidArgument` when it is not UTF-8.
pub fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>> {
    headers.get(name).map(|value| utf8(name, value)).transpose()
}

fn utf8<'a>(name: &'static str, value: &'a HeaderValue) -> Result<&'a str> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| Error::invalid_argument(name, "", "Header value is not valid UTF-8."))
}

/// The headers to keep with an object, from the request that makes it.
///
/// # Errors
/// `Error::MetadataTooLarge`, `Error::InvalidRedirectLocation`, or `Error::InvalidArgument` for a value that is not
/// UTF-8.
pub fn object_headers(headers: &HeaderMap) -> Result<ObjectHeaders> {
    let owned = |name| -> Result<Option<String>> { Ok(text(headers, name)?.map(str::to_owned)) };
    Ok(ObjectHeaders {
        content_type: owned("content-type")?.filter(|value| !value.is_empty()),
        content_encoding: text(headers, "content-encoding")?.and_then(stored_encoding),
        content_disposition: owned("content-disposition")?,
        content_language: owned("content-language")?,
        cache_control: owned("cache-control")?,
        expires: owned("expires")?,
        website_redirect_location: redirect_location(headers)?,
        user_metadata: user_metadata(headers)?,
    })
}

/// Where a website would send readers of the object: a key of the bucket, or a URL.
///
/// # Errors
/// `Error::InvalidRedirectLocation`.
fn redirect_location(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(location) = text(headers, "x-amz-website-redirect-location")?.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let is_known = ["/", "http://", "https://"].into_iter().any(|start| location.starts_with(start));
    if !is_known || location.len() > REDIRECT_LOCATION_BYTES_MAX {
        return Err(Error::InvalidRedirectLocation);
    }
    Ok(Some(location.to_owned()))
}

/// The encoding without the framing that is gone once the body is read.
fn stored_encoding(value: &str) -> Option<String> {
    let kept = value.split(',').map(str::trim).filter(|token| !token.is_empty());
    let kept: Vec<&str> = kept.filter(|token| !token.eq_ignore_ascii_case("aws-chunked")).collect();
    if kept.is_empty() { None } else { Some(kept.join(",")) }
}

fn user_metadata(headers: &HeaderMap) -> Result<Vec<(String, String)>> {
    let mut metadata: Vec<(String, String)> = Vec::new();
    for name in headers.keys() {
        let Some(short) = name.as_str().strip_prefix(METADATA_PREFIX) else { continue };
        let values = headers.get_all(name).iter().map(|value| utf8("x-amz-meta-", value));
        let values: Vec<&str> = values.collect::<Result<_>>()?;
        metadata.push((short.to_owned(), values.join(",")));
    }
    let size = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > METADATA_BYTES_MAX { Err(Error::MetadataTooLarge { size }) } else { Ok(metadata) }
}

/// Headers of a key that the client keeps, with which its object would be encrypted.
const CUSTOMER_KEY: [&str; 3] = [
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
];

fn customer_key(headers: &HeaderMap) -> Option<&'static str> {
    CUSTOMER_KEY.into_iter().find(|name| headers.get(*name).is_some_and(|value| !value.is_empty()))
}

/// Refuses a part that is to be encrypted.
///
/// # Errors
/// `Error::HeaderNotImplemented`.
pub fn check_part(headers: &HeaderMap) -> Result<()> {
    customer_key(headers).map_or(Ok(()), |header| Err(Error::HeaderNotImplemented { header }))
}

/// Refuses reads with a client's key: no object is encrypted with one.
///
/// # Errors
/// `Error::InvalidRequest`.
pub fn check_read(headers: &HeaderMap) -> Result<()> {
    match customer_key(headers) {
        None => Ok(()),
        Some(_) => Err(Error::invalid_request("The encryption parameters are not applicable to this object.")),
    }
}

/// Refuses writes that ask for what is not done here, rather than seem to do it.
///
/// # Errors
/// `Error::HeaderNotImplemented`, `Error::AccessControlListNotSupported`, `Error::InvalidStorageClass`, or
/// `Error::InvalidRequest` for a lock no bucket has.
pub fn check_write(headers: &HeaderMap) -> Result<()> {
    if let Some(header) = NOT_IMPLEMENTED.into_iter().find(|name| headers.get(*name).is_some_and(|v| !v.is_empty())) {
        return Err(Error::HeaderNotImplemented { header });
    }
    check_acl(headers)?;
    if headers.keys().any(|name| name.as_str().starts_with("x-amz-object-lock-")) {
        return Err(Error::invalid_request("Bucket is missing ObjectLockConfiguration"));
    }
    match text(headers, "x-amz-storage-class")? {
        Some(class) if !STORAGE_CLASSES.contains(&class) => Err(Error::InvalidStorageClass),
        _ => Ok(()),
    }
}

/// Access control lists are not kept: only those that grant nothing new are taken.
///
/// # Errors
/// `Error::AccessControlListNotSupported`, `Error::InvalidArgument`.
pub fn check_acl(headers: &HeaderMap) -> Result<()> {
    if headers.keys().any(|name| name.as_str().starts_with("x-amz-grant-")) {
        return Err(Error::AccessControlListNotSupported);
    }
    match text(headers, "x-amz-acl")? {
        None | Some("") => Ok(()),
        Some(acl) if ACLS_HARMLESS.contains(&acl) => Ok(()),
        Some(acl) if ACLS_KNOWN.contains(&acl) => Err(Error::AccessControlListNotSupported),
        Some(acl) => Err(Error::invalid_argument("x-amz-acl", acl, "")),
    }
}

/// Whether the answer to a read shall show the object's checksum.
pub fn shows_checksum(headers: &HeaderMap) -> bool {
    headers.get("x-amz-checksum-mode").is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"ENABLED"))
}

/// Adds what a reader of `object` gets beside its bytes.
pub fn write_object(answer: &mut HeaderMap, object: &ObjectInfo) {
    write_validators(answer, object);
    put(answer, header::ACCEPT_RANGES, "bytes");
    let kept = &object.headers;
    put(answer, header::CONTENT_TYPE, kept.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE));
    for (name, value) in [
        (header::CONTENT_ENCODING, &kept.content_encoding),
        (header::CONTENT_DISPOSITION, &kept.content_disposition),
        (header::CONTENT_LANGUAGE, &kept.content_language),
        (header::CACHE_CONTROL, &kept.cache_control),
        (header::EXPIRES, &kept.expires),
        (REDIRECT_LOCATION, &kept.website_redirect_location),
    ] {
        if let Some(value) = value {
            put(answer, name, value);
        }
    }
    put(answer, HeaderName::from_static("x-amz-storage-class"), STORAGE_CLASS);
    for (name, value) in &kept.user_metadata {
        if let Ok(name) = HeaderName::from_bytes(format!("{METADATA_PREFIX}{name}").as_bytes()) {
            put(answer, name, value);
        }
    }
}

/// Adds `ETag` and `Last-Modified`, which answers without a body carry too.
pub fn write_validators(answer: &mut HeaderMap, object: &ObjectInfo) {
    put(answer, header::ETAG, &quoted(&object.etag));
    put(answer, header::LAST_MODIFIED, &conditions::http_date(object.last_modified_ms));
}

pub fn write_checksum(answer: &mut HeaderMap, checksum: &Checksum) {
    put(answer, checksum::header(checksum.algorithm), &checksum.value);
    put(answer, HeaderName::from_static("x-amz-checksum-type"), checksum::type_name(checksum.kind));
}

/// Whether the query asks for other headers than the object has.
pub fn has_overrides(query: &Query) -> bool {
    OVERRIDES.iter().any(|(parameter, _)| query.has(parameter))
}

/// Replaces headers of the answer as the query asks.
///
/// # Errors
/// `Error::InvalidArgument` for a value that cannot be a header's.
pub fn write_overrides(answer: &mut HeaderMap, query: &Query) -> Result<()> {
    for (parameter, name) in OVERRIDES {
        let Some(value) = query.text(parameter).filter(|value| !value.is_empty()) else { continue };
        let parsed = HeaderValue::from_bytes(value.as_bytes());
        let value = parsed.map_err(|_| Error::invalid_argument(parameter, "", "Header value is not valid."))?;
        answer.insert(name, value);
    }
    Ok(())
}

pub fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

/// Sets a header; a value that cannot be one (it came from a client once) is left out.
pub fn put(answer: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        answer.insert(name, value);
    }
}

/// Whether `operation` may have an `aws-chunked` body.
pub fn takes_chunks(operation: &Operation) -> bool {
    matches!(operation, Operation::PutObject { .. } | Operation::UploadPart(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value).expect("a valid header"));
        }
        headers
    }

    #[test]
    fn only_the_framing_leaves_the_content_encoding() {
        for (sent, kept) in [
            ("aws-chunked", None),
            ("aws-chunked,gzip", Some("gzip")),
            ("gzip, aws-chunked", Some("gzip")),
            ("gzip,AWS-Chunked,br", Some("gzip,br")),
            ("gzip", Some("gzip")),
            ("", None),
        ] {
            let object = object_headers(&headers(&[("content-encoding", sent.as_bytes())])).expect("valid");
            assert_eq!(object.content_encoding.as_deref(), kept, "{sent}");
        }
    }

    #[test]
    fn metadata_is_joined_kept_byte_for_byte_and_bounded() {
        let sent = [("x-amz-meta-a", &b"1"[..]), ("x-amz-meta-b", "é".as_bytes()), ("x-amz-meta-a", b"2")];
        let object = object_headers(&headers(&sent)).expect("valid");
        assert_eq!(object.user_metadata, [("a".into(), "1,2".into()), ("b".into(), "é".into())]);
        let mut answer = HeaderMap::new();
        put(&mut answer, HeaderName::from_static("x-amz-meta-b"), "é");
        assert_eq!(answer["x-amz-meta-b"].as_bytes(), "é".as_bytes());

        let most = vec![b'v'; METADATA_BYTES_MAX - 3];
        assert!(object_headers(&headers(&[("x-amz-meta-abc", &most)])).is_ok());
        let more = vec![b'v'; METADATA_BYTES_MAX - 2];
        let refused = object_headers(&headers(&[("x-amz-meta-abc", &more)]));
        assert!(matches!(refused, Err(Error::MetadataTooLarge { size: 2049 })));
        assert!(matches!(object_headers(&headers(&[("x-amz-meta-a", b"\xe9")])), Err(Error::InvalidArgument { .. })));
    }

    #[test]
    fn what_is_not_done_is_refused() {
        let check = |name, value: &str| check_write(&headers(&[(name, value.as_bytes())]));
        assert!(check("x-amz-acl", "private").is_ok());
        assert!(check("x-amz-acl", "bucket-owner-full-control").is_ok());
        assert!(check("x-amz-storage-class", "STANDARD_IA").is_ok());
        assert!(matches!(check("x-amz-acl", "public-read"), Err(Error::AccessControlListNotSupported)));
        assert!(matches!(check("x-amz-acl", "rubbish"), Err(Error::InvalidArgument { .. })));
        assert!(matches!(check("x-amz-grant-read", "id=1"), Err(Error::AccessControlListNotSupported)));
        assert!(matches!(check("x-amz-storage-class", "GLACIER"), Err(Error::InvalidStorageClass)));
        assert!(matches!(check("x-amz-server-side-encryption", "AES256"), Err(Error::HeaderNotImplemented { .. })));
        assert!(matches!(check("x-amz-tagging", "a=b"), Err(Error::HeaderNotImplemented { .. })));
        for kms in ["aws:kms", "aws:kms:dsse"] {
            assert!(matches!(check("x-amz-server-side-encryption", kms), Err(Error::HeaderNotImplemented { .. })));
        }
        for name in CUSTOMER_KEY {
            let sent = headers(&[(name, b"AES256")]);
            assert!(matches!(check_write(&sent), Err(Error::HeaderNotImplemented { .. })), "{name}");
            assert!(matches!(check_part(&sent), Err(Error::HeaderNotImplemented { .. })), "{name}");
            assert!(matches!(check_read(&sent), Err(Error::InvalidRequest(_))), "{name}");
        }
        assert!(matches!(check("x-amz-object-lock-mode", "GOVERNANCE"), Err(Error::InvalidRequest(_))));
    }
}
