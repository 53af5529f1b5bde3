//! Owner, group and mode: what files and directories have in a share that is mounted over NFS.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{EVERYTHING, FILE, LENGTH, Stage};

const OWNER: &str = "x-ms-owner";
const GROUP: &str = "x-ms-group";
const MODE: &str = "x-ms-mode";

/// A server with the share `nfs`, and with the share `share`, which is mounted over SMB.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.call("PUT nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], "").ok();
    stage
}

/// `345 123 0644 Regular 1`: owner, group, mode, type and the number of names.
fn shown(answer: &Answer) -> String {
    let names = [OWNER, GROUP, MODE, "x-ms-file-file-type", "x-ms-link-count"];
    names.iter().filter_map(|name| answer.header(name)).collect::<Vec<_>>().join(" ")
}

/// How a file and a directory are created, set and asked for.
#[rustfmt::skip]
const KINDS: [(&str, &str, &str, &str, Headers<'static>); 2] = [
    ("file",      "PUT nfs/thing",                   "PUT nfs/thing?comp=properties",                   "nfs/thing",                   &[FILE, (LENGTH, "3")]),
    ("directory", "PUT nfs/thing?restype=directory", "PUT nfs/thing?restype=directory&comp=properties", "nfs/thing?restype=directory", &[]),
];

#[test]
fn created_set_and_shown() {
    let stage = stage();
    let mut table = Table::new("nfs_properties: created, set and shown");
    for (kind, create, set, target, common) in KINDS {
        let (usual, end) = if kind == "file" { ("0664", " Regular 1") } else { ("0755", " Directory") };
        let mut row = |what: &str, answer: &Answer, expected: &str| {
            let expected = format!("{expected}{end}");
            table.row(format!("{kind}, {what}"), shown(answer), &expected);
            table.row(format!("{kind}, {what}, asked"), shown(&stage.head(target).ok()), &expected);
        };
        row("nothing said", &stage.call(create, common, "").ok(), &format!("0 0 {usual}"));
        stage.delete(target).ok();
        let all = [(OWNER, "345"), (GROUP, "123"), (MODE, "7777")];
        row("all said", &stage.call(create, &[common, &all].concat(), "").ok(), "345 123 7777");
        row("nothing set", &stage.call(set, &[], "").ok(), "345 123 7777");
        row("a mode set", &stage.call(set, &[(MODE, "rw-r--r--")], "").ok(), "345 123 0644");
        row("an owner set", &stage.call(set, &[(OWNER, "0")], "").ok(), "0 123 0644");
        row("a group set", &stage.call(set, &[(GROUP, "4294967295")], "").ok(), "0 4294967295 0644");
        let answers = [stage.call(set, &[], "").ok(), stage.head(target).ok(), stage.get(target).ok()];
        for name in ["x-ms-file-attributes", "x-ms-file-permission-key"] {
            for answer in &answers {
                table.row(format!("{kind}, {name}"), answer.header(name).unwrap_or("none"), "none");
            }
        }
        stage.delete(target).ok();
    }
    let listed = {
        stage.call("PUT nfs/file", &[FILE, (LENGTH, "3")], "").ok();
        stage.list("nfs", EVERYTHING)
    };
    for (element, is_there) in [("Attributes", false), ("PermissionKey", false), ("Properties/CreationTime", true)] {
        table.row(format!("{element} in a listing"), listed[0].text_of(element).is_some(), is_there);
    }
    table.row("the root", shown(&stage.head("nfs?restype=directory").ok()), "0 0 0755 Directory");
}

/// What is renamed keeps them, what is made anew does not, and a kill changes nothing.
#[test]
fn what_keeps_them() {
    let mut stage = stage();
    let mut table = Table::new("nfs_properties: what keeps them");
    let all = [(OWNER, "345"), (GROUP, "123"), (MODE, "0640")];
    stage.create_file("nfs/file", 3, &all).ok();
    table.row("renamed", shown(&stage.rename_file("nfs/file", "nfs/other", &[]).ok()), "345 123 0640 Regular 1");
    stage.write("nfs/other", 0, "new");
    stage.call("PUT nfs/other?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    table.row("written and killed", shown(&stage.get("nfs/other").ok()), "345 123 0640 Regular 1");
    table.row("created again", shown(&stage.create_file("nfs/other", 3, &[]).ok()), "0 0 0664 Regular 1");
    // An attribute that NFS does not know makes nothing read-only.
    stage.create_file("nfs/other", 3, &[("x-ms-file-attributes", "ReadOnly")]).ok();
    table.row("read-only", stage.put_range("nfs/other", 0, "new", &[]).said(), "201");
}

#[test]
fn what_is_refused_changes_nothing() {
    let stage = stage();
    stage.put_file("share/file", "content");
    stage.make_directory("share/dir");
    let before = stage.everything();
    let mut table = Table::new("nfs_properties: refused");
    let lines = [
        "PUT share/new",
        "PUT share/file",
        "PUT share/file?comp=properties",
        "PUT share/new?restype=directory",
        "PUT share/dir?restype=directory&comp=properties",
    ];
    // Shares that are mounted over SMB have none of them.
    for line in lines {
        for header in [(OWNER, "0"), (GROUP, "0"), (MODE, "0644")] {
            let answer = stage.call(line, &[FILE, (LENGTH, "7"), header], "");
            table.row(format!("{line}, {}", header.0), answer.said(), "400 InvalidHeaderValue");
        }
    }
    for line in lines {
        for header in [
            (OWNER, "root"),
            (OWNER, "-1"),
            (GROUP, "4294967296"),
            (MODE, "0888"),
            (MODE, "rw-r--r-"),
            ("x-ms-file-file-type", "SymLink"),
        ] {
            if header.0 == "x-ms-file-file-type" && line.contains('?') {
                continue;
            }
            let answer = stage.call(&line.replace("share/", "nfs/"), &[FILE, (LENGTH, "7"), header], "");
            table.row(format!("{line}, {header:?}"), answer.said(), "400 InvalidHeaderValue");
        }
    }
    assert_eq!(shown(&stage.head("share/file").ok()), "");
    assert_eq!((stage.everything(), stage.names("nfs")), (before, String::new()));
}
