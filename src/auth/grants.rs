//! What a caller may do: one pure function for the catalog, S3 and jobs alike.

use std::sync::Arc;

/// What stands behind a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// An access key: everything, until grants narrow it.
    Full,
    /// A vended key: objects under its prefixes and nothing else.
    Scoped(Arc<Scope>),
}

/// Objects a vended key reaches.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scope {
    pub warehouse: String,
    /// `bucket/prefix/`, always with the trailing slash: a prefix never matches a sibling.
    pub prefixes: Vec<String>,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Read,
    ReadWrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Any use of the Iceberg protocol or our own API.
    Catalog,
    ListBuckets,
    CreateBucket,
    DeleteBucket,
    HeadBucket,
    /// On a prefix (the listing's `prefix` parameter).
    ListObjects,
    GetObject,
    PutObject,
    DeleteObject,
}

#[derive(Debug, Clone, Copy)]
pub enum Resource<'a> {
    Server,
    Bucket(&'a str),
    /// A key, or for `ListObjects` the prefix asked for.
    Object {
        bucket: &'a str,
        key: &'a str,
    },
}

/// Whether `authority` allows `action` on `resource`.
pub fn allows(_authority: &Authority, _action: Action, _resource: Resource<'_>) -> bool {
    todo!()
}
