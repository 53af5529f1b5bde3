//! Caching: what an SMB client may keep of a file without asking the server, and what takes that back.
//!
//! Oplocks and leases grant the same three rights: to keep what was read (R), to keep writes back (W), to keep the handle open after the
//! application has closed it (H). An oplock belongs to one handle, a lease to a key that its client has chosen; handles that name the
//! same key share the lease. Whatever does something with the file that a cache would hide takes rights back: it *breaks* the cache.
//! A client that held W or H must acknowledge, because it has data to flush or handles to close first; one that held R alone is only told.
//!
//! The rules are those of MS-FSA 2.1.4.12 and MS-SMB2 3.3.4.6, 3.3.4.7, 3.3.5.22; what REST operations break follows
//! <https://learn.microsoft.com/rest/api/storageservices/managing-file-locks>. Differences of the two kinds: an oplock breaks to R or to
//! nothing, never to RH or RW, and a level II oplock is broken by a change through its own handle, too.

use crate::share_mode::RestAccess;

/// A set of the three rights. The bits are those of a lease state in MS-SMB2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Caching(u8);

impl Caching {
    pub const NONE: Caching = Caching(0);
    pub const READ: Caching = Caching(1);
    pub const HANDLE: Caching = Caching(2);
    pub const WRITE: Caching = Caching(4);
    pub const READ_HANDLE: Caching = Caching(3);
    pub const READ_WRITE: Caching = Caching(5);
    pub const ALL: Caching = Caching(7);

    /// From a lease state on the wire. Other bits mean nothing.
    pub fn from_bits(bits: u32) -> Caching {
        Caching((bits & u32::from(Caching::ALL.0)) as u8)
    }

    pub fn bits(self) -> u32 {
        u32::from(self.0)
    }

    pub fn is_none(self) -> bool {
        self == Caching::NONE
    }

    /// Whether everything in `other` is in this set.
    pub fn contains(self, other: Caching) -> bool {
        other.0 & !self.0 == 0
    }

    #[must_use]
    pub const fn and(self, other: Caching) -> Caching {
        Caching(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Caching) -> Caching {
        Caching(self.0 & !other.0)
    }

    #[must_use]
    pub const fn within(self, other: Caching) -> Caching {
        Caching(self.0 & other.0)
    }

    /// What a client can be granted that asks for this: without R there is nothing else.
    #[must_use]
    pub fn grantable(self) -> Caching {
        if self.contains(Caching::READ) { self } else { Caching::NONE }
    }

    /// Whether its holder has something to do before it can give it up: data to write, handles to close.
    pub fn needs_acknowledgement(self) -> bool {
        !self.within(Caching::WRITE.and(Caching::HANDLE)).is_none()
    }
}

/// The levels of an oplock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OplockLevel {
    #[default]
    None,
    LevelTwo,
    Exclusive,
    Batch,
}

impl OplockLevel {
    /// The rights that the level stands for.
    pub fn caching(self) -> Caching {
        match self {
            OplockLevel::None => Caching::NONE,
            OplockLevel::LevelTwo => Caching::READ,
            OplockLevel::Exclusive => Caching::READ_WRITE,
            OplockLevel::Batch => Caching::ALL,
        }
    }

    /// The highest level that stands for no more than these rights.
    pub fn within(caching: Caching) -> OplockLevel {
        let levels = [OplockLevel::Batch, OplockLevel::Exclusive, OplockLevel::LevelTwo];
        levels.into_iter().find(|level| caching.contains(level.caching())).unwrap_or(OplockLevel::None)
    }
}

/// Whether rights are held as an oplock or as a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheKind {
    Oplock,
    Lease,
}

/// Whether an open with this access mask looks at attributes alone: it breaks nothing, and a cache can be exclusive beside it. Reading the
/// security descriptor counts as such beside leases and not beside oplocks, as on Windows.
pub fn is_attributes_only(mask: u32, beside: CacheKind) -> bool {
    const FILE_READ_ATTRIBUTES: u32 = 0x80;
    const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    const READ_CONTROL: u32 = 0x2_0000;
    const SYNCHRONIZE: u32 = 0x10_0000;
    let harmless = FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE;
    mask & !match beside {
        CacheKind::Oplock => harmless,
        CacheKind::Lease => harmless | READ_CONTROL,
    } == 0
}

