//! Who is asking: access keys, bearer tokens, vended keys, and the one function that says what they may do.
//!
//! An access key (id, secret) is an OAuth2 client on the catalog and a SigV4 key on S3. Bearer tokens and vended keys
//! are signed statements that name the access key behind them: nothing stores them, and they end with their key.
//! Reading a credential out of a request is `rest`'s and `s3`'s.

mod access_keys;
mod bearer;
pub mod grants;
mod key_file;
mod master_key;
mod places;
pub mod policy;
pub mod root_key;
mod vended;

use crate::db::Db;
use access_keys::{AccessKey, AccessKeys};
use aws_lc_rs::{constant_time, digest};
use bearer::{Bearers, Claims};
use quick_cache::sync::Cache;
use secrecy::{ExposeSecret, SecretString};
use std::{path::PathBuf, sync::Arc};
use vended::{Statement, Vending};

pub use crate::db::tables::Named;
pub use access_keys::{FRESH_MS, NewKey};
pub use bearer::LEEWAY_S;
pub use master_key::MasterKey;
use master_key::Seal;
pub use places::HELD_FRESH_MS;

/// Verified bearers and session tokens remembered at most, each. Some 600 bytes apiece.
const VERIFIED_MAX: usize = 10_000;
/// Characters of a principal's name at most.
pub const PRINCIPAL_CHARS_MAX: usize = 128;

/// Someone whose credential was checked.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Shown in logs and the audit trail; never a secret.
    pub principal: Arc<str>,
    /// The access key behind the credential: whatever is made for the caller ends with it.
    pub access_key_id: Arc<str>,
    pub authority: grants::Authority,
}

impl Caller {
    pub fn may(&self, action: grants::Action, resource: grants::Resource<'_>) -> bool {
        grants::allows(&self.authority, action, resource)
    }
}

/// The caller's credential is missing, wrong, expired or revoked. Which one is never told on the catalog; S3 clients
/// need the difference to refresh (`ExpiredToken`), so it is kept apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    #[error("credential is not valid")]
    Invalid,
    #[error("credential has expired")]
    Expired,
    /// A vended key's place now belongs to another table than the one it was made for.
    #[error("another table holds the place that the credential was made for")]
    Outlived,
}

/// A failure to check at all: the database is away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    #[error("catalog database failed")]
    Database(#[source] sqlx::Error),
}

/// Why the keys a server stands on cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("key file {} failed", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("key file {} must hold {expected}", path.display())]
    Malformed { path: PathBuf, expected: &'static str },
    #[error(
        "the catalog database holds access keys sealed under another master key: give the one it was made with, the \
         same to every replica (setting master_key)"
    )]
    MasterKeyMismatch,
    #[error("catalog database failed")]
    Database(#[source] sqlx::Error),
}

/// What [`Auth::open`] needs to know.
pub struct AuthSettings {
    /// Holds `master` and `root` where settings do not give them.
    pub keys_folder: PathBuf,
    pub master_key: Option<MasterKey>,
    pub root_key: Option<NewKey>,
    pub token_lifetime_s: u64,
    pub vended_lifetime_s: u64,
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

/// An access key as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    pub id: String,
    pub principal: String,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
}

/// What became of a key to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    Done,
    Missing,
    /// The root key in use: it would be back at the next start, and nobody could log in until then.
    Root,
}

/// Checks and issues credentials. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    db: Db,
    access_keys: AccessKeys,
    bearers: Bearers,
    vending: Vending,
    /// For secrets of others that this server keeps.
    secrets: Seal,
    verified_bearers: Cache<Box<str>, Claims>,
    verified_sessions: Cache<Box<str>, Session>,
    /// Compared with when an id is unknown, so that it costs what a known one does.
    decoy: SecretString,
    root_id: String,
    root_place: root_key::Place,
    token_lifetime_s: u64,
    vended_lifetime_s: u64,
}

/// A session token whose signature was checked.
#[derive(Clone)]
struct Session {
    key_id: Arc<str>,
    access_key_id: Arc<str>,
    authority: grants::Authority,
    secret: SecretString,
    expires_at_ms: i64,
    held: places::Held,
}

impl Auth {
    /// Loads or makes master key and root key. `db` must be migrated.
    ///
    /// # Errors
    /// When a key file or the database fails, or the database was sealed under another master key.
    pub async fn open(settings: AuthSettings, db: Db, now_ms: i64) -> Result<Auth, StartError> {
        let master_key = match settings.master_key {
            Some(master_key) => master_key,
            None => MasterKey::load_or_make(&settings.keys_folder)?,
        };
        let access_keys = AccessKeys::new(db.clone(), master_key.derive_seal("access-keys"));
        let (root_id, root_place) =
            root_key::establish(&access_keys, &settings.keys_folder, settings.root_key, now_ms).await?;
        Ok(Auth(Arc::new(Inner {
            db,
            access_keys,
            bearers: Bearers::new(&master_key),
            vending: Vending::new(&master_key),
            secrets: master_key.derive_seal("secrets"),
            verified_bearers: Cache::new(VERIFIED_MAX),
            verified_sessions: Cache::new(VERIFIED_MAX),
            decoy: NewKey::make().secret,
            root_id,
            root_place,
            token_lifetime_s: settings.token_lifetime_s,
            vended_lifetime_s: settings.vended_lifetime_s,
        })))
    }

