//! Tags of objects: PutObjectTagging, GetObjectTagging, DeleteObjectTagging, and the header that sets them on a write.

use super::{
    answer::{self, S3Body},
    checksum,
    error::{Error, Result, Subject},
    front::Call,
    headers,
    operation::Object,
    version_error::VersionError,
    versions, xml,
};
use crate::store::{Tags, VersionId};
use http::{HeaderMap, HeaderName, Response, StatusCode};

const COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");
const HEADER: &str = "x-amz-tagging";

/// Tags of one object.
const TAGS_MAX: usize = 10;
/// Characters of a tag's key and value.
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;
/// What tags may hold beside letters, digits and spaces.
const PUNCTUATION: &str = "+-=._:/@";
/// Begins the keys of tags that only AWS sets.
const SYSTEM_PREFIX: &str = "aws:";

/// The tags that a write's header sets, written as the query of a URL is; none without the header.
///
/// # Errors
/// `Error::InvalidArgument` for a header that is no list of tags, and those of [`check`].
pub fn of_header(sent: &HeaderMap) -> Result<Option<Tags>> {
    let Some(text) = headers::text(sent, HEADER)? else { return Ok(None) };
    let invalid = || {
        Error::invalid_argument(
            HEADER,
            text,
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag \
             name duplicates.",
        )
    };
    let mut tags = Tags::new();
    for piece in text.split('&').filter(|piece| !piece.is_empty()) {
        let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
        let key = decode(key).filter(|key| !key.is_empty()).ok_or_else(invalid)?;
        let value = decode(value).ok_or_else(invalid)?;
        if tags.iter().any(|(known, _)| *known == key) {
            return Err(invalid());
        }
        tags.push((key, value));
        if tags.len() > TAGS_MAX {
            return Err(Error::Version(VersionError::TooManyTags));
        }
    }
    check(&tags)?;
    Ok(Some(tags))
}

/// Undoes the encoding of a query; `None` where a percent sign begins no byte, or the bytes are not UTF-8.
fn decode(raw: &str) -> Option<String> {
    let is_encoded = raw.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    is_encoded.then(|| super::query::percent_decode(&raw.replace('+', " ")))?
}

/// # Errors
/// `VersionError::TooManyTags`, `VersionError::TagKey`, `VersionError::TagValue`, `VersionError::SystemTag`,
/// `VersionError::TagTwice`.
fn check(tags: &Tags) -> Result<()> {
    if tags.len() > TAGS_MAX {
        return Err(Error::Version(VersionError::TooManyTags));
    }
    for (at, (key, value)) in tags.iter().enumerate() {
        if key.is_empty() || !is_valid(key, KEY_CHARS_MAX) {
            return Err(Error::Version(VersionError::TagKey(key.clone())));
        }
        if !is_valid(value, VALUE_CHARS_MAX) {
            return Err(Error::Version(VersionError::TagValue { key: key.clone(), value: value.clone() }));
        }
        if key.get(..SYSTEM_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(SYSTEM_PREFIX)) {
            return Err(Error::Version(VersionError::SystemTag(key.clone())));
        }
        if tags.iter().take(at).any(|(known, _)| known == key) {
            return Err(Error::Version(VersionError::TagTwice(key.clone())));
        }
    }
    Ok(())
}

fn is_valid(text: &str, chars_max: usize) -> bool {
    text.chars().count() <= chars_max
        && text.chars().all(|character| {
            character.is_alphanumeric()
                || PUNCTUATION.contains(character)
                || (character.is_whitespace() && !character.is_control())
        })
}

/// Says how many tags the object has that is read.
pub fn write_count(answer: &mut HeaderMap, tags: &Tags) {
    if !tags.is_empty() {
        headers::put(answer, COUNT, &tags.len().to_string());
    }
}

/// The tags of a `Tagging` document.
///
/// # Errors
/// `Error::MalformedXml`, and those of [`check`].
pub(super) fn of_document(document: &[u8]) -> Result<Tags> {
    let tagging = xml::parse(document, "Tagging")?;
    let set = tagging.child("TagSet").ok_or(Error::MalformedXml)?;
    let tags =
        set.children.iter().map(|tag| match (tag.name.as_str(), tag.child_text("Key"), tag.child_text("Value")) {
            ("Tag", Some(key), Some(value)) => Ok((key.to_owned(), value.to_owned())),
            _ => Err(Error::MalformedXml),
        });
    let tags = tags.collect::<Result<Tags>>()?;
    check(&tags)?;
    Ok(tags)
}

