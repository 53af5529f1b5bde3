//! Pop receipts: the client that was given a message last may change it.
//!
//! Every time a message is given out or changed, it gets a new pop receipt, and the one before is stale. A receipt does
//! not expire: as long as the message is not given out again, it stays valid. It names its message and the message's
//! position in the queue, and it carries a secret, so that nobody can forge one.

use std::fmt;

use crate::guid;
use crate::time::Timestamp;

/// A message's id: a GUID that contains the message's number. No two messages have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    /// Numbers are stamps: ticks since the year 1, which stay below this for some ten thousand years.
    pub const NUMBER_MAX: u64 = (1 << 62) - 1;

    /// A random GUID (version 4) whose second half is the number.
    #[must_use]
    pub fn new(number: u64, random: u64) -> MessageId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8..].copy_from_slice(&(number & Self::NUMBER_MAX | 1 << 63).to_be_bytes());
        MessageId(bytes)
    }

    /// The message's number.
    #[must_use]
    pub fn number(self) -> u64 {
        let (_, number) = self.0.split_last_chunk::<8>().expect("sixteen bytes have a last eight");
        u64::from_be_bytes(*number) & Self::NUMBER_MAX
    }

    pub fn parse(text: &str) -> Option<MessageId> {
        guid::parse(text).map(MessageId)
    }
}

/// Lower case with hyphens.
impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        guid::write(&self.0, f)
    }
}

/// A pop receipt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PopReceipt {
    pub message: MessageId,
    /// The time in the message's position in its queue.
    pub place: Timestamp,
    /// Random, drawn for every receipt.
    pub secret: u64,
}

/// Why a pop receipt is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReceiptRefusal {
    /// It belongs to another message than the request names.
    OtherMessage,
    /// The message does not exist any more, or was given out or changed since.
    Stale,
}

impl PopReceipt {
    pub const BYTES: usize = 33;
    /// The first byte: the format of the others.
    const FORMAT: u8 = 1;

    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [Self::FORMAT; Self::BYTES];
        bytes[1..17].copy_from_slice(&self.message.0);
        bytes[17..25].copy_from_slice(&self.place.0.to_be_bytes());
        bytes[25..].copy_from_slice(&self.secret.to_be_bytes());
        bytes
    }

    /// Parses a receipt. `None`: the bytes are not one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<PopReceipt> {
        let (&Self::FORMAT, rest) = bytes.split_first()? else { return None };
        let (message, rest) = rest.split_first_chunk::<16>()?;
        let (place, rest) = rest.split_first_chunk::<8>()?;
        Some(PopReceipt {
            message: MessageId(*message),
            place: Timestamp(u64::from_be_bytes(*place)),
            secret: u64::from_be_bytes(rest.try_into().ok()?),
        })
    }

    /// Checks this receipt for the message `named`, whose last receipt is `last` if the message still exists.
    pub fn check(&self, named: MessageId, last: Option<&PopReceipt>) -> Result<(), ReceiptRefusal> {
        if self.message != named {
            return Err(ReceiptRefusal::OtherMessage);
        }
        if last == Some(self) { Ok(()) } else { Err(ReceiptRefusal::Stale) }
    }
}

/// Leaves out the secret.
impl fmt::Debug for PopReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopReceipt").field("message", &self.message).field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: MessageId = MessageId([1; 16]);
    const OTHER: MessageId = MessageId([2; 16]);

    fn receipts() -> Vec<PopReceipt> {
        let mut all = Vec::new();
        for message in [MINE, OTHER] {
            for place in [Timestamp(0), Timestamp(7), Timestamp(u64::MAX)] {
                all.extend([3, 4].map(|secret| PopReceipt { message, place, secret }));
            }
        }
        all
    }

    #[test]
    fn only_the_last_receipt_of_the_named_message_opens_it() {
        for held in receipts() {
            for last in receipts().into_iter().map(Some).chain([None]) {
                for named in [MINE, OTHER] {
                    let expected = match last {
                        _ if held.message != named => Err(ReceiptRefusal::OtherMessage),
                        Some(last) if last == held => Ok(()),
                        Some(_) | None => Err(ReceiptRefusal::Stale),
                    };
                    assert_eq!(held.check(named, last.as_ref()), expected, "{held:?} {last:?} {named}");
                }
            }
        }
    }

    #[test]
    fn a_receipt_survives_the_way_there_and_back_and_nothing_else_is_one() {
        for receipt in receipts() {
            let bytes = receipt.to_bytes();
            assert_eq!(PopReceipt::from_bytes(&bytes), Some(receipt));
            assert_eq!(PopReceipt::from_bytes(&bytes[..32]), None);
            assert_eq!(PopReceipt::from_bytes(&[&bytes[..], &[0]].concat()), None);
            assert_eq!(PopReceipt::from_bytes(&[&[9], &bytes[1..]].concat()), None);
        }
        assert_eq!(PopReceipt::from_bytes(b""), None);
    }

    #[test]
    fn an_id_is_a_guid_with_the_number_in_it() {
        for number in [0, 1, 0x08de_0000_0000_0001, MessageId::NUMBER_MAX] {
            for random in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
                let id = MessageId::new(number, random);
                assert_eq!(id.number(), number);
                let text = id.to_string();
                assert_eq!(MessageId::parse(&text), Some(id));
                assert_eq!(&text[14..15], "4", "{text}");
                assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
            }
        }
        assert_eq!(MessageId::new(1, 0x0123_4567_89ab_cdef).to_string(), "01234567-89ab-4def-8000-000000000001");
    }
}
