//! Rename Directory: the whole subtree moves in one instant.

use crate::harness::{Headers, Table};
use crate::stage::{A, B, EVERYTHING, SOURCE, Stage, percent, told};

const REPLACE: (&str, &str) = ("x-ms-file-rename-replace-if-exists", "true");

/// Everything below a directory: paths with what clients see of them.
fn tree(stage: &Stage, path: &str, below: &str, seen: &mut Vec<String>) {
    for entry in stage.list(path, EVERYTHING) {
        let name = crate::stage::name_of(&entry);
        let (full, shown) = (format!("{path}/{}", percent(&name)), format!("{below}/{name}"));
        // The change of a parent is not theirs.
        seen.push(format!("{shown} {:?}", entry));
        if entry.name == "Directory" {
            tree(stage, &full, &shown, seen);
        } else {
            seen.push(format!("{shown} {}", told(&stage.get(&full))));
            seen.push(format!("{shown} {}", stage.ranges(&full)));
        }
    }
}

#[test]
fn a_whole_subtree_goes_along() {
    let stage = Stage::new();
    stage.make_directory("share/from");
    for number in 0..3 {
        stage.make_directory(&format!("share/from/d{number}"));
        for name in ["a", "ä b", "C"] {
            stage.put_file(&format!("share/from/d{number}/{}", percent(name)), format!("{number}{name}"));
        }
        stage.make_directory(&format!("share/from/d{number}/deeper"));
    }
    stage.acquire("share/from/d0/C", A, "-1");
    let mut before = Vec::new();
    tree(&stage, "share/from", "", &mut before);
    let id = stage.head("share/from?restype=directory").header("x-ms-file-id").map(str::to_owned);
    stage.make_directory("share/other");
    assert_eq!(stage.rename_directory("share/from", "share/other/to", &[]).said(), "200");
    let mut after = Vec::new();
    tree(&stage, "share/other/to", "", &mut after);
    assert_eq!(after, before, "everything below is as it was, ids and times included");
    let moved = stage.head("share/other/to?restype=directory");
    assert_eq!(moved.header("x-ms-file-id").map(str::to_owned), id);
    let other = stage.head("share/other?restype=directory");
    assert_eq!(moved.header("x-ms-file-parent-id"), other.header("x-ms-file-id"));
    assert_eq!(stage.names("share"), "other/");
    assert_eq!(stage.get("share/from/d0/a").status, 404);
    assert_eq!(stage.lease_state("share/other/to/d0/C"), "leased");
    // And it is free for others.
    stage.make_directory("share/from");
    assert_eq!(stage.names("share/from"), "");
}

/// Id, creation and last write stay; change time, ETag and Last-Modified are those of the rename.
#[test]
fn what_it_changes_of_the_directory_itself() {
    let stage = Stage::new();
    stage
        .call("PUT share/from?restype=directory", &[("x-ms-meta-a", "1"), ("x-ms-file-attributes", "Hidden")], "")
        .ok();
    let before = stage.head("share/from?restype=directory").ok();
    stage.server.advance(2);
    let answer = stage.rename_directory("share/from", "share/to", &[]).ok();
    let after = stage.head("share/to?restype=directory").ok();
    let mut table = Table::new("rename_directory: effects");
    #[rustfmt::skip]
    let expected = [
        ("etag", "new"), ("last-modified", "new"), ("x-ms-file-change-time", "new"), ("x-ms-file-creation-time", "same"),
        ("x-ms-file-last-write-time", "same"), ("x-ms-file-id", "same"), ("x-ms-file-parent-id", "same"),
        ("x-ms-file-attributes", "same"), ("x-ms-file-permission-key", "same"), ("x-ms-meta-a", "same"),
    ];
    for (header, expected) in expected {
        let change = if before.header(header) == after.header(header) { "same" } else { "new" };
        table.row(header, change, expected);
        if header != "x-ms-meta-a" {
            let (told, now) = (format!("{:?}", answer.header(header)), format!("{:?}", after.header(header)));
            table.row(format!("{header} told"), told, now);
        }
    }
    // What is sent along is set.
    let headers = [
        ("x-ms-file-attributes", "System"),
        ("x-ms-file-creation-time", "2020-01-01T00:00:00.0000000Z"),
        ("x-ms-meta-b", "2"),
    ];
    stage.rename_directory("share/to", "share/third", &headers).ok();
    let after = stage.head("share/third?restype=directory").ok();
    table.row("attributes", crate::stage::attributes(after.header("x-ms-file-attributes")), "Directory System");
    table.row("creation", after.header("x-ms-file-creation-time").unwrap_or("none"), "2020-01-01T00:00:00.0000000Z");
    table.row("metadata", after.header("x-ms-meta-b").unwrap_or("none"), "2");
}

