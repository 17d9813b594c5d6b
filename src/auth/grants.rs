//! What a caller may do: one pure function for the catalog, S3 and jobs alike.

use super::policy::Policy;
use std::sync::Arc;
use uuid::Uuid;

/// What stands behind a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// An access key: everything, until grants narrow it.
    Full,
    /// A vended key: objects under its prefixes and nothing else.
    Scoped(Arc<Scope>),
    /// A session key with a policy: what the policy allows, and only on S3, which asks it by the names of its operations.
    Session(Arc<Policy>),
    /// No key at all: nothing but what a bucket's policy allows everybody.
    Anonymous,
}

/// Objects a vended key reaches.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scope {
    pub warehouse: String,
    /// `bucket/prefix/`, always with the trailing slash: a prefix never matches a sibling.
    pub prefixes: Vec<String>,
    pub access: Access,
    /// The uuid of the table whose place this is: the scope ends when another table takes it.
    pub table: Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
    /// Read or change what a bucket is configured with.
    ConfigureBucket,
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
///
/// Names are compared as bytes: `*` and `..` in a key or prefix mean themselves. A scope's prefix without its trailing
/// slash, or without a bucket, reaches nothing.
pub fn allows(authority: &Authority, action: Action, resource: Resource<'_>) -> bool {
    match authority {
        Authority::Full => true,
        Authority::Session(_) | Authority::Anonymous => false,
        Authority::Scoped(scope) => scope_allows(scope, action, resource),
    }
}

fn scope_allows(scope: &Scope, action: Action, resource: Resource<'_>) -> bool {
    let writes = match action {
        Action::Catalog
        | Action::ListBuckets
        | Action::CreateBucket
        | Action::DeleteBucket
        | Action::ConfigureBucket => return false,
        Action::HeadBucket | Action::ListObjects | Action::GetObject => false,
        Action::PutObject | Action::DeleteObject => true,
    };
    if writes && scope.access == Access::Read {
        return false;
    }
    match resource {
        Resource::Server => false,
        // That the bucket of its own prefixes exists is all a vended key learns about a bucket.
        Resource::Bucket(bucket) => {
            action == Action::HeadBucket && prefixes(scope).any(|(of_bucket, _)| of_bucket == bucket)
        }
        Resource::Object { bucket, key } => {
            action != Action::HeadBucket
                && prefixes(scope).any(|(of_bucket, prefix)| of_bucket == bucket && key.starts_with(prefix))
        }
    }
}

