//! The rules that decide which client may change what, and when: ETags, conditional requests, leases, pop
//! receipts, share modes, byte-range locks and caching.
//!
//! Everything here is a value with total functions: old value in, new value or refusal out. There is no I/O, no
//! `async`, no clock and no randomness; the time and every new id are arguments, and expiry is computed from the given
//! time, never by a timer. So tests can walk through all states, actions and times.
//!
//! - [`time`]: a point in time, counted as the service counts it
//! - [`etag`]: ETags, and the headers that name them
//! - [`conditions`]: `If-Match` and its companions
//! - [`tag_expression`]: conditions on the tags of a blob
//! - [`lease`]: the lock that a client holds on a resource, for a while or without end
//! - [`share_mode`]: which handles and REST operations may have a file open together
//! - [`range_lock`]: byte-range locks of open files
//! - [`caching`]: what SMB clients may keep of a file, and what breaks their oplocks and leases
//! - [`seen`]: what a decision saw, for those who explain it
//! - [`receipt`]: pop receipts: the right to change a message, until it is given out again
//!
//! Which operation checks which rule, in which order, and which error code a refusal has, is for the services to say.

#![forbid(unsafe_code)]

pub mod caching;
pub mod conditions;
pub mod depth;
pub mod etag;
pub mod guid;
pub mod lease;
pub mod range_lock;
pub mod receipt;
pub mod seen;
pub mod share_mode;
pub mod tag_expression;
pub mod time;

pub use conditions::{Conditions, Unmet, Version};
pub use depth::Depth;
pub use etag::{ETag, ETagMatch};
pub use lease::{BreakPeriod, DurationKind, Lease, LeaseDuration, LeaseId, LeaseRefusal, LeaseState, Until};
pub use receipt::{MessageId, PopReceipt, ReceiptRefusal};
pub use seen::{Seen, SeenLease, SeenMessage};
pub use tag_expression::{TagComparison, TagExpression, TagOperator};
pub use time::Timestamp;
