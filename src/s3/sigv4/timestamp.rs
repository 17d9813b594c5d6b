//! The time of a signature, to the second.

/// A moment as signatures spell it: `20130524T000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    text: [u8; 16],
    epoch_s: i64,
}

impl Timestamp {
    /// Seconds are rounded down; years outside 1 to 9999 are clamped to the epoch.
    pub fn from_ms(_ms: i64) -> Timestamp {
        todo!()
    }
    /// `20130524T000000Z`, nothing else.
    pub fn parse(_text: &str) -> Option<Timestamp> {
        todo!()
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
    /// `20130524`.
    pub fn date(&self) -> &str {
        self.as_str().get(..8).unwrap_or_default()
    }
    pub fn epoch_ms(&self) -> i64 {
        self.epoch_s.saturating_mul(1000)
    }
}
