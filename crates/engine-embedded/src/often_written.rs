//! Which rows are written again and again.

use std::sync::atomic::Ordering;

use crate::cache::KeyHash;
use crate::sync::AtomicU64;

const SLOTS: usize = if cfg!(feature = "simulation") { 64 } else { 1 << 14 };
/// A row counts as often written once for so many writes.
const WRITES: u64 = 16;
/// The lowest bits of a slot hold the count of writes, the others tell the rows of the slot apart.
const COUNT_BITS: u64 = 0xff;

/// Each slot counts the writes of the row that was written to it last.
#[derive(Debug)]
pub struct OftenWritten {
    slots: Box<[AtomicU64]>,
}

impl Default for OftenWritten {
    fn default() -> OftenWritten {
        OftenWritten { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl OftenWritten {
    /// Notes that a row is written. `true` with every 16th time, if no other row of its slot comes between. Two threads that
    /// write at once may lose a count, which does no harm.
    pub fn counts(&self, KeyHash(hash): KeyHash) -> bool {
        let slot = &self.slots[usize::try_from(hash >> 8).unwrap_or(0) % SLOTS];
        let (row, known) = (hash & !COUNT_BITS, slot.load(Ordering::Relaxed));
        let count = if known & !COUNT_BITS == row { (known & COUNT_BITS) + 1 } else { 1 };
        slot.store(row | (count % WRITES), Ordering::Relaxed);
        count == WRITES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::RandomState;

    #[test]
    fn each_sixteenth_write_counts() {
        let (rows, hasher) = (OftenWritten::default(), RandomState::default());
        let hash = |key: &[u8]| KeyHash::new(&hasher, key);
        let counted: Vec<usize> = (1..=50).filter(|_| rows.counts(hash(b"often"))).collect();
        assert_eq!(counted, [16, 32, 48]);
        for number in 0..100_000_u64 {
            assert!(!rows.counts(hash(&number.to_be_bytes())), "{number} was written once");
        }
    }
}
