//! Schemas of bodies. What serde reads and writes describes itself; what the table model reads by its own reader is
//! described here, as far as a client needs it: unknown fields are kept wherever the specification allows them.

use super::super::{config, credentials, namespaces, register, signing, tables, tokens, views};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema,
    openapi::{RefOr, Schema},
};

/// Name and schema of everything that bodies refer to.
pub fn all() -> Vec<(&'static str, RefOr<Schema>)> {
    let mut schemas = vec![
        ("CatalogConfig", config::CatalogConfig::schema()),
        ("CreateNamespaceRequest", namespaces::CreateNamespaceRequest::schema()),
        ("ListNamespacesResponse", namespaces::ListNamespacesResponse::schema()),
        ("NamespaceResponse", namespaces::NamespaceResponse::schema()),
        ("UpdatePropertiesRequest", namespaces::UpdatePropertiesRequest::schema()),
        ("UpdatePropertiesResponse", namespaces::UpdatePropertiesResponse::schema()),
        ("ListTablesResponse", tables::ListTablesResponse::schema()),
        ("Identifier", tables::OwnedIdentifier::schema()),
        ("RenameTableRequest", tables::RenameTableRequest::schema()),
        ("RegisterTableRequest", register::RegisterTableRequest::schema()),
        ("RegisterViewRequest", views::RegisterViewRequest::schema()),
        ("RemoteSignRequest", signing::RemoteSignRequest::schema()),
        ("RemoteSignResult", signing::RemoteSignResult::schema()),
        ("RemoteSigningConfig", credentials::RemoteSigningConfig::schema()),
        ("OAuthToken", tokens::OAuthToken::schema()),
        ("OAuthError", tokens::OAuthError::schema()),
    ];
    schemas.extend(described().into_iter().map(|(name, schema)| (name, parsed(schema))));
    schemas
}

fn parsed(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema)
        .unwrap_or_else(|error| unreachable!("a test holds that schemas are schemas: {error}"))
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn strings() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn list(element: Value) -> Value {
    json!({"type": "array", "items": element})
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties})
}

