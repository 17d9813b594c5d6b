//! PutBucketLifecycleConfiguration, GetBucketLifecycleConfiguration, DeleteBucketLifecycle.

use super::{
    answer::{self, S3Body},
    checksum,
    error::{Error, Result, Subject},
    front::Call,
    list::timestamp,
    version_error::VersionError,
    xml::{self, Element, Writer},
};
use crate::store::{
    BucketName, Expiration, FilterForm, Lifecycle, LifecycleFilter, LifecycleRule, NoncurrentExpiration, Tags,
};
use http::{Response, StatusCode};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Rules of one bucket.
const RULES_MAX: usize = 1000;
/// Characters of a rule's id.
const ID_CHARS_MAX: usize = 255;
/// Versions no longer current that a rule may keep.
const KEPT_MAX: u32 = 100;
const DAY_MS: i64 = 86_400_000;

fn subject(bucket: &BucketName) -> Subject<'_> {
    Subject { bucket: bucket.as_str(), ..Subject::default() }
}

pub(super) async fn put_bucket_lifecycle_configuration(
    call: &mut Call<'_>,
    bucket: &BucketName,
) -> Result<Response<S3Body>> {
    super::buckets::require_bucket(call, bucket).await?;
    let document = call.document().await?;
    checksum::verify_document(&call.parts.headers, &document)?;
    let lifecycle = configuration(&xml::parse(&document, "LifecycleConfiguration")?)?;
    set(call, bucket, Some(lifecycle), StatusCode::OK).await
}

pub(super) async fn delete_bucket_lifecycle(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    set(call, bucket, None, StatusCode::NO_CONTENT).await
}

async fn set(
    call: &mut Call<'_>,
    bucket: &BucketName,
    lifecycle: Option<Lifecycle>,
    status: StatusCode,
) -> Result<Response<S3Body>> {
    let set = call.front.store.set_lifecycle(bucket, lifecycle).await;
    set.map_err(|error| subject(bucket).error(error))?;
    Ok(answer::empty(status))
}

pub(super) async fn get_bucket_lifecycle_configuration(
    call: &mut Call<'_>,
    bucket: &BucketName,
) -> Result<Response<S3Body>> {
    let found = call.front.store.lifecycle(bucket).await.map_err(|error| subject(bucket).error(error))?;
    let lifecycle = found.ok_or(Error::Version(VersionError::NoLifecycle))?;
    Ok(answer::document(document(&lifecycle)))
}

/// # Errors
/// `Error::MalformedXml`, `Error::InvalidRequest`, `Error::InvalidArgument`; `Error::NotImplemented` for transitions.
fn configuration(document: &Element) -> Result<Lifecycle> {
    let mut rules: Vec<LifecycleRule> = Vec::new();
    for element in &document.children {
        if element.name != "Rule" {
            return Err(Error::MalformedXml);
        }
        if rules.len() == RULES_MAX {
            return Err(Error::invalid_request(
                "The number of lifecycle rules must not exceed the allowed limit of 1000 rules",
            ));
        }
        let rule = rule(element)?;
        if rules.iter().any(|known| known.id == rule.id) {
            let message = "Rule ID must be unique. Found same ID for more than one rule";
            return Err(Error::invalid_argument("ID", rule.id, message));
        }
        rules.push(rule);
    }
    if rules.is_empty() { Err(Error::MalformedXml) } else { Ok(Lifecycle { rules }) }
}

fn rule(element: &Element) -> Result<LifecycleRule> {
    if element.child("Transition").is_some() || element.child("NoncurrentVersionTransition").is_some() {
        return Err(Error::NotImplemented("lifecycle transitions"));
    }
    let id = match element.child_text("ID").map(str::trim).filter(|id| !id.is_empty()) {
        None => uuid::Uuid::new_v4().simple().to_string(),
        Some(id) if id.chars().count() > ID_CHARS_MAX => {
            return Err(Error::invalid_argument("ID", id, "ID length should not exceed allowed limit of 255"));
        }
        Some(id) => id.to_owned(),
    };
    let enabled = match element.child_text("Status").map(str::trim) {
        Some("Enabled") => true,
        Some("Disabled") => false,
        _ => return Err(Error::MalformedXml),
    };
    let rule = LifecycleRule {
        id,
        enabled,
        filter: filter(element)?,
        expiration: element.child("Expiration").map(expiration).transpose()?,
        noncurrent: element.child("NoncurrentVersionExpiration").map(noncurrent).transpose()?,
        upload_days: element.child("AbortIncompleteMultipartUpload").map(upload_days).transpose()?,
    };
    check(&rule)?;
    Ok(rule)
}

