//! Listings: range scans in the order of UTF-8 bytes. Work is bounded by the page, not by what lies under a prefix.

use super::{buckets, from_sql};
use crate::store::{
    BucketName, ListEntry, ListPage, ListQuery, ObjectHeaders, ObjectInfo, ObjectKey, ObjectLock, Result,
};
use rusqlite::{Connection, Row};

/// Entries on a page.
const LIMIT_MAX: usize = 1000;

/// A page of keys and, with a delimiter, common prefixes, each of which comes once and counts as one entry.
pub fn list(index: &Connection, bucket: &BucketName, query: &ListQuery) -> Result<ListPage> {
    // One snapshot for all statements of the page.
    let index = index.unchecked_transaction()?;
    let bucket = buckets::require(&index, bucket)?;
    let limit = query.limit.min(LIMIT_MAX);
    let mut entries = Vec::new();
    let mut next = None;
    let mut from = if limit == 0 { None } else { start(query) };
    let mut statement = index.prepare_cached(
        "select key, size, etag, modified_ms, checksum, parts from objects
         where bucket = ?1 and key >= ?2 order by key",
    )?;
    'page: while let Some(seek) = from.take() {
        let mut rows = statement.query((bucket, seek))?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            if !key.starts_with(&query.prefix) {
                break 'page;
            }
            if entries.len() == limit {
                next = entries.last().map(name);
                break 'page;
            }
            if let Some(group) = common_prefix(key, query) {
                from = after_prefix(group);
                entries.push(ListEntry::CommonPrefix(group.to_owned()));
                continue 'page;
            }
            entries.push(ListEntry::Object(info(row)?));
        }
    }
    drop(statement);
    index.finish()?;
    Ok(ListPage { entries, next })
}

fn name(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Object(object) => object.key.as_str().to_owned(),
        ListEntry::CommonPrefix(prefix) => prefix.clone(),
    }
}

/// The first key a page may show; `None` when it can show none.
fn start(query: &ListQuery) -> Option<String> {
    let Some(after) = query.after.as_deref().filter(|after| *after >= query.prefix.as_str()) else {
        return Some(query.prefix.clone());
    };
    // A prefix that `after` lies in, or is, sorts before or at it: it was shown, all of it.
    match common_prefix(after, query) {
        Some(group) => after_prefix(group),
        None => Some(after_key(after)),
    }
}

/// The key up to and with the first delimiter behind the prefix.
pub fn common_prefix<'a>(key: &'a str, query: &ListQuery) -> Option<&'a str> {
    let delimiter = query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
    let rest = key.strip_prefix(query.prefix.as_str())?;
    let at = rest.find(delimiter)?;
    key.get(..query.prefix.len() + at + delimiter.len())
}

/// The smallest string greater than `key`.
pub fn after_key(key: &str) -> String {
    format!("{key}\0")
}

/// The smallest string greater than all that start with `prefix`; `None` where there is none.
///
/// UTF-8's bytes sort as code points do, so raising the last character by one is raising the bytes by one.
pub fn after_prefix(prefix: &str) -> Option<String> {
    let mut next = prefix.to_owned();
    while let Some(last) = next.pop() {
        let raised = match u32::from(last) + 1 {
            0xD800 => char::from_u32(0xE000),
            code => char::from_u32(code),
        };
        if let Some(raised) = raised {
            next.push(raised);
            return Some(next);
        }
    }
    None
}

fn info(row: &Row<'_>) -> Result<ObjectInfo> {
    Ok(ObjectInfo {
        key: ObjectKey::stored(row.get(0)?),
        size: from_sql(row.get(1)?),
        etag: row.get(2)?,
        last_modified_ms: row.get(3)?,
        headers: ObjectHeaders::default(),
        checksum: super::decode_checksum(row.get::<_, Option<String>>(4)?.as_deref())?,
        parts: row.get(5)?,
        version: None,
        tags: Vec::new(),
        lock: ObjectLock::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_prefix_follows_all_that_start_with_it() {
        assert_eq!(after_prefix("a/").as_deref(), Some("a0"));
        assert_eq!(after_prefix("a\u{D7FF}").as_deref(), Some("a\u{E000}"));
        assert_eq!(after_prefix("a\u{10FFFF}\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10FFFF}"), None);
        for prefix in ["a/", "a\u{7f}", "ü", "\u{7ff}", "\u{ffff}", "z\u{10FFFF}"] {
            let next = after_prefix(prefix).unwrap();
            assert!(next.as_bytes() > format!("{prefix}\u{10FFFF}\u{10FFFF}").as_bytes(), "{prefix:?}");
            assert!(!next.starts_with(prefix));
        }
    }
}
