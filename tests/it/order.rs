//! What the system calls of the real server say: bytes are synced, then the record that names them, then the client is
//! told. strace watches; without it these tests fail (Debian: `apt-get install strace`; `tests/run` does).

use crate::{
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, Setup, until},
};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

const PUTS: usize = 20;
const SMALL_BYTES: usize = 3_000;
const LARGE_BYTES: usize = 700_000;
const LOG: &str = "store/index.db-wal>";
const WATCHED: &str = "trace=write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync";

/// Watches a server, or fails some of its calls.
struct Strace {
    child: Child,
    folder: TempDir,
}

impl Strace {
    fn attach(server: &Server, arguments: &[&str]) -> Strace {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-s", "16", "-p", &server.pid().to_string(), "-o"]).arg(folder.path().join("calls"));
        let spawned = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.expect("strace runs (Debian: apt-get install strace)");
        let stderr = child.stderr.take().expect("it was asked for");
        let mut said = BufReader::new(stderr).lines().map_while(Result::ok);
        let attached = said.find(|line| !line.trim().is_empty()).unwrap_or_default();
        // It speaks of each new thread, and ends when nobody listens.
        std::thread::spawn(move || said.for_each(drop));
        assert!(attached.contains("attached"), "strace may trace the server: {attached}");
        Strace { child, folder }
    }

