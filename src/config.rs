//! Settings: flags, `TIDEWATER_…` variables and an optional TOML file, the same names everywhere.

use secrecy::SecretString;
use std::{net::SocketAddr, path::PathBuf};

/// Everything `tidewater serve` can be told. Defaults and bounds are in the README's table.
#[derive(Debug, Clone)]
pub struct Settings {
    pub data: PathBuf,
    pub catalog_addr: SocketAddr,
    pub s3_addr: SocketAddr,
    pub metrics_addr: SocketAddr,
    /// Postgres; `None`: SQLite in the data folder.
    pub database_url: Option<SecretString>,
    pub database_connections_max: u32,
    /// What clients are told; default: the listeners' addresses. No trailing slash.
    pub catalog_url: String,
    pub s3_url: String,
    pub region: String,
    /// The warehouse made at first start, and its bucket.
    pub warehouse: String,
    pub bucket: String,
    pub root_access_key_id: Option<String>,
    pub root_secret_access_key: Option<SecretString>,
    pub token_lifetime_s: u64,
    pub vended_lifetime_s: u64,
    /// Largest body of a catalog request. Bytes.
    pub body_bytes_max: usize,
    pub header_bytes_max: usize,
    pub requests_max: usize,
    pub page_size_max: u32,
    pub metadata_cache_bytes: u64,
    pub small_object_bytes_max: u64,
    pub disk_reserve_bytes: u64,
    pub log_format: LogFormat,
    /// A tracing filter: `info`, `tidewater=debug`, ….
    pub log: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}
