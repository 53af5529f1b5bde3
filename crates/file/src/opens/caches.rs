//! Oplocks and leases of one file: what SMB clients may cache of it, and breaks that are not acknowledged yet.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concurrency::caching::{
    AcknowledgementRefusal, BreakNotice, CacheKind, Caching, Contention, Demand, Held, OplockLevel, Surroundings, grant,
};
use tokio::time::Instant;

use super::{FileId, HandleId, Holder, Reach};

/// How long a client may take to acknowledge a break, as on Windows. Then it holds nothing any more.
pub const BREAK_PATIENCE: Duration = Duration::from_secs(35);

/// A lease, over all files and shares: the client has chosen the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseName {
    pub account: u64,
    /// The client's GUID.
    pub client: u128,
    pub key: [u8; 16],
}

/// What version 2 of a lease has beside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeaseV2 {
    pub epoch: u16,
    /// The lease of the directory. It is only told back.
    pub parent: Option<[u8; 16]>,
}

/// What an open asks to cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CachingRequest {
    #[default]
    None,
    Oplock(OplockLevel),
    Lease {
        name: LeaseName,
        state: Caching,
        v2: Option<LeaseV2>,
    },
}

/// What a handle may cache now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum GrantedCaching {
    #[default]
    None,
    Oplock(OplockLevel),
    Lease {
        key: [u8; 16],
        state: Caching,
        is_breaking: bool,
        v2: Option<LeaseV2>,
    },
}

/// Rights that a client loses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    Oplock {
        handle: HandleId,
        to: OplockLevel,
    },
    Lease {
        name: LeaseName,
        /// The epoch is told of leases of version 2.
        is_v2: bool,
        notice: BreakNotice,
    },
}

/// Breaks that must be waited for: those of a file, or of everything below a directory, that began up to a moment. See
/// [`Opens::breaks_ended`](super::Opens::breaks_ended).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BreakWait {
    pub(super) file: FileId,
    pub(super) reach: Reach,
    /// The number of the last of them.
    pub(super) until: u64,
}

/// Names a cache in its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum CacheKey {
    Oplock(HandleId),
    Lease(LeaseName),
}

impl CachingRequest {
    pub(super) fn key(&self, handle: HandleId) -> Option<CacheKey> {
        match self {
            CachingRequest::None | CachingRequest::Oplock(OplockLevel::None) => None,
            CachingRequest::Oplock(_) => Some(CacheKey::Oplock(handle)),
            CachingRequest::Lease { name, .. } => Some(CacheKey::Lease(*name)),
        }
    }

    pub(super) fn lease(&self) -> Option<LeaseName> {
        match self {
            CachingRequest::Lease { name, .. } => Some(*name),
            CachingRequest::None | CachingRequest::Oplock(_) => None,
        }
    }
}

/// One oplock, or one lease with its handles.
#[derive(Debug)]
struct Cache {
    held: Held,
    /// Of a lease of version 2.
    v2: Option<LeaseV2>,
    handles: BTreeSet<HandleId>,
    /// Those of them that do more than look at attributes.
    users: usize,
    /// The number of the last break, and when it began.
    broken: (u64, Instant),
}

/// The caches of a file.
#[derive(Debug, Default)]
pub(super) struct Caches(BTreeMap<CacheKey, Cache>);

/// A break that its client is to be told of.
#[derive(Debug)]
pub(super) struct Told {
    pub key: CacheKey,
    pub broken: Broken,
}

/// What a contention has led to.
#[derive(Debug, Default)]
pub(super) struct Contended {
    pub told: Vec<Told>,
    pub waits: bool,
}

/// Something happens to the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    pub contention: Contention,
    /// Its own lease or oplock is left alone.
    pub own: Option<CacheKey>,
    /// An open: it waits for breaks in progress, too, that do not concern what it does itself.
    pub is_open: bool,
    /// An open that has waited already: it also waits for the next steps of the break.
    pub has_waited: bool,
    /// The access mask, if it is an open that only looks at attributes beside one of the kinds.
    pub mask: Option<u32>,
}

impl Contender {
    pub fn new(contention: Contention, own: Option<CacheKey>) -> Contender {
        Contender { contention, own, is_open: false, has_waited: false, mask: None }
    }

