//! Opening a folder again: after a close, after a crash, from a newer release, and while somebody has it.

use super::*;

/// The folder as a crash at this moment would leave it to the next start.
pub(super) fn crash_image(folder: &Path) -> TempDir {
    let image = scratch();
    copy_folder(folder, image.path());
    image
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_keeps_what_was_acknowledged_and_nothing_else() {
    let fixture = Fixture::new().await;
    let (large, small) = (pattern(LARGE, 1), pattern(3000, 2));
    fixture.put("large", &large).await.unwrap();
    fixture.put("small", &small).await.unwrap();
    fixture.put("gone", &large).await.unwrap();
    fixture.delete("gone").await.unwrap();
    // Unpublished, and a body written in part: both have files that no row names.
    let sealed = fixture.sealed(&large).await.unwrap();
    let mut upload = fixture.store.begin(None);
    upload.write(large.clone().into()).await.unwrap();
    fixture.wait_for_files(3).await;
    let image = crash_image(fixture.folder.path());
    assert_eq!(files(image.path()).len(), 3);
    let store = Store::open_with(image.path(), settings(), None).await.unwrap();
    assert_eq!(files(image.path()).len(), 1);
    let crashed = Fixture { store, bucket: fixture.bucket.clone(), folder: image, faults: Arc::default() };
    assert_eq!(crashed.keys().await, ["large", "small"]);
    assert!(crashed.read("large").await.unwrap() == large);
    assert!(crashed.read("small").await.unwrap() == small);
    drop((sealed, upload));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_dropped_under_load_keeps_every_acknowledged_object() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = bucket_name("bucket");
    let mut expected: Vec<(String, Vec<u8>)> = Vec::new();
    for round in 0..5_u64 {
        let store = open_when_free(folder.path()).await;
        if round == 0 {
            store.create_bucket(&bucket, 1).await.unwrap();
        }
        for (key, bytes) in &expected {
            let reading = store.read(&bucket, &object_key(key), |info| Some(0..info.size)).await.unwrap();
            assert!(&collect(reading).await.unwrap() == bytes, "{key}");
        }
        let (acknowledged, mut answers) = tokio::sync::mpsc::channel(100);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (store, bucket, acknowledged) = (store.clone(), bucket.clone(), acknowledged.clone());
                tokio::spawn(async move {
                    for n in 0.. {
                        let key = format!("{round}/{writer}/{n}");
                        let bytes = pattern([500, MEDIUM][n % 2], round + n as u64);
                        let mut upload = store.begin(None);
                        upload.write(bytes.clone().into()).await.unwrap();
                        let (sealed, headers) = (upload.seal().await.unwrap(), ObjectHeaders::default());
                        store.publish(&bucket, &object_key(&key), sealed, headers, Condition::None, 1).await.unwrap();
                        if acknowledged.send((key, bytes)).await.is_err() {
                            break;
                        }
                    }
                })
            })
            .collect();
        for _ in 0..40 {
            expected.push(answers.recv().await.unwrap());
        }
        // In the midst of everything, without a close.
        writers.iter().for_each(tokio::task::JoinHandle::abort);
        drop(store);
        while let Ok(answer) = answers.try_recv() {
            expected.push(answer);
        }
    }
    let store = open_when_free(folder.path()).await;
    let page = store.list(&bucket, ListQuery { limit: 1000, ..ListQuery::default() }).await.unwrap();
    assert!(page.entries.len() >= expected.len());
}

#[tokio::test]
async fn missing_folders_are_made_and_a_file_in_their_place_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a/b/c"), settings()).await.unwrap();
    store.create_bucket(&bucket_name("bucket"), 1).await.unwrap();
    store.close().await;
    std::fs::write(folder.path().join("file"), b"").unwrap();
    assert!(matches!(Store::open(&folder.path().join("file"), settings()).await, Err(Error::Io(_))));
    assert!(matches!(Store::open(&folder.path().join("file/a"), settings()).await, Err(Error::Io(_))));
}

#[tokio::test]
async fn a_folder_in_use_is_refused_and_the_holder_named() {
    let fixture = Fixture::new().await;
    let refused = Store::open(fixture.folder.path(), settings()).await;
    let Err(Error::Folder(why)) = refused else { panic!("opened twice") };
    assert!(why.contains(&std::process::id().to_string()), "{why}");
    fixture.put("key", b"a").await.unwrap();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.read("key").await.unwrap(), b"a");
}

#[tokio::test]
async fn a_closed_store_answers_nothing() {
    let fixture = Fixture::new().await;
    fixture.put("key", b"a").await.unwrap();
    let mut upload = fixture.store.begin(None);
    fixture.store.close().await;
    fixture.store.close().await;
    assert!(matches!(fixture.read("key").await, Err(Error::Folder(_))));
    assert!(matches!(fixture.delete("key").await, Err(Error::Folder(_))));
    upload.write(Bytes::from_static(b"x")).await.unwrap();
    assert!(matches!(upload.seal().await, Err(Error::Folder(_))));
}

#[tokio::test]
async fn a_newer_format_is_refused_untouched() {
    let fixture = Fixture::new().await;
    fixture.store.close().await;
    let index = rusqlite::Connection::open(fixture.folder.path().join("index.db")).unwrap();
    index.pragma_update(None, "user_version", 1000).unwrap();
    drop(index);
    let stray = fixture.folder.path().join("files/ab/abcdefabcdefabcdefabcdefabcdefab");
    std::fs::write(&stray, b"of a newer release").unwrap();
    let refused = Store::open(fixture.folder.path(), settings()).await;
    assert!(matches!(refused, Err(Error::Folder(_))));
    assert!(stray.exists());
}

#[tokio::test]
async fn a_file_that_could_not_be_removed_is_removed_at_the_next_start() {
    let fixture = Fixture::new().await;
    fixture.put("key", &pattern(LARGE, 1)).await.unwrap();
    fixture.faults.fail_nth(0, 5);
    fixture.delete("key").await.unwrap();
    wait_until(|| fixture.faults.failed().is_some()).await;
    assert_eq!(fixture.files().len(), 1);
    let fixture = fixture.reopen().await;
    assert!(fixture.files().is_empty());
    let bodies = fixture
        .store
        .0
        .index
        .look_up(|index| Ok(index.query_row("select count(*) from bodies", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(bodies.await.unwrap(), 0);
}

#[tokio::test]
async fn nothing_of_removed_objects_stays_in_the_index() {
    let fixture = Fixture::new().await;
    for n in 0..20 {
        fixture.put(&format!("key{}", n % 3), &pattern([10, MEDIUM][n % 2], 1)).await.unwrap();
    }
    for key in ["key0", "key1", "key2"] {
        fixture.delete(key).await.unwrap();
    }
    fixture.wait_for_files(0).await;
    let fixture = fixture.reopen().await;
    let rows = fixture.store.0.index.look_up(|index| {
        let sum =
            "select (select count(*) from bodies) + (select count(*) from body_parts) + (select count(*) from objects)";
        Ok(index.query_row(sum, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(rows.await.unwrap(), 0);
}
