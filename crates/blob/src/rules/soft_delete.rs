//! What becomes of a state of a blob that is replaced or deleted: a version, something that can be undeleted, or nothing.
//!
//! Everything that puts a new committed state in the place of another goes through [`replace`], everything that changes the
//! current one in a way that makes a version through [`keep_version`], and every end of a blob through [`delete`].
//!
//! - With versions the old state becomes a previous version, as it is. A blob that was written before the account kept
//!   versions has no version id; it gets the time of its creation.
//! - Else, with soft delete, a state that is replaced becomes a snapshot that is deleted, and a blob that is deleted stays
//!   in its row under another field, so that no lookup finds it by accident.
//! - Else it is let go.
//!
//! The end of a retention is computed from the tick; a due row of each deletion brings the bytes back later.

use auth::Settings;
use bytes::Bytes;
use concurrency::{Lease, Timestamp};
use engine::{Changes, Key, Rows, Tick, Unread, Visit, due};
use service::{codec, space};

use crate::error::BlobError;
use crate::model::protection;
use crate::model::service_properties::PROPERTIES;
use crate::model::tags;
use crate::model::{
    self, Blob, BlobType, Committed, Deletion, Halt, Past, Undeletion, VersionId, refuse, snapshot_key, snapshots_due,
    snapshots_of, version_key, versions_due, versions_of,
};

/// What an account keeps. Cheap to pass into a decision, which asks for more only if there is something to keep.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    account: u64,
    versioning: bool,
    first_days: Option<u16>,
}

impl Keeping {
    pub fn new(account: u64, settings: &Settings) -> Keeping {
        Keeping { account, versioning: settings.versioning, first_days: settings.blob_soft_delete_days }
    }

    /// Whether what is replaced becomes a previous version.
    pub fn versioning(&self) -> bool {
        self.versioning
    }

    /// Announces what is asked for when there is something to keep.
    pub fn prefetch(&self, rows: &dyn Rows) {
        rows.prefetch(&[PROPERTIES.key(self.account)]);
    }

    /// The mark of what is deleted now; `None`: it is gone at once.
    fn mark(&self, rows: &dyn Rows, tick: Tick) -> Result<Option<Deletion>, Unread> {
        let days = PROPERTIES.retention(rows, self.account, self.first_days)?.days;
        Ok(days.map(|days| Deletion::new(days, tick)))
    }

    /// Whether what is deleted may be deleted for good before its time.
    pub fn allows_permanent_delete(&self, rows: &dyn Rows) -> Result<bool, Unread> {
        Ok(PROPERTIES.retention(rows, self.account, self.first_days)?.allow_permanent_delete)
    }

    /// The id of a state that is written now.
    fn new_version(&self, tick: Tick) -> Option<VersionId> {
        self.versioning.then_some(VersionId(tick.stamp))
    }
}

/// What a write answers with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    pub stamp: Timestamp,
    pub version_id: Option<VersionId>,
}

