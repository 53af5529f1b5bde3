//! Set Share Properties: quota, tier and the other settings of a share. Those that the request does not name stay.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, reply};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use super::set_share_metadata::WriteShare;
use crate::Failure;
use crate::error::FileError;
use crate::model::{Halt, Share};
use crate::reply::share::set_written;
use crate::share_settings::ShareSettings;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetShareProperties {
    pub write: WriteShare,
    pub settings: ShareSettings,
}

fn parse(head: &Head) -> Result<SetShareProperties, FileError> {
    Ok(SetShareProperties { write: WriteShare::parse(head)?, settings: ShareSettings::parse(head)? })
}

impl Operation for SetShareProperties {
    type Outcome = Share;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        self.write.partition(account)
    }

    /// A quota below what the share holds is allowed: nothing can grow then.
    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Share, Halt> {
        self.write.apply(rows, account, tick, changes, |share| {
            self.settings.check(share.protocol)?;
            self.settings.set(share, tick);
            Ok(())
        })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let share = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    set_written(&mut answer.headers, &share);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};
    use concurrency::LeaseRefusal;

    const SHARE: &str = "share?restype=share";
    const URL: &str = "share?restype=share&comp=properties";

    #[tokio::test]
    async fn what_is_left_out_stays() {
        let bench = Bench::new();
        let made = [("x-ms-share-quota", "7"), ("x-ms-access-tier", "Hot"), ("x-ms-meta-a", "1")];
        let before = bench.call("PUT", SHARE, &made, b"").await.unwrap();
        let set = bench.call("PUT", URL, &[("x-ms-share-quota", "8")], b"").await.unwrap();
        assert_eq!((set.status.as_u16(), header(&set, "x-ms-share-quota")), (200, Some("8")));
        assert_ne!(header(&set, "etag"), header(&before, "etag"));
        let told = bench.call("GET", SHARE, &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-access-tier"), Some("Hot"));
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-access-tier-change-time")), (Some("1"), None));
        bench
            .call("PUT", URL, &[("x-ms-access-tier", "Cool"), ("x-ms-share-provisioned-iops", "9")], b"")
            .await
            .unwrap();
        let told = bench.call("GET", SHARE, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-access-tier"), header(&told, "x-ms-share-quota")), (Some("Cool"), Some("8")));
        assert_eq!(header(&told, "x-ms-share-provisioned-iops"), Some("9"));
        assert_eq!(header(&told, "x-ms-access-tier-change-time"), header(&told, "last-modified"));
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = Bench::new();
        let refused = async |headers: &[(&str, &str)]| refusal(bench.call("PUT", URL, headers, b"").await);
        assert_eq!(refused(&[]).await, FileError::ShareNotFound);
        let zero = ("x-ms-share-quota", "0");
        assert_eq!(refused(&[zero]).await, FileError::header(zero.0, zero.1));
        bench.call("PUT", SHARE, &[], b"").await.unwrap();
        let squash = ("x-ms-root-squash", "AllSquash");
        assert_eq!(refused(&[squash]).await, FileError::header(squash.0, squash.1));
        let lease = ("x-ms-lease-id", "01010101-0101-0101-0101-010101010101");
        assert_eq!(refused(&[squash, lease]).await, FileError::share_lease(LeaseRefusal::NotPresent));
    }
}
