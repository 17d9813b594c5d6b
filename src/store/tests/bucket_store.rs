//! A bucket as an `object_store`, against the suite that crate keeps for its own stores, and what the suite leaves out.

use super::*;
use ::object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion, integration,
    path::Path,
};

/// Each part of the suite finds a bucket of its own.
struct Fresh {
    fixture: Fixture,
    made: usize,
}

impl Fresh {
    async fn bucket(&mut self) -> Arc<dyn ObjectStore> {
        self.made += 1;
        let bucket = bucket_name(&format!("suite-{}", self.made));
        self.fixture.store.create_bucket(&bucket, 1).await.unwrap();
        self.fixture.store.bucket(bucket)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite_of_the_trait() {
    let mut fresh = Fresh { fixture: Fixture::new().await, made: 0 };
    integration::put_get_delete_list(&fresh.bucket().await).await;
    integration::get_opts(&fresh.bucket().await).await;
    integration::put_opts(&fresh.bucket().await, true).await;
    integration::stream_get(&fresh.bucket().await).await;
    integration::put_get_attributes(&fresh.bucket().await).await;
    integration::list_uses_directories_correctly(&fresh.bucket().await).await;
    integration::list_with_delimiter(&fresh.bucket().await).await;
    integration::list_with_offset_exclusivity(&fresh.bucket().await).await;
    integration::rename_and_copy(&fresh.bucket().await).await;
    integration::copy_if_not_exists(&fresh.bucket().await).await;
    integration::copy_rename_nonexistent_object(&fresh.bucket().await).await;
    integration::multipart_race_condition(&fresh.bucket().await, true).await;
    integration::multipart_out_of_order(&fresh.bucket().await).await;
    let missing = integration::get_nonexistent_object(&fresh.bucket().await, None).await.unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }));
}

#[tokio::test]
async fn ranges_of_every_form_are_resolved_on_the_version_read() {
    let fixture = Fixture::new().await;
    let (store, path) = (fixture.store.bucket(fixture.bucket.clone()), Path::from("key"));
    let bytes = pattern(LARGE, 6);
    store.put(&path, bytes.clone().into()).await.unwrap();
    let end = LARGE as u64;
    for (range, expected) in [
        (GetRange::Bounded(70_000..700_000), 70_000..700_000),
        (GetRange::Bounded(end - 5..end + 5), end - 5..end),
        (GetRange::Offset(end - 1), end - 1..end),
        (GetRange::Suffix(7), end - 7..end),
        (GetRange::Suffix(end + 7), 0..end),
    ] {
        let got = store.get_opts(&path, GetOptions::new().with_range(Some(range))).await.unwrap();
        assert_eq!((got.range.clone(), got.meta.size), (expected.clone(), end));
        assert!(got.bytes().await.unwrap() == bytes[expected.start as usize..expected.end as usize]);
    }
    let outside = store.get_opts(&path, GetOptions::new().with_range(Some(GetRange::Offset(end)))).await;
    assert!(matches!(outside, Err(StoreError::Generic { .. })));
    let head = store.get_opts(&path, GetOptions::new().with_head(true)).await.unwrap();
    assert_eq!(head.meta.size, end);
    assert!(head.bytes().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_update_of_what_is_gone_is_a_failed_precondition() {
    let fixture = Fixture::new().await;
    let (store, path) = (fixture.store.bucket(fixture.bucket.clone()), Path::from("key"));
    let put = store.put(&path, "a".into()).await.unwrap();
    store.delete(&path).await.unwrap();
    store.delete(&path).await.unwrap();
    let version = UpdateVersion { e_tag: put.e_tag, version: None };
    let updated = store.put_opts(&path, "b".into(), PutMode::Update(version).into()).await;
    assert!(matches!(updated, Err(StoreError::Precondition { .. })));
}

#[tokio::test]
async fn parts_finish_in_any_order_and_an_abort_leaves_nothing() {
    let fixture = Fixture::new().await;
    let (store, path) = (fixture.store.bucket(fixture.bucket.clone()), Path::from("dir/key"));
    let bytes = pattern(3 * LARGE, 8);
    let mut upload = store.put_multipart(&path).await.unwrap();
    let parts: Vec<_> = bytes.chunks(LARGE).map(|part| upload.put_part(part.to_vec().into())).collect();
    assert!(upload.complete().await.is_err(), "parts are still on their way");
    for part in parts.into_iter().rev() {
        part.await.unwrap();
    }
    let put = upload.complete().await.unwrap();
    assert!(put.e_tag.unwrap().ends_with("-3"));
    assert!(store.get(&path).await.unwrap().bytes().await.unwrap() == bytes);

    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part(pattern(LARGE, 9).into()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(store.get(&path).await.unwrap().bytes().await.unwrap() == bytes);
    store.delete(&path).await.unwrap();
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn damage_ends_the_stream_with_an_error() {
    let fixture = Fixture::new().await;
    let (store, path) = (fixture.store.bucket(fixture.bucket.clone()), Path::from("key"));
    store.put(&path, pattern(LARGE, 6).into()).await.unwrap();
    let file = fixture.files().pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[LARGE - 1] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = store.get(&path).await.unwrap().bytes().await.unwrap_err();
    assert!(matches!(error, StoreError::Generic { .. }), "{error}");
}

#[tokio::test]
async fn listings_longer_than_a_page_are_whole() {
    let fixture = Fixture::new().await;
    let store = fixture.store.bucket(fixture.bucket.clone());
    let puts = (0..2_100).map(|n| {
        let store = store.clone();
        async move { store.put(&Path::from(format!("p/{:04}/x", n)), "a".into()).await }
    });
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    let prefix = Path::from("p");
    let all: Vec<_> = store.list(Some(&prefix)).try_collect().await.unwrap();
    assert_eq!(all.len(), 2_100);
    assert!(all.is_sorted_by(|a, b| a.location < b.location));
    let after: Vec<_> = store.list_with_offset(Some(&prefix), &Path::from("p/1099/x")).try_collect().await.unwrap();
    assert_eq!(after.len(), 1_000);
    let folders = store.list_with_delimiter(Some(&prefix)).await.unwrap();
    assert_eq!((folders.common_prefixes.len(), folders.objects.len()), (2_100, 0));
}
