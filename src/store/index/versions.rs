//! Rows of versions that are not the current object of their key: earlier objects, and delete markers.
//!
//! Layout. `objects` holds what a plain GET, HEAD or listing shows and nothing else: of each key the newest version,
//! unless that is a delete marker. `versions` holds all the others, markers with no body. So reading and listing
//! current objects costs what it costs without versions, whatever lies below, and a write into a bucket that keeps
//! none never looks here. The price is that a write into a bucket that does moves one narrow row (bytes stay where
//! they are), and that a listing of all versions merges two tables, each read in order.
//!
//! Order. `age` orders the versions of one key across both tables, the newest least: a moment in the top bits, negated,
//! and less than that of the version before, whatever the clock says. An id spells the age and a random number; thus
//! one look at the primary key finds it, and no id ever means two versions. The version `null` has no text. Objects of
//! buckets that keep no versions have age 0 and are older than all that comes later.
//!
//! Always: a key's row in `objects` is newer than all its rows here; with no such row, its newest one here is a
//! marker; and it has at most one version `null` (a unique index holds it, across tables [`make_room`] does).

use super::{
    Write, bodies,
    buckets::{self, Bucket, BucketId},
    locate::{self, Located, Table},
    objects::{self, Current},
};
use crate::store::{Deleted, Deletion, ObjectKey, Result, VersionId, Versioning, reaper::BodyId, types::Address};
use rusqlite::{Connection, OptionalExtension};

/// Bits of an age below those of its millisecond.
const AGE_BITS_BELOW_MS: u32 = 20;
/// The last moment an age can tell from the next. Milliseconds since the epoch: the year 2109.
const CLOCK_MS_MAX: i64 = (1 << 42) - 1;
/// Hexadecimal digits of an id that spell its age; as many random ones follow.
const ID_AGE_DIGITS: usize = 16;

/// Where a new version of a key goes.
pub struct Place {
    pub age: i64,
    /// `None` in a bucket that never kept versions.
    pub version: Option<VersionId>,
}

/// Takes the versions that a new one replaces or hides out of its way.
///
/// `current` is the key's row in `objects`, which the caller replaces or drops.
pub fn make_room(
    write: &mut Write<'_>,
    bucket: &Bucket,
    key: &ObjectKey,
    current: Option<&Current>,
    now_ms: i64,
) -> Result<Place> {
    if bucket.state.versioning == Versioning::Never {
        if let Some(current) = current {
            bodies::release(write, current.body)?;
        }
        return Ok(Place { age: 0, version: None });
    }
    let newest = match current {
        Some(current) => Some(current.age),
        None => newest(write.index, bucket.id, key)?.map(|(age, _)| age),
    };
    let age = next_age(newest, now_ms);
    let keeps_all = bucket.state.versioning == Versioning::Enabled;
    match current {
        Some(current) if !keeps_all && current.version == VersionId::Null => bodies::release(write, current.body)?,
        Some(_) => keep_current(write, bucket.id, key)?,
        None => {}
    }
    if keeps_all {
        return Ok(Place { age, version: Some(new_id(age)) });
    }
    drop_null(write, bucket.id, key)?;
    Ok(Place { age, version: Some(VersionId::Null) })
}

/// Deletes as the bucket and `deletion` say; decides before it changes anything.
pub fn delete(write: &mut Write<'_>, address: &Address, deletion: &Deletion) -> Result<Deleted> {
    let bucket = buckets::load(write.index, &address.bucket)?;
    match &deletion.version {
        Some(version) => remove(write, &bucket, address, version, deletion),
        None => delete_current(write, &bucket, &address.key, deletion),
    }
}

fn delete_current(write: &mut Write<'_>, bucket: &Bucket, key: &ObjectKey, deletion: &Deletion) -> Result<Deleted> {
    let current = objects::current(write.index, bucket.id, key)?;
    deletion.condition.check(current.as_ref().map(Current::facts))?;
    let keeps_versions = bucket.state.versioning != Versioning::Never;
    // A deletion that expects an object, and does not mind when there is none, makes no marker either.
    if current.is_none() && (!keeps_versions || deletion.condition.expects_object()) {
        return Ok(Deleted { existed: false, version: None, marker: false });
    }
    let place = make_room(write, bucket, key, current.as_ref(), deletion.now_ms)?;
    if current.is_some() {
        drop_current(write, bucket.id, key)?;
    }
    if let Some(version) = &place.version {
        insert_marker(write, bucket.id, key, &place, version, deletion.now_ms)?;
    }
    Ok(Deleted { existed: current.is_some(), version: place.version, marker: keeps_versions })
}

/// Removes one version for ever; the one below becomes current where this was.
fn remove(
    write: &mut Write<'_>,
    bucket: &Bucket,
    address: &Address,
    version: &VersionId,
    deletion: &Deletion,
) -> Result<Deleted> {
    let found = locate::version(write.index, bucket.id, &address.key, version)?;
    deletion.condition.check(found.as_ref().and_then(Located::facts))?;
    let Some(found) = found else {
        return Ok(Deleted { existed: false, version: Some(version.clone()), marker: false });
    };
    found.lock.check_removal(deletion.governance, deletion.now_ms)?;
    remove_located(write, bucket.id, &address.key, &found)?;
    Ok(Deleted { existed: true, version: Some(version.clone()), marker: found.body.is_none() })
}

