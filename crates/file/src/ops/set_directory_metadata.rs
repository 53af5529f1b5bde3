//! Set Directory Metadata: replaces all of it.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
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
struct SetDirectoryMetadata {
    metadata: Pairs,
}

fn parse(head: &Head) -> Result<(Target, SetDirectoryMetadata), FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, SetDirectoryMetadata { metadata: request::metadata(head)? }))
}

impl NodeChange for SetDirectoryMetadata {
    type Outcome = Timestamp;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write)
    }

    fn effect(&self) -> Effect {
        Effect::Unseen
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Timestamp, Halt> {
        Ok(set::directory_metadata(spot, &self.metadata, rows, tick, changes)?.stamp)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    Ok(node::metadata_set(entering::commit(call, &target, set).await?))
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header};
    use service::RequestError;

    #[tokio::test]
    async fn all_of_it_is_replaced() {
        let bench = Bench::with_share().await;
        for path in ["dir", ""] {
            if !path.is_empty() {
                bench.mkdir(path).await;
            }
            let url = format!("share/{path}?restype=directory&comp=metadata");
            bench.call("PUT", &url, &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], b"").await.unwrap();
            bench.advance(1).await;
            let before = bench.directory(path).await;
            let set = bench.call("PUT", &url, &[("x-ms-meta-B", "3")], b"").await.unwrap();
            assert_eq!((set.status.as_u16(), header(&set, "x-ms-request-server-encrypted")), (200, Some("true")));
            let told = bench.call("GET", &url, &[], b"").await.unwrap();
            assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("3")));
            assert_eq!(header(&told, "etag"), header(&set, "etag"));
            let after = bench.directory(path).await;
            for name in ["etag", "x-ms-file-change-time"] {
                assert_ne!(header(&after, name), header(&before, name), "{name}");
            }
            assert_eq!(header(&after, "x-ms-file-last-write-time"), header(&before, "x-ms-file-last-write-time"));
        }
    }

    #[tokio::test]
    async fn bad_metadata_is_told_before_a_missing_directory() {
        let bench = Bench::with_share().await;
        let url = "share/no?restype=directory&comp=metadata";
        let error = bench.refused("PUT", url, &[("x-ms-meta-1a", "x")]).await;
        assert!(matches!(error, FileError::Request(RequestError::Metadata(_))), "{error:?}");
        assert_eq!(bench.refused("PUT", url, &[]).await, FileError::ResourceNotFound);
    }
}
