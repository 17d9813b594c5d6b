//! What an object was made of, for readers who ask for a part of it by its number.

use super::{
    BucketName, ObjectInfo, ObjectKey, ObjectPart, Result, Store,
    index::{object_parts, uploads},
    types::Address,
    upload_address,
};

impl Store {
    /// The object, up to `limit` (at most 1,000) of its parts behind number `after`, and whether more follow.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchKey`.
    pub async fn object_parts(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        after: u32,
        limit: usize,
    ) -> Result<(ObjectInfo, Vec<ObjectPart>, bool)> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| object_parts::list(index, &address, after, limit)).await
    }

    /// The object, and its part at a place counted from 1.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchKey`.
    pub async fn object_part(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        ordinal: u32,
    ) -> Result<(ObjectInfo, Option<ObjectPart>)> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| object_parts::at(index, &address, ordinal)).await
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
