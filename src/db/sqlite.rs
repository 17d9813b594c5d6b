//! SQLite: several readers, and one writer that commits everyone's waiting changes together.
//!
//! A group is one transaction, each change in it a savepoint, so that one failure rolls back only itself. Nobody is
//! answered, not even "lost" or "exists", before the group's commit is on disk: what a change saw may stem from another
//! change of its group. When a commit fails, every member is answered with its error and nothing of the group is
//! visible, then or later: the next commit overwrites what the failed one may have left in the log. Only if the
//! process dies first can the log still bring it back, so a caller whose swap failed settles it like on Postgres.

use super::{change::Change, pointers::Pointers, statement::Arms};
use futures_util::future::BoxFuture;
use sqlx::{
    ConnectOptions, Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{io, path::Path, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

const READERS_MAX: u32 = 4;
/// How long a reader waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement waits for another process's lock on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Changes waiting for the writer; a caller that finds the queue full waits for room.
const QUEUE_MAX: usize = 1024;
/// Changes in one transaction.
const GROUP_MAX: usize = 256;
/// Rows a connection's thread may be ahead of its reader: a list of thousands of names costs a few wake-ups.
const ROWS_AHEAD: usize = 1024;
/// Page cache of a connection. KiB, negative as SQLite wants it.
const PAGE_CACHE_KIB: &str = "-16384";

/// An open database file.
pub struct Sqlite {
    readers: SqlitePool,
    queue: mpsc::Sender<Message>,
    pointers: Arc<Pointers>,
    options: SqliteConnectOptions,
}

enum Message {
    Change(Box<dyn Pending>),
    Close(oneshot::Sender<()>),
}

impl Sqlite {
    pub async fn open(file: &Path) -> Result<Sqlite, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .row_buffer_size(ROWS_AHEAD)
            .pragma("cache_size", PAGE_CACHE_KIB);
        let connection = options.connect().await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .connect_with(options.clone().pragma("query_only", "on"))
            .await?;
        let pointers = Arc::new(Pointers::new());
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let writer = Writer { connection: Some(connection), options: options.clone(), pointers: pointers.clone() };
        tokio::spawn(writer.run(waiting));
        Ok(Sqlite { readers, queue, pointers, options })
    }

    pub fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    pub fn pointers(&self) -> &Pointers {
        &self.pointers
    }

    /// Changes that wait for the writer.
    pub fn queue_len(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// A connection beside the writer's, for migrations.
    pub async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        self.options.connect().await
    }

    /// Queues a change and waits until its group is on disk. The change runs even if the caller stops waiting.
    pub async fn write<C: Change>(&self, change: C) -> Result<C::Answer, sqlx::Error> {
        let (caller, answer) = oneshot::channel();
        let waiting = Waiting { change, outcome: None, caller };
        let queued = self.queue.send(Message::Change(Box::new(waiting))).await;
        queued.map_err(|_| sqlx::Error::PoolClosed)?;
        answer.await.map_err(|_| sqlx::Error::WorkerCrashed)?
    }

    /// An error when the writer no longer runs.
    pub fn check_writer(&self) -> Result<(), sqlx::Error> {
        if self.queue.is_closed() { Err(sqlx::Error::WorkerCrashed) } else { Ok(()) }
    }

    /// Finishes what is queued, moves the log into the file and closes every connection.
    pub async fn close(&self) {
        let (closed, wait) = oneshot::channel();
        self.readers.close().await;
        if self.queue.send(Message::Close(closed)).await.is_ok() {
            wait.await.ok();
        }
    }
}

/// A change of any kind in the writer's hands.
trait Pending: Send {
    /// Runs the change and keeps its outcome for later.
    fn apply<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, Applied>;
    /// Its group is on disk: publishes and answers what the change came to.
    fn committed(self: Box<Self>, pointers: &Pointers);
    /// Its group is not.
    fn failed(self: Box<Self>, error: sqlx::Error);
}

enum Applied {
    Keep,
    Undo,
}

struct Waiting<C: Change> {
    change: C,
    outcome: Option<Result<C::Answer, sqlx::Error>>,
    caller: oneshot::Sender<Result<C::Answer, sqlx::Error>>,
}

impl<C: Change> Pending for Waiting<C> {
    fn apply<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, Applied> {
        Box::pin(async move {
            let outcome = self.change.apply(&mut Arms::Sqlite(connection)).await;
            let took_effect = outcome.as_ref().is_ok_and(|answer| self.change.took_effect(answer));
            let applied = if took_effect { Applied::Keep } else { Applied::Undo };
            self.outcome = Some(outcome);
            applied
        })
    }

    fn committed(self: Box<Self>, pointers: &Pointers) {
        let outcome = self.outcome.unwrap_or(Err(sqlx::Error::WorkerCrashed));
        if let Ok(answer) = &outcome {
            self.change.publish(answer, pointers);
        }
        // A caller that stopped waiting does not undo its change.
        self.caller.send(outcome).ok();
    }

    fn failed(self: Box<Self>, error: sqlx::Error) {
        self.caller.send(Err(error)).ok();
    }
}

struct Writer {
    /// `None` after a group failed: what state the connection is in cannot be told, so the next group opens another.
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    pointers: Arc<Pointers>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut closing = None;
        while let Some(message) = queue.recv().await {
            let mut group = Vec::new();
            let committed = match message {
                Message::Change(first) => self.commit(first, &mut queue, &mut group, &mut closing).await,
                Message::Close(closed) => {
                    closing = Some(closed);
                    Ok(())
                }
            };
            self.answer(group, committed);
            if closing.is_some() {
                queue.close(); // what is queued already still comes out
            }
        }
        if let Some(connection) = self.connection.take()
            && let Err(error) = close(connection).await
        {
            tracing::warn!(%error, "the catalog's database did not close cleanly");
        }
        if let Some(closed) = closing {
            closed.send(()).ok();
        }
    }

    /// Applies `first` and whatever is waiting or comes meanwhile, and commits. `group` holds what was taken on.
    async fn commit(
        &mut self,
        first: Box<dyn Pending>,
        queue: &mut mpsc::Receiver<Message>,
        group: &mut Vec<Box<dyn Pending>>,
        closing: &mut Option<oneshot::Sender<()>>,
    ) -> Result<(), sqlx::Error> {
        let mut next = Some(first);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.inspect_err(|_| group.extend(next.take()))?,
        };
        run(&mut connection, "begin immediate").await.inspect_err(|_| group.extend(next.take()))?;
        while let Some(pending) = next.take() {
            group.push(pending);
            let Some(pending) = group.last_mut() else { break };
            apply(&mut connection, pending.as_mut()).await?;
            if group.len() >= GROUP_MAX || closing.is_some() {
                break;
            }
            match queue.try_recv() {
                Ok(Message::Change(pending)) => next = Some(pending),
                Ok(Message::Close(closed)) => *closing = Some(closed),
                Err(_) => {}
            }
        }
        run(&mut connection, "commit").await?;
        self.connection = Some(connection);
        Ok(())
    }

    fn answer(&self, group: Vec<Box<dyn Pending>>, committed: Result<(), sqlx::Error>) {
        match committed {
            Ok(()) => group.into_iter().for_each(|pending| pending.committed(&self.pointers)),
            Err(error) => {
                self.pointers.clear();
                let error = Arc::new(error);
                group.into_iter().for_each(|pending| pending.failed(GroupFailed(error.clone()).into()));
            }
        }
    }
}

/// Runs one change in a savepoint. An error means the whole group is lost.
async fn apply(connection: &mut SqliteConnection, pending: &mut dyn Pending) -> Result<(), sqlx::Error> {
    run(connection, "savepoint change").await?;
    if let Applied::Undo = pending.apply(connection).await {
        // Fails when the error already rolled back everything, as a full disk may.
        run(connection, "rollback to change").await?;
    }
    run(connection, "release change").await
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(connection).await.map(drop)
}

async fn close(mut connection: SqliteConnection) -> Result<(), sqlx::Error> {
    run(&mut connection, "pragma wal_checkpoint(truncate)").await?;
    connection.close().await
}

/// The commit of a change's group failed; each of its members is told.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the transaction that held the change failed")]
struct GroupFailed(#[source] Arc<sqlx::Error>);

impl From<GroupFailed> for sqlx::Error {
    fn from(failed: GroupFailed) -> sqlx::Error {
        sqlx::Error::Io(io::Error::other(failed))
    }
}