    fn meets(&self, key: CacheKey, held: Held) -> bool {
        let is_harmless = |mask| concurrency::caching::is_attributes_only(mask, held.kind());
        if self.mask.is_some_and(is_harmless) {
            return false;
        }
        if self.own != Some(key) {
            return true;
        }
        // What is written or locked through a handle breaks its own level II oplock, too.
        held.kind() == CacheKind::Oplock && self.contention == Contention::Change && held.state() == Caching::READ
    }
}

impl Caches {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes back what does not go with what is done to the file. `number` is that of the breaks that begin now.
    pub fn contend(&mut self, contender: Contender, number: u64) -> Contended {
        let mut contended = Contended::default();
        for (key, cache) in &mut self.0 {
            if !contender.meets(*key, cache.held) {
                continue;
            }
            let Some(Demand { to, waits }) = contender.contention.demand(cache.held.state(), cache.held.kind()) else {
                // It goes with what is held, and perhaps not with what the break was for.
                contended.waits |= contender.is_open && cache.held.is_breaking();
                continue;
            };
            contended.waits |= waits || contender.has_waited && cache.held.is_breaking();
            if let Some(notice) = cache.held.break_to(to) {
                contended.told.extend(cache.told(*key, notice, number));
            }
        }
        contended
    }

    /// A new handle asks for rights. `users` are the handles of the file that do more than look at attributes, without this one.
    pub fn add(&mut self, handle: HandleId, asked: CachingRequest, is_user: bool, users: usize, is_unsteady: bool) {
        let Some(key) = asked.key(handle) else { return };
        let (kind, state, v2) = match asked {
            CachingRequest::None => return,
            CachingRequest::Oplock(level) => (CacheKind::Oplock, level.caching(), None),
            CachingRequest::Lease { state, v2, .. } => (CacheKind::Lease, state, v2),
        };
        let own_users = self.0.get(&key).map_or(0, |own| own.users);
        let others = || self.0.iter().filter(|(other, _)| **other != key).map(|(_, cache)| cache.held);
        let beside = Surroundings {
            is_open_elsewhere: users > own_users,
            has_cache: others().any(|held| !held.state().is_none()),
            has_writer: others().any(|held| held.state().contains(Caching::WRITE)),
            has_oplock: others().any(|held| held.kind() == CacheKind::Oplock && !held.state().is_none()),
            has_handle_lease: others()
                .any(|held| held.kind() == CacheKind::Lease && held.state().contains(Caching::HANDLE)),
            is_unsteady,
        };
        let granted = grant(state, kind, beside);
        if kind == CacheKind::Oplock && granted.is_none() {
            return;
        }
        let epoch = v2.map_or(0, |v2| v2.epoch);
        let cache = match self.0.entry(key) {
            Entry::Vacant(vacant) => vacant.insert(Cache {
                held: Held::new(kind, granted, epoch),
                v2,
                handles: BTreeSet::new(),
                users: 0,
                broken: (0, Instant::now()),
            }),
            Entry::Occupied(known) => {
                let cache = known.into_mut();
                cache.held.upgrade(state, granted);
                cache
            }
        };
        cache.handles.insert(handle);
        cache.users += usize::from(is_user);
    }

    /// A handle is closed. The last one of a lease ends it: then its name is told.
    pub fn remove(&mut self, handle: HandleId, key: CacheKey, is_user: bool) -> Option<LeaseName> {
        let cache = self.0.get_mut(&key)?;
        if cache.handles.remove(&handle) {
            cache.users -= usize::from(is_user);
        }
        if !cache.handles.is_empty() {
            return None;
        }
        self.0.remove(&key);
        match key {
            CacheKey::Oplock(_) => None,
            CacheKey::Lease(name) => Some(name),
        }
    }

    /// The handles of an oplock or a lease.
    pub fn handles(&self, key: CacheKey) -> impl Iterator<Item = HandleId> {
        self.0.get(&key).into_iter().flat_map(|cache| cache.handles.iter().copied())
    }

