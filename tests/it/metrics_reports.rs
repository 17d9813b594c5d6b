//! Reports that engines send, and what our API tells of them.

use crate::{
    catalog::{Answer, Catalog},
    database::Database,
    server::{Server, Setup},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidewater::app::now_ms;

on_both_databases! {
    reports_tell_who_did_what_at_what_cost,
    reports_are_found_by_table_and_time_in_pages,
    reports_survive_a_stop_and_are_not_logged,
    bad_reports_and_bad_questions_are_refused,
    reports_do_not_hold_up_commits,
}

const SCAN: &str = include_str!("../data/metrics/scan-report.json");
const COMMIT: &str = include_str!("../data/metrics/commit-report.json");
const SCANS: &str = "/api/v1/warehouses/lakehouse/scan-reports";
const COMMITS: &str = "/api/v1/warehouses/lakehouse/commit-reports";

async fn start(database: Database) -> (Server, Catalog) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    (server, catalog)
}

async fn report(catalog: &Catalog, table: &str, body: impl Into<reqwest::Body>) -> Answer {
    catalog.post_bytes(&format!("/v1/namespaces/ns/tables/{table}/metrics"), body).await
}

/// A scan report of that schema id.
fn numbered(n: u64) -> String {
    SCAN.replace("\"schema-id\": 0", &format!("\"schema-id\": {n}"))
}

