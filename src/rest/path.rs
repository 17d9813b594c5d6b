//! Names in URLs: taken from the raw path, split before they are decoded.
//!
//! A path is split on `/`, a namespace on its separator, and each piece is then percent-decoded once; so `%2F` stays in
//! a name, and `a%1Fb` (two levels) differs from `a.b` (one). A raw `+` is a space: Java encodes path segments like
//! form values.

use crate::{
    catalog::{Error, Result},
    iceberg::ident::{Namespace, TableIdent},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The encoded separator of namespace levels, which clients use unless told otherwise.
const SEPARATOR: &str = "%1F";

/// One piece of a path, query or form, decoded.
///
/// # Errors
/// `Error::Invalid` when it is not UTF-8.
pub fn decode(raw: &str) -> Result<String> {
    let spaced = raw.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Error::Invalid(format!("not UTF-8 when percent-decoded: {raw}"))),
    }
}

/// # Errors
/// `Error::Invalid` for names that no namespace can have.
pub fn namespace(raw: &str) -> Result<Namespace> {
    let mut levels = Vec::new();
    let mut rest = raw;
    while let Some((level, after)) = split_level(rest) {
        levels.push(decode(level)?);
        rest = after;
    }
    levels.push(decode(rest)?);
    Ok(Namespace::new(levels)?)
}

/// Splits at the first separator: `%1F`, `%1f`, or the bare control character in a query string.
fn split_level(raw: &str) -> Option<(&str, &str)> {
    let encoded = raw.char_indices().find_map(|(at, _)| {
        let rest = &raw[at..];
        if rest.starts_with(SEPARATOR) || rest.starts_with("%1f") {
            Some((at, at + SEPARATOR.len()))
        } else if rest.starts_with('\u{1f}') {
            Some((at, at + 1))
        } else {
            None
        }
    });
    encoded.map(|(end, next)| (&raw[..end], &raw[next..]))
}

/// # Errors
/// `Error::Invalid` for names that no table can have.
pub fn table(raw_namespace: &str, raw_name: &str) -> Result<TableIdent> {
    Ok(TableIdent::new(namespace(raw_namespace)?, decode(raw_name)?)?)
}

/// A name as one path segment.
pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, RESERVED).to_string()
}

/// A warehouse's name as the prefix that clients paste into paths as it is. A name that is also a word of our routes
/// has its letters encoded, so that it is not taken for one.
pub fn encode_prefix(warehouse: &str) -> String {
    if super::route::is_reserved(warehouse) {
        return warehouse.bytes().map(|byte| format!("%{byte:02X}")).collect();
    }
    encode(warehouse)
}

/// A namespace as one path segment.
pub fn encode_namespace(namespace: &Namespace) -> String {
    let levels: Vec<String> = namespace.levels().iter().map(|level| encode(level)).collect();
    levels.join(SEPARATOR)
}

/// The raw value of the first parameter called `name`; a parameter without `=` is empty.
pub fn raw_parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key).ok()? == name).then_some(value)
    })
}

/// The decoded value of the first parameter called `name`.
///
/// # Errors
/// `Error::Invalid` when it is not UTF-8.
pub fn parameter(query: &str, name: &str) -> Result<Option<String>> {
    raw_parameter(query, name).map(decode).transpose()
}

/// The views through which something is asked for, outermost first (`referenced-by` of the REST specification): commas
/// between them, and in each the last separator before the view's name. Clients that encode each view and then the
/// parameter as a whole are understood too.
///
/// # Errors
/// `Error::Invalid` when it does not name views.
pub fn referenced_by(query: &str) -> Result<Vec<TableIdent>> {
    let raw = raw_parameter(query, "referenced-by").unwrap_or_default();
    if raw.is_empty() {
        return Ok(Vec::new());
    }
    let once = decode(raw)?;
    let is_twice_encoded = once.to_ascii_uppercase().contains(SEPARATOR);
    let chain = if is_twice_encoded { &once } else { raw };
    chain.split(',').map(referencing_view).collect()
}

fn referencing_view(raw: &str) -> Result<TableIdent> {
    let mut rest = raw;
    let mut namespace_bytes = None;
    while let Some((_, after)) = split_level(rest) {
        rest = after;
        namespace_bytes = Some(raw.len() - after.len());
    }
    let levels = namespace_bytes.and_then(|end| raw.get(..end)).map(without_last_separator);
    let levels =
        levels.ok_or_else(|| Error::Invalid(format!("referenced-by holds a view without namespace: {raw}")))?;
    table(levels, rest)
}

