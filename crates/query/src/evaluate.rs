//! What an expression is worth for one record.
//!
//! Values of the record and of the query are borrowed. What is made of them costs steps, a byte each, and there are only so
//! many for a record: so neither the time nor the memory that an expression takes is left to who wrote it.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use crate::VALUE_BYTES_MAX;
use crate::json::Json;
use crate::sql::{Expression, Function, Operator, Step, Type};

/// A record as it was read.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// Each of them a text.
    Fields(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// A record with what is known of all of them.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub record: &'a Record,
    /// The names of the columns, if the first record has said them.
    pub headers: Option<&'a [String]>,
    pub steps: &'a Steps,
}

/// How many steps may still be done.
#[derive(Debug)]
pub struct Steps(Cell<u64>);

/// Why a record has no answer. The others may have one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    pub name: &'static str,
    pub description: String,
    /// No record can have one.
    pub fatal: bool,
}

/// A value. `None` is a member that a record does not have.
pub type Value<'a> = Option<Cow<'a, Json>>;

impl Steps {
    pub fn new(most: u64) -> Steps {
        Steps(Cell::new(most))
    }

    pub fn left(&self) -> u64 {
        self.0.get()
    }

    pub fn spend(&self, steps: usize) -> Result<(), Trouble> {
        let left = self.0.get().checked_sub(steps as u64);
        self.0.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| fatal("QueryTooComplex", "The query needs more work than one may take."))
    }
}

