//! A register with ETags: a blob or an entity that is written whole, perhaps on a condition.

use crate::check::Model;
use crate::history::Span;

/// What is there: a value, and its ETag once somebody was told of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Register(Option<(u64, Option<String>)>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegisterCall {
    Get,
    /// Every write of a history has a value of its own.
    Put(u64, Condition),
    Delete(Condition),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    None,
    /// If-Match with an ETag that some answer had.
    Is(String),
    /// If-None-Match: `*`.
    Absent,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegisterAnswer {
    /// Get: this value, with this ETag.
    Found(u64, String),
    /// Get, Delete: there is nothing.
    Missing,
    /// Put: done, and this is the ETag.
    Stored(String),
    /// Delete: done.
    Deleted,
    /// Put, Delete: the condition does not hold.
    Refused,
}

impl Register {
    #[must_use]
    pub fn holding(value: u64, etag: &str) -> Register {
        Register(Some((value, Some(etag.to_owned()))))
    }

    /// Who names an ETag was told it before, so one that nobody was told of yet is another.
    fn allows(&self, condition: &Condition) -> bool {
        match condition {
            Condition::None => true,
            Condition::Absent => self.0.is_none(),
            Condition::Is(etag) => self.0.as_ref().is_some_and(|(_, known)| known.as_ref() == Some(etag)),
        }
    }
}

impl Model for Register {
    type Call = RegisterCall;
    type Answer = RegisterAnswer;

    fn answered(&self, call: &RegisterCall, answer: &RegisterAnswer, _: Span) -> Vec<Register> {
        let after = match (call, answer) {
            (RegisterCall::Get, RegisterAnswer::Missing) => self.0.is_none().then(|| self.clone()),
            (RegisterCall::Get, RegisterAnswer::Found(value, etag)) => match &self.0 {
                Some((held, known)) if held == value && known.as_ref().is_none_or(|known| known == etag) => {
                    Some(Register::holding(*value, etag))
                }
                Some(_) | None => None,
            },
            (RegisterCall::Put(value, condition), RegisterAnswer::Stored(etag)) => {
                self.allows(condition).then(|| Register::holding(*value, etag))
            }
            // A condition that names an ETag is also refused where there is nothing.
            (RegisterCall::Put(_, condition) | RegisterCall::Delete(condition), RegisterAnswer::Refused) => {
                (!self.allows(condition)).then(|| self.clone())
            }
            (RegisterCall::Delete(condition), RegisterAnswer::Deleted) => {
                (self.0.is_some() && self.allows(condition)).then(Register::default)
            }
            (RegisterCall::Delete(_), RegisterAnswer::Missing) => self.0.is_none().then(|| self.clone()),
            _ => None,
        };
        after.into_iter().collect()
    }

    fn unanswered(&self, call: &RegisterCall, _: Span) -> Vec<Register> {
        match call {
            RegisterCall::Put(value, condition) if self.allows(condition) => vec![Register(Some((*value, None)))],
            RegisterCall::Delete(condition) if self.0.is_some() && self.allows(condition) => vec![Register(None)],
            RegisterCall::Get | RegisterCall::Put(..) | RegisterCall::Delete(_) => Vec::new(),
        }
    }
}