/// What is done with a file beside the caches of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Contention {
    /// An open that does more than look at attributes, and a REST operation that reads.
    Open,
    /// An open that empties or replaces the file, and a REST operation that writes.
    Overwrite,
    /// An open or an operation that share modes do not let in, while the handle may be one that a client only keeps for later.
    Conflict,
    /// Bytes are changed or locked through a handle.
    Change,
    /// The file is renamed or deleted through a handle.
    Rename,
}

/// What a cache must give up, and whether it is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    pub to: Caching,
    pub waits: bool,
}

impl Contention {
    pub const EVERY: [Contention; 5] =
        [Contention::Open, Contention::Overwrite, Contention::Conflict, Contention::Change, Contention::Rename];

    /// What a cache that holds `held` must give up. Nothing: it may stay as it is.
    pub fn demand(self, held: Caching, kind: CacheKind) -> Option<Demand> {
        let (lost, waited_for) = match self {
            Contention::Open => (Caching::WRITE, Caching::WRITE),
            Contention::Overwrite => (Caching::ALL, Caching::WRITE),
            Contention::Conflict | Contention::Rename => (Caching::HANDLE, Caching::HANDLE),
            Contention::Change => (Caching::ALL, Caching::NONE),
        };
        let left = held.without(lost);
        if left == held {
            return None;
        }
        let to = match kind {
            CacheKind::Lease => left,
            CacheKind::Oplock => left.within(Caching::READ),
        };
        Some(Demand { to, waits: !held.within(waited_for).is_none() })
    }
}

impl RestAccess {
    /// What the operation is to the caches of SMB clients once share modes let it in. If they do not, it is a [`Contention::Conflict`].
    pub fn contention(self) -> Contention {
        match self {
            RestAccess::Look | RestAccess::Read | RestAccess::AcquireLease => Contention::Open,
            RestAccess::Write | RestAccess::Replace => Contention::Overwrite,
            RestAccess::Delete => Contention::Conflict,
            RestAccess::Rename => Contention::Rename,
        }
    }
}

/// What stands beside a new request for rights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Surroundings {
    /// Handles under another key that do more than look at attributes.
    pub is_open_elsewhere: bool,
    /// Another cache holds anything. Even an open of attributes counts if it caches.
    pub has_cache: bool,
    /// Another cache holds W. Only an open of attributes comes beside one.
    pub has_writer: bool,
    /// A handle under another key has an oplock.
    pub has_oplock: bool,
    /// Another lease holds H.
    pub has_handle_lease: bool,
    /// Bytes are locked, or a change is at work: what is read now may not be kept.
    pub is_unsteady: bool,
}

/// What a client is granted that asks for `asked`.
pub fn grant(asked: Caching, kind: CacheKind, beside: Surroundings) -> Caching {
    let mut granted = asked.grantable();
    if beside.is_unsteady || beside.has_writer {
        return Caching::NONE;
    }
    if beside.is_open_elsewhere || beside.has_cache {
        granted = granted.without(Caching::WRITE);
    }
    match kind {
        CacheKind::Lease if beside.has_oplock => granted.without(Caching::HANDLE),
        CacheKind::Lease => granted,
        CacheKind::Oplock if beside.has_handle_lease => Caching::NONE,
        CacheKind::Oplock => OplockLevel::within(granted).caching(),
    }
}

/// What a client holds, and a break of it that is not acknowledged yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Held {
    kind: CacheKind,
    state: Caching,
    breaking: Option<Breaking>,
    /// Rises with each change, so that the client can put a grant and a break that cross each other in order. Version 2 of leases tells it.
    epoch: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Breaking {
    /// What the client was told to give it up to.
    told: Caching,
    /// What it must come down to in the end, because more was asked for meanwhile.
    required: Caching,
}

