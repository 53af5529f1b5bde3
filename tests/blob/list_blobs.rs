//! List Blobs: pages, prefixes, delimiters, what is included, and names that XML has trouble with.

use crate::harness::{Element, Table};
use crate::stage::{A, BLOCK_BLOB, Stage, percent};

const URL: &str = "cont?restype=container&comp=list";

/// The blobs of the listing tests. `a` and `b` have two snapshots each, `dir/staged` has only uncommitted blocks.
const NAMES: [&str; 11] = ["B", "a", "a/b", "a/b/c", "a/d", "b", "dir/1", "dir/2", "dir/sub/3", "x y", "z%"];

/// What a listing shows, in its order: `name@1` is the first snapshot of a name, `name|` stands for all that begin so.
#[rustfmt::skip]
const LISTINGS: &[(&str, &str)] = &[
    ("",                                   "B a a/b a/b/c a/d b dir/1 dir/2 dir/sub/3 x_y z%"),
    ("&prefix=",                           "B a a/b a/b/c a/d b dir/1 dir/2 dir/sub/3 x_y z%"),
    ("&prefix=a",                          "a a/b a/b/c a/d"),
    ("&prefix=a%2F",                       "a/b a/b/c a/d"),
    ("&prefix=dir%2F",                     "dir/1 dir/2 dir/sub/3"),
    ("&prefix=A",                          ""),
    ("&prefix=x%20",                       "x_y"),
    ("&prefix=z%25",                       "z%"),
    ("&prefix=nothing",                    ""),
    ("&delimiter=%2F",                     "B a a/| b dir/| x_y z%"),
    ("&delimiter=%2F&prefix=a",            "a a/|"),
    ("&delimiter=%2F&prefix=a%2F",         "a/b a/b/| a/d"),
    ("&delimiter=%2F&prefix=a%2Fb",        "a/b a/b/|"),
    ("&delimiter=%2F&prefix=dir%2F",       "dir/1 dir/2 dir/sub/|"),
    ("&delimiter=%2F&prefix=dir%2Fsub%2F", "dir/sub/3"),
    ("&delimiter=b",                       "B a a/b| a/d b| dir/1 dir/2 dir/sub| x_y z%"),
    ("&delimiter=%2Fb",                    "B a a/b| a/d b dir/1 dir/2 dir/sub/3 x_y z%"),
    ("&delimiter=%25",                     "B a a/b a/b/c a/d b dir/1 dir/2 dir/sub/3 x_y z%|"),
    ("&include=metadata",                  "B a a/b a/b/c a/d b dir/1 dir/2 dir/sub/3 x_y z%"),
    ("&include=snapshots",                 "B a@1 a@2 a a/b a/b/c a/d b@1 b@2 b dir/1 dir/2 dir/sub/3 x_y z%"),
    ("&include=snapshots&prefix=b",        "b@1 b@2 b"),
    ("&include=uncommittedblobs",          "B a a/b a/b/c a/d b dir/1 dir/2 dir/staged dir/sub/3 x_y z%"),
    ("&include=uncommittedblobs&prefix=dir%2Fst", "dir/staged"),
    ("&include=snapshots,uncommittedblobs,metadata", "B a@1 a@2 a a/b a/b/c a/d b@1 b@2 b dir/1 dir/2 dir/staged dir/sub/3 x_y z%"),
    ("&include=uncommittedblobs&delimiter=%2F&prefix=dir%2F", "dir/1 dir/2 dir/staged dir/sub/|"),
];

fn filled() -> Stage {
    let stage = Stage::new();
    for name in NAMES {
        stage.call(&format!("PUT cont/{}", percent(name)), &[BLOCK_BLOB, ("x-ms-meta-Name", "set")], "hello").ok();
    }
    for name in ["a", "a", "b", "b"] {
        stage.call(&format!("PUT cont/{name}?comp=snapshot"), &[], "").ok();
    }
    stage.put_block("cont/dir/staged", "AAAA", "x");
    stage
}

/// A page in the words of the table. Snapshots are numbered by the whole listing, so their times stand for themselves.
fn shown(entries: &[Element]) -> String {
    let mut words = Vec::new();
    let mut snapshots = 0;
    for entry in entries {
        let name = name_of(entry).replace(' ', "_");
        let is_snapshot = entry.find("Snapshot").is_some();
        snapshots = if is_snapshot { snapshots + 1 } else { 0 };
        words.push(match (entry.name.as_str(), is_snapshot) {
            ("BlobPrefix", _) => format!("{name}|"),
            (_, true) => format!("{name}@{snapshots}"),
            (_, false) => name,
        });
    }
    words.join(" ")
}

