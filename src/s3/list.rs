//! Listings of current objects: both versions of ListObjects. Versions are listed in `versions`.

use super::{
    answer::{self, S3Body},
    checksum,
    error::{Error, Result, Subject},
    front::Call,
    headers::quoted,
    operation::Listing,
    query::encode_name,
    xml::{self, Writer},
};
use crate::store::{BucketName, ListEntry, ListPage, ListQuery, ObjectInfo};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Response;
use std::borrow::Cow;
use time::{OffsetDateTime, macros::format_description};

/// Where a second-version listing begins.
pub(super) struct Start {
    pub start_after: Option<String>,
    pub continuation_token: Option<String>,
    pub fetch_owner: bool,
}

/// Marks continuation tokens as ours, and of which form.
const TOKEN_MARK: &[u8] = b"tw1:";

pub(super) async fn list_objects(
    call: &mut Call<'_>,
    bucket: &BucketName,
    listing: &Listing,
    marker: Option<String>,
) -> Result<Response<S3Body>> {
    let page = page(call, bucket, listing, marker.clone()).await?;
    let document = xml::document("ListBucketResult", Some(xml::NAMESPACE), |out| {
        out.text("Name", bucket.as_str());
        out.text("Prefix", &listing.shown(&listing.prefix));
        out.text("Marker", &listing.shown(marker.as_deref().unwrap_or_default()));
        if let Some(next) = &page.next {
            out.text("NextMarker", &listing.shown(next));
        }
        write_bounds(out, listing, page.next.is_some());
        for object in objects(&page) {
            out.element("Contents", |out| write_contents(out, listing, object, Some(call.owner())));
        }
        write_common_prefixes(out, listing, &page);
    });
    Ok(answer::document(document))
}

pub(super) async fn list_objects_v2(
    call: &mut Call<'_>,
    bucket: &BucketName,
    listing: &Listing,
    start: Start,
) -> Result<Response<S3Body>> {
    let after = match &start.continuation_token {
        Some(token) => Some(read_token(token)?),
        None => start.start_after.clone(),
    };
    let page = page(call, bucket, listing, after).await?;
    let document = xml::document("ListBucketResult", Some(xml::NAMESPACE), |out| {
        out.text("Name", bucket.as_str());
        out.text("Prefix", &listing.shown(&listing.prefix));
        out.optional("ContinuationToken", start.continuation_token.as_deref());
        if let Some(next) = &page.next {
            out.text("NextContinuationToken", &write_token(next));
        }
        if let Some(start_after) = &start.start_after {
            out.text("StartAfter", &listing.shown(start_after));
        }
        out.value("KeyCount", page.entries.len());
        write_bounds(out, listing, page.next.is_some());
        let owner = start.fetch_owner.then(|| call.owner());
        for object in objects(&page) {
            out.element("Contents", |out| write_contents(out, listing, object, owner));
        }
        write_common_prefixes(out, listing, &page);
    });
    Ok(answer::document(document))
}

impl Listing {
    /// A name as this listing answers it.
    pub fn shown<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.url_encoded { encode_name(name).into() } else { name.into() }
    }
}

async fn page(call: &mut Call<'_>, bucket: &BucketName, listing: &Listing, after: Option<String>) -> Result<ListPage> {
    let query =
        ListQuery { prefix: listing.prefix.clone(), delimiter: listing.delimiter.clone(), after, limit: listing.limit };
    let subject = Subject { bucket: bucket.as_str(), ..Subject::default() };
    let mut page = call.front.store.list(bucket, query).await.map_err(|error| subject.error(error))?;
    if listing.limit == 0 {
        // Asked for nothing, everything there is was shown.
        page.next = None;
    }
    Ok(page)
}

fn objects(page: &ListPage) -> impl Iterator<Item = &ObjectInfo> {
    page.entries.iter().filter_map(|entry| match entry {
        ListEntry::Object(object) => Some(object),
        ListEntry::CommonPrefix(_) => None,
    })
}

pub(super) fn write_bounds(out: &mut Writer, listing: &Listing, truncated: bool) {
    out.value("MaxKeys", listing.limit);
    if let Some(delimiter) = &listing.delimiter {
        out.text("Delimiter", &listing.shown(delimiter));
    }
    if listing.url_encoded {
        out.text("EncodingType", "url");
    }
    out.value("IsTruncated", truncated);
}

pub(super) fn write_contents(out: &mut Writer, listing: &Listing, object: &ObjectInfo, owner: Option<&str>) {
    out.text("Key", &listing.shown(object.key.as_str()));
    out.text("LastModified", &timestamp(object.last_modified_ms));
    out.text("ETag", &quoted(&object.etag));
    if let Some(checksum) = &object.checksum {
        out.text("ChecksumAlgorithm", checksum::name(checksum.algorithm));
        out.text("ChecksumType", checksum::type_name(checksum.kind));
    }
    out.value("Size", object.size);
    out.text("StorageClass", "STANDARD");
    if let Some(owner) = owner {
        write_owner(out, "Owner", owner);
    }
}

/// A person, as S3 shows owners and initiators.
pub(super) fn write_owner(out: &mut Writer, element: &str, owner: &str) {
    out.element(element, |out| {
        out.text("ID", owner);
        out.text("DisplayName", owner);
    });
}

fn write_common_prefixes(out: &mut Writer, listing: &Listing, page: &ListPage) {
    for entry in &page.entries {
        if let ListEntry::CommonPrefix(prefix) = entry {
            out.element("CommonPrefixes", |out| out.text("Prefix", &listing.shown(prefix)));
        }
    }
}

/// A token that says where the next page begins and nothing else to its holder.
fn write_token(after: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode([TOKEN_MARK, after.as_bytes()].concat())
}

fn read_token(token: &str) -> Result<String> {
    let after = BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| {
        let after = bytes.strip_prefix(TOKEN_MARK)?;
        String::from_utf8(after.to_vec()).ok()
    });
    after.ok_or_else(|| {
        Error::invalid_argument("continuation-token", token, "The continuation token provided is incorrect")
    })
}

/// A moment as S3's documents spell it: `2013-05-24T00:00:00.000Z`.
pub(super) fn timestamp(ms: i64) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    moment.unwrap_or(OffsetDateTime::UNIX_EPOCH).format(format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_ours_or_refused() {
        let token = write_token("a/ü\u{2}");
        assert!(matches!(read_token(&token).as_deref(), Ok("a/ü\u{2}")));
        for foreign in ["", "a/b", "YS9i", &BASE64_URL_SAFE_NO_PAD.encode(b"tw1:\xff")] {
            assert!(matches!(read_token(foreign), Err(Error::InvalidArgument { .. })), "{foreign}");
        }
    }

    #[test]
    fn timestamps_have_milliseconds() {
        assert_eq!(timestamp(1_369_353_600_007), "2013-05-24T00:00:00.007Z");
        assert_eq!(timestamp(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
