//! Search patterns of QUERY_DIRECTORY, as MS-FSA 2.1.4.4 has them.
//!
//! | sign | matches |
//! |---|---|
//! | `*` | any characters, also none |
//! | `?` | one character |
//! | `<` | any characters, also none, but not the last dot of the name |
//! | `>` | one character; before a dot and at the end of the name also none |
//! | `"` | a dot; at the end of the name also nothing |
//!
//! Case does not matter. All ways to match are followed at once, as bits, so a name takes a few steps for each of its letters
//! whatever the pattern is.

use std::sync::Arc;

use wire::fold::fold;

use super::Refused;

/// The longest pattern, counted without signs that repeat what the sign before them says. No name has more characters.
pub const PATTERN_CHARS_MAX: usize = 255;

const SIGNS: [char; 5] = ['*', '?', '<', '>', '"'];

/// A pattern, folded. A clone is the same pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    parsed: Arc<Parsed>,
}

#[derive(PartialEq, Eq, Debug)]
struct Parsed {
    signs: Vec<char>,
    /// Where each character stands in the pattern, in the order of the characters.
    places: Vec<(char, Places)>,
}

/// Places in a pattern: before each sign, and behind the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Places([u64; 4]);

impl Places {
    fn one(place: usize) -> Places {
        let mut one = Places::default();
        one.add(place);
        one
    }

    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    fn with(self, other: Places) -> Places {
        Places(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn with_if(self, other: Places, is_so: bool) -> Places {
        if is_so { self.with(other) } else { self }
    }

    fn among(self, other: Places) -> Places {
        Places(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    fn next(self) -> Places {
        Places(std::array::from_fn(|at| self.0[at] << 1 | if at == 0 { 0 } else { self.0[at - 1] >> 63 }))
    }

    /// These, and those that are reached from them past signs that need match nothing. Added to a row of ones, a one runs through
    /// to behind its end; what it has changed on its way was passed.
    fn past(self, skipped: Places) -> Places {
        let begun = self.among(skipped);
        let mut carry = false;
        let passed = Places(std::array::from_fn(|at| {
            let (sum, over) = skipped.0[at].overflowing_add(begun.0[at]);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            carry = over || over_again;
            sum ^ skipped.0[at]
        }));
        self.with(passed)
    }
}

impl Pattern {
    /// No pattern at all is `*`.
    pub fn parse(text: &str) -> Result<Pattern, Refused> {
        let mut signs: Vec<char> = Vec::new();
        for sign in fold(if text.is_empty() { "*" } else { text }).chars() {
            match (signs.last_mut(), sign) {
                // Behind a sign that matches any characters, another one matches nothing more.
                (Some('*'), '*' | '<') | (Some('<'), '<') => {}
                (Some(last @ '<'), '*') => *last = '*',
                (_, '\\' | '/') => return Err(Refused::NameInvalid),
                (_, sign) => signs.push(sign),
            }
            if signs.len() > PATTERN_CHARS_MAX {
                return Err(Refused::NameInvalid);
            }
        }
        let mut at: Vec<(char, usize)> = signs.iter().enumerate().map(|(place, sign)| (*sign, place)).collect();
        at.sort_unstable();
        let mut places: Vec<(char, Places)> = Vec::new();
        for (sign, place) in at {
            match places.last_mut() {
                Some((last, known)) if *last == sign => known.add(place),
                _ => places.push((sign, Places::one(place))),
            }
        }
        Ok(Pattern { parsed: Arc::new(Parsed { signs, places }) })
    }

    /// The folded name, if only that one matches.
    pub fn only(&self) -> Option<String> {
        let signs = &self.parsed.signs;
        let is_plain = !signs.iter().any(|sign| SIGNS.contains(sign));
        is_plain.then(|| signs.iter().collect())
    }

    /// What all names that match begin with.
    pub fn prefix(&self) -> String {
        self.parsed.signs.iter().take_while(|sign| !SIGNS.contains(sign)).collect()
    }

    /// Whether a name matches, whatever its case.
    pub fn matches(&self, name: &str) -> bool {
        self.matches_folded(&fold(name))
    }

    fn matches_folded(&self, name: &str) -> bool {
        let [any, one, any_but_dot, one_or_end, dot] = SIGNS.map(|sign| self.places_of(sign));
        let always = any.with(any_but_dot);
        let last_dot = name.rfind('.');
        let mut at = Places::one(0);
        for (offset, letter) in name.char_indices() {
            let is_dot = letter == '.';
            at = at.past(always.with_if(one_or_end, is_dot));
            let stays = any.with_if(any_but_dot, last_dot != Some(offset));
            // A sign in a name is no sign; no name has one.
            let same = if SIGNS.contains(&letter) { Places::default() } else { self.places_of(letter) };
            let goes = one.with(same).with_if(one_or_end, !is_dot).with_if(dot, is_dot);
            at = at.among(stays).with(at.among(goes).next());
            if at.is_empty() {
                return false;
            }
        }
        at.past(always.with(one_or_end).with(dot)).has(self.parsed.signs.len())
    }

    fn places_of(&self, sign: char) -> Places {
        let places = &self.parsed.places;
        places.binary_search_by_key(&sign, |(known, _)| *known).map_or(Places::default(), |found| places[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        for (pattern, matching, others) in [
            ("*", &["a", "a.b", ".", "ä"][..], &[][..]),
            ("", &["a", "a.b"], &[]),
            ("a*c", &["ac", "abc", "aBBC", "a.c"], &["a", "acb", "bac"]),
            ("*.*", &["a.b", ".", "a."], &["a", "ab"]),
            ("?", &["a", "Ä", "."], &["", "ab"]),
            ("a?c", &["abc", "A.C"], &["ac", "abbc"]),
            ("<", &["a", "abc"], &["x.", "a.b", "a.b.c"]),
            ("<.txt", &["a.txt", "a.b.TXT", ".txt"], &["txt", "a.txt.b"]),
            ("<.", &["a."], &["ab.c", "a"]),
            ("a>>", &["a", "ab", "abc"], &["abcd", "b"]),
            (">>>.c", &["a.c", "abc.c", ".c"], &["abcd.c", "a.b.c"]),
            ("a\"", &["a", "a."], &["ab", "a.b"]),
            ("a\"b", &["a.b"], &["ab", "axb"]),
            ("<\"*", &["a", "a.b", "a.b.c"], &[]),
            ("File.TXT", &["file.txt"], &["file.tx", "file.txtt"]),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            for name in matching {
                assert!(parsed.matches(name), "{pattern} matches {name}");
            }
            for name in others {
                assert!(!parsed.matches(name), "{pattern} does not match {name}");
            }
        }
    }

    #[test]
    fn what_is_known_of_the_names() {
        let of = |text| Pattern::parse(text).unwrap();
        assert_eq!((of("File").only().as_deref(), of("File").prefix()), (Some(&*fold("File")), fold("File").into()));
        assert_eq!((of("Fi*e").only(), of("Fi*e").prefix()), (None, fold("Fi").into()));
        assert_eq!((of("").only(), of("").prefix()), (None, String::new()));
    }

    /// The same, one way after the other: what a pattern means, without any care for time.
    fn matches_slowly(signs: &[char], name: &[char], has_later_dot: &[bool]) -> bool {
        let Some((sign, behind)) = signs.split_first() else { return name.is_empty() };
        let without = || matches_slowly(behind, name, has_later_dot);
        let letter = name.first().copied();
        let rest = |signs| !name.is_empty() && matches_slowly(signs, &name[1..], &has_later_dot[1..]);
        match sign {
            '*' => without() || rest(signs),
            '<' => without() || (letter != Some('.') || has_later_dot[0]) && rest(signs),
            '?' => rest(behind),
            '>' => matches!(letter, None | Some('.')) && without() || letter != Some('.') && rest(behind),
            '"' => letter.is_none() && without() || letter == Some('.') && rest(behind),
            plain => letter == Some(*plain) && rest(behind),
        }
    }

    #[test]
    fn all_ways_at_once_are_all_ways() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut matching = 0;
        for _ in 0..20_000 {
            let signs: Vec<char> =
                (0..1 + next(7)).map(|_| ['*', '?', '<', '>', '"', '.', 'A'][next(7) as usize]).collect();
            let name: Vec<char> = (0..next(7)).map(|_| ['.', 'A', 'B'][next(3) as usize]).collect();
            let has_later_dot: Vec<bool> = (0..name.len()).map(|at| name[at + 1..].contains(&'.')).collect();
            let (pattern, text) = (signs.iter().collect::<String>(), name.iter().collect::<String>());
            let expected = matches_slowly(&signs, &name, &has_later_dot);
            assert_eq!(Pattern::parse(&pattern).unwrap().matches(&text), expected, "{pattern} {text}");
            matching += usize::from(expected);
        }
        assert!(matching > 1_000, "{matching}");
    }

    #[test]
    fn long_patterns() {
        for (pattern, name, expected) in [
            ("*a".repeat(127), "a".repeat(255), true),
            ("*a".repeat(127) + "b", "a".repeat(255), false),
            ("*a".repeat(127), "a".repeat(126), false),
            (">".repeat(255), "a".repeat(255), true),
            (">".repeat(255), ".".repeat(3), false),
            ("?".repeat(255), "ä".repeat(255), true),
            ("?".repeat(255), "ä".repeat(254), false),
            (">".repeat(254) + "*", String::new(), true),
            ("*".repeat(10_000) + "a", "ba".to_owned(), true),
            ("*<".repeat(1_000) + "a", "b.a".to_owned(), true),
        ] {
            assert_eq!(Pattern::parse(&pattern).unwrap().matches(&name), expected, "{pattern} {name}");
        }
        for pattern in ["*a".repeat(128), "a".repeat(256), "?".repeat(256)] {
            assert_eq!(Pattern::parse(&pattern), Err(Refused::NameInvalid));
        }
    }

    #[test]
    fn paths_are_none() {
        for path in ["a\\b", "a/*"] {
            assert_eq!(Pattern::parse(path), Err(Refused::NameInvalid));
        }
    }
}
