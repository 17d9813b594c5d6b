//! XML as S3 speaks it: a writer for answers and a bounded reader for request documents.
//!
//! Written text is escaped as AWS does it: control characters survive as character references. The reader takes any
//! namespace, refuses document types, and bounds depth and number of elements; bounding the bytes is its caller's part.

use super::error::Error;
use quick_xml::{Reader, events::Event};
use std::fmt::Write;

/// Namespace of every S3 document but errors.
pub const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// Namespace of the attribute that says of which type an element is.
const TYPE_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Elements inside one another in a request document.
const DEPTH_MAX: usize = 16;
/// Elements of a request document: 10,000 parts with eight fields each fit.
const ELEMENTS_MAX: usize = 100_000;

/// An XML document being written.
pub struct Writer(String);

/// Writes a document with root element `root`, filled by `content`.
pub fn document(root: &str, namespace: Option<&str>, content: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer(String::with_capacity(512));
    out.0.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    out.0.push_str(root);
    if let Some(namespace) = namespace {
        out.0.push_str(" xmlns=\"");
        escape_into(&mut out.0, namespace);
        out.0.push('"');
    }
    out.0.push('>');
    content(&mut out);
    out.close(root);
    out.0
}

/// Writes a document whose root element holds text.
pub fn document_of_text(root: &str, namespace: Option<&str>, text: &str) -> String {
    document(root, namespace, |out| escape_into(&mut out.0, text))
}

impl Writer {
    /// An element that holds text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        escape_into(&mut self.0, text);
        self.close(name);
    }

    /// An element that holds a number or a flag.
    pub fn value(&mut self, name: &str, value: impl std::fmt::Display) {
        self.text(name, &value.to_string());
    }

    /// An element that holds text, left out where there is none.
    pub fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// An element that holds elements.
    pub fn element(&mut self, name: &str, content: impl FnOnce(&mut Writer)) {
        self.open(name);
        content(self);
        self.close(name);
    }

    /// An element that holds elements and says of which type it is.
    pub fn element_of_type(&mut self, name: &str, kind: &str, content: impl FnOnce(&mut Writer)) {
        self.open(&format!("{name} xmlns:xsi=\"{TYPE_NAMESPACE}\" xsi:type=\"{kind}\""));
        content(self);
        self.close(name);
    }

    fn open(&mut self, name: &str) {
        self.0.push('<');
        self.0.push_str(name);
        self.0.push('>');
    }

    fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }
}

fn escape_into(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no form for most of these; S3 writes them so all the same, and its clients read them.
            control if control < ' ' || control == '\u{7f}' || control == '\u{fffe}' || control == '\u{ffff}' => {
                let _ = write!(out, "&#x{:x};", u32::from(control));
            }
            other => out.push(other),
        }
    }
}

/// An element of a request document; its name without prefix.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the first child of that name.
    pub fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }

    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Reads a document whose root element is `root`.
///
/// # Errors
/// `Error::MalformedXml` when it is not well-formed, has another root or a document type, or passes a bound.
pub fn parse(bytes: &[u8], root: &str) -> Result<Element, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::MalformedXml)?;
    let document = read(text.trim_start_matches('\u{feff}')).ok_or(Error::MalformedXml)?;
    if document.name == root { Ok(document) } else { Err(Error::MalformedXml) }
}

fn read(text: &str) -> Option<Element> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = Vec::new();
    let mut document = None;
    let mut elements = 0usize;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                elements += 1;
                if document.is_some() || open.len() >= DEPTH_MAX || elements > ELEMENTS_MAX {
                    return None;
                }
                let name = std::str::from_utf8(start.local_name().as_ref()).ok()?.to_owned();
                open.push(Element { name, ..Element::default() });
            }
            Event::End(_) => {
                let closed = open.pop()?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => document = Some(closed),
                }
            }
            Event::Text(piece) => match open.last_mut() {
                Some(element) => element.text.push_str(&piece.xml10_content().ok()?),
                None if piece.iter().all(u8::is_ascii_whitespace) => {}
                None => return None,
            },
            Event::CData(piece) => open.last_mut()?.text.push_str(&piece.decode().ok()?),
            Event::GeneralRef(reference) => {
                let element = open.last_mut()?;
                match reference.resolve_char_ref().ok()? {
                    Some(character) => element.text.push(character),
                    None => {
                        let name = reference.decode().ok()?;
                        element.text.push_str(quick_xml::escape::resolve_predefined_entity(&name)?);
                    }
                }
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(_) | Event::Empty(_) => return None,
            Event::Eof => return if open.is_empty() { document } else { None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_markup_are_escaped_and_nothing_else_is() {
        let written = document("R", None, |out| out.text("K", "a&<b>\"'\u{2}\r\n\tü\u{7f}"));
        assert_eq!(
            written,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <R><K>a&amp;&lt;b&gt;&quot;'&#x2;&#xd;&#xa;&#x9;ü&#x7f;</K></R>"
        );
    }

    #[test]
    fn entities_references_cdata_namespaces_and_line_ends_are_read() {
        let parsed = parse(
            b"\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<s3:Delete xmlns:s3=\"x\">\r\n<s3:Object><Key>a&amp;b&#10;&#x2;\
              <![CDATA[<c>]]></Key></s3:Object><Quiet/></s3:Delete>\r\n",
            "Delete",
        )
        .expect("the document is well-formed");
        let key = parsed.child("Object").and_then(|object| object.child_text("Key"));
        assert_eq!(key, Some("a&b\n\u{2}<c>"));
        assert_eq!(parsed.child_text("Quiet"), Some(""));
    }

    #[test]
    fn bad_documents_are_malformed() {
        let deep = format!("{}{}", "<a>".repeat(DEPTH_MAX + 1), "</a>".repeat(DEPTH_MAX + 1));
        for bad in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><a/>",
            "<b/>",
            "<a>&unknown;</a>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
            "<a/>tail",
            &deep,
        ] {
            assert!(matches!(parse(bad.as_bytes(), "a"), Err(Error::MalformedXml)), "{bad}");
        }
        assert!(matches!(parse(b"<a>\xff</a>", "a"), Err(Error::MalformedXml)));
    }
}
