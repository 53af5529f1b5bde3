//! Get Share Stats: usage is the sum of the lengths of files, written or not.

use crate::harness::Table;
use crate::stage::{GIB, Stage, TIB};

#[test]
fn the_usage_is_exact() {
    let stage = Stage::new();
    let mut table = Table::new("get_share_stats");
    let mut step = |what: &str, usage: u64| table.row(what, stage.usage("share"), usage);
    step("a new share", 0);
    stage.make_directory("share/dir");
    step("a directory", 0);
    stage.make_file("share/dir/a", 1_000);
    step("a file of zeros", 1_000);
    stage.write("share/dir/a", 100, "written");
    step("written in it", 1_000);
    stage.clear("share/dir/a", 0, 999).ok();
    step("cleared", 1_000);
    stage.make_file("share/b", 3 * GIB + 1);
    step("a second one", 3 * GIB + 1_001);
    stage.resize("share/b", 1).ok();
    step("cut", 1_001);
    stage.resize("share/b", 500).ok();
    step("longer again", 1_500);
    stage.make_file("share/b", 20);
    step("made anew", 1_020);
    stage.rename_file("share/b", "share/dir/c", &[]).ok();
    step("renamed", 1_020);
    stage.rename_directory("share/dir", "share/other", &[]).ok();
    step("its directory renamed", 1_020);
    stage.rename_file("share/other/c", "share/other/a", &[("x-ms-file-rename-replace-if-exists", "true")]).ok();
    step("over another", 20);
    stage.make_file("share/large", TIB);
    step("a large one", TIB + 20);
    stage.delete("share/large").ok();
    step("gone again", 20);
    stage.delete("share/other/a").ok();
    step("nothing left", 0);
}

#[test]
fn what_is_refused_does_not_count() {
    let stage = Stage::new();
    stage.make_file("share/file", 10);
    stage.acquire("share/file", crate::stage::A, "-1");
    assert_eq!(stage.resize("share/file", 20).said(), "412 LeaseIdMissing");
    assert_eq!(stage.create_file("share/file", 30, &[]).said(), "412 LeaseIdMissing");
    assert_eq!(stage.delete("share/file").said(), "412 LeaseIdMissing");
    assert_eq!(stage.create_file("share/none/file", 40, &[]).said(), "404 ParentNotFound");
    assert_eq!(stage.usage("share"), 10);
}
