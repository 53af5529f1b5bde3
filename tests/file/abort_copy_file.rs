//! Abort Copy File, and what there is to abort: a copy from elsewhere that is under way.

use crate::harness::Elsewhere;
use crate::harness::{Headers, Table};
use crate::stage::{A, B, FILE, LENGTH, SOURCE, Stage};

const ABORT: (&str, &str) = ("x-ms-copy-action", "abort");

/// A file that waits for a source that gives 40 of its 100 KiB, and the id of the copy.
fn pending(stage: &Stage) -> (Elsewhere, String) {
    let source = Elsewhere::start(vec![7; 100 * 1024], 40 * 1024, &[]);
    let begun = stage.call("PUT share/file", &[("x-ms-copy-source", &*source.url()), ("x-ms-meta-a", "1")], "").ok();
    assert_eq!((begun.status, begun.header("x-ms-copy-status")), (202, Some("pending")));
    let id = begun.header("x-ms-copy-id").expect("an id").to_owned();
    (source, id)
}

#[test]
fn it_leaves_an_empty_file() {
    let stage = Stage::new();
    let (_source, id) = pending(&stage);
    let mut table = Table::new("abort_copy_file");
    let url = |id: &str| format!("PUT share/file?comp=copy&copyid={id}");
    #[rustfmt::skip]
    let rows: &[(&str, String, Headers<'_>, &str)] = &[
        ("another id",    url(A),   &[ABORT], "409 CopyIdMismatch"),
        ("no id",         "PUT share/file?comp=copy".to_owned(), &[ABORT], "400 MissingRequiredQueryParameter"),
        ("no GUID",       url("1"), &[ABORT], "400 InvalidQueryParameterValue"),
        ("no action",     url(&id), &[], "400 MissingRequiredHeader"),
        ("another action", url(&id), &[("x-ms-copy-action", "end")], "400 InvalidHeaderValue"),
        ("an id and no lease", url(&id), &[ABORT, ("x-ms-lease-id", B)], "412 LeaseNotPresentWithFileOperation"),
        ("no file",       format!("PUT share/none?comp=copy&copyid={id}"), &[ABORT], "404 ResourceNotFound"),
    ];
    for (row, line, headers, expected) in rows {
        table.row(row, stage.call(line, headers, "").said(), expected);
    }
    table.row("it counts", stage.usage("share"), 100 * 1024);
    table.row("aborted", stage.call(&url(&id), &[ABORT], "").said(), "204");
    let told = stage.head("share/file").ok();
    table.row("status", told.header("x-ms-copy-status").unwrap_or_default(), "aborted");
    table.row("length", told.header("content-length").unwrap_or_default(), "0");
    table.row("metadata", told.header("x-ms-meta-a").unwrap_or_default(), "1");
    table.row("given back", stage.usage("share"), 0);
    table.row("again", stage.call(&url(&id), &[ABORT], "").said(), "409 NoPendingCopyOperation");
    table.row("deleted", stage.delete("share/file").said(), "202");
}

#[test]
fn a_pending_copy_stands_against_changes() {
    let stage = Stage::new();
    let (_source, _) = pending(&stage);
    stage.make_file("share/other", 1);
    let own = stage.client.url("share/file");
    let other = stage.client.url("share/other");
    let mut table = Table::new("a pending copy of a file");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>)] = &[
        ("create",         "PUT share/file", &[FILE, (LENGTH, "5")]),
        ("copy",           "PUT share/file", &[("x-ms-copy-source", &*other)]),
        ("clear",          "PUT share/file?comp=range", &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-9")]),
        ("properties",     "PUT share/file?comp=properties", &[]),
        ("metadata",       "PUT share/file?comp=metadata", &[]),
        ("delete",         "DELETE share/file", &[]),
        ("rename",         "PUT share/new?comp=rename", &[(SOURCE, &*own)]),
        ("rename onto it", "PUT share/file?comp=rename", &[(SOURCE, &*other), ("x-ms-file-rename-replace-if-exists", "true")]),
    ];
    for (row, line, headers) in rows {
        table.row(row, stage.call(line, headers, "").said(), "409 PendingCopyOperation");
    }
    table.row(
        "as a source",
        stage.call("PUT share/next", &[("x-ms-copy-source", &*own)], "").said(),
        "409 CannotVerifyCopySource",
    );
    table.row("reads", stage.get("share/file").status, 200);
    table.row("pending", stage.head("share/file").ok().header("x-ms-copy-status").unwrap_or_default(), "pending");
}
