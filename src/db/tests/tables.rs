use super::{
    NOW_MS, create, fresh_file, ident, load, make, make_namespace, make_table, namespace, new_table, swap, warehouse,
    warehouse_with_namespace,
};
use crate::db::{
    Db, Page,
    jobs::{self, NewJob},
    tables::{self, Create, HistoryRow, Kind, Rename, Settled, Swapped},
    testing::on_both,
};
use uuid::Uuid;

on_both!(
    a_created_table_is_found_by_name_and_id,
    tables_and_views_share_names,
    a_swap_moves_the_pointer_and_records_it,
    a_swap_from_an_old_row_is_lost,
    a_swap_of_a_dropped_or_recreated_table_is_lost,
    a_swap_survives_a_rename,
    a_settled_swap_has_landed_or_never_will,
    a_settled_create_has_landed_or_has_not,
    a_drop_enqueues_its_job_and_leaves_the_history,
    a_dropped_tables_file_can_be_registered_again,
    names_are_listed_by_kind_in_byte_order,
    pages_follow_each_other_without_gap_or_overlap,
    a_rename_answers_what_stood_in_its_way,
    a_rename_crosses_namespaces_and_keeps_the_rest,
    the_longest_name_fits,
);

async fn rename(db: &Db, warehouse: Uuid, from: &str, to: &str, kind: Kind) -> Rename {
    tables::rename(db, warehouse, &ident(from), &ident(to), kind).await.expect("renames")
}

async fn remove(db: &Db, warehouse: Uuid, path: &str) -> Option<tables::TableRow> {
    tables::drop(db, warehouse, &ident(path), Kind::Table, None).await.expect("drops")
}

async fn a_created_table_is_found_by_name_and_id(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    assert_eq!(load(&db, warehouse, "n.t").await, None);
    let new = new_table(Kind::Table);
    let made = create(&db, warehouse, "n.t", &new).await;
    let Create::Done(row) = made else { panic!("{made:?}") };
    assert_eq!((row.name.as_str(), row.kind, row.uuid, row.format_version), ("t", Kind::Table, new.uuid, 2));
    assert_eq!((&row.location, &row.metadata_location), (&new.location, &new.metadata_location));
    assert_eq!((row.previous_location.as_ref(), row.revision), (None, 1));
    assert_eq!(load(&db, warehouse, "n.t").await.as_ref(), Some(&row));
    assert_eq!(load(&db, warehouse, "n.T").await, None);
    assert_eq!(tables::load_by_id(&db, row.id).await.unwrap().as_ref(), Some(&row));
    assert_eq!(tables::load_by_id(&db, Uuid::now_v7()).await.unwrap(), None);
    assert!(tables::is_recorded(&db, &row.metadata_location).await.unwrap());
    assert!(!tables::is_recorded(&db, &row.location).await.unwrap());
}

async fn tables_and_views_share_names(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    assert_eq!(create(&db, warehouse, "nowhere.t", &new_table(Kind::Table)).await, Create::NoNamespace);
    make(&db, warehouse, "n.t", Kind::Table).await;
    make(&db, warehouse, "n.v", Kind::View).await;
    assert_eq!(create(&db, warehouse, "n.t", &new_table(Kind::View)).await, Create::Exists(Kind::Table));
    assert_eq!(create(&db, warehouse, "n.v", &new_table(Kind::Table)).await, Create::Exists(Kind::View));
    assert_eq!(load(&db, warehouse, "n.v").await.map(|row| row.kind), Some(Kind::View));
}

async fn a_swap_moves_the_pointer_and_records_it(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    let file = fresh_file(&first.location);
    assert_eq!(swap(&db, &first, &file).await.unwrap(), Swapped::Done(2));
    let second = load(&db, warehouse, "n.t").await.expect("there");
    let expected = tables::TableRow {
        metadata_location: file.clone(),
        previous_location: Some(first.metadata_location.clone()),
        revision: 2,
        format_version: 3,
        ..first.clone()
    };
    assert_eq!(second, expected);
    assert_eq!(tables::load_by_id(&db, first.id).await.unwrap(), Some(expected));
    let row = |revision, file: &str| HistoryRow { revision, metadata_location: file.into(), committed_at_ms: NOW_MS };
    let history = tables::history(&db, first.id).await.unwrap();
    assert_eq!(history, [row(1, &first.metadata_location), row(2, &file)]);
}

