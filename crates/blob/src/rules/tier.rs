//! Access tiers: what a blob is said to cost, and whether its bytes can be read.
//!
//! What is archived cannot be read or written. A blob with another tier set is on its way out until it is rehydrated; the end of that
//! is computed from the tick, so no row has to change when it comes.

use concurrency::Timestamp;

use crate::error::BlobError;
use crate::model::tier::{Priority, Rehydration, Tier, TierSet};
use crate::model::{BlobType, Committed};

const GIB: u64 = 1 << 30;

/// The tiers of page blobs, the smallest first, with the longest blob that each takes.
const PREMIUM: [(Tier, u64); 11] = [
    (Tier::P4, 32 * GIB),
    (Tier::P6, 64 * GIB),
    (Tier::P10, 128 * GIB),
    (Tier::P15, 256 * GIB),
    (Tier::P20, 512 * GIB),
    (Tier::P30, 1_024 * GIB),
    (Tier::P40, 2_048 * GIB),
    (Tier::P50, 4_096 * GIB),
    (Tier::P60, 8_192 * GIB),
    (Tier::P70, 16_384 * GIB),
    (Tier::P80, 32_768 * GIB),
];

const STANDARD: [Tier; 5] = [Tier::Hot, Tier::Cool, Tier::Cold, Tier::Archive, Tier::Smart];

impl Tier {
    /// The tier of a block blob that none was set for.
    pub const ACCOUNT_DEFAULT: Tier = Tier::Hot;
    /// Where the server would keep what is in the smart tier: nothing is ever seldom enough used to be moved.
    pub const SMART_DEFAULT: Tier = Tier::Hot;

    pub fn parse(text: &str) -> Option<Tier> {
        let all = STANDARD.into_iter().chain(PREMIUM.map(|(tier, _)| tier));
        all.into_iter().find(|tier| tier.name() == text)
    }

    pub fn name(self) -> &'static str {
        match self {
            Tier::Hot => "Hot",
            Tier::Cool => "Cool",
            Tier::Cold => "Cold",
            Tier::Archive => "Archive",
            Tier::Smart => "Smart",
            Tier::P4 => "P4",
            Tier::P6 => "P6",
            Tier::P10 => "P10",
            Tier::P15 => "P15",
            Tier::P20 => "P20",
            Tier::P30 => "P30",
            Tier::P40 => "P40",
            Tier::P50 => "P50",
            Tier::P60 => "P60",
            Tier::P70 => "P70",
            Tier::P80 => "P80",
        }
    }

    /// The place among the tiers of page blobs, and the longest blob it takes.
    fn premium(self) -> Option<(usize, u64)> {
        let place = PREMIUM.iter().position(|(tier, _)| *tier == self)?;
        Some((place, PREMIUM[place].1))
    }

    /// The tier of a page blob in a premium account that none was set for: the first from P10 on that is large enough.
    pub fn of_pages(length: u64) -> Tier {
        let fits = PREMIUM.iter().skip_while(|(tier, _)| *tier != Tier::P10).find(|(_, most)| length <= *most);
        fits.map_or(Tier::P80, |(tier, _)| *tier)
    }

    /// Whether a blob of this kind and length can have the tier, in an account that is premium or not.
    pub fn check(self, kind: BlobType, length: u64, is_premium: bool) -> Result<(), BlobError> {
        match (kind, self.premium()) {
            (BlobType::Append { .. }, _) | (BlobType::Block, Some(_)) | (BlobType::Page { .. }, None) => {
                Err(BlobError::AccessTierNotSupportedForBlobType)
            }
            (BlobType::Block, None) => Ok(()),
            (BlobType::Page { .. }, Some(_)) if !is_premium => Err(BlobError::BlobAccessTierNotSupportedForAccountType),
            (BlobType::Page { .. }, Some((_, most))) if length > most => {
                Err(BlobError::BlobTierInadequateForContentLength)
            }
            (BlobType::Page { .. }, Some(_)) => Ok(()),
        }
    }
}

impl TierSet {
    /// The tier of a page blob that gets another length. One that was chosen stays, and must be large enough.
    pub fn resized(self, length: u64) -> Result<TierSet, BlobError> {
        match self.tier.premium() {
            Some(_) if self.is_inferred => Ok(TierSet { tier: Tier::of_pages(length), ..self }),
            Some((_, most)) if length > most => Err(BlobError::ContentLengthLargerThanTierLimit),
            Some(_) | None => Ok(self),
        }
    }
}

impl Priority {
    pub fn name(self) -> &'static str {
        match self {
            Priority::Standard => "Standard",
            Priority::High => "High",
        }
    }

    /// How long it takes. The service promises "up to 15 hours" and "under an hour" for blobs that are not large.
    fn seconds(self) -> u64 {
        match self {
            Priority::Standard => 15 * 3600,
            Priority::High => 3600,
        }
    }
}

/// What is told of the tier of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    pub tier: Tier,
    /// `None`: no request set it.
    pub since: Option<Timestamp>,
    pub rehydration: Option<Rehydration>,
}

