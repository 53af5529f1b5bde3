//! What every operation on a path refuses.

use service::RequestError;

use super::*;
use crate::FileError;
use crate::testing::{Bench, MY_LEASE, refusal};
use concurrency::share_mode::Access;

async fn sent(bench: &Bench, ask: &Ask, path: &str, extra: &[(&str, &str)]) -> Option<FileError> {
    let headers = [ask.headers, extra].concat();
    match bench.call(ask.method, &ask.url(path), &headers, ask.body).await {
        Ok(_) => None,
        failed => Some(refusal(failed)),
    }
}

async fn refused(bench: &Bench, ask: &Ask, path: &str, extra: &[(&str, &str)]) -> FileError {
    sent(bench, ask, path, extra).await.unwrap_or_else(|| panic!("{} {path} succeeded", ask.name))
}

/// A share with the directory `dir` and the file `file` in it.
async fn bench() -> Bench {
    let bench = Bench::with_share().await;
    bench.mkdir("dir").await;
    bench.create("dir/file", 1_024).await;
    bench
}

fn every() -> impl Iterator<Item = &'static Ask> {
    let creates = [&CREATE_FILE, &CREATE_DIRECTORY];
    let existing = [FILE_READS, FILE_WRITES, LEASES, DIRECTORY_READS, DIRECTORY_WRITES, HANDLES];
    existing.into_iter().flatten().chain(creates)
}

#[tokio::test]
async fn what_is_not_there() {
    let bench = bench().await;
    for ask in every() {
        assert_eq!(refused(&bench, ask, "other/dir/file", &[]).await, FileError::ShareNotFound, "{}", ask.name);
        assert_eq!(refused(&bench, ask, "share/no/file", &[]).await, FileError::ParentNotFound, "{}", ask.name);
        let below_a_file = refused(&bench, ask, "share/dir/file/below", &[]).await;
        assert_eq!(below_a_file, FileError::ParentNotFound, "{}", ask.name);
    }
    for ask in [FILE_READS, FILE_WRITES, LEASES, DIRECTORY_READS, DIRECTORY_WRITES, HANDLES].into_iter().flatten() {
        assert_eq!(refused(&bench, ask, "share/dir/no", &[]).await, FileError::ResourceNotFound, "{}", ask.name);
    }
}

#[tokio::test]
async fn the_wrong_kind() {
    let bench = bench().await;
    for ask in FILE_READS {
        assert_eq!(refused(&bench, ask, "share/dir", &[]).await, FileError::ResourceNotFound, "{}", ask.name);
    }
    for ask in FILE_WRITES.iter().chain(LEASES).chain([&CREATE_FILE]) {
        assert_eq!(refused(&bench, ask, "share/dir", &[]).await, FileError::ResourceTypeMismatch, "{}", ask.name);
    }
    for ask in DIRECTORY_READS {
        assert_eq!(refused(&bench, ask, "share/dir/file", &[]).await, FileError::ResourceNotFound, "{}", ask.name);
    }
    for ask in DIRECTORY_WRITES {
        assert_eq!(refused(&bench, ask, "share/dir/file", &[]).await, FileError::ResourceTypeMismatch, "{}", ask.name);
    }
    for path in ["share/dir", "share/dir/file", "share"] {
        let taken = refused(&bench, &CREATE_DIRECTORY, path, &[]).await;
        assert_eq!(taken, FileError::ResourceAlreadyExists, "{path}");
    }
}

#[tokio::test]
async fn the_root() {
    let bench = bench().await;
    for ask in DIRECTORY_READS.iter().chain(&DIRECTORY_WRITES[..2]).chain(HANDLES) {
        assert_eq!(sent(&bench, ask, "share", &[]).await, None, "{}", ask.name);
    }
    let deleted = bench.refused("DELETE", "share?restype=directory", &[]).await;
    assert!(matches!(deleted, FileError::InvalidInput { .. }), "{deleted:?}");
    assert_eq!(bench.names("").await, ["dir"]);
}

#[tokio::test]
async fn conditions_and_snapshots() {
    let bench = bench().await;
    let snapshot = "sharesnapshot=2026-11-15T18:00:00.0000000Z";
    for ask in every() {
        for name in ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"] {
            let error = refused(&bench, ask, "share/dir/file", &[(name, "*")]).await;
            assert_eq!(error, FileError::ConditionHeadersNotSupported, "{} {name}", ask.name);
        }
        let mark = if ask.url.contains('?') { '&' } else { '?' };
        let asked = async |query: &str| {
            let url = format!("{}{mark}{query}", ask.url("share/dir/file"));
            refusal(bench.call(ask.method, &url, ask.headers, ask.body).await)
        };
        let is_read = FILE_READS.iter().chain(DIRECTORY_READS).chain(HANDLES).any(|read| read.name == ask.name);
        let value = snapshot.split_once('=').unwrap().1;
        let expected = if is_read { FileError::ShareNotFound } else { FileError::query("sharesnapshot", value) };
        assert_eq!(asked(snapshot).await, expected, "{}", ask.name);
        assert_eq!(asked("sharesnapshot=x").await, FileError::query("sharesnapshot", "x"), "{}", ask.name);
    }
}

