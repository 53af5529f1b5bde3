//! REST operations beside files that SMB clients have open.

use std::sync::Arc;

use concurrency::range_lock::{LockKind, LockRange};
use concurrency::share_mode::Access;

use super::*;
use crate::testing::{Bench, MY_LEASE, between, header, refusal};
use crate::{Failure, FileError};
use wire::http::Reply;

const R: Access = Access::READ;
const W: Access = Access::WRITE;
const D: Access = Access::DELETE;
const NONE: Access = Access::NONE;
const ALL: Access = Access::ALL;

async fn bench() -> Bench {
    let bench = Bench::with_share().await;
    bench.mkdir("dir").await;
    bench.create("dir/file", 1_024).await;
    bench
}

async fn sent(bench: &Bench, ask: &Ask) -> Result<Reply, Failure> {
    bench.call(ask.method, &ask.url("share/dir/file"), ask.headers, ask.body).await
}

/// Whether an operation is refused for the handle.
async fn is_refused(bench: &Bench, ask: &Ask) -> bool {
    match sent(bench, ask).await {
        Ok(_) => false,
        failed => {
            assert_eq!(refusal(failed), FileError::SharingViolation, "{}", ask.name);
            true
        }
    }
}

/// The published table: which operations are refused beside an open for reading, by what the open shares.
#[tokio::test]
async fn the_table_of_share_modes() {
    // Create; Get and List Ranges; Put Range, Set Properties and Metadata; Delete; Lease acquire.
    let table = [
        (NONE, [true, true, true, true, true]),
        (R, [true, false, true, true, true]),
        (W, [true, true, false, true, true]),
        (D, [true, true, true, true, true]),
        (R.and(W), [true, false, false, true, true]),
        (R.and(D), [true, false, true, true, true]),
        (W.and(D), [false, true, false, true, true]),
        (ALL, [false, false, false, true, false]),
    ];
    for (sharing, [create, get, put, delete, lease]) in table {
        let asks: Vec<(&Ask, bool)> = [(&CREATE_FILE, create), (&FILE_READS[0], get), (&FILE_READS[3], get)]
            .into_iter()
            .chain(FILE_WRITES[..4].iter().map(|ask| (ask, put)))
            .chain([(&FILE_WRITES[4], delete), (&LEASES[0], lease)])
            // These need nothing of an open file.
            .chain([(&FILE_READS[1], false), (&FILE_READS[2], false)])
            .collect();
        for (ask, expected) in asks {
            let bench = bench().await;
            let handle = bench.open("dir/file", R, sharing).await;
            assert_eq!(is_refused(&bench, ask).await, expected, "{} beside one that shares {sharing:?}", ask.name);
            assert_eq!(bench.names("dir").await, ["file"]);
            drop(handle);
            if ask.name != "AcquireLease" || expected {
                assert!(!is_refused(&bench, ask).await, "{} after it was closed", ask.name);
            }
            assert!(bench.opens.is_empty());
        }
    }
}

#[tokio::test]
async fn a_lease_is_not_acquired_beside_a_writer() {
    for (access, expected) in [(NONE, false), (R, false), (W, true), (D, true), (R.and(W), true), (ALL, true)] {
        let bench = bench().await;
        let _handle = bench.open("dir/file", access, ALL).await;
        assert_eq!(is_refused(&bench, &LEASES[0]).await, expected, "{access:?}");
    }
    // The other actions need nothing.
    let bench = bench().await;
    bench.lease("dir/file", MY_LEASE).await;
    let _handle = bench.open("dir/file", ALL, NONE).await;
    let (id, proposed) = (("x-ms-lease-id", MY_LEASE), ("x-ms-proposed-lease-id", crate::testing::YOUR_LEASE));
    let change = [("x-ms-lease-action", "change"), id, proposed];
    assert!(bench.call("PUT", "share/dir/file?comp=lease", &change, b"").await.is_ok());
    assert!(!is_refused(&bench, &LEASES[1]).await);
}

#[tokio::test]
async fn an_open_of_attributes_alone_stands_against_a_delete_only() {
    let bench = bench().await;
    let handle = bench.open("dir/file", NONE, NONE).await;
    let others = FILE_READS.iter().chain(&FILE_WRITES[..4]).chain(&LEASES[..1]).chain([&CREATE_FILE]);
    for ask in others {
        if ask.name == "CreateFile" {
            // The lease that was acquired before.
            let release = [("x-ms-lease-action", "break")];
            bench.call("PUT", "share/dir/file?comp=lease", &release, b"").await.unwrap();
        }
        assert!(!is_refused(&bench, ask).await, "{}", ask.name);
    }
    assert!(is_refused(&bench, &FILE_WRITES[4]).await);
    drop(handle);
    assert!(!is_refused(&bench, &FILE_WRITES[4]).await);
}

