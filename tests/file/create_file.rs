//! Create File: a file of zeros, or of what comes along; over a file it is another content under the same id.

use wire::base64;
use wire::checksum::Md5;

use crate::harness::{Headers, Table};
use crate::stage::{A, FILE, LENGTH, Stage, TIB, pattern};

#[test]
fn lengths() {
    let stage = Stage::new();
    let mut table = Table::new("create_file: lengths");
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("0",                    "201"),
        ("1",                    "201"),
        ("511",                  "201"),
        ("1073741824",           "201"),
        ("1099511627776",        "201"),
        ("4398046511104",        "201"),
        ("4398046511105",        "400"),
        ("18446744073709551615", "400"),
        ("18446744073709551616", "400"),
        ("-1",                   "400 OutOfRangeInput"),
        ("-4398046511104",       "400 OutOfRangeInput"),
        ("x",                    "400 InvalidHeaderValue"),
        ("1.5",                  "400 InvalidHeaderValue"),
        ("",                     "400 MissingRequiredHeader"),
    ];
    for (number, (length, expected)) in rows.iter().enumerate() {
        let path = format!("share/file{number}");
        let answer = stage.call(&format!("PUT {path}"), &[FILE, (LENGTH, length)], "");
        let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(length, got, expected);
        let head = stage.head(&path);
        let told = head.header("content-length").filter(|_| head.is_success()).unwrap_or("none");
        let is_made = expected.starts_with('2');
        table.row(format!("{length}: told"), told, if is_made { length } else { "none" });
        // All of them together are more than a share has.
        let _ = stage.delete(&path);
    }
}

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let before = stage.everything();
    let mut table = Table::new("create_file: parameters");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("no type",           &[(LENGTH, "1")], "400 MissingRequiredHeader"),
        ("a blob's type",     &[("x-ms-type", "BlockBlob"), (LENGTH, "1")], "400 InvalidHeaderValue"),
        ("no length",         &[FILE], "400 MissingRequiredHeader"),
        ("bad metadata",      &[FILE, (LENGTH, "1"), ("x-ms-meta-a-b", "1")], "400 InvalidMetadata"),
        ("no GUID",           &[FILE, (LENGTH, "1"), ("x-ms-lease-id", "me")], "400 InvalidHeaderValue"),
        ("no attribute",      &[FILE, (LENGTH, "1"), ("x-ms-file-attributes", "Shiny")], "400 InvalidHeaderValue"),
        ("no time",           &[FILE, (LENGTH, "1"), ("x-ms-file-creation-time", "soon")], "400 InvalidHeaderValue"),
        ("no MD5",            &[FILE, (LENGTH, "1"), ("x-ms-content-md5", "no base64")], "400"),
        ("no semantics",      &[FILE, (LENGTH, "1"), ("x-ms-file-property-semantics", "Old")], "400 InvalidHeaderValue"),
    ];
    for (row, headers, expected) in rows {
        for path in ["share/file", "share/new"] {
            let answer = stage.call(&format!("PUT {path}"), headers, "");
            let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
            table.row(format!("{row}, {path}"), got, expected);
        }
        assert_eq!(stage.everything(), before, "{row}");
    }
}

/// The six properties of HTTP are told as headers of a download.
#[test]
fn http_properties() {
    let stage = Stage::new();
    let md5 = base64::encode(&[7; 16]);
    #[rustfmt::skip]
    let sent = [
        ("x-ms-content-type", "text/plain; charset=utf-8", "content-type"),
        ("x-ms-content-encoding", "gzip", "content-encoding"),
        ("x-ms-content-language", "de, en", "content-language"),
        ("x-ms-cache-control", "no-store", "cache-control"),
        ("x-ms-content-md5", md5.as_str(), "content-md5"),
        ("x-ms-content-disposition", "attachment; filename=\"a b\"", "content-disposition"),
    ];
    let headers: Vec<(&str, &str)> = sent.iter().map(|(name, value, _)| (*name, *value)).collect();
    stage.create_file("share/file", 3, &headers).ok();
    for verb in ["GET", "HEAD"] {
        let told = stage.call(&format!("{verb} share/file"), &[], "").ok();
        for (_, value, header) in sent {
            assert_eq!(told.header(header), Some(value), "{verb}");
        }
    }
    // The MD5 of a part is not that of the whole.
    let part = stage.call("GET share/file", &[("x-ms-range", "bytes=0-1")], "").ok();
    assert_eq!((part.header("content-md5"), part.header("x-ms-content-md5")), (None, Some(md5.as_str())));
    // Made anew without them there are none.
    stage.make_file("share/file", 3);
    let told = stage.head("share/file").ok();
    assert_eq!(told.header("content-type"), Some("application/octet-stream"));
    for (_, _, header) in &sent[1..] {
        assert_eq!(told.header(header), None, "{header}");
    }
}

