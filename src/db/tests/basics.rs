use super::{NOW_MS, make_namespace, namespace, ns, warehouse, warehouse_with_namespace};
use crate::db::{
    Db,
    jobs::{self, NewJob},
    keys::{self, AccessKeyRow},
    namespaces::{self, Properties},
    testing::on_both,
    warehouses::{self, Create, Delete, WarehouseRow},
};
use uuid::Uuid;

on_both!(
    warehouses_are_found_by_name,
    warehouses_share_no_place,
    warehouses_change_their_storage_and_go_when_empty,
    keys_are_unique_and_replaced_only_by_put,
    nul_is_refused_before_sql,
    a_job_goes_to_one_holder_until_its_lease_ends,
    only_the_newest_holder_finishes_a_job,
    a_failed_job_is_due_again_at_its_time,
    a_parked_job_is_leased_to_nobody_until_it_is_retried,
    a_released_job_is_due_at_once_and_its_attempt_does_not_count,
    the_longest_due_job_comes_first,
    every_job_is_leased_once_among_many_takers,
    ping_touches_the_database,
);

async fn warehouses_are_found_by_name(db: Db) {
    let (upper, lower) = (warehouse_row("Lake", "s3://lake/A"), warehouse_row("lake", "s3://lake/a"));
    assert_eq!(warehouses::create(&db, &lower).await.unwrap(), Create::Done);
    assert_eq!(warehouses::create(&db, &upper).await.unwrap(), Create::Done, "names differ by case");
    assert_eq!(warehouses::create(&db, &lower).await.unwrap(), Create::Exists);
    assert_eq!(warehouses::load(&db, "lake").await.unwrap(), Some(lower.clone()));
    assert_eq!(warehouses::load(&db, "lak").await.unwrap(), None);
    assert_eq!(warehouses::list(&db).await.unwrap(), [upper, lower]);
}

fn warehouse_row(name: &str, location: &str) -> WarehouseRow {
    let (name, location) = (name.to_owned(), location.to_owned());
    WarehouseRow { id: Uuid::now_v7(), name, location, storage: None, sealed_secret: None }
}

async fn warehouses_share_no_place(db: Db) {
    assert_eq!(warehouses::create(&db, &warehouse_row("w", "s3://lake/a/b")).await.unwrap(), Create::Done);
    for (location, outcome) in [
        ("s3://lake", Create::Overlaps),
        ("s3://lake/a", Create::Overlaps),
        ("s3://lake/a/b", Create::Overlaps),
        ("s3://lake/a/b/c", Create::Overlaps),
        ("s3://lake/a/bc", Create::Done),
        ("s3://lake/a/B", Create::Done),
        ("s3://lak", Create::Done),
        ("s3://lake/a/_", Create::Done),
        ("s3://lake/a/%", Create::Done),
    ] {
        assert_eq!(warehouses::create(&db, &warehouse_row(location, location)).await.unwrap(), outcome, "{location}");
    }
}

async fn warehouses_change_their_storage_and_go_when_empty(db: Db) {
    let row = warehouse_row("w", "s3://lake/a");
    assert_eq!(warehouses::create(&db, &row).await.unwrap(), Create::Done);
    assert!(!warehouses::set_storage(&db, "x", None, None).await.unwrap());
    assert!(warehouses::set_storage(&db, "w", Some("{}"), Some(&[0, 255])).await.unwrap());
    let changed = WarehouseRow { storage: Some("{}".into()), sealed_secret: Some(vec![0, 255]), ..row.clone() };
    assert_eq!(warehouses::load(&db, "w").await.unwrap(), Some(changed));
    make_namespace(&db, row.id, "n").await;
    assert_eq!(warehouses::delete(&db, "w").await.unwrap(), Delete::NotEmpty);
    assert_eq!(ns::drop(&db, row.id, &namespace("n")).await.unwrap(), ns::Drop::Done);
    assert_eq!(warehouses::delete(&db, "w").await.unwrap(), Delete::Done);
    assert_eq!(warehouses::delete(&db, "w").await.unwrap(), Delete::Missing);
}

