//! One byte of what is stored changes, wherever it is: no reader is given a wrong byte, the checks name exactly the
//! objects concerned, and all others are served.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// An object's bytes kept in the index are looked for in pieces of this size: pages cut them up. Bytes.
const NEEDLE_BYTES: usize = 512;

/// A stored byte to change, and which objects it is part of.
struct Flip {
    file: String,
    position: usize,
    keys: BTreeSet<&'static str>,
}

/// A closed store of all kinds of objects, and what they hold.
struct World {
    fixture: Fixture,
    contents: BTreeMap<&'static str, Vec<u8>>,
    /// The objects each file is part of.
    files: BTreeMap<String, BTreeSet<&'static str>>,
    /// Bytes beside the index, and the objects they are part of.
    beside: Vec<(Vec<u8>, BTreeSet<&'static str>)>,
}

impl World {
    async fn new() -> World {
        let fixture = Fixture::new().await;
        let (contents, files, beside) = Default::default();
        let mut world = World { fixture, contents, files, beside };
        for (key, copy, size) in
            [("small", "small copy", 3000), ("most", "most copy", 64 << 10), ("large", "large copy", LARGE)]
        {
            let bytes = pattern(size, 1 + size as u64);
            world.fixture.put(key, &bytes).await.unwrap();
            world.copy(key, copy).await;
            world.note(&[bytes], &[key, copy]);
        }
        let parts = [pattern(MEDIUM, 5), pattern(2000, 6), pattern(LARGE, 7)];
        world.multipart("parts", &parts).await;
        world.copy("parts", "parts copy").await;
        world.note(&parts, &["parts", "parts copy"]);
        world.fixture.put("other large", &pattern(MEDIUM, 8)).await.unwrap();
        world.note(&[pattern(MEDIUM, 8)], &["other large"]);
        world.fixture.put("other small", &pattern(1000, 9)).await.unwrap();
        world.note(&[pattern(1000, 9)], &["other small"]);
        world.fixture.store.close().await;
        // Rows that moved within the index left copies behind, which nobody reads: without them each byte counts.
        let index = rusqlite::Connection::open(world.fixture.folder.path().join("index.db")).unwrap();
        index.execute_batch("vacuum").unwrap();
        world
    }

    async fn copy(&self, from: &str, to: &str) {
        let (from, to) = (object_key(from), object_key(to));
        let (from, to) = ((&self.fixture.bucket, &from), (&self.fixture.bucket, &to));
        self.fixture.store.copy(from, to, None, |_| true, Condition::None, 1).await.unwrap();
    }

    async fn multipart(&self, key: &str, bytes: &[Vec<u8>]) {
        let (store, bucket, key) = (&self.fixture.store, &self.fixture.bucket, object_key(key));
        let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await.unwrap();
        let mut parts = Vec::new();
        for (number, bytes) in (1..).zip(bytes) {
            let sealed = self.fixture.sealed(bytes).await.unwrap();
            let part = store.publish_part(bucket, &key, &id, number, sealed, 1).await.unwrap();
            parts.push(CompletedPart { number, etag: part.etag, checksum: None });
        }
        let completion = Completion { parts, checksum: None, condition: Condition::None, part_bytes_min: 0, now_ms: 1 };
        store.complete(upload_address(bucket, &key, &id), completion).await.unwrap();
    }

