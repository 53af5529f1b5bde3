//! A lease, and the writes that it keeps others from.

use crate::check::Model;
use crate::history::Span;

/// How the lease stands. Its holder has it at least as long after the call that granted it began, and at most as long after that
/// call ended, as it was granted for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lease {
    /// Nobody has it, and nobody is remembered.
    #[default]
    Free,
    Held {
        id: u64,
        /// `None`: until further notice.
        duration: Option<u64>,
        /// When it began to count, at the earliest and at the latest.
        from: (u64, u64),
    },
    /// It ran out. Who had it may renew it, until somebody writes or takes it.
    Over {
        id: u64,
        duration: Option<u64>,
    },
    Broken {
        id: u64,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaseCall {
    Acquire {
        id: u64,
        duration: Option<u64>,
    },
    Renew(u64),
    Release(u64),
    /// At once, without a break period.
    Break,
    /// A write to what is leased, naming a lease or none.
    Write(Option<u64>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseAnswer {
    Done,
    Refused,
}

impl Lease {
    /// How it can look between these times.
    fn at(&self, span: Span) -> Vec<Lease> {
        let Lease::Held { id, duration: Some(duration), from: (earliest, latest) } = *self else {
            return vec![self.clone()];
        };
        let mut looks = Vec::new();
        if span.begin <= latest.saturating_add(duration) {
            looks.push(self.clone());
        }
        if span.end >= earliest.saturating_add(duration) {
            looks.push(Lease::Over { id, duration: Some(duration) });
        }
        looks
    }

    /// What becomes of a lease that looks like this; `None`: it is refused.
    fn after(&self, call: &LeaseCall, span: Span) -> Option<Lease> {
        let held = |id, duration| Some(Lease::Held { id, duration, from: (span.begin, span.end) });
        match (call, self) {
            (LeaseCall::Acquire { id, .. }, Lease::Held { id: holder, .. }) if id != holder => None,
            (LeaseCall::Acquire { id, duration }, _) => held(*id, *duration),
            (LeaseCall::Renew(id), Lease::Held { id: holder, duration, .. } | Lease::Over { id: holder, duration }) => {
                if id == holder {
                    held(*id, *duration)
                } else {
                    None
                }
            }
            (LeaseCall::Renew(_), Lease::Free | Lease::Broken { .. }) => None,
            (
                LeaseCall::Release(id),
                Lease::Held { id: last, .. } | Lease::Over { id: last, .. } | Lease::Broken { id: last },
            ) => (id == last).then_some(Lease::Free),
            (LeaseCall::Release(_) | LeaseCall::Break, Lease::Free) => None,
            (LeaseCall::Break, Lease::Held { id, .. } | Lease::Over { id, .. } | Lease::Broken { id }) => {
                Some(Lease::Broken { id: *id })
            }
            (LeaseCall::Write(Some(id)), Lease::Held { id: holder, .. }) => (id == holder).then(|| self.clone()),
            (LeaseCall::Write(None), Lease::Held { .. }) => None,
            (LeaseCall::Write(Some(_)), Lease::Free | Lease::Over { .. } | Lease::Broken { .. }) => None,
            (LeaseCall::Write(None), Lease::Free | Lease::Over { .. } | Lease::Broken { .. }) => Some(Lease::Free),
        }
    }
}

impl Model for Lease {
    type Call = LeaseCall;
    type Answer = LeaseAnswer;

    fn answered(&self, call: &LeaseCall, answer: &LeaseAnswer, span: Span) -> Vec<Lease> {
        let looks = self.at(span).into_iter();
        let after = looks.filter_map(|look| match (look.after(call, span), answer) {
            (Some(after), LeaseAnswer::Done) => Some(after),
            (None, LeaseAnswer::Refused) => Some(look),
            (Some(_), LeaseAnswer::Refused) | (None, LeaseAnswer::Done) => None,
        });
        after.collect()
    }

    fn unanswered(&self, call: &LeaseCall, span: Span) -> Vec<Lease> {
        self.at(span).iter().filter_map(|look| look.after(call, span)).collect()
    }
}
