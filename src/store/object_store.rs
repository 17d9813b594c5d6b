//! One bucket as an `object_store`: how the catalog reaches the embedded store, in process and without HTTP.
//!
//! The traits' async methods are written out as the futures `async_trait` declares them to be.

use super::{
    BucketName, CompletedPart, Condition, Deletion, ListEntry, ListQuery, NewUpload, ObjectHeaders, ObjectInfo,
    ObjectKey, Store, multipart::Completion, upload_address,
};
use ::object_store::{
    Attribute, AttributeValue, Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart, path::Path,
};
use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Keys a listing asks for at once.
const PAGE_KEYS: usize = 1000;
/// Deletes under way at once in a `delete_stream`: they share their syncs.
const DELETES_RUNNING: usize = 64;
/// Parts of an upload, as S3 has it.
const PARTS_MAX: u32 = 10_000;

const STORE: &str = "tidewater";
const DELIMITER: &str = "/";

/// See [`Store::bucket`].
#[derive(Clone)]
pub(super) struct BucketStore {
    store: Store,
    bucket: BucketName,
}

impl BucketStore {
    pub fn new(store: Store, bucket: BucketName) -> Self {
        Self { store, bucket }
    }

    async fn put(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let key = object_key(location)?;
        let headers = headers(&options.attributes)?;
        let condition = match &options.mode {
            PutMode::Overwrite => Condition::None,
            PutMode::Create => Condition::Absent,
            PutMode::Update(version) => {
                let etag = version.e_tag.as_deref().ok_or_else(|| unsupported("an update without an etag"))?;
                Condition::Etag(etag.trim_matches('"').to_owned())
            }
        };
        let mut upload = self.store.begin(None);
        let publishing = async {
            for bytes in payload {
                upload.write(bytes).await?;
            }
            self.store.publish(&self.bucket, &key, upload.seal().await?, headers, condition, now_ms()).await
        };
        let info = publishing.await.map_err(|error| match (&options.mode, error) {
            (PutMode::Create, error @ super::Error::PreconditionFailed) => {
                Error::AlreadyExists { path: location.to_string(), source: error.into() }
            }
            // An update's object that is gone is one that changed.
            (PutMode::Update(_), error @ super::Error::NoSuchKey) => {
                Error::Precondition { path: location.to_string(), source: error.into() }
            }
            (_, error) => failed(location, error),
        })?;
        Ok(put_result(info))
    }

    async fn put_multipart(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let key = object_key(location)?;
        let new = NewUpload { kept: headers(&options.attributes)?.into(), checksum: None };
        let id = self
            .store
            .create_upload(&self.bucket, &key, new, now_ms())
            .await
            .map_err(|error| failed(location, error))?;
        let target = Target { bucket: self.clone(), location: location.clone(), key, id };
        Ok(Box::new(BucketUpload { target: Arc::new(target), begun: 0, parts: Arc::default() }))
    }

