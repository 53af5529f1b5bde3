//! Names that callers give to accounts, containers, blobs, queues and shares. A value of these types is a valid name.

use std::fmt;

const ACCOUNT_CHARS: std::ops::RangeInclusive<usize> = 3..=24;
const CONTAINER_CHARS: std::ops::RangeInclusive<usize> = 3..=63;
/// The longest blob name, after decoding, in UTF-16 code units, as Azure's runtime counts the length of a string.
pub const BLOB_NAME_CHARS_MAX: usize = 1024;
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Too short, too long or with too many segments: `OutOfRangeInput`.
    Length,
    /// With characters that are not allowed: `InvalidResourceName`.
    Characters,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Length => "the name is too short or too long",
            NameError::Characters => "the name has characters that are not allowed there",
        })
    }
}

impl std::error::Error for NameError {}

/// An account's name: 3 to 24 of `a-z` and `0-9`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountName(Box<str>);

impl AccountName {
    pub fn parse(name: &str) -> Result<AccountName, NameError> {
        if !name.bytes().all(is_lower_alphanumeric) {
            return Err(NameError::Characters);
        }
        if !ACCOUNT_CHARS.contains(&name.len()) {
            return Err(NameError::Length);
        }
        Ok(AccountName(name.into()))
    }
}

/// A container's name: 3 to 63 of `a-z`, `0-9` and single dashes between them, or one of the system containers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerName(Box<str>);

