use super::*;
use crate::opens::Reach;
use crate::testing::header;

fn shown(entries: &[DirectoryEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[tokio::test]
async fn renames() {
    let (bench, tree) = bench().await;
    let file = open(&tree, wish("dir\\file")).await;
    let id = file.file_id();
    for (to, path) in
        [("Other", "Other"), ("\\dir\\again", "dir\\again"), ("DIR\\Again", "dir\\Again"), ("DIR\\x", "dir\\x")]
    {
        file.rename(to, false).await.unwrap();
        let info = file.query().await.unwrap();
        assert_eq!((info.path.as_str(), info.id), (path, id));
        file.write(0, "x".into()).await.unwrap();
    }
    assert_eq!(bench.names("dir").await, ["x"]);
    for to in ["", "\\", "a:b", "a*", "\\\\a"] {
        assert!(matches!(file.rename(to, false).await, Err(Refused::NameInvalid | Refused::InvalidParameter)), "{to}");
    }
    assert_eq!(file.rename("none\\x", false).await, Err(Refused::PathNotFound));
    let reader = open(&tree, with("dir\\x", READ, ALL)).await;
    assert_eq!(reader.rename("y", false).await, Err(Refused::AccessDenied));
    let root = open(&tree, wish("")).await;
    assert_eq!(root.rename("y", false).await, Err(Refused::AccessDenied));
    done(&bench, [file, reader, root]).await;
}

#[tokio::test]
async fn renames_that_replace() {
    let (bench, tree) = bench().await;
    bench.create("old", 100).await;
    let file = open(&tree, wish("dir\\file")).await;
    assert_eq!(file.rename("old", false).await, Err(Refused::Collision));
    assert_eq!(file.rename("dir", false).await, Err(Refused::Collision));
    assert_eq!(file.rename("dir", true).await, Err(Refused::AccessDenied));
    let other = open(&tree, with("old", LOOK, ALL)).await;
    assert_eq!(file.rename("old", true).await, Err(Refused::AccessDenied), "it is open");
    other.close().await.unwrap();
    file.rename("OLD", true).await.unwrap();
    assert_eq!((bench.names("").await, bench.usage().await), (vec!["dir".to_owned(), "OLD".to_owned()], 10));
    assert_eq!(bench.read("old").await, b"0123456789");
    let read_only = [("x-ms-type", "file"), ("x-ms-content-length", "0"), ("x-ms-file-attributes", "ReadOnly")];
    bench.call("PUT", "share/ro", &read_only, b"").await.unwrap();
    assert_eq!(file.rename("ro", true).await, Err(Refused::AccessDenied));
    bench.create("leased", 0).await;
    bench.lease("leased", crate::testing::MY_LEASE).await;
    assert_eq!(file.rename("leased", true).await, Err(Refused::SharingViolation));
    done(&bench, [file]).await;
}

/// A directory is not moved while something below it is open; afterwards everything goes along.
#[tokio::test]
async fn renames_of_directories() {
    let (bench, tree) = bench().await;
    bench.mkdir("other").await;
    let dir = open(&tree, wish("dir")).await;
    let file = open(&tree, with("dir\\file", LOOK, ALL)).await;
    assert_eq!(dir.rename("moved", false).await, Err(Refused::AccessDenied));
    file.close().await.unwrap();
    bench.mkdir("dir/sub").await;
    assert_eq!(dir.rename("dir\\sub\\below", false).await, Err(Refused::InvalidParameter));
    assert_eq!(dir.rename("other", true).await, Err(Refused::AccessDenied));
    dir.rename("other\\moved", false).await.unwrap();
    let file = open(&tree, wish("other\\moved\\file")).await;
    assert_eq!(dir.query().await.unwrap().path, "other\\moved");
    assert_eq!(bench.opens.handles(scope(&bench, 0).await, None, 10).handles.len(), 2);
    done(&bench, [dir, file]).await;
}

async fn scope(bench: &Bench, id: u64) -> crate::opens::Scope {
    let share = bench.generation().await;
    let id = if id == 0 { share } else { id };
    crate::opens::Scope { file: crate::opens::FileId { share, id }, reach: Reach::Tree }
}

/// A rename counts for the handles of the new directory as an open that adds to it and shares reads and writes: Samba's
/// `smb2.rename` and `smb2.notify.mask-change` say the same. A directory whose handle only does not share deletion takes new names.
#[tokio::test]
async fn renames_into_directories_that_are_open() {
    let (bench, tree) = bench().await;
    bench.create("plain", 0).await;
    let file = open(&tree, wish("plain")).await;
    for (access, shared, expected) in [
        (READ, ALL, Ok(())),
        (LOOK, 0, Ok(())),
        (READ | DELETE, ALL, Err(Refused::SharingViolation)),
        (READ, sharing::READ | sharing::WRITE, Ok(())),
        (READ, sharing::READ | sharing::DELETE, Err(Refused::SharingViolation)),
    ] {
        let dir = open(&tree, with("dir", access, shared)).await;
        assert_eq!(file.rename("dir\\new", false).await, expected, "{access:#x} {shared}");
        dir.close().await.unwrap();
        file.rename("plain", false).await.unwrap();
    }
    done(&bench, [file]).await;
}

#[tokio::test]
async fn deletion_on_close() {
    let (bench, tree) = bench().await;
    let on_close = |path: &str| CreateRequest { options: options::DELETE_ON_CLOSE, ..wish(path) };
    let needs = CreateRequest { access: READ, ..on_close("dir\\file") };
    assert_eq!(refused(&tree, needs).await, Refused::AccessDenied);
    assert_eq!(refused(&tree, on_close("")).await, Refused::CannotDelete);
    let (doomed, other) = (open(&tree, on_close("dir\\file")).await, open(&tree, wish("dir\\file")).await);
    // It is not to be deleted before the handle that asked for it closes.
    assert!(!other.query().await.unwrap().is_delete_pending);
    let third = open(&tree, wish("dir\\file")).await;
    doomed.close().await.unwrap();
    assert!(other.query().await.unwrap().is_delete_pending);
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::DeletePending);
    other.write(0, "still".into()).await.unwrap();
    third.close().await.unwrap();
    other.close().await.unwrap();
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::NotFound);
    let new = CreateRequest { disposition: Disposition::Create, ..on_close("temporary") };
    let new = open(&tree, new).await;
    new.write(0, "bytes".into()).await.unwrap();
    done(&bench, [new]).await;
    assert_eq!((bench.names("").await, bench.usage().await), (vec!["dir".to_owned()], 0));
}

