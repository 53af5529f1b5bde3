//! List Shares.

use crate::harness::{Element, Table};
use crate::stage::{A, Stage, percent};

const NAMES: [&str; 8] = ["abc", "abd", "b-1", "b-2", "pre-a", "pre-b", "share", "zzz"];

#[rustfmt::skip]
const LISTINGS: &[(&str, &str)] = &[
    ("",                  "abc abd b-1 b-2 pre-a pre-b share zzz"),
    ("&prefix=",          "abc abd b-1 b-2 pre-a pre-b share zzz"),
    ("&prefix=ab",        "abc abd"),
    ("&prefix=b-",        "b-1 b-2"),
    ("&prefix=pre-b",     "pre-b"),
    ("&prefix=pre-bb",    ""),
    ("&prefix=%26%3C",    ""),
    ("&include=metadata", "abc abd b-1 b-2 pre-a pre-b share zzz"),
    ("&include=metadata,deleted", "abc abd b-1 b-2 pre-a pre-b share zzz"),
];

fn filled() -> Stage {
    let stage = Stage::new();
    for name in NAMES.iter().filter(|name| **name != "share") {
        stage.call(&format!("PUT {name}?restype=share"), &[("x-ms-meta-Name", name)], "").ok();
    }
    stage
}

fn names(page: &[Element]) -> String {
    page.iter().map(|found| found.text_of("Name").expect("a name")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_page_size_gives_the_same_listing() {
    let stage = filled();
    let mut table = Table::new("list_shares");
    for (query, expected) in LISTINGS {
        let whole = stage.get(&format!("?comp=list{query}")).ok().xml();
        table.row(query, names(whole.all("Shares")), expected);
        for size in 1..=7 {
            let (mut found, mut marker) = (Vec::new(), String::new());
            loop {
                let target = format!("?comp=list{query}&maxresults={size}&marker={}", percent(&marker));
                let page = stage.get(&target).ok().xml();
                assert!(page.all("Shares").len() <= size, "{target}");
                found.extend_from_slice(page.all("Shares"));
                marker = page.text_of("NextMarker").expect("a NextMarker");
                assert!(found.len() < 100, "{target} does not end");
                if marker.is_empty() {
                    break;
                }
            }
            table.row(format!("{query}, pages of {size}"), names(&found), expected);
            assert!(found == whole.all("Shares"), "{query}, pages of {size}");
        }
    }
}

#[test]
fn what_is_told_of_each() {
    let stage = filled();
    stage.acquire("abc?restype=share", A, "15");
    stage.call("PUT abd?restype=share&comp=properties", &[("x-ms-share-quota", "7")], "").ok();
    stage.call("PUT zzz?restype=share&comp=properties", &[("x-ms-access-tier", "Cool")], "").ok();
    let listed = stage.get("?comp=list&include=metadata").ok().xml();
    assert_eq!(listed.name, "EnumerationResults");
    let endpoint = listed.attribute("ServiceEndpoint").expect("an endpoint");
    assert!(endpoint.starts_with("http://127.0.0.1:") && endpoint.ends_with("/devstoreaccount1/"), "{endpoint}");
    for absent in ["Prefix", "Marker", "MaxResults"] {
        assert_eq!(listed.find(absent), None, "{absent}");
    }
    for found in listed.all("Shares") {
        let name = found.text_of("Name").expect("a name");
        let head = stage.head(&format!("{name}?restype=share"));
        let told = |path: &str| found.text_of(&format!("Properties/{path}"));
        let header = |name: &str| head.header(name).map(str::to_owned);
        assert_eq!(
            told("Etag").map(|etag| etag.trim_matches('"').to_owned()),
            Some(head.etag().trim_matches('"').into())
        );
        assert_eq!(told("Last-Modified"), Some(head.last_modified()), "{name}");
        assert_eq!(told("Quota"), header("x-ms-share-quota"), "{name}");
        assert_eq!(told("AccessTier"), header("x-ms-access-tier"), "{name}");
        let leased = name == "abc";
        assert_eq!(told("LeaseState").as_deref(), Some(if leased { "leased" } else { "available" }), "{name}");
        assert_eq!(told("LeaseStatus").as_deref(), Some(if leased { "locked" } else { "unlocked" }), "{name}");
        assert_eq!(told("LeaseDuration").as_deref(), leased.then_some("fixed"), "{name}");
        for absent in ["Snapshot", "Deleted", "Version", "Properties/DeletedTime", "Properties/RemainingRetentionDays"]
        {
            assert_eq!(found.text_of(absent), None, "{name}: {absent}");
        }
        let metadata = found.all("Metadata").first().map(|pair| (pair.name.clone(), pair.text.clone()));
        assert_eq!(metadata, (name != "share").then_some(("Name".to_owned(), name)));
    }
    assert!(stage.get("?comp=list").xml().all("Shares").iter().all(|found| found.find("Metadata").is_none()));
    let asked = stage.get("?comp=list&prefix=b&maxresults=1").ok().xml();
    let repeated = ["Prefix", "MaxResults"].map(|name| asked.text_of(name).unwrap_or_default());
    assert_eq!(repeated, ["b", "1"]);
    let marker = asked.text_of("NextMarker").expect("a marker");
    let next = stage.get(&format!("?comp=list&prefix=b&marker={}", percent(&marker))).ok().xml();
    assert_eq!((names(next.all("Shares")), next.text_of("Marker")), ("b-2".to_owned(), Some(marker)));
}

/// Deleted shares stand among the others, under their names, when they are asked for.
#[test]
fn deleted_ones_when_asked_for() {
    let stage = filled();
    stage.keep_deleted(3);
    for _ in 0..2 {
        stage.delete("b-1?restype=share").ok();
        let made = stage.call("PUT b-1?restype=share", &[], "");
        if made.said() == "409 ShareBeingDeleted" {
            stage.server.advance(60);
            stage.make_share("b-1");
        }
    }
    let mut table = Table::new("list_shares: deleted");
    for size in [1, 2, 3, 100] {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let target = format!("?comp=list&include=deleted&maxresults={size}&marker={}", percent(&marker));
            let page = stage.get(&target).ok().xml();
            found.extend_from_slice(page.all("Shares"));
            marker = page.text_of("NextMarker").expect("a NextMarker");
            if marker.is_empty() {
                break;
            }
        }
        let deleted = found.iter().filter(|share| share.text_of("Deleted").is_some()).count();
        table.row(format!("pages of {size}"), names(&found), "abc abd b-1 b-1 b-1 b-2 pre-a pre-b share zzz");
        table.row(format!("deleted in pages of {size}"), deleted, 2);
    }
    table.row("not asked for", names(stage.get("?comp=list&prefix=b-1").xml().all("Shares")), "b-1");
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
        ("&include=files",   "400 InvalidQueryParameterValue"),
        ("&include=snapshots", "200"),
    ];
    let mut table = Table::new("list_shares: parameters");
    for (query, expected) in rows {
        table.row(query, stage.get(&format!("?comp=list{query}")).said(), expected);
    }
    table.row("a marker that is none", stage.get("?comp=list&marker=%21").status, 400);
}

#[test]
fn none_at_all() {
    let stage = Stage::empty();
    let listed = stage.get("?comp=list").ok().xml();
    assert!(listed.find("Shares").is_some() && listed.all("Shares").is_empty());
    assert_eq!(listed.text_of("NextMarker").as_deref(), Some(""));
}
