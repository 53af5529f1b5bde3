//! The operations on files side by side: what each answers, what it changes, what a lease means to it, and what is not there.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, B, CLEAR, EVERYTHING, FILE, LENGTH, Stage, UPDATE, name_of};

/// How each operation is asked for; `{}` is the file, which has 1,024 bytes.
pub struct Operation {
    pub name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    /// What a success answers.
    pub done: &'static str,
}

const fn operation(
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    done: &'static str,
) -> Operation {
    Operation { name, line, headers, body, done }
}

const ACQUIRE: Headers<'static> =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)];

#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    operation("Create File",         "PUT {}",                       &[FILE, (LENGTH, "1024")],                "",    "201"),
    operation("Get File",            "GET {}",                       &[],                                      "",    "200"),
    operation("Get File Properties", "HEAD {}",                      &[],                                      "",    "200"),
    operation("Set File Properties", "PUT {}?comp=properties",       &[("x-ms-content-type", "a/b")],          "",    "200"),
    operation("Resize",              "PUT {}?comp=properties",       &[(LENGTH, "2048")],                      "",    "200"),
    operation("Set Attributes",      "PUT {}?comp=properties",       &[("x-ms-file-attributes", "Hidden")],    "",    "200"),
    operation("Get File Metadata",   "GET {}?comp=metadata",         &[],                                      "",    "200"),
    operation("Set File Metadata",   "PUT {}?comp=metadata",         &[("x-ms-meta-a", "1")],                  "",    "200"),
    operation("Put Range",           "PUT {}?comp=range",            &[UPDATE, ("x-ms-range", "bytes=0-2")],   "new", "201"),
    operation("Clear Range",         "PUT {}?comp=range",            &[CLEAR, ("x-ms-range", "bytes=0-511")],  "",    "201"),
    operation("List Ranges",         "GET {}?comp=rangelist",        &[],                                      "",    "200"),
    operation("Lease File",          "PUT {}?comp=lease",            ACQUIRE,                                  "",    "201"),
    operation("List Handles",        "GET {}?comp=listhandles",      &[],                                      "",    "200"),
    operation("Force Close Handles", "PUT {}?comp=forceclosehandles", &[("x-ms-handle-id", "*")],              "",    "200"),
    operation("Delete File",         "DELETE {}",                    &[],                                      "",    "202"),
];

pub fn named(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation")
}

impl Operation {
    pub fn ask(&self, stage: &Stage, path: &str, more: Headers<'_>) -> Answer {
        stage.call(&self.line.replace("{}", path), &[self.headers, more].concat(), self.body)
    }
}

/// A new file, something written in it.
fn fresh(stage: &Stage, name: &str, count: usize) -> String {
    let path = format!("share/{}-{count}", name.to_lowercase().replace(' ', "-"));
    stage.make_file(&path, 1_024);
    stage.write(&path, 0, "old");
    path
}

/// What becomes of the ETag (and Last-Modified) and of the four times.
#[rustfmt::skip]
const EFFECTS: &[(&str, [&str; 5])] = &[
    // operation             ETag    creation  last access  last write  change
    ("Create File",         ["new",  "new",    "any",       "new",      "new"]),
    ("Get File",            ["same", "same",   "same",      "same",     "same"]),
    ("Get File Properties", ["same", "same",   "same",      "same",     "same"]),
    ("Set File Properties", ["new",  "same",   "same",      "same",     "new"]),
    ("Resize",              ["new",  "same",   "same",      "new",      "new"]),
    ("Set Attributes",      ["new",  "same",   "same",      "same",     "new"]),
    ("Get File Metadata",   ["same", "same",   "same",      "same",     "same"]),
    ("Set File Metadata",   ["new",  "same",   "same",      "same",     "new"]),
    ("Put Range",           ["new",  "same",   "same",      "new",      "new"]),
    ("Clear Range",         ["new",  "same",   "same",      "new",      "new"]),
    ("List Ranges",         ["same", "same",   "same",      "same",     "same"]),
    ("Lease File",          ["same", "same",   "same",      "same",     "same"]),
    ("List Handles",        ["same", "same",   "same",      "same",     "same"]),
    ("Force Close Handles", ["same", "same",   "same",      "same",     "same"]),
];

