use super::*;
use crate::{
    catalog::reports::{self, Filter, ReportRow, ReportsKind},
    db,
    iceberg::report::{KEPT_BYTES_MAX, Report},
};
use expect_test::expect;

const SCAN: &str = include_str!("../../../tests/data/metrics/scan-report.json");
const COMMIT: &str = include_str!("../../../tests/data/metrics/commit-report.json");
const METRICS: &str = "/lakehouse/namespaces/n/tables/t/metrics";
const DAY_MS: i64 = 86_400_000;

async fn report(server: &Server, body: impl Into<Body>) -> Reply {
    server.send("POST", METRICS, &[], body).await
}

async fn list(server: &Server, kind: ReportsKind, filter: Filter) -> Vec<ReportRow> {
    let caller = server.app.auth.verify_bearer(&server.token, now_ms()).await.unwrap();
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    reports::list(&server.app, &caller, &warehouse, kind, &Filter { limit: 1_000, ..filter }).await.unwrap()
}

async fn scans(server: &Server) -> Vec<ReportRow> {
    list(server, ReportsKind::Scan, Filter::default()).await
}

async fn server_with_table(db: Db, change: impl FnOnce(&mut Settings)) -> Server {
    let server = Server::start_with(db, change).await;
    server.post("/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    server.create_table("n", "t").await;
    server
}

async fn reports_are_readable_once_acknowledged(db: Db) {
    let server = server_with_table(db, |_| {}).await;
    for body in [SCAN, COMMIT] {
        let reply = report(&server, body).await;
        assert_eq!((reply.status.as_u16(), reply.bytes.len()), (204, 0));
    }
    for (kind, body) in [(ReportsKind::Scan, SCAN), (ReportsKind::Commit, COMMIT)] {
        let rows = list(&server, kind, Filter::default()).await;
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.namespace.as_str(), row.name.as_str(), row.principal.as_str()), (r#"["n"]"#, "t", "root"));
        let kept: Value = serde_json::from_str(&row.report).unwrap();
        assert_eq!(kept["metrics"], serde_json::from_str::<Value>(body).unwrap()["metrics"]);
    }
}

async fn reports_of_another_shape_are_refused_and_none_is_kept(db: Db) {
    let server = server_with_table(db, |_| {}).await;
    for body in ["", "{", "null", "[]", "{}", r#"{"report-type":"tide"}"#, r#"{"report-type":"scan-report"}"#] {
        let reply = report(&server, body).await;
        assert!(reply.error().starts_with("400 BadRequestException "), "{body}: {}", reply.error());
    }
    let reply = report(&server, " ".repeat(5 << 20)).await;
    expect!["413 BadRequestException the request's body is larger than 1048576 bytes"].assert_eq(&reply.error());
    let missing = server.send("POST", "/lakehouse/namespaces/n/tables/u/metrics", &[], SCAN).await;
    expect!["404 NoSuchTableException Table does not exist: n.u"].assert_eq(&missing.error());
    let missing = server.send("POST", "/lakehouse/namespaces/no/tables/t/metrics", &[], SCAN).await;
    expect!["404 NoSuchTableException Table does not exist: no.t"].assert_eq(&missing.error());
    assert_eq!(scans(&server).await, []);
}

async fn long_reports_are_kept_short(db: Db) {
    let server = server_with_table(db, |_| {}).await;
    let mut long: Value = serde_json::from_str(SCAN).unwrap();
    long["projected-field-names"] = json!(vec!["a\u{0}\u{1f600}"; 20_000]);
    report(&server, long.to_string()).await.expect(204);
    let rows = scans(&server).await;
    assert!(rows[0].report.len() <= KEPT_BYTES_MAX);
    let kept: Value = serde_json::from_str(&rows[0].report).unwrap();
    assert_eq!(kept["left-out"], json!(["projected-field-names"]));
}

async fn text_of_clients_stays_text(db: Db) {
    let server = server_with_table(db, |_| {}).await;
    let mut odd: Value = serde_json::from_str(SCAN).unwrap();
    odd["table-name"] = json!("'); drop table metrics_reports; -- \u{0}%_");
    odd["metadata"] = json!({"\u{0}": "\u{0}'\"\\"});
    report(&server, odd.to_string()).await.expect(204);
    let kept: Value = serde_json::from_str(&scans(&server).await[0].report).unwrap();
    assert_eq!((&kept["table-name"], &kept["metadata"]), (&odd["table-name"], &odd["metadata"]));
}

async fn reports_follow_their_table_and_outlive_it(db: Db) {
    let server = server_with_table(db, |_| {}).await;
    server.create_table("n", "u").await;
    report(&server, SCAN).await.expect(204);
    let of = async |name: &str| {
        let table = Some(path::table("n", name).unwrap());
        list(&server, ReportsKind::Scan, Filter { table, ..Filter::default() }).await.len()
    };
    assert_eq!((of("t").await, of("u").await), (1, 0));
    let rename =
        json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "renamed"}});
    server.post("/tables/rename", rename).await.expect(204);
    assert_eq!(of("renamed").await, 1);
    server.delete("/namespaces/n/tables/renamed").await.expect(204);
    server.delete("/namespaces/n/tables/u").await.expect(204);
    server.delete("/namespaces/n").await.expect(204);
    assert_eq!(scans(&server).await.len(), 1);
}

