//! The operations on directories side by side: what each answers, what it changes, and what is not there.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, Stage, directory};

pub struct Operation {
    pub name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    pub done: &'static str,
}

/// How each operation is asked for; `{}` is the directory.
#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    Operation { name: "Create Directory",         line: "PUT {}?restype=directory",                 headers: &[], done: "201" },
    Operation { name: "Get Directory Properties", line: "GET {}?restype=directory",                 headers: &[], done: "200" },
    Operation { name: "Set Directory Properties", line: "PUT {}?restype=directory&comp=properties", headers: &[("x-ms-file-attributes", "Hidden")], done: "200" },
    Operation { name: "Get Directory Metadata",   line: "GET {}?restype=directory&comp=metadata",   headers: &[], done: "200" },
    Operation { name: "Set Directory Metadata",   line: "PUT {}?restype=directory&comp=metadata",   headers: &[("x-ms-meta-a", "1")], done: "200" },
    Operation { name: "List",                     line: "GET {}?restype=directory&comp=list",       headers: &[], done: "200" },
    Operation { name: "List Handles",             line: "GET {}?comp=listhandles",                  headers: &[], done: "200" },
    Operation { name: "Force Close Handles",      line: "PUT {}?comp=forceclosehandles",            headers: &[("x-ms-handle-id", "*")], done: "200" },
    Operation { name: "Delete Directory",         line: "DELETE {}?restype=directory",              headers: &[], done: "202" },
];

pub fn named(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation")
}

impl Operation {
    pub fn ask(&self, stage: &Stage, path: &str, more: Headers<'_>) -> Answer {
        stage.call(&self.line.replace("{}", path), &[self.headers, more].concat(), "")
    }
}

/// A new directory. Create Directory needs a name that is free.
fn fresh(stage: &Stage, name: &str) -> String {
    let path = format!("share/{}", name.to_lowercase().replace(' ', "-"));
    if name != "Create Directory" {
        stage.make_directory(&path);
    }
    path
}

/// What becomes of the ETag (and Last-Modified) and of the times. Operations inside do not change a directory.
#[rustfmt::skip]
const EFFECTS: &[(&str, [&str; 4])] = &[
    // operation                  ETag     creation  last write  change
    ("Get Directory Properties", ["same",  "same",   "same",     "same"]),
    ("Set Directory Properties", ["new",   "same",   "same",     "new"]),
    ("Get Directory Metadata",   ["same",  "same",   "same",     "same"]),
    ("Set Directory Metadata",   ["new",   "same",   "same",     "new"]),
    ("List",                     ["same",  "same",   "same",     "same"]),
    ("List Handles",             ["same",  "same",   "same",     "same"]),
    ("Force Close Handles",      ["same",  "same",   "same",     "same"]),
];

#[test]
fn what_each_operation_changes() {
    let stage = Stage::new();
    let mut table = Table::new("directory operations: effects");
    for (name, expected) in EFFECTS {
        let path = fresh(&stage, name);
        let before = stage.head(&directory(&path)).ok();
        stage.server.advance(2);
        let answer = named(name).ask(&stage, &path, &[]);
        table.row(format!("{name}: answer"), answer.said(), named(name).done);
        let after = stage.head(&directory(&path)).ok();
        let change = |header| if before.header(header) == after.header(header) { "same" } else { "new" };
        let headers = ["etag", "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time"];
        for (header, expected) in headers.iter().zip(expected) {
            table.row(format!("{name}: {header}"), change(header), expected);
        }
        table.row(format!("{name}: Last-Modified"), change("last-modified"), expected[0]);
        table.row(format!("{name}: id"), change("x-ms-file-id"), "same");
    }
}

