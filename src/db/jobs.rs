//! Background jobs: what, on what, leased to whom until when. A lease carries a fencing token.

use super::Db;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct NewJob {
    pub kind: String,
    /// JSON the job's kind understands.
    pub payload: String,
    pub not_before_ms: i64,
}

#[derive(Debug, Clone)]
pub struct LeasedJob {
    pub id: Uuid,
    pub kind: String,
    pub payload: String,
    pub attempts: i32,
    /// Raised with every lease: only the newest holder may finish the job.
    pub fence: i64,
}

pub async fn enqueue(_db: &Db, _job: &NewJob) -> Result<Uuid, sqlx::Error> {
    todo!()
}
/// Takes the oldest due job that nobody holds, until `now_ms + lease_ms`.
pub async fn lease(_db: &Db, _holder: Uuid, _now_ms: i64, _lease_ms: i64) -> Result<Option<LeasedJob>, sqlx::Error> {
    todo!()
}
/// Prolongs a lease; `false` when it was lost.
pub async fn renew(_db: &Db, _job: &LeasedJob, _until_ms: i64) -> Result<bool, sqlx::Error> {
    todo!()
}
/// Done: the row goes. `false` when the lease was lost.
pub async fn complete(_db: &Db, _job: &LeasedJob) -> Result<bool, sqlx::Error> {
    todo!()
}
/// Failed: due again at `retry_at_ms`, the error kept for people.
pub async fn fail(_db: &Db, _job: &LeasedJob, _error: &str, _retry_at_ms: i64) -> Result<bool, sqlx::Error> {
    todo!()
}