async fn keys_are_unique_and_replaced_only_by_put(db: Db) {
    let key = |id: &str, principal: &str| AccessKeyRow {
        id: id.into(),
        principal: principal.into(),
        sealed_secret: vec![0, 1, 255],
        created_at_ms: NOW_MS,
        expires_at_ms: None,
    };
    let (first, mut second) = (key("A", "ann"), key("A", "bob"));
    second.sealed_secret = vec![];
    second.expires_at_ms = Some(NOW_MS + 1);
    assert!(keys::create(&db, &first).await.unwrap());
    assert!(!keys::create(&db, &second).await.unwrap());
    assert_eq!(keys::load(&db, "A").await.unwrap().as_ref(), Some(&first));
    keys::put(&db, &second).await.unwrap();
    keys::put(&db, &key("B", "bea")).await.unwrap();
    assert_eq!(keys::list(&db).await.unwrap(), [second, key("B", "bea")]);
    assert!(keys::delete(&db, "A").await.unwrap());
    assert!(!keys::delete(&db, "A").await.unwrap());
    assert_eq!(keys::load(&db, "A").await.unwrap(), None);
}

async fn nul_is_refused_before_sql(db: Db) {
    let warehouse = warehouse(&db).await;
    let refused = |outcome: Result<(), sqlx::Error>| matches!(outcome, Err(sqlx::Error::InvalidArgument(_)));
    assert!(refused(warehouses::load(&db, "a\0b").await.map(drop)));
    let namespace = super::namespace("n");
    for (key, value) in [("k\0", "v"), ("k", "v\0")] {
        let properties = Properties::from([(key.to_owned(), value.to_owned())]);
        assert!(refused(namespaces::create(&db, warehouse, &namespace, &properties).await.map(drop)), "{key} {value}");
    }
    assert_eq!(namespaces::load(&db, warehouse, &namespace).await.unwrap(), None);
}

async fn ping_touches_the_database(db: Db) {
    db.ping().await.unwrap();
    assert!(db.pool_state().connections >= 1);
    db.close().await;
    assert!(db.ping().await.is_err());
}

