//! Delete File.

use crate::harness::Table;
use crate::stage::{A, Stage, pattern};

#[test]
fn it_is_gone_at_once() {
    let stage = Stage::new();
    let made = stage.create_file("share/File", 2_000, &[("x-ms-meta-a", "1")]).ok();
    stage.write("share/file", 0, pattern(1, 2_000));
    stage.acquire("share/file", A, "-1");
    let mut table = Table::new("delete_file");
    table.row("leased", stage.delete("share/file").said(), "412 LeaseIdMissing");
    table.row("its id", stage.call("DELETE share/FILE", &[("x-ms-lease-id", A)], "").said(), "202");
    table.row("again", stage.delete("share/file").said(), "404 ResourceNotFound");
    table.row("not listed", stage.names("share"), "");
    table.row("not counted", stage.usage("share"), 0);
    // What comes under its name is another one.
    let again = stage.make_file("share/file", 2_000);
    table.row("another id", made.header("x-ms-file-id") == again.header("x-ms-file-id"), false);
    let head = stage.head("share/file").ok();
    table.row("no metadata", head.header("x-ms-meta-a").unwrap_or("none"), "none");
    table.row("no lease", head.header("x-ms-lease-state").unwrap_or("none"), "available");
    table.row("zeros", stage.read("share/file") == vec![0; 2_000], true);
    table.row("another spelling", stage.names("share"), "file");
}

/// A million zeros and a tebibyte go as fast.
#[test]
fn large_ones() {
    let stage = Stage::new();
    for round in 0..5 {
        stage.make_file("share/file", 1 << 40);
        for place in 0..20 {
            stage.write("share/file", place << 35, pattern(place, 1_000));
        }
        assert_eq!(stage.delete("share/file").said(), "202", "{round}");
    }
    assert_eq!(stage.usage("share"), 0);
}
