//! Reads JSON text once, front to back: typed values where rules look inside, untouched text for all the rest.
//!
//! A commit to a table of 10,000 snapshots must not build a value for each of them, and nothing a client stored may
//! change by passing through here. So a [`Reader`] hands out the exact text of any value while the same pass picks the
//! few numbers that are needed from it, which serde cannot do. The text is checked against RFC 8259 on the way and
//! nests no deeper than [`DEPTH_MAX`]. Writing is in [`mod@write`].

mod read;
pub mod write;

pub use read::{Members, Reader};

/// Levels of objects and arrays a text may nest. Readers stop at 128, and our text is wrapped before it reaches them.
pub const DEPTH_MAX: usize = 100;

/// Fields of an object that this version does not know, in the order they came, as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras(Vec<(Box<str>, Box<str>)>);

impl Extras {
    /// Keeps `text`, a valid JSON value, under `key`.
    pub fn keep(&mut self, key: &str, text: &str) {
        self.0.push((key.into(), text.into()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, text)| (&**key, &**text))
    }
}
