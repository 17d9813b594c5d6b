//! What clients send, read by itself and without a server around: for tests that send rubbish to it.
//!
//! Each function answers how reading ended, and an error where something does not hold that always must.

use super::{
    bucket_tags::Tags,
    complete, config,
    cors::Rules,
    delete,
    error::Error,
    operation::{Operation, Request},
    post_policy::PostPolicy,
    range::{self, Span},
};
use http::Method;

/// A document of each kind that requests have.
pub fn document(bytes: &[u8]) -> Result<String, String> {
    let mut ends = String::new();
    if let Some(rules) = noted(&mut ends, Rules::parse(bytes)) {
        holds(Rules::parse(rules.document().as_bytes()).ok() == Some(rules), "cross-origin rules read back as others")?;
    }
    if let Some(tags) = noted(&mut ends, Tags::parse(bytes)) {
        holds(Tags::parse(tags.document().as_bytes()).ok() == Some(tags), "tags read back as others")?;
    }
    noted(&mut ends, config::PublicAccessBlock::parse(bytes));
    if let Some(keys) = noted(&mut ends, delete::keys_named(bytes)) {
        holds(keys.iter().all(|key| !key.is_empty()), "a key without a name")?;
    }
    if let Some(numbers) = noted(&mut ends, complete::numbers_listed(bytes)) {
        holds(numbers.is_sorted_by(|one, next| one < next), "parts out of order")?;
    }
    Ok(ends)
}

/// A `Range` header on an object of `size` bytes.
pub fn range(header: &str, size: u64) -> Result<String, String> {
    match range::resolve(Some(header), size) {
        Span::Part(part) => {
            holds(part.start < part.end && part.end <= size, "a part that is not of the object")?;
            Ok("part".to_owned())
        }
        Span::Whole => Ok("whole".to_owned()),
        Span::Unsatisfiable => Ok("unsatisfiable".to_owned()),
    }
}

/// A request line: method, blank, path and query.
pub fn request_line(line: &str) -> Result<String, String> {
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return Ok("no method".to_owned()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    for (host, base_host) in [(None, None), (Some("lake.s3.test:9000"), Some("s3.test"))] {
        for copies in [false, true] {
            let request = Request { method: &method, host, path, query, copies };
            let bucket = request.bucket(base_host);
            if let Ok(operation) = Operation::parse(&request, base_host) {
                let about_server = matches!(operation, Operation::ListBuckets { .. } | Operation::SecurityTokens);
                let preflight = matches!(operation, Operation::Preflight { .. });
                holds(about_server == bucket.is_none() || preflight, "an operation on another bucket")?;
            }
        }
    }
    let request = Request { method: &method, host: None, path, query, copies: false };
    Ok(match Operation::parse(&request, None) {
        Ok(operation) => operation.name().to_owned(),
        Err(error) => error.describe().message.into_owned(),
    })
}

/// The policy of a browser's form.
pub fn post_policy(field: &str) -> Result<String, String> {
    let fields = [("key".to_owned(), "in/k".to_owned()), ("content-type".to_owned(), "text/x".to_owned())];
    Ok(match PostPolicy::parse(field).and_then(|policy| policy.check("lake", &fields, 0)) {
        Ok(()) => "allowed".to_owned(),
        Err(error) => error.describe().message.into_owned(),
    })
}

fn noted<T>(ends: &mut String, read: Result<T, Error>) -> Option<T> {
    match read {
        Ok(read) => {
            ends.push('+');
            Some(read)
        }
        Err(error) => {
            ends.push_str(error.describe().code);
            None
        }
    }
}

fn holds(condition: bool, otherwise: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise.to_owned()) }
}
