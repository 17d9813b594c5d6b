//! Where tables live: default locations, and which requested ones are acceptable. Pure.
//!
//! A location is `s3://bucket/key` without a trailing slash. Every table's lies inside its warehouse's, and keys that
//! we choose ourselves hold only characters that every client spells the same in a URL.

use super::{Error, Result, relation::Relation};
use crate::iceberg::ident::{Namespace, TableIdent};
use uuid::Uuid;

/// Longest key of a location, in bytes: files below it still fit S3's 1,024.
pub const KEY_BYTES_MAX: usize = 512;

/// Longest key of an object, in bytes (S3's own bound): what is named longer cannot be there.
pub const OBJECT_KEY_BYTES_MAX: usize = 1_024;

/// The property that names where a namespace's tables go by default.
pub const NAMESPACE_LOCATION: &str = "location";

/// Whether `location` is `base` or lies below it. Neither has a trailing slash.
pub fn is_within(location: &str, base: &str) -> bool {
    location.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Splits `s3://bucket/key` into bucket and key; the key may be empty.
pub fn split(location: &str) -> Option<(&str, &str)> {
    let rest = location.strip_prefix("s3://")?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    (!bucket.is_empty()).then_some((bucket, key))
}

/// A location a client asked for, without its trailing slashes.
///
/// # Errors
/// `Error::Invalid` when it is not strictly inside `warehouse`, or holds a segment no object can be addressed by or a
/// character that clients do not take for part of a key: Java's S3 client cuts a location at `?` and `#`, others decode
/// what follows a `%`.
pub fn requested(location: &str, warehouse: &str) -> Result<String> {
    let location = location.trim_end_matches('/');
    if !location.starts_with("s3://") {
        return Err(Error::Invalid(format!("location is not an s3:// location: {location}")));
    }
    if location == warehouse || !is_within(location, warehouse) {
        return Err(Error::Invalid(format!("location is not inside the warehouse's {warehouse}/: {location}")));
    }
    if let Some(odd) = location.chars().find(|c| matches!(c, '?' | '#' | '%') || c.is_control()) {
        return Err(Error::Invalid(format!(
            "location holds {odd:?}, which clients read as more than a key: {location}"
        )));
    }
    let key = split(location).map(|(_, key)| key).unwrap_or_default();
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::Invalid(format!("location is longer than {KEY_BYTES_MAX} bytes: {location}")));
    }
    if object_store::path::Path::parse(key).is_err() {
        return Err(Error::Invalid(format!("location has an empty, dotted or unprintable segment: {location}")));
    }
    Ok(location.to_owned())
}

/// Where a warehouse is to be: `s3://bucket` or `s3://bucket/prefix`.
///
/// # Errors
/// `Error::Invalid`.
pub fn of_warehouse(location: &str) -> Result<String> {
    let location = location.trim_end_matches('/');
    let invalid = |problem: &str| Error::Invalid(format!("location {problem}: {location}"));
    let (bucket, key) = split(location).ok_or_else(|| invalid("is not s3://bucket or s3://bucket/prefix"))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=');
    if !bucket.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(invalid("names no bucket"));
    }
    if key.len() > KEY_BYTES_MAX / 4 || !key.chars().all(is_plain) {
        return Err(invalid("has a prefix that is too long or holds more than letters, digits, -, _, ., = and /"));
    }
    if !key.is_empty() && object_store::path::Path::parse(key).is_err() {
        return Err(invalid("has an empty or dotted segment"));
    }
    Ok(location.to_owned())
}

/// The folder of a namespace that has no location of its own: named after its levels for people, not unique (the
/// tables in it are). `None` where the names would leave no room for a table's.
pub fn of_namespace(warehouse: &str, namespace: &Namespace) -> Option<String> {
    let location = levels_below(warehouse, namespace);
    let key_bytes = split(&location).map_or(0, |(_, key)| key.len());
    (key_bytes <= KEY_BYTES_MAX / 2).then_some(location)
}

fn levels_below(warehouse: &str, namespace: &Namespace) -> String {
    let add = |location, level: &String| format!("{location}/{}", segment(level));
    namespace.levels().iter().fold(warehouse.to_owned(), add)
}

/// Where a table goes when its creator does not say: named after namespace and table for people, with a short id so
/// that no two tables ever share a folder; by id alone where names would make the key too long.
///
/// `namespace_location` is the namespace's own property; it counts only inside the warehouse.
pub fn default_for(warehouse: &str, namespace_location: Option<&str>, ident: &TableIdent, id: Uuid) -> String {
    let named = match namespace_location.and_then(|location| requested(location, warehouse).ok()) {
        Some(location) => location,
        None => levels_below(warehouse, &ident.namespace),
    };
    let location = format!("{named}/{}-{}", segment(&ident.name), short(id));
    let key_bytes = split(&location).map_or(0, |(_, key)| key.len());
    if key_bytes <= KEY_BYTES_MAX { location } else { by_id(warehouse, id) }
}

