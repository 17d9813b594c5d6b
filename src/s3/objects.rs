//! Operations on one object: PutObject, GetObject, HeadObject, GetObjectAttributes.

use super::{
    answer::{self, S3Body},
    checksum,
    conditions::{self, ReadConditions, Verdict},
    error::{Error, Result, Subject},
    front::Call,
    headers,
    operation::{self, Object, PAGE_MAX},
    query::Query,
    range::{self, Span},
    receive::Incoming,
    xml,
};
use crate::{
    auth::grants::Authority,
    store::{Condition, ObjectInfo, ObjectPart, Terms},
};
use http::{HeaderName, Response, StatusCode, header};
use std::{ops::Range, sync::Arc};

/// From this size on a write is checked against what is there before its body is read, so that a refusal comes before
/// the bytes. Below, the extra look would cost more than it saves. Bytes.
const EARLY_CHECK_BYTES: u64 = 1 << 20;

const OBJECT_SIZE: HeaderName = HeaderName::from_static("x-amz-object-size");
const PARTS_COUNT: HeaderName = HeaderName::from_static("x-amz-mp-parts-count");

/// The most attributes a request may name.
const ATTRIBUTES: [&str; 5] = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];

impl Object {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { bucket: self.bucket.as_str(), key: self.key.as_str(), ..Subject::default() }
    }
}

pub(super) async fn put_object(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    headers::check_write(sent)?;
    let kept = headers::object_headers(sent)?;
    let (condition, stated_by) = conditions::of_write(sent)?;
    let terms = conditions::terms(sent, condition, &call.caller.principal);
    let subject = Subject { condition: stated_by, ..object.subject() };
    let incoming = Incoming::plan(call)?;
    if incoming.length() >= EARLY_CHECK_BYTES {
        check_early(call, object, &terms, &subject).await?;
    }
    let algorithm = incoming.claim.as_ref().map_or(checksum::DEFAULT_ALGORITHM, |claim| claim.algorithm);
    let received = incoming.receive(call, algorithm, &subject).await?;
    let Object { bucket, key } = object;
    let published = call.front.store.publish(bucket, key, received.sealed, kept, terms, call.now_ms).await;
    let published = published.map_err(|error| subject.error(error))?;
    let mut response = answer::empty(StatusCode::OK);
    let answer = response.headers_mut();
    headers::put(answer, header::ETAG, &headers::quoted(&published.etag));
    headers::put(answer, OBJECT_SIZE, &published.size.to_string());
    if let Some(checksum) = &published.checksum {
        headers::write_checksum(answer, checksum);
    }
    Ok(response)
}

/// Refuses what would be refused in the end anyhow. The check that counts is made where the object is published.
async fn check_early(call: &mut Call<'_>, object: &Object, terms: &Terms, subject: &Subject<'_>) -> Result<()> {
    super::buckets::require_bucket(call, &object.bucket).await?;
    let Object { bucket, key } = object;
    let condition = terms.condition();
    if *condition == Condition::None {
        return Ok(());
    }
    let done = call.front.store.was_done(bucket, key, terms, call.now_ms).await;
    if done.map_err(|error| subject.error(error))? {
        return Ok(());
    }
    let current = match call.front.store.head(bucket, key).await {
        Ok(current) => Some(current),
        Err(crate::store::Error::NoSuchKey) => None,
        Err(error) => return Err(subject.error(error)),
    };
    match (condition, &current) {
        (Condition::Etag(_), None) => Err(Error::NoSuchKey(key.as_str().to_owned())),
        _ if conditions::holds(condition, current.as_ref()) => Ok(()),
        _ => Err(Error::PreconditionFailed(subject.condition)),
    }
}

/// What a read asks for beside the object: decided alike when the object is opened and when it is answered.
struct ReadRequest {
    conditions: ReadConditions,
    range: Option<String>,
    part: Option<PartAsked>,
    now_ms: i64,
}

/// The part of an object to answer.
struct Selection {
    range: Range<u64>,
    status: StatusCode,
}

impl ReadRequest {
    fn of(call: &Call<'_>, by_part: bool) -> Result<ReadRequest> {
        let sent = &call.parts.headers;
        headers::check_read(sent)?;
        let range = headers::text(sent, "range")?.map(str::to_owned);
        if range.is_some() && by_part {
            return Err(Error::invalid_request("Cannot specify both Range header and partNumber query parameter"));
        }
        Ok(ReadRequest { conditions: ReadConditions::of_read(sent), range, part: None, now_ms: call.now_ms })
    }

