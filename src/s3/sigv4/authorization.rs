//! Reading a request's authorization and checking it.

use super::{
    ChunkSigner, CredentialFault, Error, HeaderFault, Mismatch, Payload, QueryFault, Request, SigningKey, Timestamp,
    canonical, key, timestamp,
};
use http::header;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const ALGORITHM_ECDSA: &str = "AWS4-ECDSA-P256-SHA256";

/// How far a header's time may be from ours, and how far ahead of ours a presigned URL's. Milliseconds.
pub(super) const SKEW_MS_MAX: i64 = 15 * 60 * 1000;

/// The longest life of a presigned URL: a week. Seconds.
const EXPIRES_S_MAX: u32 = 604_800;

/// Day (`yyyyMMdd`), region and service that a signing key is derived for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub date: String,
    pub region: String,
    pub service: String,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}", self.date, self.region, self.service, key::TERMINAL)
    }
}

/// How long a signature is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// In a header: 15 minutes around its time.
    Skew,
    /// In a presigned URL: seconds from its time, 0 to 604,800.
    Seconds(u32),
}

/// A request's signature and what it claims, well-formed but not checked until [`Authorization::verify`].
#[derive(Clone)]
pub struct Authorization {
    pub access_key_id: String,
    pub scope: Scope,
    pub timestamp: Timestamp,
    pub lifetime: Lifetime,
    security_token: Option<String>,
    /// As sent: names joined by `;`.
    signed_headers: String,
    signature: String,
    /// `X-Amz-Content-Sha256` in the query of a presigned URL.
    query_content_sha256: Option<Vec<u8>>,
}

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorization")
            .field("access_key_id", &self.access_key_id)
            .field("scope", &self.scope)
            .field("timestamp", &self.timestamp.as_str())
            .field("lifetime", &self.lifetime)
            .field("signed_headers", &self.signed_headers)
            .finish_non_exhaustive()
    }
}

impl Authorization {
    /// From the `Authorization` header or the query; `None` when the request carries neither (it is anonymous).
    ///
    /// `service` is the one the scope must name.
    ///
    /// # Errors
    /// All that can be wrong before the secret is known, but not the time ([`Authorization::check_time`]).
    pub fn parse(request: &Request<'_>, service: &str) -> Result<Option<Authorization>, Error> {
        let parameters = QueryParameters::read(request.query);
        match (request.headers.get(header::AUTHORIZATION), parameters.mechanism()) {
            (Some(value), Mechanism::V4 | Mechanism::V2) => {
                Err(Error::SeveralMechanisms { value: String::from_utf8_lossy(value.as_bytes()).into_owned() })
            }
            (Some(value), Mechanism::None) => {
                from_header(request, &String::from_utf8_lossy(value.as_bytes()), service).map(Some)
            }
            (None, Mechanism::V4) => from_query(request, parameters, service).map(Some),
            (None, Mechanism::V2) => Err(Error::SignatureV2),
            (None, Mechanism::None) => Ok(None),
        }
    }

    /// # Errors
    /// `RequestTimeTooSkewed`; for a presigned URL `Expired`, `NotYetValid`.
    pub fn check_time(&self, now_ms: i64) -> Result<(), Error> {
        let signed_ms = self.timestamp.epoch_ms();
        let ahead_ms = signed_ms.saturating_sub(now_ms);
        match self.lifetime {
            Lifetime::Skew if ahead_ms.saturating_abs() > SKEW_MS_MAX => Err(Error::RequestTimeTooSkewed {
                request_time: self.timestamp.as_str().to_owned(),
                server_time: timestamp::iso8601(now_ms),
            }),
            Lifetime::Skew => Ok(()),
            Lifetime::Seconds(_) if ahead_ms > SKEW_MS_MAX => Err(Error::NotYetValid {
                request_time: self.timestamp.as_str().to_owned(),
                server_time: timestamp::iso8601(now_ms),
            }),
            Lifetime::Seconds(expires_s) => {
                let expires_at_ms = signed_ms.saturating_add(i64::from(expires_s) * 1000);
                // Zero seconds are over before they begin, even on a clock that runs ahead.
                if expires_s > 0 && now_ms < expires_at_ms {
                    return Ok(());
                }
                Err(Error::Expired {
                    expires_s,
                    expires_at: timestamp::iso8601(expires_at_ms),
                    server_time: timestamp::iso8601(now_ms),
                })
            }
        }
    }

    /// For callers that accept one region only.
    ///
    /// # Errors
    /// `HeaderMalformed` or `QueryMalformed` naming both regions.
    pub fn require_region(&self, expected: &str) -> Result<(), Error> {
        if self.scope.region == expected {
            return Ok(());
        }
        let fault = CredentialFault::Region { sent: self.scope.region.clone(), expected: expected.to_owned() };
        Err(match self.lifetime {
            Lifetime::Skew => Error::HeaderMalformed(HeaderFault::Credential(fault)),
            Lifetime::Seconds(_) => Error::QueryMalformed(QueryFault::Credential(fault)),
        })
    }

