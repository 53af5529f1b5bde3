//! Set Directory Properties. What each header means is in `smb_properties`.

use crate::harness::Table;
use crate::stage::Stage;

const URL: &str = "PUT share/dir?restype=directory&comp=properties";

#[test]
fn what_is_left_out_stays() {
    let stage = Stage::new();
    let made = [
        ("x-ms-file-attributes", "Hidden"),
        ("x-ms-file-creation-time", "2020-01-01T00:00:00.1234567Z"),
        ("x-ms-file-last-write-time", "2021-01-01T00:00:00.7654321Z"),
        ("x-ms-meta-a", "1"),
    ];
    stage.call("PUT share/dir?restype=directory", &made, "").ok();
    let names = [
        "x-ms-file-creation-time",
        "x-ms-file-last-write-time",
        "x-ms-file-permission-key",
        "x-ms-meta-a",
        "x-ms-file-id",
    ];
    let shown = || {
        let head = stage.head("share/dir?restype=directory").ok();
        names.map(|name| head.header(name).unwrap_or("none").to_owned())
    };
    let before = shown();
    assert_eq!(stage.call(URL, &[], "").said(), "200");
    assert_eq!(shown(), before);
    assert_eq!(
        stage.call(URL, &[("x-ms-file-attributes", "preserve"), ("x-ms-file-permission", "preserve")], "").said(),
        "200"
    );
    assert_eq!(shown(), before);
    assert_eq!(stage.call(URL, &[("x-ms-file-creation-time", "2019-01-01T00:00:00.0000000Z")], "").said(), "200");
    assert_eq!(shown()[0], "2019-01-01T00:00:00.0000000Z");
    assert_eq!(shown()[1..], before[1..]);
}

#[test]
fn bad_values_change_nothing() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let before = stage.everything();
    let mut table = Table::new("set_directory_properties: bad values");
    for (name, value) in [
        ("x-ms-file-attributes", "Shiny"),
        ("x-ms-file-attributes", "Hidden|Shiny"),
        ("x-ms-file-creation-time", "yesterday"),
        ("x-ms-file-creation-time", "2020-13-01T00:00:00Z"),
        ("x-ms-file-last-write-time", "12"),
        ("x-ms-file-change-time", "soon"),
    ] {
        table.row(format!("{name}: {value}"), stage.call(URL, &[(name, value)], "").said(), "400 InvalidHeaderValue");
        let nowhere = "PUT share/none?restype=directory&comp=properties";
        let row = format!("{name}: {value}, not there");
        table.row(row, stage.call(nowhere, &[(name, value)], "").said(), "400 InvalidHeaderValue");
    }
    assert_eq!(stage.everything(), before);
}
