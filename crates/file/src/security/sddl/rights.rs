//! The rights of an ACE as SDDL writes them: pairs of letters, or a number.

use std::fmt::Write;

use super::super::{AceKind, number, without_hex_prefix};

/// One bit each, from the lowest up: the order in which Windows prints them.
const BITS: [(&str, u32); 17] = [
    ("CC", 0x0000_0001),
    ("DC", 0x0000_0002),
    ("LC", 0x0000_0004),
    ("SW", 0x0000_0008),
    ("RP", 0x0000_0010),
    ("WP", 0x0000_0020),
    ("DT", 0x0000_0040),
    ("LO", 0x0000_0080),
    ("CR", 0x0000_0100),
    ("SD", 0x0001_0000),
    ("RC", 0x0002_0000),
    ("WD", 0x0004_0000),
    ("WO", 0x0008_0000),
    ("GA", 0x1000_0000),
    ("GX", 0x2000_0000),
    ("GW", 0x4000_0000),
    ("GR", 0x8000_0000),
];

/// Several bits each, for files and registry keys. A mask prints so if it is exactly one of them; of two names, by the first.
const SETS: [(&str, u32); 8] = [
    ("FA", 0x001F_01FF),
    ("FR", 0x0012_0089),
    ("FW", 0x0012_0116),
    ("FX", 0x0012_00A0),
    ("KA", 0x000F_003F),
    ("KR", 0x0002_0019),
    ("KW", 0x0002_0006),
    ("KX", 0x0002_0019),
];

/// What a mandatory label forbids: its mask has a meaning of its own.
const LABEL_BITS: [(&str, u32); 3] = [("NW", 1), ("NR", 2), ("NX", 4)];

/// No rights at all are no letters at all, as in Windows.
pub(super) fn parse(text: &str, kind: AceKind) -> Option<u32> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return parse_number(text);
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mask = pairs.iter().try_fold(0, |mask, pair| Some(mask | named(pair, kind)?));
    mask.filter(|_| rest.is_empty())
}

pub(super) fn print(mask: u32, kind: AceKind, text: &mut String) {
    if let Some((name, _)) = sets(kind).iter().find(|(_, set)| *set == mask) {
        return text.push_str(name);
    }
    let named = bits(kind).iter().filter(|(_, bit)| mask & bit != 0);
    if named.clone().fold(0, |all, (_, bit)| all | bit) == mask {
        return text.extend(named.map(|(name, _)| *name));
    }
    write!(text, "{mask:#x}").expect("a string takes everything");
}

/// As in C: hexadecimal after `0x`, octal after `0`.
fn parse_number(text: &str) -> Option<u32> {
    let mask = match (without_hex_prefix(text), text.strip_prefix('0')) {
        (Some(digits), _) => number(digits, 16),
        (None, Some(digits)) if !digits.is_empty() => number(digits, 8),
        (None, _) => number(text, 10),
    };
    mask.and_then(|mask| u32::try_from(mask).ok())
}

fn named(pair: &[u8; 2], kind: AceKind) -> Option<u32> {
    let found = sets(kind).iter().chain(bits(kind)).find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(pair));
    found.map(|(_, mask)| *mask)
}

fn sets(kind: AceKind) -> &'static [(&'static str, u32)] {
    if kind == AceKind::MandatoryLabel { &[] } else { &SETS }
}

fn bits(kind: AceKind) -> &'static [(&'static str, u32)] {
    if kind == AceKind::MandatoryLabel { &LABEL_BITS } else { &BITS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(mask: u32, kind: AceKind) -> String {
        let mut text = String::new();
        print(mask, kind, &mut text);
        text
    }

    #[test]
    fn rights_both_ways() {
        for (text, mask) in [
            ("", 0),
            ("FA", 0x001F_01FF),
            ("FR", 0x0012_0089),
            ("FW", 0x0012_0116),
            ("FX", 0x0012_00A0),
            ("KA", 0x000F_003F),
            ("KR", 0x0002_0019),
            ("GA", 0x1000_0000),
            ("GXGR", 0xA000_0000),
            ("SDGXGWGR", 0xE001_0000),
            ("LC", 4),
            ("CCDCLCSWRPWPDTLOCRSDRCWDWO", 0x000F_01FF),
            ("CCDCLCSWRPWPRCWDWOGA", 0x100E_003F),
            ("0x1200a9", 0x0012_00A9),
            ("0x1301bf", 0x0013_01BF),
            ("0x401200a0", 0x4012_00A0),
            ("0x100000", 0x0010_0000),
            ("0xffffffff", u32::MAX),
        ] {
            assert_eq!(parse(text, AceKind::Allow), Some(mask), "{text}");
            assert_eq!(printed(mask, AceKind::Allow), text);
        }
    }

    #[test]
    fn several_spellings_are_one_mask() {
        for (text, mask) in [
            ("ga", 0x1000_0000),
            ("GRGX", 0xA000_0000),
            ("GRGRGR", 0x8000_0000),
            ("FRFX", 0x0012_00A9),
            ("KX", 0x0002_0019),
            ("16", 16),
            ("010", 8),
            ("0", 0),
            ("0XFF", 0xFF),
            ("0x00000000001", 1),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(parse(text, AceKind::Deny), Some(mask), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_rights() {
        for text in [
            "G",
            "GAG",
            "ZZ",
            "GA ",
            " GA",
            "GA;",
            "0x",
            "0x1g",
            "08",
            "4294967296",
            "-1",
            "+1",
            "1GA",
            "GA1",
            "Ä",
            "NW",
        ] {
            assert_eq!(parse(text, AceKind::Allow), None, "{text}");
        }
    }

    #[test]
    fn a_label_has_rights_of_its_own() {
        for (text, mask) in [("NW", 1), ("NWNR", 3), ("NWNRNX", 7), ("0x10", 16), ("", 0)] {
            assert_eq!(parse(text, AceKind::MandatoryLabel), Some(mask), "{text}");
            assert_eq!(printed(mask, AceKind::MandatoryLabel), text);
        }
        for text in ["GA", "FA", "CC"] {
            assert_eq!(parse(text, AceKind::MandatoryLabel), None, "{text}");
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for kind in [AceKind::Allow, AceKind::MandatoryLabel] {
            for mask in (0..32).flat_map(|bit| (0..32).map(move |other| 1_u32 << bit | 1_u32 << other)) {
                assert_eq!(parse(&printed(mask, kind), kind), Some(mask), "{mask:#x}");
            }
        }
    }
}
