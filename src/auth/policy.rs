//! Policies in AWS's language: read from JSON, checked, and asked whether a request is allowed. Pure.
//!
//! A bucket's policy names principals and resources of that bucket; a session's names neither principal nor bucket and
//! only narrows. Whatever part of the language is not evaluated here is refused when a policy is read, never skipped.

use serde_json::Value;
use std::borrow::Cow;

/// The document of one policy. Bytes.
pub const DOCUMENT_BYTES_MAX: usize = 20 << 10;
const STATEMENTS_MAX: usize = 100;
const ARN_PREFIX: &str = "arn:aws:s3:::";
const USER_ARN: &str = ":user/";
const VERSIONS: [&str; 2] = ["2008-10-17", "2012-10-17"];

/// Actions that a policy may name, and whether they are about objects.
const ACTIONS: &[(&str, bool)] = &[
    ("AbortMultipartUpload", true),
    ("BypassGovernanceRetention", true),
    ("CreateBucket", false),
    ("DeleteBucket", false),
    ("DeleteBucketPolicy", false),
    ("DeleteBucketWebsite", false),
    ("DeleteObject", true),
    ("DeleteObjectTagging", true),
    ("DeleteObjectVersion", true),
    ("DeleteObjectVersionTagging", true),
    ("GetAccelerateConfiguration", false),
    ("GetAnalyticsConfiguration", false),
    ("GetBucketAcl", false),
    ("GetBucketCORS", false),
    ("GetBucketLocation", false),
    ("GetBucketLogging", false),
    ("GetBucketNotification", false),
    ("GetBucketObjectLockConfiguration", false),
    ("GetBucketOwnershipControls", false),
    ("GetBucketPolicy", false),
    ("GetBucketPolicyStatus", false),
    ("GetBucketPublicAccessBlock", false),
    ("GetBucketRequestPayment", false),
    ("GetBucketTagging", false),
    ("GetBucketVersioning", false),
    ("GetBucketWebsite", false),
    ("GetEncryptionConfiguration", false),
    ("GetIntelligentTieringConfiguration", false),
    ("GetInventoryConfiguration", false),
    ("GetLifecycleConfiguration", false),
    ("GetMetricsConfiguration", false),
    ("GetObject", true),
    ("GetObjectAcl", true),
    ("GetObjectAttributes", true),
    ("GetObjectLegalHold", true),
    ("GetObjectRetention", true),
    ("GetObjectTagging", true),
    ("GetObjectVersion", true),
    ("GetObjectVersionAcl", true),
    ("GetObjectVersionAttributes", true),
    ("GetObjectVersionTagging", true),
    ("GetReplicationConfiguration", false),
    ("ListAllMyBuckets", false),
    ("ListBucket", false),
    ("ListBucketMultipartUploads", false),
    ("ListBucketVersions", false),
    ("ListMultipartUploadParts", true),
    ("PutAccelerateConfiguration", false),
    ("PutAnalyticsConfiguration", false),
    ("PutBucketAcl", false),
    ("PutBucketCORS", false),
    ("PutBucketLogging", false),
    ("PutBucketNotification", false),
    ("PutBucketObjectLockConfiguration", false),
    ("PutBucketOwnershipControls", false),
    ("PutBucketPolicy", false),
    ("PutBucketPublicAccessBlock", false),
    ("PutBucketRequestPayment", false),
    ("PutBucketTagging", false),
    ("PutBucketVersioning", false),
    ("PutBucketWebsite", false),
    ("PutEncryptionConfiguration", false),
    ("PutIntelligentTieringConfiguration", false),
    ("PutInventoryConfiguration", false),
    ("PutLifecycleConfiguration", false),
    ("PutMetricsConfiguration", false),
    ("PutObject", true),
    ("PutObjectAcl", true),
    ("PutObjectLegalHold", true),
    ("PutObjectRetention", true),
    ("PutObjectTagging", true),
    ("PutObjectVersionAcl", true),
    ("PutObjectVersionTagging", true),
    ("PutReplicationConfiguration", false),
    ("RestoreObject", true),
];

const SOURCE_IP: &str = "aws:SourceIp";
/// Condition keys that are evaluated.
const KEYS: [&str; 6] =
    ["aws:Referer", "aws:SecureTransport", "aws:UserAgent", "aws:username", "s3:delimiter", "s3:prefix"];