/// Makes `state` the committed state of the blob at `key`. `found` is its row as it is stored, if there is one; what
/// waited to be committed goes, lease and snapshots stay as they are given and found.
pub fn replace(
    rows: &dyn Rows,
    key: Key,
    found: Option<Blob>,
    becomes: (Lease, Committed),
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Written, Halt> {
    put_in_place(rows, key, found, Next { becomes, snapshot: None }, keeping, tick, changes)
}

/// The same for an incremental copy, which leaves `snapshot` beside the new state. What was there is let go: it is in a
/// snapshot of its own already.
pub fn replace_leaving(
    rows: &dyn Rows,
    key: Key,
    found: Option<Blob>,
    (becomes, snapshot): ((Lease, Committed), Committed),
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Written, Halt> {
    put_in_place(rows, key, found, Next { becomes, snapshot: Some(snapshot) }, keeping, tick, changes)
}

/// What a blob becomes.
struct Next {
    becomes: (Lease, Committed),
    /// A snapshot of it that is taken in the same step.
    snapshot: Option<Committed>,
}

fn put_in_place(
    rows: &dyn Rows,
    key: Key,
    found: Option<Blob>,
    Next { becomes: (lease, mut state), snapshot }: Next,
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Written, Halt> {
    let mut blob = found.unwrap_or_else(|| Blob { uid: tick.id(0), ..Blob::default() });
    let is_other = type_kept(rows, &blob)?.is_some_and(|kept| kept.name() != state.kind.name());
    if is_other {
        check_type_may_change(&blob, keeping).map_err(refuse)?;
    }
    if let Some(staging) = blob.staging.take() {
        staging.leave(&key, changes, tick.now);
    }
    let tags_before = blob.committed.as_ref().and_then(|old| old.tags.as_ref());
    tags::reindex(tags_before, state.tags.as_ref(), &key, changes);
    if is_other {
        forget(&mut blob, tick, changes);
    }
    put_deleted_away(&mut blob, &key, changes);
    if let Some(old) = blob.committed.take() {
        match old.version_id {
            _ if snapshot.is_some() => old.let_go(changes, tick.now),
            None if !keeping.versioning => match keeping.mark(rows, tick)? {
                Some(mark) => keep_deleted_snapshot(&mut blob, &key, old, mark, tick.stamp, changes),
                None => old.let_go(changes, tick.now),
            },
            Some(_) | None => keep_previous(&mut blob, old, changes),
        }
    }
    if let Some(snapshot) = snapshot {
        // Only now is it known which uid names the snapshots.
        changes.put(snapshot_key(blob.uid, tick.stamp), codec::encode(&snapshot));
        blob.snapshots = blob.snapshots.saturating_add(1);
    }
    protection::enter(&mut state, &key, changes);
    state.version_id = keeping.new_version(tick);
    let written = Written { stamp: state.stamp, version_id: state.version_id };
    blob.lease = lease;
    blob.committed = Some(state);
    blob.store(key, changes);
    Ok(written)
}

/// The type of what there is under a name, or was and can come back: all of it has one type. `None`: there is nothing.
fn type_kept(rows: &dyn Rows, blob: &Blob) -> Result<Option<BlobType>, Unread> {
    let past = blob.past.as_deref();
    let deleted = past.and_then(|past| past.deleted.as_ref());
    let versions = past.filter(|past| past.has_versions()).and_then(|past| past.kind);
    let known = blob.committed.as_ref().or(deleted).map(|state| state.kind).or(versions);
    let has_snapshots = blob.snapshots > 0 || past.is_some_and(|past| past.deleted_snapshots > 0);
    if known.is_some() || !has_snapshots {
        return Ok(known);
    }
    // Only blocks wait beside the snapshots.
    let (all, mut first) = (snapshots_of(blob.uid), None);
    rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
        first = Some(codec::decode::<Committed>(row));
        Visit::Stop
    })?;
    Ok(first.transpose()?.map(|state| state.kind))
}

/// Whether a blob of another type may take this one's name. What can be seen stays, so it stands against that; what is deleted
/// does not.
fn check_type_may_change(blob: &Blob, keeping: Keeping) -> Result<(), BlobError> {
    if blob.past.as_ref().is_some_and(|past| past.versions > 0) {
        return Err(BlobError::InvalidBlobType);
    }
    if blob.snapshots > 0 {
        return Err(BlobError::SnapshotsPresent);
    }
    match &blob.committed {
        // It would become a version.
        Some(state) if keeping.versioning || state.version_id.is_some() => Err(BlobError::InvalidBlobType),
        Some(_) | None => Ok(()),
    }
}

/// Keeps the current state of `blob` as a previous version before `state`, which it is, becomes another. Content is shared
/// between the two; what protects the state stays with the previous version, and the new one has nothing of it. Without
/// versions nothing happens.
pub fn keep_version(blob: &mut Blob, state: &mut Committed, keeping: Keeping, tick: Tick, changes: &mut Changes) {
    if !keeping.versioning && state.version_id.is_none() {
        return;
    }
    let mut old = state.kept_as(tick.id(3), changes);
    protection::pass_on(state, &mut old, changes);
    keep_previous(blob, old, changes);
    state.version_id = keeping.new_version(tick);
}

/// The same for a snapshot, which makes a version but changes nothing. What is a version and was not changed stays one when
/// the account keeps none any longer.
pub fn keep_version_of_snapshot(
    blob: &mut Blob,
    state: &mut Committed,
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) {
    if keeping.versioning {
        keep_version(blob, state, keeping, tick, changes);
    }
}

fn past_of(blob: &mut Blob) -> &mut Past {
    blob.past.get_or_insert_default()
}

fn keep_previous(blob: &mut Blob, mut old: Committed, changes: &mut Changes) {
    let uid = blob.uid;
    let past = past_of(blob);
    if !past.has_versions() {
        past.uid = uid;
    }
    // The time of creation may be that of an earlier version already, the last change never is.
    let without = if past.has_versions() { old.stamp } else { old.created };
    let id = *old.version_id.get_or_insert(VersionId(without));
    past.kind = Some(old.kind);
    past.versions = past.versions.saturating_add(1);
    changes.put(version_key(past.uid, id), codec::encode(&old));
}

fn keep_deleted_snapshot(
    blob: &mut Blob,
    key: &Key,
    old: Committed,
    mark: Deletion,
    at: Timestamp,
    changes: &mut Changes,
) {
    changes.put(snapshot_key(blob.uid, at), codec::encode(&Committed { deleted: Some(mark), ..old }));
    changes.put(Expiring::Snapshot(at).due(key, mark), Bytes::new());
    past_of(blob).deleted_snapshots += 1;
}

/// A blob that is deleted becomes a deleted snapshot when another takes its name. Its retention stays.
///
/// The time of that snapshot is the stamp of the deletion, which no other snapshot has: the commit that takes the name may
/// make a snapshot of its own stamp.
pub fn put_deleted_away(blob: &mut Blob, key: &Key, changes: &mut Changes) {
    let deleted = blob.past.as_mut().and_then(|past| past.deleted.take());
    if let Some((deleted, mark)) = deleted.and_then(|state| state.deleted.map(|mark| (state, mark))) {
        keep_deleted_snapshot(blob, key, deleted, mark, mark.stamp, changes);
    }
}

/// What there is of a blob is of another type than what takes its name: it goes for good, and so does what could come back.
fn forget(blob: &mut Blob, tick: Tick, changes: &mut Changes) {
    if let Some(old) = blob.committed.take() {
        old.let_go(changes, tick.now);
    }
    let Some(past) = &mut blob.past else { return };
    if let Some(deleted) = past.deleted.take() {
        deleted.let_go(changes, tick.now);
    }
    if past.deleted_versions > 0 {
        changes.put(versions_due(past.uid, tick.now), Bytes::new());
    }
    if past.has_versions() || past.deleted_snapshots > 0 {
        (past.deleted_versions, past.deleted_snapshots) = (0, 0);
        // The new uid is that of the versions to come, too: the rows of the old ones are still to be removed.
        leave_snapshots(blob, tick, changes);
    }
}

/// Under its new uid a blob has no snapshots; those of the old one are out of reach, and are removed later.
fn leave_snapshots(blob: &mut Blob, tick: Tick, changes: &mut Changes) {
    changes.put(snapshots_due(blob.uid, tick.now), Bytes::new());
    blob.uid = tick.id(0);
    blob.snapshots = 0;
}

/// Whether something that was deleted can come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Kept,
    Gone,
}

