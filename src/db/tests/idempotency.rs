use super::{fresh_file, ident, load, make_table, namespace, new_table, warehouse_with_namespace};
use crate::db::{
    Db,
    idempotency::{self, Kept, Key, Record, is_answered},
    namespaces as ns,
    tables::{self, Kind, Rename, Step, Swap, Swapped, Transacted},
    testing::on_both,
};
use uuid::Uuid;

const NOW_MS: i64 = super::NOW_MS;
const LIFETIME_MS: i64 = 1_000;

on_both!(
    a_record_is_there_exactly_when_its_change_is,
    a_second_change_under_the_key_is_undone,
    what_did_nothing_leaves_no_record,
    keys_belong_to_a_principal_and_end,
);

fn record(id: Uuid, location: Option<&str>) -> Record {
    let key = Key {
        principal: "ada".into(),
        id,
        request_sha256: [7; 32],
        now_ms: NOW_MS,
        expires_at_ms: NOW_MS + LIFETIME_MS,
    };
    Record { key, status: 200, location: location.map(str::to_owned), detail: None }
}

async fn find(db: &Db, id: Uuid) -> Option<Kept> {
    idempotency::find(db, "ada", id, NOW_MS).await.expect("finds")
}

async fn a_record_is_there_exactly_when_its_change_is(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let ids: Vec<Uuid> = (0..7).map(|_| Uuid::now_v7()).collect();
    let base = make_table(&db, warehouse, "n.t").await;
    let file = fresh_file(&base.location);
    let swap =
        Swap { base: &base, metadata_location: &file, location: &base.location, format_version: 2, now_ms: NOW_MS };
    let swapped = record(ids[0], Some(&file));
    assert_eq!(tables::swap(db.recording(Some(&swapped)), &swap).await.expect("swaps"), Swapped::Done(2));
    let kept = find(&db, ids[0]).await.expect("kept");
    assert_eq!((kept.status, kept.location, kept.request_sha256), (200, Some(file), vec![7; 32]));

    let made = record(ids[1], None);
    let new = new_table(Kind::Table);
    tables::create(db.recording(Some(&made)), warehouse, &ident("n.u"), &new, NOW_MS).await.expect("creates");
    let renamed = record(ids[2], None);
    let to = db.recording(Some(&renamed));
    let rename = tables::rename(to, warehouse, &ident("n.u"), &ident("n.w"), Kind::Table).await;
    assert_eq!(rename.expect("renames"), Rename::Done);
    let dropped = record(ids[3], None);
    tables::drop(db.recording(Some(&dropped)), warehouse, &ident("n.w"), Kind::Table, None).await.expect("drops");
    let properties = ns::Properties::from([("a".to_owned(), "b".to_owned())]);
    let child = record(ids[4], None);
    ns::create(db.recording(Some(&child)), warehouse, &namespace("n.m"), &properties).await.expect("creates");
    let changed = record(ids[5], None);
    let removals = ["a".to_owned(), "missing".to_owned()];
    let to = db.recording(Some(&changed));
    ns::update_properties(to, warehouse, &namespace("n.m"), &removals, &properties).await.expect("updates");
    let gone = record(ids[6], None);
    ns::drop(db.recording(Some(&gone)), warehouse, &namespace("n.m")).await.expect("drops");
    for id in &ids {
        assert!(find(&db, *id).await.is_some(), "{id}");
    }
    let detail = find(&db, ids[5]).await.and_then(|kept| kept.detail);
    assert_eq!(detail.as_deref(), Some(r#"{"updated":["a"],"removed":["a"],"missing":["missing"]}"#));
}

async fn a_second_change_under_the_key_is_undone(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let record = record(Uuid::now_v7(), None);
    let to = db.recording(Some(&record));
    tables::create(to, warehouse, &ident("n.a"), &new_table(Kind::Table), NOW_MS).await.expect("creates");
    let base = make_table(&db, warehouse, "n.t").await;
    let file = fresh_file(&base.location);
    let swap =
        Swap { base: &base, metadata_location: &file, location: &base.location, format_version: 2, now_ms: NOW_MS };
    let second = tables::create(to, warehouse, &ident("n.b"), &new_table(Kind::Table), NOW_MS).await;
    assert!(second.is_err_and(|error| is_answered(&error)));
    assert!(tables::swap(to, &swap).await.is_err_and(|error| is_answered(&error)));
    let transacted = tables::transact(to, warehouse, &[Step::Swap(swap)], NOW_MS).await;
    assert!(transacted.is_err_and(|error| is_answered(&error)));
    assert_eq!(load(&db, warehouse, "n.b").await, None);
    assert_eq!(load(&db, warehouse, "n.t").await, Some(base.clone()));
    assert!(!tables::is_recorded(&db, &file).await.expect("asks"));
}

async fn what_did_nothing_leaves_no_record(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let record = record(Uuid::now_v7(), None);
    let to = db.recording(Some(&record));
    let base = make_table(&db, warehouse, "n.t").await;
    let taken = tables::create(to, warehouse, &ident("n.t"), &new_table(Kind::Table), NOW_MS).await;
    assert_eq!(taken.expect("answers"), tables::Create::Exists(Kind::Table));
    assert_eq!(tables::drop(to, warehouse, &ident("n.x"), Kind::Table, None).await.expect("answers"), None);
    assert_eq!(ns::drop(to, warehouse, &namespace("x")).await.expect("answers"), ns::Drop::Missing);
    let stale = tables::TableRow { revision: 9, ..base };
    let steps = [Step::Hold(&stale)];
    let lost = tables::transact(to, warehouse, &steps, NOW_MS).await.expect("answers");
    assert!(matches!(lost, Transacted::Refused(0, _)));
    assert_eq!(find(&db, record.key.id).await, None);
    assert!(idempotency::keep(&db, &record).await.expect("keeps"));
    assert!(!idempotency::keep(&db, &record).await.expect("keeps"));
}

async fn keys_belong_to_a_principal_and_end(db: Db) {
    let record = record(Uuid::now_v7(), None);
    assert!(idempotency::keep(&db, &record).await.expect("keeps"));
    let id = record.key.id;
    assert_eq!(idempotency::find(&db, "bob", id, NOW_MS).await.expect("finds"), None);
    assert!(idempotency::find(&db, "ada", id, NOW_MS + LIFETIME_MS - 1).await.expect("finds").is_some());
    assert_eq!(idempotency::find(&db, "ada", id, NOW_MS + LIFETIME_MS).await.expect("finds"), None);
    // Once its time has passed the key is anyone's again, whether or not it was forgotten.
    let mut later = record.clone();
    later.key.now_ms = NOW_MS + LIFETIME_MS;
    later.key.expires_at_ms = NOW_MS + 2 * LIFETIME_MS;
    later.status = 409;
    assert!(idempotency::keep(&db, &later).await.expect("keeps"));
    assert_eq!(find(&db, id).await.map(|kept| kept.status), Some(409));
    assert_eq!(idempotency::forget_expired(&db, NOW_MS + LIFETIME_MS, 10).await.expect("forgets"), 0);
    assert_eq!(idempotency::forget_expired(&db, NOW_MS + 2 * LIFETIME_MS, 10).await.expect("forgets"), 1);
    assert_eq!(find(&db, id).await, None);
}