/// Removes a row that is not locked, and its reference to its body.
pub fn remove_located(write: &mut Write<'_>, bucket: BucketId, key: &ObjectKey, found: &Located) -> Result<()> {
    match found.table {
        Table::Objects => drop_current(write, bucket, key)?,
        Table::Versions => drop_version(write, bucket, key, found.age)?,
    }
    if let Some(body) = found.body {
        bodies::release(write, body)?;
    }
    let has_current = found.table == Table::Versions && objects::current(write.index, bucket, key)?.is_some();
    if has_current { Ok(()) } else { promote(write, bucket, key) }
}

/// Age and body of the newest row here; without a body it is a marker.
pub fn newest(index: &Connection, bucket: BucketId, key: &ObjectKey) -> Result<Option<(i64, Option<BodyId>)>> {
    let mut statement =
        index.prepare_cached("select age, body from versions where bucket = ?1 and key = ?2 order by age limit 1")?;
    Ok(statement.query_row((bucket, key.as_str()), |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// The age that an id spells; whether there is such a version is not looked at.
pub fn age_of(id: &str) -> Option<i64> {
    let digits = id.get(..ID_AGE_DIGITS).filter(|_| id.len() == 2 * ID_AGE_DIGITS)?;
    let since = i64::try_from(u64::from_str_radix(digits, 16).ok()?).ok()?;
    Some(-since)
}

fn new_id(age: i64) -> VersionId {
    let (_, random) = uuid::Uuid::new_v4().as_u64_pair();
    VersionId::Id(format!("{:016x}{random:016x}", age.unsigned_abs()).into())
}

fn next_age(newest: Option<i64>, now_ms: i64) -> i64 {
    let by_clock = -(now_ms.clamp(1, CLOCK_MS_MAX) << AGE_BITS_BELOW_MS);
    newest.map_or(by_clock, |newest| by_clock.min(newest.saturating_sub(1)))
}

/// Copies the current object's row here; its reference to the body goes along.
fn keep_current(write: &Write<'_>, bucket: BucketId, key: &ObjectKey) -> Result<()> {
    write
        .index
        .prepare_cached(
            "insert into versions
                 (bucket, key, age, version, modified_ms, body, size, etag, headers, checksum, parts, tags, lock)
             select bucket, key, age, version, modified_ms, body, size, etag, headers, checksum, parts, tags, lock
             from objects where bucket = ?1 and key = ?2",
        )?
        .execute((bucket, key.as_str()))?;
    Ok(())
}

/// Makes the newest row here the current object, unless it is a marker.
fn promote(write: &Write<'_>, bucket: BucketId, key: &ObjectKey) -> Result<()> {
    let Some((age, Some(_))) = newest(write.index, bucket, key)? else { return Ok(()) };
    write
        .index
        .prepare_cached(
            "insert into objects
                 (bucket, key, age, version, modified_ms, body, size, etag, headers, checksum, parts, tags, lock)
             select bucket, key, age, version, modified_ms, body, size, etag, headers, checksum, parts, tags, lock
             from versions where bucket = ?1 and key = ?2 and age = ?3",
        )?
        .execute((bucket, key.as_str(), age))?;
    drop_version(write, bucket, key, age)
}

fn drop_current(write: &Write<'_>, bucket: BucketId, key: &ObjectKey) -> Result<()> {
    write
        .index
        .prepare_cached("delete from objects where bucket = ?1 and key = ?2")?
        .execute((bucket, key.as_str()))?;
    Ok(())
}

fn drop_version(write: &Write<'_>, bucket: BucketId, key: &ObjectKey, age: i64) -> Result<()> {
    write.index.prepare_cached("delete from versions where bucket = ?1 and key = ?2 and age = ?3")?.execute((
        bucket,
        key.as_str(),
        age,
    ))?;
    Ok(())
}

/// Removes the version `null` where it is here.
fn drop_null(write: &mut Write<'_>, bucket: BucketId, key: &ObjectKey) -> Result<()> {
    let body: Option<Option<BodyId>> = write
        .index
        .prepare_cached("delete from versions where bucket = ?1 and key = ?2 and version is null returning body")?
        .query_row((bucket, key.as_str()), |row| row.get(0))
        .optional()?;
    body.flatten().map_or(Ok(()), |body| bodies::release(write, body))
}

fn insert_marker(
    write: &Write<'_>,
    bucket: BucketId,
    key: &ObjectKey,
    place: &Place,
    version: &VersionId,
    now_ms: i64,
) -> Result<()> {
    write
        .index
        .prepare_cached("insert into versions (bucket, key, age, version, modified_ms) values (?1, ?2, ?3, ?4, ?5)")?
        .execute((bucket, key.as_str(), place.age, version.column(), now_ms))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_versions_are_younger_whatever_the_clock_says() {
        let mut newest = None;
        for now_ms in [1_000, 1_000, 999, -5, i64::MAX, i64::MAX, 0] {
            let age = next_age(newest, now_ms);
            assert!(age < 0 && newest.is_none_or(|newest| age < newest), "{now_ms}");
            newest = Some(age);
        }
        assert!(next_age(Some(0), 1) < 0, "objects from before versioning are the oldest");
    }

    #[test]
    fn ids_spell_their_age_and_are_never_the_same() {
        for age in [-1, next_age(None, 1_700_000_000_000), next_age(None, i64::MAX)] {
            let (one, other) = (new_id(age), new_id(age));
            assert_ne!(one, other);
            assert_eq!(age_of(one.as_str()), Some(age));
            assert_eq!(VersionId::parse(one.as_str()), Some(one));
        }
        for foreign in ["", "null", "01BX5ZZKBKACTAV9WEVGEMMVRZ", "zz000000000000000000000000000000", &"f".repeat(32)] {
            assert_eq!(age_of(foreign), None, "{foreign}");
        }
    }
}
