//! Set File Metadata and Get File Metadata.

use crate::stage::Stage;

const URL: &str = "share/file?comp=metadata";

#[test]
fn all_of_it_is_replaced() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let set = |headers| stage.call(&format!("PUT {URL}"), headers, "").said();
    assert_eq!(set(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]), "200");
    assert_eq!(set(&[("x-ms-meta-b", "3")]), "200");
    for line in [format!("GET {URL}"), format!("HEAD {URL}"), "GET share/file".to_owned(), "HEAD share/file".to_owned()]
    {
        let told = stage.call(&line, &[], "").ok();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")), "{line}");
    }
    assert_eq!(set(&[]), "200");
    assert_eq!(stage.get(URL).header("x-ms-meta-b"), None);
    assert_eq!(stage.read("share/file"), b"content");
}

#[test]
fn bad_names_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    stage.call(&format!("PUT {URL}"), &[("x-ms-meta-a", "1")], "").ok();
    let before = stage.everything();
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
    assert_eq!(stage.everything(), before);
}
