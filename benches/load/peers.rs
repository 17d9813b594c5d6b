//! The S3 store beside others: every operation on each server in turn, in one run.
//!
//! Each runs as its makers ship it, on the same disk, with the same requests. What they sync differs, and is theirs to
//! say: we sync data and record before we answer.

use crate::{
    Arguments,
    catalog::expect_success,
    http::{Body, Connection},
    measure::{Client, Figure, Load, resident_mib, round},
    objects::{CHUNK, noise, size_name},
    sign::Signer,
    target::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY, Target, free_addr},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tidewater::s3::sigv4::Payload;

const CLIENTS: &[usize] = &[1, 8, 32];
const SIZES: &[usize] = &[4 << 10, 128 << 10, 10 << 20];
/// Objects a client writes over and over, and readers read.
const KEYS: u64 = 64;
const RANGE: usize = 64 << 10;
const LISTED: usize = 1_000;
const PART: usize = 8 << 20;
const PARTS: usize = 8;
const READY_WITHIN: Duration = Duration::from_secs(30);

#[derive(Serialize)]
pub struct Comparison {
    servers: Vec<Compared>,
}

#[derive(Serialize)]
struct Compared {
    server: String,
    idle_resident_mib: Option<f64>,
    highest_resident_mib: f64,
    figures: Vec<Figure>,
}

struct Server {
    name: String,
    s3: SocketAddr,
    pid: u32,
    signer: Signer,
    _running: Running,
}

