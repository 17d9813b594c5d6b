//! Conditional writes whose answer was lost: asked again, they are answered, not refused.

use super::*;
use crate::store::index::retries::{KEPT_MAX, KEPT_MS};

const NOW_MS: i64 = 1_700_000_000_000;

fn terms(condition: Condition, caller: &str, id: &str) -> Terms {
    Terms::new(condition, Some(Attempt { caller: caller.to_owned(), id: id.to_owned() }))
}

fn first() -> Terms {
    terms(Condition::Absent, "ann", "call")
}

impl Fixture {
    async fn put_on(&self, key: &str, bytes: &[u8], terms: Terms, now_ms: i64) -> Result<ObjectInfo> {
        let sealed = self.sealed(bytes).await?;
        self.store.publish(&self.bucket, &object_key(key), sealed, ObjectHeaders::default(), terms, now_ms).await
    }

    async fn copy_on(&self, from: &str, to: &str, terms: Terms) -> Result<ObjectInfo> {
        let (from, to) = (object_key(from), object_key(to));
        let (from, to) = ((&self.bucket, &from), (&self.bucket, &to));
        self.store.copy(from, to, None, |_| true, terms, NOW_MS).await
    }

    async fn answers(&self) -> i64 {
        let count = "select count(*) from answers";
        let count = self.store.0.index.look_up(move |index| Ok(index.query_row(count, [], |row| row.get(0))?));
        count.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_sent_again_gets_the_first_answer_after_a_restart_too() {
    for bytes in [pattern(1000, 1), pattern(LARGE, 1)] {
        let fixture = Fixture::new().await;
        let old = fixture.put("changed", b"old").await.unwrap();
        let change = terms(Condition::Etag(old.etag), "ann", "change");
        let made = fixture.put_on("made", &bytes, first(), NOW_MS).await.unwrap();
        let changed = fixture.put_on("changed", &bytes, change.clone(), NOW_MS).await.unwrap();
        let mut fixture = fixture;
        for _ in 0..2 {
            let again = fixture.put_on("made", &bytes, first(), NOW_MS + 1000).await.unwrap();
            assert_eq!((&again.etag, again.last_modified_ms), (&made.etag, NOW_MS));
            let again = fixture.put_on("changed", &bytes, change.clone(), NOW_MS + 1000).await.unwrap();
            assert_eq!((&again.etag, again.last_modified_ms), (&changed.etag, NOW_MS));
            fixture.wait_for_files(if bytes.len() == LARGE { 2 } else { 0 }).await;
            fixture = fixture.reopen().await;
        }
        assert!(fixture.read("made").await.unwrap() == bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_call_is_refused() {
    let fixture = Fixture::new().await;
    fixture.put_on("key", b"bytes", first(), NOW_MS).await.unwrap();
    fixture.put("other", b"bytes").await.unwrap();
    for (key, bytes, terms) in [
        ("key", "other", first()),
        ("other", "bytes", first()),
        ("key", "bytes", terms(Condition::Absent, "ann", "other call")),
        ("key", "bytes", terms(Condition::Absent, "bob", "call")),
        // Names that would run together to the same text.
        ("key", "bytes", terms(Condition::Absent, "annc", "all")),
        ("key", "bytes", Condition::Absent.into()),
    ] {
        let refused = fixture.put_on(key, bytes.as_bytes(), terms.clone(), NOW_MS).await;
        assert!(matches!(refused, Err(Error::PreconditionFailed)), "{key} {bytes} {terms:?}: {refused:?}");
    }
    assert_eq!(fixture.read("key").await.unwrap(), b"bytes");
}

#[tokio::test]
async fn what_somebody_else_wrote_since_is_not_the_answer() {
    let fixture = Fixture::new().await;
    let old = fixture.put("key", b"old").await.unwrap();
    let change = terms(Condition::Etag(old.etag), "ann", "call");
    fixture.put_on("key", b"mine", change.clone(), NOW_MS).await.unwrap();
    for theirs in ["theirs", "mine"] {
        fixture.put_on("key", theirs.as_bytes(), Condition::None.into(), NOW_MS + 1).await.unwrap();
        let refused = fixture.put_on("key", b"mine", change.clone(), NOW_MS + 2).await;
        assert!(matches!(refused, Err(Error::PreconditionFailed)), "{theirs}: {refused:?}");
    }
    fixture.delete("key").await.unwrap();
    assert!(matches!(fixture.put_on("key", b"mine", change, NOW_MS + 3).await, Err(Error::NoSuchKey)));
    // Nothing is there: the condition holds, so it is written, and known from then on.
    fixture.put_on("key", b"mine", first(), NOW_MS + 4).await.unwrap();
    assert_eq!(fixture.put_on("key", b"mine", first(), NOW_MS + 5).await.unwrap().last_modified_ms, NOW_MS + 4);
}

#[tokio::test]
async fn copies_are_known_again_too() {
    let fixture = Fixture::new().await;
    fixture.put("from", b"bytes").await.unwrap();
    let made = fixture.copy_on("from", "to", first()).await.unwrap();
    assert_eq!(fixture.copy_on("from", "to", first()).await.unwrap().etag, made.etag);
    let other = terms(Condition::Absent, "ann", "other");
    assert!(matches!(fixture.copy_on("from", "to", other).await, Err(Error::PreconditionFailed)));
    fixture.put("from", b"others").await.unwrap();
    assert!(matches!(fixture.copy_on("from", "to", first()).await, Err(Error::PreconditionFailed)));
}

#[tokio::test]
async fn a_refused_write_is_not_remembered() {
    let fixture = Fixture::new().await;
    fixture.put("key", b"bytes").await.unwrap();
    for _ in 0..2 {
        let refused = fixture.put_on("key", b"bytes", first(), NOW_MS).await;
        assert!(matches!(refused, Err(Error::PreconditionFailed)));
    }
    fixture.put_on("key", b"bytes", Terms::new(Condition::None, first().attempt().cloned()), NOW_MS).await.unwrap();
    assert_eq!(fixture.answers().await, 0);
}

#[tokio::test]
async fn answers_are_kept_for_a_while_and_up_to_a_number() {
    let fixture = Fixture::new().await;
    fixture.put_on("key", b"bytes", first(), NOW_MS).await.unwrap();
    let (last, late) = (NOW_MS + KEPT_MS - 1, NOW_MS + KEPT_MS);
    assert!(fixture.put_on("key", b"bytes", first(), last).await.is_ok());
    assert!(matches!(fixture.put_on("key", b"bytes", first(), late).await, Err(Error::PreconditionFailed)));
    fixture.put_on("late", b"bytes", first(), late).await.unwrap();
    assert_eq!(fixture.answers().await, 1, "what is too old is dropped");
    let many = "with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1)
                insert into answers (attempt, etag, modified_ms) select randomblob(32), 'e', ?2 from n";
    let insert = move |write: &mut index::Write<'_>| Ok(write.index.execute(many, (KEPT_MAX + 10, late))?);
    fixture.store.0.index.change(insert).await.unwrap();
    for n in 0..5 {
        fixture.put_on(&format!("new{n}"), b"bytes", first(), late).await.unwrap();
    }
    assert_eq!(fixture.answers().await, KEPT_MAX, "what is too much is dropped");
    assert!(fixture.put_on("new0", b"bytes", first(), late).await.is_ok());
}
