//! Put Range: bytes in, and cleared again.

use wire::base64;
use wire::checksum::Md5;

use crate::harness::{Headers, Table};
use crate::stage::{CLEAR, MIB, Stage, UPDATE, pattern};

const NOW: &str = "x-ms-file-last-write-time";

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", pattern(1, 2_000));
    let before = stage.everything();
    let wrong = base64::encode(&[1; 16]);
    let large = vec![0; 4 * MIB as usize + 1];
    let (three, end) = (b"new".as_slice(), ("x-ms-range", "bytes=1997-1999"));
    let mut table = Table::new("put_range: parameters");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &[u8], &str)] = &[
        ("no range",              &[UPDATE], three, "400"),
        ("no write",              &[end], three, "400 MissingRequiredHeader"),
        ("what write",            &[end, ("x-ms-write", "append")], three, "400 InvalidHeaderValue"),
        ("no end",                &[UPDATE, ("x-ms-range", "bytes=5-")], three, "400"),
        ("no number",             &[UPDATE, ("x-ms-range", "bytes=x-y")], three, "400"),
        ("backwards",             &[UPDATE, ("x-ms-range", "bytes=5-3")], three, "400"),
        ("two ranges",            &[UPDATE, ("x-ms-range", "bytes=0-2,4-6")], three, "400"),
        ("a longer range",        &[UPDATE, ("x-ms-range", "bytes=0-3")], three, "400"),
        ("a shorter range",       &[UPDATE, ("x-ms-range", "bytes=0-1")], three, "400"),
        ("nothing",               &[UPDATE, ("x-ms-range", "bytes=0-1")], b"", "400"),
        ("beyond the end",        &[UPDATE, ("x-ms-range", "bytes=1998-2000")], three, "416 InvalidRange"),
        ("after the end",         &[UPDATE, ("x-ms-range", "bytes=2000-2002")], three, "416 InvalidRange"),
        ("far after it",          &[UPDATE, ("x-ms-range", "bytes=4398046511104-4398046511106")], three, "416 InvalidRange"),
        ("more than 4 MiB",       &[UPDATE, ("x-ms-range", "bytes=0-4194304")], &large, "413 RequestBodyTooLarge"),
        ("another MD5",           &[UPDATE, end, ("content-md5", &wrong)], three, "400 Md5Mismatch"),
        ("no MD5",                &[UPDATE, end, ("content-md5", "x")], three, "400 InvalidMd5"),
        ("what time",             &[UPDATE, end, (NOW, "2020-01-01T00:00:00.0000000Z")], three, "400 InvalidHeaderValue"),
        ("what lease",            &[UPDATE, end, ("x-ms-lease-id", "me")], three, "400 InvalidHeaderValue"),
        ("clear: with a body",    &[CLEAR, end], three, "400"),
        ("clear: with an MD5",    &[CLEAR, end, ("content-md5", &wrong)], b"", "400"),
        ("clear: no range",       &[CLEAR], b"", "400"),
        ("clear: beyond the end", &[CLEAR, ("x-ms-range", "bytes=1998-2000")], b"", "416 InvalidRange"),
        ("clear: after the end",  &[CLEAR, ("x-ms-range", "bytes=2000-2000")], b"", "416 InvalidRange"),
    ];
    for (row, headers, body, expected) in rows {
        let answer = stage.call("PUT share/file?comp=range", headers, body);
        let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(row, got, expected);
        assert_eq!(stage.everything(), before, "{row}");
    }
    table.row("it never makes a file", stage.put_range("share/none", 0, "x", &[]).said(), "404 ResourceNotFound");
    table.row("nor does clearing", stage.clear("share/none", 0, 0).said(), "404 ResourceNotFound");
}

#[test]
fn what_is_written_is_there() {
    let stage = Stage::new();
    stage.make_file("share/file", 2_000);
    let put = stage.call("PUT share/file?comp=range", &[UPDATE, ("range", "bytes=5-7")], "one").ok();
    assert_eq!(put.status, 201);
    assert_eq!(put.header("content-md5"), Some(base64::encode(&Md5::of(b"one")).as_str()));
    let sum = base64::encode(&Md5::of(b"two"));
    stage.put_range("share/file", 8, "two", &[("content-md5", &sum)]).ok();
    // Of two headers it is the service's own that counts.
    let both = [UPDATE, ("range", "bytes=0-2"), ("x-ms-range", "bytes=11-13")];
    stage.call("PUT share/file?comp=range", &both, "six").ok();
    stage.put_range("share/file", 1_997, "end", &[]).ok();
    let mut expected = vec![0; 2_000];
    expected[5..14].copy_from_slice(b"onetwosix");
    expected[1_997..].copy_from_slice(b"end");
    assert!(stage.read("share/file") == expected);
    // The largest that is taken at once.
    stage.make_file("share/large", 8 * MIB);
    let content = pattern(1, 4 * MIB as usize);
    stage.write("share/large", 2 * MIB, &content);
    let zeros = vec![0; 2 * MIB as usize];
    assert!(stage.read("share/large") == [&zeros[..], &content, &zeros].concat());
}