/// Condition keys of AWS that are refused.
const KEYS_UNSERVED: [&str; 20] = [
    "aws:CurrentTime",
    "aws:EpochTime",
    "aws:PrincipalArn",
    "aws:PrincipalOrgID",
    "aws:PrincipalType",
    "aws:SourceArn",
    "aws:SourceAccount",
    SOURCE_IP,
    "aws:SourceVpc",
    "aws:SourceVpce",
    "aws:userid",
    "s3:authType",
    "s3:max-keys",
    "s3:signatureAge",
    "s3:signatureversion",
    "s3:VersionId",
    "s3:x-amz-acl",
    "s3:x-amz-content-sha256",
    "s3:x-amz-server-side-encryption",
    "s3:x-amz-storage-class",
];
/// Condition operators of AWS that are refused, without `IfExists`.
const OPERATORS_UNSERVED: [&str; 19] = [
    "ArnEquals",
    "ArnLike",
    "ArnNotEquals",
    "ArnNotLike",
    "BinaryEquals",
    "DateEquals",
    "DateGreaterThan",
    "DateGreaterThanEquals",
    "DateLessThan",
    "DateLessThanEquals",
    "DateNotEquals",
    "IpAddress",
    "NotIpAddress",
    "NumericEquals",
    "NumericGreaterThan",
    "NumericGreaterThanEquals",
    "NumericLessThan",
    "NumericLessThanEquals",
    "NumericNotEquals",
];

/// Why a policy is refused. `Display` is AWS's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// Valid in AWS's language, and not evaluated here.
    #[error("{0} in a policy")]
    Unserved(&'static str),
}

type Result<T, E = PolicyError> = std::result::Result<T, E>;

fn malformed<T>(text: impl Into<Cow<'static, str>>) -> Result<T> {
    Err(PolicyError::Malformed(text.into()))
}

/// Where a policy stands, which decides what its statements must name.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    Bucket(&'a str),
    Session,
}

/// What is asked of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Ids and names by which a policy may name the caller; none when there is no key.
    pub principals: &'a [&'a str],
    /// Without `s3:`.
    pub action: &'a str,
    /// `bucket`, `bucket/key`, or `*` for what is about no bucket.
    pub resource: &'a str,
    pub context: Context<'a>,
}

/// What conditions are compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    pub referer: Option<&'a str>,
    pub user_agent: Option<&'a str>,
    pub secure_transport: bool,
    pub username: Option<&'a str>,
    pub prefix: Option<&'a str>,
    pub delimiter: Option<&'a str>,
}

/// What a policy says about a request. A denial outweighs everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Silent,
    Allowed,
    Denied,
}

/// A policy that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(Vec<Statement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    allows: bool,
    principals: Names,
    actions: Names,
    resources: Names,
    conditions: Vec<Condition>,
}

/// Patterns, or all but those.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    negated: bool,
    patterns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    test: Test,
    negated: bool,
    if_exists: bool,
    key: &'static str,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Equals,
    EqualsIgnoringCase,
    Like,
    Bool,
}

