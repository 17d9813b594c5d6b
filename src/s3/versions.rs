//! Versions on the wire: ids, PutBucketVersioning, GetBucketVersioning, ListObjectVersions.

use super::{
    answer::{self, S3Body},
    checksum,
    error::{Error, Result, Subject},
    front::Call,
    headers,
    list::{timestamp, write_bounds, write_contents, write_owner},
    operation::Listing,
    version_error::VersionError,
    xml,
};
use crate::store::{
    BucketName, BucketState, ListQuery, ObjectInfo, ObjectKey, VersionEntry, VersionId, Versioning, VersionsPage,
    VersionsQuery,
};
use http::{HeaderMap, HeaderName, Response, StatusCode};

pub const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");
pub const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");

/// A version id named by a client.
///
/// # Errors
/// `Error::InvalidArgument`.
pub fn parse(text: &str) -> Result<VersionId> {
    if text.is_empty() {
        return Err(Error::invalid_argument("versionId", "", "Version id cannot be the empty string"));
    }
    VersionId::parse(text).ok_or_else(|| Error::invalid_argument("versionId", text, "Invalid version id specified"))
}

/// Names the version that a write made; S3 does not name the version `null` there.
pub fn write_made(answer: &mut HeaderMap, object: &ObjectInfo) {
    if let Some(version @ VersionId::Id(_)) = &object.version {
        headers::put(answer, VERSION_ID, version.as_str());
    }
}

/// Names the version that is read.
pub fn write_read(answer: &mut HeaderMap, version: Option<&VersionId>) {
    if let Some(version) = version {
        headers::put(answer, VERSION_ID, version.as_str());
    }
}

fn subject(bucket: &BucketName) -> Subject<'_> {
    Subject { bucket: bucket.as_str(), ..Subject::default() }
}

/// # Errors
/// `Error::NoSuchBucket`.
pub(super) async fn bucket_state(call: &mut Call<'_>, bucket: &BucketName) -> Result<BucketState> {
    call.front.store.bucket_state(bucket).await.map_err(|error| subject(bucket).error(error))
}

pub(super) async fn put_bucket_versioning(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let document = call.document().await?;
    checksum::verify_document(&call.parts.headers, &document)?;
    let configuration = xml::parse(&document, "VersioningConfiguration")?;
    if configuration.child_text("MfaDelete").is_some_and(|text| text.trim() == "Enabled") {
        return Err(Error::NotImplemented("MfaDelete"));
    }
    let versioning = match configuration.child_text("Status").map(str::trim) {
        Some("Enabled") => Versioning::Enabled,
        Some("Suspended") => Versioning::Suspended,
        Some(_) => return Err(Error::MalformedXml),
        None => return Err(Error::Version(VersionError::VersioningNotStated)),
    };
    let set = call.front.store.set_versioning(bucket, versioning).await;
    set.map_err(|error| subject(bucket).error(error))?;
    Ok(answer::empty(StatusCode::OK))
}

pub(super) async fn get_bucket_versioning(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let state = bucket_state(call, bucket).await?;
    let status = match state.versioning {
        Versioning::Never => None,
        Versioning::Enabled => Some("Enabled"),
        Versioning::Suspended => Some("Suspended"),
    };
    let document = xml::document("VersioningConfiguration", Some(xml::NAMESPACE), |out| {
        out.optional("Status", status);
    });
    Ok(answer::document(document))
}

/// Where a listing of versions begins.
pub(super) struct Markers {
    pub key: Option<String>,
    pub version: Option<VersionId>,
}

pub(super) async fn list_object_versions(
    call: &mut Call<'_>,
    bucket: &BucketName,
    listing: &Listing,
    markers: Markers,
) -> Result<Response<S3Body>> {
    let query = VersionsQuery {
        list: ListQuery {
            prefix: listing.prefix.clone(),
            delimiter: listing.delimiter.clone(),
            after: markers.key.clone(),
            limit: listing.limit,
        },
        after_version: markers.version.clone(),
    };
    let page = call.front.store.list_versions(bucket, query).await;
    let page = page.map_err(|error| subject(bucket).error(error))?;
    let owner = call.owner();
    let document = xml::document("ListVersionsResult", Some(xml::NAMESPACE), |out| {
        out.text("Name", bucket.as_str());
        out.text("Prefix", &listing.shown(&listing.prefix));
        out.text("KeyMarker", &listing.shown(markers.key.as_deref().unwrap_or_default()));
        out.text("VersionIdMarker", markers.version.as_ref().map_or("", VersionId::as_str));
        if let Some((key, version)) = &page.next {
            out.text("NextKeyMarker", &listing.shown(key));
            out.optional("NextVersionIdMarker", version.as_ref().map(VersionId::as_str));
        }
        write_bounds(out, listing, page.next.is_some());
        write_entries(out, listing, &page, owner);
    });
    Ok(answer::document(document))
}

/// Versions and markers in their order, then the groups.
fn write_entries(out: &mut xml::Writer, listing: &Listing, page: &VersionsPage, owner: &str) {
    for entry in &page.entries {
        match entry {
            VersionEntry::Object { info, latest } => out.element("Version", |out| {
                out.text("VersionId", info.version.as_ref().map_or("null", VersionId::as_str));
                out.value("IsLatest", *latest);
                write_contents(out, listing, info, Some(owner));
            }),
            VersionEntry::Marker { key, version, last_modified_ms, latest } => out.element("DeleteMarker", |out| {
                write_marker(out, listing, key, version);
                out.value("IsLatest", *latest);
                out.text("LastModified", &timestamp(*last_modified_ms));
                write_owner(out, "Owner", owner);
            }),
            VersionEntry::CommonPrefix(_) => {}
        }
    }
    for entry in &page.entries {
        if let VersionEntry::CommonPrefix(prefix) = entry {
            out.element("CommonPrefixes", |out| out.text("Prefix", &listing.shown(prefix)));
        }
    }
}

fn write_marker(out: &mut xml::Writer, listing: &Listing, key: &ObjectKey, version: &VersionId) {
    out.text("Key", &listing.shown(key.as_str()));
    out.text("VersionId", version.as_str());
}