/// The last write is now, unless the request keeps it; the change always is.
#[test]
fn the_time_of_a_write() {
    let stage = Stage::new();
    stage.make_file("share/file", 1_000);
    let mut table = Table::new("put_range: times");
    for (row, write, value, expected) in [
        ("update", UPDATE, None, "new"),
        ("update, now", UPDATE, Some("now"), "new"),
        ("update, Now", UPDATE, Some("Now"), "new"),
        ("update, preserve", UPDATE, Some("preserve"), "same"),
        ("update, Preserve", UPDATE, Some("Preserve"), "same"),
        ("clear", CLEAR, None, "new"),
        ("clear, preserve", CLEAR, Some("preserve"), "same"),
    ] {
        let before = stage.head("share/file").ok();
        stage.server.advance(2);
        let headers: Vec<_> =
            [write, ("x-ms-range", "bytes=0-2")].into_iter().chain(value.map(|value| (NOW, value))).collect();
        let body = if write == UPDATE { "new" } else { "" };
        let answer = stage.call("PUT share/file?comp=range", &headers, body);
        table.row(format!("{row}: answer"), answer.said(), "201");
        let after = stage.head("share/file").ok();
        let change = |header| if before.header(header) == after.header(header) { "same" } else { "new" };
        table.row(row, change(NOW), expected);
        table.row(format!("{row}: told"), answer.header(NOW).unwrap_or("none"), after.header(NOW).unwrap_or("nothing"));
        table.row(format!("{row}: change"), change("x-ms-file-change-time"), "new");
        table.row(format!("{row}: ETag"), change("etag"), "new");
    }
}

/// Many writes of any size at any place, and clears between them, against an array of bytes.
#[test]
fn against_an_array_of_bytes() {
    const LENGTH: usize = 3 << 20;
    let stage = Stage::new();
    for seed in 1..=3_u64 {
        let path = format!("share/file{seed}");
        stage.make_file(&path, LENGTH as u64);
        let mut expected = vec![0; LENGTH];
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..150 {
            let size = 1 + match random(4) {
                0 => random(20),
                1 => random(2_000),
                2 => random(100_000),
                _ => random(1 << 20),
            };
            let first = random(LENGTH - size);
            // Borders of pages and of the server's own pieces are where mistakes are made.
            let first = if random(3) == 0 { first / 512 * 512 } else { first };
            let range = first..first + size;
            if random(4) == 0 {
                stage.clear(&path, first as u64, (range.end - 1) as u64).ok();
                expected[range].fill(0);
            } else {
                let piece = pattern(round ^ seed << 32, size);
                stage.write(&path, first as u64, &piece);
                expected[range].copy_from_slice(&piece);
            }
            if round % 25 == 0 {
                assert!(stage.read(&path) == expected, "seed {seed}, round {round}");
            }
        }
        assert!(stage.read(&path) == expected, "seed {seed}");
        let listed = stage.ranges(&path);
        // Whatever is not zero is in a range, and ranges are whole pages, in order, with something between them.
        let ranges: Vec<(usize, usize)> = listed
            .split(' ')
            .filter(|range| !range.is_empty())
            .map(|range| range.split_once('-').expect("two numbers"))
            .map(|(first, last)| (first.parse().expect("a number"), last.parse().expect("a number")))
            .collect();
        for pair in ranges.windows(2) {
            assert!(pair[0].1 + 1 < pair[1].0, "{listed}");
        }
        for (first, last) in &ranges {
            assert!(first % 512 == 0 && (last + 1) % 512 == 0, "{first}-{last}");
        }
        let mut at = 0;
        for (first, last) in ranges.iter().chain([&(LENGTH, LENGTH)]) {
            assert!(expected[at..*first].iter().all(|byte| *byte == 0), "something before {first} is not listed");
            at = (last + 1).min(LENGTH);
        }
    }
}

/// Ten thousand small writes, one behind the other: the content is whole, and reading it is not slow.
#[test]
fn many_small_appends() {
    const WRITES: u64 = 2_000;
    let stage = Stage::new();
    stage.make_file("share/log", WRITES * 100);
    let mut expected = Vec::new();
    for number in 0..WRITES {
        let line = pattern(number, 100);
        stage.write("share/log", number * 100, &line);
        expected.extend_from_slice(&line);
    }
    assert!(stage.read("share/log") == expected);
    assert_eq!(stage.ranges("share/log"), format!("0-{}", WRITES * 100 - 1));
}
