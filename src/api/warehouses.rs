//! Warehouses: made on the embedded store or on another one, listed, given other keys, deleted.

use super::{
    BODY_BYTES_MAX, answered, authenticate,
    error::{Error, ErrorResponse},
    read,
};
use crate::{
    app::App,
    catalog::{
        storage::{Delegation, NewStorage, S3Profile, Storage},
        warehouses::{self, Warehouse},
    },
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest secret of another store. Characters.
const SECRET_CHARS_MAX: usize = 256;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CreateWarehouseRequest {
    /// 1 to 128 characters; clients put it into the paths of their requests.
    name: String,
    /// `s3://bucket` or `s3://bucket/prefix`. On the embedded store the bucket is made when it is missing.
    location: String,
    /// Without it, the embedded store.
    storage: Option<StorageRequest>,
}

/// Where the objects are, and how to get there.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum StorageRequest {
    Embedded,
    S3(S3Request),
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct S3Request {
    /// Scheme, host and port, as this server and its clients reach it; without it, AWS.
    endpoint: Option<String>,
    #[serde(default = "default_region")]
    region: String,
    /// Buckets named by path: always with an endpoint, on AWS only where asked for.
    path_style_access: Option<bool>,
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    delegation: DelegationName,
    /// Where session keys are asked for; without it, at the endpoint.
    sts_endpoint: Option<String>,
    /// The role of a session; AWS needs one.
    role_arn: Option<String>,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

/// How clients without keys of the store get to a table's files: with keys of a session limited to the table, from the
/// store's STS; with requests that the catalog signs; or with the store's own keys, which open all that they open.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum DelegationName {
    #[default]
    SessionKeys,
    RemoteSigning,
    StaticKeys,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListWarehousesResponse {
    warehouses: Vec<WarehouseInfo>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WarehouseInfo {
    id: uuid::Uuid,
    name: String,
    location: String,
    storage: StorageInfo,
}

/// What is shown of a storage: all but its secret.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum StorageInfo {
    Embedded,
    S3(S3Info),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct S3Info {
    endpoint: Option<String>,
    region: String,
    path_style_access: bool,
    access_key_id: String,
    delegation: DelegationName,
    sts_endpoint: Option<String>,
    role_arn: Option<String>,
}

impl From<&Warehouse> for WarehouseInfo {
    fn from(warehouse: &Warehouse) -> Self {
        let storage = match &warehouse.storage {
            Storage::Embedded => StorageInfo::Embedded,
            Storage::S3(external) => StorageInfo::S3(external.profile.clone().into()),
        };
        let (name, location) = (warehouse.name.clone(), warehouse.location.clone());
        WarehouseInfo { id: warehouse.id, name, location, storage }
    }
}

impl From<S3Profile> for S3Info {
    fn from(profile: S3Profile) -> Self {
        S3Info {
            endpoint: profile.endpoint,
            region: profile.region,
            path_style_access: profile.path_style_access,
            access_key_id: profile.access_key_id,
            delegation: match profile.delegation {
                Delegation::SessionKeys => DelegationName::SessionKeys,
                Delegation::RemoteSigning => DelegationName::RemoteSigning,
                Delegation::StaticKeys => DelegationName::StaticKeys,
            },
            sts_endpoint: profile.sts_endpoint,
            role_arn: profile.role_arn,
        }
    }
}

impl StorageRequest {
    fn into_storage(self) -> Result<NewStorage, Error> {
        let StorageRequest::S3(asked) = self else { return Ok(NewStorage::Embedded) };
        let secret = SecretString::from(asked.secret_access_key);
        let length = secret.expose_secret().chars().count();
        if !(1..=SECRET_CHARS_MAX).contains(&length) {
            return Err(Error::Invalid(format!("secret-access-key must have 1 to {SECRET_CHARS_MAX} characters")));
        }
        let profile = S3Profile {
            path_style_access: asked.path_style_access.unwrap_or(asked.endpoint.is_some()),
            endpoint: asked.endpoint,
            region: asked.region,
            access_key_id: asked.access_key_id,
            delegation: match asked.delegation {
                DelegationName::SessionKeys => Delegation::SessionKeys,
                DelegationName::RemoteSigning => Delegation::RemoteSigning,
                DelegationName::StaticKeys => Delegation::StaticKeys,
            },
            sts_endpoint: asked.sts_endpoint,
            role_arn: asked.role_arn,
        };
        Ok(NewStorage::S3(profile, secret))
    }
}

/// Make a warehouse. Its storage is tried first: an object is written, written again only if absent, read, listed and
/// deleted, and session keys are asked for where clients are to have them.
#[utoipa::path(
    post, path = "/api/v1/warehouses", operation_id = "createWarehouse", tag = "Warehouses", security(("bearer" = [])),
    request_body = CreateWarehouseRequest,
    responses(
        (status = 201, body = WarehouseInfo),
        (status = 400, body = ErrorResponse, description = "The request, or the step of the trial that failed"),
        (status = 409, body = ErrorResponse),
    )
)]
pub async fn create_warehouse(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("createWarehouse", None, Err::<(), _>(error)),
    };
    let created = async {
        let asked: CreateWarehouseRequest = parse(&read(body, BODY_BYTES_MAX).await?)?;
        let storage = asked.storage.map_or(Ok(NewStorage::Embedded), StorageRequest::into_storage)?;
        let warehouse = warehouses::create(&app, &caller, &asked.name, &asked.location, storage).await?;
        Ok((StatusCode::CREATED, Json(WarehouseInfo::from(&*warehouse))))
    };
    answered("createWarehouse", Some(&caller), created.await)
}

