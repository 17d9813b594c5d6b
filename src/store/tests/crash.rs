//! Every state a crash may leave, opened: the old objects or the new ones, never half, all that was acknowledged, and
//! no file that nothing names.
//!
//! A script of operations runs on a recorded disk. Each operation is the file calls it made, and the index before and
//! after its one commit. A crash may fall behind any of the calls; what was not synced by then is there, or is not, or
//! is there in part. The index is its file and its log: before the commit as it was, during it with any part of the
//! new frames, once acknowledged whole. (That SQLite syncs the log before it says so, `it::order` looks at.)

use super::*;
use crate::store::disk::Call;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// SQLite's log: a header, then a header and a page a frame ("The WAL file format"). Bytes.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 8192;

/// What a store shows to its clients, as text.
type Shown = String;

async fn shown(store: &Store) -> Shown {
    let mut shown = String::new();
    for (bucket, _) in store.list_buckets().await.unwrap() {
        writeln!(shown, "{}", bucket.as_str()).unwrap();
        let page = store.list(&bucket, ListQuery { limit: 1000, ..ListQuery::default() }).await.unwrap();
        for entry in page.entries {
            let key = object_key(&entry_name(&entry));
            let reading = store.read(&bucket, &key, |info| Some(0..info.size)).await.unwrap();
            let etag = reading.info.etag.clone();
            let md5 = <md5::Md5 as md5::Digest>::digest(collect(reading).await.unwrap());
            writeln!(shown, "  {} {etag} {}", key.as_str(), hex::encode(md5)).unwrap();
        }
        for OpenUploadInfo { key, id, .. } in store.list_uploads(&bucket, "", None, 1000).await.unwrap().0 {
            writeln!(shown, "  {} {id}", key.as_str()).unwrap();
            for part in store.list_parts(&bucket, &key, &id, 0, 1000).await.unwrap().0 {
                writeln!(shown, "    {} {} {}", part.number, part.size, part.etag).unwrap();
            }
        }
    }
    shown
}

/// The index's file and its log.
#[derive(Clone, PartialEq, Eq)]
struct Files {
    index: Vec<u8>,
    log: Vec<u8>,
}

impl Files {
    fn read(folder: &Path) -> Files {
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
        Files { index: read("index.db"), log: read("index.db-wal") }
    }

    fn write(&self, folder: &Path) {
        std::fs::write(folder.join("index.db"), &self.index).unwrap();
        std::fs::write(folder.join("index.db-wal"), &self.log).unwrap();
    }
}

/// An operation that was acknowledged.
struct Done {
    name: &'static str,
    calls: Vec<Call>,
    before: Files,
    after: Files,
    shown_before: Shown,
    shown_after: Shown,
}

/// Runs operations and records them.
struct Recorder {
    fixture: Fixture,
    done: Vec<Done>,
}

impl Recorder {
    async fn run<T>(&mut self, name: &'static str, operation: impl AsyncFnOnce(&Fixture) -> Result<T>) -> T {
        let folder = self.fixture.folder.path();
        let (before, shown_before) = (Files::read(folder), shown(&self.fixture.store).await);
        self.fixture.faults.clear();
        let result = operation(&self.fixture).await.unwrap();
        self.settle().await;
        let calls = self.fixture.faults.calls();
        let changes = |call: &Call| {
            !matches!(call, Call::Room | Call::Open(_) | Call::OpenFolder(_) | Call::Read(_) | Call::List(_))
        };
        let calls = calls.into_iter().filter(changes).collect();
        let (after, shown_after) = (Files::read(folder), shown(&self.fixture.store).await);
        assert!(after.index == before.index && after.log.starts_with(&before.log), "{name} made more than one commit");
        self.done.push(Done { name, calls, before, after, shown_before, shown_after });
        result
    }

