//! What buckets are configured with: which calls there are, what they read, store and answer.
//!
//! Documents are checked here and kept by the store. What cannot be configured answers as AWS does for a bucket that
//! never was, where clients ask for it on their own; setting it is `NotImplemented`.

use super::{
    answer::{self, S3Body},
    bucket_policy,
    bucket_tags::Tags,
    buckets::require_bucket,
    checksum,
    cors::Rules,
    error::{Answer, Error, Result, Subject},
    front::Call,
    headers,
    query::Query,
    xml,
};
use crate::store::{BucketName, SettingName};
use http::{Method, Response, StatusCode};
use std::borrow::Cow;

/// A call that reads or changes one setting of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigCall {
    GetCors,
    PutCors,
    DeleteCors,
    GetTagging,
    PutTagging,
    DeleteTagging,
    GetPolicy,
    PutPolicy,
    DeletePolicy,
    GetPolicyStatus,
    GetOwnership,
    PutOwnership,
    DeleteOwnership,
    GetPublicAccessBlock,
    PutPublicAccessBlock,
    DeletePublicAccessBlock,
    GetAcl,
    PutAcl,
    GetAccelerate,
    GetEncryption,
    GetLogging,
    GetNotification,
    GetReplication,
    GetRequestPayment,
    GetWebsite,
}

/// Sub-resource, method and name of each call.
const CALLS: [(&str, Method, ConfigCall, &str); 25] = [
    ("cors", Method::GET, ConfigCall::GetCors, "GetBucketCors"),
    ("cors", Method::PUT, ConfigCall::PutCors, "PutBucketCors"),
    ("cors", Method::DELETE, ConfigCall::DeleteCors, "DeleteBucketCors"),
    ("tagging", Method::GET, ConfigCall::GetTagging, "GetBucketTagging"),
    ("tagging", Method::PUT, ConfigCall::PutTagging, "PutBucketTagging"),
    ("tagging", Method::DELETE, ConfigCall::DeleteTagging, "DeleteBucketTagging"),
    ("policy", Method::GET, ConfigCall::GetPolicy, "GetBucketPolicy"),
    ("policy", Method::PUT, ConfigCall::PutPolicy, "PutBucketPolicy"),
    ("policy", Method::DELETE, ConfigCall::DeletePolicy, "DeleteBucketPolicy"),
    ("policyStatus", Method::GET, ConfigCall::GetPolicyStatus, "GetBucketPolicyStatus"),
    ("ownershipControls", Method::GET, ConfigCall::GetOwnership, "GetBucketOwnershipControls"),
    ("ownershipControls", Method::PUT, ConfigCall::PutOwnership, "PutBucketOwnershipControls"),
    ("ownershipControls", Method::DELETE, ConfigCall::DeleteOwnership, "DeleteBucketOwnershipControls"),
    ("publicAccessBlock", Method::GET, ConfigCall::GetPublicAccessBlock, "GetPublicAccessBlock"),
    ("publicAccessBlock", Method::PUT, ConfigCall::PutPublicAccessBlock, "PutPublicAccessBlock"),
    ("publicAccessBlock", Method::DELETE, ConfigCall::DeletePublicAccessBlock, "DeletePublicAccessBlock"),
    ("acl", Method::GET, ConfigCall::GetAcl, "GetBucketAcl"),
    ("acl", Method::PUT, ConfigCall::PutAcl, "PutBucketAcl"),
    ("accelerate", Method::GET, ConfigCall::GetAccelerate, "GetBucketAccelerateConfiguration"),
    ("encryption", Method::GET, ConfigCall::GetEncryption, "GetBucketEncryption"),
    ("logging", Method::GET, ConfigCall::GetLogging, "GetBucketLogging"),
    ("notification", Method::GET, ConfigCall::GetNotification, "GetBucketNotificationConfiguration"),
    ("replication", Method::GET, ConfigCall::GetReplication, "GetBucketReplication"),
    ("requestPayment", Method::GET, ConfigCall::GetRequestPayment, "GetBucketRequestPayment"),
    ("website", Method::GET, ConfigCall::GetWebsite, "GetBucketWebsite"),
];

impl ConfigCall {
    /// The call that a request to a bucket asks for, if it is one of these.
    pub fn of(method: &Method, query: &Query) -> Option<ConfigCall> {
        let found = CALLS.iter().find(|(name, of_method, ..)| of_method == method && query.has(name));
        found.map(|(_, _, call, _)| *call)
    }

