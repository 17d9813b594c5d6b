//! Rows of tables kept in memory, true at every moment, for a process that owns its database alone.
//!
//! Every change publishes what it did here after its commit and before its answer, so whoever has an answer finds it
//! here. A reader that missed fills the gap from the database, but only when nothing was published to that shard since
//! it looked: otherwise its row may be older than the change it would cover.

use super::tables::TableRow;
use crate::iceberg::ident::{Namespace, TableIdent};
use quick_cache::{
    DefaultHashBuilder, Equivalent, Weighter,
    unsync::{Cache, DefaultLifecycle},
};
use std::{
    hash::{BuildHasher, Hash},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use uuid::Uuid;

/// Memory for rows of tables, and for paths of namespaces. Bytes.
const TABLES_BYTES_MAX: u64 = 48 * 1024 * 1024;
const NAMESPACES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What an entry costs beside its strings. Bytes.
const ENTRY_BYTES: u64 = 256;
const SHARDS: usize = 32;

/// Two maps in step with the database: path to namespace id, and (namespace id, name) to row.
pub struct Pointers {
    namespaces: Shards<NamespaceKey, Uuid>,
    tables: Shards<TableKey, Arc<TableRow>>,
}

/// What a lookup found, or the leave to fill the gap.
pub enum Lookup<V> {
    Found(V),
    Missing(Seen),
}

/// The shard's generation when a lookup missed.
#[derive(Clone, Copy)]
pub struct Seen(u64);

impl Pointers {
    pub fn new() -> Pointers {
        Pointers { namespaces: Shards::new(NAMESPACES_BYTES_MAX), tables: Shards::new(TABLES_BYTES_MAX) }
    }

    /// The row, when both the namespace's id and the row are here.
    pub fn load(&self, warehouse: Uuid, ident: &TableIdent) -> Option<TableRow> {
        let Lookup::Found(namespace_id) = self.find_namespace(warehouse, &ident.namespace) else { return None };
        let Lookup::Found(row) = self.find_table(namespace_id, &ident.name) else { return None };
        Some(TableRow::clone(&row))
    }

    pub fn find_namespace(&self, warehouse: Uuid, namespace: &Namespace) -> Lookup<Uuid> {
        self.namespaces.find(&NamespaceRef { warehouse, namespace })
    }

    pub fn fill_namespace(&self, seen: Seen, warehouse: Uuid, namespace: &Namespace, id: Uuid) {
        self.namespaces.fill(seen, NamespaceKey { warehouse, namespace: namespace.clone() }, id);
    }

    /// The namespace is gone.
    pub fn forget_namespace(&self, warehouse: Uuid, namespace: &Namespace) {
        self.namespaces.forget(&NamespaceRef { warehouse, namespace });
    }

    pub fn find_table(&self, namespace_id: Uuid, name: &str) -> Lookup<Arc<TableRow>> {
        self.tables.find(&TableRef { namespace_id, name })
    }

    pub fn fill_table(&self, seen: Seen, row: &TableRow) {
        self.tables.fill(seen, TableKey::of(row), Arc::new(row.clone()));
    }

    /// The row is this from now on.
    pub fn put_table(&self, row: &TableRow) {
        self.tables.put(TableKey::of(row), Arc::new(row.clone()));
    }

    /// There is no such row any more.
    pub fn forget_table(&self, namespace_id: Uuid, name: &str) {
        self.tables.forget(&TableRef { namespace_id, name });
    }

    /// What the bound on bytes does to a row that few ask for.
    #[cfg(test)]
    pub fn evict_table(&self, namespace_id: Uuid, name: &str) {
        let key = TableRef { namespace_id, name };
        self.tables.shard(&key).entries.remove(&key);
    }

    /// Nothing is known any more.
    pub fn clear(&self) {
        self.namespaces.clear();
        self.tables.clear();
    }
}

#[derive(PartialEq, Eq, Hash)]
struct NamespaceKey {
    warehouse: Uuid,
    namespace: Namespace,
}

/// Hashes like [`NamespaceKey`], without owning the names.
#[derive(Hash)]
struct NamespaceRef<'a> {
    warehouse: Uuid,
    namespace: &'a Namespace,
}

