//! Writes JSON without blanks, in the order the calls are made.

use super::Extras;
use std::io::Write;

/// An object being written. It is closed by [`Object::end`].
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    /// Writes a key; the caller writes its value to what is returned.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// `text` is a valid JSON value.
    pub fn raw(&mut self, key: &str, text: &str) {
        self.key(key).extend_from_slice(text.as_bytes());
    }

    pub fn string(&mut self, key: &str, value: &str) {
        string(self.key(key), value);
    }

    pub fn int(&mut self, key: &str, value: impl Into<i64>) {
        int(self.key(key), value.into());
    }

    pub fn boolean(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    pub fn array<T>(&mut self, key: &str, items: impl IntoIterator<Item = T>, each: impl FnMut(&mut Vec<u8>, T)) {
        array(self.key(key), items, each);
    }

    pub fn extras(&mut self, extras: &Extras) {
        for (key, text) in extras.iter() {
            self.raw(key, text);
        }
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}

pub fn array<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        each(out, item);
    }
    out.push(b']');
}

pub fn string(out: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(out, value).expect("a string always has a JSON form, and memory takes every write");
}

pub fn int(out: &mut Vec<u8>, value: i64) {
    write!(out, "{value}").expect("memory takes every write");
}

/// Text from bytes this module wrote.
pub fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("only whole strings are written")
}
