//! The reader: a cursor over JSON text.

use super::DEPTH_MAX;
use crate::iceberg::{Error, Result};
use std::borrow::Cow;

/// A cursor over JSON text. Each method that reads consumes exactly one value.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Reader { text, at: 0, depth: 0 }
    }

    /// Reads the one value that `bytes` hold.
    ///
    /// # Errors
    /// `Error::Invalid` when the bytes are not UTF-8, not JSON, hold more than one value, or `read` fails.
    pub fn whole<T>(bytes: &'a [u8], read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::Invalid("malformed JSON: not UTF-8".to_owned()))?;
        Reader::only(text, read)
    }

    /// Reads the one value that `text` holds.
    ///
    /// # Errors
    /// As [`Reader::whole`].
    pub fn only<T>(text: &'a str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut reader = Reader::new(text);
        let value = read(&mut reader)?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.malformed("text after the end")),
        }
    }

    /// Reads an object: `each` is called with every key and must read that key's value.
    ///
    /// # Errors
    /// `Error::Invalid` when there is no object, or it is malformed or nests too deep; what `each` returns.
    pub fn members(&mut self, mut each: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.open(b'{', "an object")?;
        if !self.take(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.malformed("expected a key"));
                }
                let key = self.quoted()?;
                if !self.take(b':') {
                    return Err(self.malformed("expected ':'"));
                }
                each(self, &key)?;
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.malformed("expected ',' or '}'"));
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads an array: `each` is called at every element and must read it.
    ///
    /// # Errors
    /// `Error::Invalid` when there is no array, or it is malformed or nests too deep; what `each` returns.
    pub fn elements(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.open(b'[', "an array")?;
        if !self.take(b']') {
            loop {
                each(self)?;
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.malformed("expected ',' or ']'"));
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads any value and returns its text.
    ///
    /// # Errors
    /// `Error::Invalid` when the value is malformed or nests too deep.
    pub fn skip(&mut self) -> Result<&'a str> {
        let start = self.start();
        match self.peek() {
            Some(b'{') => self.members(|reader, _| reader.skip().map(drop))?,
            Some(b'[') => self.elements(|reader| reader.skip().map(drop))?,
            Some(b'"') => self.scan_string().map(drop)?,
            Some(b'-' | b'0'..=b'9') => self.scan_number().map(drop)?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.malformed("expected a value")),
        }
        Ok(self.since(start))
    }

    /// Where the next value starts, for [`Reader::since`].
    pub fn start(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The text from `start` to here.
    pub fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// `None` for `null`, else what `read` reads.
    ///
    /// # Errors
    /// `Error::Invalid` when the value is malformed; what `read` returns.
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            return Ok(None);
        }
        read(self).map(Some)
    }

    /// Whether the next value is an object.
    pub fn is_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Whether the next value is a string.
    pub fn is_string(&mut self) -> bool {
        self.peek() == Some(b'"')
    }

    /// Reads a string. `key` names the field in errors, here and below.
    ///
    /// # Errors
    /// `Error::Invalid` when the value is of another kind or malformed, here and below.
    pub fn string(&mut self, key: &str) -> Result<Cow<'a, str>> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            _ => self.wrong_kind(key, "a string"),
        }
    }

    /// As [`Reader::string`], owned.
    pub fn text(&mut self, key: &str) -> Result<String> {
        Ok(self.string(key)?.into_owned())
    }

    pub fn uuid(&mut self, key: &str) -> Result<uuid::Uuid> {
        let text = self.string(key)?;
        text.parse().map_err(|_| Error::Invalid(format!("{key} is not a UUID: {text}")))
    }

    pub fn boolean(&mut self, key: &str) -> Result<bool> {
        match self.peek() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => self.wrong_kind(key, "true or false"),
        }
    }

    pub fn int64(&mut self, key: &str) -> Result<i64> {
        self.integer(key, "a 64-bit integer")
    }

    pub fn int32(&mut self, key: &str) -> Result<i32> {
        self.integer(key, "a 32-bit integer")
    }

    pub fn int64_list(&mut self, key: &str) -> Result<Vec<i64>> {
        self.list(|reader| reader.int64(key))
    }

    pub fn int32_list(&mut self, key: &str) -> Result<Vec<i32>> {
        self.list(|reader| reader.int32(key))
    }

    pub fn string_list(&mut self, key: &str) -> Result<Vec<String>> {
        self.list(|reader| Ok(reader.string(key)?.into_owned()))
    }

    /// Reads an object whose values are all strings. Keys may repeat: the later one is meant.
    pub fn string_map(&mut self, key: &str) -> Result<Vec<(String, String)>> {
        let mut map = Vec::new();
        self.members(|reader, name| {
            if !reader.is_string() {
                return Err(Error::Invalid(format!("{key}: the value of {name} must be a string")));
            }
            map.push((name.to_owned(), reader.quoted()?.into_owned()));
            Ok(())
        })?;
        Ok(map)
    }

    /// Reads an array whose elements `each` reads.
    pub fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::new();
        self.elements(|reader| {
            list.push(each(reader)?);
            Ok(())
        })?;
        Ok(list)
    }

    fn integer<T: std::str::FromStr>(&mut self, key: &str, kind: &str) -> Result<T> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.wrong_kind(key, kind);
        }
        let digits = self.scan_number()?;
        digits.parse().map_err(|_| Error::Invalid(format!("{key} must be {kind}")))
    }

    /// Malformed text is reported as that, before its kind.
    fn wrong_kind<T>(&mut self, key: &str, kind: &str) -> Result<T> {
        self.skip()?;
        Err(Error::Invalid(format!("{key} must be {kind}")))
    }

    /// What kind of value comes next, for messages.
    fn kind(&mut self) -> &'static str {
        match self.peek() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    fn malformed(&self, problem: &str) -> Error {
        Error::Invalid(format!("malformed JSON at byte {}: {problem}", self.at))
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The first byte that is not white space, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn open(&mut self, bracket: u8, kind: &str) -> Result<()> {
        if !self.take(bracket) {
            let found = self.kind();
            self.skip()?;
            return Err(Error::Invalid(format!("malformed JSON: expected {kind}, found {found}")));
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::Invalid(format!("JSON nests deeper than {DEPTH_MAX} levels")));
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err(self.malformed("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn quoted(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        let plain = self.scan_string()?;
        let quoted = self.since(start);
        if plain {
            return Ok(Cow::Borrowed(quoted.get(1..quoted.len() - 1).unwrap_or_default()));
        }
        serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| self.malformed("bad string"))
    }

    /// Passes a string, at its opening quote. True when it holds no escape.
    fn scan_string(&mut self) -> Result<bool> {
        self.at += 1;
        let mut plain = true;
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    self.scan_escape()?;
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                Some(_) => return Err(self.malformed("control character in a string")),
                None => return Err(self.malformed("unterminated string")),
            }
        }
        self.at += 1;
        Ok(plain)
    }

    fn scan_escape(&mut self) -> Result<()> {
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let unit = self.scan_code_unit()?;
                // Half a surrogate pair is no character: strict readers would refuse the whole file for it.
                let is_pair = match unit {
                    0xD800..=0xDBFF => {
                        self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u") && {
                            self.at += 1;
                            (0xDC00..=0xDFFF).contains(&self.scan_code_unit()?)
                        }
                    }
                    0xDC00..=0xDFFF => false,
                    _ => true,
                };
                if !is_pair {
                    return Err(self.malformed("half a surrogate pair in a string"));
                }
            }
            _ => return Err(self.malformed("bad escape in a string")),
        }
        Ok(())
    }

    /// Passes `uXXXX`.
    fn scan_code_unit(&mut self) -> Result<u16> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 5);
        let unit = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.malformed("bad escape in a string"))?;
        self.at += 5;
        Ok(unit)
    }

    fn scan_number(&mut self) -> Result<&'a str> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.scan_digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.scan_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.scan_digits()?;
        }
        Ok(self.since(start))
    }

    fn scan_digits(&mut self) -> Result<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed("expected a digit")) } else { Ok(()) }
    }
}

