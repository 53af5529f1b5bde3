//! Put Page From URL.

use crate::harness::Table;
use crate::stage::Stage;

#[test]
fn pages_of_other_blobs() {
    let stage = Stage::new();
    let bytes: Vec<u8> = (0..2_048).map(|at| (at / 512 + 1) as u8).collect();
    stage.put("cont/source", &bytes);
    stage.put_pages("cont/blob", 2_048);
    let (line, url) = ("PUT cont/blob?comp=page", stage.readable("cont/source"));
    let update = ("x-ms-page-write", "update");
    let to = ("x-ms-range", "bytes=512-1535");
    let from = ("x-ms-source-range", "bytes=512-1535");
    let made = stage.take(line, &url, &[update, to, from]).ok();
    assert_eq!((made.status, made.header("x-ms-blob-sequence-number")), (201, Some("0")));
    // What it has of itself, at another place.
    let own = [update, ("x-ms-range", "bytes=1536-2047"), ("x-ms-source-range", "bytes=512-1023")];
    stage.take(line, &stage.readable("cont/blob"), &own).ok();
    stage.call("DELETE cont/source", &[], "").ok();
    let expected = [[0; 512], [2; 512], [3; 512], [2; 512]].concat();
    assert_eq!(stage.get("cont/blob").ok().body, expected);
    stage.put("cont/source", &bytes);
    let mut table = Table::new("put_page_from_url refusals");
    let before = stage.everything();
    let longer = ("x-ms-source-range", "bytes=0-1535");
    let beyond = ("x-ms-source-range", "bytes=1536-2559");
    for (what, headers, expected) in [
        ("no range of the source", &[update, to][..], "400 MissingRequiredHeader"),
        ("a longer one", &[update, to, longer], "416 InvalidPageRange"),
        ("beyond its end", &[update, to, beyond], "416 InvalidPageRange"),
        ("no range", &[update, from], "400 MissingRequiredHeader"),
        ("not whole pages", &[update, ("x-ms-range", "bytes=1-1024"), from], "416 InvalidPageRange"),
        ("clear", &[("x-ms-page-write", "clear"), to, from], "400 InvalidHeaderValue"),
        ("sequence", &[update, to, from, ("x-ms-if-sequence-number-lt", "0")], "412 SequenceNumberConditionNotMet"),
        ("wrong MD5", &[update, to, from, ("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "400 Md5Mismatch"),
    ] {
        table.row(what, stage.take(line, &url, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
