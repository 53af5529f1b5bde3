use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use concurrency::range_lock::LockKind;

use super::*;
use crate::FileError;
use crate::testing::{MY_LEASE, header, refusal};

/// A REST operation on `dir/file`: method, URL, headers, body.
pub(super) type Ask = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [u8]);

pub(super) const CREATE: Ask = ("PUT", "share/dir/file", &[("x-ms-type", "file"), ("x-ms-content-length", "10")], b"");
pub(super) const GET: Ask = ("GET", "share/dir/file", &[], b"");
pub(super) const RANGES: Ask = ("GET", "share/dir/file?comp=rangelist", &[], b"");
pub(super) const PROPERTIES: Ask = ("HEAD", "share/dir/file", &[], b"");
pub(super) const PUT: Ask =
    ("PUT", "share/dir/file?comp=range", &[("x-ms-write", "update"), ("x-ms-range", "bytes=0-3")], b"data");
pub(super) const SET: Ask = ("PUT", "share/dir/file?comp=properties", &[], b"");
pub(super) const METADATA: Ask = ("PUT", "share/dir/file?comp=metadata", &[], b"");
pub(super) const REMOVE: Ask = ("DELETE", "share/dir/file", &[], b"");
pub(super) const LEASE: Ask = (
    "PUT",
    "share/dir/file?comp=lease",
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", MY_LEASE)],
    b"",
);

pub(super) async fn sent(bench: &Bench, (method, url, headers, body): Ask) -> Result<(), FileError> {
    match bench.call(method, url, headers, body).await {
        Ok(_) => Ok(()),
        refused => Err(refusal(refused)),
    }
}

/// The published table: which operations are refused, by what the open shares and what it does itself.
#[tokio::test]
async fn the_table_of_share_modes() {
    let table = [
        (0, [false, false, false, false, false]),
        (1, [false, true, false, false, false]),
        (2, [false, false, true, false, false]),
        (4, [false, false, false, false, false]),
        (3, [false, true, true, false, false]),
        (5, [false, true, false, false, false]),
        (6, [true, false, true, false, false]),
        (7, [true, true, true, false, true]),
    ];
    for (shared, [create, get, put, delete, lease]) in table {
        for access in [READ, WRITE, APPEND, DELETE, READ | WRITE | DELETE, LOOK] {
            let is_look = access == LOOK;
            for (ask, expected) in [
                (CREATE, create || is_look),
                (GET, get || is_look),
                (RANGES, get || is_look),
                (PUT, put || is_look),
                (SET, put || is_look),
                (METADATA, put || is_look),
                (REMOVE, delete),
                (LEASE, lease && access == READ || is_look),
                (PROPERTIES, true),
            ] {
                let (bench, tree) = bench().await;
                let file = open(&tree, with("dir\\file", access, shared)).await;
                let expected = if expected { Ok(()) } else { Err(FileError::SharingViolation) };
                assert_eq!(sent(&bench, ask).await, expected, "{ask:?} beside {access:#x} that shares {shared}");
                file.close().await.unwrap();
                if expected.is_err() {
                    assert_eq!(sent(&bench, ask).await, Ok(()), "{ask:?} after it was closed");
                }
                assert!(bench.opens.is_empty());
            }
        }
    }
}

/// A lease that is held counts as an open that reads, writes and deletes and shares reading.
#[tokio::test]
async fn a_lease_against_each_access() {
    let (bench, tree) = bench().await;
    bench.lease("dir/file", MY_LEASE).await;
    for (access, shared, expected) in [
        (READ, ALL, true),
        (READ, sharing::READ, false),
        (LOOK, 0, true),
        (WRITE, ALL, false),
        (APPEND, ALL, false),
        (DELETE, ALL, false),
        (READ | WRITE, ALL, false),
        (access::GENERIC_ALL, ALL, false),
    ] {
        let opened = tree.open(with("dir\\file", access, shared)).await;
        match opened {
            Ok(opened) => done(&bench, [opened.file]).await,
            Err(refused) => assert_eq!((refused, expected), (Refused::SharingViolation, false), "{access:#x}"),
        }
    }
    let overwrite = CreateRequest { disposition: Disposition::Overwrite, ..with("dir\\file", READ, ALL) };
    assert_eq!(refused(&tree, overwrite).await, Refused::SharingViolation);
    // The attributes of a leased file can be set by a handle that was opened for that alone.
    let file = open(&tree, with("dir\\file", access::FILE_WRITE_ATTRIBUTES, ALL)).await;
    file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }).await.unwrap();
    assert_eq!(header(&bench.file("dir/file").await, "x-ms-lease-state"), Some("leased"));
    let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", MY_LEASE)];
    bench.call("PUT", "share/dir/file?comp=lease", &release, b"").await.unwrap();
    let writer = open(&tree, wish("dir\\file")).await;
    done(&bench, [file, writer]).await;
}