/// What a listing tells of a file.
fn listed(stage: &Stage, path: &str) -> [String; 6] {
    let name = path.rsplit('/').next().expect("a name");
    let entries = stage.list("share", &format!("prefix={name}&{EVERYTHING}"));
    let entry = entries.iter().find(|entry| name_of(entry) == name).expect("it is listed");
    let elements = ["Etag", "CreationTime", "LastAccessTime", "LastWriteTime", "ChangeTime", "Last-Modified"];
    elements.map(|element| entry.text_of(&format!("Properties/{element}")).unwrap_or_else(|| panic!("no {element}")))
}

#[test]
fn what_each_operation_changes() {
    let stage = Stage::new();
    let mut table = Table::new("file operations: effects");
    for (name, expected) in EFFECTS {
        let path = fresh(&stage, name, 0);
        let (before, head) = (listed(&stage, &path), stage.head(&path).ok());
        stage.server.advance(2);
        let answer = named(name).ask(&stage, &path, &[]);
        table.row(format!("{name}: answer"), answer.said(), named(name).done);
        let after = listed(&stage, &path);
        let change = |at: usize| if before[at] == after[at] { "same" } else { "new" };
        let columns = ["ETag", "creation", "last access", "last write", "change"];
        for (at, (column, expected)) in columns.iter().zip(expected).enumerate().filter(|(_, (_, e))| **e != "any") {
            table.row(format!("{name}: {column}"), change(at), expected);
        }
        table.row(format!("{name}: Last-Modified"), change(5), expected[0]);
        let now = stage.head(&path).ok();
        table.row(format!("{name}: the id stays"), now.header("x-ms-file-id") == head.header("x-ms-file-id"), true);
        // The listing and the properties agree.
        let shown = [
            "etag",
            "x-ms-file-creation-time",
            "",
            "x-ms-file-last-write-time",
            "x-ms-file-change-time",
            "last-modified",
        ];
        for (at, header) in shown.iter().enumerate().filter(|(_, header)| !header.is_empty()) {
            table.row(format!("{name}: {header} in the listing"), &after[at], now.header(header).unwrap_or("none"));
        }
    }
}