impl Policy {
    /// # Errors
    /// `PolicyError`, with AWS's text.
    pub fn parse(document: &[u8], place: Place<'_>) -> Result<Policy> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return malformed("Policy exceeds the maximum allowed document size.");
        }
        if document.trim_ascii_start().first() != Some(&b'{') {
            return malformed("Policies must be valid JSON and the first byte must be '{'");
        }
        let Ok(Value::Object(mut policy)) = serde_json::from_slice(document) else {
            return malformed("This policy contains invalid Json");
        };
        match policy.remove("Version") {
            None => {}
            Some(Value::String(version)) if VERSIONS.contains(&version.as_str()) => {}
            Some(_) => return malformed("The policy must contain a valid version string"),
        }
        let statements = match policy.remove("Statement") {
            None => return malformed("Missing required field Statement"),
            Some(Value::Array(statements)) if statements.is_empty() => {
                return malformed("Could not parse the policy: Statement is empty!");
            }
            Some(Value::Array(statements)) => statements,
            Some(one @ Value::Object(_)) => vec![one],
            Some(_) => return malformed("This policy contains invalid Json"),
        };
        policy.remove("Id");
        if let Some(unknown) = policy.keys().next() {
            return malformed(format!("Unknown field {unknown}"));
        }
        if statements.len() > STATEMENTS_MAX {
            return malformed("Policy exceeds the maximum allowed document size.");
        }
        statements.into_iter().map(|statement| Statement::read(statement, place)).collect::<Result<_>>().map(Policy)
    }

    /// What this policy says about a request.
    pub fn decide(&self, ask: &Ask<'_>) -> Decision {
        let matching = self.0.iter().filter(|statement| statement.matches(ask));
        matching.fold(Decision::Silent, |decision, statement| match (decision, statement.allows) {
            (Decision::Denied, _) | (_, false) => Decision::Denied,
            (_, true) => Decision::Allowed,
        })
    }

    /// Whether anybody at all is allowed anything.
    pub fn is_public(&self) -> bool {
        self.0.iter().any(|statement| {
            let anybody = statement.principals.negated || statement.principals.patterns.iter().any(|name| name == "*");
            statement.allows && anybody && statement.conditions.is_empty()
        })
    }

    /// Everybody whom the policy names, except by `*`.
    pub fn principals(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .flat_map(|statement| &statement.principals.patterns)
            .map(String::as_str)
            .filter(|name| *name != "*")
    }
}

impl Statement {
    fn read(statement: Value, place: Place<'_>) -> Result<Statement> {
        let Value::Object(mut statement) = statement else { return malformed("This policy contains invalid Json") };
        statement.remove("Sid");
        let allows = match statement.remove("Effect") {
            Some(Value::String(effect)) if effect == "Allow" => true,
            Some(Value::String(effect)) if effect == "Deny" => false,
            Some(Value::String(effect)) => return malformed(format!("Invalid effect: {effect}")),
            _ => return malformed("Missing required field Effect"),
        };
        let mut one_of = |name: &str, not: &str| match (statement.remove(name), statement.remove(not)) {
            (Some(value), None) => Ok(Some((false, value))),
            (None, Some(value)) => Ok(Some((true, value))),
            (None, None) => Ok(None),
            (Some(_), Some(_)) => malformed(format!("Statement has both {name} and {not}")),
        };
        let principals = match (one_of("Principal", "NotPrincipal")?, place) {
            (Some((negated, value)), Place::Bucket(_)) => Names { negated, patterns: principals(value)? },
            (None, Place::Bucket(_)) => return malformed("Missing required field Principal"),
            (None, Place::Session) => Names { negated: false, patterns: vec!["*".to_owned()] },
            (Some(_), Place::Session) => return malformed("Policy document should not specify a principal."),
        };
        let actions = match one_of("Action", "NotAction")? {
            Some((negated, value)) => Names { negated, patterns: actions(value)? },
            None => return malformed("Missing required field Action"),
        };
        let resources = match one_of("Resource", "NotResource")? {
            Some((negated, value)) => Names { negated, patterns: resources(value, place)? },
            None => return malformed("Missing required field Resource"),
        };
        let conditions = match statement.remove("Condition") {
            None => Vec::new(),
            Some(value) => conditions(value, &actions)?,
        };
        if let Some(unknown) = statement.keys().next() {
            return malformed(format!("Unknown field {unknown}"));
        }
        let statement = Statement { allows, principals, actions, resources, conditions };
        if matches!(place, Place::Bucket(_)) {
            statement.check_kinds()?;
        }
        Ok(statement)
    }

    /// Whether each action can be about one of the resources.
    fn check_kinds(&self) -> Result<()> {
        if self.actions.negated || self.resources.negated {
            return Ok(());
        }
        let fits = |about_objects: bool| {
            self.resources.patterns.iter().any(|resource| resource.contains('/') == about_objects)
        };
        let applies =
            |action: &String| action == "*" || known_actions(action).any(|(_, about_objects)| fits(*about_objects));
        if self.actions.patterns.iter().all(applies) {
            return Ok(());
        }
        malformed("Action does not apply to any resource(s) in statement")
    }