#[tokio::test]
async fn renames_beside_handles() {
    let replace = [("x-ms-file-rename-replace-if-exists", "true")];
    for (sharing, expected) in [(NONE, true), (R.and(W), true), (D, false), (ALL, false)] {
        let bench = bench().await;
        bench.create("dir/target", 0).await;
        let handle = bench.open("dir/file", R, sharing).await;
        let renamed = bench.rename("dir/file", "dir/new", &[]).await;
        assert_eq!(renamed.is_err(), expected, "the source shares {sharing:?}");
        let from = if expected { "dir/file" } else { "dir/new" };
        drop(handle);
        let target = bench.open("dir/target", R, sharing).await;
        let kept = refusal(bench.rename(from, "dir/target", &[]).await);
        assert_eq!(kept, FileError::ResourceAlreadyExists, "what is not replaced needs nothing");
        let replaced = bench.rename(from, "dir/target", &replace).await;
        assert_eq!(replaced.is_err(), expected, "the target shares {sharing:?}");
        if expected {
            assert_eq!(refusal(replaced), FileError::SharingViolation);
        }
        drop(target);
        assert!(bench.opens.is_empty());
    }
}

#[tokio::test]
async fn a_handle_goes_along_with_its_file() {
    let bench = bench().await;
    bench.mkdir("Other").await;
    let _handle = bench.open("dir/file", R, ALL).await;
    bench.rename("dir/file", "other/NEW", &[]).await.unwrap();
    let listed = bench.text("GET", "share/other?comp=listhandles").await;
    assert!(!listed.contains("<Handle>"), "{listed}");
    let call = bench.call("GET", "share/other?comp=listhandles", &[("x-ms-recursive", "true")], b"").await.unwrap();
    let listed = crate::testing::text(call).await;
    assert_eq!(between(&listed, "<Path>", "<"), ["Other/NEW"], "{listed}");
    let id = header(&bench.directory("other").await, "x-ms-file-id").unwrap().to_owned();
    assert_eq!(between(&listed, "<ParentId>", "<"), [&*id]);
    // Now it stands against a rename of the directory that it is in.
    let error = refusal(bench.rename("other", "again?restype=directory", &[]).await);
    assert_eq!(error, FileError::SharingViolation);
    bench.rename("dir", "again?restype=directory", &[]).await.unwrap();
}

#[tokio::test]
async fn directories_with_something_open_below() {
    let bench = bench().await;
    bench.mkdir("dir/sub").await;
    bench.create("dir/sub/deep", 0).await;
    let handle = bench.open("dir/sub/deep", NONE, ALL).await;
    for from in ["dir", "dir/sub"] {
        let error = refusal(bench.rename(from, "new?restype=directory", &[]).await);
        assert_eq!(error, FileError::SharingViolation, "{from}");
    }
    // A delete is refused because there is something in it.
    let error = bench.refused("DELETE", "share/dir/sub?restype=directory", &[]).await;
    assert_eq!(error, FileError::DirectoryNotEmpty);
    drop(handle);
    bench.rename("dir", "new?restype=directory", &[]).await.unwrap();
    bench.mkdir("empty").await;
    let handle = bench.open("empty", NONE, ALL).await;
    let error = bench.refused("DELETE", "share/empty?restype=directory", &[]).await;
    assert_eq!(error, FileError::CannotDeleteFileOrDirectory);
    drop(handle);
    bench.call("DELETE", "share/empty?restype=directory", &[], b"").await.unwrap();
}

#[tokio::test]
async fn byte_range_locks() {
    let bench = bench().await;
    let handle = bench.open("dir/file", R.and(W), ALL).await;
    let lock = |offset, length, kind| (LockRange::new(offset, length).unwrap(), kind);
    handle.lock_now(&[lock(100, 100, LockKind::Exclusive), lock(300, 100, LockKind::Shared)]).await.unwrap();
    let get = async |range: &str| bench.call("GET", "share/dir/file", &[("x-ms-range", range)], b"").await.is_ok();
    let change = async |kind: &str, range: &str, length: usize| {
        let headers = [("x-ms-write", kind), ("x-ms-range", range)];
        let result = bench.call("PUT", "share/dir/file?comp=range", &headers, &vec![1; length]).await;
        if let Err(Failure::Refused(error)) = &result {
            assert_eq!(*error, FileError::FileLockConflict);
        }
        result.is_ok()
    };
    // Range, and whether it can be read, written, cleared.
    for (first, last, read, write) in [
        (0, 99, true, true),
        (0, 100, false, false),
        (199, 199, false, false),
        (200, 299, true, true),
        (299, 300, true, false),
        (399, 500, true, false),
        (400, 1_023, true, true),
    ] {
        let range = format!("bytes={first}-{last}");
        assert_eq!(get(&range).await, read, "read of {range}");
        assert_eq!(change("update", &range, last - first + 1).await, write, "write of {range}");
        assert_eq!(change("clear", &range, 0).await, write, "clear of {range}");
    }
    assert_eq!(bench.refused("GET", "share/dir/file", &[]).await, FileError::FileLockConflict);
    // What reads no bytes meets no lock.
    for ask in FILE_READS[1..].iter().chain(&FILE_WRITES[..2]) {
        assert!(!is_refused(&bench, ask).await, "{}", ask.name);
    }
    handle.unlock(LockRange::new(100, 100).unwrap()).unwrap();
    assert!(get("bytes=0-").await);
}

