//! List Containers.

use crate::harness::{Element, Server, Table};
use crate::stage::{A, Stage, percent};

const NAMES: [&str; 8] = ["abc", "abd", "b-1", "b-2", "cont", "pre-a", "pre-b", "zzz"];

#[rustfmt::skip]
const LISTINGS: &[(&str, &str)] = &[
    ("",                  "abc abd b-1 b-2 cont pre-a pre-b zzz"),
    ("&prefix=",          "abc abd b-1 b-2 cont pre-a pre-b zzz"),
    ("&prefix=ab",        "abc abd"),
    ("&prefix=b-",        "b-1 b-2"),
    ("&prefix=pre-b",     "pre-b"),
    ("&prefix=pre-bb",    ""),
    ("&prefix=B",         ""),
    ("&prefix=%26%3C",    ""),
    ("&include=metadata", "abc abd b-1 b-2 cont pre-a pre-b zzz"),
];

fn filled() -> Stage {
    let stage = Stage::new();
    for name in NAMES.iter().filter(|name| **name != "cont") {
        stage.call(&format!("PUT {name}?restype=container"), &[("x-ms-meta-name", name)], "").ok();
    }
    stage
}

fn names(page: &[Element]) -> String {
    page.iter().map(|found| found.text_of("Name").expect("a name")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_page_size_gives_the_same_listing() {
    let stage = filled();
    let mut table = Table::new("list_containers");
    for (query, expected) in LISTINGS {
        let whole = stage.get(&format!("?comp=list{query}")).ok().xml();
        table.row(query, names(whole.all("Containers")), expected);
        for size in 1..=7 {
            let (mut found, mut marker) = (Vec::new(), String::new());
            loop {
                let target = format!("?comp=list{query}&maxresults={size}&marker={}", percent(&marker));
                let page = stage.get(&target).ok().xml();
                assert!(page.all("Containers").len() <= size, "{target}");
                found.extend_from_slice(page.all("Containers"));
                marker = page.text_of("NextMarker").expect("a NextMarker");
                assert!(found.len() < 100, "{target} does not end");
                if marker.is_empty() {
                    break;
                }
            }
            table.row(format!("{query}, pages of {size}"), names(&found), expected);
            assert!(found == whole.all("Containers"), "{query}, pages of {size}");
        }
    }
}

#[test]
fn what_is_told_of_each() {
    let stage = filled();
    stage.acquire("abc?restype=container", A, "15");
    stage.call("PUT abd?restype=container&comp=acl", &[("x-ms-blob-public-access", "blob")], "").ok();
    let listed = stage.get("?comp=list&include=metadata").ok().xml();
    for found in listed.all("Containers") {
        let name = found.text_of("Name").expect("a name");
        let head = stage.head(&format!("{name}?restype=container"));
        // In the list of containers the service quotes it; in the list of blobs it does not.
        assert_eq!(found.text_of("Properties/Etag"), Some(head.etag()), "{name}");
        assert_eq!(found.text_of("Properties/Last-Modified"), Some(head.last_modified()), "{name}");
        let leased = name == "abc";
        let state = |path: &str| found.text_of(&format!("Properties/{path}"));
        assert_eq!(state("LeaseState").as_deref(), Some(if leased { "leased" } else { "available" }), "{name}");
        assert_eq!(state("LeaseStatus").as_deref(), Some(if leased { "locked" } else { "unlocked" }), "{name}");
        assert_eq!(state("LeaseDuration").as_deref(), leased.then_some("fixed"), "{name}");
        assert_eq!(state("PublicAccess").as_deref(), (name == "abd").then_some("blob"), "{name}");
        let metadata = found.all("Metadata").first().map(|pair| pair.text.clone());
        assert_eq!(metadata, (name != "cont").then_some(name));
    }
    assert!(stage.get("?comp=list").xml().all("Containers").iter().all(|found| found.find("Metadata").is_none()));
}

#[test]
fn bad_parameters() {
    let stage = filled();
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("&maxresults=0",    "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=-5",   "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=x",    "400 InvalidQueryParameterValue"),
        ("&maxresults=5001", "200"),
        ("&include=blobs",   "400 InvalidQueryParameterValue"),
        ("&marker=%21",      "400 InvalidQueryParameterValue"),
    ];
    let mut table = Table::new("list_containers parameters");
    for (query, expected) in rows {
        table.row(query, stage.get(&format!("?comp=list{query}")).said(), expected);
    }
}

#[test]
fn none_at_all() {
    let server = Server::start();
    let listed = server.client().call("GET ?comp=list", &[], "").ok().xml();
    assert!(listed.find("Containers").is_some() && listed.all("Containers").is_empty());
    assert_eq!(listed.text_of("NextMarker").as_deref(), Some(""));
}
