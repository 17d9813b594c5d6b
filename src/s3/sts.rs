//! The Security Token Service's `AssumeRole`, on the S3 listener: short-lived keys with the caller's own rights, narrowed by
//! a policy. There are no roles: which one is named makes no difference, and a session makes no further sessions.

use super::{
    answer::{self, S3Body},
    authenticate::authenticate,
    body::BodyPlan,
    error::{Error, Result},
    front::Call,
    headers,
    list::timestamp,
    query::Query,
    sigv4::Payload,
    xml,
};
use crate::auth::policy::{Place, Policy, PolicyError};
use http::{HeaderValue, Method, Response, StatusCode, header};
use secrecy::ExposeSecret;
use std::ops::RangeInclusive;

/// The form of a call. Bytes.
const FORM_BYTES_MAX: u64 = 64 << 10;
/// What a session's policy may have. Characters, as AWS bounds it.
const POLICY_CHARS_MAX: usize = 2048;
const LIFETIME_S: RangeInclusive<u32> = 900..=43_200;
const LIFETIME_S_DEFAULT: u32 = 3600;
const SESSION_NAME_CHARS: RangeInclusive<usize> = 2..=64;
const ROLE_ARN_CHARS: RangeInclusive<usize> = 20..=2048;
const SERVICE: &str = "sts";
const VERSION: &str = "2011-06-15";
const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// A call that is refused: status, code, text.
struct Refusal(StatusCode, &'static str, String);

/// Faults of the server stay errors; whatever else is wrong is answered in the service's own shape.
pub(super) async fn answer(call: &mut Call<'_>) -> Result<Response<S3Body>> {
    let is_form =
        call.parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
            let essence = kind.split(';').next().unwrap_or_default();
            essence.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
        });
    if !is_form {
        let method = Method::POST.as_str().to_owned();
        return Err(Error::MethodNotAllowed { method, resource: "SERVICE", allowed: "GET" });
    }
    let (status, document) = match assume(call).await {
        Ok(Ok(document)) => (StatusCode::OK, document),
        Ok(Err(Refusal(status, code, message))) => (status, failure(call, code, &message)),
        Err(error) if error.is_fault() => return Err(error),
        Err(error) => {
            let described = error.describe();
            (described.status, failure(call, described.code, &described.message))
        }
    };
    let mut response = answer::document(document);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    Ok(response)
}

async fn assume(call: &mut Call<'_>) -> Result<Result<String, Refusal>> {
    let plan = BodyPlan::new(&call.parts.headers, &Payload::Unsigned, None, FORM_BYTES_MAX).map_err(Error::Body)?;
    let (form, _) = call.open_body(plan).collect().await.map_err(Error::Body)?;
    let parameters = Query::parse(&String::from_utf8_lossy(&form))?;
    let action = parameters.text("Action").unwrap_or_default();
    if action == "AssumeRoleWithWebIdentity" || action == "AssumeRoleWithSAML" {
        let message = format!("{action} needs identities of other providers, which this server does not have");
        return Ok(Err(Refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)));
    }
    let expected = (call.front.region.as_str(), SERVICE);
    let payload = Some(Payload::of_bytes(&form));
    let signed = authenticate(&call.front.credentials, expected, call.parts, payload, call.now_ms).await?;
    let Some(signed) = signed else {
        let message = "Request is missing Authentication Token".to_owned();
        return Ok(Err(Refusal(StatusCode::FORBIDDEN, "MissingAuthenticationToken", message)));
    };
    call.caller = signed.caller;
    let version = parameters.text("Version").unwrap_or_default();
    if action != "AssumeRole" || version != VERSION {
        let message = format!("Could not find operation {action} for version {version}");
        return Ok(Err(Refusal(StatusCode::BAD_REQUEST, "InvalidAction", message)));
    }
    if headers::text(&call.parts.headers, "x-amz-security-token")?.is_some() {
        let message = "A session's keys cannot be used to make another session".to_owned();
        return Ok(Err(Refusal(StatusCode::FORBIDDEN, "AccessDenied", message)));
    }
    Ok(Wanted::read(&parameters).and_then(|wanted| wanted.grant(call)))
}

