//! Delete File: at once. A file that has other names only loses this one. It is refused while any SMB client has the file open.

use concurrency::LeaseId;
use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, HeaderValue, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::remove;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::{Halt, Protocol};
use crate::opens::events::Aspects;
use crate::reply::node::LINK_COUNT;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DeleteFile {
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, DeleteFile), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, DeleteFile { lease: request::lease_id(head)? }))
}

impl NodeChange for DeleteFile {
    /// How many names the file has left, if its share is for NFS.
    type Outcome = Option<usize>;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Delete).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::Removed(Aspects::FILE_NAME)
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        spot.share.announce_count(rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Option<usize>, Halt> {
        let left = remove::file(spot, self.lease, rows, tick, changes)?;
        Ok(Some(left).filter(|_| spot.share.protocol == Protocol::Nfs))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, delete) = parse(call.head)?;
    let left = entering::commit(call, &target, delete).await?;
    let mut answer = Reply::new(StatusCode::ACCEPTED);
    if let Some(left) = left {
        answer.headers.insert(&LINK_COUNT, HeaderValue::from(left));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[tokio::test]
    async fn a_file_goes_with_its_bytes_even_if_it_is_read_only() {
        let bench = Bench::with_share().await;
        // The share has a row for its usage once a file was not empty.
        bench.create("other", 1).await;
        bench.create("other", 0).await;
        bench.sweep().await;
        let before = bench.figures();
        for attributes in ["None", "ReadOnly"] {
            bench.create("file", 3_000_000).await;
            bench.write("file", 0, &[7; 700]).await;
            bench.write("file", 2_000_000, &[7; 100_000]).await;
            let set = [("x-ms-file-attributes", attributes)];
            bench.call("PUT", "share/file?comp=properties", &set, b"").await.unwrap();
            assert_eq!(bench.call("DELETE", "share/FILE", &[], b"").await.unwrap().status, 202);
            assert_eq!(bench.refused("DELETE", "share/file", &[]).await, FileError::ResourceNotFound);
        }
        bench.sweep().await;
        assert_eq!(bench.figures(), before);
        let stats = bench.text("GET", "share?restype=share&comp=stats").await;
        assert!(stats.contains("<ShareUsageBytes>0</ShareUsageBytes>"), "{stats}");
    }
}