    /// Objects made of these bodies were stored just now.
    fn note(&mut self, bodies: &[Vec<u8>], keys: &[&'static str]) {
        let keys: BTreeSet<_> = keys.iter().copied().collect();
        for file in self.fixture.files() {
            self.files.entry(file).or_insert_with(|| keys.clone());
        }
        for body in bodies.iter().filter(|body| body.len() <= 64 << 10) {
            self.beside.push((body.clone(), keys.clone()));
        }
        self.contents.extend(keys.into_iter().map(|key| (key, bodies.concat())));
    }

    /// First, middle and last byte of each file's body and of the sums behind it; a byte in each page of small bodies.
    fn flips(&self) -> Vec<Flip> {
        let mut flips = Vec::new();
        for (file, keys) in &self.files {
            let length = std::fs::metadata(file).unwrap().len() as usize;
            for position in [0, length / 2, length - 5, length - 1] {
                flips.push(Flip { file: file.clone(), position, keys: keys.clone() });
            }
        }
        let index = self.fixture.folder.path().join("index.db");
        let stored = std::fs::read(&index).unwrap();
        for (body, keys) in &self.beside {
            let mut pages = BTreeSet::new();
            for needle in body.chunks_exact(NEEDLE_BYTES) {
                let Some(at) = stored.windows(NEEDLE_BYTES).position(|window| window == needle) else { continue };
                if pages.insert(at / 8192) {
                    let file = index.to_str().unwrap().to_owned();
                    flips.push(Flip { file, position: at + 7, keys: keys.clone() });
                }
            }
            assert!(pages.len() * 8192 >= body.len() / 2, "{} of {} bytes found", pages.len() * 8192, body.len());
        }
        flips
    }
}

/// Every byte given out is right; answers whether all were.
async fn read_is_right(fixture: &Fixture, key: &str, right: &[u8], range: Range<u64>) -> bool {
    let wanted = range.clone();
    let mut reading = match fixture.store.read(&fixture.bucket, &object_key(key), move |_| Some(wanted)).await {
        Ok(reading) => reading,
        Err(Error::Damaged(_)) => return false,
        Err(error) => panic!("{key}: {error}"),
    };
    let mut at = range.start as usize;
    loop {
        match reading.stream.try_next().await {
            Ok(Some(chunk)) => {
                assert!(right[at..].starts_with(&chunk), "{key}: wrong bytes behind {at}");
                at += chunk.len();
            }
            Ok(None) => break,
            Err(Error::Damaged(_)) => return false,
            Err(error) => panic!("{key}: {error}"),
        }
    }
    assert_eq!(at as u64, range.end, "{key} ends early");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_is_never_served_and_always_named() {
    let World { mut fixture, contents, files, beside } = World::new().await;
    let world = World { fixture, contents, files, beside };
    let flips = world.flips();
    assert!(flips.len() > 25, "{}", flips.len());
    let World { fixture: closed, contents, .. } = world;
    fixture = closed;
    for Flip { file, position, keys } in flips {
        let what = format!("byte {position} of {file}");
        let original = std::fs::read(&file).unwrap();
        let mut changed = original.clone();
        changed[position] ^= 0x10;
        std::fs::write(&file, &changed).unwrap();

        let found = verify(fixture.folder.path()).unwrap();
        let named: BTreeSet<&str> = found.damages.iter().map(|damage| damage.key.as_str()).collect();
        assert_eq!((named, found.damaged), (keys.clone(), 1), "{what}");
        assert!(found.index.is_empty(), "{what}: {:?}", found.index);

        fixture = fixture.reopen().await;
        for (key, right) in &contents {
            let size = right.len() as u64;
            let whole = read_is_right(&fixture, key, right, 0..size).await;
            assert_eq!(whole, !keys.contains(key), "{what}: {key}");
            for range in [0..1, size / 3..size / 2, size - 1..size] {
                read_is_right(&fixture, key, right, range).await;
            }
        }
        fixture.store.scrub_now().await.unwrap();
        let (damages, bodies) = fixture.store.damages().await.unwrap();
        let listed: BTreeSet<&str> = damages.iter().map(|damage| damage.key.as_str()).collect();
        assert_eq!((listed, bodies), (keys, 1), "{what}");
        fixture.store.close().await;
        if file.ends_with("index.db") {
            // Its pages are written by the run itself: what was changed is changed back where it was.
            let mut stored = std::fs::read(&file).unwrap();
            stored[position] = original[position];
            std::fs::write(&file, &stored).unwrap();
        } else {
            std::fs::write(&file, &original).unwrap();
        }
    }
    assert!(verify(fixture.folder.path()).unwrap().is_sound());
}