/// The members of an object, collected, for objects whose meaning depends on one of them (`type`, `action`,
/// `format-version`).
#[derive(Debug, Default)]
pub struct Members<'a>(Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// Collects an object's members.
    ///
    /// # Errors
    /// `Error::Invalid` when there is no object or it is malformed.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut members = Members::default();
        reader.members(|reader, key| {
            members.add(key, reader.skip()?);
            Ok(())
        })?;
        Ok(members)
    }

    pub fn add(&mut self, key: &str, text: &'a str) {
        self.0.push((key.to_owned(), text));
    }

    /// Takes a member out and reads it; `None` when it is missing or null. Of repeated keys the last counts.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn optional<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Reader<'a>, &str) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.0.retain(|(name, text)| {
            let hit = name == key;
            if hit {
                found = Some(*text);
            }
            !hit
        });
        match found {
            None => Ok(None),
            Some(text) => Reader::only(text, |reader| reader.optional(|reader| read(reader, key))),
        }
    }

    /// Takes a member out and reads it.
    ///
    /// # Errors
    /// `Error::Invalid` when it is missing or null; what `read` returns.
    pub fn required<T>(&mut self, key: &str, read: impl FnOnce(&mut Reader<'a>, &str) -> Result<T>) -> Result<T> {
        self.optional(key, read)?.ok_or_else(|| Error::Invalid(format!("missing field: {key}")))
    }

    /// Drops members, whatever they hold.
    pub fn remove(&mut self, keys: &[&str]) {
        self.0.retain(|(name, _)| !keys.contains(&name.as_str()));
    }

    /// What is left.
    pub fn extras(self) -> super::Extras {
        let mut extras = super::Extras::default();
        for (key, text) in &self.0 {
            extras.keep(key, text);
        }
        extras
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accepts(text: &str) -> bool {
        Reader::only(text, |reader| reader.skip()).is_ok()
    }

    #[test]
    fn text_of_a_value_is_handed_out_untouched() {
        let text = r#"{"a" : [1.50, 1e400, 123456789012345678901234567890], "b":"\u00e9\/"}"#;
        let mut seen = Vec::new();
        Reader::only(text, |reader| {
            reader.members(|reader, key| {
                seen.push((key.to_owned(), reader.skip()?.to_owned()));
                Ok(())
            })
        })
        .unwrap();
        let expected = [("a", "[1.50, 1e400, 123456789012345678901234567890]"), ("b", r#""\u00e9\/""#)];
        assert_eq!(seen, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn malformed_text_is_refused() {
        let cases = [
            "",
            " ",
            "{",
            "[",
            "\"",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "{a:1}",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            ".5",
            "tru",
            "nul",
            "NaN",
            "[]]",
            "{} {}",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\n\"",
            "\"\\",
            "\"\\ud800\\",
            "[,1]",
            "{,}",
            "{1:2}",
            "'a'",
            "\u{feff}1",
            "[1}",
            "{\"a\":1]",
        ];
        for case in cases {
            assert!(!accepts(case), "accepted {case:?}");
        }
    }

    #[test]
    fn nesting_has_a_bound() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepts(&nested(DEPTH_MAX)));
        let error = Reader::only(&nested(DEPTH_MAX + 1), |reader| reader.skip().map(drop)).unwrap_err();
        assert_eq!(error.to_string(), "JSON nests deeper than 100 levels");
        assert!(!accepts(&"[".repeat(1_000_000)));
        assert!(!accepts(&"{\"a\":".repeat(1_000_000)));
    }

    #[test]
    fn integers_keep_to_their_width() {
        let int32 = |text| Reader::only(text, |reader| reader.int32("n"));
        assert_eq!(int32("-2147483648"), Ok(i32::MIN));
        for case in ["2147483648", "1.0", "1e2", "\"1\"", "null", "true", "[]"] {
            assert_eq!(int32(case), Err(Error::Invalid("n must be a 32-bit integer".to_owned())), "{case}");
        }
    }

    #[test]
    fn of_repeated_keys_the_last_counts() {
        let mut members = Reader::only(r#"{"a":1,"b":2,"a":3}"#, Members::read).unwrap();
        assert_eq!(members.required("a", Reader::int32), Ok(3));
        assert_eq!(members.optional("a", Reader::int32), Ok(None));
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_text_is_accepted_whole(value in json()) {
            let compact = value.to_string();
            prop_assert_eq!(Reader::only(&compact, |reader| reader.skip()), Ok(compact.as_str()));
            let spaced = format!(" {value:#} \n");
            prop_assert!(accepts(&spaced));
        }

        #[test]
        fn damaged_text_is_judged_as_serde_json_does(value in json(), at in any::<prop::sample::Index>(), byte in any::<char>()) {
            let mut text = value.to_string();
            let mut at = at.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert(at, byte);
            // serde_json skips over numbers it would refuse to build, as we do, when the value is ignored.
            let judged = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(accepts(&text), judged, "{}", text);
        }

        #[test]
        fn strings_decode_as_serde_json_does(value in any::<String>()) {
            let text = serde_json::Value::from(value.as_str()).to_string();
            let read = Reader::only(&text, |reader| Ok(reader.string("s")?.into_owned()));
            prop_assert_eq!(read, Ok(value));
        }
    }
}
