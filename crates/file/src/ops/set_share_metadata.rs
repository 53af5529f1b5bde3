//! Set Share Metadata: replace all metadata of a share.

use std::sync::Arc;

use concurrency::LeaseId;
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, Pairs, codec, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, Share, existing_share, refuse, share_key};
use crate::{Failure, request};

/// A write to a share's own row. A share that is leased is changed by its holder only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteShare {
    pub share: ShareName,
    pub lease: Option<LeaseId>,
}

impl WriteShare {
    pub fn parse(head: &Head) -> Result<WriteShare, FileError> {
        let share = request::share(head)?;
        request::no_conditions(head)?;
        request::only_base(head)?;
        Ok(WriteShare { share, lease: request::lease_id(head)? })
    }

    pub fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    /// Stores the share as `change` makes it, with a new stamp. A lease that has ended stays as it is: its holder may renew it.
    pub fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
        change: impl FnOnce(&mut Share) -> Result<(), FileError>,
    ) -> Result<Share, Halt> {
        let mut share = existing_share(rows, account, &self.share)?;
        share.lease.check_write(self.lease, tick.now).map_err(|refusal| refuse(FileError::share_lease(refusal)))?;
        change(&mut share).map_err(refuse)?;
        share.stamp = tick.stamp;
        changes.put(share_key(account, &self.share), codec::encode(&share));
        Ok(share)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetShareMetadata {
    pub write: WriteShare,
    pub metadata: Pairs,
}

fn parse(head: &Head) -> Result<SetShareMetadata, FileError> {
    Ok(SetShareMetadata { write: WriteShare::parse(head)?, metadata: request::metadata(head)? })
}

impl Operation for SetShareMetadata {
    type Outcome = Share;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        self.write.partition(account)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Share, Halt> {
        self.write.apply(rows, account, tick, changes, |share| {
            share.metadata.clone_from(&self.metadata);
            Ok(())
        })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let share = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, share.stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};
    use concurrency::LeaseRefusal;

    const URL: &str = "share?restype=share&comp=metadata";
    const MINE: (&str, &str) = ("x-ms-lease-id", "01010101-0101-0101-0101-010101010101");

    #[tokio::test]
    async fn all_of_it_is_replaced() {
        let bench = Bench::new();
        let made = bench.call("PUT", "share?restype=share", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let set = bench.call("PUT", URL, &[("x-ms-meta-b", "2")], b"").await.unwrap();
        assert_eq!(set.status, 200);
        assert_ne!(header(&set, "etag"), header(&made, "etag"));
        let told = bench.call("GET", URL, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("2")));
        assert_eq!(header(&told, "etag"), header(&set, "etag"));
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert_eq!(header(&bench.call("GET", URL, &[], b"").await.unwrap(), "x-ms-meta-b"), None);
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = Bench::new();
        let refused = async |headers: &[(&str, &str)]| refusal(bench.call("PUT", URL, headers, b"").await);
        assert_eq!(refused(&[MINE]).await, FileError::ShareNotFound);
        let bad = wire::metadata::MetadataError::InvalidMetadata;
        assert_eq!(refused(&[("x-ms-meta-1", "x"), MINE]).await, bad.into());
        bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!(refused(&[MINE]).await, FileError::share_lease(LeaseRefusal::NotPresent));
        assert_eq!(refused(&[MINE, ("if-match", "*")]).await, FileError::ConditionHeadersNotSupported);
        let snapshot = "2026-11-15T18:00:00.0000000Z";
        let url = format!("{URL}&sharesnapshot={snapshot}");
        let refused = bench.call("PUT", &url, &[], b"").await;
        assert_eq!(refusal(refused), FileError::query("sharesnapshot", snapshot));
    }
}
