//! Get File: whole, in parts, with sums.

use wire::base64;
use wire::checksum::Md5;

use crate::harness::{Headers, Table};
use crate::stage::{A, B, Stage, pattern};

fn md5(bytes: &[u8]) -> String {
    base64::encode(&Md5::of(bytes))
}

/// What is asked for, the answer, and the bytes it has.
type Row<'a> = (&'a str, Headers<'a>, &'a str, Option<(usize, usize)>);

#[test]
fn ranges() {
    let stage = Stage::new();
    let content = pattern(1, 3_000);
    stage.put_file("share/file", &content);
    stage.make_file("share/empty", 0);
    let mut table = Table::new("get_file: ranges");
    #[rustfmt::skip]
    let rows: &[Row<'_>] = &[
        ("whole",                &[], "200", Some((0, 3_000))),
        ("from a byte on",       &[("x-ms-range", "bytes=5-")], "206", Some((5, 3_000))),
        ("from the first on",    &[("x-ms-range", "bytes=0-")], "206", Some((0, 3_000))),
        ("a part",               &[("x-ms-range", "bytes=5-14")], "206", Some((5, 15))),
        ("one byte",             &[("x-ms-range", "bytes=2999-2999")], "206", Some((2_999, 3_000))),
        ("beyond the end",       &[("x-ms-range", "bytes=2990-5000")], "206", Some((2_990, 3_000))),
        ("the other header",     &[("range", "bytes=1-2")], "206", Some((1, 3))),
        ("both headers",         &[("range", "bytes=1-2"), ("x-ms-range", "bytes=5-6")], "206", Some((5, 7))),
        ("after the end",        &[("x-ms-range", "bytes=3000-")], "416 InvalidRange", None),
        ("far after it",         &[("x-ms-range", "bytes=9999999999-9999999999")], "416 InvalidRange", None),
    ];
    for (row, headers, expected, part) in rows {
        let answer = stage.call("GET share/file", headers, "");
        table.row(row, answer.said(), expected);
        if let Some((first, end)) = part {
            table.row(format!("{row}: accept"), answer.header("accept-ranges").unwrap_or("none"), "bytes");
            table.row(format!("{row}: bytes"), answer.body == content[*first..*end], true);
            let range = format!("bytes {first}-{}/3000", end - 1);
            let told = answer.header("content-range").unwrap_or("none");
            table.row(format!("{row}: told"), told, if answer.status == 206 { &range } else { "none" });
        }
    }
    table.row("all of nothing", stage.get("share/empty").said(), "200");
    table.row(
        "of nothing",
        stage.call("GET share/empty", &[("x-ms-range", "bytes=0-")], "").said(),
        "416 InvalidRange",
    );
    // What is no range is passed over or refused, but not taken for one.
    for bad in ["bytes=5-2", "bytes=x-", "bytes=", "lines=1-2", "bytes=0-0,2-3", "bytes=-5"] {
        let answer = stage.call("GET share/file", &[("x-ms-range", bad)], "");
        let is_whole = answer.status == 200 && answer.body == content;
        table.row(bad, is_whole || matches!(answer.status, 400 | 416), true);
    }
}

/// The sum of a part is told when it is asked for; that of the whole is what somebody has set.
#[test]
fn sums() {
    let stage = Stage::new();
    let content = pattern(1, 5 << 20);
    stage.make_file("share/file", content.len() as u64);
    stage.write("share/file", 0, &content[..4 << 20]);
    stage.write("share/file", 4 << 20, &content[4 << 20..]);
    let whole = md5(&content);
    stage.call("PUT share/file?comp=properties", &[("x-ms-content-md5", &whole)], "").ok();
    let wanted = ("x-ms-range-get-content-md5", "true");
    let mut table = Table::new("get_file: sums");
    let read = |headers: Headers<'_>| stage.call("GET share/file", headers, "");
    let told = |headers: Headers<'_>, name: &str| read(headers).header(name).unwrap_or("none").to_owned();
    table.row("whole", told(&[], "content-md5"), &whole);
    table.row("a part", told(&[("x-ms-range", "bytes=1-4")], "content-md5"), "none");
    table.row("a part, of the whole", told(&[("x-ms-range", "bytes=1-4")], "x-ms-content-md5"), &whole);
    let part = [("x-ms-range", "bytes=1-4"), wanted];
    table.row("of a part", told(&part, "content-md5"), md5(&content[1..5]));
    table.row("and of the whole", told(&part, "x-ms-content-md5"), &whole);
    let most = [("x-ms-range", "bytes=0-4194303"), wanted];
    table.row("of 4 MiB", told(&most, "content-md5"), md5(&content[..4 << 20]));
    table.row("of more", read(&[("x-ms-range", "bytes=0-4194304"), wanted]).status, 400);
    table.row("without a range", read(&[wanted]).status, 400);
    table.row(
        "maybe",
        read(&[("x-ms-range", "bytes=0-1"), ("x-ms-range-get-content-md5", "maybe")]).said(),
        "400 InvalidHeaderValue",
    );
    table.row(
        "not wanted",
        told(&[("x-ms-range", "bytes=0-1"), ("x-ms-range-get-content-md5", "false")], "content-md5"),
        "none",
    );
    // Writing does not touch what somebody has said of the whole.
    stage.write("share/file", 0, "changed");
    table.row("after a write", told(&[], "content-md5"), &whole);
}

