//! Entities of one partition: a transaction changes all that it names, or nothing.

use std::collections::BTreeMap;

use crate::check::Model;
use crate::history::Span;

/// Values by row key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Group(BTreeMap<u64, u64>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupWrite {
    /// Refused if the entity is there.
    Insert(u64, u64),
    /// Insert Or Replace.
    Upsert(u64, u64),
    /// Refused if the entity is not there.
    Replace(u64, u64),
    /// Refused if the entity is not there.
    Delete(u64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupCall {
    /// No two writes of it name the same entity.
    Transaction(Vec<GroupWrite>),
    /// One entity.
    Get(u64),
    /// All of them, in one page.
    Query,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupAnswer {
    Committed,
    /// The first operation that stands against it.
    Refused(usize),
    Entity(Option<u64>),
    Entities(Vec<(u64, u64)>),
}

impl Group {
    /// All of it done, or which operation is refused.
    fn after(&self, writes: &[GroupWrite]) -> Result<Group, usize> {
        let mut after = self.clone();
        for (number, write) in writes.iter().enumerate() {
            let may = match write {
                GroupWrite::Insert(key, value) => after.0.insert(*key, *value).is_none(),
                GroupWrite::Upsert(key, value) => {
                    after.0.insert(*key, *value);
                    true
                }
                GroupWrite::Replace(key, value) => after.0.insert(*key, *value).is_some(),
                GroupWrite::Delete(key) => after.0.remove(key).is_some(),
            };
            if !may {
                return Err(number);
            }
        }
        Ok(after)
    }
}

impl Model for Group {
    type Call = GroupCall;
    type Answer = GroupAnswer;

    fn answered(&self, call: &GroupCall, answer: &GroupAnswer, _: Span) -> Vec<Group> {
        let after = match (call, answer) {
            (GroupCall::Transaction(writes), GroupAnswer::Committed) => self.after(writes).ok(),
            (GroupCall::Transaction(writes), GroupAnswer::Refused(number)) => {
                (self.after(writes).err() == Some(*number)).then(|| self.clone())
            }
            (GroupCall::Get(key), GroupAnswer::Entity(value)) => {
                (self.0.get(key) == value.as_ref()).then(|| self.clone())
            }
            (GroupCall::Query, GroupAnswer::Entities(found)) => {
                let held = self.0.iter().map(|(key, value)| (*key, *value));
                held.eq(found.iter().copied()).then(|| self.clone())
            }
            _ => None,
        };
        after.into_iter().collect()
    }

    fn unanswered(&self, call: &GroupCall, _: Span) -> Vec<Group> {
        match call {
            GroupCall::Transaction(writes) => self.after(writes).into_iter().collect(),
            GroupCall::Get(_) | GroupCall::Query => Vec::new(),
        }
    }
}
