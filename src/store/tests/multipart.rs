//! Multipart uploads: order, sizes, checksums, conditions, and what is left when they end.

use super::*;
use crate::store::checksum::{of_body, of_parts};

/// The smallest part that may be followed by another.
const PART: usize = 5 << 20;

/// An upload of key `key`, with the parts that were sent.
struct Sending<'a> {
    fixture: &'a Fixture,
    id: String,
    sent: Vec<CompletedPart>,
}

impl Sending<'_> {
    async fn start(fixture: &Fixture, checksum: Option<(ChecksumAlgorithm, ChecksumType)>) -> Sending<'_> {
        let headers = ObjectHeaders { content_type: Some("x/y".to_owned()), ..ObjectHeaders::default() };
        let checksum = checksum.map(|(algorithm, kind)| UploadChecksum { algorithm, kind, asked: true });
        let new = NewUpload { headers, checksum };
        let id = fixture.store.create_upload(&fixture.bucket, &object_key("key"), new, 1).await.unwrap();
        Sending { fixture, id, sent: Vec::new() }
    }

    async fn send(&mut self, number: u32, bytes: &[u8]) -> PartInfo {
        let (store, bucket, key) = (&self.fixture.store, &self.fixture.bucket, object_key("key"));
        let algorithm = store.upload_checksum(bucket, &key, &self.id).await.unwrap().map(|upload| upload.algorithm);
        let mut upload = store.begin(algorithm);
        upload.write(Bytes::copy_from_slice(bytes)).await.unwrap();
        let sealed = upload.seal().await.unwrap();
        let part = store.publish_part(bucket, &key, &self.id, number, sealed, 2).await.unwrap();
        self.sent.push(CompletedPart { number, etag: part.etag.clone(), checksum: part.checksum.clone() });
        part
    }

    async fn complete(&self, parts: Vec<CompletedPart>) -> Result<ObjectInfo> {
        self.complete_if(parts, None, Condition::None).await
    }

    async fn complete_if(
        &self,
        parts: Vec<CompletedPart>,
        checksum: Option<Checksum>,
        condition: Condition,
    ) -> Result<ObjectInfo> {
        let (store, key) = (&self.fixture.store, object_key("key"));
        store.complete_upload(&self.fixture.bucket, &key, &self.id, parts, checksum, condition, 3).await
    }
}

