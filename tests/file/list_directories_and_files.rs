//! List Directories and Files: one level, pages, prefixes, what is included, and names that XML has trouble with.

use crate::harness::{Element, Table};
use crate::stage::{A, EVERYTHING, Stage, name_of, names, percent};

const URL: &str = "share/dir?restype=directory&comp=list";

/// Files and directories (with a slash) as they are made, not in their order.
const ENTRIES: [&str; 12] = ["zeta", "b", "A", "Beta/", "a_b", "aB", "x y", "z%/", "deep/", "Ärger", "ärmel/", "100"];

/// What a listing shows. The order is that of the names in capitals, by their bytes.
#[rustfmt::skip]
const LISTINGS: &[(&str, &str)] = &[
    ("",                  "100 A aB a_b b Beta/ deep/ x_y z%/ zeta Ärger ärmel/"),
    ("&prefix=",          "100 A aB a_b b Beta/ deep/ x_y z%/ zeta Ärger ärmel/"),
    ("&prefix=a",         "A aB a_b"),
    ("&prefix=A",         "A aB a_b"),
    ("&prefix=BE",        "Beta/"),
    ("&prefix=a_",        "a_b"),
    ("&prefix=%C3%A4",    "Ärger ärmel/"),
    ("&prefix=%C3%84R",   "Ärger ärmel/"),
    ("&prefix=x%20",      "x_y"),
    ("&prefix=z%25",      "z%/"),
    ("&prefix=zeta",      "zeta"),
    ("&prefix=zetas",     ""),
    ("&prefix=deep",      "deep/"),
    ("&include=Timestamps", "100 A aB a_b b Beta/ deep/ x_y z%/ zeta Ärger ärmel/"),
    ("&include=timestamps,Etag,attributes,permissionkey", "100 A aB a_b b Beta/ deep/ x_y z%/ zeta Ärger ärmel/"),
    ("&include=Timestamps,ETag,Attributes,PermissionKey", "100 A aB a_b b Beta/ deep/ x_y z%/ zeta Ärger ärmel/"),
];

fn filled() -> Stage {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    for name in ENTRIES {
        match name.strip_suffix('/') {
            Some(name) => _ = stage.make_directory(&format!("share/dir/{}", percent(name))),
            None => _ = stage.put_file(&format!("share/dir/{}", percent(name)), name),
        }
    }
    // What is further down is not listed.
    stage.put_file("share/dir/deep/a", "x");
    stage
}

fn shown(entries: &[Element]) -> String {
    entries.iter().map(|entry| names(std::slice::from_ref(entry)).replace(' ', "_")).collect::<Vec<_>>().join(" ")
}

/// All entries of a listing, page by page, and how many each page had.
fn pages(stage: &Stage, target: &str) -> (Vec<Element>, Vec<usize>) {
    let (mut entries, mut sizes, mut marker) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = stage.get(&format!("{target}&marker={}", percent(&marker))).ok().xml();
        sizes.push(page.all("Entries").len());
        entries.extend_from_slice(page.all("Entries"));
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
    let mut table = Table::new("list_directories_and_files");
    for (query, expected) in LISTINGS {
        let whole = stage.get(&format!("{URL}{query}")).ok().xml();
        table.row(query, shown(whole.all("Entries")), expected);
        table.row(format!("{query}: complete"), whole.text_of("NextMarker").unwrap_or("none".into()), "");
        for size in 1..=7 {
            let (entries, sizes) = pages(&stage, &format!("{URL}{query}&maxresults={size}"));
            table.row(format!("{query}, pages of {size}"), shown(&entries), expected);
            assert!(entries == whole.all("Entries"), "{query}, pages of {size}: other entries than in one page");
            assert!(sizes.iter().all(|count| *count <= size), "{query}, pages of {size}: {sizes:?}");
        }
    }
    // In whichever case the directory is named, and with a slash at the end.
    table.row(
        "another case",
        shown(stage.get("share/DIR?restype=directory&comp=list").ok().xml().all("Entries")),
        LISTINGS[0].1,
    );
    table.row(
        "a slash",
        shown(stage.get("share/dir/?restype=directory&comp=list").ok().xml().all("Entries")),
        LISTINGS[0].1,
    );
    table.row("the root", stage.names("share"), "dir/");
    table.row("further down", stage.names("share/dir/deep"), "a");
}

