//! What an object was made of, for readers who ask for a part of it by its number.

use super::{
    BucketName, ObjectInfo, ObjectKey, ObjectPart, Result, Store, VersionId,
    index::{object_parts, uploads},
    types::Address,
    upload_address,
};

impl Store {
    /// The object or one version of it, up to `limit` (at most 1,000) of its parts behind number `after`, and whether more follow.
    ///
    /// # Errors
    /// As [`Store::head_version`].
    pub async fn object_parts(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        after: u32,
        limit: usize,
    ) -> Result<(ObjectInfo, Vec<ObjectPart>, bool)> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| object_parts::list(index, &address, version.as_ref(), after, limit)).await
    }

    /// The object or one version of it, and its part at a place counted from 1.
    ///
    /// # Errors
    /// As [`Store::head_version`].
    pub async fn object_part(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        ordinal: u32,
    ) -> Result<(ObjectInfo, Option<ObjectPart>)> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| object_parts::at(index, &address, version.as_ref(), ordinal)).await
    }

    /// The key of an open upload.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn upload_key(&self, bucket: &BucketName, upload_id: &str) -> Result<Option<ObjectKey>> {
        let (bucket, id) = (bucket.clone(), upload_id.to_owned());
        self.0.index.look_up(move |index| uploads::key_of(index, &bucket, &id)).await
    }

    /// When an open upload began, in milliseconds.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`.
    pub async fn upload_started_ms(&self, bucket: &BucketName, key: &ObjectKey, upload_id: &str) -> Result<i64> {
        let upload = upload_address(bucket, key, upload_id);
        self.0.index.look_up(move |index| uploads::started_ms(index, &upload)).await
    }
}
