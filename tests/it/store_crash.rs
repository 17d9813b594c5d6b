//! The store killed under mixed load, again and again: what was acknowledged is there, what was not is there whole or
//! not at all. `TIDEWATER_TEST_CRASH_ROUNDS` says how often (20 without it).

use crate::{
    catalog::{Answer, try_send},
    crash::{Random, content},
    database::Database,
    s3::{BUCKET, S3, elements},
    server::{Server, Setup},
};
use reqwest::Method;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

const ROUNDS: &str = "TIDEWATER_TEST_CRASH_ROUNDS";
const CLIENTS: usize = 6;
/// Each client has its own, so that it knows what they hold.
const KEYS_A_CLIENT: u64 = 8;
/// A round lives this long at the least and the most before the kill. Milliseconds.
const LIFE_MS: std::ops::Range<u64> = 50..400;
const SIZES: [usize; 4] = [1, 2_000, 64 << 10, 300_000];

/// What an object holds: enough to make its bytes again. `None`: there is none.
type Held = Option<(String, usize)>;

#[derive(Debug, Clone)]
struct Key {
    acknowledged: Held,
    /// What a request under way makes of it.
    pending: Option<(Held, Option<Conditional>)>,
}

/// What one client knows. Kept here: the server's process has no part in it.
#[derive(Default)]
struct Ledger {
    keys: BTreeMap<String, Key>,
    acknowledged: usize,
    number: u64,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Put,
    PutIfUnchanged,
    Multipart,
    Copy,
    Delete,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_killed_under_mixed_load_keeps_what_it_acknowledged() {
    let rounds: u64 = std::env::var(ROUNDS).map_or(20, |rounds| rounds.parse().expect("a number of rounds"));
    let mut random = Random::seeded();
    let mut server = Setup::on(Database::Sqlite).await.start().await;
    let ledgers: Vec<_> = (0..CLIENTS).map(|_| Arc::new(Mutex::new(Ledger::default()))).collect();
    for round in 0..rounds {
        let clients = ledgers.iter().enumerate().map(|(client, ledger)| {
            let (s3, ledger) = (S3::root(&server), Arc::clone(ledger));
            let mut random = Random::seeded_with(random.in_range(1..u64::MAX));
            tokio::spawn(async move { while change(&s3, client, &ledger, &mut random).await {} })
        });
        let clients: Vec<_> = clients.collect();
        tokio::time::sleep(Duration::from_millis(random.in_range(LIFE_MS))).await;
        server.kill();
        for client in clients {
            client.await.expect("a client ends with the server");
        }
        server.restart().await;
        check(&server, &ledgers, round).await;
    }
    let acknowledged: usize = ledgers.iter().map(|ledger| ledger.lock().unwrap().acknowledged).sum();
    eprintln!("{acknowledged} changes acknowledged in {rounds} rounds");
    assert!(acknowledged as u64 > rounds * CLIENTS as u64, "{acknowledged} changes: hardly a load");
    let verified = server.command_on_folder("store").arg("verify").output().expect("the program runs");
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success(), "{said}");
    assert!(!said.contains("belong to no object"), "nothing is left over: {said}");
}

/// One change of one key; `false` once the server is gone.
async fn change(s3: &S3, client: usize, ledger: &Mutex<Ledger>, random: &mut Random) -> bool {
    let key = format!("mix/{client}/{}", random.in_range(0..KEYS_A_CLIENT));
    let kinds = [Change::Put, Change::PutIfUnchanged, Change::Multipart, Change::Copy, Change::Delete];
    let kind = kinds[random.in_range(0..kinds.len() as u64) as usize];
    let size = SIZES[random.in_range(0..SIZES.len() as u64) as usize];
    let path = format!("/{BUCKET}/{key}");
    let conditional = match kind {
        Change::PutIfUnchanged => match Conditional::of(s3, &path).await {
            Ok(conditional) => Some(conditional),
            Err(_) => return false,
        },
        _ => None,
    };
    let (held, source) = {
        let mut ledger = ledger.lock().unwrap();
        ledger.number += 1;
        let seed = format!("{key} {} ", ledger.number);
        let source = ledger.keys.iter().find(|(of, state)| **of != key && state.acknowledged.is_some());
        let source = source.map(|(of, state)| (of.clone(), state.acknowledged.clone()));
        let held = match (kind, &source) {
            (Change::Delete, _) => None,
            (Change::Copy, Some((_, held))) => held.clone(),
            _ => Some((seed, size)),
        };
        let state = ledger.keys.entry(key.clone()).or_insert(Key { acknowledged: None, pending: None });
        state.pending = Some((held.clone(), conditional.clone()));
        (held, source.map(|(of, _)| of))
    };
    let bytes = held.as_ref().map(|(seed, size)| content(seed, *size)).unwrap_or_default();
    let answer = match (kind, source) {
        (Change::Delete, _) => try_send(s3.request(Method::DELETE, &path, &[], &[], "")).await,
        (Change::Multipart, _) => multipart(s3, &path, bytes).await,
        (Change::Copy, Some(source)) => {
            let source = format!("{BUCKET}/{source}");
            try_send(s3.request(Method::PUT, &path, &[], &[("x-amz-copy-source", &source)], "")).await
        }
        (Change::Put | Change::PutIfUnchanged | Change::Copy, _) => match &conditional {
            Some(conditional) => conditional.put(s3, &path, bytes).await,
            None => try_send(s3.request(Method::PUT, &path, &[], &[], bytes)).await,
        },
    };
    let Ok(answer) = answer else { return false };
    assert!(matches!(answer.status, 200 | 204), "{kind:?} {key}: {} {}", answer.status, answer.text());
    let mut ledger = ledger.lock().unwrap();
    ledger.acknowledged += 1;
    ledger.keys.insert(key, Key { acknowledged: held, pending: None });
    true
}

