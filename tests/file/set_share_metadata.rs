//! Set Share Metadata and Get Share Metadata.

use crate::stage::{SHARE, Stage};

const URL: &str = "share?restype=share&comp=metadata";

#[test]
fn all_of_it_is_replaced() {
    let stage = Stage::new();
    let set = |headers| stage.call(&format!("PUT {URL}"), headers, "").said();
    assert_eq!(set(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]), "200");
    assert_eq!(set(&[("x-ms-meta-b", "3")]), "200");
    for line in [format!("GET {URL}"), format!("HEAD {URL}"), format!("GET {SHARE}"), format!("HEAD {SHARE}")] {
        let told = stage.call(&line, &[], "").ok();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")), "{line}");
    }
    assert_eq!(set(&[]), "200");
    assert_eq!(stage.get(URL).header("x-ms-meta-b"), None);
}

#[test]
fn bad_names_change_nothing() {
    let stage = Stage::new();
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1")], "").ok();
    let long = "v".repeat(9_000);
    for (name, value, error) in [
        ("x-ms-meta-", "1", "400 EmptyMetadataKey"),
        ("x-ms-meta-a-b", "1", "400 InvalidMetadata"),
        ("x-ms-meta-1", "1", "400 InvalidMetadata"),
        ("x-ms-meta-a", long.as_str(), "400 MetadataTooLarge"),
    ] {
        assert_eq!(stage.call(&format!("PUT {URL}"), &[(name, value)], "").said(), error, "{name}");
    }
    let twice = stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1"), ("x-ms-meta-A", "2")], "");
    assert_eq!(twice.status, 400);
    assert_eq!(stage.get(URL).header("x-ms-meta-a"), Some("1"));
}
