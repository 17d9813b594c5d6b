//! What engines reported of their scans and commits: who, when, what of which table, and at what cost.

use super::{
    answered, authenticate,
    error::{Error, ErrorResponse},
    ident,
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        reports::{self, Filter, ReportRow, ReportsKind},
        warehouses,
    },
};
use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Reports on a page that does not say how many.
const PAGE_SIZE_DEFAULT: u32 = 100;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportsQuery {
    /// The table's namespace: its levels, %1F between. Together with `table`.
    namespace: Option<String>,
    /// Reports of this table only, under whatever name it had.
    table: Option<String>,
    /// Received at this time or later. Milliseconds since 1970.
    from_ms: Option<i64>,
    /// Received before this time. Milliseconds since 1970.
    until_ms: Option<i64>,
    /// Where to go on, from the page before.
    page_token: Option<String>,
    /// Reports on the page at most.
    #[param(minimum = 1)]
    page_size: Option<u32>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListScanReportsResponse {
    /// Newest first.
    scan_reports: Vec<ScanReport>,
    /// Null on the last page.
    next_page_token: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListCommitReportsResponse {
    /// Newest first.
    commit_reports: Vec<CommitReport>,
    /// Null on the last page.
    next_page_token: Option<String>,
}

/// Who reported what when.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Origin {
    report_id: Uuid,
    received_at_ms: i64,
    /// Whose key the engine used.
    principal: String,
    /// The table's name when the report came.
    namespace: Vec<String>,
    table: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScanReport {
    #[serde(flatten)]
    origin: Origin,
    snapshot_id: Option<i64>,
    schema_id: Option<i32>,
    /// The expression, as the engine wrote it; engines usually blank out the values.
    #[schema(value_type = Object)]
    filter: Option<Box<RawValue>>,
    projected_field_ids: Vec<i32>,
    projected_field_names: Vec<String>,
    data_files: Touched,
    delete_files: Touched,
    data_manifests: Touched,
    delete_manifests: Touched,
    /// Bytes of the data files to read.
    data_bytes: Option<i64>,
    planning_duration_ns: Option<i64>,
    #[serde(flatten)]
    rest: Rest,
}

/// How many the scan had to read, and how many it could pass over; null where the engine does not say.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Touched {
    scanned: Option<i64>,
    skipped: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CommitReport {
    #[serde(flatten)]
    origin: Origin,
    snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
    operation: Option<String>,
    attempts: Option<i64>,
    duration_ns: Option<i64>,
    #[serde(flatten)]
    rest: Rest,
}

/// What both kinds of report end with, as it came.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Rest {
    /// Every metric of the report.
    #[schema(value_type = Object)]
    metrics: Option<Box<RawValue>>,
    /// What the engine says about itself.
    #[schema(value_type = Object)]
    metadata: Option<Box<RawValue>>,
    /// Members that were too long to keep.
    left_out: Vec<String>,
}

/// A stored report (`iceberg::report`).
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Stored {
    snapshot_id: Option<i64>,
    schema_id: Option<i32>,
    sequence_number: Option<i64>,
    operation: Option<String>,
    filter: Option<Box<RawValue>>,
    projected_field_ids: Vec<i32>,
    projected_field_names: Vec<String>,
    metrics: Option<Box<RawValue>>,
    metadata: Option<Box<RawValue>>,
    left_out: Vec<String>,
}

/// Metrics by name; those of another shape are passed over.
struct Metrics(BTreeMap<String, serde_json::Value>);

/// List reports of scans.
#[utoipa::path(
    get, path = "/api/v1/warehouses/{warehouse}/scan-reports", operation_id = "listScanReports", tag = "Reports",
    security(("bearer" = [])),
    params(("warehouse" = String, Path, description = "The warehouse's name"), ReportsQuery),
    responses(
        (status = 200, body = ListScanReportsResponse),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
    )
)]
pub async fn list_scan_reports(
    State(app): State<App>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<ReportsQuery>, QueryRejection>,
) -> Response {
    let respond = |page: Page| {
        let scan_reports = page.rows.into_iter().map(ScanReport::try_from).collect::<Result<_, _>>()?;
        Ok(Json(ListScanReportsResponse { scan_reports, next_page_token: page.next_page_token }))
    };
    list("listScanReports", ReportsKind::Scan, app, headers, path, query, respond).await
}

/// List reports of commits.
#[utoipa::path(
    get, path = "/api/v1/warehouses/{warehouse}/commit-reports", operation_id = "listCommitReports", tag = "Reports",
    security(("bearer" = [])),
    params(("warehouse" = String, Path, description = "The warehouse's name"), ReportsQuery),
    responses(
        (status = 200, body = ListCommitReportsResponse),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
    )
)]
pub async fn list_commit_reports(
    State(app): State<App>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<ReportsQuery>, QueryRejection>,
) -> Response {
    let respond = |page: Page| {
        let commit_reports = page.rows.into_iter().map(CommitReport::try_from).collect::<Result<_, _>>()?;
        Ok(Json(ListCommitReportsResponse { commit_reports, next_page_token: page.next_page_token }))
    };
    list("listCommitReports", ReportsKind::Commit, app, headers, path, query, respond).await
}

/// What is shown, and where to go on.
struct Page {
    rows: Vec<ReportRow>,
    next_page_token: Option<String>,
}