/// Held until the server is to end.
enum Running {
    Ours { _target: Target },
    Peer(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Peer(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn compare(arguments: &Arguments, folder: &Path) -> Comparison {
    let target = Target::start(&folder.join("tidewater"), None);
    let (s3, pid) = (target.s3, target.pid());
    let ours = Running::Ours { _target: target };
    let mut servers = vec![Server { name: "tidewater".to_owned(), s3, pid, signer: Signer::new(s3), _running: ours }];
    for peer in &arguments.peer {
        let (name, program) = peer.split_once('=').expect("--peer NAME=PROGRAM");
        servers.push(start(name, program, &folder.join(name)));
    }
    let compared = |server: &Server| Compared {
        server: server.name.clone(),
        idle_resident_mib: resident_mib(server.pid),
        highest_resident_mib: 0.0,
        figures: Vec::new(),
    };
    let mut results: Vec<Compared> = servers.iter().map(compared).collect();
    for (operation, measure) in operations() {
        if !arguments.wants(&operation) {
            continue;
        }
        for (server, result) in servers.iter().zip(&mut results) {
            result.figures.extend(note(server, measure(server, &operation, arguments.seconds)));
            result.highest_resident_mib = result.highest_resident_mib.max(resident_mib(server.pid).unwrap_or(0.0));
        }
    }
    Comparison { servers: results }
}

fn start(name: &str, program: &str, folder: &Path) -> Server {
    std::fs::create_dir_all(folder).expect("a folder for the peer");
    let s3 = free_addr();
    let mut command = Command::new(program);
    match name {
        "versitygw" => command
            .args([
                "--access",
                ACCESS_KEY_ID,
                "--secret",
                SECRET_ACCESS_KEY,
                "--port",
                &s3.to_string(),
                "--quiet",
                "--keep-alive",
                "posix",
            ])
            .arg(folder),
        "minio" => command
            .args(["server", "--quiet", "--address", &s3.to_string()])
            .arg(folder)
            .env("MINIO_ROOT_USER", ACCESS_KEY_ID)
            .env("MINIO_ROOT_PASSWORD", SECRET_ACCESS_KEY)
            .env("MINIO_CI_CD", "1"),
        _ => panic!("no peer is called {name}"),
    };
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the peer starts");
    let pid = child.id();
    let server = Server { name: name.to_owned(), s3, pid, signer: Signer::new(s3), _running: Running::Peer(child) };
    let deadline = Instant::now() + READY_WITHIN;
    let made = || {
        let head = server.signer.head("PUT", &format!("/{BUCKET}"), 0);
        Connection::open(s3).and_then(|mut connection| connection.send(&head, b"", Body::Discard))
    };
    while !made().is_ok_and(|answer| answer.status == 200) {
        assert!(Instant::now() < deadline, "{name} is not ready after {READY_WITHIN:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    server
}

type Measure = Box<dyn Fn(&Server, &str, f64) -> Vec<Figure>>;

fn operations() -> Vec<(String, Measure)> {
    let mut all: Vec<(String, Measure)> = Vec::new();
    for &bytes in SIZES {
        let size = size_name(bytes);
        all.push((format!("PUT {size}"), Box::new(move |server, name, s| put(server, name, s, bytes))));
        all.push((
            format!("PUT {size}, unsigned trailer"),
            Box::new(move |server, name, s| trailer(server, name, s, bytes)),
        ));
        all.push((format!("GET {size}"), Box::new(move |server, name, s| read(server, name, s, "GET", bytes, None))));
    }
    all.push(("HEAD".to_owned(), Box::new(|server, name, s| read(server, name, s, "HEAD", 4 << 10, None))));
    all.push((
        "GET 64 KiB of 10 MiB".to_owned(),
        Box::new(|server, name, s| read(server, name, s, "GET", 10 << 20, Some(RANGE))),
    ));
    all.push(("LIST of 1,000".to_owned(), Box::new(list)));
    all.push(("DELETE 4 KiB".to_owned(), Box::new(delete)));
    all.push(("multipart 64 MiB".to_owned(), Box::new(multipart)));
    all
}

/// One client's step as a closure over its own connection.
struct Step<F>(F);

impl<F: FnMut() -> Result<u64, String> + Send> Client for Step<F> {
    fn step(&mut self) -> Result<u64, String> {
        (self.0)()
    }
}

fn connect(server: &Server) -> Connection {
    Connection::open(server.s3).expect("a connection")
}

fn load<'a>(server: &Server, operation: &'a str, seconds: f64) -> Load<'a> {
    Load { operation, seconds, steps_max: usize::MAX, server: Some(server.pid) }
}

fn key(bytes: usize, client: usize, count: u64) -> String {
    format!("/{BUCKET}/b{bytes}/{client}-{}", count % KEYS)
}

fn putter<'a>(
    server: &'a Server,
    client: usize,
    bytes: usize,
    chunk: &'a [u8],
) -> impl FnMut() -> Result<u64, String> + Send + 'a {
    let (mut connection, mut count) = (connect(server), 0);
    move || {
        count += 1;
        let head = server.signer.head("PUT", &key(bytes, client, count), bytes as u64);
        expect_success(connection.send_repeated(&head, chunk, bytes as u64)).map(|_| bytes as u64)
    }
}

fn put(server: &Server, operation: &str, seconds: f64, bytes: usize) -> Vec<Figure> {
    let chunk = noise(bytes.min(CHUNK));
    let run = |&n: &usize| {
        let clients = (0..n).map(|client| Step(putter(server, client, bytes, &chunk))).collect();
        load(server, operation, seconds).run(clients)
    };
    CLIENTS.iter().map(run).collect()
}

/// As current SDKs send it: `aws-chunked`, a CRC32 behind the bytes.
fn trailer(server: &Server, operation: &str, seconds: f64, bytes: usize) -> Vec<Figure> {
    let data = noise(bytes);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, &data);
    let crc = STANDARD.encode(u32::try_from(crc).expect("32 bits").to_be_bytes());
    let mut body = Vec::with_capacity(bytes + 4096);
    for chunk in data.chunks(64 << 10) {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("0\r\nx-amz-checksum-crc32:{crc}\r\n\r\n").as_bytes());
    let payload = Payload::parse(b"STREAMING-UNSIGNED-PAYLOAD-TRAILER").expect("a payload's name");
    let length = bytes.to_string();
    let run = |&n: &usize| {
        let client = |client: usize| {
            let (mut connection, mut count) = (connect(server), 0);
            let (body, payload, length) = (&body, &payload, &length);
            Step(move || {
                count += 1;
                let headers = [
                    ("content-encoding", "aws-chunked"),
                    ("x-amz-decoded-content-length", length.as_str()),
                    ("x-amz-trailer", "x-amz-checksum-crc32"),
                ];
                let path = key(bytes, client, count);
                let head = server.signer.request("PUT", &path, "", &headers, payload, body.len() as u64);
                expect_success(connection.send(&head, body, Body::Discard)).map(|_| bytes as u64)
            })
        };
        load(server, operation, seconds).run((0..n).map(client).collect())
    };
    CLIENTS.iter().map(run).collect()
}

