//! Get Share Properties: what a share is, without what is in it.

use std::sync::Arc;

use concurrency::{LeaseId, Timestamp};
use engine::Rows;
use service::{ReadOperation, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, Share, existing_share, existing_snapshot, refuse};
use crate::reply::share::set_share;
use crate::{Failure, request};

/// A read of a share's own row, or of a snapshot's; Get Share Metadata, Get Share ACL and Get Share Stats are the same kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadShare {
    pub share: ShareName,
    /// A read needs no lease, but if it names one, it must be the right one.
    pub lease: Option<LeaseId>,
    /// The snapshot to look at.
    pub snapshot: Option<Timestamp>,
}

impl ReadShare {
    pub fn parse(head: &Head) -> Result<ReadShare, FileError> {
        let share = request::share(head)?;
        request::no_conditions(head)?;
        Ok(ReadShare { share, lease: request::lease_id(head)?, snapshot: request::snapshot(head)? })
    }

    /// The same of what snapshots do not have.
    pub fn parse_base(head: &Head) -> Result<ReadShare, FileError> {
        let read = ReadShare::parse(head)?;
        request::only_base(head)?;
        Ok(read)
    }
}

impl ReadOperation for ReadShare {
    /// The share, and when it was looked at.
    type Outcome = (Share, Timestamp);
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(Share, Timestamp), Halt> {
        let share = existing_share(rows, account, &self.share)?;
        let share = match self.snapshot {
            None => share,
            Some(time) => existing_snapshot(rows, share.generation, time)?.share,
        };
        share.lease.check_read(self.lease, now).map_err(|refusal| refuse(FileError::share_lease(refusal)))?;
        Ok((share, now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (share, now) = call.read(&Arc::new(ReadShare::parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    set_share(&mut answer.headers, &share, now);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};

    const URL: &str = "share?restype=share";
    const LEASE: (&str, &str) = ("x-ms-lease-id", "00000000-0000-0000-0000-000000000001");

    #[tokio::test]
    async fn what_was_set_is_told() {
        let bench = Bench::new();
        let set = [
            ("x-ms-share-quota", "7"),
            ("x-ms-access-tier", "Hot"),
            ("x-ms-enabled-protocols", "NFS"),
            ("x-ms-root-squash", "RootSquash"),
            ("x-ms-share-provisioned-iops", "3000"),
            ("x-ms-share-provisioned-bandwidth-mibps", "125"),
            ("x-ms-share-paid-bursting-enabled", "true"),
            ("x-ms-share-paid-bursting-max-iops", "5000"),
            ("x-ms-share-paid-bursting-max-bandwidth-mibps", "150"),
            ("x-ms-enable-snapshot-virtual-directory-access", "false"),
            ("x-ms-enable-smb-directory-lease", "true"),
            ("x-ms-meta-colour", "blue"),
        ];
        let made = bench.call("PUT", URL, &set, b"").await.unwrap();
        for method in ["GET", "HEAD"] {
            let told = bench.call(method, URL, &[], b"").await.unwrap();
            assert_eq!(told.status, 200);
            for name in ["etag", "last-modified"] {
                assert_eq!(header(&told, name), header(&made, name));
            }
            for (name, value) in set {
                assert_eq!(header(&told, name), Some(value), "{name}");
            }
            assert_eq!(header(&told, "x-ms-lease-state"), Some("available"));
            assert_eq!(header(&told, "x-ms-lease-status"), Some("unlocked"));
            assert_eq!(
                (header(&told, "x-ms-lease-duration"), header(&told, "x-ms-access-tier-change-time")),
                (None, None)
            );
        }
    }

    #[tokio::test]
    async fn what_a_share_has_by_default() {
        let bench = Bench::with_share().await;
        let told = bench.call("GET", URL, &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-share-quota"), Some("5120"));
        assert_eq!(header(&told, "x-ms-access-tier"), Some("TransactionOptimized"));
        assert_eq!(header(&told, "x-ms-enabled-protocols"), Some("SMB"));
        assert_eq!(header(&told, "x-ms-root-squash"), None);
        assert_eq!(header(&told, "x-ms-share-provisioned-iops"), None);
        bench.call("PUT", "nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], b"").await.unwrap();
        let told = bench.call("GET", "nfs?restype=share", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-root-squash"), Some("NoRootSquash"));
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = Bench::with_share().await;
        let ask = async |url: &str, headers: &[(&str, &str)]| refusal(bench.call("GET", url, headers, b"").await);
        assert_eq!(ask("gone?restype=share", &[LEASE]).await, FileError::ShareNotFound);
        let none = FileError::share_lease(concurrency::LeaseRefusal::NotPresent);
        assert_eq!(ask(URL, &[LEASE]).await, none);
        assert_eq!(ask(URL, &[("if-match", "*"), LEASE]).await, FileError::ConditionHeadersNotSupported);
        let snapshot = format!("{URL}&sharesnapshot=2026-11-15T18:00:00.0000000Z");
        assert_eq!(ask(&snapshot, &[]).await, FileError::ShareNotFound);
        assert_eq!(ask(&snapshot, &[LEASE]).await, FileError::ShareNotFound);
        assert_eq!(ask(&format!("{URL}&sharesnapshot=now"), &[]).await, FileError::query("sharesnapshot", "now"));
        // An empty parameter names no snapshot; the share itself is not what was meant.
        assert_eq!(ask(&format!("{URL}&sharesnapshot="), &[]).await, FileError::query("sharesnapshot", ""));
        let refused = ask(URL, &[("x-ms-lease-id", "mine")]).await;
        assert_eq!(refused, FileError::header("x-ms-lease-id", "mine"));
    }
}