/// Nothing of what was there is left, but its id and its lease.
#[test]
fn over_a_file() {
    let stage = Stage::new();
    let headers = [("x-ms-meta-a", "1"), ("x-ms-content-type", "text/plain"), ("x-ms-file-attributes", "Hidden")];
    let made = stage.create_file("share/file", 2_000, &headers).ok();
    stage.write("share/file", 0, pattern(1, 2_000));
    stage.acquire("share/file", A, "-1");
    stage.server.advance(2);
    assert_eq!(stage.create_file("share/file", 1_000, &[]).said(), "412 LeaseIdMissing");
    let again = stage.create_file("share/file", 1_000, &[("x-ms-lease-id", A)]).ok();
    assert_eq!(again.status, 201);
    let mut table = Table::new("create_file: over a file");
    let head = stage.head("share/file").ok();
    table.row("the id stays", again.header("x-ms-file-id") == made.header("x-ms-file-id"), true);
    table.row("the lease stays", head.header("x-ms-lease-state").unwrap_or("none"), "leased");
    table.row("metadata", head.header("x-ms-meta-a").unwrap_or("none"), "none");
    table.row("type", head.header("content-type").unwrap_or("none"), "application/octet-stream");
    table.row("attributes", head.header("x-ms-file-attributes").unwrap_or("none"), "Archive");
    table.row("length", head.header("content-length").unwrap_or("none"), "1000");
    table.row("ranges", stage.ranges("share/file"), "");
    table.row("zeros", stage.read("share/file") == vec![0; 1_000], true);
    table.row("usage", stage.usage("share"), 1_000);
    // What was beyond the new end does not come back.
    let longer = stage.call("PUT share/file?comp=properties", &[(LENGTH, "2000"), ("x-ms-lease-id", A)], "");
    table.row("longer", longer.said(), "200");
    table.row("still zeros", stage.read("share/file") == vec![0; 2_000], true);
}

#[test]
fn a_name_is_taken_once() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.make_file("share/dir/x", 0);
    let mut table = Table::new("create_file: names");
    table.row("over a directory", stage.create_file("share/dir", 0, &[]).said(), "409 ResourceTypeMismatch");
    table.row("in another case", stage.create_file("share/DIR", 0, &[]).said(), "409 ResourceTypeMismatch");
    table.row("inside", stage.create_file("share/DIR/file", 0, &[]).said(), "201");
    table.row("no parent", stage.create_file("share/none/file", 0, &[]).said(), "404 ParentNotFound");
    table.row("no share", stage.create_file("none/file", 0, &[]).said(), "404 ShareNotFound");
    table.row("the root", stage.create_file("share", 0, &[]).status / 100, 4);
    table.row("what there is", stage.names("share/dir"), "file x");
}

/// Newer versions take the first bytes along.
#[test]
fn with_a_content() {
    let stage = Stage::new();
    let content = pattern(1, 4 << 20);
    let create = |path: &str, length: usize, body: &[u8], headers: Headers<'_>| {
        let length = length.to_string();
        stage.call(&format!("PUT {path}"), &[&[FILE, (LENGTH, length.as_str())], headers].concat(), body)
    };
    let mut table = Table::new("create_file: with a content");
    table.row("whole", create("share/whole", 10, b"0123456789", &[]).said(), "201");
    table.row("whole: content", String::from_utf8_lossy(&stage.read("share/whole")), "0123456789");
    table.row("whole: ranges", stage.ranges("share/whole"), "0-9");
    table.row("the beginning", create("share/part", 2_000, b"begin", &[]).said(), "201");
    let expected = [&b"begin"[..], &[0; 1_995]].concat();
    table.row("the beginning: content", stage.read("share/part") == expected, true);
    table.row("the beginning: ranges", stage.ranges("share/part"), "0-511");
    table.row("4 MiB", create("share/large", content.len(), &content, &[]).said(), "201");
    table.row("4 MiB: content", stage.read("share/large") == content, true);
    let more = [&content[..], b"x"].concat();
    table.row("more than 4 MiB", create("share/more", more.len(), &more, &[]).said(), "413 RequestBodyTooLarge");
    table.row("more than the file", create("share/beyond", 3, b"four", &[]).status, 400);
    let sum = base64::encode(&Md5::of(b"0123456789"));
    let wrong = base64::encode(&[1; 16]);
    table.row("its MD5", create("share/whole", 10, b"0123456789", &[("content-md5", &sum)]).said(), "201");
    table.row(
        "another MD5",
        create("share/sum", 10, b"0123456789", &[("content-md5", &wrong)]).said(),
        "400 Md5Mismatch",
    );
    table.row("no MD5", create("share/sum", 10, b"0123456789", &[("content-md5", "x")]).said(), "400 InvalidMd5");
    table.row("what there is", stage.names("share"), "large part whole");
    table.row("over a file", create("share/part", 3, b"new", &[]).said(), "201");
    table.row("over a file: content", String::from_utf8_lossy(&stage.read("share/part")), "new");
    table.row("usage", stage.usage("share"), (4 << 20) + 13);
}

/// Older versions create files of zeros, and a body must say how long it is: what would be lost is refused.
#[test]
fn a_content_that_cannot_be_taken() {
    let stage = Stage::new();
    let mut table = Table::new("create_file: a content that cannot be taken");
    for (version, expected) in [("2021-12-02", "400 InvalidHeaderValue"), ("2026-02-06", "201")] {
        let headers = [FILE, (LENGTH, "10"), ("x-ms-version", version)];
        table.row(version, stage.call(&format!("PUT share/{version}"), &headers, "hello").said(), expected);
    }
    let line = "PUT share/chunked";
    let head = stage.client.head(line, &[FILE, (LENGTH, "10"), ("transfer-encoding", "chunked")], None);
    let answer = stage.client.call_odd(line, &head, b"5\r\nhello\r\n0\r\n\r\n");
    table.row("in chunks", answer.said(), "411 MissingContentLengthHeader");
    table.row("what there is", stage.names("share"), "2026-02-06");
}

/// A large file costs nothing before something is written.
#[test]
fn large_ones() {
    let stage = Stage::new();
    stage.call("PUT share?restype=share&comp=properties", &[("x-ms-share-quota", "102400")], "").ok();
    for number in 0..20 {
        stage.make_file(&format!("share/{number}"), 4 * TIB);
    }
    assert_eq!(stage.usage("share"), 80 * TIB);
}
