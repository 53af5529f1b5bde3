//! Put Block From URL.

use crate::harness::Table;
use crate::stage::{Stage, block_list};

const URL: &str = "PUT cont/blob?comp=block&blockid=";

#[test]
fn blocks_from_parts_of_other_blobs() {
    let stage = Stage::new();
    // Large enough to be shared by reference, and not.
    let large: Vec<u8> = (0..5 * 1024 * 1024u32).map(|at| (at / 1_000) as u8).collect();
    stage.put("cont/large", &large);
    stage.put("cont/small", "0123456789");
    let (small, whole) = (stage.readable("cont/small"), stage.readable("cont/large"));
    let part = [("x-ms-source-range", "bytes=2-5")];
    let made = stage.take(&format!("{URL}AAAA"), &small, &part).ok();
    assert_eq!(made.status, 201);
    assert!(made.header("content-md5").or(made.header("x-ms-content-crc64")).is_some());
    stage.take(&format!("{URL}BBBB"), &whole, &[]).ok();
    stage.take(&format!("{URL}CCCC"), &whole, &[("x-ms-source-range", "bytes=1048576-")]).ok();
    let list = block_list(&[("Latest", "AAAA"), ("Latest", "BBBB"), ("Latest", "CCCC"), ("Latest", "AAAA")]);
    stage.call("PUT cont/blob?comp=blocklist", &[], list).ok();
    for blob in ["cont/large", "cont/small"] {
        stage.call(&format!("DELETE {blob}"), &[], "").ok();
    }
    stage.server.advance(3_600);
    stage.put_elsewhere();
    let expected = [b"2345", large.as_slice(), &large[1024 * 1024..], b"2345"].concat();
    assert!(stage.get("cont/blob").ok().body == expected);
}

#[test]
fn refusals() {
    let stage = Stage::new();
    stage.put("cont/small", "0123456789");
    stage.put("cont/empty", "");
    let small = stage.readable("cont/small");
    let empty = stage.readable("cont/empty");
    let range = "x-ms-source-range";
    let before = stage.everything();
    let mut table = Table::new("put_block_from_url refusals");
    for (what, id, url, headers, expected) in [
        ("beyond the end", "AAAA", &small, &[(range, "bytes=10-")][..], "416 CannotVerifyCopySource"),
        ("no range", "AAAA", &small, &[(range, "5 to 7")], "400 InvalidHeaderValue"),
        ("an empty source", "AAAA", &empty, &[], "409 InvalidSourceBlobType"),
        ("wrong MD5", "AAAA", &small, &[("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "400 Md5Mismatch"),
        ("bad id and bad range", "A", &small, &[(range, "bytes=10-")], "400 InvalidQueryParameterValue"),
    ] {
        table.row(what, stage.take(&format!("{URL}{id}"), url, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
