//! Reports of scans and commits, as engines send them after their work.

use super::{answer, error::Result};
use crate::{
    app::App,
    auth::Caller,
    catalog::{document::off_thread, reports, warehouses::Warehouse},
    iceberg::{ident::TableIdent, report::Report},
};
use axum::response::Response;
use bytes::Bytes;

/// Largest body of a report. Bytes. The settings' bound holds too.
pub const BODY_BYTES_MAX: usize = 1 << 20;

pub async fn report_metrics(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    body: Bytes,
) -> Result<Response> {
    let report = off_thread(body.len(), move || Report::parse(&body)).await??;
    reports::record(app, caller, warehouse, ident, report).await?;
    Ok(answer::no_content())
}
