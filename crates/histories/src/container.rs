//! The life of a container: what is in it goes with it, and a new one of the same name is empty.

use std::collections::BTreeMap;

use crate::check::Model;
use crate::history::Span;

/// Blobs and their values; `None` while there is no container.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Container(Option<BTreeMap<u64, u64>>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContainerCall {
    Create,
    Delete,
    PutBlob(u64, u64),
    DeleteBlob(u64),
    GetBlob(u64),
    /// All blobs, in one page.
    List,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContainerAnswer {
    Done,
    /// Create: there is one.
    Exists,
    /// All others: there is none.
    NoContainer,
    NoBlob,
    Blob(u64),
    /// The names.
    Blobs(Vec<u64>),
}

impl Container {
    /// What becomes of it, and the answer to that.
    fn after(&self, call: &ContainerCall) -> (Container, ContainerAnswer) {
        let Some(blobs) = &self.0 else {
            return match call {
                ContainerCall::Create => (Container(Some(BTreeMap::new())), ContainerAnswer::Done),
                _ => (Container(None), ContainerAnswer::NoContainer),
            };
        };
        let mut blobs = blobs.clone();
        let answer = match call {
            ContainerCall::Create => ContainerAnswer::Exists,
            ContainerCall::Delete => return (Container(None), ContainerAnswer::Done),
            ContainerCall::PutBlob(name, value) => {
                blobs.insert(*name, *value);
                ContainerAnswer::Done
            }
            ContainerCall::DeleteBlob(name) => match blobs.remove(name) {
                Some(_) => ContainerAnswer::Done,
                None => ContainerAnswer::NoBlob,
            },
            ContainerCall::GetBlob(name) => match blobs.get(name) {
                Some(value) => ContainerAnswer::Blob(*value),
                None => ContainerAnswer::NoBlob,
            },
            ContainerCall::List => ContainerAnswer::Blobs(blobs.keys().copied().collect()),
        };
        (Container(Some(blobs)), answer)
    }
}

impl Model for Container {
    type Call = ContainerCall;
    type Answer = ContainerAnswer;

    fn answered(&self, call: &ContainerCall, answer: &ContainerAnswer, _: Span) -> Vec<Container> {
        let (after, said) = self.after(call);
        if said == *answer { vec![after] } else { Vec::new() }
    }

    fn unanswered(&self, call: &ContainerCall, _: Span) -> Vec<Container> {
        vec![self.after(call).0]
    }
}
