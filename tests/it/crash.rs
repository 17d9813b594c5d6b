//! Killed under load, again and again: everything acknowledged is there afterwards, whole.

use crate::{
    catalog::{Catalog, try_send},
    database::Database,
    s3::{BUCKET, S3},
    server::Server,
};
use reqwest::Method;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

on_both_databases! {
    nothing_acknowledged_is_lost_when_killed,
}

const ROUNDS: u32 = 30;
const TABLES: usize = 3;
const WRITERS_A_TABLE: usize = 2;
const PUTTERS: usize = 3;
const SMALL_BYTES: usize = 2_000;
const LARGE_BYTES: usize = 300_000;
/// A round lives this long at the least and the most before the kill. Milliseconds.
const LIFE_MS: std::ops::Range<u64> = 50..400;

/// What the server has said yes to.
#[derive(Default)]
struct Acknowledged {
    /// The last value by table and writer.
    commits: Mutex<BTreeMap<(usize, usize), u64>>,
    /// Objects not verified yet: key and its first byte.
    objects: Mutex<Vec<(String, usize)>>,
    next: AtomicU64,
}

async fn nothing_acknowledged_is_lost_when_killed(database: Database) {
    let mut random = Random::seeded();
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    for table in 0..TABLES {
        catalog.create_table("ns", &format!("t{table}")).await;
    }
    let acknowledged = Arc::new(Acknowledged::default());
    let mut all = 0;
    for _ in 0..ROUNDS {
        let load = start_load(&server, &acknowledged).await;
        tokio::time::sleep(Duration::from_millis(random.in_range(LIFE_MS))).await;
        server.kill();
        for task in load {
            task.await.expect("the load ends with the server");
        }
        server.restart().await;
        all += check(&server, &acknowledged).await;
    }
    assert!(all > u64::from(ROUNDS), "the load did something: {all} acknowledged");
}

async fn start_load(server: &Server, acknowledged: &Arc<Acknowledged>) -> Vec<tokio::task::JoinHandle<()>> {
    let (catalog, s3) = (Catalog::login(server).await, S3::root(server));
    let writers = (0..TABLES * WRITERS_A_TABLE).map(|writer| {
        let (catalog, acknowledged) = (catalog.clone(), Arc::clone(acknowledged));
        tokio::spawn(async move { while commit(&catalog, &acknowledged, writer % TABLES, writer).await {} })
    });
    let putters = (0..PUTTERS).map(|_| {
        let (s3, acknowledged) = (s3.clone(), Arc::clone(acknowledged));
        tokio::spawn(async move { while put(&s3, &acknowledged).await {} })
    });
    writers.chain(putters).collect()
}

/// `false` once the server is gone.
async fn commit(catalog: &Catalog, acknowledged: &Acknowledged, table: usize, writer: usize) -> bool {
    let value = acknowledged.next.fetch_add(1, Ordering::Relaxed);
    let updates = json!([{"action": "set-properties", "updates": {format!("writer-{writer}"): value.to_string()}}]);
    let body = json!({"requirements": [], "updates": updates});
    let request = catalog.request(Method::POST, &format!("/v1/namespaces/ns/tables/t{table}")).json(&body);
    let Ok(answer) = try_send(request).await else { return false };
    assert_eq!(answer.status, 200, "{}", answer.text());
    acknowledged.commits.lock().unwrap().insert((table, writer), value);
    true
}

async fn put(s3: &S3, acknowledged: &Acknowledged) -> bool {
    let number = acknowledged.next.fetch_add(1, Ordering::Relaxed);
    let key = format!("crash/{number}");
    let size = if number.is_multiple_of(2) { SMALL_BYTES } else { LARGE_BYTES };
    let request = s3.request(Method::PUT, &format!("/{BUCKET}/{key}"), &[], &[], content(&key, size));
    let Ok(answer) = try_send(request).await else { return false };
    assert_eq!(answer.status, 200, "{}", answer.text());
    acknowledged.objects.lock().unwrap().push((key, size));
    true
}

/// Bytes that differ by key, so that one object cannot pass for another.
fn content(key: &str, size: usize) -> Vec<u8> {
    key.bytes().cycle().take(size).collect()
}

/// Everything acknowledged is there; answers how much of it is new. Objects are looked at once, in the round they came.
async fn check(server: &Server, acknowledged: &Acknowledged) -> u64 {
    let (catalog, s3) = (Catalog::login(server).await, S3::root(server));
    for table in 0..TABLES {
        let loaded = catalog.load_table("ns", &format!("t{table}")).await.ok();
        let commits = acknowledged.commits.lock().unwrap().clone();
        for ((_, writer), value) in commits.iter().filter(|((of, _), _)| *of == table) {
            let found = loaded["metadata"]["properties"][format!("writer-{writer}")].as_str();
            let found: u64 = found.expect("an acknowledged commit is there").parse().expect("a number");
            // One more may have landed whose answer was lost.
            assert!(found >= *value, "table {table}, writer {writer}: {found} after {value} was acknowledged");
        }
    }
    let objects = std::mem::take(&mut *acknowledged.objects.lock().unwrap());
    for (key, size) in &objects {
        let answer = s3.get(BUCKET, key).await;
        assert_eq!(answer.status, 200, "{key} was acknowledged");
        assert!(answer.body == content(key, *size), "{key} is whole");
    }
    objects.len() as u64 + acknowledged.commits.lock().unwrap().len() as u64
}

/// A small generator that prints its seed; `TIDEWATER_TEST_SEED` replays one.
struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let given = std::env::var("TIDEWATER_TEST_SEED").ok();
        let seed = given.map_or_else(|| uuid::Uuid::new_v4().as_u64_pair().1, |text| text.parse().expect("a number"));
        eprintln!("TIDEWATER_TEST_SEED={seed}");
        Random(seed | 1)
    }

    fn in_range(&mut self, range: std::ops::Range<u64>) -> u64 {
        // xorshift64 (Marsaglia): never zero from a seed that is not.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + self.0 % (range.end - range.start)
    }
}
