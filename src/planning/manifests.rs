//! Manifest lists and manifests (table specification, "Manifests" and "Manifest Lists"): the paths they name.
//!
//! Fields are found by their names in the writer's schema, which every writer spells alike; everything else is skipped.
//! Files come from clients: sizes are bounded, and what cannot be read is an error, never a panic.

use apache_avro::{Reader, Schema, schema::Name, types::Value};
use std::io::Cursor;

/// Entries read of one file at most: more than any writer puts into one.
pub const ENTRIES_MAX: usize = 10_000_000;

/// Why a manifest or manifest list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not a readable Avro file")]
    Avro(#[source] Box<apache_avro::Error>),
    /// Values of such a type nest as deep as the file's bytes say, which no stack bears.
    #[error("a type that holds itself")]
    Recursive,
    #[error("an entry has no {0}")]
    Missing(&'static str),
    #[error("more than {ENTRIES_MAX} entries")]
    TooMany,
}

/// A manifest as a manifest list names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    pub path: String,
}

/// The manifests of a snapshot, from its manifest list.
///
/// # Errors
/// [`Error`] when the bytes are no manifest list.
pub fn manifest_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, Error> {
    let mut manifests = Vec::new();
    each_record(bytes, |record| {
        let path = text(&record, "manifest_path").ok_or(Error::Missing("manifest_path"))?;
        manifests.push(ManifestFile { path });
        Ok(())
    })?;
    Ok(manifests)
}

/// Paths of the data and delete files a manifest names, whatever their status: deleted ones may still be there.
///
/// # Errors
/// [`Error`] when the bytes are no manifest.
pub fn files(bytes: &[u8]) -> Result<Vec<String>, Error> {
    let mut paths = Vec::new();
    each_record(bytes, |mut record| {
        let data_file = take(&mut record, "data_file").ok_or(Error::Missing("data_file"))?;
        let Value::Record(data_file) = data_file else { return Err(Error::Missing("data_file")) };
        paths.push(text(&data_file, "file_path").ok_or(Error::Missing("file_path"))?);
        Ok(())
    })?;
    Ok(paths)
}

type Record = Vec<(String, Value)>;

fn each_record(bytes: &[u8], mut visit: impl FnMut(Record) -> Result<(), Error>) -> Result<(), Error> {
    let reader = Reader::new(Cursor::new(bytes)).map_err(|error| Error::Avro(Box::new(error)))?;
    if holds_itself(reader.writer_schema(), &mut Vec::new()) {
        return Err(Error::Recursive);
    }
    for (count, value) in reader.enumerate() {
        if count >= ENTRIES_MAX {
            return Err(Error::TooMany);
        }
        match value.map_err(|error| Error::Avro(Box::new(error)))? {
            Value::Record(record) => visit(record)?,
            _ => return Err(Error::Missing("record")),
        }
    }
    Ok(())
}

/// Whether a record is named within its own definition. The schema itself is no deeper than its JSON may be.
fn holds_itself<'a>(schema: &'a Schema, within: &mut Vec<&'a Name>) -> bool {
    match schema {
        Schema::Ref { name } => within.iter().any(|outer| outer.name() == name.name()),
        Schema::Array(array) => holds_itself(&array.items, within),
        Schema::Map(map) => holds_itself(&map.types, within),
        Schema::Union(union) => union.variants().iter().any(|variant| holds_itself(variant, within)),
        Schema::Record(record) => {
            within.push(&record.name);
            let found = record.fields.iter().any(|field| holds_itself(&field.schema, within));
            within.pop();
            found
        }
        _ => false,
    }
}

fn take(record: &mut Record, name: &str) -> Option<Value> {
    let at = record.iter().position(|(field, _)| field == name)?;
    Some(record.swap_remove(at).1)
}

