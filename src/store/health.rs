//! Whether the store may go on: once a sync has failed, nothing it says can be trusted until it is opened again.
//!
//! After a failed sync the kernel may have dropped the dirty pages and will report the next sync as a success, so a
//! retry would acknowledge bytes that are gone. The store therefore refuses every later call; the process should stop
//! and open the folder again, which shows exactly what is on disk.

use super::{Error, Result};
use std::io;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sound,
    Failed,
    Closed,
}

/// Shared by everything that touches the folder.
pub(super) struct Health(watch::Sender<State>);

impl Health {
    pub fn new() -> Self {
        Self(watch::Sender::new(State::Sound))
    }

    /// # Errors
    /// `Error::Io` once a sync failed, `Error::Folder` once the store is closed.
    pub fn check(&self) -> Result<()> {
        match *self.0.borrow() {
            State::Sound => Ok(()),
            State::Failed => Err(stopped()),
            State::Closed => Err(Error::Folder("it was closed".to_owned())),
        }
    }

    /// Like [`Health::check`], for what still has to finish while the store closes.
    pub fn check_disk(&self) -> Result<()> {
        match *self.0.borrow() {
            State::Sound | State::Closed => Ok(()),
            State::Failed => Err(stopped()),
        }
    }

    pub fn fail(&self, why: &dyn std::fmt::Display) {
        let first = self.0.send_if_modified(|state| std::mem::replace(state, State::Failed) != State::Failed);
        if first {
            tracing::error!(error = %why, "the disk failed: the store stops and must be opened again");
        }
    }

    pub fn close(&self) {
        self.0.send_if_modified(|state| {
            let sound = *state == State::Sound;
            if sound {
                *state = State::Closed;
            }
            sound
        });
    }

    /// Returns once the store has failed; never when it does not.
    pub async fn failed(&self) {
        let mut states = self.0.subscribe();
        if states.wait_for(|state| *state == State::Failed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

pub(super) fn stopped() -> Error {
    Error::Io(io::Error::other("the store stopped after the disk failed"))
}
