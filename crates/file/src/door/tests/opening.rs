use super::*;
use crate::security::{Descriptor, root_directory};
use crate::testing::header;

#[tokio::test]
async fn shares_are_listed_and_connected_to() {
    let bench = Bench::with_share().await;
    bench.call("PUT", "another?restype=share", &[], b"").await.unwrap();
    bench.call("PUT", "nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], b"").await.unwrap();
    let door = bench.service.door();
    assert_eq!(door.shares(1).await.unwrap(), ["another", "share"]);
    assert_eq!(door.shares(2).await.unwrap(), [""; 0]);
    assert_eq!(door.connect(1, "SHARE").await.unwrap().name(), "share");
    for name in ["nfs", "none", "", "a", "not a name", "\u{e4}\u{e4}\u{e4}", "IPC$"] {
        assert_eq!(door.connect(1, name).await.unwrap_err(), Refused::ShareNotFound, "{name}");
    }
    assert_eq!(door.connect(2, "share").await.unwrap_err(), Refused::ShareNotFound);
}

#[tokio::test]
async fn the_space_of_a_share() {
    let (bench, tree) = bench().await;
    bench.call("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "3")], b"").await.unwrap();
    let space = tree.space().await.unwrap();
    assert_eq!((space.quota_bytes, space.used_bytes), (3 << 30, 10));
    assert_eq!(space.volume, bench.generation().await);
}

/// What each disposition does with a free name, a file and a directory.
#[tokio::test]
async fn dispositions() {
    use CreateAction::{Created, Opened, Overwritten, Superseded};
    use Refused::{Collision, NotFound};
    let table = [
        (Disposition::Supersede, Ok(Created), Ok(Superseded), Err(Collision)),
        (Disposition::Open, Err(NotFound), Ok(Opened), Ok(Opened)),
        (Disposition::Create, Ok(Created), Err(Collision), Err(Collision)),
        (Disposition::OpenIf, Ok(Created), Ok(Opened), Ok(Opened)),
        (Disposition::Overwrite, Err(NotFound), Ok(Overwritten), Err(Collision)),
        (Disposition::OverwriteIf, Ok(Created), Ok(Overwritten), Err(Collision)),
    ];
    for (number, (disposition, free, file, directory)) in table.into_iter().enumerate() {
        assert_eq!(Disposition::from_number(number as u32), Some(disposition));
        for (path, expected) in [("dir\\new", free), ("DIR\\File", file), ("Dir", directory)] {
            let (bench, tree) = bench().await;
            let before = bench.file("dir/file").await;
            let got = tree.open(CreateRequest { disposition, ..wish(path) }).await;
            assert_eq!(got.as_ref().map(|opened| opened.action), expected.as_ref().copied(), "{disposition:?} {path}");
            let content = bench.read("dir/file").await;
            let is_emptied = matches!(expected, Ok(Overwritten | Superseded));
            assert_eq!(content, if is_emptied { &b""[..] } else { b"0123456789" }, "{disposition:?} {path}");
            assert_eq!(header(&bench.file("dir/file").await, "x-ms-file-id"), header(&before, "x-ms-file-id"));
            if let Ok(opened) = got {
                assert_eq!(opened.info, opened.file.query().await.unwrap(), "{disposition:?} {path}");
                done(&bench, [opened.file]).await;
            }
        }
    }
    assert_eq!(Disposition::from_number(6), None);
}

#[tokio::test]
async fn directories_and_files() {
    let (bench, tree) = bench().await;
    let of = |path: &str, options: u32| CreateRequest { options, ..wish(path) };
    assert_eq!(refused(&tree, of("dir", options::NON_DIRECTORY_FILE)).await, Refused::IsADirectory);
    assert_eq!(refused(&tree, of("dir\\file", options::DIRECTORY_FILE)).await, Refused::NotADirectory);
    let both = options::DIRECTORY_FILE | options::NON_DIRECTORY_FILE;
    assert_eq!(refused(&tree, of("dir", both)).await, Refused::InvalidParameter);
    for disposition in [Disposition::Supersede, Disposition::Overwrite, Disposition::OverwriteIf] {
        let request = CreateRequest { disposition, ..of("dir", options::DIRECTORY_FILE) };
        assert_eq!(refused(&tree, request).await, Refused::InvalidParameter);
    }
    assert_eq!(refused(&tree, of("dir", options::OPEN_BY_FILE_ID)).await, Refused::NotSupported);
    let temporary = CreateRequest { attributes: attributes::TEMPORARY, ..directory("dir\\new") };
    assert_eq!(refused(&tree, temporary).await, Refused::InvalidParameter);
    let sharing = CreateRequest { sharing: 8, ..wish("dir") };
    assert_eq!(refused(&tree, sharing).await, Refused::InvalidParameter);

    let made = tree.open(directory("dir\\Sub")).await.unwrap();
    assert!(made.action == CreateAction::Created && made.info.is_directory && made.file.is_directory());
    assert_eq!((made.info.attributes, made.info.path.as_str()), (attributes::DIRECTORY, "dir\\Sub"));
    let root = tree.open(wish("")).await.unwrap();
    assert_eq!((root.info.id, root.info.path.as_str()), (bench.generation().await, ""));
    assert_eq!(bench.names("dir").await, ["file", "Sub"]);
    done(&bench, [made.file, root.file]).await;
}

#[tokio::test]
async fn names() {
    let (bench, tree) = bench().await;
    for path in ["a:b", "dir\\file:stream", "a*", "dir/file", "dir\\\\file", "con", "..", "dir\\.", "::$DATA", "a:"] {
        assert_eq!(refused(&tree, created(path)).await, Refused::NameInvalid, "{path}");
    }
    assert_eq!(refused(&tree, wish("\\dir")).await, Refused::InvalidParameter);
    for path in ["none\\file", "dir\\file\\x", "dir\\none\\x"] {
        assert_eq!(refused(&tree, created(path)).await, Refused::PathNotFound, "{path}");
    }
    let stream = open(&tree, wish("dir\\file::$data")).await;
    assert_eq!(stream.query().await.unwrap().path, "dir\\file");
    let dots = open(&tree, created("dots...")).await;
    assert_eq!(dots.query().await.unwrap().path, "dots...");
    let long = "x".repeat(255);
    let long = open(&tree, created(&long)).await;
    assert_eq!(refused(&tree, created(&"x".repeat(256))).await, Refused::NameInvalid);
    done(&bench, [stream, dots, long]).await;
}

#[tokio::test]
async fn access_masks() {
    let (bench, tree) = bench().await;
    assert_eq!(refused(&tree, with("dir\\file", 0, ALL)).await, Refused::AccessDenied);
    assert_eq!(refused(&tree, with("dir\\file", 0x0400_0000, ALL)).await, Refused::AccessDenied);
    for (asked, granted) in [
        (access::GENERIC_READ, 0x12_0089),
        (access::GENERIC_WRITE, 0x12_0116),
        (access::GENERIC_EXECUTE, 0x12_00A0),
        (access::GENERIC_ALL, access::FILE_ALL_ACCESS),
        (access::MAXIMUM_ALLOWED, access::FILE_ALL_ACCESS),
        (READ | DELETE, READ | DELETE),
    ] {
        let file = open(&tree, with("dir\\file", asked, ALL)).await;
        assert_eq!((file.access(), file.query().await.unwrap().access), (granted, granted));
        done(&bench, [file]).await;
    }
}

#[tokio::test]
async fn attributes_of_new_and_overwritten_files() {
    let (bench, tree) = bench().await;
    let new = tree.open(CreateRequest { attributes: attributes::HIDDEN, ..created("new") }).await.unwrap();
    assert_eq!(new.info.attributes, attributes::HIDDEN | attributes::ARCHIVE);
    let overwrite = |given| CreateRequest { attributes: given, disposition: Disposition::Overwrite, ..wish("new") };
    assert_eq!(refused(&tree, overwrite(0)).await, Refused::AccessDenied);
    assert_eq!(refused(&tree, overwrite(attributes::SYSTEM)).await, Refused::AccessDenied);
    let emptied = tree.open(overwrite(attributes::HIDDEN | attributes::SYSTEM)).await.unwrap();
    assert_eq!(emptied.info.attributes, attributes::HIDDEN | attributes::SYSTEM | attributes::ARCHIVE);
    assert_eq!(refused(&tree, overwrite(attributes::HIDDEN)).await, Refused::AccessDenied);
    assert_eq!(header(&bench.file("new").await, "x-ms-file-attributes"), Some("Hidden | System | Archive"));
    assert_eq!(header(&bench.file("new").await, "content-type"), Some("application/octet-stream"));
    done(&bench, [new.file, emptied.file]).await;
}

/// A read-only file is written only through the handle that created it.
#[tokio::test]
async fn read_only_files() {
    let (bench, tree) = bench().await;
    let read_only = CreateRequest { attributes: attributes::READ_ONLY, ..created("ro") };
    let first = open(&tree, read_only).await;
    first.write(0, "bytes".into()).await.unwrap();
    for access in [WRITE, APPEND, access::GENERIC_WRITE, READ | WRITE] {
        assert_eq!(refused(&tree, with("ro", access, ALL)).await, Refused::AccessDenied);
    }
    let overwrite = CreateRequest { disposition: Disposition::OverwriteIf, access: READ, ..wish("ro") };
    assert_eq!(refused(&tree, overwrite).await, Refused::AccessDenied);
    let on_close = CreateRequest { options: options::DELETE_ON_CLOSE, access: DELETE, ..wish("ro") };
    assert_eq!(refused(&tree, on_close.clone()).await, Refused::CannotDelete);
    let new = CreateRequest { path: "new".to_owned(), disposition: Disposition::Create, ..on_close.clone() };
    let new = CreateRequest { attributes: attributes::READ_ONLY, ..new };
    assert_eq!(refused(&tree, new).await, Refused::CannotDelete);
    assert_eq!(first.set_delete_pending(true).await, Err(Refused::CannotDelete));
    let most = open(&tree, with("ro", access::MAXIMUM_ALLOWED, ALL)).await;
    assert_eq!(most.access(), access::FILE_ALL_ACCESS & !(WRITE | APPEND));
    assert_eq!(most.write(0, "x".into()).await, Err(Refused::AccessDenied));
    let normal = BasicInfo { attributes: attributes::NORMAL, ..BasicInfo::default() };
    most.set_basic(normal).await.unwrap();
    assert_eq!(most.query().await.unwrap().attributes, attributes::NORMAL);
    let writer = open(&tree, with("ro", WRITE, ALL)).await;
    done(&bench, [first, most, writer]).await;
}

/// The access of each handle must be in what the other shares, whichever came first.
#[tokio::test]
async fn share_modes() {
    let (bench, tree) = bench().await;
    let bits = |access: u32| match access {
        READ => sharing::READ,
        WRITE | APPEND => sharing::WRITE,
        DELETE => sharing::DELETE,
        _ => 0,
    };
    for access in [READ, WRITE, APPEND, DELETE, LOOK] {
        for shared in 0..=ALL {
            for (second, second_shared) in [(READ, ALL), (WRITE, ALL), (DELETE, ALL), (LOOK, 0), (READ, sharing::READ)]
            {
                let first = open(&tree, with("dir\\file", access, shared)).await;
                let got = tree.open(with("dir\\file", second, second_shared)).await.map(|opened| opened.file);
                let fits = bits(access) & !second_shared == 0 && bits(second) & !shared == 0;
                let fits = fits || bits(access) == 0 || bits(second) == 0;
                assert_eq!(got.is_ok(), fits, "{access:#x} shares {shared}, {second:#x} shares {second_shared}");
                match got {
                    Ok(second) => done(&bench, [first, second]).await,
                    Err(refused) => {
                        assert_eq!(refused, Refused::SharingViolation);
                        done(&bench, [first]).await;
                    }
                }
            }
        }
    }
}

/// Emptying a file is a write, also through a handle that only reads afterwards; the handle keeps no such access.
#[tokio::test]
async fn overwriting_beside_others() {
    let (bench, tree) = bench().await;
    let overwrite = CreateRequest { disposition: Disposition::Overwrite, ..with("dir\\file", READ, ALL) };
    let reader = open(&tree, with("dir\\file", READ, sharing::READ)).await;
    assert_eq!(refused(&tree, overwrite.clone()).await, Refused::SharingViolation);
    assert_eq!(bench.read("dir/file").await, b"0123456789");
    done(&bench, [reader]).await;
    let emptied = open(&tree, overwrite).await;
    let reader = open(&tree, with("dir\\file", READ, sharing::READ)).await;
    done(&bench, [emptied, reader]).await;
}

#[tokio::test]
async fn a_descriptor_for_something_new() {
    let (bench, tree) = bench().await;
    let text = "O:BAG:BAD:P(A;;FA;;;BA)";
    let given = Descriptor::parse_sddl(text).unwrap();
    let of = |path: &str, descriptor: &Descriptor| CreateRequest {
        security: Some(descriptor.encode().unwrap().into()),
        ..created(path)
    };
    let all = security_parts::OWNER | security_parts::GROUP | security_parts::DACL;
    let whole = open(&tree, of("whole", &given)).await;
    assert_eq!(&*whole.security(all).await.unwrap(), given.encode().unwrap());
    let part = Descriptor { owner: None, group: None, ..given.clone() };
    let part = open(&tree, of("part", &part)).await;
    let kept = Descriptor::decode(&part.security(all).await.unwrap()).unwrap();
    assert_eq!((kept.owner, kept.dacl), (root_directory().owner, given.dacl.clone()));
    let none = open(&tree, of("none", &Descriptor { dacl: None, ..given })).await;
    let plain = open(&tree, created("plain")).await;
    assert_eq!(none.security(all).await.unwrap(), plain.security(all).await.unwrap());
    let bad = CreateRequest { security: Some("no descriptor".into()), ..created("bad") };
    assert_eq!(refused(&tree, bad).await, Refused::InvalidSecurityDescriptor);
    done(&bench, [whole, part, none, plain]).await;
}

#[tokio::test]
async fn a_share_that_is_gone() {
    let (bench, tree) = bench().await;
    let (file, dir) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir")).await);
    bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
    for _ in 0..2 {
        assert_eq!(file.read(0, 5).await, Err(Refused::ShareGone));
        assert_eq!(file.write(0, "x".into()).await, Err(Refused::ShareGone));
        assert_eq!(file.write(0, vec![0; 100_000].into()).await, Err(Refused::ShareGone));
        assert_eq!(file.query().await, Err(Refused::ShareGone));
        assert_eq!(file.set_end_of_file(3).await, Err(Refused::ShareGone));
        assert_eq!(file.rename("x", true).await, Err(Refused::ShareGone));
        assert_eq!(dir.list("*", true, 10).await, Err(Refused::ShareGone));
        assert_eq!(refused(&tree, created("x")).await, Refused::ShareGone);
        assert_eq!(tree.space().await, Err(Refused::ShareGone));
        // A share of the same name is another one.
        bench.call("PUT", "share?restype=share", &[], b"").await.ok();
    }
    file.set_delete_pending(true).await.unwrap_err();
    done(&bench, [file, dir]).await;
}

#[tokio::test]
async fn handles_of_one_file_are_limited() {
    let (bench, tree) = bench().await;
    let mut files = Vec::new();
    for _ in 0..crate::opens::OPENS_PER_FILE_MAX {
        files.push(open(&tree, with("dir\\file", READ, ALL)).await);
    }
    assert_eq!(refused(&tree, with("dir\\file", READ, ALL)).await, Refused::TooMany);
    assert_eq!(refused(&tree, with("dir\\file", LOOK, ALL)).await, Refused::TooMany);
    files.pop().unwrap().close().await.unwrap();
    files.push(open(&tree, with("dir\\file", READ, ALL)).await);
    done(&bench, files).await;
}

/// A backslash at the end names a directory, and the unnamed stream is one of files.
#[tokio::test]
async fn paths_that_only_directories_have() {
    let (bench, tree) = bench().await;
    let only_files = |path| CreateRequest { options: options::NON_DIRECTORY_FILE, ..wish(path) };
    for request in [
        wish("dir\\file\\"),
        wish("dir\\::$DATA"),
        only_files("dir\\"),
        created("dir\\new\\"),
        CreateRequest { disposition: Disposition::OverwriteIf, ..wish("dir\\file\\") },
    ] {
        let path = request.path.clone();
        assert_eq!(refused(&tree, request).await, Refused::NameInvalid, "{path}");
    }
    let (dir, new) = (open(&tree, wish("dir\\")).await, open(&tree, directory("dir\\new\\")).await);
    let file = open(&tree, wish("dir\\file::$DATA")).await;
    assert_eq!(file.rename("moved\\", false).await, Err(Refused::NameInvalid));
    new.rename("moved\\", false).await.unwrap();
    assert_eq!(new.query().await.unwrap().path, "moved");
    done(&bench, [dir, new, file]).await;
}