#[tokio::test]
async fn names() {
    let bench = bench().await;
    let long = "a".repeat(256);
    let deep = "a/".repeat(250) + "b";
    let wrong = FileError::from(RequestError::InvalidResourceName);
    for ask in every() {
        for (path, expected) in [
            ("share/a*b", wrong.clone()),
            ("share/..%2Fdir", wrong.clone()),
            ("share/CON", wrong.clone()),
            ("share/dir//file", wrong.clone()),
            (&*format!("share/{long}"), FileError::InvalidFileOrDirectoryPathName),
            (&*format!("share/{deep}"), FileError::InvalidFileOrDirectoryPathName),
            ("Share/dir", wrong.clone()),
            ("a/dir", RequestError::NameLength.into()),
        ] {
            assert_eq!(refused(&bench, ask, path, &[]).await, expected, "{} {path}", ask.name);
        }
        // Of a name that is wrong and a share that is not there, the name is told.
        assert_eq!(refused(&bench, ask, "other/a*b", &[]).await, wrong, "{}", ask.name);
    }
    for ask in FILE_READS.iter().chain(FILE_WRITES) {
        assert_eq!(refused(&bench, ask, "share/dir/file/", &[]).await, wrong, "{}", ask.name);
    }
    assert_eq!(sent(&bench, &DIRECTORY_READS[0], "share/dir/", &[]).await, None);
}

#[tokio::test]
async fn names_are_one_name_whatever_their_case_and_their_dots() {
    let bench = bench().await;
    for path in ["share/DIR/File", "share/dir./file...", "share/dIr/FILE."] {
        for ask in FILE_READS {
            assert_eq!(sent(&bench, ask, path, &[]).await, None, "{} {path}", ask.name);
        }
    }
    let keep = ("x-ms-allow-trailing-dot", "true");
    assert_eq!(refused(&bench, &FILE_READS[0], "share/dir/file.", &[keep]).await, FileError::ResourceNotFound);
    let headers = [CREATE, &[keep]].concat();
    bench.call("PUT", "share/dir/file..", &headers, b"").await.unwrap();
    assert_eq!(bench.names("dir").await, ["file", "file.."]);
    assert_eq!(sent(&bench, &FILE_READS[0], "share/dir/file..", &[keep]).await, None);
    // Before there was such a header it means nothing.
    let mut head = crate::testing::request("HEAD", "share/dir/file.", &[keep]);
    head.version = "2021-12-02".into();
    assert!(bench.send(head, &mut wire::http::FixedBody::new(&b""[..])).await.is_ok());
    let wrong = refused(&bench, &FILE_READS[0], "share/dir/file", &[("x-ms-allow-trailing-dot", "maybe")]).await;
    assert_eq!(wrong, FileError::header("x-ms-allow-trailing-dot", "maybe"));
}

/// The order is: the request, the path, the table of opens, the lease, the rest.
#[tokio::test]
async fn of_two_faults_the_first_is_told() {
    let bench = bench().await;
    bench.lease("dir/file", MY_LEASE).await;
    let properties = [("x-ms-file-attributes", "ReadOnly"), ("x-ms-lease-id", MY_LEASE)];
    bench.call("PUT", "share/dir/file?comp=properties", &properties, b"").await.unwrap();
    // Leased and read-only: the lease.
    let missing = FileError::file_lease(concurrency::LeaseRefusal::IdMissing);
    for ask in FILE_WRITES.iter().chain([&CREATE_FILE]) {
        assert_eq!(refused(&bench, ask, "share/dir/file", &[]).await, missing, "{}", ask.name);
    }
    // With the right id: read-only, but for what a read-only file allows.
    for ask in FILE_WRITES[1..4].iter().chain([&CREATE_FILE]) {
        let error = refused(&bench, ask, "share/dir/file", &[("x-ms-lease-id", MY_LEASE)]).await;
        assert_eq!(error, FileError::ReadOnlyAttribute, "{}", ask.name);
    }
    // Excluded by a handle and leased: the handle.
    let handle = bench.open("dir/file", Access::READ, Access::NONE).await;
    for ask in FILE_WRITES.iter().chain([&CREATE_FILE]) {
        let error = refused(&bench, ask, "share/dir/file", &[]).await;
        assert_eq!(error, FileError::SharingViolation, "{}", ask.name);
    }
    for ask in [&FILE_READS[0], &FILE_READS[3]] {
        let error = refused(&bench, ask, "share/dir/file", &[("x-ms-lease-id", crate::testing::YOUR_LEASE)]).await;
        assert_eq!(error, FileError::SharingViolation, "{}", ask.name);
    }
    // To be deleted and everything else: that it is to be deleted.
    handle.set_delete_pending(true).unwrap();
    for ask in FILE_READS.iter().chain(FILE_WRITES).chain(LEASES).chain([&CREATE_FILE, &CREATE_DIRECTORY]) {
        let error = refused(&bench, ask, "share/dir/file", &[]).await;
        assert_eq!(error, FileError::SmbDeletePending, "{}", ask.name);
    }
    for ask in HANDLES {
        assert_eq!(sent(&bench, ask, "share/dir/file", &[]).await, None, "{}", ask.name);
    }
}