    /// Waits until the reaper has removed what nothing needs.
    async fn settle(&self) {
        let needed = "select count(*) from bodies as body where file is not null and refs > 0 and not exists (
                          select 1 from body_parts as part join bodies as whole on whole.id = part.body
                          where part.piece = body.id and whole.refs = 0)";
        let needed = self
            .fixture
            .store
            .0
            .index
            .look_up(move |index| Ok(index.query_row(needed, [], |row| row.get::<_, i64>(0))?));
        self.fixture.wait_for_files(needed.await.unwrap() as usize).await;
    }

    async fn put(&mut self, name: &'static str, key: &str, bytes: Vec<u8>) {
        self.run(name, async |fixture| fixture.put(key, &bytes).await).await;
    }

    async fn copy(&mut self, name: &'static str, from: &str, to: &str) {
        let (from, to) = (object_key(from), object_key(to));
        let copy = async |fixture: &Fixture| {
            let (from, to) = ((&fixture.bucket, &from), (&fixture.bucket, &to));
            fixture.store.copy(from, to, None, |_| true, Condition::None, 1).await
        };
        self.run(name, copy).await;
    }

    async fn delete(&mut self, name: &'static str, key: &str) {
        self.run(name, async |fixture| fixture.delete(key).await).await;
    }

    async fn create_upload(&mut self, bucket: &BucketName, key: &str) -> String {
        let key = object_key(key);
        let create = async |fixture: &Fixture| fixture.store.create_upload(bucket, &key, NewUpload::default(), 1).await;
        self.run("create upload", create).await
    }

    async fn part(&mut self, bucket: &BucketName, key: &str, id: &str, number: u32, bytes: Vec<u8>) -> CompletedPart {
        let key = object_key(key);
        let put = async |fixture: &Fixture| {
            let sealed = fixture.sealed(&bytes).await?;
            fixture.store.publish_part(bucket, &key, id, number, sealed, 1).await
        };
        let etag = self.run("upload part", put).await.etag;
        CompletedPart { number, etag, checksum: None }
    }
}

/// Every kind of change, over objects of every kind.
async fn script() -> Vec<Done> {
    let fixture = Fixture::within(scratch()).await;
    let bucket = fixture.bucket.clone();
    let mut recorder = Recorder { fixture, done: Vec::new() };
    let other = bucket_name("other");
    recorder.run("create bucket", async |fixture| fixture.store.create_bucket(&other, 1).await).await;
    recorder.put("put small", "a", pattern(1000, 1)).await;
    recorder.put("put large", "b", pattern(LARGE, 2)).await;
    recorder.put("small over small", "a", pattern(2000, 3)).await;
    recorder.put("large over small", "a", pattern(MEDIUM, 4)).await;
    recorder.put("large over large", "b", pattern(MEDIUM, 5)).await;
    recorder.copy("copy large", "b", "c").await;
    recorder.put("small over large that is shared", "b", pattern(10, 6)).await;
    recorder.copy("copy small over large", "b", "a").await;
    recorder.delete("delete large", "c").await;
    recorder.delete("delete small", "b").await;
    let terms = Terms::new(Condition::Absent, Some(Attempt { caller: "ann".into(), id: "1".into() }));
    let conditional = async |fixture: &Fixture| {
        let sealed = fixture.sealed(&pattern(MEDIUM, 7)).await?;
        fixture.store.publish(&bucket, &object_key("d"), sealed, ObjectHeaders::default(), terms, 1).await
    };
    recorder.run("conditional put", conditional).await;

    let id = recorder.create_upload(&bucket, "d").await;
    recorder.part(&bucket, "d", &id, 1, pattern(MEDIUM, 8)).await;
    let first = recorder.part(&bucket, "d", &id, 1, pattern(MEDIUM, 9)).await;
    let second = recorder.part(&bucket, "d", &id, 2, pattern(100, 10)).await;
    recorder.part(&bucket, "d", &id, 3, pattern(MEDIUM, 11)).await;
    let parts = vec![first, second];
    let completion = Completion { parts, checksum: None, condition: Condition::None, part_bytes_min: 0, now_ms: 1 };
    let upload = upload_address(&bucket, &object_key("d"), &id);
    recorder.run("complete upload", async |fixture| fixture.store.complete(upload, completion).await).await;
    recorder.copy("copy parts", "d", "e").await;
    recorder.put("small over parts", "d", pattern(10, 12)).await;
    recorder.delete("delete parts", "e").await;

    for bucket in [&bucket, &other] {
        let id = recorder.create_upload(bucket, "f").await;
        recorder.part(bucket, "f", &id, 1, pattern(MEDIUM, 13)).await;
        if bucket.as_str() == "other" {
            recorder.run("delete bucket", async |fixture| fixture.store.delete_bucket(bucket).await).await;
        } else {
            let key = object_key("f");
            recorder.run("abort", async |fixture| fixture.store.abort_upload(bucket, &key, &id).await).await;
        }
    }
    let keys = ["a", "d", "x"].map(|key| (object_key(key), Deletion::default())).to_vec();
    recorder.run("delete many", async |fixture| fixture.store.delete_versions(&bucket, keys.clone()).await).await;
    recorder.done
}

