//! Expressions over the tags of a blob: `"colour" = 'red' AND "size" >= '10'`.
//!
//! One grammar serves two callers. A condition (`x-ms-if-tags`) allows all of it. A search (Find Blobs by Tags) allows
//! comparisons joined by AND, and may name a container. Values are compared as texts, so `'9' > '10'`. A comparison
//! with a tag that the blob does not have is false.

use std::cmp::Ordering;
use std::fmt;

use crate::depth::Depth;

/// How many comparisons one expression may have. Azure takes about as many in a condition.
pub const COMPARISONS_MAX: usize = 1_000;
/// How deep parentheses may be nested.
pub const DEPTH_MAX: usize = 16;
/// The longest key and value in a search: those that a tag can have.
pub const KEY_CHARS_MAX: usize = 128;
pub const VALUE_CHARS_MAX: usize = 256;
/// The one name in a search that is not a tag's.
pub const CONTAINER: &str = "@container";

/// A parsed expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagExpression {
    Compare(TagComparison),
    /// All parts hold.
    All(Vec<TagExpression>),
    /// One part holds.
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
    /// Whether the operator holds for a tag's value that compares like this with the constant.
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

/// Why a text is not an expression, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagSyntaxError {
    /// The position of the first wrong character, from 1 on.
    pub position: usize,
    pub fault: TagFault,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagFault {
    /// The word or sign at the position; empty at the end of the text.
    Unexpected(String),
    Forbidden(char),
    KeyLength,
    ValueLength,
    Parameter(String),
}

/// In Azure's words; clients show it to people.
impl fmt::Display for TagSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error parsing query at or near character position {}: ", self.position)?;
        match &self.fault {
            TagFault::Unexpected(token) => write!(f, "unexpected '{token}'"),
            TagFault::Forbidden(c) => write!(f, "'{c}' not permitted in tag name or value"),
            TagFault::KeyLength => write!(f, "tag must be between 1 and {KEY_CHARS_MAX} characters in length"),
            TagFault::ValueLength => {
                write!(f, "tag value must be between 0 and {VALUE_CHARS_MAX} characters in length")
            }
            TagFault::Parameter(name) => write!(f, "unsupported parameter '{name}'"),
        }
    }
}

impl std::error::Error for TagSyntaxError {}

impl TagExpression {
    /// Parses a condition. `None`: it is invalid, or longer or deeper than allowed.
    pub fn parse(text: &str) -> Option<TagExpression> {
        Parser::new(text, Grammar::Condition).whole().ok()
    }

    /// Parses a search: comparisons that must all hold, in the order of the text.
    pub fn parse_search(text: &str) -> Result<Vec<TagComparison>, TagSyntaxError> {
        let mut comparisons = Vec::new();
        Parser::new(text, Grammar::Search).whole()?.collect(&mut comparisons);
        Ok(comparisons)
    }

    fn collect(self, into: &mut Vec<TagComparison>) {
        match self {
            TagExpression::Compare(comparison) => into.push(comparison),
            TagExpression::All(parts) | TagExpression::Any(parts) => {
                parts.into_iter().for_each(|part| part.collect(into));
            }
        }
    }

    pub fn holds(&self, tags: &[(String, String)]) -> bool {
        match self {
            TagExpression::Compare(comparison) => comparison.holds(tags),
            TagExpression::All(parts) => parts.iter().all(|part| part.holds(tags)),
            TagExpression::Any(parts) => parts.iter().any(|part| part.holds(tags)),
        }
    }
}

/// Which of the two callers asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grammar {
    Condition,
    Search,
}

/// `any` is `all` or `all` ..., `all` is `one` and `one` ..., `one` is a comparison or `any` in parentheses.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    grammar: Grammar,
    comparisons: usize,
    depth: Depth,
}

/// The operators, longest first.
const OPERATORS: [(&str, TagOperator); 6] = [
    ("<>", TagOperator::NotEqual),
    ("<=", TagOperator::AtMost),
    (">=", TagOperator::AtLeast),
    ("<", TagOperator::Less),
    (">", TagOperator::Greater),
    ("=", TagOperator::Equal),
];

