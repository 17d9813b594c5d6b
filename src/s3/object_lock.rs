//! Object lock: PutObjectLockConfiguration, GetObjectLockConfiguration, PutObjectRetention, GetObjectRetention,
//! PutObjectLegalHold, GetObjectLegalHold, and the headers that lock what a write makes.

use super::{
    answer::{self, S3Body},
    checksum,
    error::{Error, Result, Subject},
    front::Call,
    headers,
    list::timestamp,
    operation::Object,
    version_error::VersionError,
    versions,
    xml::{self, Element},
};
use crate::{
    auth::grants::{Action, Resource},
    store::{
        self, BucketName, DefaultRetention, Governance, LockConfiguration, ObjectInfo, ObjectLock, Retention,
        RetentionMode, RetentionPeriod, VersionId,
    },
};
use http::{HeaderMap, HeaderName, Response, StatusCode};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

const MODE: HeaderName = HeaderName::from_static("x-amz-object-lock-mode");
const RETAIN_UNTIL: HeaderName = HeaderName::from_static("x-amz-object-lock-retain-until-date");
const LEGAL_HOLD: HeaderName = HeaderName::from_static("x-amz-object-lock-legal-hold");

/// The longest default retention.
const DEFAULT_DAYS_MAX: u32 = 36_500;
const DEFAULT_YEARS_MAX: u32 = 100;

/// The lock that a write's headers ask for.
///
/// # Errors
/// `Error::InvalidArgument`.
pub fn of_headers(sent: &HeaderMap, now_ms: i64) -> Result<ObjectLock> {
    let mode = headers::text(sent, "x-amz-object-lock-mode")?.filter(|text| !text.is_empty());
    let until = headers::text(sent, "x-amz-object-lock-retain-until-date")?.filter(|text| !text.is_empty());
    let hold = headers::text(sent, "x-amz-object-lock-legal-hold")?.filter(|text| !text.is_empty());
    let both = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.";
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(_), None) => return Err(Error::invalid_argument("x-amz-object-lock-retain-until-date", "", both)),
        (None, Some(_)) => return Err(Error::invalid_argument("x-amz-object-lock-mode", "", both)),
        (Some(mode), Some(until)) => {
            let unknown = || Error::invalid_argument("x-amz-object-lock-mode", mode, "Unknown wormMode directive.");
            Some(Retention { mode: parse_mode(mode).ok_or_else(unknown)?, until_ms: parse_until(until, now_ms)? })
        }
    };
    let legal_hold = match hold {
        None => None,
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        Some(other) => {
            let message = "Legal Hold must be either of 'ON' or 'OFF'";
            return Err(Error::invalid_argument("x-amz-object-lock-legal-hold", other, message));
        }
    };
    Ok(ObjectLock { retention, legal_hold })
}

fn parse_mode(text: &str) -> Option<RetentionMode> {
    match text {
        "GOVERNANCE" => Some(RetentionMode::Governance),
        "COMPLIANCE" => Some(RetentionMode::Compliance),
        _ => None,
    }
}

fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => "GOVERNANCE",
        RetentionMode::Compliance => "COMPLIANCE",
    }
}

/// A moment to come. Milliseconds since the epoch.
fn parse_until(text: &str, now_ms: i64) -> Result<i64> {
    let invalid = |message| Error::invalid_argument("x-amz-object-lock-retain-until-date", text, message);
    let moment = OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| invalid("The retain until date must be provided in ISO 8601 format"))?;
    match i64::try_from(moment.unix_timestamp_nanos() / 1_000_000) {
        Ok(until_ms) if until_ms > now_ms => Ok(until_ms),
        _ => Err(invalid("The retain until date must be in the future!")),
    }
}

/// Refuses a lock before a body is read; what counts is checked when the version is made.
///
/// # Errors
/// `VersionError::LockNotEnabled`, `Error::NoSuchBucket`.
pub(super) async fn require_enabled(call: &mut Call<'_>, bucket: &BucketName) -> Result<()> {
    match versions::bucket_state(call, bucket).await?.lock {
        Some(_) => Ok(()),
        None => Err(Error::Version(VersionError::LockNotEnabled)),
    }
}

