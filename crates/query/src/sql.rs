//! The text of a query, read into a tree.

use std::fmt;

use concurrency::Depth;

use crate::evaluate::number_of;
use crate::json::Json;

/// An expression may nest this deep.
const DEPTH_MAX: usize = 64;
/// A query has at most this many bytes; from the REST reference.
const QUERY_BYTES_MAX: usize = 256 * 1024;

/// Why a text is no query that can be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    pub reason: String,
    /// Bytes before it.
    pub position: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.reason, self.position)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    pub columns: Columns,
    pub filter: Option<Expression>,
    pub limit: Option<u64>,
}

/// What a record is made into.
#[derive(Clone, PartialEq, Debug)]
pub enum Columns {
    All,
    Each(Vec<Column<Expression>>),
    /// One row for all records together.
    Totals(Vec<Column<Total>>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Column<T> {
    pub value: T,
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Total {
    pub kind: TotalKind,
    /// `None`: of the records themselves.
    pub of: Option<Expression>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TotalKind {
    Count,
    Sum,
    Average,
    Least,
    Most,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    Constant(Json),
    Path(Vec<Step>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Pair(Box<Expression>, Operator, Box<Expression>),
    /// Operators of one rank, from the left. As long as the text allows: a tree of pairs would be as deep as this is long.
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
    Between {
        value: Box<Expression>,
        least: Box<Expression>,
        most: Box<Expression>,
    },
    Like {
        text: Box<Expression>,
        pattern: Box<Expression>,
        escape: Option<char>,
    },
    OneOf(Box<Expression>, Vec<Expression>),
    IsNull(Box<Expression>),
    IsMissing(Box<Expression>),
    Cast(Box<Expression>, Type),
    Call(Function, Vec<Expression>),
}

/// One part of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Name(String),
    Index(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Join,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Integer,
    Float,
    Text,
    Bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    Lower,
    Upper,
    Length,
    Trim,
    Substring,
    Coalesce,
    NullIf,
}

impl Query {
    pub fn parse(text: &str) -> Result<Query, SyntaxError> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(SyntaxError { reason: "the query is too long".into(), position: QUERY_BYTES_MAX });
        }
        let mut parser =
            Parser { tokens: tokens(text)?, at: 0, depth: Depth::up_to(DEPTH_MAX), end: text.len(), table: Vec::new() };
        parser.query()
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    /// A name or a word of the language, as it was written; `true` if it was quoted.
    Word(String, bool),
    Number(f64),
    Text(String),
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 20] =
    ["<>", "!=", "<=", ">=", "||", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";", "[", "]"];

fn tokens(text: &str) -> Result<Vec<(Token, usize)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let position = text.len() - rest.len();
        let fault = |reason: &str| SyntaxError { reason: reason.into(), position };
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        let (token, after) = match first {
            '\'' => quoted(rest, '\'').map(|(text, after)| (Token::Text(text), after)),
            '"' => quoted(rest, '"').map(|(text, after)| (Token::Word(text, true), after)),
            '0'..='9' => number(rest),
            '_' | 'a'..='z' | 'A'..='Z' => {
                let end = rest.find(|char: char| char != '_' && !char.is_ascii_alphanumeric()).unwrap_or(rest.len());
                Some((Token::Word(rest[..end].to_owned(), false), &rest[end..]))
            }
            _ => SIGNS.iter().find_map(|sign| Some((Token::Sign(sign), rest.strip_prefix(sign)?))),
        }
        .ok_or_else(|| fault("this cannot be read"))?;
        tokens.push((token, position));
        rest = after;
    }
}

/// Text in quotes; two of them stand for one.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (part, after) = rest.split_once(quote)?;
        found.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                found.push(quote);
                rest = more;
            }
            None => return Some((found, after)),
        }
    }
}

