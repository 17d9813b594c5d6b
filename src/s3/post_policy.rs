//! The policy that comes with a browser's form: what its signer lets the form say. Pure.
//!
//! Each field must be covered by a condition, and each condition must hold.

use super::error::{Answer, Error};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::StatusCode;
use serde_json::Value;
use std::ops::RangeInclusive;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

const CONDITIONS_MAX: usize = 200;
/// Fields that no condition needs to cover.
const UNCOVERED: [&str; 5] = ["policy", "x-amz-signature", "signature", "awsaccesskeyid", "file"];
const IGNORED_PREFIX: &str = "x-ignore-";

/// Why a form is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    #[error("the body is not a form")]
    NotAForm,
    #[error("the form is not well-formed")]
    Malformed,
    #[error("the fields before the file are too large")]
    FieldsTooLarge,
    #[error("the form has no file")]
    NoFile,
    #[error("the form has no field {0}")]
    Missing(&'static str),
    /// With AWS's text.
    #[error("the form's policy is not valid: {0}")]
    InvalidPolicy(String),
    /// With AWS's text.
    #[error("the form's policy does not allow it: {0}")]
    Refused(String),
    #[error("the file is smaller than its policy allows")]
    TooSmall { proposed_bytes: u64, min_bytes: u64 },
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Error {
        Error::Post(error)
    }
}

impl PostError {
    /// Status, code, text and details of the answer.
    pub fn describe(&self) -> Answer {
        let (status, code, message, details) = match self {
            Self::NotAForm => (
                StatusCode::PRECONDITION_FAILED,
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold.".to_owned(),
                vec![("Condition", "Bucket POST must be of the enclosure-type multipart/form-data".to_owned())],
            ),
            Self::Malformed => (
                StatusCode::BAD_REQUEST,
                "MalformedPOSTRequest",
                "The body of your POST request is not well-formed multipart/form-data.".to_owned(),
                Vec::new(),
            ),
            Self::FieldsTooLarge => (
                StatusCode::BAD_REQUEST,
                "MaxPostPreDataLengthExceeded",
                "Your POST request fields preceding the upload file were too large.".to_owned(),
                Vec::new(),
            ),
            Self::NoFile => (
                StatusCode::BAD_REQUEST,
                "InvalidArgument",
                "POST requires exactly one file upload per request.".to_owned(),
                vec![("ArgumentName", "file".to_owned()), ("ArgumentValue", "0".to_owned())],
            ),
            Self::Missing(field) => (
                StatusCode::BAD_REQUEST,
                "InvalidArgument",
                format!(
                    "Bucket POST must contain a field named '{field}'.  If it is specified, please check the order of \
                     the fields."
                ),
                vec![("ArgumentName", (*field).to_owned()), ("ArgumentValue", String::new())],
            ),
            Self::InvalidPolicy(message) => {
                (StatusCode::BAD_REQUEST, "InvalidPolicyDocument", format!("Invalid Policy: {message}"), Vec::new())
            }
            Self::Refused(message) => {
                (StatusCode::FORBIDDEN, "AccessDenied", format!("Invalid according to Policy: {message}"), Vec::new())
            }
            Self::TooSmall { proposed_bytes, min_bytes } => (
                StatusCode::BAD_REQUEST,
                "EntityTooSmall",
                "Your proposed upload is smaller than the minimum allowed size".to_owned(),
                vec![("ProposedSize", proposed_bytes.to_string()), ("MinSizeAllowed", min_bytes.to_string())],
            ),
        };
        Answer { status, code, message: message.into(), details }
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, PostError> {
    Err(PostError::InvalidPolicy(message.into()))
}

/// A policy that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostPolicy {
    expires_at_ms: i64,
    conditions: Vec<Condition>,
    /// Sizes a file may have. Bytes.
    pub sizes: Option<RangeInclusive<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    test: Test,
    /// In lower case; without its dollar sign, and empty where it had none, which no field fits.
    field: String,
    value: String,
    /// As errors repeat it.
    shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Equals,
    StartsWith,
}

impl PostPolicy {
    /// Reads the field `policy`: JSON in base64.
    ///
    /// # Errors
    /// `PostError::InvalidPolicy`.
    pub fn parse(field: &str) -> Result<PostPolicy, PostError> {
        if field.is_empty() {
            return invalid("Expecting '{' but found End-of-Input");
        }
        let Ok(document) = BASE64_STANDARD.decode(field) else { return invalid("invalid Base64 encoding.") };
        let Ok(Value::Object(mut policy)) = serde_json::from_slice(&document) else { return invalid("Invalid JSON.") };
        let (expiration, conditions) = (policy.remove("expiration"), policy.remove("conditions"));
        if let Some(unexpected) = policy.keys().next() {
            return invalid(format!("Unexpected: {unexpected:?}"));
        }
        let expires_at_ms = match expiration {
            None => return invalid("Policy missing expiration."),
            Some(Value::String(text)) => match OffsetDateTime::parse(&text, &Rfc3339) {
                Ok(at) => i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX),
                Err(_) => return invalid(format!("Invalid 'expiration' value: '{text}'")),
            },
            Some(_) => return invalid("Invalid JSON."),
        };
        let conditions = match conditions {
            None => return invalid("Policy missing conditions."),
            Some(Value::Array(conditions)) if conditions.len() <= CONDITIONS_MAX => conditions,
            Some(_) => return invalid("Invalid 'conditions' value: must be a List."),
        };
        let mut policy = PostPolicy { expires_at_ms, conditions: Vec::new(), sizes: None };
        for condition in conditions {
            policy.add(&condition)?;
        }
        Ok(policy)
    }