/// A marker names a place, so what comes or goes between two pages moves nothing else.
#[test]
fn writes_between_pages() {
    let stage = filled();
    let first = stage.get(&format!("{URL}&maxresults=3")).ok().xml();
    assert_eq!(shown(first.all("Entries")), "100 A aB");
    let marker = first.text_of("NextMarker").expect("a marker");
    stage.delete("share/dir/aB").ok();
    stage.delete("share/dir/a_b").ok();
    stage.put_file("share/dir/AA", "before the marker");
    stage.put_file("share/dir/ac", "behind it");
    let second = stage.get(&format!("{URL}&maxresults=3&marker={}", percent(&marker))).ok().xml();
    assert_eq!(shown(second.all("Entries")), "ac b Beta/");
    // The directory itself may go on under another name.
    stage.rename_directory("share/dir", "share/moved", &[]).ok();
    let rest = format!("share/moved?restype=directory&comp=list&maxresults=2&marker={}", percent(&marker));
    assert_eq!(shown(stage.get(&rest).ok().xml().all("Entries")), "ac b");
}

#[test]
fn what_is_repeated() {
    let stage = filled();
    let plain = stage.get(URL).ok().xml();
    assert_eq!(plain.name, "EnumerationResults");
    let endpoint = plain.attribute("ServiceEndpoint").expect("an endpoint");
    assert!(endpoint.starts_with("http://127.0.0.1:") && endpoint.ends_with("/devstoreaccount1/"), "{endpoint}");
    assert_eq!((plain.attribute("ShareName"), plain.attribute("DirectoryPath")), (Some("share"), Some("dir")));
    assert_eq!(plain.attribute("ShareSnapshot"), None);
    for name in ["Prefix", "Marker", "MaxResults"] {
        assert_eq!(plain.find(name), None, "{name}");
    }
    let own = stage.head("share/dir?restype=directory");
    assert_eq!(plain.text_of("DirectoryId").as_deref(), own.header("x-ms-file-id"));
    let asked = stage.get(&format!("{URL}&prefix=b&maxresults=1")).ok().xml();
    let repeated = ["Prefix", "MaxResults"].map(|name| asked.text_of(name).unwrap_or_default());
    assert_eq!(repeated, ["b", "1"]);
    let marker = asked.text_of("NextMarker").expect("a marker");
    let next = stage.get(&format!("{URL}&prefix=b&maxresults=1&marker={}", percent(&marker))).ok().xml();
    assert_eq!((shown(next.all("Entries")), next.text_of("Marker")), ("Beta/".to_owned(), Some(marker)));
    let root = stage.get("share?restype=directory&comp=list").ok().xml();
    assert_eq!((root.attribute("DirectoryPath"), root.text_of("DirectoryId").as_deref()), (Some(""), Some("0")));
    let deep = stage.get("share/dir/deep?restype=directory&comp=list").ok().xml();
    assert_eq!(deep.attribute("DirectoryPath"), Some("dir/deep"));
}

/// Each kind of information comes when it is asked for, and agrees with what the properties say.
#[test]
fn what_each_include_tells() {
    let stage = filled();
    stage.server.advance(2);
    stage.call("PUT share/dir/b?comp=properties", &[("x-ms-file-attributes", "ReadOnly|Hidden")], "").ok();
    stage.acquire("share/dir/A", A, "-1");
    #[rustfmt::skip]
    let parts: &[(&str, &[&str])] = &[
        ("Timestamps",    &["Properties/CreationTime", "Properties/LastAccessTime", "Properties/LastWriteTime", "Properties/ChangeTime", "Properties/Last-Modified"]),
        ("ETag",          &["Properties/Etag"]),
        ("Attributes",    &["Attributes"]),
        ("PermissionKey", &["PermissionKey"]),
    ];
    let mut table = Table::new("list_directories_and_files: include");
    for (include, _) in parts {
        for entry in stage.list("share/dir", &format!("include={include}")) {
            let name = name_of(&entry);
            for (other, elements) in parts {
                for element in *elements {
                    let row = format!("{include}, {name}: {element}");
                    table.row(row, entry.find(element).is_some(), include == other);
                }
            }
        }
    }
    for entry in stage.list("share/dir", "") {
        let name = name_of(&entry);
        let children: Vec<&str> = entry.children.iter().map(|child| child.name.as_str()).collect();
        table.row(format!("{name}: nothing included"), children.join(" "), "Name FileId Properties");
    }
    for entry in stage.list("share/dir", EVERYTHING) {
        let name = name_of(&entry);
        let path = format!("share/dir/{}", percent(&name));
        let is_directory = entry.name == "Directory";
        let head = stage.head(&if is_directory { format!("{path}?restype=directory") } else { path }).ok();
        let header = |name: &str| head.header(name).unwrap_or("none").to_owned();
        #[rustfmt::skip]
        let expected = [
            ("FileId",                   header("x-ms-file-id")),
            ("Properties/CreationTime",  header("x-ms-file-creation-time")),
            ("Properties/LastAccessTime", header("x-ms-file-creation-time")),
            ("Properties/LastWriteTime", header("x-ms-file-last-write-time")),
            ("Properties/ChangeTime",    header("x-ms-file-change-time")),
            ("Properties/Last-Modified", header("last-modified")),
            ("Properties/Etag",          header("etag")),
            ("Attributes",               header("x-ms-file-attributes")),
            ("PermissionKey",            header("x-ms-file-permission-key")),
        ];
        for (element, expected) in expected {
            table.row(format!("{name}: {element}"), entry.text_of(element).unwrap_or("missing".into()), expected);
        }
        let length = entry.text_of("Properties/Content-Length");
        let expected = (!is_directory).then(|| header("content-length"));
        table.row(format!("{name}: length"), format!("{length:?}"), format!("{expected:?}"));
    }
    // Asking for more than one kind by the header is the same as asking for nothing but exact lengths.
    let extended = stage.call(&format!("GET {URL}"), &[("x-ms-file-extended-info", "true")], "").ok().xml();
    let lengths: Vec<Option<String>> =
        extended.all("Entries").iter().map(|entry| entry.text_of("Properties/Content-Length")).collect();
    let expected: Vec<Option<String>> =
        stage.list("share/dir", "").iter().map(|entry| entry.text_of("Properties/Content-Length")).collect();
    assert_eq!(lengths, expected);
}

