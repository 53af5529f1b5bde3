//! Find Blobs by Tags, over the account and in a container.

use crate::harness::Table;
use crate::set_blob_tags::document;
use crate::stage::{BLOCK_BLOB, Stage};

/// The blobs that a search finds, as `container/name`, page by page.
fn find(stage: &Stage, target: &str, text: &str, page: usize) -> Vec<String> {
    let text = text.replace(' ', "%20").replace('=', "%3D").replace('\'', "%27").replace('@', "%40");
    let text = text.replace('<', "%3C").replace('>', "%3E");
    let (mut found, mut marker) = (Vec::new(), String::new());
    loop {
        let answer =
            stage.get(&format!("{target}comp=blobs&where={text}&maxresults={page}&marker={marker}")).ok().xml();
        for blob in answer.all("Blobs") {
            let text = |path| blob.text_of(path).expect("a text");
            found.push(format!("{}/{}", text("ContainerName"), text("Name")));
        }
        marker = answer.text_of("NextMarker").expect("a marker").replace('+', "%2B").replace('=', "%3D");
        if marker.is_empty() {
            return found;
        }
    }
}

#[test]
fn what_is_tagged_is_found_at_once_and_what_is_gone_is_not() {
    let stage = Stage::new();
    stage.call("PUT other?restype=container", &[], "").ok();
    let put = |blob: &str, tags: &str| stage.call(&format!("PUT {blob}"), &[BLOCK_BLOB, ("x-ms-tags", tags)], "x").ok();
    for n in 0..5 {
        put(&format!("cont/{n}"), &format!("n={n}&kind=a"));
    }
    put("other/0", "n=0&kind=b");
    for page in [1, 2, 5_000] {
        assert_eq!(find(&stage, "?", "kind='a'", page), ["cont/0", "cont/1", "cont/2", "cont/3", "cont/4"]);
        assert_eq!(find(&stage, "?", "n>='1' AND n<'3'", page), ["cont/1", "cont/2"]);
        assert_eq!(find(&stage, "?", "n='0'", page), ["cont/0", "other/0"]);
        assert_eq!(find(&stage, "?", "@container='other' AND n='0'", page), ["other/0"]);
        assert_eq!(find(&stage, "cont?restype=container&", "n='0'", page), ["cont/0"]);
    }
    stage.call("PUT cont/0?comp=tags", &[], document(&[("n", "9")])).ok();
    stage.put("cont/1", "without tags");
    stage.call("DELETE cont/2", &[], "").ok();
    assert_eq!(find(&stage, "?", "kind='a'", 5_000), ["cont/3", "cont/4"]);
    assert_eq!(find(&stage, "?", "n='9'", 5_000), ["cont/0"]);
    stage.call("DELETE cont?restype=container", &[], "").ok();
    assert_eq!(find(&stage, "?", "kind>'0'", 5_000), ["other/0"]);
}

#[test]
fn bad_requests() {
    let stage = Stage::new();
    let mut table = Table::new("find_blobs_by_tags");
    #[rustfmt::skip]
    let rows = [
        ("no expression",          "?comp=blobs", "400 MissingRequiredQueryParameter"),
        ("a broken one",           "?comp=blobs&where=a%3D", "400 InvalidQueryParameterValue"),
        ("one with a choice",      "?comp=blobs&where=a%3D%271%27%20OR%20b%3D%272%27", "400 InvalidQueryParameterValue"),
        ("a bad marker",           "?comp=blobs&where=a%3D%271%27&marker=x", "400 InvalidQueryParameterValue"),
        ("no page",                "?comp=blobs&where=a%3D%271%27&maxresults=0", "400 OutOfRangeQueryParameterValue"),
        ("no container",           "none?restype=container&comp=blobs&where=a%3D%271%27", "404 ContainerNotFound"),
        ("no container, broken",   "none?restype=container&comp=blobs&where=a", "400 InvalidQueryParameterValue"),
        ("nothing to be found",    "cont?restype=container&comp=blobs&where=a%3D%271%27", "200"),
    ];
    for (what, target, expected) in rows {
        table.row(what, stage.get(target).said(), expected);
    }
}
