//! Single objects: what is put is what is read, conditions, copies, damage.

use super::*;

const SIZES: [usize; 8] = [0, 1, 4096, 64 << 10, MEDIUM, 512 << 10, (512 << 10) + 1, LARGE];

#[tokio::test(flavor = "multi_thread")]
async fn every_size_comes_back_whole_and_in_ranges() {
    let fixture = Fixture::new().await;
    for size in SIZES {
        let bytes = pattern(size, 3);
        let info = fixture.put("key", &bytes).await.unwrap();
        assert_eq!(info.size, size as u64);
        assert_eq!(info.etag, hex::encode(md5_of(&bytes)), "{size}");
        assert!(fixture.read("key").await.unwrap() == bytes, "{size}");
        for range in [0..1, 65_535..65_537, 65_536..70_000, 1..size, size / 2..size, size.saturating_sub(1)..size] {
            let expected = bytes.get(range.start.min(size)..range.end.min(size)).unwrap_or_default();
            let read = fixture.read_range("key", range.start as u64..range.end as u64).await.unwrap();
            assert!(read == expected, "{size} {range:?}");
        }
    }
    let fixture = fixture.reopen().await;
    assert!(fixture.read("key").await.unwrap() == pattern(LARGE, 3));
}

#[tokio::test]
async fn bytes_written_in_any_pieces_are_one_body() {
    let fixture = Fixture::new().await;
    let bytes = Bytes::from(pattern(3 * LARGE, 5));
    for step in [1 << 14, 100_003, 512 << 10, 600_000, 2 << 20, 3 * LARGE] {
        let mut upload = fixture.store.begin(Some(ChecksumAlgorithm::Crc64Nvme));
        for start in (0..bytes.len()).step_by(step) {
            upload.write(bytes.slice(start..(start + step).min(bytes.len()))).await.unwrap();
        }
        let sealed = upload.seal().await.unwrap();
        assert_eq!(sealed.md5, md5_of(&bytes));
        let crc = crc_fast::crc64_nvme(&bytes).to_be_bytes().to_vec();
        assert_eq!(sealed.checksum, Some((ChecksumAlgorithm::Crc64Nvme, crc)));
        let (bucket, key) = (&fixture.bucket, object_key("key"));
        fixture.store.publish(bucket, &key, sealed, ObjectHeaders::default(), Condition::None, 1).await.unwrap();
        assert!(fixture.read("key").await.unwrap() == bytes, "{step}");
    }
}

#[tokio::test]
async fn headers_checksum_and_time_come_back() {
    let fixture = Fixture::new().await;
    let headers = ObjectHeaders {
        content_type: Some("text/plain".to_owned()),
        expires: Some("never".to_owned()),
        user_metadata: vec![("b".to_owned(), "é".to_owned()), ("a".to_owned(), String::new())],
        ..ObjectHeaders::default()
    };
    let mut upload = fixture.store.begin(Some(ChecksumAlgorithm::Sha256));
    upload.write(Bytes::from_static(b"abc")).await.unwrap();
    let (sealed, key) = (upload.seal().await.unwrap(), object_key("key"));
    let put =
        fixture.store.publish(&fixture.bucket, &key, sealed, headers.clone(), Condition::None, 1234).await.unwrap();
    let head = fixture.store.head(&fixture.bucket, &key).await.unwrap();
    for info in [put, head] {
        assert_eq!(info.headers, headers);
        assert_eq!(info.last_modified_ms, 1234);
        let value = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=".to_owned();
        let (algorithm, kind) = (ChecksumAlgorithm::Sha256, ChecksumType::FullObject);
        assert_eq!(info.checksum, Some(Checksum { algorithm, kind, value }));
    }
}

