use concurrency::Timestamp;
use concurrency::range_lock::LockKind;
use wire::dates;

use super::*;

fn at(time: &str, request: CreateRequest) -> CreateRequest {
    CreateRequest { snapshot: dates::parse_iso(time), ..request }
}

async fn names(file: &OpenFile, pattern: &str) -> Vec<String> {
    let (mut names, mut restart) = (Vec::new(), true);
    loop {
        match file.list(pattern, restart, 2).await {
            Ok(entries) => {
                file.advance(entries.last().unwrap());
                names.extend(entries.into_iter().map(|entry| entry.name));
            }
            Err(Refused::NoMoreFiles) => return names,
            Err(refused) => panic!("{refused}"),
        }
        restart = false;
    }
}

#[tokio::test]
async fn a_snapshot_is_read_as_it_was() {
    let (bench, tree) = bench().await;
    bench.create("dir/gone", 5).await;
    let first = bench.snapshot().await;
    bench.write("dir/file", 0, b"changed").await;
    bench.call("DELETE", "share/dir/gone", &[], b"").await.unwrap();
    bench.create("dir/new", 5).await;
    bench.rename("dir", "moved?restype=directory", &[]).await.unwrap();
    bench.advance(1).await;
    let second = bench.snapshot().await;
    let times = [&second, &first].map(|time| dates::parse_iso(time).unwrap());
    assert_eq!(tree.snapshots().await.unwrap(), times, "newest first");

    let opened = tree.open(at(&first, wish("DIR\\FILE"))).await.unwrap();
    assert_eq!((opened.action, opened.info.path.as_str()), (CreateAction::Opened, "dir\\file"));
    let (file, live) = (opened.file, open(&tree, wish("moved\\file")).await);
    assert_eq!(file.read(0, 100).await, Ok("0123456789".into()));
    assert_eq!(live.read(0, 100).await, Ok("changed789".into()));
    let (info, live_info) = (file.query().await.unwrap(), live.query().await.unwrap());
    assert_eq!((info.path.as_str(), info.length, info.id), ("dir\\file", 10, live_info.id));
    assert!(info.written < live_info.written || info.changed <= live_info.changed);
    assert_eq!(file.allocated_ranges(0, 100, 5).await, Ok((vec![(0, 10)], false)));
    assert!(!file.security(security_parts::OWNER | security_parts::DACL).await.unwrap().is_empty());
    assert_eq!(refused(&tree, at(&first, wish("moved\\file"))).await, Refused::PathNotFound);
    assert_eq!(refused(&tree, at(&second, wish("dir"))).await, Refused::NotFound);

    let dir = open(&tree, at(&first, wish("dir"))).await;
    assert_eq!(names(&dir, "*").await, [".", "..", "file", "gone"]);
    assert_eq!(names(&dir, "gone").await, ["gone"]);
    let root = open(&tree, at(&first, wish(""))).await;
    assert_eq!((names(&root, "*").await.join(" "), root.query().await.unwrap().path.as_str()), (". .. dir".into(), ""));
    let later = open(&tree, at(&second, wish("moved"))).await;
    assert_eq!(names(&later, "*").await, [".", "..", "file", "new"]);
    live.close().await.unwrap();
    // REST deletes what nobody has open: snapshots do not count.
    assert!(bench.opens.is_empty());
    bench.call("DELETE", "share/moved/file", &[], b"").await.unwrap();
    assert_eq!(file.read(8, 100).await, Ok("89".into()));
    done(&bench, [file, dir, root, later]).await;
}