    /// Reads the credential of a browser's form, which must be for S3 in `region`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_post_credential(credential: &str, region: &str) -> Result<(String, Scope), CredentialFault> {
        let (access_key_id, scope) = parse_credential(credential, super::SERVICE_S3)?;
        if scope.region == region {
            return Ok((access_key_id, scope));
        }
        Err(CredentialFault::Region { sent: scope.region, expected: region.to_owned() })
    }

    /// `x-amz-security-token`, from the header or the query.
    pub fn security_token(&self) -> Option<&str> {
        self.security_token.as_deref()
    }

    pub fn is_presigned(&self) -> bool {
        matches!(self.lifetime, Lifetime::Seconds(_))
    }

    /// What the request says about its body. A presigned URL that says nothing means `UNSIGNED-PAYLOAD`.
    ///
    /// # Errors
    /// `MissingContentSha256`, `InvalidContentSha256`, `PayloadUnsupported`.
    pub fn payload(&self, request: &Request<'_>) -> Result<Payload, Error> {
        let header = request.headers.get("x-amz-content-sha256").map(http::HeaderValue::as_bytes);
        match self.query_content_sha256.as_deref().or(header) {
            Some(value) => Payload::parse(value),
            None if self.is_presigned() => Ok(Payload::Unsigned),
            None => Err(Error::MissingContentSha256),
        }
    }

    /// Whether the signature is the one `key` makes of this request. Takes the same time wherever they differ.
    ///
    /// # Errors
    /// `HeadersNotSigned`, `SignatureDoesNotMatch`.
    pub fn verify(&self, request: &Request<'_>, key: &SigningKey, payload: &Payload) -> Result<(), Error> {
        let names = canonical::headers_not_signed(request, &self.signed_headers);
        if !names.is_empty() {
            return Err(Error::HeadersNotSigned { names });
        }
        let canonical_request =
            canonical::request(request, &self.scope.service, &self.signed_headers, payload.as_str());
        let string_to_sign = canonical::string_to_sign(self.timestamp, &self.scope, &canonical_request);
        if key::same_signature(&key.sign(string_to_sign.as_bytes()), self.signature.as_bytes()) {
            return Ok(());
        }
        Err(Error::SignatureDoesNotMatch(Box::new(Mismatch {
            access_key_id: self.access_key_id.clone(),
            string_to_sign,
            signature_provided: self.signature.clone(),
            canonical_request,
        })))
    }

    /// Starts the chain of chunk signatures at this signature, which must have been verified with `key`.
    pub fn chunk_signer(&self, key: &SigningKey) -> ChunkSigner {
        // A verified signature has 64 digits; another one seeds a chain that no chunk fits.
        let seed = self.signature.as_bytes().try_into().unwrap_or([b'0'; 64]);
        ChunkSigner::new(key.clone(), self.timestamp, &self.scope, seed)
    }
}

fn from_header(request: &Request<'_>, value: &str, service: &str) -> Result<Authorization, Error> {
    let (algorithm, parameters) =
        value.split_once(' ').ok_or_else(|| Error::AuthorizationInvalid { value: value.to_owned() })?;
    match algorithm {
        ALGORITHM => {}
        "AWS" => return Err(Error::SignatureV2),
        _ => return Err(Error::AuthorizationUnsupported { algorithm: algorithm.to_owned() }),
    }
    let [credential, signed_headers, signature] = header_components(parameters).map_err(Error::HeaderMalformed)?;
    let (access_key_id, scope) = parse_credential(credential, service)
        .map_err(|fault| Error::HeaderMalformed(HeaderFault::Credential(fault)))?;
    let timestamp = header_timestamp(request).ok_or(Error::MissingDate)?;
    if timestamp.date() != scope.date {
        return Err(Error::HeaderMalformed(HeaderFault::DateMismatch));
    }
    Ok(Authorization {
        access_key_id,
        scope,
        timestamp,
        lifetime: Lifetime::Skew,
        security_token: security_token_header(request),
        signed_headers: signed_headers.to_owned(),
        signature: signature.to_owned(),
        query_content_sha256: None,
    })
}

/// The values of `Credential`, `SignedHeaders` and `Signature`, which may stand in any order, with blanks between.
fn header_components(parameters: &str) -> Result<[&str; 3], HeaderFault> {
    let components: Vec<&str> = parameters.split(',').map(str::trim).collect();
    if components.len() != 3 {
        return Err(HeaderFault::MissingComponents);
    }
    let mut pairs = [("", ""); 3];
    for (pair, component) in pairs.iter_mut().zip(components) {
        *pair = component.split_once('=').ok_or_else(|| HeaderFault::Component(component.to_owned()))?;
    }
    let value = |wanted: &str| pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    Ok([
        value("Credential").ok_or(HeaderFault::MissingCredential)?,
        value("SignedHeaders").ok_or(HeaderFault::MissingSignedHeaders)?,
        value("Signature").ok_or(HeaderFault::MissingSignature)?,
    ])
}

