//! Leased background work: idempotent, safe to run twice, recorded in the database.