    fn select(&self, object: &ObjectInfo) -> Result<Selection> {
        match self.conditions.check(object, self.now_ms) {
            Verdict::Proceed => {}
            Verdict::NotModified => {
                let (etag, last_modified_ms) = (object.etag.clone(), object.last_modified_ms);
                return Err(Error::NotModified { etag, last_modified_ms });
            }
            Verdict::Failed(condition) => return Err(Error::PreconditionFailed(condition)),
        }
        let whole = 0..object.size;
        if let Some(part) = &self.part {
            return part.select(object);
        }
        match range::resolve(self.range.as_deref(), object.size) {
            Span::Whole => Ok(Selection { range: whole, status: StatusCode::OK }),
            Span::Part(range) => Ok(Selection { range, status: StatusCode::PARTIAL_CONTENT }),
            Span::Unsatisfiable => {
                Err(Error::InvalidRange { requested: self.range.clone().unwrap_or_default(), size: object.size })
            }
        }
    }
}

/// A part asked for by its number, counted from 1, and where the index found it.
struct PartAsked {
    number: u32,
    /// The entity tag of the object it is part of, and its bytes.
    found: Option<(String, Range<u64>)>,
}

impl PartAsked {
    async fn find(call: &mut Call<'_>, object: &Object, number: u32) -> Result<(PartAsked, ObjectInfo)> {
        let found = call.front.store.object_part(&object.bucket, &object.key, number).await;
        let (info, part) = found.map_err(|error| object.subject().error(error))?;
        let found = part.map(|part| (info.etag.clone(), part.start..part.start + part.size));
        Ok((PartAsked { number, found }, info))
    }

    /// An object made in one piece is its own part 1.
    fn select(&self, object: &ObjectInfo) -> Result<Selection> {
        let (requested, actual) = (self.number, object.parts.unwrap_or(1));
        if requested > actual {
            return Err(Error::InvalidPartNumber { requested, actual });
        }
        let range = match (&self.found, object.parts) {
            (_, None) => 0..object.size,
            (Some((etag, range)), Some(_)) if *etag == object.etag => range.clone(),
            (_, Some(_)) => return Err(Error::Replaced),
        };
        let status = if object.size == 0 { StatusCode::OK } else { StatusCode::PARTIAL_CONTENT };
        Ok(Selection { range, status })
    }
}

pub(super) async fn get_object(call: &mut Call<'_>, object: &Object, part: Option<u32>) -> Result<Response<S3Body>> {
    let mut request = ReadRequest::of(call, part.is_some())?;
    if let Some(number) = part {
        request.part = Some(PartAsked::find(call, object, number).await?.0);
    }
    let request = Arc::new(request);
    let subject = object.subject();
    let decide = request.clone();
    let pick = move |info: &ObjectInfo| decide.select(info).ok().map(|selection| selection.range);
    let reading = call.front.store.read(&object.bucket, &object.key, pick).await;
    let reading = reading.map_err(|error| subject.error(error))?;
    let selection = request.select(&reading.info)?;
    let mut response = read_head(call, &reading.info, &selection, part)?;
    let length = selection.range.end - selection.range.start;
    let body = S3Body::stream(reading.stream, length, call.request_id.clone()).await;
    *response.body_mut() = body.map_err(|error| subject.error(error))?;
    Ok(response)
}

pub(super) async fn head_object(call: &mut Call<'_>, object: &Object, part: Option<u32>) -> Result<Response<S3Body>> {
    let mut request = ReadRequest::of(call, part.is_some())?;
    let info = match part {
        None => {
            let found = call.front.store.head(&object.bucket, &object.key).await;
            found.map_err(|error| object.subject().error(error))?
        }
        Some(number) => {
            let (asked, info) = PartAsked::find(call, object, number).await?;
            request.part = Some(asked);
            info
        }
    };
    let selection = request.select(&info)?;
    read_head(call, &info, &selection, part)
}

