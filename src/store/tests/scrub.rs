//! The background check: what it lists, when it forgets, and that it goes on where it was.

use super::*;
use crate::store::index::audit;

impl Fixture {
    /// Key and what is wrong, in key order.
    async fn damages(&self) -> Vec<(String, String)> {
        let mut damages: Vec<_> =
            self.store.damages().await.unwrap().0.into_iter().map(|damage| (damage.key, damage.what)).collect();
        damages.sort();
        damages
    }

    fn flip(&self, file: &str, position: usize) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[position] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }

    /// The only file there is.
    fn file(&self) -> String {
        let files = self.files();
        assert_eq!(files.len(), 1);
        files[0].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_listed_until_it_is_mended_or_gone() {
    let fixture = Fixture::new().await;
    fixture.put("large", &pattern(LARGE, 1)).await.unwrap();
    fixture.put("sound", b"small").await.unwrap();
    let (copy, large) = (object_key("copy"), object_key("large"));
    let (from, to) = ((&fixture.bucket, &large), (&fixture.bucket, &copy));
    fixture.store.copy(from, to, None, |_| true, Condition::None, 1).await.unwrap();
    fixture.store.scrub_now().await.unwrap();
    assert_eq!(fixture.damages().await, []);

    let file = fixture.file();
    fixture.flip(&file, 600_000);
    fixture.store.scrub_now().await.unwrap();
    let what = "its bytes do not match their checksum behind byte 524288".to_owned();
    let both = [("copy".to_owned(), what.clone()), ("large".to_owned(), what)];
    assert_eq!(fixture.damages().await, both);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.damages().await, both, "the list outlives a restart");
    fixture.flip(&file, 600_000);
    fixture.store.scrub_now().await.unwrap();
    assert_eq!(fixture.damages().await, [], "what is right again leaves the list");

    let whole = std::fs::read(&file).unwrap();
    for (bytes, what) in [
        (&whole[..whole.len() - 1], "its file has not the size it should have"),
        (&[&whole[..], b"x"].concat(), "its file has not the size it should have"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        fixture.store.scrub_now().await.unwrap();
        assert_eq!(fixture.damages().await[0].1, what);
    }
    std::fs::remove_file(&file).unwrap();
    fixture.store.scrub_now().await.unwrap();
    assert_eq!(fixture.damages().await[0].1, "its file is missing");

    for key in ["large", "copy"] {
        fixture.delete(key).await.unwrap();
    }
    let fixture = fixture.reopen().await;
    // Its id may be given again.
    fixture.put("next", &pattern(LARGE, 2)).await.unwrap();
    assert_eq!(fixture.store.damages().await.unwrap(), (Vec::new(), 0), "what is gone leaves the list");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reader_stumbles_over_is_looked_at_next() {
    let fixture = Fixture::new().await;
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await.unwrap();
    let sealed = fixture.sealed(&pattern(LARGE, 1)).await.unwrap();
    let PartInfo { number, etag, .. } = store.publish_part(bucket, &key, &id, 1, sealed, 1).await.unwrap();
    let parts = vec![CompletedPart { number, etag, checksum: None }];
    store.complete_upload(bucket, &key, &id, parts, None, Condition::None, 1).await.unwrap();
    fixture.flip(&fixture.file(), 10);
    assert!(matches!(fixture.read("key").await, Err(Error::Damaged(_))));
    assert_eq!(fixture.damages().await, []);
    store.scrub_suspects().await.unwrap();
    assert_eq!(fixture.damages().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_no_object_yet_is_listed_with_its_upload() {
    let fixture = Fixture::new().await;
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await.unwrap();
    let sealed = fixture.sealed(&pattern(LARGE, 1)).await.unwrap();
    store.publish_part(bucket, &key, &id, 7, sealed, 1).await.unwrap();
    fixture.flip(&fixture.file(), 10);
    store.scrub_now().await.unwrap();
    let (damages, bodies) = store.damages().await.unwrap();
    assert_eq!((damages[0].upload.clone(), damages.len(), bodies), (Some((id, 7)), 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_goes_on_where_a_restart_cut_it_off_and_the_next_waits_a_week() {
    let fixture = Fixture::new().await;
    for n in 0..4 {
        fixture.put(&format!("key{n}"), &pattern(MEDIUM, n)).await.unwrap();
    }
    let started_ms = 1_700_000_000_000;
    let half_way = Pass { at: 2, bodies: 2, bytes: 7, started_ms, finished_ms: None };
    fixture.store.0.index.change(move |write| audit::save_pass(write, &half_way)).await.unwrap();
    let fixture = fixture.reopen().await;
    let store = fixture.store.clone();
    let scrub = tokio::spawn(async move { store.scrub(1 << 40, || 1_700_000_000_001).await });
    let pass = loop {
        let pass = fixture.store.0.index.look_up(audit::load_pass).await.unwrap();
        if pass.finished_ms.is_some() {
            break pass;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((pass.started_ms, pass.bodies, pass.bytes), (started_ms, 4, 7 + 2 * MEDIUM as u64));
    // Nothing is due now but what readers find.
    let file = fixture.files()[0].clone();
    fixture.flip(&file, 0);
    for n in 0..4 {
        fixture.read(&format!("key{n}")).await.ok();
    }
    while fixture.damages().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.store.0.index.look_up(audit::load_pass).await.unwrap(), pass);
    fixture.store.close().await;
    scrub.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_while_it_is_looked_at_is_no_damage() {
    let fixture = Fixture::new().await;
    let bytes = pattern(LARGE, 1);
    let store = fixture.store.clone();
    let checking = tokio::spawn(async move {
        for _ in 0..20 {
            store.scrub_now().await.unwrap();
        }
    });
    let folder = fixture.folder.path().to_owned();
    let beside = tokio::task::spawn_blocking(move || {
        for _ in 0..20 {
            let found = verify(&folder).unwrap();
            assert!(found.is_sound(), "{found:?}");
        }
    });
    while !checking.is_finished() || !beside.is_finished() {
        fixture.put("key", &bytes).await.unwrap();
        fixture.put("other", &bytes).await.unwrap();
        fixture.delete("other").await.unwrap();
    }
    checking.await.unwrap();
    beside.await.unwrap();
    assert_eq!(fixture.store.damages().await.unwrap(), (Vec::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_from_outside_counts_and_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.put("small", b"small").await.unwrap();
    fixture.put("large", &pattern(LARGE, 1)).await.unwrap();
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("upload"));
    let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await.unwrap();
    store.publish_part(bucket, &key, &id, 1, fixture.sealed(b"part").await.unwrap(), 1).await.unwrap();
    let unpublished = fixture.sealed(&pattern(LARGE, 2)).await.unwrap();

    let found = stats(fixture.folder.path()).unwrap();
    assert_eq!((found.buckets, found.objects, found.object_bytes), (1, 2, 5 + LARGE as u64));
    assert_eq!((found.small, found.small_bytes, found.files, found.file_bytes), (2, 9, 1, LARGE as u64));
    assert_eq!((found.uploads, found.parts, found.part_bytes, found.damaged), (1, 1, 4, 0));
    assert!(found.index_bytes > 0 && found.free_bytes > 0);
    let verified = verify(fixture.folder.path()).unwrap();
    assert!(verified.is_sound());
    assert_eq!((verified.bodies, verified.bytes, verified.unnamed_files), (3, 9 + LARGE as u64, 1));

    // The folder as a crash leaves it: its log is not folded in by who only looks.
    let image = recovery::crash_image(fixture.folder.path());
    let log = image.path().join("index.db-wal");
    let before = std::fs::read(&log).unwrap();
    assert!(verify(image.path()).unwrap().is_sound());
    assert!(!before.is_empty() && std::fs::read(&log).unwrap() == before);
    drop(unpublished);

    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(verify(empty.path()), Err(Error::Folder(_))));
    assert!(std::fs::read_dir(empty.path()).unwrap().next().is_none());
    fixture.store.close().await;
    let index = rusqlite::Connection::open(fixture.folder.path().join("index.db")).unwrap();
    index.pragma_update(None, "user_version", 1).unwrap();
    assert!(matches!(stats(fixture.folder.path()), Err(Error::Folder(_))));
}