fn name_of(entry: &Element) -> String {
    let name = entry.find("Name").expect("a name");
    match name.attribute("Encoded") {
        None => name.text.clone(),
        Some("true") => wire::percent::decode_path(&name.text).expect("percent-encoded").into_owned(),
        Some(other) => panic!("Encoded={other}"),
    }
}

/// All entries of a listing, page by page, and how many each page had.
fn pages(stage: &Stage, target: &str, list: &str) -> (Vec<Element>, Vec<usize>) {
    let (mut entries, mut sizes, mut marker) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = stage.get(&format!("{target}&marker={}", percent(&marker))).ok().xml();
        sizes.push(page.all(list).len());
        entries.extend_from_slice(page.all(list));
        marker = page.text_of("NextMarker").expect("a NextMarker");
        assert!(sizes.len() < 1000, "{target} does not end");
        if marker.is_empty() {
            return (entries, sizes);
        }
    }
}

#[test]
fn every_page_size_gives_the_same_listing() {
    let stage = filled();
    let mut table = Table::new("list_blobs");
    for (query, expected) in LISTINGS {
        let whole = stage.get(&format!("{URL}{query}")).ok().xml();
        table.row(query, shown(whole.all("Blobs")), expected);
        table.row(format!("{query}: complete"), whole.text_of("NextMarker").unwrap_or("none".into()), "");
        for size in 1..=7 {
            let (entries, sizes) = pages(&stage, &format!("{URL}{query}&maxresults={size}"), "Blobs");
            table.row(format!("{query}, pages of {size}"), shown(&entries), expected);
            assert!(entries == whole.all("Blobs"), "{query}, pages of {size}: other entries than in one page");
            assert!(sizes.iter().all(|count| *count <= size), "{query}, pages of {size}: {sizes:?}");
        }
    }
}

/// A marker names a place, so what comes or goes between two pages moves nothing else.
#[test]
fn writes_between_pages() {
    let stage = filled();
    let first = stage.get(&format!("{URL}&maxresults=3")).xml();
    assert_eq!(shown(first.all("Blobs")), "B a a/b");
    let marker = first.text_of("NextMarker").expect("a marker");
    stage.call("DELETE cont/a/b", &[], "").ok();
    stage.call("DELETE cont/a/b/c", &[], "").ok();
    stage.put("cont/A", "before the marker");
    stage.put("cont/a/c", "behind it");
    let second = stage.get(&format!("{URL}&maxresults=3&marker={}", percent(&marker))).xml();
    assert_eq!(shown(second.all("Blobs")), "a/c a/d b");
}

#[test]
fn what_is_repeated_and_what_is_told() {
    let stage = filled();
    stage.acquire("cont/a", A, "-1");
    let plain = stage.get(URL).xml();
    assert_eq!((plain.name.as_str(), plain.attribute("ContainerName")), ("EnumerationResults", Some("cont")));
    let endpoint = plain.attribute("ServiceEndpoint").expect("an endpoint");
    assert!(endpoint.starts_with("http://127.0.0.1:") && endpoint.ends_with("/devstoreaccount1/"), "{endpoint}");
    for name in ["Prefix", "Marker", "MaxResults", "Delimiter"] {
        assert_eq!(plain.find(name), None, "{name}");
    }
    let asked = stage.get(&format!("{URL}&prefix=a&maxresults=2&delimiter=%2F")).xml();
    let repeated = ["Prefix", "MaxResults", "Delimiter"].map(|name| asked.text_of(name).unwrap_or_default());
    assert_eq!(repeated, ["a", "2", "/"]);

    let head = stage.head("cont/a");
    let blob = plain.all("Blobs").iter().find(|blob| name_of(blob) == "a").expect("the blob");
    #[rustfmt::skip]
    let told = [
        ("Properties/Etag", head.etag().trim_matches('"').to_owned()),
        ("Properties/Last-Modified", head.last_modified()),
        ("Properties/Creation-Time", head.header("x-ms-creation-time").expect("a time").to_owned()),
        ("Properties/Content-Length", "5".into()),
        ("Properties/Content-Type", "application/octet-stream".into()),
        ("Properties/Content-MD5", head.header("content-md5").expect("an MD5").to_owned()),
        ("Properties/Content-Encoding", String::new()),
        ("Properties/Content-Language", String::new()),
        ("Properties/Cache-Control", String::new()),
        ("Properties/BlobType", "BlockBlob".into()),
        ("Properties/LeaseStatus", "locked".into()),
        ("Properties/LeaseState", "leased".into()),
        ("Properties/LeaseDuration", "infinite".into()),
        ("Properties/ServerEncrypted", "true".into()),
    ];
    for (path, value) in told {
        assert_eq!(blob.text_of(path), Some(value), "{path}");
    }
    assert_eq!(blob.find("Metadata"), None);
    let with = stage.get(&format!("{URL}&include=metadata,snapshots")).xml();
    for entry in with.all("Blobs") {
        let metadata = entry.all("Metadata");
        assert_eq!(metadata.len(), 1, "{}", name_of(entry));
        assert!(metadata[0].name.eq_ignore_ascii_case("name") && metadata[0].text == "set", "{metadata:?}");
        let is_snapshot = entry.find("Snapshot").is_some();
        assert_eq!(entry.find("Properties/LeaseState").is_none(), is_snapshot, "{}", name_of(entry));
    }
}

