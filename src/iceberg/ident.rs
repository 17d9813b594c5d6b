//! Names of namespaces and tables. A value of these types is always valid.
//!
//! Names are kept and compared byte for byte: nothing is folded, trimmed or normalised. How names travel in paths and
//! query strings is the REST layer's. Names that no path can carry are refused: URL libraries take the segments `.` and
//! `..` away before a request is sent, also where they are percent-encoded (RFC 3986, section 5.2.4).

use super::{Error, Result, ensure, json::Reader};

/// Levels of a namespace, outermost first: 1 to [`LEVELS_MAX`] levels of 1 to [`NAME_CHARS_MAX`] characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Vec<String>);

pub const LEVELS_MAX: usize = 32;
pub const NAME_CHARS_MAX: usize = 255;

impl Namespace {
    /// # Errors
    /// `Error::Invalid` when there is no level, too many, or a name is empty, `.`, `..`, too long or has control
    /// characters.
    pub fn new(levels: Vec<String>) -> Result<Self> {
        ensure(!levels.is_empty(), || "a namespace needs at least one level".to_owned())?;
        ensure(levels.len() <= LEVELS_MAX, || format!("a namespace has at most {LEVELS_MAX} levels"))?;
        levels.iter().try_for_each(|level| check_name("namespace", level))?;
        Ok(Namespace(levels))
    }

    pub fn levels(&self) -> &[String] {
        &self.0
    }

    /// The namespace one level up; `None` at the top.
    pub fn parent(&self) -> Option<Namespace> {
        match self.0.split_last() {
            Some((_, levels)) if !levels.is_empty() => Some(Namespace(levels.to_vec())),
            _ => None,
        }
    }
}

/// Levels joined with dots, as error messages and logs show a namespace.
impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableIdent {
    pub namespace: Namespace,
    pub name: String,
}

impl TableIdent {
    /// # Errors
    /// `Error::Invalid` when the name is empty, `.`, `..`, longer than [`NAME_CHARS_MAX`] or has control characters.
    pub fn new(namespace: Namespace, name: String) -> Result<Self> {
        check_name("table", &name)?;
        Ok(TableIdent { namespace, name })
    }

    /// Reads `TableIdentifier` of the REST specification.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut levels, mut name) = (None, None);
        reader.members(|reader, key| {
            match key {
                "namespace" => levels = Some(reader.string_list(key)?),
                "name" => name = Some(reader.string(key)?.into_owned()),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("table identifier without {field}"));
        let namespace = Namespace::new(levels.ok_or_else(|| missing("namespace"))?)?;
        TableIdent::new(namespace, name.ok_or_else(|| missing("name"))?)
    }
}

impl std::fmt::Display for TableIdent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}

fn check_name(kind: &str, name: &str) -> Result<()> {
    ensure(!name.is_empty(), || format!("a {kind} name must not be empty"))?;
    ensure(!matches!(name, "." | ".."), || format!("a {kind} name must not be {name}: URLs cannot carry it"))?;
    ensure(name.chars().count() <= NAME_CHARS_MAX, || {
        format!("a {kind} name has at most {NAME_CHARS_MAX} characters")
    })?;
    ensure(!name.chars().any(char::is_control), || format!("a {kind} name must not hold control characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(levels: &[&str]) -> Result<Namespace> {
        Namespace::new(levels.iter().map(|&level| level.to_owned()).collect())
    }

    #[test]
    fn names_are_kept_as_given() {
        let levels = ["CustomerDB", "sp ace/sla+sh%é", "a.b", "😀"];
        let namespace = namespace(&levels).unwrap();
        assert_eq!(namespace.levels(), levels);
        let ident = TableIdent::new(namespace, "Orders".to_owned()).unwrap();
        assert_eq!(ident.to_string(), "CustomerDB.sp ace/sla+sh%é.a.b.😀.Orders");
    }

    #[test]
    fn dots_do_not_make_levels() {
        assert_ne!(namespace(&["a.b"]).unwrap(), namespace(&["a", "b"]).unwrap());
    }

    #[test]
    fn parent_is_one_level_up() {
        let parent = namespace(&["a", "b"]).unwrap().parent();
        assert_eq!(parent, namespace(&["a"]).ok());
        assert_eq!(parent.unwrap().parent(), None);
    }

    #[test]
    fn bad_names_are_refused() {
        let long = "é".repeat(NAME_CHARS_MAX + 1);
        for name in ["", ".", "..", "a\u{1f}b", "a\0", "a\nb", "a\u{7f}", "a\u{85}", &long] {
            assert!(namespace(&[name]).is_err(), "accepted {name:?}");
            assert!(namespace(&["a", name, "b"]).is_err(), "accepted {name:?} within");
            let table = TableIdent::new(namespace(&["a"]).unwrap(), name.to_owned());
            assert!(table.is_err(), "accepted {name:?} as a table");
        }
        for name in ["...", ".a", "a.", "a..b", " ", "é".repeat(NAME_CHARS_MAX).as_str()] {
            let table = TableIdent::new(namespace(&[name]).unwrap(), name.to_owned());
            assert!(table.is_ok(), "refused {name:?}");
        }
    }

    #[test]
    fn namespaces_have_1_to_32_levels() {
        assert!(namespace(&[]).is_err());
        assert!(namespace(&["a"; LEVELS_MAX]).is_ok());
        assert!(namespace(&["a"; LEVELS_MAX + 1]).is_err());
    }
}