fn number(text: &str) -> Option<(Token, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    if text[end..].starts_with('.') && digits(&text[end + 1..]) > 0 {
        end += 1 + digits(&text[end + 1..]);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[end + 1 + sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((Token::Number(text[..end].parse().ok()?), &text[end..]))
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: Depth,
    end: usize,
    /// The names that the table goes by; a path may begin with one.
    table: Vec<String>,
}

impl Parser {
    fn query(&mut self) -> Result<Query, SyntaxError> {
        self.want_word("SELECT")?;
        // The names of the table come after the columns that use them.
        let columns_at = self.at;
        self.columns()?;
        self.want_word("FROM")?;
        self.from()?;
        let after_from = self.at;
        self.at = columns_at;
        let columns = self.columns()?;
        self.at = after_from;
        let filter = if self.word("WHERE") { Some(self.expression()?) } else { None };
        let limit = if self.word("LIMIT") { Some(self.count()?) } else { None };
        self.sign(";");
        if self.at < self.tokens.len() {
            return Err(self.fault("the query should have ended"));
        }
        Ok(Query { columns, filter, limit })
    }

    fn from(&mut self) -> Result<(), SyntaxError> {
        let table = self.name()?;
        if !table.eq_ignore_ascii_case("BlobStorage") {
            self.at -= 1;
            return Err(self.fault("the table is called BlobStorage"));
        }
        if matches!(self.tokens.get(self.at), Some((Token::Sign("[" | "."), _))) {
            return Err(self.fault("a part of a record cannot be a table here"));
        }
        self.table.push(table);
        let has_as = self.word("AS");
        let is_end = ["WHERE", "LIMIT"].iter().any(|word| self.is_word(word));
        if has_as || matches!(self.tokens.get(self.at), Some((Token::Word(..), _))) && !is_end {
            let alias = self.name()?;
            self.table.push(alias);
        }
        Ok(())
    }

    fn columns(&mut self) -> Result<Columns, SyntaxError> {
        if self.sign("*") {
            return Ok(Columns::All);
        }
        let (mut each, mut totals) = (Vec::new(), Vec::new());
        loop {
            let total = self.total()?;
            let expression = if total.is_none() { Some(self.expression()?) } else { None };
            let name = if self.word("AS") { Some(self.name()?) } else { None };
            totals.extend(total.map(|value| Column { value, name: name.clone() }));
            each.extend(expression.map(|value| Column { value, name }));
            if !self.sign(",") {
                break;
            }
        }
        match (each.is_empty(), totals.is_empty()) {
            (_, true) => Ok(Columns::Each(each)),
            (true, false) => Ok(Columns::Totals(totals)),
            (false, false) => Err(self.fault("columns and totals cannot be mixed")),
        }
    }

    fn total(&mut self) -> Result<Option<Total>, SyntaxError> {
        let kinds = [
            ("COUNT", TotalKind::Count),
            ("SUM", TotalKind::Sum),
            ("AVG", TotalKind::Average),
            ("MIN", TotalKind::Least),
            ("MAX", TotalKind::Most),
        ];
        let is_called = matches!(self.tokens.get(self.at + 1), Some((Token::Sign("("), _)));
        let Some((_, kind)) = kinds.into_iter().find(|(name, _)| is_called && self.is_word(name)) else {
            return Ok(None);
        };
        self.at += 2;
        let of = if kind == TotalKind::Count && self.sign("*") { None } else { Some(self.expression()?) };
        self.want_sign(")")?;
        Ok(Some(Total { kind, of }))
    }

    fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.deeper(|parser| {
            parser.pairs(&[("OR", Operator::Or)], |parser| parser.pairs(&[("AND", Operator::And)], Parser::negation))
        })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Parser) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        let Some(_level) = self.depth.enter() else {
            return Err(self.fault("the expression is nested too deep"));
        };
        read(self)
    }

    /// Things with operators of one rank between them, from the left.
    fn pairs(
        &mut self,
        operators: &[(&str, Operator)],
        mut inner: impl FnMut(&mut Parser) -> Result<Expression, SyntaxError>,
    ) -> Result<Expression, SyntaxError> {
        let first = inner(self)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.word(text) || self.sign(text)) {
            rest.push((*operator, inner(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) })
    }

    fn negation(&mut self) -> Result<Expression, SyntaxError> {
        if self.word("NOT") {
            return self.deeper(|parser| Ok(Expression::Not(Box::new(parser.negation()?))));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expression, SyntaxError> {
        const COMPARISONS: [(&str, Operator); 7] = [
            ("=", Operator::Equal),
            ("<>", Operator::NotEqual),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::MoreOrEqual),
            ("<", Operator::Less),
            (">", Operator::More),
        ];
        let left = self.sum()?;
        if let Some((_, operator)) = COMPARISONS.iter().find(|(text, _)| self.sign(text)) {
            return Ok(Expression::Pair(Box::new(left), *operator, Box::new(self.sum()?)));
        }
        if self.word("IS") {
            let not = self.word("NOT");
            let left = Box::new(left);
            let found = if self.word("NULL") {
                Expression::IsNull(left)
            } else if self.word("MISSING") {
                Expression::IsMissing(left)
            } else {
                return Err(self.fault("NULL or MISSING should stand here"));
            };
            return Ok(negated(found, not));
        }
        let not = self.word("NOT");
        if self.word("LIKE") {
            let pattern = Box::new(self.sum()?);
            let escape = if self.word("ESCAPE") { Some(self.char()?) } else { None };
            return Ok(negated(Expression::Like { text: Box::new(left), pattern, escape }, not));
        }
        if self.word("IN") {
            self.want_sign("(")?;
            let list = self.list()?;
            return Ok(negated(Expression::OneOf(Box::new(left), list), not));
        }
        if self.word("BETWEEN") {
            let least = Box::new(self.sum()?);
            self.want_word("AND")?;
            let most = Box::new(self.sum()?);
            return Ok(negated(Expression::Between { value: Box::new(left), least, most }, not));
        }
        if not { Err(self.fault("LIKE, IN or BETWEEN should stand here")) } else { Ok(left) }
    }

    fn sum(&mut self) -> Result<Expression, SyntaxError> {
        let signs = [("+", Operator::Add), ("-", Operator::Subtract), ("||", Operator::Join)];
        let products = [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        self.pairs(&signs, |parser| parser.pairs(&products, Parser::unary))
    }

    fn unary(&mut self) -> Result<Expression, SyntaxError> {
        if self.sign("-") {
            return self.deeper(|parser| Ok(Expression::Negative(Box::new(parser.unary()?))));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        if self.sign("(") {
            let inner = self.expression()?;
            self.want_sign(")")?;
            return Ok(inner);
        }
        match self.tokens.get(self.at).map(|(token, _)| token.clone()) {
            Some(Token::Number(number)) => self.constant(number_of(Some(number))),
            Some(Token::Text(text)) => self.constant(Json::Text(text)),
            Some(Token::Word(word, false)) if is(&word, "NULL") => self.constant(Json::Null),
            Some(Token::Word(word, false)) if is(&word, "TRUE") => self.constant(Json::Bool(true)),
            Some(Token::Word(word, false)) if is(&word, "FALSE") => self.constant(Json::Bool(false)),
            Some(Token::Word(word, is_quoted)) => {
                let is_called = !is_quoted && matches!(self.tokens.get(self.at + 1), Some((Token::Sign("("), _)));
                if is_called { self.call(&word) } else { self.path() }
            }
            Some(Token::Sign(_)) | None => Err(self.fault("a value should stand here")),
        }
    }

    fn constant(&mut self, value: Json) -> Result<Expression, SyntaxError> {
        self.at += 1;
        Ok(Expression::Constant(value))
    }

    fn call(&mut self, name: &str) -> Result<Expression, SyntaxError> {
        let functions = [
            ("LOWER", Function::Lower, 1..=1),
            ("UPPER", Function::Upper, 1..=1),
            ("CHAR_LENGTH", Function::Length, 1..=1),
            ("CHARACTER_LENGTH", Function::Length, 1..=1),
            ("TRIM", Function::Trim, 1..=1),
            ("SUBSTRING", Function::Substring, 2..=3),
            ("COALESCE", Function::Coalesce, 1..=64),
            ("NULLIF", Function::NullIf, 2..=2),
        ];
        if is(name, "CAST") {
            self.at += 2;
            let inner = self.expression()?;
            self.want_word("AS")?;
            let to = self.cast_type()?;
            self.want_sign(")")?;
            return Ok(Expression::Cast(Box::new(inner), to));
        }
        let Some((_, function, arguments)) = functions.into_iter().find(|(known, ..)| is(name, known)) else {
            return Err(self.fault("there is no such function"));
        };
        self.at += 2;
        let given = self.list()?;
        if !arguments.contains(&given.len()) {
            return Err(self.fault("the function takes another number of arguments"));
        }
        Ok(Expression::Call(function, given))
    }

    fn cast_type(&mut self) -> Result<Type, SyntaxError> {
        let types = [
            ("INT", Type::Integer),
            ("INTEGER", Type::Integer),
            ("BIGINT", Type::Integer),
            ("FLOAT", Type::Float),
            ("DOUBLE", Type::Float),
            ("DECIMAL", Type::Float),
            ("NUMERIC", Type::Float),
            ("STRING", Type::Text),
            ("TEXT", Type::Text),
            ("VARCHAR", Type::Text),
            ("NVARCHAR", Type::Text),
            ("BOOL", Type::Bool),
            ("BOOLEAN", Type::Bool),
            ("BIT", Type::Bool),
        ];
        let found = types.into_iter().find(|(name, _)| self.word(name)).map(|(_, kind)| kind);
        found.ok_or_else(|| self.fault("there is no such type"))
    }

    /// Expressions up to the closing bracket.
    fn list(&mut self) -> Result<Vec<Expression>, SyntaxError> {
        let mut list = vec![self.expression()?];
        while self.sign(",") {
            list.push(self.expression()?);
        }
        self.want_sign(")")?;
        Ok(list)
    }

    fn path(&mut self) -> Result<Expression, SyntaxError> {
        let mut steps = vec![Step::Name(self.name()?)];
        loop {
            if self.sign(".") {
                steps.push(Step::Name(self.name()?));
            } else if self.sign("[") {
                let index = usize::try_from(self.count()?).unwrap_or(usize::MAX);
                self.want_sign("]")?;
                steps.push(Step::Index(index));
            } else {
                break;
            }
        }
        if let [Step::Name(first), _, ..] = steps.as_slice()
            && self.table.iter().any(|table| is(table, first))
        {
            steps.remove(0);
        }
        Ok(Expression::Path(steps))
    }

    fn name(&mut self) -> Result<String, SyntaxError> {
        match self.tokens.get(self.at) {
            Some((Token::Word(word, _), _)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.fault("a name should stand here")),
        }
    }

    fn count(&mut self) -> Result<u64, SyntaxError> {
        match self.tokens.get(self.at) {
            Some((Token::Number(number), _)) if *number >= 0.0 && number.fract() == 0.0 && *number < 1e15 => {
                let number = *number as u64;
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.fault("a whole number should stand here")),
        }
    }

    fn char(&mut self) -> Result<char, SyntaxError> {
        let text = match self.tokens.get(self.at) {
            Some((Token::Text(text), _)) => text.clone(),
            _ => String::new(),
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => {
                self.at += 1;
                Ok(char)
            }
            _ => Err(self.fault("one character should stand here")),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some((Token::Word(found, false), _)) if is(found, word))
    }

    fn word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is_there = matches!(self.tokens.get(self.at), Some((Token::Sign(found), _)) if *found == sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn want_word(&mut self, word: &str) -> Result<(), SyntaxError> {
        if self.word(word) { Ok(()) } else { Err(self.fault(&format!("{word} should stand here"))) }
    }

    fn want_sign(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.sign(sign) { Ok(()) } else { Err(self.fault(&format!("{sign} should stand here"))) }
    }

    fn fault(&self, reason: &str) -> SyntaxError {
        let position = self.tokens.get(self.at).map_or(self.end, |(_, position)| *position);
        SyntaxError { reason: reason.to_owned(), position }
    }
}

fn is(word: &str, wanted: &str) -> bool {
    word.eq_ignore_ascii_case(wanted)
}

fn negated(expression: Expression, not: bool) -> Expression {
    if not { Expression::Not(Box::new(expression)) } else { expression }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        for text in [
            "SELECT * from BlobStorage",
            "select * from blobstorage where id < 1;",
            "SELECT _1, \"a b\" AS c FROM BlobStorage AS b WHERE b._2 = 'it''s' AND NOT (x LIKE 'a%' OR y IS NULL) LIMIT 10",
            "SELECT COUNT(*), SUM(_1) AS s FROM BlobStorage s WHERE _1 BETWEEN 1 AND 2.5e3",
            "SELECT CAST(a.b[0] AS INT) + 1 * -2 FROM BlobStorage WHERE a IN (1, 'x') AND z NOT LIKE '!%' ESCAPE '!'",
            "SELECT LOWER(a) || 'x', COALESCE(a, b, 1) FROM BlobStorage WHERE a IS NOT MISSING",
        ] {
            assert!(Query::parse(text).is_ok(), "{text}: {:?}", Query::parse(text));
        }
        let query = Query::parse("SELECT a.b FROM BlobStorage a").unwrap();
        let path = Expression::Path(vec![Step::Name("b".into())]);
        assert_eq!(query.columns, Columns::Each(vec![Column { value: path, name: None }]));
        let rank = Query::parse("SELECT 1 + 2 * 3 FROM BlobStorage").unwrap().columns;
        assert!(
            matches!(rank, Columns::Each(columns) if matches!(&columns[0].value, Expression::Chain(_, rest) if rest[0].0 == Operator::Add))
        );
    }

    #[test]
    fn what_is_no_query_says_where() {
        for (text, position) in [
            ("", 0),
            ("SELECT", 6),
            ("SELECT FROM BlobStorage", 12),
            ("SELECT * FROM other", 14),
            ("SELECT * FROM BlobStorage[*].a", 25),
            ("SELECT * FROM BlobStorage WHERE", 31),
            ("SELECT * FROM BlobStorage LIMIT x", 32),
            ("SELECT * FROM BlobStorage LIMIT 1 2", 34),
            ("SELECT a, COUNT(*) FROM BlobStorage", 19),
            ("SELECT sleep(1) FROM BlobStorage", 7),
            ("SELECT 'open FROM BlobStorage", 7),
            ("SELECT \u{1} FROM BlobStorage", 7),
            ("DROP TABLE BlobStorage", 0),
        ] {
            assert_eq!(Query::parse(text).map_err(|error| error.position), Err(position), "{text}");
        }
    }

    /// Whatever is written, there is an answer.
    #[test]
    fn nothing_panics() {
        let text = "SELECT COUNT(*), \"q\"\"x\" AS n, CAST(a.b[1] AS INT) FROM BlobStorage b WHERE -1.5e2 <= 'ä''' || x AND NOT y IN (1) LIMIT 3;";
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            _ = Query::parse(&text[..at]);
            _ = Query::parse(&text[at..]);
            for other in ["(", "'", "\"", "1", "e", ".", "\u{0}", "ä", " NOT ", "["] {
                _ = Query::parse(&format!("{}{other}{}", &text[..at], &text[at..]));
            }
        }
        for deep in ["(", "-", "NOT ", "a + ", "a AND ", "CAST(", "COALESCE("] {
            assert!(Query::parse(&format!("SELECT {} FROM BlobStorage", deep.repeat(10_000))).is_err(), "{deep}");
        }
    }

    fn where_clause(condition: &str) -> Result<Query, SyntaxError> {
        Query::parse(&format!("SELECT * FROM BlobStorage WHERE {condition}"))
    }

    /// A row of operators uses up no levels, and what is too deep is refused wherever it stands.
    #[test]
    fn depth_is_counted_by_levels_alone() {
        for before in ["", "1+", "1 OR ", "1 AND 1 = 1 OR "] {
            for count in [1, 60, 64, 70, 300, 5_000] {
                let row = before.repeat(count);
                for deep in ["(", "-", "NOT ", "COALESCE(", "CAST(", "1 IN ("] {
                    assert!(where_clause(&format!("{row}{}", deep.repeat(2_000))).is_err(), "{before} {count} {deep}");
                }
            }
        }
        let nested = |levels: usize| format!("{}1=1{}", "(".repeat(levels), ")".repeat(levels));
        assert!(where_clause(&nested(DEPTH_MAX - 1)).is_ok());
        assert!(where_clause(&nested(DEPTH_MAX)).is_err());
        // The second time there is as much room as the first time.
        assert!(where_clause(&format!("{0} OR {0} OR {0}", nested(DEPTH_MAX - 1))).is_ok());
    }

    #[test]
    fn between_reads_its_operand_once() {
        let mut text = "1".to_owned();
        for _ in 0..24 {
            text = format!("({text}) BETWEEN 1 AND 2");
        }
        let query = where_clause(&text).unwrap();
        let written = format!("{query:?}");
        assert_eq!(written.matches("Between").count(), 24);
    }

    /// As long as a query may be, in one row: neither reading it nor letting it go needs a stack as long as it.
    #[test]
    fn long_rows_are_flat() {
        for row in ["1+", "1 OR ", "'a' || ", "1 AND "] {
            let text = row.repeat((QUERY_BYTES_MAX - 100) / row.len());
            let query = where_clause(&format!("{text} 1")).unwrap();
            drop(query.clone());
        }
    }
}
