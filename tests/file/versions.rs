//! What older versions of the protocol allow and show.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{FILE, LENGTH, Stage};

/// A header with the code came with 2017-07-29; the body has always had it.
fn call(stage: &Stage, version: &str, line: &str, headers: Headers<'_>, body: &str) -> (String, Answer) {
    let headers = [headers, &[("x-ms-version", version)]].concat();
    let answer = stage.client.try_call(line, &headers, body).expect("an answer");
    let code = (!answer.is_success() && !answer.body.is_empty()).then(|| answer.xml().text_of("Code").expect("a code"));
    let said = code.map_or(answer.status.to_string(), |code| format!("{} {code}", answer.status));
    (said, answer)
}

/// From 2019-02-02 to 2021-04-10 a new file says how it is to be; before there was nothing to say, afterwards it need not.
#[test]
fn properties_that_must_be_sent() {
    let stage = Stage::new();
    let all = [
        ("x-ms-file-attributes", "None"),
        ("x-ms-file-creation-time", "now"),
        ("x-ms-file-last-write-time", "now"),
        ("x-ms-file-permission", "inherit"),
    ];
    let mut table = Table::new("versions: properties that must be sent");
    let mut count = 0;
    for (version, needed) in [
        ("2018-11-09", false),
        ("2019-02-02", true),
        ("2020-10-02", true),
        ("2021-04-10", true),
        ("2021-06-08", false),
        ("2026-10-06", false),
    ] {
        for missing in 0..=all.len() {
            let sent: Vec<(&str, &str)> =
                all.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, header)| *header).collect();
            let what = all.get(missing).map_or("nothing", |(name, _)| *name);
            let expected = if needed && missing < all.len() { "400 MissingRequiredHeader" } else { "201" };
            count += 1;
            let file = [&[FILE, (LENGTH, "0")], &sent[..]].concat();
            let (said, _) = call(&stage, version, &format!("PUT share/f{count}"), &file, "");
            table.row(format!("{version}, a file without {what}"), said, expected);
            let (said, _) = call(&stage, version, &format!("PUT share/d{count}?restype=directory"), &sent, "");
            table.row(format!("{version}, a directory without {what}"), said, expected);
        }
    }
}

/// What is shown by which version.
#[test]
fn what_is_shown() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.put_file("share/file", "content");
    let mut table = Table::new("versions: shown");
    #[rustfmt::skip]
    let rows = [
        // version       attributes  id      change time
        ("2018-11-09",   false,      false,  false),
        ("2019-02-02",   true,       true,   false),
        ("2021-04-10",   true,       true,   false),
        ("2021-06-08",   true,       true,   true),
        ("2026-10-06",   true,       true,   true),
    ];
    for (version, attributes, id, change) in rows {
        for line in ["HEAD share/file", "GET share/file", "GET share/dir?restype=directory"] {
            let (said, answer) = call(&stage, version, line, &[], "");
            table.row(format!("{version} {line}"), said, "200");
            let has = |name: &str| answer.header(name).is_some();
            table.row(format!("{version} {line}: attributes"), has("x-ms-file-attributes"), attributes);
            table.row(format!("{version} {line}: id"), has("x-ms-file-id"), id);
            if version != "2021-04-10" {
                // It is shown or not; who does not know it does not look.
                table.row(format!("{version} {line}: change"), has("x-ms-file-change-time") || !change, true);
            }
        }
        let (_, listed) = call(&stage, version, "GET share?restype=directory&comp=list", &[], "");
        let listed = listed.xml();
        let known = version >= "2020-10-02";
        table.row(format!("{version}: DirectoryId"), listed.find("DirectoryId").is_some(), known);
        table.row(format!("{version}: FileId"), listed.find("Entries/File/FileId").is_some(), known);
    }
    // Usage in gibibytes first, in bytes later.
    for (version, element) in
        [("2017-11-09", "ShareUsage"), ("2018-11-09", "ShareUsageBytes"), ("2026-10-06", "ShareUsageBytes")]
    {
        let (said, stats) = call(&stage, version, "GET share?restype=share&comp=stats", &[], "");
        table.row(format!("{version}: stats"), said, "200");
        table.row(format!("{version}: {element}"), stats.xml().find(element).is_some(), true);
    }
}

/// What came later is not there before.
#[test]
fn what_is_too_new() {
    let stage = Stage::new();
    stage.make_file("share/file", 0);
    let source = stage.client.url("share/file");
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let smb = [
        ("x-ms-file-attributes", "None"),
        ("x-ms-file-creation-time", "now"),
        ("x-ms-file-last-write-time", "now"),
        ("x-ms-file-permission", "inherit"),
    ];
    let with = |length| [&[FILE, (LENGTH, length)], &smb[..]].concat();
    let (tebibyte, more) = (with("1099511627776"), with("1099511627777"));
    let mut table = Table::new("versions: too new");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, bool)] = &[
        ("2019-12-12", "PUT share/large", &tebibyte, true),
        ("2019-12-12", "PUT share/larger", &more, false),
        ("2020-02-10", "PUT share/larger", &more, true),
        ("2018-11-09", "PUT share/file?comp=lease", &acquire, false),
        ("2019-02-02", "PUT share/file?comp=lease", &acquire, true),
        ("2019-12-12", "PUT share?restype=share&comp=lease", &acquire, false),
        ("2020-02-10", "PUT share?restype=share&comp=lease", &acquire, true),
        ("2021-02-12", "PUT share/moved?comp=rename", &[(crate::stage::SOURCE, &source), ("x-ms-source-lease-id", "")], false),
    ];
    for (version, line, headers, is_done) in rows {
        let (said, answer) = call(&stage, version, line, headers, "");
        let got = if answer.is_success() {
            "done"
        } else if answer.status < 500 {
            "refused"
        } else {
            said.as_str()
        };
        table.row(format!("{version} {line}"), got, if *is_done { "done" } else { "refused" });
    }
}

/// A version that is none is refused; the service exists since 2014-02-14.
#[test]
fn versions_that_are_none() {
    let stage = Stage::new();
    let mut table = Table::new("versions: none");
    for (version, expected) in
        [("2014-02-14", "200"), ("2026-10-06", "200"), ("2013-08-15", "400"), ("soon", "400"), ("2020-13-01", "400")]
    {
        let (_, answer) = call(&stage, version, "GET share?restype=share", &[], "");
        table.row(version, answer.status, expected);
    }
}
