//! Functions: stored and deleted. Engines list and load them through the Iceberg protocol.

use super::{
    answered, authenticate,
    error::{Error, ErrorResponse},
    ident, read,
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        self,
        functions::{self, Stored},
        warehouses,
    },
    iceberg::function::FunctionMetadata,
};
use axum::{
    body::{Body, Bytes},
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

/// Largest document of a function. Bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;

#[derive(Deserialize)]
pub struct FunctionPath {
    warehouse: String,
    namespace: String,
    function: String,
}

/// Store a function: create it, or replace the document of the one with the same `function-uuid`.
#[utoipa::path(
    put, path = "/api/v1/warehouses/{warehouse}/namespaces/{namespace}/functions/{function}",
    operation_id = "putFunction", tag = "Functions", security(("bearer" = [])),
    params(
        ("warehouse" = String, Path, description = "The warehouse's name"),
        ("namespace" = String, Path, description = "The namespace's levels, %1F between"),
        ("function" = String, Path, description = "The function's name"),
    ),
    request_body(content = Object, description = "FunctionMetadata of the Iceberg REST specification, format version 1"),
    responses(
        (status = 201, description = "Created"),
        (status = 204, description = "Replaced"),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
        (status = 409, body = ErrorResponse, description = "Another function has the name"),
    )
)]
pub async fn put_function(
    State(app): State<App>,
    headers: HeaderMap,
    path: Result<Path<FunctionPath>, PathRejection>,
    body: Body,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("putFunction", None, Err::<(), _>(error)),
    };
    let stored = match read(body, BODY_BYTES_MAX).await {
        Ok(body) => put(&app, &caller, path, body).await,
        Err(error) => Err(error),
    };
    answered("putFunction", Some(&caller), stored)
}

async fn put(
    app: &App,
    caller: &Caller,
    path: Result<Path<FunctionPath>, PathRejection>,
    body: Bytes,
) -> Result<StatusCode, Error> {
    let Path(path) = path.map_err(bad_path)?;
    let ident = ident(&path.namespace, &path.function)?;
    let parsed = catalog::document::off_thread(body.len(), move || FunctionMetadata::parse(&body)).await?;
    let function = parsed.map_err(catalog::Error::from)?;
    let warehouse = warehouses::open(app, caller, Some(&path.warehouse)).await?;
    Ok(match functions::put(app, caller, &warehouse, &ident, &function).await? {
        Stored::Created => StatusCode::CREATED,
        Stored::Replaced => StatusCode::NO_CONTENT,
    })
}

/// Delete a function.
#[utoipa::path(
    delete, path = "/api/v1/warehouses/{warehouse}/namespaces/{namespace}/functions/{function}",
    operation_id = "deleteFunction", tag = "Functions", security(("bearer" = [])),
    params(
        ("warehouse" = String, Path, description = "The warehouse's name"),
        ("namespace" = String, Path, description = "The namespace's levels, %1F between"),
        ("function" = String, Path, description = "The function's name"),
    ),
    responses(
        (status = 204, description = "Deleted"),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
    )
)]
pub async fn delete_function(
    State(app): State<App>,
    headers: HeaderMap,
    path: Result<Path<FunctionPath>, PathRejection>,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("deleteFunction", None, Err::<(), _>(error)),
    };
    answered("deleteFunction", Some(&caller), delete(&app, &caller, path).await)
}

async fn delete(
    app: &App,
    caller: &Caller,
    path: Result<Path<FunctionPath>, PathRejection>,
) -> Result<StatusCode, Error> {
    let Path(path) = path.map_err(bad_path)?;
    let ident = ident(&path.namespace, &path.function)?;
    let warehouse = warehouses::open(app, caller, Some(&path.warehouse)).await?;
    functions::delete(app, caller, &warehouse, &ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn bad_path(_: PathRejection) -> Error {
    Error::Invalid("the path is not UTF-8 when percent-decoded".to_owned())
}
