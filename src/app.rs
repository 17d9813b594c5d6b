//! What a running server holds: settings, database, store, credentials and caches, shared by every request.

use crate::{auth::Auth, config::Settings, db::Db, store::Store};
use std::sync::Arc;

/// Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub settings: Settings,
    pub db: Db,
    pub auth: Auth,
    pub store: Store,
    pub catalog: crate::catalog::Caches,
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }
}

/// Milliseconds since the epoch: the one place that reads the wall clock.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