impl Equivalent<NamespaceKey> for NamespaceRef<'_> {
    fn equivalent(&self, key: &NamespaceKey) -> bool {
        self.warehouse == key.warehouse && *self.namespace == key.namespace
    }
}

#[derive(PartialEq, Eq, Hash)]
struct TableKey {
    namespace_id: Uuid,
    name: String,
}

impl TableKey {
    fn of(row: &TableRow) -> TableKey {
        TableKey { namespace_id: row.namespace_id, name: row.name.clone() }
    }
}

/// Hashes like [`TableKey`], without owning the name.
#[derive(Hash)]
struct TableRef<'a> {
    namespace_id: Uuid,
    name: &'a str,
}

impl Equivalent<TableKey> for TableRef<'_> {
    fn equivalent(&self, key: &TableKey) -> bool {
        self.namespace_id == key.namespace_id && self.name == key.name
    }
}

/// Counts the bytes an entry holds.
#[derive(Clone)]
struct Bytes;

impl Weighter<NamespaceKey, Uuid> for Bytes {
    fn weight(&self, key: &NamespaceKey, _: &Uuid) -> u64 {
        key.namespace.levels().iter().map(|level| (level.len() + size_of::<String>()) as u64).sum::<u64>() + ENTRY_BYTES
    }
}

impl Weighter<TableKey, Arc<TableRow>> for Bytes {
    fn weight(&self, key: &TableKey, row: &Arc<TableRow>) -> u64 {
        let previous = row.previous_location.as_ref().map_or(0, String::len);
        let strings = 2 * key.name.len() + row.location.len() + row.metadata_location.len() + previous;
        (strings + size_of::<TableRow>()) as u64 + ENTRY_BYTES
    }
}

/// A map in shards, each behind its own lock together with the count of changes published to it.
struct Shards<K, V> {
    shards: Vec<Mutex<Shard<K, V>>>,
    hasher: DefaultHashBuilder,
}

struct Shard<K, V> {
    generation: u64,
    entries: Cache<K, V, Bytes, DefaultHashBuilder, DefaultLifecycle<K, V>>,
}

impl<K: Eq + Hash, V: Clone> Shards<K, V>
where
    Bytes: Weighter<K, V>,
{
    fn new(bytes_max: u64) -> Self {
        let bytes_max = bytes_max / SHARDS as u64;
        let entries_estimate = usize::try_from(bytes_max / (2 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        let shard = |_| {
            let hasher = DefaultHashBuilder::default();
            let entries = Cache::with(entries_estimate, bytes_max, Bytes, hasher, DefaultLifecycle::default());
            Mutex::new(Shard { generation: 0, entries })
        };
        Shards { shards: (0..SHARDS).map(shard).collect(), hasher: DefaultHashBuilder::default() }
    }

    fn find<Q: Hash + Equivalent<K>>(&self, key: &Q) -> Lookup<V> {
        let shard = self.shard(key);
        match shard.entries.get(key) {
            Some(value) => Lookup::Found(value.clone()),
            None => Lookup::Missing(Seen(shard.generation)),
        }
    }

    fn fill(&self, seen: Seen, key: K, value: V) {
        let mut shard = self.shard(&key);
        if shard.generation == seen.0 {
            shard.entries.insert(key, value);
        }
    }

    fn put(&self, key: K, value: V) {
        let mut shard = self.shard(&key);
        shard.generation += 1;
        shard.entries.insert(key, value);
    }

    fn forget<Q: Hash + Equivalent<K>>(&self, key: &Q) {
        let mut shard = self.shard(key);
        shard.generation += 1;
        shard.entries.remove(key);
    }

    fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.generation += 1;
            shard.entries.clear();
        }
    }

    fn shard<Q: Hash>(&self, key: &Q) -> MutexGuard<'_, Shard<K, V>> {
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
