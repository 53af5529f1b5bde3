//! Create Directory. The names that it takes are in `names`, its properties in `smb_properties`.

use crate::harness::Table;
use crate::stage::Stage;

#[test]
fn a_name_is_taken_once() {
    let stage = Stage::new();
    let mut table = Table::new("create_directory");
    let create = |path: &str| stage.call(&format!("PUT {path}?restype=directory"), &[], "").said();
    table.row("new", create("share/Dir"), "201");
    table.row("again", create("share/Dir"), "409 ResourceAlreadyExists");
    table.row("in another case", create("share/dIR"), "409 ResourceAlreadyExists");
    stage.make_file("share/file", 0);
    table.row("where a file is", create("share/FILE"), "409 ResourceAlreadyExists");
    table.row("inside", create("share/dir/inner"), "201");
    table.row("no parent", create("share/none/inner"), "404 ParentNotFound");
    table.row("no share", create("none/dir"), "404 ShareNotFound");
    table.row("a slash at the end", create("share/slash/"), "201");
    table.row("as they were spelt", stage.names("share"), "Dir/ file slash/");
    stage.delete("share/DIR/INNER?restype=directory").ok();
    stage.delete("share/DIR?restype=directory").ok();
    table.row("after a delete, spelt anew", create("share/DIR"), "201");
    table.row("the new spelling", stage.names("share"), "DIR/ file slash/");
}

/// Each has an id of its own, and knows its parent's.
#[test]
fn ids() {
    let stage = Stage::new();
    let id = |answer: &crate::harness::Answer, name: &str| -> u64 {
        answer.header(name).expect("an id").parse().expect("a number")
    };
    let dir = stage.make_directory("share/dir");
    let inner = stage.make_directory("share/dir/inner");
    let file = stage.make_file("share/dir/file", 0);
    assert_eq!(id(&dir, "x-ms-file-parent-id"), 0);
    for child in [&inner, &file] {
        assert_eq!(id(child, "x-ms-file-parent-id"), id(&dir, "x-ms-file-id"));
    }
    let ids = [&dir, &inner, &file].map(|answer| id(answer, "x-ms-file-id"));
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2] && !ids.contains(&0), "{ids:?}");
    // Never used again.
    stage.delete("share/dir/inner?restype=directory").ok();
    let again = stage.make_directory("share/dir/inner");
    assert!(!ids.contains(&id(&again, "x-ms-file-id")));
}

#[test]
fn metadata() {
    let stage = Stage::new();
    let headers = [("x-ms-meta-Some_Name", "a value"), ("x-ms-meta-b", "2")];
    stage.call("PUT share/dir?restype=directory", &headers, "").ok();
    for target in ["share/dir?restype=directory", "share/dir?restype=directory&comp=metadata"] {
        let told = stage.get(target).ok();
        assert_eq!((told.header("x-ms-meta-some_name"), told.header("x-ms-meta-b")), (Some("a value"), Some("2")));
    }
    for (name, error) in [("x-ms-meta-", "400 EmptyMetadataKey"), ("x-ms-meta-a-b", "400 InvalidMetadata")] {
        let refused = stage.call("PUT share/new?restype=directory", &[(name, "1")], "");
        assert_eq!(refused.said(), error);
        // Two faults: what is wrong with the request comes first.
        assert_eq!(stage.call("PUT share/dir?restype=directory", &[(name, "1")], "").said(), error);
        assert_eq!(stage.call("PUT none/dir?restype=directory", &[(name, "1")], "").said(), error);
    }
    assert_eq!(stage.names("share"), "dir/");
}