impl<'a> Row<'a> {
    pub fn value(&self, expression: &'a Expression) -> Result<Value<'a>, Trouble> {
        let value = self.worth(expression)?;
        let weight = weight(&value);
        if matches!(value, Some(Cow::Owned(_))) && weight > VALUE_BYTES_MAX {
            return Err(too_long());
        }
        self.steps.spend(1 + weight)?;
        Ok(value)
    }

    fn worth(&self, expression: &'a Expression) -> Result<Value<'a>, Trouble> {
        Ok(match expression {
            Expression::Constant(value) => Some(Cow::Borrowed(value)),
            Expression::Path(steps) => self.path(steps)?.map(Cow::Borrowed),
            Expression::Not(inner) => truth(self.is_true(inner)?.map(|value| !value)),
            Expression::Negative(inner) => made(number_of(as_number(&self.value(inner)?).map(|number| -number))),
            Expression::Pair(left, operator, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.combined(&left, *operator, &right)?
            }
            Expression::Chain(first, rest) => self.chain(first, rest)?,
            Expression::Between { value, least, most } => {
                let value = self.value(value)?;
                let from = self.compared(&value, &self.value(least)?)?.map(Ordering::is_ge);
                let to = self.compared(&value, &self.value(most)?)?.map(Ordering::is_le);
                truth(both(from, to))
            }
            Expression::Like { text, pattern, escape } => {
                let (text, pattern) = (self.value(text)?, self.value(pattern)?);
                match (as_text(&text), as_text(&pattern)) {
                    (Some(text), Some(pattern)) => truth(Some(is_like(&text, &pattern, *escape, self.steps)?)),
                    _ => truth(None),
                }
            }
            Expression::OneOf(value, list) => {
                let value = self.value(value)?;
                let mut found = Some(false);
                for other in list {
                    match self.compared(&value, &self.value(other)?)?.map(Ordering::is_eq) {
                        Some(true) => return Ok(truth(Some(true))),
                        Some(false) => {}
                        None => found = None,
                    }
                }
                truth(found)
            }
            Expression::IsNull(inner) => truth(Some(is_null(&self.value(inner)?))),
            Expression::IsMissing(inner) => truth(Some(self.value(inner)?.is_none())),
            Expression::Cast(inner, to) => cast(&self.value(inner)?, *to)?,
            Expression::Call(function, arguments) => self.call(*function, arguments)?,
        })
    }

    /// `None`: it cannot be said.
    pub fn is_true(&self, expression: &'a Expression) -> Result<Option<bool>, Trouble> {
        Ok(match self.value(expression)?.as_deref() {
            Some(Json::Bool(value)) => Some(*value),
            Some(Json::Text(text)) if text.eq_ignore_ascii_case("true") => Some(true),
            Some(Json::Text(text)) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        })
    }

    fn path(&self, steps: &[Step]) -> Result<Option<&'a Json>, Trouble> {
        match self.record {
            Record::Fields(fields) => self.field(fields, steps).map(Some),
            Record::Object(members) => self.follow(members, steps.iter()),
        }
    }

    /// What stands at the end of a path. It may be much longer than anything nests, so it ends where there is nothing.
    fn follow<'s>(
        &self,
        members: &'a [(String, Json)],
        mut steps: impl Iterator<Item = &'s Step>,
    ) -> Result<Option<&'a Json>, Trouble> {
        let Some(Step::Name(first)) = steps.next() else { return Ok(None) };
        let mut found = self.member(members, first)?;
        while let Some(value) = found
            && let Some(step) = steps.next()
        {
            found = match (step, value) {
                (Step::Name(name), Json::Object(members)) => self.member(members, name)?,
                (Step::Index(index), Json::Array(values)) => values.get(*index),
                _ => None,
            };
        }
        Ok(found)
    }

    fn member(&self, members: &'a [(String, Json)], name: &str) -> Result<Option<&'a Json>, Trouble> {
        let at = members.iter().position(|(known, _)| known == name);
        self.steps.spend(at.unwrap_or(members.len()))?;
        Ok(at.map(|at| &members[at].1))
    }

    fn field(&self, fields: &'a [Json], steps: &[Step]) -> Result<&'a Json, Trouble> {
        let [Step::Name(name)] = steps else {
            return Err(fatal("UnresolvedColumn", "Columns of delimited text have no parts."));
        };
        let ordinal =
            name.strip_prefix('_').and_then(|digits| digits.parse::<usize>().ok()).filter(|number| *number > 0);
        let headers = self.headers.unwrap_or_default();
        let by_name = headers.iter().position(|header| header == name);
        self.steps.spend(by_name.unwrap_or(headers.len()))?;
        let at = match (by_name, ordinal) {
            (Some(at), _) => at,
            (None, Some(ordinal)) => ordinal - 1,
            (None, None) => {
                return Err(fatal("UnresolvedColumn", format!("There is no column {name}.")));
            }
        };
        fields.get(at).ok_or_else(|| Trouble {
            name: "InvalidColumnOrdinal",
            description: format!("The record has only {} columns.", fields.len()),
            fatal: false,
        })
    }

    fn chain(&self, first: &'a Expression, rest: &'a [(Operator, Expression)]) -> Result<Value<'a>, Trouble> {
        // A chain has one rank: either it is all of `OR`, or all of `AND`, or it computes.
        if let Some((operator @ (Operator::And | Operator::Or), _)) = rest.first() {
            let settles = *operator == Operator::Or;
            let mut found = self.is_true(first)?;
            for (_, next) in rest {
                // What settles the matter: a false one, or a true one.
                if found == Some(settles) {
                    break;
                }
                let next = self.is_true(next)?;
                found = if next == Some(settles) { next } else { found.and(next) };
            }
            return Ok(truth(found));
        }
        let mut left = self.value(first)?;
        for (operator, next) in rest {
            let combined = self.combined(&left, *operator, &self.value(next)?)?;
            self.steps.spend(1 + weight(&combined))?;
            left = combined;
        }
        Ok(left)
    }

    fn combined(&self, left: &Value<'_>, operator: Operator, right: &Value<'_>) -> Result<Value<'a>, Trouble> {
        let order = |test: fn(Ordering) -> bool| Ok(truth(self.compared(left, right)?.map(test)));
        let computed = |compute: fn(f64, f64) -> f64| {
            let both = as_number(left).zip(as_number(right));
            Ok(made(number_of(both.map(|(left, right)| compute(left, right)))))
        };
        match operator {
            // Nobody asks: these look at truths, not at values.
            Operator::Or | Operator::And => Ok(None),
            Operator::Equal => order(Ordering::is_eq),
            Operator::NotEqual => order(Ordering::is_ne),
            Operator::Less => order(Ordering::is_lt),
            Operator::LessOrEqual => order(Ordering::is_le),
            Operator::More => order(Ordering::is_gt),
            Operator::MoreOrEqual => order(Ordering::is_ge),
            Operator::Add => computed(|left, right| left + right),
            Operator::Subtract => computed(|left, right| left - right),
            Operator::Multiply => computed(|left, right| left * right),
            Operator::Divide => computed(|left, right| left / right),
            Operator::Remainder => computed(|left, right| left % right),
            Operator::Join => match (as_text(left), as_text(right)) {
                (Some(left), Some(right)) if left.len() + right.len() > VALUE_BYTES_MAX => Err(too_long()),
                (Some(left), Some(right)) => Ok(made(Json::Text([left, right].concat()))),
                _ => Ok(made(Json::Null)),
            },
        }
    }

    fn compared(&self, left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Trouble> {
        compared(left.as_deref(), right.as_deref(), self.steps)
    }

    fn call(&self, function: Function, arguments: &'a [Expression]) -> Result<Value<'a>, Trouble> {
        let argument = |at: usize| arguments.get(at).map_or(Ok(None), |argument| self.value(argument));
        let of_text = |compute: fn(&str) -> Json| -> Result<Value<'a>, Trouble> {
            Ok(made(as_text(&argument(0)?).map_or(Json::Null, |text| compute(&text))))
        };
        match function {
            Function::Lower => of_text(|text| Json::Text(text.to_lowercase())),
            Function::Upper => of_text(|text| Json::Text(text.to_uppercase())),
            Function::Trim => of_text(|text| Json::Text(text.trim().to_owned())),
            Function::Length => of_text(|text| Json::Number(text.chars().count().to_string())),
            Function::Substring => {
                let text = argument(0)?;
                let start = as_number(&argument(1)?).unwrap_or(1.0);
                let count = as_number(&argument(2)?).unwrap_or(f64::MAX);
                // Counted from 1; what lies before the text counts but is not there.
                let skipped = (start - 1.0).max(0.0) as usize;
                let taken = (count + (start - 1.0).min(0.0)).max(0.0) as usize;
                let part = |text: &str| Json::Text(text.chars().skip(skipped).take(taken).collect());
                Ok(made(as_text(&text).map_or(Json::Null, |text| part(&text))))
            }
            Function::Coalesce => {
                for at in 0..arguments.len() {
                    let value = argument(at)?;
                    if !is_null(&value) {
                        return Ok(value);
                    }
                }
                Ok(made(Json::Null))
            }
            Function::NullIf => {
                let value = argument(0)?;
                match self.compared(&value, &argument(1)?)? {
                    Some(Ordering::Equal) => Ok(made(Json::Null)),
                    _ => Ok(value),
                }
            }
        }
    }
}

