//! Delete Directory: only when nothing is in it, and at once.

use crate::harness::Table;
use crate::stage::{A, Stage};

#[test]
fn only_when_it_is_empty() {
    let stage = Stage::new();
    let mut table = Table::new("delete_directory");
    let delete = |path: &str| stage.delete(&format!("{path}?restype=directory")).said();
    stage.make_directory("share/dir");
    stage.make_directory("share/dir/inner");
    stage.make_file("share/dir/inner/file", 0);
    table.row("with a file", delete("share/dir/inner"), "409 DirectoryNotEmpty");
    table.row("with a directory", delete("share/dir"), "409 DirectoryNotEmpty");
    stage.delete("share/dir/inner/file").ok();
    table.row("empty", delete("share/DIR/Inner"), "202");
    table.row("again", delete("share/dir/inner"), "404 ResourceNotFound");
    stage.make_file("share/dir/file", 0);
    stage.acquire("share/dir/file", A, "-1");
    table.row("with a leased file", delete("share/dir"), "409 DirectoryNotEmpty");
    stage.rename_file("share/dir/file", "share/file", &[("x-ms-source-lease-id", A)]).ok();
    table.row("after a rename out of it", delete("share/dir"), "202");
    table.row("not there", delete("share/dir"), "404 ResourceNotFound");
    table.row("no parent", stage.delete("share/none/dir?restype=directory").status, 404);
    table.row("no share", delete("none/dir"), "404 ShareNotFound");
    assert_eq!(stage.names("share"), "file");
}

/// Whoever asks for it afterwards finds nothing, and what comes under its name is another one.
#[test]
fn what_comes_after_it_is_another() {
    let stage = Stage::new();
    let old = stage.call("PUT share/dir?restype=directory", &[("x-ms-meta-a", "1")], "").ok();
    stage.delete("share/dir?restype=directory").ok();
    assert_eq!(stage.create_file("share/dir/file", 0, &[]).said(), "404 ParentNotFound");
    assert_eq!(stage.get("share/dir?restype=directory&comp=list").said(), "404 ResourceNotFound");
    // A file may have the name now.
    stage.put_file("share/dir", "a file");
    assert_eq!(stage.read("share/dir"), b"a file");
    stage.delete("share/dir").ok();
    let new = stage.make_directory("share/dir");
    assert_ne!(old.header("x-ms-file-id"), new.header("x-ms-file-id"));
    assert_eq!(stage.head("share/dir?restype=directory").header("x-ms-meta-a"), None);
}
