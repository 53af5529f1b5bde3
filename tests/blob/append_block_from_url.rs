//! Append Block From URL.

use crate::harness::Table;
use crate::stage::Stage;

#[test]
fn parts_of_other_blobs_are_appended() {
    let stage = Stage::new();
    stage.put("cont/source", "0123456789");
    stage.put_append("cont/blob", "a");
    stage.put("cont/block", "x");
    let url = stage.readable("cont/source");
    let line = "PUT cont/blob?comp=appendblock";
    let made =
        stage.take(line, &url, &[("x-ms-source-range", "bytes=2-5"), ("x-ms-blob-condition-appendpos", "1")]).ok();
    let told = ["x-ms-blob-append-offset", "x-ms-blob-committed-block-count"].map(|name| made.header(name));
    assert_eq!((made.status, told), (201, [Some("1"), Some("2")]));
    stage.take(line, &url, &[]).ok();
    // What it has of itself.
    stage.take(line, &stage.readable("cont/blob"), &[]).ok();
    stage.call("DELETE cont/source", &[], "").ok();
    let content = "a23450123456789";
    assert_eq!(stage.get("cont/blob").ok().body, [content, content].concat().as_bytes());
    stage.put("cont/source", "0123456789");
    let mut table = Table::new("append_block_from_url refusals");
    let before = stage.everything();
    for (what, line, headers, expected) in [
        ("elsewhere", line, &[("x-ms-blob-condition-appendpos", "1")][..], "412 AppendPositionConditionNotMet"),
        ("too much", line, &[("x-ms-blob-condition-maxsize", "39")], "412 MaxBlobSizeConditionNotMet"),
        ("beyond its end", line, &[("x-ms-source-range", "bytes=10-")], "416 CannotVerifyCopySource"),
        ("another type", "PUT cont/block?comp=appendblock", &[], "409 InvalidBlobType"),
        ("no blob", "PUT cont/none?comp=appendblock", &[], "404 BlobNotFound"),
        ("wrong MD5", line, &[("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "400 Md5Mismatch"),
    ] {
        table.row(what, stage.take(line, &url, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    stage.call("PUT cont/blob?comp=seal", &[], "").ok();
    table.row("sealed", stage.take(line, &url, &[]).said(), "409 BlobIsSealed");
}