/// List all warehouses, without secrets.
#[utoipa::path(
    get, path = "/api/v1/warehouses", operation_id = "listWarehouses", tag = "Warehouses", security(("bearer" = [])),
    responses((status = 200, body = ListWarehousesResponse), (status = 500, body = ErrorResponse))
)]
pub async fn list_warehouses(State(app): State<App>, headers: HeaderMap) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("listWarehouses", None, Err::<(), _>(error)),
    };
    let listed = warehouses::list(&app, &caller).await.map_err(Error::from);
    let shown =
        |all: Vec<Warehouse>| ListWarehousesResponse { warehouses: all.iter().map(WarehouseInfo::from).collect() };
    answered("listWarehouses", Some(&caller), listed.map(|all| Json(shown(all))))
}

/// Load one warehouse, without its secret.
#[utoipa::path(
    get, path = "/api/v1/warehouses/{warehouse}", operation_id = "loadWarehouse", tag = "Warehouses",
    security(("bearer" = [])), params(("warehouse" = String, Path, description = "The warehouse's name")),
    responses(
        (status = 200, body = WarehouseInfo),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
    )
)]
pub async fn load_warehouse(
    State(app): State<App>,
    headers: HeaderMap,
    name: Result<Path<String>, PathRejection>,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("loadWarehouse", None, Err::<(), _>(error)),
    };
    let loaded = async {
        let warehouse = warehouses::open(&app, &caller, Some(&named(name)?)).await?;
        Ok(Json(WarehouseInfo::from(&*warehouse)))
    };
    answered("loadWarehouse", Some(&caller), loaded.await)
}

/// Give a warehouse another way to the same objects, such as new keys. It is tried first, as when a warehouse is made.
#[utoipa::path(
    put, path = "/api/v1/warehouses/{warehouse}/storage", operation_id = "putWarehouseStorage", tag = "Warehouses",
    security(("bearer" = [])), params(("warehouse" = String, Path, description = "The warehouse's name")),
    request_body = StorageRequest,
    responses(
        (status = 200, body = WarehouseInfo),
        (status = 400, body = ErrorResponse, description = "The request, or the step of the trial that failed"),
        (status = 404, body = ErrorResponse),
    )
)]
pub async fn put_storage(
    State(app): State<App>,
    headers: HeaderMap,
    name: Result<Path<String>, PathRejection>,
    body: Body,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("putWarehouseStorage", None, Err::<(), _>(error)),
    };
    let put = async {
        let name = named(name)?;
        let asked: StorageRequest = parse(&read(body, BODY_BYTES_MAX).await?)?;
        let warehouse = warehouses::set_storage(&app, &caller, &name, asked.into_storage()?).await?;
        Ok(Json(WarehouseInfo::from(&*warehouse)))
    };
    answered("putWarehouseStorage", Some(&caller), put.await)
}

/// Delete a warehouse that has no namespaces. Its objects stay.
#[utoipa::path(
    delete, path = "/api/v1/warehouses/{warehouse}", operation_id = "deleteWarehouse", tag = "Warehouses",
    security(("bearer" = [])), params(("warehouse" = String, Path, description = "The warehouse's name")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 400, body = ErrorResponse, description = "It is the default one"),
        (status = 404, body = ErrorResponse),
        (status = 409, body = ErrorResponse, description = "It has namespaces"),
    )
)]
pub async fn delete_warehouse(
    State(app): State<App>,
    headers: HeaderMap,
    name: Result<Path<String>, PathRejection>,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("deleteWarehouse", None, Err::<(), _>(error)),
    };
    let deleted = async {
        warehouses::delete(&app, &caller, &named(name)?).await?;
        Ok(StatusCode::NO_CONTENT)
    };
    answered("deleteWarehouse", Some(&caller), deleted.await)
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Invalid(format!("bad request body: {error}")))
}

/// No warehouse has a name with a control character, and not every database can be asked for one.
fn named(name: Result<Path<String>, PathRejection>) -> Result<String, Error> {
    let Path(name) = name.map_err(|_| Error::Invalid("the warehouse's name in the path is not UTF-8".to_owned()))?;
    match name.chars().any(char::is_control) {
        true => Err(crate::catalog::Error::NoSuchWarehouse(name).into()),
        false => Ok(name),
    }
}
