//! Manifest lists and manifests (table specification, "Manifests" and "Manifest Lists"): the paths they name.
//!
//! Fields are found by their names in the writer's schema, which every writer spells alike; everything else is skipped.
//! Files come from clients: what reading one costs is bounded (`avro.rs`), and what cannot be read is an error.

use super::avro;

pub use super::avro::Error;

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
    let paths = avro::texts(bytes, &["manifest_path"])?;
    Ok(paths.into_iter().map(|path| ManifestFile { path }).collect())
}

/// Paths of the data and delete files a manifest names, whatever their status: deleted ones may still be there.
///
/// # Errors
/// [`Error`] when the bytes are no manifest.
pub fn files(bytes: &[u8]) -> Result<Vec<String>, Error> {
    avro::texts(bytes, &["data_file", "file_path"])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use apache_avro::{Schema, Writer, types::Value};

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
        assert!(matches!(files(b"not avro"), Err(Error::NotAvro)));
        assert!(matches!(files(b""), Err(Error::NotAvro)));
        let list = list_of(&["x".to_owned()]);
        assert!(matches!(files(&list), Err(Error::Missing("data_file"))));
        let manifest = manifest_of(&["x".to_owned(), "y".to_owned()]);
        for length in 0..manifest.len() {
            assert!(files(&manifest[..length]).is_err() || files(&manifest[..length]).unwrap().is_empty());
        }
    }
}