async fn list<A: IntoResponse>(
    operation: &'static str,
    kind: ReportsKind,
    app: App,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<ReportsQuery>, QueryRejection>,
    respond: impl FnOnce(Page) -> Result<A, Error>,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered(operation, None, Err::<(), _>(error)),
    };
    let page = read(&app, &caller, kind, path, query).await;
    answered(operation, Some(&caller), page.and_then(respond))
}

async fn read(
    app: &App,
    caller: &Caller,
    kind: ReportsKind,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<ReportsQuery>, QueryRejection>,
) -> Result<Page, Error> {
    let Path(warehouse) = path.map_err(|_| Error::Invalid("the warehouse's name is not UTF-8".to_owned()))?;
    let Query(query) = query.map_err(|rejection| Error::Invalid(rejection.body_text()))?;
    let size = match query.page_size {
        Some(0) => return Err(Error::Invalid("page-size is not a whole number above 0".to_owned())),
        size => size.unwrap_or(PAGE_SIZE_DEFAULT).min(app.settings.page_size_max),
    };
    let table = match (&query.namespace, &query.table) {
        (Some(namespace), Some(table)) => Some(ident(namespace, table)?),
        (None, None) => None,
        _ => return Err(Error::Invalid("namespace and table come together or not at all".to_owned())),
    };
    let filter = Filter {
        table,
        from_ms: query.from_ms,
        until_ms: query.until_ms,
        after: query.page_token.as_deref().map(decode).transpose()?,
        // One more than is shown, to know whether more follow.
        limit: size.saturating_add(1),
    };
    let warehouse = warehouses::open(app, caller, Some(&warehouse)).await?;
    let mut rows = reports::list(app, caller, &warehouse, kind, &filter).await?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let has_more = rows.len() > size;
    rows.truncate(size);
    let last = rows.last().filter(|_| has_more);
    let next_page_token = last.map(|row| URL_SAFE_NO_PAD.encode(row.id.as_bytes()));
    Ok(Page { rows, next_page_token })
}

fn decode(token: &str) -> Result<Uuid, Error> {
    let id = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| Uuid::from_slice(&bytes).ok());
    id.ok_or_else(|| Error::Invalid("page-token is not one that this server gave".to_owned()))
}

impl TryFrom<ReportRow> for ScanReport {
    type Error = Error;

    fn try_from(row: ReportRow) -> Result<Self, Error> {
        let (origin, stored, metrics) = parts(row)?;
        let touched = |scanned, skipped| Touched { scanned: metrics.count(scanned), skipped: metrics.count(skipped) };
        Ok(ScanReport {
            snapshot_id: stored.snapshot_id,
            schema_id: stored.schema_id,
            data_files: touched("result-data-files", "skipped-data-files"),
            delete_files: touched("result-delete-files", "skipped-delete-files"),
            data_manifests: touched("scanned-data-manifests", "skipped-data-manifests"),
            delete_manifests: touched("scanned-delete-manifests", "skipped-delete-manifests"),
            data_bytes: metrics.count("total-file-size-in-bytes"),
            planning_duration_ns: metrics.duration_ns("total-planning-duration"),
            filter: stored.filter,
            projected_field_ids: stored.projected_field_ids,
            projected_field_names: stored.projected_field_names,
            rest: Rest { metrics: stored.metrics, metadata: stored.metadata, left_out: stored.left_out },
            origin,
        })
    }
}

impl TryFrom<ReportRow> for CommitReport {
    type Error = Error;

    fn try_from(row: ReportRow) -> Result<Self, Error> {
        let (origin, stored, metrics) = parts(row)?;
        Ok(CommitReport {
            snapshot_id: stored.snapshot_id,
            sequence_number: stored.sequence_number,
            operation: stored.operation,
            attempts: metrics.count("attempts"),
            duration_ns: metrics.duration_ns("total-duration"),
            rest: Rest { metrics: stored.metrics, metadata: stored.metadata, left_out: stored.left_out },
            origin,
        })
    }
}

fn parts(row: ReportRow) -> Result<(Origin, Stored, Metrics), Error> {
    let unreadable = |error| Error::Unreadable { report: row.id, error };
    let namespace = serde_json::from_str(&row.namespace).map_err(unreadable)?;
    let stored: Stored = serde_json::from_str(&row.report).map_err(unreadable)?;
    let metrics = stored.metrics.as_ref().map(|metrics| serde_json::from_str(metrics.get())).transpose();
    let metrics = Metrics(metrics.map_err(unreadable)?.unwrap_or_default());
    let origin = Origin {
        report_id: row.id,
        received_at_ms: row.received_at_ms,
        principal: row.principal,
        namespace,
        table: row.name,
    };
    Ok((origin, stored, metrics))
}

impl Metrics {
    fn count(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.get("value")?.as_i64()
    }

    /// `None` also for units that are not of time.
    fn duration_ns(&self, name: &str) -> Option<i64> {
        let timer = self.0.get(name)?;
        let unit_ns = match timer.get("time-unit")?.as_str()?.to_ascii_lowercase().as_str() {
            "nanoseconds" => 1,
            "microseconds" => 1_000,
            "milliseconds" => 1_000_000,
            "seconds" => 1_000_000_000,
            "minutes" => 60_000_000_000,
            _ => return None,
        };
        timer.get("total-duration")?.as_i64()?.checked_mul(unit_ns)
    }
}
