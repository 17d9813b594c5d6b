use super::*;
use crate::iceberg::ident::{Namespace, TableIdent};
use crate::{
    catalog::{files, purge::Order},
    jobs::{purge, reap, run_next},
    planning::manifests::tests::{list_of, manifest_of},
};
use object_store::{Attribute, Attributes, ObjectStoreExt, PutOptions, path::Path};
use tokio_util::sync::CancellationToken;

const TABLES: &str = "/namespaces/n/tables";

async fn put(server: &Server, location: &str, bytes: Vec<u8>) {
    let key = Path::parse(location.strip_prefix("s3://lake/").unwrap()).unwrap();
    server.objects().put(&key, bytes.into()).await.unwrap();
}

/// Runs all due jobs; answers how many there were.
async fn run_jobs(server: &Server) -> usize {
    let mut count = 0;
    while run_next(&server.app, Uuid::now_v7(), &CancellationToken::new()).await.unwrap() {
        count += 1;
    }
    count
}

/// Gives a table a snapshot whose manifest names `data_files`; answers what was stored besides metadata files.
async fn write_snapshot(server: &Server, name: &str, id: i64, data_files: &[String]) {
    let table = server.get(&format!("{TABLES}/{name}")).await.expect(200);
    let location = table["metadata"]["location"].as_str().unwrap();
    let manifest = format!("{location}/metadata/m{id}.avro");
    let list = format!("{location}/metadata/snap-{id}.avro");
    for file in data_files {
        put(server, file, b"data".to_vec()).await;
    }
    put(server, &manifest, manifest_of(data_files)).await;
    put(server, &list, list_of(std::slice::from_ref(&manifest))).await;
    commit_snapshot(server, name, id, &list).await;
}

async fn commit_snapshot(server: &Server, name: &str, id: i64, list: &str) {
    let commit = json!({"updates": [
        {"action": "add-snapshot", "snapshot": {
            "snapshot-id": id, "sequence-number": id, "timestamp-ms": now_ms(), "manifest-list": list,
            "summary": {"operation": "append"}, "schema-id": 0,
        }},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
    ]});
    server.post(&format!("{TABLES}/{name}"), commit).await.expect(200);
}

async fn location(server: &Server, name: &str) -> String {
    let table = server.get(&format!("{TABLES}/{name}")).await.expect(200);
    table["metadata"]["location"].as_str().unwrap().to_owned()
}

async fn a_purge_leaves_nothing_behind(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    write_snapshot(&server, "t", 1, &[format!("{place}/data/a.parquet"), format!("{place}/data/d=1/b c.parquet")])
        .await;
    write_snapshot(&server, "t", 2, &[format!("{place}/data/a.parquet"), format!("{place}/data/c.parquet")]).await;
    let statistics = format!("{place}/metadata/1.stats");
    put(&server, &statistics, b"puffin".to_vec()).await;
    let partitions = format!("{place}/metadata/2.parquet");
    put(&server, &partitions, b"parquet".to_vec()).await;
    let commit = json!({"updates": [
        {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "1"}},
        {"action": "set-statistics", "snapshot-id": 1, "statistics": {
            "snapshot-id": 1, "statistics-path": statistics, "file-size-in-bytes": 6, "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }},
        {"action": "set-partition-statistics", "partition-statistics": {
            "snapshot-id": 2, "statistics-path": partitions, "file-size-in-bytes": 6,
        }},
    ]});
    server.post(&format!("{TABLES}/t"), commit).await.expect(200);
    assert_eq!(server.keys("wh/").await.len(), 3 + 4 + 4 + 2);
    let row_id = {
        let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
        let ident = path::table("n", "t").unwrap();
        crate::db::tables::load(&server.app.db, warehouse.id, &ident).await.unwrap().unwrap().id
    };

    server.delete(&format!("{TABLES}/t?purgeRequested=True")).await.expect(204);
    server.get(&format!("{TABLES}/t")).await.expect(404);
    assert_eq!(server.keys("wh/").await.len(), 13, "files go after the table");
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(server.keys("").await, Vec::<String>::new());
    assert_eq!(crate::db::tables::history(&server.app.db, row_id).await.unwrap(), []);
}

async fn a_purge_reaches_no_table_that_took_the_name(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    write_snapshot(&server, "t", 1, &[format!("{place}/data/a")]).await;
    let rename =
        json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "old"}});
    server.post("/tables/rename", rename).await.expect(204);
    server.create_table("n", "t").await;
    let new_place = location(&server, "t").await;
    write_snapshot(&server, "t", 1, &[format!("{new_place}/data/a")]).await;
    let kept = server.keys(new_place.strip_prefix("s3://lake/").unwrap()).await;
    server.delete(&format!("{TABLES}/old?purgeRequested=true")).await.expect(204);
    run_jobs(&server).await;
    assert_eq!(server.keys("").await, kept);
}