/// A request that is done only where the object is still what it was.
#[derive(Debug, Clone)]
struct Conditional {
    /// `None`: there is no object.
    etag: Option<String>,
    /// The id of the call, the same when it is sent again.
    call: String,
}

impl Conditional {
    async fn of(s3: &S3, path: &str) -> reqwest::Result<Conditional> {
        let head = try_send(s3.request(Method::HEAD, path, &[], &[], "")).await?;
        let etag = head.headers.get("etag").map(|etag| etag.to_str().expect("text").to_owned());
        Ok(Conditional { etag, call: uuid::Uuid::new_v4().to_string() })
    }

    async fn put(&self, s3: &S3, path: &str, bytes: Vec<u8>) -> reqwest::Result<Answer> {
        let condition = match &self.etag {
            Some(etag) => ("if-match", etag.as_str()),
            None => ("if-none-match", "*"),
        };
        let headers = [condition, ("amz-sdk-invocation-id", &self.call)];
        try_send(s3.request(Method::PUT, path, &[], &headers, bytes)).await
    }
}

async fn multipart(s3: &S3, path: &str, bytes: Vec<u8>) -> reqwest::Result<Answer> {
    let begun = try_send(s3.request(Method::POST, path, &[("uploads", "")], &[], "")).await?;
    let xml = begun.text();
    let id = elements(&xml, "UploadId").next().unwrap_or_else(|| panic!("an upload id: {xml}"));
    let query = [("partNumber", "1"), ("uploadId", id)];
    let part = try_send(s3.request(Method::PUT, path, &query, &[], bytes)).await?;
    assert_eq!(part.status, 200, "{}", part.text());
    let etag = part.headers["etag"].to_str().expect("text").trim_matches('"').to_owned();
    let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
    let document = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
    try_send(s3.request(Method::POST, path, &[("uploadId", id)], &[], document)).await
}

/// Every key holds what was acknowledged, or what was under way when the server was killed.
async fn check(server: &Server, ledgers: &[Arc<Mutex<Ledger>>], round: u64) {
    let s3 = S3::root(server);
    let mut expected = Vec::new();
    for ledger in ledgers {
        let keys = ledger.lock().unwrap().keys.clone();
        for (key, state) in keys {
            let what = format!("round {round}, {key}: {state:?}");
            let held = found(&s3, &key, &state).await.unwrap_or_else(|| panic!("{what}: it is neither"));
            if let Some((Some((seed, size)), Some(conditional))) = &state.pending
                && held.as_ref().is_some_and(|held| held.0 == *seed)
            {
                // It was done: sent again, as its client would, it is answered and not refused.
                let bytes = content(seed, *size);
                let again = conditional.put(&s3, &format!("/{BUCKET}/{key}"), bytes).await;
                assert_eq!(again.expect("an answer").status, 200, "{what}");
            }
            expected.extend(held.is_some().then(|| key.clone()));
            ledger.lock().unwrap().keys.insert(key, Key { acknowledged: held, pending: None });
        }
    }
    expected.sort();
    assert_eq!(s3.keys(BUCKET, "mix/").await, expected, "round {round}: the listing shows what is there");
    for upload in uploads(&s3).await {
        let (key, id) = upload;
        let aborted = s3.send(Method::DELETE, &format!("/{BUCKET}/{key}"), &[("uploadId", &id)], &[], "").await;
        assert_eq!(aborted.status, 204, "{}", aborted.text());
    }
}

/// Which of the two it is.
async fn found(s3: &S3, key: &str, state: &Key) -> Option<Held> {
    let answer = s3.get(BUCKET, key).await;
    let holds = |held: &Held| match held {
        None => answer.status == 404,
        Some((seed, size)) => answer.status == 200 && answer.body == content(seed, *size),
    };
    let pending = state.pending.as_ref().map(|(held, _)| held);
    [Some(&state.acknowledged), pending].into_iter().flatten().find(|held| holds(held)).cloned()
}

/// Those that the kill cut off.
async fn uploads(s3: &S3) -> Vec<(String, String)> {
    let listed = s3.send(Method::GET, &format!("/{BUCKET}"), &[("uploads", "")], &[], "").await;
    let xml = listed.text();
    let uploads = elements(&xml, "Upload").map(|upload| {
        let text = |name| elements(upload, name).next().unwrap_or_default().to_owned();
        (text("Key"), text("UploadId"))
    });
    uploads.collect()
}
