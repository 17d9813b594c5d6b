//! Multipart uploads up to completion: CreateMultipartUpload, UploadPart, ListParts, ListMultipartUploads,
//! AbortMultipartUpload.

use super::{
    answer::{self, S3Body},
    checksum::{self, Claim},
    error::{Error, Result, Subject},
    front::Call,
    headers::{self, quoted},
    list::{timestamp, write_owner},
    operation::{Listing, Object, PAGE_MAX, Part},
    query::encode_name,
    receive::Incoming,
    xml,
};
use crate::store::{BucketName, Checksum, ChecksumAlgorithm, ChecksumType, NewUpload, PartInfo, Sealed};
use http::{HeaderName, Response, StatusCode, header};

const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-checksum-algorithm");
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// Sorts behind every upload id: where a listing goes on after all uploads of one key.
const AFTER_ALL_UPLOADS: &str = "\u{10ffff}";
/// Pages of the store that one ListMultipartUploads may read while it groups keys, and uploads on each: few in tests.
const STORE_PAGES_MAX: usize = if cfg!(test) { 2 } else { 100 };
const STORE_PAGE: usize = if cfg!(test) { 5 } else { PAGE_MAX };

/// What an upload without an algorithm gets. Its parts may state any checksum: each is verified, none is kept.
const DEFAULT_CHECKSUM: (ChecksumAlgorithm, ChecksumType) = (checksum::DEFAULT_ALGORITHM, ChecksumType::FullObject);

impl Part {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { upload_id: &self.upload_id, ..self.object.subject() }
    }
}

pub(super) async fn create_multipart_upload(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    headers::check_write(sent)?;
    let kept = super::objects::kept(sent, call.now_ms)?;
    let asked = asked_checksum(call)?;
    let new = NewUpload { kept, checksum: Some(asked.unwrap_or(DEFAULT_CHECKSUM)) };
    let created = call.front.store.create_upload(&object.bucket, &object.key, new, call.now_ms).await;
    let upload_id = created.map_err(|error| object.subject().error(error))?;
    let document = xml::document("InitiateMultipartUploadResult", Some(xml::NAMESPACE), |out| {
        out.text("Bucket", object.bucket.as_str());
        out.text("Key", object.key.as_str());
        out.text("UploadId", &upload_id);
    });
    let mut response = answer::document(document);
    if let Some((algorithm, kind)) = asked {
        headers::put(response.headers_mut(), CHECKSUM_ALGORITHM, checksum::name(algorithm));
        headers::put(response.headers_mut(), CHECKSUM_TYPE, checksum::type_name(kind));
    }
    Ok(response)
}

/// The checksum an upload is created for, and how that of the whole is made of its parts'.
fn asked_checksum(call: &Call<'_>) -> Result<Option<(ChecksumAlgorithm, ChecksumType)>> {
    let sent = &call.parts.headers;
    let algorithm = headers::text(sent, "x-amz-checksum-algorithm")?.filter(|name| !name.is_empty());
    let kind = headers::text(sent, "x-amz-checksum-type")?.filter(|name| !name.is_empty());
    let algorithm = algorithm.map(checksum::parse_name).transpose()?;
    let kind = kind.map(checksum::parse_type).transpose()?;
    match (algorithm, kind) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::invalid_request(
            "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
        )),
        (Some(ChecksumAlgorithm::Crc64Nvme), None) => Ok(Some(DEFAULT_CHECKSUM)),
        (Some(algorithm), None) => Ok(Some((algorithm, ChecksumType::Composite))),
        (Some(algorithm), Some(kind)) => match (algorithm, kind) {
            (ChecksumAlgorithm::Crc64Nvme, ChecksumType::Composite)
            | (ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256, ChecksumType::FullObject) => {
                Err(Error::InvalidRequest(
                    format!(
                        "The {} checksum type cannot be used with the {} checksum algorithm.",
                        checksum::type_name(kind),
                        checksum::name(algorithm).to_ascii_lowercase()
                    )
                    .into(),
                ))
            }
            _ => Ok(Some((algorithm, kind))),
        },
    }
}