async fn a_purge_cut_short_starts_over(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    write_snapshot(&server, "t", 1, &[format!("{place}/data/a"), format!("{place}/data/b")]).await;
    let row = {
        let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
        crate::db::tables::load(&server.app.db, warehouse.id, &path::table("n", "t").unwrap()).await.unwrap().unwrap()
    };
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let order = Order::new(&warehouse, &row);
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    // As an engine that deletes files itself, or a worker that died, leaves it.
    for file in ["data/a", "metadata/m1.avro"] {
        let key = format!("{}/{file}", place.strip_prefix("s3://lake/").unwrap());
        server.objects().delete(&Path::parse(key).unwrap()).await.unwrap();
    }
    run_jobs(&server).await;
    let left = server.keys("").await;
    assert_eq!(left, [format!("{}/data/b", place.strip_prefix("s3://lake/").unwrap())], "its manifest was gone");
    purge::run(&server.app, &order).await.unwrap();
    assert_eq!(server.keys("").await, left);
}

async fn hostile_metadata_reaches_no_neighbour(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "victim").await;
    server.create_table("n", "t").await;
    let (victim, place) = (location(&server, "victim").await, location(&server, "t").await);
    write_snapshot(&server, "victim", 1, &[format!("{victim}/data/a"), format!("{victim}/data/b")]).await;
    let kept = server.keys(victim.strip_prefix("s3://lake/").unwrap()).await;
    for stray in ["s3://lake/wh/loose", "s3://lake/outside"] {
        put(&server, stray, b"x".to_vec()).await;
    }

    // A manifest that names others' files, a list that names others' manifests, and others' list and statistics.
    let named = [
        format!("{victim}/data/a"),
        format!("{place}-sibling"),
        format!("{place}/../{}/data/b", victim.rsplit('/').next().unwrap()),
        place.clone(),
        format!("{place}/"),
        "s3://lake/wh/loose".to_owned(),
        "s3://lake/outside".to_owned(),
        "s3://other/x".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ];
    put(&server, &format!("{place}/metadata/evil.avro"), manifest_of(&named)).await;
    let manifests = [format!("{place}/metadata/evil.avro"), format!("{victim}/metadata/m1.avro")];
    put(&server, &format!("{place}/metadata/evil-list.avro"), list_of(&manifests)).await;
    commit_snapshot(&server, "t", 1, &format!("{place}/metadata/evil-list.avro")).await;
    commit_snapshot(&server, "t", 2, &format!("{victim}/metadata/snap-1.avro")).await;
    let commit = json!({"updates": [{"action": "set-statistics", "snapshot-id": 1, "statistics": {
        "snapshot-id": 1, "statistics-path": format!("{victim}/data/b"), "file-size-in-bytes": 6,
        "file-footer-size-in-bytes": 1, "blob-metadata": [],
    }}]});
    server.post(&format!("{TABLES}/t"), commit).await.expect(200);

    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    run_jobs(&server).await;
    assert_eq!(server.keys(place.strip_prefix("s3://lake/").unwrap()).await, Vec::<String>::new());
    assert_eq!(server.keys(victim.strip_prefix("s3://lake/").unwrap()).await, kept);
    assert_eq!(server.keys("wh/loose").await.len() + server.keys("outside").await.len(), 2);
}

async fn broken_manifests_do_not_stop_a_purge(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    put(&server, &format!("{place}/metadata/list.avro"), b"not avro".to_vec()).await;
    commit_snapshot(&server, "t", 1, &format!("{place}/metadata/list.avro")).await;
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(server.keys("").await, Vec::<String>::new());
}

async fn names_that_no_object_can_have_do_not_stop_a_purge(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    let too_long = |name: &str| format!("{place}/{}{name}", "x".repeat(1_100));
    let (list, manifest) = (format!("{place}/metadata/list.avro"), format!("{place}/metadata/m.avro"));
    let data = format!("{place}/data/a");
    put(&server, &data, b"data".to_vec()).await;
    put(&server, &manifest, manifest_of(&[too_long("data"), data])).await;
    put(&server, &list, list_of(&[too_long("manifest"), manifest])).await;
    commit_snapshot(&server, "t", 1, &list).await;
    commit_snapshot(&server, "t", 2, &too_long("list")).await;
    let commit = json!({"updates": [{"action": "set-statistics", "snapshot-id": 1, "statistics": {
        "snapshot-id": 1, "statistics-path": too_long("statistics"), "file-size-in-bytes": 6,
        "file-footer-size-in-bytes": 1, "blob-metadata": [],
    }}]});
    server.post(&format!("{TABLES}/t"), commit).await.expect(200);
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(server.keys("").await, Vec::<String>::new());
}