    /// Whether its client would be asked before anybody else may have the file: it holds H, and no break is in progress.
    pub fn keeps_handles(&self, key: CacheKey) -> bool {
        self.0.get(&key).is_some_and(|cache| cache.held.state().contains(Caching::HANDLE) && !cache.held.is_breaking())
    }

    pub fn granted(&self, key: CacheKey) -> GrantedCaching {
        let Some(cache) = self.0.get(&key) else { return GrantedCaching::None };
        match key {
            CacheKey::Oplock(_) => GrantedCaching::Oplock(OplockLevel::within(cache.held.state())),
            CacheKey::Lease(name) => GrantedCaching::Lease {
                key: name.key,
                state: cache.held.state(),
                is_breaking: cache.held.is_breaking(),
                v2: cache.v2.map(|v2| LeaseV2 { epoch: cache.held.epoch(), ..v2 }),
            },
        }
    }

    /// The client has answered a break. `number` is that of the next step, if there is one.
    pub fn acknowledge(
        &mut self,
        key: CacheKey,
        kept: Caching,
        number: u64,
    ) -> Result<Option<Told>, AcknowledgementRefusal> {
        let cache = self.0.get_mut(&key).ok_or(match key {
            CacheKey::Oplock(_) => AcknowledgementRefusal::NotBreaking,
            CacheKey::Lease(_) => AcknowledgementRefusal::NotFound,
        })?;
        let next = cache.held.acknowledge(kept)?;
        Ok(next.and_then(|notice| cache.told(key, notice, number)))
    }

    /// The client of a cache cannot be told of a break, or has not answered in time.
    pub fn expire(&mut self, key: CacheKey, number: u64) {
        if let Some(cache) = self.0.get_mut(&key).filter(|cache| cache.broken.0 == number) {
            cache.held.expire();
        }
    }

    /// When the first of the breaks up to a number is to end that are in progress. Those whose time is over at `now` end here.
    pub fn next_expiry(&mut self, until: u64, now: Instant) -> Option<Instant> {
        let mut first = None;
        for cache in self.0.values_mut().filter(|cache| cache.held.is_breaking() && cache.broken.0 <= until) {
            let end = cache.broken.1 + BREAK_PATIENCE;
            if end <= now {
                cache.held.expire();
            } else {
                first = Some(first.map_or(end, |first: Instant| first.min(end)));
            }
        }
        first
    }
}

impl Cache {
    fn told(&mut self, key: CacheKey, notice: BreakNotice, number: u64) -> Option<Told> {
        self.broken = (number, Instant::now());
        let broken = match key {
            CacheKey::Oplock(handle) => Broken::Oplock { handle, to: OplockLevel::within(notice.to) },
            CacheKey::Lease(name) => Broken::Lease { name, is_v2: self.v2.is_some(), notice },
        };
        Some(Told { key, broken })
    }
}

/// Breaks that clients are to be told of, when no lock is held.
#[derive(Debug, Default)]
#[must_use = "clients must be told of breaks"]
pub(super) struct Notices(Vec<Notice>);

#[derive(Debug)]
pub(super) struct Notice {
    pub file: FileId,
    pub key: CacheKey,
    /// The number of the break.
    pub number: u64,
    pub holder: Arc<dyn Holder>,
    pub broken: Broken,
}

impl Notices {
    pub fn push(&mut self, notice: Notice) {
        self.0.push(notice);
    }

    pub fn extend(&mut self, others: Notices) {
        self.0.extend(others.0);
    }
}

impl IntoIterator for Notices {
    type Item = Notice;
    type IntoIter = std::vec::IntoIter<Notice>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The file of each lease that is held. A client may name a key for one file at a time.
#[derive(Debug, Default)]
pub(super) struct LeaseIndex(Mutex<HashMap<LeaseName, FileId>>);

impl LeaseIndex {
    pub fn file_of(&self, name: LeaseName) -> Option<FileId> {
        self.leases().get(&name).copied()
    }

    pub fn insert(&self, name: LeaseName, file: FileId) {
        self.leases().insert(name, file);
    }

    pub fn remove(&self, name: LeaseName) {
        self.leases().remove(&name);
    }

    /// Locked for a moment, perhaps under the mutex of a share; nothing else is locked under it.
    fn leases(&self) -> MutexGuard<'_, HashMap<LeaseName, FileId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