async fn reports_tell_who_did_what_at_what_cost(database: Database) {
    let (_server, catalog) = start(database).await;
    let before_ms = now_ms();
    for body in [SCAN, COMMIT] {
        let answer = report(&catalog, "t", body).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
    }
    let listed = catalog.get(SCANS).await.ok();
    assert_eq!(listed["next-page-token"], Value::Null);
    let [scan] = listed["scan-reports"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    let sent: Value = serde_json::from_str(SCAN).unwrap();
    let received_at_ms = scan["received-at-ms"].as_i64().unwrap();
    assert!((before_ms - 1..=now_ms()).contains(&received_at_ms));
    let mut expected = json!({
        "report-id": scan["report-id"], "received-at-ms": received_at_ms, "principal": "root",
        "namespace": ["ns"], "table": "t", "snapshot-id": sent["snapshot-id"], "schema-id": 0, "filter": true,
        "projected-field-ids": [1, 2, 3], "projected-field-names": ["vendor_id", "trip_distance", "fare_amount"],
        "data-files": {"scanned": 1, "skipped": null}, "delete-files": {"scanned": 0, "skipped": null},
        "data-manifests": {"scanned": 1, "skipped": 0}, "delete-manifests": {"scanned": null, "skipped": null},
        "data-bytes": 10, "planning-duration-ns": 2_644_235_116_i64,
        "metrics": sent["metrics"], "metadata": {"engine": "go"}, "left-out": [],
    });
    assert_eq!(*scan, expected);

    let listed = catalog.get(COMMITS).await.ok();
    let commit = &listed["commit-reports"][0];
    let sent: Value = serde_json::from_str(COMMIT).unwrap();
    expected = json!({
        "report-id": commit["report-id"], "received-at-ms": commit["received-at-ms"], "principal": "root",
        "namespace": ["ns"], "table": "t", "snapshot-id": sent["snapshot-id"], "sequence-number": 2,
        "operation": "append", "attempts": 1, "duration-ns": 1_234_567_890,
        "metrics": sent["metrics"], "metadata": {"engine": "go"}, "left-out": [],
    });
    assert_eq!(*commit, expected);
}

async fn reports_are_found_by_table_and_time_in_pages(database: Database) {
    let (_server, catalog) = start(database).await;
    catalog.create_table("ns", "u").await;
    for n in 0..5 {
        assert_eq!(report(&catalog, "t", numbered(n)).await.status, 204);
    }
    assert_eq!(report(&catalog, "u", numbered(9)).await.status, 204);
    let (mut schemas, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = catalog.get(&format!("{SCANS}?namespace=ns&table=t&page-size=2{token}")).await.ok();
        let reports = page["scan-reports"].as_array().unwrap();
        schemas.extend(reports.iter().map(|report| report["schema-id"].as_u64().unwrap()));
        pages += 1;
        match page["next-page-token"].as_str() {
            Some(next) => token = format!("&page-token={next}"),
            None => break,
        }
    }
    assert_eq!((schemas.len(), pages), (5, 3));
    assert_eq!(schemas.into_iter().collect::<BTreeSet<_>>(), (0..5).collect());

    let all = catalog.get(SCANS).await.ok();
    let times = all["scan-reports"].as_array().unwrap().iter().map(|report| report["received-at-ms"].as_i64().unwrap());
    let times = times.collect::<Vec<_>>();
    assert!(times.len() == 6 && times.is_sorted_by(|a, b| a >= b), "newest first: {times:?}");
    let count = async |query: String| {
        let page = catalog.get(&format!("{SCANS}?{query}")).await.ok();
        page["scan-reports"].as_array().unwrap().len()
    };
    let (oldest, newest) = (times[5], times[0]);
    assert_eq!(count(format!("from-ms={oldest}&until-ms={}", newest + 1)).await, 6);
    assert_eq!(count(format!("from-ms={}", newest + 1)).await, 0);
    assert_eq!(count(format!("until-ms={oldest}")).await, 0);
    assert_eq!(count("namespace=ns&table=u".to_owned()).await, 1);
}

async fn reports_survive_a_stop_and_are_not_logged(database: Database) {
    const WORD: &str = "wordofaclient";
    let mut server = Setup::on(database).await.flag("log", "info,tidewater=debug").start().await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let mut sent: Value = serde_json::from_str(SCAN).unwrap();
    sent["filter"] = json!({"type": "eq", "term": "name", "value": WORD});
    assert_eq!(report(&catalog, "t", sent.to_string()).await.status, 204);
    server.terminate();
    server.wait_for_exit().await;
    server.restart().await;
    let listed = Catalog::login(&server).await.get(SCANS).await.ok();
    assert_eq!(listed["scan-reports"][0]["filter"], sent["filter"]);
    assert!(!server.log().contains(WORD));
}

async fn bad_reports_and_bad_questions_are_refused(database: Database) {
    let (server, catalog) = start(database).await;
    for body in ["", "{", "[]", "{}", r#"{"report-type":"tide-report"}"#, r#"{"report-type":"commit-report"}"#] {
        report(&catalog, "t", body).await.error(400, "BadRequestException");
    }
    report(&catalog, "t", " ".repeat(5 << 20)).await.error(413, "BadRequestException");
    report(&catalog, "u", SCAN).await.error(404, "NoSuchTableException");
    Catalog::anonymous(&server)
        .post_bytes("/v1/namespaces/ns/tables/t/metrics", SCAN)
        .await
        .error(401, "NotAuthorizedException");
    for query in [
        "page-size=0",
        "page-size=x",
        "page-token=x",
        "page-token=",
        "from-ms=x",
        "table=t",
        "namespace=ns",
        "namespace=ns%00&table=t",
        "namespace=%1F&table=t",
        "no-such-filter=1",
    ] {
        catalog.get(&format!("{SCANS}?{query}")).await.error(400, "BadRequestException");
    }
    catalog.get(&format!("{SCANS}?namespace=ns&table=u")).await.error(404, "NoSuchTableException");
    catalog.get("/api/v1/warehouses/no/scan-reports").await.error(404, "NoSuchWarehouseException");
    catalog.get("/api/v1/warehouses/%FF/commit-reports").await.error(400, "BadRequestException");
    Catalog::anonymous(&server).get(SCANS).await.error(401, "NotAuthorizedException");
    assert_eq!(catalog.get(SCANS).await.ok()["scan-reports"], json!([]));
}

async fn reports_do_not_hold_up_commits(database: Database) {
    let (_server, catalog) = start(database).await;
    let reporters = (0..4).map(|_| {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            for n in 0..100 {
                assert_eq!(report(&catalog, "t", numbered(n)).await.status, 204);
            }
        })
    });
    let reporters = reporters.collect::<Vec<_>>();
    for n in 0..20 {
        catalog.set_property("ns", "t", "n", &n.to_string()).await.ok();
    }
    for reporter in reporters {
        reporter.await.unwrap();
    }
    let page = catalog.get(&format!("{SCANS}?page-size=1000")).await.ok();
    assert_eq!(page["scan-reports"].as_array().unwrap().len(), 400);
}
