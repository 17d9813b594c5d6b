//! Why a signature is refused, in AWS's codes and words.

use super::authorization::SKEW_MS_MAX;
use http::StatusCode;

/// One variant for each answer AWS gives; `Display` is AWS's message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("The authorization header is malformed; {0}")]
    HeaderMalformed(HeaderFault),
    #[error("{0}")]
    QueryMalformed(QueryFault),
    /// The `Authorization` header is not `ALGORITHM parameters`.
    #[error("Authorization header is invalid -- one and only one ' ' (space) required.")]
    AuthorizationInvalid { value: String },
    #[error("Unsupported Authorization Type")]
    AuthorizationUnsupported { algorithm: String },
    /// Signature Version 2, in the header or the query.
    #[error("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.")]
    SignatureV2,
    #[error(
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter \
         or the Authorization header should be specified"
    )]
    SeveralMechanisms { value: String },
    #[error("AWS authentication requires a valid Date or x-amz-date header.")]
    MissingDate,
    #[error("The difference between the request time and the current time is too large.")]
    RequestTimeTooSkewed { request_time: String, server_time: String },
    #[error("Request has expired.")]
    Expired { expires_s: u32, expires_at: String, server_time: String },
    /// A presigned URL from a clock more than 15 minutes ahead.
    #[error("Request is not yet valid.")]
    NotYetValid { request_time: String, server_time: String },
    /// `host` or an `x-amz-*` header is not among the signed ones. Names in lower case, sorted.
    #[error("There were headers present in the request which were not signed")]
    HeadersNotSigned { names: Vec<String> },
    #[error("Missing required header for this request: x-amz-content-sha256")]
    MissingContentSha256,
    #[error(
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, \
         STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, \
         STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER or a valid sha256 \
         value."
    )]
    InvalidContentSha256 { value: String },
    #[error("The chunk encoding algorithm {algorithm} is not supported.")]
    PayloadUnsupported { algorithm: String },
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your key and signing \
         method."
    )]
    SignatureDoesNotMatch(Box<Mismatch>),
}

/// What is wrong with the `Authorization` header.
#[derive(Debug, thiserror::Error)]
pub enum HeaderFault {
    #[error("the authorization header requires three components: Credential, SignedHeaders, and Signature.")]
    MissingComponents,
    #[error("the authorization component {0:?} is malformed.")]
    Component(String),
    #[error("missing Credential.")]
    MissingCredential,
    #[error("missing SignedHeaders.")]
    MissingSignedHeaders,
    #[error("missing Signature.")]
    MissingSignature,
    #[error("{0}")]
    Credential(CredentialFault),
    /// AWS repeats its own prefix here.
    #[error("The authorization header is malformed; Invalid credential date. Date is not the same as X-Amz-Date.")]
    DateMismatch,
}

/// What is wrong with the parameters of a presigned URL.
#[derive(Debug, thiserror::Error)]
pub enum QueryFault {
    #[error(
        "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, \
         X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters."
    )]
    MissingParameters,
    #[error(r#"X-Amz-Algorithm only supports "AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256""#)]
    Algorithm,
    /// Valid on AWS, not here.
    #[error(r#"X-Amz-Algorithm only supports "AWS4-HMAC-SHA256""#)]
    EcdsaUnsupported,
    #[error("Error parsing the X-Amz-Credential parameter; {0}")]
    Credential(CredentialFault),
    #[error(r#"X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'""#)]
    Date,
    #[error("Invalid credential date {credential:?}. This date is not the same as X-Amz-Date: {request:?}.")]
    DateMismatch { credential: String, request: String },
    #[error("X-Amz-Expires should be a number")]
    ExpiresNotANumber,
    #[error("X-Amz-Expires must be non-negative")]
    ExpiresNegative,
    #[error(
        "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
         604800 seconds"
    )]
    ExpiresTooLarge,
}

/// What is wrong with a credential `ID/DATE/REGION/SERVICE/aws4_request`.
#[derive(Debug, thiserror::Error)]
pub enum CredentialFault {
    #[error(r#"the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request"."#)]
    Malformed,
    #[error("incorrect date format {0:?}. This date in the credential must be in the format \"yyyyMMdd\".")]
    Date(String),
    #[error("incorrect service {sent:?}. This endpoint belongs to {expected:?}.")]
    Service { sent: String, expected: String },
    #[error("incorrect terminal {0:?}. This endpoint uses \"aws4_request\".")]
    Terminal(String),
    #[error("the region {sent:?} is wrong; expecting {expected:?}")]
    Region { sent: String, expected: String },
}