fn text(record: &Record, name: &str) -> Option<String> {
    let (_, value) = record.iter().find(|(field, _)| field == name)?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Union(_, inner) => match inner.as_ref() {
            Value::String(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use apache_avro::{Schema, Writer};

    const LIST: &str = r#"{"type":"record","name":"manifest_file","fields":[
        {"name":"manifest_path","type":"string"},{"name":"manifest_length","type":"long"}]}"#;
    const MANIFEST: &str = r#"{"type":"record","name":"manifest_entry","fields":[
        {"name":"status","type":"int"},
        {"name":"snapshot_id","type":["null","long"]},
        {"name":"data_file","type":{"type":"record","name":"r2","fields":[
            {"name":"file_path","type":"string"},{"name":"file_format","type":"string"}]}}]}"#;

    fn write(schema: &str, records: Vec<Value>) -> Vec<u8> {
        let schema = Schema::parse_str(schema).unwrap();
        let mut writer = Writer::new(&schema, Vec::new()).unwrap();
        for record in records {
            writer.append_value(record).unwrap();
        }
        writer.into_inner().unwrap()
    }

    fn string(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    /// A manifest list naming `manifests`.
    pub(crate) fn list_of(manifests: &[String]) -> Vec<u8> {
        let record = |path: &String| {
            Value::Record(vec![("manifest_path".into(), string(path)), ("manifest_length".into(), Value::Long(1))])
        };
        write(LIST, manifests.iter().map(record).collect())
    }

    /// A manifest naming `files`.
    pub(crate) fn manifest_of(files: &[String]) -> Vec<u8> {
        let record = |path: &String| {
            let data_file = vec![("file_path".into(), string(path)), ("file_format".into(), string("PARQUET"))];
            Value::Record(vec![
                ("status".into(), Value::Int(2)),
                ("snapshot_id".into(), Value::Union(1, Box::new(Value::Long(1)))),
                ("data_file".into(), Value::Record(data_file)),
            ])
        };
        write(MANIFEST, files.iter().map(record).collect())
    }

    #[test]
    fn paths_are_found_by_name() {
        let paths = vec!["s3://b/t/metadata/m1.avro".to_owned(), "s3://b/t/metadata/m2.avro".to_owned()];
        let found: Vec<String> = manifest_list(&list_of(&paths)).unwrap().into_iter().map(|m| m.path).collect();
        assert_eq!(found, paths);
        assert_eq!(files(&manifest_of(&paths)).unwrap(), paths);
    }

    #[test]
    fn files_of_a_real_writer_are_read() {
        let list = manifest_list(include_bytes!("../../tests/data/manifests/pyiceberg-list.avro")).unwrap();
        assert_eq!(list.len(), 2);
        assert!(list.iter().all(|manifest| manifest.path.starts_with("file:///tmp/warehouse/n/t/metadata/")));
        let files = files(include_bytes!("../../tests/data/manifests/pyiceberg-manifest.avro")).unwrap();
        assert_eq!(files.len(), 2);
        assert!(files[0].contains("/dd=2024-01-01/decp=1.50/") && files[1].contains("/decp=null/"), "{files:?}");
    }

    /// A file of one record whose bytes are all zero, written by hand: the crate's writer would not end.
    fn zeros(schema: &str) -> Vec<u8> {
        let long = |n: usize| {
            let mut rest = n << 1;
            let mut bytes = Vec::new();
            while rest > 0x7f {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            bytes
        };
        let (key, sync) = (b"avro.schema", [7_u8; 16]);
        let header = [b"Obj\x01".to_vec(), long(1), long(key.len()), key.to_vec(), long(schema.len()), schema.into()];
        let block = [vec![0], sync.to_vec(), long(1), long(4), vec![0; 4], sync.to_vec()];
        [header.concat(), block.concat()].concat()
    }

    #[test]
    fn types_that_hold_themselves_are_refused() {
        for field in [
            r#""manifest_file""#,
            r#"["null","manifest_file"]"#,
            r#"{"type":"array","items":"manifest_file"}"#,
            r#"{"type":"map","values":"manifest_file"}"#,
            r#"{"type":"record","name":"inner","fields":[{"name":"b","type":"manifest_file"}]}"#,
        ] {
            let schema =
                format!(r#"{{"type":"record","name":"manifest_file","fields":[{{"name":"a","type":{field}}}]}}"#);
            assert!(matches!(manifest_list(&zeros(&schema)), Err(Error::Recursive)), "{field}");
        }
        // The same type twice, side by side, is what writers of two uuid columns make.
        let twice = r#"{"type":"record","name":"r","fields":[
            {"name":"a","type":{"type":"fixed","name":"f","size":1}},{"name":"b","type":"f"}]}"#;
        assert!(matches!(manifest_list(&zeros(twice)), Err(Error::Missing("manifest_path"))));
    }

    #[test]
    fn broken_files_are_errors() {
        assert!(matches!(files(b"not avro"), Err(Error::Avro(_))));
        assert!(matches!(files(b""), Err(Error::Avro(_))));
        let list = list_of(&["x".to_owned()]);
        assert!(matches!(files(&list), Err(Error::Missing("data_file"))));
        let manifest = manifest_of(&["x".to_owned(), "y".to_owned()]);
        for length in 0..manifest.len() {
            assert!(files(&manifest[..length]).is_err() || files(&manifest[..length]).unwrap().is_empty());
        }
    }
}
