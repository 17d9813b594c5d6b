//! Deletes metadata files of commits that never happened: the process died between the file and the swap, or could
//! not learn how a swap ended.
//!
//! A file goes only when all of this holds: its name and its mark say that we wrote it, its name's time is more than
//! an hour ago, and no table's history names it, dropped tables' included. So files that somebody keeps after a
//! drop, or put there himself, stay.

use super::Error;
use crate::{
    app::App,
    catalog::{
        files::{self, Writer},
        location,
        warehouses::{self, Warehouse},
    },
    db,
};
use futures_util::StreamExt;
use object_store::{GetOptions, path::Path};
use uuid::Uuid;

/// No commit takes this long between writing its file and its swap.
const AGE_MS_MIN: i64 = 60 * 60 * 1_000;

/// Goes round all warehouses; answers how many files were deleted.
///
/// # Errors
/// When storage or database cannot be reached; the next round continues.
pub async fn run(app: &App, now_ms: i64) -> Result<u64, Error> {
    let mut count = 0;
    for warehouse in warehouses::all(app).await? {
        count += run_in(app, &warehouse, now_ms).await?;
    }
    Ok(count)
}

async fn run_in(app: &App, warehouse: &Warehouse, now_ms: i64) -> Result<u64, Error> {
    let Some((bucket, key)) = location::split(&warehouse.location) else { return Ok(0) };
    let prefix = Path::parse(key).ok().filter(|prefix| !prefix.as_ref().is_empty());
    let mut objects = warehouse.objects.list(prefix.as_ref());
    let mut count = 0;
    while let Some(object) = objects.next().await {
        let path = object?.location;
        let is_old = files::id_of(path.as_ref()).and_then(made_at_ms).is_some_and(|at| at < now_ms - AGE_MS_MIN);
        if !is_old {
            continue;
        }
        let file = format!("s3://{bucket}/{path}");
        if is_ours(warehouse, &path, &file).await? && !db::tables::is_recorded(&app.db, &file).await? {
            tracing::info!(file, "deleting the metadata file of a commit that never happened");
            files::discard(warehouse, &file).await;
            count += 1;
        }
    }
    Ok(count)
}

/// When a UUIDv7 was made, in milliseconds since the epoch.
fn made_at_ms(id: Uuid) -> Option<i64> {
    let (seconds, nanos) = (id.get_version_num() == 7).then(|| id.get_timestamp())??.to_unix();
    i64::try_from(seconds).ok()?.checked_mul(1_000)?.checked_add(i64::from(nanos / 1_000_000))
}

async fn is_ours(warehouse: &Warehouse, path: &Path, file: &str) -> Result<bool, Error> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    match warehouse.objects.get_opts(path, options).await {
        Ok(result) => Ok(files::writer(warehouse, file, &result.attributes) == Writer::Us),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_7_ids_tell_their_time() {
        let before = crate::app::now_ms();
        let at = made_at_ms(Uuid::now_v7()).unwrap();
        assert!((before..=crate::app::now_ms()).contains(&at));
        assert_eq!(made_at_ms(Uuid::new_v4()), None);
    }
}