fn fatal(name: &'static str, description: impl Into<String>) -> Trouble {
    Trouble { name, description: description.into(), fatal: true }
}

fn too_long() -> Trouble {
    fatal("ValueTooLong", format!("A value of the query is longer than {VALUE_BYTES_MAX} bytes."))
}

fn made(value: Json) -> Value<'static> {
    Some(Cow::Owned(value))
}

fn truth(value: Option<bool>) -> Value<'static> {
    made(value.map_or(Json::Null, Json::Bool))
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    if left == Some(false) || right == Some(false) { Some(false) } else { left.and(right) }
}

fn weight(value: &Value<'_>) -> usize {
    value.as_deref().map_or(0, Json::weight)
}

fn is_null(value: &Value<'_>) -> bool {
    matches!(value.as_deref(), None | Some(Json::Null))
}

/// A number as it is written: whole ones without a point.
pub fn number_of(number: Option<f64>) -> Json {
    match number.filter(|number| number.is_finite()) {
        None => Json::Null,
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => Json::Number((number as i64).to_string()),
        Some(number) => Json::Number(number.to_string()),
    }
}

pub fn as_number(value: &Value<'_>) -> Option<f64> {
    number_in(value.as_deref())
}

fn number_in(value: Option<&Json>) -> Option<f64> {
    match value {
        Some(Json::Number(text) | Json::Text(text)) => {
            let number = text.trim().parse::<f64>().ok();
            // `parse` also takes words.
            number.filter(|_| text.trim().ends_with(|char: char| char.is_ascii_digit() || char == '.'))
        }
        _ => None,
    }
}

