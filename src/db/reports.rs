//! Reports of scans and commits: kept for a while, oldest forgotten first.
//!
//! Ids are UUIDv7 of the moment a report came in, so that pages, times and ages are all ranges of ids.

use super::{
    Db,
    change::Change,
    statement::{Arms, Tx, values},
};
use std::sync::Arc;
use uuid::Uuid;

/// What a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Scan,
    Commit,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Scan => "scan",
            Kind::Commit => "commit",
        }
    }
}

/// Whose reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    Warehouse(Uuid),
    Table(Uuid),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReport {
    /// See [`id_at`].
    pub id: Uuid,
    pub warehouse: Uuid,
    pub table: Uuid,
    pub kind: Kind,
    pub received_at_ms: i64,
    pub principal: String,
    /// A JSON array of the namespace's levels.
    pub namespace: String,
    pub name: String,
    /// JSON.
    pub report: String,
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ReportRow {
    pub id: Uuid,
    pub received_at_ms: i64,
    pub principal: String,
    pub namespace: String,
    pub name: String,
    pub report: String,
}

/// Which reports to read: ids from `first` up to and without `end`, newest first, at most `limit`.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub first: Uuid,
    pub end: Uuid,
    pub limit: u32,
}

/// A new id of that moment.
pub fn id_at(ms: i64) -> Uuid {
    let ms = u64::try_from(ms).unwrap_or_default();
    let nanos = u32::try_from(ms % 1_000).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, ms / 1_000, nanos))
}

/// Lower than every id of that moment and later ones, higher than all earlier ones.
pub fn id_before(ms: i64) -> Uuid {
    /// What the 48 bits of an id's time can say.
    const MS_MAX: i64 = (1 << 48) - 1;
    let ms = u128::try_from(ms.clamp(0, MS_MAX)).unwrap_or_default();
    Uuid::from_u128(ms << 80)
}

/// Stores reports, all or none; those that are stored already are no error.
pub async fn insert(db: &Db, reports: Vec<NewReport>) -> Result<(), sqlx::Error> {
    db.write(Insert { reports: reports.into() }).await
}

struct Insert {
    reports: Arc<[NewReport]>,
}

impl Change for Insert {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<(), sqlx::Error> {
        match tx.on() {
            Arms::Sqlite(_) => self.insert_each(tx).await,
            Arms::Postgres(connection) => self.insert_all(connection).await,
        }
    }

    fn is_single_statement(&self) -> bool {
        true
    }
}

impl Insert {
    async fn insert_each(&self, tx: &mut Tx<'_>) -> Result<(), sqlx::Error> {
        for report in &*self.reports {
            tx.on()
                .execute(
                    "insert into metrics_reports
                         (id, warehouse_id, table_id, kind, received_at_ms, principal, namespace, name, report)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (id) do nothing",
                    &values![
                        report.id,
                        report.warehouse,
                        report.table,
                        report.kind.as_str(),
                        report.received_at_ms,
                        &report.principal,
                        &report.namespace,
                        &report.name,
                        &report.report
                    ],
                )
                .await?;
        }
        Ok(())
    }

    /// All in one round trip. No text here can hold a NUL: names have no control characters, JSON escapes them.
    async fn insert_all(&self, connection: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
        let reports = &self.reports;
        sqlx::query(
            "insert into metrics_reports
                 (id, warehouse_id, table_id, kind, received_at_ms, principal, namespace, name, report)
             select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::text[],
                                  $8::text[], $9::text[])
             on conflict (id) do nothing",
        )
        .bind(reports.iter().map(|report| report.id).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.warehouse).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.table).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.kind.as_str()).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.received_at_ms).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.principal.as_str()).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.namespace.as_str()).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.name.as_str()).collect::<Vec<_>>())
        .bind(reports.iter().map(|report| report.report.as_str()).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map(drop)
    }
}

/// Newest first.
pub async fn list(db: &Db, owner: Owner, kind: Kind, range: Range) -> Result<Vec<ReportRow>, sqlx::Error> {
    let (text, id) = match owner {
        Owner::Warehouse(id) => (
            "select id, received_at_ms, principal, namespace, name, report from metrics_reports
             where warehouse_id = $1 and kind = $2 and id >= $3 and id < $4 order by id desc limit $5",
            id,
        ),
        Owner::Table(id) => (
            "select id, received_at_ms, principal, namespace, name, report from metrics_reports
             where table_id = $1 and kind = $2 and id >= $3 and id < $4 order by id desc limit $5",
            id,
        ),
    };
    let values = values![id, kind.as_str(), range.first, range.end, i64::from(range.limit)];
    db.read().all(text, &values).await
}

/// The newest report that must go so that `keep` stay; `None` when there are no more than those.
pub async fn newest_beyond(db: &Db, owner: Owner, kind: Kind, keep: u32) -> Result<Option<Uuid>, sqlx::Error> {
    let (text, id) = match owner {
        Owner::Warehouse(id) => (
            "select id from metrics_reports where warehouse_id = $1 and kind = $2
             order by id desc limit 1 offset $3",
            id,
        ),
        Owner::Table(id) => {
            ("select id from metrics_reports where table_id = $1 and kind = $2 order by id desc limit 1 offset $3", id)
        }
    };
    let found: Option<(Uuid,)> = db.read().optional(text, &values![id, kind.as_str(), i64::from(keep)]).await?;
    Ok(found.map(|(id,)| id))
}

/// Forgets `owner`'s oldest reports up to `newest`, at most `limit`; answers how many.
pub async fn forget_through(db: &Db, owner: Owner, kind: Kind, newest: Uuid, limit: u32) -> Result<u64, sqlx::Error> {
    let (text, id) = match owner {
        Owner::Warehouse(id) => (
            "delete from metrics_reports where id in (
                 select id from metrics_reports where warehouse_id = $1 and kind = $2 and id <= $3
                 order by id limit $4)",
            id,
        ),
        Owner::Table(id) => (
            "delete from metrics_reports where id in (
                 select id from metrics_reports where table_id = $1 and kind = $2 and id <= $3
                 order by id limit $4)",
            id,
        ),
    };
    db.write(Forget { text, scope: Some((id, kind)), end: newest, limit }).await
}

/// Forgets the oldest reports that came in before `end_ms`, at most `limit`; answers how many.
pub async fn forget_before(db: &Db, end_ms: i64, limit: u32) -> Result<u64, sqlx::Error> {
    let text = "delete from metrics_reports where id in (
                    select id from metrics_reports where id < $1 order by id limit $2)";
    db.write(Forget { text, scope: None, end: id_before(end_ms), limit }).await
}

struct Forget {
    text: &'static str,
    scope: Option<(Uuid, Kind)>,
    end: Uuid,
    limit: u32,
}

impl Change for Forget {
    type Answer = u64;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<u64, sqlx::Error> {
        let limit = i64::from(self.limit);
        match self.scope {
            Some((id, kind)) => tx.on().execute(self.text, &values![id, kind.as_str(), self.end, limit]).await,
            None => tx.on().execute(self.text, &values![self.end, limit]).await,
        }
    }

    fn is_single_statement(&self) -> bool {
        true
    }
}
