//! One request from its head to its answer: parse, authenticate, authorise, dispatch.

use super::{
    access::{self, BucketPolicy},
    answer::{self, Answered, Asked, S3Body},
    authenticate::{Credentials, anonymous, authenticate},
    body::{BodyPlan, RequestBody},
    buckets, config, copy, cors, delete,
    error::{Error, Result, Subject},
    headers, list, multipart, objects,
    operation::{self, Object, Operation, Part},
    post_object,
    sigv4::{ChunkSigner, Payload, SERVICE_S3},
    sts,
};
use crate::{
    app::now_ms,
    auth::{
        Caller, Named,
        grants::{Action, Authority, Resource},
    },
    store::{BucketName, SettingName, Store},
    telemetry::{Chain, RequestId},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use std::{cell::RefCell, sync::Arc};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// Bounds of single requests.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Object or part stored by one request. Bytes; S3's own bound is 5 GiB.
    pub object_bytes_max: u64,
    /// XML document of a request. Bytes.
    pub document_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { object_bytes_max: 5 << 30, document_bytes_max: 8 << 20 }
    }
}

/// The S3 service over one store.
pub struct Front {
    pub store: Store,
    pub credentials: Credentials,
    /// The region clients must sign for.
    pub region: String,
    /// The name whose subdomains are buckets; without it, buckets are named by path only.
    pub base_host: Option<String>,
    pub limits: Limits,
}

/// A request's body behind one type, whatever carries it.
pub(super) type RawBody = UnsyncBoxBody<Bytes, Unreadable>;

/// The connection failed under a request's body.
#[derive(Debug, thiserror::Error)]
#[error("request body cannot be read")]
pub(super) struct Unreadable;

/// An authenticated request while it is being answered.
pub(super) struct Call<'a> {
    pub front: &'a Front,
    pub parts: &'a Parts,
    pub caller: Caller,
    pub now_ms: i64,
    pub request_id: Arc<str>,
    /// Bytes of objects read so far.
    pub bytes_in: u64,
    /// Of the bucket it was asked for last.
    pub policy: RefCell<Option<(String, Option<Arc<BucketPolicy>>)>>,
    payload: Payload,
    signer: Option<ChunkSigner>,
    body: &'a mut Option<RawBody>,
}