    /// As in the S3 API reference.
    pub fn name(self) -> &'static str {
        CALLS.iter().find(|(_, _, call, _)| *call == self).map_or("Unknown", |(.., name)| name)
    }
}

/// What can be wrong with a setting, or with a request that one governs.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{0} is not configured")]
    Unset(Unset),
    #[error("cross-origin request refused by the bucket's rules")]
    CorsForbidden,
    #[error("cross-origin request for method {0}")]
    CorsMethod(String),
    #[error("cross-origin request for header {0:?}")]
    CorsHeaders(String),
    /// With AWS's text.
    #[error("tag is not valid: {0}")]
    InvalidTag(&'static str),
    #[error("too many tags")]
    TooManyTags,
    /// With AWS's text.
    #[error("policy is not valid: {0}")]
    MalformedPolicy(Cow<'static, str>),
    #[error("an access control list where none is allowed")]
    AclWithOwnership,
}

/// What a bucket may lack, and AWS's code and text for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unset {
    Cors,
    Encryption,
    Ownership,
    Policy,
    PublicAccessBlock,
    Replication,
    Tagging,
    Website,
}

impl std::fmt::Display for Unset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.describe().0)
    }
}

impl Unset {
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Cors => ("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
            Self::Encryption => (
                "ServerSideEncryptionConfigurationNotFoundError",
                "The server side encryption configuration was not found",
            ),
            Self::Ownership => ("OwnershipControlsNotFoundError", "The bucket ownership controls were not found."),
            Self::Policy => ("NoSuchBucketPolicy", "The bucket policy does not exist."),
            Self::PublicAccessBlock => {
                ("NoSuchPublicAccessBlockConfiguration", "The public access block configuration was not found")
            }
            Self::Replication => {
                ("ReplicationConfigurationNotFoundError", "The replication configuration was not found")
            }
            Self::Tagging => ("NoSuchTagSet", "The TagSet does not exist"),
            Self::Website => {
                ("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration")
            }
        }
    }
}