/// The scope's well-formed prefixes as bucket and key prefix, the latter empty or with its trailing slash.
fn prefixes(scope: &Scope) -> impl Iterator<Item = (&str, &str)> {
    scope
        .prefixes
        .iter()
        .filter(|prefix| prefix.ends_with('/'))
        .filter_map(|prefix| prefix.split_once('/'))
        .filter(|(bucket, _)| !bucket.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OBJECT_ACTIONS: [Action; 4] =
        [Action::ListObjects, Action::GetObject, Action::PutObject, Action::DeleteObject];

    fn scoped(prefixes: &[&str], access: Access) -> Authority {
        let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        Authority::Scoped(Arc::new(Scope { warehouse: "lakehouse".into(), prefixes, access, table: Uuid::nil() }))
    }

    fn reads(prefix: &str, bucket: &str, key: &str) -> bool {
        allows(&scoped(&[prefix], Access::Read), Action::GetObject, Resource::Object { bucket, key })
    }

    #[test]
    fn full_authority_may_do_everything() {
        assert!(allows(&Authority::Full, Action::Catalog, Resource::Server));
        assert!(allows(&Authority::Full, Action::DeleteObject, Resource::Object { bucket: "b", key: "k" }));
    }

    #[test]
    fn prefix_reaches_its_own_objects_and_no_siblings() {
        assert!(reads("b/ns/t/", "b", "ns/t/data/1.parquet"));
        assert!(reads("b/ns/t/", "b", "ns/t/"));
        assert!(!reads("b/ns/t/", "b", "ns/t"));
        assert!(!reads("b/ns/t/", "b", "ns/t2/data/1.parquet"));
        assert!(!reads("b/ns/t/", "b", "ns/"));
        assert!(!reads("b/ns/t/", "b2", "ns/t/data/1.parquet"));
        assert!(!reads("b/ns/t/", "b", "/ns/t/data/1.parquet"));
    }

    #[test]
    fn prefix_without_trailing_slash_reaches_nothing() {
        assert!(!reads("b/ns/t", "b", "ns/t/data"));
        assert!(!reads("b/ns/t", "b", "ns/t"));
        assert!(!reads("b", "b", "k"));
        assert!(!reads("", "b", "k"));
        assert!(!reads("/", "", "k"));
    }

    #[test]
    fn stars_and_dots_mean_themselves() {
        assert!(!reads("b/ns/*/", "b", "ns/t/data"));
        assert!(reads("b/ns/*/", "b", "ns/*/data"));
        assert!(!reads("b/ns/t/", "b", "ns/../ns/t/data"));
        assert!(!reads("b/ns/../", "b", "data"));
        // A key is bytes: this one lies below the prefix and names no other object.
        assert!(reads("b/ns/t/", "b", "ns/t/../u"));
    }

    #[test]
    fn listing_stays_within_the_prefix() {
        let authority = scoped(&["b/ns/t/"], Access::ReadWrite);
        let lists = |key| allows(&authority, Action::ListObjects, Resource::Object { bucket: "b", key });
        assert!(lists("ns/t/"));
        assert!(lists("ns/t/data/"));
        for wider in ["", "n", "ns/", "ns/t", "ns/t2/"] {
            assert!(!lists(wider), "{wider:?}");
        }
    }

    #[test]
    fn read_scope_never_writes() {
        let object = Resource::Object { bucket: "b", key: "t/x" };
        let read = scoped(&["b/t/"], Access::Read);
        let write = scoped(&["b/t/"], Access::ReadWrite);
        for action in [Action::PutObject, Action::DeleteObject] {
            assert!(!allows(&read, action, object));
            assert!(allows(&write, action, object));
        }
    }

    #[test]
    fn vended_key_sees_only_its_bucket_and_no_catalog() {
        let authority = scoped(&["b/t/"], Access::ReadWrite);
        assert!(allows(&authority, Action::HeadBucket, Resource::Bucket("b")));
        assert!(!allows(&authority, Action::HeadBucket, Resource::Bucket("c")));
        assert!(!allows(&authority, Action::Catalog, Resource::Server));
        assert!(!allows(&authority, Action::ListBuckets, Resource::Server));
        for action in [Action::CreateBucket, Action::DeleteBucket, Action::ListObjects, Action::PutObject] {
            assert!(!allows(&authority, action, Resource::Bucket("b")), "{action:?}");
        }
    }

    /// The rule said once more, as plainly as possible.
    fn oracle(prefixes: &[String], access: Access, action: Action, bucket: &str, key: &str) -> bool {
        let path = format!("{bucket}/{key}");
        let may = access == Access::ReadWrite || matches!(action, Action::GetObject | Action::ListObjects);
        let within = |prefix: &String| {
            let slash_last = prefix.ends_with('/');
            let has_bucket = !prefix.starts_with('/');
            slash_last
                && has_bucket
                && path.len() >= prefix.len()
                && path.as_bytes()[..prefix.len()] == *prefix.as_bytes()
        };
        may && prefixes.iter().any(within)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn object_actions_agree_with_the_oracle(
            prefixes in proptest::collection::vec("[ab]{0,2}/?[ab*.]{0,2}/?[ab]{0,1}/?", 0..4),
            write in any::<bool>(),
            action in proptest::sample::select(&OBJECT_ACTIONS[..]),
            bucket in "[ab]{1,2}",
            key in "/?[ab*.]{0,2}/?[ab]{0,2}/?[ab]{0,1}",
        ) {
            let access = if write { Access::ReadWrite } else { Access::Read };
            let expected = oracle(&prefixes, access, action, &bucket, &key);
            let authority = Authority::Scoped(Arc::new(Scope { warehouse: "w".into(), prefixes, access, table: Uuid::nil() }));
            prop_assert_eq!(allows(&authority, action, Resource::Object { bucket: &bucket, key: &key }), expected);
        }
    }
}
