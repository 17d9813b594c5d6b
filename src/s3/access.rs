//! Whether a caller may do what a request asks for: its own rights, what its session leaves of them, and the bucket's policy.
//!
//! A key does what its rights allow unless the bucket's policy denies it; the root key is asked nothing, so that a policy
//! can always be taken back. Who has no key may do what a policy allows everybody.

use super::{
    config::{ConfigCall, PublicAccessBlock},
    error::{Error, Result},
    front::Call,
    headers,
    operation::Operation,
    query::Query,
};
use crate::{
    auth::{
        grants::{Action, Authority, Resource},
        policy::{Ask, Context, Decision, Place, Policy},
    },
    store::{BucketName, BucketSettings, SettingName, VersionId},
};
use std::sync::Arc;

impl Call<'_> {
    /// Whether the caller may do `action` on `resource`; policies know the operation by `name`.
    ///
    /// # Errors
    /// `Error::AccessDenied`.
    pub(super) fn require_named(&self, name: &str, action: Action, resource: Resource<'_>) -> Result<()> {
        if self.front.credentials.is_root(&self.caller) {
            return Ok(());
        }
        let has_right = match &self.caller.authority {
            Authority::Anonymous => false,
            Authority::Session(policy) => {
                action != Action::Catalog && self.ask(policy, name, resource)? == Decision::Allowed
            }
            // To remove a version for ever is more than to delete, as in AWS's policies.
            Authority::Scoped(_) if name == delete_name(Some(&VersionId::Null)) => false,
            Authority::Full | Authority::Scoped(_) => self.caller.may(action, resource),
        };
        let decision = self.bucket_decision(name, resource)?;
        let anonymous = self.caller.authority == Authority::Anonymous;
        // Whatever a policy says: what lets others in is not changed by somebody without a key.
        if anonymous && action == Action::ConfigureBucket && !name.starts_with("Get") {
            return Err(Error::AccessDenied);
        }
        match decision {
            Decision::Denied => Err(Error::AccessDenied),
            Decision::Allowed if anonymous => Ok(()),
            Decision::Allowed | Decision::Silent if has_right => Ok(()),
            Decision::Allowed | Decision::Silent => Err(Error::AccessDenied),
        }
    }

    /// What the policy of the resource's bucket says.
    fn bucket_decision(&self, name: &str, resource: Resource<'_>) -> Result<Decision> {
        let (Resource::Bucket(bucket) | Resource::Object { bucket, .. }) = resource else {
            return Ok(Decision::Silent);
        };
        let Some(policy) = self.bucket_policy(bucket)? else { return Ok(Decision::Silent) };
        let decision = self.ask(&policy.policy, name, resource)?;
        // Rights of those who have a key are not public access.
        let ignored = policy.restricted && self.caller.authority == Authority::Anonymous;
        Ok(if ignored && decision == Decision::Allowed { Decision::Silent } else { decision })
    }

    /// The policy of a bucket, read once for all keys of a request.
    fn bucket_policy(&self, bucket: &str) -> Result<Option<Arc<BucketPolicy>>> {
        if let Some((known, policy)) = &*self.policy.borrow()
            && known == bucket
        {
            return Ok(policy.clone());
        }
        let policy = match BucketName::parse(bucket) {
            None => None,
            Some(name) => BucketPolicy::of(bucket, &self.front.store.settings(&name))?.map(Arc::new),
        };
        *self.policy.borrow_mut() = Some((bucket.to_owned(), policy.clone()));
        Ok(policy)
    }

    fn ask(&self, policy: &Policy, name: &str, resource: Resource<'_>) -> Result<Decision> {
        let sent = &self.parts.headers;
        let query = Query::parse(self.parts.uri.query().unwrap_or(""))?;
        let (prefix, delimiter) = (query.text("prefix"), query.text("delimiter"));
        let has_key = self.caller.authority != Authority::Anonymous;
        let context = Context {
            referer: headers::text(sent, "referer")?,
            user_agent: headers::text(sent, "user-agent")?,
            secure_transport: false,
            username: has_key.then_some(&*self.caller.principal),
            prefix: prefix.as_deref(),
            delimiter: delimiter.as_deref(),
        };
        let whole;
        let resource = match resource {
            Resource::Server => "*",
            Resource::Bucket(bucket) => bucket,
            // What is listed is the bucket, by a prefix.
            Resource::Object { bucket, .. } if name.starts_with("ListBucket") => bucket,
            Resource::Object { bucket, key } => {
                whole = format!("{bucket}/{key}");
                &whole
            }
        };
        let principals = [&*self.caller.access_key_id, &*self.caller.principal];
        let principals = if has_key { &principals[..] } else { &[] };
        Ok(policy.decide(&Ask { principals, action: name, resource, context }))
    }
}