impl ConfigError {
    /// Status, code and text of the answer.
    pub fn describe(&self) -> Answer {
        let answer = |status, code, message: Cow<'static, str>| Answer { status, code, message, details: Vec::new() };
        match self {
            Self::Unset(unset) => {
                let (code, message) = unset.describe();
                answer(StatusCode::NOT_FOUND, code, message.into())
            }
            Self::CorsForbidden => answer(
                StatusCode::FORBIDDEN,
                "AccessForbidden",
                // AWS spells it so.
                "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, \
                 request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted \
                 by the resource's CORS spec."
                    .into(),
            ),
            Self::CorsMethod(method) => answer(
                StatusCode::BAD_REQUEST,
                "BadRequest",
                format!("Invalid Access-Control-Request-Method: {method}").into(),
            ),
            Self::CorsHeaders(name) => answer(
                StatusCode::BAD_REQUEST,
                "BadRequest",
                format!("Access-Control-Request-Headers \"{name}\" contains invalid character.").into(),
            ),
            Self::InvalidTag(message) => answer(StatusCode::BAD_REQUEST, "InvalidTag", (*message).into()),
            Self::TooManyTags => {
                answer(StatusCode::BAD_REQUEST, "BadRequest", "Bucket tag count cannot be greater than 50".into())
            }
            Self::MalformedPolicy(message) => answer(StatusCode::BAD_REQUEST, "MalformedPolicy", message.clone()),
            Self::AclWithOwnership => answer(
                StatusCode::BAD_REQUEST,
                "InvalidBucketAclWithObjectOwnership",
                "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting".into(),
            ),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::Config(error)
    }
}

pub(super) async fn answer(call: &mut Call<'_>, bucket: &BucketName, what: ConfigCall) -> Result<Response<S3Body>> {
    require_bucket(call, bucket).await?;
    match what {
        ConfigCall::GetCors => kept(call, bucket, SettingName::Cors, Unset::Cors),
        ConfigCall::PutCors => {
            let document = Rules::parse(&checked_document(call).await?)?.document();
            put(call, bucket, SettingName::Cors, document, StatusCode::OK).await
        }
        ConfigCall::DeleteCors => delete(call, bucket, SettingName::Cors).await,
        ConfigCall::GetTagging => kept(call, bucket, SettingName::Tagging, Unset::Tagging),
        ConfigCall::PutTagging => {
            let document = Tags::parse(&checked_document(call).await?)?.document();
            put(call, bucket, SettingName::Tagging, document, StatusCode::NO_CONTENT).await
        }
        ConfigCall::DeleteTagging => delete(call, bucket, SettingName::Tagging).await,
        ConfigCall::GetPolicy => bucket_policy::get_bucket_policy(call, bucket),
        ConfigCall::PutPolicy => bucket_policy::put_bucket_policy(call, bucket).await,
        ConfigCall::DeletePolicy => delete(call, bucket, SettingName::Policy).await,
        ConfigCall::GetPolicyStatus => bucket_policy::get_bucket_policy_status(call, bucket),
        ConfigCall::GetOwnership => get_ownership(call, bucket),
        ConfigCall::PutOwnership => {
            let ownership = Ownership::parse(&checked_document(call).await?)?;
            put(call, bucket, SettingName::Ownership, ownership.as_str().to_owned(), StatusCode::OK).await
        }
        // Once deleted there is none, while a bucket that never had any has the default.
        ConfigCall::DeleteOwnership => {
            put(call, bucket, SettingName::Ownership, String::new(), StatusCode::NO_CONTENT).await
        }
        ConfigCall::GetPublicAccessBlock => {
            kept(call, bucket, SettingName::PublicAccessBlock, Unset::PublicAccessBlock)
        }
        ConfigCall::PutPublicAccessBlock => {
            let document = PublicAccessBlock::parse(checked_document(call).await?.as_ref())?.document();
            put(call, bucket, SettingName::PublicAccessBlock, document, StatusCode::OK).await
        }
        ConfigCall::DeletePublicAccessBlock => delete(call, bucket, SettingName::PublicAccessBlock).await,
        ConfigCall::GetAcl => Ok(answer::document(acl_document(call.owner()))),
        ConfigCall::PutAcl => put_acl(call).await,
        ConfigCall::GetEncryption => Err(ConfigError::Unset(Unset::Encryption).into()),
        ConfigCall::GetReplication => Err(ConfigError::Unset(Unset::Replication).into()),
        ConfigCall::GetWebsite => Err(ConfigError::Unset(Unset::Website).into()),
        ConfigCall::GetAccelerate => Ok(empty_document("AccelerateConfiguration")),
        ConfigCall::GetLogging => Ok(empty_document("BucketLoggingStatus")),
        ConfigCall::GetNotification => Ok(empty_document("NotificationConfiguration")),
        ConfigCall::GetRequestPayment => {
            let document = xml::document("RequestPaymentConfiguration", Some(xml::NAMESPACE), |out| {
                out.text("Payer", "BucketOwner");
            });
            Ok(answer::document(document))
        }
    }
}

fn empty_document(root: &str) -> Response<S3Body> {
    answer::document(xml::document(root, Some(xml::NAMESPACE), |_| {}))
}

/// A document as it was kept.
fn kept(call: &Call<'_>, bucket: &BucketName, name: SettingName, unset: Unset) -> Result<Response<S3Body>> {
    match call.front.store.settings(bucket).get(name) {
        Some(document) => Ok(answer::document(document.as_ref().to_owned())),
        None => Err(ConfigError::Unset(unset).into()),
    }
}

pub(super) async fn put(
    call: &mut Call<'_>,
    bucket: &BucketName,
    name: SettingName,
    document: String,
    status: StatusCode,
) -> Result<Response<S3Body>> {
    let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
    let done = call.front.store.put_setting(bucket, name, document).await;
    done.map_err(|error| subject.error(error))?;
    Ok(answer::empty(status))
}

async fn delete(call: &mut Call<'_>, bucket: &BucketName, name: SettingName) -> Result<Response<S3Body>> {
    let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
    call.front.store.delete_setting(bucket, name).await.map_err(|error| subject.error(error))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// The request's document, once it has the digests its headers state.
pub(super) async fn checked_document(call: &mut Call<'_>) -> Result<bytes::Bytes> {
    let document = call.document().await?;
    checksum::verify_document(&call.parts.headers, &document)?;
    Ok(document)
}

/// Who owns objects that others write. There is one owner here: the setting is kept for clients that compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    BucketOwnerEnforced,
    BucketOwnerPreferred,
    ObjectWriter,
}

impl Ownership {
    const ALL: [Self; 3] = [Self::BucketOwnerEnforced, Self::BucketOwnerPreferred, Self::ObjectWriter];

