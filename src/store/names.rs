//! Names of buckets and objects, parsed once at the edge: below it nobody checks them again.

const BUCKET_NAME_BYTES_MIN: usize = 3;
const BUCKET_NAME_BYTES_MAX: usize = 63;
const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// Beginnings and endings that AWS keeps for itself ("General purpose bucket naming rules").
const RESERVED_PREFIXES: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
const RESERVED_SUFFIXES: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// Names a bucket: 3 to 63 characters by AWS's naming rules. Always valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketName(String);

/// Names an object: 1 to 1,024 bytes of UTF-8, kept to the letter (`a//b`, `..` and a leading slash are just bytes).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(String);

impl BucketName {
    /// `None` where AWS's rules for general purpose buckets forbid the name.
    pub fn parse(name: &str) -> Option<Self> {
        let bytes = name.as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let valid = (BUCKET_NAME_BYTES_MIN..=BUCKET_NAME_BYTES_MAX).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte))
            && edge(bytes.first())
            && edge(bytes.last())
            && !name.contains("..")
            && name.parse::<std::net::Ipv4Addr>().is_err()
            && !RESERVED_PREFIXES.iter().any(|reserved| name.starts_with(reserved))
            && !RESERVED_SUFFIXES.iter().any(|reserved| name.ends_with(reserved));
        valid.then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For names this store wrote itself.
    pub(super) fn stored(name: String) -> Self {
        Self(name)
    }
}

impl ObjectKey {
    /// `None` when empty or longer than 1,024 bytes.
    pub fn parse(key: &str) -> Option<Self> {
        (1..=OBJECT_KEY_BYTES_MAX).contains(&key.len()).then(|| Self(key.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For keys this store wrote itself.
    pub(super) fn stored(key: String) -> Self {
        Self(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_rules_of_aws() {
        let longest = "a".repeat(63);
        for valid in ["abc", "a-b", "a.b", "1ab", "lakehouse-warehouse", "a.-b", &longest] {
            assert!(BucketName::parse(valid).is_some(), "{valid}");
        }
        let long = "a".repeat(64);
        let invalid = [
            "",
            "ab",
            "Abc",
            "a_b",
            "-ab",
            "ab-",
            ".ab",
            "ab.",
            "a..b",
            "192.168.0.1",
            "xn--abc",
            "sthree-a",
            "a-s3alias",
            "a--ol-s3",
            "a.mrap",
            "a--x-s3",
            "a--table-s3",
            "a/b",
            "äbc",
            &long,
        ];
        for name in invalid {
            assert!(BucketName::parse(name).is_none(), "{name}");
        }
    }

    #[test]
    fn keys_are_bytes_not_paths() {
        for key in ["a", "/", "a//b", "../x", "ü", "x\u{2}y", &"k".repeat(1024)] {
            assert_eq!(ObjectKey::parse(key).map(|key| key.as_str().to_owned()).as_deref(), Some(key));
        }
        assert!(ObjectKey::parse("").is_none());
        assert!(ObjectKey::parse(&"k".repeat(1025)).is_none());
        assert!(ObjectKey::parse(&"ü".repeat(513)).is_none());
    }
}