/// What the server computed where the client's signature differs, for the client to compare. It holds nothing that the
/// client did not send, but possibly its session token, so `Debug` shows none of it.
pub struct Mismatch {
    pub access_key_id: String,
    pub string_to_sign: String,
    pub signature_provided: String,
    /// Header values may be any bytes.
    pub canonical_request: Vec<u8>,
}

impl std::fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mismatch").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl Error {
    /// AWS's error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeaderMalformed(_) => "AuthorizationHeaderMalformed",
            Self::QueryMalformed(_) => "AuthorizationQueryParametersError",
            Self::AuthorizationInvalid { .. }
            | Self::AuthorizationUnsupported { .. }
            | Self::SeveralMechanisms { .. }
            | Self::InvalidContentSha256 { .. } => "InvalidArgument",
            Self::SignatureV2 | Self::MissingContentSha256 => "InvalidRequest",
            Self::MissingDate | Self::Expired { .. } | Self::NotYetValid { .. } | Self::HeadersNotSigned { .. } => {
                "AccessDenied"
            }
            Self::RequestTimeTooSkewed { .. } => "RequestTimeTooSkewed",
            Self::PayloadUnsupported { .. } => "NotImplemented",
            Self::SignatureDoesNotMatch(_) => "SignatureDoesNotMatch",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::HeaderMalformed(_)
            | Self::QueryMalformed(_)
            | Self::AuthorizationInvalid { .. }
            | Self::AuthorizationUnsupported { .. }
            | Self::SeveralMechanisms { .. }
            | Self::SignatureV2
            | Self::MissingContentSha256
            | Self::InvalidContentSha256 { .. } => StatusCode::BAD_REQUEST,
            Self::MissingDate
            | Self::RequestTimeTooSkewed { .. }
            | Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::HeadersNotSigned { .. }
            | Self::SignatureDoesNotMatch(_) => StatusCode::FORBIDDEN,
            Self::PayloadUnsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// The elements AWS adds to this error's XML body, in order. They repeat what the client sent, unescaped and perhaps
    /// with characters that XML cannot hold.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::HeaderMalformed(HeaderFault::Credential(CredentialFault::Region { expected, .. })) => {
                vec![("Region", expected.clone())]
            }
            Self::AuthorizationInvalid { value }
            | Self::AuthorizationUnsupported { algorithm: value }
            | Self::SeveralMechanisms { value } => argument("Authorization", value),
            Self::InvalidContentSha256 { value } => argument("x-amz-content-sha256", value),
            Self::RequestTimeTooSkewed { request_time, server_time } => vec![
                ("RequestTime", request_time.clone()),
                ("ServerTime", server_time.clone()),
                ("MaxAllowedSkewMilliseconds", SKEW_MS_MAX.to_string()),
            ],
            Self::Expired { expires_s, expires_at, server_time } => vec![
                ("ServerTime", server_time.clone()),
                ("X-Amz-Expires", expires_s.to_string()),
                ("Expires", expires_at.clone()),
            ],
            Self::NotYetValid { request_time, server_time } => {
                vec![("RequestTime", request_time.clone()), ("ServerTime", server_time.clone())]
            }
            Self::HeadersNotSigned { names } => vec![("HeadersNotSigned", names.join(", "))],
            Self::SignatureDoesNotMatch(mismatch) => mismatch.details(),
            Self::HeaderMalformed(_)
            | Self::QueryMalformed(_)
            | Self::SignatureV2
            | Self::MissingDate
            | Self::MissingContentSha256
            | Self::PayloadUnsupported { .. } => Vec::new(),
        }
    }
}

fn argument(name: &str, value: &str) -> Vec<(&'static str, String)> {
    vec![("ArgumentName", name.to_owned()), ("ArgumentValue", value.to_owned())]
}

impl Mismatch {
    fn details(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWSAccessKeyId", self.access_key_id.clone()),
            ("StringToSign", self.string_to_sign.clone()),
            ("SignatureProvided", self.signature_provided.clone()),
            ("StringToSignBytes", spaced_hex(self.string_to_sign.as_bytes())),
            ("CanonicalRequest", String::from_utf8_lossy(&self.canonical_request).into_owned()),
            ("CanonicalRequestBytes", spaced_hex(&self.canonical_request)),
        ]
    }
}

fn spaced_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
