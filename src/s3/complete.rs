//! CompleteMultipartUpload: the list of parts, what it claims about them, and publication.

use super::{
    answer::{self, S3Body},
    checksum, conditions,
    error::{Error, Result, Subject},
    front::Call,
    headers::{self, quoted},
    multipart::DEFAULT_CHECKSUM,
    operation::{Object, PART_NUMBER_MAX},
    query, xml,
};
use crate::store::{self, Checksum, ChecksumAlgorithm, ChecksumType, CompletedPart, ObjectInfo, UploadChecksum};
use http::{Response, header};
use std::collections::HashMap;

/// Parts of one page while sizes are summed up.
const PARTS_PAGE: usize = 1000;

pub(super) async fn complete_multipart_upload(
    call: &mut Call<'_>,
    object: &Object,
    upload_id: &str,
) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    let (condition, stated_by) = conditions::of_write(sent)?;
    let subject = Subject { upload_id, condition: stated_by, ..object.subject() };
    let kind = headers::text(sent, "x-amz-checksum-type")?.filter(|kind| !kind.is_empty());
    let kind = kind.map(checksum::parse_type).transpose()?;
    let stated = checksum::final_claim(sent, kind)?;
    let size = stated_size(call)?;
    let document = call.document().await?;
    let listed = listed_parts(&xml::parse(&document, "CompleteMultipartUpload")?)?;
    let made_of = etag_of_parts(&listed);
    let Object { bucket, key } = object;
    let upload = match call.front.store.upload_checksum(bucket, key, upload_id).await {
        Ok(upload) => upload,
        Err(store::Error::NoSuchUpload) => return completed_before(call, object, made_of, &subject).await,
        Err(error) => return Err(subject.error(error)),
    };
    if let (Some(kind), Some(UploadChecksum { kind: of_upload, asked: true, .. })) = (kind, upload)
        && kind != of_upload
    {
        return Err(Error::InvalidRequest(
            format!(
                "The upload was created using the {} checksum mode. The complete request must use the same checksum \
                 mode.",
                checksum::type_name(of_upload)
            )
            .into(),
        ));
    }
    if let Some(size) = size {
        check_size(call, object, &subject, &listed, size).await?;
    }
    let parts = listed.into_iter().map(|part| part.completed(upload)).collect::<Result<Vec<_>>>()?;
    // Where no checksum was asked for at the start, one of the whole counts for nothing.
    let stated = match upload.filter(|upload| upload.asked) {
        None => None,
        Some(upload) => stated.map(|stated| of_upload(stated, upload)).transpose()?,
    };
    let algorithm = upload.unwrap_or(DEFAULT_CHECKSUM).algorithm;
    let done = call.front.store.complete_upload(bucket, key, upload_id, parts, stated, condition, call.now_ms).await;
    match done {
        Ok(info) => Ok(answer::document(result_document(call, object, &info))),
        Err(store::Error::NoSuchUpload) => completed_before(call, object, made_of, &subject).await,
        Err(store::Error::BadDigest) => Err(Error::BadDigest { algorithm: checksum::name(algorithm) }),
        Err(error) => Err(subject.error(error)),
    }
}

/// A part as the client lists it.
struct Listed {
    number: u32,
    etag: String,
    checksum: Option<(ChecksumAlgorithm, String)>,
}

impl Listed {
    /// The part as the store checks it: with its checksum where the upload keeps that algorithm.
    fn completed(self, upload: Option<UploadChecksum>) -> Result<CompletedPart> {
        let Listed { number, etag, checksum: stated } = self;
        let upload = upload.unwrap_or(DEFAULT_CHECKSUM);
        let kept = match stated {
            Some((stated, value)) if upload.algorithm == stated => {
                // A part's own checksum is always of all its bytes.
                Some(Checksum { algorithm: stated, kind: ChecksumType::FullObject, value })
            }
            // Uploads made without an algorithm take parts with any.
            _ if !upload.asked => None,
            Some((stated, _)) => {
                return Err(Error::BadPartDigest { algorithm: checksum::name(stated), part: number });
            }
            None if upload.kind == ChecksumType::FullObject => None,
            None => {
                let algorithm = checksum::name(upload.algorithm).to_ascii_lowercase();
                return Err(Error::InvalidRequest(
                    format!(
                        "The upload was created using a {algorithm} checksum. The complete request must include the \
                         checksum for each part. It was missing for part {number} in the request."
                    )
                    .into(),
                ));
            }
        };
        Ok(CompletedPart { number, etag, checksum: kept })
    }
}

/// The numbers of the parts that a CompleteMultipartUpload document lists.
///
/// # Errors
/// As the operation's own.
pub(super) fn numbers_listed(document: &[u8]) -> Result<Vec<u32>> {
    let listed = listed_parts(&xml::parse(document, "CompleteMultipartUpload")?)?;
    Ok(listed.iter().map(|part| part.number).collect())
}

