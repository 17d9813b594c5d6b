//! The query of a request: names and values, decoded once. Pure.

use super::error::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// Parameters of one query. More than S3 knows.
const PARAMETERS_MAX: usize = 200;

/// What `encoding-type=url` leaves as it is: unreserved characters and the slash.
const NAME_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Decoded parameters in the order sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// # Errors
    /// `Error::InvalidUri` when a name or value is not UTF-8 once decoded, or there are too many.
    pub fn parse(raw: &str) -> Result<Query> {
        let mut parameters = Vec::new();
        for piece in raw.split('&').filter(|piece| !piece.is_empty()) {
            if parameters.len() == PARAMETERS_MAX {
                return Err(Error::InvalidUri);
            }
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            parameters.push((form_decode(name)?, form_decode(value)?));
        }
        Ok(Query(parameters))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    /// The first value under `name`; empty where the name stands alone.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone())
    }
}

/// In a query a plus is a space.
fn form_decode(raw: &str) -> Result<String> {
    let decoded = if raw.contains('+') { percent_decode(&raw.replace('+', " ")) } else { percent_decode(raw) };
    decoded.ok_or(Error::InvalidUri)
}

/// Undoes percent-encoding once; `None` when the bytes are not UTF-8. A stray percent sign stands for itself.
pub fn percent_decode(raw: &str) -> Option<String> {
    percent_encoding::percent_decode_str(raw).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// A name as `encoding-type=url` answers it.
pub fn encode_name(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, NAME_ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_once() {
        let query = Query::parse("uploads&prefix=a%2Bb+c&x=%2525&&empty=&prefix=second").expect("the query is valid");
        assert!(query.has("uploads") && query.has("empty") && !query.has("delete"));
        assert_eq!(query.text("prefix").as_deref(), Some("a+b c"));
        assert_eq!(query.text("x").as_deref(), Some("%25"));
        assert_eq!(query.text("uploads").as_deref(), Some(""));
        assert_eq!(query.text("delete"), None);
        assert!(matches!(Query::parse("a=%FF"), Err(Error::InvalidUri)));
        assert!(matches!(Query::parse(&"a&".repeat(PARAMETERS_MAX + 1)), Err(Error::InvalidUri)));
    }

    #[test]
    fn names_are_encoded_as_sdks_decode_them() {
        assert_eq!(encode_name("a b+c/ü&~\u{2}%2B"), "a%20b%2Bc/%C3%BC%26~%02%252B");
    }
}
