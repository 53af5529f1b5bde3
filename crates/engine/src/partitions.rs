//! The partitions of a decision.

use crate::Key;

/// How many partitions one decision may name.
pub const PARTITIONS_MAX: usize = 4;

/// The partitions that a decision changes: at least one and at most [`PARTITIONS_MAX`], each once, in the order of their keys.
///
/// The order is the same for every decision, so engines that lock partitions lock them in this order (or in another one that
/// depends on nothing but the partitions).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Partitions {
    first: Key,
    /// Nearly always none, which takes no memory.
    others: Vec<Key>,
}

impl Partitions {
    /// The partitions with these keys, in any order.
    ///
    /// # Panics
    ///
    /// If there is none, or more than [`PARTITIONS_MAX`].
    #[must_use]
    pub fn of(keys: impl IntoIterator<Item = Key>) -> Partitions {
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        assert!((1..=PARTITIONS_MAX).contains(&keys.len()), "a decision names 1 to {PARTITIONS_MAX} partitions");
        let first = keys.remove(0);
        Partitions { first, others: keys }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<Key> for Partitions {
    fn from(key: Key) -> Partitions {
        Partitions { first: key, others: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<Key> {
        names.iter().map(|name| Key::new(0x70).text(name)).collect()
    }

    #[test]
    fn partitions_are_sorted_and_named_once() {
        let partitions = Partitions::of(keys(&["c", "a", "b", "a", "c", "a"]));
        assert!(partitions.iter().eq(&keys(&["a", "b", "c"])));
        assert_eq!(partitions, Partitions::of(keys(&["b", "c", "a"])));
        assert_eq!(Partitions::of(keys(&["a", "a"])), Partitions::from(keys(&["a"]).remove(0)));
    }

    #[test]
    #[should_panic(expected = "a decision names 1 to 4 partitions")]
    fn a_decision_without_a_partition_is_a_fault() {
        let _ = Partitions::of([]);
    }

    #[test]
    #[should_panic(expected = "a decision names 1 to 4 partitions")]
    fn a_decision_of_too_many_partitions_is_a_fault() {
        let _ = Partitions::of(keys(&["a", "b", "c", "d", "e"]));
    }
}
