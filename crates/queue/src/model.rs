//! The rows of the Queue service, and how a message changes.
//!
//! - A queue is one row, by account and name. Its `generation` is part of its messages' keys, so deleting or clearing a
//!   queue changes one row and all its messages are out of reach at once.
//! - A message is a small row, ordered by the time at which it is visible next ([`MessagePosition`]); it moves when it is given
//!   out. Its text is a row of its own, ordered by the time at which it expires, and written once. So visible messages
//!   and expired messages are both found at the beginning of a range, however many messages there are.
//! - [`Marks`] is one row for all messages of a generation: how many there are, and before which position there are
//!   none.

use concurrency::{MessageId, PopReceipt, Timestamp};
use engine::{Key, Rows, Stop, Tick, Unread};
use minicbor::{Decode, Encode};
use service::space;
use service::{Pairs, RequestError, StoredPolicy, codec};
use wire::names::QueueName;

use crate::error::QueueError;

/// Why a function over rows ends without a result.
pub type Halt = Stop<QueueError>;

pub fn refuse(error: QueueError) -> Halt {
    Stop::Refused(error)
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Queue {
    /// Part of the keys of its messages. Clearing the queue, or creating it again, draws a new one.
    #[n(0)]
    pub generation: u64,
    #[n(1)]
    pub metadata: Pairs,
    #[n(2)]
    pub policies: Vec<StoredPolicy>,
}

/// The same row, when it only matters that the queue exists.
#[derive(Decode)]
#[cbor(map)]
struct QueueGuard {
    #[n(0)]
    generation: u64,
}

/// The position of a message in its queue. Messages are given out in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Encode, Decode)]
pub struct MessagePosition {
    /// When the message is visible next, or when it expires if that is sooner. So expired messages are found among the
    /// visible ones.
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    pub number: u64,
}

/// A message without its text.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Message {
    #[cbor(n(0), with = "id")]
    pub id: MessageId,
    #[cbor(n(1), with = "codec::time")]
    pub inserted: Timestamp,
    #[cbor(n(2), with = "codec::time")]
    pub expires: Timestamp,
    #[cbor(n(3), with = "codec::time")]
    pub next_visible: Timestamp,
    /// The secret part of the last pop receipt.
    #[n(4)]
    pub secret: u64,
    /// The dequeue count.
    #[n(5)]
    pub dequeued: u64,
}

/// The text of a message.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Text {
    #[n(0)]
    pub text: String,
    /// The time in the position that the message was put at. A message that was never given out is still there.
    #[cbor(n(1), with = "codec::time")]
    pub first: Timestamp,
}

/// What is known about all messages of a generation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Marks {
    /// How many texts there are: one for each message, also for those that have expired and are not swept yet.
    #[n(0)]
    pub count: u64,
    /// No message has a position before this one. A scan begins here, so it does not walk over the deleted rows of
    /// messages that were taken earlier.
    #[n(1)]
    pub low: MessagePosition,
    /// How far the sweeper has come: no text expires before this time.
    #[cbor(n(2), with = "codec::time")]
    pub swept: Timestamp,
    /// The time of the due row that wakes the sweeper. A queue has at most one.
    #[cbor(n(3), with = "opt_time")]
    pub due: Option<Timestamp>,
    /// How many rows of expired messages may be left after their texts were swept.
    #[n(4)]
    pub ghosts: u64,
    /// How far the search for those rows has come.
    #[n(5)]
    pub hunted: Option<MessagePosition>,
}

/// How long a message lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifetime {
    Seconds(u64),
    Forever,
}

/// The expiry time of a message that never expires: the last second that a date can express.
pub const NEVER: Timestamp = Timestamp(3_155_378_975_990_000_000);

impl Message {
    /// A new message. Its first pop receipt works like any later one.
    pub fn new(lifetime: Lifetime, invisible_secs: u64, tick: Tick) -> Message {
        let (random, secret) = halves(tick.entropy);
        Message {
            id: MessageId::new(tick.id(0), random),
            inserted: tick.now,
            expires: match lifetime {
                Lifetime::Seconds(seconds) => tick.now.plus_seconds(seconds).min(NEVER),
                Lifetime::Forever => NEVER,
            },
            next_visible: tick.now.plus_seconds(invisible_secs),
            secret,
            dequeued: 0,
        }
    }

