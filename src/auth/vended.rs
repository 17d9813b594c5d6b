//! Vended keys: short-lived S3 keys that nothing stores.
//!
//! The session token is a signed statement of who may reach which prefixes until when; access key id and secret are
//! derived from it. Whoever holds the master key can check a signature made with them.

use super::{Unauthenticated, VendedKeys, grants::Scope, master_key::MasterKey};
use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// A longer session token is not one of ours. Bytes.
pub const TOKEN_BYTES_MAX: usize = 8192;
/// Ids of vended keys start so, ids of access keys never do.
pub const ID_PREFIX: &str = "TV";
/// Bytes of an HMAC that the derived id shows, in hexadecimal.
const ID_BYTES: usize = 9;
/// Bytes of an HMAC that the derived secret shows, in base64: 40 characters, as AWS's secrets have.
const SECRET_BYTES: usize = 30;

/// What a session token states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The access key on whose behalf the keys were made; they end with it.
    #[serde(rename = "k")]
    pub access_key_id: String,
    /// What a key to a table's place reaches; none for a session, which has its access key's own rights.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// What a session's rights are narrowed to, as its maker wrote it.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(rename = "e")]
    pub expires_at_ms: i64,
}

pub struct Vending {
    statements: hmac::Key,
    ids: hmac::Key,
    secrets: hmac::Key,
}

impl Vending {
    pub fn new(master_key: &MasterKey) -> Vending {
        Vending {
            statements: master_key.derive_hmac("vended-statement"),
            ids: master_key.derive_hmac("vended-id"),
            secrets: master_key.derive_hmac("vended-secret"),
        }
    }

    pub fn keys(&self, statement: &Statement) -> VendedKeys {
        let text = serde_json::to_vec(statement).expect("strings and numbers always serialise");
        let signature = hmac::sign(&self.statements, &text);
        let token = format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(signature));
        VendedKeys {
            access_key_id: self.id(&token),
            secret_access_key: self.secret(&token),
            session_token: token.into(),
            expires_at_ms: statement.expires_at_ms,
        }
    }

    /// The statement and the secret behind a session token.
    ///
    /// # Errors
    /// `Expired` for a token of ours whose time has passed, `Invalid` for anything else, also when `access_key_id`
    /// belongs to another token.
    pub fn verify(
        &self,
        access_key_id: &str,
        token: &str,
        now_ms: i64,
    ) -> Result<(Statement, SecretString), Unauthenticated> {
        let statement = self.read(access_key_id, token).ok_or(Unauthenticated::Invalid)?;
        if now_ms >= statement.expires_at_ms {
            return Err(Unauthenticated::Expired);
        }
        Ok((statement, self.secret(token)))
    }

    fn read(&self, access_key_id: &str, token: &str) -> Option<Statement> {
        let statement = self.statement(token)?;
        (self.id(token) == access_key_id).then_some(statement)
    }

    /// What a token of ours states, whether or not its time has passed. Whoever holds it may know; to sign with it takes
    /// the secret.
    pub fn statement(&self, token: &str) -> Option<Statement> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (text, signature) = token.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.statements, &text, &signature).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn id(&self, token: &str) -> String {
        let digest = hmac::sign(&self.ids, token.as_bytes());
        format!("{ID_PREFIX}{}", hex::encode_upper(&digest.as_ref()[..ID_BYTES]))
    }

    fn secret(&self, token: &str) -> SecretString {
        let digest = hmac::sign(&self.secrets, token.as_bytes());
        URL_SAFE_NO_PAD.encode(&digest.as_ref()[..SECRET_BYTES]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::grants::Access;
    use secrecy::ExposeSecret;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn vending(byte: &str) -> Vending {
        Vending::new(&MasterKey::parse(&byte.repeat(32).into()).unwrap())
    }

    fn statement() -> Statement {
        Statement {
            access_key_id: "TWKEY".into(),
            scope: Some(Scope {
                warehouse: "lakehouse".into(),
                prefixes: vec!["b/ns/t/".into()],
                access: Access::ReadWrite,
                table: uuid::Uuid::from_u128(7),
            }),
            policy: None,
            expires_at_ms: NOW_MS + 1000,
        }
    }

    #[test]
    fn statement_and_secret_come_back_until_expiry() {
        let vending = vending("01");
        let keys = vending.keys(&statement());
        assert!(keys.access_key_id.starts_with(ID_PREFIX));
        assert_eq!(keys.access_key_id.len(), 20);
        let token = keys.session_token.expose_secret();
        let (read, secret) = vending.verify(&keys.access_key_id, token, NOW_MS + 999).unwrap();
        assert_eq!(read, statement());
        assert_eq!(secret.expose_secret(), keys.secret_access_key.expose_secret());
        assert_eq!(secret.expose_secret().len(), 40);
        let expired = vending.verify(&keys.access_key_id, token, NOW_MS + 1000).unwrap_err();
        assert_eq!(expired, Unauthenticated::Expired);
    }

    #[test]
    fn another_scope_has_other_keys() {
        let vending = vending("01");
        let mut other = statement();
        other.scope.as_mut().unwrap().access = Access::Read;
        let (one, two) = (vending.keys(&statement()), vending.keys(&other));
        assert_ne!(one.access_key_id, two.access_key_id);
        assert_ne!(one.secret_access_key.expose_secret(), two.secret_access_key.expose_secret());
    }

    #[test]
    fn foreign_altered_and_swapped_tokens_are_invalid() {
        let ours = vending("01");
        let keys = ours.keys(&statement());
        let token = keys.session_token.expose_secret();
        let (text, signature) = token.split_once('.').unwrap();
        let widened = String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap().replace("b/ns/t/", "b/ns/");
        let foreign = vending("02").keys(&statement());
        let cases = [
            (foreign.access_key_id.clone(), foreign.session_token.expose_secret().to_owned()),
            (keys.access_key_id.clone(), format!("{}.{signature}", URL_SAFE_NO_PAD.encode(widened))),
            (keys.access_key_id.clone(), format!("{text}.")),
            (keys.access_key_id.clone(), text.to_owned()),
            (keys.access_key_id.clone(), String::new()),
            (keys.access_key_id.clone(), ".".repeat(TOKEN_BYTES_MAX + 1)),
            ("TV000000000000000000".to_owned(), token.to_owned()),
            ("TWKEY".to_owned(), token.to_owned()),
        ];
        for (id, token) in cases {
            assert_eq!(ours.verify(&id, &token, NOW_MS).unwrap_err(), Unauthenticated::Invalid, "{id} {token}");
        }
    }
}
