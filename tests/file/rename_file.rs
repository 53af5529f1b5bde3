//! Rename File, and what may be replaced.

use crate::harness::{Headers, Table};
use crate::stage::{A, B, SOURCE, Stage, TIB, pattern};

const REPLACE: (&str, &str) = ("x-ms-file-rename-replace-if-exists", "true");
const IGNORE: (&str, &str) = ("x-ms-file-rename-ignore-readonly", "true");

/// Id, creation and last write stay; change time, ETag and Last-Modified are those of the rename.
#[test]
fn what_goes_along_and_what_changes() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let headers = [
        ("x-ms-meta-a", "1"),
        ("x-ms-content-type", "text/plain"),
        ("x-ms-cache-control", "no-store"),
        ("x-ms-file-attributes", "Hidden"),
    ];
    stage.create_file("share/from", 5_000, &headers).ok();
    stage.write("share/from", 1_000, pattern(1, 2_000));
    let before = stage.head("share/from").ok();
    let (content, ranges) = (stage.read("share/from"), stage.ranges("share/from"));
    stage.server.advance(2);
    let answer = stage.rename_file("share/from", "share/dir/To", &[]).ok();
    assert_eq!(answer.status, 200);
    let after = stage.head("share/dir/to").ok();
    let mut table = Table::new("rename_file: effects");
    #[rustfmt::skip]
    let expected = [
        ("etag", "new"), ("last-modified", "new"), ("x-ms-file-change-time", "new"), ("x-ms-file-creation-time", "same"),
        ("x-ms-file-last-write-time", "same"), ("x-ms-file-id", "same"), ("x-ms-file-parent-id", "new"), ("x-ms-file-attributes", "same"),
        ("x-ms-file-permission-key", "same"), ("x-ms-meta-a", "same"), ("content-type", "same"), ("cache-control", "same"), ("content-length", "same"),
    ];
    for (header, expected) in expected {
        let change = if before.header(header) == after.header(header) { "same" } else { "new" };
        table.row(header, change, expected);
        if header.starts_with("x-ms-file-") || matches!(header, "etag" | "last-modified") {
            let (told, now) = (format!("{:?}", answer.header(header)), format!("{:?}", after.header(header)));
            table.row(format!("{header} told"), told, now);
        }
    }
    table.row("content", stage.read("share/dir/to") == content, true);
    table.row("ranges", stage.ranges("share/dir/to"), ranges);
    table.row("not here", stage.head("share/from").said(), "404 ResourceNotFound");
    table.row("as it was spelt", stage.names("share/dir"), "To");
    table.row("usage", stage.usage("share"), 5_000);
    // What is sent along is set.
    let more = [
        ("x-ms-content-type", "a/b"),
        ("x-ms-meta-b", "2"),
        ("x-ms-file-attributes", "Archive"),
        ("x-ms-file-last-write-time", "2020-01-01T00:00:00.0000000Z"),
    ];
    stage.rename_file("share/dir/to", "share/third", &more).ok();
    let after = stage.head("share/third").ok();
    let shown = ["content-type", "x-ms-meta-b", "x-ms-file-attributes", "x-ms-file-last-write-time"];
    table.row(
        "set",
        shown.map(|name| after.header(name).unwrap_or("none").to_owned()).join(" "),
        "a/b 2 Archive 2020-01-01T00:00:00.0000000Z",
    );
    table.row("metadata is replaced", after.header("x-ms-meta-a").unwrap_or("none"), "none");
}

