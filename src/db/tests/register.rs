use super::*;
use crate::db::{
    tables::{
        self, Replaced, Settled, history, replace, settle_register, settle_replace, settle_unregister, unregister,
    },
    testing::on_both,
};

on_both!(
    a_replaced_pointer_keeps_its_row_and_may_come_back,
    a_pointer_is_replaced_from_what_it_was_only,
    a_pointer_is_not_replaced_into_anothers_place,
    a_settled_replacement_counts_what_came_after_its_base,
    a_settled_registration_is_one_of_a_living_table,
    a_row_is_unregistered_as_it_was_only,
    a_settled_unregistration_fences_a_late_one,
);

fn file_at(location: &str) -> NewTable {
    new_table_at(location, Kind::Table)
}

async fn locations_of(db: &Db, row: &TableRow) -> Vec<String> {
    history(db, row.id).await.unwrap().into_iter().map(|entry| entry.metadata_location).collect()
}

async fn done(db: &Db, base: &TableRow, new: &NewTable) -> TableRow {
    match replace(db, base, new, NOW_MS).await.unwrap() {
        Replaced::Done(row) => row,
        other => panic!("{other:?}"),
    }
}

async fn a_replaced_pointer_keeps_its_row_and_may_come_back(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    let new = NewTable { format_version: 3, ..file_at("s3://lake/elsewhere") };
    let second = done(&db, &first, &new).await;
    assert_eq!((second.id, second.revision, second.format_version), (first.id, first.revision + 1, 3));
    assert_eq!((second.uuid, &second.location), (new.uuid, &new.location));
    assert_eq!(second.previous_location.as_ref(), Some(&first.metadata_location));
    assert_eq!(load(&db, warehouse, "n.t").await.as_ref(), Some(&second));
    let old = NewTable {
        metadata_location: first.metadata_location.clone(),
        location: first.location.clone(),
        ..file_at("s3://lake/x")
    };
    let third = done(&db, &second, &old).await;
    let both = [&first.metadata_location, &second.metadata_location, &first.metadata_location].map(String::clone);
    assert_eq!(locations_of(&db, &third).await, both);
    // The place it left is free again.
    assert!(matches!(create(&db, warehouse, "n.u", &file_at("s3://lake/elsewhere")).await, Create::Done(_)));
}

async fn a_pointer_is_replaced_from_what_it_was_only(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let base = make_table(&db, warehouse, "n.t").await;
    swap(&db, &base, &fresh_file(&base.location)).await.unwrap();
    let current = load(&db, warehouse, "n.t").await.unwrap();
    assert_eq!(replace(&db, &base, &file_at(&base.location), NOW_MS).await.unwrap(), Replaced::Lost);
    assert_eq!(load(&db, warehouse, "n.t").await.as_ref(), Some(&current));
    let replaced = done(&db, &current, &file_at(&base.location)).await;
    assert_eq!(swap(&db, &current, &fresh_file(&base.location)).await.unwrap(), Swapped::Lost);
    assert_eq!(load(&db, warehouse, "n.t").await.unwrap(), replaced);
    tables::drop(&db, warehouse, &ident("n.t"), Kind::Table, None).await.unwrap();
    assert_eq!(replace(&db, &replaced, &file_at(&base.location), NOW_MS).await.unwrap(), Replaced::Lost);
}

async fn a_pointer_is_not_replaced_into_anothers_place(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let other = make_table(&db, warehouse, "n.other").await;
    let base = make_table(&db, warehouse, "n.t").await;
    for place in [other.location.clone(), format!("{}/below", other.location), "s3://lake".to_owned()] {
        let refused = replace(&db, &base, &file_at(&place), NOW_MS).await.unwrap();
        assert_eq!(refused, Replaced::LocationTaken, "{place}");
    }
    assert_eq!(load(&db, warehouse, "n.t").await, Some(base.clone()));
    done(&db, &base, &file_at(&format!("{}/below", base.location))).await;
    let long = format!("s3://lake/{}", "x".repeat(tables::LOCATION_BYTES_MAX));
    let refused = replace(&db, &base, &file_at(&long), NOW_MS).await;
    assert!(matches!(refused, Err(sqlx::Error::InvalidArgument(_))));
}

