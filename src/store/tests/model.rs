//! Random operations against a map in memory. Set `SEED` to replay a run.

use super::*;
use std::collections::BTreeMap;

const STEPS: usize = 600;

#[tokio::test(flavor = "multi_thread")]
async fn the_store_behaves_like_a_map() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(fresh_seed);
    println!("SEED={seed}");
    let mut random = Random(seed);
    let mut fixture = Fixture::new().await;
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for step in 0..STEPS {
        let key = ["a", "a/b", "a/b/c", "b", "é", "/x", "c/"][random.below(7)].to_owned();
        let operation = random.below(100);
        match operation {
            0..35 => put(&fixture, &mut model, &mut random, &key).await,
            35..50 => {
                let existed = fixture.delete(&key).await.unwrap();
                assert_eq!(existed, model.remove(&key).is_some(), "step {step}: delete {key}");
            }
            50..60 => copy(&fixture, &mut model, &mut random, &key).await,
            60..70 => multipart(&fixture, &mut model, &mut random, &key).await,
            70..98 => read(&fixture, &model, &mut random, &key).await,
            _ => fixture = fixture.reopen().await,
        }
        let keys: Vec<_> = model.keys().cloned().collect();
        assert_eq!(fixture.keys().await, keys, "step {step}, operation {operation}");
    }
    for (key, bytes) in &model {
        assert!(fixture.read(key).await.unwrap() == *bytes, "{key}");
    }
    for key in model.keys() {
        fixture.delete(key).await.unwrap();
    }
    fixture.wait_for_files(0).await;
}

fn fresh_seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let size = [0, 1, 5000, 64 << 10, MEDIUM, 200_000, LARGE][random.below(7)];
    pattern(size, random.next())
}

async fn put(fixture: &Fixture, model: &mut BTreeMap<String, Vec<u8>>, random: &mut Random, key: &str) {
    let bytes = bytes(random);
    let current = fixture.store.head(&fixture.bucket, &object_key(key)).await.ok().map(|info| info.etag);
    let (condition, holds) = match random.below(4) {
        0 => (Condition::Absent, current.is_none()),
        1 => (Condition::Etag(current.clone().unwrap_or_default()), current.is_some()),
        2 => (Condition::Etag("other".to_owned()), false),
        _ => (Condition::None, true),
    };
    match fixture.put_if(key, &bytes, condition).await {
        Ok(_) => assert!(holds),
        Err(Error::PreconditionFailed | Error::NoSuchKey) => return assert!(!holds),
        Err(error) => panic!("{error}"),
    }
    model.insert(key.to_owned(), bytes);
}

async fn copy(fixture: &Fixture, model: &mut BTreeMap<String, Vec<u8>>, random: &mut Random, key: &str) {
    let to = ["a", "b", "copy"][random.below(3)];
    let (from, target) = (object_key(key), object_key(to));
    let (from, target) = ((&fixture.bucket, &from), (&fixture.bucket, &target));
    let copied = fixture.store.copy(from, target, None, |_| true, Condition::None, 1).await;
    assert_eq!(copied.is_ok(), model.contains_key(key));
    if let Some(bytes) = model.get(key).cloned() {
        model.insert(to.to_owned(), bytes);
    }
}

async fn multipart(fixture: &Fixture, model: &mut BTreeMap<String, Vec<u8>>, random: &mut Random, key: &str) {
    let (store, bucket, object) = (&fixture.store, &fixture.bucket, object_key(key));
    let id = store.create_upload(bucket, &object, NewUpload::default(), 1).await.unwrap();
    let (mut parts, mut whole) = (Vec::new(), Vec::new());
    for number in 1..=1 + random.below(4) as u32 {
        let bytes = bytes(random);
        let sealed = fixture.sealed(&bytes).await.unwrap();
        let part = store.publish_part(bucket, &object, &id, number, sealed, 1).await.unwrap();
        // Some parts are sent and not used.
        if number == 1 || random.below(4) > 0 {
            parts.push(CompletedPart { number, etag: part.etag, checksum: None });
            whole.extend(bytes);
        }
    }
    if random.below(4) == 0 {
        return store.abort_upload(bucket, &object, &id).await.unwrap();
    }
    let completion = Completion { parts, checksum: None, condition: Condition::None, part_bytes_min: 0, now_ms: 1 };
    store.complete(upload_address(bucket, &object, &id), completion).await.unwrap();
    model.insert(key.to_owned(), whole);
}

async fn read(fixture: &Fixture, model: &BTreeMap<String, Vec<u8>>, random: &mut Random, key: &str) {
    let Some(bytes) = model.get(key) else {
        return assert!(matches!(fixture.read(key).await, Err(Error::NoSuchKey)));
    };
    let start = random.below(bytes.len() + 1);
    let end = start + random.below(bytes.len() - start + 1);
    let read = fixture.read_range(key, start as u64..end as u64).await.unwrap();
    assert!(read == bytes[start..end], "{key} {start}..{end}");
}
