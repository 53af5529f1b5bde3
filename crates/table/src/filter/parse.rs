//! Parses filters. No text makes the parser panic, or recurse deeper than [`DEPTH_MAX`].

use concurrency::Depth;

use super::{Filter, Name, Operator};
use crate::entity::value::{Value, parse_guid, parse_hex, parse_instant};
use crate::entity::{PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::error::TableError;

/// How deep parentheses and `not` may be nested.
pub const DEPTH_MAX: usize = 64;
/// How many comparisons a filter may have. The reference promises 15; clients send more when they ask for many keys at
/// once.
pub const COMPARISONS_MAX: usize = 512;

impl Filter {
    /// Parses a filter. `None`: it is empty, so it holds for everything.
    pub fn parse(text: &str) -> Result<Option<Filter>, TableError> {
        let mut parser = Parser { rest: text, token: Token::End, depth: Depth::up_to(DEPTH_MAX), comparisons: 0 };
        parser.advance()?;
        if parser.token == Token::End {
            return Ok(None);
        }
        let filter = parser.either()?;
        match parser.token {
            Token::End => Ok(Some(filter)),
            _ => Err(SYNTAX),
        }
    }
}

const SYNTAX: TableError = TableError::InvalidInput("A syntax error in $filter.");
const NO_SUCH_FUNCTION: TableError = TableError::NotImplemented("$filter has no functions and no arithmetic.");

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Constant(Value<'static>),
    Open,
    Close,
    End,
}

struct Parser<'a> {
    rest: &'a str,
    token: Token<'a>,
    depth: Depth,
    comparisons: usize,
}

/// The grammar, one function for each of its lines.
impl<'a> Parser<'a> {
    fn either(&mut self) -> Result<Filter, TableError> {
        let mut parts = vec![self.both()?];
        while self.takes("or")? {
            parts.push(self.both()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::Any(parts) })
    }

    fn both(&mut self) -> Result<Filter, TableError> {
        let mut parts = vec![self.unit()?];
        while self.takes("and")? {
            parts.push(self.unit()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::All(parts) })
    }

    fn unit(&mut self) -> Result<Filter, TableError> {
        if self.takes("not")? {
            return self.deeper(|parser| Ok(Filter::Not(Box::new(parser.unit()?))));
        }
        if self.token != Token::Open {
            return self.comparison();
        }
        self.advance()?;
        let inner = self.deeper(Parser::either)?;
        if self.token != Token::Close {
            return Err(SYNTAX);
        }
        self.advance()?;
        Ok(inner)
    }

    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Result<Filter, TableError>) -> Result<Filter, TableError> {
        let Some(_level) = self.depth.enter() else {
            return Err(TableError::InvalidInput("$filter is nested too deeply."));
        };
        inner(self)
    }

    fn comparison(&mut self) -> Result<Filter, TableError> {
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return Err(TableError::InvalidInput("$filter has too many comparisons."));
        }
        let left = self.operand()?;
        let Some(operator) = self.operator()? else {
            return match left {
                // A boolean property is a comparison by itself, and so is `true` or `false`.
                Operand::Property(property) => {
                    Ok(Filter::Compare { property, operator: Operator::Eq, constant: Value::Boolean(true) })
                }
                Operand::Constant(Value::Boolean(true)) => Ok(Filter::All(Vec::new())),
                Operand::Constant(Value::Boolean(false)) => Ok(Filter::Any(Vec::new())),
                Operand::Constant(_) => Err(SYNTAX),
            };
        };
        match (left, self.operand()?) {
            (Operand::Property(property), Operand::Constant(constant)) => {
                Ok(Filter::Compare { property, operator, constant })
            }
            (Operand::Constant(constant), Operand::Property(property)) => {
                Ok(Filter::Compare { property, operator: operator.turned(), constant })
            }
            _ => Err(TableError::InvalidInput("A comparison in $filter must be of a property with a constant.")),
        }
    }

    fn operand(&mut self) -> Result<Operand, TableError> {
        let operand = match std::mem::replace(&mut self.token, Token::End) {
            Token::Constant(constant) => Operand::Constant(constant),
            Token::Word(PARTITION_KEY) => Operand::Property(Name::PartitionKey),
            Token::Word(ROW_KEY) => Operand::Property(Name::RowKey),
            Token::Word(TIMESTAMP) => Operand::Property(Name::Timestamp),
            Token::Word(word) if !KEYWORDS.contains(&word) => {
                if self.rest.trim_start().starts_with('(') {
                    return Err(NO_SUCH_FUNCTION);
                }
                Operand::Property(Name::Other(word.to_owned()))
            }
            Token::Word(_) | Token::Open | Token::Close | Token::End => return Err(SYNTAX),
        };
        self.advance()?;
        Ok(operand)
    }

    fn operator(&mut self) -> Result<Option<Operator>, TableError> {
        let Token::Word(word) = self.token else { return Ok(None) };
        let operator = match word {
            "eq" => Operator::Eq,
            "ne" => Operator::Ne,
            "gt" => Operator::Gt,
            "ge" => Operator::Ge,
            "lt" => Operator::Lt,
            "le" => Operator::Le,
            "add" | "sub" | "mul" | "div" | "mod" => return Err(NO_SUCH_FUNCTION),
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(operator))
    }

    /// Whether the next word is this one; if so, it is consumed.
    fn takes(&mut self, word: &str) -> Result<bool, TableError> {
        let is_next = self.token == Token::Word(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }
}