/// Reads the list: every part has a number and an entity tag, and numbers ascend.
fn listed_parts(request: &xml::Element) -> Result<Vec<Listed>> {
    let mut parts: Vec<Listed> = Vec::new();
    for part in request.children_named("Part") {
        let number = part.child_text("PartNumber").ok_or(Error::MalformedXml)?.trim();
        let number: i64 = number.parse().map_err(|_| Error::MalformedXml)?;
        let etag = part.child_text("ETag").map(conditions::unquoted).filter(|etag| !etag.is_empty());
        let etag = etag.ok_or(Error::MalformedXml)?.to_owned();
        let number = u32::try_from(number)
            .ok()
            .filter(|number| *number >= 1)
            .ok_or_else(|| Error::invalid_argument("PartNumber", number.to_string(), "PartNumber must be >= 1"))?;
        if number > PART_NUMBER_MAX {
            return Err(Error::invalid_argument(
                "partNumber",
                number.to_string(),
                "Part number must be an integer between 1 and 10000, inclusive.",
            ));
        }
        if parts.last().is_some_and(|last| last.number >= number) {
            return Err(Error::InvalidPartOrder);
        }
        parts.push(Listed { number, etag, checksum: part_checksum(part)? });
    }
    if parts.is_empty() { Err(Error::MalformedXml) } else { Ok(parts) }
}

fn part_checksum(part: &xml::Element) -> Result<Option<(ChecksumAlgorithm, String)>> {
    let stated = checksum::elements(part);
    let invalid = |value: &str| {
        Error::invalid_argument("Checksum", value, "Invalid Base64 or multiple checksums present in request")
    };
    match stated.as_slice() {
        [] => Ok(None),
        [(algorithm, value)] if checksum::check_value(*algorithm, value).is_some() => {
            Ok(Some((*algorithm, (*value).to_owned())))
        }
        [(_, value), ..] => Err(invalid(value)),
    }
}

/// The final checksum as one of the upload's kind.
fn of_upload(stated: Checksum, upload: UploadChecksum) -> Result<Checksum> {
    let UploadChecksum { algorithm, kind, .. } = upload;
    if stated.algorithm == algorithm {
        return Ok(Checksum { kind, ..stated });
    }
    let (expected, actual) = (checksum::name(algorithm), checksum::name(stated.algorithm));
    Err(Error::InvalidRequest(
        format!("Checksum Type mismatch occurred, expected checksum Type: {expected}, actual checksum Type: {actual}")
            .into(),
    ))
}

fn stated_size(call: &Call<'_>) -> Result<Option<u64>> {
    let Some(text) = headers::text(&call.parts.headers, "x-amz-mp-object-size")? else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(size) => match u64::try_from(size) {
            Ok(size) => Ok(Some(size)),
            Err(_) => Err(Error::InvalidRequest(
                format!("Value for x-amz-mp-object-size header is less than zero: '{size}'").into(),
            )),
        },
        Err(_) => {
            Err(Error::InvalidRequest(format!("Value for x-amz-mp-object-size header is invalid: '{text}'").into()))
        }
    }
}

/// Whether the listed parts together have the size stated. A part that is not there is found by the store.
async fn check_size(
    call: &mut Call<'_>,
    object: &Object,
    subject: &Subject<'_>,
    listed: &[Listed],
    stated: u64,
) -> Result<()> {
    let mut sizes = HashMap::new();
    let mut after = 0;
    loop {
        let Object { bucket, key } = object;
        let page = call.front.store.list_parts(bucket, key, subject.upload_id, after, PARTS_PAGE).await;
        let (parts, more) = page.map_err(|error| subject.error(error))?;
        sizes.extend(parts.iter().map(|part| (part.number, part.size)));
        match parts.last() {
            // Numbers ascend to a bound, and so do pages.
            Some(last) if more && last.number > after => after = last.number,
            _ => break,
        }
    }
    let actual: u64 = listed.iter().filter_map(|part| sizes.get(&part.number)).sum();
    if actual == stated {
        return Ok(());
    }
    Err(Error::InvalidRequest(
        format!("The provided 'x-amz-mp-object-size' header value {stated} does not match what was computed: {actual}")
            .into(),
    ))
}

/// A completion sent again because its answer was lost, or sent twice at once: the object made of these very parts is
/// there. `made_of` is the entity tag such an object has.
async fn completed_before(
    call: &mut Call<'_>,
    object: &Object,
    made_of: Option<String>,
    subject: &Subject<'_>,
) -> Result<Response<S3Body>> {
    match (made_of, call.front.store.head(&object.bucket, &object.key).await) {
        (Some(etag), Ok(info)) if info.etag == etag => Ok(answer::document(result_document(call, object, &info))),
        (_, Ok(_) | Err(store::Error::NoSuchKey)) => Err(Error::NoSuchUpload(subject.upload_id.to_owned())),
        (_, Err(error)) => Err(subject.error(error)),
    }
}

/// The entity tag S3 gives an object made of these parts: the MD5 of their MD5s, and their number.
fn etag_of_parts(listed: &[Listed]) -> Option<String> {
    use md5::Digest;
    let mut digest = md5::Md5::new();
    for part in listed {
        digest.update(hex::decode(&part.etag).ok()?);
    }
    Some(format!("{}-{}", hex::encode(digest.finalize()), listed.len()))
}

fn result_document(call: &Call<'_>, object: &Object, info: &ObjectInfo) -> String {
    let Object { bucket, key } = object;
    let host = call.parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    xml::document("CompleteMultipartUploadResult", Some(xml::NAMESPACE), |out| {
        out.text("Location", &format!("http://{host}/{}/{}", bucket.as_str(), query::encode_name(key.as_str())));
        out.text("Bucket", bucket.as_str());
        out.text("Key", key.as_str());
        out.text("ETag", &quoted(&info.etag));
        if let Some(checksum) = &info.checksum {
            out.text(checksum::element(checksum.algorithm), &checksum.value);
            out.text("ChecksumType", checksum::type_name(checksum.kind));
        }
    })
}