/// A session as its caller wants it.
struct Wanted {
    role_arn: String,
    session_name: String,
    lifetime_s: u32,
    policy: Option<String>,
}

impl Wanted {
    fn read(parameters: &Query) -> Result<Wanted, Refusal> {
        let required = |name: &str, shown: &str, length: RangeInclusive<usize>| {
            let value = parameters.text(name).filter(|value| length.contains(&value.chars().count()));
            value.ok_or_else(|| {
                let (least, most) = (length.start(), length.end());
                invalid(format!("Member '{shown}' must have length between {least} and {most}"))
            })
        };
        let role_arn = required("RoleArn", "roleArn", ROLE_ARN_CHARS)?;
        let session_name = required("RoleSessionName", "roleSessionName", SESSION_NAME_CHARS)?;
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || "_+=,.@-".contains(character);
        if !session_name.chars().all(is_allowed) {
            return Err(invalid("Member 'roleSessionName' must satisfy regular expression pattern: [\\w+=,.@-]*"));
        }
        let lifetime_s = match parameters.text("DurationSeconds") {
            None => LIFETIME_S_DEFAULT,
            Some(text) => text.parse().ok().filter(|seconds| LIFETIME_S.contains(seconds)).ok_or_else(|| {
                let (least, most) = (LIFETIME_S.start(), LIFETIME_S.end());
                invalid(format!("Member 'durationSeconds' must have value between {least} and {most}"))
            })?,
        };
        let policy = parameters.text("Policy").filter(|policy| !policy.is_empty());
        if let Some(policy) = &policy {
            check_policy(policy)?;
        }
        Ok(Wanted { role_arn, session_name, lifetime_s, policy })
    }

    fn grant(self, call: &Call<'_>) -> Result<String, Refusal> {
        let packed = self.policy.as_ref().map(|policy| policy.chars().count() * 100 / POLICY_CHARS_MAX);
        let credentials = &call.front.credentials;
        let keys = credentials.session_keys(&call.caller, self.policy, self.lifetime_s, call.now_ms);
        let keys = keys.ok_or_else(|| {
            Refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented", "There is nothing to make keys with".to_owned())
        })?;
        Ok(xml::document("AssumeRoleResponse", Some(NAMESPACE), |out| {
            out.element("AssumeRoleResult", |out| {
                out.element("AssumedRoleUser", |out| {
                    out.text("AssumedRoleId", &format!("{}:{}", call.caller.access_key_id, self.session_name));
                    out.text("Arn", &format!("{}/{}", self.role_arn, self.session_name));
                });
                out.element("Credentials", |out| {
                    out.text("AccessKeyId", &keys.access_key_id);
                    out.text("SecretAccessKey", keys.secret_access_key.expose_secret());
                    out.text("SessionToken", keys.session_token.expose_secret());
                    out.text("Expiration", &timestamp(keys.expires_at_ms));
                });
                if let Some(packed) = packed {
                    out.value("PackedPolicySize", packed);
                }
            });
            out.element("ResponseMetadata", |out| out.text("RequestId", &call.request_id));
        }))
    }
}

fn check_policy(policy: &str) -> Result<(), Refusal> {
    if policy.chars().count() > POLICY_CHARS_MAX {
        return Err(invalid(format!("Member 'policy' must have length less than or equal to {POLICY_CHARS_MAX}")));
    }
    match Policy::parse(policy.as_bytes(), Place::Session) {
        Ok(_) => Ok(()),
        Err(PolicyError::Malformed(text)) => {
            Err(Refusal(StatusCode::BAD_REQUEST, "MalformedPolicyDocument", text.into_owned()))
        }
        Err(unserved) => Err(Refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented", unserved.to_string())),
    }
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, "ValidationError", message.into())
}

fn failure(call: &Call<'_>, code: &str, message: &str) -> String {
    xml::document("ErrorResponse", Some(NAMESPACE), |out| {
        out.element("Error", |out| {
            out.text("Type", "Sender");
            out.text("Code", code);
            out.text("Message", message);
        });
        out.text("RequestId", &call.request_id);
    })
}