    fn matches(&self, ask: &Ask<'_>) -> bool {
        let is_named =
            self.principals.patterns.iter().any(|name| name == "*" || ask.principals.contains(&name.as_str()));
        is_named != self.principals.negated
            && self.actions.match_text(&ask.action.to_ascii_lowercase())
            && self.resources.match_text(ask.resource)
            && self.conditions.iter().all(|condition| condition.holds(&ask.context))
    }
}

impl Names {
    fn match_text(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| glob(pattern, text)) != self.negated
    }
}

impl Condition {
    fn holds(&self, context: &Context<'_>) -> bool {
        let Some(actual) = self.actual(context) else { return self.if_exists || self.negated };
        let equals = |value: &String| match self.test {
            Test::Equals => value == actual,
            Test::EqualsIgnoringCase | Test::Bool => value.eq_ignore_ascii_case(actual),
            Test::Like => glob(value, actual),
        };
        self.values.iter().any(equals) != self.negated
    }

    fn actual<'a>(&self, context: &Context<'a>) -> Option<&'a str> {
        match self.key {
            "aws:Referer" => context.referer,
            "aws:UserAgent" => context.user_agent,
            "aws:SecureTransport" => Some(if context.secure_transport { "true" } else { "false" }),
            "aws:username" => context.username,
            "s3:prefix" => context.prefix,
            "s3:delimiter" => context.delimiter,
            // Every key that was let in is above.
            _ => None,
        }
    }
}

/// A text, or a list of texts, none of them with variables, which are not filled in.
fn texts(value: Value) -> Option<Result<Vec<String>>> {
    let texts: Vec<String> = match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        _ => return None,
    };
    if texts.iter().any(|text| text.contains("${")) {
        return Some(Err(PolicyError::Unserved("variables")));
    }
    (!texts.is_empty() && texts.iter().all(|text| !text.is_empty())).then_some(Ok(texts))
}

fn principals(value: Value) -> Result<Vec<String>> {
    let invalid = || PolicyError::Malformed("Invalid principal in policy".into());
    let value = match value {
        Value::Object(mut kinds) if kinds.len() == 1 => kinds.remove("AWS").ok_or_else(invalid)?,
        other => other,
    };
    let named = texts(value).ok_or_else(invalid)??;
    if named.len() > 1 && named.iter().any(|name| name.contains('*')) {
        return Err(invalid());
    }
    // A user's ARN ends in its name; the account before it is not ours to know.
    let name = |named: String| match named.strip_prefix("arn:aws:iam::").and_then(|arn| arn.split_once(USER_ARN)) {
        Some((_, user)) => user.to_owned(),
        None => named,
    };
    Ok(named.into_iter().map(name).collect())
}

/// In lower case and without `s3:`.
fn actions(value: Value) -> Result<Vec<String>> {
    let invalid = || PolicyError::Malformed("Policy has invalid action".into());
    let named = texts(value).ok_or_else(invalid)??;
    let action = |named: String| {
        if named == "*" {
            return Ok(named);
        }
        let action = named.strip_prefix("s3:").ok_or_else(invalid)?.to_ascii_lowercase();
        if known_actions(&action).next().is_some() { Ok(action) } else { Err(invalid()) }
    };
    named.into_iter().map(action).collect()
}

fn known_actions(pattern: &str) -> impl Iterator<Item = &'static (&'static str, bool)> {
    ACTIONS.iter().filter(move |(name, _)| glob(pattern, &name.to_ascii_lowercase()))
}

/// Without the beginning that all have.
fn resources(value: Value, place: Place<'_>) -> Result<Vec<String>> {
    let invalid = || PolicyError::Malformed("Policy has invalid resource".into());
    let named = texts(value).ok_or_else(invalid)??;
    let resource = |named: String| match (named.strip_prefix(ARN_PREFIX), place) {
        (Some(resource), Place::Bucket(bucket)) => {
            let of_bucket = resource.split('/').next().unwrap_or_default();
            let is_ours = of_bucket == bucket || of_bucket.strip_suffix('*') == Some(bucket);
            if is_ours { Ok(resource.to_owned()) } else { Err(invalid()) }
        }
        (Some(resource), Place::Session) if !resource.is_empty() => Ok(resource.to_owned()),
        (None, Place::Session) if named == "*" => Ok(named),
        _ => Err(invalid()),
    };
    named.into_iter().map(resource).collect()
}