/// What a client is told when its rights are broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BreakNotice {
    pub from: Caching,
    pub to: Caching,
    /// Nothing goes on until the client has answered; else it has lost the rights already.
    pub must_acknowledge: bool,
    pub epoch: u16,
}

/// Why an acknowledgement is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AcknowledgementRefusal {
    /// The client holds no such lease: `OBJECT_NAME_NOT_FOUND`.
    NotFound,
    /// No break is in progress, or no longer: `UNSUCCESSFUL` for a lease, `INVALID_OPLOCK_PROTOCOL` for an oplock.
    NotBreaking,
    /// The client would keep more than it was told: `REQUEST_NOT_ACCEPTED` for a lease, `INVALID_OPLOCK_PROTOCOL` for an oplock.
    TooMuch,
}

impl Held {
    /// Rights that are granted. `epoch` is the one that the client has named.
    pub fn new(kind: CacheKind, granted: Caching, epoch: u16) -> Held {
        Held { kind, state: granted, breaking: None, epoch: epoch.wrapping_add(1) }
    }

    pub fn kind(self) -> CacheKind {
        self.kind
    }

    /// The rights; those of before while a break is not acknowledged.
    pub fn state(self) -> Caching {
        self.state
    }

    pub fn is_breaking(self) -> bool {
        self.breaking.is_some()
    }

    pub fn epoch(self) -> u16 {
        self.epoch
    }

