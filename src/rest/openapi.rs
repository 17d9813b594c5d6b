//! The OpenAPI document of what is served, made from the table of routes.

/// Paths, methods, parameters and errors of every served route.
pub fn openapi() -> utoipa::openapi::OpenApi {
    todo!()
}
