//! A failing disk: every call of every operation fails once, and the store shows the old object or the new one.

use super::*;
use crate::store::disk::Call;

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const ERRORS: [i32; 4] = [EIO, EMFILE, ENOSPC, EROFS];

/// What is under test, on a bucket where `key` is an old object.
#[derive(Debug, Clone, Copy)]
enum Operation {
    PutSmall,
    PutLarge,
    Delete,
    Copy,
    Multipart,
    Abort,
    DropBucket,
    Read,
}

const OLD: u64 = 11;
const NEW: u64 = 22;
const SOURCE: u64 = 33;

impl Operation {
    fn new_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::PutSmall => Some(pattern(1000, NEW)),
            Self::PutLarge => Some(pattern(LARGE, NEW)),
            Self::Delete => None,
            Self::Copy => Some(pattern(MEDIUM, SOURCE)),
            Self::Multipart => Some(pattern(MEDIUM, NEW)),
            Self::Abort | Self::DropBucket | Self::Read => Some(old_bytes()),
        }
    }

    async fn run(self, fixture: &Fixture) -> Result<()> {
        match self {
            Self::PutSmall | Self::PutLarge => {
                fixture.put("key", &self.new_bytes().unwrap_or_default()).await.map(|_| ())
            }
            Self::Delete => fixture.delete("key").await.map(|_| ()),
            Self::Copy => {
                fixture.put("source", &pattern(MEDIUM, SOURCE)).await?;
                let (from, to) = (object_key("source"), object_key("key"));
                let (from, to) = ((&fixture.bucket, &from), (&fixture.bucket, &to));
                fixture.store.copy(from, to, None, |_| true, Condition::None, 1).await.map(|_| ())
            }
            Self::Multipart => {
                let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
                let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await?;
                let unused = fixture.sealed(&pattern(MEDIUM, 99)).await?;
                store.publish_part(bucket, &key, &id, 2, unused, 1).await?;
                let sealed = fixture.sealed(&pattern(MEDIUM, NEW)).await?;
                let PartInfo { number, etag, .. } = store.publish_part(bucket, &key, &id, 1, sealed, 1).await?;
                let parts = vec![CompletedPart { number, etag, checksum: None }];
                store.complete_upload(bucket, &key, &id, parts, None, Condition::None, 1).await.map(|_| ())
            }
            Self::Abort => {
                let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
                let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await?;
                let part = fixture.sealed(&pattern(MEDIUM, NEW)).await?;
                store.publish_part(bucket, &key, &id, 1, part, 1).await?;
                store.abort_upload(bucket, &key, &id).await
            }
            Self::DropBucket => {
                let (store, bucket, key) = (&fixture.store, bucket_name("other"), object_key("key"));
                store.create_bucket(&bucket, 1).await?;
                let id = store.create_upload(&bucket, &key, NewUpload::default(), 1).await?;
                let part = fixture.sealed(&pattern(MEDIUM, NEW)).await?;
                store.publish_part(&bucket, &key, &id, 1, part, 1).await?;
                store.delete_bucket(&bucket).await
            }
            Self::Read => fixture.read("key").await.map(|read| assert!(read == old_bytes())),
        }
    }
}

fn old_bytes() -> Vec<u8> {
    pattern(LARGE, OLD)
}

async fn content(fixture: &Fixture) -> Option<Vec<u8>> {
    match fixture.read("key").await {
        Ok(bytes) => Some(bytes),
        Err(Error::NoSuchKey) => None,
        Err(error) => panic!("neither old nor new: {error}"),
    }
}

