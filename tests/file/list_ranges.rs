//! List Ranges: pages of 512 bytes, cut at the end of the file.

use crate::harness::{Headers, Table};
use crate::stage::{A, B, Stage};

/// What is done to a file of so many bytes, and what is listed then.
type Story = (&'static str, u64, &'static [&'static str], &'static str);

#[rustfmt::skip]
const STORIES: &[Story] = &[
    ("nothing",                          10_000, &[], ""),
    ("one byte",                         10_000, &["write 0 1"], "0-511"),
    ("a page",                           10_000, &["write 0 512"], "0-511"),
    ("a page and a byte",                10_000, &["write 0 513"], "0-1023"),
    ("5 bytes over a border",            10_000, &["write 1023 5"], "512-1535"),
    ("all of a small file",              10,     &["write 0 10"], "0-9"),
    ("the end of a file",                10_000, &["write 9999 1"], "9728-9999"),
    ("two that touch",                   10_000, &["write 0 512", "write 512 512"], "0-1023"),
    ("two apart",                        10_000, &["write 0 512", "write 1024 512"], "0-511 1024-1535"),
    ("the gap is filled",                10_000, &["write 0 512", "write 1024 512", "write 600 1"], "0-1535"),
    ("over each other",                  10_000, &["write 0 2000", "write 100 100"], "0-2047"),
    ("a page cleared",                   10_000, &["write 0 1536", "clear 512 512"], "0-511 1024-1535"),
    ("all cleared",                      10_000, &["write 0 1536", "clear 0 10000"], ""),
    ("a clear inside a page",            10_000, &["write 0 512", "clear 100 10"], "0-511"),
    ("a clear over a border",            10_000, &["write 0 1024", "clear 500 24"], "0-1023"),
    ("a clear over a whole page",        10_000, &["write 0 1536", "clear 500 600"], "0-511 1024-1535"),
    ("a clear of what was not written",  10_000, &["clear 100 10"], ""),
    ("a clear of part of the last page", 1_000,  &["write 0 1000", "clear 600 300"], "0-999"),
    ("a clear up to the end",            1_000,  &["write 0 1000", "clear 512 488"], "0-511"),
    ("cleared, then written",            10_000, &["write 0 1536", "clear 0 1536", "write 600 1"], "512-1023"),
    ("cut in a page",                    10_000, &["write 0 2000", "size 700"], "0-699"),
    ("cut and longer again",             10_000, &["write 0 2000", "size 700", "size 5000"], "0-1023"),
    ("cut at a border",                  10_000, &["write 0 2000", "size 512", "size 5000"], "0-511"),
    ("cut to nothing",                   10_000, &["write 0 2000", "size 0", "size 5000"], ""),
    ("made anew",                        10_000, &["write 0 2000", "make 5000"], ""),
    ("longer",                           700,    &["write 600 100", "size 5000"], "512-1023"),
];

fn play(stage: &Stage, path: &str, length: u64, steps: &[&str]) {
    stage.make_file(path, length);
    for step in steps {
        let words: Vec<&str> = step.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "write" => stage.write(path, number(1), vec![b'x'; number(2) as usize]),
            "clear" => stage.clear(path, number(1), number(1) + number(2) - 1),
            "size" => stage.resize(path, number(1)),
            "make" => stage.make_file(path, number(1)),
            other => panic!("{other}"),
        }
        .ok();
    }
}

#[test]
fn what_was_written_in_whole_pages() {
    let stage = Stage::new();
    let mut table = Table::new("list_ranges");
    for (number, (row, length, steps, expected)) in STORIES.iter().enumerate() {
        let path = format!("share/file{number}");
        play(&stage, &path, *length, steps);
        table.row(row, stage.ranges(&path), expected);
        // What is cleared or cut reads as zeros, whatever is listed.
        let content = stage.read(&path);
        let told = stage.get(&format!("{path}?comp=rangelist"));
        table.row(format!("{row}: length"), told.header("x-ms-content-length").unwrap_or("none"), content.len());
        let mut model = vec![0; *length as usize];
        for step in *steps {
            let words: Vec<&str> = step.split(' ').collect();
            let number = |at: usize| words[at].parse::<usize>().expect("a number");
            match words[0] {
                "write" => model[number(1)..number(1) + number(2)].fill(b'x'),
                "clear" => model[number(1)..number(1) + number(2)].fill(0),
                "size" => model.resize(number(1), 0),
                _ => model = vec![0; number(1)],
            }
        }
        table.row(format!("{row}: content"), content == model, true);
    }
}

#[test]
fn a_part_of_a_file() {
    let stage = Stage::new();
    play(&stage, "share/file", 10_000, &["write 0 512", "write 1024 1024", "write 4096 512", "write 9900 100"]);
    let mut table = Table::new("list_ranges: parts");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("all",                  &[], "0-511 1024-2047 4096-4607 9728-9999"),
        ("all by a range",       &[("x-ms-range", "bytes=0-9999")], "0-511 1024-2047 4096-4607 9728-9999"),
        ("a gap",                &[("x-ms-range", "bytes=512-1023")], ""),
        ("whole pages",          &[("x-ms-range", "bytes=1024-4607")], "1024-2047 4096-4607"),
        ("from somewhere on",    &[("x-ms-range", "bytes=4096-")], "4096-4607 9728-9999"),
        ("the other header",     &[("range", "bytes=0-511")], "0-511"),
        ("beyond the end",       &[("x-ms-range", "bytes=9728-20000")], "9728-9999"),
    ];
    for (row, headers, expected) in rows {
        let answer = stage.call("GET share/file?comp=rangelist", headers, "");
        table.row(format!("{row}: answer"), answer.said(), "200");
        if answer.is_success() {
            table.row(row, crate::stage::ranges(&answer.xml()), expected);
        }
    }
    let after = stage.call("GET share/file?comp=rangelist", &[("x-ms-range", "bytes=10000-")], "");
    table.row("after the end", after.said(), "416 InvalidRange");
    // One byte of a page: the page or its byte, but not more.
    let one = crate::stage::ranges(
        &stage.call("GET share/file?comp=rangelist", &[("x-ms-range", "bytes=100-100")], "").ok().xml(),
    );
    table.row("one byte", one == "0-511" || one == "100-100", true);
}

#[test]
fn leases_and_refusals() {
    let stage = Stage::new();
    play(&stage, "share/file", 1_000, &["write 0 10"]);
    stage.acquire("share/file", A, "-1");
    stage.make_directory("share/dir");
    let list = |path: &str, headers: Headers<'_>| stage.call(&format!("GET {path}?comp=rangelist"), headers, "").said();
    let mut table = Table::new("list_ranges: refusals");
    table.row("no id", list("share/file", &[]), "200");
    table.row("its id", list("share/file", &[("x-ms-lease-id", A)]), "200");
    table.row("another", list("share/file", &[("x-ms-lease-id", B)]), "412 LeaseIdMismatchWithFileOperation");
    table.row("not there", list("share/none", &[]), "404 ResourceNotFound");
    table.row("a directory", list("share/dir", &[]), "404 ResourceNotFound");
    table.row("no share", list("none/file", &[]), "404 ShareNotFound");
}
