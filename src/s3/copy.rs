//! CopyObject and UploadPartCopy.

use super::{
    answer::{self, S3Body},
    checksum,
    conditions::{self, ReadConditions, Verdict},
    error::{Error, Result, Subject},
    front::Call,
    headers::{self, quoted},
    list::timestamp,
    multipart,
    operation::{Object, Part},
    query::percent_decode,
    range, xml,
};
use crate::{
    auth::grants::Action,
    store::{BucketName, Checksum, ChecksumAlgorithm, ObjectHeaders, ObjectInfo, ObjectKey, Sealed, Terms},
};
use futures_util::StreamExt;
use http::{HeaderName, Response};
use std::ops::Range;

pub(super) const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

/// Bytes of one copy.
const COPY_BYTES_MAX: u64 = 5 << 30;

/// The object to copy from, once it may be.
struct Source {
    object: Object,
    info: ObjectInfo,
    conditions: ReadConditions,
}

impl Source {
    /// Finds the source, checks that the caller may read it, and its conditions.
    async fn find(call: &mut Call<'_>, object: Object) -> Result<Source> {
        call.check_owner("x-amz-source-expected-bucket-owner")?;
        call.require(Action::GetObject, object.resource())?;
        let found = call.front.store.head(&object.bucket, &object.key).await;
        let info = found.map_err(|error| object.subject().error(error))?;
        let conditions = ReadConditions::of_copy_source(&call.parts.headers);
        match conditions.check(&info, call.now_ms) {
            Verdict::Proceed => Ok(Source { object, info, conditions }),
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
        let reading = call.front.store.read(bucket, key, pick).await;
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

/// The source that a request names.
fn named(call: &Call<'_>) -> Result<Object> {
    parse_source(headers::text(&call.parts.headers, "x-amz-copy-source")?.unwrap_or_default())
}

/// Reads `x-amz-copy-source`: `bucket/key`, percent-encoded, perhaps with a slash before and a version behind.
pub(super) fn parse_source(source: &str) -> Result<Object> {
    let invalid = |message: &'static str, value: &str| Error::invalid_argument("x-amz-copy-source", value, message);
    let (path, version_id) = match source.rsplit_once("?versionId=") {
        Some((path, version_id)) => (path, Some(version_id)),
        None => (source, None),
    };
    if !is_percent_encoded(path) {
        return Err(invalid("Invalid copy source encoding", source));
    }
    let path = percent_decode(path).ok_or_else(|| invalid("Invalid copy source encoding", source))?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let bucket = BucketName::parse(bucket).ok_or_else(|| invalid("Invalid copy source bucket name", source))?;
    let key = ObjectKey::parse(key).ok_or_else(|| invalid("Invalid copy source object key", key))?;
    match version_id {
        None | Some("null") => Ok(Object { bucket, key }),
        Some(version_id) => {
            Err(Error::NoSuchVersion { key: key.as_str().to_owned(), version_id: version_id.to_owned() })
        }
    }
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
    match headers::text(sent, "x-amz-tagging-directive")? {
        None | Some("" | "COPY" | "REPLACE") => {}
        Some(other) => {
            return Err(Error::invalid_argument("x-amz-tagging-directive", other, "Unknown tagging directive."));
        }
    }
    let directive = directive(call)?;
    let algorithm = headers::text(sent, "x-amz-checksum-algorithm")?.map(checksum::parse_name).transpose()?;
    let (condition, stated_by) = conditions::of_write(sent)?;
    let terms = conditions::terms(sent, condition, &call.caller.principal);
    // Refused when they are no good, even where they count for nothing.
    let stated = headers::object_headers(sent)?;
    let replaced = (directive == Directive::Replace).then_some(stated);
    super::buckets::require_bucket(call, &object.bucket).await?;
    let named = named(call)?;
    let source = Source::find(call, named).await?;
    if source.object == *object && replaced.is_none() && algorithm.is_none() {
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
    let write = Write { object, subject: Subject { condition: stated_by, ..object.subject() }, terms };
    let copied = match algorithm {
        Some(algorithm) if !is_kept(source.info.checksum.as_ref(), algorithm) => {
            rewrite(call, &source, write, replaced, algorithm).await?
        }
        _ => copy_within(call, &source, write, replaced).await?,
    };
    Ok(answer::document(copy_document(
        "CopyObjectResult",
        &copied.etag,
        copied.last_modified_ms,
        copied.checksum.as_ref(),
    )))
}

/// Where a copy goes, and on which terms.
struct Write<'a> {
    object: &'a Object,
    subject: Subject<'a>,
    terms: Terms,
}

fn is_kept(checksum: Option<&Checksum>, algorithm: ChecksumAlgorithm) -> bool {
    checksum.is_some_and(|checksum| checksum.algorithm == algorithm)
}

async fn copy_within(
    call: &mut Call<'_>,
    source: &Source,
    write: Write<'_>,
    replaced: Option<ObjectHeaders>,
) -> Result<ObjectInfo> {
    let (conditions, now_ms) = (source.conditions.clone(), call.now_ms);
    let check = move |info: &ObjectInfo| conditions.check(info, now_ms) == Verdict::Proceed;
    let from = (&source.object.bucket, &source.object.key);
    let to = (&write.object.bucket, &write.object.key);
    let copied = call.front.store.copy(from, to, replaced, check, write.terms, now_ms).await;
    copied.map_err(|error| write.subject.error(error))
}

/// Copies through the store's front door: the only way to another checksum.
async fn rewrite(
    call: &mut Call<'_>,
    source: &Source,
    write: Write<'_>,
    replaced: Option<ObjectHeaders>,
    algorithm: ChecksumAlgorithm,
) -> Result<ObjectInfo> {
    let sealed = source.read(call, 0..source.info.size, algorithm).await?;
    let kept = replaced.unwrap_or_else(|| source.info.headers.clone());
    let Object { bucket, key } = write.object;
    let published = call.front.store.publish(bucket, key, sealed, kept, write.terms, call.now_ms).await;
    published.map_err(|error| write.subject.error(error))
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
    Ok(answer::document(document))
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
            let object = parse_source(source).expect("the source is valid");
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
        assert!(matches!(parse_source("lake/k?versionId=3HL4"), Err(Error::NoSuchVersion { .. })));
    }
}
