//! Delete Share: the share and everything in it are gone at once; the rows behind it go later, after the time in which it can be
//! restored. With a time, only the snapshot of that time goes.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::{Lease, LeaseId, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{Deletion, Operation, codec, reply};
use wire::http::{Head, HeaderName, HeaderValue, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use super::get_file_service_properties::PROPERTIES;
use crate::error::FileError;
use crate::model::{
    DeletedShare, Halt, Share, ShareSnapshot, SnapshotRows, Usage, deleted_share_due, deleted_share_key,
    dropped_snapshot_due, existing_share, existing_snapshot, find_usage, purge_due, refuse, share_key, snapshot_key,
    snapshot_rows, snapshots,
};
use crate::{Failure, request};

static USAGE_BYTES: HeaderName = HeaderName::from_static("x-ms-file-share-usage-bytes");
static SNAPSHOT_USAGE_BYTES: HeaderName = HeaderName::from_static("x-ms-file-share-snapshot-usage-bytes");

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteShare {
    pub share: ShareName,
    pub lease: Option<LeaseId>,
    /// Only this snapshot is to go.
    pub snapshot: Option<Timestamp>,
    /// What becomes of the snapshots. `None`: a share that has some stays.
    pub snapshots: Option<DeleteSnapshots>,
    /// For how many days an account keeps its shares in which that was never set.
    pub first_days: Option<u16>,
}

/// What becomes of the snapshots of a share that is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteSnapshots {
    Include,
    /// Also those that are leased.
    IncludeLeased,
}

fn parse(head: &Head, first_days: Option<u16>) -> Result<DeleteShare, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    let (snapshot, snapshots) = (request::snapshot(head)?, delete_snapshots(head)?);
    if let (Some(_), Some((_, value))) = (snapshot, snapshots) {
        return Err(FileError::header(DELETE_SNAPSHOTS, value));
    }
    let snapshots = snapshots.map(|(snapshots, _)| snapshots);
    Ok(DeleteShare { share, lease: request::lease_id(head)?, snapshot, snapshots, first_days })
}

const DELETE_SNAPSHOTS: &str = "x-ms-delete-snapshots";

fn delete_snapshots(head: &Head) -> Result<Option<(DeleteSnapshots, &str)>, FileError> {
    match request::text(head, DELETE_SNAPSHOTS)? {
        None => Ok(None),
        Some(value @ "include") => Ok(Some((DeleteSnapshots::Include, value))),
        Some(value @ "include-leased") => Ok(Some((DeleteSnapshots::IncludeLeased, value))),
        Some(other) => Err(FileError::header(DELETE_SNAPSHOTS, other)),
    }
}

impl DeleteShare {
    fn decide(&self, share: &Share, now: Timestamp) -> Result<(), FileError> {
        share.lease.check_write(self.lease, now).map_err(FileError::share_lease)?;
        if share.snapshots > 0 && self.snapshots.is_none() { Err(FileError::ShareHasSnapshots) } else { Ok(()) }
    }

    /// The snapshots that are leased. They go with the share only if the request says so; one that is restored is not leased, as
    /// the share itself is not. The lease of a snapshot whose row cannot be read is not known, so that snapshot counts as leased:
    /// a share with damage need not stay for ever. The outcome is the keys of such rows.
    fn release(&self, rows: &dyn Rows, share: &Share, now: Timestamp, changes: &mut Changes) -> Result<Vec<Key>, Halt> {
        if share.snapshots == 0 {
            return Ok(Vec::new());
        }
        let SnapshotRows { readable, damaged } = snapshot_rows(rows, share.generation)?;
        let is_leased = |(_, snapshot): &(Timestamp, ShareSnapshot)| snapshot.share.lease.holder(now).is_some();
        let has_leased = !damaged.is_empty() || readable.iter().any(is_leased);
        if has_leased && self.snapshots != Some(DeleteSnapshots::IncludeLeased) {
            return Err(refuse(FileError::DeleteShareWhenSnapshotLeased));
        }
        for (time, snapshot) in readable {
            if snapshot.share.lease != Lease::Available {
                let share = Share { lease: Lease::Available, ..snapshot.share };
                let key = snapshot_key(share.generation, time);
                changes.put(key, codec::encode(&ShareSnapshot { share, ..snapshot }));
            }
        }
        Ok(damaged)
    }

