//! Many clients at once, on the memory engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use concurrency::share_mode::Access;

use crate::opens::OpenRefusal;
use crate::testing::{Bench, header};
use crate::{Failure, FileError};

const WRITERS: usize = 16;
const WRITES: usize = 60;
const BLOCK: usize = 700;

/// Writers of different ranges of one file while its directory is renamed to and fro. A write is refused only because the path is
/// not there at that moment; then it is sent to the other path. No byte is lost, and ids stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_while_their_directory_is_renamed() {
    let bench = Arc::new(Bench::with_share().await);
    bench.mkdir("one").await;
    bench.create("one/file", (WRITERS * WRITES * BLOCK) as u64).await;
    let id = header(&bench.file("one/file").await, "x-ms-file-id").unwrap().to_owned();
    let is_done = Arc::new(AtomicBool::new(false));
    let renaming = {
        let (bench, is_done) = (Arc::clone(&bench), Arc::clone(&is_done));
        tokio::spawn(async move {
            let (mut from, mut to) = ("one", "two");
            let mut renames = 0;
            while !is_done.load(Ordering::Relaxed) {
                bench.rename(from, &format!("{to}?restype=directory"), &[]).await.unwrap();
                (from, to) = (to, from);
                renames += 1;
                tokio::task::yield_now().await;
            }
            (from, renames)
        })
    };
    let writers = (0..WRITERS).map(|writer| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            for number in 0..WRITES {
                write(&bench, writer, number).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    is_done.store(true, Ordering::Relaxed);
    let (directory, renames) = renaming.await.unwrap();
    assert!(renames > 0);
    let path = format!("{directory}/file");
    assert_eq!(header(&bench.file(&path).await, "x-ms-file-id"), Some(&*id));
    let bytes = bench.read(&path).await;
    for writer in 0..WRITERS {
        for number in 0..WRITES {
            let start = (writer * WRITES + number) * BLOCK;
            assert!(bytes[start..start + BLOCK].iter().all(|byte| *byte == value(writer, number)), "{writer} {number}");
        }
    }
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}

fn value(writer: usize, number: usize) -> u8 {
    (writer * 31 + number * 7) as u8 | 1
}

async fn write(bench: &Bench, writer: usize, number: usize) {
    let start = (writer * WRITES + number) * BLOCK;
    let range = format!("bytes={start}-{}", start + BLOCK - 1);
    let headers = [("x-ms-write", "update"), ("x-ms-range", &*range)];
    for directory in ["one", "two"].into_iter().cycle() {
        let url = format!("share/{directory}/file?comp=range");
        match bench.call("PUT", &url, &headers, &[value(writer, number); BLOCK]).await {
            Ok(_) => return,
            Err(Failure::Refused(FileError::ParentNotFound)) => tokio::task::yield_now().await,
            Err(failure) => panic!("{failure:?}"),
        }
    }
}

/// Of many that create one name, one does; of many that delete it, one does; nothing is left of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn creates_and_deletes_of_one_directory() {
    let bench = Arc::new(Bench::with_share().await);
    // The permission that the directory inherits stays in the share.
    bench.mkdir("dir").await;
    bench.call("DELETE", "share/dir?restype=directory", &[], b"").await.unwrap();
    let before = bench.figures();
    for _ in 0..20 {
        for (method, status) in [("PUT", 201), ("DELETE", 202)] {
            let asking = (0..8).map(|_| {
                let bench = Arc::clone(&bench);
                tokio::spawn(async move { bench.call(method, "share/dir?restype=directory", &[], b"").await })
            });
            let mut done = 0;
            for asked in asking.collect::<Vec<_>>() {
                match asked.await.unwrap() {
                    Ok(answer) if answer.status == status => done += 1,
                    Err(Failure::Refused(FileError::ResourceAlreadyExists | FileError::ResourceNotFound)) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(done, 1, "{method}");
        }
    }
    bench.sweep().await;
    assert_eq!(bench.figures()[..2], before[..2]);
}

/// Files are renamed over one another in circles: as many are left as there are names.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn renames_in_circles_neither_wait_for_each_other_nor_lose_a_file() {
    let bench = Arc::new(Bench::with_share().await);
    for number in 0..4 {
        bench.mkdir(&format!("d{number}")).await;
        bench.create(&format!("d{number}/file"), number).await;
    }
    let renaming = (0..8_usize).map(|seed| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            for step in 0..40 {
                let (from, to) = ((seed + step) % 4, (seed * 3 + step * 5 + 1) % 4);
                let replace = [("x-ms-file-rename-replace-if-exists", "true")];
                match bench.rename(&format!("d{from}/file"), &format!("d{to}/file"), &replace).await {
                    Ok(_) | Err(Failure::Refused(FileError::ResourceNotFound)) => {}
                    Err(failure) => panic!("{failure:?}"),
                }
                // So that there is always something to rename.
                bench.create(&format!("d{from}/file"), 1).await;
            }
        })
    });
    for renamed in renaming.collect::<Vec<_>>() {
        renamed.await.unwrap();
    }
    for number in 0..4 {
        assert_eq!(bench.names(&format!("d{number}")).await, ["file"]);
    }
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}

/// SMB clients that exclude writers, and REST clients that write, replace and rename. While a client has the file open nothing of it
/// changes, and every client finishes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_changes_while_an_open_excludes_it() {
    const CLIENTS: usize = 8;
    const TURNS: usize = 25;
    let bench = Arc::new(Bench::with_share().await);
    bench.create("file", 4_096).await;
    let opening = (0..CLIENTS).map(|_| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let mut opened = 0;
            while opened < TURNS {
                let request = bench.open_request("file", Access::READ, Access::READ).await;
                let handle = match bench.opens.open(request).await {
                    Ok(handle) => handle,
                    // A rename was at work.
                    Err(OpenRefusal::LookAgain) => continue,
                    Err(refusal) => panic!("{refusal:?}"),
                };
                let before = header(&bench.file("file").await, "etag").unwrap().to_owned();
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                    assert_eq!(header(&bench.file("file").await, "etag"), Some(&*before));
                }
                drop(handle);
                opened += 1;
                tokio::task::yield_now().await;
            }
        })
    });
    let writing = (0..CLIENTS).map(|client| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let mut done = 0;
            while done < TURNS {
                let result = match (client + done) % 4 {
                    0 => {
                        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "4096")];
                        bench.call("PUT", "share/file", &headers, b"").await
                    }
                    1 => bench.rename("file", "FILE", &[]).await,
                    2 => bench.call("PUT", "share/file?comp=metadata", &[("x-ms-meta-a", "b")], b"").await,
                    _ => {
                        let headers = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-9")];
                        bench.call("PUT", "share/file?comp=range", &headers, b"0123456789").await
                    }
                };
                match result {
                    Ok(_) => done += 1,
                    Err(Failure::Refused(FileError::SharingViolation)) => {}
                    Err(failure) => panic!("{failure:?}"),
                }
                tokio::task::yield_now().await;
            }
        })
    });
    for client in opening.chain(writing).collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}
