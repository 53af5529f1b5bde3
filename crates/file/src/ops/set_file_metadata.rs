//! Set File Metadata: replaces all of it.

use concurrency::share_mode::RestAccess;
use concurrency::{LeaseId, Timestamp};
use engine::{Changes, Rows, Tick};
use service::Pairs;
use wire::http::{Head, Reply};

use super::Call;
use crate::announcement::Effect;
use crate::change::set;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetFileMetadata {
    metadata: Pairs,
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, SetFileMetadata), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, SetFileMetadata { metadata: request::metadata(head)?, lease: request::lease_id(head)? }))
}

impl NodeChange for SetFileMetadata {
    type Outcome = Timestamp;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write)
    }

    fn effect(&self) -> Effect {
        Effect::Unseen
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Timestamp, Halt> {
        Ok(set::file_metadata(spot, &self.metadata, self.lease, rows, tick, changes)?.stamp)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    Ok(node::metadata_set(entering::commit(call, &target, set).await?))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header};

    const URL: &str = "share/file?comp=metadata";

    #[tokio::test]
    async fn all_of_it_is_replaced_and_the_contents_do_not_count_as_written() {
        let bench = Bench::with_share().await;
        bench.create("file", 4).await;
        bench.call("PUT", URL, &[("x-ms-meta-a", "1")], b"").await.unwrap();
        bench.advance(1).await;
        let before = bench.file("file").await;
        let set = bench.call("PUT", URL, &[("x-ms-meta-Colour", "blue")], b"").await.unwrap();
        let told = bench.call("GET", URL, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-colour")), (None, Some("blue")));
        assert_eq!(header(&told, "etag"), header(&set, "etag"));
        let after = bench.file("file").await;
        for name in ["etag", "x-ms-file-change-time"] {
            assert_ne!(header(&after, name), header(&before, name), "{name}");
        }
        for name in ["x-ms-file-last-write-time", "x-ms-file-creation-time", "x-ms-file-id", "content-length"] {
            assert_eq!(header(&after, name), header(&before, name), "{name}");
        }
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert_eq!(header(&bench.file("file").await, "x-ms-meta-colour"), None);
    }
}