    /// The root key's id, and where its secret is.
    pub fn root_key(&self) -> (&str, &root_key::Place) {
        (&self.0.root_id, &self.0.root_place)
    }

    /// OAuth2 client credentials: the access key's id and secret.
    pub async fn issue(&self, access_key_id: &str, secret: &SecretString, now_ms: i64) -> Result<Token, Error> {
        let key = self.0.access_keys.find(access_key_id, now_ms).await.map_err(Error::Database)?;
        let expected = key.as_ref().map_or(&self.0.decoy, |key| &key.secret);
        let same = are_equal(secret, expected);
        match key {
            Some(key) if same => Ok(self.token(&key, now_ms)),
            _ => Err(Unauthenticated::Invalid.into()),
        }
    }

    /// RFC 8693 exchange of a still valid token of ours for a fresh one.
    pub async fn exchange(&self, subject_token: &str, now_ms: i64) -> Result<Token, Error> {
        let key = self.bearer_key(subject_token, now_ms).await?;
        Ok(self.token(&key, now_ms))
    }

    fn token(&self, key: &AccessKey, now_ms: i64) -> Token {
        let expires_in_s = self.0.token_lifetime_s;
        Token { access_token: self.0.bearers.issue(&key.id, now_ms, expires_in_s).into(), expires_in_s }
    }

    /// # Errors
    /// `Unauthenticated` when the token is not ours, has expired, or its access key is gone.
    pub async fn verify_bearer(&self, token: &str, now_ms: i64) -> Result<Caller, Error> {
        let key = self.bearer_key(token, now_ms).await?;
        Ok(full_caller(&key))
    }

    async fn bearer_key(&self, token: &str, now_ms: i64) -> Result<Arc<AccessKey>, Error> {
        let claims = match self.0.verified_bearers.get(token) {
            Some(claims) if claims.is_expired(now_ms) => {
                self.0.verified_bearers.remove(token);
                return Err(Unauthenticated::Expired.into());
            }
            Some(claims) => claims,
            None => {
                let claims = self.0.bearers.verify(token, now_ms)?;
                self.0.verified_bearers.insert(token.into(), claims.clone());
                claims
            }
        };
        let key = self.0.access_keys.find(&claims.sub, now_ms).await.map_err(Error::Database)?;
        key.ok_or(Unauthenticated::Invalid.into())
    }

    /// For SigV4: an access key (no session token), or a vended key with its session token.
    ///
    /// # Errors
    /// `Expired` when the vended key's time has passed, `Outlived` when another table has taken the place it opens,
    /// `Invalid` when there is no such key or its access key is gone.
    pub async fn signing_identity(
        &self,
        access_key_id: &str,
        session_token: Option<&str>,
        now_ms: i64,
    ) -> Result<SigningIdentity, Error> {
        let Some(session_token) = session_token else {
            let key = self.0.access_keys.find(access_key_id, now_ms).await.map_err(Error::Database)?;
            let key = key.ok_or(Unauthenticated::Invalid)?;
            return Ok(SigningIdentity { secret: key.secret.clone(), caller: full_caller(&key) });
        };
        let session = self.session(access_key_id, session_token, now_ms)?;
        let parent = self.0.access_keys.find(&session.access_key_id, now_ms).await.map_err(Error::Database)?;
        let parent = parent.ok_or(Unauthenticated::Invalid)?;
        if let grants::Authority::Scoped(scope) = &session.authority
            && !session.held.check(&self.0.db, scope, now_ms).await.map_err(Error::Database)?
        {
            return Err(Unauthenticated::Outlived.into());
        }
        let caller = Caller {
            principal: parent.principal.clone(),
            access_key_id: parent.id.clone(),
            authority: session.authority,
        };
        Ok(SigningIdentity { secret: session.secret, caller })
    }

    fn session(&self, key_id: &str, token: &str, now_ms: i64) -> Result<Session, Unauthenticated> {
        if let Some(session) = self.0.verified_sessions.get(token) {
            if *session.key_id != *key_id {
                return Err(Unauthenticated::Invalid);
            }
            if now_ms >= session.expires_at_ms {
                self.0.verified_sessions.remove(token);
                return Err(Unauthenticated::Expired);
            }
            return Ok(session);
        }
        let (statement, secret) = self.0.vending.verify(key_id, token, now_ms)?;
        let session = Session {
            key_id: key_id.into(),
            access_key_id: statement.access_key_id.into(),
            authority: authority_of(statement.scope, statement.policy.as_deref())?,
            secret,
            expires_at_ms: statement.expires_at_ms,
            held: places::Held::default(),
        };
        self.0.verified_sessions.insert(token.into(), session.clone());
        Ok(session)
    }

