//! Snapshots, the refs that name them, and the log of current ones.

use super::{Builder, Statistics};
use crate::iceberg::{
    Error, Result, ensure,
    metadata::{CLOCK_SKEW_MS, TableMetadata},
    snapshot::{MAIN, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef},
};
use std::{collections::HashSet, sync::Arc};

impl Builder {
    pub(super) fn add_snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        let metadata = &self.metadata;
        for (is_empty, what) in [
            (metadata.schemas.is_empty(), "schema"),
            (metadata.specs.is_empty(), "partition spec"),
            (metadata.sort_orders.is_empty(), "sort order"),
        ] {
            ensure(!is_empty, || format!("cannot add a snapshot before a {what} is added"))?;
        }
        snapshot.check_new(metadata.format_version)?;
        ensure(!self.has_snapshot(snapshot.id), || format!("snapshot already exists for id: {}", snapshot.id))?;
        check_sequence_number(&self.metadata, snapshot)?;
        let next_row_id = next_row_id(&self.metadata, snapshot)?;

        let metadata = self.change();
        // A table that is replaced starts a new line of snapshots, which may repeat numbers; the table's never falls.
        metadata.last_sequence_number = metadata.last_sequence_number.max(snapshot.sequence_number);
        metadata.next_row_id = next_row_id;
        Arc::make_mut(&mut metadata.snapshots).push(snapshot.clone());
        self.snapshot_ids().insert(snapshot.id);
        self.added_snapshots.insert(snapshot.id, snapshot.timestamp_ms);
        Ok(())
    }

    pub(super) fn set_ref(&mut self, name: &str, reference: &SnapshotRef) -> Result<()> {
        let old = self.metadata.refs.get(name);
        let reference = match old {
            Some(old) => &reference.with_extras_of(old),
            None => reference,
        };
        if old == Some(reference) {
            return Ok(());
        }
        let id = reference.snapshot_id;
        ensure(name != MAIN || reference.kind != RefKind::Tag, || "main must be a branch".to_owned())?;
        ensure(self.has_snapshot(id), || format!("cannot set {name} to unknown snapshot: {id}"))?;
        if name == MAIN && self.metadata.current_snapshot_id != Some(id) {
            self.set_current(id);
        }
        Arc::make_mut(&mut self.change().refs).insert(name.to_owned(), reference.clone());
        Ok(())
    }

    /// A snapshot of this request became current when it was made, another one now.
    fn set_current(&mut self, id: i64) {
        let added_ms = self.added_snapshots.get(&id).copied();
        if added_ms.is_some() {
            self.passed_currents.insert(id);
        }
        let mut timestamp_ms = added_ms.unwrap_or(self.now_ms);
        let metadata = self.change();
        metadata.current_snapshot_id = Some(id);
        // As whoever reads the file will have it.
        metadata.writes_minus_one = false;
        // Readers refuse a log that steps back further than clocks may differ.
        if let Some(last) = metadata.snapshot_log.last().map(|entry| entry.timestamp_ms)
            && timestamp_ms < last.saturating_sub(CLOCK_SKEW_MS)
        {
            timestamp_ms = last;
        }
        Arc::make_mut(&mut metadata.snapshot_log).push(SnapshotLogEntry::new(timestamp_ms, id));
    }

    pub(super) fn remove_ref(&mut self, name: &str) -> Result<()> {
        if self.metadata.refs.contains_key(name) {
            let metadata = self.change();
            Arc::make_mut(&mut metadata.refs).remove(name);
            if name == MAIN {
                metadata.current_snapshot_id = None;
            }
        }
        Ok(())
    }

    /// Takes refs and statistics of the snapshots along. Ids the table does not know are passed over.
    pub(super) fn remove_snapshots(&mut self, ids: &[i64]) -> Result<()> {
        let removed: HashSet<i64> = ids.iter().copied().filter(|&id| self.has_snapshot(id)).collect();
        if removed.is_empty() {
            return Ok(());
        }
        self.is_snapshot_removed = true;
        self.snapshot_ids().retain(|id| !removed.contains(id));
        Arc::make_mut(&mut self.change().snapshots).retain(|snapshot| !removed.contains(&snapshot.id));
        for kind in [Statistics::Table, Statistics::Partition] {
            self.remove_statistics_of(kind, &removed);
        }
        let refs = self.metadata.refs.iter();
        let dangling: Vec<_> = refs
            .filter(|(_, reference)| removed.contains(&reference.snapshot_id))
            .map(|(name, _)| name.clone())
            .collect();
        dangling.iter().try_for_each(|name| self.remove_ref(name))
    }

    /// Takes out of the log what never was current to anyone, and all that came before a removed snapshot: with a gap,
    /// reads of a point in time would find the wrong snapshot.
    pub(super) fn settle_snapshot_log(&mut self) {
        let current = self.metadata.current_snapshot_id;
        self.passed_currents.retain(|id| Some(*id) != current);
        if self.passed_currents.is_empty() && !self.is_snapshot_removed {
            return;
        }
        self.snapshot_ids();
        let known = self.snapshot_ids.take().unwrap_or_default();
        let log = Arc::make_mut(&mut self.metadata.snapshot_log);
        if self.is_snapshot_removed {
            let gap = log.iter().rposition(|entry| !known.contains(&entry.snapshot_id));
            log.drain(..gap.map_or(0, |position| position + 1));
        }
        log.retain(|entry| !self.passed_currents.contains(&entry.snapshot_id));
    }

    fn has_snapshot(&mut self, id: i64) -> bool {
        self.snapshot_ids().contains(&id)
    }

    fn snapshot_ids(&mut self) -> &mut HashSet<i64> {
        let snapshots = &self.metadata.snapshots;
        self.snapshot_ids.get_or_insert_with(|| snapshots.iter().map(|snapshot| snapshot.id).collect())
    }
}

/// The sequence number of a new snapshot: behind the table's means that the client did not see the last commit.
fn check_sequence_number(metadata: &TableMetadata, snapshot: &Snapshot) -> Result<()> {
    let (number, last) = (snapshot.sequence_number, metadata.last_sequence_number);
    if metadata.format_version == 1 || snapshot.parent_id.is_none() || number > last {
        return ensure(number >= 0, || format!("a sequence number must not be negative: {number}"));
    }
    Err(stale(format!("cannot add snapshot with sequence number {number} older than last sequence number {last}")))
}

/// The table's next row id once a snapshot is added ("Snapshot Row IDs").
fn next_row_id(metadata: &TableMetadata, snapshot: &Snapshot) -> Result<i64> {
    let next = metadata.next_row_id;
    if metadata.format_version < 3 {
        return Ok(next);
    }
    let missing = |field: &str| Error::Invalid(format!("cannot add a snapshot: {field} is null"));
    let first = snapshot.first_row_id.ok_or_else(|| missing("first-row-id"))?;
    let added = snapshot.added_rows.ok_or_else(|| missing("added-rows"))?;
    if first < next {
        return Err(stale(format!(
            "cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {next}"
        )));
    }
    ensure(added >= 0, || format!("added-rows must not be negative: {added}"))?;
    first.checked_add(added).ok_or_else(|| Error::Invalid("row ids are exhausted".to_owned()))
}

/// The text is matched by clients' test suites: it tells them to build the snapshot anew.
fn stale(problem: String) -> Error {
    Error::Conflict(format!("Validation failed, please retry: {problem}"))
}
