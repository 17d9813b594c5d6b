//! The OpenAPI document of what is served, made from the table of routes.
//!
//! A new route needs an arm in [`details`], and where it has bodies, their names in `schemas.rs`.

mod schemas;

use super::route::{ENDPOINTS, Endpoint};
use http::Method;
use utoipa::openapi::{
    Components, Content, HttpMethod, Info, ObjectBuilder, OpenApi, Paths, Ref, RefOr, Required, Response,
    ResponseBuilder, Schema,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::{KnownFormat, SchemaFormat, Type},
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

const BEARER: &str = "bearer";
const ERROR: &str = "IcebergErrorResponse";
const JSON: &str = "application/json";
const TOKENS: &str = "getToken";

/// A name, where it stands, and what it means.
type Parameters = &'static [(&'static str, ParameterIn, &'static str)];

const PAGE: Parameters = &[
    ("pageToken", ParameterIn::Query, "Where to go on; empty for the first page; absent for everything at once"),
    ("pageSize", ParameterIn::Query, "Names on a page at most"),
];
const DELEGATION: (&str, ParameterIn, &str) =
    ("X-Iceberg-Access-Delegation", ParameterIn::Header, "vended-credentials: answer with keys for the table's folder");

const KEY: (&str, ParameterIn, &str) =
    ("Idempotency-Key", ParameterIn::Header, "A UUID: sent again with it, the request is answered as before");

/// What any route may answer, and any that takes a body.
const ANYWHERE: &[u16] = &[400, 401, 403, 404, 500, 503];
const WITH_BODY: &[u16] = &[408, 413, 415];
/// What changes something: conflicts, and requests that are not to be answered again.
const CHANGES: &[u16] = &[409, 422];

const REFERENCED_BY: (&str, ParameterIn, &str) = (
    "referenced-by",
    ParameterIn::Query,
    "The views through which it is asked for, outermost first, with commas between them; checked for form only",
);

/// What the table of routes does not say.
struct Details {
    tag: &'static str,
    parameters: Vec<(&'static str, ParameterIn, &'static str)>,
    success: u16,
    /// Besides those that every route may answer.
    errors: &'static [u16],
}

/// Paths, methods, parameters and errors of every served route.
pub fn openapi() -> OpenApi {
    let mut paths = Paths::new();
    for endpoint in ENDPOINTS {
        paths.add_path_operation(endpoint.template, vec![http_method(&endpoint.method)], operation(endpoint));
    }
    let mut document = OpenApi::new(Info::new("Tidewater: Iceberg REST catalog", env!("CARGO_PKG_VERSION")), paths);
    let mut components = Components::new();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
    components.schemas.insert(ERROR.to_owned(), error_schema());
    let schemas = schemas::all().into_iter().map(|(name, schema)| (name.to_owned(), schema));
    components.schemas.extend(schemas);
    document.components = Some(components);
    document
}

fn http_method(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::DELETE => HttpMethod::Delete,
        Method::HEAD => HttpMethod::Head,
        _ => HttpMethod::Get,
    }
}

fn operation(endpoint: &Endpoint) -> Operation {
    let details = details(endpoint);
    let mut operation = OperationBuilder::new()
        .operation_id(Some(endpoint.name))
        .summary(Some(endpoint.summary))
        .tag(details.tag)
        .request_body(schemas::request(endpoint.name).map(|schema| request_body(endpoint.name, schema)))
        .response(details.success.to_string(), success(endpoint.name));
    for name in path_parameters(endpoint.template) {
        operation = operation.parameter(parameter(name, ParameterIn::Path, ""));
    }
    for (name, place, meaning) in details.parameters {
        operation = operation.parameter(parameter(name, place, meaning));
    }
    if endpoint.name != TOKENS {
        operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []));
    }
    let with_body = schemas::request(endpoint.name).map_or(&[][..], |_| WITH_BODY);
    for status in ANYWHERE.iter().chain(with_body).chain(details.errors) {
        operation = operation.response(status.to_string(), failure(endpoint.name, *status));
    }
    operation.build()
}

