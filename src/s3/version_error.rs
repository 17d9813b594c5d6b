//! What can go wrong with versions, tags, locks and lifecycles, and AWS's code, status and text for each.

use super::{conditions::http_date, headers};
use crate::store::VersionId;
use http::{HeaderMap, StatusCode, header};

#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("The bucket you tried to delete is not empty. You must delete all versions in the bucket.")]
    BucketHasVersions(String),
    /// The key's newest version is a delete marker.
    #[error("The specified key does not exist.")]
    Deleted { key: String, version: VersionId },
    /// The version named has no bytes.
    #[error("The specified method is not allowed against this resource.")]
    DeleteMarker { version: VersionId, last_modified_ms: i64 },
    #[error("Access Denied because object protected by object lock.")]
    Locked,
    #[error("An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.")]
    BucketLocks,
    #[error("Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration")]
    VersioningNotEnabled,
    #[error("The Versioning element must be specified")]
    VersioningNotStated,
    #[error("Bucket is missing ObjectLockConfiguration")]
    LockNotEnabled,
    #[error("Bucket is missing Object Lock Configuration")]
    LockNotConfigured,
    #[error("Object Lock configuration does not exist for this bucket.")]
    NoLockConfiguration,
    #[error("The specified object does not have a ObjectLock configuration.")]
    NotLocked,
    #[error("Request Body is empty")]
    NoDocument,
    #[error("The TagKey you have provided is invalid")]
    TagKey(String),
    #[error("The TagValue you have provided is invalid")]
    TagValue { key: String, value: String },
    #[error("Cannot provide multiple Tags with the same key")]
    TagTwice(String),
    #[error("System tags cannot be added/updated by requester")]
    SystemTag(String),
    #[error("Object tags cannot be greater than 10")]
    TooManyTags,
    #[error("The lifecycle configuration does not exist")]
    NoLifecycle,
}

impl VersionError {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BucketHasVersions(_) | Self::BucketLocks | Self::VersioningNotEnabled => StatusCode::CONFLICT,
            Self::Deleted { .. } | Self::NoLockConfiguration | Self::NotLocked | Self::NoLifecycle => {
                StatusCode::NOT_FOUND
            }
            Self::DeleteMarker { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Locked => StatusCode::FORBIDDEN,
            Self::VersioningNotStated
            | Self::NoDocument
            | Self::LockNotEnabled
            | Self::LockNotConfigured
            | Self::TagKey(_)
            | Self::TagValue { .. }
            | Self::TagTwice(_)
            | Self::SystemTag(_)
            | Self::TooManyTags => StatusCode::BAD_REQUEST,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::BucketHasVersions(_) => "BucketNotEmpty",
            Self::Deleted { .. } => "NoSuchKey",
            Self::DeleteMarker { .. } => "MethodNotAllowed",
            Self::Locked => "AccessDenied",
            Self::BucketLocks | Self::VersioningNotEnabled => "InvalidBucketState",
            Self::VersioningNotStated => "IllegalVersioningConfigurationException",
            Self::LockNotEnabled | Self::LockNotConfigured => "InvalidRequest",
            Self::NoLockConfiguration => "ObjectLockConfigurationNotFoundError",
            Self::NoDocument => "MissingRequestBodyError",
            Self::NotLocked => "NoSuchObjectLockConfiguration",
            Self::TagKey(_) | Self::TagValue { .. } | Self::TagTwice(_) | Self::SystemTag(_) => "InvalidTag",
            Self::TooManyTags => "BadRequest",
            Self::NoLifecycle => "NoSuchLifecycleConfiguration",
        }
    }

    pub fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::BucketHasVersions(bucket) => vec![("BucketName", bucket.clone())],
            Self::Deleted { key, .. } => vec![("Key", key.clone())],
            Self::DeleteMarker { .. } => vec![("ResourceType", "DeleteMarker".to_owned())],
            Self::TagKey(key) | Self::TagTwice(key) | Self::SystemTag(key) => vec![("TagKey", key.clone())],
            Self::TagValue { key, value } => vec![("TagKey", key.clone()), ("TagValue", value.clone())],
            _ => Vec::new(),
        }
    }

    /// Adds what the answer says of a marker beside its document.
    pub fn write_headers(&self, answer: &mut HeaderMap) {
        let version = match self {
            Self::Deleted { version, .. } => version,
            Self::DeleteMarker { version, last_modified_ms } => {
                headers::put(answer, header::ALLOW, "DELETE");
                headers::put(answer, header::LAST_MODIFIED, &http_date(*last_modified_ms));
                version
            }
            _ => return,
        };
        headers::put(answer, super::versions::DELETE_MARKER, "true");
        headers::put(answer, super::versions::VERSION_ID, version.as_str());
    }
}