/// Every operation on a file that is to be deleted is refused for that; lists leave it out.
#[tokio::test]
async fn delete_pending() {
    let (bench, tree) = bench().await;
    let (file, other) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir\\file")).await);
    let on_close = CreateRequest { options: options::DELETE_ON_CLOSE, ..wish("dir\\file") };
    let on_close = open(&tree, on_close).await;
    // Asked for on close it is no sign yet: the share mode counts.
    assert_eq!(sent(&bench, GET).await, Ok(()));
    assert_eq!(sent(&bench, REMOVE).await, Err(FileError::SharingViolation));
    on_close.close().await.unwrap();
    for _ in 0..2 {
        for ask in [CREATE, GET, RANGES, PROPERTIES, PUT, SET, METADATA, REMOVE, LEASE] {
            assert_eq!(sent(&bench, ask).await, Err(FileError::SmbDeletePending), "{ask:?}");
        }
        assert_eq!(bench.names("dir").await, [""; 0]);
        file.set_delete_pending(false).await.unwrap();
        assert_eq!((sent(&bench, GET).await, bench.names("dir").await), (Ok(()), vec!["file".to_owned()]));
        file.set_delete_pending(true).await.unwrap();
    }
    file.close().await.unwrap();
    assert_eq!(sent(&bench, GET).await, Err(FileError::SmbDeletePending));
    done(&bench, [other]).await;
    for ask in [GET, PROPERTIES, PUT, REMOVE] {
        assert_eq!(sent(&bench, ask).await, Err(FileError::ResourceNotFound), "{ask:?}");
    }
}

#[tokio::test]
async fn locks_against_ranges() {
    let (bench, tree) = bench().await;
    let file = open(&tree, wish("dir\\file")).await;
    let write = |range: &'static str| {
        let headers = [("x-ms-write", "update"), ("x-ms-range", range)];
        let bench = &bench;
        async move {
            let (first, last) = range[6..].split_once('-').unwrap();
            let length = last.parse::<usize>().unwrap() - first.parse::<usize>().unwrap() + 1;
            let sent = bench.call("PUT", "share/dir/file?comp=range", &headers, &vec![b'x'; length]).await;
            sent.map(drop).map_err(|failure| refusal(Err::<(), _>(failure)))
        }
    };
    let read = |range: &'static str| {
        let bench = &bench;
        async move {
            let sent = bench.call("GET", "share/dir/file", &[("x-ms-range", range)], b"").await;
            sent.map(drop).map_err(|failure| refusal(Err::<(), _>(failure)))
        }
    };
    let conflict = Err(FileError::FileLockConflict);
    for (kind, reads) in [(LockKind::Exclusive, conflict.clone()), (LockKind::Shared, Ok(()))] {
        file.lock(&[Lock { offset: 4, length: 2, kind }]).await.unwrap();
        assert_eq!((write("bytes=0-3").await, write("bytes=6-9").await), (Ok(()), Ok(())));
        assert_eq!((read("bytes=0-3").await, read("bytes=6-9").await), (Ok(()), Ok(())));
        for range in ["bytes=0-4", "bytes=5-9", "bytes=0-9", "bytes=4-5"] {
            assert_eq!((write(range).await, read(range).await), (conflict.clone(), reads.clone()), "{kind:?} {range}");
        }
        file.unlock(&[(4, 2)]).unwrap();
        assert_eq!(write("bytes=0-9").await, Ok(()));
    }
    done(&bench, [file]).await;
}