fn read(
    server: &Server,
    operation: &str,
    seconds: f64,
    method: &'static str,
    bytes: usize,
    range: Option<usize>,
) -> Vec<Figure> {
    let chunk = noise(bytes.min(CHUNK));
    let fill = Load { operation: "fill", seconds: 600.0, steps_max: 8, server: None };
    fill.run(vec![Step(putter(server, 0, bytes, &chunk))]);
    let expected = match (method, range) {
        ("HEAD", _) => 0,
        (_, range) => range.unwrap_or(bytes) as u64,
    };
    let run = |&n: &usize| {
        let client = |client: usize| {
            let (mut connection, mut count) = (connect(server), client as u64);
            Step(move || {
                count += 1;
                let path = key(bytes, 0, 1 + count % 8);
                let range = range.map(|range| {
                    let start = (count as usize * 7919) % (bytes - range);
                    format!("bytes={start}-{}", start + range - 1)
                });
                let headers: Vec<(&'static str, &str)> = range.iter().map(|range| ("range", range.as_str())).collect();
                let head = server.signer.request(method, &path, "", &headers, &Payload::Unsigned, 0);
                let got = if method == "HEAD" {
                    connection.send_head(&head)
                } else {
                    connection.send(&head, b"", Body::Discard)
                };
                match expect_success(got)? {
                    got if got == expected => Ok(got),
                    got => Err(format!("{got} bytes in place of {expected}")),
                }
            })
        };
        load(server, operation, seconds).run((0..n).map(client).collect())
    };
    CLIENTS.iter().map(run).collect()
}

fn list(server: &Server, operation: &str, seconds: f64) -> Vec<Figure> {
    let mut count = 0;
    let mut connection = connect(server);
    let fill = || {
        count += 1;
        let head = server.signer.head("PUT", &format!("/{BUCKET}/listed/{count:06}"), 4);
        expect_success(connection.send(&head, b"four", Body::Discard))
    };
    Load { operation: "fill", seconds: 600.0, steps_max: LISTED, server: None }.run(vec![Step(fill)]);
    let run = |&n: &usize| {
        let client = |_| {
            let mut connection = connect(server);
            Step(move || {
                let query = "list-type=2&max-keys=1000&prefix=listed%2F";
                let head = server.signer.request("GET", &format!("/{BUCKET}"), query, &[], &Payload::Unsigned, 0);
                expect_success(connection.send(&head, b"", Body::Discard))
            })
        };
        load(server, operation, seconds).run((0..n).map(client).collect())
    };
    CLIENTS.iter().map(run).collect()
}

/// Each client deletes what it wrote before the clock started.
fn delete(server: &Server, operation: &str, seconds: f64) -> Vec<Figure> {
    const DELETED: usize = 1_000;
    let body = noise(4 << 10);
    let run = |&n: &usize| {
        let path = |client: usize, count: usize| format!("/{BUCKET}/gone/{n}-{client}/{count}");
        let writer = |client: usize| {
            let (mut connection, mut count, body) = (connect(server), 0, &body);
            Step(move || {
                count += 1;
                let head = server.signer.head("PUT", &path(client, count), body.len() as u64);
                expect_success(connection.send(&head, body, Body::Discard))
            })
        };
        let each = DELETED.div_ceil(n);
        Load { operation: "fill", seconds: 600.0, steps_max: each, server: None }.run((0..n).map(writer).collect());
        let remover = |client: usize| {
            let (mut connection, mut count) = (connect(server), 0);
            Step(move || {
                count += 1;
                let head = server.signer.head("DELETE", &path(client, count), 0);
                expect_success(connection.send(&head, b"", Body::Discard))
            })
        };
        Load { steps_max: each, ..load(server, operation, seconds) }.run((0..n).map(remover).collect())
    };
    CLIENTS.iter().map(run).collect()
}

/// Whole uploads of eight parts, then by itself what completing one takes.
fn multipart(server: &Server, operation: &str, seconds: f64) -> Vec<Figure> {
    let part = noise(PART);
    let mut uploads = Upload { server, connection: connect(server), part: &part, count: 0 };
    let whole = load(server, operation, seconds).run(vec![Step(|| {
        let ready = uploads.send()?;
        uploads.complete(&ready)
    })]);
    let mut ready = (0..8).map(|_| uploads.send()).collect::<Result<Vec<_>, _>>().expect("parts are taken").into_iter();
    let complete = Load { steps_max: 8, ..load(server, "Complete of 64 MiB", seconds) };
    let complete = complete.run(vec![Step(|| uploads.complete(&ready.next().expect("one a step")))]);
    vec![whole, complete]
}

struct Upload<'a> {
    server: &'a Server,
    connection: Connection,
    part: &'a [u8],
    count: u64,
}