/// What rules may not combine.
fn check(rule: &LifecycleRule) -> Result<()> {
    let LifecycleRule { filter, expiration, noncurrent, upload_days, .. } = rule;
    if expiration.is_none() && noncurrent.is_none() && upload_days.is_none() {
        return Err(Error::invalid_request("At least one action needs to be specified in a rule"));
    }
    let sized = filter.larger_than.is_some() || filter.smaller_than.is_some();
    let refused = match (upload_days, expiration) {
        (Some(_), _) if !filter.tags.is_empty() => "AbortIncompleteMultipartUpload cannot be specified with Tags.",
        (Some(_), _) if sized => "AbortIncompleteMultipartUpload cannot be specified with Object Size.",
        (_, Some(Expiration::Markers)) if !filter.tags.is_empty() => {
            "ExpiredObjectDeleteMarker cannot be specified with Tags."
        }
        (_, Some(Expiration::Markers)) if sized => "ExpiredObjectDeleteMarker cannot be specified with Object Size.",
        _ => return Ok(()),
    };
    Err(Error::invalid_request(refused))
}

/// Exactly one of a filter and, as it was done once, a prefix of the rule.
fn filter(rule: &Element) -> Result<LifecycleFilter> {
    let filter = match (rule.child("Filter"), rule.child_text("Prefix")) {
        (None, Some(prefix)) => {
            let prefix = Some(prefix.to_owned());
            LifecycleFilter { form: FilterForm::Prefix, prefix, ..LifecycleFilter::default() }
        }
        (Some(filter), None) => match (filter.child("And"), filter.children.as_slice()) {
            (None, [] | [_]) => predicates(filter, FilterForm::One)?,
            (Some(and), [_]) => predicates(and, FilterForm::And)?,
            _ => return Err(Error::MalformedXml),
        },
        _ => return Err(Error::MalformedXml),
    };
    if let (Some(larger_than), Some(smaller_than)) = (filter.larger_than, filter.smaller_than)
        && larger_than >= smaller_than
    {
        return Err(Error::invalid_request(
            "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.",
        ));
    }
    Ok(filter)
}

fn predicates(element: &Element, form: FilterForm) -> Result<LifecycleFilter> {
    let mut filter = LifecycleFilter { form, ..LifecycleFilter::default() };
    for predicate in &element.children {
        let bytes = || predicate.text.trim().parse::<u64>().map_err(|_| Error::MalformedXml);
        match predicate.name.as_str() {
            "Prefix" if filter.prefix.is_none() => filter.prefix = Some(predicate.text.clone()),
            "ObjectSizeGreaterThan" if filter.larger_than.is_none() => filter.larger_than = Some(bytes()?),
            "ObjectSizeLessThan" if filter.smaller_than.is_none() => filter.smaller_than = Some(bytes()?),
            "Tag" => add_tag(&mut filter.tags, predicate)?,
            _ => return Err(Error::MalformedXml),
        }
    }
    Ok(filter)
}

fn add_tag(tags: &mut Tags, element: &Element) -> Result<()> {
    let (Some(key), Some(value)) = (element.child_text("Key"), element.child_text("Value")) else {
        return Err(Error::MalformedXml);
    };
    if tags.iter().any(|(known, _)| known == key) {
        return Err(Error::invalid_request("Duplicate Tag Keys are not allowed."));
    }
    tags.push((key.to_owned(), value.to_owned()));
    Ok(())
}

fn expiration(element: &Element) -> Result<Expiration> {
    let [child] = element.children.as_slice() else { return Err(Error::MalformedXml) };
    match (child.name.as_str(), child.text.trim()) {
        ("Days", days) => {
            Ok(Expiration::Days(positive("Days", days, "'Days' for Expiration action must be a positive integer")?))
        }
        ("Date", date) => Ok(Expiration::AtMs(midnight_ms(date)?)),
        ("ExpiredObjectDeleteMarker", "true") => Ok(Expiration::Markers),
        _ => Err(Error::MalformedXml),
    }
}

