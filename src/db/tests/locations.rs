use super::{create, fresh_file, make_namespace, new_table_at, warehouse_with_namespace};
use crate::db::{
    Db, locations,
    tables::{self, Create, Except, Kind, LOCATION_BYTES_MAX, Swap, Swapped, TableRow},
    testing::on_both,
};
use uuid::Uuid;

on_both!(
    equal_and_nested_locations_are_taken,
    a_taken_name_is_told_before_a_taken_location,
    a_location_is_taken_across_warehouses,
    neighbours_decide_among_many,
    a_swap_to_another_location_claims_it,
    a_location_too_long_to_index_is_refused,
    of_racing_nested_claims_one_wins,
);

async fn claim(db: &Db, warehouse: Uuid, location: &str) -> Create {
    create(db, warehouse, &format!("n.{}", Uuid::now_v7()), &new_table_at(location, Kind::Table)).await
}

async fn claimed(db: &Db, warehouse: Uuid, location: &str) -> TableRow {
    match claim(db, warehouse, location).await {
        Create::Done(row) => row,
        other => panic!("{location}: {other:?}"),
    }
}

async fn equal_and_nested_locations_are_taken(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let row = claimed(&db, warehouse, "s3://lake/a/b").await;
    for taken in [
        "s3://lake/a/b",
        "s3a://lake/a/b",
        "S3://lake/a/b",
        "s3://lake/a/b/c",
        "s3://lake/a/b/c/d/e",
        "s3://lake/a",
        "s3://lake",
    ] {
        assert_eq!(claim(&db, warehouse, taken).await, Create::LocationTaken, "{taken}");
        assert!(tables::location_taken(&db, taken, Except::Nobody).await.unwrap(), "{taken}");
        assert!(!tables::location_taken(&db, taken, Except::Row(row.id)).await.unwrap(), "{taken}: its own");
    }
    for free in [
        "s3://lake/a/bc",
        "s3://lake/a/b-",
        "s3://lake/a/b0",
        "s3://lake/A/b",
        "s3://lake/a/c",
        "s3://lake2/a/b",
        "s3://lak",
        "gs://lake/a/b",
        "s3://lake/a/%62",
    ] {
        assert!(!tables::location_taken(&db, free, Except::Nobody).await.unwrap(), "{free}");
        claimed(&db, warehouse, free).await;
    }
}

async fn a_taken_name_is_told_before_a_taken_location(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let new = new_table_at("s3://lake/a", Kind::Table);
    create(&db, warehouse, "n.t", &new).await;
    assert_eq!(create(&db, warehouse, "n.t", &new).await, Create::Exists(Kind::Table));
    assert_eq!(create(&db, warehouse, "nowhere.t", &new).await, Create::NoNamespace);
    assert_eq!(create(&db, warehouse, "n.u", &new).await, Create::LocationTaken);
}

async fn a_location_is_taken_across_warehouses(db: Db) {
    let one = warehouse_with_namespace(&db).await;
    let other = warehouse_with_namespace(&db).await;
    claimed(&db, one, "s3://lake/a").await;
    assert_eq!(claim(&db, other, "s3://lake/a/b").await, Create::LocationTaken);
}

/// Compares the two neighbours' answer with a comparison against every location there is.
async fn neighbours_decide_among_many(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let levels = ["a", "a!", "a/", "a0", "ab"];
    let mut taken: Vec<String> = Vec::new();
    for (i, one) in levels.iter().enumerate() {
        for (j, two) in levels.iter().enumerate() {
            for three in ["", "/x", "/x/y"] {
                // A fixed scramble, so that deep and shallow ones come in every order.
                let location =
                    format!("s3://lake/{}/{}{three}", levels[(i * 3 + j) % 5], if j % 2 == 0 { one } else { two });
                let key = locations::key(&location).unwrap();
                let collides = taken.iter().any(|other| other.starts_with(&key) || key.starts_with(other));
                let answer = claim(&db, warehouse, &location).await;
                assert_eq!(answer == Create::LocationTaken, collides, "{location} among {taken:?}");
                if !collides {
                    taken.push(key);
                }
            }
        }
    }
    assert!(taken.len() > 5);
}

async fn a_swap_to_another_location_claims_it(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let mut row = claimed(&db, warehouse, "s3://lake/a").await;
    claimed(&db, warehouse, "s3://lake/b/c").await;
    let file = fresh_file("s3://lake/a");
    let swap = async |base: &TableRow, location: &str| {
        let swap = Swap { base, metadata_location: &file, location, format_version: 2, now_ms: 0 };
        tables::swap(&db, &swap).await.unwrap()
    };
    for taken in ["s3://lake/b", "s3://lake/b/c", "s3://lake/b/c/d"] {
        assert_eq!(swap(&row, taken).await, Swapped::LocationTaken, "{taken}");
    }
    assert!(!tables::is_recorded(&db, &file).await.unwrap());
    // Into, and back out of, its own old location.
    for (free, revision) in [("s3://lake/a/deeper", 2)] {
        assert_eq!(swap(&row, free).await, Swapped::Done(revision), "{free}");
        row = tables::load_by_id(&db, row.id).await.unwrap().expect("there");
        assert_eq!(row.location, free);
    }
    assert_eq!(claim(&db, warehouse, "s3://lake/a/deeper").await, Create::LocationTaken);
    claimed(&db, warehouse, "s3://lake/a/other").await;
}

async fn a_location_too_long_to_index_is_refused(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    // Random letters, because Postgres compresses what repeats.
    let letters = (0..LOCATION_BYTES_MAX).map(|_| Uuid::new_v4().simple().to_string().remove(0)).collect::<String>();
    let longest = format!("s3://lake/{letters}")[..LOCATION_BYTES_MAX].to_owned();
    let mut new = new_table_at(&longest, Kind::Table);
    new.metadata_location = longest.replace("s3://lake", "s3://meta");
    assert!(matches!(create(&db, warehouse, "n.t", &new).await, Create::Done(_)));
    new.location.push('x');
    let refused = tables::create(&db, warehouse, &super::ident("n.u"), &new, 0).await;
    assert!(matches!(refused, Err(sqlx::Error::InvalidArgument(_))), "{refused:?}");
}

async fn of_racing_nested_claims_one_wins(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    make_namespace(&db, warehouse, "m").await;
    for round in 0..12 {
        // Deeper than the levels that are locked one by one, too.
        let base = format!("s3://lake/{round}{}", "/d".repeat(if round % 2 == 0 { 1 } else { 20 }));
        let claims = ["", "/x", "/x/y", "/x/y/z", "/x"].map(|below| {
            let (db, location) = (db.clone(), format!("{base}{below}"));
            tokio::spawn(async move { claim(&db, warehouse, &location).await })
        });
        let mut won = 0;
        for claim in claims {
            match claim.await.unwrap() {
                Create::Done(_) => won += 1,
                Create::LocationTaken => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
}
