//! The S3 wire protocol in front of the embedded store.