    /// What it saw, once the server has ended.
    fn calls(mut self) -> Vec<Call> {
        self.child.wait().expect("strace ends with the server");
        let text = fs::read(self.folder.path().join("calls")).expect("strace wrote");
        parse(&String::from_utf8_lossy(&text))
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A call and the lines where it began and ended.
#[derive(Debug)]
struct Call {
    name: String,
    arguments: String,
    began: usize,
    ended: usize,
}

impl Call {
    fn is_on(&self, file: &str) -> bool {
        self.arguments.split(',').next().is_some_and(|target| target.contains(file))
    }
    fn is_sync(&self) -> bool {
        self.name == "fsync" || self.name == "fdatasync"
    }
    fn is_write(&self) -> bool {
        !self.is_sync()
    }
    fn is_answer(&self) -> bool {
        self.is_write() && self.arguments.contains("HTTP/1.1 200")
    }
}

/// A call that another thread's interrupts is on two lines: `… <unfinished ...>` and `<... name resumed>…`.
fn parse(text: &str) -> Vec<Call> {
    let (mut calls, mut open): (Vec<Call>, HashMap<&str, Call>) = Default::default();
    for (at, line) in text.lines().enumerate() {
        let Some((thread, said)) = line.split_once(' ') else { continue };
        let said = said.trim_start();
        if let Some(resumed) = said.strip_prefix("<... ") {
            if let Some(call) = open.remove(thread) {
                assert!(!resumed.contains(" = -1 "), "{line}");
                calls.push(Call { ended: at, ..call });
            }
        } else if let Some((name, arguments)) = said.split_once('(') {
            let call = Call { name: name.to_owned(), arguments: arguments.to_owned(), began: at, ended: at };
            match arguments.ends_with("<unfinished ...>") {
                true => drop(open.insert(thread, call)),
                false => calls.push(call),
            }
        }
    }
    calls.sort_by_key(|call| call.began);
    calls
}

/// The calls of each PUT, up to its answer.
async fn puts(size: usize) -> Vec<Vec<Call>> {
    let mut server = Setup::on(Database::Sqlite).await.flag("scrub-bytes-per-s", 0).start().await;
    let s3 = S3::root(&server);
    assert_eq!(s3.put(BUCKET, "first", vec![1; size]).await.status, 200);
    let strace = Strace::attach(&server, &["-e", WATCHED]);
    for n in 0..PUTS {
        assert_eq!(s3.put(BUCKET, &format!("{n}"), vec![n as u8; size]).await.status, 200);
    }
    server.kill();
    let (mut puts, mut put) = (Vec::new(), Vec::new());
    for call in strace.calls() {
        let is_answer = call.is_answer();
        put.push(call);
        if is_answer {
            puts.push(std::mem::take(&mut put));
        }
    }
    assert_eq!(puts.len(), PUTS, "every answer was seen");
    puts
}

/// Where the last of the calls that fit ended; where the first began.
fn span<'a>(calls: &'a [Call], fits: impl Fn(&Call) -> bool + 'a) -> (usize, usize) {
    let mut fitting = calls.iter().filter(|call| fits(call)).peekable();
    let began = fitting.peek().map_or_else(|| panic!("no such call among {calls:#?}"), |call| call.began);
    (began, fitting.map(|call| call.ended).max().unwrap_or(began))
}

#[tokio::test]
async fn a_small_object_is_synced_with_its_record_before_the_answer() {
    for calls in puts(SMALL_BYTES).await {
        let (_, written) = span(&calls, |call| call.is_write() && call.is_on(LOG));
        let (syncing, synced) = span(&calls, |call| call.is_sync() && call.is_on(LOG));
        let (answered, _) = span(&calls, Call::is_answer);
        assert!(written < syncing && synced < answered, "{calls:#?}");
        let syncs = calls.iter().filter(|call| call.is_sync() && call.is_on("/store/")).count();
        assert_eq!(syncs, 1, "one sync is enough: {calls:#?}");
    }
}

#[tokio::test]
async fn a_large_object_and_its_folder_are_synced_before_the_record_and_that_before_the_answer() {
    for calls in puts(LARGE_BYTES).await {
        let is_file = |call: &Call| call.is_on("/store/files/") && call.name != "fsync";
        let (_, written) = span(&calls, |call| call.is_write() && is_file(call));
        let (syncing_file, synced_file) = span(&calls, |call| call.name == "fdatasync" && is_file(call));
        let (_, synced_folder) = span(&calls, |call| call.name == "fsync" && call.is_on("/store/files/"));
        let (recording, recorded) = span(&calls, |call| call.is_write() && call.is_on(LOG));
        let (syncing, synced) = span(&calls, |call| call.is_sync() && call.is_on(LOG));
        let (answered, _) = span(&calls, Call::is_answer);
        assert!(written < syncing_file, "the file is written, then synced: {calls:#?}");
        assert!(synced_file.max(synced_folder) < recording, "then its record is written: {calls:#?}");
        assert!(recorded < syncing && synced < answered, "and synced, then it is answered: {calls:#?}");
    }
}

/// From then on nothing is known of what is on the disk, so the process ends; the next start looks.
#[tokio::test]
async fn a_failed_sync_ends_the_server_and_the_next_start_has_all_that_was_acknowledged() {
    for (size, path) in [(SMALL_BYTES, Some("store/index.db-wal")), (LARGE_BYTES, None)] {
        let mut server = Setup::on(Database::Sqlite).await.flag("scrub-bytes-per-s", 0).start().await;
        let s3 = S3::root(&server);
        assert_eq!(s3.put(BUCKET, "kept", vec![1; size]).await.status, 200);
        let path = path.map(|path| server.data().join(path).to_str().expect("text").to_owned());
        let only = path.iter().flat_map(|path| ["-P", path]);
        let failing = ["-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO"];
        let strace = Strace::attach(&server, &failing.into_iter().chain(only).collect::<Vec<_>>());
        let request = s3.request(reqwest::Method::PUT, &format!("/{BUCKET}/kept"), &[], &[], vec![2; size]);
        if let Ok(answer) = request.send().await {
            assert_eq!(answer.status(), 500, "{size}");
        }
        let status = tokio::time::timeout(Duration::from_secs(30), server.wait_for_exit()).await.expect("it ends");
        assert!(!status.success(), "{size}: {status}");
        assert!(server.log().contains("disk failed"), "the operator is told:\n{}", server.log());
        drop(strace);
        server.restart().await;
        let kept = s3.get(BUCKET, "kept").await;
        // The record may have reached the disk all the same.
        assert!(kept.body == vec![1; size] || (size == SMALL_BYTES && kept.body == vec![2; size]), "{size}");
        until(async || s3.put(BUCKET, "kept", vec![3; size]).await.status == 200).await;
    }
}