async fn a_swap_from_an_old_row_is_lost(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    assert_eq!(swap(&db, &first, &fresh_file("s3://lake/a")).await.unwrap(), Swapped::Done(2));
    let late = fresh_file("s3://lake/a");
    assert_eq!(swap(&db, &first, &late).await.unwrap(), Swapped::Lost);
    assert!(!tables::is_recorded(&db, &late).await.unwrap());
    let second = load(&db, warehouse, "n.t").await.expect("there");
    for wrong in [
        tables::TableRow { metadata_location: first.metadata_location.clone(), ..second.clone() },
        tables::TableRow { revision: 1, ..second.clone() },
    ] {
        assert_eq!(swap(&db, &wrong, &late).await.unwrap(), Swapped::Lost, "both must match");
    }
    assert_eq!(load(&db, warehouse, "n.t").await, Some(second));
}

async fn a_swap_of_a_dropped_or_recreated_table_is_lost(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    assert_eq!(remove(&db, warehouse, "n.t").await.as_ref(), Some(&first));
    assert_eq!(swap(&db, &first, &fresh_file("s3://lake/a")).await.unwrap(), Swapped::Lost);
    let again = make_table(&db, warehouse, "n.t").await;
    assert_eq!(swap(&db, &first, &fresh_file("s3://lake/a")).await.unwrap(), Swapped::Lost);
    assert_eq!(load(&db, warehouse, "n.t").await, Some(again));
}

async fn a_swap_survives_a_rename(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    assert_eq!(rename(&db, warehouse, "n.t", "n.u", Kind::Table).await, Rename::Done);
    assert_eq!(swap(&db, &first, &fresh_file("s3://lake/a")).await.unwrap(), Swapped::Done(2));
    assert_eq!(load(&db, warehouse, "n.u").await.map(|row| row.revision), Some(2));
    assert_eq!(load(&db, warehouse, "n.t").await, None);
}

async fn a_settled_swap_has_landed_or_never_will(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    let (landed, unsent) = (fresh_file("s3://lake/a"), fresh_file("s3://lake/a"));
    assert_eq!(swap(&db, &first, &landed).await.unwrap(), Swapped::Done(2));
    let base = load(&db, warehouse, "n.t").await.expect("there");
    assert_eq!(tables::settle(&db, first.id, &landed).await.unwrap(), Settled::Landed);
    assert_eq!(load(&db, warehouse, "n.t").await.map(|row| row.revision), Some(3), "asking raised the revision");
    assert_eq!(tables::settle(&db, first.id, &unsent).await.unwrap(), Settled::Lost);
    assert_eq!(swap(&db, &base, &unsent).await.unwrap(), Swapped::Lost, "too late");
    let base = load(&db, warehouse, "n.t").await.expect("there");
    assert_eq!(swap(&db, &base, &fresh_file("s3://lake/a")).await.unwrap(), Swapped::Done(5), "others go on");
    remove(&db, warehouse, "n.t").await.expect("dropped");
    assert_eq!(tables::settle(&db, first.id, &landed).await.unwrap(), Settled::Landed, "also after a drop");
    assert_eq!(tables::settle(&db, first.id, &unsent).await.unwrap(), Settled::Lost);
}

async fn a_settled_create_has_landed_or_has_not(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let new = new_table(Kind::Table);
    let settle = || tables::settle_create(&db, &new.location, &new.metadata_location);
    assert_eq!(settle().await.unwrap(), Settled::Lost);
    create(&db, warehouse, "n.t", &new).await;
    assert_eq!(settle().await.unwrap(), Settled::Landed);
}

async fn a_drop_enqueues_its_job_and_leaves_the_history(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let row = make_table(&db, warehouse, "n.t").await;
    let job = NewJob { kind: "purge".into(), payload: "{}".into(), not_before_ms: 0 };
    let drop = async |path: &str, kind| {
        tables::drop(&db, warehouse, &ident(path), kind, Some(&job)).await.unwrap().map(|row| row.id)
    };
    assert_eq!(drop("n.missing", Kind::Table).await, None);
    assert_eq!(drop("nowhere.t", Kind::Table).await, None);
    assert_eq!(drop("n.t", Kind::View).await, None, "a table is no view");
    assert!(jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap().is_none(), "nothing dropped, nothing to purge");
    assert_eq!(drop("n.t", Kind::Table).await, Some(row.id));
    assert_eq!(load(&db, warehouse, "n.t").await, None);
    assert_eq!(jobs::lease(&db, Uuid::now_v7(), 0, 10).await.unwrap().map(|job| job.kind), Some("purge".into()));
    assert!(tables::is_recorded(&db, &row.metadata_location).await.unwrap());
    tables::forget_history(&db, row.id).await.unwrap();
    assert!(!tables::is_recorded(&db, &row.metadata_location).await.unwrap());
    let living = make_table(&db, warehouse, "n.t").await;
    tables::forget_history(&db, living.id).await.unwrap();
    assert!(tables::is_recorded(&db, &living.metadata_location).await.unwrap(), "a living table's history stays");
}