pub(super) async fn put_object_tagging(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    let document = call.document().await?;
    checksum::verify_document(&call.parts.headers, &document)?;
    set_tags(call, object, version, of_document(&document)?, StatusCode::OK).await
}

pub(super) async fn delete_object_tagging(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    set_tags(call, object, version, Tags::new(), StatusCode::NO_CONTENT).await
}

async fn set_tags(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
    tags: Tags,
    status: StatusCode,
) -> Result<Response<S3Body>> {
    let subject = Subject { version: version.as_ref(), ..object.subject() };
    let set = call.front.store.set_tags(&object.bucket, &object.key, version.clone(), tags).await;
    let tagged = set.map_err(|error| subject.error(error))?;
    let mut response = answer::empty(status);
    versions::write_read(response.headers_mut(), tagged.as_ref());
    Ok(response)
}

pub(super) async fn get_object_tagging(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    let subject = Subject { version: version.as_ref(), ..object.subject() };
    let found = call.front.store.head_version(&object.bucket, &object.key, version.clone()).await;
    let info = found.map_err(|error| subject.error(error))?;
    let document = xml::document("Tagging", Some(xml::NAMESPACE), |out| {
        out.element("TagSet", |out| {
            for (key, value) in &info.tags {
                out.element("Tag", |out| {
                    out.text("Key", key);
                    out.text("Value", value);
                });
            }
        });
    });
    let mut response = answer::document(document);
    versions::write_read(response.headers_mut(), info.version.as_ref());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> Result<Tags> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, http::HeaderValue::from_bytes(text.as_bytes()).expect("a header"));
        of_header(&headers).map(Option::unwrap_or_default)
    }

    #[test]
    fn headers_are_read_as_queries_are() {
        for (text, tags) in [
            ("", &[][..]),
            ("&&", &[]),
            ("key", &[("key", "")]),
            ("a=1&b=&c", &[("a", "1"), ("b", ""), ("c", "")]),
            ("key@=val@", &[("key@", "val@")]),
            ("key++key=value%2Fx%2B", &[("key  key", "value/x+")]),
            ("k=a=b", &[("k", "a=b")]),
            ("%C3%BC=%C3%A9", &[("ü", "é")]),
        ] {
            let read = of_text(text).expect("valid");
            let read: Vec<(&str, &str)> = read.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!(read, tags, "{text}");
        }
        for bad in ["=", "=v", "key%", "k=%zz", "k=%FF", "k=1&k=2"] {
            assert!(matches!(of_text(bad), Err(Error::InvalidArgument { .. })), "{bad}");
        }
    }

    #[test]
    fn tags_keep_to_the_limits() {
        let error = |text: &str| match of_text(text) {
            Ok(_) => "none".to_owned(),
            Err(error) => format!("{}: {}", error.describe().code, error.describe().message),
        };
        let (long_key, long_value) = ("k".repeat(KEY_CHARS_MAX), "v".repeat(VALUE_CHARS_MAX));
        assert_eq!(error(&format!("{long_key}={long_value}")), "none");
        assert_eq!(error(&format!("{long_key}k=v")), "InvalidTag: The TagKey you have provided is invalid");
        assert_eq!(error(&format!("k={long_value}v")), "InvalidTag: The TagValue you have provided is invalid");
        for bad in ["key?", "key(", "key*", "key$", "key#", "key!", "%0A"] {
            assert_eq!(error(&format!("{bad}=v")), "InvalidTag: The TagKey you have provided is invalid", "{bad}");
            assert_eq!(error(&format!("k={bad}")), "InvalidTag: The TagValue you have provided is invalid", "{bad}");
        }
        assert_eq!(error("AWS:x=1"), "InvalidTag: System tags cannot be added/updated by requester");
        let tags = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join("&");
        assert_eq!(error(&tags(TAGS_MAX)), "none");
        assert_eq!(error(&tags(TAGS_MAX + 1)), "BadRequest: Object tags cannot be greater than 10");
        let twice =
            "<Tagging><TagSet><Tag><Key>a</Key><Value/></Tag><Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>";
        assert!(matches!(of_document(twice.as_bytes()), Err(Error::Version(VersionError::TagTwice(_)))));
        for bad in ["<Tagging/>", "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>", "<TagSet/>"] {
            assert!(matches!(of_document(bad.as_bytes()), Err(Error::MalformedXml)), "{bad}");
        }
    }
}