pub fn as_text<'v>(value: &'v Value<'_>) -> Option<Cow<'v, str>> {
    text_of(value.as_deref())
}

fn text_of(value: Option<&Json>) -> Option<Cow<'_, str>> {
    match value {
        None | Some(Json::Null) => None,
        Some(Json::Text(text) | Json::Number(text)) => Some(Cow::Borrowed(text)),
        Some(other) => {
            let mut out = Vec::new();
            other.write(&mut out);
            String::from_utf8(out).ok().map(Cow::Owned)
        }
    }
}

/// How two values stand to each other: as numbers if one of them is one, else as text. `None`: not at all.
pub fn compared(left: Option<&Json>, right: Option<&Json>, steps: &Steps) -> Result<Option<Ordering>, Trouble> {
    let weights = [left, right].map(|value| value.map_or(0, Json::weight));
    steps.spend(match (left, right) {
        // Looked at up to where they differ.
        (Some(Json::Text(_)), Some(Json::Text(_))) => weights[0].min(weights[1]),
        // Read as numbers or written as texts, each of them whole, and again for each comparison.
        _ => weights[0] + weights[1],
    })?;
    Ok(order(left, right))
}

fn order(left: Option<&Json>, right: Option<&Json>) -> Option<Ordering> {
    match (left, right) {
        (Some(Json::Number(_)), _) | (_, Some(Json::Number(_))) => number_in(left)?.partial_cmp(&number_in(right)?),
        (Some(Json::Bool(_)), _) | (_, Some(Json::Bool(_))) => {
            let (left, right) = (text_of(left)?, text_of(right)?);
            Some(left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase()))
        }
        _ => Some(text_of(left)?.cmp(&text_of(right)?)),
    }
}

