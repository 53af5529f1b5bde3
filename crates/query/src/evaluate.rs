//! What an expression is worth for one record.

use std::cmp::Ordering;

use crate::json::Json;
use crate::sql::{Expression, Function, Operator, Step, Type};

/// A record as it was read.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    Fields(Vec<String>),
    Object(Vec<(String, Json)>),
}

/// A record with what is known of all of them.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub record: &'a Record,
    /// The names of the columns, if the first record has said them.
    pub headers: Option<&'a [String]>,
}

/// Why a record has no answer. The others may have one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    pub name: &'static str,
    pub description: String,
    /// No record can have one.
    pub fatal: bool,
}

/// A value. `None` is a member that a record does not have.
pub type Value = Option<Json>;

impl Row<'_> {
    pub fn value(&self, expression: &Expression) -> Result<Value, Trouble> {
        Ok(match expression {
            Expression::Null => Some(Json::Null),
            Expression::Bool(value) => Some(Json::Bool(*value)),
            Expression::Number(number) => number_of(Some(*number)),
            Expression::Text(text) => Some(Json::Text(text.clone())),
            Expression::Path(steps) => self.path(steps)?,
            Expression::Not(inner) => truth(self.is_true(inner)?.map(|value| !value)),
            Expression::Negative(inner) => number_of(as_number(&self.value(inner)?).map(|number| -number)),
            Expression::Pair(left, operator, right) => self.pair(left, *operator, right)?,
            Expression::Like { text, pattern, escape } => {
                match (as_text(&self.value(text)?), as_text(&self.value(pattern)?)) {
                    (Some(text), Some(pattern)) => truth(Some(is_like(&text, &pattern, *escape))),
                    _ => truth(None),
                }
            }
            Expression::OneOf(value, list) => {
                let value = self.value(value)?;
                let mut found = Some(false);
                for other in list {
                    match compared(&value, &self.value(other)?).map(|order| order == Ordering::Equal) {
                        Some(true) => return Ok(truth(Some(true))),
                        Some(false) => {}
                        None => found = None,
                    }
                }
                truth(found)
            }
            Expression::IsNull(inner) => truth(Some(matches!(self.value(inner)?, None | Some(Json::Null)))),
            Expression::IsMissing(inner) => truth(Some(self.value(inner)?.is_none())),
            Expression::Cast(inner, to) => cast(&self.value(inner)?, *to)?,
            Expression::Call(function, arguments) => self.call(*function, arguments)?,
        })
    }

    /// `None`: it cannot be said.
    pub fn is_true(&self, expression: &Expression) -> Result<Option<bool>, Trouble> {
        Ok(match self.value(expression)? {
            Some(Json::Bool(value)) => Some(value),
            Some(Json::Text(text)) if text.eq_ignore_ascii_case("true") => Some(true),
            Some(Json::Text(text)) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        })
    }

    fn path(&self, steps: &[Step]) -> Result<Value, Trouble> {
        match self.record {
            Record::Fields(fields) => self.field(fields, steps).map(Some),
            Record::Object(members) => {
                let mut rest = steps.iter();
                let Some(Step::Name(first)) = rest.next() else {
                    return Ok(None);
                };
                let mut found = member(members, first);
                for step in rest {
                    found = match (step, found) {
                        (Step::Name(name), Some(Json::Object(members))) => member(members, name),
                        (Step::Index(index), Some(Json::Array(values))) => values.get(*index),
                        _ => None,
                    };
                }
                Ok(found.cloned())
            }
        }
    }

    fn field(&self, fields: &[String], steps: &[Step]) -> Result<Json, Trouble> {
        let [Step::Name(name)] = steps else {
            return Err(fatal("UnresolvedColumn", "Columns of delimited text have no parts."));
        };
        let ordinal =
            name.strip_prefix('_').and_then(|digits| digits.parse::<usize>().ok()).filter(|number| *number > 0);
        let by_name = self.headers.and_then(|headers| headers.iter().position(|header| header == name));
        let at = match (by_name, ordinal) {
            (Some(at), _) => at,
            (None, Some(ordinal)) => ordinal - 1,
            (None, None) => {
                return Err(fatal("UnresolvedColumn", format!("There is no column {name}.")));
            }
        };
        fields.get(at).map(|field| Json::Text(field.clone())).ok_or_else(|| Trouble {
            name: "InvalidColumnOrdinal",
            description: format!("The record has only {} columns.", fields.len()),
            fatal: false,
        })
    }

    fn pair(&self, left: &Expression, operator: Operator, right: &Expression) -> Result<Value, Trouble> {
        if matches!(operator, Operator::And | Operator::Or) {
            // What settles the matter: a false one, or a true one.
            let settles = operator == Operator::Or;
            let left = self.is_true(left)?;
            if left == Some(settles) {
                return Ok(truth(left));
            }
            let right = self.is_true(right)?;
            let found = if right == Some(settles) { right } else { left.and(right) };
            return Ok(truth(found));
        }
        let (left, right) = (self.value(left)?, self.value(right)?);
        let order = |test: fn(Ordering) -> bool| truth(compared(&left, &right).map(test));
        let computed = |compute: fn(f64, f64) -> f64| {
            let both = as_number(&left).zip(as_number(&right));
            number_of(both.map(|(left, right)| compute(left, right)))
        };
        Ok(match operator {
            Operator::Or | Operator::And => None,
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
            Operator::Join => match (as_text(&left), as_text(&right)) {
                (Some(left), Some(right)) => Some(Json::Text(left + &right)),
                _ => Some(Json::Null),
            },
        })
    }

    fn call(&self, function: Function, arguments: &[Expression]) -> Result<Value, Trouble> {
        let values: Vec<Value> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        let text = |at: usize| values.get(at).and_then(as_text);
        let of_text = |compute: fn(String) -> Json| Some(text(0).map_or(Json::Null, compute));
        Ok(match function {
            Function::Lower => of_text(|text| Json::Text(text.to_lowercase())),
            Function::Upper => of_text(|text| Json::Text(text.to_uppercase())),
            Function::Trim => of_text(|text| Json::Text(text.trim().to_owned())),
            Function::Length => of_text(|text| Json::Number(text.chars().count().to_string())),
            Function::Substring => {
                let start = values.get(1).and_then(as_number).unwrap_or(1.0);
                let count = values.get(2).and_then(as_number).unwrap_or(f64::MAX);
                // Counted from 1; what lies before the text counts but is not there.
                let skipped = (start - 1.0).max(0.0) as usize;
                let taken = (count + (start - 1.0).min(0.0)).max(0.0) as usize;
                Some(text(0).map_or(Json::Null, |text| Json::Text(text.chars().skip(skipped).take(taken).collect())))
            }
            Function::Coalesce => {
                let found = values.into_iter().flatten().find(|value| *value != Json::Null);
                Some(found.unwrap_or(Json::Null))
            }
            Function::NullIf => match compared(&values[0], &values[1]) {
                Some(Ordering::Equal) => Some(Json::Null),
                _ => values.into_iter().next().flatten(),
            },
        })
    }
}

