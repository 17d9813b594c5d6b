//! Checksums that clients state and get back: `x-amz-checksum-*`, `Content-MD5`, and the algorithms behind them.

use super::{
    body::{Trailer, TrailerName},
    error::{Error, Result},
};
use crate::store::{Checksum, ChecksumAlgorithm, ChecksumType, Hasher};
use base64::{
    Engine, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use http::{HeaderMap, HeaderName};

/// What S3 computes when a client names no algorithm.
pub const DEFAULT_ALGORITHM: ChecksumAlgorithm = ChecksumAlgorithm::Crc64Nvme;

const PREFIX: &str = "x-amz-checksum-";
const SDK_ALGORITHM: &str = "x-amz-sdk-checksum-algorithm";
const UNSUPPORTED: &str = "Checksum algorithm provided is unsupported. Please try again with any of the valid types: \
                           [CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64]";

/// As S3 reads a `Content-MD5`: bits behind the digest do not matter.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Names, sizes and headers of one algorithm.
struct Facts {
    /// As in XML and in headers that name an algorithm.
    name: &'static str,
    /// The element that holds a value.
    element: &'static str,
    header: HeaderName,
    digest_bytes: usize,
}

fn facts(algorithm: ChecksumAlgorithm) -> Facts {
    let (name, element, header, digest_bytes) = match algorithm {
        ChecksumAlgorithm::Crc32 => ("CRC32", "ChecksumCRC32", "x-amz-checksum-crc32", 4),
        ChecksumAlgorithm::Crc32c => ("CRC32C", "ChecksumCRC32C", "x-amz-checksum-crc32c", 4),
        ChecksumAlgorithm::Crc64Nvme => ("CRC64NVME", "ChecksumCRC64NVME", "x-amz-checksum-crc64nvme", 8),
        ChecksumAlgorithm::Md5 => ("MD5", "ChecksumMD5", "x-amz-checksum-md5", 16),
        ChecksumAlgorithm::Sha1 => ("SHA1", "ChecksumSHA1", "x-amz-checksum-sha1", 20),
        ChecksumAlgorithm::Sha256 => ("SHA256", "ChecksumSHA256", "x-amz-checksum-sha256", 32),
        ChecksumAlgorithm::Sha512 => ("SHA512", "ChecksumSHA512", "x-amz-checksum-sha512", 64),
        ChecksumAlgorithm::Xxh3 => ("XXHASH3", "ChecksumXXHASH3", "x-amz-checksum-xxhash3", 8),
        ChecksumAlgorithm::Xxh64 => ("XXHASH64", "ChecksumXXHASH64", "x-amz-checksum-xxhash64", 8),
        ChecksumAlgorithm::Xxh128 => ("XXHASH128", "ChecksumXXHASH128", "x-amz-checksum-xxhash128", 16),
    };
    Facts { name, element, header: HeaderName::from_static(header), digest_bytes }
}

/// `CRC32C` and the like.
pub fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    facts(algorithm).name
}

/// `ChecksumCRC32C` and the like.
pub fn element(algorithm: ChecksumAlgorithm) -> &'static str {
    facts(algorithm).element
}

/// `x-amz-checksum-crc32c` and the like.
pub fn header(algorithm: ChecksumAlgorithm) -> HeaderName {
    facts(algorithm).header
}

/// `FULL_OBJECT` or `COMPOSITE`.
pub fn type_name(kind: ChecksumType) -> &'static str {
    match kind {
        ChecksumType::FullObject => "FULL_OBJECT",
        ChecksumType::Composite => "COMPOSITE",
    }
}

/// The algorithm and base64 value of each checksum element under `element`, in the order of [`ChecksumAlgorithm::ALL`].
pub fn elements(element: &super::xml::Element) -> Vec<(ChecksumAlgorithm, &str)> {
    let found = |algorithm| element.child_text(facts(algorithm).element).map(|value| (algorithm, value));
    ChecksumAlgorithm::ALL.into_iter().filter_map(found).collect()
}

