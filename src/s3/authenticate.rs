//! Who sent a request: SigV4 by header or presigned URL, over keys that `auth` knows.

use super::{
    error::{Error, Result},
    sigv4::{Authorization, ChunkSigner, Payload, Request, SERVICE_S3, SigningKey},
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
            Credentials::Fixed { access_key_id: known, secret, authority } => match (access_key_id, session_token) {
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
            },
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

/// A request whose signature was checked.
pub struct Authenticated {
    pub caller: Caller,
    pub payload: Payload,
    /// Continues the request's signature through an `aws-chunked` body.
    pub signer: ChunkSigner,
}

/// Checks a request's signature.
///
/// # Errors
/// `Error::AccessDenied` for an anonymous request, `Error::InvalidAccessKeyId`, `Error::InvalidToken`, `Error::ExpiredToken`,
/// `Error::Signature`; `Error::Credentials` when keys cannot be looked up.
pub async fn authenticate(
    credentials: &Credentials,
    region: &str,
    parts: &Parts,
    now_ms: i64,
) -> Result<Authenticated> {
    let request = Request::of(parts);
    let authorization =
        Authorization::parse(&request, SERVICE_S3).map_err(Error::Signature)?.ok_or(Error::AccessDenied)?;
    authorization.check_time(now_ms).map_err(Error::Signature)?;
    authorization.require_region(region).map_err(Error::Signature)?;
    let payload = authorization.payload(&request).map_err(Error::Signature)?;
    let access_key_id = &authorization.access_key_id;
    let identity = credentials.identity(access_key_id, authorization.security_token(), now_ms).await;
    let identity = identity.map_err(|error| match error {
        auth::Error::Unauthenticated(Unauthenticated::Invalid) if authorization.security_token().is_some() => {
            Error::InvalidToken
        }
        auth::Error::Unauthenticated(Unauthenticated::Invalid) => Error::InvalidAccessKeyId(access_key_id.clone()),
        auth::Error::Unauthenticated(Unauthenticated::Expired) => Error::ExpiredToken,
        auth::Error::Unauthenticated(Unauthenticated::Outlived) => Error::AccessDenied,
        fault @ auth::Error::Database(_) => Error::Credentials(fault),
    })?;
    let scope = &authorization.scope;
    let key = SigningKey::derive(identity.secret.expose_secret(), &scope.date, &scope.region, &scope.service);
    authorization.verify(&request, &key, &payload).map_err(Error::Signature)?;
    Ok(Authenticated { caller: identity.caller, payload, signer: authorization.chunk_signer(&key) })
}