/// A bucket's policy, and whether everybody's access by it is switched off.
pub(super) struct BucketPolicy {
    policy: Policy,
    restricted: bool,
}

impl BucketPolicy {
    fn of(bucket: &str, settings: &BucketSettings) -> Result<Option<BucketPolicy>> {
        let Some(document) = settings.get(SettingName::Policy) else { return Ok(None) };
        // Checked when it was put: one that cannot be read any more lets nobody in.
        let policy = Policy::parse(document.as_bytes(), Place::Bucket(bucket)).map_err(|_| Error::AccessDenied)?;
        let block = settings.get(SettingName::PublicAccessBlock);
        let block =
            block.map(|document| PublicAccessBlock::parse(document.as_bytes())).transpose()?.unwrap_or_default();
        Ok(Some(BucketPolicy { restricted: block.restrict_public_buckets && policy.is_public(), policy }))
    }
}

/// The action that policies know an operation by.
pub(super) fn policy_name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Preflight { .. } | Operation::NotImplemented(_) => "",
        Operation::ListBuckets { .. } => "ListAllMyBuckets",
        Operation::CreateBucket { .. } => "CreateBucket",
        Operation::DeleteBucket { .. } => "DeleteBucket",
        Operation::GetBucketLocation { .. } => "GetBucketLocation",
        Operation::Subresource(subresource) => subresource.policy_name(),
        Operation::Configure { call, .. } => config_name(*call),
        Operation::HeadBucket { .. } | Operation::ListObjects { .. } | Operation::ListObjectsV2 { .. } => "ListBucket",
        Operation::ListObjectVersions { .. } => "ListBucketVersions",
        Operation::ListMultipartUploads { .. } => "ListBucketMultipartUploads",
        Operation::GetObject { version, .. } | Operation::HeadObject { version, .. } => read_name(version.as_ref()),
        Operation::GetObjectAttributes { version: None, .. } => "GetObjectAttributes",
        Operation::GetObjectAttributes { version: Some(_), .. } => "GetObjectVersionAttributes",
        Operation::PutObject { .. }
        | Operation::PostObject { .. }
        | Operation::CopyObject { .. }
        | Operation::CreateMultipartUpload { .. }
        | Operation::UploadPart(_)
        | Operation::UploadPartCopy(_)
        | Operation::CompleteMultipartUpload { .. } => "PutObject",
        Operation::DeleteObject { version, .. } => delete_name(version.as_ref()),
        // Asked for each object again, under its own name.
        Operation::DeleteObjects { .. } => "DeleteObject",
        Operation::AbortMultipartUpload { .. } => "AbortMultipartUpload",
        Operation::ListParts { .. } => "ListMultipartUploadParts",
        Operation::SecurityTokens => "",
    }
}

/// What policies call a read of the current object, or of one version.
pub(super) fn read_name(version: Option<&VersionId>) -> &'static str {
    if version.is_some() { "GetObjectVersion" } else { "GetObject" }
}

/// The same of a deletion.
pub(super) fn delete_name(version: Option<&VersionId>) -> &'static str {
    if version.is_some() { "DeleteObjectVersion" } else { "DeleteObject" }
}

fn config_name(call: ConfigCall) -> &'static str {
    match call {
        ConfigCall::GetCors => "GetBucketCORS",
        ConfigCall::PutCors | ConfigCall::DeleteCors => "PutBucketCORS",
        ConfigCall::GetTagging => "GetBucketTagging",
        ConfigCall::PutTagging | ConfigCall::DeleteTagging => "PutBucketTagging",
        ConfigCall::GetPolicy => "GetBucketPolicy",
        ConfigCall::PutPolicy => "PutBucketPolicy",
        ConfigCall::DeletePolicy => "DeleteBucketPolicy",
        ConfigCall::GetPolicyStatus => "GetBucketPolicyStatus",
        ConfigCall::GetOwnership => "GetBucketOwnershipControls",
        ConfigCall::PutOwnership | ConfigCall::DeleteOwnership => "PutBucketOwnershipControls",
        ConfigCall::GetPublicAccessBlock => "GetBucketPublicAccessBlock",
        ConfigCall::PutPublicAccessBlock | ConfigCall::DeletePublicAccessBlock => "PutBucketPublicAccessBlock",
        ConfigCall::GetAcl => "GetBucketAcl",
        ConfigCall::PutAcl => "PutBucketAcl",
        ConfigCall::GetAccelerate => "GetAccelerateConfiguration",
        ConfigCall::GetEncryption => "GetEncryptionConfiguration",
        ConfigCall::GetLogging => "GetBucketLogging",
        ConfigCall::GetNotification => "GetBucketNotification",
        ConfigCall::GetReplication => "GetReplicationConfiguration",
        ConfigCall::GetRequestPayment => "GetBucketRequestPayment",
        ConfigCall::GetWebsite => "GetBucketWebsite",
    }
}
