//! The `Range` header on one object (RFC 9110 section 14), as S3 reads it. Pure.

use std::ops::Range;

/// What a `Range` header asks of an object of known size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// No range, or one that S3 ignores: malformed, of another unit, several at once.
    Whole,
    /// A non-empty part, clamped to the object.
    Part(Range<u64>),
    /// Nothing of the object lies in the range.
    Unsatisfiable,
}

/// Resolves `header` against an object of `size` bytes. A suffix of an empty object is the whole object, since readers
/// fetch the tail of a file before they know its size.
pub fn resolve(header: Option<&str>, size: u64) -> Span {
    let Some((first, last)) = header.and_then(bounds) else { return Span::Whole };
    match (first, last) {
        (Some(first), last) => {
            let last = last.unwrap_or(u64::MAX);
            if last < first {
                Span::Whole
            } else if first >= size {
                Span::Unsatisfiable
            } else {
                Span::Part(first..last.saturating_add(1).min(size))
            }
        }
        (None, Some(0)) => Span::Unsatisfiable,
        (None, Some(_)) if size == 0 => Span::Whole,
        (None, Some(suffix)) => Span::Part(size.saturating_sub(suffix)..size),
        (None, None) => Span::Whole,
    }
}

/// First and last byte of a single range of bytes; `None` when the header is not exactly that.
fn bounds(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    Some((number(first)?, number(last)?))
}

/// `Some(None)` for an absent number. One too large for any object counts as the largest.
fn number(digits: &str) -> Option<Option<u64>> {
    if digits.is_empty() {
        return Some(None);
    }
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(Some(digits.parse().unwrap_or(u64::MAX)))
}

/// The range of `x-amz-copy-source-range`, which must be `bytes=first-last`, both given and in order.
pub fn copy_source(header: &str) -> Option<Range<u64>> {
    match bounds(header)? {
        (Some(first), Some(last)) if first <= last && last < u64::MAX => Some(first..last + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_resolve_as_s3_resolves_them() {
        use Span::{Part, Unsatisfiable, Whole};
        for (header, size, span) in [
            ("bytes=0-9", 100, Part(0..10)),
            ("bytes=00-01", 100, Part(0..2)),
            ("bytes=50-", 100, Part(50..100)),
            ("bytes=0-999999", 100, Part(0..100)),
            ("bytes=99-99", 100, Part(99..100)),
            ("bytes=-1", 100, Part(99..100)),
            ("bytes=-101", 100, Part(0..100)),
            ("bytes=0-18446744073709551615", 100, Part(0..100)),
            ("bytes=5-99999999999999999999999", 100, Part(5..100)),
            ("bytes=100-", 100, Unsatisfiable),
            ("bytes=100-110", 100, Unsatisfiable),
            ("bytes=99999999999999999999999-", 100, Unsatisfiable),
            ("bytes=-0", 100, Unsatisfiable),
            ("bytes=10-5", 100, Whole),
            ("bytes=", 100, Whole),
            ("bytes=-", 100, Whole),
            ("bytes=,", 100, Whole),
            ("bytes= -1", 100, Whole),
            ("bytes=--1", 100, Whole),
            ("bytes=0--1", 100, Whole),
            ("bytes=+1-2", 100, Whole),
            ("bytes=0-0,1-2", 100, Whole),
            ("foo=0-1", 100, Whole),
            ("bytes=-1", 0, Whole),
            ("bytes=-524288", 0, Whole),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
        ] {
            assert_eq!(resolve(Some(header), size), span, "{header} of {size}");
        }
        assert_eq!(resolve(None, 100), Whole);
    }

    #[test]
    fn copy_ranges_need_both_ends_in_order() {
        assert_eq!(copy_source("bytes=0-9"), Some(0..10));
        for bad in [
            "0-9",
            "bytes=5-2",
            "bytes=garbage",
            "bytes=0-",
            "bytes=-5",
            "bytes=0-2,4-5",
            "",
            "bytes=0-18446744073709551615",
        ] {
            assert_eq!(copy_source(bad), None, "{bad}");
        }
    }
}