/// Which headers each answer has.
#[rustfmt::skip]
const TOLD: &[(&str, &[&str])] = &[
    ("Create Directory",         &["etag", "last-modified", "x-ms-request-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                                   "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"]),
    ("Get Directory Properties", &["etag", "last-modified", "x-ms-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                                   "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"]),
    ("Set Directory Properties", &["etag", "last-modified", "x-ms-request-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                                   "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"]),
    ("Get Directory Metadata",   &["etag", "last-modified"]),
    ("Set Directory Metadata",   &["etag", "x-ms-request-server-encrypted"]),
    ("List",                     &["content-type"]),
    ("List Handles",             &["content-type"]),
    ("Force Close Handles",      &["x-ms-number-of-handles-closed", "x-ms-number-of-handles-failed"]),
    ("Delete Directory",         &[]),
];

#[test]
fn what_each_answer_tells() {
    let stage = Stage::new();
    let mut table = Table::new("directory operations: headers");
    for (name, headers) in TOLD {
        let path = fresh(&stage, name);
        let answer = named(name).ask(&stage, &path, &[]).ok();
        let now = stage.head(&directory(&path));
        for header in *headers {
            table.row(format!("{name}: {header}"), answer.header(header).is_some(), true);
            if header.starts_with("x-ms-file-") || matches!(*header, "etag" | "last-modified") {
                let (told, now) = (format!("{:?}", answer.header(header)), format!("{:?}", now.header(header)));
                table.row(format!("{name}: {header} as it is now"), told, now);
            }
        }
    }
}

/// What happens in a directory is not a change of the directory.
#[test]
fn what_is_inside_does_not_change_it() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let before = stage.head("share/dir?restype=directory");
    stage.server.advance(2);
    stage.make_directory("share/dir/inner");
    stage.put_file("share/dir/inner/file", "content");
    stage.put_file("share/dir/file", "content");
    stage.rename_file("share/dir/file", "share/file", &[]).ok();
    stage.rename_file("share/file", "share/dir/again", &[]).ok();
    stage.delete("share/dir/again").ok();
    let after = stage.head("share/dir?restype=directory");
    assert_eq!((before.etag(), before.last_modified()), (after.etag(), after.last_modified()));
}

#[test]
fn what_is_not_there() {
    let stage = Stage::new();
    stage.make_file("share/file", 0);
    let mut table = Table::new("directory operations: not there");
    for operation in &OPERATIONS[1..] {
        let said = |path: &str| operation.ask(&stage, path, &[]).said();
        table.row(operation.name, said("share/none"), "404 ResourceNotFound");
        table.row(format!("{}, no share", operation.name), said("none/dir"), "404 ShareNotFound");
        let deep = operation.ask(&stage, "share/none/dir", &[]);
        table.row(format!("{}, no parent", operation.name), deep.status, 404);
        let below = operation.ask(&stage, "share/file/dir", &[]);
        table.row(format!("{}, below a file", operation.name), below.status, 404);
    }
    let create = named("Create Directory");
    table.row("create, no parent", create.ask(&stage, "share/none/dir", &[]).said(), "404 ParentNotFound");
    table.row("create, below a file", create.ask(&stage, "share/file/dir", &[]).status / 100, 4);
    table.row("create, no share", create.ask(&stage, "none/dir", &[]).said(), "404 ShareNotFound");
    assert_eq!(stage.names("share"), "file");
}

/// A file where a directory is asked for.
#[test]
fn a_file_is_no_directory() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    let before = stage.everything();
    let mut table = Table::new("directory operations: a file");
    for (name, expected) in [
        ("Create Directory", "409 ResourceAlreadyExists"),
        ("Get Directory Properties", "404 ResourceNotFound"),
        ("Set Directory Properties", "409 ResourceTypeMismatch"),
        ("Get Directory Metadata", "404 ResourceNotFound"),
        ("Set Directory Metadata", "409 ResourceTypeMismatch"),
        ("List", "404 ResourceNotFound"),
        ("Delete Directory", "409 ResourceTypeMismatch"),
    ] {
        table.row(name, named(name).ask(&stage, "share/file", &[]).said(), expected);
        // Whoever holds the file, a directory that is not there is not there.
    }
    stage.acquire("share/file", A, "-1");
    let deleted = named("Delete Directory").ask(&stage, "share/file", &[]);
    table.row("leased", deleted.said(), "409 ResourceTypeMismatch");
    stage.lease("share/file", &[("x-ms-lease-action", "release"), ("x-ms-lease-id", A)]).ok();
    assert_eq!(stage.everything(), before);
}

/// The directory that every share has.
#[test]
fn the_root() {
    let stage = Stage::new();
    let mut table = Table::new("directory operations: the root");
    for (name, expected) in [
        ("Create Directory", "409 ResourceAlreadyExists"),
        ("Get Directory Properties", "200"),
        ("Set Directory Properties", "200"),
        ("Get Directory Metadata", "200"),
        ("Set Directory Metadata", "200"),
        ("List", "200"),
        ("List Handles", "200"),
        ("Delete Directory", "400 InvalidInput"),
    ] {
        table.row(name, named(name).ask(&stage, "share", &[]).said(), expected);
    }
    let root = stage.head("share?restype=directory").ok();
    table.row("its metadata", root.header("x-ms-meta-a").unwrap_or("none"), "1");
    // It is not the share's.
    table.row("the share's", stage.head("share?restype=share").header("x-ms-meta-a").unwrap_or("none"), "none");
    table.row("its id", root.header("x-ms-file-id").unwrap_or("none"), "0");
    stage.make_directory("share/dir");
    table.row(
        "as a parent",
        stage.head("share/dir?restype=directory").header("x-ms-file-parent-id").unwrap_or("none"),
        "0",
    );
    table.row("renamed", stage.rename_directory("share", "share/dir/root", &[]).said(), "400 InvalidInput");
    table.row("as a target", stage.rename_directory("share/dir", "share", &[]).status / 100, 4);
    assert_eq!(stage.names("share"), "dir/");
}

/// Files have no conditions: one that is sent cannot be judged, and is refused.
#[test]
fn conditions_are_refused() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let before = stage.everything();
    let mut table = Table::new("directory operations: conditions");
    for operation in &OPERATIONS[1..] {
        for condition in
            [("if-match", "*"), ("if-none-match", "\"0x1\""), ("if-unmodified-since", "Mon, 01 Jan 2024 00:00:00 GMT")]
        {
            let said = operation.ask(&stage, "share/dir", &[condition]).said();
            table.row(format!("{}, {}", operation.name, condition.0), said, "400 ConditionHeadersNotSupported");
        }
    }
    assert_eq!(stage.everything(), before);
}