const KEYWORDS: [&str; 9] = ["eq", "ne", "gt", "ge", "lt", "le", "and", "or", "not"];

enum Operand {
    Property(Name),
    Constant(Value<'static>),
}

/// Tokens.
impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<(), TableError> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.token = match self.rest.chars().next() {
            None => Token::End,
            Some('(') => {
                self.rest = &self.rest[1..];
                Token::Open
            }
            Some(')') => {
                self.rest = &self.rest[1..];
                Token::Close
            }
            Some('\'') => Token::Constant(Value::String(self.quoted()?.into())),
            Some(first) if first.is_alphabetic() || first == '_' => self.word()?,
            Some(first) if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') => {
                Token::Constant(self.number().ok_or(SYNTAX)?)
            }
            Some(_) => return Err(SYNTAX),
        };
        Ok(())
    }

    /// A word, or a constant that begins with one: `datetime'...'`.
    fn word(&mut self) -> Result<Token<'a>, TableError> {
        let word = self.split(|char| char.is_alphanumeric() || char == '_');
        if !self.rest.starts_with('\'') {
            return Ok(match word {
                truth if truth.eq_ignore_ascii_case("true") => Token::Constant(Value::Boolean(true)),
                truth if truth.eq_ignore_ascii_case("false") => Token::Constant(Value::Boolean(false)),
                "NaN" => Token::Constant(Value::Double(f64::NAN)),
                "INF" => Token::Constant(Value::Double(f64::INFINITY)),
                _ => Token::Word(word),
            });
        }
        let text = self.quoted()?;
        let constant = match word {
            // Times that no entity can have are allowed in comparisons: .NET's smallest time is in the year 1.
            "datetime" => parse_instant(&text).map(Value::DateTime),
            "guid" => parse_guid(&text).map(Value::Guid),
            "X" | "x" | "binary" => parse_hex(&text).map(|bytes| Value::Binary(bytes.into())),
            _ => None,
        };
        constant.map(Token::Constant).ok_or(TableError::InvalidInput("A constant in $filter is not valid."))
    }

    /// A quoted text, in which two quotes stand for one.
    fn quoted(&mut self) -> Result<String, TableError> {
        let mut text = String::new();
        let mut rest = self.rest.strip_prefix('\'').ok_or(SYNTAX)?;
        loop {
            let (part, after) = rest.split_once('\'').ok_or(SYNTAX)?;
            text.push_str(part);
            let Some(more) = after.strip_prefix('\'') else {
                self.rest = after;
                return Ok(text);
            };
            text.push('\'');
            rest = more;
        }
    }

    /// `42`, `42L`, `4.2`, `4e2`, `4.2d`, `-INF`.
    fn number(&mut self) -> Option<Value<'static>> {
        if let Some(rest) = self.rest.strip_prefix("-INF") {
            self.rest = rest;
            return Some(Value::Double(f64::NEG_INFINITY));
        }
        let bytes = self.rest.as_bytes();
        let mut length = 0;
        while let Some(byte) = bytes.get(length) {
            let follows_exponent = length > 0 && matches!(bytes[length - 1], b'e' | b'E');
            let is_part = match byte {
                b'0'..=b'9' | b'.' | b'e' | b'E' => true,
                b'+' | b'-' => length == 0 || follows_exponent,
                _ => false,
            };
            if !is_part {
                break;
            }
            length += 1;
        }
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let suffix = self.split(|char| char.is_alphanumeric() || char == '_');
        match suffix {
            "" if digits.contains(['.', 'e', 'E']) => finite(digits),
            // A number that does not fit 32 bits is taken for a 64-bit integer.
            "" => digits.parse().map(Value::Int32).or_else(|_| digits.parse().map(Value::Int64)).ok(),
            "L" | "l" => digits.parse().ok().map(Value::Int64),
            "d" | "D" | "f" | "F" => finite(digits),
            _ => None,
        }
    }

    fn split(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|char| !is_part(char)).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        self.rest = rest;
        part
    }
}

