//! Listings of all versions: two range scans merged in the order of key and age. Work is bounded by the page.

use super::{
    buckets::{self, BucketId},
    from_sql,
    listing::{after_key, after_prefix, common_prefix},
    versions,
};
use crate::store::{
    BucketName, ObjectHeaders, ObjectInfo, ObjectKey, ObjectLock, Result, VersionEntry, VersionId, VersionsPage,
    VersionsQuery,
};
use rusqlite::{Connection, OptionalExtension, Row};

/// Entries on a page.
const LIMIT_MAX: usize = 1000;
/// Younger than every version.
const YOUNGEST: i64 = i64::MIN;

/// Where a scan begins: behind this age of this key.
type Seek = (String, i64);

/// A page of versions, markers and, with a delimiter, common prefixes.
pub fn list(index: &Connection, bucket: &BucketName, query: &VersionsQuery) -> Result<VersionsPage> {
    // One snapshot for all statements of the page.
    let index = index.unchecked_transaction()?;
    let bucket = buckets::require(&index, bucket)?;
    let limit = query.list.limit.min(LIMIT_MAX);
    let mut entries = Vec::new();
    let mut next = None;
    let mut from = if limit == 0 { None } else { start(&index, bucket, query)? };
    // The key within whose versions the page begins.
    let within = from.clone().filter(|(_, age)| *age != YOUNGEST).map(|(key, _)| key);
    let mut above = within.clone();
    let mut statement = index.prepare_cached(MERGED)?;
    'page: while let Some((key, age)) = from.take() {
        let mut rows = statement.query((bucket, key, age))?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            if !key.starts_with(&query.list.prefix) {
                break 'page;
            }
            if entries.len() == limit {
                next = entries.last().map(end);
                break 'page;
            }
            if let Some(group) = common_prefix(key, &query.list) {
                from = after_prefix(group).map(|key| (key, YOUNGEST));
                entries.push(VersionEntry::CommonPrefix(group.to_owned()));
                continue 'page;
            }
            let first = above.as_deref() != Some(key);
            let within = within.as_deref() == Some(key);
            if first {
                above = Some(key.to_owned());
            }
            entries.push(entry(&index, bucket, row, first, within)?);
        }
    }
    drop(statement);
    index.finish()?;
    Ok(VersionsPage { entries, next })
}

/// Both tables in one order, which each has on disk: SQLite merges them row by row and sorts nothing.
const MERGED: &str = "
    select key, age, version, modified_ms, body, size, etag, checksum, parts, 1 as current from objects
    where bucket = ?1 and (key, age) > (?2, ?3)
    union all
    select key, age, version, modified_ms, body, size, etag, checksum, parts, 0 from versions
    where bucket = ?1 and (key, age) > (?2, ?3)
    order by 1, 2";

/// Where the page begins; `None` when it can show nothing.
fn start(index: &Connection, bucket: BucketId, query: &VersionsQuery) -> Result<Option<Seek>> {
    let Some(after) = query.list.after.as_deref().filter(|after| *after >= query.list.prefix.as_str()) else {
        return Ok(Some((query.list.prefix.clone(), YOUNGEST)));
    };
    // A prefix that `after` lies in, or is, sorts before or at it: it was shown, all of it.
    if let Some(group) = common_prefix(after, &query.list) {
        return Ok(after_prefix(group).map(|key| (key, YOUNGEST)));
    }
    let shown = match &query.after_version {
        None => None,
        // One that is gone meanwhile still says where it was.
        Some(VersionId::Id(id)) => versions::age_of(id),
        // That of `null` is only known while it is there; without it the key is shown from its start again.
        Some(VersionId::Null) => Some(age_of_null(index, bucket, after)?.unwrap_or(YOUNGEST)),
    };
    Ok(Some(shown.map_or_else(|| (after_key(after), YOUNGEST), |age| (after.to_owned(), age))))
}

fn age_of_null(index: &Connection, bucket: BucketId, key: &str) -> Result<Option<i64>> {
    let mut statement = index.prepare_cached(
        "select age from objects where bucket = ?1 and key = ?2 and version is null
         union all
         select age from versions where bucket = ?1 and key = ?2 and version is null",
    )?;
    Ok(statement.query_row((bucket, key), |row| row.get(0)).optional()?)
}

fn end(entry: &VersionEntry) -> (String, Option<VersionId>) {
    match entry {
        VersionEntry::Object { info, .. } => (info.key.as_str().to_owned(), info.version.clone()),
        VersionEntry::Marker { key, version, .. } => (key.as_str().to_owned(), Some(version.clone())),
        VersionEntry::CommonPrefix(prefix) => (prefix.clone(), None),
    }
}

/// `first` says that the key's younger versions, if any, lie on earlier pages; `within` that this page begins among them.
fn entry(index: &Connection, bucket: BucketId, row: &Row<'_>, first: bool, within: bool) -> Result<VersionEntry> {
    let key = ObjectKey::stored(row.get(0)?);
    let (age, version) = (row.get::<_, i64>(1)?, VersionId::stored(row.get(2)?));
    let (last_modified_ms, current) = (row.get(3)?, row.get::<_, bool>(9)?);
    let has_body = row.get::<_, Option<i64>>(4)?.is_some();
    if !has_body {
        // What was newest when the page before was read may be gone.
        let latest = first || (within && is_newest(index, bucket, &key, age)?);
        return Ok(VersionEntry::Marker { key, version, last_modified_ms, latest });
    }
    let info = ObjectInfo {
        key,
        size: from_sql(row.get(5)?),
        etag: row.get(6)?,
        last_modified_ms,
        headers: ObjectHeaders::default(),
        checksum: super::decode_checksum(row.get::<_, Option<String>>(7)?.as_deref())?,
        parts: row.get(8)?,
        version: Some(version),
        tags: Vec::new(),
        lock: ObjectLock::default(),
    };
    Ok(VersionEntry::Object { info, latest: current })
}

fn is_newest(index: &Connection, bucket: BucketId, key: &ObjectKey, age: i64) -> Result<bool> {
    let has_object: bool = index
        .prepare_cached("select exists (select 1 from objects where bucket = ?1 and key = ?2)")?
        .query_row((bucket, key.as_str()), |row| row.get(0))?;
    Ok(!has_object && versions::newest(index, bucket, key)?.is_some_and(|(newest, _)| newest == age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_in_order_and_sort_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let index = super::super::schema::open_writer(folder.path()).unwrap();
        let mut explain = index.prepare(&format!("explain query plan {MERGED}")).unwrap();
        let steps = explain.query_map((1, "k", 0), |row| row.get::<_, String>(3)).unwrap();
        let plan = steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("\n");
        assert_eq!(plan.matches("SEARCH").count(), 2, "{plan}");
        assert!(plan.contains("MERGE") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
