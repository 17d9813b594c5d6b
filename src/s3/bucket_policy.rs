//! The policy of a bucket: put, shown, deleted, and whether it lets everybody in.

use super::{
    answer::{self, S3Body},
    config::{ConfigError, PublicAccessBlock, Unset, checked_document, put},
    error::{Error, Result},
    front::Call,
    xml,
};
use crate::{
    auth::policy::{Place, Policy, PolicyError},
    store::{BucketName, SettingName},
};
use http::{HeaderValue, Response, StatusCode, header};

pub(super) async fn put_bucket_policy(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let document = checked_document(call).await?;
    let policy = Policy::parse(&document, Place::Bucket(bucket.as_str())).map_err(refused)?;
    for named in policy.principals() {
        if !call.front.credentials.knows_principal(named).await? {
            return Err(ConfigError::MalformedPolicy("Invalid principal in policy".into()).into());
        }
    }
    if policy.is_public() && blocks_public_policies(call, bucket)? {
        return Err(Error::AccessDenied);
    }
    // Checked to be JSON, which is UTF-8.
    let document = String::from_utf8_lossy(&document).into_owned();
    put(call, bucket, SettingName::Policy, document, StatusCode::NO_CONTENT).await
}

fn blocks_public_policies(call: &Call<'_>, bucket: &BucketName) -> Result<bool> {
    let settings = call.front.store.settings(bucket);
    let Some(block) = settings.get(SettingName::PublicAccessBlock) else { return Ok(false) };
    Ok(PublicAccessBlock::parse(block.as_bytes())?.block_public_policy)
}

pub(super) fn get_bucket_policy(call: &Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let settings = call.front.store.settings(bucket);
    let document = settings.get(SettingName::Policy).ok_or(ConfigError::Unset(Unset::Policy))?;
    let mut response = Response::new(S3Body::full(document.as_ref().to_owned()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

pub(super) fn get_bucket_policy_status(call: &Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let settings = call.front.store.settings(bucket);
    let document = settings.get(SettingName::Policy).ok_or(ConfigError::Unset(Unset::Policy))?;
    let policy = Policy::parse(document.as_bytes(), Place::Bucket(bucket.as_str())).map_err(refused)?;
    Ok(answer::document(xml::document("PolicyStatus", Some(xml::NAMESPACE), |out| {
        out.value("IsPublic", policy.is_public());
    })))
}

fn refused(error: PolicyError) -> Error {
    match error {
        PolicyError::Malformed(text) => ConfigError::MalformedPolicy(text).into(),
        PolicyError::Unserved(what) => Error::NotImplemented(what),
    }
}