/// A default location that cannot lie within a folder named by a client.
pub fn by_id(warehouse: &str, id: Uuid) -> String {
    format!("{warehouse}/{}", id.simple())
}

/// The last 48 of an id's bits, which are random in every version we make.
fn short(id: Uuid) -> String {
    let mut hex = id.simple().to_string();
    hex.split_off(hex.len() - 12)
}

/// A name as part of a key: all but unreserved characters become `_`.
fn segment(name: &str) -> String {
    let text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' }).collect();
    if text.chars().all(|c| c == '.') { "_".repeat(text.len()) } else { text }
}

/// Checks what a client's metadata says about places: the base location inside the warehouse, every other recorded
/// location inside that. Places that `base` already had are not judged again.
///
/// # Errors
/// `Error::Invalid` naming the place.
pub fn check<R: Relation>(warehouse: &str, base: Option<&R>, metadata: &R) -> Result<()> {
    if base.is_none_or(|base| base.location() != metadata.location()) {
        requested(metadata.location(), warehouse)?;
    }
    let known = base.map(R::recorded_locations).unwrap_or_default();
    for place in metadata.recorded_locations() {
        if !known.contains(&place) && !is_within(place.trim_end_matches('/'), metadata.location()) {
            return Err(Error::Invalid(format!("{place} is not inside the location {}", metadata.location())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAREHOUSE: &str = "s3://lake/wh";

    fn ident(levels: &[&str], name: &str) -> TableIdent {
        let levels = levels.iter().map(|&level| level.to_owned()).collect();
        TableIdent::new(Namespace::new(levels).unwrap(), name.to_owned()).unwrap()
    }

    #[test]
    fn requested_locations_stay_inside_the_warehouse() {
        for (location, expected) in [
            ("s3://lake/wh/a/b", Some("s3://lake/wh/a/b")),
            ("s3://lake/wh/a/b///", Some("s3://lake/wh/a/b")),
            ("s3://lake/wh", None),
            ("s3://lake/wh/", None),
            ("s3://lake/wh2/a", None),
            ("s3://lake/other", None),
            ("s3://lake2/wh/a", None),
            ("s3a://lake/wh/a", None),
            ("file:/tmp/a", None),
            ("/tmp/a", None),
            ("", None),
            ("s3://lake/wh/../x", None),
            ("s3://lake/wh/a//b", None),
            ("s3://lake/wh/./x", None),
            ("s3://lake/wh/a\nb", None),
            ("s3://lake/wh/a\u{7f}b", None),
            ("s3://lake/wh/a\u{85}b", None),
            ("s3://lake/wh/a?b", None),
            ("s3://lake/wh/a#b", None),
            ("s3://lake/wh/a%20b", None),
            ("s3://lake/wh/a b/+=:,ü", Some("s3://lake/wh/a b/+=:,ü")),
        ] {
            assert_eq!(requested(location, WAREHOUSE).ok().as_deref(), expected, "{location}");
        }
        assert!(requested(&format!("{WAREHOUSE}/{}", "x".repeat(KEY_BYTES_MAX)), WAREHOUSE).is_err());
    }

    #[test]
    fn namespaces_have_a_folder_unless_their_names_fill_the_key() {
        let namespace = |levels: &[&str]| ident(levels, "t").namespace;
        assert_eq!(of_namespace(WAREHOUSE, &namespace(&["a", "b c"])).as_deref(), Some("s3://lake/wh/a/b_c"));
        let long = "x".repeat(200);
        assert_eq!(of_namespace(WAREHOUSE, &namespace(&[&long, &long])), None);
    }

    #[test]
    fn default_locations_are_named_unique_and_safe_in_urls() {
        let id = Uuid::parse_str("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
        let location = |levels: &[&str], name: &str, own| default_for(WAREHOUSE, own, &ident(levels, name), id);
        assert_eq!(location(&["a", "b.c"], "t", None), "s3://lake/wh/a/b.c/t-b302099a8057");
        assert_eq!(location(&["sp ace/é"], "...", None), "s3://lake/wh/sp_ace__/___-b302099a8057");
        assert_eq!(location(&["a"], "t", Some("s3://lake/wh/home/")), "s3://lake/wh/home/t-b302099a8057");
        assert_eq!(location(&["a"], "t", Some("s3://elsewhere/home")), "s3://lake/wh/a/t-b302099a8057");
        let long = "x".repeat(200);
        assert_eq!(location(&[&long, &long, &long], "t", None), "s3://lake/wh/01890a5dac96774bbcceb302099a8057",);
    }
}