impl ContainerName {
    /// The root container: it holds the blobs whose URL names no container.
    pub const ROOT: &'static str = "$root";
    /// The container of the static website.
    pub const WEB: &'static str = "$web";
    pub const LOGS: &'static str = "$logs";
    pub const CHANGE_FEED: &'static str = "$blobchangefeed";
    const SPECIAL: [&'static str; 4] = [Self::ROOT, Self::WEB, Self::LOGS, Self::CHANGE_FEED];

    /// The length is checked first, so a name with both faults is refused for its length.
    pub fn parse(name: &str) -> Result<ContainerName, NameError> {
        if Self::SPECIAL.contains(&name) {
            return Ok(ContainerName(name.into()));
        }
        dashed_name(name).map(ContainerName)
    }

    pub fn root() -> ContainerName {
        ContainerName(Self::ROOT.into())
    }

    pub fn is_root(&self) -> bool {
        &*self.0 == Self::ROOT
    }

    /// Whether this is a system container, whose name begins with `$`.
    pub fn is_special(&self) -> bool {
        self.0.starts_with('$')
    }
}

/// A queue's name: 3 to 63 of `a-z`, `0-9` and single dashes between them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Box<str>);

impl QueueName {
    /// The length is checked first, so a name with both faults is refused for its length.
    pub fn parse(name: &str) -> Result<QueueName, NameError> {
        dashed_name(name).map(QueueName)
    }
}

/// A share's name: 3 to 63 of `a-z`, `0-9` and single dashes between them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareName(Box<str>);

impl ShareName {
    /// The length is looked at first, so a name with both faults has the wrong length.
    pub fn parse(name: &str) -> Result<ShareName, NameError> {
        dashed_name(name).map(ShareName)
    }
}

/// A blob's name: 1 to 1024 characters in at most 254 segments. It is case-sensitive; every character is allowed.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobName(Box<str>);

impl BlobName {
    /// Parses a decoded name. A backslash becomes a slash, as in Azure.
    pub fn parse(name: &str) -> Result<BlobName, NameError> {
        // A UTF-8 text never has fewer bytes than UTF-16 units, so the exact count is only needed for long ones.
        let too_long = name.len() > BLOB_NAME_CHARS_MAX && name.encode_utf16().count() > BLOB_NAME_CHARS_MAX;
        if name.is_empty() || too_long {
            return Err(NameError::Length);
        }
        let name: Box<str> = if name.contains('\\') { name.replace('\\', "/").into() } else { name.into() };
        if name.split('/').count() > BLOB_NAME_SEGMENTS_MAX {
            return Err(NameError::Length);
        }
        Ok(BlobName(name))
    }
}

macro_rules! text_of {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}
text_of!(AccountName, ContainerName, QueueName, ShareName, BlobName);

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn dashed_name(name: &str) -> Result<Box<str>, NameError> {
    if !CONTAINER_CHARS.contains(&name.chars().count()) {
        return Err(NameError::Length);
    }
    if !is_dashed(name.as_bytes()) {
        return Err(NameError::Characters);
    }
    Ok(name.into())
}

fn is_dashed(name: &[u8]) -> bool {
    let ends = name.first().is_some_and(|b| is_lower_alphanumeric(*b)) && name.last() != Some(&b'-');
    let middle = name.iter().all(|b| is_lower_alphanumeric(*b) || *b == b'-');
    ends && middle && !name.windows(2).any(|pair| pair == b"--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_names() {
        for name in ["abc", "a-b", "1-2-3", "$root", "$web", "$logs", "$blobchangefeed", &"a".repeat(63)] {
            assert_eq!(ContainerName::parse(name).map(|n| n.to_string()), Ok(name.to_string()));
        }
        for name in ["", "a", "ab", &"a".repeat(64), "A", "ää"] {
            assert_eq!(ContainerName::parse(name), Err(NameError::Length), "{name:?}");
        }
        for name in ["Abc", "a--b", "-ab", "ab-", "a_b", "a.b", "$abc", "$roots", "äöü", "a b", "a/b", "---"] {
            assert_eq!(ContainerName::parse(name), Err(NameError::Characters), "{name:?}");
        }
    }

    #[test]
    fn queue_names() {
        for name in ["abc", "a-b", "1-2-3", &"a".repeat(63)] {
            assert_eq!(QueueName::parse(name).map(|n| n.to_string()), Ok(name.to_string()));
        }
        assert_eq!(QueueName::parse("A"), Err(NameError::Length));
        for name in ["Abc", "a--b", "-ab", "ab-", "a_b", "$root", "a/b"] {
            assert_eq!(QueueName::parse(name), Err(NameError::Characters), "{name:?}");
        }
    }

    #[test]
    fn share_names() {
        for name in ["abc", "a-b", "1-2-3", &"a".repeat(63)] {
            assert_eq!(ShareName::parse(name).map(|n| n.to_string()), Ok(name.to_string()));
        }
        for name in ["", "ab", &"a".repeat(64)] {
            assert_eq!(ShareName::parse(name), Err(NameError::Length), "{name:?}");
        }
        for name in ["Abc", "a--b", "-ab", "ab-", "a_b", "$root", "ipc$", "a/b", "äöü"] {
            assert_eq!(ShareName::parse(name), Err(NameError::Characters), "{name:?}");
        }
    }

    #[test]
    fn the_services_own_containers_are_special() {
        assert!(ContainerName::root().is_root() && ContainerName::root().is_special());
        assert!(!ContainerName::parse("root").expect("valid").is_special());
    }

    #[test]
    fn blob_names_are_measured_decoded() {
        let segments = |n: usize| vec!["a"; n].join("/");
        for name in ["a", "/", "a//b", "ä", ".", "a\u{0}b", &"ä".repeat(1024), &"😀".repeat(512), &segments(254)] {
            assert!(BlobName::parse(name).is_ok(), "{name:?}");
        }
        for name in ["", &"a".repeat(1025), &"ä".repeat(1025), &"😀".repeat(513), &segments(255)] {
            assert_eq!(BlobName::parse(name), Err(NameError::Length), "{name:?}");
        }
    }

    #[test]
    fn a_backslash_is_a_slash() {
        assert_eq!(BlobName::parse(r"a\b/c").expect("valid").as_str(), "a/b/c");
    }

    #[test]
    fn account_names() {
        assert!(AccountName::parse("devstoreaccount1").is_ok());
        for name in ["", "ab", &"a".repeat(25)] {
            assert_eq!(AccountName::parse(name), Err(NameError::Length));
        }
        for name in ["Abc", "a-b-c", "a_b"] {
            assert_eq!(AccountName::parse(name), Err(NameError::Characters));
        }
    }
}
