//! The OpenAPI document of what is served, made from the table of routes.
//!
//! Bodies are described coarsely: their schemas are the Iceberg REST specification's.

use super::route::{ENDPOINTS, Endpoint};
use http::Method;
use utoipa::openapi::{
    Components, Content, HttpMethod, Info, ObjectBuilder, OpenApi, Paths, Ref, RefOr, Required, Response,
    ResponseBuilder, Schema,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::Type,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

const BEARER: &str = "bearer";
const ERROR: &str = "IcebergErrorResponse";
const JSON: &str = "application/json";

/// A name, where it stands, and what it means.
type Parameters = &'static [(&'static str, ParameterIn, &'static str)];

const PAGE: Parameters = &[
    ("pageToken", ParameterIn::Query, "Where to go on; empty for the first page; absent for everything at once"),
    ("pageSize", ParameterIn::Query, "Names on a page at most"),
];
const DELEGATION: (&str, ParameterIn, &str) =
    ("X-Iceberg-Access-Delegation", ParameterIn::Header, "vended-credentials: answer with keys for the table's folder");

const REFERENCED_BY: (&str, ParameterIn, &str) = (
    "referenced-by",
    ParameterIn::Query,
    "The views through which it is asked for, outermost first, with commas between them; checked for form only",
);

/// What the table of routes does not say.
struct Details {
    tag: &'static str,
    parameters: Vec<(&'static str, ParameterIn, &'static str)>,
    /// The content type of the body, where there is one.
    body: Option<&'static str>,
    success: u16,
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
        .request_body(details.body.map(request_body))
        .response(details.success.to_string(), success(details.success));
    for name in path_parameters(endpoint.template) {
        operation = operation.parameter(parameter(name, ParameterIn::Path, ""));
    }
    for (name, place, meaning) in details.parameters {
        operation = operation.parameter(parameter(name, place, meaning));
    }
    if endpoint.name != "getToken" {
        operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []));
    }
    for status in details.errors {
        operation = operation.response(status.to_string(), failure(*status));
    }
    operation.build()
}

fn details(endpoint: &Endpoint) -> Details {
    let (tag, success, errors): (_, _, &[u16]) = match endpoint.name {
        "getConfig" => ("Configuration", 200, &[400, 401, 403, 404, 503]),
        "getToken" => ("OAuth2", 200, &[400, 401, 413, 503]),
        "listNamespaces" | "loadNamespaceMetadata" => ("Namespaces", 200, &[400, 401, 403, 404, 503]),
        "createNamespace" => ("Namespaces", 200, &[400, 401, 403, 404, 409, 413, 503]),
        "namespaceExists" => ("Namespaces", 204, &[400, 401, 403, 404, 503]),
        "dropNamespace" => ("Namespaces", 204, &[400, 401, 403, 404, 409, 503]),
        "updateProperties" => ("Namespaces", 200, &[400, 401, 403, 404, 413, 422, 503]),
        "listTables" | "loadTable" | "loadCredentials" => ("Tables", 200, &[400, 401, 403, 404, 503]),
        "createTable" => ("Tables", 200, &[400, 401, 403, 404, 409, 413, 503]),
        "updateTable" => ("Tables", 200, &[400, 401, 403, 404, 409, 413, 500, 503]),
        "signRequest" | "signS3Request" => ("Tables", 200, &[400, 401, 403, 404, 413, 503]),
        "commitTransaction" => ("Tables", 204, &[400, 401, 403, 404, 409, 413, 422, 500, 503]),
        "tableExists" | "dropTable" => ("Tables", 204, &[400, 401, 403, 404, 503]),
        "registerTable" => ("Tables", 200, &[400, 401, 403, 404, 409, 413, 500, 503]),
        "unregisterTable" => ("Tables", 200, &[400, 401, 403, 404, 409, 500, 503]),
        "reportMetrics" => ("Tables", 204, &[400, 401, 403, 404, 413, 503]),
        "listFunctions" | "loadFunction" => ("Functions", 200, &[400, 401, 403, 404, 503]),
        "renameTable" => ("Tables", 204, &[400, 401, 403, 404, 409, 413, 503]),
        "listViews" | "loadView" => ("Views", 200, &[400, 401, 403, 404, 503]),
        "createView" | "registerView" => ("Views", 200, &[400, 401, 403, 404, 409, 413, 500, 503]),
        "replaceView" => ("Views", 200, &[400, 401, 403, 404, 409, 413, 500, 503]),
        "viewExists" | "dropView" => ("Views", 204, &[400, 401, 403, 404, 503]),
        "renameView" => ("Views", 204, &[400, 401, 403, 404, 409, 413, 503]),
        name => unreachable!("a test holds that {name} has details"),
    };
    let body = match endpoint.name {
        "getToken" => Some("application/x-www-form-urlencoded"),
        "unregisterTable" => None,
        _ => (endpoint.method == Method::POST).then_some(JSON),
    };
    let parameters = match endpoint.name {
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
    Details { tag, parameters, body, success, errors }
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
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn request_body(content_type: &str) -> RequestBody {
    let object = Content::new(Some(ObjectBuilder::new().schema_type(Type::Object)));
    RequestBodyBuilder::new().content(content_type, object).required(Some(Required::True)).build()
}

fn success(status: u16) -> Response {
    match status {
        204 => Response::new("Done"),
        _ => {
            let object = Content::new(Some(ObjectBuilder::new().schema_type(Type::Object)));
            ResponseBuilder::new().description("Done").content(JSON, object).build()
        }
    }
}

fn failure(status: u16) -> Response {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let error = Content::new(Some(RefOr::<Schema>::Ref(Ref::from_schema_name(ERROR))));
    ResponseBuilder::new().description(reason.unwrap_or_default()).content(JSON, error).build()
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
