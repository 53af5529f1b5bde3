//! `$filter`: which entities a query returns.
//!
//! ```text
//! or   := and ("or" and)*          and := unit ("and" unit)*
//! unit := "not" unit | "(" or ")" | comparison | boolean property | truth
//! comparison := property operator constant | constant operator property
//! operator   := "eq" | "ne" | "gt" | "ge" | "lt" | "le"
//! truth      := "true" | "false", in any case
//! ```
//!
//! A comparison with a property that the entity does not have, or that has another type, is false, `ne` too. So `not (P
//! eq 1)` finds entities without `P`, and `P ne 1` does not.

mod parse;
mod plan;
#[cfg(test)]
mod reference;

use std::cmp::Ordering;

use engine::Unread;

use crate::entity::value::{Comparison, Value};

pub use plan::{Plan, Step, stored};

/// An expression. Its depth is bounded by [`parse::DEPTH_MAX`].
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All parts hold; `true` if there are none.
    All(Vec<Filter>),
    /// One part holds; `false` if there are none.
    Any(Vec<Filter>),
    Not(Box<Filter>),
    Compare {
        property: Name,
        operator: Operator,
        constant: Value<'static>,
    },
}

/// A property's name. Keys are variants of their own: their values are known without decoding the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    PartitionKey,
    RowKey,
    Timestamp,
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

/// What a filter is evaluated on: an entity or a table.
pub trait Subject {
    fn value(&self, name: &Name) -> Result<Option<Value<'_>>, Unread>;
}

impl Filter {
    /// Whether the filter holds for the subject.
    pub fn matches(&self, subject: &impl Subject) -> Result<bool, Unread> {
        Ok(match self {
            Filter::All(parts) => {
                for part in parts {
                    if !part.matches(subject)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Any(parts) => {
                for part in parts {
                    if part.matches(subject)? {
                        return Ok(true);
                    }
                }
                false
            }
            Filter::Not(part) => !part.matches(subject)?,
            Filter::Compare { property, operator, constant } => {
                subject.value(property)?.is_some_and(|found| operator.holds(found.compare(constant)))
            }
        })
    }
}

impl Operator {
    fn holds(self, comparison: Comparison) -> bool {
        let ordering = match comparison {
            Comparison::Ordered(ordering) => ordering,
            Comparison::Unordered => return self == Operator::Ne,
            Comparison::Incomparable => return false,
        };
        match self {
            Operator::Eq => ordering == Ordering::Equal,
            Operator::Ne => ordering != Ordering::Equal,
            Operator::Gt => ordering == Ordering::Greater,
            Operator::Ge => ordering != Ordering::Less,
            Operator::Lt => ordering == Ordering::Less,
            Operator::Le => ordering != Ordering::Greater,
        }
    }

    /// The operator with its sides exchanged.
    fn turned(self) -> Operator {
        match self {
            Operator::Eq => Operator::Eq,
            Operator::Ne => Operator::Ne,
            Operator::Gt => Operator::Lt,
            Operator::Ge => Operator::Le,
            Operator::Lt => Operator::Gt,
            Operator::Le => Operator::Ge,
        }
    }

    /// The negated operator, for values that have an order.
    fn opposite(self) -> Operator {
        match self {
            Operator::Eq => Operator::Ne,
            Operator::Ne => Operator::Eq,
            Operator::Gt => Operator::Le,
            Operator::Ge => Operator::Lt,
            Operator::Lt => Operator::Ge,
            Operator::Le => Operator::Gt,
        }
    }
}
