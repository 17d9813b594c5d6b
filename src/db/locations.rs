//! Which storage locations are taken: no table's location equals, contains or lies within another's.
//!
//! Locations compare as keys: the scheme's spellings unified and a slash at the end. No key in the table is a prefix of
//! another, so in byte order only the direct neighbours of a key can collide with it, whatever the warehouse. On SQLite
//! the one writer decides; on Postgres each claim locks its own location and, shared, everything above it, so that
//! claims that could collide wait for each other while all others pass.

use super::statement::{Arms, Tx, values};
use sqlx::{PgExecutor, SqliteExecutor};
use uuid::Uuid;

/// Longest location and longest location of a metadata file. Bytes. Postgres cannot index rows of more than 2,704.
pub const LOCATION_BYTES_MAX: usize = 2048;
/// How many levels of a location are locked one by one; deeper ones share the lock of the level they lie under.
const LEVELS_LOCKED_MAX: usize = 16;

/// What locations are compared by.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for more than [`LOCATION_BYTES_MAX`] bytes.
pub fn key(location: &str) -> Result<String, sqlx::Error> {
    check_len(location)?;
    let (scheme, path) = location.split_once("://").unwrap_or(("", location));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "s3a" | "s3n" => "s3".to_owned(),
        "abfss" | "wasb" | "wasbs" => "abfs".to_owned(),
        "gcs" => "gs".to_owned(),
        other => other.to_owned(),
    };
    Ok(format!("{scheme}://{}/", path.trim_end_matches('/')))
}

/// Refuses what the indexes on locations could not hold.
pub fn check_len(location: &str) -> Result<(), sqlx::Error> {
    if location.len() <= LOCATION_BYTES_MAX {
        return Ok(());
    }
    Err(sqlx::Error::InvalidArgument(format!("a location has more than {LOCATION_BYTES_MAX} bytes")))
}

/// The keys next to one, up and down; those that are left out collide with none that are not.
macro_rules! neighbours {
    ($but:literal) => {
        concat!(
            "select (select location_key from tables where location_key <= $1 and ",
            $but,
            " <> $2 order by location_key desc limit 1),
                    (select location_key from tables where location_key >= $1 and ",
            $but,
            " <> $2 order by location_key limit 1)"
        )
    };
}
const NEIGHBOURS_BUT_ROW: &str = neighbours!("id");
const NEIGHBOURS_BUT_TABLE: &str = neighbours!("uuid");

/// Whose locations do not count.
#[derive(Debug, Clone, Copy)]
pub enum Except {
    Nobody,
    /// The row with this id.
    Row(Uuid),
    /// Tables whose metadata has this uuid.
    Table(Uuid),
}

/// Whether a table other than `except` has a location equal to, above or below that of `key`.
pub async fn taken<'e, S: SqliteExecutor<'e>, P: PgExecutor<'e>>(
    on: Arms<S, P>,
    key: &str,
    except: Except,
) -> Result<bool, sqlx::Error> {
    let (text, except) = match except {
        Except::Nobody => (NEIGHBOURS_BUT_ROW, Uuid::nil()),
        Except::Row(id) => (NEIGHBOURS_BUT_ROW, id),
        Except::Table(uuid) => (NEIGHBOURS_BUT_TABLE, uuid),
    };
    let neighbours: Option<(Option<String>, Option<String>)> = on.optional(text, &values![key, except]).await?;
    let (above, below) = neighbours.unwrap_or_default();
    Ok(above.is_some_and(|above| key.starts_with(&above)) || below.is_some_and(|below| below.starts_with(key)))
}

/// Makes claims that could collide with `key` wait until this transaction ends. Comes before the question.
pub async fn lock(tx: &mut Tx<'_>, key: &str) -> Result<(), sqlx::Error> {
    lock_all(tx, [key]).await
}

/// The same for several keys, which must be locked together: all lock in one order, so that none wait in a circle.
pub async fn lock_all(tx: &mut Tx<'_>, keys: impl IntoIterator<Item = &str>) -> Result<(), sqlx::Error> {
    let Arms::Postgres(connection) = tx.on() else { return Ok(()) };
    let mut all = std::collections::BTreeMap::new();
    for (id, exclusive) in keys.into_iter().flat_map(locks) {
        *all.entry(id).or_insert(false) |= exclusive;
    }
    if all.is_empty() {
        return Ok(());
    }
    let (ids, exclusive): (Vec<i64>, Vec<bool>) = all.into_iter().unzip();
    sqlx::query(
        "select case when exclusive then pg_advisory_xact_lock(id) else pg_advisory_xact_lock_shared(id) end
         from unnest($1::bigint[], $2::boolean[]) as locks (id, exclusive)",
    )
    .bind(ids)
    .bind(exclusive)
    .execute(connection)
    .await
    .map(drop)
}

/// Lock ids and whether they are held alone.
fn locks(key: &str) -> Vec<(i64, bool)> {
    let path_start = key.find("://").map_or(0, |at| at + "://".len());
    let ends = key.bytes().enumerate().skip(path_start).filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
    let ends = ends.take(LEVELS_LOCKED_MAX).collect::<Vec<_>>();
    let innermost = ends.last().copied();
    let mut locks = std::collections::BTreeMap::new();
    for end in ends {
        // Two levels may share an id; it is then held alone if either asks for that.
        *locks.entry(lock_id(&key.as_bytes()[..end])).or_insert(false) |= Some(end) == innermost;
    }
    locks.into_iter().collect()
}

fn lock_id(prefix: &[u8]) -> i64 {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    context.update(b"tidewater location\0");
    context.update(prefix);
    let digest = context.finish();
    digest.as_ref().iter().take(size_of::<i64>()).fold(0, |id, byte| (id << 8) | i64::from(*byte))
}