    async fn get(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = object_key(location)?;
        if options.version.is_some() {
            return Err(unsupported("reading a version"));
        }
        let (picking, at) = (options.clone(), location.clone());
        let picked = move |info: &ObjectInfo| pick(&picking, &at, info).ok();
        let failed = |error| failed(location, error);
        let (info, stream) = if options.head {
            (self.store.head(&self.bucket, &key).await.map_err(failed)?, stream::empty().boxed())
        } else {
            let reading = self.store.read(&self.bucket, &key, picked).await.map_err(failed)?;
            (reading.info, reading.stream)
        };
        // The same decision on the same version, this time for its reason.
        let range = pick(&options, location, &info)?;
        let at = location.clone();
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream.map_err(move |error| self::failed(&at, error)).boxed()),
            range,
            attributes: attributes(&info.headers),
            meta: meta_of(&info, location.clone()),
            extensions: Default::default(),
        })
    }

    /// Objects and common prefixes under `prefix`, page by page.
    fn entries(
        &self,
        prefix: String,
        delimiter: Option<&'static str>,
        after: Option<String>,
    ) -> BoxStream<'static, Result<ListEntry>> {
        let bucket = self.clone();
        let pages = stream::try_unfold(Some(after), move |after| {
            let (bucket, prefix) = (bucket.clone(), prefix.clone());
            async move {
                let Some(after) = after else { return Ok(None) };
                let query = ListQuery { prefix, delimiter: delimiter.map(str::to_owned), after, limit: PAGE_KEYS };
                let at = Path::default();
                let page = bucket.store.list(&bucket.bucket, query).await.map_err(|error| failed(&at, error))?;
                let entries = stream::iter(page.entries.into_iter().map(Ok));
                Ok::<_, Error>(Some((entries, page.next.map(Some))))
            }
        });
        pages.try_flatten().boxed()
    }

    fn list_after(&self, prefix: Option<&Path>, after: Option<String>) -> BoxStream<'static, Result<ObjectMeta>> {
        let entries = self.entries(folder(prefix), None, after);
        entries
            .try_filter_map(|entry| async move {
                match entry {
                    ListEntry::Object(object) => meta(&object).map(Some),
                    ListEntry::CommonPrefix(_) => Ok(None),
                }
            })
            .boxed()
    }

    async fn list_folder(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut entries = self.entries(folder(prefix), Some(DELIMITER), None);
        let mut listed =
            ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Default::default() };
        while let Some(entry) = entries.try_next().await? {
            match entry {
                ListEntry::Object(object) => listed.objects.push(meta(&object)?),
                ListEntry::CommonPrefix(prefix) => listed.common_prefixes.push(Path::parse(prefix)?),
            }
        }
        Ok(listed)
    }

    async fn copy(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (source, target) = (object_key(from)?, object_key(to)?);
        let condition = match options.mode {
            CopyMode::Overwrite => Condition::None,
            CopyMode::Create => Condition::Absent,
        };
        let (from_object, to_object) = ((&self.bucket, &source), (&self.bucket, &target));
        match self.store.copy(from_object, to_object, None, |_| true, condition, now_ms()).await {
            Ok(_) => Ok(()),
            Err(error @ super::Error::PreconditionFailed) => {
                Err(Error::AlreadyExists { path: to.to_string(), source: error.into() })
            }
            Err(error) => Err(failed(from, error)),
        }
    }
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl fmt::Display for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STORE}({})", self.bucket.as_str())
    }
}

impl ObjectStore for BucketStore {
    fn put_opts<'a, 'b, 'async_trait>(
        &'a self,
        location: &'b Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> BoxFuture<'async_trait, Result<PutResult>>
    where
        'a: 'async_trait,
        'b: 'async_trait,
        Self: 'async_trait,
    {
        self.put(location, payload, options).boxed()
    }

    fn put_multipart_opts<'a, 'b, 'async_trait>(
        &'a self,
        location: &'b Path,
        options: PutMultipartOptions,
    ) -> BoxFuture<'async_trait, Result<Box<dyn MultipartUpload>>>
    where
        'a: 'async_trait,
        'b: 'async_trait,
        Self: 'async_trait,
    {
        self.put_multipart(location, options).boxed()
    }

    fn get_opts<'a, 'b, 'async_trait>(
        &'a self,
        location: &'b Path,
        options: GetOptions,
    ) -> BoxFuture<'async_trait, Result<GetResult>>
    where
        'a: 'async_trait,
        'b: 'async_trait,
        Self: 'async_trait,
    {
        self.get(location, options).boxed()
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let bucket = self.clone();
        let deletes = locations.map(move |location| {
            let bucket = bucket.clone();
            async move {
                let location = location?;
                let key = object_key(&location)?;
                let deletion = Deletion { now_ms: now_ms(), ..Deletion::default() };
                let deleted = bucket.store.delete_version(&bucket.bucket, &key, deletion).await;
                deleted.map_err(|error| failed(&location, error))?;
                Ok(location)
            }
        });
        deletes.buffered(DELETES_RUNNING).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.list_after(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.list_after(prefix, Some(offset.to_string()))
    }

    fn list_with_delimiter<'a, 'b, 'async_trait>(
        &'a self,
        prefix: Option<&'b Path>,
    ) -> BoxFuture<'async_trait, Result<ListResult>>
    where
        'a: 'async_trait,
        'b: 'async_trait,
        Self: 'async_trait,
    {
        self.list_folder(prefix).boxed()
    }

    fn copy_opts<'a, 'b, 'c, 'async_trait>(
        &'a self,
        from: &'b Path,
        to: &'c Path,
        options: CopyOptions,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'a: 'async_trait,
        'b: 'async_trait,
        'c: 'async_trait,
        Self: 'async_trait,
    {
        self.copy(from, to, options).boxed()
    }
}