    /// The message after Get Messages: hidden for `invisible_secs`, with a new pop receipt.
    pub fn taken(&self, invisible_secs: u64, tick: Tick) -> Message {
        Message { dequeued: self.dequeued + 1, ..self.moved(invisible_secs, tick) }
    }

    /// The message after Update Message. Its visibility timeout must not end after the message expires.
    pub fn updated(&self, invisible_secs: u64, tick: Tick) -> Result<Message, QueueError> {
        let message = self.moved(invisible_secs, tick);
        if message.next_visible > message.expires {
            return Err(QueueError::from(RequestError::OutOfRangeQueryParameterValue {
                name: "visibilitytimeout",
                value: invisible_secs.to_string(),
                least: 0,
                most: (self.expires.0 - tick.now.0) / Timestamp::TICKS_PER_SECOND,
            }));
        }
        Ok(message)
    }

    fn moved(&self, invisible_secs: u64, tick: Tick) -> Message {
        let (_, secret) = halves(tick.entropy);
        Message { next_visible: tick.now.plus_seconds(invisible_secs), secret, ..self.clone() }
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now
    }

    pub fn place(&self) -> MessagePosition {
        MessagePosition { at: self.next_visible.min(self.expires), number: self.id.number() }
    }

    pub fn receipt(&self) -> PopReceipt {
        PopReceipt { message: self.id, place: self.place().at, secret: self.secret }
    }
}

/// Two independent halves: one is public (in the message id), the other is the secret of the pop receipt.
fn halves(entropy: u128) -> (u64, u64) {
    ((entropy >> 64) as u64, entropy as u64)
}

impl MessagePosition {
    /// The first position after this one.
    pub fn next(self) -> MessagePosition {
        MessagePosition { number: self.number + 1, ..self }
    }

    /// A position before all messages that become visible after `now`.
    pub fn after(now: Timestamp) -> MessagePosition {
        MessagePosition { at: now.plus_ticks(1), number: 0 }
    }
}

pub fn queue_key(account: u64, name: &QueueName) -> Key {
    Key::new(space::QUEUE).number(account).text(name.as_str())
}

pub fn marks_key(generation: u64) -> Key {
    Key::new(space::QUEUE_MARKS).number(generation)
}

pub fn messages_of(generation: u64) -> Key {
    Key::new(space::MESSAGE).number(generation)
}

pub fn message_key(generation: u64, place: MessagePosition) -> Key {
    messages_of(generation).number(place.at.0).number(place.number)
}

pub fn texts_of(generation: u64) -> Key {
    Key::new(space::MESSAGE_TEXT).number(generation)
}

pub fn text_key(generation: u64, expires: Timestamp, number: u64) -> Key {
    texts_of(generation).number(expires.0).number(number)
}