#[tokio::test]
async fn nothing_changes_in_a_snapshot() {
    let (bench, tree) = bench().await;
    let time = bench.snapshot().await;
    let protected = Err(Refused::WriteProtected);
    for (disposition, path, expected) in [
        (Disposition::Open, "dir\\file", Ok(CreateAction::Opened)),
        (Disposition::OpenIf, "dir\\file", Ok(CreateAction::Opened)),
        (Disposition::Create, "dir\\file", Err(Refused::Collision)),
        (Disposition::Overwrite, "dir\\file", Err(Refused::WriteProtected)),
        (Disposition::OverwriteIf, "dir\\file", Err(Refused::WriteProtected)),
        (Disposition::Supersede, "dir\\file", Err(Refused::WriteProtected)),
        (Disposition::Open, "new", Err(Refused::NotFound)),
        (Disposition::Overwrite, "new", Err(Refused::NotFound)),
        (Disposition::OpenIf, "new", Err(Refused::WriteProtected)),
        (Disposition::Create, "new", Err(Refused::WriteProtected)),
        (Disposition::Supersede, "new", Err(Refused::WriteProtected)),
    ] {
        let opened = tree.open(at(&time, CreateRequest { disposition, ..wish(path) })).await;
        assert_eq!(opened.map(|opened| opened.action), expected, "{disposition:?} {path}");
    }
    let deleting = CreateRequest { options: options::DELETE_ON_CLOSE, ..wish("dir\\file") };
    assert_eq!(refused(&tree, at(&time, deleting)).await, Refused::WriteProtected);

    let (file, dir) = (open(&tree, at(&time, wish("dir\\file"))).await, open(&tree, at(&time, wish("dir"))).await);
    assert!(file.is_in_snapshot() && file.handle_id().is_none());
    assert_eq!(file.access(), access::FILE_ALL_ACCESS, "rights are granted as they are asked for");
    assert_eq!(file.write(0, "x".into()).await, protected);
    assert_eq!(file.set_end_of_file(5).await, protected);
    assert_eq!(file.set_allocation(5).await, protected);
    assert_eq!(file.set_zero_data(0, 5).await, protected);
    assert_eq!(file.set_sparse(true).await, protected);
    assert_eq!(file.set_basic(BasicInfo::default()).await, protected);
    assert_eq!(file.set_delete_pending(true).await, protected);
    assert_eq!(file.rename("other", true).await, protected);
    let owner = file.security(security_parts::OWNER).await.unwrap();
    let system = open(&tree, at(&time, with("dir\\file", access::WRITE_OWNER, ALL))).await;
    assert_eq!(system.set_security(security_parts::OWNER, &owner).await, protected);
    assert_eq!(
        file.copy_chunks(&file, &[Chunk { from: 0, to: Some(0), length: 5 }], CopyAccess::Write).await.1,
        protected
    );
    assert_eq!(file.duplicate_extents(&file, 0, 0, 5).await, protected);
    assert_eq!(file.lock(&[Lock { offset: 0, length: 1, kind: LockKind::Shared }]).await, Err(Refused::NotSupported));
    assert_eq!(file.unlock(&[(0, 1)]), Err(Refused::NotSupported));
    assert_eq!(dir.changes(notify_filter::FILE_NAME, false).await, Err(Refused::NotSupported));
    file.flush().await.unwrap();
    let most = open(&tree, at(&time, with("dir\\file", access::MAXIMUM_ALLOWED, 0))).await;
    assert_eq!(most.access(), access::READ_AND_EXECUTE);
    // Neither of them keeps anybody away, and nobody keeps them away.
    let alone = open(&tree, with("dir\\file", READ | WRITE | DELETE, 0)).await;
    let beside = open(&tree, at(&time, with("dir\\file", READ, 0))).await;
    assert_eq!(beside.read(0, 2).await, Ok("01".into()));
    beside.close().await.unwrap();
    assert_eq!(beside.close().await, Err(Refused::FileClosed));
    assert_eq!(beside.read(0, 2).await, Err(Refused::FileClosed));
    done(&bench, [alone, file, dir, most, system]).await;
}

#[tokio::test]
async fn a_snapshot_that_is_gone() {
    let (bench, tree) = bench().await;
    let time = bench.snapshot().await;
    bench.write("dir/file", 0, b"changed").await;
    let (file, dir) = (open(&tree, at(&time, wish("dir\\file"))).await, open(&tree, at(&time, wish("dir"))).await);
    let never = CreateRequest { snapshot: Some(Timestamp(5)), ..wish("dir\\file") };
    assert_eq!(refused(&tree, never).await, Refused::NotFound);
    bench.drop_snapshot(&time).await;
    assert_eq!(file.read(0, 5).await, Err(Refused::SnapshotGone));
    assert_eq!(file.query().await, Err(Refused::SnapshotGone));
    assert_eq!(dir.list("*", true, 5).await.map(|entries| entries.len()), Err(Refused::SnapshotGone));
    bench.sweep().await;
    assert_eq!(file.read(0, 5).await, Err(Refused::SnapshotGone));
    assert_eq!(refused(&tree, at(&time, wish("dir\\file"))).await, Refused::NotFound);
    assert_eq!(tree.snapshots().await.unwrap(), []);
    done(&bench, [file, dir]).await;
}

/// What Explorer does to restore a previous version: it copies from the snapshot to the file, inside of the server.
#[tokio::test]
async fn a_previous_version_is_restored_by_a_copy() {
    let (bench, tree) = bench().await;
    let live = open(&tree, created("large")).await;
    live.write(0, vec![1; 3 << 20].into()).await.unwrap();
    let time = bench.snapshot().await;
    live.write(1 << 20, vec![2; 1 << 20].into()).await.unwrap();
    live.set_end_of_file((3 << 20) + 7).await.unwrap();
    let stored = bench.figures();
    let before = open(&tree, at(&time, with("large", READ, ALL))).await;
    let length = before.query().await.unwrap().length;
    let all = [Chunk { from: 0, to: Some(0), length }];
    let copied = live.copy_chunks(&before, &all, CopyAccess::ReadAndWrite).await;
    assert_eq!(copied, (Copied { chunks: 1, bytes: 3 << 20 }, Ok(())));
    live.set_end_of_file(length).await.unwrap();
    let contents = |figures: &[(&str, u64)]| figures.iter().find(|(name, _)| *name == "contents").map(|(_, n)| *n);
    assert!(contents(&bench.figures()) <= contents(&stored), "no bytes were stored");
    assert!(bench.read("large").await == vec![1; 3 << 20]);
    bench.drop_snapshot(&time).await;
    bench.sweep().await;
    assert!(bench.read("large").await == vec![1; 3 << 20]);
    done(&bench, [live, before]).await;
}