impl Front {
    /// Answers one request. Never fails: what goes wrong is an answer too.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<S3Body>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let mut body = Some(body.map_err(|_| Unreadable).boxed_unsync());
        let mut answered = Answered {
            operation: "Unknown",
            principal: None,
            request_id: request_id(&parts),
            code: None,
            bytes_in: 0,
            bytes_out: 0,
        };
        let (result, cors) = match self.cors(&parts) {
            Ok(cors) => (self.answer(&parts, &mut body, &mut answered).await, cors),
            Err(error) => (Err(error), Vec::new()),
        };
        let mut response = result.unwrap_or_else(|error| self.refuse(&error, &parts, &mut answered));
        let out = response.headers_mut();
        cors::write(out, &cors);
        headers::put(out, REQUEST_ID, &answered.request_id);
        out.insert(header::SERVER, HeaderValue::from_static("Tidewater"));
        answered.bytes_out = response.body().length();
        response.extensions_mut().insert(answered);
        response
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: &mut Option<RawBody>,
        answered: &mut Answered,
    ) -> Result<Response<S3Body>> {
        let operation = self.parse(parts)?;
        answered.operation = operation.name();
        if let Operation::Preflight { bucket } = &operation {
            return self.preflight(parts, bucket.as_ref()).await;
        }
        let now_ms = now_ms();
        let mut call = Call {
            front: self,
            parts,
            caller: anonymous(),
            now_ms,
            request_id: answered.request_id.clone(),
            bytes_in: 0,
            policy: RefCell::default(),
            payload: Payload::Unsigned,
            signer: None,
            body,
        };
        // These say who they are in their bodies, or sign for another service.
        match &operation {
            Operation::PostObject { bucket } => {
                let response = post_object::post_object(&mut call, bucket).await;
                answered.principal = call.principal();
                answered.bytes_in = call.bytes_in;
                return response;
            }
            Operation::SecurityTokens => {
                let response = sts::answer(&mut call).await;
                answered.principal = call.principal();
                return response;
            }
            _ => call.authenticate().await?,
        }
        answered.principal = call.principal();
        call.authorise(&operation).await?;
        if call.payload.is_chunked() && !headers::takes_chunks(&operation) {
            return Err(Error::invalid_request("The value of x-amz-content-sha256 header is invalid."));
        }
        let response = dispatch(&mut call, operation).await;
        answered.bytes_in = call.bytes_in;
        response
    }

    /// Headers for the answer to a request from a page of another origin.
    fn cors(&self, parts: &Parts) -> Result<Vec<(HeaderName, String)>> {
        if !parts.headers.contains_key(header::ORIGIN) || parts.method == http::Method::OPTIONS {
            return Ok(Vec::new());
        }
        // What names no bucket is refused when it is parsed for good.
        let Some(bucket) = self.request(parts).bucket(self.base_host.as_deref()) else { return Ok(Vec::new()) };
        match self.store.settings(&bucket).get(SettingName::Cors) {
            Some(document) => cors::of_actual(&cors::Rules::parse(document.as_bytes())?, &parts.headers, &parts.method),
            None => Ok(Vec::new()),
        }
    }

    /// Answers a cross-origin preflight from the bucket's rules.
    async fn preflight(&self, parts: &Parts, bucket: Option<&BucketName>) -> Result<Response<S3Body>> {
        let asked = cors::Preflight::read(&parts.headers)?;
        let bucket = bucket.ok_or(Error::CorsNotEnabled)?;
        let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
        if !self.store.bucket_exists(bucket).await.map_err(|error| subject.error(error))? {
            return Err(Error::NoSuchBucket(bucket.as_str().to_owned()));
        }
        let settings = self.store.settings(bucket);
        let document = settings.get(SettingName::Cors).ok_or(Error::CorsNotEnabled)?;
        let headers = asked.answer(&cors::Rules::parse(document.as_bytes())?)?;
        let mut response = answer::empty(http::StatusCode::OK);
        cors::write(response.headers_mut(), &headers);
        Ok(response)
    }

    fn parse(&self, parts: &Parts) -> Result<Operation> {
        Operation::parse(&self.request(parts), self.base_host.as_deref())
    }

    fn request<'a>(&self, parts: &'a Parts) -> operation::Request<'a> {
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        operation::Request {
            method: &parts.method,
            host: host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or(""),
            copies: parts.headers.contains_key(copy::COPY_SOURCE),
        }
    }

    /// The answer to a failed request; faults of the server are logged here, once.
    fn refuse(&self, error: &Error, parts: &Parts, answered: &mut Answered) -> Response<S3Body> {
        let request_id = &answered.request_id;
        if error.is_fault() {
            tracing::error!(%request_id, operation = answered.operation, error = %Chain(error), "request failed");
        }
        let is_head = parts.method == http::Method::HEAD;
        answered.code = Some(error.describe().code);
        answer::failure(error, &Asked { path: parts.uri.path(), is_head, request_id })
    }
}

