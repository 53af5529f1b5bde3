//! What protects a state of a blob from being changed or deleted: a legal hold, an immutability policy, and the archive. Every
//! operation that writes asks here.
//!
//! A policy stands against deletion until its date, and against changes also after it: what has expired can be deleted, not
//! overwritten. One that is not locked can be changed and removed; one that is locked can only be prolonged. A hold protects
//! until it is taken away.
//!
//! Whether anything in a container is protected is asked when the container is to be deleted. So each protection has a row
//! by container generation and end, written in the commit that changes it; what is over stands before the time of asking.

use concurrency::Timestamp;
use engine::{Key, Rows, Unread, Visit};
use service::space;

use wire::dates;

use crate::error::BlobError;
use crate::model::protection::{NEVER, Policy, Protection, rows_of};
use crate::model::{Blob, Committed};

/// The header that brings the date of a policy.
pub const POLICY_UNTIL: &str = "x-ms-immutability-policy-until-date";

impl Policy {
    /// A policy is set for a time to come.
    pub fn check_begins(&self, now: Timestamp) -> Result<(), BlobError> {
        if now < self.until {
            return Ok(());
        }
        Err(BlobError::header(POLICY_UNTIL, dates::http_date(self.until).as_str()))
    }
}

impl Protection {
    fn check_delete(&self, now: Timestamp) -> Result<(), BlobError> {
        match self.policy {
            Some(policy) if now < policy.until => self.check_change(),
            Some(_) | None => self.check_hold(),
        }
    }

    /// A policy stands against it whether or not its time is over.
    fn check_change(&self) -> Result<(), BlobError> {
        self.check_hold()?;
        if self.policy.is_some() { Err(BlobError::BlobImmutableDueToPolicy) } else { Ok(()) }
    }

    fn check_hold(&self) -> Result<(), BlobError> {
        if self.legal_hold == Some(true) { Err(BlobError::BlobImmutableDueToLegalHold) } else { Ok(()) }
    }
}

/// What protects something in a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    pub policy: bool,
    pub legal_hold: bool,
}

impl Standing {
    pub fn of(rows: &dyn Rows, generation: u64, now: Timestamp) -> Result<Standing, Unread> {
        let held = rows_of(generation).number(NEVER.0);
        Ok(Standing {
            policy: is_any(rows, &rows_of(generation).number(now.0.saturating_add(1)), &held)?,
            legal_hold: is_any(rows, &held, &rows_of(generation).after_all())?,
        })
    }

    /// Whether nothing is protected in any container of any account.
    pub fn is_nowhere(rows: &dyn Rows) -> Result<bool, Unread> {
        let all = Key::new(space::PROTECTED);
        Ok(!is_any(rows, &all, &all.after_all())?)
    }

    pub fn is_any(self) -> bool {
        self.policy || self.legal_hold
    }

    /// A container does not go while it holds something that must stay.
    pub fn check(self) -> Result<(), BlobError> {
        match self {
            Standing { legal_hold: true, .. } => Err(BlobError::BlobImmutableDueToLegalHold),
            Standing { policy: true, .. } => Err(BlobError::BlobImmutableDueToPolicy),
            Standing { .. } => Ok(()),
        }
    }
}

fn is_any(rows: &dyn Rows, from: &Key, to: &Key) -> Result<bool, Unread> {
    let mut found = false;
    if from < to {
        rows.scan(from, to, 1, &mut |_, _| {
            found = true;
            Visit::Stop
        })?;
    }
    Ok(found)
}

impl Committed {
    pub fn policy(&self) -> Option<Policy> {
        self.protection.and_then(|protection| protection.policy)
    }

    pub fn legal_hold(&self) -> Option<bool> {
        self.protection.and_then(|protection| protection.legal_hold)
    }

    /// Whether it may go.
    pub fn check_delete(&self, now: Timestamp) -> Result<(), BlobError> {
        self.protection.map_or(Ok(()), |protection| protection.check_delete(now))
    }

    /// Whether its content, or what is said of it, may become something else.
    pub fn check_change(&self, now: Timestamp) -> Result<(), BlobError> {
        self.protection.map_or(Ok(()), |protection| protection.check_change())?;
        self.check_not_archived(now)
    }
}

impl Blob {
    /// Whether another state may take the place of the current one, if there is one. Where versions are kept that state
    /// stays what it is, protection and all.
    pub fn check_replace(&self, versioning: bool, now: Timestamp) -> Result<(), BlobError> {
        match &self.committed {
            None => Ok(()),
            Some(state) if versioning || state.version_id.is_some() => state.check_not_archived(now),
            Some(state) => state.check_change(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::protection::Mode;
    use crate::model::tier::{Tier, TierSet};
    use crate::testing::{NOW, committed};

    fn protected(policy: Option<Policy>, legal_hold: Option<bool>) -> Committed {
        Committed { protection: Protection::new(policy, legal_hold), ..committed() }
    }

    /// Every policy, hold and time.
    #[test]
    fn what_protects_and_until_when() {
        let end = NOW.plus_seconds(10);
        for mode in [Mode::Unlocked, Mode::Locked] {
            let policy = Some(Policy { until: end, mode });
            for (now, is_over) in [(NOW, false), (Timestamp(end.0 - 1), false), (end, true)] {
                let immutable = Err(BlobError::BlobImmutableDueToPolicy);
                let deleted = if is_over { Ok(()) } else { immutable.clone() };
                assert_eq!(protected(policy, None).check_delete(now), deleted);
                // "After the retention period has expired, objects can be deleted but not overwritten."
                assert_eq!(protected(policy, Some(false)).check_change(now), immutable);
                let held = Err(BlobError::BlobImmutableDueToLegalHold);
                assert_eq!(protected(policy, Some(true)).check_delete(now), held);
                assert_eq!(protected(None, Some(true)).check_change(now), held);
            }
        }
        assert_eq!(committed().check_change(NOW), Ok(()));
    }

    #[test]
    fn protection_is_the_stronger_reason_and_a_version_needs_none() {
        let tier = Some(TierSet { tier: Tier::Archive, since: NOW, is_inferred: false });
        let state = Committed { tier, ..protected(None, Some(true)) };
        assert_eq!(state.check_change(NOW), Err(BlobError::BlobImmutableDueToLegalHold));
        let blob = |state| Blob { committed: Some(state), ..Blob::default() };
        assert_eq!(blob(state.clone()).check_replace(false, NOW), Err(BlobError::BlobImmutableDueToLegalHold));
        assert_eq!(blob(state).check_replace(true, NOW), Err(BlobError::BlobArchived));
        assert_eq!(blob(protected(None, Some(true))).check_replace(true, NOW), Ok(()));
        assert_eq!(Blob::default().check_replace(false, NOW), Ok(()));
    }
}