#[tokio::test]
async fn renames_above_and_of_open_files() {
    let (bench, tree) = bench().await;
    let file = open(&tree, with("dir\\file", LOOK, ALL)).await;
    let above = bench.rename("dir", "moved?restype=directory", &[]).await;
    assert_eq!(refusal(above), FileError::SharingViolation);
    // Its name alone may change: the handle shares deleting, and goes along.
    bench.rename("dir/file", "other", &[]).await.unwrap();
    assert_eq!(file.query().await.unwrap().path, "other");
    bench.rename("dir", "moved?restype=directory", &[]).await.unwrap();
    bench.create("new", 3).await;
    let replace = [("x-ms-file-rename-replace-if-exists", "true")];
    bench.rename("new", "other", &replace).await.unwrap();
    // The file of the handle is gone, and another one has its name.
    assert_eq!(file.query().await, Err(Refused::FileClosed));
    file.close().await.unwrap();
    let selfish = open(&tree, with("other", READ, sharing::READ)).await;
    assert_eq!(refusal(bench.rename("other", "again", &[]).await), FileError::SharingViolation);
    done(&bench, [selfish]).await;
}

#[tokio::test]
async fn handles_are_listed_and_closed_by_force() {
    let (bench, tree) = bench().await;
    let session = Arc::new(Session::default());
    let request = CreateRequest { owner: Arc::clone(&session) as Arc<dyn HandleOwner>, ..wish("DIR\\FILE") };
    let file = open(&tree, request).await;
    let listed = bench.text("GET", "share/dir/file?comp=listhandles").await;
    assert!(listed.contains(&format!("<HandleId>{}</HandleId>", file.handle_id().unwrap().0)), "{listed}");
    assert!(listed.contains("<Path>dir/file</Path>"), "{listed}");
    bench.call("PUT", "share/dir/file?comp=forceclosehandles", &[("x-ms-handle-id", "*")], b"").await.unwrap();
    assert_eq!(*session.closed.lock().unwrap(), [file.handle_id().unwrap()]);
    assert_eq!(file.read(0, 1).await, Err(Refused::FileClosed));
    assert_eq!(file.close().await, Err(Refused::FileClosed));
    assert!(bench.opens.is_empty());
}

/// An open waits for a REST operation that is at work, and is in nobody's way when it is withdrawn.
#[tokio::test]
async fn opens_wait_for_rest() {
    let (bench, tree) = bench().await;
    let selfish = || with("dir\\file", READ, 0);
    let id = open(&tree, wish("dir\\file")).await;
    let file = id.live().unwrap().file();
    id.close().await.unwrap();
    for access in [concurrency::share_mode::RestAccess::Write, concurrency::share_mode::RestAccess::Rename] {
        let entry = bench.opens.enter(file, access, None).await.unwrap();
        let mut waiting = Box::pin(tree.open(selfish()));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        {
            let mut dropped = pin!(tree.open(with("dir\\file", READ, sharing::READ)));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        drop(entry);
        let opened = waiting.await.unwrap();
        assert_eq!(sent(&bench, GET).await, Err(FileError::SharingViolation));
        done(&bench, [opened.file]).await;
    }
}

/// Writers over REST and exclusive openers over SMB: no write is acknowledged while a handle excludes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_of_writers_and_openers() {
    let (bench, tree) = bench().await;
    let bench = Arc::new(bench);
    let writers: Vec<_> = (0..4)
        .map(|n| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                let mut written = 0;
                for round in 0..60 {
                    let body = [b'a' + n, round];
                    let headers = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-1")];
                    match bench.call("PUT", "share/dir/file?comp=range", &headers, &body).await {
                        Ok(_) => written += 1,
                        refused => assert_eq!(refusal(refused), FileError::SharingViolation),
                    }
                    tokio::task::yield_now().await;
                }
                written
            })
        })
        .collect();
    let openers: Vec<_> = (0..4)
        .map(|n| {
            let tree = tree.clone();
            tokio::spawn(async move {
                let mut opened = 0;
                for round in 0..60 {
                    match tree.open(with("dir\\file", READ | WRITE, 0)).await {
                        Ok(handle) => {
                            let file = handle.file;
                            file.write(0, vec![b'A' + n, round].into()).await.unwrap();
                            for _ in 0..5 {
                                assert_eq!(&*file.read(0, 2).await.unwrap(), [b'A' + n, round]);
                                tokio::task::yield_now().await;
                            }
                            file.close().await.unwrap();
                            opened += 1;
                        }
                        Err(refused) => assert_eq!(refused, Refused::SharingViolation),
                    }
                }
                opened
            })
        })
        .collect();
    let (mut written, mut opened) = (0, 0);
    for writer in writers {
        written += writer.await.unwrap();
    }
    for opener in openers {
        opened += opener.await.unwrap();
    }
    assert!(written > 0 && opened > 0, "{written} {opened}");
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}