/// Whether governance retention binds this request: only who may lift it can set it aside.
///
/// # Errors
/// `Error::InvalidArgument`.
pub(super) fn governance(call: &Call<'_>, object: Resource<'_>) -> Result<Governance> {
    let asked = headers::text(&call.parts.headers, "x-amz-bypass-governance-retention")?;
    let bypasses = asked.is_some_and(|text| text.eq_ignore_ascii_case("true"))
        && call.require_named("BypassGovernanceRetention", Action::ConfigureBucket, object).is_ok();
    Ok(if bypasses { Governance::Bypassed } else { Governance::Obeyed })
}

/// Whether the caller may set what a write asks to be kept with it: policies name each by itself.
///
/// # Errors
/// `Error::AccessDenied`.
pub(super) fn require_kept(
    call: &Call<'_>,
    object: &Object,
    tags: &[(String, String)],
    lock: &ObjectLock,
) -> Result<()> {
    if !tags.is_empty() {
        call.require_named("PutObjectTagging", Action::PutObject, object.resource())?;
    }
    if lock.retention.is_some() {
        call.require_named("PutObjectRetention", Action::ConfigureBucket, object.resource())?;
    }
    if lock.legal_hold.is_some() {
        call.require_named("PutObjectLegalHold", Action::ConfigureBucket, object.resource())?;
    }
    Ok(())
}

/// Says how the version is locked that is read.
pub fn write_lock(answer: &mut HeaderMap, lock: &ObjectLock) {
    if let Some(Retention { mode, until_ms }) = lock.retention {
        headers::put(answer, MODE, mode_name(mode));
        headers::put(answer, RETAIN_UNTIL, &timestamp(until_ms));
    }
    if let Some(held) = lock.legal_hold {
        headers::put(answer, LEGAL_HOLD, hold_name(held));
    }
}

fn hold_name(held: bool) -> &'static str {
    if held { "ON" } else { "OFF" }
}

/// The document of a request, of which S3 says by its own name when it is missing.
async fn document(call: &mut Call<'_>, root: &'static str) -> Result<Option<Element>> {
    let document = call.document().await?;
    checksum::verify_document(&call.parts.headers, &document)?;
    if document.is_empty() { Ok(None) } else { xml::parse(&document, root).map(Some) }
}

pub(super) async fn put_object_lock_configuration(
    call: &mut Call<'_>,
    bucket: &BucketName,
) -> Result<Response<S3Body>> {
    super::buckets::require_bucket(call, bucket).await?;
    let document = document(call, "ObjectLockConfiguration").await?;
    let document = document.ok_or(Error::Version(VersionError::NoDocument))?;
    let configuration = configuration(&document)?;
    let set = call.front.store.set_lock_configuration(bucket, configuration).await;
    set.map_err(|error| Subject { bucket: bucket.as_str(), ..Subject::default() }.error(error))?;
    Ok(answer::empty(StatusCode::OK))
}

