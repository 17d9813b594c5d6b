//! Use cases of the catalog without HTTP: each public function takes a caller and authorises first.

/// What the catalog keeps in memory: only what cannot go stale.
pub struct Caches {}
