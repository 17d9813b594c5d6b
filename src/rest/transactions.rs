//! `POST …/transactions/commit`: commits to several tables, all or nothing.

use super::{answer, error::Result};
use crate::{
    app::App,
    auth::Caller,
    catalog::{document::off_thread, idempotency::Key, transactions, warehouses::Warehouse},
    iceberg::commit::Commit,
};
use axum::response::Response;
use bytes::Bytes;
use std::sync::Arc;

pub async fn commit_transaction(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let commits = off_thread(body.len(), move || Commit::parse_transaction(&body)).await??;
    transactions::commit(app, caller, warehouse, commits, key).await?;
    Ok(answer::no_content())
}
