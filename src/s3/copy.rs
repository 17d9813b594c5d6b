//! CopyObject and UploadPartCopy.

use super::{
    access,
    answer::{self, S3Body},
    checksum,
    conditions::{self, ReadConditions, Verdict},
    error::{Error, Result, Subject},
    front::Call,
    headers::{self, quoted},
    list::timestamp,
    multipart, object_lock,
    operation::{Object, Part},
    query::percent_decode,
    range, tagging, versions, xml,
};
use crate::{
    auth::grants::Action,
    store::{
        self, BucketName, Checksum, ChecksumAlgorithm, Copy, Kept, ObjectInfo, ObjectKey, ObjectLock, Sealed, VersionId,
    },
};
use futures_util::StreamExt;
use http::{HeaderName, Response};
use std::ops::Range;

pub(super) const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

const SOURCE_VERSION: HeaderName = HeaderName::from_static("x-amz-copy-source-version-id");

/// Bytes of one copy.
const COPY_BYTES_MAX: u64 = 5 << 30;

/// The source that a request names.
#[derive(Debug)]
pub(super) struct Named {
    pub object: Object,
    pub version: Option<VersionId>,
}

/// The object to copy from, once it may be.
struct Source {
    object: Object,
    version: Option<VersionId>,
    info: ObjectInfo,
    conditions: ReadConditions,
}

impl Source {
    /// Finds the source, checks that the caller may read it, and its conditions.
    async fn find(call: &mut Call<'_>, Named { object, version }: Named) -> Result<Source> {
        call.check_owner("x-amz-source-expected-bucket-owner")?;
        call.require_named(access::read_name(version.as_ref()), Action::GetObject, object.resource())?;
        let subject = Subject { version: version.as_ref(), ..object.subject() };
        let found = call.front.store.head_version(&object.bucket, &object.key, version.clone()).await;
        let info = found.map_err(|error| match error {
            store::Error::DeleteMarker { .. } => Error::invalid_request(
                "The source of a copy request may not specifically refer to a delete marker by version id.",
            ),
            error => subject.error(error),
        })?;
        let conditions = ReadConditions::of_copy_source(&call.parts.headers);
        match conditions.check(&info, call.now_ms) {
            Verdict::Proceed => Ok(Source { object, version, info, conditions }),
            Verdict::NotModified => Err(Error::PreconditionFailed("x-amz-copy-source-If-None-Match")),
            Verdict::Failed(_) => Err(Error::PreconditionFailed("x-amz-copy-source-If-Match")),
        }
    }

    /// Reads a range of the source into the store, unpublished. Fails when the source was replaced meanwhile.
    async fn read(&self, call: &mut Call<'_>, range: Range<u64>, algorithm: ChecksumAlgorithm) -> Result<Sealed> {
        let subject = self.object.subject();
        let Object { bucket, key } = &self.object;
        let (etag, wanted) = (self.info.etag.clone(), range.clone());
        let pick = move |info: &ObjectInfo| (info.etag == etag).then_some(wanted);
        let reading = call.front.store.read_version(bucket, key, self.version.clone(), pick).await;
        let mut reading = reading.map_err(|error| subject.error(error))?;
        if reading.info.etag != self.info.etag {
            return Err(Error::PreconditionFailed("x-amz-copy-source-If-Match"));
        }
        let mut upload = call.front.store.begin(Some(algorithm));
        while let Some(bytes) = reading.stream.next().await {
            let bytes = bytes.map_err(|error| subject.error(error))?;
            upload.write(bytes).await.map_err(|error| subject.error(error))?;
        }
        upload.seal().await.map_err(|error| subject.error(error))
    }
}

fn named(call: &Call<'_>) -> Result<Named> {
    parse_source(headers::text(&call.parts.headers, "x-amz-copy-source")?.unwrap_or_default())
}

