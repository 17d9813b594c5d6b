//! The OpenAPI document of what is served, made from the table of routes. How to describe a new one:
//! `openapi/operations.rs`.

mod operations;
mod schemas;

use super::route::{ENDPOINTS, Endpoint};
use http::{Method, StatusCode};
use operations::{ANYWHERE, DESCRIBED, Described, KEY, OF_TOKENS, Parameter, TOKENS, Value, WITH_BODY};
use utoipa::openapi::{
    Components, Content, Header, HttpMethod, Info, ObjectBuilder, OpenApi, Paths, Ref, RefOr, Required, Response,
    ResponseBuilder, Schema,
    path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::{KnownFormat, SchemaFormat, Type},
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

/// The schema of every error but those of [`TOKENS`].
pub const ERROR: &str = "IcebergErrorResponse";
const BEARER: &str = "bearer";
const JSON: &str = "application/json";

/// Paths, methods, parameters, bodies and errors of every served route.
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

/// A failure in the wrapper of `ERROR`, with what its status says.
pub fn failure(status: u16) -> Response {
    describe_failure(status, ERROR)
}

fn describe_failure(status: u16, schema: &str) -> Response {
    let mut response = ResponseBuilder::new().description(reason(status)).content(JSON, content(schema));
    if status == 503 {
        let seconds = Header::new(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)));
        response = response.header("Retry-After", seconds);
    }
    response.build()
}

/// What a status is called.
pub fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
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
    let described = DESCRIBED.iter().find(|described| described.name == endpoint.name);
    let Some(described) = described else { unreachable!("a test holds that {} is described", endpoint.name) };
    let success = if described.answer.is_some() { StatusCode::OK } else { StatusCode::NO_CONTENT };
    let mut operation = OperationBuilder::new()
        .operation_id(Some(endpoint.name))
        .summary(Some(endpoint.summary))
        .tag(described.tag)
        .request_body(described.request.map(|schema| request_body(endpoint.name, schema)))
        .response(success.as_u16().to_string(), answer(described));
    for name in path_parameters(endpoint.template) {
        let value = Value::Chars(1, operations::path_chars_max(name));
        operation = operation.parameter(parameter(&Parameter { name, place: ParameterIn::Path, value, meaning: "" }));
    }
    for described in described.parameters.iter().chain(described.takes_key.then_some(&KEY)) {
        operation = operation.parameter(parameter(described));
    }
    if endpoint.name != TOKENS {
        operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, []));
    }
    let anywhere = if endpoint.name == TOKENS { OF_TOKENS } else { ANYWHERE };
    let with_body = if described.reads_body { WITH_BODY } else { &[] };
    for status in anywhere.iter().chain(with_body).chain(described.statuses) {
        operation = operation.response(status.to_string(), refusal(endpoint, *status));
    }
    operation.build()
}

fn path_parameters(template: &'static str) -> impl Iterator<Item = &'static str> {
    template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn parameter(described: &Parameter) -> utoipa::openapi::path::Parameter {
    let Parameter { name, place, value, meaning } = described.clone();
    let required = if place == ParameterIn::Path { Required::True } else { Required::False };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description((!meaning.is_empty()).then_some(meaning))
        .schema(Some(schema(value)))
        .build()
}

fn schema(value: Value) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    match value {
        Value::Flag => ObjectBuilder::new().schema_type(Type::Boolean),
        Value::Uuid => text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))),
        Value::Size => ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)),
        Value::Words(words) => text.enum_values(Some(words.iter().copied())),
        Value::Text => text,
        Value::Chars(min, max) => text.min_length((min > 0).then_some(min)).max_length(Some(max)),
    }
}

fn request_body(operation: &str, schema: &str) -> RequestBody {
    let content_type = if operation == TOKENS { "application/x-www-form-urlencoded" } else { JSON };
    RequestBodyBuilder::new().content(content_type, content(schema)).required(Some(Required::True)).build()
}

fn content(schema: &str) -> Content {
    Content::new(Some(RefOr::<Schema>::Ref(Ref::from_schema_name(schema))))
}

fn answer(described: &Described) -> Response {
    let Some(schema) = described.answer else { return Response::new("Done") };
    let mut response = ResponseBuilder::new().description("Done").content(JSON, content(schema));
    for (name, meaning) in described.headers {
        let mut header = Header::new(ObjectBuilder::new().schema_type(Type::String));
        header.description = Some((*meaning).to_owned());
        response = response.header(*name, header);
    }
    response.build()
}

/// Answers to HEAD and unchanged ones have no body (RFC 9110, sections 9.3.2 and 15.4.5).
fn refusal(endpoint: &Endpoint, status: u16) -> Response {
    match endpoint.name {
        _ if endpoint.method == Method::HEAD || status == StatusCode::NOT_MODIFIED => Response::new(reason(status)),
        TOKENS => describe_failure(status, "OAuthError"),
        _ => failure(status),
    }
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
    use std::collections::BTreeSet;

    #[test]
    fn every_served_route_is_described_once_and_nothing_else() {
        let served: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.name).collect();
        let described: Vec<&str> = DESCRIBED.iter().map(|described| described.name).collect();
        assert_eq!(BTreeSet::from_iter(&served), BTreeSet::from_iter(&described));
        assert_eq!(served.len(), described.len());
        let document = serde_json::to_value(openapi()).unwrap();
        for endpoint in ENDPOINTS {
            let method = endpoint.method.as_str().to_lowercase();
            assert_eq!(document["paths"][endpoint.template][&method]["operationId"], endpoint.name);
        }
    }
}