/// An upload in parts, numbered in the order they were begun.
#[derive(Debug)]
struct BucketUpload {
    target: Arc<Target>,
    begun: u32,
    parts: Arc<Mutex<Vec<CompletedPart>>>,
}

#[derive(Debug)]
struct Target {
    bucket: BucketStore,
    location: Path,
    key: ObjectKey,
    id: String,
}

impl Target {
    async fn put_part(&self, number: u32, payload: PutPayload) -> super::Result<CompletedPart> {
        let BucketStore { store, bucket } = &self.bucket;
        let mut upload = store.begin(None);
        for bytes in payload {
            upload.write(bytes).await?;
        }
        let sealed = upload.seal().await?;
        let part = store.publish_part(bucket, &self.key, &self.id, number, sealed, now_ms()).await?;
        Ok(CompletedPart { number, etag: part.etag, checksum: None })
    }

    async fn complete(&self, mut parts: Vec<CompletedPart>) -> super::Result<ObjectInfo> {
        if parts.is_empty() {
            parts.push(self.put_part(1, PutPayload::default()).await?);
        }
        parts.sort_by_key(|part| part.number);
        let completion = Completion {
            parts,
            checksum: None,
            condition: Condition::None,
            // This trait promises no smallest part.
            part_bytes_min: 0,
            now_ms: now_ms(),
        };
        self.bucket.store.complete(upload_address(&self.bucket.bucket, &self.key, &self.id), completion).await
    }

    fn failed(&self, error: super::Error) -> Error {
        failed(&self.location, error)
    }
}