impl Shown {
    /// What `x-ms-archive-status` says.
    pub fn archive_status(&self) -> Option<&'static str> {
        Some(match self.rehydration?.to {
            Tier::Cool => "rehydrate-pending-to-cool",
            Tier::Cold => "rehydrate-pending-to-cold",
            Tier::Smart => "rehydrate-pending-to-smart",
            _ => "rehydrate-pending-to-hot",
        })
    }
}

impl Committed {
    /// The tier as it is at `now`; `None` for blobs that have none.
    pub fn tier_at(&self, now: Timestamp) -> Option<Shown> {
        let shown = |tier, since| Some(Shown { tier, since, rehydration: None });
        let set = match (self.tier, self.kind) {
            (Some(set), BlobType::Block | BlobType::Page { .. }) => set,
            (None, BlobType::Block) => return shown(Tier::ACCOUNT_DEFAULT, None),
            (None, BlobType::Page { .. }) | (_, BlobType::Append { .. }) => return None,
        };
        match self.rehydration {
            Some(back) if back.end <= now => shown(back.to, Some(back.end)),
            Some(back) => Some(Shown { tier: set.tier, since: Some(set.since), rehydration: Some(back) }),
            None => shown(set.tier, (!set.is_inferred).then_some(set.since)),
        }
    }

    /// The tier that was asked for, as it is at `now`: a blob that came out of the archive is where it went to.
    pub fn tier_set_at(&self, now: Timestamp) -> Option<TierSet> {
        match self.rehydration {
            Some(back) if back.end <= now => Some(TierSet { tier: back.to, since: back.end, is_inferred: false }),
            Some(_) | None => self.tier,
        }
    }

    pub fn is_archived(&self, now: Timestamp) -> bool {
        self.tier_at(now).is_some_and(|shown| shown.tier == Tier::Archive)
    }

    /// What is archived can be neither read nor written, though it can be told of, tagged and deleted.
    pub fn check_not_archived(&self, now: Timestamp) -> Result<(), BlobError> {
        if self.is_archived(now) { Err(BlobError::BlobArchived) } else { Ok(()) }
    }

    /// The same, archived, and on its way to another tier.
    pub fn rehydrating(self, to: Tier, priority: Option<Priority>, now: Timestamp) -> Committed {
        let tier = Some(TierSet { tier: Tier::Archive, since: now, is_inferred: false });
        Committed { tier, rehydration: Some(Rehydration::begin(to, priority.unwrap_or_default(), now)), ..self }
    }

    /// The same in another tier, or on its way there. The tier must be one that it can have.
    pub fn to_tier(&self, tier: Tier, priority: Option<Priority>, now: Timestamp) -> Result<Committed, BlobError> {
        let here = self.tier_at(now);
        let back = here.and_then(|shown| shown.rehydration);
        let set = |tier| Committed {
            tier: Some(TierSet { tier, since: now, is_inferred: false }),
            rehydration: None,
            ..self.clone()
        };
        match (here.map(|shown| shown.tier), back) {
            (_, Some(back)) if back.to != tier => Err(BlobError::BlobBeingRehydrated),
            // A second request may only raise the priority.
            (_, Some(back)) => {
                let faster = Rehydration::begin(tier, priority.unwrap_or(back.priority).max(back.priority), now);
                let rehydration = if faster.end < back.end { faster } else { back };
                Ok(Committed { rehydration: Some(rehydration), ..self.clone() })
            }
            (Some(Tier::Archive), None) if tier == Tier::Archive => Ok(self.clone()),
            (Some(Tier::Archive), None) => {
                let rehydration = Some(Rehydration::begin(tier, priority.unwrap_or_default(), now));
                Ok(Committed { rehydration, ..self.clone() })
            }
            (Some(before), None) => match (before.premium(), tier.premium()) {
                (Some((before, _)), Some((after, _)))
                    if after < before && self.tier.is_some_and(|set| !set.is_inferred) =>
                {
                    Err(BlobError::CannotChangeToLowerTier)
                }
                _ => Ok(set(tier)),
            },
            (None, None) => Ok(set(tier)),
        }
    }
}

impl Committed {
    /// The same at the end of its way back from the archive, if it is on one.
    pub fn rehydrated_at_once(self, now: Timestamp) -> Committed {
        match self.rehydration {
            None => self,
            Some(back) => {
                let tier = Some(TierSet { tier: back.to, since: now, is_inferred: false });
                Committed { tier, rehydration: None, ..self }
            }
        }
    }
}