    fn add(&mut self, condition: &Value) -> Result<(), PostError> {
        match condition {
            Value::Object(pairs) => {
                let mut pairs = pairs.iter();
                let (Some((field, value)), None) = (pairs.next(), pairs.next()) else {
                    return invalid(
                        "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.",
                    );
                };
                let Some(value) = value.as_str() else {
                    return invalid("Invalid Simple-Condition: value must be a string.");
                };
                let shown = format!("[\"eq\", \"${field}\", {}]", Value::from(value));
                let (field, value) = (field.to_ascii_lowercase(), value.to_owned());
                self.conditions.push(Condition { test: Test::Equals, field, value, shown });
                Ok(())
            }
            Value::Array(arguments) => self.add_operation(arguments, condition.to_string()),
            _ => invalid("Invalid condition test: must be a List or Object."),
        }
    }

    fn add_operation(&mut self, arguments: &[Value], shown: String) -> Result<(), PostError> {
        let Some((operation, arguments)) = arguments.split_first() else {
            return invalid("Invalid Condition: missing operation identifier.");
        };
        let Some(operation) = operation.as_str() else { return invalid("Invalid JSON.") };
        let test = match operation.to_ascii_lowercase().as_str() {
            "eq" => Some(Test::Equals),
            "starts-with" => Some(Test::StartsWith),
            "content-length-range" => None,
            _ => return invalid(format!("Invalid Condition: unknown operation '{operation}'.")),
        };
        let [first, second] = arguments else {
            return invalid(format!("Invalid {operation}: wrong number of arguments."));
        };
        let Some(test) = test else {
            let (Some(least), Some(most)) = (number(first), number(second)) else { return invalid("Invalid JSON.") };
            self.sizes = Some(least..=most);
            return Ok(());
        };
        let (Some(field), Some(value)) = (first.as_str(), second.as_str()) else { return invalid("Invalid JSON.") };
        let field = field.strip_prefix('$').unwrap_or_default().to_ascii_lowercase();
        self.conditions.push(Condition { test, field, value: value.to_owned(), shown });
        Ok(())
    }

    /// Whether a form to `bucket` is as its policy says. Names of fields are in lower case.
    ///
    /// # Errors
    /// `PostError::Refused`.
    pub fn check(&self, bucket: &str, fields: &[(String, String)], now_ms: i64) -> Result<(), PostError> {
        if now_ms >= self.expires_at_ms {
            return Err(PostError::Refused("Policy expired.".to_owned()));
        }
        for condition in &self.conditions {
            let found = fields.iter().find(|(name, _)| *name == condition.field).map(|(_, value)| value.as_str());
            // The bucket is in the address; a field of that name may repeat it.
            let actual = if condition.field == "bucket" { Some(bucket) } else { found };
            if !actual.is_some_and(|actual| condition.holds(actual)) {
                return Err(PostError::Refused(format!("Policy Condition failed: {}", condition.shown)));
            }
        }
        let is_covered = |name: &String| {
            UNCOVERED.contains(&name.as_str())
                || name.starts_with(IGNORED_PREFIX)
                || self.conditions.iter().any(|condition| condition.field == *name)
        };
        let extra: Vec<&str> =
            fields.iter().map(|(name, _)| name).filter(|name| !is_covered(name)).map(String::as_str).collect();
        if extra.is_empty() {
            return Ok(());
        }
        Err(PostError::Refused(format!("Extra input fields: {}", extra.join(", "))))
    }
}

impl Condition {
    fn holds(&self, actual: &str) -> bool {
        match self.test {
            Test::Equals => actual == self.value,
            // Of several types, each must begin so.
            Test::StartsWith if self.field == "content-type" => {
                actual.split(',').all(|kind| kind.trim().starts_with(&self.value))
            }
            Test::StartsWith => actual.starts_with(&self.value),
        }
    }
}

