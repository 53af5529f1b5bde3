//! Durable opens (MS-SMB2 3.3.5.9.6 to 3.3.5.9.12): what was granted, who may have an open again whose connection is lost, and for how long.
//!
//! A durable open whose connection ends is kept with its locks, its oplock or lease and its place in the table of opens. It ends when its
//! time is over, when something needs what its client caches (it cannot be asked any more), when it is closed by force, and when its
//! account key is replaced. Time is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::status::{Result, Status};

/// How long an open is kept whose client has asked for no time.
pub const DURABLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time that a client is granted, as on Windows.
pub const DURABLE_TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// Opens that are kept without a connection. One more is closed instead.
pub const DISCONNECTED_OPENS_MAX: usize = 16_384;

/// Of these, opens of one account: others are kept, too.
pub const DISCONNECTED_OPENS_PER_ACCOUNT_MAX: usize = 4_096;

/// Byte-range locks of these opens of one account. An open that has more is closed instead.
pub const DISCONNECTED_LOCKS_PER_ACCOUNT_MAX: usize = 65_536;

/// The lease of an open, as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseKey {
    pub key: [u8; 16],
    pub is_v2: bool,
}

/// What makes an open durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    pub account: String,
    pub client_guid: u128,
    /// Of version 2.
    pub create_guid: Option<u128>,
    /// `None`: it has a batch oplock.
    pub lease: Option<LeaseKey>,
    pub timeout: Duration,
}

/// A client that wants its open again.
#[derive(Clone, Debug)]
pub(crate) struct Claim<'a> {
    /// The persistent half of the file id.
    pub id: u64,
    pub account: &'a str,
    pub client_guid: u128,
    /// Of a claim of version 2.
    pub create_guid: Option<u128>,
    pub lease: Option<LeaseKey>,
}

/// How an open looks that is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// It is in the share that the claim is made in.
    pub is_here: bool,
    /// The path of the claim leads to it.
    pub has_name: bool,
}

/// The time that is granted to a client that asks for `millis`; 0 leaves it to the server.
pub(crate) fn timeout(millis: u32) -> Duration {
    match millis {
        0 => DURABLE_TIMEOUT,
        millis => Duration::from_millis(millis.into()).min(DURABLE_TIMEOUT_MAX),
    }
}

impl Durable {
    /// Whether the claim may have the open. The order of the checks is that of Windows; the name is compared for leases alone.
    fn judge(&self, claim: &Claim<'_>, found: Found) -> Result<()> {
        let is_lease_elsewhere = self.lease.is_some() && self.client_guid != claim.client_guid;
        // An open of version 1 counts as one with the GUID 0, as on Windows.
        let has_other_guid = claim.create_guid.is_some_and(|guid| guid != self.create_guid.unwrap_or(0));
        if is_lease_elsewhere || has_other_guid {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
        if self.lease != claim.lease {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
        if self.lease.is_some() && !found.has_name {
            return Err(Status::INVALID_PARAMETER);
        }
        if self.account != claim.account {
            return Err(Status::ACCESS_DENIED);
        }
        if found.is_here { Ok(()) } else { Err(Status::OBJECT_NAME_NOT_FOUND) }
    }
}

/// Opens without a connection, by the persistent half of their ids.
#[derive(Debug)]
pub(crate) struct Disconnected<T> {
    opens: HashMap<u64, Kept<T>>,
    by_account: HashMap<String, Share>,
}

/// What an account has of the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    opens: usize,
    locks: usize,
}

#[derive(Debug)]
struct Kept<T> {
    open: T,
    locks: usize,
    durable: Durable,
    until: Instant,
}

impl<T> Default for Disconnected<T> {
    fn default() -> Disconnected<T> {
        Disconnected { opens: HashMap::new(), by_account: HashMap::new() }
    }
}

impl<T> Disconnected<T> {
    /// Keeps an open whose connection is lost, and which holds so many locks. Given back: there are too many.
    pub fn keep(
        &mut self,
        id: u64,
        (open, locks): (T, usize),
        durable: Durable,
        now: Instant,
    ) -> std::result::Result<(), T> {
        let used = self.by_account.get(&durable.account).copied().unwrap_or_default();
        let has_room = self.opens.len() < DISCONNECTED_OPENS_MAX
            && used.opens < DISCONNECTED_OPENS_PER_ACCOUNT_MAX
            && used.locks + locks <= DISCONNECTED_LOCKS_PER_ACCOUNT_MAX;
        if !has_room {
            return Err(open);
        }
        let share = Share { opens: used.opens + 1, locks: used.locks + locks };
        self.by_account.insert(durable.account.clone(), share);
        let until = now + durable.timeout;
        self.opens.insert(id, Kept { open, locks, durable, until });
        Ok(())
    }