fn midnight_ms(date: &str) -> Result<i64> {
    let moment = OffsetDateTime::parse(date, &Rfc3339).map_err(|_| Error::MalformedXml)?;
    match i64::try_from(moment.unix_timestamp_nanos() / 1_000_000) {
        Ok(ms) if ms.rem_euclid(DAY_MS) == 0 => Ok(ms),
        _ => Err(Error::invalid_argument("Date", date, "'Date' must be at midnight GMT")),
    }
}

fn noncurrent(element: &Element) -> Result<NoncurrentExpiration> {
    let days = element.child_text("NoncurrentDays").ok_or(Error::MalformedXml)?;
    let message = "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer";
    let days = positive("NoncurrentDays", days, message)?;
    let kept = match element.child_text("NewerNoncurrentVersions") {
        None => 0,
        Some(text) => {
            let message = "'NewerNoncurrentVersions' for NoncurrentVersionExpiration action must be a positive integer";
            let kept = positive("NewerNoncurrentVersions", text, message)?;
            if kept > KEPT_MAX {
                let message = "'NewerNoncurrentVersions' must not exceed the allowed limit of 100";
                return Err(Error::invalid_argument("NewerNoncurrentVersions", text, message));
            }
            kept
        }
    };
    Ok(NoncurrentExpiration { days, kept })
}

fn upload_days(element: &Element) -> Result<u32> {
    let days = element.child_text("DaysAfterInitiation").ok_or(Error::MalformedXml)?;
    let message = "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action must be a positive integer";
    positive("DaysAfterInitiation", days, message)
}

fn positive(name: &'static str, text: &str, message: &'static str) -> Result<u32> {
    match text.trim().parse::<i32>().map(u32::try_from) {
        Ok(Ok(number)) if number > 0 => Ok(number),
        Ok(_) => Err(Error::invalid_argument(name, text, message)),
        Err(_) => Err(Error::MalformedXml),
    }
}

fn document(lifecycle: &Lifecycle) -> String {
    xml::document("LifecycleConfiguration", Some(xml::NAMESPACE), |out| {
        for rule in &lifecycle.rules {
            out.element("Rule", |out| write_rule(out, rule));
        }
    })
}

fn write_rule(out: &mut Writer, rule: &LifecycleRule) {
    match rule.expiration {
        None => {}
        Some(Expiration::Days(days)) => out.element("Expiration", |out| out.value("Days", days)),
        Some(Expiration::AtMs(ms)) => out.element("Expiration", |out| out.text("Date", &timestamp(ms))),
        Some(Expiration::Markers) => {
            out.element("Expiration", |out| out.value("ExpiredObjectDeleteMarker", true));
        }
    }
    out.text("ID", &rule.id);
    match rule.filter.form {
        FilterForm::Prefix => out.text("Prefix", rule.filter.prefix.as_deref().unwrap_or_default()),
        FilterForm::One => out.element("Filter", |out| write_predicates(out, &rule.filter)),
        FilterForm::And => {
            out.element("Filter", |out| out.element("And", |out| write_predicates(out, &rule.filter)));
        }
    }
    out.text("Status", if rule.enabled { "Enabled" } else { "Disabled" });
    if let Some(NoncurrentExpiration { days, kept }) = rule.noncurrent {
        out.element("NoncurrentVersionExpiration", |out| {
            out.value("NoncurrentDays", days);
            if kept > 0 {
                out.value("NewerNoncurrentVersions", kept);
            }
        });
    }
    if let Some(days) = rule.upload_days {
        out.element("AbortIncompleteMultipartUpload", |out| out.value("DaysAfterInitiation", days));
    }
}

