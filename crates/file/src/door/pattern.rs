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
//! Case does not matter. All ways to match are followed at once, so no pattern takes long.

use wire::fold::fold;

use super::Refused;

/// The longest pattern. No name has more characters than 255, and signs that match nothing are rare.
pub const PATTERN_CHARS_MAX: usize = 1_024;

const SIGNS: [char; 5] = ['*', '?', '<', '>', '"'];

/// A pattern, folded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    signs: Vec<char>,
}

impl Pattern {
    /// No pattern at all is `*`.
    pub fn parse(text: &str) -> Result<Pattern, Refused> {
        let text = if text.is_empty() { "*" } else { text };
        let signs: Vec<char> = fold(text).chars().take(PATTERN_CHARS_MAX + 1).collect();
        let is_path = signs.iter().any(|sign| matches!(sign, '\\' | '/'));
        if is_path || signs.len() > PATTERN_CHARS_MAX { Err(Refused::NameInvalid) } else { Ok(Pattern { signs }) }
    }

    /// The folded name, if only that one matches.
    pub fn only(&self) -> Option<String> {
        let is_plain = !self.signs.iter().any(|sign| SIGNS.contains(sign));
        is_plain.then(|| self.signs.iter().collect())
    }

    /// What all names that match begin with.
    pub fn prefix(&self) -> String {
        self.signs.iter().take_while(|sign| !SIGNS.contains(sign)).collect()
    }

    /// Whether a name matches, whatever its case.
    pub fn matches(&self, name: &str) -> bool {
        self.matches_folded(&fold(name))
    }

    fn matches_folded(&self, name: &str) -> bool {
        let last_dot = name.rfind('.');
        // Where in the pattern a way to match may be: before each sign, and behind the last.
        let mut at = vec![false; self.signs.len() + 1];
        at[0] = true;
        for (offset, letter) in name.char_indices() {
            self.skip(&mut at, Some(letter));
            let mut next = vec![false; at.len()];
            for (place, sign) in self.signs.iter().enumerate().filter(|(place, _)| at[*place]) {
                match sign {
                    '*' => next[place] = true,
                    '<' => next[place] |= last_dot != Some(offset),
                    '?' => next[place + 1] = true,
                    '>' => next[place + 1] |= letter != '.',
                    '"' => next[place + 1] |= letter == '.',
                    plain => next[place + 1] |= *plain == letter,
                }
            }
            at = next;
        }
        self.skip(&mut at, None);
        at[self.signs.len()]
    }

    /// Goes past signs that match nothing before `letter`, or at the end of the name.
    fn skip(&self, at: &mut [bool], letter: Option<char>) {
        for (place, sign) in self.signs.iter().enumerate() {
            let matches_nothing = match sign {
                '*' | '<' => true,
                '>' => matches!(letter, None | Some('.')),
                '"' => letter.is_none(),
                _ => false,
            };
            at[place + 1] |= at[place] && matches_nothing;
        }
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

    #[test]
    fn no_pattern_takes_long_and_paths_are_none() {
        let hard = Pattern::parse(&"*a".repeat(PATTERN_CHARS_MAX / 2)).unwrap();
        assert!(!hard.matches(&"a".repeat(255)));
        assert_eq!(Pattern::parse(&"*".repeat(PATTERN_CHARS_MAX + 1)), Err(Refused::NameInvalid));
        for path in ["a\\b", "a/*"] {
            assert_eq!(Pattern::parse(path), Err(Refused::NameInvalid));
        }
    }
}