fn job(kind: &str, not_before_ms: i64) -> NewJob {
    NewJob { kind: kind.into(), payload: r#"{"a":"ü"}"#.into(), not_before_ms }
}

async fn a_job_goes_to_one_holder_until_its_lease_ends(db: Db) {
    let id = jobs::enqueue(&db, &job("purge", 100)).await.unwrap();
    let (ann, bob) = (Uuid::now_v7(), Uuid::now_v7());
    assert!(jobs::lease(&db, ann, 99, 10).await.unwrap().is_none(), "not due");
    let leased = jobs::lease(&db, ann, 100, 10).await.unwrap().expect("due");
    assert_eq!((leased.id, leased.kind.as_str(), leased.attempts, leased.fence), (id, "purge", 1, 1));
    assert_eq!(leased.payload, r#"{"a":"ü"}"#);
    assert!(jobs::lease(&db, bob, 109, 10).await.unwrap().is_none(), "held");
    assert!(jobs::renew(&db, &leased, 120).await.unwrap());
    assert!(jobs::lease(&db, bob, 119, 10).await.unwrap().is_none(), "renewed");
    assert_eq!(jobs::lease(&db, bob, 120, 10).await.unwrap().map(|job| job.fence), Some(2));
}

async fn only_the_newest_holder_finishes_a_job(db: Db) {
    jobs::enqueue(&db, &job("purge", 0)).await.unwrap();
    let late = jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap().expect("due");
    let newest = jobs::lease(&db, Uuid::now_v7(), 10, 10).await.unwrap().expect("lease ended");
    assert!(!jobs::renew(&db, &late, 100).await.unwrap());
    assert!(!jobs::fail(&db, &late, "no", 100).await.unwrap());
    assert!(!jobs::complete(&db, &late).await.unwrap());
    assert!(jobs::complete(&db, &newest).await.unwrap());
    assert!(!jobs::complete(&db, &newest).await.unwrap(), "gone");
    assert!(jobs::lease(&db, Uuid::now_v7(), i64::MAX, 10).await.unwrap().is_none());
}

async fn a_failed_job_is_due_again_at_its_time(db: Db) {
    jobs::enqueue(&db, &job("purge", 0)).await.unwrap();
    let leased = jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap().expect("due");
    assert!(jobs::fail(&db, &leased, "disk\0 on fire", 50).await.unwrap());
    assert!(!jobs::complete(&db, &leased).await.unwrap(), "who failed holds nothing");
    assert!(jobs::lease(&db, Uuid::now_v7(), 49, 10).await.unwrap().is_none());
    assert_eq!(jobs::lease(&db, Uuid::now_v7(), 50, 10).await.unwrap().map(|job| job.attempts), Some(2));
}

async fn a_parked_job_is_leased_to_nobody_until_it_is_retried(db: Db) {
    for _ in 0..3 {
        jobs::enqueue(&db, &job("purge", 0)).await.unwrap();
    }
    let lease = async |now_ms| jobs::lease(&db, Uuid::now_v7(), now_ms, 10).await.unwrap();
    let (first, second) = (lease(0).await.unwrap(), lease(0).await.unwrap());
    assert!(jobs::park(&db, &first, "no").await.unwrap());
    assert!(jobs::park(&db, &second, "no").await.unwrap());
    assert!(!jobs::complete(&db, &first).await.unwrap(), "who parked it holds nothing");
    assert_eq!(jobs::parked(&db).await.unwrap(), 2);
    assert!(lease(0).await.is_some_and(|third| third.id != first.id && third.id != second.id));
    assert!(lease(9).await.is_none());
    jobs::retry_parked(&db, 5, 31).await.unwrap();
    assert_eq!(jobs::parked(&db).await.unwrap(), 0);
    assert_eq!([lease(5).await.unwrap().attempts, lease(5).await.unwrap().attempts], [32, 32]);
    assert!(lease(9).await.is_none(), "the one that somebody holds is not touched");
}

async fn a_released_job_is_due_at_once_and_its_attempt_does_not_count(db: Db) {
    jobs::enqueue(&db, &job("purge", 0)).await.unwrap();
    for now_ms in [3, 4] {
        let leased = jobs::lease(&db, Uuid::now_v7(), now_ms, 10).await.unwrap().expect("due");
        assert_eq!(leased.attempts, 1);
        assert!(jobs::release(&db, &leased, now_ms + 1).await.unwrap());
        assert!(!jobs::release(&db, &leased, now_ms + 1).await.unwrap(), "released already");
    }
}

async fn the_longest_due_job_comes_first(db: Db) {
    for (kind, due_at_ms) in [("later", 2), ("first", 0), ("then", 1)] {
        jobs::enqueue(&db, &job(kind, due_at_ms)).await.unwrap();
    }
    let mut kinds = Vec::new();
    while let Some(job) = jobs::lease(&db, Uuid::now_v7(), 5, 10).await.unwrap() {
        kinds.push(job.kind);
    }
    assert_eq!(kinds, ["first", "then", "later"]);
}

async fn every_job_is_leased_once_among_many_takers(db: Db) {
    warehouse_with_namespace(&db).await;
    for _ in 0..40 {
        jobs::enqueue(&db, &job("purge", 0)).await.unwrap();
    }
    let takers = (0..8).map(|_| {
        let db = db.clone();
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Some(job) = jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap() {
                taken.push(job.id);
            }
            taken
        })
    });
    let mut taken = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.extend(taker.await.unwrap());
    }
    // A taker that finds every due row locked by others may stop early; what it left is still there for the next.
    while let Some(job) = jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap() {
        taken.push(job.id);
    }
    assert_eq!(taken.len(), 40);
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 40, "no job was leased twice");
}
