//! PostObject: an upload by a browser's form, signed by the policy in it.

use super::{
    answer::{self, S3Body},
    body::BodyPlan,
    buckets::require_bucket,
    checksum,
    error::{Error, Result, Subject},
    front::{Call, RawBody},
    headers,
    operation::{self, Object},
    post_form::{self, Fields, Form},
    post_policy::{PostError, PostPolicy},
    query::encode_name,
    sigv4::{self, Authorization, Mismatch, Payload, Timestamp, same_signature},
    xml,
};
use crate::{
    auth::grants::Action,
    store::{BucketName, ChecksumAlgorithm, Condition, ObjectInfo, Sealed},
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// What a form may hold beside its file. Bytes.
const FRAME_BYTES_MAX: u64 = 64 << 10;
/// How long a signature is good for, whatever its policy says: as long as AWS's keys of a day.
const SIGNATURE_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Fields that sign a form, in the order they are missed.
const SIGNING: [&str; 5] = ["policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];
const FILE_NAME: &str = "${filename}";

pub(super) async fn post_object(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let boundary = post_form::boundary(&call.parts.headers)?;
    let bytes_max = call.front.limits.object_bytes_max;
    let plan = BodyPlan::new(&call.parts.headers, &Payload::Unsigned, None, bytes_max + FRAME_BYTES_MAX);
    let body = call.open_body(plan.map_err(Error::Body)?);
    let mut form = Form::new(body, &boundary);
    let fields = form.fields().await?;
    let policy = sign_in(call, bucket, &fields).await?;
    let key = fields.get("key").filter(|key| !key.is_empty()).ok_or(PostError::Missing("key"))?;
    let key = operation::object_key(&key.replace(FILE_NAME, &fields.file_name))?;
    let object = Object { bucket: bucket.clone(), key };
    call.require_named("PutObject", Action::PutObject, object.resource())?;
    call.spare_metadata(Action::PutObject, bucket.as_str(), object.key.as_str()).await?;
    require_bucket(call, bucket).await?;

    let stated = as_headers(&fields)?;
    headers::check_write(&stated)?;
    let kept = headers::object_headers(&stated)?;
    let claim = checksum::claim(&stated, None)?;
    let algorithm = claim.as_ref().map_or(checksum::DEFAULT_ALGORITHM, |claim| claim.algorithm);
    let sizes = policy.and_then(|policy| policy.sizes).unwrap_or(0..=bytes_max);
    let sealed = receive(call, &mut form, algorithm, (*sizes.end()).min(bytes_max), &object.subject()).await?;
    if sealed.size < *sizes.start() {
        let (proposed_bytes, min_bytes) = (sealed.size, *sizes.start());
        return Err(PostError::TooSmall { proposed_bytes, min_bytes }.into());
    }
    if let (Some(claim), Some((_, digest))) = (&claim, &sealed.checksum) {
        claim.verify(digest, None)?;
    }
    form.finish().await?;
    let published = call.front.store.publish(bucket, &object.key, sealed, kept, Condition::None, call.now_ms).await;
    let info = published.map_err(|error| object.subject().error(error))?;
    answer(call, &object, &info, &fields)
}

/// Checks the form's signature and policy, and takes the signer for the caller. A form without either is anonymous.
async fn sign_in(call: &mut Call<'_>, bucket: &BucketName, fields: &Fields) -> Result<Option<PostPolicy>> {
    if SIGNING.iter().all(|name| fields.get(name).is_none()) {
        return Ok(None);
    }
    let [policy, algorithm, credential, date, signature] =
        SIGNING.map(|name| fields.get(name).ok_or(PostError::Missing(name)));
    let (policy, algorithm, credential, date, signature) = (policy?, algorithm?, credential?, date?, signature?);
    if algorithm != ALGORITHM {
        return Err(Error::invalid_argument("X-Amz-Algorithm", algorithm, "Only AWS4-HMAC-SHA256 is supported"));
    }
    let signed_at = Timestamp::parse(date).ok_or_else(|| {
        // AWS spells it so.
        Error::invalid_argument("X-Amz-Date", date, "X-Amz-Date must be formated via ISO8601 Long format")
    })?;
    let (access_key_id, scope) = Authorization::parse_post_credential(credential, &call.front.region)
        .map_err(|fault| Error::invalid_argument("x-amz-credential", credential, fault.to_string()))?;
    if call.now_ms.saturating_sub(signed_at.epoch_ms()).saturating_abs() > SIGNATURE_MS_MAX {
        return Err(PostError::Refused("Policy expired.".to_owned()).into());
    }
    let token = fields.get("x-amz-security-token");
    let credentials = &call.front.credentials;
    let (caller, key) = credentials.signing_key(&access_key_id, token, &scope, call.now_ms).await?;
    let computed = key.sign(policy.as_bytes());
    if !same_signature(&computed, signature.as_bytes()) {
        return Err(Error::Signature(sigv4::Error::SignatureDoesNotMatch(Box::new(Mismatch {
            access_key_id,
            string_to_sign: policy.to_owned(),
            signature_provided: signature.to_owned(),
            canonical_request: Vec::new(),
        }))));
    }
    let policy = PostPolicy::parse(policy)?;
    policy.check(bucket.as_str(), &fields.fields, call.now_ms)?;
    call.caller = caller;
    Ok(Some(policy))
}

/// The fields that say what other uploads say in headers.
fn as_headers(fields: &Fields) -> Result<HeaderMap> {
    let mut stated = HeaderMap::new();
    for (name, value) in &fields.fields {
        let name = match name.as_str() {
            "acl" => "x-amz-acl",
            "tagging" => "x-amz-tagging",
            "cache-control"
            | "content-type"
            | "content-disposition"
            | "content-encoding"
            | "content-language"
            | "expires" => name,
            _ if name.starts_with("x-amz-") && !SIGNING.contains(&name.as_str()) => name,
            _ => continue,
        };
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_bytes(value.as_bytes()).ok());
        let (name, value) = parsed.ok_or(PostError::Malformed)?;
        stated.append(name, value);
    }
    Ok(stated)
}

/// Reads the file into the store, unpublished.
async fn receive(
    call: &mut Call<'_>,
    form: &mut Form<RawBody>,
    algorithm: ChecksumAlgorithm,
    bytes_max: u64,
    subject: &Subject<'_>,
) -> Result<Sealed> {
    let mut upload = call.front.store.begin(Some(algorithm));
    let mut bytes = 0;
    while let Some(piece) = form.chunk().await? {
        bytes += piece.len() as u64;
        if bytes > bytes_max {
            let (proposed_bytes, max_bytes) = (bytes, bytes_max);
            return Err(Error::Body(super::body::Error::EntityTooLarge { proposed_bytes, max_bytes }));
        }
        call.bytes_in = bytes;
        upload.write(piece).await.map_err(|error| subject.error(error))?;
    }
    upload.seal().await.map_err(|error| subject.error(error))
}

/// What the form asks its browser to be told.
fn answer(call: &Call<'_>, object: &Object, info: &ObjectInfo, fields: &Fields) -> Result<Response<S3Body>> {
    let etag = headers::quoted(&info.etag);
    let (bucket, key) = (object.bucket.as_str(), object.key.as_str());
    let host = call.parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let location = format!("http://{host}/{bucket}/{}", encode_name(key));
    let redirect = fields.get("success_action_redirect").or_else(|| fields.get("redirect"));
    let redirect = redirect.and_then(|target| redirected(target, bucket, key, &etag));
    let mut response = match (&redirect, fields.get("success_action_status")) {
        (Some(_), _) => answer::empty(StatusCode::SEE_OTHER),
        (None, Some("200")) => answer::empty(StatusCode::OK),
        (None, Some("201")) => {
            let document = xml::document("PostResponse", Some(xml::NAMESPACE), |out| {
                out.text("Location", &location);
                out.text("Bucket", bucket);
                out.text("Key", key);
                out.text("ETag", &etag);
            });
            let mut response = answer::document(document);
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        (None, _) => answer::empty(StatusCode::NO_CONTENT),
    };
    let out = response.headers_mut();
    headers::put(out, header::ETAG, &etag);
    headers::put(out, header::LOCATION, redirect.as_deref().unwrap_or(&location));
    if let Some(checksum) = &info.checksum {
        headers::write_checksum(out, checksum);
    }
    Ok(response)
}

/// The page to go on with, told of the object; `None` for what is no page.
fn redirected(target: &str, bucket: &str, key: &str, etag: &str) -> Option<String> {
    let uri: http::Uri = target.parse().ok()?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return None;
    }
    let separator = if uri.query().is_some() { '&' } else { '?' };
    let [key, etag] = [key, etag].map(|text| sigv4::encode_component(text.as_bytes()));
    Some(format!("{target}{separator}bucket={bucket}&key={key}&etag={etag}"))
}
