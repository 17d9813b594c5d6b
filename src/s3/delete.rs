//! DeleteObject and DeleteObjects.

use super::{
    answer::{self, S3Body},
    checksum::{self, Stated},
    conditions::unquoted,
    error::{Error, Result, Subject},
    front::Call,
    headers,
    operation::{self, Object},
    xml,
};
use crate::{
    auth::grants::{Action, Resource},
    store::{self, BucketName, Condition, ObjectInfo, ObjectKey},
};
use http::{HeaderMap, Response, StatusCode};

/// Keys of one DeleteObjects.
const KEYS_MAX: usize = 1000;

pub(super) async fn delete_object(call: &mut Call<'_>, object: &Object) -> Result<Response<S3Body>> {
    let wanted = Wanted::of(&call.parts.headers)?;
    let subject = Subject { condition: wanted.header(), ..object.subject() };
    let condition = match wanted.current(call, object).await? {
        Target::Missing => return Ok(answer::empty(StatusCode::NO_CONTENT)),
        Target::Under(condition) => condition,
    };
    let deleted = call.front.store.delete(&object.bucket, &object.key, condition).await;
    deleted.map_err(|error| subject.error(error))?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// What a deletion expects of the object.
#[derive(Debug, Default)]
struct Wanted {
    etag: Option<String>,
    size: Option<u64>,
    last_modified_s: Option<u64>,
}

enum Target {
    Missing,
    Under(Condition),
}

impl Wanted {
    fn of(sent: &HeaderMap) -> Result<Wanted> {
        let size = headers::text(sent, "x-amz-if-match-size")?;
        let last_modified = headers::text(sent, "x-amz-if-match-last-modified-time")?;
        Ok(Wanted {
            etag: headers::text(sent, "if-match")?.map(|tag| unquoted(tag).to_owned()),
            size: size.map(|size| parse_size("x-amz-if-match-size", size)).transpose()?,
            last_modified_s: last_modified
                .map(|date| parse_date("x-amz-if-match-last-modified-time", date))
                .transpose()?,
        })
    }

    fn header(&self) -> &'static str {
        match self {
            Wanted { etag: Some(_), .. } => "If-Match",
            Wanted { size: Some(_), .. } => "If-Match-Size",
            _ => "If-Match-Last-Mod-Time",
        }
    }

    /// The condition to delete under: the etag named, or that of the object now there once it is as wanted. An object
    /// replaced in between has another etag, or the same bytes.
    async fn current(&self, call: &mut Call<'_>, object: &Object) -> Result<Target> {
        let any = self.etag.as_deref() == Some("*");
        if self.size.is_none() && self.last_modified_s.is_none() && !any {
            return Ok(Target::Under(self.etag.clone().map_or(Condition::None, Condition::Etag)));
        }
        match call.front.store.head(&object.bucket, &object.key).await {
            Ok(info) if self.fits(&info) => Ok(Target::Under(Condition::Etag(info.etag))),
            Ok(_) => Err(Error::PreconditionFailed(self.header())),
            Err(store::Error::NoSuchKey) if any => Err(Error::PreconditionFailed(self.header())),
            Err(store::Error::NoSuchKey) => Ok(Target::Missing),
            Err(error) => Err(object.subject().error(error)),
        }
    }

    fn fits(&self, info: &ObjectInfo) -> bool {
        let modified_s = u64::try_from(info.last_modified_ms.div_euclid(1000)).ok();
        self.etag.as_deref().is_none_or(|etag| etag == "*" || etag == info.etag)
            && self.size.is_none_or(|size| size == info.size)
            && (self.last_modified_s.is_none() || self.last_modified_s == modified_s)
    }
}

fn parse_size(name: &'static str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid_argument(name, text, format!("Value for {name} is invalid.")))
}

fn parse_date(name: &'static str, text: &str) -> Result<u64> {
    let date = httpdate::parse_http_date(text).ok();
    let since = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
    let since = since.ok_or_else(|| Error::invalid_argument(name, text, format!("Value for {name} is invalid.")))?;
    Ok(since.as_secs())
}

/// One object of a DeleteObjects, with its key as sent.
struct Entry {
    name: String,
    version_id: Option<String>,
    etag: Option<String>,
}

/// What became of one object.
type Outcome = Result<()>;

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
                Ok(()) if quiet => {}
                Ok(()) => out.element("Deleted", |out| {
                    out.text("Key", &entry.name);
                    out.optional("VersionId", entry.version_id.as_deref());
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

/// Deletes all that may be deleted: unconditional ones in one durable step, then the others one by one.
async fn delete_entries(call: &mut Call<'_>, bucket: &BucketName, entries: &[Entry]) -> Result<Vec<Outcome>> {
    let subject = Subject { bucket: bucket.as_str(), condition: "If-Match", ..Subject::default() };
    let mut keys = Vec::with_capacity(entries.len());
    for entry in entries {
        keys.push(allowed_key(call, bucket, entry).await);
    }
    // A caller who may delete nothing here learns nothing about the bucket.
    if keys.iter().all(|key| matches!(key, Err(Error::AccessDenied))) {
        return Err(Error::AccessDenied);
    }
    super::buckets::require_bucket(call, bucket).await?;
    let plain = entries.iter().zip(&keys).filter(|(entry, _)| entry.etag.is_none());
    let plain: Vec<ObjectKey> = plain.filter_map(|(_, key)| key.as_ref().ok().cloned()).collect();
    if !plain.is_empty() {
        let deleted = call.front.store.delete_many(bucket, plain).await;
        deleted.map_err(|error| subject.error(error))?;
    }
    let mut outcomes = Vec::with_capacity(entries.len());
    for (entry, key) in entries.iter().zip(keys) {
        outcomes.push(match (key, &entry.etag) {
            (Err(error), _) => Err(error),
            (Ok(_), None) => Ok(()),
            (Ok(key), Some(etag)) => {
                let deleted = call.front.store.delete(bucket, &key, Condition::Etag(etag.clone())).await;
                let subject = Subject { key: key.as_str(), ..subject };
                deleted.map(|_| ()).map_err(|error| subject.error(error))
            }
        });
    }
    Ok(outcomes)
}

async fn allowed_key(call: &mut Call<'_>, bucket: &BucketName, entry: &Entry) -> Result<ObjectKey> {
    let key = operation::object_key(&entry.name)?;
    call.require(Action::DeleteObject, Resource::Object { bucket: bucket.as_str(), key: key.as_str() })?;
    call.spare_metadata(Action::DeleteObject, bucket.as_str(), key.as_str()).await?;
    match &entry.version_id {
        Some(version_id) if version_id != "null" => {
            Err(Error::NoSuchVersion { key: entry.name.clone(), version_id: version_id.clone() })
        }
        _ => Ok(key),
    }
}
