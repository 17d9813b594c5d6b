//! DeleteObject and DeleteObjects.

use super::{
    access,
    answer::{self, S3Body},
    checksum::{self, Stated},
    conditions::unquoted,
    error::{Error, Result, Subject},
    front::Call,
    headers, object_lock,
    operation::{self, Object},
    versions, xml,
};
use crate::{
    auth::grants::{Action, Resource},
    store::{self, BucketName, Condition, Deleted, Deletion, Expected, ObjectKey, VersionId},
};
use http::{HeaderMap, Response, StatusCode};

/// Keys of one DeleteObjects.
const KEYS_MAX: usize = 1000;

pub(super) async fn delete_object(
    call: &mut Call<'_>,
    object: &Object,
    version: Option<VersionId>,
) -> Result<Response<S3Body>> {
    let (condition, stated_by) = condition(&call.parts.headers)?;
    let subject = Subject { version: version.as_ref(), condition: stated_by, ..object.subject() };
    let governance = object_lock::governance(call, object.resource())?;
    let deletion = Deletion { version: version.clone(), condition, governance, now_ms: call.now_ms };
    let deleted = call.front.store.delete_version(&object.bucket, &object.key, deletion).await;
    let deleted = deleted.map_err(|error| subject.error(error))?;
    let mut response = answer::empty(StatusCode::NO_CONTENT);
    versions::write_read(response.headers_mut(), deleted.version.as_ref());
    if deleted.marker {
        headers::put(response.headers_mut(), versions::DELETE_MARKER, "true");
    }
    Ok(response)
}

/// What a deletion expects of the object, and the header that says so.
fn condition(sent: &HeaderMap) -> Result<(Condition, &'static str)> {
    let size = headers::text(sent, "x-amz-if-match-size")?;
    let last_modified = headers::text(sent, "x-amz-if-match-last-modified-time")?;
    let expected = Expected {
        etag: headers::text(sent, "if-match")?.map(|tag| unquoted(tag).to_owned()),
        size: size.map(|size| parse_size("x-amz-if-match-size", size)).transpose()?,
        modified_s: last_modified.map(|date| parse_date("x-amz-if-match-last-modified-time", date)).transpose()?,
    };
    Ok(match &expected {
        Expected { etag: None, size: None, modified_s: None } => (Condition::None, ""),
        Expected { etag: Some(_), .. } => (Condition::Fits(expected), "If-Match"),
        Expected { size: Some(_), .. } => (Condition::Fits(expected), "If-Match-Size"),
        _ => (Condition::Fits(expected), "If-Match-Last-Mod-Time"),
    })
}

fn parse_size(name: &'static str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid_argument(name, text, format!("Value for {name} is invalid.")))
}

fn parse_date(name: &'static str, text: &str) -> Result<i64> {
    let date = httpdate::parse_http_date(text).ok();
    let since = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
    let since_s = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    since_s.ok_or_else(|| Error::invalid_argument(name, text, format!("Value for {name} is invalid.")))
}

/// One object of a DeleteObjects, with its key as sent.
struct Entry {
    name: String,
    version_id: Option<String>,
    etag: Option<String>,
}

/// What became of one object.
type Outcome = Result<Deleted>;

pub(super) async fn delete_objects(call: &mut Call<'_>, bucket: &BucketName) -> Result<Response<S3Body>> {
    let document = call.document().await?;
    if checksum::verify_document(&call.parts.headers, &document)? == Stated::Nothing {
        return Err(Error::invalid_request(
            "Missing required header for this request: Content-MD5 OR x-amz-checksum-*",
        ));
    }
    let request = xml::parse(&document, "Delete")?;
    let entries = entries(&request)?;
    let quiet = request.child_text("Quiet").is_some_and(|quiet| quiet.trim().eq_ignore_ascii_case("true"));
    let outcomes = delete_entries(call, bucket, &entries).await?;
    let document = xml::document("DeleteResult", Some(xml::NAMESPACE), |out| {
        for (entry, outcome) in entries.iter().zip(&outcomes) {
            match outcome {
                Ok(_) if quiet => {}
                Ok(deleted) => out.element("Deleted", |out| {
                    out.text("Key", &entry.name);
                    out.optional("VersionId", entry.version_id.as_deref());
                    if deleted.marker || entry.version_id.is_some() {
                        out.value("DeleteMarker", deleted.marker);
                    }
                    if deleted.marker {
                        out.optional("DeleteMarkerVersionId", deleted.version.as_ref().map(VersionId::as_str));
                    }
                }),
                Err(error) => out.element("Error", |out| {
                    let described = error.describe();
                    out.text("Key", &entry.name);
                    out.optional("VersionId", entry.version_id.as_deref());
                    out.text("Code", described.code);
                    out.text("Message", &described.message);
                }),
            }
        }
    });
    Ok(answer::document(document))
}

