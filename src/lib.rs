//! Tidewater: an Apache Iceberg REST catalog and an S3-compatible object store in one process.
//!
//! `ARCHITECTURE.md` says what lives where, which way the arrows point, and what is never true.

pub mod api;
pub mod app;
pub mod auth;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod db;
pub mod iceberg;
pub mod jobs;
pub mod planning;
pub mod rest;
pub mod s3;
pub mod server;
pub mod store;
pub mod telemetry;