/// Where it can go and where not. A file takes the place of a file if that is asked for, never of a directory.
#[test]
fn targets() {
    let mut table = Table::new("rename_file: targets");
    #[rustfmt::skip]
    let rows: &[(&str, &str, &str, Headers<'_>, &str)] = &[
        ("a free name",            "share/from",    "share/to",        &[],        "200"),
        ("into a directory",       "share/from",    "share/dir/to",    &[],        "200"),
        ("another case of its own", "share/from",   "share/FROM",      &[],        "200"),
        ("itself, replace",        "share/from",    "share/from",      &[REPLACE], "any"),
        ("itself",                 "share/from",    "share/from",      &[],        "any"),
        ("a file",                 "share/from",    "share/file",      &[],        "409 ResourceAlreadyExists"),
        ("a file, in another case", "share/from",   "share/FILE",      &[],        "409 ResourceAlreadyExists"),
        ("a file, not replaced",   "share/from",    "share/file",      &[("x-ms-file-rename-replace-if-exists", "false")], "409 ResourceAlreadyExists"),
        ("a file, replace",        "share/from",    "share/file",      &[REPLACE], "200"),
        ("a file, replace, case",  "share/from",    "share/FILE",      &[REPLACE], "200"),
        ("a directory",            "share/from",    "share/dir",       &[],        "409 ResourceAlreadyExists"),
        ("a directory, replace",   "share/from",    "share/dir",       &[REPLACE], "4"),
        ("no parent",              "share/from",    "share/none/to",   &[],        "404 ParentNotFound"),
        ("below a file",           "share/from",    "share/file/to",   &[],        "4"),
        ("below itself",           "share/from",    "share/from/to",   &[],        "4"),
        ("no source",              "share/none",    "share/to",        &[],        "404 ResourceNotFound"),
        ("no parent of a source",  "share/none/a",  "share/to",        &[],        "404"),
        ("a directory as a source", "share/dir",    "share/to",        &[],        "4"),
        ("another share",          "share/from",    "other/to",        &[],        "400"),
        ("no share",               "share/from",    "none/to",         &[],        "4"),
    ];
    for (row, from, to, headers, expected) in rows {
        let stage = Stage::new();
        stage.make_share("other");
        stage.put_file("share/from", "the source");
        stage.put_file("share/file", "the file");
        stage.make_directory("share/dir");
        let before = stage.everything();
        let id = stage.head("share/from").header("x-ms-file-id").map(str::to_owned);
        let answer = stage.rename_file(from, to, headers);
        match *expected {
            "any" => table.row(row, answer.status < 500, true),
            "4" => table.row(row, answer.status / 100, 4),
            "400" | "404" => table.row(row, answer.status, expected),
            _ => table.row(row, answer.said(), expected),
        }
        if answer.is_success() {
            table.row(format!("{row}: content"), String::from_utf8_lossy(&stage.read(to)), "the source");
            table.row(format!("{row}: id"), stage.head(to).header("x-ms-file-id").map(str::to_owned) == id, true);
            let left = 18 - if headers.contains(&REPLACE) && !to.ends_with("from") { 8 } else { 0 };
            table.row(format!("{row}: usage"), stage.usage("share"), left);
        } else {
            table.row(format!("{row}: nothing changed"), stage.everything() == before, true);
            table.row(format!("{row}: the source"), String::from_utf8_lossy(&stage.read("share/from")), "the source");
        }
    }
}

/// Leases of both ends, each with its own header, and the attribute of the target.
#[test]
fn what_protects_both_ends() {
    let stage = Stage::new();
    let mut table = Table::new("rename_file: protection");
    #[rustfmt::skip]
    let rows: &[(&str, &str, &str, Headers<'_>, &str)] = &[
        // what                        source   target      headers                                                  answer
        ("nothing",                    "free",   "free",     &[],                                                     "200"),
        ("source leased",              "leased", "none",     &[],                                                     "412 LeaseIdMissing"),
        ("source leased, right",       "leased", "none",     &[("x-ms-source-lease-id", A)],                          "200"),
        ("source leased, wrong",       "leased", "none",     &[("x-ms-source-lease-id", B)],                          "412 LeaseIdMismatchWithFileOperation"),
        ("source leased, other header", "leased", "none",    &[("x-ms-destination-lease-id", A)],                     "412"),
        ("source free, an id",         "free",   "none",     &[("x-ms-source-lease-id", A)],                          "412 LeaseNotPresentWithFileOperation"),
        ("source broken",              "broken", "none",     &[],                                                     "200"),
        ("source broken, its id",      "broken", "none",     &[("x-ms-source-lease-id", A)],                          "412"),
        ("target leased",              "free",   "leased",   &[],                                                     "412 LeaseIdMissing"),
        ("target leased, right",       "free",   "leased",   &[("x-ms-destination-lease-id", A)],                     "200"),
        ("target leased, wrong",       "free",   "leased",   &[("x-ms-destination-lease-id", B)],                     "412 LeaseIdMismatchWithFileOperation"),
        ("target broken",              "free",   "broken",   &[],                                                     "200"),
        ("both leased, one id",        "leased", "leased",   &[("x-ms-source-lease-id", A)],                          "412 LeaseIdMissing"),
        ("both leased, both ids",      "leased", "leased",   &[("x-ms-source-lease-id", A), ("x-ms-destination-lease-id", A)], "200"),
        ("target read-only",           "free",   "readonly", &[],                                                     "409 ReadOnlyAttribute"),
        ("target read-only, ignored",  "free",   "readonly", &[IGNORE],                                               "200"),
    ];
    for (number, (row, source, target, headers, expected)) in rows.iter().enumerate() {
        let (from, to) = (format!("share/from{number}"), format!("share/to{number}"));
        for (path, state) in [(&from, source), (&to, target)] {
            match *state {
                "none" => {}
                "free" => _ = stage.put_file(path, path),
                "readonly" => _ = stage.create_file(path, 1, &[("x-ms-file-attributes", "ReadOnly")]).ok(),
                state => {
                    stage.put_file(path, path);
                    stage.bring_lease(path, state);
                }
            }
        }
        let before = stage.names("share");
        let answer = stage.rename_file(&from, &to, &[&[REPLACE], *headers].concat());
        let got = if *expected == "412" { answer.status.to_string() } else { answer.said() };
        table.row(row, got, expected);
        if answer.is_success() {
            table.row(format!("{row}: content"), String::from_utf8_lossy(&stage.read(&to)), &from);
        } else {
            table.row(format!("{row}: nothing changed"), stage.names("share") == before, true);
            table.row(format!("{row}: the source"), String::from_utf8_lossy(&stage.read(&from)), &from);
        }
    }
}

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let before = stage.everything();
    let own = stage.client.url("share/file");
    let snapshot = format!("{own}?sharesnapshot=2026-11-15T18:00:00.0000000Z");
    let mut table = Table::new("rename_file: parameters");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("no source",        &[], "400 MissingRequiredHeader"),
        ("no URL",           &[(SOURCE, "share/file")], "400 InvalidHeaderValue"),
        ("a share",          &[(SOURCE, &stage.client.url("share"))], "4"),
        ("of a snapshot",    &[(SOURCE, &snapshot)], "400 InvalidHeaderValue"),
        ("a bad name",       &[(SOURCE, &stage.client.url("share/a%3Ab"))], "4"),
        ("replace maybe",    &[(SOURCE, &own), ("x-ms-file-rename-replace-if-exists", "maybe")], "400 InvalidHeaderValue"),
        ("ignore maybe",     &[(SOURCE, &own), ("x-ms-file-rename-ignore-readonly", "maybe")], "400 InvalidHeaderValue"),
        ("no attribute",     &[(SOURCE, &own), ("x-ms-file-attributes", "Shiny")], "400 InvalidHeaderValue"),
        ("no time",          &[(SOURCE, &own), ("x-ms-file-creation-time", "soon")], "400 InvalidHeaderValue"),
        ("no GUID",          &[(SOURCE, &own), ("x-ms-source-lease-id", "me")], "400 InvalidHeaderValue"),
        ("no other GUID",    &[(SOURCE, &own), ("x-ms-destination-lease-id", "me")], "400 InvalidHeaderValue"),
        ("a bad permission", &[(SOURCE, &own), ("x-ms-file-permission", "everybody")], "400 FileInvalidPermission"),
        ("bad metadata",     &[(SOURCE, &own), ("x-ms-meta-1", "x")], "400 InvalidMetadata"),
    ];
    for (row, headers, expected) in rows {
        let answer = stage.call("PUT share/to?comp=rename", headers, "");
        let got = if *expected == "4" { (answer.status / 100).to_string() } else { answer.said() };
        table.row(row, got, expected);
        assert_eq!(stage.everything(), before, "{row}");
    }
}

/// Names in the source are encoded as in any URL.
#[test]
fn hostile_names() {
    let stage = Stage::new();
    let names = ["ä b+c%20.txt", "日本語 #1", "😀", "a&b=c;d", "100%", "e\u{301}", " ", "\u{202E}x"];
    let mut last = "share/start".to_owned();
    stage.put_file(&last, "travels");
    for name in names {
        let next = format!("share/{}", crate::stage::percent(name));
        assert_eq!(stage.rename_file(&last, &next, &[]).said(), "200", "{name}");
        assert_eq!(stage.names("share"), name);
        last = next;
    }
    assert_eq!(stage.read(&last), b"travels");
}

/// However large it is.
#[test]
fn a_large_one() {
    let stage = Stage::new();
    stage.make_file("share/a", TIB);
    stage.write("share/a", TIB - 3, "end");
    for (from, to) in [("share/a", "share/b"), ("share/b", "share/a")] {
        stage.rename_file(from, to, &[]).ok();
        assert_eq!(stage.read_range(to, TIB - 3, TIB - 1), b"end");
    }
    assert_eq!(stage.usage("share"), TIB);
}
