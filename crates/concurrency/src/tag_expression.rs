//! Expressions over the tags of a blob: `"colour" = 'red' AND "size" >= '10'`.
//!
//! One grammar serves two callers. A condition (`x-ms-if-tags`) takes all of it; a search takes comparisons that are all
//! to hold and asks for them by [`TagExpression::conjunction`]. Values are texts and compared as such, so `'9' > '10'`.
//! A comparison with a tag that is not there is false, whatever it asks.

use std::cmp::Ordering;

use crate::depth::Depth;

/// How many comparisons one expression may have, as the service counts.
pub const COMPARISONS_MAX: usize = 10;
/// How deep parentheses may stand in each other.
pub const DEPTH_MAX: usize = 16;

/// A text that was understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagExpression {
    Compare(TagComparison),
    /// All of them hold.
    All(Vec<TagExpression>),
    /// One of them holds.
    Any(Vec<TagExpression>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagComparison {
    pub key: String,
    pub operator: TagOperator,
    pub value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagOperator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl TagOperator {
    /// Whether it holds for a value that compares so with the one asked for.
    pub fn holds(self, found: Ordering) -> bool {
        match self {
            TagOperator::Equal => found.is_eq(),
            TagOperator::NotEqual => found.is_ne(),
            TagOperator::Less => found.is_lt(),
            TagOperator::AtMost => found.is_le(),
            TagOperator::Greater => found.is_gt(),
            TagOperator::AtLeast => found.is_ge(),
        }
    }
}

impl TagComparison {
    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        let found = tags.iter().find(|(key, _)| *key == self.key);
        found.is_some_and(|(_, value)| self.operator.holds(value.as_str().cmp(&self.value)))
    }
}

impl TagExpression {
    /// Reads an expression. `None`: it is none, or longer or deeper than allowed.
    pub fn parse(text: &str) -> Option<TagExpression> {
        let mut parser = Parser { rest: text, comparisons: 0, depth: Depth::up_to(DEPTH_MAX) };
        let expression = parser.any()?;
        parser.skip_space();
        parser.rest.is_empty().then_some(expression)
    }

    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        match self {
            TagExpression::Compare(comparison) => comparison.holds(tags),
            TagExpression::All(parts) => parts.iter().all(|part| part.holds(tags)),
            TagExpression::Any(parts) => parts.iter().any(|part| part.holds(tags)),
        }
    }

    /// Every comparison in it, in the order of the text.
    pub fn comparisons(&self) -> Vec<&TagComparison> {
        match self {
            TagExpression::Compare(comparison) => vec![comparison],
            TagExpression::All(parts) | TagExpression::Any(parts) => {
                parts.iter().flat_map(TagExpression::comparisons).collect()
            }
        }
    }

    /// The comparisons that must all hold; `None` if it is not made of those alone.
    pub fn conjunction(&self) -> Option<Vec<&TagComparison>> {
        match self {
            TagExpression::Compare(comparison) => Some(vec![comparison]),
            TagExpression::All(parts) => {
                let parts: Option<Vec<_>> = parts.iter().map(TagExpression::conjunction).collect();
                Some(parts?.concat())
            }
            TagExpression::Any(_) => None,
        }
    }
}

/// `any` is `all` or `all` ..., `all` is `one` and `one` ..., `one` is a comparison or `any` in parentheses.
struct Parser<'a> {
    rest: &'a str,
    comparisons: usize,
    depth: Depth,
}

/// What may follow each other, longest first.
const OPERATORS: [(&str, TagOperator); 6] = [
    ("<>", TagOperator::NotEqual),
    ("<=", TagOperator::AtMost),
    (">=", TagOperator::AtLeast),
    ("<", TagOperator::Less),
    (">", TagOperator::Greater),
    ("=", TagOperator::Equal),
];

impl<'a> Parser<'a> {
    fn any(&mut self) -> Option<TagExpression> {
        let mut parts = vec![self.all()?];
        while self.word("OR") {
            parts.push(self.all()?);
        }
        Some(only_or(parts, TagExpression::Any))
    }

    fn all(&mut self) -> Option<TagExpression> {
        let mut parts = vec![self.one()?];
        while self.word("AND") {
            parts.push(self.one()?);
        }
        Some(only_or(parts, TagExpression::All))
    }

    fn one(&mut self) -> Option<TagExpression> {
        self.skip_space();
        if !self.sign("(") {
            return self.comparison().map(TagExpression::Compare);
        }
        let level = self.depth.enter()?;
        let inner = self.any()?;
        drop(level);
        self.skip_space();
        self.sign(")").then_some(inner)
    }

