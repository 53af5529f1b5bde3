//! Keys as the database holds them: cut where a b-tree takes no more.

use engine::{Key, Partitions};

/// Longer keys are cut here. A b-tree page holds at least three entries, which leaves 2,704 bytes for each.
pub const HEAD_BYTES: usize = 2_000;

/// A key in two parts that sort as the whole does, and what makes it unique in the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredKey<'a> {
    pub head: &'a [u8],
    pub rest: &'a [u8],
}

impl<'a> StoredKey<'a> {
    pub fn of(key: &'a [u8]) -> StoredKey<'a> {
        let (head, rest) = key.split_at(key.len().min(HEAD_BYTES));
        StoredKey { head, rest }
    }

    /// Nothing for short keys, else a hash of what is not in the index.
    pub fn disc(&self) -> Vec<u8> {
        match self.rest.is_empty() {
            true => Vec::new(),
            false => ring::digest::digest(&ring::digest::SHA256, self.rest).as_ref().to_vec(),
        }
    }
}

/// The key that `head` and `rest` are parts of.
pub fn whole(head: &[u8], rest: &[u8]) -> Vec<u8> {
    [head, rest].concat()
}

/// The numbers by which partitions are locked, in the order in which all nodes lock them.
pub fn partition_numbers(partitions: &Partitions) -> Vec<i64> {
    let mut numbers: Vec<i64> = partitions.iter().map(partition_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The number by which a partition is locked. Two that share one wait for each other, and no more.
fn partition_number(partition: &Key) -> i64 {
    let hash = ring::digest::digest(&ring::digest::SHA256, partition.as_bytes());
    let first: [u8; 8] = hash.as_ref()[..8].try_into().expect("a SHA-256 has 32 bytes");
    i64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_locked_in_one_order_whoever_names_them() {
        let key = |number: u64| Key::new(0x70).number(number);
        let all: Vec<i64> = (0..40).map(|number| partition_number(&key(number))).collect();
        assert!(!all.is_sorted(), "numbers are not in the order of keys: this shows nothing");
        for first in 0..40 {
            let numbers = partition_numbers(&Partitions::of((first..first + 4).map(key)));
            assert!(numbers.is_sorted() && numbers.len() == 4);
        }
    }

    #[test]
    fn cut_keys_sort_as_whole_ones() {
        let long = |last: &[u8]| [&vec![7; HEAD_BYTES][..], last].concat();
        let keys = [vec![7; 3], vec![7; HEAD_BYTES], long(&[0]), long(&[0, 0]), long(&[1]), vec![7, 8]];
        assert!(keys.is_sorted());
        let cut: Vec<(&[u8], &[u8])> =
            keys.iter().map(|key| StoredKey::of(key)).map(|key| (key.head, key.rest)).collect();
        assert!(cut.is_sorted());
        assert!(keys.iter().zip(&cut).all(|(key, (head, rest))| whole(head, rest) == *key));
        let discs: Vec<Vec<u8>> = keys.iter().map(|key| StoredKey::of(key).disc()).collect();
        assert_eq!(discs.iter().filter(|disc| disc.is_empty()).count(), 3);
        assert!(discs[2] != discs[3] && discs[3] != discs[4]);
    }
}
