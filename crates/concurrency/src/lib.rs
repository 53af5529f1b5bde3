//! The rules of who may change what, and when: ETags, conditional requests, leases and pop receipts.
//!
//! Everything here is a value with total functions: old value in, new value or refusal out. There is no I/O, no
//! `async`, no clock and no randomness; the time and every new id are arguments, and what has expired is computed
//! from the time given, never by a timer. So the whole space of states, actions and times can be walked by a test.
//!
//! - [`time`]: a point in time, counted as the service counts it
//! - [`etag`]: the version mark of a resource, and what a request says about it
//! - [`conditions`]: `If-Match` and its companions
//! - [`tag_expression`]: what a request says about the tags of a blob
//! - [`lease`]: the lock that a client holds on a resource for a while or until further notice
//! - [`receipt`]: the right to change a message, which ends when somebody else is given it
//!
//! Which operation asks which rule, in which order, and how a refusal reads on the wire, is for the services to say.

#![forbid(unsafe_code)]

pub mod conditions;
pub mod depth;
pub mod etag;
mod guid;
pub mod lease;
pub mod receipt;
pub mod tag_expression;
pub mod time;

pub use conditions::{Conditions, Unmet, Version};
pub use depth::Depth;
pub use etag::{ETag, ETagMatch};
pub use lease::{BreakPeriod, DurationKind, Lease, LeaseDuration, LeaseId, LeaseRefusal, LeaseState, Until};
pub use receipt::{MessageId, PopReceipt, ReceiptRefusal};
pub use tag_expression::{TagComparison, TagExpression, TagOperator};
pub use time::Timestamp;