fn parse_credential(credential: &str, service: &str) -> Result<(String, Scope), CredentialFault> {
    let mut parts = credential.split('/');
    let (Some(access_key_id), Some(date), Some(region), Some(sent_service), Some(terminal), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(CredentialFault::Malformed);
    };
    if sent_service != service {
        return Err(CredentialFault::Service { sent: sent_service.to_owned(), expected: service.to_owned() });
    }
    if terminal != key::TERMINAL {
        return Err(CredentialFault::Terminal(terminal.to_owned()));
    }
    if !timestamp::is_date(date) {
        return Err(CredentialFault::Date(date.to_owned()));
    }
    let scope = Scope { date: date.to_owned(), region: region.to_owned(), service: service.to_owned() };
    Ok((access_key_id.to_owned(), scope))
}

/// `x-amz-date`, or else `Date`, in either spelling.
fn header_timestamp(request: &Request<'_>) -> Option<Timestamp> {
    let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    let date = text("x-amz-date").filter(|date| !date.is_empty()).or_else(|| text("date"))?;
    Timestamp::parse(date).or_else(|| Timestamp::parse_http(date))
}

fn security_token_header(request: &Request<'_>) -> Option<String> {
    let value = request.headers.get("x-amz-security-token")?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn from_query(request: &Request<'_>, parameters: QueryParameters, service: &str) -> Result<Authorization, Error> {
    let sent = |value: Option<String>| value.filter(|value| !value.is_empty()).ok_or(QueryFault::MissingParameters);
    let parse = || {
        match sent(parameters.algorithm)?.as_str() {
            ALGORITHM => {}
            ALGORITHM_ECDSA => return Err(QueryFault::EcdsaUnsupported),
            _ => return Err(QueryFault::Algorithm),
        }
        let (access_key_id, scope) =
            parse_credential(&sent(parameters.credential)?, service).map_err(QueryFault::Credential)?;
        let timestamp = Timestamp::parse(&sent(parameters.date)?).ok_or(QueryFault::Date)?;
        if timestamp.date() != scope.date {
            return Err(QueryFault::DateMismatch { credential: scope.date, request: timestamp.date().to_owned() });
        }
        Ok(Authorization {
            access_key_id,
            scope,
            timestamp,
            signature: sent(parameters.signature)?,
            signed_headers: sent(parameters.signed_headers)?,
            lifetime: Lifetime::Seconds(parse_expires(&sent(parameters.expires)?)?),
            security_token: parameters.security_token.or_else(|| security_token_header(request)),
            query_content_sha256: parameters.content_sha256,
        })
    };
    parse().map_err(Error::QueryMalformed)
}

fn parse_expires(text: &str) -> Result<u32, QueryFault> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QueryFault::ExpiresNotANumber);
    }
    if negative {
        return Err(QueryFault::ExpiresNegative);
    }
    digits.parse().ok().filter(|seconds| *seconds <= EXPIRES_S_MAX).ok_or(QueryFault::ExpiresTooLarge)
}

enum Mechanism {
    None,
    V4,
    V2,
}

/// The query parameters that authorise; the first of each name.
#[derive(Default)]
struct QueryParameters {
    algorithm: Option<String>,
    credential: Option<String>,
    date: Option<String>,
    expires: Option<String>,
    signed_headers: Option<String>,
    signature: Option<String>,
    security_token: Option<String>,
    content_sha256: Option<Vec<u8>>,
    v2_access_key_id: bool,
    v2_signature: bool,
}

impl QueryParameters {
    fn read(query: &str) -> QueryParameters {
        let mut read = QueryParameters::default();
        for (name, value) in canonical::query_parameters(query) {
            let slot = match name.as_slice() {
                b"X-Amz-Algorithm" => &mut read.algorithm,
                b"X-Amz-Credential" => &mut read.credential,
                b"X-Amz-Date" => &mut read.date,
                b"X-Amz-Expires" => &mut read.expires,
                b"X-Amz-SignedHeaders" => &mut read.signed_headers,
                b"X-Amz-Signature" => &mut read.signature,
                b"X-Amz-Security-Token" => &mut read.security_token,
                b"X-Amz-Content-Sha256" => {
                    read.content_sha256.get_or_insert(value);
                    continue;
                }
                b"AWSAccessKeyId" => {
                    read.v2_access_key_id = true;
                    continue;
                }
                b"Signature" => {
                    read.v2_signature = true;
                    continue;
                }
                _ => continue,
            };
            slot.get_or_insert_with(|| String::from_utf8_lossy(&value).into_owned());
        }
        read
    }

    /// One parameter of the mechanism is enough to mean it; the others are then missed by name.
    fn mechanism(&self) -> Mechanism {
        let v4 = [&self.algorithm, &self.credential, &self.signature, &self.signed_headers, &self.expires];
        if v4.into_iter().any(Option::is_some) {
            Mechanism::V4
        } else if self.v2_access_key_id || self.v2_signature {
            Mechanism::V2
        } else {
            Mechanism::None
        }
    }
}