    /// Removes one snapshot. What only it saw goes later.
    fn drop_snapshot(
        &self,
        (share, time): (Share, Timestamp),
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Halt> {
        // Both are asked for before either is missed.
        let (all, dropped) = (snapshots(rows, share.generation), existing_snapshot(rows, share.generation, time));
        let (all, dropped) = (all?, dropped?);
        let lease = dropped.share.lease.check_write(self.lease, tick.now);
        lease.map_err(|refusal| refuse(FileError::share_lease(refusal)))?;
        let others = all.iter().map(|(_, snapshot)| snapshot.epoch).filter(|epoch| *epoch != dropped.epoch);
        let share = Share {
            newest_snapshot: others.max().unwrap_or(0),
            snapshots: u32::try_from(all.len()).unwrap_or(u32::MAX).saturating_sub(1),
            ..share
        };
        let key = share_key(account, &self.share);
        changes.delete(snapshot_key(share.generation, time));
        changes.put(dropped_snapshot_due(&key, share.generation, dropped.epoch, tick.now), Bytes::new());
        changes.put(key, codec::encode(&share));
        Ok(())
    }
}

/// What went with a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareRemoval {
    /// The generation of the share. `None`: only a snapshot of it went.
    pub generation: Option<u64>,
    /// What the share held.
    pub usage: Usage,
    /// The rows of snapshots that went without having been read, because they could not be.
    pub damaged: Vec<Key>,
}

impl Operation for DeleteShare {
    type Outcome = ShareRemoval;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<ShareRemoval, Halt> {
        // Both are asked for before either is missed.
        let (retention, share) =
            (PROPERTIES.retention(rows, account, self.first_days), existing_share(rows, account, &self.share));
        let (days, share) = (retention?.days, share?);
        let usage = find_usage(rows, share.generation)?;
        changes.frees_space = true;
        if let Some(time) = self.snapshot {
            self.drop_snapshot((share, time), rows, account, tick, changes)?;
            return Ok(ShareRemoval { generation: None, usage, damaged: Vec::new() });
        }
        self.decide(&share, tick.now).map_err(refuse)?;
        let damaged = self.release(rows, &share, tick.now, changes)?;
        changes.delete(share_key(account, &self.share));
        match days {
            None => {
                changes.put(purge_due(share.generation, tick.now), Bytes::new());
            }
            Some(days) => {
                let key = deleted_share_key(account, &self.share, tick.stamp.0);
                let mark = Deletion::new(days, tick);
                changes.put(deleted_share_due(&key, mark), Bytes::new());
                let share = Share { lease: Lease::Available, ..share.clone() };
                changes.put(key, codec::encode(&DeletedShare { share, mark }));
            }
        }
        Ok(ShareRemoval { generation: Some(share.generation), usage, damaged })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head, call.asker.settings.share_soft_delete_days)?;
    let share = op.share.clone();
    let ShareRemoval { generation, usage, damaged } = call.commit(&Arc::new(op)).await?;
    for key in damaged {
        tracing::error!(share = share.as_str(), ?key, "a share was deleted with a snapshot whose row cannot be read");
    }
    let mut answer = reply::reply(StatusCode::ACCEPTED);
    let Some(generation) = generation else { return Ok(answer) };
    call.opens.close_disconnected(generation);
    answer.headers.insert(&USAGE_BYTES, HeaderValue::from(usage.bytes));
    answer.headers.insert(&SNAPSHOT_USAGE_BYTES, HeaderValue::from(usage.past_bytes));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::snapshots_of;
    use crate::testing::{Bench, MINE, NOW, header, refusal, share};
    use concurrency::LeaseRefusal;

    const URL: &str = "share?restype=share";

