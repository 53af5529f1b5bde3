//! Get Directory Properties: attributes, times, permission and metadata of a directory, or of the root of a share.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::Rows;
use service::reply;
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

/// A read of a directory's state; Get Directory Metadata is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadDirectory;

impl ReadDirectory {
    pub fn parse(head: &Head) -> Result<Target, FileError> {
        let target = request::directory(head)?;
        request::no_conditions(head)?;
        request::at_snapshot(head, target)
    }
}

impl NodeRead for ReadDirectory {
    type Outcome = ShownNode;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Look)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<ShownNode, Halt> {
        Ok(ShownNode::new(spot, spot.read_directory().map_err(refuse)?.clone(), now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let target = ReadDirectory::parse(call.head)?;
    let (_, shown) = entering::look(call, &target, ReadDirectory).await?;
    let mut answer = reply::reply(StatusCode::OK);
    shown.set_on(&mut answer.headers, call.head);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header};

    #[tokio::test]
    async fn the_root_has_properties_and_the_id_0() {
        let bench = Bench::with_share().await;
        for url in ["share?restype=directory", "share/?restype=directory"] {
            let root = bench.call("GET", url, &[], b"").await.unwrap();
            for (name, value) in [
                ("x-ms-file-id", "0"),
                ("x-ms-file-parent-id", "0"),
                ("x-ms-file-attributes", "Directory"),
                ("x-ms-server-encrypted", "true"),
            ] {
                assert_eq!(header(&root, name), Some(value), "{name}");
            }
            assert!(header(&root, "x-ms-file-permission-key").is_some());
            assert_eq!((header(&root, "x-ms-type"), header(&root, "x-ms-lease-state")), (None, None));
        }
    }

    #[tokio::test]
    async fn before_smb_had_headers_there_are_none() {
        let bench = Bench::with_share().await;
        let mut head = crate::testing::request("GET", "share?restype=directory", &[]);
        head.version = "2018-11-09".into();
        let root = bench.send(head, &mut wire::http::FixedBody::new(&b""[..])).await.unwrap();
        assert!(header(&root, "etag").is_some());
        assert!(!root.headers.keys().any(|name| name.as_str().starts_with("x-ms-file-")));
    }
}