async fn a_full_inbox_drops_reports_and_refuses_none(db: Db) {
    let server = server_with_table(db.clone(), |_| {}).await;
    let caller = server.app.auth.verify_bearer(&server.token, now_ms()).await.unwrap();
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let parsed = || Report::parse(SCAN.as_bytes()).unwrap();
    let ident = path::table("n", "t").unwrap();
    for _ in 0..reports::WAITING_MAX + 10 {
        reports::record(&server.app, &caller, &warehouse, &ident, parsed()).await.unwrap();
    }
    report(&server, SCAN).await.expect(204);
    assert_eq!(list(&server, ReportsKind::Scan, Filter::default()).await.len(), 1_000);
    let count = async || {
        let owner = db::reports::Owner::Warehouse(warehouse.id);
        let beyond = |keep| db::reports::newest_beyond(&db, owner, ReportsKind::Scan, keep);
        let bound = u32::try_from(reports::WAITING_MAX).unwrap();
        (beyond(bound - 1).await.unwrap().is_some(), beyond(bound).await.unwrap().is_some())
    };
    assert_eq!(count().await, (true, false), "what found no room was dropped, all else is stored");
}

async fn the_oldest_reports_are_forgotten_first(db: Db) {
    // A tenth of these per table: two.
    let server = server_with_table(db, |settings| settings.metrics_reports_max = 20).await;
    for n in 0..6 {
        let numbered = SCAN.replace("\"schema-id\": 0", &format!("\"schema-id\": {n}"));
        report(&server, numbered).await.expect(204);
        // Ids of one millisecond are in no order.
        let now = now_ms();
        while now_ms() == now {
            tokio::task::yield_now().await;
        }
    }
    report(&server, COMMIT).await.expect(204);
    assert_eq!(scans(&server).await.len(), 6);
    assert_eq!(reports::prune(&server.app, now_ms()).await.unwrap(), 4);
    let kept = scans(&server).await;
    let schema = |row: &ReportRow| serde_json::from_str::<Value>(&row.report).unwrap()["schema-id"].clone();
    assert_eq!(kept.iter().map(schema).collect::<Vec<_>>(), [5, 4]);
    assert_eq!(list(&server, ReportsKind::Commit, Filter::default()).await.len(), 1, "kinds are counted apart");
    assert_eq!(reports::prune(&server.app, now_ms() + 7 * DAY_MS - 60_000).await.unwrap(), 0);
    assert_eq!(reports::prune(&server.app, now_ms() + 7 * DAY_MS + 60_000).await.unwrap(), 3);
    assert_eq!(scans(&server).await, []);
}

async fn no_report_is_kept_where_none_is_wanted(db: Db) {
    let server = server_with_table(db, |settings| settings.metrics_reports_days = 0).await;
    report(&server, SCAN).await.expect(204);
    assert_eq!(report(&server, "{}").await.status, 400);
    assert_eq!(scans(&server).await, []);
}

async fn the_job_stores_what_came(db: Db) {
    let server = server_with_table(db.clone(), |_| {}).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let worker = crate::jobs::spawn(server.app.clone(), stop.clone());
    report(&server, SCAN).await.expect(204);
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let stored = async || {
        let owner = db::reports::Owner::Warehouse(warehouse.id);
        db::reports::newest_beyond(&db, owner, ReportsKind::Scan, 0).await.unwrap().is_some()
    };
    let stores = async {
        while !stored().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), stores).await.unwrap();
    // One that came just before the end is not lost.
    report(&server, COMMIT).await.expect(204);
    stop.cancel();
    worker.await.unwrap();
    let owner = db::reports::Owner::Warehouse(warehouse.id);
    assert!(db::reports::newest_beyond(&db, owner, ReportsKind::Commit, 0).await.unwrap().is_some());
}

on_both! {
    reports_are_readable_once_acknowledged,
    reports_of_another_shape_are_refused_and_none_is_kept,
    long_reports_are_kept_short,
    text_of_clients_stays_text,
    reports_follow_their_table_and_outlive_it,
    a_full_inbox_drops_reports_and_refuses_none,
    the_oldest_reports_are_forgotten_first,
    no_report_is_kept_where_none_is_wanted,
    the_job_stores_what_came,
}
