//! Use cases of the catalog without HTTP: each public function takes a caller and authorises first.
//!
//! Order inside each: read, authorise, decide, write, publish. Exactly one statement publishes. Statements are in `db/`,
//! rules of the table format in `iceberg/`, the protocol in `rest/`.

pub mod commit;
pub mod create;
pub mod credentials;
pub mod deflated;
pub mod document;
pub mod error;
pub mod files;
pub mod functions;
pub mod idempotency;
pub mod location;
pub mod namespaces;
pub(crate) mod publish;
pub mod purge;
pub mod queue;
pub mod register;
pub mod relation;
pub mod reports;
pub mod signing;
pub mod storage;
mod strict;
pub mod tables;
pub mod transactions;
pub mod views;
pub mod warehouses;

pub use crate::db::Page;
pub use error::{Error, Result};

use crate::{
    auth::{
        Caller,
        grants::{self, Action, Resource},
    },
    iceberg::{ident::TableIdent, view::ViewMetadata},
};
use uuid::Uuid;

/// Which part of the memory for metadata is for views': they are few and small.
const VIEWS_PART: u64 = 16;

/// What the catalog keeps in memory: contents of immutable files, rows that never change, and who waits for what.
/// Nothing here can go stale; all of it is bounded.
pub struct Caches {
    pub(crate) documents: document::Documents,
    pub(crate) views: document::Documents<ViewMetadata>,
    pub(crate) warehouses: warehouses::Warehouses,
    /// Commits by warehouse and name.
    pub(crate) commits: queue::Queues<(Uuid, TableIdent)>,
    /// Reports of scans and commits that wait to be stored.
    pub(crate) reports: reports::Inbox,
    /// Requests that are to be answered once, by principal and key.
    pub(crate) requests: queue::Queues<idempotency::Line>,
    /// Told when a job was enqueued, so that the worker need not wait for its next look.
    pub(crate) jobs_due: tokio::sync::Notify,
    #[cfg(test)]
    pub(crate) faults: publish::faults::Faults,
}

impl Caches {
    /// `metadata_bytes_max` bounds what cached metadata of tables and views may take.
    pub fn new(metadata_bytes_max: u64) -> Caches {
        Caches {
            documents: document::Documents::new(metadata_bytes_max - metadata_bytes_max / VIEWS_PART),
            views: document::Documents::new(metadata_bytes_max / VIEWS_PART),
            warehouses: warehouses::Warehouses::default(),
            commits: queue::Queues::default(),
            reports: reports::Inbox::default(),
            requests: queue::Queues::default(),
            jobs_due: tokio::sync::Notify::new(),
            #[cfg(test)]
            faults: publish::faults::Faults::default(),
        }
    }
}

/// Whether the caller may use the catalog at all.
///
/// # Errors
/// `Error::Forbidden` for callers whose credential is for objects only.
pub fn authorise(caller: &Caller) -> Result<()> {
    if grants::allows(&caller.authority, Action::Catalog, Resource::Server) {
        Ok(())
    } else {
        Err(Error::Forbidden("this credential does not open the catalog".to_owned()))
    }
}