pub fn find_queue(rows: &dyn Rows, account: u64, name: &QueueName) -> Result<Option<Queue>, Unread> {
    rows.get(&queue_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}

/// The queue, which must exist.
pub fn existing_queue(rows: &dyn Rows, account: u64, name: &QueueName) -> Result<Queue, Halt> {
    find_queue(rows, account, name)?.ok_or(refuse(QueueError::QueueNotFound))
}

/// The queue's generation. Every decision on a message reads it, so that the queue exists in the same state of the
/// store.
pub fn generation(rows: &dyn Rows, account: u64, name: &QueueName) -> Result<u64, Halt> {
    let row = rows.get(&queue_key(account, name))?.ok_or(refuse(QueueError::QueueNotFound))?;
    Ok(codec::decode::<QueueGuard>(&row)?.generation)
}

/// The marks of a generation. A queue that never held a message has no such row.
pub fn find_marks(rows: &dyn Rows, generation: u64) -> Result<Marks, Unread> {
    rows.get(&marks_key(generation))?.map_or_else(|| Ok(Marks::default()), |row| codec::decode(&row))
}

/// The id of a message, as its bytes.
mod id {
    use concurrency::MessageId;
    use minicbor::decode::{Decoder, Error as DecodeError};
    use minicbor::encode::{Encoder, Error as EncodeError, Write};

    pub fn encode<C, W: Write>(id: &MessageId, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.bytes(&id.0)?;
        Ok(())
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, _: &mut C) -> Result<MessageId, DecodeError> {
        let bytes = d.bytes()?.try_into().map_err(|_| DecodeError::message("a message id is not 16 bytes"))?;
        Ok(MessageId(bytes))
    }
}

/// An optional time.
mod opt_time {
    use concurrency::Timestamp;
    use minicbor::decode::{Decode, Decoder, Error as DecodeError};
    use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

    pub fn encode<C, W: Write>(
        time: &Option<Timestamp>,
        e: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        time.map(|time| time.0).encode(e, context)
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, context: &mut C) -> Result<Option<Timestamp>, DecodeError> {
        Ok(Option::<u64>::decode(d, context)?.map(Timestamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, message, tick};

    #[test]
    fn never_is_the_last_second_there_is() {
        assert_eq!(wire::dates::http_date(NEVER).as_str(), "Fri, 31 Dec 9999 23:59:59 GMT");
        for lifetime in [Lifetime::Forever, Lifetime::Seconds(u64::MAX)] {
            assert_eq!(Message::new(lifetime, 0, tick()).expires, NEVER);
        }
    }

    #[test]
    fn a_new_message_stands_where_it_can_be_seen() {
        let now = Message::new(Lifetime::Seconds(60), 0, tick());
        assert_eq!((now.inserted, now.next_visible, now.expires), (NOW, NOW, NOW.plus_seconds(60)));
        assert_eq!(now.dequeued, 0);
        assert_eq!(now.place(), MessagePosition { at: NOW, number: tick().stamp.0 });
        let later = Message::new(Lifetime::Seconds(60), 7, tick());
        assert_eq!(later.place().at, NOW.plus_seconds(7));
    }

    #[test]
    fn every_change_makes_the_receipts_before_it_stale() {
        let found = message();
        let later = Tick { now: NOW, stamp: tick().stamp.plus_ticks(16), entropy: 99 };
        let taken = found.taken(0, later);
        let updated = found.updated(0, later).unwrap();
        for changed in [&taken, &updated] {
            assert_eq!(changed.place(), found.place(), "only the secret has changed");
            assert!(found.receipt().check(found.id, Some(&changed.receipt())).is_err());
            assert_eq!(changed.receipt().check(found.id, Some(&changed.receipt())), Ok(()));
        }
        assert_eq!((taken.dequeued, updated.dequeued), (1, 0));
        assert_eq!((taken.expires, updated.expires), (found.expires, found.expires));
    }

    /// Expired messages are searched for among the visible ones.
    #[test]
    fn nothing_stands_beyond_its_expiry() {
        let taken = message().taken(3_600, tick());
        assert_eq!(taken.next_visible, NOW.plus_seconds(3_600));
        assert_eq!(taken.place().at, taken.expires);
    }

    #[test]
    fn who_has_a_message_cannot_hide_it_beyond_its_end() {
        let found = message();
        assert!(found.updated(60, tick()).is_ok());
        let refused = found.updated(61, tick()).unwrap_err();
        let (name, value) = ("visibilitytimeout", "61".to_owned());
        let expected = RequestError::OutOfRangeQueryParameterValue { name, value, least: 0, most: 60 };
        assert_eq!(refused, expected.into());
        let forever = Message { expires: NEVER, ..found };
        assert!(forever.updated(604_800, tick()).is_ok());
    }

    #[test]
    fn the_id_does_not_tell_the_secret() {
        let two =
            [1_u128, 2].map(|secret| Message::new(Lifetime::Forever, 0, Tick { entropy: 7 << 64 | secret, ..tick() }));
        assert_eq!(two[0].id, two[1].id);
        assert_ne!(two[0].secret, two[1].secret);
    }

    #[test]
    fn rows_survive_the_way_there_and_back() {
        let found = message();
        assert_eq!(codec::decode::<Message>(&codec::encode(&found)), Ok(found));
        for due in [None, Some(NOW)] {
            let place = MessagePosition { at: NOW, number: 3 };
            let marks = Marks { count: 7, low: place, swept: NOW, due, ghosts: 2, hunted: due.map(|_| place) };
            assert_eq!(codec::decode::<Marks>(&codec::encode(&marks)), Ok(marks));
        }
    }
}