    /// What a table that lives makes of an object, so that a key to its folder cannot break the table.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn metadata_named(&self, bucket: &str, key: &str) -> Result<Option<Named>, Error> {
        places::metadata_named(&self.0.db, bucket, key).await.map_err(Error::Database)
    }

    /// What a session token was made for, if it was made for this caller and is still valid.
    pub fn scope(&self, caller: &Caller, session_token: &str, now_ms: i64) -> Option<grants::Scope> {
        let statement = self.0.vending.statement(session_token)?;
        let is_theirs = statement.access_key_id == *caller.access_key_id;
        statement.scope.filter(|_| is_theirs && now_ms < statement.expires_at_ms)
    }

    /// Makes keys for `caller`, limited to `scope`, without storing anything.
    pub fn vend(&self, caller: &Caller, scope: grants::Scope, now_ms: i64) -> VendedKeys {
        let lifetime_ms = i64::try_from(self.0.vended_lifetime_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.0.vending.keys(&Statement {
            access_key_id: caller.access_key_id.as_ref().to_owned(),
            scope: Some(scope),
            policy: None,
            expires_at_ms: now_ms.saturating_add(lifetime_ms),
        })
    }

    /// Makes a session's keys for `caller`, with the caller's own rights, narrowed to `policy` (valid, and in AWS's
    /// language), without storing anything.
    pub fn session_keys(&self, caller: &Caller, policy: Option<String>, lifetime_s: u32, now_ms: i64) -> VendedKeys {
        self.0.vending.keys(&Statement {
            access_key_id: caller.access_key_id.as_ref().to_owned(),
            scope: None,
            policy,
            expires_at_ms: now_ms.saturating_add(i64::from(lifetime_s) * 1000),
        })
    }

    /// Seals a secret that is not ours but kept by us; `owner` must be given again to open it.
    pub fn seal(&self, owner: &str, secret: &SecretString) -> Vec<u8> {
        self.0.secrets.seal(owner, secret)
    }

    /// `None` when it was sealed under another master key or for another owner.
    pub fn unseal(&self, owner: &str, sealed: &[u8]) -> Option<SecretString> {
        self.0.secrets.open(owner, sealed)
    }

    /// Makes and stores a key for `principal`; its secret is never shown again.
    pub async fn create_key(&self, principal: &str, expires_at_ms: Option<i64>, now_ms: i64) -> Result<NewKey, Error> {
        let key = NewKey::make();
        let created = self.0.access_keys.create(&key, principal, expires_at_ms, now_ms).await;
        assert!(created.map_err(Error::Database)?, "an id of 90 fresh random bits was taken: randomness is broken");
        Ok(key)
    }

    /// All keys in id order, without their secrets.
    pub async fn list_keys(&self) -> Result<Vec<KeyInfo>, Error> {
        let rows = self.0.access_keys.list().await.map_err(Error::Database)?;
        let info = |row: crate::db::keys::AccessKeyRow| KeyInfo {
            id: row.id,
            principal: row.principal,
            created_at_ms: row.created_at_ms,
            expires_at_ms: row.expires_at_ms,
        };
        Ok(rows.into_iter().map(info).collect())
    }

    /// Revokes a key and whatever was issued or vended on it: at once here, within [`FRESH_MS`] on other replicas.
    pub async fn delete_key(&self, id: &str) -> Result<Delete, Error> {
        if id == self.0.root_id {
            return Ok(Delete::Root);
        }
        let deleted = self.0.access_keys.delete(id).await.map_err(Error::Database)?;
        Ok(if deleted { Delete::Done } else { Delete::Missing })
    }
}

/// What stands behind a session token. A policy was checked when the token was made.
fn authority_of(scope: Option<grants::Scope>, policy: Option<&str>) -> Result<grants::Authority, Unauthenticated> {
    match (scope, policy) {
        (Some(scope), _) => Ok(grants::Authority::Scoped(Arc::new(scope))),
        (None, None) => Ok(grants::Authority::Full),
        (None, Some(policy)) => match policy::Policy::parse(policy.as_bytes(), policy::Place::Session) {
            Ok(policy) => Ok(grants::Authority::Session(Arc::new(policy))),
            Err(_) => Err(Unauthenticated::Invalid),
        },
    }
}

fn full_caller(key: &AccessKey) -> Caller {
    Caller { principal: key.principal.clone(), access_key_id: key.id.clone(), authority: grants::Authority::Full }
}

/// Takes the same time wherever the two differ, in length too.
fn are_equal(one: &SecretString, other: &SecretString) -> bool {
    let digest = |secret: &SecretString| digest::digest(&digest::SHA256, secret.expose_secret().as_bytes());
    constant_time::verify_slices_are_equal(digest(one).as_ref(), digest(other).as_ref()).is_ok()
}

#[cfg(test)]
mod tests;
