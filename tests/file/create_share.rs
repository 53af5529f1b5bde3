//! Create Share, and what Get Share Properties shows of it.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

#[test]
fn names() {
    let stage = Stage::new();
    let mut table = Table::new("create_share: names");
    let longest = "s".repeat(63);
    for (name, expected) in [
        ("abc", "201"),
        ("a-1", "201"),
        ("1-2-3", "201"),
        (&*longest, "201"),
        ("share", "409 ShareAlreadyExists"),
        ("ab", "400 OutOfRangeInput"),
        (&format!("{longest}s"), "400 OutOfRangeInput"),
        ("Abc", "400 InvalidResourceName"),
        ("a--b", "400 InvalidResourceName"),
        ("-ab", "400 InvalidResourceName"),
        ("ab-", "400 InvalidResourceName"),
        ("a_b", "400 InvalidResourceName"),
        ("a.b", "400 InvalidResourceName"),
        ("%C3%A4bc", "400 InvalidResourceName"),
        ("a%20b", "400 InvalidResourceName"),
    ] {
        table.row(name, stage.call(&format!("PUT {name}?restype=share"), &[], "").said(), expected);
    }
}

/// What is sent, and what is shown of it.
type Row<'a> = (&'a str, Headers<'a>, &'a str, &'a [(&'a str, Option<&'a str>)]);

#[test]
fn what_is_set_is_shown() {
    let stage = Stage::new();
    let mut table = Table::new("create_share: settings");
    #[rustfmt::skip]
    let rows: &[Row<'_>] = &[
        ("nothing",        &[],                                  "201", &[
            ("x-ms-share-quota", Some("5120")), ("x-ms-lease-status", Some("unlocked")), ("x-ms-lease-state", Some("available")),
            ("x-ms-lease-duration", None), ("x-ms-enabled-protocols", Some("SMB")), ("x-ms-root-squash", None),
            ("x-ms-access-tier", Some("TransactionOptimized"))]),
        ("metadata",       &[("x-ms-meta-Some_Name", "a value"), ("x-ms-meta-b", "2")], "201", &[
            ("x-ms-meta-some_name", Some("a value")), ("x-ms-meta-b", Some("2"))]),
        ("a quota",        &[("x-ms-share-quota", "1")],          "201", &[("x-ms-share-quota", Some("1"))]),
        ("5 TiB",          &[("x-ms-share-quota", "5120")],       "201", &[("x-ms-share-quota", Some("5120"))]),
        ("100 TiB",        &[("x-ms-share-quota", "102400")],     "201", &[("x-ms-share-quota", Some("102400"))]),
        ("a tier",         &[("x-ms-access-tier", "Hot")],        "201", &[("x-ms-access-tier", Some("Hot"))]),
        ("another tier",   &[("x-ms-access-tier", "Cool")],       "201", &[("x-ms-access-tier", Some("Cool"))]),
        ("SMB",            &[("x-ms-enabled-protocols", "SMB")],  "201", &[("x-ms-enabled-protocols", Some("SMB"))]),
        ("NFS",            &[("x-ms-enabled-protocols", "NFS")],  "201", &[
            ("x-ms-enabled-protocols", Some("NFS")), ("x-ms-root-squash", Some("NoRootSquash"))]),
        ("NFS, squashed",  &[("x-ms-enabled-protocols", "NFS"), ("x-ms-root-squash", "AllSquash")], "201", &[
            ("x-ms-root-squash", Some("AllSquash"))]),
        ("no quota",       &[("x-ms-share-quota", "0")],          "400 InvalidHeaderValue", &[]),
        ("less than that", &[("x-ms-share-quota", "-1")],         "400 InvalidHeaderValue", &[]),
        ("over 100 TiB",   &[("x-ms-share-quota", "102401")],     "400 InvalidHeaderValue", &[]),
        ("2^64 GiB",       &[("x-ms-share-quota", "18446744073709551616")], "400 InvalidHeaderValue", &[]),
        ("no number",      &[("x-ms-share-quota", "x")],          "400 InvalidHeaderValue", &[]),
        ("half a GiB",     &[("x-ms-share-quota", "0.5")],        "400 InvalidHeaderValue", &[]),
        ("no tier",        &[("x-ms-access-tier", "Lukewarm")],   "400 InvalidHeaderValue", &[]),
        ("no protocol",    &[("x-ms-enabled-protocols", "FTP")],  "400 InvalidHeaderValue", &[]),
        ("no squash",      &[("x-ms-enabled-protocols", "NFS"), ("x-ms-root-squash", "Some")], "400 InvalidHeaderValue", &[]),
        ("bad metadata",   &[("x-ms-meta-a-b", "1")],             "400 InvalidMetadata", &[]),
        ("empty name",     &[("x-ms-meta-", "1")],                "400 EmptyMetadataKey", &[]),
    ];
    for (number, (row, headers, expected, shown)) in rows.iter().enumerate() {
        let target = format!("made-{number}?restype=share");
        let made = stage.call(&format!("PUT {target}"), headers, "");
        table.row(row, made.said(), expected);
        if !made.is_success() {
            assert_eq!(stage.head(&target).said(), "404 ShareNotFound", "{row}");
            continue;
        }
        for verb in ["GET", "HEAD"] {
            let answer = stage.call(&format!("{verb} {target}"), &[], "").ok();
            for (name, value) in *shown {
                let (got, value) = (format!("{:?}", answer.header(name)), format!("{value:?}"));
                table.row(format!("{row}, {verb}: {name}"), got, value);
            }
        }
    }
}

/// A share is not made again: it stays as it is.
#[test]
fn again() {
    let stage = Stage::new();
    stage.call("PUT other?restype=share", &[("x-ms-meta-a", "1"), ("x-ms-share-quota", "7")], "").ok();
    stage.put_file("other/file", "kept");
    let before = stage.head("other?restype=share");
    for headers in [&[][..], &[("x-ms-meta-a", "1"), ("x-ms-share-quota", "7")]] {
        assert_eq!(stage.call("PUT other?restype=share", headers, "").said(), "409 ShareAlreadyExists");
    }
    let after = stage.head("other?restype=share");
    assert_eq!((before.etag(), before.header("x-ms-share-quota")), (after.etag(), after.header("x-ms-share-quota")));
    assert_eq!(stage.read("other/file"), b"kept");
}

/// The root is a directory from the beginning: empty, with the id 0 and its properties.
#[test]
fn a_new_share_has_an_empty_root() {
    let stage = Stage::new();
    let root = stage.head("share?restype=directory").ok();
    assert_eq!(root.header("x-ms-file-id"), Some("0"));
    assert_eq!(root.header("x-ms-file-attributes"), Some("Directory"));
    for name in
        ["etag", "last-modified", "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time"]
    {
        assert!(root.header(name).is_some(), "{name}");
    }
    assert!(root.header("x-ms-file-permission-key").is_some_and(|key| key.contains('*')), "{root:?}");
    assert_eq!((stage.names("share"), stage.usage("share")), (String::new(), 0));
}
