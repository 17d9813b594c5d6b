//! Multipart uploads up to completion: CreateMultipartUpload, UploadPart, ListParts, ListMultipartUploads,
//! AbortMultipartUpload.

use super::{
    answer::{self, S3Body},
    checksum::{self, Claim},
    conditions,
    error::{Error, Result, Subject},
    front::Call,
    headers::{self, quoted},
    list::{timestamp, write_owner},
    operation::{Listing, Object, PAGE_MAX, Part},
    query::encode_name,
    receive::Incoming,
    xml,
};
use crate::store::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumType, NewUpload, OpenUploadInfo, PartInfo, Sealed, UploadChecksum,
};
use http::{HeaderName, Response, StatusCode, header};

const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// Sorts behind every upload id: where a listing goes on after all uploads of one key.
const AFTER_ALL_UPLOADS: &str = "\u{10ffff}";
/// Hexadecimal digits of an upload's id.
const UPLOAD_ID_CHARS: usize = 32;
/// Pages of the store that one ListMultipartUploads may read while it groups keys, and uploads on each: few in tests.
const STORE_PAGES_MAX: usize = if cfg!(test) { 2 } else { 100 };
const STORE_PAGE: usize = if cfg!(test) { 5 } else { PAGE_MAX };

/// What an upload without an algorithm gets. Its parts may state any checksum: each is verified, none is kept.
pub(super) const DEFAULT_CHECKSUM: UploadChecksum =
    UploadChecksum { algorithm: checksum::DEFAULT_ALGORITHM, kind: ChecksumType::FullObject, asked: false };

impl Part {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { upload_id: &self.upload_id, ..self.object.subject() }
    }
}

pub(super) async fn create_multipart_upload(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    headers::check_write(sent)?;
    let kept = headers::object_headers(sent)?;
    let asked = asked_checksum(call)?;
    let new = NewUpload { headers: kept, checksum: Some(asked.unwrap_or(DEFAULT_CHECKSUM)) };
    let created = call.front.store.create_upload(&object.bucket, &object.key, new, call.now_ms).await;
    let upload_id = created.map_err(|error| object.subject().error(error))?;
    let document = xml::document("InitiateMultipartUploadResult", Some(xml::NAMESPACE), |out| {
        out.text("Bucket", object.bucket.as_str());
        out.text("Key", object.key.as_str());
        out.text("UploadId", &upload_id);
    });
    let mut response = answer::document(document);
    if let Some(UploadChecksum { algorithm, kind, .. }) = asked {
        headers::put(response.headers_mut(), CHECKSUM_ALGORITHM, checksum::name(algorithm));
        headers::put(response.headers_mut(), CHECKSUM_TYPE, checksum::type_name(kind));
    }
    Ok(response)
}

/// The checksum an upload is created for, and how that of the whole is made of its parts'.
fn asked_checksum(call: &Call<'_>) -> Result<Option<UploadChecksum>> {
    let sent = &call.parts.headers;
    let algorithm = headers::text(sent, "x-amz-checksum-algorithm")?.filter(|name| !name.is_empty());
    let kind = headers::text(sent, "x-amz-checksum-type")?.filter(|name| !name.is_empty());
    let algorithm = algorithm.map(checksum::parse_name).transpose()?;
    let kind = kind.map(checksum::parse_type).transpose()?;
    let (algorithm, kind) = match (algorithm, kind) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return Err(Error::invalid_request(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            ));
        }
        (Some(ChecksumAlgorithm::Crc64Nvme), None) => (ChecksumAlgorithm::Crc64Nvme, ChecksumType::FullObject),
        (Some(algorithm), None) => (algorithm, ChecksumType::Composite),
        (Some(algorithm), Some(kind)) => (algorithm, kind),
    };
    let possible = match kind {
        ChecksumType::Composite => algorithm != ChecksumAlgorithm::Crc64Nvme,
        ChecksumType::FullObject => algorithm.combines(),
    };
    if possible {
        return Ok(Some(UploadChecksum { algorithm, kind, asked: true }));
    }
    Err(Error::InvalidRequest(
        format!(
            "The {} checksum type cannot be used with the {} checksum algorithm.",
            checksum::type_name(kind),
            checksum::name(algorithm).to_ascii_lowercase()
        )
        .into(),
    ))
}