fn write_predicates(out: &mut Writer, filter: &LifecycleFilter) {
    out.optional("Prefix", filter.prefix.as_deref());
    for (key, value) in &filter.tags {
        out.element("Tag", |out| {
            out.text("Key", key);
            out.text("Value", value);
        });
    }
    if let Some(bytes) = filter.larger_than {
        out.value("ObjectSizeGreaterThan", bytes);
    }
    if let Some(bytes) = filter.smaller_than {
        out.value("ObjectSizeLessThan", bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rules: &str) -> Result<Lifecycle> {
        let document = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
        configuration(&xml::parse(document.as_bytes(), "LifecycleConfiguration")?)
    }

    fn rule(inside: &str) -> String {
        format!("<Rule><ID>r</ID><Status>Enabled</Status>{inside}</Rule>")
    }

    #[test]
    fn what_is_set_is_given_back() {
        for inside in [
            "<Expiration><Days>3</Days></Expiration><ID>a</ID><Filter></Filter><Status>Enabled</Status>",
            "<Expiration><Date>2030-01-01T00:00:00.000Z</Date></Expiration><ID>a</ID><Prefix>p/</Prefix>\
             <Status>Disabled</Status>",
            "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration><ID>a</ID>\
             <Filter><Prefix>p</Prefix></Filter><Status>Enabled</Status>",
            "<ID>a</ID><Filter><And><Prefix>p</Prefix><Tag><Key>k</Key><Value>v</Value></Tag>\
             <ObjectSizeGreaterThan>1</ObjectSizeGreaterThan><ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter>\
             <Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>5</NoncurrentDays>\
             <NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration>",
            "<ID>a</ID><Filter></Filter><Status>Enabled</Status><AbortIncompleteMultipartUpload>\
             <DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
        ] {
            let rules = format!("<Rule>{inside}</Rule>");
            let lifecycle = parse(&rules).unwrap_or_else(|error| panic!("{error}: {inside}"));
            assert!(document(&lifecycle).contains(&rules), "{}", document(&lifecycle));
        }
        let named = parse("<Rule><Status>Enabled</Status><Prefix/><Expiration><Days>1</Days></Expiration></Rule>");
        assert_eq!(named.expect("valid").rules[0].id.len(), 32, "a rule without a name is given one");
    }

    #[test]
    fn bad_rules_are_refused_in_aws_s_words() {
        let days = "<Expiration><Days>1</Days></Expiration>";
        let twice = rule(&format!("<Prefix/>{days}")).repeat(2);
        for (rules, code) in [
            (String::new(), "MalformedXML"),
            ("<Other/>".to_owned(), "MalformedXML"),
            (rule(days), "MalformedXML"),
            (rule(&format!("<Prefix/><Filter/>{days}")), "MalformedXML"),
            (rule(&format!("<Filter><Prefix/><Tag/></Filter>{days}")), "MalformedXML"),
            (rule("<Prefix/>"), "InvalidRequest"),
            (rule("<Prefix/><Expiration/>"), "MalformedXML"),
            (rule("<Prefix/><Expiration><Days>1</Days><Date>2030-01-01T00:00:00Z</Date></Expiration>"), "MalformedXML"),
            (rule("<Prefix/><Expiration><Days>0</Days></Expiration>"), "InvalidArgument"),
            (rule("<Prefix/><Expiration><Days>-1</Days></Expiration>"), "InvalidArgument"),
            (rule("<Prefix/><Expiration><Days>x</Days></Expiration>"), "MalformedXML"),
            (rule("<Prefix/><Expiration><Date>2030-01-01T01:00:00Z</Date></Expiration>"), "InvalidArgument"),
            (rule("<Prefix/><Expiration><Date>soon</Date></Expiration>"), "MalformedXML"),
            (
                rule(
                    "<Prefix/><NoncurrentVersionExpiration><NoncurrentDays>0</NoncurrentDays></NoncurrentVersionExpiration>",
                ),
                "InvalidArgument",
            ),
            (
                rule("<Prefix/><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>"),
                "NotImplemented",
            ),
            (
                rule(
                    "<Filter><Tag><Key>k</Key><Value/></Tag></Filter><AbortIncompleteMultipartUpload>\
                     <DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
                ),
                "InvalidRequest",
            ),
            (
                rule(&format!(
                    "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>5\
                     </ObjectSizeLessThan></And></Filter>{days}"
                )),
                "InvalidRequest",
            ),
            (twice, "InvalidArgument"),
            (format!("<Rule><Status>on</Status><Prefix/>{days}</Rule>"), "MalformedXML"),
            (
                format!("<Rule><ID>{}</ID><Status>Enabled</Status><Prefix/>{days}</Rule>", "i".repeat(256)),
                "InvalidArgument",
            ),
        ] {
            let refused = parse(&rules).map_err(|error| error.describe().code);
            assert_eq!(refused, Err(code), "{rules}");
        }
    }
}