/// Status and headers of a read, which GET and HEAD share.
fn read_head(call: &Call<'_>, info: &ObjectInfo, selection: &Selection, part: Option<u32>) -> Result<Response<S3Body>> {
    let mut response = answer::empty(selection.status);
    let answer = response.headers_mut();
    headers::write_object(answer, info);
    let Range { start, end } = selection.range;
    headers::put(answer, header::CONTENT_LENGTH, &(end - start).to_string());
    if selection.status == StatusCode::PARTIAL_CONTENT {
        let last = end.saturating_sub(1);
        headers::put(answer, header::CONTENT_RANGE, &format!("bytes {start}-{last}/{}", info.size));
    }
    // The checksum is the whole object's: with a part of it, a client could only find it wrong.
    if start == 0
        && end == info.size
        && headers::shows_checksum(&call.parts.headers)
        && let Some(checksum) = &info.checksum
    {
        headers::write_checksum(answer, checksum);
    }
    if part.is_some()
        && let Some(parts) = info.parts
    {
        headers::put(answer, PARTS_COUNT, &parts.to_string());
    }
    let query = Query::parse(call.parts.uri.query().unwrap_or(""))?;
    if call.caller.authority == Authority::Anonymous && headers::has_overrides(&query) {
        return Err(Error::invalid_request(
            "Request specific response headers cannot be used for anonymous GET requests.",
        ));
    }
    headers::write_overrides(answer, &query)?;
    Ok(response)
}

pub(super) async fn get_object_attributes(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    super::buckets::require_bucket(call, &object.bucket).await?;
    headers::check_read(&call.parts.headers)?;
    let wanted = attributes(call)?;
    let wants = |name| wanted.contains(&name);
    let page = PartsPage::of(call)?;
    let limit = if wants("ObjectParts") { page.limit } else { 0 };
    let found = call.front.store.object_parts(&object.bucket, &object.key, page.after, limit).await;
    let (info, parts, truncated) = found.map_err(|error| object.subject().error(error))?;
    let document = xml::document("GetObjectAttributesResponse", Some(xml::NAMESPACE), |out| {
        if wants("ETag") {
            out.text("ETag", &info.etag);
        }
        if wants("Checksum")
            && let Some(checksum) = &info.checksum
        {
            out.element("Checksum", |out| {
                out.text(checksum::element(checksum.algorithm), &checksum.value);
                out.text("ChecksumType", checksum::type_name(checksum.kind));
            });
        }
        if wants("ObjectParts")
            && let Some(count) = info.parts
        {
            out.element("ObjectParts", |out| page.write(out, count, &parts, truncated));
        }
        if wants("StorageClass") {
            out.text("StorageClass", "STANDARD");
        }
        if wants("ObjectSize") {
            out.value("ObjectSize", info.size);
        }
    });
    let mut response = answer::document(document);
    let date = conditions::http_date(info.last_modified_ms);
    headers::put(response.headers_mut(), header::LAST_MODIFIED, &date);
    Ok(response)
}

/// Which parts GetObjectAttributes answers.
struct PartsPage {
    after: u32,
    limit: usize,
}

impl PartsPage {
    fn of(call: &Call<'_>) -> Result<PartsPage> {
        let number =
            |name: &'static str| match headers::text(&call.parts.headers, name)?.filter(|text| !text.is_empty()) {
                None => Ok(None),
                Some(text) => operation::bounded(text, name).map(Some),
            };
        let after = number("x-amz-part-number-marker")?.unwrap_or(0);
        let limit = number("x-amz-max-parts")?.and_then(|limit| usize::try_from(limit).ok());
        Ok(PartsPage { after: u32::try_from(after).unwrap_or(0), limit: limit.unwrap_or(PAGE_MAX).min(PAGE_MAX) })
    }

    fn write(&self, out: &mut xml::Writer, count: u32, parts: &[ObjectPart], truncated: bool) {
        out.value("IsTruncated", truncated);
        out.value("MaxParts", self.limit);
        out.value("NextPartNumberMarker", parts.last().map_or(0, |part| part.number));
        out.value("PartNumberMarker", self.after);
        for part in parts {
            out.element("Part", |out| {
                if let Some(checksum) = &part.checksum {
                    out.text(checksum::element(checksum.algorithm), &checksum.value);
                }
                out.value("PartNumber", part.number);
                out.value("Size", part.size);
            });
        }
        out.value("PartsCount", count);
    }
}

fn attributes(call: &Call<'_>) -> Result<Vec<&'static str>> {
    let mut wanted = Vec::new();
    for value in call.parts.headers.get_all("x-amz-object-attributes") {
        let named = value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
        for name in named {
            let known = ATTRIBUTES.into_iter().find(|known| *known == name).ok_or_else(|| {
                Error::invalid_argument("x-amz-object-attributes", name, "Invalid attribute name specified.")
            })?;
            wanted.push(known);
        }
    }
    if wanted.is_empty() {
        return Err(Error::invalid_request(
            "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty",
        ));
    }
    Ok(wanted)
}
