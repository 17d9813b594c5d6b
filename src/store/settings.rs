//! What buckets are configured with: a document under each of a few names, kept in the index and in memory.
//!
//! Requests ask the memory only, so that a bucket without settings costs them nothing. It is filled when the store opens
//! and follows each change once that is durable. What the documents mean is their writer's.

use super::{
    BucketName, Result, Store,
    index::{self, settings},
};
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettingName {
    Cors,
    Ownership,
    Policy,
    PublicAccessBlock,
    Tagging,
}

impl SettingName {
    const ALL: [Self; 5] = [Self::Cors, Self::Ownership, Self::Policy, Self::PublicAccessBlock, Self::Tagging];

    /// As in the index: never changed.
    fn as_str(self) -> &'static str {
        match self {
            Self::Cors => "cors",
            Self::Ownership => "ownership",
            Self::Policy => "policy",
            Self::PublicAccessBlock => "public-access-block",
            Self::Tagging => "tagging",
        }
    }
}

/// The documents of one bucket. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct BucketSettings(Option<Arc<HashMap<SettingName, Arc<str>>>>);

impl BucketSettings {
    pub fn get(&self, name: SettingName) -> Option<&Arc<str>> {
        self.0.as_ref()?.get(&name)
    }

    /// Names of a later release are left alone.
    fn new(rows: impl IntoIterator<Item = (String, String)>) -> BucketSettings {
        let known = |name: &str| SettingName::ALL.into_iter().find(|known| known.as_str() == name);
        let documents = rows.into_iter().filter_map(|(name, document)| Some((known(&name)?, document.into())));
        let documents: HashMap<_, _> = documents.collect();
        BucketSettings((!documents.is_empty()).then(|| Arc::new(documents)))
    }
}

/// The settings of all buckets that have any.
pub(super) struct SettingsCache {
    buckets: RwLock<HashMap<BucketName, BucketSettings>>,
    /// Held while a bucket's settings are read again, so that the last reader leaves what is true.
    refreshing: tokio::sync::Mutex<()>,
}

impl SettingsCache {
    /// Blocking.
    pub fn load(folder: &Path) -> Result<SettingsCache> {
        let mut rows: HashMap<BucketName, Vec<(String, String)>> = HashMap::new();
        for (bucket, name, document) in settings::all(&index::open_reader(folder)?)? {
            rows.entry(bucket).or_default().push((name, document));
        }
        let buckets = rows.into_iter().map(|(bucket, rows)| (bucket, BucketSettings::new(rows))).collect();
        Ok(SettingsCache { buckets: RwLock::new(buckets), refreshing: tokio::sync::Mutex::new(()) })
    }

    fn of(&self, bucket: &BucketName) -> BucketSettings {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).get(bucket).cloned().unwrap_or_default()
    }

    fn set(&self, bucket: &BucketName, settings: BucketSettings) {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        match settings.0 {
            Some(_) => buckets.insert(bucket.clone(), settings),
            None => buckets.remove(bucket),
        };
    }
}

impl Store {
    /// The settings of a bucket, from memory; none where there is no such bucket.
    pub fn settings(&self, bucket: &BucketName) -> BucketSettings {
        self.0.settings.of(bucket)
    }

    /// Makes a bucket that has settings from the start.
    ///
    /// # Errors
    /// `Error::BucketExists`, `Error::Full`.
    pub async fn create_bucket_with(
        &self,
        bucket: &BucketName,
        settings: Vec<(SettingName, String)>,
        now_ms: i64,
    ) -> Result<()> {
        self.0.disk.require_room(0)?;
        let named = bucket.clone();
        let create = move |write: &mut index::Write<'_>| {
            index::buckets::create(write, &named, now_ms)?;
            settings.iter().try_for_each(|(name, document)| settings::put(write, &named, name.as_str(), document))
        };
        self.change_settings(bucket, create).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`, `Error::Full`.
    pub async fn put_setting(&self, bucket: &BucketName, name: SettingName, document: String) -> Result<()> {
        self.0.disk.require_room(document.len() as u64)?;
        let named = bucket.clone();
        self.change_settings(bucket, move |write| settings::put(write, &named, name.as_str(), &document)).await
    }

    /// Deleting what is not set succeeds.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn delete_setting(&self, bucket: &BucketName, name: SettingName) -> Result<()> {
        let named = bucket.clone();
        self.change_settings(bucket, move |write| settings::delete(write, &named, name.as_str())).await
    }

    /// In a task of its own: memory follows the index even when the caller goes away in between.
    pub(super) async fn change_settings(
        &self,
        bucket: &BucketName,
        change: impl FnOnce(&mut index::Write<'_>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<()> {
        let (store, bucket) = (self.clone(), bucket.clone());
        let changing = tokio::spawn(async move {
            store.free(change).await?;
            store.refresh_settings(&bucket).await
        });
        super::blocking::joined(changing).await
    }

    pub(super) async fn refresh_settings(&self, bucket: &BucketName) -> Result<()> {
        let _refreshing = self.0.settings.refreshing.lock().await;
        let named = bucket.clone();
        let rows = self.0.index.look_up(move |index| settings::of(index, &named)).await?;
        self.0.settings.set(bucket, BucketSettings::new(rows));
        Ok(())
    }
}
