//! Conditional requests: which conditions a request states and whether they hold. Pure.
//!
//! Reads are decided in the order of RFC 9110 section 13.2.2. Writes state one condition, checked by the store in the
//! step that publishes.

use super::error::{Error, Result};
use crate::store::{Attempt, Condition, ObjectInfo, Terms};
use http::{HeaderMap, HeaderName, header};
use std::time::{Duration, UNIX_EPOCH};

const COPY_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const COPY_IF_NONE_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-none-match");
const COPY_IF_MODIFIED_SINCE: HeaderName = HeaderName::from_static("x-amz-copy-source-if-modified-since");
const COPY_IF_UNMODIFIED_SINCE: HeaderName = HeaderName::from_static("x-amz-copy-source-if-unmodified-since");

const INVOCATION_ID: HeaderName = HeaderName::from_static("amz-sdk-invocation-id");

/// Conditions of a read, or on the source of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadConditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
    /// Seconds since the epoch, as `if_unmodified_since`. A date that cannot be read is no condition.
    if_modified_since: Option<i64>,
    if_unmodified_since: Option<i64>,
}

/// What conditions say about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Proceed,
    NotModified,
    /// Names the header.
    Failed(&'static str),
}

impl ReadConditions {
    pub fn of_read(headers: &HeaderMap) -> ReadConditions {
        ReadConditions::of(
            headers,
            [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE],
        )
    }

    pub fn of_copy_source(headers: &HeaderMap) -> ReadConditions {
        ReadConditions::of(
            headers,
            [COPY_IF_MATCH, COPY_IF_NONE_MATCH, COPY_IF_MODIFIED_SINCE, COPY_IF_UNMODIFIED_SINCE],
        )
    }

    fn of(headers: &HeaderMap, names: [HeaderName; 4]) -> ReadConditions {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let [if_match, if_none_match, if_modified_since, if_unmodified_since] = names;
        ReadConditions {
            if_match: text(&if_match).map(str::to_owned),
            if_none_match: text(&if_none_match).map(str::to_owned),
            if_modified_since: text(&if_modified_since).and_then(date_s),
            if_unmodified_since: text(&if_unmodified_since).and_then(date_s),
        }
    }

    /// Whether a read of `object` goes on. A condition on modification after `now_ms` is none.
    pub fn check(&self, object: &ObjectInfo, now_ms: i64) -> Verdict {
        let modified_s = object.last_modified_ms.div_euclid(1000);
        if let Some(tags) = &self.if_match {
            if !matches(tags, &object.etag, Comparison::Strong) {
                return Verdict::Failed("If-Match");
            }
        } else if self.if_unmodified_since.is_some_and(|since_s| modified_s > since_s) {
            return Verdict::Failed("If-Unmodified-Since");
        }
        if let Some(tags) = &self.if_none_match {
            if matches(tags, &object.etag, Comparison::Weak) {
                return Verdict::NotModified;
            }
        } else if let Some(since_s) = self.if_modified_since
            && since_s <= now_ms.div_euclid(1000)
            && modified_s <= since_s
        {
            return Verdict::NotModified;
        }
        Verdict::Proceed
    }
}

enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity tags holds `etag`. S3 takes tags without quotes too.
fn matches(tags: &str, etag: &str, comparison: Comparison) -> bool {
    tags.split(',').map(str::trim).any(|tag| match tag.strip_prefix("W/") {
        Some(weak) => matches!(comparison, Comparison::Weak) && unquoted(weak) == etag,
        None => tag == "*" || unquoted(tag) == etag,
    })
}

/// An entity tag without its quotes.
pub fn unquoted(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag)
}