/// What XML cannot say comes percent-encoded, and so do the prefix and the path.
#[test]
fn names_that_xml_cannot_say() {
    let stage = Stage::new();
    let hostile = [
        "plain",
        "&'",
        "a&b",
        "]]",
        " blank ",
        "tab%09",
        "\u{FFFE}",
        "a\u{FFFF}b",
        "\u{FEFF}bom",
        "\u{202E}right",
        "e\u{301}",
        "\u{E000}",
        "😀",
        "\u{10FFFF}",
        "+ +",
        "a=b",
        "%41",
        "#",
        ";,@",
    ];
    for name in hostile {
        stage.put_file(&format!("share/{}", percent(name)), name);
    }
    let mut seen: Vec<String> = Vec::new();
    let (entries, _) = pages(&stage, "share?restype=directory&comp=list&maxresults=3");
    for entry in &entries {
        let name = name_of(entry);
        assert_eq!(stage.read(&format!("share/{}", percent(&name))), name.as_bytes());
        seen.push(name);
    }
    let mut expected: Vec<String> = hostile.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    seen.sort();
    assert_eq!(seen, expected);
    for name in hostile {
        let found = stage.list("share", &format!("prefix={}", percent(name)));
        assert!(found.iter().any(|entry| name_of(entry) == name), "{name:?}");
    }
    // The path of a directory has the same trouble.
    stage.make_directory(&format!("share/{}", percent("dir\u{FFFE}")));
    let listed = stage.get(&format!("share/{}?restype=directory&comp=list", percent("dir\u{FFFE}"))).ok();
    Element::parse(&listed.body).expect("well formed");
}

#[test]
fn parameters() {
    let stage = filled();
    stage.make_file("share/file", 0);
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("share/dir?restype=directory&comp=list&maxresults=0",    "400 OutOfRangeQueryParameterValue"),
        ("share/dir?restype=directory&comp=list&maxresults=-5",   "400 OutOfRangeQueryParameterValue"),
        ("share/dir?restype=directory&comp=list&maxresults=x",    "400 InvalidQueryParameterValue"),
        ("share/dir?restype=directory&comp=list&maxresults=5000", "200"),
        ("share/dir?restype=directory&comp=list&maxresults=5001", "200"),
        ("share/dir?restype=directory&comp=list&include=all",     "400 InvalidQueryParameterValue"),
        ("share/dir?restype=directory&comp=list&include=ETag,all", "400 InvalidQueryParameterValue"),
        ("share/dir?restype=directory&comp=list&include=",        "200"),
        ("share/dir?restype=directory&comp=list&prefix=&marker=&maxresults=", "200"),
        ("share/none?restype=directory&comp=list",                "404 ResourceNotFound"),
        ("share/file?restype=directory&comp=list",                "404 ResourceNotFound"),
        ("none/dir?restype=directory&comp=list",                  "404 ShareNotFound"),
        ("none?restype=directory&comp=list",                      "404 ShareNotFound"),
        ("share/none?restype=directory&comp=list&maxresults=0",   "400 OutOfRangeQueryParameterValue"),
    ];
    let mut table = Table::new("list_directories_and_files: parameters");
    for (target, expected) in rows {
        table.row(target, stage.get(target).said(), expected);
    }
    table.row("a marker that is none", stage.get(&format!("{URL}&marker=%21")).status, 400);
    table.row("none there", stage.list("share/dir/%C3%84rmel", "").len(), 0);
}
