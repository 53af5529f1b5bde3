//! Get Page Ranges.

use crate::harness::{Element, Headers, Table};
use crate::stage::{A, Stage, percent};

const URL: &str = "GET cont/blob?comp=pagelist";

fn write(stage: &Stage, first: u64, pages: u64) {
    let range = format!("bytes={}-{}", first * 512, (first + pages) * 512 - 1);
    let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
    stage.call("PUT cont/blob?comp=page", &headers, vec![1; (pages * 512) as usize]).ok();
}

/// The ranges in pages, from and up to, and the marker.
fn ranges(stage: &Stage, target: &str, headers: Headers<'_>) -> (Vec<(u64, u64)>, String) {
    let list = stage.call(target, headers, "").ok().xml();
    let number =
        |range: &Element, name: &str| -> u64 { range.text_of(name).expect("a border").parse().expect("a number") };
    let found = list.children.iter().filter(|child| child.name == "PageRange");
    let found = found.map(|range| (number(range, "Start") / 512, (number(range, "End") + 1) / 512)).collect();
    (found, list.text_of("NextMarker").expect("a marker"))
}

#[test]
fn what_holds_something() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 8_192 * 512);
    assert_eq!(ranges(&stage, URL, &[]), (vec![], String::new()));
    for (first, pages) in [(1, 1), (2, 2), (8, 4), (2_040, 16), (4_096, 1)] {
        write(&stage, first, pages);
    }
    let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = format!("{URL}&snapshot={}", made.header("x-ms-snapshot").expect("an id"));
    let clear = [("x-ms-page-write", "clear"), ("range", "bytes=4608-5119")];
    stage.call("PUT cont/blob?comp=page", &clear, "").ok();
    let now = [(1, 4), (8, 9), (10, 12), (2_040, 2_056), (4_096, 4_097)];
    assert_eq!(ranges(&stage, URL, &[]).0, now);
    assert_eq!(ranges(&stage, &snapshot, &[]).0, [(1, 4), (8, 12), (2_040, 2_056), (4_096, 4_097)]);
    let part = [("x-ms-range", "bytes=1024-5631")];
    assert_eq!(ranges(&stage, URL, &part).0, [(2, 4), (8, 9), (10, 11)]);
    for most in 1..=6 {
        let (mut seen, mut marker) = (Vec::new(), String::new());
        loop {
            let line = format!("{URL}&maxresults={most}&marker={}", percent(&marker));
            let (page, next) = ranges(&stage, &line, &[]);
            assert!(page.len() <= most);
            seen.extend(page);
            marker = next;
            if marker.is_empty() {
                break;
            }
        }
        assert_eq!(seen, now, "{most}");
    }
    let answer = stage.call(URL, &[], "").ok();
    assert_eq!(answer.header("x-ms-blob-content-length"), Some("4194304"));
    assert_eq!(answer.etag(), stage.head("cont/blob").etag());
}

#[test]
fn refusals() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 512);
    stage.put("cont/block", "x");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("no container",        "GET none/blob?comp=pagelist",  &[], "404 ContainerNotFound"),
        ("no blob",             "GET cont/none?comp=pagelist",  &[], "404 BlobNotFound"),
        ("a block blob",        "GET cont/block?comp=pagelist", &[], "409 InvalidBlobType"),
        ("beyond the end",      URL, &[("range", "bytes=512-")], "416 InvalidRange"),
        ("no range",            URL, &[("x-ms-range", "x")], "400 InvalidHeaderValue"),
        ("id of no lease",      URL, &[("x-ms-lease-id", A)], "412 LeaseNotPresentWithBlobOperation"),
        ("no results",          &format!("{URL}&maxresults=0"), &[], "400 OutOfRangeQueryParameterValue"),
        ("no marker",           &format!("{URL}&marker=x"), &[], "400 InvalidQueryParameterValue"),
        ("since when",          &format!("{URL}&prevsnapshot=x"), &[], "400 InvalidQueryParameterValue"),
        ("since what",          URL, &[("x-ms-previous-snapshot-url", "http://h/devstoreaccount1/cont/other?snapshot=2026-11-15T18:00:00.0000000Z")], "400 InvalidHeaderValue"),
        ("since no snapshot",   &format!("{URL}&prevsnapshot=2026-11-15T18:00:00.0000000Z"), &[], "409 PreviousSnapshotNotFound"),
    ];
    let mut table = Table::new("get_page_ranges refusals");
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), expected);
    }
}

#[test]
fn what_has_changed_since_a_snapshot() {
    let stage = Stage::new();
    stage.put_pages("cont/blob", 8 * 512);
    write(&stage, 0, 4);
    let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let since = format!("{URL}&prevsnapshot={}", made.header("x-ms-snapshot").expect("an id"));
    write(&stage, 1, 1);
    write(&stage, 5, 2);
    // One page that the snapshot has, one that came after it, one that was never written.
    for range in ["bytes=1024-1535", "bytes=2560-3071", "bytes=3584-4095"] {
        stage.call("PUT cont/blob?comp=page", &[("x-ms-page-write", "clear"), ("range", range)], "").ok();
    }
    let list = stage.call(&since, &[], "").ok().xml();
    let found = list.children.iter().filter(|child| child.name != "NextMarker");
    let found: Vec<_> =
        found.map(|range| (range.name.as_str(), range.text_of("Start"), range.text_of("End"))).collect();
    let range = |name, start: &str, end: &str| (name, Some(start.to_owned()), Some(end.to_owned()));
    let expected = [
        range("PageRange", "512", "1023"),
        range("ClearRange", "1024", "1535"),
        range("ClearRange", "2560", "3071"),
        range("PageRange", "3072", "3583"),
    ];
    assert_eq!(found, expected);
    let id = made.header("x-ms-snapshot").expect("an id");
    let by_url = stage.client.url(&format!("cont/blob?snapshot={}", percent(id)));
    let told = stage.call(URL, &[("x-ms-previous-snapshot-url", &by_url)], "").ok();
    assert_eq!(told.body, stage.get(since.trim_start_matches("GET ")).ok().body);
    stage.put_pages("cont/blob", 512);
    assert_eq!(stage.call(&since, &[], "").said(), "409 BlobOverwritten");
}
