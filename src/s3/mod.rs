//! The S3 wire protocol in front of the embedded store.

pub mod body;
pub mod chunked;
pub mod sigv4;