#[tokio::test]
async fn parts_become_one_object_whatever_their_numbers() {
    let fixture = Fixture::new().await;
    let bytes = pattern(2 * PART + 10, 1);
    let mut sending = Sending::start(&fixture, None).await;
    // Sent out of order, one of them twice, one never used.
    sending.send(7, &bytes[2 * PART..]).await;
    sending.send(3, b"replaced").await;
    sending.send(3, &bytes[PART..2 * PART]).await;
    sending.send(9, &pattern(LARGE, 2)).await;
    sending.send(1, &bytes[..PART]).await;
    let part = |number| sending.sent.iter().rfind(|part| part.number == number).cloned().unwrap();
    let info = sending.complete(vec![part(1), part(3), part(7)]).await.unwrap();
    assert_eq!((info.size, info.parts), (bytes.len() as u64, Some(3)));
    assert!(info.etag.ends_with("-3"), "{}", info.etag);
    assert_eq!(info.headers.content_type.as_deref(), Some("x/y"));
    fixture.wait_for_files(2).await;
    let fixture = fixture.reopen().await;
    assert!(fixture.read("key").await.unwrap() == bytes);
    let borders = [0..1, PART - 1..PART + 1, PART..PART + 1, 2 * PART - 70_000..2 * PART + 3, 2 * PART..2 * PART + 10];
    for range in borders {
        let read = fixture.read_range("key", range.start as u64..range.end as u64).await.unwrap();
        assert!(read == bytes[range.clone()], "{range:?}");
    }
    fixture.delete("key").await.unwrap();
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn wrong_lists_are_refused_and_the_upload_stays() {
    let fixture = Fixture::new().await;
    let mut sending = Sending::start(&fixture, None).await;
    sending.send(1, &pattern(PART - 1, 1)).await;
    sending.send(2, b"end").await;
    let [first, second] = [sending.sent[0].clone(), sending.sent[1].clone()];
    let unsent = CompletedPart { number: 3, ..second.clone() };
    let other_etag = CompletedPart { etag: first.etag.clone(), ..second.clone() };
    let given = Some(of_body(ChecksumAlgorithm::Crc32, &[1, 2, 3, 4]));
    let other_checksum = CompletedPart { checksum: given.clone(), ..second.clone() };
    let reversed = sending.complete(vec![second.clone(), first.clone()]).await;
    assert!(matches!(reversed, Err(Error::InvalidPartOrder)));
    assert!(matches!(sending.complete(vec![first.clone(); 2]).await, Err(Error::InvalidPartOrder)));
    assert!(matches!(sending.complete(vec![first.clone(), unsent]).await, Err(Error::InvalidPart)));
    assert!(matches!(sending.complete(vec![first.clone(), other_etag]).await, Err(Error::InvalidPart)));
    assert!(matches!(sending.complete(vec![other_checksum]).await, Err(Error::InvalidPart)));
    assert!(matches!(sending.complete(vec![]).await, Err(Error::InvalidPart)));
    assert!(matches!(sending.complete(vec![first, second.clone()]).await, Err(Error::EntityTooSmall)));
    let expecting = sending.complete_if(vec![second.clone()], given, Condition::None).await;
    assert!(matches!(expecting, Err(Error::BadDigest)));
    let etag = Condition::Etag("x".to_owned());
    assert!(matches!(sending.complete_if(vec![second.clone()], None, etag).await, Err(Error::NoSuchKey)));
    assert!(fixture.keys().await.is_empty());
    // One short part alone is an object.
    sending.complete(vec![second.clone()]).await.unwrap();
    assert_eq!(fixture.read("key").await.unwrap(), b"end");
    assert!(matches!(sending.complete(vec![second]).await, Err(Error::NoSuchUpload)));
    fixture.wait_for_files(0).await;
}

#[tokio::test]
async fn checksums_of_the_whole_follow_the_type_chosen() {
    use ChecksumAlgorithm::{Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
    use ChecksumType::{Composite, FullObject};
    let fixture = Fixture::new().await;
    let bytes = pattern(PART + (1 << 20), 3);
    let choices = [(Sha256, Composite), (Sha1, Composite), (Crc32, Composite), (Crc32, FullObject)];
    for (algorithm, kind) in choices.into_iter().chain([(Crc32c, FullObject), (Crc64Nvme, FullObject)]) {
        let mut sending = Sending::start(&fixture, Some((algorithm, kind))).await;
        let parts = [sending.send(1, &bytes[..PART]).await, sending.send(2, &bytes[PART..]).await];
        let expected = match kind {
            FullObject => of_whole(algorithm, &bytes),
            Composite => {
                of_parts(algorithm, kind, parts.iter().map(|part| (part.checksum.as_ref(), part.size))).unwrap()
            }
        };
        assert_eq!(expected.value.ends_with("-2"), kind == Composite);
        let wrong = Checksum { value: of_whole(algorithm, b"other").value, ..expected.clone() };
        let refused = sending.complete_if(sending.sent.clone(), Some(wrong), Condition::None).await;
        assert!(matches!(refused, Err(Error::BadDigest)), "{algorithm:?} {kind:?}");
        let given = Some(expected.clone());
        let info = sending.complete_if(sending.sent.clone(), given, Condition::None).await.unwrap();
        assert_eq!(info.checksum, Some(expected.clone()));
        let (bucket, key, copy) = (&fixture.bucket, object_key("key"), object_key("copy"));
        fixture.store.copy((bucket, &key), (bucket, &copy), None, |_| true, Condition::None, 4).await.unwrap();
        assert_eq!(fixture.store.head(bucket, &copy).await.unwrap().checksum, Some(expected));
    }
    assert!(fixture.read("copy").await.unwrap() == bytes);
}

#[tokio::test]
async fn a_part_without_the_uploads_algorithm_is_refused() {
    let fixture = Fixture::new().await;
    let chosen = Some((ChecksumAlgorithm::Sha256, ChecksumType::Composite));
    let sending = Sending::start(&fixture, chosen).await;
    let sealed = fixture.sealed(b"part").await.unwrap();
    let (store, key) = (&fixture.store, object_key("key"));
    let sent = store.publish_part(&fixture.bucket, &key, &sending.id, 1, sealed, 2).await;
    assert!(matches!(sent, Err(Error::BadDigest)));
}

#[tokio::test]
async fn an_upload_says_later_what_its_checksum_is_and_whether_it_was_asked_for() {
    let fixture = Fixture::new().await;
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    for asked in [true, false] {
        let (algorithm, kind) = (ChecksumAlgorithm::Xxh128, ChecksumType::Composite);
        let checksum = Some(UploadChecksum { algorithm, kind, asked });
        let new = NewUpload { checksum, ..NewUpload::default() };
        let id = store.create_upload(bucket, &key, new, 7).await.unwrap();
        assert_eq!(store.upload_checksum(bucket, &key, &id).await.unwrap(), checksum);
        let (uploads, _) = store.list_uploads(bucket, "", None, 10).await.unwrap();
        assert_eq!((uploads[0].checksum, uploads[0].started_ms), (checksum, 7));
        assert_eq!(store.upload_key(bucket, &id).await.unwrap(), Some(key.clone()));
        assert_eq!(store.upload_started_ms(bucket, &key, &id).await.unwrap(), 7);
        store.abort_upload(bucket, &key, &id).await.unwrap();
        assert_eq!(store.upload_key(bucket, &id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_object_says_where_its_parts_begin() {
    let fixture = Fixture::new().await;
    let mut sending = Sending::start(&fixture, None).await;
    for (number, size) in [(2, PART), (4, PART + 1), (9, 3)] {
        sending.send(number, &pattern(size, 1)).await;
    }
    sending.complete(sending.sent.clone()).await.unwrap();
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let places =
        |parts: &[ObjectPart]| parts.iter().map(|part| (part.number, part.start, part.size)).collect::<Vec<_>>();
    let (whole, half) = (PART as u64, PART as u64 * 2 + 1);
    let (_, first, more) = store.object_parts(bucket, &key, 0, 2).await.unwrap();
    assert_eq!((places(&first), more), (vec![(2, 0, whole), (4, whole, whole + 1)], true));
    let (_, rest, more) = store.object_parts(bucket, &key, 4, 2).await.unwrap();
    assert_eq!((places(&rest), more), (vec![(9, half, 3)], false));
    let second = store.object_part(bucket, &key, 2).await.unwrap().1;
    assert_eq!(places(&second.into_iter().collect::<Vec<_>>()), [(4, whole, whole + 1)]);
    assert!(store.object_part(bucket, &key, 4).await.unwrap().1.is_none());
    fixture.put("plain", b"x").await.unwrap();
    assert!(store.object_parts(bucket, &object_key("plain"), 0, 10).await.unwrap().1.is_empty());
}

#[tokio::test]
async fn an_upload_belongs_to_its_key_and_ends_with_an_abort() {
    let fixture = Fixture::new().await;
    let mut sending = Sending::start(&fixture, None).await;
    sending.send(1, &pattern(LARGE, 1)).await;
    sending.send(2, b"small").await;
    let (store, bucket, key, other) = (&fixture.store, &fixture.bucket, object_key("key"), object_key("other"));
    assert!(matches!(store.abort_upload(bucket, &other, &sending.id).await, Err(Error::NoSuchUpload)));
    assert!(matches!(store.list_parts(bucket, &other, &sending.id, 0, 10).await, Err(Error::NoSuchUpload)));
    assert!(matches!(store.delete_bucket(&bucket_name("none")).await, Err(Error::NoSuchBucket)));
    store.abort_upload(bucket, &key, &sending.id).await.unwrap();
    fixture.wait_for_files(0).await;
    assert!(matches!(store.upload_checksum(bucket, &key, &sending.id).await, Err(Error::NoSuchUpload)));
    assert!(matches!(sending.complete(sending.sent.clone()).await, Err(Error::NoSuchUpload)));
}

#[tokio::test]
async fn parts_and_uploads_are_listed_in_pages() {
    let fixture = Fixture::new().await;
    let mut sending = Sending::start(&fixture, None).await;
    for number in [2, 5, 1] {
        sending.send(number, &[number as u8; 3]).await;
    }
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let (parts, more) = store.list_parts(bucket, &key, &sending.id, 0, 2).await.unwrap();
    assert_eq!((parts.iter().map(|part| part.number).collect::<Vec<_>>(), more), (vec![1, 2], true));
    let (parts, more) = store.list_parts(bucket, &key, &sending.id, 2, 2).await.unwrap();
    assert_eq!((parts.iter().map(|part| (part.number, part.size)).collect::<Vec<_>>(), more), (vec![(5, 3)], false));

    let mut ids = vec![sending.id.clone()];
    for key in ["key", "a", "key2"] {
        ids.push(store.create_upload(bucket, &object_key(key), NewUpload::default(), 9).await.unwrap());
    }
    let names = |uploads: &[OpenUploadInfo]| {
        uploads.iter().map(|upload| (upload.key.as_str().to_owned(), upload.id.clone())).collect::<Vec<_>>()
    };
    let (first, more) = store.list_uploads(bucket, "k", None, 2).await.unwrap();
    assert_eq!(names(&first), [("key".to_owned(), ids[0].clone()), ("key".to_owned(), ids[1].clone())]);
    assert!(more);
    let (rest, more) = store.list_uploads(bucket, "k", names(&first).pop(), 2).await.unwrap();
    assert_eq!((names(&rest), more), (vec![("key2".to_owned(), ids[3].clone())], false));
    // Open uploads do not keep a bucket.
    sending.send(6, &pattern(LARGE, 1)).await;
    store.delete_bucket(bucket).await.unwrap();
    fixture.wait_for_files(0).await;
    store.create_bucket(bucket, 1).await.unwrap();
    assert!(store.list_uploads(bucket, "", None, 10).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_reader_of_many_parts_is_not_disturbed_by_a_delete() {
    let fixture = Fixture::new().await;
    let bytes = pattern(3 * PART, 5);
    let mut sending = Sending::start(&fixture, None).await;
    for (number, part) in (1..).zip(bytes.chunks(PART)) {
        sending.send(number, part).await;
    }
    sending.complete(sending.sent.clone()).await.unwrap();
    let reading = fixture.store.read(&fixture.bucket, &object_key("key"), |info| Some(0..info.size)).await.unwrap();
    fixture.delete("key").await.unwrap();
    // The reaper has met the deleted object once it has met one deleted later.
    fixture.put("later", &pattern(LARGE, 6)).await.unwrap();
    fixture.delete("later").await.unwrap();
    fixture.wait_for_files(3).await;
    assert!(collect(reading).await.unwrap() == bytes);
    fixture.wait_for_files(0).await;
}

fn of_whole(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
    let mut digests = checksum::Digests::new(Some(algorithm));
    digests.update(bytes);
    of_body(algorithm, &digests.finish().1.unwrap().1)
}
