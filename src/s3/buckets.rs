//! Operations on buckets.

use super::{
    answer::{self, S3Body},
    bucket_tags::Tags,
    config::{ConfigError, Ownership},
    error::{Error, Result, Subject},
    front::Call,
    headers,
    list::timestamp,
    xml,
};
use crate::store::{BucketName, SettingName};
use http::{HeaderMap, HeaderName, Response, StatusCode, header};

const REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
const ARN: HeaderName = HeaderName::from_static("x-amz-bucket-arn");
/// What S3 calls its first region where it names regions, and an empty name.
const FIRST_REGION: &str = "us-east-1";

fn subject(bucket: &BucketName) -> Subject<'_> {
    Subject { bucket: bucket.as_str(), ..Subject::default() }
}

/// # Errors
/// `Error::NoSuchBucket`.
pub(super) async fn require_bucket(call: &mut Call<'_>, bucket: &BucketName) -> Result<()> {
    match call.front.store.bucket_exists(bucket).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::NoSuchBucket(bucket.as_str().to_owned())),
        Err(error) => Err(subject(bucket).error(error)),
    }
}

pub(super) async fn list_buckets(
    call: &mut Call<'_>,
    prefix: &str,
    after: Option<String>,
    limit: Option<usize>,
) -> Result<Response<S3Body>> {
    let all = call.front.store.list_buckets().await.map_err(|error| Subject::default().error(error))?;
    let after = after.unwrap_or_default();
    let found = all.into_iter().filter(|(name, _)| name.as_str().starts_with(prefix) && name.as_str() > &*after);
    let mut found: Vec<(BucketName, i64)> = found.collect();
    let truncated = limit.is_some_and(|limit| found.len() > limit);
    if let Some(limit) = limit {
        found.truncate(limit);
    }
    let document = xml::document("ListAllMyBucketsResult", Some(xml::NAMESPACE), |out| {
        out.element("Owner", |out| out.text("ID", call.owner()));
        out.element("Buckets", |out| {
            for (name, created_ms) in &found {
                out.element("Bucket", |out| {
                    out.text("Name", name.as_str());
                    out.text("CreationDate", &timestamp(*created_ms));
                    out.text("BucketRegion", &call.front.region);
                });
            }
        });
        if truncated && let Some((last, _)) = found.last() {
            out.text("ContinuationToken", last.as_str());
        }
        if !prefix.is_empty() {
            out.text("Prefix", prefix);
        }
    });
    Ok(answer::document(document))
}

pub(super) async fn create_bucket(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    let ownership = asked_ownership(sent)?;
    match (headers::check_acl(sent), ownership) {
        (Err(Error::AccessControlListNotSupported), Some(Ownership::BucketOwnerEnforced)) => {
            return Err(ConfigError::AclWithOwnership.into());
        }
        (checked, _) => checked?,
    }
    if headers::text(sent, "x-amz-bucket-object-lock-enabled")?.is_some_and(|on| on.eq_ignore_ascii_case("true")) {
        return Err(Error::HeaderNotImplemented { header: "x-amz-bucket-object-lock-enabled" });
    }
    let document = call.document().await?;
    let tags = asked_tags(&document, &call.front.region)?;
    let mut settings = Vec::new();
    if let Some(ownership) = ownership {
        settings.push((SettingName::Ownership, ownership.as_str().to_owned()));
    }
    if !tags.is_empty() {
        settings.push((SettingName::Tagging, tags.document()));
    }
    let created = call.front.store.create_bucket_with(bucket, settings, call.now_ms).await;
    created.map_err(|error| subject(bucket).error(error))?;
    let mut response = answer::empty(StatusCode::OK);
    headers::put(response.headers_mut(), header::LOCATION, &format!("/{}", bucket.as_str()));
    headers::put(response.headers_mut(), ARN, &format!("arn:aws:s3:::{}", bucket.as_str()));
    Ok(response)
}

fn asked_ownership(sent: &HeaderMap) -> Result<Option<Ownership>> {
    let header = "x-amz-object-ownership";
    let Some(name) = headers::text(sent, header)?.filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = Ownership::named(name);
    let unknown = || Error::invalid_argument(header, name, format!("Invalid x-amz-object-ownership header: {name}"));
    found.ok_or_else(unknown).map(Some)
}

/// The tags of a bucket to be made. It can only be made here: its configuration may name this region or none.
fn asked_tags(document: &[u8], region: &str) -> Result<Tags> {
    if document.is_empty() {
        return Ok(Tags::default());
    }
    let configuration = xml::parse(document, "CreateBucketConfiguration")?;
    match configuration.child_text("LocationConstraint") {
        None | Some("") => {}
        Some(place) if place == region && place != FIRST_REGION => {}
        Some(place) => return Err(Error::InvalidLocationConstraint(place.to_owned())),
    }
    configuration.child("Tags").map_or_else(|| Ok(Tags::default()), Tags::read)
}

pub(super) async fn head_bucket(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    require_bucket(call, bucket).await?;
    let mut response = answer::empty(StatusCode::OK);
    headers::put(response.headers_mut(), REGION, &call.front.region);
    Ok(response)
}

pub(super) async fn delete_bucket(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    call.front.store.delete_bucket(bucket).await.map_err(|error| subject(bucket).error(error))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

pub(super) async fn get_bucket_location(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    require_bucket(call, bucket).await?;
    let region = if call.front.region == FIRST_REGION { "" } else { &call.front.region };
    Ok(answer::document(xml::document_of_text("LocationConstraint", Some(xml::NAMESPACE), region)))
}

/// No bucket was ever versioned, which S3 answers with an empty configuration.
pub(super) async fn get_bucket_versioning(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    require_bucket(call, bucket).await?;
    Ok(answer::document(xml::document("VersioningConfiguration", Some(xml::NAMESPACE), |_| {})))
}
