//! Snapshot Share, and what is done with snapshots: they are read, copied from, compared with, leased, deleted and restored.

use crate::harness::Table;
use crate::signatures;
use crate::stage::{A, B, EVERYTHING, SHARE, Stage, told};

const UNKNOWN: &str = "2020-01-01T00:00:00.0000000Z";
const MISMATCH: &str = "409 FileGenerationMismatch";

fn stage() -> Stage {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "before");
    stage.put_file("share/gone", "gone");
    stage
}

#[track_caller]
pub fn take(stage: &Stage) -> String {
    let taken = stage.call("PUT share?restype=share&comp=snapshot", &[], "").ok();
    taken.header("x-ms-snapshot").expect("a time").to_owned()
}

pub fn at(target: &str, time: &str) -> String {
    format!("{target}{}sharesnapshot={time}", if target.contains('?') { '&' } else { '?' })
}

/// Everything that is done to a file, a directory and the root.
fn change(stage: &Stage) {
    stage.write("share/dir/file", 0, "after!");
    stage.resize("share/dir/file", 100).ok();
    stage.call("PUT share/dir/file?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    stage.delete("share/gone").ok();
    stage.rename_directory("share/dir", "share/moved", &[]).ok();
    stage.put_file("share/new", "new");
    stage.call("PUT share?restype=directory&comp=metadata", &[("x-ms-meta-b", "2")], "").ok();
}

/// All that is told of the share, or of a snapshot.
fn see(stage: &Stage, time: Option<&str>) -> Vec<String> {
    let targets = [
        "share?restype=directory",
        "share/dir?restype=directory",
        "share/dir/file",
        "share/dir/file?comp=rangelist",
        "share/gone",
    ];
    let get = |target: &str| stage.get(&time.map_or_else(|| target.to_owned(), |time| at(target, time)));
    let mut seen: Vec<String> = targets.iter().map(|target| told(&get(target))).collect();
    for path in ["share", "share/dir"] {
        let listing = get(&format!("{path}?restype=directory&comp=list&{EVERYTHING}")).xml();
        assert_eq!(listing.attribute("ShareSnapshot"), time);
        seen.push(format!("{:?}", listing.children));
    }
    seen
}

#[test]
fn it_stays_as_it_was_also_after_a_crash() {
    let mut stage = stage();
    let before = see(&stage, None);
    let time = take(&stage);
    assert!(time.ends_with(".0000000Z"), "{time}");
    change(&stage);
    assert_eq!(see(&stage, Some(&time)), before);
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!(see(&stage, Some(&time)), before);
    assert_eq!(stage.read("share/moved/file")[..6], *b"after!");
    let later = take(&stage);
    assert!(later > time);
    let missing = stage.get(&at("share/dir/file", &later)).said();
    assert_eq!(missing, "404 ParentNotFound");
    stage.delete(&at(SHARE, &later)).ok();
    assert_eq!(see(&stage, Some(&time)), before);
}

#[test]
fn snapshots_in_one_second_have_times_of_their_own() {
    let stage = stage();
    let times: Vec<String> = (0..5).map(|_| take(&stage)).collect();
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    stage.delete(&at(SHARE, &times[4])).ok();
    assert!(take(&stage) > times[4], "a time is never used again");
    let listed = stage.get("?comp=list&include=snapshots").ok().xml();
    let told: Vec<String> = listed.all("Shares").iter().filter_map(|share| share.text_of("Snapshot")).collect();
    assert_eq!(told[..4], times[..4]);
    assert_eq!(listed.all("Shares").len(), 6, "and the share itself");
}

#[test]
fn what_is_refused() {
    let stage = stage();
    let time = take(&stage);
    let mut table = Table::new("snapshot_share: refusals");
    let write = "400 InvalidQueryParameterValue";
    let snapshot = at(SHARE, &time);
    let include = ("x-ms-delete-snapshots", "include");
    let unknown = at(SHARE, UNKNOWN);
    for (name, line, headers, expected) in [
        ("no such share", "PUT none?restype=share&comp=snapshot", &[][..], "404 ShareNotFound"),
        ("of a snapshot", &*format!("PUT {}", at("share?restype=share&comp=snapshot", &time)), &[], write),
        (
            "with a condition",
            "PUT share?restype=share&comp=snapshot",
            &[("if-match", "*")],
            "400 ConditionHeadersNotSupported",
        ),
        (
            "with a lease that is not there",
            "PUT share?restype=share&comp=snapshot",
            &[("x-ms-lease-id", A)],
            "412 LeaseNotPresentWithContainerOperation",
        ),
        ("the share alone", "DELETE share?restype=share", &[], "409 ShareHasSnapshots"),
        ("one and all", &*format!("DELETE {snapshot}"), &[include], "400 InvalidHeaderValue"),
        ("one that is not there", &*format!("DELETE {unknown}"), &[], "404 ShareNotFound"),
        ("the properties of one that is not there", &*format!("GET {unknown}"), &[], "404 ShareNotFound"),
        ("no time", "GET share/gone?sharesnapshot=now", &[], write),
        ("both are wrong", &*format!("GET {}", at("share/none/file", UNKNOWN)), &[], "404 ShareNotFound"),
        ("a path that is not there", &*format!("GET {}", at("share/none/file", &time)), &[], "404 ParentNotFound"),
        ("a write", &*format!("PUT {}", at("share/gone?comp=metadata", &time)), &[], write),
        ("a delete", &*format!("DELETE {}", at("share/gone", &time)), &[], write),
        ("stats", &*format!("GET {}", at("share?restype=share&comp=stats", &time)), &[], write),
    ] {
        table.row(name, stage.call(line, headers, "").said(), expected);
    }
    drop(table);
    assert_eq!(stage.read(&at("share/gone", &time)), b"gone");
}

#[test]
fn leases_of_snapshots() {
    let stage = stage();
    let time = take(&stage);
    let snapshot = at(SHARE, &time);
    stage.acquire(&snapshot, A, "-1");
    assert_eq!((stage.lease_state(&snapshot).as_str(), stage.lease_state(SHARE).as_str()), ("leased", "available"));
    let mut table = Table::new("snapshot_share: leases");
    let delete = |target: &str, headers| stage.call(&format!("DELETE {target}"), headers, "").said();
    table.row("no id", delete(&snapshot, &[]), "412 LeaseIdMissing");
    table.row("another id", delete(&snapshot, &[("x-ms-lease-id", B)]), "412 LeaseIdMismatchWithContainerOperation");
    table.row(
        "with the share",
        delete(SHARE, &[("x-ms-delete-snapshots", "include")]),
        "409 DeleteShareWhenSnapshotLeased",
    );
    table.row("its holder", delete(&snapshot, &[("x-ms-lease-id", A)]), "202");
    let other = at(SHARE, &take(&stage));
    stage.acquire(&other, A, "-1");
    table.row("leased ones, too", delete(SHARE, &[("x-ms-delete-snapshots", "include-leased")]), "202");
    table.row("all are gone", stage.get(&other).said(), "404 ShareNotFound");
}

/// A signature of a share, or of a file in it, reads its snapshots, too.
#[test]
fn signatures() {
    let stage = stage();
    let time = take(&stage);
    change(&stage);
    let mut table = Table::new("snapshot_share: signatures");
    let client = &stage.client;
    let file = format!("GET {}", at("share/dir/file", &time));
    let list = format!("GET {}", at("share?restype=directory&comp=list", &time));
    let delete = format!("DELETE {}", at(SHARE, &time));
    for (name, signature, line, expected) in [
        ("share, r", signatures::for_path(client, "share", "r"), &file, "200"),
        ("share, w", signatures::for_path(client, "share", "w"), &file, "403 AuthorizationPermissionMismatch"),
        ("share, l", signatures::for_path(client, "share", "l"), &list, "200"),
        ("file, r", signatures::for_path(client, "share/dir/file", "r"), &file, "200"),
        ("account, r", signatures::for_account(client, "r", "o"), &file, "200"),
        ("share, d", signatures::for_path(client, "share", "d"), &delete, "403 AuthorizationPermissionMismatch"),
        ("account, d", signatures::for_account(client, "d", "c"), &delete, "202"),
    ] {
        let said = signatures::ask(client, line, &signature, &[], "").said();
        // Which of the codes an operation has that no such signature reaches is told elsewhere.
        let (said, expected) = if name == "share, d" { (said[..3].to_owned(), "403") } else { (said, expected) };
        table.row(name, said, expected);
    }
}

#[test]
fn copies_and_comparisons() {
    let stage = stage();
    stage.make_file("share/disk", 10_000);
    stage.write("share/disk", 0, vec![1; 2_000]);
    let time = take(&stage);
    stage.write("share/disk", 5_000, "x");
    stage.clear("share/disk", 0, 511).ok();
    let source = stage.client.url(&at("share/disk", &time));
    stage.call("PUT share/copy", &[("x-ms-copy-source", &source)], "").ok();
    assert_eq!(stage.read("share/copy"), stage.read(&at("share/disk", &time)));
    let since = |path: &str, headers| {
        let answer = stage.call(&format!("GET {path}?comp=rangelist&prevsharesnapshot={time}"), headers, "");
        if !answer.is_success() {
            return answer.said();
        }
        let ranges = answer.xml();
        let told = ranges.children.iter().map(|range| {
            let number = |name| range.text_of(name).expect("a number");
            format!("{}:{}-{}", range.name, number("Start"), number("End"))
        });
        told.collect::<Vec<_>>().join(" ")
    };
    let mut table = Table::new("snapshot_share: comparisons");
    let changed = "ClearRange:0-511 Range:4608-5119";
    table.row("changed", since("share/disk", &[]), changed);
    table.row("not there before", since("share/copy", &[]), "404 ResourceNotFound");
    stage.rename_file("share/disk", "share/renamed", &[]).ok();
    table.row("renamed", since("share/renamed", &[]), MISMATCH);
    let supported: &[(&str, &str)] = &[("x-ms-file-support-rename", "true")];
    table.row("renamed, which is told", since("share/renamed", supported), changed);
    stage.make_file("share/renamed", 10);
    table.row("replaced", since("share/renamed", supported), MISMATCH);
    stage.make_file("share/gone", 10);
    table.row("made anew", since("share/gone", &[]), MISMATCH);
}

#[test]
fn a_share_comes_back_with_its_snapshots() {
    let stage = stage();
    stage.keep_deleted(7);
    let before = see(&stage, None);
    let time = take(&stage);
    change(&stage);
    let deleted = stage.call("DELETE share?restype=share", &[("x-ms-delete-snapshots", "include")], "").ok();
    assert_eq!(deleted.header("x-ms-file-share-usage-bytes"), Some("103"));
    assert_eq!(deleted.header("x-ms-file-share-snapshot-usage-bytes"), Some("10"));
    let listed = stage.get("?comp=list&include=deleted,snapshots").ok().xml();
    assert_eq!(listed.all("Shares").len(), 1);
    let version = listed.all("Shares")[0].text_of("Version").expect("a version");
    let headers = [("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", version.as_str())];
    stage.call("PUT share?restype=share&comp=undelete", &headers, "").ok();
    assert_eq!(see(&stage, Some(&time)), before);
}