fn without_last_separator(raw: &str) -> &str {
    raw.strip_suffix('\u{1f}').unwrap_or_else(|| raw.get(..raw.len() - SEPARATOR.len()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(raw: &str) -> Option<Vec<String>> {
        namespace(raw).ok().map(|namespace| namespace.levels().to_vec())
    }

    #[test]
    fn levels_are_split_before_they_are_decoded() {
        let expect = |raw, expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|&level| level.to_owned()).collect();
            assert_eq!(levels(raw), Some(expected), "{raw}");
        };
        expect("a", &["a"]);
        expect("a.b", &["a.b"]);
        expect("a%1Fb", &["a", "b"]);
        expect("a%1fb%1Fc", &["a", "b", "c"]);
        expect("a\u{1f}b", &["a", "b"]);
        expect("sp%20ace%2Fsla%2Bsh%25%C3%A9", &["sp ace/sla+sh%é"]);
        expect("a+b", &["a b"]);
        expect("a%251Fb", &["a%1Fb"]);
        expect("%F0%9F%98%80", &["😀"]);
    }

    #[test]
    fn impossible_names_are_refused() {
        for raw in ["", "a%1F", "%1Fa", "a%1F%1Fb", "%FF", "a%00", "a%0A"] {
            assert_eq!(levels(raw), None, "{raw}");
        }
        assert!(table("a", "").is_err());
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        for name in ["a", "sp ace/sla+sh%é", "a.b", "~x_-", "%1F", "😀"] {
            assert_eq!(decode(&encode(name)).unwrap(), name);
        }
        let namespace = Namespace::new(vec!["a b".into(), "c+d".into()]).unwrap();
        assert_eq!(encode_namespace(&namespace), "a%20b%1Fc%2Bd");
        assert_eq!(self::namespace(&encode_namespace(&namespace)).unwrap(), namespace);
    }

    #[test]
    fn a_prefix_is_never_taken_for_a_route() {
        assert_eq!(encode_prefix("team a/prod"), "team%20a%2Fprod");
        assert_eq!(encode_prefix("namespaces"), "%6E%61%6D%65%73%70%61%63%65%73");
        assert_eq!(decode(&encode_prefix("namespaces")).unwrap(), "namespaces");
    }

    #[test]
    fn referencing_views_are_taken_apart_at_commas_and_last_separators() {
        let names = |query: &str| -> Option<Vec<Vec<String>>> {
            let views = referenced_by(query).ok()?;
            let name = |view: TableIdent| [view.namespace.levels(), &[view.name]].concat();
            Some(views.into_iter().map(name).collect())
        };
        let expect = |query: &str, expected: &[&[&str]]| {
            let expected = expected.iter().map(|names| names.iter().map(|&name| name.to_owned()).collect()).collect();
            assert_eq!(names(query), Some(expected), "{query}");
        };
        expect("", &[]);
        expect("referenced-by=", &[]);
        expect("x=1&referenced-by=n%1Fv", &[&["n", "v"]]);
        expect("referenced-by=a%1Fb%1fv,c.d%1Fw%2Cx+y", &[&["a", "b", "v"], &["c.d", "w,x y"]]);
        expect("referenced-by=a\u{1f}v,b\u{1f}w", &[&["a", "v"], &["b", "w"]]);
        expect("referenced-by=a%251Fv%252Cw%2Cb%251fx", &[&["a", "v,w"], &["b", "x"]]);
        for query in ["v", "n%1F", "%1Fv", "n%1Fv,", ",n%1Fv", "n%1Fv,,n%1Fw", "n%1F%1Fv", "n%1F%FF", "n.v"] {
            assert_eq!(names(&format!("referenced-by={query}")), None, "{query}");
        }
    }

    #[test]
    fn parameters_are_found_by_name_and_decoded_once() {
        let query = "pageToken=&pageSize=2&parent=a%1Fb&x=1+2&flag";
        assert_eq!(parameter(query, "pageToken").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "pageSize").unwrap().as_deref(), Some("2"));
        assert_eq!(parameter(query, "x").unwrap().as_deref(), Some("1 2"));
        assert_eq!(parameter(query, "flag").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "page").unwrap(), None);
        assert_eq!(raw_parameter(query, "parent"), Some("a%1Fb"));
        assert!(parameter("x=%FF", "x").is_err());
    }
}