fn finite(digits: &str) -> Option<Value<'static>> {
    digits.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Double)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operator::{Eq, Ge, Gt, Le, Lt, Ne};
    use concurrency::Timestamp;

    fn parse(text: &str) -> Filter {
        Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).expect("not empty")
    }

    fn compare(property: &str, operator: Operator, constant: Value<'static>) -> Filter {
        Filter::Compare { property: Name::Other(property.into()), operator, constant }
    }

    fn is(property: &str) -> Filter {
        compare(property, Eq, Value::Boolean(true))
    }

    #[test]
    fn precedence() {
        let table = [
            ("a", is("a")),
            ("a and b or c", Filter::Any(vec![Filter::All(vec![is("a"), is("b")]), is("c")])),
            ("a or b and c", Filter::Any(vec![is("a"), Filter::All(vec![is("b"), is("c")])])),
            ("(a or b) and c", Filter::All(vec![Filter::Any(vec![is("a"), is("b")]), is("c")])),
            ("not a and b", Filter::All(vec![Filter::Not(Box::new(is("a"))), is("b")])),
            ("not (a and b)", Filter::Not(Box::new(Filter::All(vec![is("a"), is("b")])))),
            ("not not a", Filter::Not(Box::new(Filter::Not(Box::new(is("a")))))),
            ("not a eq 1", Filter::Not(Box::new(compare("a", Eq, Value::Int32(1))))),
            ("((a))", is("a")),
            ("not(a)", Filter::Not(Box::new(is("a")))),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn operators_and_sides() {
        for (word, operator, turned) in
            [("eq", Eq, Eq), ("ne", Ne, Ne), ("gt", Gt, Lt), ("ge", Ge, Le), ("lt", Lt, Gt), ("le", Le, Ge)]
        {
            assert_eq!(parse(&format!("p {word} 1")), compare("p", operator, Value::Int32(1)));
            assert_eq!(parse(&format!("1 {word} p")), compare("p", turned, Value::Int32(1)));
        }
    }

    #[test]
    fn constants() {
        let table = [
            ("'it''s'", Value::String("it's".into())),
            ("''", Value::String("".into())),
            ("''''", Value::String("'".into())),
            ("'a and b'", Value::String("a and b".into())),
            ("42", Value::Int32(42)),
            ("-42", Value::Int32(-42)),
            ("42L", Value::Int64(42)),
            ("-9223372036854775808L", Value::Int64(i64::MIN)),
            ("5000000000", Value::Int64(5_000_000_000)),
            ("4.5", Value::Double(4.5)),
            ("1e3", Value::Double(1000.0)),
            ("1E-3", Value::Double(0.001)),
            ("4d", Value::Double(4.0)),
            ("INF", Value::Double(f64::INFINITY)),
            ("-INF", Value::Double(f64::NEG_INFINITY)),
            ("true", Value::Boolean(true)),
            ("false", Value::Boolean(false)),
            (
                "guid'00000000-0000-0000-0000-0000000000ff'",
                Value::Guid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255]),
            ),
            ("X'0aFF'", Value::Binary(vec![10, 255].into())),
            ("binary''", Value::Binary(vec![].into())),
            ("True", Value::Boolean(true)),
            ("FALSE", Value::Boolean(false)),
            ("datetime'1601-01-01T00:00:00Z'", Value::DateTime(crate::entity::value::FIRST_TIME)),
            ("datetime'0001-01-01T00:00:00Z'", Value::DateTime(Timestamp(0))),
            ("datetime'0001-01-01T00:00:00.000000001Z'", Value::DateTime(Timestamp(0))),
        ];
        for (text, constant) in table {
            assert_eq!(parse(&format!("p eq {text}")), compare("p", Eq, constant), "{text}");
        }
    }

    #[test]
    fn a_truth_may_stand_alone() {
        let (everything, nothing) = (Filter::All(vec![]), Filter::Any(vec![]));
        for text in ["true", "True", "TRUE", "(true)"] {
            assert_eq!(parse(text), everything, "{text}");
        }
        for text in ["false", "False", "FALSE"] {
            assert_eq!(parse(text), nothing, "{text}");
        }
        assert_eq!(parse("false or a"), Filter::Any(vec![nothing.clone(), is("a")]));
        assert_eq!(parse("a and not false"), Filter::All(vec![is("a"), Filter::Not(Box::new(nothing))]));
    }

    #[test]
    fn nothing_is_no_filter() {
        assert_eq!(Filter::parse(""), Ok(None));
        assert_eq!(Filter::parse("  \t "), Ok(None));
    }

    #[test]
    fn what_is_not_a_filter() {
        for text in [
            "p eq",
            "eq 1",
            "p eq 1 and",
            "p eq 1 q eq 2",
            "(p eq 1",
            "p eq 1)",
            "()",
            "not",
            "p EQ 1",
            "p eq 1 AND q eq 2",
            "p eq 'a",
            "p eq \"a\"",
            "p eq 1x",
            "p eq 1.2.3",
            "p eq --1",
            "p eq 1e999",
            "p eq 99999999999999999999",
            "p eq 9223372036854775808L",
            "p eq guid'x'",
            "p eq datetime'x'",
            "p eq X'abc'",
            "p eq foo'x'",
            "p eq'a'",
            "1 eq 1",
            "true eq true",
            "p eq q",
            "'a'",
            "1",
            "p = 1",
            "p eq 1;",
            "\0",
            "and",
            "p eq ()",
            "p eq eq",
        ] {
            assert!(matches!(Filter::parse(text), Err(TableError::InvalidInput(_))), "{text}");
        }
        for text in ["startswith(p,'a')", "p add 1 eq 2", "substringof('a',p) eq true", "length (p) eq 1"] {
            assert!(matches!(Filter::parse(text), Err(TableError::NotImplemented(_))), "{text}");
        }
    }

    #[test]
    fn depth_and_length_have_an_end() {
        for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")")] {
            let text = |depth: usize| format!("{}p{}", open.repeat(depth), close.repeat(depth));
            assert!(Filter::parse(&text(DEPTH_MAX / 2)).is_ok(), "{open}");
            assert!(Filter::parse(&text(DEPTH_MAX + 1)).is_err(), "{open}");
            assert!(Filter::parse(&text(100_000)).is_err(), "{open}");
        }
        let text = |count: usize| vec!["p"; count].join(" or ");
        assert!(Filter::parse(&text(COMPARISONS_MAX)).is_ok());
        assert!(Filter::parse(&text(COMPARISONS_MAX + 1)).is_err());
    }
}