#[tokio::test]
async fn disposition_is_set_and_taken_back() {
    let (bench, tree) = bench().await;
    let (file, other) = (open(&tree, wish("dir\\file")).await, open(&tree, with("dir\\file", READ, ALL)).await);
    assert_eq!(other.set_delete_pending(true).await, Err(Refused::AccessDenied));
    file.set_delete_pending(true).await.unwrap();
    assert!(other.query().await.unwrap().is_delete_pending);
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::DeletePending);
    assert_eq!(refused(&tree, created("dir\\FILE")).await, Refused::DeletePending);
    assert_eq!(file.rename("x", false).await, Err(Refused::DeletePending));
    file.set_delete_pending(false).await.unwrap();
    let third = open(&tree, wish("dir\\file")).await;
    file.set_delete_pending(true).await.unwrap();
    file.close().await.unwrap();
    third.set_delete_pending(false).await.unwrap();
    done(&bench, [other, third]).await;
    assert_eq!(bench.names("dir").await, ["file"]);
}

#[tokio::test]
async fn deletion_of_directories() {
    let (bench, tree) = bench().await;
    let (dir, root) = (open(&tree, wish("dir")).await, open(&tree, wish("")).await);
    assert_eq!(root.set_delete_pending(true).await, Err(Refused::CannotDelete));
    assert_eq!(dir.set_delete_pending(true).await, Err(Refused::DirectoryNotEmpty));
    bench.call("DELETE", "share/dir/file", &[], b"").await.unwrap();
    dir.set_delete_pending(true).await.unwrap();
    assert_eq!(refused(&tree, created("dir\\new")).await, Refused::DeletePending);
    assert_eq!(shown(&root.list("*", true, 10).await.unwrap()), [".", "..", "dir"], "SMB still shows it");
    assert_eq!(bench.names("").await, [""; 0], "REST does not");
    dir.close().await.unwrap();
    assert_eq!(refused(&tree, created("dir\\new")).await, Refused::PathNotFound);
    // A directory that is not empty when its time comes stays.
    bench.mkdir("full").await;
    bench.create("full/file", 0).await;
    let full = CreateRequest { options: options::DELETE_ON_CLOSE | options::DIRECTORY_FILE, ..wish("full") };
    let full = open(&tree, full).await;
    done(&bench, [full, root]).await;
    assert_eq!(bench.names("full").await, ["file"]);
}

/// A handle that is dropped instead of closed, as when its connection ends, is deleted in the background.
#[tokio::test]
async fn abandoned_files_are_deleted() {
    let (bench, tree) = bench().await;
    let on_close = CreateRequest { options: options::DELETE_ON_CLOSE, ..wish("dir\\file") };
    drop(open(&tree, on_close).await);
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::DeletePending);
    tree.door.delete_abandoned().await.unwrap();
    assert!(bench.opens.is_empty());
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::NotFound);
    bench.check_rows().await;
}

