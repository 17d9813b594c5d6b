//! Removes files that no record needs any more, on a thread of its own, once nobody reads them.
//!
//! A body dies in the transaction that takes its last reference; its row stays, with no references, until its files
//! are gone. Readers that will still look things up in the index pin the body first: the gate makes "look up and pin"
//! one step to the reaper, so a body it finds unpinned cannot be picked up again. A crash in between leaves rows
//! without references, which the next start hands to the reaper again, and files no row names, which it removes.

use super::{
    disk::{Disk, FileName},
    index::{bodies, open_reader},
};
use rusqlite::Connection;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, mpsc},
    thread::JoinHandle,
};

/// A row of a body in the index.
pub(super) type BodyId = i64;

/// Where to send what is to be removed. Cheap to clone.
///
/// The queue has no bound of its own: it holds names of files and bodies that exist, and senders (drops, the commit
/// thread) must not wait.
#[derive(Clone)]
pub(super) struct Reaper(mpsc::Sender<Message>);

enum Message {
    /// These bodies have no references left, committed.
    Dead(Vec<BodyId>),
    /// The last reader of a dead body is done.
    Released(BodyId),
    /// A file that no record ever named.
    Discard(FileName),
    Stop,
}

impl Reaper {
    pub fn bury(&self, bodies: Vec<BodyId>) {
        self.send(Message::Dead(bodies));
    }

    pub fn discard(&self, name: FileName) {
        self.send(Message::Discard(name));
    }

    pub fn stop(&self) {
        self.send(Message::Stop);
    }

    /// After the reaper has stopped what is left waits for the next start.
    fn send(&self, message: Message) {
        let _ = self.0.send(message);
    }
}

/// Which bodies are being read.
pub(super) struct Pins {
    gate: RwLock<()>,
    pinned: Mutex<HashMap<BodyId, Pinned>>,
    reaper: Reaper,
}

#[derive(Default)]
struct Pinned {
    readers: usize,
    dead: bool,
}

impl Pins {
    pub fn new(reaper: Reaper) -> Arc<Self> {
        Arc::new(Self { gate: RwLock::new(()), pinned: Mutex::default(), reaper })
    }

    /// Runs a look-up that may pin what it finds; the reaper does not decide in between.
    pub fn look_up<T>(&self, look_up: impl FnOnce() -> T) -> T {
        let _open = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        look_up()
    }

    /// Call within [`Pins::look_up`].
    pub fn pin(self: &Arc<Self>, body: BodyId) -> Pin {
        self.lock().entry(body).or_default().readers += 1;
        Pin { pins: self.clone(), body }
    }

    /// Whether nobody reads a body that has died; otherwise its last reader will tell the reaper.
    fn is_free(&self, body: BodyId) -> bool {
        let _closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        match self.lock().get_mut(&body) {
            None => true,
            Some(pinned) => {
                pinned.dead = true;
                false
            }
        }
    }

    fn unpin(&self, body: BodyId) {
        let mut pinned = self.lock();
        let Some(entry) = pinned.get_mut(&body) else { return };
        entry.readers -= 1;
        if entry.readers == 0 && pinned.remove(&body).is_some_and(|entry| entry.dead) {
            drop(pinned);
            self.reaper.send(Message::Released(body));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BodyId, Pinned>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a body's rows and files while it is held.
pub(super) struct Pin {
    pins: Arc<Pins>,
    body: BodyId,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.unpin(self.body);
    }
}

/// Bodies whose files are gone: the commit thread drops their rows along with its next group.
pub(super) type Reaped = Arc<Mutex<Vec<BodyId>>>;

/// The reaper's queue before its thread runs.
pub(super) struct Queue(mpsc::Receiver<Message>);

pub(super) fn queue() -> (Reaper, Queue) {
    let (sender, receiver) = mpsc::channel();
    (Reaper(sender), Queue(receiver))
}

/// Starts the thread. It ends when told to stop, or when every sender is gone.
pub(super) fn start(
    queue: Queue,
    folder: &Path,
    disk: Disk,
    pins: Arc<Pins>,
    reaped: Reaped,
    lock: Arc<super::lock::FolderLock>,
) -> super::Result<JoinHandle<()>> {
    let index = open_reader(folder)?;
    let thread = std::thread::Builder::new().name("store-reaper".to_owned()).spawn(move || {
        let _lock = lock;
        // Holding `pins` would hold a sender: upgraded only while a message is at hand.
        let pins = {
            let weak = Arc::downgrade(&pins);
            drop(pins);
            weak
        };
        while let Ok(message) = queue.0.recv() {
            match message {
                Message::Stop => break,
                Message::Discard(name) => remove(&disk, &name),
                Message::Released(body) => reap(&index, &disk, body, &reaped),
                Message::Dead(bodies) => {
                    for body in bodies {
                        if pins.upgrade().is_none_or(|pins| pins.is_free(body)) {
                            reap(&index, &disk, body, &reaped);
                        }
                    }
                }
            }
        }
    })?;
    Ok(thread)
}

/// Leaves the rows when a file cannot be removed: the next start tries again.
fn reap(index: &Connection, disk: &Disk, body: BodyId, reaped: &Reaped) {
    let files = match bodies::files(index, body) {
        Ok(files) => files,
        Err(error) => return tracing::warn!(%error, "a removed object's files were not found out"),
    };
    let mut gone = true;
    for name in files {
        if let Err(error) = disk.remove(&name) {
            tracing::warn!(%error, file = name.as_str(), "a removed object's file was not removed");
            gone = false;
        }
    }
    if gone {
        reaped.lock().unwrap_or_else(PoisonError::into_inner).push(body);
    }
}

fn remove(disk: &Disk, name: &FileName) {
    if let Err(error) = disk.remove(name) {
        tracing::warn!(%error, file = name.as_str(), "an unfinished file was not removed");
    }
}
