//! File calls and hashing of large bodies, on tokio's blocking pool and bounded there.

use super::{Error, Result};
use std::sync::Arc;
use tokio::{sync::Semaphore, task::JoinHandle};

/// Pieces of blocking work that run at once, a processor; further ones wait without a thread. Each thread keeps some
/// MiB of freed buffers, so more of them than keep disk and processors busy only cost memory.
const RUNNING_A_CPU: usize = 4;
const RUNNING_MIN: usize = 16;

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Blocking(Arc<Semaphore>);

impl Blocking {
    pub fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new((cpus * RUNNING_A_CPU).max(RUNNING_MIN))))
    }

    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        joined(self.start(work).await?).await
    }

    /// Starts the work and does not wait for it. It runs to its end even when the handle is dropped.
    pub async fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let permit = self.0.clone().acquire_owned().await.map_err(|error| Error::Io(std::io::Error::other(error)))?;
        Ok(tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        }))
    }
}

pub(super) async fn joined<T>(handle: JoinHandle<Result<T>>) -> Result<T> {
    handle.await.map_err(|error| Error::Io(std::io::Error::other(error)))?
}

/// A value that works step by step on the blocking pool, one step behind its owner.
pub(super) struct Lane<T> {
    pool: Blocking,
    state: State<T>,
}

enum State<T> {
    Idle(T),
    Busy(JoinHandle<Result<T>>),
    /// A step failed, or its owner was cancelled amid a hand-over.
    Lost,
}

impl<T: Send + 'static> Lane<T> {
    pub fn new(pool: &Blocking, value: T) -> Self {
        Self { pool: pool.clone(), state: State::Idle(value) }
    }

    /// Waits for the step before, then starts this one.
    ///
    /// # Errors
    /// What the step before failed with.
    pub async fn step(&mut self, work: impl FnOnce(&mut T) -> Result<()> + Send + 'static) -> Result<()> {
        self.settle().await?;
        // The value stays in place while a permit is awaited: cancelling there loses nothing.
        let permit =
            self.pool.0.clone().acquire_owned().await.map_err(|error| Error::Io(std::io::Error::other(error)))?;
        let State::Idle(mut value) = std::mem::replace(&mut self.state, State::Lost) else { return Err(lost()) };
        self.state = State::Busy(tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&mut value)?;
            Ok(value)
        }));
        Ok(())
    }

    /// Waits for the last step and gives the value back.
    pub async fn finish(mut self) -> Result<T> {
        self.settle().await?;
        match self.state {
            State::Idle(value) => Ok(value),
            State::Busy(_) | State::Lost => Err(lost()),
        }
    }

    async fn settle(&mut self) -> Result<()> {
        if let State::Busy(handle) = &mut self.state {
            let joined = handle.await.map_err(|error| Error::Io(std::io::Error::other(error)));
            self.state = State::Lost;
            self.state = State::Idle(joined??);
        }
        Ok(())
    }
}

fn lost() -> Error {
    Error::Io(std::io::Error::other("an earlier write of this upload failed"))
}
