//! Table locations.

use super::{Result, ensure};

/// A location as it is stored: without trailing slashes, so that `location + "/metadata"` has no empty segment. Slashes
/// inside stay, and so does the `//` after a scheme.
///
/// # Errors
/// `Error::Invalid` when nothing is left.
pub(super) fn stripped(location: &str) -> Result<String> {
    let mut location = location;
    while let Some(rest) = location.strip_suffix('/').filter(|_| !location.ends_with("://")) {
        location = rest;
    }
    ensure(!location.is_empty(), || "a table location must not be empty".to_owned())?;
    Ok(location.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trailing_slashes_go() {
        let cases = [
            ("s3://b/w/t", "s3://b/w/t"),
            ("s3://b/w/t/", "s3://b/w/t"),
            ("s3://b/w/t//", "s3://b/w/t"),
            ("s3://b//w//t", "s3://b//w//t"),
            ("s3://b/", "s3://b"),
            ("s3://", "s3://"),
            ("file:///", "file://"),
        ];
        for (given, stored) in cases {
            assert_eq!(stripped(given).as_deref(), Ok(stored));
        }
        assert!(stripped("").is_err() && stripped("//").is_err());
    }
}
