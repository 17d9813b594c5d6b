//! Killed under load, again and again: everything acknowledged is there afterwards, whole.

use crate::{
    catalog::{Catalog, try_send},
    database::Database,
    s3::{BUCKET, S3},
    server::Server,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
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
    /// Metadata files of this round's commits, with their table.
    files: Mutex<Vec<(usize, String)>>,
    /// Objects not verified yet: key and size in bytes.
    objects: Mutex<Vec<(String, usize)>>,
    next: AtomicU64,
}

async fn nothing_acknowledged_is_lost_when_killed(database: Database) {
    let mut random = Random::seeded();
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let mut heads = Vec::new();
    for table in 0..TABLES {
        heads.push(location(&catalog.create_table("ns", &format!("t{table}")).await));
    }
    let acknowledged = Arc::new(Acknowledged::default());
    let (mut kept, mut commits) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let load = start_load(&server, &acknowledged).await;
        tokio::time::sleep(Duration::from_millis(random.in_range(LIFE_MS))).await;
        server.kill();
        for task in load {
            task.await.expect("the load ends with the server");
        }
        server.restart().await;
        let files = std::mem::take(&mut *acknowledged.files.lock().unwrap());
        commits += files.len();
        check_tables(&server, &acknowledged, &files, &mut heads).await;
        let objects = std::mem::take(&mut *acknowledged.objects.lock().unwrap());
        check_objects(&server, &objects).await;
        kept.extend(objects);
    }
    // What one round left whole, no later crash may have hurt.
    check_objects(&server, &kept).await;
    eprintln!("{commits} commits and {} objects acknowledged in {ROUNDS} rounds", kept.len());
    let least = ROUNDS as usize;
    assert!(commits > least && kept.len() > least, "{commits} commits, {} objects: hardly a load", kept.len());
}

#[tokio::test]
async fn a_conditional_put_sent_again_after_a_restart_gets_the_first_answer() {
    let mut server = Server::start(Database::Sqlite).await;
    let put = async |server: &Server, call: &str| {
        let headers = [("if-none-match", "*"), ("amz-sdk-invocation-id", call)];
        S3::root(server).send(Method::PUT, &format!("/{BUCKET}/once"), &[], &headers, "bytes").await
    };
    let first = put(&server, "a").await;
    assert_eq!(first.status, 200, "{}", first.text());
    server.kill();
    server.restart().await;
    let again = put(&server, "a").await;
    assert_eq!((again.status, &again.headers["etag"]), (200, &first.headers["etag"]));
    put(&server, "b").await.s3_error(412, "PreconditionFailed");
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
    acknowledged.files.lock().unwrap().push((table, location(&answer.json())));
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
pub fn content(key: &str, size: usize) -> Vec<u8> {
    key.bytes().cycle().take(size).collect()
}

/// Every table loads, holds what was acknowledged, and leads back to where the round began.
async fn check_tables(server: &Server, acknowledged: &Acknowledged, files: &[(usize, String)], heads: &mut [String]) {
    let (catalog, s3) = (Catalog::login(server).await, S3::root(server));
    let commits = acknowledged.commits.lock().unwrap().clone();
    for (table, head) in heads.iter_mut().enumerate() {
        let loaded = catalog.load_table("ns", &format!("t{table}")).await.ok();
        for ((_, writer), value) in commits.iter().filter(|((of, _), _)| *of == table) {
            let found = loaded["metadata"]["properties"][format!("writer-{writer}")].as_str();
            let found: u64 = found.expect("an acknowledged commit is there").parse().expect("a number");
            // One more may have landed whose answer was lost.
            assert!(found >= *value, "table {table}, writer {writer}: {found} after {value} was acknowledged");
        }
        let acknowledged: BTreeSet<&String> =
            files.iter().filter(|(of, _)| *of == table).map(|(_, file)| file).collect();
        let new_head = location(&loaded);
        let chain = walk_back(&s3, &new_head, head, acknowledged.len() + WRITERS_A_TABLE).await;
        let missing: Vec<_> = acknowledged.into_iter().filter(|file| !chain.contains(file)).collect();
        assert!(missing.is_empty(), "table {table}: acknowledged, but not in the history: {missing:?}");
        *head = new_head;
    }
}

/// The files from `from` back to `to`, without `to`; each names the one before last in its log. A round adds at most
/// `files_max`: what was acknowledged, and of each writer one commit whose answer was lost.
async fn walk_back(s3: &S3, from: &str, to: &str, files_max: usize) -> Vec<String> {
    let (mut chain, mut at) = (Vec::new(), from.to_owned());
    while at != to {
        assert!(chain.len() < files_max, "more than {files_max} files between {from} and {to}");
        let file = s3.get(BUCKET, at.strip_prefix(&format!("s3://{BUCKET}/")).expect("in the warehouse")).await;
        assert_eq!(file.status, 200, "{at} is in the history");
        let metadata = file.json();
        let before = metadata["metadata-log"].as_array().and_then(|log| log.last()).expect("one came before");
        let before = before["metadata-file"].as_str().expect("a file").to_owned();
        chain.push(std::mem::replace(&mut at, before));
    }
    chain
}

async fn check_objects(server: &Server, objects: &[(String, usize)]) {
    let s3 = S3::root(server);
    for (key, size) in objects {
        let answer = s3.get(BUCKET, key).await;
        assert_eq!(answer.status, 200, "{key} was acknowledged");
        assert!(answer.body == content(key, *size), "{key} is whole");
    }
}

fn location(answer: &Value) -> String {
    answer["metadata-location"].as_str().expect("a metadata location").to_owned()
}

/// A small generator that prints its seed; `TIDEWATER_TEST_SEED` replays one.
pub struct Random(u64);

impl Random {
    pub fn seeded() -> Random {
        let given = std::env::var("TIDEWATER_TEST_SEED").ok();
        let seed = given.map_or_else(|| uuid::Uuid::new_v4().as_u64_pair().1, |text| text.parse().expect("a number"));
        eprintln!("TIDEWATER_TEST_SEED={seed}");
        Random(seed | 1)
    }

    pub fn seeded_with(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn in_range(&mut self, range: std::ops::Range<u64>) -> u64 {
        // xorshift64 (Marsaglia): never zero from a seed that is not.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + self.0 % (range.end - range.start)
    }
}