/// Fails the calls one after another until the operation makes no more; answers how many there were.
async fn fail_each_call(operation: Operation, error: i32) -> usize {
    for nth in 0.. {
        let fixture = Fixture::within(scratch()).await;
        fixture.put("key", &old_bytes()).await.unwrap();
        fixture.faults.fail_nth(nth, error);
        let result = operation.run(&fixture).await;
        let mut failed = fixture.faults.failed();
        fixture.faults.clear();
        if let Some(Call::Write { bytes, .. }) = &mut failed {
            bytes.clear();
        }
        let expected = match &result {
            Ok(()) => operation.new_bytes(),
            Err(_) => Some(old_bytes()),
        };
        let what = format!("{operation:?}, call {nth} {failed:?} gives {error}: {result:?}");
        let synced = matches!(failed, Some(Call::Sync(_) | Call::SyncFolder(_)));
        if synced && error != ENOSPC {
            assert!(result.is_err(), "{what}");
            assert!(fixture.put("other", b"x").await.is_err(), "a store goes on after a failed sync: {what}");
            fixture.store.failed().await;
        } else {
            if error == ENOSPC && result.is_err() {
                assert!(matches!(result, Err(Error::Full)), "{what}");
            }
            assert!(content(&fixture).await == expected, "{what}");
            fixture.put("other", b"x").await.unwrap();
        }
        let fixture = fixture.reopen().await;
        assert!(content(&fixture).await == expected, "after opening again: {what}");
        fixture.put("key", b"x").await.unwrap();
        fixture.delete("source").await.unwrap();
        match fixture.store.delete_bucket(&bucket_name("other")).await {
            Ok(()) | Err(Error::NoSuchBucket) => {}
            Err(error) => panic!("{what}: {error}"),
        }
        let uploads = fixture.store.list_uploads(&fixture.bucket, "", None, 10).await.unwrap().0;
        for OpenUploadInfo { key, id, .. } in uploads {
            fixture.store.abort_upload(&fixture.bucket, &key, &id).await.unwrap();
        }
        fixture.wait_for_files(0).await;
        if failed.is_none() {
            return nth;
        }
    }
    unreachable!("every operation ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failing_call_leaves_the_old_object_or_the_new_one() {
    for (operation, calls_min) in [
        (Operation::PutSmall, 1),
        (Operation::PutLarge, 8),
        (Operation::Delete, 0),
        (Operation::Copy, 8),
        (Operation::Multipart, 10),
        (Operation::Abort, 8),
        (Operation::DropBucket, 8),
        (Operation::Read, 4),
    ] {
        for error in ERRORS {
            let calls = fail_each_call(operation, error).await;
            assert!(calls >= calls_min, "{operation:?} made only {calls} calls");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failing_call_of_a_start_is_an_error_and_the_next_start_works() {
    let fixture = Fixture::new().await;
    fixture.put("key", &old_bytes()).await.unwrap();
    fixture.put("gone", &old_bytes()).await.unwrap();
    // A file that no row names, and one whose row lost its last reference.
    let unpublished = fixture.sealed(&pattern(MEDIUM, NEW)).await.unwrap();
    fixture.faults.fail_nth(0, EIO);
    fixture.delete("gone").await.unwrap();
    wait_until(|| fixture.faults.failed().is_some()).await;
    let image = recovery::crash_image(fixture.folder.path());
    let start = async |faults: &Arc<Faults>| {
        let folder = recovery::crash_image(image.path());
        let opened = Store::open_with(folder.path(), settings(), Some(faults.clone())).await;
        (opened, folder)
    };
    let faults = Arc::new(Faults::default());
    start(&faults).await.0.unwrap().close().await;
    let calls = faults.calls();
    assert_eq!(calls.iter().filter(|call| matches!(call, Call::Remove(_))).count(), 2, "{calls:?}");
    // Looking into one folder is like looking into the next.
    let is_list = |nth: &usize| matches!(calls[*nth], Call::List(_));
    let nths = (0..calls.len()).filter(|nth| !is_list(nth) || nth % 100 == 0);
    for (nth, error) in nths.flat_map(|nth| ERRORS.map(|error| (nth, error))) {
        let faults = Arc::new(Faults::default());
        faults.fail_nth(nth, error);
        let (opened, folder) = start(&faults).await;
        let what = format!("call {nth} {:?} gives {error}", faults.failed());
        assert!(opened.is_err() && faults.failed().is_some(), "{what}");
        let store = Store::open(folder.path(), settings()).await.unwrap();
        assert_eq!(files(folder.path()).len(), 1, "{what}");
        store.close().await;
        assert!(verify(folder.path()).unwrap().is_sound(), "{what}");
    }
    drop(unpublished);
}

#[tokio::test]
async fn a_large_body_is_synced_with_its_folder_before_it_is_published() {
    let fixture = Fixture::new().await;
    fixture.faults.clear();
    let sealed = fixture.sealed(&pattern(LARGE, 1)).await.unwrap();
    let changes = |call: &Call| !matches!(call, Call::Room | Call::OpenFolder(_));
    let calls: Vec<Call> = fixture.faults.calls().into_iter().filter(changes).collect();
    let [Call::Create(name), writes @ .., Call::Sync(synced), Call::SyncFolder(folder)] = &calls[..] else {
        panic!("{} calls", calls.len())
    };
    assert_eq!(synced, name);
    assert!(name.starts_with(&format!("{folder}/")));
    let mut written = Vec::new();
    for write in writes {
        let Call::Write { name: to, offset, bytes } = write else { panic!("{write:?}") };
        assert_eq!((to, *offset), (name, written.len() as u64));
        written.extend_from_slice(bytes);
    }
    assert!(written.starts_with(&pattern(LARGE, 1)));
    drop(sealed);
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn a_dropped_upload_leaves_no_file() {
    let fixture = Fixture::new().await;
    let mut upload = fixture.store.begin(None);
    upload.write(pattern(LARGE, 1).into()).await.unwrap();
    drop(upload);
    fixture.sealed(&pattern(LARGE, 1)).await.map(drop).unwrap();
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn below_the_reserve_writes_are_refused_and_the_rest_works() {
    let fixture = Fixture::new().await;
    let bytes = pattern(LARGE, 1);
    for key in ["large", "small"] {
        fixture.put(key, if key == "large" { &bytes } else { b"small" }).await.unwrap();
    }
    let Fixture { store, bucket, folder, faults } = fixture;
    store.close().await;
    let full = StoreSettings { reserve_bytes: u64::MAX / 2, ..settings() };
    let store = Store::open_with(folder.path(), full, None).await.unwrap();
    let fixture = Fixture { store, bucket, folder, faults };
    assert!(matches!(fixture.put("new", b"x").await, Err(Error::Full)));
    assert!(matches!(fixture.put("large", &bytes).await, Err(Error::Full)));
    let (large, copy) = (object_key("large"), object_key("copy"));
    let from = (&fixture.bucket, &large);
    let copied = fixture.store.copy(from, (&fixture.bucket, &copy), None, |_| true, Condition::None, 1).await;
    assert!(matches!(copied, Err(Error::Full)));
    let created = fixture.store.create_upload(&fixture.bucket, &large, NewUpload::default(), 1).await;
    assert!(matches!(created, Err(Error::Full)));
    assert!(fixture.read("large").await.unwrap() == bytes);
    assert_eq!(fixture.keys().await, ["large", "small"]);
    assert!(fixture.delete("large").await.unwrap());
    fixture.wait_for_files(0).await;
    let fixture = fixture.reopen().await;
    fixture.put("new", b"x").await.unwrap();
    assert_eq!(fixture.keys().await, ["new", "small"]);
}

#[tokio::test]
async fn an_index_without_space_refuses_writes_and_recovers_by_itself() {
    let fixture = Fixture::new().await;
    fixture.put("old", b"old").await.unwrap();
    let limit_pages = |pages: i64| {
        fixture.store.0.index.change(move |write| Ok(write.index.pragma_update(None, "max_page_count", pages)?))
    };
    limit_pages(1).await.unwrap();
    let bytes = pattern(60_000, 1);
    let mut refused = 0;
    for n in 0..4 {
        match fixture.put(&format!("new{n}"), &bytes).await {
            Ok(_) => {}
            Err(Error::Full) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0);
    assert!(matches!(fixture.put("old", &bytes).await, Err(Error::Full)));
    assert_eq!(fixture.read("old").await.unwrap(), b"old");
    assert!(fixture.delete("old").await.unwrap());
    limit_pages(1_000_000).await.unwrap();
    fixture.put("again", &bytes).await.unwrap();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.keys().await.len(), 4 - refused + 1);
    assert!(fixture.read("again").await.unwrap() == bytes);
}