pub(super) async fn upload_part(call: &mut Call<'_>, part: &Part) -> Result<Response<S3Body>> {
    headers::check_part(&call.parts.headers)?;
    let incoming = Incoming::plan(call)?;
    let upload = upload_checksum(call, part).await?;
    check_claim(incoming.claim.as_ref(), upload)?;
    let received = incoming.receive(call, upload.algorithm, &part.subject()).await?;
    let stored = publish_part(call, part, received.sealed).await?;
    let mut response = answer::empty(StatusCode::OK);
    let answer = response.headers_mut();
    headers::put(answer, header::ETAG, &quoted(&stored.etag));
    if let Some(Checksum { algorithm, value, .. }) = received.verified.or(stored.checksum) {
        headers::put(answer, checksum::header(algorithm), &value);
    }
    Ok(response)
}

/// What a part's digest is kept by. Also finds out whether the upload is there, before a body is read.
///
/// # Errors
/// `Error::NoSuchUpload`, `Error::NoSuchBucket`.
pub(super) async fn upload_checksum(call: &mut Call<'_>, part: &Part) -> Result<UploadChecksum> {
    let Object { bucket, key } = &part.object;
    let found = call.front.store.upload_checksum(bucket, key, &part.upload_id).await;
    Ok(found.map_err(|error| part.subject().error(error))?.unwrap_or(DEFAULT_CHECKSUM))
}

/// Whether a part may state `claim`: by the upload's algorithm where one was asked for, and then for a composite checksum
/// it must.
fn check_claim(claim: Option<&Claim>, upload: UploadChecksum) -> Result<()> {
    let actual = match claim {
        _ if !upload.asked => return Ok(()),
        Some(claim) if claim.algorithm == upload.algorithm => return Ok(()),
        Some(claim) => checksum::name(claim.algorithm),
        None if upload.kind == ChecksumType::FullObject => return Ok(()),
        None => "null",
    };
    let expected = checksum::name(upload.algorithm);
    Err(Error::InvalidRequest(
        format!("Checksum Type mismatch occurred, expected checksum Type: {expected}, actual checksum Type: {actual}")
            .into(),
    ))
}

pub(super) async fn publish_part(call: &mut Call<'_>, part: &Part, sealed: Sealed) -> Result<PartInfo> {
    let Part { object: Object { bucket, key }, upload_id, number } = part;
    let stored = call.front.store.publish_part(bucket, key, upload_id, *number, sealed, call.now_ms).await;
    stored.map_err(|error| part.subject().error(error))
}