fn fatal(name: &'static str, description: impl Into<String>) -> Trouble {
    Trouble { name, description: description.into(), fatal: true }
}

fn member<'a>(members: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn truth(value: Option<bool>) -> Value {
    Some(value.map_or(Json::Null, Json::Bool))
}

/// A number as it is written: whole ones without a point.
pub fn number_of(number: Option<f64>) -> Value {
    Some(match number.filter(|number| number.is_finite()) {
        None => Json::Null,
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => Json::Number((number as i64).to_string()),
        Some(number) => Json::Number(number.to_string()),
    })
}

pub fn as_number(value: &Value) -> Option<f64> {
    match value {
        Some(Json::Number(text) | Json::Text(text)) => {
            let number = text.trim().parse::<f64>().ok();
            // `parse` also takes words.
            number.filter(|_| text.trim().ends_with(|char: char| char.is_ascii_digit() || char == '.'))
        }
        _ => None,
    }
}

pub fn as_text(value: &Value) -> Option<String> {
    match value {
        None | Some(Json::Null) => None,
        Some(Json::Text(text)) => Some(text.clone()),
        Some(other) => {
            let mut out = Vec::new();
            other.write(&mut out);
            String::from_utf8(out).ok()
        }
    }
}

/// How two values stand to each other: as numbers if one of them is one, else as text. `None`: not at all.
pub fn compared(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Some(Json::Number(_)), _) | (_, Some(Json::Number(_))) => as_number(left)?.partial_cmp(&as_number(right)?),
        (Some(Json::Bool(_)), _) | (_, Some(Json::Bool(_))) => {
            let (left, right) = (as_text(left)?, as_text(right)?);
            Some(left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase()))
        }
        _ => Some(as_text(left)?.cmp(&as_text(right)?)),
    }
}