/// A number, or one that is written as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn parse(conditions: &str) -> Result<PostPolicy, PostError> {
        let document = format!(r#"{{"expiration":"2100-01-01T00:00:00.000Z","conditions":{conditions}}}"#);
        PostPolicy::parse(&BASE64_STANDARD.encode(document))
    }

    fn check(conditions: &str, fields: &[(&str, &str)]) -> Result<(), String> {
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let checked = parse(conditions).and_then(|policy| policy.check("lake", &fields, NOW_MS));
        checked.map_err(|error| error.describe().message.into_owned())
    }

    #[test]
    fn each_condition_must_hold_and_each_field_be_covered() {
        let conditions = r#"[{"bucket":"lake"},["starts-with","$key","in/"],["eq","$Content-Type","a/b"],
            ["content-length-range",1,"10"]]"#;
        assert_eq!(parse(conditions).expect("a valid policy").sizes, Some(1..=10));
        let fitting = [("key", "in/x"), ("content-type", "a/b"), ("policy", "p"), ("x-ignore-a", "")];
        assert_eq!(check(conditions, &fitting), Ok(()));
        let failed =
            |condition: &str| Err(format!("Invalid according to Policy: Policy Condition failed: {condition}"));
        let misfit = check(conditions, &[("key", "out/x"), ("content-type", "a/b")]);
        assert_eq!(misfit, failed(r#"["starts-with","$key","in/"]"#));
        assert_eq!(check(conditions, &[("key", "in/x")]), failed(r#"["eq","$Content-Type","a/b"]"#));
        assert_eq!(check(r#"[{"bucket":"other"}]"#, &[]), failed(r#"["eq", "$bucket", "other"]"#));
        assert_eq!(check(r#"[["eq","key","x"]]"#, &[("key", "x")]), failed(r#"["eq","key","x"]"#));
        let extra = check(r#"[{"key":"x"}]"#, &[("key", "x"), ("acl", "private"), ("x-amz-meta-a", "")]);
        assert_eq!(extra, Err("Invalid according to Policy: Extra input fields: acl, x-amz-meta-a".to_owned()));
        let kinds = r#"[["starts-with","$content-type","text/"]]"#;
        assert_eq!(check(kinds, &[("content-type", "text/a, text/b")]), Ok(()));
        assert!(check(kinds, &[("content-type", "text/a, image/b")]).is_err());
    }

    #[test]
    fn an_expired_policy_allows_nothing() {
        let document = BASE64_STANDARD.encode(r#"{"expiration":"2023-11-14T22:13:20Z","conditions":[]}"#);
        let policy = PostPolicy::parse(&document).expect("a valid policy");
        assert_eq!(policy.check("lake", &[], NOW_MS - 1), Ok(()));
        assert_eq!(policy.check("lake", &[], NOW_MS), Err(PostError::Refused("Policy expired.".to_owned())));
    }

    #[test]
    fn what_is_wrong_with_a_policy_is_said_in_aws_s_words() {
        let encoded = |document: &str| PostPolicy::parse(&BASE64_STANDARD.encode(document));
        for (refused, text) in [
            (PostPolicy::parse(""), "Expecting '{' but found End-of-Input"),
            (PostPolicy::parse("%"), "invalid Base64 encoding."),
            (encoded("rubbish"), "Invalid JSON."),
            (encoded(r#"{"conditions":[]}"#), "Policy missing expiration."),
            (encoded(r#"{"expiration":"soon","conditions":[]}"#), "Invalid 'expiration' value: 'soon'"),
            (encoded(r#"{"expiration":"2100-01-01T00:00:00Z"}"#), "Policy missing conditions."),
            (encoded(r#"{"expiration":"2100-01-01T00:00:00Z","conditions":[],"x":1}"#), "Unexpected: \"x\""),
            (parse("true"), "Invalid 'conditions' value: must be a List."),
            (parse("[true]"), "Invalid condition test: must be a List or Object."),
            (parse("[[]]"), "Invalid Condition: missing operation identifier."),
            (parse(r#"[["x","$a","b"]]"#), "Invalid Condition: unknown operation 'x'."),
            (parse(r#"[["eq","$a"]]"#), "Invalid eq: wrong number of arguments."),
            (parse(r#"[["eq","$a",1]]"#), "Invalid JSON."),
            (parse(r#"[["content-length-range",-1,5]]"#), "Invalid JSON."),
            (parse(r#"[{}]"#), "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."),
            (parse(r#"[{"a":1}]"#), "Invalid Simple-Condition: value must be a string."),
        ] {
            assert_eq!(refused, Err(PostError::InvalidPolicy(text.to_owned())));
        }
    }
}