fn details(endpoint: &Endpoint) -> Details {
    let (tag, success, errors): (_, _, &[u16]) = match endpoint.name {
        "getConfig" => ("Configuration", 200, &[]),
        TOKENS => ("OAuth2", 200, &[]),
        "listNamespaces" | "loadNamespaceMetadata" => ("Namespaces", 200, &[]),
        "createNamespace" | "updateProperties" => ("Namespaces", 200, CHANGES),
        "namespaceExists" => ("Namespaces", 204, &[]),
        "dropNamespace" => ("Namespaces", 204, CHANGES),
        "loadTable" => ("Tables", 200, &[304]),
        "listTables" | "loadCredentials" | "signRequest" | "signS3Request" => ("Tables", 200, &[]),
        "createTable" | "updateTable" | "registerTable" | "unregisterTable" => ("Tables", 200, CHANGES),
        "tableExists" | "reportMetrics" => ("Tables", 204, &[]),
        "dropTable" | "renameTable" | "commitTransaction" => ("Tables", 204, CHANGES),
        "listFunctions" | "loadFunction" => ("Functions", 200, &[]),
        "listViews" | "loadView" => ("Views", 200, &[]),
        "createView" | "registerView" | "replaceView" => ("Views", 200, CHANGES),
        "viewExists" => ("Views", 204, &[]),
        "dropView" | "renameView" => ("Views", 204, CHANGES),
        name => unreachable!("a test holds that {name} has details"),
    };
    let mut parameters = match endpoint.name {
        "getConfig" => vec![("warehouse", ParameterIn::Query, "Name or location; absent: the default warehouse")],
        "listNamespaces" => {
            let parent = ("parent", ParameterIn::Query, "List below this namespace; absent: the top level");
            PAGE.iter().cloned().chain([parent]).collect()
        }
        "listTables" | "listViews" | "listFunctions" => PAGE.to_vec(),
        "loadView" | "loadCredentials" => vec![REFERENCED_BY],
        "createTable" | "registerTable" => vec![DELEGATION],
        "loadTable" => vec![
            DELEGATION,
            ("If-None-Match", ParameterIn::Header, "A tag that an earlier answer gave"),
            REFERENCED_BY,
            ("snapshots", ParameterIn::Query, "all, or refs: only those that a branch or tag points at"),
        ],
        "dropTable" => vec![("purgeRequested", ParameterIn::Query, "true: delete the table's files too")],
        _ => Vec::new(),
    };
    if errors == CHANGES {
        parameters.push(KEY);
    }
    Details { tag, parameters, success, errors }
}

fn path_parameters(template: &str) -> impl Iterator<Item = &str> {
    template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn parameter(name: &str, place: ParameterIn, meaning: &str) -> Parameter {
    let required = if place == ParameterIn::Path { Required::True } else { Required::False };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description((!meaning.is_empty()).then_some(meaning))
        .schema(Some(value(name)))
        .build()
}

/// What a parameter may be.
fn value(name: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    match name {
        "pageSize" => ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)),
        "snapshots" => text.enum_values(Some(["all", "refs"])),
        "purgeRequested" => ObjectBuilder::new().schema_type(Type::Boolean),
        "Idempotency-Key" => text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))),
        "prefix" | "namespace" | "table" | "view" | "function" => text.min_length(Some(1)),
        _ => text,
    }
}

fn request_body(operation: &str, schema: &str) -> RequestBody {
    let content_type = if operation == TOKENS { "application/x-www-form-urlencoded" } else { JSON };
    RequestBodyBuilder::new().content(content_type, content(schema)).required(Some(Required::True)).build()
}

fn content(schema: &str) -> Content {
    Content::new(Some(RefOr::<Schema>::Ref(Ref::from_schema_name(schema))))
}

fn success(operation: &str) -> Response {
    match schemas::answer(operation) {
        None => Response::new("Done"),
        Some(schema) => ResponseBuilder::new().description("Done").content(JSON, content(schema)).build(),
    }
}

fn failure(operation: &str, status: u16) -> Response {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let schema = if operation == TOKENS { "OAuthError" } else { ERROR };
    ResponseBuilder::new().description(reason.unwrap_or_default()).content(JSON, content(schema)).build()
}

fn error_schema() -> RefOr<Schema> {
    let string = || ObjectBuilder::new().schema_type(Type::String);
    let error = ObjectBuilder::new()
        .property("message", string())
        .property("type", string())
        .property("code", ObjectBuilder::new().schema_type(Type::Integer))
        .required("message")
        .required("type")
        .required("code");
    Schema::from(ObjectBuilder::new().property("error", error).required("error").build()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_served_route_is_described() {
        let document = serde_json::to_value(openapi()).unwrap();
        for endpoint in ENDPOINTS {
            let method = endpoint.method.as_str().to_lowercase();
            let operation = &document["paths"][endpoint.template][&method];
            assert_eq!(operation["operationId"], endpoint.name);
            assert!(operation["responses"].as_object().unwrap().len() > 3, "{}", endpoint.name);
        }
        let operations: usize =
            document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
        assert_eq!(operations, ENDPOINTS.len());
    }
}
