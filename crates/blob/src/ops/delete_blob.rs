//! Delete Blob: a blob, its snapshots, or one of them; or a previous version; or for good what is deleted already.

use std::sync::Arc;

use concurrency::{Conditions, Lease, LeaseId, Timestamp};
use engine::{Changes, Key, KeyReader, Rows, Tick, Unread};
use service::Operation;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::{self, Blob, Committed, Halt, blob_key, refuse, snapshots_of};
use crate::rules::immutability::Standing;
use crate::rules::soft_delete::{self, Expiring, Fate, Keeping};
use crate::{Failure, reply, request};

#[derive(Clone, Debug)]
pub struct DeleteBlob {
    pub container: ContainerName,
    pub name: BlobName,
    pub which: Which,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    pub snapshots: Option<DeleteSnapshots>,
    pub delete_type: DeleteType,
    pub tier: TierConditions,
    pub keeping: Keeping,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeleteType {
    /// As the account has it: what is deleted may come back.
    #[default]
    Usual,
    /// Something that is deleted already, for good.
    Permanent,
}

/// When the tier must, or must not, have been set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierConditions {
    pub if_modified_since: Option<Timestamp>,
    pub if_unmodified_since: Option<Timestamp>,
}

impl TierConditions {
    /// What was never set is as old as the blob.
    fn check(&self, state: Option<&Committed>, now: Timestamp) -> Result<(), BlobError> {
        let Some(state) = state else { return Ok(()) };
        let since = state.tier_at(now).and_then(|shown| shown.since).unwrap_or(state.created).whole_seconds();
        let holds = self.if_modified_since.is_none_or(|date| since > date)
            && self.if_unmodified_since.is_none_or(|date| since <= date);
        if holds { Ok(()) } else { Err(BlobError::ConditionNotMet) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteSnapshots {
    /// The blob and its snapshots.
    Include,
    /// The snapshots; the blob stays.
    Only,
}

fn parse(head: &Head, keeping: Keeping) -> Result<DeleteBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::no_foreign_headers(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    no_empty_which(head)?;
    let (which, snapshots) = (request::which(head)?, delete_snapshots(head)?);
    if which != Which::Base && snapshots.is_some() {
        return Err(BlobError::InvalidOperation);
    }
    let delete_type = delete_type(head)?;
    if delete_type == DeleteType::Permanent && which == Which::Base {
        return Err(BlobError::PermanentDeleteNotAllowed);
    }
    let tier = TierConditions {
        if_modified_since: request::date(head, "x-ms-access-tier-if-modified-since")?,
        if_unmodified_since: request::date(head, "x-ms-access-tier-if-unmodified-since")?,
    };
    let lease = request::lease_id(head)?;
    Ok(DeleteBlob { container, name, which, conditions, lease, snapshots, delete_type, tier, keeping })
}

/// Elsewhere an empty parameter counts as absent. Here it would delete the blob in place of a snapshot or version that the
/// caller failed to name.
fn no_empty_which(head: &Head) -> Result<(), BlobError> {
    for name in ["snapshot", "versionid"] {
        let is_empty = |(key, value): &(String, String)| key.eq_ignore_ascii_case(name) && value.is_empty();
        if head.query.pairs().iter().any(is_empty) {
            return Err(BlobError::query(name, ""));
        }
    }
    Ok(())
}

fn delete_type(head: &Head) -> Result<DeleteType, BlobError> {
    const NAME: &str = "deletetype";
    match head.query.get(NAME) {
        None => Ok(DeleteType::Usual),
        Some(text) if text.eq_ignore_ascii_case("permanent") => Ok(DeleteType::Permanent),
        Some(other) => Err(BlobError::query(NAME, other)),
    }
}

fn delete_snapshots(head: &Head) -> Result<Option<DeleteSnapshots>, BlobError> {
    const NAME: &str = "x-ms-delete-snapshots";
    match request::text(head, NAME)? {
        None => Ok(None),
        Some("include") => Ok(Some(DeleteSnapshots::Include)),
        Some("only") => Ok(Some(DeleteSnapshots::Only)),
        Some(other) => Err(BlobError::header(NAME, other)),
    }
}

/// What is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doomed {
    Everything,
    Snapshots,
}

impl DeleteBlob {
    /// The blob itself. One that has only uncommitted blocks can be deleted, though conditions see nothing there.
    fn decide(&self, found: Option<&Blob>, now: Timestamp) -> Result<Doomed, BlobError> {
        let version = found.and_then(Blob::version);
        self.conditions.check_write(version.as_ref())?;
        self.conditions.check_not_exists_on_delete(version.is_some())?;
        self.tier.check(found.and_then(|blob| blob.committed.as_ref()), now)?;
        let blob = found.ok_or(BlobError::BlobNotFound)?;
        blob.check_free(self.lease, now)?;
        match self.snapshots {
            Some(DeleteSnapshots::Only) => Ok(Doomed::Snapshots),
            None if blob.snapshots > 0 => Err(BlobError::SnapshotsPresent),
            None | Some(DeleteSnapshots::Include) => {
                blob.committed.as_ref().map_or(Ok(()), |state| state.check_delete(now))?;
                Ok(Doomed::Everything)
            }
        }
    }

    /// One snapshot or version. It has no lease of its own, and that of its blob does not protect it.
    fn decide_one(&self, found: Option<&Committed>, now: Timestamp) -> Result<(), BlobError> {
        let version = found.map(Committed::version);
        self.conditions.check_write(version.as_ref())?;
        self.conditions.check_not_exists_on_delete(version.is_some())?;
        self.tier.check(found, now)?;
        let state = found.ok_or(BlobError::BlobNotFound)?;
        Lease::Available.check_write(self.lease, now).map_err(BlobError::lease_on_blob)?;
        state.check_delete(now)
    }

    fn delete_base(&self, rows: &dyn Rows, key: Key, tick: Tick, changes: &mut Changes) -> Result<Fate, Halt> {
        let found = model::find_blob(rows, &key)?;
        let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
        let doomed = self.decide(there, tick.now).map_err(refuse)?;
        let Some(mut blob) = found else { return Ok(Fate::Gone) };
        check_snapshots(rows, &key, &blob, tick.now)?;
        match doomed {
            Doomed::Everything => Ok(soft_delete::delete(rows, key, blob, self.keeping, tick, changes)?),
            Doomed::Snapshots => {
                let fate = soft_delete::delete_snapshots(rows, &key, &mut blob, self.keeping, tick, changes)?;
                blob.store(key, changes);
                Ok(fate)
            }
        }
    }

    fn delete_one(
        &self,
        rows: &dyn Rows,
        key: Key,
        which: Expiring,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Fate, Halt> {
        let blob = model::find_blob(rows, &key)?;
        let found = blob.as_ref().map(|blob| found(rows, blob, which)).transpose()?.flatten();
        self.decide_one(found.as_ref(), tick.now).map_err(refuse)?;
        let (Some(blob), Some(state)) = (blob, found) else { return Ok(Fate::Gone) };
        if which.is_current(&blob) {
            return Err(refuse(BlobError::OperationNotAllowedOnRootBlob));
        }
        Ok(soft_delete::delete_one(rows, key, (blob, which, state), self.keeping, tick, changes)?)
    }

    /// Something that is deleted and could still come back. What is not deleted yet does not go in one step.
    fn delete_for_good(
        &self,
        rows: &dyn Rows,
        key: Key,
        which: Expiring,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Fate, Halt> {
        let blob = model::find_blob(rows, &key)?;
        let deleted = blob.as_ref().map(|blob| which.find(rows, blob)).transpose()?.flatten();
        let deleted = deleted.filter(|(_, mark)| mark.is_kept(tick.now)).map(|(state, _)| state);
        let there = blob.as_ref().map(|blob| found(rows, blob, which)).transpose()?.flatten();
        self.decide_one(deleted.as_ref().or(there.as_ref()), tick.now).map_err(refuse)?;
        let (Some(mut blob), Some(state)) = (blob, deleted) else {
            return Err(refuse(BlobError::PermanentDeleteNotAllowed));
        };
        if !self.keeping.allows_permanent_delete(rows)? {
            return Err(refuse(BlobError::PermanentDeleteNotAllowed));
        }
        which.remove(&mut blob, &state, tick.now, changes);
        blob.store(key, changes);
        Ok(Fate::Gone)
    }
}

/// A snapshot or version that is not deleted.
fn found(rows: &dyn Rows, blob: &Blob, which: Expiring) -> Result<Option<Committed>, Unread> {
    match which {
        Expiring::Base => Ok(None),
        Expiring::Snapshot(at) => blob.snapshot(rows, at),
        Expiring::Version(_) if which.is_current(blob) => Ok(blob.committed.clone()),
        Expiring::Version(id) => blob.previous_version(rows, id),
    }
}

/// Whether the snapshots of a blob may go. They are looked at only where something in the container is protected.
fn check_snapshots(rows: &dyn Rows, key: &Key, blob: &Blob, now: Timestamp) -> Result<(), Halt> {
    let generation = KeyReader::new(key.as_bytes()).number().unwrap_or_default();
    if blob.snapshots == 0 || !Standing::of(rows, generation, now)?.is_any() {
        return Ok(());
    }
    let mut refused = Ok(());
    soft_delete::each_state(rows, &snapshots_of(blob.uid), |_, state| {
        if refused.is_ok() && blob.deletion_of(&state).is_none() {
            refused = state.check_delete(now);
        }
    })?;
    refused.map_err(refuse)
}

impl Operation for DeleteBlob {
    /// Whether what is deleted can come back.
    type Outcome = Fate;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Fate, Halt> {
        self.keeping.prefetch(rows);
        changes.frees_space = true;
        let key = blob_key(model::generation(rows, account, &self.container)?, &self.name);
        let one = match self.which {
            Which::Base => return self.delete_base(rows, key, tick, changes),
            Which::Snapshot(at) => Expiring::Snapshot(at),
            Which::Version(id) => Expiring::Version(id),
        };
        match self.delete_type {
            DeleteType::Usual => self.delete_one(rows, key, one, tick, changes),
            DeleteType::Permanent => self.delete_for_good(rows, key, one, tick, changes),
        }
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let fate = call.commit(&Arc::new(parse(call.head, call.keeping())?)).await?;
    let mut answer = reply::reply(StatusCode::ACCEPTED);
    let is_permanent = if fate == Fate::Gone { reply::TRUE } else { reply::FALSE };
    answer.headers.insert(&reply::DELETE_TYPE_PERMANENT, is_permanent);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, committed, refusal};
    use auth::Settings;
    use concurrency::ETagMatch;

    fn ask(lease: Option<LeaseId>, snapshots: Option<DeleteSnapshots>, conditions: Conditions) -> DeleteBlob {
        DeleteBlob {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            which: Which::Base,
            conditions,
            lease,
            snapshots,
            delete_type: DeleteType::Usual,
            tier: TierConditions::default(),
            keeping: Keeping::new(1, &Settings::USUAL),
        }
    }

    fn blob(lease: Lease, snapshots: u32) -> Blob {
        Blob { uid: 3, lease, committed: Some(committed()), snapshots, ..Blob::default() }
    }

    #[test]
    fn snapshots_must_be_named() {
        let decide = |snapshots, count| {
            ask(None, snapshots, Conditions::default()).decide(Some(&blob(Lease::Available, count)), NOW)
        };
        assert_eq!(decide(None, 0), Ok(Doomed::Everything));
        assert_eq!(decide(None, 1), Err(BlobError::SnapshotsPresent));
        assert_eq!(decide(Some(DeleteSnapshots::Include), 1), Ok(Doomed::Everything));
        assert_eq!(decide(Some(DeleteSnapshots::Only), 1), Ok(Doomed::Snapshots));
        assert_eq!(decide(Some(DeleteSnapshots::Only), 0), Ok(Doomed::Snapshots));
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let stale = Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..Conditions::default() };
        let not_there = Conditions { if_none_match: Some(ETagMatch::Any), ..Conditions::default() };
        let free = Conditions::default();
        let decide = |lease, conditions: &Conditions, found: Option<Blob>| {
            ask(lease, None, conditions.clone()).decide(found.as_ref(), NOW).err()
        };
        assert_eq!(decide(None, &free, None), Some(BlobError::BlobNotFound));
        assert_eq!(decide(None, &stale, None), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(None, &not_there, Some(blob(Lease::Available, 0))), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(None, &stale, Some(blob(HELD, 0))), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(None, &free, Some(blob(HELD, 1))), Some(BlobError::LeaseIdMissing));
        assert_eq!(decide(Some(YOURS), &free, Some(blob(HELD, 1))), Some(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(decide(Some(MINE), &free, Some(blob(HELD, 1))), Some(BlobError::SnapshotsPresent));
        assert_eq!(decide(Some(MINE), &free, Some(blob(HELD, 0))), None);
    }

    #[tokio::test]
    async fn a_deleted_blob_is_gone_and_its_name_is_free() {
        let bench = Bench::with_container().await;
        let first = bench.put("cont/blob", b"x").await;
        assert_eq!(bench.call("DELETE", "cont/blob", &[], b"").await.unwrap().status, 202);
        assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
        assert_ne!(bench.put("cont/blob", b"x").await, first);
        assert_eq!(refusal(bench.call("DELETE", "gone/blob", &[], b"").await), BlobError::ContainerNotFound);
    }

    #[tokio::test]
    async fn what_cannot_be_meant_is_refused() {
        let bench = Bench::with_container().await;
        let snapshot = "cont/blob?snapshot=2026-11-15T18:00:00.0000000Z";
        let refused = bench.call("DELETE", snapshot, &[("x-ms-delete-snapshots", "only")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidOperation);
        let refused = bench.call("DELETE", "cont/blob?deletetype=Permanent", &[], b"").await;
        assert_eq!(refusal(refused), BlobError::PermanentDeleteNotAllowed);
        let refused = bench.call("DELETE", &format!("{snapshot}&deletetype=Slow"), &[], b"").await;
        assert_eq!(refusal(refused), BlobError::query("deletetype", "Slow"));
        // An empty parameter names no snapshot; the blob itself is not what was meant.
        bench.put("cont/blob", b"x").await;
        for name in ["snapshot", "versionid"] {
            let refused = bench.call("DELETE", &format!("cont/blob?{name}="), &[], b"").await;
            assert_eq!(refusal(refused), BlobError::query(name, ""));
        }
        assert_eq!(bench.get("cont/blob").await, b"x");
        let refused = bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "all")], b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-delete-snapshots", "all"));
    }
}