async fn a_dropped_tables_file_can_be_registered_again(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let new = new_table(Kind::Table);
    create(&db, warehouse, "n.t", &new).await;
    assert_eq!(create(&db, warehouse, "n.u", &new).await, Create::LocationTaken);
    remove(&db, warehouse, "n.t").await.expect("dropped");
    assert!(matches!(create(&db, warehouse, "n.u", &new).await, Create::Done(_)));
}

async fn names_are_listed_by_kind_in_byte_order(db: Db) {
    let warehouse = warehouse(&db).await;
    make_namespace(&db, warehouse, "n").await;
    make_namespace(&db, warehouse, "m").await;
    for name in ["b", "B", "a", "é", "\u{ffff}", "😀"] {
        make_table(&db, warehouse, &format!("n.{name}")).await;
    }
    make(&db, warehouse, "n.v", Kind::View).await;
    make_table(&db, warehouse, "m.other").await;
    let list =
        async |path: &str, kind| tables::list(&db, warehouse, &namespace(path), kind, &Page::default()).await.unwrap();
    assert_eq!(list("n", Kind::Table).await.unwrap(), ["B", "a", "b", "é", "\u{ffff}", "😀"]);
    assert_eq!(list("n", Kind::View).await.unwrap(), ["v"]);
    assert_eq!(list("m", Kind::View).await, Some(vec![]));
    assert_eq!(list("nowhere", Kind::Table).await, None);
}

async fn pages_follow_each_other_without_gap_or_overlap(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let expected = (0..25).map(|number| format!("t{number:02}")).collect::<Vec<_>>();
    for name in expected.iter().rev() {
        make_table(&db, warehouse, &format!("n.{name}")).await;
        make(&db, warehouse, &format!("n.{name}-view"), Kind::View).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = Page { after, limit: Some(4) };
        let names = tables::list(&db, warehouse, &namespace("n"), Kind::Table, &page).await.unwrap().expect("there");
        assert!(names.len() <= 4);
        // What comes before the page's end neither shifts nor repeats what follows.
        make_table(&db, warehouse, &format!("n.a{}", seen.len())).await;
        if let Some(shown) = names.first() {
            remove(&db, warehouse, &format!("n.{shown}")).await.expect("dropped");
        }
        after = names.last().cloned();
        seen.extend(names);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
}

async fn a_rename_answers_what_stood_in_its_way(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    assert_eq!(rename(&db, warehouse, "n.t", "nowhere.u", Kind::Table).await, Rename::NoSource);
    assert_eq!(rename(&db, warehouse, "nowhere.t", "n.u", Kind::Table).await, Rename::NoSource);
    let row = make_table(&db, warehouse, "n.t").await;
    make_table(&db, warehouse, "n.u").await;
    make(&db, warehouse, "n.v", Kind::View).await;
    assert_eq!(rename(&db, warehouse, "n.t", "n.u", Kind::Table).await, Rename::Exists(Kind::Table));
    assert_eq!(rename(&db, warehouse, "n.t", "n.v", Kind::Table).await, Rename::Exists(Kind::View));
    assert_eq!(rename(&db, warehouse, "n.v", "n.t", Kind::View).await, Rename::Exists(Kind::Table));
    assert_eq!(rename(&db, warehouse, "n.t", "n.w", Kind::View).await, Rename::NoSource, "a table is no view");
    assert_eq!(rename(&db, warehouse, "n.t", "nowhere.t", Kind::Table).await, Rename::NoNamespace);
    assert_eq!(rename(&db, warehouse, "n.t", "n.t", Kind::Table).await, Rename::Done, "onto itself");
    assert_eq!(load(&db, warehouse, "n.t").await, Some(row));
}

async fn a_rename_crosses_namespaces_and_keeps_the_rest(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    make_namespace(&db, warehouse, "n.m").await;
    let row = make_table(&db, warehouse, "n.t").await;
    assert_eq!(load(&db, warehouse, "n.t").await.as_ref(), Some(&row));
    assert_eq!(rename(&db, warehouse, "n.t", "n.m.u", Kind::Table).await, Rename::Done);
    assert_eq!(load(&db, warehouse, "n.t").await, None);
    let moved = load(&db, warehouse, "n.m.u").await.expect("there");
    assert_eq!(moved, tables::TableRow { namespace_id: moved.namespace_id, name: "u".into(), ..row.clone() });
    assert_ne!(moved.namespace_id, row.namespace_id);
    make_table(&db, warehouse, "n.t").await;
}

async fn the_longest_name_fits(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let path = format!("n.{}", "😀".repeat(crate::iceberg::ident::NAME_CHARS_MAX));
    let row = make_table(&db, warehouse, &path).await;
    assert_eq!(load(&db, warehouse, &path).await, Some(row));
}