/// The keys a DeleteObjects document names.
///
/// # Errors
/// `Error::MalformedXml`.
pub(super) fn keys_named(document: &[u8]) -> Result<Vec<String>> {
    Ok(entries(&xml::parse(document, "Delete")?)?.into_iter().map(|entry| entry.name).collect())
}

fn entries(request: &xml::Element) -> Result<Vec<Entry>> {
    let entries = request.children_named("Object").map(|object| {
        let name = object.child_text("Key").filter(|key| !key.is_empty()).ok_or(Error::MalformedXml)?;
        let owned = |name| object.child_text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Entry {
            name: name.to_owned(),
            version_id: owned("VersionId"),
            etag: owned("ETag").map(|tag| unquoted(&tag).to_owned()),
        })
    });
    let entries: Vec<Entry> = entries.collect::<Result<_>>()?;
    if entries.is_empty() || entries.len() > KEYS_MAX { Err(Error::MalformedXml) } else { Ok(entries) }
}

/// Deletes all that may be deleted, in one durable step.
async fn delete_entries(call: &mut Call<'_>, bucket: &BucketName, entries: &[Entry]) -> Result<Vec<Outcome>> {
    let mut planned = Vec::with_capacity(entries.len());
    for entry in entries {
        planned.push(allowed(call, bucket, entry).await);
    }
    // A caller who may delete nothing here learns nothing about the bucket.
    if planned.iter().all(|planned| matches!(planned, Err(Error::AccessDenied))) {
        return Err(Error::AccessDenied);
    }
    super::buckets::require_bucket(call, bucket).await?;
    let deletions: Vec<(ObjectKey, Deletion)> =
        planned.iter().filter_map(|planned| planned.as_ref().ok().cloned()).collect();
    let subject = Subject { bucket: bucket.as_str(), condition: "If-Match", ..Subject::default() };
    let mut deleted = if deletions.is_empty() {
        Vec::new()
    } else {
        let deleted = call.front.store.delete_versions(bucket, deletions).await;
        deleted.map_err(|error| subject.error(error))?
    }
    .into_iter();
    let outcome = |planned: Result<(ObjectKey, Deletion)>| {
        let (key, deletion) = planned?;
        let subject = Subject { key: key.as_str(), version: deletion.version.as_ref(), ..subject };
        // The store answers one outcome each.
        let deleted = deleted.next().unwrap_or(Err(store::Error::NoSuchKey));
        deleted.map_err(|error| subject.error(error))
    };
    Ok(planned.into_iter().map(outcome).collect())
}

async fn allowed(call: &mut Call<'_>, bucket: &BucketName, entry: &Entry) -> Result<(ObjectKey, Deletion)> {
    let key = operation::object_key(&entry.name)?;
    let unknown = |id: &String| Error::NoSuchVersion { key: entry.name.clone(), version_id: id.clone() };
    let version = entry.version_id.as_ref().map(|id| VersionId::parse(id).ok_or_else(|| unknown(id)));
    let resource = Resource::Object { bucket: bucket.as_str(), key: key.as_str() };
    let name = access::delete_name(version.as_ref().and_then(|version| version.as_ref().ok()));
    call.require_named(name, Action::DeleteObject, resource)?;
    call.spare_metadata(Action::DeleteObject, bucket.as_str(), key.as_str()).await?;
    let (version, governance) = (version.transpose()?, object_lock::governance(call, resource)?);
    let condition = entry.etag.clone().map_or(Condition::None, Condition::Etag);
    Ok((key, Deletion { version, condition, governance, now_ms: call.now_ms }))
}
