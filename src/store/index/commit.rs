//! The commit thread: one transaction, and so one sync, for all changes that wait.

use crate::store::{
    Error, Result,
    disk::FreshFile,
    health::{self, Health},
    lock::FolderLock,
    reaper::{BodyId, Reaped, Reaper},
};
use rusqlite::Connection;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};
use tokio::sync::{mpsc, oneshot};

/// Changes that may wait; further callers wait to queue theirs.
const QUEUE_CHANGES_MAX: usize = 1024;
/// Changes in one transaction: bounds how long the first of them waits for the last.
const GROUP_CHANGES_MAX: usize = 512;
/// Rows of removed bodies dropped along with a group.
const GROUP_REAPED_MAX: usize = 256;

/// A change inside its transaction.
pub(in crate::store) struct Write<'a> {
    pub index: &'a Connection,
    group: &'a mut Group,
}

/// What becomes true, or not, with the whole transaction.
#[derive(Default)]
struct Group {
    dead: Vec<BodyId>,
    adopted: Vec<FreshFile>,
    /// Set when the transaction cannot be committed any more.
    lost: Option<Fate>,
}

impl Write<'_> {
    /// This body has lost its last reference: once that is durable its files go.
    pub fn bury(&mut self, body: BodyId) {
        self.group.dead.push(body);
    }

    /// A row names this file: once that may be durable it stays.
    pub fn adopt(&mut self, file: FreshFile) {
        self.group.adopted.push(file);
    }

    fn lose(&mut self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the store's index failed");
        self.group.lost = Some(Fate::Failed);
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Durable,
    /// Rolled back for want of space.
    Full,
    /// Not known to be durable: the store stops.
    Failed,
}

type Answer = Box<dyn FnOnce(Fate) + Send>;

/// Runs inside the transaction, or is told that it will not, and says how to answer its caller.
type Change = Box<dyn FnOnce(Option<&mut Write<'_>>) -> Answer + Send>;

enum Job {
    Change(Change),
    Close,
}

/// What the commit thread needs besides the connection.
pub(in crate::store) struct Parts {
    pub health: Arc<Health>,
    pub reaper: Reaper,
    pub reaped: Reaped,
    pub lock: Arc<FolderLock>,
}

/// The queue to the commit thread, which ends with it.
pub(super) struct Committer {
    jobs: mpsc::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    pub fn start(connection: Connection, parts: Parts) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE_CHANGES_MAX);
        let thread = std::thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || CommitThread::new(connection, parts).run(queue))?;
        Ok(Self { jobs, thread: Mutex::new(Some(thread)) })
    }

    pub async fn change<T: Send + 'static>(
        &self,
        apply: impl FnOnce(&mut Write<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |write: Option<&mut Write<'_>>| -> Answer {
            let result = write.map(|write| in_savepoint(write, apply));
            Box::new(move |fate| {
                let result = match fate {
                    Fate::Durable => result.unwrap_or_else(|| Err(health::stopped())),
                    Fate::Full => Err(Error::Full),
                    Fate::Failed => Err(health::stopped()),
                };
                // The caller may have gone; the change stands all the same.
                let _ = answer.send(result);
            })
        });
        self.jobs.send(Job::Change(job)).await.map_err(|_| health::stopped())?;
        answered.await.map_err(|_| health::stopped())?
    }

    /// Lets queued changes finish, then checkpoints and closes.
    pub async fn close(&self) {
        let _ = self.jobs.send(Job::Close).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

/// Undoes the statements and promises of a change that fails or panics, and only those.
fn in_savepoint<T>(write: &mut Write<'_>, apply: impl FnOnce(&mut Write<'_>) -> Result<T>) -> Result<T> {
    let (dead, adopted) = (write.group.dead.len(), write.group.adopted.len());
    let index = write.index;
    let run = |statement: &str| index.prepare_cached(statement)?.execute([]).map(|_| ()).map_err(Error::from);
    let result = run("savepoint change").and_then(|()| {
        catch_unwind(AssertUnwindSafe(|| apply(write)))
            .unwrap_or_else(|_| Err(Error::Index("a change panicked".to_owned())))
    });
    // On some errors (a full disk, failed input or output) SQLite ends the whole transaction by itself.
    let gone = index.is_autocommit();
    let ended = match &result {
        Ok(_) => run("release change"),
        Err(_) if gone => Ok(()),
        Err(_) => run("rollback to change").and_then(|()| run("release change")),
    };
    if result.is_err() {
        write.group.dead.truncate(dead);
        write.group.adopted.truncate(adopted);
    }
    match (&result, &ended) {
        (Err(Error::Full), _) if gone => write.group.lost = Some(Fate::Full),
        (Err(Error::Io(error)), _) => write.lose(error),
        (Err(error), _) if gone => write.lose(error),
        (_, Err(error)) => write.lose(error),
        (_, Ok(())) => {}
    }
    ended.and(result)
}

