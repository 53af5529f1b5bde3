//! Snapshot Share: keeps a share as it is now, with everything in it, to be read later.
//!
//! It costs one row and one commit, whatever the share holds: see [`crate::past`].

use std::sync::Arc;

use bytes::Bytes;
use concurrency::{Lease, LeaseId, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, Pairs, codec, reply};
use wire::dates;
use wire::http::{Head, HeaderName, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, SNAPSHOTS_MAX, Share, ShareSnapshot, existing_share, refuse, share_key, snapshot_key};
use crate::{Failure, request};

static SNAPSHOT: HeaderName = HeaderName::from_static("x-ms-snapshot");

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotShare {
    pub share: ShareName,
    /// It needs no lease, but if it names one, it must be the right one.
    pub lease: Option<LeaseId>,
    /// None: that of the share.
    pub metadata: Pairs,
}

fn parse(head: &Head) -> Result<SnapshotShare, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    request::only_base(head)?;
    Ok(SnapshotShare { share, lease: request::lease_id(head)?, metadata: request::metadata(head)? })
}

impl SnapshotShare {
    /// The time that names the snapshot, the snapshot, and the share, which goes on in the next epoch.
    ///
    /// Times are whole seconds, as SMB has no more, and later than any before. So two snapshots in one second have two times.
    fn decide(&self, share: Share, tick: Tick) -> Result<(Timestamp, ShareSnapshot, Share), FileError> {
        share.lease.check_read(self.lease, tick.now).map_err(FileError::share_lease)?;
        if share.snapshots >= SNAPSHOTS_MAX {
            return Err(FileError::ShareSnapshotCountExceeded);
        }
        let next = Timestamp(share.last_snapshot).plus_seconds(u64::from(share.last_snapshot > 0));
        let time = tick.now.whole_seconds().max(next);
        let mut kept = Share { lease: Lease::Available, policies: Vec::new(), ..share.clone() };
        if !self.metadata.is_empty() {
            (kept.metadata, kept.stamp) = (self.metadata.clone(), tick.stamp);
        }
        let snapshot = ShareSnapshot { epoch: share.epoch, taken: tick.stamp, share: kept };
        let share = Share {
            newest_snapshot: share.epoch,
            epoch: share.epoch + 1,
            snapshots: share.snapshots + 1,
            last_snapshot: time.0,
            ..share
        };
        Ok((time, snapshot, share))
    }
}

impl Operation for SnapshotShare {
    /// The time that names the snapshot, and its stamp.
    type Outcome = (Timestamp, Timestamp);
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(Timestamp, Timestamp), Halt> {
        let share = existing_share(rows, account, &self.share)?;
        let (time, snapshot, share) = self.decide(share, tick).map_err(refuse)?;
        changes.put(snapshot_key(share.generation, time), codec::encode(&snapshot));
        changes.put(share_key(account, &self.share), codec::encode(&share));
        Ok((time, snapshot.share.stamp))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (time, stamp) = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    reply::set_version(&mut answer.headers, stamp);
    let name = Bytes::copy_from_slice(dates::iso_ticks(time).as_bytes());
    answer.headers.insert(&SNAPSHOT, reply::value(name));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MINE, NOW, header, share, tick};
    use concurrency::LeaseRefusal;
    use service::RequestError;

    const URL: &str = "share?restype=share&comp=snapshot";

    fn ask(lease: Option<LeaseId>) -> SnapshotShare {
        SnapshotShare { share: ShareName::parse("share").unwrap(), lease, metadata: Vec::new() }
    }

    #[test]
    fn times_are_whole_seconds_and_rise() {
        let op = ask(None);
        let (first, snapshot, after) = op.decide(share(), tick()).unwrap();
        assert_eq!((first, snapshot.epoch), (NOW.whole_seconds(), 1));
        assert_eq!((after.epoch, after.newest_snapshot, after.snapshots), (2, 1, 1));
        assert_eq!((after.stamp, snapshot.share.stamp, snapshot.taken), (share().stamp, share().stamp, tick().stamp));
        let (second, _, after) = op.decide(after, tick()).unwrap();
        assert_eq!(second, first.plus_seconds(1), "in the same second");
        let later = Tick { now: NOW.plus_seconds(90).plus_ticks(7), ..tick() };
        let (third, ..) = op.decide(after, later).unwrap();
        assert_eq!(third, NOW.plus_seconds(90).whole_seconds());
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let full = Share { snapshots: SNAPSHOTS_MAX, ..share() };
        assert!(ask(None).decide(Share { snapshots: SNAPSHOTS_MAX - 1, ..share() }, tick()).is_ok());
        assert_eq!(ask(None).decide(full.clone(), tick()), Err(FileError::ShareSnapshotCountExceeded));
        let missing = FileError::share_lease(LeaseRefusal::NotPresent);
        assert_eq!(ask(Some(MINE)).decide(full, tick()), Err(missing), "the lease comes first");
    }

    #[tokio::test]
    async fn what_is_answered_and_which_metadata_it_has() {
        let bench = Bench::new();
        let made = bench.call("PUT", "share?restype=share", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let plain = bench.call("PUT", URL, &[], b"").await.unwrap();
        assert_eq!((plain.status.as_u16(), header(&plain, "etag")), (201, header(&made, "etag")));
        assert_eq!(header(&plain, "last-modified"), header(&made, "last-modified"));
        let given = bench.call("PUT", URL, &[("x-ms-meta-b", "2")], b"").await.unwrap();
        assert_ne!(header(&given, "etag"), header(&made, "etag"));
        let times = [&plain, &given].map(|answer| header(answer, "x-ms-snapshot").unwrap().to_owned());
        assert!(times[0] < times[1] && times.iter().all(|time| time.ends_with(".0000000Z")), "{times:?}");
        for (time, name, value, other) in [(&times[0], "a", "1", "b"), (&times[1], "b", "2", "a")] {
            let url = format!("share?restype=share&sharesnapshot={time}");
            for url in [url.clone(), format!("{url}&comp=metadata")] {
                let told = bench.call("GET", &url, &[], b"").await.unwrap();
                assert_eq!(header(&told, &format!("x-ms-meta-{name}")), Some(value), "{url}");
                assert_eq!(header(&told, &format!("x-ms-meta-{other}")), None, "{url}");
            }
        }
        let now = bench.call("GET", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!((header(&now, "etag"), header(&now, "x-ms-meta-a")), (header(&made, "etag"), Some("1")));
        // One row each, whatever the share holds.
        assert_eq!(bench.rows(), 3 + 2);
    }

    #[tokio::test]
    async fn faults_in_the_request_come_before_what_is_there() {
        let bench = Bench::new();
        let refused = async |url: &str, headers: &[(&str, &str)]| bench.refused("PUT", url, headers).await;
        assert_eq!(refused(URL, &[]).await, FileError::ShareNotFound);
        assert_eq!(refused(URL, &[("if-match", "*")]).await, FileError::ConditionHeadersNotSupported);
        let metadata = refused(URL, &[("x-ms-meta-1", "x")]).await;
        assert_eq!(metadata, wire::metadata::MetadataError::InvalidMetadata.into());
        let snapshot = format!("{URL}&sharesnapshot=x");
        assert_eq!(refused(&snapshot, &[]).await, FileError::query("sharesnapshot", "x"));
        assert_eq!(refused("s?restype=share&comp=snapshot", &[]).await, RequestError::NameLength.into());
    }
}