/// What a crash does to what was not synced.
#[derive(Debug, Clone, Copy)]
enum Unsynced {
    /// The kernel had written it.
    Kept,
    Lost,
    /// Names reached the disk before what they name.
    OnlyNames,
    /// The last write did so by half.
    Torn,
}

/// A file as the calls so far leave it.
#[derive(Default, Clone)]
struct Disked {
    /// What was written to it, in order: offset and bytes.
    writes: Vec<(usize, Vec<u8>)>,
    /// How many of them are synced.
    synced: usize,
    /// The folder was synced with its name in it.
    is_named: bool,
    is_removed: bool,
}

impl Disked {
    /// Its bytes after a crash; `None`: it is not there.
    fn after_crash(&self, unsynced: Unsynced) -> Option<Vec<u8>> {
        let (there, writes) = match unsynced {
            Unsynced::Kept | Unsynced::Torn => (!self.is_removed, self.writes.len()),
            // A removal is never synced: it may be undone.
            Unsynced::Lost => (self.is_named, self.synced),
            Unsynced::OnlyNames => (!self.is_removed, self.synced),
        };
        let mut bytes = Vec::new();
        for (at, (offset, written)) in self.writes[..writes].iter().enumerate() {
            let is_torn = matches!(unsynced, Unsynced::Torn) && at + 1 == writes && at >= self.synced;
            let written = if is_torn { &written[..written.len() / 2] } else { &written[..] };
            bytes.resize(bytes.len().max(offset + written.len()), 0);
            bytes[*offset..offset + written.len()].copy_from_slice(written);
        }
        there.then_some(bytes)
    }
}

fn apply(files: &mut BTreeMap<String, Disked>, call: &Call) {
    match call {
        Call::Create(name) => drop(files.insert(name.clone(), Disked::default())),
        Call::Write { name, offset, bytes } => {
            files.get_mut(name).unwrap().writes.push((*offset as usize, bytes.clone()));
        }
        Call::Sync(name) => {
            let file = files.get_mut(name).unwrap();
            file.synced = file.writes.len();
        }
        Call::SyncFolder(folder) => {
            let within = |name: &str| name.starts_with(&format!("{folder}/"));
            files.iter_mut().filter(|(name, _)| within(name)).for_each(|(_, file)| file.is_named = !file.is_removed);
            files.retain(|name, file| !within(name) || !file.is_removed);
        }
        Call::Remove(name) => files.get_mut(name).unwrap().is_removed = true,
        other => panic!("{other:?} changes nothing"),
    }
}

/// The index with any part of what a commit adds to its log.
fn half_committed(before: &Files, after: &Files) -> Vec<Files> {
    let (old, new) = (before.log.len().max(LOG_HEADER_BYTES), after.log.len());
    let frames: Vec<usize> = (old..new).step_by(FRAME_BYTES).collect();
    let cut = |at: usize| Files { log: after.log[..at].to_vec(), ..after.clone() };
    let blank = |from: usize, to: usize| {
        let mut log = after.log.clone();
        log[from..to].fill(0);
        Files { log, ..after.clone() }
    };
    let mut half: Vec<Files> = frames.iter().flat_map(|at| [cut(*at), cut(at + 24), cut(at + 5000)]).collect();
    // Later frames reached the disk, an earlier one or part of one did not.
    half.extend(frames.iter().flat_map(|at| [blank(*at, at + FRAME_BYTES), blank(at + 4096, at + FRAME_BYTES)]));
    half
}

