//! Create Container.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

/// Names of containers, percent-encoded where they must be.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("abc",                 "201"),
    ("a-b-c",               "201"),
    ("123",                 "201"),
    ("$root",               "201"),
    ("$web",                "201"),
    (A63,                   "201"),
    ("ab",                  "400 OutOfRangeInput"),
    (A64,                   "400 OutOfRangeInput"),
    ("Abc",                 "400 InvalidResourceName"),
    ("a_b",                 "400 InvalidResourceName"),
    ("a--b",                "400 InvalidResourceName"),
    ("-ab",                 "400 InvalidResourceName"),
    ("ab-",                 "400 InvalidResourceName"),
    ("a.b",                 "400 InvalidResourceName"),
    ("a%20b",               "400 InvalidResourceName"),
    ("%C3%A4%C3%B6%C3%BC",  "400 InvalidResourceName"),
    ("$other",              "400 InvalidResourceName"),
    ("a%2Fb",               "400 InvalidResourceName"),
    ("abc/def",             "400 InvalidResourceName"),
    ("a%zz",                "400 RequestUrlFailedToParse"),
    ("abc%00",              "400 RequestUrlFailedToParse"),
    ("abc%ff",              "400 RequestUrlFailedToParse"),
];

const A63: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const A64: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn names() {
    let stage = Stage::new();
    let mut table = Table::new("create_container names");
    for (name, expected) in NAMES {
        table.row(name, stage.call(&format!("PUT {name}?restype=container"), &[], "").said(), expected);
    }
    let listing = stage.get("?comp=list").xml();
    let found: Vec<String> = listing.all("Containers").iter().filter_map(|found| found.text_of("Name")).collect();
    let mut made: Vec<&str> = NAMES.iter().filter(|(_, said)| *said == "201").map(|(name, _)| *name).collect();
    made.push("cont");
    made.sort_unstable();
    assert_eq!(found, made);
}

#[test]
fn bad_headers_make_nothing() {
    let stage = Stage::new();
    let long = "x".repeat(8 * 1024);
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("unknown access",       &[("x-ms-blob-public-access", "everybody")], "400 InvalidHeaderValue"),
        ("empty metadata name",  &[("x-ms-meta-", "x")], "400 EmptyMetadataKey"),
        ("no identifier",        &[("x-ms-meta-1a", "x")], "400 InvalidMetadata"),
        ("a dash in the name",   &[("x-ms-meta-a-b", "x")], "400 InvalidMetadata"),
        ("a value with umlauts", &[("x-ms-meta-a", "äöü")], "400 InvalidMetadata"),
        ("too much metadata",    &[("x-ms-meta-a", &long)], "400 MetadataTooLarge"),
        ("no version",           &[("x-ms-version", "latest")], "400 InvalidHeaderValue"),
        ("a version too old",    &[("x-ms-version", "2008-10-27")], "400 InvalidHeaderValue"),
    ];
    let mut table = Table::new("create_container bad headers");
    for (what, headers, expected) in rows {
        table.row(what, stage.call("PUT fresh?restype=container", headers, "").said(), expected);
        table.row(format!("{what}: nothing made"), stage.head("fresh?restype=container").status, 404);
    }
}

#[test]
fn a_second_time() {
    let stage = Stage::new();
    let first = stage.head("cont?restype=container").etag();
    let again = stage.call("PUT cont?restype=container", &[("x-ms-meta-a", "1")], "");
    assert_eq!(again.said(), "409 ContainerAlreadyExists");
    let after = stage.head("cont?restype=container");
    assert_eq!((after.etag(), after.header("x-ms-meta-a")), (first, None));
}

#[test]
fn what_is_set_is_told() {
    let stage = Stage::new();
    let headers = [("x-ms-meta-Colour", "blue"), ("x-ms-meta-b", ""), ("x-ms-blob-public-access", "container")];
    let made = stage.call("PUT fresh?restype=container", &headers, "").ok();
    for line in ["GET fresh?restype=container", "HEAD fresh?restype=container"] {
        let told = stage.call(line, &[], "").ok();
        assert_eq!(told.etag(), made.etag());
        assert_eq!(told.header("x-ms-meta-colour"), Some("blue"), "{line}");
        assert_eq!(told.header("x-ms-meta-b"), Some(""), "{line}");
        assert_eq!(told.header("x-ms-blob-public-access"), Some("container"), "{line}");
    }
}
