//! What buckets are configured with: read from memory, true after a restart, gone with the bucket.

use super::*;

fn cors_of(store: &Store, bucket: &BucketName) -> Option<String> {
    store.settings(bucket).get(SettingName::Cors).map(|document| document.to_string())
}

#[tokio::test]
async fn a_setting_is_there_at_once_and_after_a_restart() {
    let fixture = Fixture::new().await;
    let (store, bucket) = (&fixture.store, fixture.bucket.clone());
    assert_eq!(cors_of(store, &bucket), None);
    store.put_setting(&bucket, SettingName::Cors, "one".to_owned()).await.unwrap();
    store.put_setting(&bucket, SettingName::Tagging, "tags".to_owned()).await.unwrap();
    store.put_setting(&bucket, SettingName::Cors, "two".to_owned()).await.unwrap();
    assert_eq!(cors_of(store, &bucket).as_deref(), Some("two"));
    let fixture = fixture.reopen().await;
    let store = &fixture.store;
    assert_eq!(cors_of(store, &bucket).as_deref(), Some("two"));
    store.delete_setting(&bucket, SettingName::Cors).await.unwrap();
    store.delete_setting(&bucket, SettingName::Cors).await.unwrap();
    assert_eq!(cors_of(store, &bucket), None);
    assert!(store.settings(&bucket).get(SettingName::Tagging).is_some());
}

#[tokio::test]
async fn settings_go_with_their_bucket_and_come_with_a_new_one() {
    let fixture = Fixture::new().await;
    let (store, bucket) = (&fixture.store, &fixture.bucket);
    store.put_setting(bucket, SettingName::Cors, "old".to_owned()).await.unwrap();
    store.delete_bucket(bucket).await.unwrap();
    assert_eq!(cors_of(store, bucket), None);
    let missing = store.put_setting(bucket, SettingName::Cors, "x".to_owned()).await;
    assert!(matches!(missing, Err(Error::NoSuchBucket)));
    assert!(matches!(store.delete_setting(bucket, SettingName::Cors).await, Err(Error::NoSuchBucket)));
    let settings = vec![(SettingName::Cors, "new".to_owned())];
    store.create_bucket_with(bucket, settings.clone(), 1).await.unwrap();
    assert_eq!(cors_of(store, bucket).as_deref(), Some("new"));
    let again = store.create_bucket_with(bucket, vec![(SettingName::Cors, "other".to_owned())], 2).await;
    assert!(matches!(again, Err(Error::BucketExists)));
    assert_eq!(cors_of(store, bucket).as_deref(), Some("new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_at_once_memory_keeps_the_one_the_index_keeps() {
    let fixture = Fixture::new().await;
    for round in 0..20 {
        let changes = (0..8).map(|number| {
            let (store, bucket) = (fixture.store.clone(), fixture.bucket.clone());
            tokio::spawn(async move {
                store.put_setting(&bucket, SettingName::Cors, format!("{round}-{number}")).await.unwrap();
            })
        });
        for change in changes.collect::<Vec<_>>() {
            change.await.unwrap();
        }
        let kept = cors_of(&fixture.store, &fixture.bucket);
        fixture.store.refresh_settings(&fixture.bucket).await.unwrap();
        assert_eq!(cors_of(&fixture.store, &fixture.bucket), kept);
    }
}
