use super::NOW_MS;
use crate::db::{
    Db,
    reports::{self, Kind, NewReport, Owner, Range, id_at, id_before},
    testing::on_both,
};
use uuid::Uuid;

on_both!(
    reports_come_newest_first_in_pages,
    a_report_is_stored_once,
    owners_and_kinds_are_apart,
    forgetting_takes_the_oldest_and_no_more_than_asked,
);

fn report(warehouse: Uuid, table: Uuid, at_ms: i64) -> NewReport {
    NewReport {
        id: id_at(at_ms),
        warehouse,
        table,
        kind: Kind::Scan,
        received_at_ms: at_ms,
        principal: "ann".into(),
        namespace: r#"["a","b"]"#.into(),
        name: "t'; --".into(),
        report: format!(r#"{{"n":{at_ms},"u":"\u0000ü"}}"#),
    }
}

fn all() -> Range {
    Range { first: Uuid::nil(), end: Uuid::max(), limit: 1_000 }
}

async fn times(db: &Db, owner: Owner, range: Range) -> Vec<i64> {
    let rows = reports::list(db, owner, Kind::Scan, range).await.unwrap();
    rows.into_iter().map(|row| row.received_at_ms - NOW_MS).collect()
}

async fn reports_come_newest_first_in_pages(db: Db) {
    let (warehouse, table) = (Uuid::now_v7(), Uuid::now_v7());
    reports::insert(&db, Vec::new()).await.unwrap();
    let new = (0..5).map(|n| report(warehouse, table, NOW_MS + n)).collect::<Vec<_>>();
    reports::insert(&db, new.clone()).await.unwrap();
    let owner = Owner::Warehouse(warehouse);
    assert_eq!(times(&db, owner, all()).await, [4, 3, 2, 1, 0]);
    let page = reports::list(&db, owner, Kind::Scan, Range { limit: 2, ..all() }).await.unwrap();
    assert_eq!(
        (page[0].id, page[0].report.as_str(), page[0].name.as_str()),
        (new[4].id, new[4].report.as_str(), "t'; --")
    );
    assert_eq!(times(&db, owner, Range { end: page[1].id, limit: 2, ..all() }).await, [2, 1]);
    let between = Range { first: id_before(NOW_MS + 1), end: id_before(NOW_MS + 3), ..all() };
    assert_eq!(times(&db, owner, between).await, [2, 1]);
    let never = Range { first: id_before(i64::MAX), end: id_before(i64::MIN), ..all() };
    assert_eq!(times(&db, owner, never).await, Vec::<i64>::new());
}

async fn a_report_is_stored_once(db: Db) {
    let (warehouse, table) = (Uuid::now_v7(), Uuid::now_v7());
    let (one, two) = (report(warehouse, table, NOW_MS), report(warehouse, table, NOW_MS + 1));
    reports::insert(&db, vec![one.clone()]).await.unwrap();
    reports::insert(&db, vec![one, two]).await.unwrap();
    assert_eq!(times(&db, Owner::Table(table), all()).await, [1, 0]);
}

async fn owners_and_kinds_are_apart(db: Db) {
    let (warehouse, table, other) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let commit = NewReport { kind: Kind::Commit, ..report(warehouse, table, NOW_MS + 1) };
    let new = vec![report(warehouse, table, NOW_MS), commit, report(other, other, NOW_MS + 2)];
    reports::insert(&db, new).await.unwrap();
    assert_eq!(times(&db, Owner::Warehouse(warehouse), all()).await, [0]);
    assert_eq!(times(&db, Owner::Table(table), all()).await, [0]);
    assert_eq!(times(&db, Owner::Table(other), all()).await, [2]);
    assert_eq!(times(&db, Owner::Table(warehouse), all()).await, Vec::<i64>::new());
    assert_eq!(reports::list(&db, Owner::Table(table), Kind::Commit, all()).await.unwrap().len(), 1);
}

async fn forgetting_takes_the_oldest_and_no_more_than_asked(db: Db) {
    let (warehouse, table) = (Uuid::now_v7(), Uuid::now_v7());
    let new = (0..10).map(|n| report(warehouse, table, NOW_MS + n)).collect::<Vec<_>>();
    reports::insert(&db, new.clone()).await.unwrap();
    for owner in [Owner::Warehouse(warehouse), Owner::Table(table)] {
        assert_eq!(reports::newest_beyond(&db, owner, Kind::Scan, 10).await.unwrap(), None);
        assert_eq!(reports::newest_beyond(&db, owner, Kind::Scan, 7).await.unwrap(), Some(new[2].id));
        assert_eq!(reports::newest_beyond(&db, owner, Kind::Commit, 0).await.unwrap(), None);
    }
    let owner = Owner::Warehouse(warehouse);
    assert_eq!(reports::forget_through(&db, owner, Kind::Commit, new[2].id, 10).await.unwrap(), 0);
    assert_eq!(reports::forget_through(&db, owner, Kind::Scan, new[2].id, 2).await.unwrap(), 2);
    assert_eq!(reports::forget_through(&db, Owner::Table(table), Kind::Scan, new[2].id, 2).await.unwrap(), 1);
    assert_eq!(times(&db, owner, all()).await, [9, 8, 7, 6, 5, 4, 3]);
    assert_eq!(reports::forget_before(&db, NOW_MS + 6, 2).await.unwrap(), 2);
    assert_eq!(reports::forget_before(&db, NOW_MS + 6, 2).await.unwrap(), 1);
    assert_eq!(times(&db, owner, all()).await, [9, 8, 7, 6]);
}