async fn a_folder_that_another_table_took_over_is_left_alone(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut table = new_table("t");
    table["location"] = json!("s3://lake/wh/shared");
    server.post(TABLES, table.clone()).await.expect(200);
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    table["location"] = json!("s3://lake/wh/shared/below");
    server.post(TABLES, table).await.expect(200);
    let before = server.keys("").await;
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(server.keys("").await, before);
    server.get(&format!("{TABLES}/t")).await.expect(200);
}

async fn data_files_that_may_be_shared_survive_a_purge(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    for (name, value) in [("f", "false"), ("upper", "FALSE"), ("odd", "no")] {
        let mut table = new_table(name);
        table["properties"] = json!({"gc.enabled": value});
        server.post(TABLES, table).await.expect(200);
        let place = location(&server, name).await;
        let data = format!("{place}/data/a.parquet");
        write_snapshot(&server, name, 1, std::slice::from_ref(&data)).await;
        let refused = server.delete(&format!("{TABLES}/{name}?purgeRequested=true")).await;
        let expected = "400 BadRequestException cannot purge: the table's property gc.enabled is not true";
        assert_eq!(refused.error(), expected, "gc.enabled={value}");
        assert_eq!(run_jobs(&server).await, 0);
        // Set while the order was on its way, it still spares the data.
        let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
        let ident = TableIdent::new(Namespace::new(vec!["n".into()]).unwrap(), name.to_owned()).unwrap();
        let row = crate::db::tables::load(&server.app.db, warehouse.id, &ident).await.unwrap().expect("it stays");
        server.delete(&format!("{TABLES}/{name}")).await.expect(204);
        crate::db::jobs::enqueue(&server.app.db, &Order::new(&warehouse, &row).job(now_ms())).await.unwrap();
        assert_eq!(run_jobs(&server).await, 1);
        let left = server.keys(place.strip_prefix("s3://lake/").unwrap()).await;
        assert_eq!(left, [data.strip_prefix("s3://lake/").unwrap()], "gc.enabled={value}");
    }
}

async fn damaged_metadata_does_not_stop_a_purge(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = location(&server, "t").await;
    write_snapshot(&server, "t", 1, &[format!("{place}/data/a.parquet")]).await;
    let commit = json!({"updates": [{"action": "set-properties", "updates": {"a": "b"}}]});
    let newest = server.post(&format!("{TABLES}/t"), commit).await.expect(200);
    put(&server, newest["metadata-location"].as_str().unwrap(), b"rubbish".to_vec()).await;
    let restarted = Server::replica_of(&server).await;
    assert!(restarted.get(&format!("{TABLES}/t")).await.error().starts_with("500 InternalServerError "));
    restarted.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    assert_eq!(run_jobs(&restarted).await, 1);
    assert_eq!(server.keys("").await, Vec::<String>::new());
}

async fn a_job_that_fails_too_often_is_kept_and_tried_again_at_the_next_start(db: Db) {
    use crate::db::jobs;
    let server = Server::start(db).await;
    let db = &server.app.db;
    let job = jobs::NewJob { kind: "no-such-kind".to_owned(), payload: "{}".to_owned(), not_before_ms: 0 };
    jobs::enqueue(db, &job).await.unwrap();
    // As after a day of failures: each is due again within an hour, and the last is not.
    let far_ms = now_ms() + 2 * 60 * 60 * 1_000;
    let mut attempts = 0;
    while jobs::parked(db).await.unwrap() == 0 {
        let leased = jobs::lease(db, Uuid::now_v7(), far_ms, 0).await.unwrap().expect("a failed job is due again");
        assert_eq!(leased.attempts, attempts + 1);
        jobs::release(db, &leased, 0).await.unwrap();
        assert_eq!(run_jobs(&server).await, 1);
        attempts += 1;
    }
    assert_eq!(attempts, 32);
    assert!(jobs::lease(db, Uuid::now_v7(), far_ms, 0).await.unwrap().is_none());

    // Beside it one that would succeed, were it tried: its table is gone already.
    jobs::enqueue(db, &order_of_a_table_that_is_gone().job(0)).await.unwrap();
    let leased = jobs::lease(db, Uuid::now_v7(), now_ms(), 0).await.unwrap().expect("due");
    jobs::park(db, &leased, "a test").await.unwrap();
    assert_eq!(jobs::parked(db).await.unwrap(), 2);

    let stop = CancellationToken::new();
    let worker = crate::jobs::spawn(server.app.clone(), stop.clone());
    // Each is tried once: the one is done, the other parked again.
    let tried = async {
        while jobs::parked(db).await.unwrap() != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), tried).await.unwrap();
    stop.cancel();
    worker.await.unwrap();
}