    pub fn named(name: &str) -> Option<Ownership> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::BucketOwnerEnforced => "BucketOwnerEnforced",
            Self::BucketOwnerPreferred => "BucketOwnerPreferred",
            Self::ObjectWriter => "ObjectWriter",
        }
    }

    /// Reads an `OwnershipControls` document, which has exactly one rule.
    fn parse(document: &[u8]) -> Result<Ownership> {
        let controls = xml::parse(document, "OwnershipControls")?;
        let mut rules = controls.children_named("Rule");
        match (rules.next(), rules.next()) {
            (Some(rule), None) => {
                rule.child_text("ObjectOwnership").and_then(Ownership::named).ok_or(Error::MalformedXml)
            }
            _ => Err(Error::MalformedXml),
        }
    }
}

fn get_ownership(call: &Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let settings = call.front.store.settings(bucket);
    let ownership = match settings.get(SettingName::Ownership) {
        None => Ownership::BucketOwnerEnforced,
        Some(name) => Ownership::named(name).ok_or(ConfigError::Unset(Unset::Ownership))?,
    };
    Ok(answer::document(xml::document("OwnershipControls", Some(xml::NAMESPACE), |out| {
        out.element("Rule", |out| out.text("ObjectOwnership", ownership.as_str()));
    })))
}

/// Which public access a bucket keeps out whatever its policy says. There are no lists to ignore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublicAccessBlock {
    pub block_public_acls: bool,
    pub ignore_public_acls: bool,
    /// A policy that lets everyone in is refused.
    pub block_public_policy: bool,
    /// A policy that lets everyone in counts for nothing.
    pub restrict_public_buckets: bool,
}

impl PublicAccessBlock {
    /// # Errors
    /// `Error::MalformedXml`.
    pub fn parse(document: &[u8]) -> Result<PublicAccessBlock> {
        let configuration = xml::parse(document, "PublicAccessBlockConfiguration")?;
        let flag = |name| match configuration.child_text(name).map(str::trim) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(Error::MalformedXml),
        };
        Ok(PublicAccessBlock {
            block_public_acls: flag("BlockPublicAcls")?,
            ignore_public_acls: flag("IgnorePublicAcls")?,
            block_public_policy: flag("BlockPublicPolicy")?,
            restrict_public_buckets: flag("RestrictPublicBuckets")?,
        })
    }

    fn document(&self) -> String {
        xml::document("PublicAccessBlockConfiguration", Some(xml::NAMESPACE), |out| {
            out.value("BlockPublicAcls", self.block_public_acls);
            out.value("IgnorePublicAcls", self.ignore_public_acls);
            out.value("BlockPublicPolicy", self.block_public_policy);
            out.value("RestrictPublicBuckets", self.restrict_public_buckets);
        })
    }
}

/// The one list there is: its owner may do everything.
fn acl_document(owner: &str) -> String {
    xml::document("AccessControlPolicy", Some(xml::NAMESPACE), |out| {
        super::list::write_owner(out, "Owner", owner);
        out.element("AccessControlList", |out| {
            out.element("Grant", |out| {
                out.element_of_type("Grantee", "CanonicalUser", |out| {
                    out.text("ID", owner);
                    out.text("DisplayName", owner);
                });
                out.text("Permission", "FULL_CONTROL");
            });
        });
    })
}

/// Takes a list that grants nothing new: as a canned one, or written out.
async fn put_acl(call: &mut Call<'_>) -> Result<Response<S3Body>> {
    headers::check_acl(&call.parts.headers)?;
    let document = checked_document(call).await?;
    if !document.is_empty() {
        let policy = xml::parse(&document, "AccessControlPolicy")?;
        let list = policy.child("AccessControlList").ok_or(Error::MalformedXml)?;
        let grants_the_owner = |grant: &xml::Element| {
            let grantee = grant.child("Grantee").and_then(|grantee| grantee.child_text("ID"));
            grantee == Some(call.owner()) && grant.child_text("Permission") == Some("FULL_CONTROL")
        };
        if !list.children_named("Grant").all(grants_the_owner) {
            return Err(Error::AccessControlListNotSupported);
        }
    }
    Ok(answer::empty(StatusCode::OK))
}
