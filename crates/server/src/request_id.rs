//! A name for every request: a GUID, unique and cheap.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives out request ids: a random beginning for this run of the server, then a counter.
#[derive(Debug)]
pub(crate) struct RequestIds {
    run: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        // The hasher's keys are random for each process; ids need no more than that.
        RequestIds { run: RandomState::new().hash_one(std::process::id()), count: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> RequestId {
        // One relaxed counter for all: the order of ids does not matter, only that no two are equal.
        format_id(self.run, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// A request id as text, on the stack.
#[derive(Clone, Copy)]
pub(crate) struct RequestId([u8; 36]);

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `RRRRRRRR-RRRR-RRRR-CCCC-CCCCCC000000`: ids of the service end in six zeros, and some tools look for them.
fn format_id(run: u64, count: u64) -> RequestId {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [b'0'; 32];
    for (at, digit) in digits.iter_mut().take(26).enumerate() {
        let nibble = if at < 16 { run >> (60 - 4 * at) } else { count >> (36 - 4 * (at - 16)) };
        *digit = HEX[(nibble & 15) as usize];
    }
    let mut text = [b'-'; 36];
    for (from, to) in [(0..8, 0..8), (8..12, 9..13), (12..16, 14..18), (16..20, 19..23), (20..32, 24..36)] {
        text[to].copy_from_slice(&digits[from]);
    }
    RequestId(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_guid_that_ends_in_six_zeros() {
        assert_eq!(format_id(0x0123_4567_89ab_cdef, 0x42).as_str(), "01234567-89ab-cdef-0000-000042000000");
        assert_eq!(format_id(0, 0xff_ffff_ffff).as_str(), "00000000-0000-0000-ffff-ffffff000000");
    }

    #[test]
    fn no_two_are_equal() {
        let ids = RequestIds::new();
        assert_ne!(ids.next().as_str(), ids.next().as_str());
    }
}