/// Succeeds when it is tried.
fn order_of_a_table_that_is_gone() -> Order {
    let location = format!("{LOCATION}/gone");
    let metadata_location = format!("{location}/metadata/v1.metadata.json");
    Order { warehouse: WAREHOUSE.to_owned(), table: Uuid::now_v7(), location, metadata_location }
}

async fn a_job_that_takes_its_worker_down_is_parked_untried(db: Db) {
    use crate::db::jobs;
    let server = Server::start(db).await;
    let db = &server.app.db;
    jobs::enqueue(db, &order_of_a_table_that_is_gone().job(0)).await.unwrap();
    for _ in 0..32 {
        // A lease that nobody lives to end.
        jobs::lease(db, Uuid::now_v7(), 0, 0).await.unwrap().expect("due");
    }
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(jobs::parked(db).await.unwrap(), 1);
    jobs::retry_parked(db, 0, 31).await.unwrap();
    assert_eq!(run_jobs(&server).await, 1);
    assert_eq!(jobs::parked(db).await.unwrap(), 0, "done when tried");
}

async fn the_worker_is_woken_by_a_purge_and_ends_when_told(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let stop = CancellationToken::new();
    let worker = crate::jobs::spawn(server.app.clone(), stop.clone());
    server.create_table("n", "t").await;
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
    let gone = async {
        while !server.keys("").await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), gone).await.unwrap();
    stop.cancel();
    tokio::time::timeout(std::time::Duration::from_secs(10), worker).await.unwrap().unwrap();
}

async fn the_reaper_takes_only_our_own_old_and_unrecorded_files(db: Db) {
    const HOUR_MS: i64 = 3_600_000;
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "kept").await;
    server.create_table("n", "dropped").await;
    let place = location(&server, "kept").await;
    server.delete(&format!("{TABLES}/dropped")).await.expect(204);
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let id = Uuid::now_v7();
    let orphan = format!("{place}/metadata/00001-{id}.metadata.json");
    files::write(&warehouse, &orphan, bytes::Bytes::from_static(b"{}")).await.unwrap();
    // The same name without our mark, our mark under another name, and an id that tells no time.
    put(&server, &format!("{place}/other/00001-{id}.metadata.json"), b"{}".to_vec()).await;
    for name in ["v1.metadata.json".to_owned(), format!("00001-{}.metadata.json", Uuid::new_v4())] {
        files::write(&warehouse, &format!("{place}/metadata/{name}"), bytes::Bytes::from_static(b"{}")).await.unwrap();
    }
    let mut marked_by_another = Attributes::new();
    marked_by_another.insert(Attribute::Metadata(files::MARK.into()), "someone".into());
    let options = PutOptions { attributes: marked_by_another, ..PutOptions::default() };
    let key = format!("{}/third/00001-{id}.metadata.json", place.strip_prefix("s3://lake/").unwrap());
    server.objects().put_opts(&Path::parse(key).unwrap(), "{}".into(), options).await.unwrap();

    let before = server.keys("").await;
    assert_eq!(before.len(), 7);
    assert_eq!(reap::run(&server.app, now_ms() + HOUR_MS - 60_000).await.unwrap(), 0);
    assert_eq!(reap::run(&server.app, now_ms() + HOUR_MS + 60_000).await.unwrap(), 1);
    let after = server.keys("").await;
    let orphan = orphan.strip_prefix("s3://lake/").unwrap();
    assert_eq!(before.iter().filter(|key| !after.contains(key)).collect::<Vec<_>>(), [orphan]);
}

on_both! {
    a_purge_leaves_nothing_behind,
    a_purge_reaches_no_table_that_took_the_name,
    a_purge_cut_short_starts_over,
    hostile_metadata_reaches_no_neighbour,
    broken_manifests_do_not_stop_a_purge,
    names_that_no_object_can_have_do_not_stop_a_purge,
    a_folder_that_another_table_took_over_is_left_alone,
    damaged_metadata_does_not_stop_a_purge,
    data_files_that_may_be_shared_survive_a_purge,
    a_job_that_fails_too_often_is_kept_and_tried_again_at_the_next_start,
    a_job_that_takes_its_worker_down_is_parked_untried,
    the_worker_is_woken_by_a_purge_and_ends_when_told,
    the_reaper_takes_only_our_own_old_and_unrecorded_files,
}
