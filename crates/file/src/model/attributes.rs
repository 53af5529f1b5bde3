//! The attributes that SMB clients see and REST sets: `x-ms-file-attributes`.

use minicbor::{Decode, Encode};

/// A set of attributes, as the bits that SMB has for them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Encode, Decode)]
pub struct Attributes(#[n(0)] u32);

/// In the order in which answers name them.
const NAMES: [(&str, u32); 9] = [
    ("ReadOnly", 0x1),
    ("Hidden", 0x2),
    ("System", 0x4),
    ("Directory", 0x10),
    ("Archive", 0x20),
    ("Temporary", 0x100),
    ("Offline", 0x1000),
    ("NotContentIndexed", 0x2000),
    ("NoScrubData", 0x2_0000),
];

/// The word for no attribute at all.
const NONE: &str = "None";

impl Attributes {
    pub const NONE: Attributes = Attributes(0);
    pub const READ_ONLY: Attributes = Attributes(0x1);
    pub const HIDDEN: Attributes = Attributes(0x2);
    pub const SYSTEM: Attributes = Attributes(0x4);
    pub const DIRECTORY: Attributes = Attributes(0x10);
    pub const ARCHIVE: Attributes = Attributes(0x20);
    /// What was not written takes no space, as an SMB client has asked for (FSCTL_SET_SPARSE). REST has no word for it, and no list of
    /// attributes sets it or takes it away.
    pub const SPARSE: Attributes = Attributes(0x200);

    /// Takes `ReadOnly | Archive`: words in any case, with or without blanks. `None` for text that is no list of attributes.
    pub fn parse(text: &str) -> Option<Attributes> {
        text.split('|').map(str::trim).try_fold(Attributes::NONE, |set, word| {
            if word.eq_ignore_ascii_case(NONE) {
                return Some(set);
            }
            let (_, bit) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))?;
            Some(Attributes(set.0 | bit))
        })
    }

    /// From the bits of SMB; bits that REST has no word for are dropped.
    pub fn from_bits(bits: u32) -> Attributes {
        Attributes(bits & NAMES.iter().fold(0, |all, (_, bit)| all | bit))
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn contains(self, other: Attributes) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Attributes) -> Attributes {
        Attributes(self.0 | other.0)
    }

    /// These, and [`Attributes::SPARSE`] if `before` has it.
    #[must_use]
    pub fn as_sparse_as(self, before: Attributes) -> Attributes {
        Attributes(self.0 & !Self::SPARSE.0 | before.0 & Self::SPARSE.0)
    }

    #[must_use]
    pub fn without(self, other: Attributes) -> Attributes {
        Attributes(self.0 & !other.0)
    }
}

impl std::fmt::Display for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = NAMES.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(name, _)| *name);
        f.write_str(words.next().unwrap_or(NONE))?;
        words.try_for_each(|word| write!(f, " | {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        for (text, shown) in [
            ("None", "None"),
            ("Archive", "Archive"),
            ("archive|READONLY", "ReadOnly | Archive"),
            ("ReadOnly | Hidden | System", "ReadOnly | Hidden | System"),
            ("None | Temporary", "Temporary"),
            ("Offline|NotContentIndexed|NoScrubData", "Offline | NotContentIndexed | NoScrubData"),
        ] {
            assert_eq!(Attributes::parse(text).map(|set| set.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in ["", "|", "Archive|", "Normal", "Archive,ReadOnly", "1"] {
            assert_eq!(Attributes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn bits_of_smb() {
        let set = Attributes::from_bits(0xFFFF_FFFF);
        assert_eq!(set.bits(), 0x2_3137);
        assert!(
            set.contains(Attributes::READ_ONLY) && !set.without(Attributes::READ_ONLY).contains(Attributes::READ_ONLY)
        );
        assert_eq!(Attributes::ARCHIVE.with(Attributes::READ_ONLY).to_string(), "ReadOnly | Archive");
        let sparse = Attributes::ARCHIVE.with(Attributes::SPARSE);
        assert_eq!((sparse.to_string().as_str(), Attributes::SPARSE.to_string().as_str()), ("Archive", "None"));
        assert_eq!(Attributes::HIDDEN.as_sparse_as(sparse), Attributes::HIDDEN.with(Attributes::SPARSE));
        assert_eq!(sparse.as_sparse_as(Attributes::HIDDEN), Attributes::ARCHIVE);
    }
}
