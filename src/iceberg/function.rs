//! Function metadata: the document of a SQL function, format version 1 (REST specification, "FunctionMetadata").
//!
//! Checked as far as the specification's schema goes and as far as names and ids within it must agree. The document is
//! kept as it was sent: unknown members and all. What its SQL says is the engines' business.

use super::{
    Error, Result, ensure,
    json::{Members, Reader},
};
use std::collections::HashSet;
use uuid::Uuid;

/// The one format version there is.
const FORMAT_VERSION: i64 = 1;

/// A valid document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionMetadata {
    pub uuid: Uuid,
    /// The document as it was sent.
    pub json: String,
}

impl FunctionMetadata {
    /// # Errors
    /// `Error::Invalid` naming the rule broken.
    pub fn parse(bytes: &[u8]) -> Result<FunctionMetadata> {
        let json = Reader::whole(bytes, Reader::skip)?;
        let mut members = Reader::only(json, Members::read)?;
        let uuid = members.required("function-uuid", |reader, key| {
            let text = reader.string(key)?;
            Uuid::try_parse(&text).map_err(|_| Error::Invalid(format!("{key} is not a uuid: {text}")))
        })?;
        let version = members.required("format-version", Reader::int64)?;
        ensure(version == FORMAT_VERSION, || format!("unsupported format version of a function: {version}"))?;
        members.required("definitions", |reader, _| check_definitions(reader))?;
        members.required("definition-log", |reader, _| reader.elements(check_log_entry))?;
        members.optional("location", Reader::string)?;
        members.optional("properties", Reader::string_map)?;
        members.optional("secure", Reader::boolean)?;
        members.optional("doc", Reader::string)?;
        Ok(FunctionMetadata { uuid, json: json.to_owned() })
    }
}

fn check_definitions(reader: &mut Reader<'_>) -> Result<()> {
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    reader.elements(|reader| {
        let mut members = Members::read(reader)?;
        let id = members.required("definition-id", Reader::string)?.into_owned();
        if let Some(name) = members.optional("specific-name", Reader::string)? {
            let name = name.into_owned();
            ensure(names.insert(name.clone()), || format!("specific-name occurs twice: {name}"))?;
        }
        check_definition(&id, members)?;
        ensure(ids.insert(id.clone()), || format!("definition-id occurs twice: {id}"))
    })
}

fn check_definition(id: &str, mut members: Members<'_>) -> Result<()> {
    members.required("parameters", |reader, _| reader.elements(check_parameter))?;
    let returned = members.required("return-type", |reader, _| check_type(reader))?;
    members.optional("return-nullable", Reader::boolean)?;
    let kind = members.required("function-type", Reader::string)?;
    match kind.as_ref() {
        "udf" => {}
        "udtf" => ensure(returned == DataType::Struct, || {
            format!("definition {id} is a udtf, so its return-type must be a struct")
        })?,
        _ => return Err(Error::Invalid(format!("function-type of definition {id} is neither udf nor udtf: {kind}"))),
    }
    let mut versions = HashSet::new();
    members.required("versions", |reader, _| {
        reader.elements(|reader| {
            let version = check_version(reader)?;
            ensure(versions.insert(version), || format!("definition {id} has version {version} twice"))
        })
    })?;
    let current = members.required("current-version-id", Reader::int64)?;
    ensure(versions.contains(&current), || format!("definition {id} has no version {current}, its current one"))?;
    members.optional("doc", Reader::string).map(drop)
}