async fn a_settled_replacement_counts_what_came_after_its_base(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    let new = file_at(&first.location);
    assert_eq!(settle_replace(&db, &first, &new.metadata_location).await.unwrap(), Settled::Lost);
    assert_eq!(replace(&db, &first, &new, NOW_MS).await.unwrap(), Replaced::Lost, "a settled one comes too late");
    let base = load(&db, warehouse, "n.t").await.unwrap();
    let second = done(&db, &base, &new).await;
    assert_eq!(settle_replace(&db, &base, &new.metadata_location).await.unwrap(), Settled::Landed);
    // Back to the first file: that it was there before proves nothing.
    assert_eq!(settle_replace(&db, &second, &first.metadata_location).await.unwrap(), Settled::Lost);
}

async fn a_settled_registration_is_one_of_a_living_table(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let new = file_at("s3://lake/a");
    let settle = |name: &str| {
        let (db, new, ident) = (db.clone(), new.clone(), ident(name));
        async move { settle_register(&db, warehouse, &ident, &new).await.unwrap() }
    };
    assert_eq!(settle("n.t").await, None);
    let Create::Done(row) = create(&db, warehouse, "n.t", &new).await else { panic!("not created") };
    assert_eq!(settle("n.t").await.as_ref(), Some(&row));
    assert_eq!(settle("n.u").await, None, "it was another's");
    swap(&db, &row, &fresh_file(&row.location)).await.unwrap();
    assert_eq!(settle("n.t").await.map(|row| row.id), Some(row.id), "whoever moved it built on it");
    tables::drop(&db, warehouse, &ident("n.t"), Kind::Table, None).await.unwrap();
    assert_eq!(settle("n.t").await, None, "the history of a dropped table has the file");
}

async fn a_row_is_unregistered_as_it_was_only(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let base = make_table(&db, warehouse, "n.t").await;
    swap(&db, &base, &fresh_file(&base.location)).await.unwrap();
    assert!(!unregister(&db, &base).await.unwrap(), "a commit came first");
    let current = load(&db, warehouse, "n.t").await.unwrap();
    tables::rename(&db, warehouse, &ident("n.t"), &ident("n.u"), Kind::Table).await.unwrap();
    assert!(!unregister(&db, &current).await.unwrap(), "it has another name");
    let renamed = load(&db, warehouse, "n.u").await.unwrap();
    assert!(unregister(&db, &renamed).await.unwrap());
    assert_eq!(load(&db, warehouse, "n.u").await, None);
    assert!(!unregister(&db, &renamed).await.unwrap());
    assert_eq!(swap(&db, &renamed, &fresh_file(&base.location)).await.unwrap(), Swapped::Lost);
    let kept = locations_of(&db, &renamed).await;
    assert_eq!(kept, [base.metadata_location, renamed.metadata_location], "its files stay recorded");
}

async fn a_settled_unregistration_fences_a_late_one(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let base = make_table(&db, warehouse, "n.t").await;
    assert_eq!(settle_unregister(&db, &base).await.unwrap(), Settled::Lost);
    assert!(!unregister(&db, &base).await.unwrap(), "a settled one comes too late");
    let current = load(&db, warehouse, "n.t").await.unwrap();
    assert!(unregister(&db, &current).await.unwrap());
    assert_eq!(settle_unregister(&db, &current).await.unwrap(), Settled::Landed);
    let older = TableRow { metadata_location: "s3://lake/older".into(), ..current };
    assert_eq!(settle_unregister(&db, &older).await.unwrap(), Settled::Lost, "a later version was removed");
}