impl<'a> Parser<'a> {
    fn new(text: &'a str, grammar: Grammar) -> Parser<'a> {
        Parser { text, rest: text, grammar, comparisons: 0, depth: Depth::up_to(DEPTH_MAX) }
    }

    fn whole(mut self) -> Result<TagExpression, TagSyntaxError> {
        let expression = self.any()?;
        self.skip_space();
        if self.rest.is_empty() { Ok(expression) } else { Err(self.unexpected()) }
    }

    fn any(&mut self) -> Result<TagExpression, TagSyntaxError> {
        let mut parts = vec![self.all()?];
        loop {
            self.skip_space();
            let before = self.rest;
            if !self.word("OR") {
                return Ok(only_or(parts, TagExpression::Any));
            }
            if self.grammar == Grammar::Search {
                self.rest = before;
                return Err(self.unexpected());
            }
            parts.push(self.all()?);
        }
    }

    fn all(&mut self) -> Result<TagExpression, TagSyntaxError> {
        let mut parts = vec![self.one()?];
        while self.word("AND") {
            parts.push(self.one()?);
        }
        Ok(only_or(parts, TagExpression::All))
    }

    fn one(&mut self) -> Result<TagExpression, TagSyntaxError> {
        self.skip_space();
        if !self.rest.starts_with('(') {
            return self.comparison().map(TagExpression::Compare);
        }
        let Some(level) = self.depth.enter() else { return Err(self.unexpected()) };
        self.sign("(");
        let inner = self.any()?;
        drop(level);
        self.skip_space();
        if self.sign(")") { Ok(inner) } else { Err(self.unexpected()) }
    }

    fn comparison(&mut self) -> Result<TagComparison, TagSyntaxError> {
        if self.comparisons >= COMPARISONS_MAX {
            return Err(self.unexpected());
        }
        self.comparisons += 1;
        let key = self.key()?;
        self.skip_space();
        let before = self.rest;
        let operator = OPERATORS.iter().find(|(sign, _)| self.sign(sign)).map(|(_, operator)| *operator);
        let operator = match (operator, self.grammar) {
            (Some(TagOperator::NotEqual), Grammar::Search) | (None, _) => {
                self.rest = before;
                return Err(self.unexpected());
            }
            (Some(operator), _) => operator,
        };
        self.skip_space();
        let value = self.value()?;
        Ok(TagComparison { key, operator, value })
    }

    /// A key: in quotes it may have every character that a tag may have.
    fn key(&mut self) -> Result<String, TagSyntaxError> {
        let before = self.rest;
        let key = if before.starts_with('"') { self.quoted('"')? } else { self.plain()? };
        let fault = match key.chars().find(|c| !is_tag_char(*c)) {
            // Only a search may compare something else than tags.
            Some('@') if key.starts_with('@') && self.grammar == Grammar::Search && key != CONTAINER => {
                Some(TagFault::Parameter(key.clone()))
            }
            Some('@') if key == CONTAINER && self.grammar == Grammar::Search => None,
            Some(c) => Some(TagFault::Forbidden(c)),
            None if key.is_empty() || self.grammar == Grammar::Search && key.chars().count() > KEY_CHARS_MAX => {
                Some(TagFault::KeyLength)
            }
            None => None,
        };
        fault.map_or(Ok(key), |fault| Err(self.at(before, fault)))
    }

    fn value(&mut self) -> Result<String, TagSyntaxError> {
        let before = self.rest;
        let value = self.quoted('\'')?;
        let fault = match value.chars().find(|c| !is_tag_char(*c)) {
            Some(c) => Some(TagFault::Forbidden(c)),
            None if self.grammar == Grammar::Search && value.chars().count() > VALUE_CHARS_MAX => {
                Some(TagFault::ValueLength)
            }
            None => None,
        };
        fault.map_or(Ok(value), |fault| Err(self.at(before, fault)))
    }

    /// A text in quotes; a quote inside it is written twice.
    fn quoted(&mut self, quote: char) -> Result<String, TagSyntaxError> {
        let Some(mut rest) = self.rest.strip_prefix(quote) else { return Err(self.unexpected()) };
        let mut text = String::new();
        loop {
            let Some((before, after)) = rest.split_once(quote) else { return Err(self.unexpected()) };
            text.push_str(before);
            match after.strip_prefix(quote) {
                Some(more) => {
                    text.push(quote);
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Ok(text);
                }
            }
        }
    }

    /// A key without quotes.
    fn plain(&mut self) -> Result<String, TagSyntaxError> {
        let end = self.rest.find(|c| !is_plain(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.unexpected());
        }
        let (key, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(key.to_owned())
    }

    /// The fault that the next word or sign must not stand here.
    fn unexpected(&self) -> TagSyntaxError {
        let word = self.rest.find(|c| !is_plain(c)).unwrap_or(self.rest.len());
        let sign = OPERATORS.iter().find(|(sign, _)| self.rest.starts_with(sign)).map(|(sign, _)| sign.len());
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let length = if word > 0 { word } else { sign.unwrap_or(first) };
        let token = self.rest.get(..length).unwrap_or_default().to_owned();
        self.at(self.rest, TagFault::Unexpected(token))
    }

    /// A fault at the position where `rest` begins.
    fn at(&self, rest: &str, fault: TagFault) -> TagSyntaxError {
        let before = self.text.get(..self.text.len() - rest.len()).unwrap_or_default();
        TagSyntaxError { position: before.chars().count() + 1, fault }
    }

    /// Consumes a word, in any case, if it follows as a whole word.
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

/// The characters of a key without quotes.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '@'
}

/// The characters that keys and values of tags can have.
pub fn is_tag_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-./:=_".contains(c)
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
        assert!(holds("\"a b\"='1+1=2'", &[("a b", "1+1=2")]));
        assert!(holds("\"a-b.c/d:e=f+g\" = 'x'", &[("a-b.c/d:e=f+g", "x")]));
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
            "a-b='1'",
            "@container='1'",
            "\"a\"\"b\"='1'",
            "a='it''s'",
            "a='*'",
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
    fn conditions_may_be_long_and_have_long_values() {
        let of = |count: usize| vec!["a='1'"; count].join(" OR ");
        assert!(TagExpression::parse(&of(COMPARISONS_MAX)).is_some());
        assert!(TagExpression::parse(&of(COMPARISONS_MAX + 1)).is_none());
        assert!(TagExpression::parse(&format!("{}='{}'", "k".repeat(129), "v".repeat(257))).is_some());
    }

    #[test]
    fn a_search_has_no_choice_and_may_name_a_container() {
        let parts = |text: &str| TagExpression::parse_search(text).map(|parts| parts.len()).map_err(|e| e.to_string());
        assert_eq!(parts("a='1'"), Ok(1));
        assert_eq!(parts("a='1' AND (b='2' AND c>'3')"), Ok(3));
        assert_eq!(parts("@container = 'x' AND \"a b\" >= ''"), Ok(2));
        assert_eq!(parts(&format!("{}='{}'", "k".repeat(128), "v".repeat(256))), Ok(1));
    }

    /// The messages are Azure's.
    #[test]
    fn why_and_where_a_search_is_none() {
        let near = |position: usize, what: &str| {
            format!("Error parsing query at or near character position {position}: {what}")
        };
        let long_key = format!("{}='1'", "k".repeat(129));
        let long_value = format!("a = '{}'", "v".repeat(257));
        let bad = [
            ("a-b='value1'", 2, "unexpected '-'"),
            ("a='1' OR b='2'", 7, "unexpected 'OR'"),
            ("a<>'1'", 2, "unexpected '<>'"),
            ("a='1' AND", 10, "unexpected ''"),
            ("a=1", 3, "unexpected '1'"),
            ("a='1' b='2'", 7, "unexpected 'b'"),
            ("ä='1'", 1, "unexpected 'ä'"),
            ("a='ä' AND b=='1'", 3, "'ä' not permitted in tag name or value"),
            ("\"ä\"='1' ", 1, "'ä' not permitted in tag name or value"),
            ("a='*'", 3, "'*' not permitted in tag name or value"),
            ("a='1' AND @other='2'", 11, "unsupported parameter '@other'"),
            (&long_key, 1, "tag must be between 1 and 128 characters in length"),
            ("\"\"='1'", 1, "tag must be between 1 and 128 characters in length"),
            (&long_value, 5, "tag value must be between 0 and 256 characters in length"),
        ];
        for (text, position, what) in bad {
            let said = TagExpression::parse_search(text).expect_err(text).to_string();
            assert_eq!(said, near(position, what), "{text}");
        }
    }

    /// Any text can be parsed or is refused: no panic, no deep recursion, and the result is within the limits.
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
                expression.holds(&tags(&[("x", "1")]));
                let mut comparisons = Vec::new();
                expression.collect(&mut comparisons);
                assert!((1..=COMPARISONS_MAX).contains(&comparisons.len()), "{text}");
                assert!(comparisons.iter().all(|comparison| !comparison.key.is_empty()), "{text}");
            }
            if let Err(error) = TagExpression::parse_search(&text) {
                assert!((1..=text.chars().count() + 1).contains(&error.position), "{text}: {error}");
            }
        }
        assert!(read > 1_000, "only {read} of them were expressions");
        assert_eq!(TagExpression::parse(&"(".repeat(1_000_000)), None);
        assert_eq!(TagExpression::parse(&"a='1' AND ".repeat(100_000)), None);
    }
}
