//! The HTTP floor: the server's own layers and connection handling in front of bytes that are already there.

use crate::{
    catalog::Repeat,
    http::{Body, Connection},
    measure::{Figure, Load},
    target::{Target, free_addr},
};
use axum::{Router, body::Body as ResponseBody, extract::Path, routing::get};
use bytes::Bytes;
use futures_util::stream;
use std::{
    io::Read,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tidewater::{config::Settings, server};

/// Up to here the answer is one buffer in memory; above, a file read from the page cache a piece at a time.
const IN_MEMORY_BYTES_MAX: usize = 1 << 20;
const PIECE_BYTES: usize = 256 << 10;
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Drives the floor with answers of `bytes` for as long as the operation it stands beside.
pub fn answers(target: &Target, name: &str, bytes: usize, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    let stack = Stack::start();
    let head = target.head("GET", &format!("/bytes/{bytes}"), 0);
    clients
        .iter()
        .map(|&n| {
            let clients = (0..n).map(|_| Repeat::new(stack.addr, head.clone())).collect();
            Load { operation: name, seconds, steps_max: usize::MAX, server: Some(stack.child.id()) }.run(clients)
        })
        .collect()
}

/// Where the floor takes answers of this size from.
pub fn source(bytes: usize) -> &'static str {
    if bytes <= IN_MEMORY_BYTES_MAX { "memory" } else { "the page cache" }
}

struct Stack {
    child: Child,
    addr: SocketAddr,
}

impl Stack {
    fn start() -> Stack {
        let addr = free_addr();
        let program = std::env::current_exe().expect("this program's path");
        let child = Command::new(program)
            .args(["--serve-stack", &addr.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("this program starts again");
        let stack = Stack { child, addr };
        let deadline = Instant::now() + READY_WITHIN;
        let head = format!("GET /bytes/1 HTTP/1.1\r\nHost: {addr}\r\n\r\n");
        while Connection::open(addr).and_then(|mut c| c.send(head.as_bytes(), b"", Body::Discard)).is_err() {
            assert!(Instant::now() < deadline, "the floor does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        stack
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other process: serves `/bytes/{n}` until it is killed.
pub fn serve(addr: SocketAddr) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pieces =
        Arc::new(Pieces { small: Bytes::from(vec![b'x'; IN_MEMORY_BYTES_MAX]), file: folder.path().join("bytes") });
    let router = Router::new().route("/bytes/{n}", get(move |Path(n): Path<usize>| answer(pieces.clone(), n)));
    let settings = Settings::on_free_ports(folder.path());
    tidewater::telemetry::start(tidewater::telemetry::Format::Text, "warn").expect("logs");
    runtime.block_on(server::serve_router(addr, router, &settings)).expect("the floor listens");
}

struct Pieces {
    small: Bytes,
    file: PathBuf,
}

async fn answer(pieces: Arc<Pieces>, n: usize) -> ResponseBody {
    if n <= IN_MEMORY_BYTES_MAX {
        return ResponseBody::from(pieces.small.slice(..n));
    }
    let file = pieces.file.clone();
    let file = tokio::task::spawn_blocking(move || open_of_size(&file, n)).await.expect("the file is opened");
    let pieces = stream::unfold(Some(file), |file| async move {
        let read = tokio::task::spawn_blocking(move || read_piece(file?)).await.expect("a piece is read")?;
        Some((Ok::<_, std::io::Error>(read.0), Some(read.1)))
    });
    ResponseBody::from_stream(pieces)
}

fn open_of_size(path: &std::path::Path, n: usize) -> std::fs::File {
    if std::fs::metadata(path).map_or(0, |found| found.len()) != n as u64 {
        std::fs::write(path, vec![b'x'; n]).expect("the floor's file is written");
    }
    std::fs::File::open(path).expect("the floor's file opens")
}

fn read_piece(mut file: std::fs::File) -> Option<(Bytes, std::fs::File)> {
    let mut piece = vec![0; PIECE_BYTES];
    let n = file.read(&mut piece).expect("the floor's file is read");
    piece.truncate(n);
    (n > 0).then(|| (Bytes::from(piece), file))
}
