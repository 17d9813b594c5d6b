//! What is counted, and its text for Prometheus. Every name starts with `tidewater_`.
//!
//! Counters are raised where the thing happens; their names and meanings stand here.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{sync::OnceLock, time::Duration};

const REQUESTS: &str = "tidewater_requests_total";
const REQUEST_SECONDS: &str = "tidewater_request_duration_seconds";
const REQUESTS_IN_FLIGHT: &str = "tidewater_requests_in_flight";
const CONNECTIONS: &str = "tidewater_connections";
const PANICS: &str = "tidewater_panics_total";
const S3_BYTES: &str = "tidewater_s3_bytes_total";
const DATABASE_CONNECTIONS: &str = "tidewater_database_connections";
const DATABASE_CHANGES_WAITING: &str = "tidewater_database_changes_waiting";
const JOBS_FAILED: &str = "tidewater_jobs_failed";

/// Upper ends of the histogram's buckets. Seconds.
const BUCKETS_S: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Every counter, gauge and histogram of the program so far.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts counting; a second call in one process answers the first one's counts.
    ///
    /// # Errors
    /// When another recorder is installed.
    pub fn start() -> Result<Metrics, metrics_exporter_prometheus::BuildError> {
        static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
        if let Some(handle) = INSTALLED.get() {
            return Ok(Metrics(handle.clone()));
        }
        let builder =
            PrometheusBuilder::new().set_buckets_for_metric(Matcher::Full(REQUEST_SECONDS.to_owned()), &BUCKETS_S)?;
        let handle = builder.install_recorder()?;
        describe();
        Ok(Metrics(INSTALLED.get_or_init(|| handle).clone()))
    }

    /// The text format that Prometheus scrapes.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds recorded durations into their buckets: to be called every few seconds, or they pile up.
    pub fn fold(&self) {
        self.0.run_upkeep();
    }
}

fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by listener, operation and status");
    describe_histogram!(REQUEST_SECONDS, Unit::Seconds, "From a request's head to its answer's last byte");
    describe_gauge!(REQUESTS_IN_FLIGHT, "Requests being answered, by listener");
    describe_gauge!(CONNECTIONS, "Open connections, by listener");
    describe_counter!(PANICS, "Requests that ended in a panic");
    describe_counter!(S3_BYTES, Unit::Bytes, "Object bytes taken in and sent out by S3");
    describe_gauge!(DATABASE_CONNECTIONS, "Connections to the catalog database, by state");
    describe_gauge!(DATABASE_CHANGES_WAITING, "Changes waiting for SQLite's writer");
    describe_gauge!(JOBS_FAILED, "Background jobs that failed too often and wait for the next start");
    describe_counter!("tidewater_commits_total", "Commits to tables, by outcome");
    describe_counter!("tidewater_commit_retries_total", "Lost races for a table's pointer that were tried again");
    describe_counter!("tidewater_metrics_reports_total", "Reports of scans and commits, by outcome: taken or dropped");
    describe_counter!("tidewater_metadata_cache_total", "Look-ups in the metadata cache, by result");
    describe_counter!("tidewater_store_damaged_reads_total", "Reads that met stored bytes unlike their checksum");
    describe_counter!("tidewater_store_scrubbed_bytes_total", Unit::Bytes, "Stored bytes checked in the background");
    describe_counter!("tidewater_store_damage_found_total", "Damaged bodies met by the background check");
    describe_gauge!("tidewater_store_damaged", "Bodies known to be damaged: `tidewater store damages` lists them");
}

/// One answered request.
pub fn record_request(listener: &'static str, operation: &'static str, status: u16, took: Duration) {
    let status = status.to_string();
    counter!(REQUESTS, "listener" => listener, "operation" => operation, "status" => status).increment(1);
    histogram!(REQUEST_SECONDS, "listener" => listener, "operation" => operation).record(took);
}

pub fn record_s3_bytes(bytes_in: u64, bytes_out: u64) {
    counter!(S3_BYTES, "direction" => "in").increment(bytes_in);
    counter!(S3_BYTES, "direction" => "out").increment(bytes_out);
}

pub fn record_panic(listener: &'static str) {
    counter!(PANICS, "listener" => listener).increment(1);
}

pub fn record_database(connections: u32, connections_idle: usize, changes_waiting: usize) {
    let idle = u32::try_from(connections_idle).unwrap_or(u32::MAX);
    gauge!(DATABASE_CONNECTIONS, "state" => "idle").set(idle);
    gauge!(DATABASE_CONNECTIONS, "state" => "used").set(connections.saturating_sub(idle));
    gauge!(DATABASE_CHANGES_WAITING).set(u32::try_from(changes_waiting).unwrap_or(u32::MAX));
}

/// Jobs that are parked in the database, whichever replica parked them.
pub fn record_jobs_failed(count: i64) {
    gauge!(JOBS_FAILED).set(u32::try_from(count).unwrap_or(u32::MAX));
}

/// Counts something as present for as long as it lives.
pub struct Present(metrics::Gauge);

impl Present {
    pub fn request(listener: &'static str) -> Present {
        Present::new(gauge!(REQUESTS_IN_FLIGHT, "listener" => listener))
    }

    pub fn connection(listener: &'static str) -> Present {
        Present::new(gauge!(CONNECTIONS, "listener" => listener))
    }

    fn new(gauge: metrics::Gauge) -> Present {
        gauge.increment(1);
        Present(gauge)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
