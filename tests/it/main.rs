//! The real server over loopback, each test with a folder and a database of its own.
//!
//! Facts that depend on the database run on SQLite and on Postgres (`on_both_databases!`). Postgres is the one that
//! `TIDEWATER_TEST_POSTGRES_URL` names; `make test` starts one.

#[macro_use]
mod database;
mod catalog;
mod history;
mod s3;
mod server;

mod architecture;
mod bad_input;
mod behaviours;
mod cases;
mod connect;
mod connections;
mod crash;
mod damage;
mod full_disk;
mod functions;
mod idempotency;
mod ledger;
mod lifecycle;
mod limits;
mod lost_database;
mod metrics_reports;
mod openapi;
mod order;
mod races;
mod readme;
mod register;
mod settings;
mod signatures;
mod signing;
mod store_crash;
mod sts;
mod telemetry;
mod tokens;
mod transactions;
mod views;
mod warehouses;