impl Rehydration {
    fn begin(to: Tier, priority: Priority, now: Timestamp) -> Rehydration {
        Rehydration { to, priority, end: now.plus_seconds(priority.seconds()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, committed};

    fn set(tier: Tier) -> Committed {
        Committed { tier: Some(TierSet { tier, since: NOW, is_inferred: false }), ..committed() }
    }

    fn page(tier: Tier, is_inferred: bool) -> Committed {
        let kind = BlobType::Page { sequence: 0 };
        Committed { tier: Some(TierSet { tier, since: NOW, is_inferred }), kind, ..committed() }
    }

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for tier in STANDARD.into_iter().chain(PREMIUM.map(|(tier, _)| tier)) {
            assert_eq!(Tier::parse(tier.name()), Some(tier));
        }
        assert_eq!(Tier::parse("hot"), None);
    }

    /// Every way from every tier to every other.
    #[test]
    fn only_what_is_archived_takes_time() {
        for from in STANDARD {
            for to in STANDARD {
                let after = set(from).to_tier(to, None, NOW).expect("no tier stands against another");
                let shown = after.tier_at(NOW).expect("a block blob has a tier");
                if from == Tier::Archive && to != Tier::Archive {
                    let end = NOW.plus_seconds(15 * 3600);
                    assert_eq!((shown.tier, shown.rehydration.map(|back| back.to)), (Tier::Archive, Some(to)));
                    assert!(after.is_archived(Timestamp(end.0 - 1)) && !after.is_archived(end));
                    let there = after.tier_at(end).expect("still a block blob");
                    assert_eq!((there.tier, there.since, there.rehydration), (to, Some(end), None));
                } else {
                    assert_eq!((shown.tier, shown.rehydration), (to, None));
                }
            }
        }
    }

    #[test]
    fn a_rehydration_goes_on_and_can_only_be_hurried() {
        let slow = set(Tier::Archive).to_tier(Tier::Cool, Some(Priority::Standard), NOW).unwrap();
        assert_eq!(slow.tier_at(NOW).unwrap().archive_status(), Some("rehydrate-pending-to-cool"));
        for other in [Tier::Hot, Tier::Archive, Tier::Cold] {
            assert_eq!(slow.to_tier(other, None, NOW), Err(BlobError::BlobBeingRehydrated));
        }
        let later = NOW.plus_seconds(60);
        assert_eq!(slow.to_tier(Tier::Cool, None, later), Ok(slow.clone()));
        let fast = slow.to_tier(Tier::Cool, Some(Priority::High), later).unwrap();
        assert_eq!(fast.rehydration, Some(Rehydration::begin(Tier::Cool, Priority::High, later)));
        assert_eq!(fast.to_tier(Tier::Cool, Some(Priority::Standard), later), Ok(fast.clone()));
        // Near its end there is nothing to gain.
        let near = NOW.plus_seconds(15 * 3600 - 60);
        assert_eq!(slow.to_tier(Tier::Cool, Some(Priority::High), near), Ok(slow.clone()));
        // And once it is there it can be archived again.
        let there = NOW.plus_seconds(15 * 3600);
        assert!(slow.to_tier(Tier::Archive, None, there).unwrap().is_archived(there));
    }

    #[test]
    fn a_chosen_tier_limits_the_length_and_an_inferred_one_follows_it() {
        let set = |tier, is_inferred| TierSet { tier, since: NOW, is_inferred };
        assert_eq!(set(Tier::P4, false).resized(32 * GIB), Ok(set(Tier::P4, false)));
        assert_eq!(set(Tier::P4, false).resized(33 * GIB), Err(BlobError::ContentLengthLargerThanTierLimit));
        assert_eq!(set(Tier::P10, true).resized(600 * GIB), Ok(set(Tier::P30, true)));
        assert_eq!(set(Tier::P30, true).resized(512), Ok(set(Tier::P10, true)));
    }

    #[test]
    fn pages_have_tiers_of_their_own_and_only_go_up() {
        assert_eq!(Tier::of_pages(512), Tier::P10);
        assert_eq!(Tier::of_pages(129 * GIB), Tier::P15);
        assert_eq!(Tier::of_pages(8_192 * GIB), Tier::P60);
        let page_kind = BlobType::Page { sequence: 0 };
        let append = BlobType::Append { blocks: 0, sealed: false };
        assert_eq!(Tier::P4.check(page_kind, 512, true), Ok(()));
        assert_eq!(Tier::P4.check(page_kind, 33 * GIB, true), Err(BlobError::BlobTierInadequateForContentLength));
        assert_eq!(Tier::P4.check(page_kind, 512, false), Err(BlobError::BlobAccessTierNotSupportedForAccountType));
        for (tier, kind) in
            [(Tier::Hot, page_kind), (Tier::P4, BlobType::Block), (Tier::Hot, append), (Tier::P4, append)]
        {
            assert_eq!(
                tier.check(kind, 0, true),
                Err(BlobError::AccessTierNotSupportedForBlobType),
                "{tier:?} {kind:?}"
            );
        }
        assert_eq!(page(Tier::P10, false).to_tier(Tier::P6, None, NOW), Err(BlobError::CannotChangeToLowerTier));
        // What nobody chose may be left for something smaller.
        assert_eq!(
            page(Tier::P10, true).to_tier(Tier::P6, None, NOW).map(|after| after.tier.unwrap().tier),
            Ok(Tier::P6)
        );
        assert_eq!(page(Tier::P10, true).tier_at(NOW).unwrap().since, None);
        assert_eq!(
            page(Tier::P10, false).to_tier(Tier::P50, None, NOW).map(|after| after.tier.unwrap().tier),
            Ok(Tier::P50)
        );
    }
}