    /// Gives an open back to its client. A claim that is refused changes nothing.
    ///
    /// # Errors
    /// OBJECT_NAME_NOT_FOUND, INVALID_PARAMETER or ACCESS_DENIED, as MS-SMB2 3.3.5.9.7 and 3.3.5.9.12 have them.
    pub fn claim(&mut self, claim: &Claim<'_>, look: impl FnOnce(&T) -> Found, now: Instant) -> Result<(T, Durable)> {
        let kept = self.opens.get(&claim.id).filter(|kept| now < kept.until).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        kept.durable.judge(claim, look(&kept.open))?;
        self.take(claim.id).ok_or(Status::OBJECT_NAME_NOT_FOUND)
    }

    /// Takes an open out that ends.
    pub fn remove(&mut self, id: u64) -> Option<T> {
        self.take(id).map(|(open, _)| open)
    }

    /// Takes those out whose time is over.
    pub fn expired(&mut self, now: Instant) -> Vec<T> {
        self.take_those(|kept| kept.until <= now)
    }

    /// Takes those out that the caller picks.
    pub fn take_all(&mut self, mut pick: impl FnMut(&mut T) -> bool) -> Vec<T> {
        self.take_those(|kept| pick(&mut kept.open))
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.opens.len()
    }

    fn take_those(&mut self, mut pick: impl FnMut(&mut Kept<T>) -> bool) -> Vec<T> {
        let ids: Vec<u64> = self.opens.iter_mut().filter_map(|(id, kept)| pick(kept).then_some(*id)).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn take(&mut self, id: u64) -> Option<(T, Durable)> {
        let Kept { open, locks, durable, .. } = self.opens.remove(&id)?;
        if let Some(used) = self.by_account.get_mut(&durable.account) {
            used.opens -= 1;
            used.locks -= locks;
            if used.opens == 0 {
                self.by_account.remove(&durable.account);
            }
        }
        Some((open, durable))
    }
}

/// The numbers of LOCK requests that a durable open has carried out, so that one that is sent again is not done again (MS-SMB2 3.3.5.14).
#[derive(Debug)]
pub(crate) struct LockSequences([Option<u8>; LOCK_SEQUENCES]);

/// The places of numbers, as many as the protocol has.
const LOCK_SEQUENCES: usize = 64;

impl Default for LockSequences {
    fn default() -> LockSequences {
        LockSequences([None; LOCK_SEQUENCES])
    }
}

impl LockSequences {
    /// Whether the request was carried out before. If not, its place is free until [`LockSequences::done`].
    pub fn is_replay(&mut self, index: u32, number: u8) -> bool {
        let Some(place) = self.place(index) else { return false };
        if *place == Some(number) {
            return true;
        }
        *place = None;
        false
    }

    /// The request was carried out.
    pub fn done(&mut self, index: u32, number: u8) {
        if let Some(place) = self.place(index) {
            *place = Some(number);
        }
    }

