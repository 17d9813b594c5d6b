//! Ids of requests: the client's own where it is sane, else a fresh one.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// Longer ids are replaced. Bytes.
const ID_BYTES_MAX: usize = 128;

/// Printable ASCII without spaces, quotes or backslashes: safe in a header, a log line and XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

    pub fn of(headers: &HeaderMap) -> RequestId {
        let given = headers.get(Self::HEADER).and_then(|value| value.to_str().ok()).filter(|id| is_sane(id));
        RequestId(given.map_or_else(|| uuid::Uuid::new_v4().simple().to_string().into(), Arc::from))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn as_arc(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    pub fn to_header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

fn is_sane(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &str) -> RequestId {
        let mut headers = HeaderMap::new();
        headers.insert(RequestId::HEADER, HeaderValue::from_str(id).unwrap());
        RequestId::of(&headers)
    }

    #[test]
    fn sane_ids_are_kept_and_others_replaced() {
        assert_eq!(of("tide-42").as_str(), "tide-42");
        for hostile in ["", "a b", "a\"b", "<a>", "a\\nb", &"x".repeat(129)] {
            let id = of(hostile);
            assert_ne!(id.as_str(), hostile);
            assert_eq!(id.as_str().len(), 32);
        }
        assert_ne!(RequestId::of(&HeaderMap::new()), RequestId::of(&HeaderMap::new()));
    }
}