/// Reads an algorithm's name, as headers spell it.
///
/// # Errors
/// `Error::InvalidRequest` for one S3 does not know.
pub fn parse_name(text: &str) -> Result<ChecksumAlgorithm> {
    let found = ChecksumAlgorithm::ALL.into_iter().find(|algorithm| facts(*algorithm).name.eq_ignore_ascii_case(text));
    found.ok_or(Error::InvalidRequest(UNSUPPORTED.into()))
}

/// Reads `x-amz-checksum-type`.
///
/// # Errors
/// `Error::InvalidRequest`.
pub fn parse_type(text: &str) -> Result<ChecksumType> {
    match text {
        _ if text.eq_ignore_ascii_case("FULL_OBJECT") => Ok(ChecksumType::FullObject),
        _ if text.eq_ignore_ascii_case("COMPOSITE") => Ok(ChecksumType::Composite),
        _ => Err(invalid_header("x-amz-checksum-type")),
    }
}

/// The checksum of a request's body that its client states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub algorithm: ChecksumAlgorithm,
    /// Base64 of the digest; `None` when it comes in the trailer.
    pub value: Option<String>,
}

impl Claim {
    /// Whether `digest` is what was claimed, in the header or in `trailer`.
    ///
    /// # Errors
    /// `Error::BadDigest`; `Error::InvalidRequest` when the trailer is not the one announced.
    pub fn verify(&self, digest: &[u8], trailer: Option<&Trailer>) -> Result<()> {
        let value = match (&self.value, trailer) {
            (Some(value), _) => value,
            (None, Some(trailer)) if trailer.name.as_str() == facts(self.algorithm).header.as_str() => &trailer.value,
            (None, _) => {
                return Err(Error::invalid_request("The value specified in the x-amz-trailer header is not supported"));
            }
        };
        if BASE64_STANDARD.encode(digest) == *value {
            Ok(())
        } else {
            Err(Error::BadDigest { algorithm: name(self.algorithm) })
        }
    }
}

/// The one checksum stated in headers, or announced for the trailer.
///
/// # Errors
/// `Error::InvalidRequest` for several, for a value that is no digest of its algorithm, for an algorithm S3 does not
/// know, and for `x-amz-sdk-checksum-algorithm` naming another or none.
pub fn claim(headers: &HeaderMap, trailer: Option<TrailerName>) -> Result<Option<Claim>> {
    let stated = stated(headers)?;
    let claim = match (stated, trailer) {
        (Some(_), Some(_)) => return Err(several()),
        (Some((algorithm, value)), None) => Some(Claim { algorithm, value: Some(value) }),
        (None, Some(trailer)) => Some(Claim { algorithm: of_header(trailer.as_str())?, value: None }),
        (None, None) => None,
    };
    let Some(named) = super::headers::text(headers, SDK_ALGORITHM)? else { return Ok(claim) };
    let named = parse_name(named)?;
    match &claim {
        Some(claim) if claim.algorithm == named => {}
        Some(_) => return Err(invalid_header(SDK_ALGORITHM)),
        None => {
            return Err(Error::invalid_request(
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer \
                 headers were found.",
            ));
        }
    }
    Ok(claim)
}

/// The checksum headers' algorithm and value: at most one, well-formed.
fn stated(headers: &HeaderMap) -> Result<Option<(ChecksumAlgorithm, String)>> {
    let Some((name, value)) = only_header(headers)? else { return Ok(None) };
    let algorithm = of_header(name)?;
    check_value(algorithm, value).ok_or_else(|| invalid_header(name))?;
    Ok(Some((algorithm, value.to_owned())))
}

