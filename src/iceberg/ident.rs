//! Names of namespaces and tables. A value of these types is always valid.

/// Levels of a namespace, outermost first: 1 to [`LEVELS_MAX`] levels of 1 to [`NAME_CHARS_MAX`] characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Vec<String>);

pub const LEVELS_MAX: usize = 32;
pub const NAME_CHARS_MAX: usize = 255;

impl Namespace {
    /// # Errors
    /// `Error::Invalid` when there is no level, too many, or a name is empty, too long or has control characters.
    pub fn new(_levels: Vec<String>) -> super::Result<Self> {
        todo!()
    }

    pub fn levels(&self) -> &[String] {
        &self.0
    }

    /// The namespace one level up; `None` at the top.
    pub fn parent(&self) -> Option<Namespace> {
        todo!()
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
    /// `Error::Invalid` when the name is empty, longer than [`NAME_CHARS_MAX`] or has control characters.
    pub fn new(_namespace: Namespace, _name: String) -> super::Result<Self> {
        todo!()
    }
}

impl std::fmt::Display for TableIdent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}