/// Which headers each answer has; those of the file tell it as it is then.
#[rustfmt::skip]
const TOLD: &[(&str, &[&str])] = &[
    ("Create File",         &["etag", "last-modified", "x-ms-request-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                              "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"]),
    ("Get File",            &["etag", "last-modified", "content-length", "content-type", "accept-ranges", "x-ms-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                              "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id",
                              "x-ms-lease-state", "x-ms-lease-status"]),
    ("Get File Properties", &["etag", "last-modified", "content-length", "content-type", "x-ms-type", "x-ms-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                              "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id",
                              "x-ms-lease-state", "x-ms-lease-status"]),
    ("Set File Properties", &["etag", "last-modified", "x-ms-request-server-encrypted", "x-ms-file-permission-key", "x-ms-file-attributes",
                              "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-id", "x-ms-file-parent-id"]),
    ("Get File Metadata",   &["etag", "last-modified"]),
    ("Set File Metadata",   &["etag", "x-ms-request-server-encrypted"]),
    ("Put Range",           &["etag", "last-modified", "content-md5", "x-ms-request-server-encrypted", "x-ms-file-last-write-time"]),
    ("Clear Range",         &["etag", "last-modified", "x-ms-request-server-encrypted", "x-ms-file-last-write-time"]),
    ("List Ranges",         &["etag", "last-modified", "x-ms-content-length", "content-type"]),
    ("Lease File",          &["etag", "last-modified", "x-ms-lease-id"]),
    ("List Handles",        &["content-type"]),
    ("Force Close Handles", &["x-ms-number-of-handles-closed", "x-ms-number-of-handles-failed"]),
    ("Delete File",         &[]),
];

#[test]
fn what_each_answer_tells() {
    let stage = Stage::new();
    let mut table = Table::new("file operations: headers");
    for (name, headers) in TOLD {
        let path = fresh(&stage, name, 0);
        stage.server.advance(2);
        let answer = named(name).ask(&stage, &path, &[]).ok();
        let now = stage.head(&path);
        for header in *headers {
            table.row(format!("{name}: {header}"), answer.header(header).is_some(), true);
            if header.starts_with("x-ms-file-") || matches!(*header, "etag" | "last-modified") {
                let (told, now) = (format!("{:?}", answer.header(header)), format!("{:?}", now.header(header)));
                table.row(format!("{name}: {header} as it is now"), told, now);
            }
        }
    }
    let head = stage.head("share/get-file-0").ok();
    let expected = [("x-ms-type", "File"), ("x-ms-server-encrypted", "true"), ("content-length", "1024")];
    for (header, value) in expected {
        table.row(header, head.header(header).unwrap_or("none"), value);
    }
}

#[test]
fn no_etag_comes_twice() {
    let stage = Stage::new();
    let mut seen = Vec::new();
    for round in 0..20 {
        seen.push(stage.make_file("share/file", 10).etag());
        seen.push(stage.write("share/file", 0, "x").etag());
        seen.push(stage.call("PUT share/file?comp=metadata", &[], "").ok().etag());
        seen.push(stage.resize("share/file", 10).ok().etag());
        if round % 2 == 0 {
            stage.delete("share/file").ok();
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

/// Files have no conditions: one that is sent cannot be judged, and is refused.
#[test]
fn conditions_are_refused() {
    let stage = Stage::new();
    let path = fresh(&stage, "conditions", 0);
    let (etag, date) = (stage.head(&path).etag(), stage.head(&path).last_modified());
    let mut table = Table::new("file operations: conditions");
    for operation in OPERATIONS {
        for condition in [
            ("if-match", &*etag),
            ("if-none-match", "\"0x8D0000000000000\""),
            ("if-modified-since", &*date),
            ("if-unmodified-since", &*date),
        ] {
            let said = operation.ask(&stage, &path, &[condition]).said();
            table.row(format!("{}, {}", operation.name, condition.0), said, "400 ConditionHeadersNotSupported");
        }
    }
    assert_eq!(stage.head(&path).etag(), etag);
}

const MISSING_ID: &str = "412 LeaseIdMissing";
const OTHER_ID: &str = "412 LeaseIdMismatchWithFileOperation";
const ABSENT: &str = "412 LeaseNotPresentWithFileOperation";
/// The lease has ended: which of the codes tells so is nowhere written down.
const OVER: &str = "412";

/// Every state: A is or was the holder's id.
#[rustfmt::skip]
const RULES: &[(&str, &str, [&str; 3])] = &[
    //                 available  leased      broken
    ("write", "none", ["ok",      MISSING_ID, "ok"]),
    ("write", "A",    [ABSENT,    "ok",       OVER]),
    ("write", "B",    [ABSENT,    OTHER_ID,   OVER]),
    ("read",  "none", ["ok",      "ok",       "ok"]),
    ("read",  "A",    [ABSENT,    "ok",       OVER]),
    ("read",  "B",    [ABSENT,    OTHER_ID,   OVER]),
];

#[rustfmt::skip]
const RULE_OF: &[(&str, &str)] = &[
    ("Create File",         "write"),
    ("Get File",            "read"),
    ("Get File Properties", "read"),
    ("Set File Properties", "write"),
    ("Resize",              "write"),
    ("Set Attributes",      "write"),
    ("Get File Metadata",   "read"),
    ("Set File Metadata",   "write"),
    ("Put Range",           "write"),
    ("Clear Range",         "write"),
    ("List Ranges",         "read"),
    ("Delete File",         "write"),
];

#[test]
fn every_operation_in_every_lease_state() {
    let stage = Stage::new();
    let mut table = Table::new("file operations: lease states");
    let mut count = 0;
    for (name, rule) in RULE_OF {
        for (_, id, expected) in RULES.iter().filter(|(known, ..)| known == rule) {
            for (before, expected) in ["available", "leased", "broken"].iter().zip(expected) {
                count += 1;
                let path = fresh(&stage, name, count);
                stage.bring_lease(&path, before);
                let etag = stage.head(&path).etag();
                let headers: Headers<'_> = match *id {
                    "A" => &[("x-ms-lease-id", A)],
                    "B" => &[("x-ms-lease-id", B)],
                    _ => &[],
                };
                let row = format!("{name}, {before}, {id}");
                let answer = named(name).ask(&stage, &path, headers);
                let is_done = *expected == "ok";
                let expected = if is_done { named(name).done } else { expected };
                let got = if expected == OVER { answer.status.to_string() } else { answer.said() };
                table.row(&row, got, expected);
                let after = stage.head(&path);
                // A write without an id forgets a broken lease. What is refused changes nothing.
                let state = match (*rule, *before, is_done) {
                    ("write", _, true) if *name == "Delete File" => "gone",
                    ("write", "broken", true) => "available",
                    _ => before,
                };
                table.row(format!("{row}: state after"), after.header("x-ms-lease-state").unwrap_or("gone"), state);
                if !is_done {
                    table.row(format!("{row}: nothing changed"), after.header("etag") == Some(&*etag), true);
                }
            }
        }
    }
}

#[test]
fn what_is_not_there() {
    let stage = Stage::new();
    stage.make_file("share/file", 0);
    let mut table = Table::new("file operations: not there");
    for operation in &OPERATIONS[1..] {
        let said = |path: &str| operation.ask(&stage, path, &[]).said();
        table.row(operation.name, said("share/none"), "404 ResourceNotFound");
        table.row(format!("{}, no share", operation.name), said("none/file"), "404 ShareNotFound");
        let deep = operation.ask(&stage, "share/none/file", &[]).status;
        table.row(format!("{}, no parent", operation.name), deep, 404);
        let below = operation.ask(&stage, "share/file/file", &[]).status;
        table.row(format!("{}, below a file", operation.name), below, 404);
        if RULE_OF.iter().any(|(name, _)| *name == operation.name) {
            // A lease id for something that is not there does not change that.
            let said = operation.ask(&stage, "share/none", &[("x-ms-lease-id", A)]).said();
            table.row(format!("{}, lease id", operation.name), said, "404 ResourceNotFound");
            let said = operation.ask(&stage, "share/none", &[("x-ms-lease-id", "me")]).said();
            table.row(format!("{}, no GUID", operation.name), said, "400 InvalidHeaderValue");
        }
    }
    let create = named("Create File");
    table.row("create, no parent", create.ask(&stage, "share/none/file", &[]).said(), "404 ParentNotFound");
    table.row("create, below a file", create.ask(&stage, "share/file/file", &[]).status / 100, 4);
    table.row("create, no share", create.ask(&stage, "none/file", &[]).said(), "404 ShareNotFound");
    let leased = create.ask(&stage, "share/new", &[("x-ms-lease-id", A)]).status;
    table.row("create, with a lease id", leased == 201 || leased == 412, true);
}

/// A snapshot that is not there: reads find no such share, and snapshots are never written to. Never the file itself is meant.
#[test]
fn snapshots_that_are_not_there() {
    const SNAPSHOT: &str = "sharesnapshot=2026-11-15T18:00:00.0000000Z";
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    stage.make_directory("share/dir");
    let before = stage.everything();
    let mut table = Table::new("file operations: snapshots");
    let source = stage.client.url("share/file");
    let of_source = [(crate::stage::SOURCE, source.as_str())];
    #[rustfmt::skip]
    let more: &[(&str, Headers<'_>)] = &[
        ("PUT share/to?comp=rename",                               &of_source),
        ("PUT share/new?restype=directory",                        &[]),
        ("GET share/dir?restype=directory",                        &[]),
        ("PUT share/dir?restype=directory&comp=properties",        &[]),
        ("GET share/dir?restype=directory&comp=metadata",          &[]),
        ("PUT share/dir?restype=directory&comp=metadata",          &[]),
        ("GET share/dir?restype=directory&comp=list",              &[]),
        ("PUT share/to?restype=directory&comp=rename",             &of_source),
        ("DELETE share/dir?restype=directory",                     &[]),
        ("GET share?restype=share",                                &[]),
        ("PUT share?restype=share&comp=properties",                &[]),
        ("GET share?restype=share&comp=metadata",                  &[]),
        ("PUT share?restype=share&comp=metadata",                  &[]),
        ("GET share?restype=share&comp=acl",                       &[]),
        ("PUT share?restype=share&comp=acl",                       &[]),
        ("GET share?restype=share&comp=stats",                     &[]),
    ];
    let files = OPERATIONS.iter().map(|operation| {
        let line = operation.line.replace("{}", "share/file");
        (line, operation.headers, operation.body)
    });
    let others = more.iter().map(|(line, headers)| ((*line).to_owned(), *headers, ""));
    for (line, headers, body) in files.chain(others) {
        // Handles are looked at and closed, which writes nothing.
        let is_read = !line.starts_with("PUT") && !line.starts_with("DELETE") || line.contains("handles");
        // A snapshot has neither policies nor a usage of its own.
        let is_read = is_read && !line.contains("comp=acl") && !line.contains("comp=stats");
        let expected = if is_read { "404 ShareNotFound" } else { "400 InvalidQueryParameterValue" };
        let glue = if line.contains('?') { '&' } else { '?' };
        table.row(&line, stage.call(&format!("{line}{glue}{SNAPSHOT}"), headers, body).said(), expected);
        let no_time = stage.call(&format!("{line}{glue}sharesnapshot=then"), headers, body).said();
        table.row(format!("{line}, no time"), no_time, "400 InvalidQueryParameterValue");
    }
    assert_eq!(stage.everything(), before);
}

/// A directory where a file is asked for: reads find nothing, writes find something else.
#[test]
fn a_directory_is_no_file() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let before = stage.everything();
    let mut table = Table::new("file operations: a directory");
    for operation in OPERATIONS {
        let expected = match operation.name {
            "Get File" | "Get File Properties" | "Get File Metadata" | "List Ranges" => "404 ResourceNotFound",
            "List Handles" | "Force Close Handles" => "200",
            "Lease File" => continue,
            _ => "409 ResourceTypeMismatch",
        };
        table.row(operation.name, operation.ask(&stage, "share/dir", &[]).said(), expected);
    }
    let leased = named("Lease File").ask(&stage, "share/dir", &[]).status;
    table.row("Lease File", leased == 404 || leased == 409, true);
    assert_eq!(stage.everything(), before);
}

/// Two faults in one request: what can be seen without looking at the file comes first, then whether it is there, then its
/// lease, then what is in it.
#[test]
fn two_faults() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    stage.acquire("share/file", A, "-1");
    stage.make_directory("share/dir");
    let before = stage.everything();
    let long = "x".repeat(9_000);
    let mut table = Table::new("file operations: two faults");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        ("no write and no file",        "PUT share/none?comp=range", &[("x-ms-range", "bytes=0-0"), ("x-ms-write", "x")], "x", "400 InvalidHeaderValue"),
        ("no write and no share",       "PUT none/file?comp=range", &[("x-ms-range", "bytes=0-0"), ("x-ms-write", "x")], "x", "400 InvalidHeaderValue"),
        ("bad metadata and no file",    "PUT share/none?comp=metadata", &[("x-ms-meta-1", "x")], "", "400 InvalidMetadata"),
        ("large metadata, leased",      "PUT share/file?comp=metadata", &[("x-ms-meta-a", &long)], "", "400 MetadataTooLarge"),
        ("a bad length and no file",    "PUT share/none?comp=properties", &[(LENGTH, "x")], "", "400 InvalidHeaderValue"),
        ("a bad attribute, leased",     "PUT share/file?comp=properties", &[("x-ms-file-attributes", "x")], "", "400 InvalidHeaderValue"),
        ("no type, leased",             "PUT share/file", &[(LENGTH, "1")], "", "400 MissingRequiredHeader"),
        ("beyond the end, leased",      "PUT share/file?comp=range", &[UPDATE, ("x-ms-range", "bytes=100-100")], "x", "412 LeaseIdMissing"),
        ("beyond the end, a wrong id",  "PUT share/file?comp=range", &[UPDATE, ("x-ms-range", "bytes=100-100"), ("x-ms-lease-id", B)], "x", OTHER_ID),
        ("read beyond, a wrong id",     "GET share/file", &[("x-ms-range", "bytes=100-"), ("x-ms-lease-id", B)], "", OTHER_ID),
        ("a bad name and no share",     "GET none/a%3Ab", &[], "", "400 InvalidResourceName"),
        ("no share and no parent",      "PUT none/none/file", &[FILE, (LENGTH, "0")], "", "404 ShareNotFound"),
        ("an unknown key and no parent", "PUT share/none/file", &[FILE, (LENGTH, "0"), ("x-ms-file-permission-key", "1*2")], "", "4"),
        ("a condition and no file",     "GET share/none", &[("if-match", "*")], "", "400 ConditionHeadersNotSupported"),
        ("a time-out and no file",      "GET share/none?timeout=x", &[], "", "400 InvalidQueryParameterValue"),
        ("a duration and no file",      "PUT share/none?comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], "", "400 InvalidHeaderValue"),
        ("not there, a wrong kind above", "PUT share/file/none/x", &[FILE, (LENGTH, "0")], "", "4"),
    ];
    for (row, line, headers, body, expected) in rows {
        let answer = stage.call(line, headers, body);
        let got = if *expected == "4" { (answer.status / 100).to_string() } else { answer.said() };
        table.row(row, got, expected);
    }
    assert_eq!(stage.everything(), before);
}

/// Nobody writes to a read-only file before the attribute is taken away.
#[test]
fn a_read_only_file() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    stage.call("PUT share/file?comp=properties", &[("x-ms-file-attributes", "ReadOnly")], "").ok();
    let before = stage.everything();
    let mut table = Table::new("file operations: read-only");
    for (name, expected) in [
        ("Create File", "409 ReadOnlyAttribute"),
        ("Put Range", "409 ReadOnlyAttribute"),
        ("Clear Range", "409 ReadOnlyAttribute"),
        ("Resize", "409 ReadOnlyAttribute"),
        ("Get File", "200"),
        ("Get File Properties", "200"),
        ("Get File Metadata", "200"),
        ("List Ranges", "200"),
    ] {
        let answer = match name {
            // The file has seven bytes.
            "Clear Range" => stage.clear("share/file", 0, 6),
            _ => named(name).ask(&stage, "share/file", &[]),
        };
        table.row(name, answer.said(), expected);
    }
    assert_eq!(stage.everything(), before);
    stage.call("PUT share/file?comp=properties", &[("x-ms-file-attributes", "None")], "").ok();
    table.row("taken away", stage.put_range("share/file", 0, "CON", &[]).said(), "201");
    table.row("what is there", String::from_utf8_lossy(&stage.read("share/file")), "CONtent");
    table.row("deleted at last", stage.delete("share/file").said(), "202");
}