fn cast(value: &Value<'_>, to: Type) -> Result<Value<'static>, Trouble> {
    if is_null(value) {
        return Ok(made(Json::Null));
    }
    let number = || {
        as_number(value).ok_or_else(|| Trouble {
            name: "InvalidConversion",
            description: "A value of the record is not a number.".into(),
            fatal: false,
        })
    };
    Ok(match to {
        Type::Integer => made(number_of(Some(number()?.trunc()))),
        Type::Float => made(number_of(Some(number()?))),
        Type::Text => as_text(value).and_then(|text| made(Json::Text(text.into_owned()))),
        Type::Bool => match as_text(value).map(|text| text.to_ascii_lowercase()).as_deref() {
            Some("true" | "1") => truth(Some(true)),
            Some("false" | "0") => truth(Some(false)),
            _ => truth(None),
        },
    })
}

/// What stands between two `%` of a pattern: characters, and `_` for any one of them.
struct Part {
    chars: Vec<Option<char>>,
    /// The same as a text, if there is no `_` in it: a text is found in time that grows with the lengths only.
    text: Option<String>,
}

impl Part {
    fn new(chars: Vec<Option<char>>) -> Part {
        let text = chars.iter().copied().collect();
        Part { chars, text }
    }

    /// What follows it, if the text begins with it.
    fn strip<'t>(&self, text: &'t str, steps: &Steps) -> Result<Option<&'t str>, Trouble> {
        let mut rest = text.chars();
        for (at, wanted) in self.chars.iter().enumerate() {
            match (rest.next(), wanted) {
                (Some(_), None) => {}
                (Some(found), Some(wanted)) if found == *wanted => {}
                _ => {
                    steps.spend(1 + at)?;
                    return Ok(None);
                }
            }
        }
        steps.spend(1 + self.chars.len())?;
        Ok(Some(rest.as_str()))
    }

    /// What follows the first place at which it stands.
    fn find<'t>(&self, text: &'t str, steps: &Steps) -> Result<Option<&'t str>, Trouble> {
        if let Some(wanted) = &self.text {
            let found = text.find(wanted.as_str()).map(|at| &text[at + wanted.len()..]);
            steps.spend(1 + text.len() - found.map_or(0, str::len))?;
            return Ok(found);
        }
        for (at, _) in text.char_indices() {
            if let Some(rest) = self.strip(&text[at..], steps)? {
                return Ok(Some(rest));
            }
        }
        Ok(None)
    }

    /// Whether the text ends with it.
    fn ends(&self, text: &str, steps: &Steps) -> Result<bool, Trouble> {
        let Some(last) = self.chars.len().checked_sub(1) else { return Ok(true) };
        match text.char_indices().rev().nth(last) {
            Some((at, _)) => Ok(self.strip(&text[at..], steps)?.is_some()),
            None => Ok(false),
        }
    }
}

/// `%` stands for any text and `_` for any character. Parts of the pattern without `_` take time by the length of the text;
/// the others are compared at each place, and each comparison is a step.
fn is_like(text: &str, pattern: &str, escape: Option<char>, steps: &Steps) -> Result<bool, Trouble> {
    // One part at a time: a pattern may have as many as it has characters.
    let mut pattern = Pattern { chars: pattern.chars(), escape };
    let (first, mut has_more) = pattern.next_part();
    let Some(mut rest) = first.strip(text, steps)? else { return Ok(false) };
    if !has_more {
        return Ok(rest.is_empty());
    }
    loop {
        let part;
        (part, has_more) = pattern.next_part();
        if !has_more {
            return part.ends(rest, steps);
        }
        if !part.chars.is_empty() {
            let Some(after) = part.find(rest, steps)? else { return Ok(false) };
            rest = after;
        }
    }
}

/// What has not been read of a pattern.
struct Pattern<'p> {
    chars: std::str::Chars<'p>,
    escape: Option<char>,
}

