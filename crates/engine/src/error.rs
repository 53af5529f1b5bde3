//! Refused is not failed: a refusal is an answer of the service, a failure is the engine's.

use std::fmt;

/// Why an engine could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// Too many are waiting; the caller may try again.
    Busy,
    /// The disk is (nearly) full: growing writes are refused until space returns.
    Full,
    /// The engine is closing or closed.
    Closed,
    /// It did not work now: an I/O error, a lost connection.
    Unavailable(String),
    /// What is stored cannot be right.
    Corrupt(String),
    /// A key or value no engine takes; a fault of the caller.
    TooLarge { key_bytes: usize, value_bytes: usize },
    /// Another node decides on these rows for now. `address` says which, if that is known.
    Elsewhere { address: Option<String> },
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Busy => f.write_str("too many requests are waiting"),
            EngineError::Full => f.write_str("the disk is full"),
            EngineError::Closed => f.write_str("the engine is closed"),
            EngineError::Unavailable(why) => write!(f, "unavailable: {why}"),
            EngineError::Corrupt(what) => write!(f, "corrupt: {what}"),
            EngineError::TooLarge { key_bytes, value_bytes } => {
                write!(f, "a row of {key_bytes} key and {value_bytes} value bytes is too large")
            }
            EngineError::Elsewhere { .. } => f.write_str("another node decides on this"),
        }
    }
}

impl std::error::Error for EngineError {}

/// Why a row could not be given to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Not at hand yet: the engine fetches it and runs the function again.
    NotYet,
    Failed(EngineError),
}

impl From<EngineError> for Unread {
    fn from(error: EngineError) -> Unread {
        Unread::Failed(error)
    }
}

/// Why a function ends without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop<R> {
    Refused(R),
    Unread(Unread),
}

impl<R> From<Unread> for Stop<R> {
    fn from(unread: Unread) -> Stop<R> {
        Stop::Unread(unread)
    }
}

/// What the asker of a decision or read learns when there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCommitted<R> {
    Refused(R),
    Failed(EngineError),
}

impl<R> From<EngineError> for NotCommitted<R> {
    fn from(error: EngineError) -> NotCommitted<R> {
        NotCommitted::Failed(error)
    }
}
