//! Create Symbolic Link: a path that NFS clients follow. The service never does.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::announcement::Effect;
use crate::change::create::{self, NewNode};
use crate::change::link::{self, NewSymbolicLink};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::events::Aspects;
use crate::reply::node::ShownNode;
use crate::request::required_path;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

const LINK_TEXT: &str = "x-ms-link-text";
/// The longest path that a link leads to: as long as the path of a file may be.
const LINK_TEXT_BYTES_MAX: usize = 2 * 1024;

fn parse(head: &Head) -> Result<(Target, NewSymbolicLink), FileError> {
    let target = request::link(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let text = required_path(head, LINK_TEXT)?;
    if text.len() > LINK_TEXT_BYTES_MAX {
        return Err(FileError::header(LINK_TEXT, format!("{} bytes", text.len())));
    }
    let node = NewNode { settings: smb_headers::parse_symbolic_link(head)?, metadata: request::metadata(head)? };
    Ok((target, NewSymbolicLink { text: text.to_owned(), node, lease: request::lease_id(head)? }))
}

impl NodeChange for NewSymbolicLink {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Look).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::PROPERTIES)
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        create::announce_permission(spot, &self.node, rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = link::symbolic(spot, self, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, new) = parse(call.head)?;
    let shown = entering::commit(call, &target, new).await?;
    Ok(shown.changed(call.head, StatusCode::CREATED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE, header, refusal, request as head_of};
    use concurrency::LeaseRefusal;
    use service::RequestError;
    use wire::http::FixedBody;

    const URL: &str = "share/link?restype=symboliclink";

    #[tokio::test]
    async fn a_link_with_all_that_can_be_said_of_it() {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        let headers = [
            ("x-ms-owner", "345"),
            ("x-ms-group", "123"),
            ("x-ms-meta-Colour", "blue"),
            ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
            ("x-ms-file-last-write-time", "2019-01-02T03:04:06.0000006Z"),
        ];
        let made = bench.symlink("dir/Link", "../other/file", &headers).await.unwrap();
        assert_eq!(made.status, 201);
        let directory = bench.directory("dir").await;
        let told = bench.file("dir/link").await;
        for (name, value) in [
            ("x-ms-owner", "345"),
            ("x-ms-group", "123"),
            ("x-ms-mode", "0777"),
            ("x-ms-file-file-type", "SymLink"),
            ("x-ms-link-count", "1"),
            ("x-ms-file-creation-time", headers[3].1),
            ("x-ms-file-last-write-time", headers[4].1),
            ("x-ms-file-parent-id", header(&directory, "x-ms-file-id").unwrap()),
        ] {
            assert_eq!((header(&made, name), header(&told, name)), (Some(value), Some(value)), "{name}");
        }
        for name in ["etag", "last-modified", "x-ms-file-change-time", "x-ms-file-id"] {
            assert!(header(&made, name).is_some() && header(&made, name) == header(&told, name), "{name}");
        }
        for name in ["x-ms-file-attributes", "x-ms-file-permission-key"] {
            assert_eq!((header(&made, name), header(&told, name)), (None, None), "{name}");
        }
        assert_eq!((header(&told, "x-ms-meta-colour"), header(&told, "x-ms-type")), (Some("blue"), Some("File")));
        assert_eq!(header(&told, "content-length"), Some("13"), "that of its path");
        assert_eq!(header(&told, "content-type"), Some("application/octet-stream"));
        assert_eq!(header(&told, "x-ms-lease-state"), Some("available"));
        let list = bench.text("GET", "share/dir?restype=directory&comp=list").await;
        assert!(list.contains("<File><Name>Link</Name>") && list.contains("<Content-Length>13<"), "{list}");
        assert_eq!(bench.usage().await, 0);
        bench.check_rows().await;
        let plain = bench.symlink("plain", "nowhere", &[]).await.unwrap();
        assert_eq!((header(&plain, "x-ms-owner"), header(&plain, "x-ms-group")), (Some("0"), Some("0")));
        assert_eq!(header(&plain, "x-ms-file-creation-time"), header(&plain, "x-ms-file-change-time"));
    }

    #[tokio::test]
    async fn refusals_in_their_order() {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.create("file", 0).await;
        bench.symlink("link", "file", &[]).await.unwrap();
        let missing = FileError::from(RequestError::MissingRequiredHeader { name: LINK_TEXT });
        assert_eq!(bench.refused("PUT", "none/no/link?restype=symboliclink", &[]).await, missing);
        let latin = [(LINK_TEXT, &b"caf\xe9"[..]), (LINK_TEXT, b"a")];
        for headers in [&latin[..1], &latin] {
            let mut head = head_of("PUT", URL, &[]);
            for (name, value) in headers {
                head.headers.append(*name, wire::http::HeaderValue::from_bytes(value).unwrap());
            }
            let refused = refusal(bench.send(head, &mut FixedBody::new(&b""[..])).await);
            assert_eq!(refused, FileError::header(LINK_TEXT, "caf\u{fffd}"));
        }
        let long = "x".repeat(LINK_TEXT_BYTES_MAX + 1);
        let refused = refusal(bench.symlink("new", &long, &[]).await);
        assert_eq!(refused, FileError::header(LINK_TEXT, "2049 bytes"));
        bench.symlink("longest", &long[1..], &[]).await.unwrap();
        let lease = [("x-ms-lease-id", MY_LEASE)];
        for (path, expected) in [
            ("no/link", FileError::ParentNotFound),
            ("file/link", FileError::ParentNotFound),
            ("link/link", FileError::ParentNotFound),
            ("dir", FileError::ResourceAlreadyExists),
            ("file", FileError::ResourceAlreadyExists),
            ("LINK", FileError::ResourceAlreadyExists),
            ("new", FileError::file_lease(LeaseRefusal::NotPresent)),
        ] {
            // With a lease that nothing has: the name is told first.
            assert_eq!(refusal(bench.symlink(path, "file", &lease).await), expected, "{path}");
        }
        for (name, value) in [("x-ms-owner", "root"), ("x-ms-file-creation-time", "then"), ("x-ms-lease-id", "mine")] {
            assert_eq!(refusal(bench.symlink("new", "file", &[(name, value)]).await), FileError::header(name, value));
        }
        let text = ("x-ms-link-text", "file");
        let snapshot = format!("{URL}&sharesnapshot=2020-01-01T00:00:00.0000000Z");
        assert!(matches!(bench.refused("PUT", &snapshot, &[text]).await, FileError::Request(_)));
        let condition = bench.refused("PUT", URL, &[text, ("if-match", "*")]).await;
        assert_eq!(condition, FileError::ConditionHeadersNotSupported);
        bench.check_rows().await;
    }

    /// Whatever else is wrong below the share.
    #[tokio::test]
    async fn shares_for_smb_have_no_links() {
        let bench = Bench::with_share().await;
        bench.create("file", 0).await;
        for path in ["new", "file"] {
            assert_eq!(refusal(bench.symlink(path, "file", &[]).await), FileError::LinkNotSupported);
        }
        assert_eq!(bench.names("").await, ["file"]);
    }
}