fn check_parameter(reader: &mut Reader<'_>) -> Result<()> {
    let mut members = Members::read(reader)?;
    members.required("name", Reader::string)?;
    members.required("type", |reader, _| check_type(reader))?;
    members.optional("doc", Reader::string).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataType {
    Named,
    List,
    Map,
    Struct,
}

/// `FunctionDataType`. It nests no deeper than JSON may.
fn check_type(reader: &mut Reader<'_>) -> Result<DataType> {
    if reader.is_string() {
        let name = reader.string("type")?;
        let is_plain = !name.is_empty() && !name.contains([' ', '"', '\'', '`']);
        ensure(is_plain, || format!("a type must not be empty or hold spaces or quotes: {name}"))?;
        return Ok(DataType::Named);
    }
    let mut members = Members::read(reader)?;
    let kind = members.required("type", Reader::string)?;
    let mut inner = |key: &str| members.required(key, |reader, _| check_type(reader)).map(drop);
    match kind.as_ref() {
        "list" => inner("element").map(|()| DataType::List),
        "map" => inner("key").and_then(|()| inner("value")).map(|()| DataType::Map),
        "struct" => {
            members.required("fields", |reader, _| reader.elements(check_field))?;
            Ok(DataType::Struct)
        }
        _ => Err(Error::Invalid(format!("a nested type is neither list, map nor struct: {kind}"))),
    }
}

fn check_field(reader: &mut Reader<'_>) -> Result<()> {
    let mut members = Members::read(reader)?;
    members.required("name", Reader::string)?;
    members.required("type", |reader, _| check_type(reader)).map(drop)
}

/// `FunctionDefinitionVersion`; answers its id.
fn check_version(reader: &mut Reader<'_>) -> Result<i64> {
    let mut members = Members::read(reader)?;
    let id = members.required("version-id", Reader::int64)?;
    members.required("representations", |reader, _| reader.elements(check_representation))?;
    members.required("timestamp-ms", Reader::int64)?;
    members.optional("deterministic", Reader::boolean)?;
    let on_null = members.optional("on-null-input", Reader::string)?;
    ensure(on_null.as_deref().is_none_or(|on_null| matches!(on_null, "return-null" | "call")), || {
        format!("on-null-input of version {id} is neither return-null nor call")
    })?;
    Ok(id)
}

fn check_representation(reader: &mut Reader<'_>) -> Result<()> {
    let mut members = Members::read(reader)?;
    let kind = members.required("type", Reader::string)?;
    ensure(kind == "sql", || format!("unknown type of representation: {kind}"))?;
    members.required("dialect", Reader::string)?;
    members.required("sql", Reader::string).map(drop)
}

/// `FunctionDefinitionLogEntry`. It may name versions that are no longer kept.
fn check_log_entry(reader: &mut Reader<'_>) -> Result<()> {
    let mut members = Members::read(reader)?;
    members.required("timestamp-ms", Reader::int64)?;
    members.required("definition-versions", |reader, _| {
        reader.elements(|reader| {
            let mut members = Members::read(reader)?;
            members.required("definition-id", Reader::string)?;
            members.required("version-id", Reader::int64).map(drop)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn document() -> Value {
        json!({
            "function-uuid": "42fd3f91-bc10-41c1-8a52-92b57dd0a9b2",
            "format-version": 1,
            "definitions": [{
                "definition-id": "int",
                "specific-name": "add_one_int",
                "parameters": [{"name": "x", "type": "int", "doc": "a number"}],
                "return-type": "int",
                "versions": [{
                    "version-id": 1, "timestamp-ms": 1_734_507_000_123_i64, "deterministic": true,
                    "on-null-input": "return-null",
                    "representations": [{"type": "sql", "dialect": "trino", "sql": "x + 1"}],
                }],
                "current-version-id": 1,
                "function-type": "udf",
            }],
            "definition-log": [{
                "timestamp-ms": 1_734_507_000_123_i64,
                "definition-versions": [{"definition-id": "int", "version-id": 1}],
            }],
            "secure": false,
        })
    }

    /// Checks the document with one place changed; null takes the member away.
    fn check(pointer: &str, value: Value, expected: Expect) {
        let mut document = document();
        *document.pointer_mut(pointer).expect("the place is there") = value;
        let shown = match FunctionMetadata::parse(document.to_string().as_bytes()) {
            Ok(_) => "valid".to_owned(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn the_document_is_kept_as_it_was_sent() {
        let text = format!(" {} ", document().to_string().replacen('{', "{ \"x-tide\": 1.50e400, ", 1));
        let function = FunctionMetadata::parse(text.as_bytes()).unwrap();
        assert_eq!(function.json, text.trim());
        assert_eq!(function.uuid.to_string(), "42fd3f91-bc10-41c1-8a52-92b57dd0a9b2");
    }

    #[test]
    fn members_must_be_there_and_of_their_type() {
        check("/function-uuid", json!("x"), expect!["function-uuid is not a uuid: x"]);
        check("/function-uuid", json!(null), expect!["missing field: function-uuid"]);
        check("/format-version", json!(2), expect!["unsupported format version of a function: 2"]);
        check("/definitions", json!({}), expect!["malformed JSON: expected an array, found an object"]);
        check("/definition-log", json!(null), expect!["missing field: definition-log"]);
        check("/secure", json!("no"), expect!["secure must be true or false"]);
        check("/definitions/0/definition-id", json!(null), expect!["missing field: definition-id"]);
        check("/definitions/0/parameters/0", json!({"type": "int"}), expect!["missing field: name"]);
        check(
            "/definitions/0/function-type",
            json!("udaf"),
            expect!["function-type of definition int is neither udf nor udtf: udaf"],
        );
        check(
            "/definitions/0/current-version-id",
            json!(2),
            expect!["definition int has no version 2, its current one"],
        );
        let version = "/definitions/0/versions/0";
        check(&format!("{version}/timestamp-ms"), json!(null), expect!["missing field: timestamp-ms"]);
        check(
            &format!("{version}/on-null-input"),
            json!("skip"),
            expect!["on-null-input of version 1 is neither return-null nor call"],
        );
        check(
            &format!("{version}/representations/0/type"),
            json!("wasm"),
            expect!["unknown type of representation: wasm"],
        );
        check(&format!("{version}/representations/0/sql"), json!(null), expect!["missing field: sql"]);
        check(
            "/definition-log/0/definition-versions/0",
            json!({"version-id": 1}),
            expect!["missing field: definition-id"],
        );
    }

    #[test]
    fn ids_and_names_are_unique() {
        let definition = document()["definitions"][0].clone();
        check("/definitions", json!([definition, definition]), expect!["specific-name occurs twice: add_one_int"]);
        let mut other = definition.clone();
        other["specific-name"] = json!(null);
        check("/definitions", json!([definition, other]), expect!["definition-id occurs twice: int"]);
        other["definition-id"] = json!("float");
        check("/definitions", json!([definition, other]), expect!["valid"]);
        let version = definition["versions"][0].clone();
        check("/definitions/0/versions", json!([version, version]), expect!["definition int has version 1 twice"]);
    }

    #[test]
    fn types_nest_and_table_functions_return_a_struct() {
        let nested = json!({"type": "map", "key": "string", "value": {"type": "list", "element": {
            "type": "struct", "fields": [{"name": "a", "type": "decimal(9,2)", "id": 7}],
        }}});
        check("/definitions/0/parameters/0/type", nested, expect!["valid"]);
        check(
            "/definitions/0/return-type",
            json!("decimal(9, 2)"),
            expect!["a type must not be empty or hold spaces or quotes: decimal(9, 2)"],
        );
        check(
            "/definitions/0/return-type",
            json!({"type": "set"}),
            expect!["a nested type is neither list, map nor struct: set"],
        );
        check("/definitions/0/return-type", json!({"type": "list"}), expect!["missing field: element"]);
        check(
            "/definitions/0/function-type",
            json!("udtf"),
            expect!["definition int is a udtf, so its return-type must be a struct"],
        );
        let deep = (0..200).fold(json!("int"), |inner, _| json!({"type": "list", "element": inner}));
        check("/definitions/0/return-type", deep, expect!["JSON nests deeper than 100 levels"]);
    }
}