/// A pattern that nothing matches is not looked for in one go, however large the directory is.
#[tokio::test]
async fn a_listing_pauses_among_many_names_that_do_not_match() {
    let (bench, tree) = bench().await;
    for number in 0..2 * ROWS_PASSED_MAX + 1 {
        bench.create(&format!("dir/{number:05}"), 0).await;
    }
    let dir = open(&tree, wish("dir")).await;
    // `file` is the last of the directory.
    for (pattern, last) in [("*x", Err(Refused::NoSuchFile)), ("*e", Ok(vec!["file"]))] {
        assert_eq!(dir.list(pattern, true, 10).await, Ok(Vec::new()), "{pattern}");
        assert_eq!(dir.list("", false, 10).await, Ok(Vec::new()), "{pattern}");
        let listed = dir.list("", false, 10).await;
        assert_eq!(listed.as_deref().map(shown).map_err(Clone::clone), last);
        if let Ok(entries) = listed {
            dir.advance(&entries[0]);
            assert_eq!(dir.list("", false, 10).await, Err(Refused::NoMoreFiles));
        }
    }
    dir.close().await.unwrap();
    assert_eq!(dir.list("*x", true, 10).await, Err(Refused::FileClosed));
}

#[tokio::test]
async fn listings() {
    let (bench, tree) = bench().await;
    for name in ["b.txt", "A.TXT", "c", "B.doc", "ab"] {
        bench.create(&format!("dir/{name}"), 3).await;
    }
    let dir = open(&tree, wish("dir")).await;
    let all = dir.list("*", false, 100).await.unwrap();
    assert_eq!(shown(&all), [".", "..", "A.TXT", "ab", "B.doc", "b.txt", "c", "file"]);
    assert_eq!((all[0].id, all[1].id), (dir.file_id(), bench.generation().await));
    assert_eq!((all[2].length, all[2].allocation, all[2].attributes), (3, 4_096, attributes::ARCHIVE));
    let id: u64 = header(&bench.file("dir/a.txt").await, "x-ms-file-id").unwrap().parse().unwrap();
    assert_eq!(all[2].id, id);
    // Entries that come and go in between are met once or not at all.
    for (count, told) in [(1, 0), (2, 1), (3, 2)] {
        let some = dir.list("ignored", false, count).await.unwrap();
        assert_eq!(shown(&some), shown(&all[told..told + count]));
        dir.advance(&some[0]);
    }
    bench.call("DELETE", "share/dir/ab", &[], b"").await.unwrap();
    bench.create("dir/a0", 0).await;
    assert_eq!(shown(&dir.list("", false, 100).await.unwrap()), ["a0", "B.doc", "b.txt", "c", "file"]);
    let rest = dir.list("", false, 100).await.unwrap();
    dir.advance(rest.last().unwrap());
    assert_eq!(dir.list("", false, 100).await, Err(Refused::NoMoreFiles));
    for (pattern, expected) in [
        ("*.txt", &["A.TXT", "b.txt"][..]),
        ("b*", &["B.doc", "b.txt"]),
        ("<.txt", &["A.TXT", "b.txt"]),
        ("B.DOC", &["B.doc"]),
        ("?", &[".", "c"]),
        ("a>", &["a0"]),
    ] {
        assert_eq!(shown(&dir.list(pattern, true, 100).await.unwrap()), expected, "{pattern}");
    }
    for pattern in ["none", "x*", "dir"] {
        assert_eq!(dir.list(pattern, true, 100).await, Err(Refused::NoSuchFile), "{pattern}");
    }
    dir.list("c", true, 100).await.map(|found| dir.advance(&found[0])).unwrap();
    assert_eq!(dir.list("c", false, 100).await, Err(Refused::NoMoreFiles));
    assert_eq!(dir.list("a\\b", true, 100).await, Err(Refused::NameInvalid));
    let root = open(&tree, wish("")).await;
    assert_eq!(shown(&root.list("*", true, 100).await.unwrap()), [".", "..", "dir"]);
    assert_eq!(shown(&root.list("*", true, 2).await.unwrap()), [".", ".."]);
    let file = open(&tree, wish("dir\\file")).await;
    assert_eq!(file.list("*", true, 100).await, Err(Refused::InvalidParameter));
    let blind = open(&tree, with("dir", LOOK, ALL)).await;
    assert_eq!(blind.list("*", true, 100).await, Err(Refused::AccessDenied));
    done(&bench, [dir, root, file, blind]).await;
}

/// More entries than one read looks at.
#[tokio::test]
async fn a_long_listing() {
    let bench = Bench::with_share().await;
    let tree = tree(&bench).await;
    let count = LISTED_ENTRIES_MAX + 30;
    for n in 0..count {
        bench.create(&format!("{n:05}{}", if n % 100 == 7 { "x" } else { "" }), 0).await;
    }
    let root = open(&tree, wish("")).await;
    let mut names = Vec::new();
    while let Ok(some) = root.list("*", false, 400).await {
        root.advance(some.last().unwrap());
        names.extend(some.into_iter().map(|entry| entry.name));
    }
    assert_eq!(names.len(), count + 2);
    assert!(names[2..].is_sorted());
    assert_eq!(root.list("*x", true, 400).await.unwrap().len(), count.div_ceil(100));
    assert_eq!(root.list("*y", true, 400).await, Err(Refused::NoSuchFile));
    done(&bench, [root]).await;
}
