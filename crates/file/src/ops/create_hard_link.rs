//! Create Hard Link: another name for a file of the same share. All names lead to the same bytes, properties and lease; the file is
//! there until the last of them is deleted.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::file_path::{FilePath, PathKind};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use super::rename_file::covers_source;
use crate::announcement::Effect;
use crate::change::link::{self, NewHardLink};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::opens::events::Aspects;
use crate::reply::node::ShownNode;
use crate::request::{required, required_path};
use crate::tree::{Spot, Target};
use crate::{Failure, request};

const TYPE: &str = "x-ms-type";
const TARGET_FILE: &str = "x-ms-file-target-file";

fn parse(head: &Head) -> Result<(Target, NewHardLink), FileError> {
    let target = request::link(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let kind = required(head, TYPE)?;
    if !kind.eq_ignore_ascii_case("file") {
        return Err(FileError::header(TYPE, kind));
    }
    // The path from the root of the share, which some clients write as one.
    let path = required_path(head, TARGET_FILE)?;
    let file = FilePath::parse(path.trim_start_matches('/'), PathKind::File, request::trailing_dots(head)?)?;
    Ok((target, NewHardLink { file, lease: request::lease_id(head)? }))
}

impl NodeChange for NewHardLink {
    type Outcome = ShownNode;

    /// No open excludes it: a share for NFS is never mounted over SMB.
    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Look).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::PROPERTIES)
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        // Whether the file is there does not matter yet.
        _ = self.find(spot, rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = link::hard(spot, self, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, new) = parse(call.head)?;
    // Whoever may use one name of a file may do the same with its bytes by that name: so it takes a right to the file, too.
    if !covers_source(call.asker.caller, &new.file, &target.path) {
        return Err(FileError::UnauthorizedSource.into());
    }
    let shown = entering::commit(call, &target, new).await?;
    Ok(shown.changed(call.head, StatusCode::CREATED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LINKS_MAX;
    use crate::testing::{Bench, MY_LEASE, Script, Then, YOUR_LEASE, header, refusal, request};
    use auth::{Caller, Grant, GrantKind, Permissions, Scope};
    use concurrency::LeaseRefusal;
    use service::{Asker, HttpService, RequestError};
    use wire::http::FixedBody;

    #[tokio::test]
    async fn the_answer_tells_of_the_file() {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.create("file", 1_024).await;
        bench.advance(1).await;
        let before = bench.file("file").await;
        let linked = bench.link("/FILE", "dir/Link", &[]).await.unwrap();
        assert_eq!(linked.status, 201);
        let directory = bench.directory("dir").await;
        for (name, value) in [
            ("x-ms-file-file-type", "Regular"),
            ("x-ms-owner", "0"),
            ("x-ms-group", "0"),
            ("x-ms-mode", "0664"),
            ("x-ms-link-count", "2"),
            ("x-ms-file-id", header(&before, "x-ms-file-id").unwrap()),
            ("x-ms-file-parent-id", header(&directory, "x-ms-file-id").unwrap()),
            ("x-ms-file-creation-time", header(&before, "x-ms-file-creation-time").unwrap()),
            ("x-ms-file-last-write-time", header(&before, "x-ms-file-last-write-time").unwrap()),
        ] {
            assert_eq!(header(&linked, name), Some(value), "{name}");
        }
        for name in ["x-ms-file-attributes", "x-ms-file-permission-key"] {
            assert_eq!(header(&linked, name), None, "{name}");
        }
        // As with a rename, its names are something that the file has.
        let after = bench.file("file").await;
        for name in ["etag", "x-ms-file-change-time"] {
            assert_ne!(header(&after, name), header(&before, name), "{name}");
            assert_eq!(header(&after, name), header(&linked, name), "{name}");
        }
        assert_eq!(header(&after, "x-ms-file-parent-id"), Some("0"));
        assert_eq!(
            (bench.names("").await, bench.names("dir").await),
            (vec!["dir".into(), "file".into()], vec!["Link".into()])
        );
    }

    #[tokio::test]
    async fn refusals_in_their_order() {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.create("dir/file", 0).await;
        bench.symlink("symlink", "dir/file", &[]).await.unwrap();
        let url = "none/no/link?restype=hardlink";
        let missing = |name| FileError::from(RequestError::MissingRequiredHeader { name });
        assert_eq!(bench.refused("PUT", url, &[]).await, missing(TYPE));
        assert_eq!(bench.refused("PUT", url, &[(TYPE, "link")]).await, FileError::header(TYPE, "link"));
        assert_eq!(bench.refused("PUT", url, &[(TYPE, "File")]).await, missing(TARGET_FILE));
        let bad = bench.refused("PUT", url, &[(TYPE, "File"), (TARGET_FILE, "a|b")]).await;
        assert_eq!(bad, RequestError::InvalidResourceName.into());
        assert_eq!(bench.refused("PUT", url, &[(TYPE, "File"), (TARGET_FILE, "a")]).await, FileError::ShareNotFound);
        for (from, to, expected) in [
            ("no/file", "no/link", FileError::ParentNotFound),
            ("no/file", "dir/file", FileError::ResourceAlreadyExists),
            ("dir/file", "dir/FILE", FileError::ResourceAlreadyExists),
            ("dir", "dir", FileError::ResourceAlreadyExists),
            ("dir/no", "link", FileError::ResourceNotFound),
            ("no/file", "link", FileError::ResourceNotFound),
            ("symlink/file", "link", FileError::ResourceNotFound),
            ("dir", "link", FileError::ResourceTypeMismatch),
            ("symlink", "link", FileError::ResourceTypeMismatch),
        ] {
            // With a lease that nothing has.
            let refused = bench.link(from, to, &[("x-ms-lease-id", MY_LEASE)]).await;
            assert_eq!(refusal(refused), expected, "{from} {to}");
        }
        assert_eq!(bench.names("").await, ["dir", "symlink"]);
        let smb = Bench::with_share().await;
        smb.create("file", 0).await;
        for (from, to) in [("file", "link"), ("file", "file"), ("no", "link")] {
            assert_eq!(refusal(smb.link(from, to, &[]).await), FileError::LinkNotSupported, "{from} {to}");
        }
    }

    #[tokio::test]
    async fn the_lease_of_the_file_is_needed() {
        let bench = Bench::with_nfs_share().await;
        bench.create("file", 0).await;
        let lease = |id| [("x-ms-lease-id", id)];
        let refused = async |headers: &[(&str, &str)]| refusal(bench.link("file", "link", headers).await);
        assert_eq!(refused(&lease(MY_LEASE)).await, FileError::file_lease(LeaseRefusal::NotPresent));
        bench.lease("file", MY_LEASE).await;
        assert_eq!(refused(&[]).await, FileError::file_lease(LeaseRefusal::IdMissing));
        assert_eq!(refused(&lease(YOUR_LEASE)).await, FileError::file_lease(LeaseRefusal::IdMismatch));
        bench.link("file", "link", &lease(MY_LEASE)).await.unwrap();
        // It is one lease, whatever name is used.
        let gone = refusal(bench.call("DELETE", "share/link", &[], b"").await);
        assert_eq!(gone, FileError::file_lease(LeaseRefusal::IdMissing));
        bench.call("DELETE", "share/file", &lease(MY_LEASE), b"").await.unwrap();
        assert_eq!(header(&bench.file("link").await, "x-ms-lease-state"), Some("leased"));
    }

    #[tokio::test]
    async fn a_signature_for_one_file_does_not_reach_another() {
        let bench = Bench::with_nfs_share().await;
        bench.create("secret", 0).await;
        let link = async |kind: GrantKind| {
            let (overrides, encryption_scope, delegation) = (None, None, None);
            let permissions = Permissions::of("rcw");
            let caller = Caller::Sas(Grant { kind, permissions, overrides, encryption_scope, delegation });
            let head = request("PUT", "share/mine?restype=hardlink", &[(TYPE, "file"), (TARGET_FILE, "secret")]);
            let asker = Asker { caller: &caller, ..Asker::OWNER };
            bench.service.run_for(asker, crate::Op::CreateHardLink, &head, 1, &mut FixedBody::new(&b""[..])).await
        };
        assert_eq!(refusal(link(GrantKind::Service(Scope::File)).await), FileError::UnauthorizedSource);
        link(GrantKind::Service(Scope::Share)).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_has_only_so_many_names() {
        let bench = Bench::with_nfs_share().await;
        bench.create("0", 1).await;
        for n in 1..LINKS_MAX {
            bench.link("0", &n.to_string(), &[]).await.unwrap();
        }
        let refused = refusal(bench.link("0", "more", &[]).await);
        assert!(matches!(refused, FileError::InvalidInput { .. }), "{refused:?}");
        assert_eq!(header(&bench.file("100").await, "x-ms-link-count"), Some("178"));
        bench.call("DELETE", "share/0", &[], b"").await.unwrap();
        bench.link("1", "more", &[]).await.unwrap();
        bench.check_rows().await;
    }

    /// Like everything else that changes a file.
    #[tokio::test]
    async fn a_file_that_waits_for_a_copy_gets_no_other_name() {
        let elsewhere = std::sync::Arc::new(crate::testing::Elsewhere::default());
        let stalled = Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") };
        elsewhere.0.lock().unwrap().insert("http://a/x", stalled);
        let bench = Bench::with_nfs_share().await.reaching(elsewhere);
        bench.call("PUT", "share/file", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
        assert_eq!(refusal(bench.link("file", "link", &[]).await), FileError::PendingCopyOperation);
    }
}