/// Many create one file; one of them does, and all see the same one. Meanwhile REST deletes it again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_of_creators_and_deleters() {
    let (bench, tree) = bench().await;
    let bench = Arc::new(bench);
    let creators: Vec<_> = (0..4)
        .map(|_| {
            let tree = tree.clone();
            tokio::spawn(async move {
                for round in 0..50 {
                    let disposition = if round % 2 == 0 { Disposition::OpenIf } else { Disposition::OverwriteIf };
                    match tree.open(CreateRequest { disposition, ..wish("dir\\new") }).await {
                        Ok(opened) => {
                            let file = opened.file;
                            file.write(0, "bytes".into()).await.unwrap();
                            if round % 3 == 0 {
                                match file.set_delete_pending(true).await {
                                    Ok(()) | Err(Refused::FileClosed) => {}
                                    Err(other) => panic!("{other:?}"),
                                }
                            }
                            file.close().await.unwrap();
                        }
                        Err(refused) => assert_eq!(refused, Refused::DeletePending),
                    }
                }
            })
        })
        .collect();
    for _ in 0..100 {
        match bench.call("DELETE", "share/dir/new", &[], b"").await {
            Ok(_) => {}
            refused => match refusal(refused) {
                FileError::ResourceNotFound | FileError::SharingViolation | FileError::SmbDeletePending => {}
                other => panic!("{other:?}"),
            },
        }
        tokio::task::yield_now().await;
    }
    for creator in creators {
        creator.await.unwrap();
    }
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}

/// Directories are renamed while files in them are opened: what is open is where its handle says, until it is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races_of_openers_and_renames_above() {
    let (bench, tree) = bench().await;
    let bench = Arc::new(bench);
    let openers: Vec<_> = (0..4)
        .map(|n| {
            let tree = tree.clone();
            tokio::spawn(async move {
                let mut opened = 0;
                for round in 0..200 {
                    let path = if round % 2 == 0 { "dir\\file" } else { "moved\\file" };
                    // Some would create it, if the directory is there and the file is not. It always is.
                    let disposition = if n % 2 == 0 { Disposition::Open } else { Disposition::OpenIf };
                    match tree.open(CreateRequest { disposition, ..wish(path) }).await {
                        Ok(handle) => {
                            assert_eq!(handle.action, CreateAction::Opened);
                            for _ in 0..3 {
                                assert_eq!(handle.file.query().await.unwrap().path, path);
                                tokio::task::yield_now().await;
                            }
                            handle.file.close().await.unwrap();
                            opened += 1;
                        }
                        Err(refused) => assert_eq!(refused, Refused::PathNotFound),
                    }
                }
                opened
            })
        })
        .collect();
    let mut renamed = 0;
    for _ in 0..100 {
        for (from, to) in [("dir", "moved"), ("moved", "dir")] {
            loop {
                match bench.rename(from, &format!("{to}?restype=directory"), &[]).await {
                    Ok(_) => break renamed += 1,
                    refused => assert_eq!(refusal(refused), FileError::SharingViolation),
                }
                tokio::task::yield_now().await;
            }
        }
    }
    let mut opened = 0;
    for opener in openers {
        opened += opener.await.unwrap();
    }
    assert!(opened > 0 && renamed == 200, "{opened} {renamed}");
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}