impl Pattern<'_> {
    /// What stands before the next `%`, and whether there is one. Then another part follows, be it empty.
    fn next_part(&mut self) -> (Part, bool) {
        let mut part = Vec::new();
        while let Some(char) = self.chars.next() {
            match char {
                char if Some(char) == self.escape => part.push(Some(self.chars.next().unwrap_or(char))),
                '%' => return (Part::new(part), true),
                '_' => part.push(None),
                char => part.push(Some(char)),
            }
        }
        (Part::new(part), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Columns, Query};

    fn evaluated(expression: &str, record: &Record) -> Result<String, Trouble> {
        let query = Query::parse(&format!("SELECT {expression} FROM BlobStorage")).unwrap();
        let Columns::Each(columns) = query.columns else { panic!("no columns") };
        let headers = ["name".to_owned(), "n".to_owned()];
        let steps = Steps::new(crate::RECORD_STEPS_MAX);
        let row = Row { record, headers: Some(&headers), steps: &steps };
        let value = row.value(&columns[0].value)?;
        let mut out = Vec::new();
        value.inspect(|value| value.write(&mut out));
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn expressions() {
        let record = Record::Fields(["Ada", "250"].map(|text| Json::Text(text.into())).into());
        for (expression, expected) in [
            ("name", "\"Ada\""),
            ("_2", "\"250\""),
            ("_2 > 30", "true"),
            ("_2 > '30'", "false"),
            ("n + 1", "251"),
            ("n / 4", "62.5"),
            ("-n % 7", "-5"),
            ("n / 0", "null"),
            ("name || '-' || n", "\"Ada-250\""),
            ("name LIKE 'A%a'", "true"),
            ("name LIKE '_d_'", "true"),
            ("name LIKE 'A!%' ESCAPE '!'", "false"),
            ("NOT name = 'Ada'", "false"),
            ("name = 'x' OR n = 250", "true"),
            ("name = 'Ada' AND n = 1", "false"),
            ("NULL AND FALSE", "false"),
            ("NULL OR TRUE", "true"),
            ("NULL AND TRUE", "null"),
            ("NULL OR FALSE", "null"),
            ("TRUE AND TRUE", "true"),
            ("FALSE OR FALSE", "false"),
            ("n BETWEEN 1 AND 300", "true"),
            ("n NOT IN (1, 2)", "true"),
            ("name IN ('Bob', 'Ada')", "true"),
            ("NULL = NULL", "null"),
            ("name IS NULL", "false"),
            ("CAST(n AS INT) = 250.0", "true"),
            ("CAST('7.9' AS INT)", "7"),
            ("UPPER(name)", "\"ADA\""),
            ("CHAR_LENGTH(name)", "3"),
            ("SUBSTRING(name, 2)", "\"da\""),
            ("SUBSTRING(name, 2, 1)", "\"d\""),
            ("SUBSTRING(name, 0, 2)", "\"A\""),
            ("COALESCE(NULL, name)", "\"Ada\""),
            ("NULLIF(name, 'Ada')", "null"),
        ] {
            assert_eq!(evaluated(expression, &record).as_deref(), Ok(expected), "{expression}");
        }
        for (expression, name, fatal) in [
            ("_3", "InvalidColumnOrdinal", false),
            ("other", "UnresolvedColumn", true),
            ("CAST(name AS INT)", "InvalidConversion", false),
        ] {
            let trouble = evaluated(expression, &record).unwrap_err();
            assert_eq!((trouble.name, trouble.fatal), (name, fatal), "{expression}");
        }
    }

    #[test]
    fn members() {
        let Ok(Json::Object(members)) = Json::parse(b"{\"a\":{\"b\":[1,{\"c\":\"x\"}]},\"n\":5,\"z\":null}") else {
            panic!()
        };
        let record = Record::Object(members);
        for (expression, expected) in [
            ("a.b[1].c", "\"x\""),
            ("a.b[0] + n", "6"),
            ("a.b", "[1,{\"c\":\"x\"}]"),
            ("q", ""),
            ("a.b[9]", ""),
            ("n.x", ""),
            ("q IS MISSING", "true"),
            ("z IS MISSING", "false"),
            ("z IS NULL", "true"),
            ("q = 1", "null"),
        ] {
            assert_eq!(evaluated(expression, &record).as_deref(), Ok(expected), "{expression}");
        }
    }

    /// As long as a query may be; nothing nests as deep.
    #[test]
    fn a_path_is_followed_as_far_as_there_is_something() {
        let (record, steps) = (Record::Object(Vec::new()), Steps::new(crate::RECORD_STEPS_MAX));
        let row = Row { record: &record, headers: None, steps: &steps };
        let members = [("a".to_owned(), Json::Null)];
        let path = std::iter::repeat_n(Step::Name("a".into()), 100_000).collect::<Vec<_>>();
        let mut looked_at = 0;
        let counted = path.iter().inspect(|_| looked_at += 1);
        assert_eq!(row.follow(&members, counted), Ok(None));
        assert_eq!(looked_at, 2);
    }

    fn like(text: &str, pattern: &str) -> Result<bool, Trouble> {
        is_like(text, pattern, Some('!'), &Steps::new(crate::RECORD_STEPS_MAX))
    }

    #[test]
    fn patterns() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("a", "", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%c", true),
            ("ac", "a%c", true),
            ("a", "a%a", false),
            ("abcabc", "%abc", true),
            ("abcabd", "%abc", false),
            ("xaybzb", "%a_b%b", true),
            ("xaybz", "%a_b%b", false),
            ("äöü", "_ö_", true),
            ("äöü", "%ü", true),
            ("äöü", "ä%%ü", true),
            ("10%", "%!%", true),
            ("10x", "%!%", false),
            ("a!b", "a!!b", true),
            ("aXbXc", "a%X%X%c", true),
        ] {
            assert_eq!(like(text, pattern), Ok(expected), "{text} LIKE {pattern}");
        }
    }

    /// A longer pattern does not make it slower unless `_` stands in it, and then there is an end to it.
    #[test]
    fn a_hard_pattern_takes_few_steps_or_is_refused() {
        let text = "a".repeat(1_000_000);
        for pattern in [
            format!("{}b", "%a".repeat(50)),
            format!("%{}b%", "a".repeat(100_000)),
            format!("%{}b", "a".repeat(100_000)),
        ] {
            assert_eq!(like(&text, &pattern), Ok(false));
        }
        let hard = format!("%_{}b%", "a".repeat(100_000));
        assert_eq!(like(&text, &hard).map_err(|trouble| trouble.name), Err("QueryTooComplex"));
    }

    /// Each of these would make more than is ever sent, or work without end.
    #[test]
    fn what_an_expression_may_make_of_a_record_is_bounded() {
        let record =
            Record::Fields(vec![Json::Text("x".repeat(crate::RECORD_BYTES_MAX - 1)), Json::Text("250".into())]);
        let mut between = "1".to_owned();
        for _ in 0..24 {
            between = format!("({between}) BETWEEN 1 AND 2");
        }
        assert!(evaluated(&between, &record).is_ok());
        let nested = |inner: &str| format!("{}{inner}{}", "UPPER(".repeat(40), ")".repeat(40));
        for (expression, expected) in [
            (format!("_1{}", " || _1".repeat(1_000)), "ValueTooLong"),
            (nested("_1"), "QueryTooComplex"),
            (format!("_1 IN ({}1)", "_1 || 'x', ".repeat(1_000)), "QueryTooComplex"),
            (format!("UPPER(_1) IN ({}1)", "'y', ".repeat(40_000)), ""),
            (format!("1{}", " + _1".repeat(1_000)), "QueryTooComplex"),
        ] {
            let found = evaluated(&expression, &record);
            assert_eq!(found.map_or_else(|trouble| trouble.name, |_| ""), expected, "{}", &expression[..40]);
        }
    }

    /// Each comparison reads a number, or writes an object as a text, from its beginning to its end.
    #[test]
    fn a_long_value_against_a_long_list_is_bounded() {
        let digits = Record::Fields(vec![Json::Text("1".repeat(crate::RECORD_BYTES_MAX - 1))]);
        let object = Json::Object(vec![("b".into(), Json::Text("x".repeat(crate::RECORD_BYTES_MAX - 1)))]);
        let object = Record::Object(vec![("_1".into(), object)]);
        for (record, entry) in [(&digits, "2, "), (&object, "'y', "), (&object, "TRUE, ")] {
            let found = evaluated(&format!("_1 IN ({}NULL)", entry.repeat(1_000)), record);
            assert_eq!(found.map_err(|trouble| trouble.name), Err("QueryTooComplex"), "{entry}");
        }
        let short = Record::Fields(vec![Json::Text("2".into())]);
        assert_eq!(evaluated(&format!("_1 IN ({}2)", "1, ".repeat(10_000)), &short).as_deref(), Ok("true"));
    }
}
