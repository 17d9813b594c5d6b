//! Background jobs: what, on what, leased to whom until when. A lease carries a fencing token. A job that failed too
//! often is parked: kept, and due never, until [`retry_parked`].

use super::{
    Db,
    statement::{Text, Tx, values},
};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct NewJob {
    pub kind: String,
    /// JSON the job's kind understands.
    pub payload: String,
    pub not_before_ms: i64,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct LeasedJob {
    pub id: Uuid,
    pub kind: String,
    pub payload: String,
    pub attempts: i32,
    /// Raised with every lease: only the newest holder may finish the job.
    pub fence: i64,
}

const INSERT: &str = "insert into jobs (id, kind, payload, due_at_ms, attempts, fence)
    values ($1, $2, $3, $4, 0, 0) returning id";

pub async fn enqueue(db: &Db, job: &NewJob) -> Result<Uuid, sqlx::Error> {
    let id = Uuid::now_v7();
    let made: Option<(Uuid,)> = db.write_one(INSERT, &values![id, &job.kind, &job.payload, job.not_before_ms]).await?;
    made.map(|(id,)| id).ok_or(sqlx::Error::RowNotFound)
}

/// Enqueues together with whatever else `tx` does.
pub(super) async fn enqueue_in(tx: &mut Tx<'_>, id: Uuid, job: &NewJob) -> Result<(), sqlx::Error> {
    tx.on().execute(INSERT, &values![id, &job.kind, &job.payload, job.not_before_ms]).await.map(drop)
}

/// When a parked job is due.
const NEVER_MS: i64 = i64::MAX;

/// Takes the job due longest that nobody holds, until `now_ms + lease_ms`.
pub async fn lease(db: &Db, holder: Uuid, now_ms: i64, lease_ms: i64) -> Result<Option<LeasedJob>, sqlx::Error> {
    let text = Text {
        sqlite: "update jobs set holder = $1, due_at_ms = $2, fence = fence + 1, attempts = attempts + 1
             where id = (select id from jobs where due_at_ms <= $3 order by due_at_ms, id limit 1)
             returning id, kind, payload, attempts, fence",
        postgres: "update jobs set holder = $1, due_at_ms = $2, fence = fence + 1, attempts = attempts + 1
             where id = (select id from jobs where due_at_ms <= $3 order by due_at_ms, id limit 1
                 for update skip locked)
             returning id, kind, payload, attempts, fence",
    };
    db.write_one(text, &values![holder, now_ms.saturating_add(lease_ms), now_ms]).await
}

/// Prolongs a lease; `false` when it was lost.
pub async fn renew(db: &Db, job: &LeasedJob, until_ms: i64) -> Result<bool, sqlx::Error> {
    let held: Option<(Uuid,)> = db
        .write_one(
            "update jobs set due_at_ms = $3 where id = $1 and fence = $2 and holder is not null returning id",
            &values![job.id, job.fence, until_ms],
        )
        .await?;
    Ok(held.is_some())
}

/// Done: the row goes. `false` when the lease was lost.
pub async fn complete(db: &Db, job: &LeasedJob) -> Result<bool, sqlx::Error> {
    let held: Option<(Uuid,)> = db
        .write_one(
            "delete from jobs where id = $1 and fence = $2 and holder is not null returning id",
            &values![job.id, job.fence],
        )
        .await?;
    Ok(held.is_some())
}

/// Failed: due again at `retry_at_ms`, the error kept for people. `false` when the lease was lost.
pub async fn fail(db: &Db, job: &LeasedJob, error: &str, retry_at_ms: i64) -> Result<bool, sqlx::Error> {
    let held: Option<(Uuid,)> = db
        .write_one(
            "update jobs set holder = null, due_at_ms = $3, last_error = $4
             where id = $1 and fence = $2 and holder is not null returning id",
            &values![job.id, job.fence, retry_at_ms, error.replace('\0', "")],
        )
        .await?;
    Ok(held.is_some())
}

/// Failed for good: kept with its error, and leased to nobody. `false` when the lease was lost.
pub async fn park(db: &Db, job: &LeasedJob, error: &str) -> Result<bool, sqlx::Error> {
    fail(db, job, error, NEVER_MS).await
}

/// Not done and not failed: due again at `now_ms`, and the attempt does not count. `false` when the lease was lost.
pub async fn release(db: &Db, job: &LeasedJob, now_ms: i64) -> Result<bool, sqlx::Error> {
    let held: Option<(Uuid,)> = db
        .write_one(
            "update jobs set holder = null, due_at_ms = $3, attempts = attempts - 1
             where id = $1 and fence = $2 and holder is not null returning id",
            &values![job.id, job.fence, now_ms],
        )
        .await?;
    Ok(held.is_some())
}

/// Parked jobs are due at `now_ms`, as if they had been tried `attempts` times.
pub async fn retry_parked(db: &Db, now_ms: i64, attempts: i32) -> Result<(), sqlx::Error> {
    let _: Option<(Uuid,)> = db
        .write_one(
            "update jobs set due_at_ms = $1, attempts = $2 where due_at_ms = $3 and holder is null returning id",
            &values![now_ms, i64::from(attempts), NEVER_MS],
        )
        .await?;
    Ok(())
}

/// How many jobs are parked.
pub async fn parked(db: &Db) -> Result<i64, sqlx::Error> {
    let count: Option<(i64,)> = db
        .read()
        .optional("select count(*) from jobs where due_at_ms = $1 and holder is null", &values![NEVER_MS])
        .await?;
    Ok(count.map_or(0, |(count,)| count))
}
