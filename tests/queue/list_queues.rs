//! List Queues.

use crate::harness::{Element, Table};
use crate::stage::Stage;

fn names(page: &Element) -> Vec<String> {
    let queues = page.children.iter().find(|child| child.name == "Queues").expect("Queues");
    queues.children.iter().map(|queue| queue.text_of("Name").expect("a name")).collect()
}

#[test]
fn by_name_in_pages() {
    let stage = Stage::new();
    for name in ["beta", "alpha", "gamma-1", "gamma-2"] {
        stage.call(&format!("PUT {name}"), &[("x-ms-meta-mixed_case", name)], "").ok();
    }
    let all = stage.call("GET ?comp=list", &[], "").ok().xml();
    assert_eq!(names(&all), ["alpha", "beta", "gamma-1", "gamma-2", "que"]);
    assert!(all.attribute("ServiceEndpoint").is_some_and(|at| at.ends_with("/devstoreaccount1/")), "{all:?}");
    assert_eq!(all.text_of("NextMarker").as_deref(), Some(""));
    for absent in ["Prefix", "Marker", "MaxResults", "Queues/Queue/Metadata"] {
        assert_eq!(all.text_of(absent), None, "{absent}");
    }
    let some = stage.call("GET ?comp=list&prefix=gamma&include=metadata&maxresults=1", &[], "").ok().xml();
    assert_eq!(names(&some), ["gamma-1"]);
    assert_eq!(some.text_of("Queues/Queue/Metadata/mixed_case").as_deref(), Some("gamma-1"));
    assert_eq!((some.text_of("Prefix"), some.text_of("MaxResults")), (Some("gamma".into()), Some("1".into())));
    let marker = some.text_of("NextMarker").expect("a marker");
    let rest = stage.call(&format!("GET ?comp=list&prefix=gamma&marker={marker}"), &[], "").ok().xml();
    assert_eq!((names(&rest), rest.text_of("Marker")), (vec!["gamma-2".to_owned()], Some(marker)));
}

#[test]
fn bad_parameters() {
    let stage = Stage::new();
    let mut table = Table::new("list_queues: bad parameters");
    for (query, expected) in [
        ("maxresults=0", "400 OutOfRangeQueryParameterValue"),
        ("maxresults=-1", "400 OutOfRangeQueryParameterValue"),
        ("maxresults=x", "400 InvalidQueryParameterValue"),
        ("maxresults=5001", "200"),
        ("marker=%21%21", "400 InvalidMarker"),
        ("include=deleted", "400 InvalidQueryParameterValue"),
    ] {
        table.row(query, stage.call(&format!("GET ?comp=list&{query}"), &[], "").said(), expected);
    }
}

#[test]
fn an_old_version_is_shown_addresses() {
    let stage = Stage::new();
    let page = stage.call("GET ?comp=list", &[("x-ms-version", "2012-02-12")], "").ok().xml();
    assert!(page.attribute("AccountName").is_some(), "{page:?}");
    assert!(page.text_of("Queues/Queue/Url").is_some_and(|url| url.ends_with("/devstoreaccount1/que")), "{page:?}");
}