/// Conditions of a statement about `actions`. What is wrong is told before what is not evaluated.
fn conditions(value: Value, actions: &Names) -> Result<Vec<Condition>> {
    let Value::Object(operators) = value else { return malformed("This policy contains invalid Json") };
    let (mut conditions, mut unserved) = (Vec::new(), None);
    for (operator, keys) in operators {
        let test = operator_named(&operator)?;
        let Value::Object(keys) = keys else { return malformed("This policy contains invalid Json") };
        for (key, values) in keys {
            let known = key_named(&key)?;
            if !actions.negated && !actions.patterns.iter().all(|action| key_applies(known, action)) {
                return malformed("Conditions do not apply to combination of actions and resources in statement");
            }
            let Some(values) = condition_values(values) else {
                return malformed("This policy contains invalid Json");
            };
            if known == SOURCE_IP && !values.iter().all(|value| is_network(value)) {
                return malformed("Invalid IP address in Conditions");
            }
            if values.iter().any(|value| value.contains("${")) {
                unserved = Some("variables");
            }
            match test {
                Some((test, negated, if_exists)) if KEYS.contains(&known) => {
                    conditions.push(Condition { test, negated, if_exists, key: known, values });
                }
                _ => unserved = Some("this condition"),
            }
        }
    }
    unserved.map_or(Ok(conditions), |what| Err(PolicyError::Unserved(what)))
}

/// Whether a request for an action that fits the pattern can have a condition key.
fn key_applies(key: &str, action: &str) -> bool {
    let applies = |name: &str| match key {
        "s3:prefix" | "s3:delimiter" | "s3:max-keys" => matches!(name, "ListBucket" | "ListBucketVersions"),
        "s3:x-amz-acl" => matches!(name, "PutObject" | "PutObjectAcl" | "PutBucketAcl"),
        "s3:VersionId" => name.contains("Version"),
        _ => true,
    };
    action == "*" || known_actions(action).any(|(name, _)| applies(name))
}

/// An address, perhaps with the length of a prefix.
fn is_network(text: &str) -> bool {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, length.parse::<u8>().ok()),
        None => (text, Some(0)),
    };
    match address.parse::<core::net::IpAddr>() {
        Ok(address) => length.is_some_and(|length| length <= if address.is_ipv4() { 32 } else { 128 }),
        Err(_) => false,
    }
}

/// A text or a flag, or a list of texts, which may be empty.
fn condition_values(value: Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Bool(flag) => Some(vec![flag.to_string()]),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Test, whether it is negated, and whether a missing key passes; `None` for an operator that is not evaluated.
fn operator_named(operator: &str) -> Result<Option<(Test, bool, bool)>> {
    let (name, if_exists) = match operator.strip_suffix("IfExists") {
        Some(name) => (name, true),
        None => (operator, false),
    };
    let (test, negated) = match name {
        "StringEquals" => (Test::Equals, false),
        "StringNotEquals" => (Test::Equals, true),
        "StringEqualsIgnoreCase" => (Test::EqualsIgnoringCase, false),
        "StringNotEqualsIgnoreCase" => (Test::EqualsIgnoringCase, true),
        "StringLike" => (Test::Like, false),
        "StringNotLike" => (Test::Like, true),
        "Bool" => (Test::Bool, false),
        _ if OPERATORS_UNSERVED.contains(&name) || operator == "Null" => return Ok(None),
        _ => return malformed(format!("Invalid Condition type : {operator}")),
    };
    Ok(Some((test, negated, if_exists)))
}

fn key_named(key: &str) -> Result<&'static str> {
    let known = KEYS.into_iter().chain(KEYS_UNSERVED).find(|known| known.eq_ignore_ascii_case(key));
    known.map_or_else(|| malformed("Policy has an invalid condition key"), Ok)
}

/// Whether `text` is `pattern`, in which `*` stands for any characters and `?` for one.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where to go on when what follows the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(read) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == character => {
                at += 1;
                read += 1;
            }
            _ => match &mut star {
                Some((star_at, star_read)) => {
                    *star_read += 1;
                    (at, read) = (*star_at + 1, *star_read);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests;
