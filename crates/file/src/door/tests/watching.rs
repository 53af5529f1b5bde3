use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::opens::events::EVENTS_PER_WATCHER_MAX;

const EVERYTHING: u32 = notify_filter::FILE_NAME
    | notify_filter::DIR_NAME
    | notify_filter::ATTRIBUTES
    | notify_filter::SIZE
    | notify_filter::LAST_WRITE
    | notify_filter::LAST_ACCESS
    | notify_filter::CREATION
    | notify_filter::SECURITY;

/// A directory that is watched.
struct Watched {
    directory: OpenFile,
    filter: u32,
    is_recursive: bool,
}

impl Watched {
    async fn new(tree: &Tree, path: &str, filter: u32, is_recursive: bool) -> Watched {
        let watched = Watched { directory: open(tree, with(path, READ, ALL)).await, filter, is_recursive };
        assert_eq!(watched.now(), None);
        watched
    }

    fn now(&self) -> Option<Result<Changes, Refused>> {
        let mut next = pin!(self.directory.changes(self.filter, self.is_recursive));
        match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(changes) => Some(changes),
            Poll::Pending => None,
        }
    }

    fn told(&self) -> Vec<String> {
        match self.now() {
            None => Vec::new(),
            Some(Ok(Changes::Records(records))) => {
                records.iter().map(|change| format!("{} {}", change.kind.number(), change.path)).collect()
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_smb_does() {
    let (bench, tree) = bench().await;
    let deep = Watched::new(&tree, "", EVERYTHING, true).await;
    let flat = Watched::new(&tree, "dir", EVERYTHING, false).await;
    let root = Watched::new(&tree, "", EVERYTHING, false).await;
    let both = |name: &str| {
        let flat_told = flat.told();
        let expected: Vec<String> = flat_told.iter().map(|told| told.replacen(' ', " dir\\", 1)).collect();
        assert_eq!(deep.told(), expected, "{name}");
        flat_told
    };
    let file = open(&tree, created("DIR\\New")).await;
    assert_eq!(both("create"), ["1 New"]);
    file.write(0, "x".into()).await.unwrap();
    assert_eq!(both("write"), ["3 New"]);
    file.set_end_of_file(7).await.unwrap();
    file.set_end_of_file(7).await.unwrap();
    assert_eq!(both("length"), ["3 New"]);
    file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }).await.unwrap();
    assert_eq!(both("attributes"), ["3 New"]);
    file.rename("dir\\renamed", false).await.unwrap();
    assert_eq!(both("rename"), ["4 New", "5 renamed"]);
    file.rename("dir\\FILE", true).await.unwrap();
    assert_eq!(both("replace"), ["2 file", "4 renamed", "5 FILE"]);
    assert_eq!(root.told(), [""; 0]);
    file.rename("moved", true).await.unwrap();
    assert_eq!((flat.told(), deep.told()), (vec!["2 FILE".into()], vec!["2 dir\\FILE".into(), "1 moved".into()]));
    file.set_delete_pending(true).await.unwrap();
    assert_eq!(deep.told(), [""; 0]);
    file.close().await.unwrap();
    assert_eq!((deep.told(), root.told()), (vec!["2 moved".into()], vec!["1 moved".into(), "2 moved".into()]));
    let sub = open(&tree, directory("dir\\sub")).await;
    assert_eq!(both("directory"), ["1 sub"]);
    let again = open(&tree, CreateRequest { disposition: Disposition::OverwriteIf, ..wish("dir\\again") }).await;
    assert_eq!(both("again"), ["1 again"]);
    let over = open(&tree, CreateRequest { disposition: Disposition::Overwrite, ..wish("dir\\again") }).await;
    assert_eq!(both("overwrite"), ["3 again"]);
    done(&bench, [sub, again, over, deep.directory, flat.directory, root.directory]).await;
}

#[tokio::test]
async fn what_rest_does() {
    let (bench, tree) = bench().await;
    let deep = Watched::new(&tree, "", EVERYTHING, true).await;
    bench.mkdir("dir/sub").await;
    assert_eq!(deep.told(), ["1 dir\\sub"]);
    bench.create("dir/sub/new", 5).await;
    assert_eq!(deep.told(), ["1 dir\\sub\\new"]);
    bench.create("dir/sub/new", 6).await;
    bench.write("dir/sub/new", 0, b"x").await;
    assert_eq!(deep.told(), ["3 dir\\sub\\new"; 2]);
    bench.call("PUT", "share/dir/sub/new?comp=properties", &[("x-ms-content-length", "3")], b"").await.unwrap();
    bench.call("PUT", "share/dir/sub?restype=directory&comp=properties", &[], b"").await.unwrap();
    assert_eq!(deep.told(), ["3 dir\\sub\\new", "3 dir\\sub"]);
    bench.call("PUT", "share/dir/sub/new?comp=metadata", &[("x-ms-meta-a", "b")], b"").await.unwrap();
    bench.lease("dir/sub/new", crate::testing::MY_LEASE).await;
    bench.file("dir/sub/new").await;
    assert_eq!(deep.told(), [""; 0]);
    let url = crate::testing::url("dir/file");
    bench.call("PUT", "share/copy", &[("x-ms-copy-source", &url)], b"").await.unwrap();
    assert_eq!(deep.told(), ["1 copy"]);
    bench.rename("copy", "renamed", &[]).await.unwrap();
    bench.rename("renamed", "dir/moved", &[]).await.unwrap();
    assert_eq!(deep.told(), ["4 copy", "5 renamed", "2 renamed", "1 dir\\moved"]);
    bench.call("DELETE", "share/dir/moved", &[], b"").await.unwrap();
    assert_eq!(deep.told(), ["2 dir\\moved"]);
    bench.refused("DELETE", "share/dir/moved", &[]).await;
    bench.refused("PUT", "share/dir?restype=directory", &[]).await;
    assert_eq!(deep.told(), [""; 0]);
    bench.mkdir("empty").await;
    bench.call("DELETE", "share/empty?restype=directory", &[], b"").await.unwrap();
    assert_eq!(deep.told(), ["1 empty", "2 empty"]);
    // A forced close deletes what only the handle kept.
    let file = open(&tree, wish("dir\\file")).await;
    file.set_delete_pending(true).await.unwrap();
    bench.call("PUT", "share/dir/file?comp=forceclosehandles", &[("x-ms-handle-id", "*")], b"").await.unwrap();
    assert_eq!(deep.told(), ["2 dir\\file"]);
    drop(file);
    done(&bench, [deep.directory]).await;
}

#[tokio::test]
async fn filters_and_limits() {
    let (bench, tree) = bench().await;
    let names = Watched::new(&tree, "dir", notify_filter::FILE_NAME, false).await;
    let sizes = Watched::new(&tree, "dir", notify_filter::SIZE, false).await;
    bench.mkdir("dir/sub").await;
    bench.write("dir/file", 0, b"x").await;
    bench.create("dir/new", 0).await;
    assert_eq!((names.told(), sizes.told()), (vec!["1 new".into()], vec!["3 file".to_owned()]));
    for _ in 0..=EVENTS_PER_WATCHER_MAX {
        bench.write("dir/file", 0, b"x").await;
    }
    assert_eq!(sizes.now(), Some(Ok(Changes::Overflow)));
    bench.write("dir/file", 0, b"x").await;
    assert_eq!(sizes.told(), ["3 file"]);
    let file = open(&tree, wish("dir\\file")).await;
    assert_eq!(file.changes(EVERYTHING, false).await, Err(Refused::InvalidParameter));
    let blind = open(&tree, with("dir", LOOK, ALL)).await;
    assert_eq!(blind.changes(EVERYTHING, false).await, Err(Refused::AccessDenied));
    {
        let mut waiting = pin!(names.directory.changes(EVERYTHING, false));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        names.directory.close().await.unwrap();
        assert_eq!(waiting.await, Err(Refused::FileClosed));
    }
    assert_eq!(names.now(), Some(Err(Refused::FileClosed)));
    {
        let mut waiting = pin!(sizes.directory.changes(EVERYTHING, false));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let url = "share/dir?restype=directory&comp=forceclosehandles";
        bench.call("PUT", url, &[("x-ms-handle-id", "*")], b"").await.unwrap();
        assert_eq!(waiting.await, Err(Refused::FileClosed));
    }
    drop((names, sizes));
    assert!(!tree.door.events.has_watchers());
    drop(blind);
    done(&bench, [file]).await;
}

/// Those who watch a directory are told when it is to be deleted.
#[tokio::test]
async fn a_directory_that_is_deleted() {
    let (bench, tree) = bench().await;
    for on_close in [false, true] {
        bench.mkdir("empty").await;
        let watched = Watched::new(&tree, "empty", EVERYTHING, false).await;
        let options = if on_close { options::DELETE_ON_CLOSE } else { 0 };
        let dir = open(&tree, CreateRequest { options, ..wish("empty") }).await;
        assert_eq!(watched.now(), None);
        if !on_close {
            dir.set_delete_pending(true).await.unwrap();
            assert_eq!(watched.now(), Some(Err(Refused::DeletePending)));
            assert_eq!(watched.now(), Some(Err(Refused::DeletePending)));
            dir.set_delete_pending(false).await.unwrap();
            assert_eq!(watched.now(), None);
            dir.set_delete_pending(true).await.unwrap();
        }
        dir.close().await.unwrap();
        assert_eq!(watched.now(), Some(Err(Refused::DeletePending)));
        done(&bench, [watched.directory]).await;
        assert_eq!(bench.names("").await, ["dir"]);
    }
}