/// What was never written is zeros, wherever it is.
#[test]
fn zeros_between() {
    let stage = Stage::new();
    stage.make_file("share/file", 10_000_000);
    let mut content = vec![0; 10_000_000];
    for (number, offset) in [3, 511, 512, 70_000, 1_048_575, 5_000_000, 9_999_990].into_iter().enumerate() {
        let piece = pattern(number as u64, 10);
        stage.write("share/file", offset as u64, &piece);
        content[offset..offset + 10].copy_from_slice(&piece);
    }
    assert!(stage.read("share/file") == content);
    for (first, last) in
        [(0, 20), (500, 530), (69_990, 70_020), (1_048_570, 1_048_600), (4_999_999, 5_000_011), (9_999_980, 9_999_999)]
    {
        assert!(
            stage.read_range("share/file", first, last) == content[first as usize..=last as usize],
            "{first}-{last}"
        );
    }
}

/// A lease id that is named must be the holder's; without one everybody may read.
#[test]
fn leases() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    stage.acquire("share/file", A, "-1");
    let read = |headers: Headers<'_>| stage.call("GET share/file", headers, "");
    assert_eq!(read(&[]).said(), "200");
    assert_eq!(read(&[("x-ms-lease-id", A)]).said(), "200");
    assert_eq!(read(&[("x-ms-lease-id", B)]).said(), "412 LeaseIdMismatchWithFileOperation");
    let told = read(&[]);
    let lease = ["x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"]
        .map(|name| told.header(name).unwrap_or("none").to_owned());
    assert_eq!(lease, ["locked", "leased", "infinite"]);
}

/// A download that has begun ends with its own bytes, whatever becomes of the file.
#[test]
fn a_download_ends_with_what_it_began() {
    let stage = Stage::new();
    let content = pattern(7, 24 << 20);
    #[rustfmt::skip]
    let fates: &[(&str, &str, Headers<'_>, &str)] = &[
        ("deleted",             "DELETE share/dir/file", &[], ""),
        ("made anew",           "PUT share/dir/file", &[crate::stage::FILE, (crate::stage::LENGTH, "5")], ""),
        ("cut",                 "PUT share/dir/file?comp=properties", &[(crate::stage::LENGTH, "5")], ""),
        ("cleared",             "PUT share/dir/file?comp=range", &[crate::stage::CLEAR, ("x-ms-range", "bytes=0-25165823")], ""),
        ("gone with its share", "DELETE share?restype=share", &[], ""),
    ];
    for (what, line, headers, body) in fates {
        let _ = stage.call("PUT share?restype=share", &[], "");
        let _ = stage.call("PUT share/dir?restype=directory", &[], "");
        stage.make_file("share/dir/file", content.len() as u64);
        for (number, piece) in content.chunks(4 << 20).enumerate() {
            stage.write("share/dir/file", (number * (4 << 20)) as u64, piece);
        }
        let reader = stage.server.client();
        let download = reader.begin("GET share/dir/file", &[]);
        assert_eq!(download.answer.said(), "200");
        stage.call(line, headers, body).ok();
        // What was let go may be collected at any time now.
        stage.server.advance(3600);
        let got = download.finish();
        assert!(got.body == content, "{what}");
    }
}