pub(super) async fn upload_part(call: &mut Call<'_>, part: &Part) -> Result<Response<S3Body>> {
    let incoming = Incoming::plan(call)?;
    let upload = upload_checksum(call, part).await?;
    check_claim(incoming.claim.as_ref(), upload)?;
    let received = incoming.receive(call, upload.0, &part.subject()).await?;
    let stored = publish_part(call, part, received.sealed).await?;
    let mut response = answer::empty(StatusCode::OK);
    let answer = response.headers_mut();
    headers::put(answer, header::ETAG, &quoted(&stored.etag));
    if let Some(Checksum { algorithm, value, .. }) = received.verified.or(stored.checksum) {
        headers::put(answer, checksum::header(algorithm), &value);
    }
    Ok(response)
}

/// The algorithm by which a part's digest is kept. Also finds out whether the upload is there, before a body is read.
///
/// # Errors
/// `Error::NoSuchUpload`, `Error::NoSuchBucket`.
pub(super) async fn kept_algorithm(call: &mut Call<'_>, part: &Part) -> Result<ChecksumAlgorithm> {
    Ok(upload_checksum(call, part).await?.0)
}

async fn upload_checksum(call: &mut Call<'_>, part: &Part) -> Result<(ChecksumAlgorithm, ChecksumType)> {
    let Object { bucket, key } = &part.object;
    let found = call.front.store.upload_checksum(bucket, key, &part.upload_id).await;
    Ok(found.map_err(|error| part.subject().error(error))?.unwrap_or(DEFAULT_CHECKSUM))
}

/// Whether a part may state `claim`: the upload's algorithm, and for a composite checksum it must.
fn check_claim(claim: Option<&Claim>, (algorithm, kind): (ChecksumAlgorithm, ChecksumType)) -> Result<()> {
    let actual = match claim {
        Some(claim) if claim.algorithm == algorithm => return Ok(()),
        _ if algorithm == DEFAULT_CHECKSUM.0 => return Ok(()),
        Some(claim) => checksum::name(claim.algorithm),
        None if kind == ChecksumType::FullObject => return Ok(()),
        None => "null",
    };
    let expected = checksum::name(algorithm);
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
    if call.parts.headers.contains_key("x-amz-if-match-initiated-time") {
        return Err(Error::HeaderNotImplemented { header: "x-amz-if-match-initiated-time" });
    }
    let aborted = call.front.store.abort_upload(&object.bucket, &object.key, upload_id).await;
    aborted.map_err(|error| Subject { upload_id, ..object.subject() }.error(error))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
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
        if let Some((algorithm, kind)) = upload {
            out.text("ChecksumAlgorithm", checksum::name(algorithm));
            out.text("ChecksumType", checksum::type_name(kind));
        }
        for part in &parts {
            out.element("Part", |out| write_part(out, part));
        }
    });
    Ok(answer::document(document))
}

fn write_part(out: &mut xml::Writer, part: &PartInfo) {
    out.value("PartNumber", part.number);
    out.text("LastModified", &timestamp(part.last_modified_ms));
    out.text("ETag", &quoted(&part.etag));
    out.value("Size", part.size);
    if let Some(checksum) = &part.checksum {
        out.text(checksum::element(checksum.algorithm), &checksum.value);
    }
}

/// A page of open uploads, grouped by the listing's delimiter.
#[derive(Default)]
struct UploadsPage {
    /// Key, upload id, when initiated (ms).
    uploads: Vec<(String, String, i64)>,
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
    let after = key_marker.clone().map(|key| {
        let upload_id = upload_id_marker.clone().unwrap_or_else(|| AFTER_ALL_UPLOADS.to_owned());
        (key, upload_id)
    });
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
        for (key, upload_id, initiated_ms) in &page.uploads {
            out.element("Upload", |out| {
                out.text("Key", &listing.shown(key));
                out.text("UploadId", upload_id);
                write_owner(out, "Initiator", call.owner());
                write_owner(out, "Owner", call.owner());
                out.text("StorageClass", "STANDARD");
                out.text("Initiated", &timestamp(*initiated_ms));
            });
        }
        for prefix in &page.common_prefixes {
            out.element("CommonPrefixes", |out| out.text("Prefix", &listing.shown(prefix)));
        }
    });
    Ok(answer::document(document))
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
        for (key, upload_id, initiated_ms) in uploads {
            let key = key.as_str().to_owned();
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
                None => page.uploads.push((key, upload_id, initiated_ms)),
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
    let upload = page.uploads.last().map(|(key, upload_id, _)| (key.clone(), upload_id.clone()));
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