fn cast(value: &Value, to: Type) -> Result<Value, Trouble> {
    if matches!(value, None | Some(Json::Null)) {
        return Ok(Some(Json::Null));
    }
    let number = || {
        as_number(value).ok_or_else(|| Trouble {
            name: "InvalidConversion",
            description: "A value of the record is not a number.".into(),
            fatal: false,
        })
    };
    Ok(match to {
        Type::Integer => number_of(Some(number()?.trunc())),
        Type::Float => number_of(Some(number()?)),
        Type::Text => as_text(value).map(Json::Text),
        Type::Bool => match as_text(value).map(|text| text.to_ascii_lowercase()).as_deref() {
            Some("true" | "1") => Some(Json::Bool(true)),
            Some("false" | "0") => Some(Json::Bool(false)),
            _ => Some(Json::Null),
        },
    })
}

/// `%` stands for any text and `_` for any character. The work is bounded by the product of the two lengths.
fn is_like(text: &str, pattern: &str, escape: Option<char>) -> bool {
    #[derive(PartialEq)]
    enum Part {
        Any,
        One,
        Char(char),
    }
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        parts.push(match char {
            char if Some(char) == escape => Part::Char(chars.next().unwrap_or(char)),
            '%' => Part::Any,
            '_' => Part::One,
            char => Part::Char(char),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut part) = (0, 0);
    let mut last_any = None;
    while at < text.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                last_any = Some((part, at));
                part += 1;
            }
            Some(Part::One) => (at, part) = (at + 1, part + 1),
            Some(Part::Char(char)) if *char == text[at] => (at, part) = (at + 1, part + 1),
            _ => match last_any {
                // The last `%` takes one character more.
                Some((any, taken)) => {
                    last_any = Some((any, taken + 1));
                    (at, part) = (taken + 1, any + 1);
                }
                None => return false,
            },
        }
    }
    parts[part..].iter().all(|part| *part == Part::Any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Columns, Query};

    fn evaluated(expression: &str, record: &Record) -> Result<String, Trouble> {
        let query = Query::parse(&format!("SELECT {expression} FROM BlobStorage")).unwrap();
        let Columns::Each(columns) = query.columns else { panic!("no columns") };
        let headers = ["name".to_owned(), "n".to_owned()];
        let row = Row { record, headers: Some(&headers) };
        let value = row.value(&columns[0].value)?;
        let mut out = Vec::new();
        value.inspect(|value| value.write(&mut out));
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn expressions() {
        let record = Record::Fields(vec!["Ada".into(), "250".into()]);
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
        let Some(Json::Object(members)) = Json::parse(b"{\"a\":{\"b\":[1,{\"c\":\"x\"}]},\"n\":5,\"z\":null}") else {
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

    #[test]
    fn a_hard_pattern_takes_no_time() {
        assert!(!is_like(&"a".repeat(20_000), &format!("{}b", "%a".repeat(50)), None));
    }
}
