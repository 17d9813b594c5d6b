//! Tags of buckets: read from their document, bounded, written back. Pure.

use super::{
    config::ConfigError,
    error::Result,
    xml::{self, Element, Writer},
};

/// Tags of one bucket.
const TAGS_MAX: usize = 50;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;
/// Of tags that only S3 itself sets.
const RESERVED_PREFIX: &str = "aws:";

/// Keys and values, in the order sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

impl Tags {
    /// Reads a `Tagging` document.
    ///
    /// # Errors
    /// `Error::MalformedXml`, `ConfigError::InvalidTag`, `ConfigError::TooManyTags`.
    pub fn parse(document: &[u8]) -> Result<Tags> {
        let tagging = xml::parse(document, "Tagging")?;
        Tags::read(tagging.child("TagSet").ok_or(super::error::Error::MalformedXml)?)
    }

    /// Reads the `Tag` elements under one element.
    ///
    /// # Errors
    /// As [`Tags::parse`].
    pub fn read(set: &Element) -> Result<Tags> {
        let mut tags: Vec<(String, String)> = Vec::new();
        for tag in set.children_named("Tag") {
            let key = tag.child_text("Key").ok_or(super::error::Error::MalformedXml)?;
            let value = tag.child_text("Value").ok_or(super::error::Error::MalformedXml)?;
            check(key, value)?;
            if tags.iter().any(|(known, _)| known == key) {
                return Err(ConfigError::InvalidTag("Cannot provide multiple Tags with the same key").into());
            }
            if tags.len() == TAGS_MAX {
                return Err(ConfigError::TooManyTags.into());
            }
            tags.push((key.to_owned(), value.to_owned()));
        }
        Ok(Tags(tags))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The document these tags are read from again.
    pub fn document(&self) -> String {
        xml::document("Tagging", Some(xml::NAMESPACE), |out| {
            out.element("TagSet", |out| self.0.iter().for_each(|(key, value)| write(out, key, value)));
        })
    }
}

fn write(out: &mut Writer, key: &str, value: &str) {
    out.element("Tag", |out| {
        out.text("Key", key);
        out.text("Value", value);
    });
}

fn check(key: &str, value: &str) -> Result<()> {
    let is_known = |text: &str| {
        text.chars()
            .all(|character| character.is_alphanumeric() || character.is_whitespace() || "_.:/=+-@".contains(character))
    };
    if key.starts_with(RESERVED_PREFIX) {
        return Err(ConfigError::InvalidTag("System tags cannot be added/updated by requester").into());
    }
    if !(1..=KEY_CHARS_MAX).contains(&key.chars().count()) || !is_known(key) {
        return Err(ConfigError::InvalidTag("The TagKey you have provided is invalid").into());
    }
    if value.chars().count() > VALUE_CHARS_MAX || !is_known(value) {
        return Err(ConfigError::InvalidTag("The TagValue you have provided is invalid").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tags: &[(&str, &str)]) -> Result<Tags> {
        let document = xml::document("Tagging", None, |out| {
            out.element("TagSet", |out| tags.iter().for_each(|(key, value)| write(out, key, value)));
        });
        Tags::parse(document.as_bytes())
    }

    #[test]
    fn tags_read_back_and_are_bounded() {
        let tags = parse(&[("team", "a b"), ("ü:/=+-@", "")]).expect("the tags are valid");
        assert_eq!(Tags::parse(tags.document().as_bytes()).expect("our own document"), tags);
        let (long_key, long_value) = ("k".repeat(KEY_CHARS_MAX + 1), "v".repeat(VALUE_CHARS_MAX + 1));
        for (bad, message) in [
            (&[("", "v")][..], "The TagKey you have provided is invalid"),
            (&[("a*b", "v")], "The TagKey you have provided is invalid"),
            (&[(&long_key, "v")], "The TagKey you have provided is invalid"),
            (&[("k", "a,b")], "The TagValue you have provided is invalid"),
            (&[("k", &long_value)], "The TagValue you have provided is invalid"),
            (&[("k", "1"), ("k", "2")], "Cannot provide multiple Tags with the same key"),
            (&[("aws:k", "1")], "System tags cannot be added/updated by requester"),
        ] {
            assert_eq!(parse(bad).expect_err("a bad tag").describe().message, message);
        }
        let keys: Vec<String> = (0..=TAGS_MAX).map(|number| format!("k{number}")).collect();
        let many: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "")).collect();
        assert!(parse(&many[1..]).is_ok());
        assert_eq!(parse(&many).expect_err("too many").describe().code, "BadRequest");
    }
}
