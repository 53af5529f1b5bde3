//! Set Container Metadata.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

const URL: &str = "cont?restype=container&comp=metadata";

#[test]
fn all_of_it_is_replaced() {
    let stage = Stage::new();
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1"), ("x-ms-meta-B", "2")], "").ok();
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-b", "3")], "").ok();
    for target in [URL, "cont?restype=container"] {
        let told = stage.get(target);
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")), "{target}");
    }
    stage.call(&format!("PUT {URL}"), &[], "").ok();
    assert_eq!(stage.head(URL).header("x-ms-meta-b"), None);
}

#[test]
fn bad_metadata_changes_nothing() {
    let stage = Stage::new();
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1")], "").ok();
    let before = stage.everything();
    let long = "x".repeat(8 * 1024);
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("empty name",    &[("x-ms-meta-", "x")], "400 EmptyMetadataKey"),
        ("no identifier", &[("x-ms-meta-1", "x")], "400 InvalidMetadata"),
        ("a control character", &[("x-ms-meta-a", "x\u{80}")], "400 InvalidMetadata"),
        ("too much",      &[("x-ms-meta-a", &long)], "400 MetadataTooLarge"),
    ];
    let mut table = Table::new("set_container_metadata");
    for (what, headers, expected) in rows {
        table.row(what, stage.call(&format!("PUT {URL}"), headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