/// Reads `x-amz-copy-source`: `bucket/key`, percent-encoded, perhaps with a slash before and a version behind. As S3
/// does, the version is looked for once all is decoded.
pub(super) fn parse_source(source: &str) -> Result<Named> {
    let invalid = |message: &'static str, value: &str| Error::invalid_argument("x-amz-copy-source", value, message);
    if !is_percent_encoded(source) {
        return Err(invalid("Invalid copy source encoding", source));
    }
    let decoded = percent_decode(source).ok_or_else(|| invalid("Invalid copy source encoding", source))?;
    let (path, version_id) = match decoded.rsplit_once("?versionId=") {
        Some((path, version_id)) => (path, Some(version_id)),
        None => (&*decoded, None),
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let bucket = BucketName::parse(bucket).ok_or_else(|| invalid("Invalid copy source bucket name", source))?;
    let key = ObjectKey::parse(key).ok_or_else(|| invalid("Invalid copy source object key", key))?;
    let version = version_id.map(versions::parse).transpose()?;
    Ok(Named { object: Object { bucket, key }, version })
}

/// Whether each percent sign begins an encoded byte.
fn is_percent_encoded(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// What becomes of the headers kept with the source.
#[derive(PartialEq, Eq)]
enum Directive {
    Copy,
    Replace,
}

fn directive(call: &Call<'_>) -> Result<Directive> {
    match headers::text(&call.parts.headers, "x-amz-metadata-directive")? {
        None | Some("" | "COPY") => Ok(Directive::Copy),
        Some("REPLACE") => Ok(Directive::Replace),
        Some(other) => Err(Error::invalid_argument("x-amz-metadata-directive", other, "Unknown metadata directive.")),
    }
}

pub(super) async fn copy_object(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    let sent = &call.parts.headers;
    headers::check_write(sent)?;
    let tags = match headers::text(sent, "x-amz-tagging-directive")? {
        None | Some("" | "COPY") => None,
        Some("REPLACE") => Some(tagging::of_header(sent)?.unwrap_or_default()),
        Some(other) => {
            return Err(Error::invalid_argument("x-amz-tagging-directive", other, "Unknown tagging directive."));
        }
    };
    let lock = object_lock::of_headers(sent, call.now_ms)?;
    object_lock::require_kept(call, object, tags.as_deref().unwrap_or_default(), &lock)?;
    let directive = directive(call)?;
    let algorithm = headers::text(sent, "x-amz-checksum-algorithm")?.map(checksum::parse_name).transpose()?;
    let (condition, stated_by) = conditions::of_write(sent)?;
    let terms = conditions::terms(sent, condition, &call.caller.principal);
    // Refused when they are no good, even where they count for nothing.
    let stated = headers::object_headers(sent)?;
    let headers = (directive == Directive::Replace).then_some(stated);
    super::buckets::require_bucket(call, &object.bucket).await?;
    if lock != ObjectLock::default() {
        object_lock::require_enabled(call, &object.bucket).await?;
    }
    let named = named(call)?;
    let source = Source::find(call, named).await?;
    let restores = source.version.is_some();
    if source.object == *object && !restores && headers.is_none() && algorithm.is_none() {
        return Err(Error::invalid_request(
            "This copy request is illegal because it is trying to copy an object to itself without changing the \
             object's metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    if source.info.size > COPY_BYTES_MAX {
        let message = format!(
            "The specified copy source is larger than the maximum allowable size for a copy source: {COPY_BYTES_MAX}"
        );
        return Err(Error::invalid_request(message));
    }
    let copy = Copy { version: source.version.clone(), headers, tags, lock, terms, now_ms: call.now_ms };
    let to = Target { object, subject: Subject { condition: stated_by, ..object.subject() } };
    let copied = match algorithm {
        Some(algorithm) if !is_kept(source.info.checksum.as_ref(), algorithm) => {
            rewrite(call, &source, &to, copy, algorithm).await?
        }
        _ => copy_within(call, &source, &to, copy).await?,
    };
    let mut response = answer::document(copy_document(
        "CopyObjectResult",
        &copied.etag,
        copied.last_modified_ms,
        copied.checksum.as_ref(),
    ));
    versions::write_made(response.headers_mut(), &copied);
    write_source_version(&mut response, &source);
    Ok(response)
}

/// Says which version was copied.
fn write_source_version(response: &mut Response<S3Body>, source: &Source) {
    if let Some(version) = &source.info.version {
        headers::put(response.headers_mut(), SOURCE_VERSION, version.as_str());
    }
}

/// Where a copy goes.
struct Target<'a> {
    object: &'a Object,
    subject: Subject<'a>,
}

fn is_kept(checksum: Option<&Checksum>, algorithm: ChecksumAlgorithm) -> bool {
    checksum.is_some_and(|checksum| checksum.algorithm == algorithm)
}

async fn copy_within(call: &mut Call<'_>, source: &Source, to: &Target<'_>, copy: Copy) -> Result<ObjectInfo> {
    let (conditions, now_ms) = (source.conditions.clone(), call.now_ms);
    let check = move |info: &ObjectInfo| conditions.check(info, now_ms) == Verdict::Proceed;
    let from = (&source.object.bucket, &source.object.key);
    let copied = call.front.store.copy_version(from, (&to.object.bucket, &to.object.key), copy, check).await;
    copied.map_err(|error| to.subject.error(error))
}

/// Copies through the store's front door: the only way to another checksum.
async fn rewrite(
    call: &mut Call<'_>,
    source: &Source,
    to: &Target<'_>,
    copy: Copy,
    algorithm: ChecksumAlgorithm,
) -> Result<ObjectInfo> {
    let sealed = source.read(call, 0..source.info.size, algorithm).await?;
    let kept = Kept {
        headers: copy.headers.unwrap_or_else(|| source.info.headers.clone()),
        tags: copy.tags.unwrap_or_else(|| source.info.tags.clone()),
        lock: copy.lock,
    };
    let Object { bucket, key } = to.object;
    let published = call.front.store.publish(bucket, key, sealed, kept, copy.terms, copy.now_ms).await;
    published.map_err(|error| to.subject.error(error))
}

pub(super) async fn upload_part_copy(call: &mut Call<'_>, part: &Part) -> Result<Response<S3Body>> {
    headers::check_part(&call.parts.headers)?;
    let wanted = headers::text(&call.parts.headers, "x-amz-copy-source-range")?;
    let range = match wanted {
        None => None,
        Some(text) => Some(range::copy_source(text).ok_or_else(|| {
            Error::invalid_argument(
                "x-amz-copy-source-range",
                text,
                "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
                 zero-based offsets of the first and last bytes to copy",
            )
        })?),
    };
    super::buckets::require_bucket(call, &part.object.bucket).await?;
    let named = named(call)?;
    let upload = multipart::upload_checksum(call, part).await?;
    let source = Source::find(call, named).await?;
    let size = source.info.size;
    let range = range.unwrap_or(0..size);
    if range.end > size {
        let message = format!("Range specified is not valid for source object of size: {size}");
        return Err(Error::invalid_argument("x-amz-copy-source-range", size.to_string(), message));
    }
    if range.end - range.start > COPY_BYTES_MAX {
        let (proposed_bytes, max_bytes) = (range.end - range.start, COPY_BYTES_MAX);
        return Err(Error::Body(super::body::Error::EntityTooLarge { proposed_bytes, max_bytes }));
    }
    let sealed = source.read(call, range, upload.algorithm).await?;
    let stored = multipart::publish_part(call, part, sealed).await?;
    let shown = stored.checksum.as_ref().filter(|_| upload.asked);
    let document = copy_document("CopyPartResult", &stored.etag, stored.last_modified_ms, shown);
    let mut response = answer::document(document);
    write_source_version(&mut response, &source);
    Ok(response)
}

fn copy_document(root: &str, etag: &str, last_modified_ms: i64, checksum: Option<&Checksum>) -> String {
    xml::document(root, Some(xml::NAMESPACE), |out| {
        out.text("LastModified", &timestamp(last_modified_ms));
        out.text("ETag", &quoted(etag));
        if let Some(checksum) = checksum {
            out.text(checksum::element(checksum.algorithm), &checksum.value);
            out.text("ChecksumType", checksum::type_name(checksum.kind));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_sources_are_decoded_once_and_checked() {
        for (source, bucket, key) in [
            ("lake/a/b", "lake", "a/b"),
            ("/lake/a%20b+c", "lake", "a b+c"),
            ("lake%2Fa", "lake", "a"),
            ("lake/a%253Fb?versionId=null", "lake", "a%3Fb"),
            ("lake/../x//", "lake", "../x//"),
        ] {
            let object = parse_source(source).expect("the source is valid").object;
            assert_eq!((object.bucket.as_str(), object.key.as_str()), (bucket, key), "{source}");
        }
        for (source, text) in [
            ("lake/%ZZ", "Invalid copy source encoding"),
            ("%", "Invalid copy source encoding"),
            ("lake/%C3%", "Invalid copy source encoding"),
            ("lake/%C3", "Invalid copy source encoding"),
            ("192.168.1.1/foo", "Invalid copy source bucket name"),
            ("my-buc@k&()t/obj", "Invalid copy source bucket name"),
            ("lake", "Invalid copy source object key"),
            ("lake/", "Invalid copy source object key"),
        ] {
            let error = parse_source(source).expect_err("the source is not valid");
            assert_eq!(error.describe().message, text, "{source}");
        }
        let version = |source| parse_source(source).map(|named| named.version.map(|id| id.as_str().to_owned()));
        assert!(matches!(version("lake/k?versionId=3HL4"), Ok(Some(id)) if id == "3HL4"));
        assert!(matches!(version("lake/a%3Fb?versionId=null"), Ok(Some(id)) if id == "null"));
        assert!(matches!(version("lake/a%3Fb"), Ok(None)));
        for bad in ["lake/k?versionId=", "lake/k?versionId=a_b", "lake/k%3FversionId%3D..%2f..%2fsecret.txt"] {
            assert!(matches!(version(bad), Err(Error::InvalidArgument { name: "versionId", .. })), "{bad}");
        }
    }
}