impl Call<'_> {
    /// Who asks, once that is known.
    fn principal(&self) -> Option<Arc<str>> {
        (self.caller.authority != Authority::Anonymous).then(|| self.caller.principal.clone())
    }

    /// Checks the signature, if there is one.
    async fn authenticate(&mut self) -> Result<()> {
        let front = self.front;
        let expected = (front.region.as_str(), SERVICE_S3);
        match authenticate(&front.credentials, expected, self.parts, None, self.now_ms).await? {
            Some(authenticated) => {
                self.caller = authenticated.caller;
                self.payload = authenticated.payload;
                self.signer = Some(authenticated.signer);
            }
            None => {
                if let Some(stated) = self.parts.headers.get("x-amz-content-sha256") {
                    self.payload = Payload::parse(stated.as_bytes()).map_err(Error::Signature)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the caller may do `operation` at all; what its document or headers name besides is checked there.
    async fn authorise(&mut self, operation: &Operation) -> Result<()> {
        self.check_owner("x-amz-expected-bucket-owner")?;
        let Some((action, resource)) = required(operation) else {
            let tells_nothing = matches!(operation, Operation::DeleteObjects { .. });
            return if tells_nothing || self.principal().is_some() { Ok(()) } else { Err(Error::AccessDenied) };
        };
        self.require_named(access::policy_name(operation), action, resource)?;
        match resource {
            Resource::Object { bucket, key } => self.spare_metadata(action, bucket, key).await,
            Resource::Server | Resource::Bucket(_) => Ok(()),
        }
    }

    /// Keeps the holder of a table's key from breaking the table: files that its history names are never overwritten,
    /// the current one not deleted either.
    ///
    /// # Errors
    /// `Error::MetadataInUse`; `Error::Credentials` when that cannot be looked up.
    pub async fn spare_metadata(&mut self, action: Action, bucket: &str, key: &str) -> Result<()> {
        let writes = matches!(action, Action::PutObject | Action::DeleteObject);
        if !writes || self.caller.authority == Authority::Full {
            return Ok(());
        }
        match (self.front.credentials.metadata_named(bucket, key).await?, action) {
            (None, _) | (Some(Named::Earlier), Action::DeleteObject) => Ok(()),
            (Some(Named::Current | Named::Earlier), _) => Err(Error::MetadataInUse),
        }
    }

    /// Whether the owner that the header `name` expects is the one shown to this caller.
    ///
    /// # Errors
    /// `Error::AccessDenied`.
    pub fn check_owner(&self, name: &'static str) -> Result<()> {
        match headers::text(&self.parts.headers, name)? {
            Some(owner) if !owner.is_empty() && owner != self.owner() => Err(Error::AccessDenied),
            _ => Ok(()),
        }
    }

    /// Who owns everything, as this caller is shown it.
    pub fn owner(&self) -> &str {
        &self.caller.access_key_id
    }

    /// How the body is to be read. Reads nothing yet, so that a request can be refused before its client sends bytes.
    ///
    /// # Errors
    /// `Error::Body`.
    pub fn plan_body(&mut self, bytes_max: u64) -> Result<BodyPlan> {
        BodyPlan::new(&self.parts.headers, &self.payload, self.signer.take(), bytes_max).map_err(Error::Body)
    }

    /// Starts reading the body: a client that waits for `100 Continue` gets it now.
    pub fn open_body(&mut self, plan: BodyPlan) -> RequestBody<RawBody> {
        let body =
            self.body.take().unwrap_or_else(|| http_body_util::Empty::new().map_err(|_| Unreadable).boxed_unsync());
        RequestBody::new(body, plan)
    }

    /// The whole body of a request that is a document.
    ///
    /// # Errors
    /// `Error::MaxMessageLengthExceeded`, `Error::Body`.
    pub async fn document(&mut self) -> Result<Bytes> {
        let limit = self.front.limits.document_bytes_max;
        let too_large = |error| match error {
            super::body::Error::EntityTooLarge { .. } => Error::MaxMessageLengthExceeded(limit),
            other => Error::Body(other),
        };
        let plan = BodyPlan::new(&self.parts.headers, &self.payload, self.signer.take(), limit).map_err(too_large)?;
        Ok(self.open_body(plan).collect().await.map_err(too_large)?.0)
    }
}

/// What an operation needs; `None` for those that are authorised otherwise.
pub(super) fn required(operation: &Operation) -> Option<(Action, Resource<'_>)> {
    let object = Object::resource;
    Some(match operation {
        // The keys of the document are authorised one by one; what is not implemented tells nothing.
        Operation::Preflight { .. }
        | Operation::DeleteObjects { .. }
        | Operation::PostObject { .. }
        | Operation::SecurityTokens
        | Operation::NotImplemented(_) => return None,
        Operation::ListBuckets { .. } => (Action::ListBuckets, Resource::Server),
        Operation::CreateBucket { bucket } => (Action::CreateBucket, Resource::Bucket(bucket.as_str())),
        Operation::DeleteBucket { bucket } => (Action::DeleteBucket, Resource::Bucket(bucket.as_str())),
        Operation::Configure { bucket, .. } => (Action::ConfigureBucket, Resource::Bucket(bucket.as_str())),
        Operation::HeadBucket { bucket }
        | Operation::GetBucketLocation { bucket }
        | Operation::GetBucketVersioning { bucket } => (Action::HeadBucket, Resource::Bucket(bucket.as_str())),
        Operation::ListObjects { bucket, listing, .. }
        | Operation::ListObjectsV2 { bucket, listing, .. }
        | Operation::ListObjectVersions { bucket, listing, .. }
        | Operation::ListMultipartUploads { bucket, listing, .. } => {
            (Action::ListObjects, Resource::Object { bucket: bucket.as_str(), key: &listing.prefix })
        }
        Operation::GetObject { object: named, .. }
        | Operation::HeadObject { object: named, .. }
        | Operation::GetObjectAttributes { object: named } => (Action::GetObject, object(named)),
        Operation::PutObject { object: named }
        | Operation::CopyObject { object: named }
        | Operation::CreateMultipartUpload { object: named }
        | Operation::UploadPart(Part { object: named, .. })
        | Operation::UploadPartCopy(Part { object: named, .. })
        | Operation::CompleteMultipartUpload { object: named, .. }
        | Operation::AbortMultipartUpload { object: named, .. }
        | Operation::ListParts { object: named, .. } => (Action::PutObject, object(named)),
        Operation::DeleteObject { object: named } => (Action::DeleteObject, object(named)),
    })
}

impl Object {
    pub(super) fn resource(&self) -> Resource<'_> {
        Resource::Object { bucket: self.bucket.as_str(), key: self.key.as_str() }
    }
}

async fn dispatch(call: &mut Call<'_>, operation: Operation) -> Result<Response<S3Body>> {
    match operation {
        Operation::Preflight { .. } => Err(Error::CorsNotEnabled),
        Operation::PostObject { bucket } => post_object::post_object(call, &bucket).await,
        Operation::SecurityTokens => sts::answer(call).await,
        Operation::Configure { bucket, call: what } => config::answer(call, &bucket, what).await,
        Operation::NotImplemented(name) => Err(Error::NotImplemented(name)),
        Operation::ListBuckets { prefix, after, limit } => buckets::list_buckets(call, &prefix, after, limit).await,
        Operation::CreateBucket { bucket } => buckets::create_bucket(call, &bucket).await,
        Operation::HeadBucket { bucket } => buckets::head_bucket(call, &bucket).await,
        Operation::DeleteBucket { bucket } => buckets::delete_bucket(call, &bucket).await,
        Operation::GetBucketLocation { bucket } => buckets::get_bucket_location(call, &bucket).await,
        Operation::GetBucketVersioning { bucket } => buckets::get_bucket_versioning(call, &bucket).await,
        Operation::ListObjects { bucket, listing, marker } => list::list_objects(call, &bucket, &listing, marker).await,
        Operation::ListObjectsV2 { bucket, listing, start_after, continuation_token, fetch_owner } => {
            let start = list::Start { start_after, continuation_token, fetch_owner };
            list::list_objects_v2(call, &bucket, &listing, start).await
        }
        Operation::ListObjectVersions { bucket, listing, key_marker } => {
            list::list_object_versions(call, &bucket, &listing, key_marker).await
        }
        Operation::ListMultipartUploads { bucket, listing, key_marker, upload_id_marker } => {
            multipart::list_multipart_uploads(call, &bucket, &listing, key_marker, upload_id_marker).await
        }
        Operation::DeleteObjects { bucket } => delete::delete_objects(call, &bucket).await,
        Operation::GetObject { object, part } => objects::get_object(call, &object, part).await,
        Operation::HeadObject { object, part } => objects::head_object(call, &object, part).await,
        Operation::GetObjectAttributes { object } => objects::get_object_attributes(call, &object).await,
        Operation::PutObject { object } => objects::put_object(call, &object).await,
        Operation::CopyObject { object } => copy::copy_object(call, &object).await,
        Operation::DeleteObject { object } => delete::delete_object(call, &object).await,
        Operation::CreateMultipartUpload { object } => multipart::create_multipart_upload(call, &object).await,
        Operation::UploadPart(part) => multipart::upload_part(call, &part).await,
        Operation::UploadPartCopy(part) => copy::upload_part_copy(call, &part).await,
        Operation::CompleteMultipartUpload { object, upload_id } => {
            super::complete::complete_multipart_upload(call, &object, &upload_id).await
        }
        Operation::AbortMultipartUpload { object, upload_id } => {
            multipart::abort_multipart_upload(call, &object, &upload_id).await
        }
        Operation::ListParts { object, upload_id, after, limit, url_encoded } => {
            let page = multipart::PartsPage { after, limit, url_encoded };
            multipart::list_parts(call, &object, &upload_id, &page).await
        }
    }
}

/// The id the server logs this request under; without a server around, one like S3's.
fn request_id(parts: &Parts) -> Arc<str> {
    match parts.extensions.get::<RequestId>() {
        Some(id) => id.as_arc(),
        None => format!("{:016X}", uuid::Uuid::new_v4().as_u64_pair().0).into(),
    }
}
