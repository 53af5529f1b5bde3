//! Set Directory Metadata and Get Directory Metadata.

use crate::stage::Stage;

const URL: &str = "share/dir?restype=directory&comp=metadata";

#[test]
fn all_of_it_is_replaced() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let set = |headers| stage.call(&format!("PUT {URL}"), headers, "").said();
    assert_eq!(set(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]), "200");
    assert_eq!(set(&[("x-ms-meta-b", "3")]), "200");
    for verb in ["GET", "HEAD"] {
        let told = stage.call(&format!("{verb} {URL}"), &[], "").ok();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")), "{verb}");
        assert!(told.header("etag").is_some() && told.header("last-modified").is_some(), "{verb}");
    }
    assert_eq!(set(&[]), "200");
    assert_eq!(stage.get(URL).header("x-ms-meta-b"), None);
}

#[test]
fn bad_names_change_nothing() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1")], "").ok();
    let before = stage.everything();
    let long = "v".repeat(9_000);
    for (name, value, error) in [
        ("x-ms-meta-", "1", "400 EmptyMetadataKey"),
        ("x-ms-meta-a-b", "1", "400 InvalidMetadata"),
        ("x-ms-meta-a", long.as_str(), "400 MetadataTooLarge"),
    ] {
        assert_eq!(stage.call(&format!("PUT {URL}"), &[(name, value)], "").said(), error, "{name}");
        let nowhere = "PUT share/none?restype=directory&comp=metadata";
        assert_eq!(stage.call(nowhere, &[(name, value)], "").said(), error, "{name}");
    }
    assert_eq!(stage.everything(), before);
}