/// The store after one crash, and what it may show then.
struct State<'a> {
    files: BTreeMap<String, Vec<u8>>,
    index: Files,
    shown: &'a str,
    what: String,
}

impl State<'_> {
    async fn check(&self) {
        let folder = scratch();
        self.index.write(folder.path());
        for (name, bytes) in &self.files {
            let file = folder.path().join("files").join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        }
        let what = &self.what;
        let store = Store::open(folder.path(), settings()).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(shown(&store).await, self.shown, "{what}");
        store.close().await;
        let found = verify(folder.path()).unwrap();
        assert!(found.is_sound() && found.unnamed_files == 0, "{what}: {found:?}");
    }
}

/// All states that differ, of each operation.
fn states(done: &[Done]) -> Vec<State<'_>> {
    let (mut files, mut states): (BTreeMap<String, Disked>, Vec<State<'_>>) = (BTreeMap::new(), Vec::new());
    for operation in done {
        let Done { name, calls, before, after, shown_before, shown_after } = operation;
        let committed = calls.iter().position(|call| matches!(call, Call::Remove(_))).unwrap_or(calls.len());
        let mut seen = BTreeSet::new();
        for count in 0..=calls.len() {
            if let Some(call) = count.checked_sub(1).map(|last| &calls[last]) {
                apply(&mut files, call);
            }
            let mut indexes = Vec::new();
            if count <= committed {
                indexes.push((before.clone(), shown_before));
            }
            if count == committed {
                indexes.extend(half_committed(before, after).into_iter().map(|half| (half, shown_before)));
            }
            if count >= committed {
                indexes.push((after.clone(), shown_after));
            }
            for unsynced in [Unsynced::Kept, Unsynced::Lost, Unsynced::OnlyNames, Unsynced::Torn] {
                let left = files.iter().filter_map(|(name, file)| Some((name.clone(), file.after_crash(unsynced)?)));
                let left: BTreeMap<_, _> = left.collect();
                if !seen.insert((count.min(committed) + usize::from(count >= committed), left.clone())) {
                    continue;
                }
                for (index, shown) in &indexes {
                    let what = format!("{name}, crash behind {count} of {} calls, unsynced {unsynced:?}", calls.len());
                    states.push(State { files: left.clone(), index: index.clone(), shown, what });
                }
            }
        }
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_that_a_crash_may_leave_is_the_old_one_or_the_new_one() {
    let done = script().await;
    let states = states(&done);
    println!("{} operations, {} states", done.len(), states.len());
    assert!(done.len() > 25 && states.len() > 500, "{} operations, {} states", done.len(), states.len());
    for state in &states {
        state.check().await;
    }
}

/// The log is folded into the index a page at a time, long after what is in it was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_while_the_log_is_folded_in_loses_nothing() {
    let fixture = Fixture::new().await;
    for n in 0..40 {
        fixture.put(&format!("key{}", n % 30), &pattern(100 * n, n as u64)).await.unwrap();
    }
    let (before, shown) = (Files::read(fixture.folder.path()), shown(&fixture.store).await);
    fixture.store.close().await;
    let after = Files::read(fixture.folder.path());
    assert!(after.log.is_empty() && after.index.len() > before.index.len());
    let pages = after.index.len() / 8192;
    for page in 0..pages {
        for torn in [0, 4096] {
            let end = page * 8192 + torn;
            let mut index = after.index[..end].to_vec();
            index.extend_from_slice(before.index.get(end..).unwrap_or_default());
            let index = Files { index, log: before.log.clone() };
            let what = format!("{end} of {} bytes folded in", after.index.len());
            State { files: BTreeMap::new(), index, shown: &shown, what }.check().await;
        }
    }
}

#[tokio::test]
async fn the_index_syncs_each_commit() {
    let fixture = Fixture::new().await;
    let pragma = |name: &'static str| {
        let read = move |write: &mut index::Write<'_>| {
            Ok(write.index.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))?)
        };
        fixture.store.0.index.change(read)
    };
    assert_eq!(pragma("synchronous").await.unwrap(), rusqlite::types::Value::Integer(2), "FULL");
    assert_eq!(pragma("journal_mode").await.unwrap(), rusqlite::types::Value::Text("wal".to_owned()));
}
