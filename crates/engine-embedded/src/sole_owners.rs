//! Small contents that have one owner, as far as that is known without a look at the rows.
//!
//! Whoever takes a reference to a content back asks the collector to look whether another one is left: a due row, a sweep that
//! finds it, a scan of the references and a commit. A content that is replaced soon after it was stored (a range of a file, a
//! blob that is written again and again) mostly had one reference all its life. The decider has seen that reference made, and
//! sees every other one, so it drops such a content in the commit that takes the reference back, and writes no due row.
//!
//! What is not known here goes the way of the collector. So the table may forget anything, and begins empty after a restart.

use std::collections::HashSet;

use engine::due::Due;
use engine::{Changes, ContentId, Key, KeyReader, Part, space};

/// How many contents are known at a time. In a simulation they meet in few slots, so that both ways are gone.
const SLOTS_LOG2: u32 = if cfg!(feature = "simulation") { 4 } else { 16 };
/// How many contents one decision drops. A step of a purge lets go of thousands, and other decisions would wait for it: the rest
/// goes the way of the collector.
const DROPS_MAX: usize = 64;
/// The key of a reference: its space, what is referred to, and the owner.
const REF_KEY_BYTES: usize = 1 + 8 + 8;

/// A reference to a content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference {
    content: u64,
    owner: u64,
}

/// Each slot holds the last content that fell into it and that has one owner.
#[derive(Debug)]
pub struct SoleOwners {
    slots: Box<[Reference]>,
}

impl Default for SoleOwners {
    fn default() -> SoleOwners {
        SoleOwners { slots: vec![Reference::default(); 1 << SLOTS_LOG2].into() }
    }
}

impl SoleOwners {
    /// Drops contents whose only reference these changes take back, in place of asking the collector to look at them.
    ///
    /// Must be called with the changes of every decision that is committed, before they are: it also learns from them which
    /// contents get further references.
    pub fn drop_at_once(&mut self, changes: &mut Changes) {
        for (key, _) in changes.rows.iter().filter(|(_, value)| value.is_some()) {
            if let Some(content) = referred(key) {
                self.forget(content);
            }
        }
        for content in &changes.dropped {
            self.forget(content.0);
        }
        let is_last = |key: &Key| reference(key).filter(|reference| *self.slot(reference.content) == *reference);
        let removed = changes.rows.iter().filter(|(_, value)| value.is_none());
        let last: Vec<u64> = removed.filter_map(|(key, _)| is_last(key)).map(|reference| reference.content).collect();
        if last.is_empty() {
            return;
        }
        last.iter().for_each(|content| self.forget(*content));
        let last: HashSet<u64> = last.into_iter().take(DROPS_MAX).collect();
        // Without the request to look at it, it is not known what the decision is about.
        let mut dropped = HashSet::new();
        changes.rows.retain(|(key, value)| {
            let asked = value.as_ref().and_then(|_| asks_for(key)).filter(|content| last.contains(content));
            dropped.extend(asked);
            asked.is_none()
        });
        let mut dropped: Vec<u64> = dropped.into_iter().collect();
        dropped.sort_unstable();
        changes.dropped.extend(dropped.into_iter().map(ContentId));
    }

    /// The contents that these changes store with one reference. Large ones are left to the collector: dropping one changes as
    /// many rows as it has parts, and others would wait for that.
    pub fn of(changes: &Changes) -> Vec<Reference> {
        let small = changes.contents.iter().filter(|staged| matches!(staged.part(), Part::Inline(_)));
        let sole = small.filter_map(|staged| {
            let content = staged.id().0;
            let mut rows = changes.rows.iter().filter(|(key, _)| referred(key) == Some(content));
            let (key, value) = rows.next()?;
            (rows.next().is_none() && value.is_some()).then(|| reference(key)).flatten()
        });
        sole.collect()
    }

    /// These contents are stored.
    pub fn note(&mut self, stored: &[Reference]) {
        for reference in stored {
            let at = slot_of(reference.content);
            self.slots[at] = *reference;
        }
    }

    fn slot(&self, content: u64) -> &Reference {
        &self.slots[slot_of(content)]
    }

    fn forget(&mut self, content: u64) {
        let slot = &mut self.slots[slot_of(content)];
        if slot.content == content {
            *slot = Reference::default();
        }
    }
}

/// Ids are stamps, in even steps most of the time: the product spreads them.
fn slot_of(content: u64) -> usize {
    (content.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOTS_LOG2)) as usize
}

/// What a row of a reference refers to.
fn referred(key: &Key) -> Option<u64> {
    let key = key.as_bytes();
    if key.first() == Some(&space::REF) { KeyReader::new(key).number() } else { None }
}

fn reference(key: &Key) -> Option<Reference> {
    let content = referred(key).filter(|_| key.as_bytes().len() == REF_KEY_BYTES)?;
    let owner = key.as_bytes().last_chunk().map(|owner| u64::from_be_bytes(*owner))?;
    Some(Reference { content, owner })
}

