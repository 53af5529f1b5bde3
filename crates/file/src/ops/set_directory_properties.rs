//! Set Directory Properties: attributes, times and permission. What a request does not name stays.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::properties::SmbSettings;
use crate::change::set;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetDirectoryProperties {
    settings: SmbSettings,
}

fn parse(head: &Head) -> Result<(Target, SetDirectoryProperties), FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, SetDirectoryProperties { settings: smb_headers::parse(head)? }))
}

impl NodeChange for SetDirectoryProperties {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::PROPERTIES
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = set::directory_properties(spot, &self.settings, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    let shown = entering::commit(call, &target, set).await?;
    Ok(shown.changed(call.head, StatusCode::OK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};

    const URL: &str = "share/dir?restype=directory&comp=properties";

    #[tokio::test]
    async fn what_is_named_is_set_and_the_rest_stays() {
        let bench = Bench::with_share().await;
        let headers = [("x-ms-file-attributes", "Hidden"), ("x-ms-meta-a", "b")];
        let made = bench.call("PUT", "share/dir?restype=directory", &headers, b"").await.unwrap();
        bench.advance(5).await;
        let set = bench.call("PUT", URL, &[("x-ms-file-last-write-time", "now")], b"").await.unwrap();
        assert_eq!(set.status, 200);
        let told = bench.directory("dir").await;
        for name in ["x-ms-file-attributes", "x-ms-file-creation-time", "x-ms-file-permission-key", "x-ms-file-id"] {
            assert_eq!(header(&set, name), header(&made, name), "{name}");
            assert_eq!(header(&told, name), header(&made, name), "{name}");
        }
        assert_eq!(header(&told, "x-ms-meta-a"), Some("b"));
        for name in ["etag", "last-modified", "x-ms-file-last-write-time", "x-ms-file-change-time"] {
            assert_ne!(header(&set, name), header(&made, name), "{name}");
            assert_eq!(header(&set, name), header(&told, name), "{name}");
        }
        let cleared = bench.call("PUT", URL, &[("x-ms-file-attributes", "None")], b"").await.unwrap();
        assert_eq!(header(&cleared, "x-ms-file-attributes"), Some("Directory"));
        assert_eq!(header(&cleared, "x-ms-file-last-write-time"), header(&set, "x-ms-file-last-write-time"));
    }

    #[tokio::test]
    async fn permissions() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        let key = async |answer: Reply| header(&answer, "x-ms-file-permission-key").unwrap().to_owned();
        let inherited = key(bench.directory("dir").await).await;
        let set = async |name, value: &str| key(bench.call("PUT", URL, &[(name, value)], b"").await.unwrap()).await;
        let given = set("x-ms-file-permission", "O:SYG:SYD:P(A;OICI;FA;;;BU)").await;
        assert_ne!(given, inherited);
        assert_eq!(set("x-ms-file-permission", "preserve").await, given);
        assert_eq!(set("x-ms-file-permission", "inherit").await, inherited);
        assert_eq!(set("x-ms-file-permission-key", &given).await, given);
        // The root passes on what it is given; what is there already keeps its own.
        let root = "share?restype=directory&comp=properties";
        bench.call("PUT", root, &[("x-ms-file-permission-key", &*given)], b"").await.unwrap();
        assert_eq!(key(bench.directory("dir").await).await, given);
        assert_ne!(set("x-ms-file-permission", "inherit").await, inherited);
        let root_key = key(bench.directory("").await).await;
        bench.call("PUT", root, &[("x-ms-file-permission", "inherit")], b"").await.unwrap();
        assert_eq!(key(bench.directory("").await).await, root_key, "nothing is above the root");
    }

    #[tokio::test]
    async fn refusals_change_nothing() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        let before = header(&bench.directory("dir").await, "etag").unwrap().to_owned();
        let unknown =
            bench.refused("PUT", URL, &[("x-ms-file-permission-key", "1*2"), ("x-ms-file-attributes", "Hidden")]).await;
        assert_eq!(unknown, FileError::FileInvalidPermissionKey);
        let both = [("x-ms-file-attributes", "Odd"), ("x-ms-file-permission", "D:")];
        assert_eq!(bench.refused("PUT", URL, &both).await, FileError::header("x-ms-file-attributes", "Odd"));
        assert_eq!(header(&bench.directory("dir").await, "etag"), Some(&*before));
    }
}