/// An upload whose parts are there: its path, id and the document that completes it.
struct Ready {
    path: String,
    id: String,
    document: String,
}

impl Upload<'_> {
    fn send(&mut self) -> Result<Ready, String> {
        self.count += 1;
        let path = format!("/{BUCKET}/multi/{}", self.count % 4);
        let signer = &self.server.signer;
        let head = signer.request("POST", &path, "uploads=", &[], &Payload::Unsigned, 0);
        let answer = self.connection.send(&head, b"", Body::Keep).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let id = text.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once("</UploadId>"));
        let id = id.ok_or_else(|| format!("no upload: {text}"))?.0.to_owned();
        let mut document = String::from("<CompleteMultipartUpload>");
        for number in 1..=PARTS {
            let query = format!("partNumber={number}&uploadId={id}");
            let head = signer.request("PUT", &path, &query, &[], &Payload::Unsigned, PART as u64);
            let answer = self.connection.send(&head, self.part, Body::Keep).map_err(|error| error.to_string())?;
            let etag = answer.etag.ok_or_else(|| format!("part {number}: status {}", answer.status))?;
            document.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
        }
        document.push_str("</CompleteMultipartUpload>");
        Ok(Ready { path, id, document })
    }

    fn complete(&mut self, ready: &Ready) -> Result<u64, String> {
        let query = format!("uploadId={}", ready.id);
        let length = ready.document.len() as u64;
        let head = self.server.signer.request("POST", &ready.path, &query, &[], &Payload::Unsigned, length);
        let answer =
            self.connection.send(&head, ready.document.as_bytes(), Body::Keep).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer.body);
        if answer.status == 200 && !text.contains("<Error>") {
            Ok((PART * PARTS) as u64)
        } else {
            Err(text.into_owned())
        }
    }
}

fn note(server: &Server, figures: Vec<Figure>) -> Vec<Figure> {
    for figure in &figures {
        eprintln!(
            "{:<10} {:<32} {:>3} clients {:>10.1}/s  p50 {:>8.3} ms  p99 {:>8.3} ms  CPU {:>9.1} us  {} failures",
            server.name,
            figure.operation,
            figure.clients,
            figure.per_second,
            figure.p50_ms,
            figure.p99_ms,
            round(figure.server_cpu_us.unwrap_or(0.0)),
            figure.failures
        );
    }
    figures
}
