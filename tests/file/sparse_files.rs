//! Files of a tebibyte and more: what was never written costs nothing and reads as zeros.
//!
//! A request that went through all of a tebibyte would not be answered before the client gives up. How long each takes is
//! measured by `cargo xtask scale`.

use crate::stage::{GIB, MIB, Stage, TIB, pattern};

#[test]
fn a_tebibyte() {
    let stage = Stage::new();
    stage.make_file("share/file", TIB);
    stage.write("share/file", 0, "begin");
    stage.write("share/file", TIB - 3, "end");
    stage.write("share/file", TIB / 2 - 1, "middle");
    let half = TIB / 2;
    let expected = format!("0-511 {}-{} {}-{}", half - 512, half + 511, TIB - 512, TIB - 1);
    assert_eq!(stage.ranges("share/file"), expected);
    assert_eq!(stage.read_range("share/file", TIB - 8, TIB - 1), b"\0\0\0\0\0end");
    assert_eq!(stage.read_range("share/file", half - 3, half + 6), b"\0\0middle\0\0");
    let gap = stage.read_range("share/file", 100 * GIB, 100 * GIB + 8 * MIB - 1);
    assert!(gap.len() as u64 == 8 * MIB && gap.iter().all(|byte| *byte == 0));
    assert_eq!(stage.head("share/file").header("content-length"), Some("1099511627776"));
    // All of it cleared, written again, cut.
    stage.clear("share/file", 0, TIB - 1).ok();
    assert_eq!(stage.ranges("share/file"), "");
    stage.write("share/file", half, "again");
    stage.resize("share/file", half + 2).ok();
    assert_eq!(stage.read_range("share/file", half - 2, half + 1), b"\0\0ag");
    stage.resize("share/file", TIB).ok();
    assert_eq!(stage.read_range("share/file", half, half + 4), b"ag\0\0\0");
    assert_eq!(stage.usage("share"), TIB);
    stage.rename_file("share/file", "share/moved", &[]).ok();
    assert_eq!(stage.ranges("share/moved"), format!("{half}-{}", half + 511));
    stage.delete("share/moved").ok();
}

#[test]
fn four_tebibytes() {
    let stage = Stage::new();
    stage.make_file("share/file", 4 * TIB);
    let content = pattern(1, 4 * MIB as usize);
    let last = 4 * TIB - 4 * MIB;
    stage.write("share/file", last, &content);
    assert_eq!(stage.ranges("share/file"), format!("{last}-{}", 4 * TIB - 1));
    assert!(stage.read_range("share/file", last, 4 * TIB - 1) == content);
    let beyond = stage.put_range("share/file", 4 * TIB - 1, "xy", &[]);
    assert_eq!(beyond.said(), "416 InvalidRange");
    // From the first byte to the last one the body would be 4 TiB; its head says so, and nobody has to read on.
    let reader = stage.server.client();
    let begun = reader.begin("GET share/file", &[]);
    assert_eq!(begun.answer.header("content-length"), Some("4398046511104"));
    drop(begun);
    // A write to each of a thousand places far apart, then all of them at once away.
    for place in 0..1_000 {
        stage.write("share/file", place * 4 * GIB, "x");
    }
    assert_eq!(stage.ranges("share/file").split(' ').count(), 1_001);
    stage.resize("share/file", 1).ok();
    assert_eq!((stage.ranges("share/file"), stage.read("share/file")), ("0-0".to_owned(), b"x".to_vec()));
    stage.delete("share/file").ok();
}

/// A killed server has all of it.
#[test]
fn after_a_kill() {
    let mut stage = Stage::new();
    stage.make_file("share/file", TIB);
    stage.write("share/file", 0, "begin");
    stage.write("share/file", TIB - 3, "end");
    stage.clear("share/file", 0, 1).ok();
    let before = (stage.ranges("share/file"), stage.head("share/file").etag(), stage.usage("share"));
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!((stage.ranges("share/file"), stage.head("share/file").etag(), stage.usage("share")), before);
    assert_eq!(stage.read_range("share/file", 0, 5), b"\0\0gin\0");
    assert_eq!(stage.read_range("share/file", TIB - 4, TIB - 1), b"\0end");
}
