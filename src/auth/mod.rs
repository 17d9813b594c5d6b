//! Who is asking: access keys, bearer tokens, vended keys, and the one function that says what they may do.

pub mod grants;

use secrecy::SecretString;
use std::sync::Arc;

/// Someone whose credential was checked.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Shown in logs and the audit trail; never a secret.
    pub principal: Arc<str>,
    pub authority: grants::Authority,
}

/// The caller's credential is missing, wrong, expired or revoked. Which one is never told on the catalog; S3 clients
/// need the difference to refresh (`ExpiredToken`), so it is kept apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    #[error("credential is not valid")]
    Invalid,
    #[error("credential has expired")]
    Expired,
}

/// A failure to check at all: the database is away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    #[error("catalog database failed")]
    Database(#[source] sqlx::Error),
}

/// A bearer token as the token endpoint answers it.
pub struct Token {
    pub access_token: SecretString,
    pub expires_in_s: u64,
}

/// The secret a SigV4 signature must have been made with, and who that is.
pub struct SigningIdentity {
    pub secret: SecretString,
    pub caller: Caller,
}

/// Short-lived S3 keys limited to prefixes.
pub struct VendedKeys {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    pub session_token: SecretString,
    pub expires_at_ms: i64,
}

/// Checks and issues credentials. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);
struct Inner {}

impl Auth {
    /// OAuth2 client credentials: the access key's id and secret.
    pub async fn issue(&self, _access_key_id: &str, _secret: &SecretString, _now_ms: i64) -> Result<Token, Error> {
        todo!()
    }
    /// RFC 8693 exchange of a still valid token of ours for a fresh one.
    pub async fn exchange(&self, _subject_token: &str, _now_ms: i64) -> Result<Token, Error> {
        todo!()
    }
    pub async fn verify_bearer(&self, _token: &str, _now_ms: i64) -> Result<Caller, Error> {
        todo!()
    }
    /// For SigV4: an access key (no session token), or a vended key with its session token.
    pub async fn signing_identity(
        &self,
        _access_key_id: &str,
        _session_token: Option<&str>,
        _now_ms: i64,
    ) -> Result<SigningIdentity, Error> {
        todo!()
    }
    /// Makes keys for `caller`, limited to `scope`, without storing anything.
    pub fn vend(&self, _caller: &Caller, _scope: grants::Scope, _now_ms: i64) -> VendedKeys {
        todo!()
    }
}
