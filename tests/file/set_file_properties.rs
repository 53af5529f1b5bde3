//! Set File Properties: the six properties of HTTP, the length, and what the file system knows.

use wire::base64;

use crate::harness::{Headers, Table};
use crate::stage::{KIB, LENGTH, Stage, TIB, pattern};

const URL: &str = "PUT share/file?comp=properties";
const HTTP: [&str; 6] =
    ["content-type", "content-encoding", "content-language", "cache-control", "content-md5", "content-disposition"];

fn shown(stage: &Stage) -> String {
    let head = stage.head("share/file").ok();
    HTTP.map(|name| head.header(name).unwrap_or("-").to_owned()).join(" ")
}

/// Who sends one of the six sets all of them; who sends none keeps them.
#[test]
fn one_sets_all_six() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let sum = base64::encode(&[7; 16]);
    let mut table = Table::new("set_file_properties: HTTP");
    #[rustfmt::skip]
    let all = [
        ("x-ms-content-type", "text/plain"), ("x-ms-content-encoding", "gzip"), ("x-ms-content-language", "de"),
        ("x-ms-cache-control", "no-store"), ("x-ms-content-md5", &*sum), ("x-ms-content-disposition", "inline"),
    ];
    table.row(
        "all",
        {
            stage.call(URL, &all, "").ok();
            shown(&stage)
        },
        format!("text/plain gzip de no-store {sum} inline"),
    );
    table.row(
        "a length alone",
        {
            stage.resize("share/file", 100).ok();
            shown(&stage)
        },
        format!("text/plain gzip de no-store {sum} inline"),
    );
    table.row(
        "an attribute alone",
        {
            stage.call(URL, &[("x-ms-file-attributes", "Hidden")], "").ok();
            shown(&stage)
        },
        format!("text/plain gzip de no-store {sum} inline"),
    );
    table.row(
        "nothing",
        {
            stage.call(URL, &[], "").ok();
            shown(&stage).contains("gzip") || shown(&stage).starts_with("application/octet-stream")
        },
        true,
    );
    stage.call(URL, &all, "").ok();
    table.row(
        "one",
        {
            stage.call(URL, &[("x-ms-content-language", "en")], "").ok();
            shown(&stage)
        },
        "application/octet-stream - en - - -",
    );
    table.row(
        "one and a length",
        {
            stage.call(URL, &all, "").ok();
            stage.call(URL, &[("x-ms-cache-control", "private"), (LENGTH, "3")], "").ok();
            shown(&stage)
        },
        "application/octet-stream - - private - -",
    );
    table.row("the length", String::from_utf8_lossy(&stage.read("share/file")), "con");
}

#[test]
fn the_length() {
    let stage = Stage::new();
    let content = pattern(1, 5_000);
    stage.put_file("share/file", &content);
    let mut table = Table::new("set_file_properties: length");
    let mut step = |row: &str, length: u64, expected: &[u8]| {
        table.row(format!("{row}: answer"), stage.resize("share/file", length).said(), "200");
        table.row(row, stage.read("share/file") == expected, true);
    };
    step("the same", 5_000, &content);
    step("shorter", 3_000, &content[..3_000]);
    step("longer: zeros", 4_000, &[&content[..3_000], &[0; 1_000]].concat());
    step("a byte", 1, &content[..1]);
    step("longer again", 600, &[&content[..1], &[0; 599]].concat());
    step("nothing", 0, &[]);
    step("and back", 5_000, &[0; 5_000]);
    table.row("nothing listed", stage.ranges("share/file"), "");
    for (length, expected) in [
        ("4398046511104", "200"),
        ("4398046511105", "400"),
        ("-1", "400 OutOfRangeInput"),
        ("x", "400 InvalidHeaderValue"),
        ("18446744073709551616", "400"),
    ] {
        let answer = stage.call(URL, &[(LENGTH, length)], "");
        let got = if expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(length, got, expected);
    }
    table.row("the largest", stage.usage("share"), 4 * TIB);
}

/// The last write is when the length changed, also when the request keeps it; everything else keeps it by itself.
#[test]
fn the_time_of_a_resize() {
    let stage = Stage::new();
    stage.make_file("share/file", 10 * KIB);
    let mut table = Table::new("set_file_properties: times");
    let name = "x-ms-file-last-write-time";
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("shorter",             &[(LENGTH, "5000")], "new"),
        ("longer",              &[(LENGTH, "6000")], "new"),
        ("longer, preserve",    &[(LENGTH, "7000"), (name, "preserve")], "new"),
        ("an attribute",        &[("x-ms-file-attributes", "Hidden")], "same"),
        ("a type",              &[("x-ms-content-type", "a/b")], "same"),
        ("nothing",             &[], "same"),
        ("now",                 &[(name, "now")], "new"),
    ];
    for (row, headers, expected) in rows {
        let before = stage.head("share/file").ok();
        stage.server.advance(2);
        stage.call(URL, headers, "").ok();
        let after = stage.head("share/file").ok();
        let change = |header| if before.header(header) == after.header(header) { "same" } else { "new" };
        table.row(row, change(name), expected);
        table.row(format!("{row}: change"), change("x-ms-file-change-time"), "new");
        table.row(format!("{row}: creation"), change("x-ms-file-creation-time"), "same");
    }
}

#[test]
fn bad_values_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let before = stage.everything();
    let mut table = Table::new("set_file_properties: bad values");
    for (name, value) in [
        ("x-ms-file-attributes", "Shiny"),
        ("x-ms-file-creation-time", "yesterday"),
        ("x-ms-file-last-write-time", "2020-02-30T00:00:00Z"),
        ("x-ms-file-change-time", "soon"),
        ("x-ms-lease-id", "me"),
    ] {
        table.row(format!("{name}: {value}"), stage.call(URL, &[(name, value)], "").said(), "400 InvalidHeaderValue");
        let both = [(name, value), (LENGTH, "3"), ("x-ms-content-type", "a/b")];
        table.row(
            format!("{name}: {value}, and good ones"),
            stage.call(URL, &both, "").said(),
            "400 InvalidHeaderValue",
        );
    }
    table.row("no MD5", stage.call(URL, &[("x-ms-content-md5", "x")], "").status, 400);
    assert_eq!(stage.everything(), before);
}