/// The final checksum of a multipart upload, whose value may end in `-N`.
///
/// # Errors
/// As [`claim`].
pub fn final_claim(headers: &HeaderMap, kind: Option<ChecksumType>) -> Result<Option<Checksum>> {
    let Some((name, value)) = only_header(headers)? else { return Ok(None) };
    let algorithm = of_header(name)?;
    let (digest, of_parts) = match value.rsplit_once('-') {
        Some((digest, count)) if count.parse::<u32>().is_ok() => (digest, true),
        _ => (value, false),
    };
    check_value(algorithm, digest).ok_or_else(|| invalid_header(name))?;
    if kind == Some(ChecksumType::FullObject) && of_parts {
        return Err(invalid_header(name));
    }
    let stated = if of_parts { ChecksumType::Composite } else { ChecksumType::FullObject };
    Ok(Some(Checksum { algorithm, kind: kind.unwrap_or(stated), value: value.to_owned() }))
}

/// Name and value of the one header that states a checksum.
fn only_header(headers: &HeaderMap) -> Result<Option<(&str, &str)>> {
    let is_checksum =
        |name: &str| name.strip_prefix(PREFIX).is_some_and(|kind| !matches!(kind, "algorithm" | "type" | "mode"));
    let mut found = headers.iter().filter(|(name, _)| is_checksum(name.as_str()));
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some((name, value)), None) => {
            let value = value.to_str().map_err(|_| invalid_header(name.as_str()))?;
            Ok(Some((name.as_str(), value)))
        }
        (Some(_), Some(_)) => Err(several()),
    }
}