    #[tokio::test]
    async fn the_name_is_free_at_once() {
        let bench = Bench::with_share().await;
        let gone = bench.call("DELETE", URL, &[], b"").await.unwrap();
        assert_eq!((gone.status.as_u16(), header(&gone, "x-ms-file-share-usage-bytes")), (202, Some("0")));
        assert_eq!(header(&gone, "x-ms-file-share-snapshot-usage-bytes"), Some("0"));
        assert_eq!(refusal(bench.call("DELETE", URL, &[], b"").await), FileError::ShareNotFound);
        bench.call("PUT", URL, &[], b"").await.unwrap();
        bench.sweep().await;
        // The share, its root directory, and the root's permission.
        assert_eq!(bench.rows(), 3);
        bench.call("DELETE", URL, &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }

    /// A snapshot that cannot be read goes with its share, if leased ones may go. A listing names its row, as listings do.
    #[tokio::test]
    async fn a_damaged_snapshot_goes_with_its_share() {
        let bench = Bench::with_share().await;
        for _ in 0..2 {
            bench.call("PUT", "share?restype=share&comp=snapshot", &[], b"").await.unwrap();
        }
        let key = snapshots_of(bench.generation().await);
        bench.damage_first(key).await;
        let listed = bench.call("GET", "?comp=list&include=snapshots", &[], b"").await;
        assert!(matches!(&listed, Err(Failure::Failed(error)) if error.to_string().contains("share snapshot")));
        assert_eq!(bench.call("GET", "?comp=list", &[], b"").await.unwrap().status, 200);
        let delete = async |value: &str| bench.call("DELETE", URL, &[("x-ms-delete-snapshots", value)], b"").await;
        assert_eq!(
            refusal(delete("include").await),
            FileError::DeleteShareWhenSnapshotLeased,
            "nobody knows its lease"
        );
        assert_eq!(delete("include-leased").await.unwrap().status, 202);
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }

    /// Beside a snapshot that cannot be read, one that is leased is still told.
    #[tokio::test]
    async fn leases_beside_a_damaged_snapshot() {
        let bench = Bench::with_share().await;
        let mut times = Vec::new();
        for _ in 0..2 {
            let taken = bench.call("PUT", "share?restype=share&comp=snapshot", &[], b"").await.unwrap();
            times.push(header(&taken, "x-ms-snapshot").unwrap().to_owned());
        }
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let lease = format!("share?restype=share&comp=lease&sharesnapshot={}", times[1]);
        bench.call("PUT", &lease, &acquire, b"").await.unwrap();
        bench.damage_first(snapshots_of(bench.generation().await)).await;
        let delete = async |value: &str| bench.call("DELETE", URL, &[("x-ms-delete-snapshots", value)], b"").await;
        assert_eq!(refusal(delete("include").await), FileError::DeleteShareWhenSnapshotLeased);
        assert_eq!(delete("include-leased").await.unwrap().status, 202);
    }

    #[test]
    fn each_refusal_of_what_is_there() {
        let ask = |lease, snapshots| {
            let share = ShareName::parse("share").unwrap();
            DeleteShare { share, lease, snapshot: None, snapshots, first_days: None }
        };
        let with = |lease: Lease, snapshots| Share { lease, snapshots, ..share() };
        let plain = ask(None, None);
        assert_eq!(plain.decide(&with(Lease::Available, 0), NOW), Ok(()));
        assert_eq!(plain.decide(&with(Lease::Available, 1), NOW), Err(FileError::ShareHasSnapshots));
        for both in [DeleteSnapshots::Include, DeleteSnapshots::IncludeLeased] {
            assert_eq!(ask(None, Some(both)).decide(&with(Lease::Available, 1), NOW), Ok(()));
        }
        // The lease comes before the snapshots.
        let missing = FileError::share_lease(LeaseRefusal::NotPresent);
        assert_eq!(ask(Some(MINE), None).decide(&with(Lease::Available, 1), NOW), Err(missing));
    }

    #[tokio::test]
    async fn each_refusal_of_the_request() {
        let bench = Bench::with_share().await;
        let snapshot = format!("{URL}&sharesnapshot=2026-11-15T18:00:00.0000000Z");
        let delete = async |url: &str, headers: &[(&str, &str)]| refusal(bench.call("DELETE", url, headers, b"").await);
        let name = "x-ms-delete-snapshots";
        for value in ["include", "include-leased"] {
            assert_eq!(delete(&snapshot, &[(name, value)]).await, FileError::header(name, value));
        }
        assert_eq!(delete(URL, &[(name, "only")]).await, FileError::header(name, "only"));
        assert_eq!(delete(&snapshot, &[]).await, FileError::ShareNotFound);
        assert_eq!(delete(&format!("{URL}&sharesnapshot="), &[]).await, FileError::query("sharesnapshot", ""));
        assert_eq!(delete(URL, &[("if-match", "*")]).await, FileError::ConditionHeadersNotSupported);
        assert_eq!(bench.call("GET", URL, &[], b"").await.unwrap().status, 200);
        assert_eq!(bench.call("DELETE", URL, &[(name, "include")], b"").await.unwrap().status, 202);
    }
}
