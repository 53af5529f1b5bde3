//! The two-letter aliases that SDDL has for well-known SIDs.
//!
//! An alias stands for one SID on every machine, or for an account of the domain that the machine belongs to. The service refuses those
//! of the second kind: a share belongs to no domain. Source: <https://learn.microsoft.com/windows/win32/secauthz/sid-strings>.

use std::fmt;

use super::{PermissionError, Sid};

/// One SID on every machine.
const WELL_KNOWN: [(&str, Sid); 49] = [
    ("AA", builtin(579)),
    ("AC", Sid::of(15, &[2, 1])),
    ("AN", Sid::of(5, &[7])),
    ("AO", builtin(548)),
    ("AS", Sid::of(18, &[1])),
    ("AU", Sid::AUTHENTICATED_USERS),
    ("BA", Sid::ADMINISTRATORS),
    ("BG", builtin(546)),
    ("BO", builtin(551)),
    ("BU", Sid::USERS),
    ("CD", builtin(574)),
    ("CG", Sid::CREATOR_GROUP),
    ("CO", Sid::CREATOR_OWNER),
    ("CY", builtin(569)),
    ("ED", Sid::of(5, &[9])),
    ("ER", builtin(573)),
    ("ES", builtin(576)),
    ("HA", builtin(578)),
    ("HI", Sid::of(16, &[12288])),
    ("IS", builtin(568)),
    ("IU", Sid::of(5, &[4])),
    ("LS", Sid::of(5, &[19])),
    ("LU", builtin(559)),
    ("LW", Sid::of(16, &[4096])),
    ("ME", Sid::of(16, &[8192])),
    ("MP", Sid::of(16, &[8448])),
    ("MS", builtin(577)),
    ("MU", builtin(558)),
    ("NO", builtin(556)),
    ("NS", Sid::of(5, &[20])),
    ("NU", Sid::of(5, &[2])),
    ("OW", Sid::of(3, &[4])),
    ("PO", builtin(550)),
    ("PS", Sid::of(5, &[10])),
    ("PU", builtin(547)),
    ("RA", builtin(575)),
    ("RC", Sid::of(5, &[12])),
    ("RD", builtin(555)),
    ("RE", builtin(552)),
    ("RM", builtin(580)),
    ("RU", builtin(554)),
    ("SI", Sid::of(16, &[16384])),
    ("SO", builtin(549)),
    ("SS", Sid::of(18, &[2])),
    ("SU", Sid::of(5, &[6])),
    ("SY", Sid::SYSTEM),
    ("UD", Sid::of(5, &[84, 0, 0, 0, 0, 0])),
    ("WD", Sid::of(1, &[0])),
    ("WR", Sid::of(5, &[33])),
];

/// An account of the machine's domain, of its forest, or of the machine itself.
const OF_A_DOMAIN: [&str; 17] =
    ["AP", "CA", "CN", "DA", "DC", "DD", "DG", "DU", "EA", "EK", "KA", "LA", "LG", "PA", "RO", "RS", "SA"];

/// A group that every Windows machine has.
const fn builtin(group: u32) -> Sid {
    Sid::of(5, &[32, group])
}

impl Sid {
    /// Reads a SID as SDDL writes it: an alias, or `S-1-...`.
    pub fn parse_sddl(text: &str) -> Result<Sid, PermissionError> {
        if let Some((_, sid)) = WELL_KNOWN.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(text)) {
            return Ok(*sid);
        }
        if OF_A_DOMAIN.iter().any(|alias| alias.eq_ignore_ascii_case(text)) {
            return Err(PermissionError::DomainAlias);
        }
        Sid::parse(text).ok_or(PermissionError::Syntax)
    }

    /// The SID as SDDL writes it: by its alias if it has one.
    pub fn sddl(self) -> SddlSid {
        SddlSid(self)
    }
}

/// A SID that prints as its alias if it has one.
#[derive(Clone, Copy, Debug)]
pub struct SddlSid(Sid);

impl fmt::Display for SddlSid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WELL_KNOWN.iter().find(|(_, sid)| *sid == self.0) {
            Some((alias, _)) => f.write_str(alias),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_and_its_sid() {
        for (alias, text) in [
            ("AA", "S-1-5-32-579"),
            ("AC", "S-1-15-2-1"),
            ("AN", "S-1-5-7"),
            ("AO", "S-1-5-32-548"),
            ("AS", "S-1-18-1"),
            ("AU", "S-1-5-11"),
            ("BA", "S-1-5-32-544"),
            ("BG", "S-1-5-32-546"),
            ("BO", "S-1-5-32-551"),
            ("BU", "S-1-5-32-545"),
            ("CG", "S-1-3-1"),
            ("CO", "S-1-3-0"),
            ("ED", "S-1-5-9"),
            ("HI", "S-1-16-12288"),
            ("IU", "S-1-5-4"),
            ("LS", "S-1-5-19"),
            ("LW", "S-1-16-4096"),
            ("ME", "S-1-16-8192"),
            ("NS", "S-1-5-20"),
            ("NU", "S-1-5-2"),
            ("OW", "S-1-3-4"),
            ("PS", "S-1-5-10"),
            ("PU", "S-1-5-32-547"),
            ("RC", "S-1-5-12"),
            ("RD", "S-1-5-32-555"),
            ("SI", "S-1-16-16384"),
            ("SU", "S-1-5-6"),
            ("SY", "S-1-5-18"),
            ("UD", "S-1-5-84-0-0-0-0-0"),
            ("WD", "S-1-1-0"),
        ] {
            let sid = Sid::parse(text).expect(text);
            assert_eq!(Sid::parse_sddl(alias), Ok(sid), "{alias}");
            assert_eq!(Sid::parse_sddl(&alias.to_lowercase()), Ok(sid), "{alias}");
            assert_eq!(Sid::parse_sddl(text), Ok(sid));
            assert_eq!(sid.sddl().to_string(), alias);
        }
    }

    #[test]
    fn no_alias_and_no_sid_is_listed_twice() {
        let aliases = WELL_KNOWN.iter().map(|(alias, _)| *alias).chain(OF_A_DOMAIN);
        let mut aliases: Vec<&str> = aliases.collect();
        aliases.sort_unstable();
        assert!(aliases.windows(2).all(|pair| pair[0] < pair[1]));
        for (alias, sid) in WELL_KNOWN {
            assert_eq!(sid.sddl().to_string(), alias);
        }
    }

    #[test]
    fn an_account_of_a_domain_needs_its_sid() {
        for alias in OF_A_DOMAIN {
            assert_eq!(Sid::parse_sddl(alias), Err(PermissionError::DomainAlias), "{alias}");
            assert_eq!(Sid::parse_sddl(&alias.to_lowercase()), Err(PermissionError::DomainAlias), "{alias}");
        }
        let domain_users = "S-1-5-21-1-2-3-513";
        assert_eq!(Sid::parse_sddl(domain_users).map(|sid| sid.sddl().to_string()).as_deref(), Ok(domain_users));
    }

    #[test]
    fn other_letters_are_no_alias() {
        for text in ["", "B", "BAA", "ZZ", "B A", " BA", "BA ", "ÄÖ", "S-1-5-"] {
            assert_eq!(Sid::parse_sddl(text), Err(PermissionError::Syntax), "{text:?}");
        }
        assert_eq!(Sid::of(0, &[0]).sddl().to_string(), "S-1-0-0");
    }
}