fn several() -> Error {
    Error::invalid_request("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
}

fn invalid_header(name: &str) -> Error {
    Error::InvalidRequest(format!("Value for {name} header is invalid.").into())
}

/// The algorithm of a header `x-amz-checksum-…`.
fn of_header(name: &str) -> Result<ChecksumAlgorithm> {
    let found = ChecksumAlgorithm::ALL.into_iter().find(|algorithm| facts(*algorithm).header == name);
    found
        .ok_or_else(|| Error::invalid_request("The algorithm type you specified in x-amz-checksum- header is invalid."))
}

/// The digest behind `value` when it is base64 of one of the algorithm's length.
pub fn check_value(algorithm: ChecksumAlgorithm, value: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(value).ok().filter(|digest| digest.len() == facts(algorithm).digest_bytes)
}

/// The MD5 that `Content-MD5` states.
///
/// # Errors
/// `Error::InvalidDigest`.
pub fn content_md5(headers: &HeaderMap) -> Result<Option<[u8; 16]>> {
    let Some(value) = headers.get("content-md5") else { return Ok(None) };
    let decoded = LENIENT.decode(value.as_bytes()).ok().and_then(|digest| digest.try_into().ok());
    match decoded {
        Some(digest) => Ok(Some(digest)),
        None => Err(Error::InvalidDigest(String::from_utf8_lossy(value.as_bytes()).into_owned())),
    }
}

/// Whether a body's MD5 is the one stated.
///
/// # Errors
/// `Error::BadContentMd5`.
pub fn verify_md5(stated: Option<[u8; 16]>, computed: &[u8; 16]) -> Result<()> {
    match stated {
        Some(stated) if stated != *computed => {
            Err(Error::BadContentMd5 { calculated: BASE64_STANDARD.encode(computed), expected: hex::encode(stated) })
        }
        _ => Ok(()),
    }
}

/// A full-object checksum of a digest.
pub fn of_digest(algorithm: ChecksumAlgorithm, digest: &[u8]) -> Checksum {
    Checksum { algorithm, kind: ChecksumType::FullObject, value: BASE64_STANDARD.encode(digest) }
}

/// Checks the body of a document against the digests its headers state.
///
/// # Errors
/// `Error::InvalidDigest`, `Error::BadContentMd5`, `Error::BadDigest`, or as [`claim`].
pub fn verify_document(headers: &HeaderMap, document: &[u8]) -> Result<Stated> {
    let stated_md5 = content_md5(headers)?;
    if stated_md5.is_some() {
        use md5::Digest;
        verify_md5(stated_md5, &md5::Md5::digest(document).into())?;
    }
    let claim = claim(headers, None)?;
    if let Some(claim) = &claim {
        let mut hasher = Hasher::new(claim.algorithm);
        hasher.update(document);
        claim.verify(&hasher.finish(), None)?;
    }
    Ok(if stated_md5.is_some() || claim.is_some() { Stated::Some } else { Stated::Nothing })
}

/// Whether a request stated any digest of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated {
    Some,
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value))).collect()
    }

    fn message(error: Error) -> String {
        error.describe().message.into_owned()
    }

    #[test]
    fn digests_are_those_of_the_published_check_values() {
        for (algorithm, value) in [
            (ChecksumAlgorithm::Crc32, "y/Q5Jg=="),
            (ChecksumAlgorithm::Crc32c, "4waSgw=="),
            (ChecksumAlgorithm::Crc64Nvme, "rosUhgp5mIg="),
            (ChecksumAlgorithm::Sha1, "98O8HYCOBHMq32eZZczDTKeuNEE="),
            (ChecksumAlgorithm::Sha256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"12345");
            hasher.update(b"6789");
            assert_eq!(of_digest(algorithm, &hasher.finish()).value, value, "{algorithm:?}");
        }
    }

    #[test]
    fn one_well_formed_checksum_may_be_stated() {
        let stated =
            claim(&headers(&[("x-amz-checksum-crc32", "y/Q5Jg=="), ("x-amz-sdk-checksum-algorithm", "CRC32")]), None);
        assert!(matches!(stated, Ok(Some(Claim { algorithm: ChecksumAlgorithm::Crc32, value: Some(_) }))));
        assert!(matches!(claim(&headers(&[("x-amz-checksum-mode", "ENABLED")]), None), Ok(None)));
        for (bad, expected) in [
            (&[("x-amz-checksum-crc32", "")][..], "Value for x-amz-checksum-crc32 header is invalid."),
            (&[("x-amz-checksum-crc32", "y/Q5")], "Value for x-amz-checksum-crc32 header is invalid."),
            (&[("x-amz-checksum-crc32", "y/Q5Jg=="), ("x-amz-checksum-sha1", "")], several_text()),
            (&[("x-amz-checksum-sha512", ""), ("x-amz-checksum-sha1", "")], several_text()),
            (&[("x-amz-checksum-sha512", "x")], "Value for x-amz-checksum-sha512 header is invalid."),
            (&[("x-amz-checksum-foo", "x")], "The algorithm type you specified in x-amz-checksum- header is invalid."),
            (&[("x-amz-sdk-checksum-algorithm", "FOO")], UNSUPPORTED),
            (
                &[("x-amz-sdk-checksum-algorithm", "SHA1"), ("x-amz-checksum-crc32", "y/Q5Jg==")],
                "Value for x-amz-sdk-checksum-algorithm header is invalid.",
            ),
            (
                &[("x-amz-sdk-checksum-algorithm", "SHA1")],
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer \
                 headers were found.",
            ),
        ] {
            let error = claim(&headers(bad), None).expect_err("the headers are not valid");
            assert_eq!(message(error), expected, "{bad:?}");
        }
    }

    fn several_text() -> &'static str {
        "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."
    }

    #[test]
    fn documents_are_checked_against_every_digest_stated() {
        let good = headers(&[("content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="), ("x-amz-checksum-crc32", "y/Q5Jg==")]);
        assert!(matches!(verify_document(&good, b"123456789"), Ok(Stated::Some)));
        assert!(matches!(verify_document(&good, b"12345678"), Err(Error::BadContentMd5 { .. })));
        assert!(matches!(verify_document(&headers(&[]), b"x"), Ok(Stated::Nothing)));
        let crc = headers(&[("x-amz-checksum-crc32", "y/Q5Jg==")]);
        assert!(matches!(verify_document(&crc, b"12345678"), Err(Error::BadDigest { algorithm: "CRC32" })));
        let short = headers(&[("content-md5", "JfnnlDI7")]);
        assert!(matches!(verify_document(&short, b"123456789"), Err(Error::InvalidDigest(_))));
    }
}