    fn comparison(&mut self) -> Option<TagComparison> {
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return None;
        }
        let key = if self.rest.starts_with('"') { self.quoted('"')? } else { self.plain()? };
        self.skip_space();
        let operator = OPERATORS.iter().find(|(sign, _)| self.sign(sign))?.1;
        self.skip_space();
        let value = self.quoted('\'')?;
        Some(TagComparison { key, operator, value }).filter(|comparison| !comparison.key.is_empty())
    }

    /// A text in quotes; a quote inside it is written twice.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut rest = self.rest.strip_prefix(quote)?;
        let mut text = String::new();
        loop {
            let (before, after) = rest.split_once(quote)?;
            text.push_str(before);
            match after.strip_prefix(quote) {
                Some(more) => {
                    text.push(quote);
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Some(text);
                }
            }
        }
    }

    /// A key without quotes.
    fn plain(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "@_-.:/+".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!key.is_empty()).then(|| key.to_owned())
    }

    /// A word in any case, which ends where something else begins.
    fn word(&mut self, word: &str) -> bool {
        self.skip_space();
        let Some((found, rest)) = self.rest.split_at_checked(word.len()) else { return false };
        let is_it = found.eq_ignore_ascii_case(word) && !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_it {
            self.rest = rest;
        }
        is_it
    }

    fn sign(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

fn only_or(mut parts: Vec<TagExpression>, many: fn(Vec<TagExpression>) -> TagExpression) -> TagExpression {
    if parts.len() == 1 { parts.remove(0) } else { many(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn holds(text: &str, pairs: &[(&str, &str)]) -> bool {
        TagExpression::parse(text).unwrap_or_else(|| panic!("not an expression: {text}")).holds(&tags(pairs))
    }

    #[test]
    fn every_operator_on_less_equal_and_greater() {
        let table = [
            ("=", [false, true, false]),
            ("<>", [true, false, true]),
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
        ];
        for (sign, expected) in table {
            let found = ["a", "b", "c"].map(|value| holds(&format!("k {sign} 'b'"), &[("k", value)]));
            assert_eq!(found, expected, "{sign}");
            assert!(!holds(&format!("k{sign}'b'"), &[("K", "b")]), "a missing tag makes {sign} false");
        }
    }

    #[test]
    fn and_binds_closer_than_or() {
        let both = [("a", "1"), ("b", "2")];
        assert!(holds("a='1' OR a='2' AND b='3'", &both));
        assert!(!holds("(a='1' or a='2') and b='3'", &both));
        assert!(holds("\"a\"='1' AND(\"b\" = '2')", &both));
        assert!(holds("a >= '1' AND b < '20'", &both));
        // Values are texts.
        assert!(holds("k > '10'", &[("k", "9")]));
    }

    #[test]
    fn keys_and_values_may_be_anything_in_quotes() {
        assert!(holds("\"a b\"='it''s'", &[("a b", "it's")]));
        assert!(holds("k=''", &[("k", "")]));
        assert!(holds("\"or\"='and' OR \"and\" = ''", &[("or", "and")]));
        assert!(holds("order='1'", &[("order", "1")]));
    }

    #[test]
    fn what_is_no_expression() {
        let long = ["a='1'"; COMPARISONS_MAX + 1].join(" AND ");
        let deep = format!("{}a='1'{}", "(".repeat(DEPTH_MAX + 1), ")".repeat(DEPTH_MAX + 1));
        let bad = [
            "",
            " ",
            "a",
            "a=",
            "a=1",
            "='1'",
            "\"\"='1'",
            "a='1",
            "a=='1'",
            "a!='1'",
            "a='1' b='2'",
            "a='1' AND",
            "AND a='1'",
            "(a='1'",
            "a='1')",
            "()",
            "NOT a='1'",
            "a='1' ORb='2'",
            "'a'='1'",
            "ä='1'",
            &long,
            &deep,
        ];
        for text in bad {
            assert_eq!(TagExpression::parse(text), None, "{text}");
        }
        let deep = format!("{}a='1'{}", "(".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
        assert!(TagExpression::parse(&deep).is_some());
    }

    #[test]
    fn a_conjunction_has_no_choice() {
        let parts = |text: &str| TagExpression::parse(text).unwrap().conjunction().map(|parts| parts.len());
        assert_eq!(parts("a='1'"), Some(1));
        assert_eq!(parts("a='1' AND (b='2' AND c>'3')"), Some(3));
        assert_eq!(parts("a='1' OR b='2'"), None);
        assert_eq!(parts("a='1' AND (b='2' OR c='3')"), None);
    }

    /// Any text at all is an expression or none: no panic, no deep recursion, and what is read is within its limits.
    #[test]
    fn no_text_breaks_the_parser() {
        let pieces = ["(", ")", "a", "\"", "'", "=", "<", ">", "<>", " AND ", " or ", "x='1'", "ä", "@", "''", " "];
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize
        };
        let mut read = 0;
        for _ in 0..200_000 {
            let count = next() % 12;
            let text: String = (0..count).map(|_| pieces[next() % pieces.len()]).collect();
            if let Some(expression) = TagExpression::parse(&text) {
                read += 1;
                let comparisons = expression.comparisons();
                assert!((1..=COMPARISONS_MAX).contains(&comparisons.len()), "{text}");
                assert!(comparisons.iter().all(|comparison| !comparison.key.is_empty()), "{text}");
                expression.holds(&tags(&[("x", "1")]));
            }
        }
        assert!(read > 1_000, "only {read} of them were expressions");
        assert_eq!(TagExpression::parse(&"(".repeat(1_000_000)), None);
        assert_eq!(TagExpression::parse(&"a='1' AND ".repeat(100_000)), None);
    }
}