pub(super) async fn abort_multipart_upload(
    call: &mut Call<'_>,
    object: &Object,
    upload_id: &str,
) -> Result<Response<S3Body>> {
    check_initiated(call, object, upload_id).await?;
    let aborted = call.front.store.abort_upload(&object.bucket, &object.key, upload_id).await;
    aborted.map_err(|error| Subject { upload_id, ..object.subject() }.error(error))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Whether the upload began when its client says so, to the second. A time to come says nothing, as in conditions of reads.
async fn check_initiated(call: &mut Call<'_>, object: &Object, upload_id: &str) -> Result<()> {
    let header = "x-amz-if-match-initiated-time";
    let Some(expected_s) = headers::text(&call.parts.headers, header)?.and_then(conditions::date_s) else {
        return Ok(());
    };
    let started = call.front.store.upload_started_ms(&object.bucket, &object.key, upload_id).await;
    let started_ms = started.map_err(|error| Subject { upload_id, ..object.subject() }.error(error))?;
    let is_to_come = expected_s > call.now_ms.div_euclid(1000);
    if is_to_come || started_ms.div_euclid(1000) == expected_s {
        return Ok(());
    }
    Err(Error::PreconditionFailed("If-Match-Initiated-Time"))
}

/// Which parts a ListParts answers, and how.
pub(super) struct PartsPage {
    pub after: u32,
    pub limit: usize,
    pub url_encoded: bool,
}

pub(super) async fn list_parts(
    call: &mut Call<'_>,
    object: &Object,
    upload_id: &str,
    page: &PartsPage,
) -> Result<Response<S3Body>> {
    let Object { bucket, key } = object;
    let subject = Subject { upload_id, ..object.subject() };
    let store = &call.front.store;
    let upload = store.upload_checksum(bucket, key, upload_id).await.map_err(|error| subject.error(error))?;
    let listed = store.list_parts(bucket, key, upload_id, page.after, page.limit).await;
    let (parts, more) = listed.map_err(|error| subject.error(error))?;
    let truncated = more && page.limit > 0;
    let document = xml::document("ListPartsResult", Some(xml::NAMESPACE), |out| {
        out.text("Bucket", bucket.as_str());
        if page.url_encoded {
            out.text("EncodingType", "url");
            out.text("Key", &encode_name(key.as_str()));
        } else {
            out.text("Key", key.as_str());
        }
        out.text("UploadId", upload_id);
        write_owner(out, "Initiator", call.owner());
        write_owner(out, "Owner", call.owner());
        out.text("StorageClass", "STANDARD");
        out.value("PartNumberMarker", page.after);
        out.value("NextPartNumberMarker", parts.last().map_or(0, |part| part.number));
        out.value("MaxParts", page.limit);
        out.value("IsTruncated", truncated);
        let asked = upload.filter(|upload| upload.asked);
        out.text("ChecksumAlgorithm", asked.map_or("null", |asked| checksum::name(asked.algorithm)));
        out.text("ChecksumType", asked.map_or("null", |asked| checksum::type_name(asked.kind)));
        for part in &parts {
            out.element("Part", |out| write_part(out, part, asked.is_some()));
        }
    });
    Ok(answer::document(document))
}

fn write_part(out: &mut xml::Writer, part: &PartInfo, shows_checksum: bool) {
    out.value("PartNumber", part.number);
    out.text("LastModified", &timestamp(part.last_modified_ms));
    out.text("ETag", &quoted(&part.etag));
    out.value("Size", part.size);
    if let Some(checksum) = part.checksum.as_ref().filter(|_| shows_checksum) {
        out.text(checksum::element(checksum.algorithm), &checksum.value);
    }
}

/// A page of open uploads, grouped by the listing's delimiter.
#[derive(Default)]
struct UploadsPage {
    uploads: Vec<OpenUploadInfo>,
    common_prefixes: Vec<String>,
    /// Key and upload id behind which the next page begins.
    next: Option<(String, String)>,
}

pub(super) async fn list_multipart_uploads(
    call: &mut Call<'_>,
    bucket: &BucketName,
    listing: &Listing,
    key_marker: Option<String>,
    upload_id_marker: Option<String>,
) -> Result<Response<S3Body>> {
    // Without a key an upload id marks nothing.
    let upload_id_marker = upload_id_marker.filter(|_| key_marker.is_some());
    let after = match (&key_marker, &upload_id_marker) {
        (None, _) => None,
        (Some(key), None) => Some((key.clone(), AFTER_ALL_UPLOADS.to_owned())),
        (Some(key), Some(upload_id)) => Some(upload_named(call, bucket, key, upload_id).await?),
    };
    let page = uploads_page(call, bucket, listing, after).await?;
    let document = xml::document("ListMultipartUploadsResult", Some(xml::NAMESPACE), |out| {
        out.text("Bucket", bucket.as_str());
        out.text("KeyMarker", &listing.shown(key_marker.as_deref().unwrap_or_default()));
        out.text("UploadIdMarker", upload_id_marker.as_deref().unwrap_or_default());
        let (next_key, next_upload_id) = page.next.clone().unwrap_or_default();
        out.text("NextKeyMarker", &listing.shown(&next_key));
        out.text("NextUploadIdMarker", &next_upload_id);
        out.text("Prefix", &listing.shown(&listing.prefix));
        if let Some(delimiter) = &listing.delimiter {
            out.text("Delimiter", &listing.shown(delimiter));
        }
        if listing.url_encoded {
            out.text("EncodingType", "url");
        }
        out.value("MaxUploads", listing.limit);
        out.value("IsTruncated", page.next.is_some());
        for upload in &page.uploads {
            out.element("Upload", |out| {
                out.text("Key", &listing.shown(upload.key.as_str()));
                out.text("UploadId", &upload.id);
                write_owner(out, "Initiator", call.owner());
                write_owner(out, "Owner", call.owner());
                out.text("StorageClass", "STANDARD");
                out.text("Initiated", &timestamp(upload.started_ms));
                if let Some(asked) = upload.checksum.filter(|checksum| checksum.asked) {
                    out.text("ChecksumAlgorithm", checksum::name(asked.algorithm));
                    out.text("ChecksumType", checksum::type_name(asked.kind));
                }
            });
        }
        for prefix in &page.common_prefixes {
            out.element("CommonPrefixes", |out| out.text("Prefix", &listing.shown(prefix)));
        }
    });
    Ok(answer::document(document))
}

/// Where a listing goes on behind the upload that its markers name. One that is gone meanwhile is passed over.
async fn upload_named(
    call: &mut Call<'_>,
    bucket: &BucketName,
    key: &str,
    upload_id: &str,
) -> Result<(String, String)> {
    let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
    let found = call.front.store.upload_key(bucket, upload_id).await.map_err(|error| subject.error(error))?;
    let is_ours = upload_id.len() == UPLOAD_ID_CHARS && upload_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_of_key = found.is_none_or(|found| found.as_str() == key);
    if !is_ours || !is_of_key {
        return Err(Error::invalid_argument("upload-id-marker", upload_id, "Invalid uploadId marker"));
    }
    Ok((key.to_owned(), upload_id.to_owned()))
}

/// Reads pages of the store until the listing's page is full or all uploads are seen. A group takes one place and is
/// stepped over once it is shown.
async fn uploads_page(
    call: &mut Call<'_>,
    bucket: &BucketName,
    listing: &Listing,
    mut after: Option<(String, String)>,
) -> Result<UploadsPage> {
    let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
    let mut page = UploadsPage::default();
    // A group that ended the page before is the marker of this one.
    let shown = after.as_ref().map(|(key, _)| key.clone());
    for _ in 0..STORE_PAGES_MAX {
        let read = call.front.store.list_uploads(bucket, &listing.prefix, after.take(), STORE_PAGE).await;
        let (uploads, more) = read.map_err(|error| subject.error(error))?;
        let mut last = None;
        for upload in uploads {
            let (key, upload_id) = (upload.key.as_str().to_owned(), upload.id.clone());
            let group = common_prefix(&key, listing);
            let again = group.is_some_and(|group| {
                shown.as_deref() == Some(group) || page.common_prefixes.last().is_some_and(|shown| shown == group)
            });
            if again {
                last = Some((key, upload_id));
                continue;
            }
            if page.uploads.len() + page.common_prefixes.len() == listing.limit {
                page.next = if listing.limit == 0 { None } else { page_end(&page) };
                return Ok(page);
            }
            last = Some((key.clone(), upload_id.clone()));
            match group {
                Some(group) => page.common_prefixes.push(group.to_owned()),
                None => page.uploads.push(upload),
            }
        }
        if !more {
            return Ok(page);
        }
        after = last;
    }
    // Cut short: the next page goes on from the last upload looked at, whose group it may show once more.
    page.next = after;
    Ok(page)
}

/// The greater of the last upload and the last group shown.
fn page_end(page: &UploadsPage) -> Option<(String, String)> {
    let upload = page.uploads.last().map(|upload| (upload.key.as_str().to_owned(), upload.id.clone()));
    let group = page.common_prefixes.last().map(|group| (group.clone(), String::new()));
    upload.max(group)
}

/// The group a key falls into: up to and with the first delimiter behind the prefix.
fn common_prefix<'a>(key: &'a str, listing: &Listing) -> Option<&'a str> {
    let delimiter = listing.delimiter.as_deref()?;
    let rest = key.strip_prefix(listing.prefix.as_str())?;
    let end = rest.find(delimiter)? + delimiter.len();
    key.get(..listing.prefix.len() + end)
}