struct CommitThread {
    connection: Connection,
    health: Arc<Health>,
    reaper: Reaper,
    reaped: Reaped,
    /// Let go when the last change is written.
    _lock: Arc<FolderLock>,
}

impl CommitThread {
    fn new(connection: Connection, parts: Parts) -> Self {
        let Parts { health, reaper, reaped, lock } = parts;
        Self { connection, health, reaper, reaped, _lock: lock }
    }

    fn run(self, mut queue: mpsc::Receiver<Job>) {
        let mut open = true;
        while open {
            let Some(first) = queue.blocking_recv() else { break };
            let mut changes = Vec::new();
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Change(change) => changes.push(change),
                    Job::Close => open = false,
                }
                next = if open && changes.len() < GROUP_CHANGES_MAX { queue.try_recv().ok() } else { None };
            }
            self.commit(changes);
        }
        self.close();
    }

    fn commit(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut group = Group::default();
        let mut answers = Vec::with_capacity(changes.len());
        let fate = self.transact(changes, &mut group, &mut answers);
        if fate == Fate::Failed {
            self.health.fail(&"the index did not commit");
        }
        // A file is removed only where no row can name it; after a failure that is for the next start to say.
        match fate {
            Fate::Full => drop(group.adopted),
            Fate::Durable | Fate::Failed => group.adopted.into_iter().for_each(FreshFile::keep),
        }
        if fate == Fate::Full {
            self.shorten_log();
        }
        if fate == Fate::Durable && !group.dead.is_empty() {
            self.reaper.bury(group.dead);
        }
        answers.into_iter().for_each(|answer: Answer| answer(fate));
    }

    fn transact(&self, changes: Vec<Change>, group: &mut Group, answers: &mut Vec<Answer>) -> Fate {
        let index = &self.connection;
        let begun = match self.health.check_disk() {
            Ok(()) => index.execute_batch("begin immediate"),
            Err(_) => {
                group.lost = Some(Fate::Failed);
                Ok(())
            }
        };
        if let Err(error) = begun {
            group.lost = Some(fate_of(error));
        }
        for change in changes {
            let answer = match group.lost {
                None => change(Some(&mut Write { index, group: &mut *group })),
                Some(_) => change(None),
            };
            answers.push(answer);
        }
        let committed = match group.lost {
            None => self.forget_reaped().and_then(|()| index.execute_batch("commit")).map_err(fate_of),
            Some(fate) => Err(fate),
        };
        match committed {
            Ok(()) => Fate::Durable,
            Err(_) if !index.is_autocommit() && index.execute_batch("rollback").is_err() => Fate::Failed,
            Err(fate) => fate,
        }
    }

    /// Folds the log into the index, so that what its file has grown to is room again.
    fn shorten_log(&self) {
        if let Err(error) = self.connection.execute_batch("pragma wal_checkpoint(truncate)") {
            tracing::warn!(%error, "the index's log could not be shortened on a full disk");
        }
    }

    /// Rows of bodies whose files are gone. Losing this to a rollback is mended at the next start.
    fn forget_reaped(&self) -> rusqlite::Result<()> {
        let reaped = {
            let mut reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
            let count = reaped.len().min(GROUP_REAPED_MAX);
            reaped.drain(..count).collect::<Vec<_>>()
        };
        reaped.into_iter().try_for_each(|body| super::bodies::forget(&self.connection, body))
    }

    fn close(self) {
        if self.health.check_disk().is_ok() {
            let ended = self
                .connection
                .execute_batch("begin immediate")
                .and_then(|()| self.forget_reaped())
                .and_then(|()| self.connection.execute_batch("commit; pragma wal_checkpoint(truncate)"));
            if let Err(error) = ended {
                tracing::warn!(%error, "the index was closed without a checkpoint");
            }
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(%error, "the index did not close");
        }
    }
}

fn fate_of(error: rusqlite::Error) -> Fate {
    tracing::error!(%error, "the store's index did not commit");
    match Error::from(error) {
        Error::Full => Fate::Full,
        _ => Fate::Failed,
    }
}
