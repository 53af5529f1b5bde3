//! Abort Copy File: ends a copy that is under way. What is left is an empty file.

use concurrency::share_mode::RestAccess;
use concurrency::{LeaseId, Timestamp};
use content::background_copy::{Destination, end};
use content::copy_state::CopyStatus;
use engine::{Changes, Rows, Tick};
use service::{RequestError, reply};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;

use super::Call;
use crate::announcement::Effect;
use crate::background_copy::FileDestination;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::{Halt, Node, refuse};
use crate::opens::events::Aspects;
use crate::request::required;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
struct AbortCopyFile {
    lease: Option<LeaseId>,
    id: String,
    account: u64,
    share: ShareName,
}

fn parse(head: &Head, account: u64) -> Result<(Target, AbortCopyFile), FileError> {
    const ACTION: &str = "x-ms-copy-action";
    const ID: &str = "copyid";
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let action = required(head, ACTION)?;
    if !action.eq_ignore_ascii_case("abort") {
        return Err(FileError::header(ACTION, action));
    }
    let id = head.query.get(ID).ok_or(RequestError::MissingRequiredQueryParameter { name: ID })?;
    // Any GUID may be asked for; something else never was an id.
    let id = LeaseId::parse(id).ok_or_else(|| FileError::query(ID, id))?.to_string();
    let abort = AbortCopyFile { lease: request::lease_id(head)?, id, account, share: target.share.clone() };
    Ok((target, abort))
}

impl AbortCopyFile {
    /// The file, if its copy may be ended.
    fn judge(&self, spot: &Spot, now: Timestamp) -> Result<Node, FileError> {
        let mut node = spot.existing()?.clone();
        let state = node.as_written_file()?;
        state.lease = state.lease.check_write(self.lease, now).map_err(FileError::file_lease)?;
        match &state.copy {
            Some(copy) if copy.is_pending(now) && copy.id == self.id => Ok(node),
            Some(copy) if copy.is_pending(now) => Err(FileError::CopyIdMismatch),
            Some(_) | None => Err(FileError::NoPendingCopyOperation),
        }
    }
}