#[tokio::test]
async fn missing_things_are_told_apart() {
    let fixture = Fixture::new().await;
    let (store, elsewhere, key) = (&fixture.store, bucket_name("elsewhere"), object_key("key"));
    assert!(matches!(fixture.read("key").await, Err(Error::NoSuchKey)));
    assert!(matches!(store.head(&fixture.bucket, &key).await, Err(Error::NoSuchKey)));
    assert!(matches!(store.head(&elsewhere, &key).await, Err(Error::NoSuchBucket)));
    assert!(matches!(store.read(&elsewhere, &key, |_| None).await, Err(Error::NoSuchBucket)));
    let nowhere = store.delete_version(&elsewhere, &key, Deletion::default()).await;
    assert!(matches!(nowhere, Err(Error::NoSuchBucket)));
    assert!(matches!(store.list(&elsewhere, ListQuery::default()).await, Err(Error::NoSuchBucket)));
    let sealed = fixture.sealed(&pattern(MEDIUM, 1)).await.unwrap();
    let put = store.publish(&elsewhere, &key, sealed, ObjectHeaders::default(), Condition::None, 1).await;
    assert!(matches!(put, Err(Error::NoSuchBucket)));
    assert!(!fixture.delete("key").await.unwrap());
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn conditions_hold_or_nothing_changes() {
    let fixture = Fixture::new().await;
    let if_etag = |etag: &str| Condition::Etag(etag.to_owned());
    assert!(matches!(fixture.put_if("key", b"a", if_etag("x")).await, Err(Error::NoSuchKey)));
    let first = fixture.put_if("key", b"a", Condition::Absent).await.unwrap();
    assert!(matches!(fixture.put_if("key", b"b", Condition::Absent).await, Err(Error::PreconditionFailed)));
    assert!(matches!(fixture.put_if("key", b"b", if_etag("x")).await, Err(Error::PreconditionFailed)));
    assert_eq!(fixture.read("key").await.unwrap(), b"a");
    let second = fixture.put_if("key", &pattern(LARGE, 1), if_etag(&first.etag)).await.unwrap();
    assert!(matches!(fixture.delete_if("key", if_etag(&first.etag)).await, Err(Error::PreconditionFailed)));
    assert!(fixture.delete_if("key", if_etag(&second.etag)).await.unwrap());
    assert!(fixture.keys().await.is_empty());
    fixture.wait_for_files(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_creates_have_one_winner_and_its_bytes() {
    for size in [1000, MEDIUM] {
        let fixture = Arc::new(Fixture::new().await);
        let start = Arc::new(tokio::sync::Barrier::new(32));
        let race = |condition: Condition, base: u64| {
            let racers: Vec<_> = (0..32)
                .map(|racer| {
                    let (fixture, start, condition) = (fixture.clone(), start.clone(), condition.clone());
                    tokio::spawn(async move {
                        let bytes = pattern(size, base + racer);
                        start.wait().await;
                        match fixture.put_if("key", &bytes, condition).await {
                            Ok(info) => Some((info.etag, bytes)),
                            Err(Error::PreconditionFailed) => None,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            async move {
                let mut winners = Vec::new();
                for racer in racers {
                    winners.extend(racer.await.unwrap());
                }
                winners
            }
        };
        let winners = race(Condition::Absent, 100).await;
        let [(etag, bytes)] = &winners[..] else { panic!("{} winners", winners.len()) };
        assert!(&fixture.read("key").await.unwrap() == bytes);
        let winners = race(Condition::Etag(etag.clone()), 200).await;
        let [(_, bytes)] = &winners[..] else { panic!("{} winners", winners.len()) };
        assert!(&fixture.read("key").await.unwrap() == bytes);
        fixture.wait_for_files(usize::from(size == MEDIUM)).await;
    }
}

#[tokio::test]
async fn overwriting_and_deleting_do_not_disturb_a_reader() {
    let fixture = Fixture::new().await;
    let bytes = pattern(3 * LARGE, 9);
    fixture.put("key", &bytes).await.unwrap();
    let reading = fixture.store.read(&fixture.bucket, &object_key("key"), |info| Some(0..info.size)).await.unwrap();
    fixture.put("key", b"new").await.unwrap();
    fixture.delete("key").await.unwrap();
    assert!(collect(reading).await.unwrap() == bytes);
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn pick_decides_on_the_version_that_is_read() {
    let fixture = Fixture::new().await;
    fixture.put("key", b"0123456789").await.unwrap();
    let key = object_key("key");
    let tail = fixture.store.read(&fixture.bucket, &key, |info| Some(info.size - 3..info.size)).await.unwrap();
    assert_eq!(tail.range, 7..10);
    assert_eq!(collect(tail).await.unwrap(), b"789");
    let nothing = fixture.store.read(&fixture.bucket, &key, |_| None).await.unwrap();
    assert_eq!((nothing.range.clone(), nothing.info.size), (0..0, 10));
    assert!(collect(nothing).await.unwrap().is_empty());
    #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake")]
    let reversed = fixture.store.read(&fixture.bucket, &key, |_| Some(8..2)).await.unwrap();
    assert_eq!(reversed.range, 0..0);
}

#[tokio::test]
async fn copies_share_bytes_and_outlive_their_source() {
    let fixture = Fixture::new().await;
    let (store, bucket) = (&fixture.store, &fixture.bucket);
    let (large, small, to) = (object_key("large"), object_key("small"), object_key("to"));
    let bytes = pattern(LARGE, 2);
    fixture.put("large", &bytes).await.unwrap();
    fixture.put("small", b"small").await.unwrap();
    for from in [&small, &large] {
        let source = store.head(bucket, from).await.unwrap();
        let copy = store.copy((bucket, from), (bucket, &to), None, |_| true, Condition::None, 99).await.unwrap();
        assert_eq!((&copy.etag, copy.size, copy.last_modified_ms), (&source.etag, source.size, 99));
    }
    assert_eq!(fixture.files().len(), 1);
    let headers = ObjectHeaders { content_type: Some("new".to_owned()), ..ObjectHeaders::default() };
    let onto_itself =
        store.copy((bucket, &to), (bucket, &to), Some(headers.clone()), |_| true, Condition::None, 100).await;
    assert_eq!(onto_itself.unwrap().headers, headers);
    fixture.delete("large").await.unwrap();
    assert!(fixture.read("to").await.unwrap() == bytes);
    let refused = store.copy((bucket, &to), (bucket, &small), None, |_| false, Condition::None, 1).await;
    assert!(matches!(refused, Err(Error::PreconditionFailed)));
    let exists = store.copy((bucket, &to), (bucket, &small), None, |_| true, Condition::Absent, 1).await;
    assert!(matches!(exists, Err(Error::PreconditionFailed)));
    let missing = store.copy((bucket, &large), (bucket, &to), None, |_| true, Condition::None, 1).await;
    assert!(matches!(missing, Err(Error::NoSuchKey)));
    assert_eq!(fixture.read("small").await.unwrap(), b"small");
    fixture.delete("to").await.unwrap();
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn a_panicking_check_fails_its_own_copy_only() {
    let fixture = Fixture::new().await;
    fixture.put("key", b"a").await.unwrap();
    let (bucket, key) = (&fixture.bucket, object_key("key"));
    let check = |_: &ObjectInfo| -> bool { panic!("on purpose") };
    let copied = fixture.store.copy((bucket, &key), (bucket, &object_key("to")), None, check, Condition::None, 1).await;
    assert!(matches!(copied, Err(Error::Index(_))));
    fixture.put("other", b"b").await.unwrap();
    assert_eq!(fixture.keys().await, ["key", "other"]);
}

#[tokio::test]
async fn many_deletes_are_answered_in_order() {
    let fixture = Fixture::new().await;
    fixture.put("a", b"1").await.unwrap();
    fixture.put("b", &pattern(MEDIUM, 1)).await.unwrap();
    fixture.put("a/b", b"1").await.unwrap();
    let deletions = ["b", "missing", "a", "a"].map(|key| (object_key(key), Deletion::default())).to_vec();
    let deleted = fixture.store.delete_versions(&fixture.bucket, deletions).await.unwrap();
    let existed: Vec<bool> = deleted.into_iter().map(|deleted| deleted.unwrap().existed).collect();
    assert_eq!(existed, [true, false, true, false]);
    assert_eq!(fixture.keys().await, ["a/b"]);
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn a_changed_byte_is_found_and_not_served() {
    let fixture = Fixture::new().await;
    let bytes = pattern(3 * LARGE, 4);
    fixture.put("key", &bytes).await.unwrap();
    let file = fixture.files().pop().unwrap();
    // The last byte of the file belongs to the sum of the last block.
    let length = std::fs::metadata(&file).unwrap().len() as usize;
    for position in [0, 65_536, 600_000, bytes.len() - 1, length - 1] {
        let whole = std::fs::read(&file).unwrap();
        let mut damaged = whole.clone();
        damaged[position] ^= 0x40;
        std::fs::write(&file, &damaged).unwrap();
        let block = (position.min(bytes.len() - 1) / 65_536) as u64 * 65_536;
        let inside = fixture.read_range("key", block..block + 1).await;
        assert!(matches!(inside, Err(Error::Damaged(_))), "{position}");
        assert!(matches!(fixture.read("key").await, Err(Error::Damaged(_))), "{position}");
        // Another chunk of the same object is still good.
        let far = if block > 1 << 20 { 0 } else { 2 << 20 };
        assert!(fixture.read_range("key", far..far + 10).await.unwrap() == bytes[far as usize..far as usize + 10]);
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(fixture.read("key").await.unwrap() == bytes);
    std::fs::write(&file, &bytes[..1000]).unwrap();
    assert!(matches!(fixture.read("key").await, Err(Error::Damaged(_))));
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(fixture.read("key").await, Err(Error::Damaged(_))));
}

#[tokio::test]
async fn a_changed_byte_in_the_index_is_found() {
    let fixture = Fixture::new().await;
    fixture.put("key", &pattern(5000, 4)).await.unwrap();
    fixture.store.close().await;
    let index = rusqlite::Connection::open(fixture.folder.path().join("index.db")).unwrap();
    index.execute("update bodies set bytes = cast(x'00' || substr(bytes, 2) as blob)", []).unwrap();
    drop(index);
    let fixture = fixture.reopen().await;
    assert!(matches!(fixture.read("key").await, Err(Error::Damaged(_))));
    assert_eq!(fixture.keys().await, ["key"]);
}

#[tokio::test]
async fn buckets_are_made_listed_and_dropped_when_empty() {
    let fixture = Fixture::new().await;
    let (store, bucket) = (&fixture.store, &fixture.bucket);
    let other = bucket_name("another");
    assert!(matches!(store.create_bucket(bucket, 2).await, Err(Error::BucketExists)));
    store.create_bucket(&other, 5).await.unwrap();
    assert_eq!(store.list_buckets().await.unwrap(), [(other.clone(), 5), (bucket.clone(), 1)]);
    fixture.put("key", b"a").await.unwrap();
    assert!(matches!(store.delete_bucket(bucket).await, Err(Error::BucketNotEmpty)));
    fixture.delete("key").await.unwrap();
    store.delete_bucket(bucket).await.unwrap();
    assert!(matches!(store.delete_bucket(bucket).await, Err(Error::NoSuchBucket)));
    assert!(!store.bucket_exists(bucket).await.unwrap());
    assert!(store.bucket_exists(&other).await.unwrap());
}

fn md5_of(bytes: &[u8]) -> [u8; 16] {
    use md5::Digest;
    md5::Md5::digest(bytes).into()
}
