//! Operations on what is kept beside bytes and buckets: tags, locks, versioning, lifecycle. Which one a request asks
//! for (pure), what it needs, and who answers it.

use super::{
    answer::S3Body, error::Result, front::Call, lifecycle, object_lock, operation::Object, query::Query, tagging,
    versions,
};
use crate::{
    auth::grants::{Action, Resource},
    store::{BucketName, VersionId},
};
use http::{Method, Response};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Put,
    Delete,
}

/// Of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfBucket {
    Versioning,
    ObjectLock,
    Lifecycle,
}

/// Of one version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfObject {
    Tagging,
    Retention,
    LegalHold,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subresource {
    Bucket { verb: Verb, what: OfBucket, bucket: BucketName },
    Object { verb: Verb, what: OfObject, object: Object, version: Option<VersionId> },
}

impl Subresource {
    /// `None` where the request is about something else, or asks what cannot be asked of this.
    pub fn of_bucket(method: &Method, bucket: &BucketName, query: &Query) -> Option<Subresource> {
        let (what, verbs): (_, &[Verb]) = if query.has("versioning") {
            (OfBucket::Versioning, &[Verb::Get, Verb::Put])
        } else if query.has("object-lock") {
            (OfBucket::ObjectLock, &[Verb::Get, Verb::Put])
        } else if query.has("lifecycle") {
            (OfBucket::Lifecycle, &[Verb::Get, Verb::Put, Verb::Delete])
        } else {
            return None;
        };
        let verb = verb(method).filter(|verb| verbs.contains(verb))?;
        Some(Subresource::Bucket { verb, what, bucket: bucket.clone() })
    }

    /// `None` as for [`Subresource::of_bucket`]. Here an empty version id names the current version.
    ///
    /// # Errors
    /// `Error::InvalidArgument` for a version id that is none.
    pub fn of_object(method: &Method, object: &Object, query: &Query) -> Result<Option<Subresource>> {
        let (what, verbs): (_, &[Verb]) = if query.has("tagging") {
            (OfObject::Tagging, &[Verb::Get, Verb::Put, Verb::Delete])
        } else if query.has("retention") {
            (OfObject::Retention, &[Verb::Get, Verb::Put])
        } else if query.has("legal-hold") {
            (OfObject::LegalHold, &[Verb::Get, Verb::Put])
        } else {
            return Ok(None);
        };
        let Some(verb) = verb(method).filter(|verb| verbs.contains(verb)) else { return Ok(None) };
        let version = query.text("versionId").filter(|id| !id.is_empty());
        let version = version.map(|id| versions::parse(&id)).transpose()?;
        Ok(Some(Subresource::Object { verb, what, object: object.clone(), version }))
    }

