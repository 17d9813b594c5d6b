//! Manifest lists and manifests (table specification, "Manifests" and "Manifest Lists"): the paths they name.
//!
//! Fields are found by their names in the writer's schema, which every writer spells alike; everything else is skipped.
//! Files come from clients: sizes are bounded, and what cannot be read is an error, never a panic.

use apache_avro::{Reader, types::Value};
use std::io::Cursor;

/// Entries read of one file at most: more than any writer puts into one.
pub const ENTRIES_MAX: usize = 10_000_000;

/// Why a manifest or manifest list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not a readable Avro file")]
    Avro(#[source] Box<apache_avro::Error>),
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