/// Seconds since the epoch of an HTTP date.
pub fn date_s(text: &str) -> Option<i64> {
    let date = httpdate::parse_http_date(text).ok()?;
    i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// A moment as HTTP dates spell it.
pub fn http_date(ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(ms).unwrap_or(0).min(LAST_HTTP_DATE_MS));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

/// The end of the year 9999, the last an HTTP date can spell.
const LAST_HTTP_DATE_MS: u64 = 253_402_300_799_000;

/// The condition of a write, and the header that states it.
///
/// # Errors
/// What S3 does not do either: several conditions at once, and `If-None-Match` with an entity tag.
pub fn of_write(headers: &HeaderMap) -> Result<(Condition, &'static str)> {
    let if_match = headers.get(header::IF_MATCH);
    let if_none_match = headers.get(header::IF_NONE_MATCH);
    match (if_match, if_none_match) {
        (None, None) => Ok((Condition::None, "")),
        (None, Some(tag)) if tag == "*" => Ok((Condition::Absent, "If-None-Match")),
        (None, Some(_)) => Err(Error::HeaderNotImplemented { header: "If-None-Match" }),
        (Some(_), Some(_)) => Err(Error::HeaderNotImplemented { header: "If-Match" }),
        (Some(tag), None) => {
            let tag = tag.to_str().map_err(|_| Error::PreconditionFailed("If-Match"))?;
            Ok((Condition::Etag(unquoted(tag).to_owned()), "If-Match"))
        }
    }
}

/// The condition as the store takes it: with the id that SDKs give all tries of one call (`amz-sdk-invocation-id`), so
/// that a write whose answer was lost is not refused, for what it did itself, when it is sent again.
pub fn terms(headers: &HeaderMap, condition: Condition, principal: &str) -> Terms {
    let id = headers.get(INVOCATION_ID).and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    Terms::new(condition, id.map(|id| Attempt { caller: principal.to_owned(), id: id.to_owned() }))
}

/// Whether a write's condition holds for what is there now: for refusing early, before the body is read.
pub fn holds(condition: &Condition, current: Option<&ObjectInfo>) -> bool {
    match (condition, current) {
        (Condition::None, _) | (Condition::Absent, None) => true,
        (Condition::Absent, Some(_)) | (Condition::Etag(_), None) => false,
        (Condition::Etag(etag), Some(object)) => object.etag == *etag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ObjectHeaders, ObjectKey};

    const MODIFIED_MS: i64 = 1_700_000_000_500;
    const NOW_MS: i64 = MODIFIED_MS + 60_000;

    fn object() -> ObjectInfo {
        ObjectInfo {
            key: ObjectKey::parse("k").expect("a valid key"),
            size: 1,
            etag: "abc".to_owned(),
            last_modified_ms: MODIFIED_MS,
            headers: ObjectHeaders::default(),
            checksum: None,
            parts: None,
        }
    }

    fn check(
        if_match: Option<&str>,
        if_none_match: Option<&str>,
        modified_since: Option<i64>,
        unmodified_since: Option<i64>,
    ) -> Verdict {
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: String| {
            headers.insert(name, value.parse().expect("a valid header"));
        };
        if let Some(tag) = if_match {
            put(header::IF_MATCH, tag.to_owned());
        }
        if let Some(tag) = if_none_match {
            put(header::IF_NONE_MATCH, tag.to_owned());
        }
        if let Some(ms) = modified_since {
            put(header::IF_MODIFIED_SINCE, http_date(ms));
        }
        if let Some(ms) = unmodified_since {
            put(header::IF_UNMODIFIED_SINCE, http_date(ms));
        }
        ReadConditions::of_read(&headers).check(&object(), NOW_MS)
    }

    #[test]
    fn reads_are_decided_in_the_order_of_the_rfc() {
        use Verdict::{Failed, NotModified, Proceed};
        let (before, same, after) = (Some(MODIFIED_MS - 5000), Some(MODIFIED_MS), Some(MODIFIED_MS + 5000));
        for (if_match, if_none_match, modified, unmodified, verdict) in [
            (None, None, None, None, Proceed),
            (Some("\"abc\""), None, None, None, Proceed),
            (Some("abc"), None, None, None, Proceed),
            (Some("*"), None, None, None, Proceed),
            (Some("\"x\", \"abc\""), None, None, None, Proceed),
            (Some("W/\"abc\""), None, None, None, Failed("If-Match")),
            (Some("\"x\""), Some("\"abc\""), before, before, Failed("If-Match")),
            (Some("\"abc\""), None, None, before, Proceed),
            (Some("\"abc\""), Some("\"abc\""), None, before, NotModified),
            (None, None, None, before, Failed("If-Unmodified-Since")),
            (None, None, None, same, Proceed),
            (None, Some("\"x\""), after, None, Proceed),
            (None, Some("W/\"abc\""), before, None, NotModified),
            (None, Some("*"), None, None, NotModified),
            (None, None, same, None, NotModified),
            (None, None, before, None, Proceed),
            (None, None, Some(NOW_MS + 86_400_000), None, Proceed),
        ] {
            assert_eq!(
                check(if_match, if_none_match, modified, unmodified),
                verdict,
                "{if_match:?} {if_none_match:?} {modified:?} {unmodified:?}"
            );
        }
    }

    #[test]
    fn writes_take_one_condition() {
        let of = |pairs: &[(HeaderName, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value)));
            of_write(&headers.collect())
        };
        assert!(matches!(of(&[]), Ok((Condition::None, _))));
        assert!(matches!(of(&[(header::IF_NONE_MATCH, "*")]), Ok((Condition::Absent, "If-None-Match"))));
        for tag in ["\"abc\"", "abc"] {
            let condition = of(&[(header::IF_MATCH, tag)]).map(|(condition, _)| condition);
            assert!(matches!(condition, Ok(Condition::Etag(etag)) if etag == "abc"));
        }
        for bad in
            [&[(header::IF_NONE_MATCH, "\"abc\"")][..], &[(header::IF_MATCH, "\"abc\""), (header::IF_NONE_MATCH, "*")]]
        {
            assert!(matches!(of(bad), Err(Error::HeaderNotImplemented { .. })));
        }
    }
}
