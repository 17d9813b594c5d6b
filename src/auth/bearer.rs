//! Our bearer tokens: JWTs signed with HS256 under a key derived from the master key.

use super::{Unauthenticated, master_key::MasterKey};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

const ISSUER: &str = "tidewater";
/// A longer token is not one of ours. Bytes.
pub const TOKEN_BYTES_MAX: usize = 2048;
/// How long after `exp` a token still passes, for clocks of replicas that differ. Seconds.
pub const LEEWAY_S: i64 = 5;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claims {
    iss: String,
    /// The access key the token was issued for.
    pub sub: String,
    /// Seconds since the epoch.
    pub iat: i64,
    pub exp: i64,
    jti: String,
}

impl Claims {
    pub fn is_expired(&self, now_ms: i64) -> bool {
        now_ms.div_euclid(1000) >= self.exp.saturating_add(LEEWAY_S)
    }
}

pub struct Bearers {
    header: Header,
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
}

impl Bearers {
    pub fn new(master_key: &MasterKey) -> Bearers {
        let key = master_key.derive("bearer");
        let kid = hex::encode(&master_key.derive("bearer-kid").expose_secret()[..8]);
        let mut validation = Validation::new(Algorithm::HS256);
        // Expiry is checked against the caller's time, not this crate's clock.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        validation.set_issuer(&[ISSUER]);
        Bearers {
            header: Header { kid: Some(kid), ..Header::new(Algorithm::HS256) },
            encoding: EncodingKey::from_secret(key.expose_secret()).expect("the derived key is long enough for HS256"),
            decoding: DecodingKey::from_secret(key.expose_secret()).expect("the derived key is long enough for HS256"),
            validation,
        }
    }

    pub fn issue(&self, access_key_id: &str, now_ms: i64, lifetime_s: u64) -> String {
        let iat = now_ms.div_euclid(1000);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            sub: access_key_id.to_owned(),
            iat,
            exp: iat.saturating_add_unsigned(lifetime_s),
            jti: uuid::Uuid::new_v4().simple().to_string(),
        };
        jsonwebtoken::encode(&self.header, &claims, &self.encoding).expect("an HMAC over a few strings cannot fail")
    }

    /// # Errors
    /// `Expired` for a token of ours whose time has passed, `Invalid` for anything else.
    pub fn verify(&self, token: &str, now_ms: i64) -> Result<Claims, Unauthenticated> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Unauthenticated::Invalid);
        }
        let data = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation)
            .map_err(|_| Unauthenticated::Invalid)?;
        if data.header.kid != self.header.kid {
            return Err(Unauthenticated::Invalid);
        }
        if data.claims.is_expired(now_ms) {
            return Err(Unauthenticated::Expired);
        }
        Ok(data.claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn bearers(byte: &str) -> Bearers {
        Bearers::new(&MasterKey::parse(&byte.repeat(32).into()).unwrap())
    }

    #[test]
    fn issued_token_verifies_until_expiry_and_leeway() {
        let bearers = bearers("01");
        let token = bearers.issue("TWKEY", NOW_MS, 60);
        assert_eq!(bearers.verify(&token, NOW_MS).unwrap().sub, "TWKEY");
        let end_ms = NOW_MS + (60 + LEEWAY_S) * 1000;
        assert!(bearers.verify(&token, end_ms - 1).is_ok());
        assert_eq!(bearers.verify(&token, end_ms).unwrap_err(), Unauthenticated::Expired);
    }

    #[test]
    fn two_tokens_of_one_moment_differ() {
        let bearers = bearers("01");
        assert_ne!(bearers.issue("TWKEY", NOW_MS, 60), bearers.issue("TWKEY", NOW_MS, 60));
    }

    #[test]
    fn foreign_altered_and_unsigned_tokens_are_invalid() {
        let ours = bearers("01");
        let token = ours.issue("TWKEY", NOW_MS, 60);
        let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
        let none = "eyJhbGciOiJub25lIn0"; // {"alg":"none"}
        let cases = [
            bearers("02").issue("TWKEY", NOW_MS, 60),
            format!("{header}.{payload}."),
            format!("{none}.{payload}."),
            format!("{none}.{payload}.{signature}"),
            format!("{header}.{payload}A.{signature}"),
            String::new(),
            "None".to_owned(),
            ".".repeat(5000),
        ];
        for case in cases {
            assert_eq!(ours.verify(&case, NOW_MS).unwrap_err(), Unauthenticated::Invalid, "{case}");
        }
    }
}