    /// Another handle names the same lease. It becomes more if all that is asked for can be granted, never less.
    pub fn upgrade(&mut self, asked: Caching, granted: Caching) {
        let is_more = asked.contains(self.state) && granted != self.state;
        if is_more && granted == asked && self.breaking.is_none() {
            self.state = granted;
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Takes rights back. The answer is what the client is to be told; nothing while an earlier break is in progress, which then goes
    /// further when it is acknowledged.
    pub fn break_to(&mut self, to: Caching) -> Option<BreakNotice> {
        let to = self.state.within(to);
        if let Some(breaking) = &mut self.breaking {
            breaking.required = breaking.required.within(to);
            return None;
        }
        if to == self.state {
            return None;
        }
        self.epoch = self.epoch.wrapping_add(1);
        Some(self.begin_break(to, to))
    }

    /// The client has answered a break and keeps `kept`. If that is still too much by now, it is told again.
    pub fn acknowledge(&mut self, kept: Caching) -> Result<Option<BreakNotice>, AcknowledgementRefusal> {
        let Some(Breaking { told, required }) = self.breaking else {
            return Err(AcknowledgementRefusal::NotBreaking);
        };
        if !told.contains(kept) {
            return Err(AcknowledgementRefusal::TooMuch);
        }
        (self.state, self.breaking) = (kept, None);
        if required.contains(kept) {
            return Ok(None);
        }
        // In steps, as Windows does: first down to R, then to nothing. The steps have the epoch of the break.
        let required = kept.within(required);
        let step = kept.within(required.and(Caching::READ));
        Ok(Some(self.begin_break(if step == kept { required } else { step }, required)))
    }

    /// The client has not answered in time, or cannot be told: it holds nothing any more.
    pub fn expire(&mut self) {
        (self.state, self.breaking) = (Caching::NONE, None);
    }

    fn begin_break(&mut self, told: Caching, required: Caching) -> BreakNotice {
        let from = self.state;
        let must_acknowledge = from.needs_acknowledgement();
        if must_acknowledge {
            self.breaking = Some(Breaking { told, required });
        } else {
            self.state = told;
        }
        BreakNotice { from, to: told, must_acknowledge, epoch: self.epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Caching = Caching::NONE;
    const R: Caching = Caching::READ;
    const RH: Caching = Caching::READ_HANDLE;
    const RW: Caching = Caching::READ_WRITE;
    const RWH: Caching = Caching::ALL;

    fn every_set() -> impl Iterator<Item = Caching> {
        (0..8).map(Caching)
    }

    fn every_state() -> [Caching; 5] {
        [NONE, R, RH, RW, RWH]
    }

    fn demand(contention: Contention, held: Caching) -> Option<(Caching, bool)> {
        contention.demand(held, CacheKind::Lease).map(|demand| (demand.to, demand.waits))
    }

    /// What each REST operation makes of a lease, and whether it waits.
    #[test]
    fn the_table_of_rest_operations_and_leases() {
        use RestAccess::{Delete, Look, Read, Write};
        let (wait, go_on) = (true, false);
        for (access, of_rwh, of_rh, of_rw) in [
            (Read, Some((RH, wait)), None, Some((R, wait))),
            (Look, Some((RH, wait)), None, Some((R, wait))),
            (Write, Some((NONE, wait)), Some((NONE, go_on)), Some((NONE, wait))),
            (Delete, Some((RW, wait)), Some((R, wait)), None),
        ] {
            assert_eq!(demand(access.contention(), RWH), of_rwh, "{access:?}");
            assert_eq!(demand(access.contention(), RH), of_rh, "{access:?}");
            assert_eq!(demand(access.contention(), RW), of_rw, "{access:?}");
        }
        assert_eq!(demand(RestAccess::Replace.contention(), RH), Some((NONE, go_on)));
        assert_eq!(demand(RestAccess::Rename.contention(), RWH), Some((RW, wait)));
        assert_eq!(demand(RestAccess::AcquireLease.contention(), RWH), Some((RH, wait)));
    }

    /// What SMB clients do to each other's leases.
    #[test]
    fn the_table_of_opens_and_leases() {
        use Contention::{Change, Conflict, Open, Overwrite, Rename};
        for (contention, held, expected) in [
            (Open, RWH, Some((RH, true))),
            (Open, RW, Some((R, true))),
            (Open, RH, None),
            (Open, R, None),
            (Overwrite, RWH, Some((NONE, true))),
            (Overwrite, RW, Some((NONE, true))),
            (Overwrite, RH, Some((NONE, false))),
            (Overwrite, R, Some((NONE, false))),
            (Conflict, RWH, Some((RW, true))),
            (Conflict, RW, None),
            (Conflict, RH, Some((R, true))),
            (Conflict, R, None),
            (Change, RH, Some((NONE, false))),
            (Change, R, Some((NONE, false))),
            (Rename, RH, Some((R, true))),
            (Rename, R, None),
        ] {
            assert_eq!(demand(contention, held), expected, "{contention:?} {held:?}");
        }
    }

    #[test]
    fn an_oplock_breaks_to_level_two_or_to_none() {
        let oplock = |contention: Contention, level: OplockLevel| {
            let demand = contention.demand(level.caching(), CacheKind::Oplock)?;
            Some((OplockLevel::within(demand.to), demand.waits))
        };
        use OplockLevel::{Batch, Exclusive, LevelTwo};
        for (contention, level, expected) in [
            (Contention::Open, Batch, Some((LevelTwo, true))),
            (Contention::Open, Exclusive, Some((LevelTwo, true))),
            (Contention::Open, LevelTwo, None),
            (Contention::Overwrite, Batch, Some((OplockLevel::None, true))),
            (Contention::Overwrite, LevelTwo, Some((OplockLevel::None, false))),
            (Contention::Conflict, Batch, Some((LevelTwo, true))),
            (Contention::Conflict, Exclusive, None),
            (Contention::Change, LevelTwo, Some((OplockLevel::None, false))),
        ] {
            assert_eq!(oplock(contention, level), expected, "{contention:?} {level:?}");
        }
    }

    #[test]
    fn levels_and_rights() {
        for level in [OplockLevel::None, OplockLevel::LevelTwo, OplockLevel::Exclusive, OplockLevel::Batch] {
            assert_eq!(OplockLevel::within(level.caching()), level);
        }
        for (caching, level) in [
            (RH, OplockLevel::LevelTwo),
            (Caching::HANDLE, OplockLevel::None),
            (Caching::WRITE.and(Caching::HANDLE), OplockLevel::None),
        ] {
            assert_eq!(OplockLevel::within(caching), level);
        }
    }

    #[test]
    fn a_demand_only_takes_away_and_is_met_by_what_is_left() {
        for kind in [CacheKind::Oplock, CacheKind::Lease] {
            for held in every_state() {
                for contention in Contention::EVERY {
                    let Some(Demand { to, .. }) = contention.demand(held, kind) else { continue };
                    assert!(held.contains(to) && to != held, "{contention:?} {held:?}");
                    assert_eq!(contention.demand(to, kind), None, "once is enough: {contention:?} {held:?}");
                    assert_eq!(to, to.grantable(), "nothing is left without R: {contention:?} {held:?}");
                }
            }
            for contention in Contention::EVERY {
                assert_eq!(contention.demand(NONE, kind), None);
            }
        }
    }

    #[test]
    fn what_is_granted_goes_together_with_what_is_there() {
        for asked in every_set() {
            for bits in 0..64_u8 {
                let has = |bit: u8| bits & 1 << bit != 0;
                let beside = Surroundings {
                    is_open_elsewhere: has(0),
                    has_writer: has(1),
                    has_oplock: has(2),
                    has_handle_lease: has(3),
                    is_unsteady: has(4),
                    has_cache: has(5),
                };
                for kind in [CacheKind::Oplock, CacheKind::Lease] {
                    let granted = grant(asked, kind, beside);
                    assert!(asked.contains(granted) && granted == granted.grantable(), "{asked:?} {beside:?}");
                    let has = |right: Caching| granted.contains(right);
                    let is_alone = !beside.is_open_elsewhere && !beside.has_cache && !beside.has_writer;
                    assert!(!has(Caching::WRITE) || is_alone, "{asked:?} {beside:?}");
                    assert!(granted.is_none() || !beside.has_writer && !beside.is_unsteady);
                    match kind {
                        CacheKind::Oplock => assert!(granted.is_none() || !beside.has_handle_lease),
                        CacheKind::Lease => assert!(!has(Caching::HANDLE) || !beside.has_oplock),
                    }
                }
            }
        }
        for (asked, granted) in [
            (NONE, NONE),
            (R, R),
            (Caching::HANDLE, NONE),
            (Caching::WRITE, NONE),
            (RH, RH),
            (RW, RW),
            (Caching::WRITE.and(Caching::HANDLE), NONE),
            (RWH, RWH),
        ] {
            assert_eq!(grant(asked, CacheKind::Lease, Surroundings::default()), granted, "{asked:?}");
        }
    }

    #[test]
    fn a_lease_becomes_more_by_the_same_key_and_never_less() {
        for held in every_state() {
            for asked in every_state() {
                for granted in every_state().into_iter().filter(|granted| asked.contains(*granted)) {
                    let mut lease = Held::new(CacheKind::Lease, held, 6);
                    lease.upgrade(asked, granted);
                    let is_upgraded = asked == granted && granted.contains(held) && granted != held;
                    assert_eq!(
                        lease.state(),
                        if is_upgraded { granted } else { held },
                        "{held:?} {asked:?} {granted:?}"
                    );
                    assert_eq!(lease.epoch(), if is_upgraded { 8 } else { 7 });
                }
            }
        }
        let mut breaking = Held::new(CacheKind::Lease, RH, 0);
        breaking.break_to(R).expect("it is told");
        breaking.upgrade(RWH, RWH);
        assert_eq!((breaking.state(), breaking.is_breaking()), (RH, true), "not while it is broken");
    }

    #[test]
    fn a_break_is_told_once_and_over_when_it_is_acknowledged() {
        let mut lease = Held::new(CacheKind::Lease, RWH, 0);
        let notice = lease.break_to(RH).expect("it is told");
        assert_eq!(notice, BreakNotice { from: RWH, to: RH, must_acknowledge: true, epoch: 2 });
        assert_eq!(lease.break_to(RH), None);
        assert_eq!((lease.state(), lease.is_breaking()), (RWH, true), "it holds all of it until it has answered");
        assert_eq!(lease.acknowledge(RWH), Err(AcknowledgementRefusal::TooMuch));
        assert_eq!(lease.acknowledge(RW), Err(AcknowledgementRefusal::TooMuch));
        assert_eq!(lease.acknowledge(RH), Ok(None));
        assert_eq!((lease.state(), lease.is_breaking(), lease.epoch()), (RH, false, 2));
        assert_eq!(lease.acknowledge(RH), Err(AcknowledgementRefusal::NotBreaking));
    }

    #[test]
    fn read_caching_alone_is_gone_at_once() {
        let mut lease = Held::new(CacheKind::Lease, R, 0);
        let notice = lease.break_to(NONE).expect("it is told");
        assert_eq!(notice, BreakNotice { from: R, to: NONE, must_acknowledge: false, epoch: 2 });
        assert_eq!((lease.state(), lease.is_breaking()), (NONE, false));
        assert_eq!(lease.acknowledge(NONE), Err(AcknowledgementRefusal::NotBreaking));
    }

    #[test]
    fn a_break_that_has_to_go_further_goes_in_steps() {
        let mut lease = Held::new(CacheKind::Lease, RWH, 0);
        lease.break_to(RH).expect("it is told");
        assert_eq!(lease.break_to(NONE), None, "not while the first is on its way");
        let step = lease.acknowledge(RH).expect("acknowledged").expect("and told again");
        assert_eq!(step, BreakNotice { from: RH, to: R, must_acknowledge: true, epoch: 2 });
        let step = lease.acknowledge(R).expect("acknowledged").expect("and told again");
        assert_eq!(step, BreakNotice { from: R, to: NONE, must_acknowledge: false, epoch: 2 });
        assert_eq!((lease.state(), lease.is_breaking()), (NONE, false));
    }

    /// Whatever breaks come and whatever the client answers, the end is what all of them have asked for, or less.
    #[test]
    fn breaks_end_with_what_was_asked_for() {
        for held in every_state() {
            for first in every_state() {
                for second in every_state() {
                    for kept in every_state() {
                        let mut lease = Held::new(CacheKind::Lease, held, 0);
                        lease.break_to(first);
                        lease.break_to(second);
                        let mut steps = 0;
                        while lease.is_breaking() {
                            // Keeps what it wants, if it may, else nothing.
                            if lease.acknowledge(kept).is_err() {
                                lease.acknowledge(NONE).expect("less is always accepted");
                            }
                            steps += 1;
                            assert!(steps <= 3, "{held:?} {first:?} {second:?} {kept:?}");
                        }
                        let allowed = held.within(first).within(second);
                        assert!(allowed.contains(lease.state()), "{held:?} {first:?} {second:?} {kept:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_cache_that_has_expired_holds_nothing() {
        let mut lease = Held::new(CacheKind::Lease, RWH, 0);
        lease.break_to(RH).expect("it is told");
        lease.expire();
        assert_eq!((lease.state(), lease.is_breaking()), (NONE, false));
        assert_eq!(lease.acknowledge(RH), Err(AcknowledgementRefusal::NotBreaking));
        lease.upgrade(RWH, RWH);
        assert_eq!(lease.state(), RWH, "its client may ask again");
    }

    #[test]
    fn epochs_come_round() {
        let mut lease = Held::new(CacheKind::Lease, RWH, u16::MAX);
        assert_eq!(lease.epoch(), 0);
        assert_eq!(lease.break_to(RH).expect("it is told").epoch, 1);
    }

    #[test]
    fn opens_of_attributes_alone() {
        for (mask, beside_lease, beside_oplock) in [
            (0x80, true, true),
            (0x100, true, true),
            (0x10_0000, true, true),
            (0x10_0180, true, true),
            (0x2_0000, true, false),
            (0x1, false, false),
            (0x2, false, false),
            (0x4, false, false),
            (0x8, false, false),
            (0x10, false, false),
            (0x20, false, false),
            (0x1_0000, false, false),
            (0x4_0000, false, false),
            (0x8_0000, false, false),
            (0x81, false, false),
        ] {
            assert_eq!(is_attributes_only(mask, CacheKind::Lease), beside_lease, "{mask:#x}");
            assert_eq!(is_attributes_only(mask, CacheKind::Oplock), beside_oplock, "{mask:#x}");
        }
    }
}
