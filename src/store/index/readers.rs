//! Connections for look-ups, used one caller at a time from the blocking pool.

use crate::store::{Error, Result};
use rusqlite::Connection;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;

/// Look-ups that run at once; further callers wait.
const CONNECTIONS: usize = 8;

pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Blocking.
    pub fn open(folder: &Path) -> Result<Arc<Self>> {
        let idle = (0..CONNECTIONS).map(|_| super::open_reader(folder)).collect::<Result<_>>()?;
        Ok(Arc::new(Self { idle: Mutex::new(idle), permits: Arc::new(Semaphore::new(CONNECTIONS)) }))
    }

    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        look_up: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let readers = self.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let connection = readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().ok_or_else(closed)?;
            let lease = Lease { readers: &readers, connection: Some(connection) };
            let found = lease.connection.as_ref().map_or_else(|| Err(closed()), look_up);
            drop(lease);
            drop(permit);
            found
        });
        looking.await.map_err(|error| Error::Index(error.to_string()))?
    }

    /// Waits for look-ups under way and closes their connections.
    pub async fn close(&self) {
        // Only fails when closed already.
        let _ = self.permits.acquire_many(CONNECTIONS as u32).await;
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Gives the connection back, also when a look-up panics.
struct Lease<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let connection = self.connection.take();
        self.readers.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(connection);
    }
}

fn closed() -> Error {
    Error::Folder("it was closed".to_owned())
}