/// The end of a blob with its snapshots, and of what waited to be committed.
pub fn delete(
    rows: &dyn Rows,
    key: Key,
    mut blob: Blob,
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Fate, Unread> {
    delete_snapshots(rows, &key, &mut blob, keeping, tick, changes)?;
    if let Some(staging) = blob.staging.take() {
        staging.leave(&key, changes, tick.now);
    }
    tags::reindex(blob.committed.as_ref().and_then(|old| old.tags.as_ref()), None, &key, changes);
    blob.lease = Lease::Available;
    let fate = match blob.committed.take() {
        None => Fate::Gone,
        Some(old) if keeping.versioning || old.version_id.is_some() => {
            keep_previous(&mut blob, old, changes);
            Fate::Kept
        }
        Some(old) => match keeping.mark(rows, tick)? {
            Some(mark) => {
                changes.put(Expiring::Base.due(&key, mark), Bytes::new());
                past_of(&mut blob).deleted = Some(Committed { deleted: Some(mark), ..old });
                Fate::Kept
            }
            None => {
                old.let_go(changes, tick.now);
                Fate::Gone
            }
        },
    };
    blob.store(key, changes);
    Ok(fate)
}

/// Deletes all snapshots of a blob. Its row is still to be stored.
pub fn delete_snapshots(
    rows: &dyn Rows,
    key: &Key,
    blob: &mut Blob,
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Fate, Unread> {
    if blob.snapshots == 0 {
        return Ok(Fate::Gone);
    }
    let mark = keeping.mark(rows, tick)?;
    if mark.is_none() && blob.past.as_ref().is_none_or(|past| past.deleted_snapshots == 0) {
        leave_snapshots(blob, tick, changes);
        return Ok(Fate::Gone);
    }
    let mut live = Vec::new();
    each_state(rows, &snapshots_of(blob.uid), |at, state| {
        if blob.deletion_of(&state).is_none() {
            live.push((at, state));
        }
    })?;
    for (at, state) in live {
        mark_or_remove(key, blob, Expiring::Snapshot(at), state, mark, tick, changes);
    }
    Ok(if mark.is_some() { Fate::Kept } else { Fate::Gone })
}

/// Deletes one snapshot or previous version that is there.
pub fn delete_one(
    rows: &dyn Rows,
    key: Key,
    (mut blob, which, state): (Blob, Expiring, Committed),
    keeping: Keeping,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Fate, Unread> {
    let mark = keeping.mark(rows, tick)?;
    mark_or_remove(&key, &mut blob, which, state, mark, tick, changes);
    blob.store(key, changes);
    Ok(if mark.is_some() { Fate::Kept } else { Fate::Gone })
}

/// So many snapshots or versions less. `lazurite check` compares the counts with the rows there are.
fn count_down(count: &mut u32, by: u32) {
    *count = count.checked_sub(by).expect("every snapshot and every version is counted");
}

fn mark_or_remove(
    key: &Key,
    blob: &mut Blob,
    which: Expiring,
    state: Committed,
    mark: Option<Deletion>,
    tick: Tick,
    changes: &mut Changes,
) {
    let Some(row) = which.row(blob) else { return };
    match which {
        Expiring::Base => return,
        Expiring::Snapshot(_) => count_down(&mut blob.snapshots, 1),
        Expiring::Version(_) => count_down(&mut past_of(blob).versions, 1),
    }
    match mark {
        Some(mark) => {
            *which.count(past_of(blob)) += 1;
            changes.put(row, codec::encode(&Committed { deleted: Some(mark), ..state }));
            changes.put(which.due(key, mark), Bytes::new());
        }
        None => {
            state.let_go(changes, tick.now);
            changes.delete(row);
        }
    }
}

/// A state that is deleted and will be gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiring {
    Base,
    Snapshot(Timestamp),
    Version(VersionId),
}

impl Expiring {
    /// Its due row: which of them it is and the key of the blob.
    fn due(self, key: &Key, mark: Deletion) -> Key {
        let (kind, at) = match self {
            Expiring::Base => (0, Timestamp::default()),
            Expiring::Snapshot(at) => (1, at),
            Expiring::Version(VersionId(at)) => (2, at),
        };
        let owner = [&[kind][..], &at.0.to_be_bytes(), key.as_bytes()].concat();
        due::key(mark.until, space::BLOB, &owner)
    }

    /// What a due row is about, and the blob.
    pub fn from_owner(owner: &[u8]) -> Option<(Expiring, Key)> {
        let (kind, rest) = owner.split_first()?;
        let (at, key) = rest.split_first_chunk::<8>()?;
        let at = Timestamp(u64::from_be_bytes(*at));
        let which = match kind {
            0 => Expiring::Base,
            1 => Expiring::Snapshot(at),
            2 => Expiring::Version(VersionId(at)),
            _ => return None,
        };
        Some((which, Key::from_bytes(key)))
    }

    /// Whether it is the version that the blob itself is.
    pub fn is_current(self, blob: &Blob) -> bool {
        let current = blob.committed.as_ref().and_then(|state| state.version_id);
        matches!((self, current), (Expiring::Version(id), Some(current)) if id == current)
    }

    /// Where it is stored, if not in the row of the blob.
    pub fn row(self, blob: &Blob) -> Option<Key> {
        match self {
            Expiring::Base => None,
            Expiring::Snapshot(at) => Some(snapshot_key(blob.uid, at)),
            Expiring::Version(id) => blob.past.as_ref().map(|past| version_key(past.uid, id)),
        }
    }

    /// How many of its kind are deleted.
    fn count(self, past: &mut Past) -> &mut u32 {
        match self {
            Expiring::Base | Expiring::Snapshot(_) => &mut past.deleted_snapshots,
            Expiring::Version(_) => &mut past.deleted_versions,
        }
    }

    /// The state with its mark, if it is there and deleted, whether or not its time is over.
    pub fn find(self, rows: &dyn Rows, blob: &Blob) -> Result<Option<(Committed, Deletion)>, Unread> {
        let state = match self.row(blob) {
            None => blob.past.as_ref().and_then(|past| past.deleted.clone()),
            Some(row) => model::find_state(rows, &row)?,
        };
        Ok(state.and_then(|state| blob.deletion_of(&state).map(|mark| (state, mark))))
    }

    /// Removes it for good. The row of the blob is still to be stored.
    pub fn remove(self, blob: &mut Blob, state: &Committed, now: Timestamp, changes: &mut Changes) {
        state.let_go(changes, now);
        match self.row(blob) {
            None => past_of(blob).deleted = None,
            Some(row) => {
                changes.delete(row);
                count_down(self.count(past_of(blob)), 1);
            }
        }
    }
}

/// A retention may be over: what it held goes if it is. What came back, or was deleted again later, stays.
pub fn expire(rows: &dyn Rows, which: Expiring, key: &Key, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    let Some(mut blob) = model::find_blob(rows, key)? else { return Ok(()) };
    if let Some((state, mark)) = which.find(rows, &blob)? {
        if !mark.is_kept(tick.now) {
            which.remove(&mut blob, &state, tick.now, changes);
            blob.store(key.clone(), changes);
        }
    } else if let Some(row) = which.row(&blob)
        && let Some(state) = model::find_state(rows, &row)?
        && state.deleted.is_some()
    {
        changes.put(row, codec::encode(&Committed { deleted: None, ..state }));
    }
    Ok(())
}

/// Brings back what is deleted of a blob: itself, its snapshots, its versions. `None`: there is nothing.
///
/// Snapshots and versions keep their marks, which do not count any longer; so it takes one row however many they are. The
/// due rows of the marks take them away. Those that are late are taken away here: what came back in time must not be
/// judged by an undeletion that comes after the end.
pub fn undelete(
    rows: &dyn Rows,
    key: &Key,
    mut blob: Blob,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<Blob>, Unread> {
    let Some(past) = blob.past.as_deref() else { return Ok(None) };
    let mut revive = |deleted: u32, all: Key| {
        let mut count: u32 = 0;
        if deleted > 0 || past.undeleted.is_some() {
            each_state(rows, &all, |at, state| match (blob.deletion_of(&state), state.deleted) {
                (Some(mark), _) => count += u32::from(mark.is_kept(tick.now)),
                (None, Some(void)) if !void.is_kept(tick.now) => {
                    let state = Committed { deleted: None, ..state };
                    changes.put(all.clone().number(at.0), codec::encode(&state));
                }
                (None, _) => {}
            })?;
        }
        Ok::<_, Unread>(count)
    };
    let snapshots = revive(past.deleted_snapshots, snapshots_of(blob.uid))?;
    let versions = revive(past.deleted_versions, versions_of(past.uid))?;
    let base = past.deleted.clone().filter(|state| state.deleted.is_some_and(|mark| mark.is_kept(tick.now)));
    if snapshots == 0 && versions == 0 && base.is_none() {
        return Ok(None);
    }
    blob.snapshots += snapshots;
    let past = past_of(&mut blob);
    count_down(&mut past.deleted_snapshots, snapshots);
    count_down(&mut past.deleted_versions, versions);
    past.versions += versions;
    past.undeleted = Some(Undeletion { at: tick.now, stamp: tick.stamp });
    if let Some(base) = base {
        past.deleted = None;
        tags::reindex(None, base.tags.as_ref(), key, changes);
        blob.committed = Some(Committed { deleted: None, ..base });
    }
    Ok(Some(blob))
}

/// Visits the snapshots or versions below `all`, deleted or not, oldest first.
pub fn each_state(rows: &dyn Rows, all: &Key, mut each: impl FnMut(Timestamp, Committed)) -> Result<(), Unread> {
    let mut failed = None;
    rows.scan(all, &all.after_all(), 16, &mut |key, row| {
        match model::state_time(key).and_then(|at| Ok((at, codec::decode(row)?))) {
            Ok((at, state)) => each(at, state),
            Err(error) => {
                failed = Some(error);
                return Visit::Stop;
            }
        }
        Visit::Next
    })?;
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
