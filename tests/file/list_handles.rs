//! List Handles and Force Close Handles. Without anybody on a mount there are none.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

#[test]
fn there_are_none() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.make_file("share/dir/file", 0);
    for path in ["share", "share/dir", "share/dir/file"] {
        for headers in [&[][..], &[("x-ms-recursive", "false")], &[("x-ms-recursive", "true")]] {
            if path.ends_with("file") && headers == [("x-ms-recursive", "true")] {
                continue;
            }
            let listed = stage.call(&format!("GET {path}?comp=listhandles"), headers, "").ok().xml();
            assert_eq!(listed.name, "EnumerationResults", "{path}");
            assert!(listed.find("Entries").is_some() && listed.all("Entries").is_empty(), "{path}: {listed:?}");
            assert_eq!(listed.text_of("NextMarker").as_deref(), Some(""), "{path}");
            let headers = [&[("x-ms-handle-id", "*")], headers].concat();
            let closed = stage.call(&format!("PUT {path}?comp=forceclosehandles"), &headers, "").ok();
            assert_eq!(closed.status, 200);
            assert_eq!(closed.header("x-ms-number-of-handles-closed"), Some("0"), "{path}");
            assert_eq!(closed.header("x-ms-number-of-handles-failed"), Some("0"), "{path}");
            assert_eq!(closed.header("x-ms-marker").unwrap_or_default(), "", "{path}");
        }
    }
}

#[test]
fn bad_parameters() {
    let stage = Stage::new();
    stage.make_file("share/file", 0);
    stage.make_directory("share/dir");
    let mut table = Table::new("list_handles: parameters");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("pages",                       "GET share/dir?comp=listhandles&maxresults=10", &[], "200"),
        ("pages of none",               "GET share/dir?comp=listhandles&maxresults=0", &[], "400 OutOfRangeQueryParameterValue"),
        ("pages of x",                  "GET share/dir?comp=listhandles&maxresults=x", &[], "400 InvalidQueryParameterValue"),
        ("recursive maybe",             "GET share/dir?comp=listhandles", &[("x-ms-recursive", "maybe")], "400 InvalidHeaderValue"),
        ("which handle",                "PUT share/dir?comp=forceclosehandles", &[], "400 MissingRequiredHeader"),
        ("no number",                   "PUT share/dir?comp=forceclosehandles", &[("x-ms-handle-id", "x")], "400 InvalidHeaderValue"),
        ("a handle that is none",       "PUT share/dir?comp=forceclosehandles", &[("x-ms-handle-id", "12345")], "200"),
        ("a file is not recursive",     "PUT share/file?comp=forceclosehandles", &[("x-ms-handle-id", "*"), ("x-ms-recursive", "true")], "400"),
        ("no file",                     "GET share/none?comp=listhandles", &[], "404 ResourceNotFound"),
        ("no file to close",            "PUT share/none?comp=forceclosehandles", &[("x-ms-handle-id", "*")], "404 ResourceNotFound"),
        ("no share",                    "GET none/file?comp=listhandles", &[], "404 ShareNotFound"),
        ("no handle named, no file",    "PUT share/none?comp=forceclosehandles", &[], "400 MissingRequiredHeader"),
    ];
    for (row, line, headers, expected) in rows {
        let answer = stage.call(line, headers, "");
        let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(row, got, expected);
    }
}