impl MultipartUpload for BucketUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (target, parts) = (self.target.clone(), self.parts.clone());
        self.begun += 1;
        let number = self.begun;
        async move {
            if number > PARTS_MAX {
                return Err(unsupported("more than 10,000 parts"));
            }
            let part = target.put_part(number, payload).await.map_err(|error| target.failed(error))?;
            parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
            Ok(())
        }
        .boxed()
    }

    fn complete<'a, 'async_trait>(&'a mut self) -> BoxFuture<'async_trait, Result<PutResult>>
    where
        'a: 'async_trait,
        Self: 'async_trait,
    {
        async move {
            let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if parts.len() != self.begun as usize {
                return Err(self.target.failed(super::Error::InvalidPart));
            }
            self.target.complete(parts).await.map(put_result).map_err(|error| self.target.failed(error))
        }
        .boxed()
    }

    fn abort<'a, 'async_trait>(&'a mut self) -> BoxFuture<'async_trait, Result<()>>
    where
        'a: 'async_trait,
        Self: 'async_trait,
    {
        async move {
            let Target { bucket: BucketStore { store, bucket }, key, id, .. } = &*self.target;
            store.abort_upload(bucket, key, id).await.map_err(|error| self.target.failed(error))
        }
        .boxed()
    }
}

fn object_key(location: &Path) -> Result<ObjectKey> {
    ObjectKey::parse(location.as_ref())
        .ok_or_else(|| Error::Generic { store: STORE, source: "a key has 1 to 1,024 bytes".into() })
}

/// The prefix of what lies under a path: whole segments only, and not the path itself.
fn folder(prefix: Option<&Path>) -> String {
    match prefix.map(Path::as_ref) {
        None | Some("") => String::new(),
        Some(prefix) => format!("{prefix}{DELIMITER}"),
    }
}

/// The bytes to read, when the options' conditions hold for this version.
fn pick(options: &GetOptions, location: &Path, info: &ObjectInfo) -> Result<Range<u64>> {
    options.check_preconditions(&meta_of(info, location.clone()))?;
    match &options.range {
        None => Ok(0..info.size),
        Some(range) => range.as_range(info.size).map_err(|error| Error::Generic { store: STORE, source: error.into() }),
    }
}

/// # Errors
/// For a key that this crate's paths cannot say, such as `a//b`.
fn meta(info: &ObjectInfo) -> Result<ObjectMeta> {
    Ok(meta_of(info, Path::parse(info.key.as_str())?))
}

fn meta_of(info: &ObjectInfo, location: Path) -> ObjectMeta {
    let since_epoch = Duration::from_millis(u64::try_from(info.last_modified_ms).unwrap_or(0));
    ObjectMeta {
        location,
        last_modified: UNIX_EPOCH.checked_add(since_epoch).unwrap_or(UNIX_EPOCH).into(),
        size: info.size,
        e_tag: Some(info.etag.clone()),
        version: None,
    }
}

fn put_result(info: ObjectInfo) -> PutResult {
    PutResult { e_tag: Some(info.etag), version: None, extensions: Default::default() }
}

fn headers(attributes: &Attributes) -> Result<ObjectHeaders> {
    let mut headers = ObjectHeaders::default();
    for (attribute, value) in attributes {
        let value = value.as_ref().to_owned();
        match attribute {
            Attribute::ContentType => headers.content_type = Some(value),
            Attribute::ContentEncoding => headers.content_encoding = Some(value),
            Attribute::ContentDisposition => headers.content_disposition = Some(value),
            Attribute::ContentLanguage => headers.content_language = Some(value),
            Attribute::CacheControl => headers.cache_control = Some(value),
            Attribute::Metadata(name) => headers.user_metadata.push((name.to_string(), value)),
            _ => return Err(unsupported("an attribute other than headers and metadata")),
        }
    }
    Ok(headers)
}

fn attributes(headers: &ObjectHeaders) -> Attributes {
    let standard = [
        (Attribute::ContentType, &headers.content_type),
        (Attribute::ContentEncoding, &headers.content_encoding),
        (Attribute::ContentDisposition, &headers.content_disposition),
        (Attribute::ContentLanguage, &headers.content_language),
        (Attribute::CacheControl, &headers.cache_control),
    ];
    let standard = standard.into_iter().filter_map(|(attribute, value)| Some((attribute, value.clone()?)));
    let metadata =
        headers.user_metadata.iter().map(|(name, value)| (Attribute::Metadata(name.clone().into()), value.clone()));
    standard.chain(metadata).map(|(attribute, value)| (attribute, AttributeValue::from(value))).collect()
}

fn failed(location: &Path, error: super::Error) -> Error {
    let path = location.to_string();
    match error {
        super::Error::NoSuchKey
        | super::Error::Deleted { .. }
        | super::Error::NoSuchBucket
        | super::Error::NoSuchUpload => Error::NotFound { path, source: error.into() },
        super::Error::PreconditionFailed => Error::Precondition { path, source: error.into() },
        error => Error::Generic { store: STORE, source: error.into() },
    }
}

fn unsupported(what: &str) -> Error {
    Error::NotSupported { source: what.into() }
}

/// The trait passes no time in.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
