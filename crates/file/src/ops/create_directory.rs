//! Create Directory.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::create::{self, NewNode};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::events::Aspects;
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct CreateDirectory {
    new: NewNode,
}

fn parse(head: &Head) -> Result<(Target, CreateDirectory), FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let new = NewNode { settings: smb_headers::parse(head)?, metadata: request::metadata(head)? };
    Ok((target, CreateDirectory { new }))
}

impl NodeChange for CreateDirectory {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Look).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::Put { added: Aspects::DIRECTORY_NAME, changed: Aspects::PROPERTIES }
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        create::announce(spot, &self.new, None, rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = create::directory(spot, &self.new, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, create) = parse(call.head)?;
    let shown = entering::commit(call, &target, create).await?;
    Ok(shown.changed(call.head, StatusCode::CREATED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};
    use service::RequestError;

    const URL: &str = "share/dir?restype=directory";

    #[tokio::test]
    async fn a_directory_and_one_in_it() {
        let bench = Bench::with_share().await;
        let made = bench.call("PUT", "share/Dir?restype=directory", &[("x-ms-meta-a", "b")], b"").await.unwrap();
        assert_eq!(made.status, 201);
        for (name, value) in [
            ("x-ms-file-attributes", "Directory"),
            ("x-ms-file-parent-id", "0"),
            ("x-ms-request-server-encrypted", "true"),
        ] {
            assert_eq!(header(&made, name), Some(value), "{name}");
        }
        let (id, key) = (header(&made, "x-ms-file-id").unwrap(), header(&made, "x-ms-file-permission-key").unwrap());
        let inner = bench.call("PUT", "share/dir/sub/?restype=directory", &[], b"").await.unwrap();
        assert_eq!(header(&inner, "x-ms-file-parent-id"), Some(id));
        assert_eq!(header(&inner, "x-ms-file-permission-key"), Some(key), "both inherit alike");
        let told = bench.directory("DIR").await;
        for name in ["etag", "last-modified", "x-ms-file-id", "x-ms-file-permission-key", "x-ms-file-creation-time"] {
            assert_eq!(header(&told, name), header(&made, name), "{name}");
        }
        assert_eq!(header(&told, "x-ms-meta-a"), Some("b"));
        assert_eq!(bench.names("").await, ["Dir"], "as it was spelled");
        // What happens inside does not change the directory.
        assert_eq!(header(&bench.directory("dir").await, "etag"), header(&made, "etag"));
    }

    #[tokio::test]
    async fn properties_as_given() {
        let bench = Bench::with_share().await;
        let sddl = "O:SYG:SYD:P(A;OICI;FA;;;BU)";
        let headers = [
            ("x-ms-file-attributes", "ReadOnly|Hidden"),
            ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
            ("x-ms-file-last-write-time", "2019-01-03T03:04:05.0000006Z"),
            ("x-ms-file-change-time", "2019-01-04T03:04:05.0000006Z"),
            ("x-ms-file-permission", sddl),
        ];
        let made = bench.call("PUT", URL, &headers, b"").await.unwrap();
        assert_eq!(header(&made, "x-ms-file-attributes"), Some("ReadOnly | Hidden | Directory"));
        for (name, value) in &headers[1..4] {
            assert_eq!(header(&made, name), Some(*value), "{name}");
        }
        let key = header(&made, "x-ms-file-permission-key").unwrap();
        let by_key = [("x-ms-file-permission-key", key)];
        let other = bench.call("PUT", "share/other?restype=directory", &by_key, b"").await.unwrap();
        assert_eq!(header(&other, "x-ms-file-permission-key"), Some(key));
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        let (unknown, bad) = (("x-ms-file-permission-key", "1*2"), ("x-ms-file-permission", "D:"));
        let refused =
            async |url: &str, header| bench.refused("PUT", &format!("share/{url}?restype=directory"), &[header]).await;
        assert_eq!(refused("new", unknown).await, FileError::FileInvalidPermissionKey);
        assert_eq!(refused("new", bad).await, FileError::FileInvalidPermission);
        assert_eq!(refused("DIR", unknown).await, FileError::ResourceAlreadyExists);
        assert_eq!(refused("no/new", unknown).await, FileError::ParentNotFound);
        assert_eq!(refused("no/new", bad).await, FileError::FileInvalidPermission);
        let metadata = refused("dir", ("x-ms-meta-", "a")).await;
        assert!(matches!(metadata, FileError::Request(RequestError::Metadata(_))), "{metadata:?}");
        assert_eq!(bench.names("").await, ["dir"]);
    }
}