/// # Errors
/// `Error::MalformedXml`, `Error::InvalidArgument`.
fn configuration(document: &Element) -> Result<LockConfiguration> {
    if document.child_text("ObjectLockEnabled").map(str::trim) != Some("Enabled") {
        return Err(Error::MalformedXml);
    }
    let Some(rule) = document.child("Rule") else { return Ok(LockConfiguration::default()) };
    let retention = rule.child("DefaultRetention").ok_or(Error::MalformedXml)?;
    let mode = retention.child_text("Mode").and_then(|mode| parse_mode(mode.trim())).ok_or(Error::MalformedXml)?;
    let period = match (retention.child_text("Days"), retention.child_text("Years")) {
        (Some(days), None) => RetentionPeriod::Days(period("Days", days, DEFAULT_DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(period("Years", years, DEFAULT_YEARS_MAX)?),
        _ => return Err(Error::MalformedXml),
    };
    Ok(LockConfiguration { default: Some(DefaultRetention { mode, period }) })
}

fn period(name: &'static str, text: &str, most: u32) -> Result<u32> {
    let number: i64 = text.trim().parse().map_err(|_| Error::MalformedXml)?;
    match u32::try_from(number) {
        Err(_) if number > 0 => Err(Error::invalid_argument(name, text, "Default retention period too large.")),
        Err(_) | Ok(0) => {
            let message = "Default retention period must be a positive integer value.";
            Err(Error::invalid_argument(name, text, message))
        }
        Ok(number) if number > most => Err(Error::invalid_argument(name, text, "Default retention period too large.")),
        Ok(number) => Ok(number),
    }
}

pub(super) async fn get_object_lock_configuration(
    call: &mut Call<'_>,
    bucket: &BucketName,
) -> Result<Response<S3Body>> {
    let state = versions::bucket_state(call, bucket).await?;
    let configuration = state.lock.ok_or(Error::Version(VersionError::NoLockConfiguration))?;
    let document = xml::document("ObjectLockConfiguration", Some(xml::NAMESPACE), |out| {
        out.text("ObjectLockEnabled", "Enabled");
        let Some(DefaultRetention { mode, period }) = configuration.default else { return };
        out.element("Rule", |out| {
            out.element("DefaultRetention", |out| {
                out.text("Mode", mode_name(mode));
                match period {
                    RetentionPeriod::Days(days) => out.value("Days", days),
                    RetentionPeriod::Years(years) => out.value("Years", years),
                }
            });
        });
    });
    Ok(answer::document(document))
}

/// What the store's outcomes mean here, where S3 words a bucket without lock in its own way.
fn lock_error(object: &Object, version: Option<&VersionId>, error: store::Error) -> Error {
    match error {
        store::Error::LockNotEnabled => Error::Version(VersionError::LockNotConfigured),
        error => Subject { version, ..object.subject() }.error(error),
    }
}

pub(super) async fn put_object_retention(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    super::buckets::require_bucket(call, &object.bucket).await?;
    let document = document(call, "Retention").await?.ok_or(Error::MalformedXml)?;
    let retention = match (document.child_text("Mode"), document.child_text("RetainUntilDate")) {
        (None, None) => None,
        (Some(mode), Some(until)) => Some(Retention {
            mode: parse_mode(mode.trim()).ok_or(Error::MalformedXml)?,
            until_ms: parse_until(until.trim(), call.now_ms)?,
        }),
        _ => return Err(Error::MalformedXml),
    };
    let governance = governance(call, object.resource())?;
    let Object { bucket, key } = object;
    let set = call.front.store.set_retention(bucket, key, version.clone(), retention, governance, call.now_ms).await;
    set.map_err(|error| lock_error(object, version.as_ref(), error))?;
    Ok(answer::empty(StatusCode::OK))
}

pub(super) async fn get_object_retention(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    let info = locked(call, object, version).await?;
    let Retention { mode, until_ms } = info.lock.retention.ok_or(Error::Version(VersionError::NotLocked))?;
    let document = xml::document("Retention", Some(xml::NAMESPACE), |out| {
        out.text("Mode", mode_name(mode));
        out.text("RetainUntilDate", &timestamp(until_ms));
    });
    Ok(answer::document(document))
}

/// The version whose lock is asked for, of a bucket that has locks.
async fn locked(call: &mut Call<'_>, object: &Object, version: Option<VersionId>) -> Result<ObjectInfo> {
    let found = call.front.store.head_version(&object.bucket, &object.key, version.clone()).await;
    let found = found.map_err(|error| lock_error(object, version.as_ref(), error))?;
    match versions::bucket_state(call, &object.bucket).await?.lock {
        Some(_) => Ok(found),
        None => Err(Error::Version(VersionError::LockNotConfigured)),
    }
}

pub(super) async fn put_object_legal_hold(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    super::buckets::require_bucket(call, &object.bucket).await?;
    let document = document(call, "LegalHold").await?.ok_or(Error::MalformedXml)?;
    let held = match document.child_text("Status").map(str::trim) {
        Some("ON") => true,
        Some("OFF") => false,
        _ => return Err(Error::MalformedXml),
    };
    let set = call.front.store.set_legal_hold(&object.bucket, &object.key, version.clone(), held).await;
    set.map_err(|error| lock_error(object, version.as_ref(), error))?;
    Ok(answer::empty(StatusCode::OK))
}

pub(super) async fn get_object_legal_hold(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    let info = locked(call, object, version).await?;
    let held = info.lock.legal_hold.ok_or(Error::Version(VersionError::NotLocked))?;
    let document = xml::document("LegalHold", Some(xml::NAMESPACE), |out| out.text("Status", hold_name(held)));
    Ok(answer::document(document))
}
