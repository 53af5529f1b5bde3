//! What a decision saw: the state that a request was judged by. Nobody decides by it; it is for those who explain an
//! answer afterwards.

use crate::lease::Lease;
use crate::receipt::MessageId;
use crate::time::Timestamp;

/// What was there when a request was judged, as far as it mattered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// As the service writes it, without quotes. `None`: nothing was there, or it has no ETag.
    pub etag: Option<String>,
    pub lease: Option<SeenLease>,
    /// The messages that were given out, changed or looked for.
    pub messages: Vec<SeenMessage>,
}

/// A lease, and the time at which it was judged. That is the engine's time, which a test clock may have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenLease {
    pub lease: Lease,
    pub now: Timestamp,
}

/// A message, without its text and without its receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenMessage {
    pub id: MessageId,
    /// When it can be seen next.
    pub visible: Timestamp,
    /// How often it was given out.
    pub taken: u64,
}

impl Seen {
    /// A resource with an ETag that may be leased.
    #[must_use]
    pub fn resource(etag: impl Into<String>, lease: Lease, now: Timestamp) -> Seen {
        Seen { etag: Some(etag.into()), lease: Some(SeenLease { lease, now }), messages: Vec::new() }
    }

    #[must_use]
    pub fn etag(etag: impl Into<String>) -> Seen {
        Seen { etag: Some(etag.into()), ..Seen::default() }
    }

    #[must_use]
    pub fn messages(messages: Vec<SeenMessage>) -> Seen {
        Seen { messages, ..Seen::default() }
    }
}
