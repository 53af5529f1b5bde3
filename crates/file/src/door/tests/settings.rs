use super::*;
use crate::security::Descriptor;
use crate::testing::{NOW, header};
use concurrency::Timestamp;

#[test]
fn times_of_smb() {
    assert_eq!(TimeChange::from_filetime(0), Some(TimeChange::Keep));
    assert_eq!(TimeChange::from_filetime(-1), Some(TimeChange::Freeze));
    assert_eq!(TimeChange::from_filetime(-2), Some(TimeChange::Thaw));
    assert_eq!((TimeChange::from_filetime(-3), TimeChange::from_filetime(i64::MIN)), (None, None));
    // 1970 by both.
    let epoch = 116_444_736_000_000_000;
    assert_eq!(TimeChange::from_filetime(epoch), Some(TimeChange::At(Timestamp::UNIX_EPOCH)));
    assert_eq!(filetime(Timestamp::UNIX_EPOCH), epoch as u64);
    assert_eq!(filetime(Timestamp(0)), 0);
}

#[tokio::test]
async fn basic_information() {
    let (bench, tree) = bench().await;
    for path in ["dir\\file", "dir", ""] {
        let file = open(&tree, wish(path)).await;
        let before = file.query().await.unwrap();
        bench.advance(5).await;
        let at = |seconds| TimeChange::At(NOW.plus_seconds(seconds));
        let set = BasicInfo { created: at(1), accessed: at(2), written: at(3), changed: at(4), ..BasicInfo::default() };
        file.set_basic(set).await.unwrap();
        let info = file.query().await.unwrap();
        let times = [info.created, info.accessed, info.written, info.changed];
        assert_eq!(times, [1, 2, 3, 4].map(|seconds| NOW.plus_seconds(seconds)), "{path}");
        assert_eq!(info.attributes, before.attributes);
        let hidden = BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() };
        file.set_basic(hidden).await.unwrap();
        let kind = before.attributes & attributes::DIRECTORY;
        assert_eq!(file.query().await.unwrap().attributes, attributes::HIDDEN | kind);
        file.set_basic(BasicInfo { attributes: attributes::NORMAL, ..BasicInfo::default() }).await.unwrap();
        assert_eq!(file.query().await.unwrap().attributes, if kind == 0 { attributes::NORMAL } else { kind });
        done(&bench, [file]).await;
    }
    let told = bench.file("dir/file").await;
    assert_eq!(header(&told, "x-ms-file-attributes"), Some("None"));
    let (file, dir) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir")).await);
    let of = |attributes| BasicInfo { attributes, ..BasicInfo::default() };
    assert_eq!(file.set_basic(of(attributes::DIRECTORY)).await, Err(Refused::InvalidParameter));
    assert_eq!(dir.set_basic(of(attributes::TEMPORARY)).await, Err(Refused::InvalidParameter));
    let reader = open(&tree, with("dir\\file", READ, ALL)).await;
    assert_eq!(reader.set_basic(of(attributes::HIDDEN)).await, Err(Refused::AccessDenied));
    done(&bench, [file, dir, reader]).await;
}

/// A time that a client has set or stopped stays, whatever is written through its handle.
#[tokio::test]
async fn times_that_stand_still() {
    let (bench, tree) = bench().await;
    let file = open(&tree, wish("dir\\file")).await;
    let times = async || {
        let info = file.query().await.unwrap();
        (info.written, info.changed)
    };
    for stop in [TimeChange::Freeze, TimeChange::At(NOW)] {
        file.set_basic(BasicInfo { written: stop, changed: stop, ..BasicInfo::default() }).await.unwrap();
        let before = times().await;
        bench.advance(1).await;
        file.write(0, "x".into()).await.unwrap();
        file.set_end_of_file(20).await.unwrap();
        file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }).await.unwrap();
        let descriptor = Descriptor::parse_sddl("O:BUG:BUD:P(A;;FA;;;BU)").unwrap().encode().unwrap();
        file.set_security(security_parts::DACL, &descriptor).await.unwrap();
        file.rename("dir\\moved", false).await.unwrap();
        assert_eq!(times().await, before);
        file.rename("dir\\file", false).await.unwrap();
        file.set_basic(BasicInfo { written: TimeChange::Thaw, changed: TimeChange::Thaw, ..BasicInfo::default() })
            .await
            .unwrap();
        file.write(0, "y".into()).await.unwrap();
        let after = times().await;
        assert!(after.0 > before.0 && after.1 > before.1);
        file.set_end_of_file(10).await.unwrap();
    }
    done(&bench, [file]).await;
}

#[tokio::test]
async fn descriptors() {
    let (bench, tree) = bench().await;
    let (owner, dacl) = (security_parts::OWNER | security_parts::GROUP, security_parts::DACL);
    let all = access::FILE_ALL_ACCESS | access::ACCESS_SYSTEM_SECURITY;
    for path in ["dir\\file", "dir"] {
        let file = open(&tree, with(path, all, ALL)).await;
        let before = Descriptor::decode(&file.security(owner | dacl).await.unwrap()).unwrap();
        assert!(before.owner.is_some() && before.group.is_some() && before.dacl.is_some());
        let only = Descriptor::decode(&file.security(security_parts::DACL).await.unwrap()).unwrap();
        assert_eq!((only.owner, only.dacl), (None, before.dacl.clone()));
        let given = Descriptor::parse_sddl("O:BUG:BUD:P(A;;FA;;;BU)").unwrap();
        file.set_security(dacl, &given.encode().unwrap()).await.unwrap();
        let now = Descriptor::decode(&file.security(owner | dacl).await.unwrap()).unwrap();
        assert_eq!((&now.owner, &now.dacl), (&before.owner, &given.dacl));
        file.set_security(owner, &given.encode().unwrap()).await.unwrap();
        let now = Descriptor::decode(&file.security(owner | dacl | security_parts::SACL).await.unwrap()).unwrap();
        assert_eq!(now, given);
        assert_eq!(file.set_security(dacl, b"nothing").await, Err(Refused::InvalidSecurityDescriptor));
        let no_owner = Descriptor { owner: None, ..given };
        let no_owner = file.set_security(owner, &no_owner.encode().unwrap()).await;
        assert_eq!(no_owner, Err(Refused::InvalidSecurityDescriptor));
        done(&bench, [file]).await;
    }
    let key = header(&bench.file("dir/file").await, "x-ms-file-permission-key").unwrap().to_owned();
    let headers = [("x-ms-file-permission-key", key.as_str())];
    let shown = bench.call("GET", "share?restype=share&comp=filepermission", &headers, b"").await.unwrap();
    assert!(crate::testing::text(shown).await.contains("O:BUG:BUD:P(A;;FA;;;BU)"));
    let file = open(&tree, with("dir\\file", READ, ALL)).await;
    let descriptor = Descriptor::parse_sddl("O:BUG:BUD:(A;;FA;;;BU)").unwrap().encode().unwrap();
    assert_eq!(file.security(dacl).await, Err(Refused::AccessDenied));
    for parts in [security_parts::OWNER, security_parts::GROUP, dacl, security_parts::SACL] {
        assert_eq!(file.set_security(parts, &descriptor).await, Err(Refused::AccessDenied));
    }
    let full = open(&tree, wish("dir\\file")).await;
    assert_eq!(full.security(security_parts::SACL).await, Err(Refused::AccessDenied));
    done(&bench, [file, full]).await;
}
