//! The time of a signature, to the second.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// A moment as signatures spell it: `20130524T000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    text: [u8; 16],
    epoch_s: i64,
}

impl Timestamp {
    /// Seconds are rounded down. Years outside 1 to 9999 become the epoch.
    pub fn from_ms(ms: i64) -> Timestamp {
        let at = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let at = if (1..=9999).contains(&at.year()) { at } else { OffsetDateTime::UNIX_EPOCH };
        let text = format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        );
        let mut bytes = *b"19700101T000000Z";
        // Every field above has a fixed width within the years let through.
        if text.len() == bytes.len() {
            bytes.copy_from_slice(text.as_bytes());
        }
        Timestamp { text: bytes, epoch_s: at.unix_timestamp() }
    }

    /// `20130524T000000Z`, nothing else.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bytes: [u8; 16] = text.as_bytes().try_into().ok()?;
        if bytes[8] != b'T' || bytes[15] != b'Z' {
            return None;
        }
        let time = Time::from_hms(two(&bytes, 9)?, two(&bytes, 11)?, two(&bytes, 13)?).ok()?;
        let epoch_s = PrimitiveDateTime::new(date_of(&bytes)?, time).assume_utc().unix_timestamp();
        Some(Timestamp { text: bytes, epoch_s })
    }

    /// An HTTP date (RFC 9110 section 5.6.7), as in a `Date` header.
    pub(super) fn parse_http(text: &str) -> Option<Timestamp> {
        let since = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_ms(i64::try_from(since.as_millis()).ok()?))
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

/// Whether this is a day of the calendar as `yyyyMMdd`.
pub(super) fn is_date(text: &str) -> bool {
    text.len() == 8 && date_of(text.as_bytes()).is_some()
}

/// `2013-05-24T00:00:00Z`, as error bodies spell times.
pub(super) fn iso8601(ms: i64) -> String {
    let at = Timestamp::from_ms(ms);
    let part = |range| at.as_str().get(range).unwrap_or_default();
    format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13), part(13..15))
}

fn date_of(bytes: &[u8]) -> Option<Date> {
    let year = i32::from(two(bytes, 0)?) * 100 + i32::from(two(bytes, 2)?);
    Date::from_calendar_date(year, Month::try_from(two(bytes, 4)?).ok()?, two(bytes, 6)?).ok()
}

/// Two decimal digits.
fn two(bytes: &[u8], at: usize) -> Option<u8> {
    let digits: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
    digits.iter().all(u8::is_ascii_digit).then(|| (digits[0] - b'0') * 10 + (digits[1] - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_back_as_written() {
        for ms in [0, 1_369_353_600_000, 1_709_164_800_999, -1, 253_402_300_799_000] {
            let at = Timestamp::from_ms(ms);
            assert_eq!(Timestamp::parse(at.as_str()), Some(at), "{ms}");
            assert_eq!(at.epoch_ms(), ms.div_euclid(1000) * 1000);
        }
        assert_eq!(Timestamp::from_ms(1_369_353_600_000).as_str(), "20130524T000000Z");
        assert_eq!(iso8601(1_369_353_600_000), "2013-05-24T00:00:00Z");
        assert_eq!(Timestamp::from_ms(i64::MAX).as_str(), "19700101T000000Z");
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in ["", "03032006", "20130524T000000", "20130524T000000z", "20130230T000000Z", "20131301T000000Z"]
            .into_iter()
            .chain(["20130524T240000Z", "20130524T006000Z", "+0130524T000000Z", "2013 524T000000Z", "é0130524T00000Z"])
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        assert!(is_date("20240229") && !is_date("20230229") && !is_date("3223423234") && !is_date("32234Z34"));
    }

    #[test]
    fn an_http_date_is_the_same_moment() {
        assert_eq!(Timestamp::parse_http("Fri, 24 May 2013 00:00:00 GMT"), Timestamp::parse("20130524T000000Z"));
        assert_eq!(Timestamp::parse_http("yesterday"), None);
    }
}
