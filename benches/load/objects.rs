//! S3 operations under load: PUT and GET at three sizes, and memory during one large body.

use crate::{
    catalog::{Repeat, expect_success},
    http::{Body, Connection},
    measure::{Client, Figure, Load, resident_mib},
    sign::Signer,
    target::{BUCKET, Target},
};
use serde::Serialize;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

pub const CHUNK: usize = 1 << 20;

struct Putter<'a> {
    signer: &'a Signer,
    connection: Connection,
    client: usize,
    count: u64,
    bytes: u64,
    chunk: Vec<u8>,
}

impl Client for Putter<'_> {
    fn step(&mut self) -> Result<u64, String> {
        self.count += 1;
        // A few keys a client, so that large sizes do not fill the disk.
        let key = format!("/{BUCKET}/bench/{}/{}-{}", self.bytes, self.client, self.count % 64);
        let head = self.signer.head("PUT", &key, self.bytes);
        expect_success(self.connection.send_repeated(&head, &self.chunk, self.bytes)).map(|_| self.bytes)
    }
}

/// Bytes that do not compress and do not repeat within a block.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn putters<'a>(target: &Target, signer: &'a Signer, bytes: usize, count: usize) -> Vec<Putter<'a>> {
    (0..count)
        .map(|client| Putter {
            signer,
            connection: Connection::open(target.s3).expect("a connection"),
            client,
            count: 0,
            bytes: bytes as u64,
            chunk: noise(bytes.min(CHUNK)),
        })
        .collect()
}

pub fn put(target: &Target, signer: &Signer, seconds: f64, bytes: usize, clients: &[usize]) -> Vec<Figure> {
    let operation = format!("PUT {}", size_name(bytes));
    clients
        .iter()
        .map(|&n| {
            Load { operation: &operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) }
                .run(putters(target, signer, bytes, n))
        })
        .collect()
}

pub fn get(target: &Target, signer: &Signer, seconds: f64, bytes: usize, clients: &[usize]) -> Vec<Figure> {
    let operation = format!("GET {}", size_name(bytes));
    Load { operation: "fill", seconds: 600.0, steps_max: 1, server: None }.run(putters(target, signer, bytes, 1));
    let head = signer.head("GET", &format!("/{BUCKET}/bench/{bytes}/0-1"), 0);
    clients
        .iter()
        .map(|&n| {
            let clients = (0..n).map(|_| Repeat::new(target.s3, head.clone())).collect();
            Load { operation: &operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) }.run(clients)
        })
        .collect()
}

/// Resident memory before, and at its highest during, an upload and a download of one large object.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub object_mib: u64,
    pub before_mib: f64,
    pub highest_during_put_mib: f64,
    pub highest_during_get_mib: f64,
}

pub fn memory(target: &Target, signer: &Signer, bytes: u64) -> Memory {
    let path = format!("/{BUCKET}/bench/large");
    let before_mib = resident_mib(target.pid()).unwrap_or(0.0);
    let chunk = noise(CHUNK);
    let highest_during_put_mib = highest(target.pid(), || {
        let mut connection = Connection::open(target.s3).expect("a connection");
        expect_success(connection.send_repeated(&signer.head("PUT", &path, bytes), &chunk, bytes))
            .expect("the large PUT");
    });
    let highest_during_get_mib = highest(target.pid(), || {
        let mut connection = Connection::open(target.s3).expect("a connection");
        let got =
            expect_success(connection.send(&signer.head("GET", &path, 0), b"", Body::Discard)).expect("the large GET");
        assert_eq!(got, bytes, "the large object came back whole");
    });
    Memory { object_mib: bytes >> 20, before_mib, highest_during_put_mib, highest_during_get_mib }
}

fn highest(pid: u32, work: impl FnOnce()) -> f64 {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut highest = 0.0_f64;
            while !done.load(Ordering::Relaxed) {
                highest = highest.max(resident_mib(pid).unwrap_or(0.0));
                std::thread::sleep(Duration::from_millis(20));
            }
            highest
        });
        work();
        done.store(true, Ordering::Relaxed);
        watcher.join().expect("the watcher ends")
    })
}

pub fn size_name(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}