/// The content that a due row asks the collector to look at.
fn asks_for(key: &Key) -> Option<u64> {
    let is_due = key.as_bytes().first() == Some(&space::DUE);
    let due = is_due.then(|| Due::from_key(key.as_bytes())).flatten()?;
    due.owner_id().filter(|_| due.space == space::CONTENT)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use engine::{Staged, Timestamp};

    use super::*;

    const NOW: Timestamp = Timestamp(100);

    fn staged(id: u64) -> Staged {
        Staged::new(ContentId(id), 4, Part::Inline(Bytes::from_static(b"data")))
    }

    fn changes(fill: impl FnOnce(&mut Changes)) -> Changes {
        let mut changes = Changes::none();
        fill(&mut changes);
        changes
    }

    /// What the decider does with each decision. Tells what is dropped, and how many rows are written.
    fn committed(owners: &mut SoleOwners, fill: impl FnOnce(&mut Changes)) -> (Vec<u64>, usize) {
        let mut changes = changes(fill);
        owners.drop_at_once(&mut changes);
        owners.note(&SoleOwners::of(&changes));
        (changes.dropped.iter().map(|id| id.0).collect(), changes.rows.len())
    }

    fn unrefer(content: u64, owner: u64) -> impl Fn(&mut Changes) {
        move |changes| {
            changes.unrefer(space::CONTENT, content, owner, NOW);
        }
    }

    #[test]
    fn the_only_reference_takes_the_content_along() {
        let mut owners = SoleOwners::default();
        assert_eq!(
            committed(&mut owners, |changes| {
                changes.store(&staged(7), 1);
            }),
            (vec![], 1)
        );
        assert_eq!(committed(&mut owners, unrefer(7, 1)), (vec![7], 1), "the reference goes, nobody is asked to look");
        assert_eq!(committed(&mut owners, unrefer(7, 1)), (vec![], 2), "it is not known any longer");
    }

    #[test]
    fn what_may_have_another_reference_is_left_to_the_collector() {
        let mut owners = SoleOwners::default();
        assert_eq!(committed(&mut owners, unrefer(7, 1)), (vec![], 2), "it was stored before the start");
        let store = |owners: &mut SoleOwners| {
            committed(owners, |changes| {
                changes.store(&staged(7), 1);
            })
        };
        store(&mut owners);
        assert_eq!(committed(&mut owners, unrefer(7, 2)), (vec![], 2), "of another owner");
        // A second reference, in a later decision and in the one that takes the first back.
        committed(&mut owners, |changes| {
            changes.refer(7, 2);
        });
        assert_eq!(committed(&mut owners, unrefer(7, 1)), (vec![], 2));
        store(&mut owners);
        let moved = |changes: &mut Changes| {
            changes.unrefer(space::CONTENT, 7, 1, NOW).refer(7, 2);
        };
        assert_eq!(committed(&mut owners, moved), (vec![], 3));
        assert_eq!(committed(&mut owners, unrefer(7, 2)), (vec![], 2));
        // Two references from the start.
        committed(&mut owners, |changes| {
            changes.store(&staged(8), 1).refer(8, 2);
        });
        assert_eq!(committed(&mut owners, unrefer(8, 1)), (vec![], 2));
        // Stored and let go in one decision.
        let both = |changes: &mut Changes| {
            changes.store(&staged(9), 1).unrefer(space::CONTENT, 9, 1, NOW);
        };
        assert_eq!(committed(&mut owners, both), (vec![], 3));
        // A reference that goes without a word to the collector.
        committed(&mut owners, |changes| {
            changes.store(&staged(10), 1);
        });
        let silent = |changes: &mut Changes| {
            changes.delete(engine::collector::ref_key(10, 1));
        };
        assert_eq!(committed(&mut owners, silent), (vec![], 1));
        // Things that are no contents may have longer keys.
        committed(&mut owners, |changes| {
            changes.store(&staged(11), 1);
        });
        let longer = |changes: &mut Changes| {
            changes.put(engine::collector::ref_key(11, 1).number(2), "");
        };
        committed(&mut owners, longer);
        assert_eq!(committed(&mut owners, unrefer(11, 1)), (vec![], 2));
    }

    #[test]
    fn large_contents_are_left_to_the_collector() {
        let mut owners = SoleOwners::default();
        let part =
            Part::Placed { rows: std::sync::Arc::new(vec![Bytes::from_static(b"row")]), hold: std::sync::Arc::new(()) };
        let large = Staged::new(ContentId(7), 1 << 20, part);
        committed(&mut owners, |changes| {
            changes.store(&large, 1);
        });
        assert_eq!(committed(&mut owners, unrefer(7, 1)), (vec![], 2));
    }

    #[test]
    fn many_contents_are_forgotten_and_none_is_taken_for_another() {
        let mut owners = SoleOwners::default();
        let count = 3_u64 << SLOTS_LOG2;
        for id in 1..=count {
            committed(&mut owners, |changes| {
                changes.store(&staged(id * 128), id);
            });
        }
        let dropped: usize = (1..=count).map(|id| committed(&mut owners, unrefer(id * 128, id)).0.len()).sum();
        assert!(dropped > 0 && dropped <= 1 << SLOTS_LOG2, "{dropped}");
    }

    /// The decider must not be busy with one decision for long.
    #[test]
    fn one_decision_drops_only_so_many() {
        let mut owners = SoleOwners::default();
        let ids: Vec<u64> = (1..=2 * DROPS_MAX as u64).collect();
        for id in &ids {
            committed(&mut owners, |changes| {
                changes.store(&staged(*id), 1);
            });
        }
        let all = |changes: &mut Changes| ids.iter().for_each(|id| _ = changes.unrefer(space::CONTENT, *id, 1, NOW));
        let (dropped, rows) = committed(&mut owners, all);
        assert!(!dropped.is_empty() && dropped.len() <= DROPS_MAX, "{}", dropped.len());
        assert_eq!(rows, 2 * ids.len() - dropped.len(), "the collector is asked to look at the others");
        assert!(owners.slots.iter().all(|slot| *slot == Reference::default()), "none is known any longer");
    }
}
