//! One message of a queue: nobody else sees it while somebody has it, it is not lost, and it does not come back.

use crate::check::Model;
use crate::history::Span;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Message {
    #[default]
    NotYet,
    Queued {
        /// When it can be seen (again), at the earliest and at the latest.
        seen_from: (u64, u64),
        receipt: Receipt,
        /// How often it was taken.
        taken: u64,
    },
    /// Deleted: it never comes back.
    Gone,
}

/// The pop receipt that is valid now.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Receipt {
    /// In an answer that nobody saw.
    Unseen,
    Is(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageCall {
    /// Put Message, to be seen after so long.
    Put {
        hidden_for: u64,
    },
    /// Get Messages of its queue, hiding for so long what it returns.
    Take {
        hidden_for: u64,
    },
    /// Peek Messages of its queue.
    Peek,
    Update {
        receipt: String,
        hidden_for: u64,
    },
    Delete {
        receipt: String,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageAnswer {
    /// Put, Update: done, and this is the receipt.
    Receipt(String),
    /// Take: it was among those returned.
    Taken {
        receipt: String,
        taken: u64,
    },
    /// Peek: it was among those returned.
    Peeked {
        taken: u64,
    },
    /// Take, Peek: it was not, though fewer were returned than asked for.
    NotSeen,
    /// Take, Peek: it was not, and as many others were returned as asked for.
    Untold,
    Deleted,
    /// Update, Delete: this receipt is not valid.
    OtherReceipt,
    /// Update, Delete: there is no such message, or none with this receipt. Services say either of one that was taken again.
    Missing,
}

/// What happens to a message that is there.
fn queued(seen_after: u64, span: Span, receipt: Receipt, taken: u64) -> Message {
    let seen_from = (span.begin.saturating_add(seen_after), span.end.saturating_add(seen_after));
    Message::Queued { seen_from, receipt, taken }
}

impl Message {
    fn may_be_seen(&self, span: Span) -> bool {
        matches!(self, Message::Queued { seen_from: (earliest, _), .. } if span.end >= *earliest)
    }

    fn may_be_hidden(&self, span: Span) -> bool {
        match self {
            Message::NotYet | Message::Gone => true,
            Message::Queued { seen_from: (_, latest), .. } => span.begin <= *latest,
        }
    }

    fn taken(&self) -> u64 {
        if let Message::Queued { taken, .. } = self { *taken } else { 0 }
    }

    /// Who names a receipt was told it before, so one that nobody saw is another.
    fn has(&self, named: &str) -> bool {
        matches!(self, Message::Queued { receipt: Receipt::Is(valid), .. } if valid == named)
    }
}

impl Model for Message {
    type Call = MessageCall;
    type Answer = MessageAnswer;

    fn answered(&self, call: &MessageCall, answer: &MessageAnswer, span: Span) -> Vec<Message> {
        let known = |receipt: &String| Receipt::Is(receipt.clone());
        let same = || Some(self.clone());
        let after = match (call, answer) {
            (MessageCall::Put { hidden_for }, MessageAnswer::Receipt(receipt)) => {
                (*self == Message::NotYet).then(|| queued(*hidden_for, span, known(receipt), 0))
            }
            (MessageCall::Take { hidden_for }, MessageAnswer::Taken { receipt, taken }) => (self.may_be_seen(span)
                && self.taken() + 1 == *taken)
                .then(|| queued(*hidden_for, span, known(receipt), *taken)),
            (MessageCall::Peek, MessageAnswer::Peeked { taken }) => {
                (self.may_be_seen(span) && self.taken() == *taken).then(same).flatten()
            }
            (MessageCall::Take { .. } | MessageCall::Peek, MessageAnswer::NotSeen) => {
                self.may_be_hidden(span).then(same).flatten()
            }
            (MessageCall::Take { .. } | MessageCall::Peek, MessageAnswer::Untold) => same(),
            (MessageCall::Update { receipt, hidden_for }, MessageAnswer::Receipt(new)) => {
                self.has(receipt).then(|| queued(*hidden_for, span, known(new), self.taken()))
            }
            (MessageCall::Delete { receipt }, MessageAnswer::Deleted) => self.has(receipt).then_some(Message::Gone),
            (
                MessageCall::Update { receipt, .. } | MessageCall::Delete { receipt },
                MessageAnswer::OtherReceipt | MessageAnswer::Missing,
            ) => (!self.has(receipt)).then(same).flatten(),
            _ => None,
        };
        after.into_iter().collect()
    }

    fn unanswered(&self, call: &MessageCall, span: Span) -> Vec<Message> {
        let after = match call {
            MessageCall::Put { hidden_for } => {
                (*self == Message::NotYet).then(|| queued(*hidden_for, span, Receipt::Unseen, 0))
            }
            MessageCall::Take { hidden_for } => {
                self.may_be_seen(span).then(|| queued(*hidden_for, span, Receipt::Unseen, self.taken() + 1))
            }
            MessageCall::Update { receipt, hidden_for } => {
                self.has(receipt).then(|| queued(*hidden_for, span, Receipt::Unseen, self.taken()))
            }
            MessageCall::Delete { receipt } => self.has(receipt).then_some(Message::Gone),
            MessageCall::Peek => None,
        };
        after.into_iter().collect()
    }
}