impl NodeChange for AbortCopyFile {
    type Outcome = Option<u64>;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write)
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::BYTES)
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        spot.share.announce_count(rows);
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Option<u64>, Halt> {
        let node = self.judge(spot, tick.now).map_err(refuse)?;
        let (account, share) = (self.account, self.share.clone());
        let destination = FileDestination { account, share, generation: spot.share.generation, id: node.id };
        let mut found = (spot.clone(), node);
        let job = end(&destination, &mut found, (CopyStatus::Aborted, None), rows, tick, changes)?;
        destination.store(found, rows, changes)?;
        Ok(job)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, abort) = parse(call.head, call.account)?;
    let job = entering::commit(call, &target, abort).await?;
    if let Some(job) = job {
        call.copier.abandon(job);
    }
    Ok(reply::reply(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, Elsewhere, MY_LEASE, Script, Then, YOUR_LEASE, header, refusal, url};
    use concurrency::LeaseRefusal;
    use content::background_copy::{ATTEMPTS_MAX, GRACE_SECONDS, LOOK_SECONDS, SECONDS_MAX, WAIT_SECONDS};
    use std::sync::Arc;

    const SOURCE: &str = "http://a/x?sig=secret";
    const ABORT: (&str, &str) = ("x-ms-copy-action", "abort");
    const OTHER: &str = "01010101-0101-4101-8101-010101010101";

    /// A file that waits for a source that sends five of 1,000 bytes.
    async fn pending() -> (Bench, Arc<Elsewhere>, String) {
        let (bench, elsewhere) = Bench::with_elsewhere().await;
        let stalled = Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") };
        elsewhere.0.lock().unwrap().insert(SOURCE, stalled.header("content-md5", "XUFAKrxLKna5cZ2REBfFkg=="));
        let id = copy(&bench).await;
        (bench, elsewhere, id)
    }

    async fn copy(bench: &Bench) -> String {
        let headers = [("x-ms-copy-source", SOURCE), ("x-ms-meta-a", "b")];
        let answer = bench.call("PUT", "share/file", &headers, b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-copy-status"), Some("pending"));
        header(&answer, "x-ms-copy-id").unwrap().to_owned()
    }

    async fn told(bench: &Bench, name: &str) -> Option<String> {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        header(&bench.file("file").await, name).map(str::to_owned)
    }

    fn abort(id: &str) -> String {
        format!("share/file?comp=copy&copyid={id}")
    }

    #[tokio::test]
    async fn what_is_left_is_an_empty_file() {
        let (bench, _, id) = pending().await;
        assert_eq!(told(&bench, "content-length").await.as_deref(), Some("1000"));
        assert_eq!(told(&bench, "content-md5").await, None, "it is told with the bytes");
        let before = told(&bench, "etag").await;
        let answer = bench.call("PUT", &abort(&id), &[ABORT], b"").await.unwrap();
        assert_eq!(answer.status, 204);
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("aborted"));
        assert_eq!(told(&bench, "content-length").await.as_deref(), Some("0"));
        assert_eq!(told(&bench, "x-ms-meta-a").await.as_deref(), Some("b"));
        assert_eq!(told(&bench, "content-md5").await, None);
        assert_ne!(told(&bench, "etag").await, before);
        assert_eq!(bench.refused("PUT", &abort(&id), &[ABORT]).await, FileError::NoPendingCopyOperation);
        bench.check_rows().await;
        bench.call("DELETE", "share/file", &[], b"").await.unwrap();
        bench.advance(60).await;
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let (bench, _, id) = pending().await;
        bench.create("other", 1).await;
        bench.mkdir("dir").await;
        let refused = async |url: &str, headers: &[(&str, &str)]| bench.refused("PUT", url, headers).await;
        let missing = RequestError::MissingRequiredHeader { name: "x-ms-copy-action" };
        assert_eq!(refused(&abort(&id), &[]).await, missing.into());
        assert_eq!(refused(&abort(&id), &[(ABORT.0, "end")]).await, FileError::header(ABORT.0, "end"));
        let missing = RequestError::MissingRequiredQueryParameter { name: "copyid" };
        assert_eq!(refused("share/file?comp=copy", &[ABORT]).await, missing.into());
        assert_eq!(refused(&abort("1"), &[ABORT]).await, FileError::query("copyid", "1"));
        assert_eq!(refused(&abort(OTHER), &[ABORT]).await, FileError::CopyIdMismatch);
        let of = |path: &str| format!("share/{path}?comp=copy&copyid={id}");
        assert_eq!(refused(&of("other"), &[ABORT]).await, FileError::NoPendingCopyOperation);
        assert_eq!(refused(&of("none"), &[ABORT]).await, FileError::ResourceNotFound);
        assert_eq!(refused(&of("dir"), &[ABORT]).await, FileError::ResourceTypeMismatch);
        // The lease comes before the copy.
        bench.lease("file", MY_LEASE).await;
        let (mine, yours) = (("x-ms-lease-id", MY_LEASE), ("x-ms-lease-id", YOUR_LEASE));
        assert_eq!(refused(&abort(OTHER), &[ABORT]).await, FileError::file_lease(LeaseRefusal::IdMissing));
        assert_eq!(refused(&abort(&id), &[ABORT, yours]).await, FileError::file_lease(LeaseRefusal::IdMismatch));
        bench.call("PUT", &abort(&id), &[ABORT, mine], b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-lease-state").await.as_deref(), Some("leased"));
    }

    #[tokio::test]
    async fn while_a_copy_is_pending_nothing_else_changes_the_file() {
        let (bench, _, _) = pending().await;
        type Write<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
        let clear = [("x-ms-write", "clear"), ("x-ms-range", "bytes=0-4")];
        let create = [("x-ms-type", "file"), ("x-ms-content-length", "1")];
        let writes: [Write<'_>; 6] = [
            ("PUT", "share/file", &create),
            ("PUT", "share/file", &[("x-ms-copy-source", SOURCE)]),
            ("PUT", "share/file?comp=range", &clear),
            ("PUT", "share/file?comp=metadata", &[]),
            ("PUT", "share/file?comp=properties", &[]),
            ("DELETE", "share/file", &[]),
        ];
        for (method, url, headers) in writes {
            assert_eq!(bench.refused(method, url, headers).await, FileError::PendingCopyOperation, "{method} {url}");
        }
        bench.create("other", 1).await;
        let replace = [("x-ms-file-rename-replace-if-exists", "true")];
        assert_eq!(refusal(bench.rename("file", "new", &[]).await), FileError::PendingCopyOperation);
        assert_eq!(refusal(bench.rename("other", "file", &replace).await), FileError::PendingCopyOperation);
        // It has not all of its bytes, so they are not copied on.
        let next = bench.refused("PUT", "share/next", &[("x-ms-copy-source", &*url("file"))]).await;
        assert_eq!(wire::http::ErrorReply::from(next).status, 409);
        // Another name for its directory is no change of the file.
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
    }

    /// The server is started again: another process finds that no node does the copy.
    #[tokio::test]
    async fn a_pending_copy_outlives_the_server() {
        let (bench, elsewhere, _) = pending().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        let whole: Vec<u8> = (0..1_000_u32).map(|n| n as u8).collect();
        elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(&whole));
        let engine = Arc::clone(&bench.engine);
        drop(bench);
        let bench = Bench::over(Arc::clone(&engine) as Arc<dyn engine::Engine>, engine).reaching(elsewhere);
        bench.check_rows().await;
        bench.advance(LOOK_SECONDS + GRACE_SECONDS).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert_eq!(told(&bench, "content-md5").await.as_deref(), Some("XUFAKrxLKna5cZ2REBfFkg=="));
        assert!(bench.read("file").await == whole);
        bench.check_rows().await;
    }

    /// A copy finds its file by the id, wherever it is by now.
    #[tokio::test]
    async fn a_directory_above_a_pending_copy_is_renamed() {
        let (bench, elsewhere, _) = pending().await;
        bench.mkdir("dir").await;
        let headers = [("x-ms-copy-source", SOURCE)];
        bench.call("PUT", "share/dir/copy", &headers, b"").await.unwrap();
        bench.rename("dir", "moved?restype=directory", &[]).await.unwrap();
        elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(&[7; 1_000]));
        let engine = Arc::clone(&bench.engine);
        drop(bench);
        let bench = Bench::over(Arc::clone(&engine) as Arc<dyn engine::Engine>, engine).reaching(elsewhere);
        bench.advance(LOOK_SECONDS + GRACE_SECONDS).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert_eq!(bench.read("moved/copy").await, [7; 1_000]);
    }

    #[tokio::test]
    async fn a_source_that_changes_or_breaks_off_fails_the_copy() {
        let cut = Script { length: 10, then: Then::Cut, ..Script::of(b"begin").header("etag", "\"1\"") };
        let other = Script::of(b"other bytes").header("etag", "\"2\"");
        for (then, why) in [(other, "412 "), (cut.clone(), "500 ")] {
            let (bench, elsewhere) = Bench::with_elsewhere().await;
            elsewhere.0.lock().unwrap().insert(SOURCE, cut.clone());
            copy(&bench).await;
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
            elsewhere.0.lock().unwrap().insert(SOURCE, then);
            for _ in 0..ATTEMPTS_MAX {
                bench.advance(LOOK_SECONDS + 1).await;
                bench.sweep().await;
                told(&bench, "x-ms-copy-status").await;
            }
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"), "{why}");
            let described = told(&bench, "x-ms-copy-status-description").await.unwrap();
            assert!(described.starts_with(why), "{described}");
            assert_eq!(told(&bench, "content-length").await.as_deref(), Some("0"));
            bench.check_rows().await;
        }
    }

    /// A share that can be restored comes back with its copies, whether they are done by then or over.
    #[tokio::test]
    async fn a_pending_copy_outlives_the_deletion_of_its_share() {
        const DAY: u64 = 24 * 3600;
        for (days, status) in [(1, "success"), (20, "failed")] {
            let (mut bench, elsewhere, _) = pending().await;
            bench.settings.share_soft_delete_days = Some(30);
            bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
            bench.advance(days * DAY).await;
            bench.sweep().await;
            bench.check_rows().await;
            let listed = bench.text("GET", "?comp=list&include=deleted").await;
            let version = crate::testing::between(&listed, "<Version>", "</Version>")[0];
            let restore = [("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", version)];
            bench.call("PUT", "share?restype=share&comp=undelete", &restore, b"").await.unwrap();
            bench.check_rows().await;
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
            elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(&[7; 1_000]));
            bench.advance(WAIT_SECONDS).await;
            bench.sweep().await;
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some(status), "{days}");
            bench.check_rows().await;
            bench.call("DELETE", "share/file", &[], b"").await.unwrap();
            // One that does not come back takes its copies along.
            copy(&bench).await;
            bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
            bench.advance(30 * DAY).await;
            bench.sweep().await;
            bench.sweep().await;
            assert_eq!(bench.rows(), 0);
        }
    }

    #[tokio::test]
    async fn after_two_weeks_it_is_over_and_with_its_share_it_ends() {
        let (bench, _, _) = pending().await;
        bench.advance(SECONDS_MAX).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"));
        bench.create("file", 3).await;
        copy(&bench).await;
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        bench.advance(60).await;
        bench.sweep().await;
        assert_eq!(bench.rows(), 0);
    }
}