#[tokio::test]
async fn a_file_to_be_deleted_is_not_listed_and_goes_with_its_last_handle() {
    let bench = bench().await;
    bench.create("dir/other", 0).await;
    let (first, second) = (bench.open("dir/file", ALL, ALL).await, bench.open("dir/file", R, ALL).await);
    first.set_delete_pending(true).unwrap();
    assert_eq!(bench.names("dir").await, ["other"]);
    let error = refusal(bench.rename("dir/file", "dir/new", &[]).await);
    assert_eq!(error, FileError::SmbDeletePending);
    let error = refusal(bench.rename("dir/other", "dir/file", &[]).await);
    assert_eq!(error, FileError::SmbDeletePending);
    first.set_delete_pending(false).unwrap();
    assert_eq!(bench.names("dir").await, ["file", "other"]);
    first.set_delete_pending(true).unwrap();
    // Even a directory that looks empty has it still.
    bench.call("DELETE", "share/dir/other", &[], b"").await.unwrap();
    let error = bench.refused("DELETE", "share/dir?restype=directory", &[]).await;
    assert_eq!(error, FileError::DirectoryNotEmpty);
    let close = async |id: &str| {
        let headers = [("x-ms-handle-id", id)];
        let answer = bench.call("PUT", "share/dir/file?comp=forceclosehandles", &headers, b"").await.unwrap();
        header(&answer, "x-ms-number-of-handles-closed").unwrap().to_owned()
    };
    assert_eq!(close(&first.id().0.to_string()).await, "1");
    assert_eq!(refusal(bench.call("GET", "share/dir/file", &[], b"").await), FileError::SmbDeletePending);
    assert_eq!(close("*").await, "1");
    assert_eq!(bench.refused("GET", "share/dir/file", &[]).await, FileError::ResourceNotFound);
    bench.call("DELETE", "share/dir?restype=directory", &[], b"").await.unwrap();
    drop((first, second));
    assert!(bench.opens.is_empty());
}

#[tokio::test]
async fn a_handle_that_deletes_on_close_is_met_by_its_share_mode() {
    let bench = bench().await;
    let mut request = bench.open_request("dir/file", D, R).await;
    request.delete_on_close = true;
    let handle = bench.opens.open(request).await.unwrap();
    assert!(!is_refused(&bench, &FILE_READS[0]).await);
    assert!(is_refused(&bench, &FILE_WRITES[2]).await);
    let other = bench.open("dir/file", NONE, ALL).await;
    assert!(handle.close().is_none());
    assert_eq!(refusal(sent(&bench, &FILE_READS[0]).await), FileError::SmbDeletePending);
    drop(other);
}

/// An SMB client that opens while a REST operation is at work waits for it. Here the operation is one that never ends.
#[tokio::test]
async fn an_operation_at_work_is_in_the_table() {
    struct Endless(tokio::sync::mpsc::Sender<()>);
    impl wire::http::Body for Endless {
        fn length(&self) -> Option<u64> {
            Some(4)
        }
        fn next(&mut self) -> wire::http::BoxFuture<'_, Option<Result<bytes::Bytes, wire::http::BodyError>>> {
            Box::pin(async {
                self.0.send(()).await.unwrap();
                std::future::pending().await
            })
        }
    }
    let bench = Arc::new(bench().await);
    let (sender, mut asked) = tokio::sync::mpsc::channel(1);
    let sending = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let head = crate::testing::request("PUT", "share/dir/file?comp=range", UPDATE);
            bench.send(head, &mut Endless(sender)).await.map(|_| ())
        })
    };
    asked.recv().await.unwrap();
    // A body that is on its way holds nobody up.
    let handle = bench.open("dir/file", W, NONE).await;
    sending.abort();
    drop(handle);
    assert!(bench.opens.is_empty());
}