/// Where it can go and where not. A directory takes the place of a file if that is asked for, never of a directory.
#[test]
fn targets() {
    let mut table = Table::new("rename_directory: targets");
    #[rustfmt::skip]
    let rows: &[(&str, &str, &str, Headers<'_>, &str)] = &[
        ("a free name",               "share/from",      "share/to",           &[],        "200"),
        ("into another directory",    "share/from",      "share/dir/to",       &[],        "200"),
        ("out of one",                "share/dir/inner", "share/to",           &[],        "200"),
        ("another case of its own",   "share/from",      "share/FROM",         &[],        "200"),
        ("itself",                    "share/from",      "share/from",         &[],        "any"),
        ("a directory",               "share/from",      "share/empty",        &[],        "409 ResourceAlreadyExists"),
        ("a directory, replace",      "share/from",      "share/empty",        &[REPLACE], "409 ResourceAlreadyExists"),
        ("a full one, replace",       "share/from",      "share/dir",          &[REPLACE], "409 ResourceAlreadyExists"),
        ("a file",                    "share/from",      "share/file",         &[],        "409 ResourceAlreadyExists"),
        ("a file in another case",    "share/from",      "share/FILE",         &[],        "409 ResourceAlreadyExists"),
        ("a file, replace",           "share/from",      "share/file",         &[REPLACE], "200"),
        ("no parent",                 "share/from",      "share/none/to",      &[],        "404 ParentNotFound"),
        ("no source",                 "share/none",      "share/to",           &[],        "404 ResourceNotFound"),
        ("no source and a bad target", "share/none",     "share/dir",          &[],        "any"),
        ("a file as a source",        "share/file",      "share/to",           &[],        "409 ResourceTypeMismatch"),
        ("below itself",              "share/from",      "share/from/to",      &[],        "400 InvalidInput"),
        ("below itself, deeper",      "share/dir",       "share/dir/inner/to", &[],        "400 InvalidInput"),
        ("below itself, another case", "share/from",     "share/FROM/to",      &[],        "400 InvalidInput"),
        ("another share",             "share/from",      "other/to",           &[],        "400"),
    ];
    for (row, from, to, headers, expected) in rows {
        let stage = Stage::new();
        stage.make_share("other");
        stage.make_directory("share/from");
        stage.put_file("share/from/kept", "kept");
        stage.make_directory("share/dir");
        stage.make_directory("share/dir/inner");
        stage.make_directory("share/empty");
        stage.put_file("share/file", "the file");
        let before = stage.everything();
        let answer = stage.rename_directory(from, to, headers);
        match *expected {
            "any" => table.row(row, answer.status < 500, true),
            "400" => table.row(row, answer.status, 400),
            _ => table.row(row, answer.said(), expected),
        }
        if answer.is_success() && *from == "share/from" {
            table.row(
                format!("{row}: it went along"),
                String::from_utf8_lossy(&stage.read(&format!("{to}/kept"))),
                "kept",
            );
        } else if !answer.is_success() {
            table.row(format!("{row}: nothing changed"), stage.everything() == before, true);
        }
    }
}

#[test]
fn another_case_of_a_name_is_another_spelling() {
    let stage = Stage::new();
    stage.make_directory("share/from");
    stage.rename_directory("share/FROM", "share/From", &[]).ok();
    assert_eq!(stage.names("share"), "From/");
}

/// A file that is replaced is protected by its lease and by its attribute.
#[test]
fn what_protects_a_replaced_file() {
    let stage = Stage::new();
    stage.make_directory("share/from");
    stage.make_file("share/leased", 0);
    stage.acquire("share/leased", A, "-1");
    stage.create_file("share/readonly", 0, &[("x-ms-file-attributes", "ReadOnly")]).ok();
    let mut table = Table::new("rename_directory: replaced files");
    let rename = |to: &str, headers: Headers<'_>| {
        stage.rename_directory("share/from", to, &[&[REPLACE], headers].concat()).said()
    };
    table.row("leased", rename("share/leased", &[]), "412 LeaseIdMissing");
    let wrong = rename("share/leased", &[("x-ms-destination-lease-id", B)]);
    table.row("leased, a wrong id", wrong, "412 LeaseIdMismatchWithFileOperation");
    table.row("read-only", rename("share/readonly", &[]), "409 ReadOnlyAttribute");
    assert_eq!(stage.names("share"), "from/ leased readonly");
    table.row("leased, its id", rename("share/leased", &[("x-ms-destination-lease-id", A)]), "200");
    stage.rename_directory("share/leased", "share/from", &[]).ok();
    let ignored = rename("share/readonly", &[("x-ms-file-rename-ignore-readonly", "true")]);
    table.row("read-only, ignored", ignored, "200");
    assert_eq!(stage.names("share"), "readonly/");
}

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let before = stage.everything();
    let rename = "PUT share/to?restype=directory&comp=rename";
    let own = stage.client.url("share/dir");
    let mut table = Table::new("rename_directory: parameters");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("no source",        &[], "400 MissingRequiredHeader"),
        ("an empty source",  &[(SOURCE, "")], "400 MissingRequiredHeader"),
        ("no URL",           &[(SOURCE, "share/dir")], "400 InvalidHeaderValue"),
        ("replace maybe",    &[(SOURCE, &own), ("x-ms-file-rename-replace-if-exists", "maybe")], "400 InvalidHeaderValue"),
        ("ignore maybe",     &[(SOURCE, &own), ("x-ms-file-rename-ignore-readonly", "maybe")], "400 InvalidHeaderValue"),
        ("no attribute",     &[(SOURCE, &own), ("x-ms-file-attributes", "Shiny")], "400 InvalidHeaderValue"),
        ("no GUID",          &[(SOURCE, &own), ("x-ms-source-lease-id", "me")], "400 InvalidHeaderValue"),
    ];
    for (row, headers, expected) in rows {
        let answer = stage.call(rename, headers, "");
        let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(row, got, expected);
        assert_eq!(stage.everything(), before, "{row}");
    }
}
