//! Runs one operation from several clients for a while and sums up rate and latency.

use serde::Serialize;
use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// One row of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub operation: String,
    pub clients: usize,
    pub operations: usize,
    /// Answers that were not the expected success.
    pub failures: u64,
    pub per_second: f64,
    pub mib_per_second: Option<f64>,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU of the server process an operation, user and system.
    pub server_cpu_us: Option<f64>,
}

/// What one client does again and again. An error counts as a failure; `Ok` carries the body bytes moved.
pub trait Client: Send {
    fn step(&mut self) -> Result<u64, String>;
}

pub struct Load<'a> {
    pub operation: &'a str,
    pub seconds: f64,
    /// Stop early after this many operations a client.
    pub steps_max: usize,
    /// Process whose CPU is charged to the operations.
    pub server: Option<u32>,
}

impl Load<'_> {
    /// Starts every client at once; each makes its own connection before the clock starts.
    pub fn run<C: Client>(&self, clients: Vec<C>) -> Figure {
        let count = clients.len();
        let barrier = Barrier::new(count + 1);
        let failures = AtomicU64::new(0);
        let bytes = AtomicU64::new(0);
        let limit = Duration::from_secs_f64(self.seconds);
        let (mut latencies, cpu, elapsed) = std::thread::scope(|scope| {
            let handles: Vec<_> = clients
                .into_iter()
                .map(|client| scope.spawn(|| drive(client, &barrier, limit, self.steps_max, &failures, &bytes)))
                .collect();
            let cpu = self.server.and_then(cpu_us);
            barrier.wait();
            let started = Instant::now();
            let all: Vec<u32> =
                handles.into_iter().flat_map(|handle| handle.join().expect("a client panicked")).collect();
            let elapsed = started.elapsed();
            (all, self.server.and_then(cpu_us).zip(cpu).map(|(after, before)| after - before), elapsed)
        });
        latencies.sort_unstable();
        let operations = latencies.len();
        let seconds = elapsed.as_secs_f64();
        let moved = bytes.into_inner();
        Figure {
            operation: self.operation.to_owned(),
            clients: count,
            operations,
            failures: failures.into_inner(),
            per_second: round(operations as f64 / seconds),
            mib_per_second: (moved > 0).then(|| round(moved as f64 / seconds / f64::from(1 << 20))),
            p50_ms: quantile_ms(&latencies, 0.50),
            p99_ms: quantile_ms(&latencies, 0.99),
            server_cpu_us: cpu.filter(|_| operations > 0).map(|us| round(us / operations as f64)),
        }
    }
}

fn drive<C: Client>(
    mut client: C,
    barrier: &Barrier,
    limit: Duration,
    steps_max: usize,
    failures: &AtomicU64,
    bytes: &AtomicU64,
) -> Vec<u32> {
    let mut latencies = Vec::with_capacity(1 << 16);
    barrier.wait();
    let started = Instant::now();
    while latencies.len() < steps_max && started.elapsed() < limit {
        let before = Instant::now();
        match client.step() {
            Ok(moved) => bytes.fetch_add(moved, Ordering::Relaxed),
            Err(error) => {
                if failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    eprintln!("first failure: {error}");
                }
                0
            }
        };
        latencies.push(u32::try_from(before.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    latencies
}

fn quantile_ms(sorted_us: &[u32], q: f64) -> f64 {
    if sorted_us.is_empty() {
        return 0.0;
    }
    let at = ((sorted_us.len() - 1) as f64 * q).round() as usize;
    f64::from(sorted_us[at]) / 1000.0
}

pub fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// User and system time of a process so far, in microseconds (proc(5), fields 14 and 15, in ticks of 10 ms).
pub fn cpu_us(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 * 10_000.0)
}

/// Resident memory of a process in MiB.
pub fn resident_mib(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(round(kib / 1024.0))
}