    /// Places count from 1; 0 says that the request has none.
    fn place(&mut self, index: u32) -> Option<&mut Option<u8>> {
        self.0.get_mut((index as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    fn durable() -> Durable {
        let (account, create_guid) = ("devstore".to_owned(), Some(5));
        Durable { account, client_guid: 7, create_guid, lease: None, timeout: DURABLE_TIMEOUT }
    }

    fn leased() -> Durable {
        Durable { lease: Some(LeaseKey { key: [1; 16], is_v2: true }), ..durable() }
    }

    fn claim(durable: &Durable) -> Claim<'_> {
        Claim {
            id: 1,
            account: &durable.account,
            client_guid: durable.client_guid,
            create_guid: durable.create_guid,
            lease: durable.lease,
        }
    }

    const HERE: Found = Found { is_here: true, has_name: true };

    fn kept(durable: &Durable, now: Instant) -> Disconnected<&'static str> {
        let mut opens = Disconnected::default();
        opens.keep(1, ("open", 0), durable.clone(), now).unwrap();
        opens
    }

    #[test]
    fn an_open_is_given_back_once_and_in_time() {
        let now = Instant::now();
        let durable = durable();
        let mut opens = kept(&durable, now);
        let late = now + DURABLE_TIMEOUT;
        assert_eq!(opens.claim(&claim(&durable), |_| HERE, late), Err(Status::OBJECT_NAME_NOT_FOUND));
        assert_eq!(opens.claim(&claim(&durable), |_| HERE, late - SOON), Ok(("open", durable.clone())));
        assert_eq!(opens.claim(&claim(&durable), |_| HERE, now), Err(Status::OBJECT_NAME_NOT_FOUND));
        assert!(opens.len() == 0 && opens.by_account.is_empty());
    }

    #[test]
    fn a_claim_must_be_that_of_the_client() {
        let now = Instant::now();
        let (oplock, lease) = (durable(), leased());
        let missing = Status::OBJECT_NAME_NOT_FOUND;
        let other_key = Some(LeaseKey { key: [2; 16], is_v2: true });
        let other_version = Some(LeaseKey { key: [1; 16], is_v2: false });
        let elsewhere = Found { is_here: false, ..HERE };
        let renamed = Found { has_name: false, ..HERE };
        for (durable, changed, found, refused) in [
            (&oplock, Claim { id: 2, ..claim(&oplock) }, HERE, Some(missing)),
            (&oplock, Claim { create_guid: Some(6), ..claim(&oplock) }, HERE, Some(missing)),
            // Version 1 of a claim knows no GUID of the create.
            (&oplock, Claim { create_guid: None, ..claim(&oplock) }, HERE, None),
            (&oplock, Claim { client_guid: 8, ..claim(&oplock) }, HERE, None),
            (&lease, Claim { client_guid: 8, ..claim(&lease) }, HERE, Some(missing)),
            (&oplock, Claim { lease: other_key, ..claim(&oplock) }, HERE, Some(missing)),
            (&lease, Claim { lease: None, ..claim(&lease) }, HERE, Some(missing)),
            (&lease, Claim { lease: other_key, ..claim(&lease) }, HERE, Some(missing)),
            (&lease, Claim { lease: other_version, ..claim(&lease) }, HERE, Some(missing)),
            (&lease, claim(&lease), renamed, Some(Status::INVALID_PARAMETER)),
            (&lease, Claim { lease: None, ..claim(&lease) }, renamed, Some(missing)),
            (&oplock, claim(&oplock), renamed, None),
            (&oplock, claim(&oplock), elsewhere, Some(missing)),
            (&oplock, Claim { account: "other", ..claim(&oplock) }, HERE, Some(Status::ACCESS_DENIED)),
            // Two faults: who does not know the open does not hear of its owner.
            (&oplock, Claim { account: "other", create_guid: Some(6), ..claim(&oplock) }, HERE, Some(missing)),
        ] {
            let mut opens = kept(durable, now);
            let outcome = opens.claim(&changed, |_| found, now).map(|(open, _)| open);
            assert_eq!(outcome, refused.map_or(Ok("open"), Err), "{changed:?} {found:?}");
            let again = opens.claim(&claim(durable), |_| HERE, now);
            assert_eq!(again.is_ok(), refused.is_some(), "a refused claim leaves the open where it is: {changed:?}");
        }
    }

    #[test]
    fn an_open_of_version_1_has_no_guid() {
        let now = Instant::now();
        let first = Durable { create_guid: None, ..durable() };
        for (guid, is_found) in [(0, true), (1, false)] {
            let second = Claim { create_guid: Some(guid), ..claim(&first) };
            assert_eq!(kept(&first, now).claim(&second, |_| HERE, now).is_ok(), is_found, "{guid}");
        }
    }

    #[test]
    fn opens_end_when_their_time_is_over() {
        let now = Instant::now();
        let mut opens = kept(&durable(), now);
        opens.keep(2, ("short", 0), Durable { timeout: SOON, ..durable() }, now).unwrap();
        assert_eq!(opens.expired(now), Vec::<&str>::new());
        assert_eq!(opens.expired(now + SOON), ["short"]);
        assert_eq!(opens.take_all(|open| *open == "open"), ["open"]);
        assert!(opens.len() == 0 && opens.by_account.is_empty());
    }

    #[test]
    fn clients_are_granted_a_time_within_limits() {
        assert_eq!(timeout(0), DURABLE_TIMEOUT);
        assert_eq!(timeout(1), Duration::from_millis(1));
        assert_eq!(timeout(300_000), Duration::from_secs(300));
        assert_eq!(timeout(u32::MAX), DURABLE_TIMEOUT_MAX);
    }

    #[test]
    fn one_account_does_not_take_the_room_of_others() {
        let now = Instant::now();
        let mut opens = Disconnected::default();
        let of = |account: usize| Durable { account: account.to_string(), ..durable() };
        let accounts = DISCONNECTED_OPENS_MAX / DISCONNECTED_OPENS_PER_ACCOUNT_MAX;
        for account in 0..accounts {
            for number in 0..DISCONNECTED_OPENS_PER_ACCOUNT_MAX {
                let id = (account * DISCONNECTED_OPENS_PER_ACCOUNT_MAX + number) as u64;
                opens.keep(id, (id, 0), of(account), now).unwrap();
            }
            assert_eq!(opens.keep(u64::MAX, (0, 0), of(account), now), Err(0), "the account has its share");
        }
        assert_eq!(opens.len(), DISCONNECTED_OPENS_MAX);
        assert_eq!(opens.keep(u64::MAX, (0, 0), of(accounts), now), Err(0), "nobody has more");
        assert_eq!(opens.remove(0), Some(0));
        assert_eq!(opens.keep(u64::MAX, (0, 0), of(accounts), now), Ok(()));
    }

    #[test]
    fn locks_of_lost_opens_have_a_limit() {
        let now = Instant::now();
        let mut opens = Disconnected::default();
        opens.keep(1, ("all", DISCONNECTED_LOCKS_PER_ACCOUNT_MAX), durable(), now).unwrap();
        assert_eq!(opens.keep(2, ("more", 1), durable(), now), Err("more"));
        assert_eq!(opens.keep(2, ("none", 0), durable(), now), Ok(()));
        assert_eq!(opens.remove(1), Some("all"));
        assert_eq!(opens.keep(3, ("more", 1), durable(), now), Ok(()));
    }

    #[test]
    fn a_lock_request_is_carried_out_once() {
        let mut sequences = LockSequences::default();
        assert!(!sequences.is_replay(1, 3));
        sequences.done(1, 3);
        assert!(sequences.is_replay(1, 3), "the same again");
        assert!(!sequences.is_replay(2, 3), "another place");
        assert!(!sequences.is_replay(1, 4), "another number");
        assert!(!sequences.is_replay(1, 3), "the number before is forgotten, even if the other one fails");
        for outside in [0, 65, u32::MAX] {
            sequences.done(outside, 1);
            assert!(!sequences.is_replay(outside, 1), "{outside}");
        }
        sequences.done(64, 1);
        assert!(sequences.is_replay(64, 1));
    }
}