#[test]
fn names_that_xml_has_trouble_with() {
    let stage = Stage::new();
    let names = [
        "a & b",
        "<tag>",
        "\"quoted\"",
        "it's",
        "100%",
        "%41",
        "a+b",
        "tab\there",
        "line\nbreak",
        "\u{1}control",
        "nul\u{7f}",
        "non\u{fffe}char",
        "non\u{ffff}char",
        "ümlaut",
        "日本語",
        "😀",
        "e\u{301}",
        " leading",
        "trailing ",
        "]]>",
        "&amp;",
        "a;b",
        "back`tick",
        "{}",
        "a?b#c",
        "\u{feff}bom",
        "\u{200f}rtl",
        "dot/./dot",
        "..",
        "cr\rhere",
    ];
    for name in names {
        stage.call(&format!("PUT cont/{}", percent(name)), &[BLOCK_BLOB], name).ok();
    }
    let listed = stage.get(URL).ok().xml();
    let found: Vec<String> = listed.all("Blobs").iter().map(name_of).collect();
    let mut wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    wanted.sort();
    assert_eq!(found, wanted);
    for (blob, name) in listed.all("Blobs").iter().zip(&found) {
        let cannot_be_said = name.chars().any(|char| matches!(char, '\u{1}' | '\u{fffe}' | '\u{ffff}'));
        let encoded = blob.find("Name").and_then(|name| name.attribute("Encoded"));
        if cannot_be_said {
            assert_eq!(encoded, Some("true"), "{name:?}");
        }
        assert_eq!(stage.get(&format!("cont/{}", percent(name))).body, name.as_bytes());
    }
    // Prefixes and what is repeated of the request are names, too.
    for name in names {
        let character: String = name.chars().take(1).collect();
        let page = stage.get(&format!("{URL}&prefix={}&maxresults=1000", percent(&character))).ok().xml();
        let expected = names.iter().filter(|name| name.starts_with(&character)).count();
        assert_eq!(page.all("Blobs").len(), expected, "{name:?}");
        let folded = stage.get(&format!("{URL}&delimiter={}", percent(&character))).ok().xml();
        assert!(folded.all("Blobs").iter().any(|entry| entry.name == "BlobPrefix"), "{name:?}");
    }
    let (entries, _) = pages(&stage, &format!("{URL}&maxresults=3"), "Blobs");
    assert_eq!(entries, listed.all("Blobs"));
}

#[test]
fn bad_parameters() {
    let stage = filled();
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("&maxresults=0",       "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=-1",      "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=many",    "400 InvalidQueryParameterValue"),
        ("&maxresults=1.5",     "400 InvalidQueryParameterValue"),
        ("&maxresults=99999999999999999999", "400"),
        ("&maxresults=5000",    "200"),
        ("&maxresults=6000",    "200"),
        ("&include=everything", "400 InvalidQueryParameterValue"),
        ("&include=metadata,everything", "400 InvalidQueryParameterValue"),
        ("&include=Metadata",   "200"),
        ("&include=",           "200"),
        ("&marker=%21%21",      "400 InvalidQueryParameterValue"),
        ("&marker=",            "200"),
        ("&prefix=%ff",         "400"),
        ("&include=snapshots&delimiter=%2F", "400"),
    ];
    let before = stage.get(URL).body;
    let mut table = Table::new("list_blobs parameters");
    for (query, expected) in rows {
        let answer = stage.get(&format!("{URL}{query}"));
        table.row(query, if *expected == "400" { answer.status.to_string() } else { answer.said() }, expected);
    }
    assert_eq!(stage.get(URL).body, before);
}

/// `startFrom` begins at a name.
#[test]
fn beginning_at_a_name() {
    let stage = filled();
    let listed = stage.get(&format!("{URL}&startFrom=b")).ok().xml();
    assert_eq!(shown(listed.all("Blobs")), "b dir/1 dir/2 dir/sub/3 x_y z%");
    let (entries, _) = pages(&stage, &format!("{URL}&startFrom=b&maxresults=2"), "Blobs");
    assert_eq!(entries, listed.all("Blobs"));
}