    /// The operation's name in the S3 API reference.
    pub fn name(&self) -> &'static str {
        match self {
            Subresource::Bucket { verb, what: OfBucket::Versioning, .. } => {
                pick(*verb, ["GetBucketVersioning", "PutBucketVersioning", ""])
            }
            Subresource::Bucket { verb, what: OfBucket::ObjectLock, .. } => {
                pick(*verb, ["GetObjectLockConfiguration", "PutObjectLockConfiguration", ""])
            }
            Subresource::Bucket { verb, what: OfBucket::Lifecycle, .. } => pick(
                *verb,
                ["GetBucketLifecycleConfiguration", "PutBucketLifecycleConfiguration", "DeleteBucketLifecycle"],
            ),
            Subresource::Object { verb, what: OfObject::Tagging, .. } => {
                pick(*verb, ["GetObjectTagging", "PutObjectTagging", "DeleteObjectTagging"])
            }
            Subresource::Object { verb, what: OfObject::Retention, .. } => {
                pick(*verb, ["GetObjectRetention", "PutObjectRetention", ""])
            }
            Subresource::Object { verb, what: OfObject::LegalHold, .. } => {
                pick(*verb, ["GetObjectLegalHold", "PutObjectLegalHold", ""])
            }
        }
    }

    /// The action that policies know it by.
    pub fn policy_name(&self) -> &'static str {
        match self {
            Subresource::Bucket { verb, what: OfBucket::Versioning, .. } => {
                pick(*verb, ["GetBucketVersioning", "PutBucketVersioning", ""])
            }
            Subresource::Bucket { verb, what: OfBucket::ObjectLock, .. } => {
                pick(*verb, ["GetBucketObjectLockConfiguration", "PutBucketObjectLockConfiguration", ""])
            }
            Subresource::Bucket { verb, what: OfBucket::Lifecycle, .. } => {
                pick(*verb, ["GetLifecycleConfiguration", "PutLifecycleConfiguration", "PutLifecycleConfiguration"])
            }
            Subresource::Object { verb, what: OfObject::Tagging, version: None, .. } => {
                pick(*verb, ["GetObjectTagging", "PutObjectTagging", "DeleteObjectTagging"])
            }
            Subresource::Object { verb, what: OfObject::Tagging, version: Some(_), .. } => {
                pick(*verb, ["GetObjectVersionTagging", "PutObjectVersionTagging", "DeleteObjectVersionTagging"])
            }
            Subresource::Object { what: OfObject::Retention | OfObject::LegalHold, .. } => self.name(),
        }
    }

    /// What it needs. How a bucket works is for those who may configure it, and so is what binds others: locks.
    pub fn required(&self) -> (Action, Resource<'_>) {
        match self {
            Subresource::Bucket { verb: Verb::Get, what: OfBucket::Versioning, bucket } => {
                (Action::HeadBucket, Resource::Bucket(bucket.as_str()))
            }
            Subresource::Bucket { bucket, .. } => (Action::ConfigureBucket, Resource::Bucket(bucket.as_str())),
            Subresource::Object { verb: Verb::Get, object, .. } => (Action::GetObject, object.resource()),
            Subresource::Object { what: OfObject::Tagging, object, .. } => (Action::PutObject, object.resource()),
            Subresource::Object { what: OfObject::Retention | OfObject::LegalHold, object, .. } => {
                (Action::ConfigureBucket, object.resource())
            }
        }
    }
}

fn verb(method: &Method) -> Option<Verb> {
    match *method {
        Method::GET => Some(Verb::Get),
        Method::PUT => Some(Verb::Put),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

fn pick(verb: Verb, [get, put, delete]: [&'static str; 3]) -> &'static str {
    match verb {
        Verb::Get => get,
        Verb::Put => put,
        Verb::Delete => delete,
    }
}

pub(super) async fn answer(call: &mut Call<'_>, subresource: Subresource) -> Result<Response<S3Body>> {
    match subresource {
        Subresource::Bucket { verb, what, bucket } => match (what, verb) {
            (OfBucket::Versioning, Verb::Put) => versions::put_bucket_versioning(call, &bucket).await,
            (OfBucket::Versioning, _) => versions::get_bucket_versioning(call, &bucket).await,
            (OfBucket::ObjectLock, Verb::Put) => object_lock::put_object_lock_configuration(call, &bucket).await,
            (OfBucket::ObjectLock, _) => object_lock::get_object_lock_configuration(call, &bucket).await,
            (OfBucket::Lifecycle, Verb::Put) => lifecycle::put_bucket_lifecycle_configuration(call, &bucket).await,
            (OfBucket::Lifecycle, Verb::Get) => lifecycle::get_bucket_lifecycle_configuration(call, &bucket).await,
            (OfBucket::Lifecycle, Verb::Delete) => lifecycle::delete_bucket_lifecycle(call, &bucket).await,
        },
        Subresource::Object { verb, what, object, version } => match (what, verb) {
            (OfObject::Tagging, Verb::Put) => tagging::put_object_tagging(call, &object, version).await,
            (OfObject::Tagging, Verb::Get) => tagging::get_object_tagging(call, &object, version).await,
            (OfObject::Tagging, Verb::Delete) => tagging::delete_object_tagging(call, &object, version).await,
            (OfObject::Retention, Verb::Put) => object_lock::put_object_retention(call, &object, version).await,
            (OfObject::Retention, _) => object_lock::get_object_retention(call, &object, version).await,
            (OfObject::LegalHold, Verb::Put) => object_lock::put_object_legal_hold(call, &object, version).await,
            (OfObject::LegalHold, _) => object_lock::get_object_legal_hold(call, &object, version).await,
        },
    }
}
