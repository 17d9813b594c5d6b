//! `snapshots=refs`: leaves out snapshots that no branch or tag points at, and copies everything else as it stands.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;
use std::{collections::HashSet, fmt};

/// The fields of a JSON object in the order they stand, their values unparsed.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyFields;
        impl<'de> Visitor<'de> for AnyFields {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(AnyFields)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(Deserialize)]
struct SnapshotId {
    #[serde(rename = "snapshot-id")]
    id: i64,
}

/// Metadata JSON with the snapshots that refs point at. Metadata without refs has `main` at its current snapshot.
pub fn keep_referenced(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut fields: Fields<'_> = serde_json::from_slice(json)?;
    let kept = referenced(&fields)?;
    for (name, value) in &mut fields.0 {
        if name == "snapshots" {
            let snapshots: Option<Vec<&RawValue>> = serde_json::from_str(value.get())?;
            let mut remaining = Vec::new();
            for snapshot in snapshots.unwrap_or_default() {
                if kept.contains(&serde_json::from_str::<SnapshotId>(snapshot.get())?.id) {
                    remaining.push(snapshot);
                }
            }
            let remaining = serde_json::value::to_raw_value(&remaining)?;
            return serialize_with(&fields, &remaining);
        }
    }
    Ok(json.to_vec())
}

fn referenced(fields: &Fields<'_>) -> Result<HashSet<i64>, serde_json::Error> {
    let mut kept = HashSet::new();
    for (name, value) in &fields.0 {
        if name == "refs" {
            let refs: Option<Vec<SnapshotId>> = serde_json::from_str::<Option<Fields<'_>>>(value.get())?
                .map(|refs| refs.0.iter().map(|(_, one)| serde_json::from_str(one.get())).collect())
                .transpose()?;
            kept.extend(refs.unwrap_or_default().into_iter().map(|one| one.id));
        } else if name == "current-snapshot-id" {
            kept.extend(serde_json::from_str::<Option<i64>>(value.get())?);
        }
    }
    Ok(kept)
}

fn serialize_with(fields: &Fields<'_>, snapshots: &RawValue) -> Result<Vec<u8>, serde_json::Error> {
    let fields = fields.0.iter().map(|(name, value)| {
        let value: &RawValue = if name == "snapshots" { snapshots } else { value };
        (name.clone(), value)
    });
    serde_json::to_vec(&Fields(fields.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(String::from_utf8(keep_referenced(json.as_bytes()).unwrap()).unwrap(), expected);
    }

    #[test]
    fn only_snapshots_a_ref_points_at_stay() {
        check(
            r#"{"a":{"x":1.50},"snapshots":[{"snapshot-id":1,"n":1e3},{"snapshot-id":2},{"snapshot-id":3}],"refs":{"main":{"snapshot-id":3},"t":{"type":"tag","snapshot-id":1}},"current-snapshot-id":3,"snapshot-log":[{"snapshot-id":2}]}"#,
            r#"{"a":{"x":1.50},"snapshots":[{"snapshot-id":1,"n":1e3},{"snapshot-id":3}],"refs":{"main":{"snapshot-id":3},"t":{"type":"tag","snapshot-id":1}},"current-snapshot-id":3,"snapshot-log":[{"snapshot-id":2}]}"#,
        );
    }

    #[test]
    fn without_refs_main_is_the_current_snapshot() {
        check(
            r#"{"snapshots":[{"snapshot-id":1},{"snapshot-id":2}],"current-snapshot-id":2,"refs":null}"#,
            r#"{"snapshots":[{"snapshot-id":2}],"current-snapshot-id":2,"refs":null}"#,
        );
        check(r#"{"snapshots":null,"current-snapshot-id":-1}"#, r#"{"snapshots":[],"current-snapshot-id":-1}"#);
        check(r#"{"x":1}"#, r#"{"x":1}"#);
    }
}
