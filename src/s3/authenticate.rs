//! Who sent a request: SigV4 by header or presigned URL, over keys that `auth` knows.

use super::{
    error::{Error, Result},
    sigv4::{Authorization, ChunkSigner, Payload, Request, Scope, SigningKey},
};
use crate::auth::{self, Auth, Caller, Named, SigningIdentity, Unauthenticated};
use http::request::Parts;
use secrecy::ExposeSecret;

/// Where secrets of access keys come from.
#[derive(Clone)]
pub enum Credentials {
    Auth(Auth),
    /// One key, for tests of the wire alone.
    #[cfg(test)]
    Fixed {
        access_key_id: &'static str,
        secret: &'static str,
        authority: auth::grants::Authority,
        /// Whether policies do not count for it.
        root: bool,
    },
}

impl Credentials {
    async fn identity(
        &self,
        access_key_id: &str,
        session_token: Option<&str>,
        now_ms: i64,
    ) -> Result<SigningIdentity, auth::Error> {
        match self {
            Credentials::Auth(auth) => auth.signing_identity(access_key_id, session_token, now_ms).await,
            #[cfg(test)]
            Credentials::Fixed { access_key_id: known, secret, authority, .. } => {
                match (access_key_id, session_token) {
                    (id, Some("expired")) if id == *known => Err(Unauthenticated::Expired.into()),
                    (id, _) if id == *known => Ok(SigningIdentity {
                        secret: (*secret).into(),
                        caller: Caller {
                            principal: "tester".into(),
                            access_key_id: (*known).into(),
                            authority: authority.clone(),
                        },
                    }),
                    _ => Err(Unauthenticated::Invalid.into()),
                }
            }
        }
    }
}

impl Credentials {
    /// What a living table makes of an object.
    ///
    /// # Errors
    /// `Error::Credentials` when that cannot be looked up.
    pub(super) async fn metadata_named(&self, bucket: &str, key: &str) -> Result<Option<Named>> {
        match self {
            Credentials::Auth(auth) => auth.metadata_named(bucket, key).await.map_err(Error::Credentials),
            #[cfg(test)]
            Credentials::Fixed { .. } => Ok(None),
        }
    }
}

impl Credentials {
    /// Whether this is the root key itself.
    pub(super) fn is_root(&self, caller: &Caller) -> bool {
        if caller.authority != auth::grants::Authority::Full {
            return false;
        }
        match self {
            Credentials::Auth(auth) => auth.root_key().0 == &*caller.access_key_id,
            #[cfg(test)]
            Credentials::Fixed { root, .. } => *root,
        }
    }

    /// Whether there is a key of this id or of a principal of this name.
    ///
    /// # Errors
    /// `Error::Credentials` when that cannot be looked up.
    pub(super) async fn knows_principal(&self, named: &str) -> Result<bool> {
        match self {
            Credentials::Auth(auth) => {
                let keys = auth.list_keys().await.map_err(Error::Credentials)?;
                Ok(keys.iter().any(|key| key.id == named || key.principal == named))
            }
            #[cfg(test)]
            Credentials::Fixed { access_key_id, .. } => Ok([*access_key_id, "tester"].contains(&named)),
        }
    }

    /// Keys of a session of `caller`, narrowed to `policy`; none where there is nothing to make them with.
    pub(super) fn session_keys(
        &self,
        caller: &Caller,
        policy: Option<String>,
        lifetime_s: u32,
        now_ms: i64,
    ) -> Option<auth::VendedKeys> {
        match self {
            Credentials::Auth(auth) => Some(auth.session_keys(caller, policy, lifetime_s, now_ms)),
            #[cfg(test)]
            Credentials::Fixed { .. } => None,
        }
    }

    /// The caller behind an access key, and the key that signatures of its day are made with.
    ///
    /// # Errors
    /// `Error::InvalidAccessKeyId`, `Error::InvalidToken`, `Error::ExpiredToken`, `Error::AccessDenied`;
    /// `Error::Credentials` when keys cannot be looked up.
    pub(super) async fn signing_key(
        &self,
        access_key_id: &str,
        session_token: Option<&str>,
        scope: &Scope,
        now_ms: i64,
    ) -> Result<(Caller, SigningKey)> {
        let identity = self.identity(access_key_id, session_token, now_ms).await;
        let identity = identity.map_err(|error| match error {
            auth::Error::Unauthenticated(Unauthenticated::Invalid) if session_token.is_some() => Error::InvalidToken,
            auth::Error::Unauthenticated(Unauthenticated::Invalid) => {
                Error::InvalidAccessKeyId(access_key_id.to_owned())
            }
            auth::Error::Unauthenticated(Unauthenticated::Expired) => Error::ExpiredToken,
            auth::Error::Unauthenticated(Unauthenticated::Outlived) => Error::AccessDenied,
            fault @ auth::Error::Database(_) => Error::Credentials(fault),
        })?;
        let key = SigningKey::derive(identity.secret.expose_secret(), &scope.date, &scope.region, &scope.service);
        Ok((identity.caller, key))
    }
}

/// Someone without a key.
pub(super) fn anonymous() -> Caller {
    let name: std::sync::Arc<str> = "anonymous".into();
    Caller { principal: name.clone(), access_key_id: name, authority: auth::grants::Authority::Anonymous }
}

/// A request whose signature was checked.
pub struct Authenticated {
    pub caller: Caller,
    pub payload: Payload,
    /// Continues the request's signature through an `aws-chunked` body.
    pub signer: ChunkSigner,
}

/// Checks a request's signature for `service`; `None` when the request is anonymous. `payload` stands in for what the
/// request does not say about its body.
///
/// # Errors
/// `Error::Signature`, and as [`Credentials::signing_key`].
pub async fn authenticate(
    credentials: &Credentials,
    (region, service): (&str, &str),
    parts: &Parts,
    payload: Option<Payload>,
    now_ms: i64,
) -> Result<Option<Authenticated>> {
    let request = Request::of(parts);
    let Some(authorization) = Authorization::parse(&request, service).map_err(Error::Signature)? else {
        return Ok(None);
    };
    authorization.check_time(now_ms).map_err(Error::Signature)?;
    authorization.require_region(region).map_err(Error::Signature)?;
    let payload = match payload {
        Some(payload) => payload,
        None => authorization.payload(&request).map_err(Error::Signature)?,
    };
    let (access_key_id, token) = (&authorization.access_key_id, authorization.security_token());
    let (caller, key) = credentials.signing_key(access_key_id, token, &authorization.scope, now_ms).await?;
    authorization.verify(&request, &key, &payload).map_err(Error::Signature)?;
    Ok(Some(Authenticated { caller, payload, signer: authorization.chunk_signer(&key) }))
}