fn integer() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn long() -> Value {
    json!({"type": "integer", "format": "int64"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn any() -> Value {
    json!({"type": ["string", "number", "boolean", "object", "array", "null"]})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn described() -> Vec<(&'static str, Value)> {
    let mut schemas = table_model();
    schemas.extend(requests());
    schemas.extend(answers());
    schemas
}

fn table_model() -> Vec<(&'static str, Value)> {
    let transform_field = |more: Value| {
        let mut properties = json!({"source-id": integer(), "transform": {"type": "string", "examples": ["identity", "day", "bucket[16]"]}});
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        properties
    };
    vec![
        (
            "Schema",
            object(
                &["type", "fields"],
                json!({
                    "type": one_of(&["struct"]),
                    "schema-id": integer(),
                    "identifier-field-ids": list(integer()),
                    "fields": list(reference("StructField")),
                }),
            ),
        ),
        (
            "StructField",
            object(
                &["id", "name", "required", "type"],
                json!({
                    "id": integer(),
                    "name": text(),
                    "required": {"type": "boolean"},
                    "type": {
                        "type": ["string", "object"],
                        "description": "A primitive type's name, or a struct, list or map",
                        "examples": ["long"],
                    },
                    "doc": text(),
                    "initial-default": any(),
                    "write-default": any(),
                }),
            ),
        ),
        (
            "PartitionSpec",
            object(
                &["fields"],
                json!({
                    "spec-id": integer(),
                    "fields": list(object(
                        &["name", "transform"],
                        transform_field(json!({"name": text(), "field-id": integer()})),
                    )),
                }),
            ),
        ),
        (
            "SortOrder",
            object(
                &["order-id", "fields"],
                json!({
                    "order-id": integer(),
                    "fields": list(object(
                        &["transform", "direction", "null-order"],
                        transform_field(json!({
                            "direction": one_of(&["asc", "desc"]),
                            "null-order": one_of(&["nulls-first", "nulls-last"]),
                        })),
                    )),
                }),
            ),
        ),
        (
            "Snapshot",
            object(
                &["snapshot-id", "timestamp-ms", "manifest-list", "summary"],
                json!({
                    "snapshot-id": long(),
                    "parent-snapshot-id": long(),
                    "sequence-number": long(),
                    "timestamp-ms": long(),
                    "manifest-list": text(),
                    "summary": strings(),
                    "schema-id": integer(),
                    "first-row-id": long(),
                    "added-rows": long(),
                }),
            ),
        ),
        (
            "ViewVersion",
            object(
                &["version-id", "timestamp-ms", "schema-id", "summary", "representations", "default-namespace"],
                json!({
                    "version-id": integer(),
                    "timestamp-ms": long(),
                    "schema-id": integer(),
                    "summary": strings(),
                    "representations": list(object(
                        &["type", "sql", "dialect"],
                        json!({"type": one_of(&["sql"]), "sql": text(), "dialect": text()}),
                    )),
                    "default-catalog": text(),
                    "default-namespace": list(text()),
                }),
            ),
        ),
        ("ViewUpdate", json!({"anyOf": view_updates()})),
        (
            "ViewRequirement",
            object(
                &["type", "uuid"],
                json!({
                    "type": {"type": "string", "const": "assert-view-uuid"},
                    "uuid": {"type": "string", "format": "uuid"},
                }),
            ),
        ),
        ("TableUpdate", json!({"anyOf": table_updates()})),
        ("TableRequirement", json!({"anyOf": table_requirements()})),
    ]
}

fn update(action: &str, required: &[&str], properties: Value) -> Value {
    let mut update = object(required, properties);
    update["required"].as_array_mut().into_iter().for_each(|required| required.push(json!("action")));
    update["properties"]["action"] = json!({"type": "string", "const": action});
    update
}

fn table_updates() -> Vec<Value> {
    let statistics = json!({"type": "object"});
    vec![
        update("assign-uuid", &["uuid"], json!({"uuid": {"type": "string", "format": "uuid"}})),
        update("upgrade-format-version", &["format-version"], json!({"format-version": integer()})),
        update("add-schema", &["schema"], json!({"schema": reference("Schema"), "last-column-id": integer()})),
        update("set-current-schema", &["schema-id"], json!({"schema-id": integer()})),
        update("remove-schemas", &["schema-ids"], json!({"schema-ids": list(integer())})),
        update("add-spec", &["spec"], json!({"spec": reference("PartitionSpec")})),
        update("set-default-spec", &["spec-id"], json!({"spec-id": integer()})),
        update("remove-partition-specs", &["spec-ids"], json!({"spec-ids": list(integer())})),
        update("add-sort-order", &["sort-order"], json!({"sort-order": reference("SortOrder")})),
        update("set-default-sort-order", &["sort-order-id"], json!({"sort-order-id": integer()})),
        update("add-snapshot", &["snapshot"], json!({"snapshot": reference("Snapshot")})),
        update(
            "set-snapshot-ref",
            &["ref-name", "type", "snapshot-id"],
            json!({
                "ref-name": text(),
                "type": one_of(&["tag", "branch"]),
                "snapshot-id": long(),
                "max-ref-age-ms": long(),
                "max-snapshot-age-ms": long(),
                "min-snapshots-to-keep": integer(),
            }),
        ),
        update("remove-snapshots", &["snapshot-ids"], json!({"snapshot-ids": list(long())})),
        update("remove-snapshot-ref", &["ref-name"], json!({"ref-name": text()})),
        update("set-location", &["location"], json!({"location": text()})),
        update("set-properties", &["updates"], json!({"updates": strings()})),
        update("remove-properties", &["removals"], json!({"removals": list(text())})),
        update("set-statistics", &["statistics"], json!({"snapshot-id": long(), "statistics": statistics})),
        update("remove-statistics", &["snapshot-id"], json!({"snapshot-id": long()})),
        update("set-partition-statistics", &["partition-statistics"], json!({"partition-statistics": statistics})),
        update("remove-partition-statistics", &["snapshot-id"], json!({"snapshot-id": long()})),
        update(
            "add-encryption-key",
            &["encryption-key"],
            json!({"encryption-key": object(
                &["key-id", "encrypted-key-metadata"],
                json!({
                    "key-id": text(),
                    "encrypted-key-metadata": {"type": "string", "contentEncoding": "base64"},
                    "encrypted-by-id": text(),
                    "properties": strings(),
                }),
            )}),
        ),
        update("remove-encryption-key", &["key-id"], json!({"key-id": text()})),
    ]
}

fn view_updates() -> Vec<Value> {
    let shared =
        ["assign-uuid", "upgrade-format-version", "add-schema", "set-location", "set-properties", "remove-properties"];
    let is_shared = |update: &Value| shared.iter().any(|action| update["properties"]["action"]["const"] == *action);
    let mut updates: Vec<Value> = table_updates().into_iter().filter(is_shared).collect();
    updates.push(update("add-view-version", &["view-version"], json!({"view-version": reference("ViewVersion")})));
    updates.push(update("set-current-view-version", &["view-version-id"], json!({"view-version-id": integer()})));
    updates
}

fn table_requirements() -> Vec<Value> {
    let requirement = |kind: &str, property: Option<(&str, Value)>| {
        let mut requirement = object(&["type"], json!({"type": {"type": "string", "const": kind}}));
        if let Some((name, schema)) = property {
            requirement["properties"][name] = schema;
            requirement["required"] = json!(["type", name]);
        }
        requirement
    };
    let mut requirements = vec![
        requirement("assert-create", None),
        requirement("assert-table-uuid", Some(("uuid", json!({"type": "string", "format": "uuid"})))),
        object(
            &["type", "ref", "snapshot-id"],
            json!({
                "type": {"type": "string", "const": "assert-ref-snapshot-id"},
                "ref": text(),
                "snapshot-id": {"type": ["integer", "null"], "format": "int64"},
            }),
        ),
    ];
    for (kind, property) in [
        ("assert-last-assigned-field-id", "last-assigned-field-id"),
        ("assert-current-schema-id", "current-schema-id"),
        ("assert-last-assigned-partition-id", "last-assigned-partition-id"),
        ("assert-default-spec-id", "default-spec-id"),
        ("assert-default-sort-order-id", "default-sort-order-id"),
    ] {
        requirements.push(requirement(kind, Some((property, integer()))));
    }
    requirements
}

fn requests() -> Vec<(&'static str, Value)> {
    let commit = json!({
        "identifier": reference("Identifier"),
        "requirements": list(reference("TableRequirement")),
        "updates": list(reference("TableUpdate")),
    });
    vec![
        (
            "OAuthTokenRequest",
            object(
                &["grant_type"],
                json!({
                    "grant_type": one_of(&["client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange"]),
                    "client_id": text(),
                    "client_secret": text(),
                    "scope": text(),
                    "subject_token": text(),
                    "subject_token_type": text(),
                }),
            ),
        ),
        (
            "CreateTableRequest",
            object(
                &["name", "schema"],
                json!({
                    "name": text(),
                    "location": text(),
                    "schema": reference("Schema"),
                    "partition-spec": reference("PartitionSpec"),
                    "write-order": reference("SortOrder"),
                    "stage-create": {"type": "boolean"},
                    "properties": strings(),
                }),
            ),
        ),
        ("CommitTableRequest", object(&["requirements", "updates"], commit.clone())),
        (
            "CommitTransactionRequest",
            object(
                &["table-changes"],
                json!({"table-changes": list(object(&["identifier", "requirements", "updates"], commit))}),
            ),
        ),
        (
            "CreateViewRequest",
            object(
                &["name", "schema", "view-version", "properties"],
                json!({
                    "name": text(),
                    "location": text(),
                    "schema": reference("Schema"),
                    "view-version": reference("ViewVersion"),
                    "properties": strings(),
                }),
            ),
        ),
        (
            "CommitViewRequest",
            object(
                &["updates"],
                json!({
                    "identifier": reference("Identifier"),
                    "requirements": list(reference("ViewRequirement")),
                    "updates": list(reference("ViewUpdate")),
                }),
            ),
        ),
        (
            "ReportMetricsRequest",
            object(
                &["report-type", "table-name", "snapshot-id", "metrics"],
                json!({
                    "report-type": one_of(&["scan-report", "commit-report"]),
                    "table-name": text(),
                    "snapshot-id": long(),
                    "filter": any(),
                    "schema-id": integer(),
                    "projected-field-ids": list(integer()),
                    "projected-field-names": list(text()),
                    "sequence-number": long(),
                    "operation": text(),
                    "metrics": {"type": "object"},
                    "metadata": strings(),
                }),
            ),
        ),
    ]
}

fn answers() -> Vec<(&'static str, Value)> {
    let metadata = json!({"type": "object", "description": "The content of the metadata file, as it is stored"});
    let credential = object(&["prefix", "config"], json!({"prefix": text(), "config": strings()}));
    vec![
        (
            "LoadTableResult",
            object(
                &["metadata"],
                json!({
                    "metadata-location": text(),
                    "metadata": metadata,
                    "config": strings(),
                    "storage-credentials": list(credential.clone()),
                    "remote-signing-config": reference("RemoteSigningConfig"),
                }),
            ),
        ),
        (
            "CommitTableResponse",
            object(&["metadata-location", "metadata"], json!({"metadata-location": text(), "metadata": metadata})),
        ),
        (
            "LoadViewResult",
            object(
                &["metadata-location", "metadata"],
                json!({"metadata-location": text(), "metadata": metadata, "config": strings()}),
            ),
        ),
        ("LoadCredentialsResponse", object(&["storage-credentials"], json!({"storage-credentials": list(credential)}))),
        (
            "ListFunctionsResponse",
            object(
                &["identifiers"],
                json!({"identifiers": list(list(text())), "next-page-token": {"type": ["string", "null"]}}),
            ),
        ),
        ("LoadFunctionResult", object(&["metadata"], json!({"metadata": {"type": "object"}}))),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::operations::DESCRIBED;
    use super::*;

    #[test]
    fn schemas_are_schemas_and_refer_to_each_other_only() {
        let schemas = all();
        let names: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
        for described in DESCRIBED {
            for name in [described.request, described.answer].into_iter().flatten() {
                assert!(names.contains(&name), "{}: {name}", described.name);
            }
        }
        let text = serde_json::to_string(&schemas.iter().map(|(_, schema)| schema).collect::<Vec<_>>()).unwrap();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(names.contains(&name), "{name}");
        }
    }
}
