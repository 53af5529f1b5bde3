//! What the file system knows of a file: attributes, times, ids. By Create, by Set Properties, by Rename.

use crate::harness::{Headers, Table};
use crate::stage::{LENGTH, Stage, attributes};

const ATTRIBUTES: &str = "x-ms-file-attributes";
const CREATION: &str = "x-ms-file-creation-time";
const WRITE: &str = "x-ms-file-last-write-time";
const CHANGE: &str = "x-ms-file-change-time";
const TIME: &str = "2020-03-04T05:06:07.1234567Z";
const SEMANTICS: &str = "x-ms-file-property-semantics";

/// A new file has the Archive attribute whatever was sent; set later it has what was sent.
#[test]
fn attributes_of_files() {
    let stage = Stage::new();
    let mut table = Table::new("smb_properties: attributes of files");
    #[rustfmt::skip]
    let rows: &[(Option<&str>, &str, &str)] = &[
        // sent                                         new file                              set on a file
        (None,                                          "Archive",                            "Archive Hidden"),
        (Some("None"),                                  "Archive",                            "None"),
        (Some("Archive"),                               "Archive",                            "Archive"),
        (Some("ReadOnly"),                              "Archive ReadOnly",                   "ReadOnly"),
        (Some("ReadOnly|Archive"),                      "Archive ReadOnly",                   "Archive ReadOnly"),
        (Some("Hidden|System"),                         "Archive Hidden System",              "Hidden System"),
        (Some("Hidden | System"),                       "Archive Hidden System",              "Hidden System"),
        (Some("Temporary"),                             "Archive Temporary",                  "Temporary"),
        (Some("Offline|NotContentIndexed|NoScrubData"), "Archive NoScrubData NotContentIndexed Offline", "NoScrubData NotContentIndexed Offline"),
        (Some("preserve"),                              "",                                   "Archive Hidden"),
    ];
    for (number, (sent, created, set)) in rows.iter().enumerate() {
        let headers: Vec<(&str, &str)> = sent.iter().map(|sent| (ATTRIBUTES, *sent)).collect();
        let path = format!("share/file{number}");
        if !created.is_empty() {
            let made = stage.create_file(&path, 0, &headers).ok();
            table.row(format!("{sent:?}, created"), attributes(made.header(ATTRIBUTES)), created);
            table.row(format!("{sent:?}, shown"), attributes(stage.head(&path).header(ATTRIBUTES)), created);
        }
        let path = format!("share/set{number}");
        stage.create_file(&path, 0, &[(ATTRIBUTES, "Hidden")]).ok();
        let answer = stage.call(&format!("PUT {path}?comp=properties"), &headers, "").ok();
        table.row(format!("{sent:?}, set"), attributes(answer.header(ATTRIBUTES)), set);
        table.row(format!("{sent:?}, shown when set"), attributes(stage.head(&path).header(ATTRIBUTES)), set);
    }
    // As the service writes it.
    let made = stage.create_file("share/form", 0, &[(ATTRIBUTES, "ReadOnly")]).ok();
    table.row("the form", made.header(ATTRIBUTES).unwrap_or("none"), "ReadOnly | Archive");
    // A file that is restored gets what was sent, if its permission comes along.
    let permission = ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;SY)");
    for (sent, expected) in [("None", "None"), ("ReadOnly", "ReadOnly"), ("Archive|Hidden", "Archive Hidden")] {
        let path = format!("share/restored-{sent}").replace('|', "-");
        let made = stage.create_file(&path, 0, &[(ATTRIBUTES, sent), (SEMANTICS, "Restore"), permission]).ok();
        table.row(format!("{sent}, restored"), attributes(made.header(ATTRIBUTES)), expected);
    }
    let made = stage.create_file("share/half", 0, &[(ATTRIBUTES, "Hidden"), (SEMANTICS, "Restore")]).ok();
    table.row("restored without a permission", attributes(made.header(ATTRIBUTES)), "Archive Hidden");
    let made = stage.create_file("share/new", 0, &[(ATTRIBUTES, "Hidden"), (SEMANTICS, "New")]).ok();
    table.row("said to be new", attributes(made.header(ATTRIBUTES)), "Archive Hidden");
    for bad in ["Shiny", "Hidden,System", "Hidden|", "|", "32"] {
        let answer = stage.create_file("share/bad", 0, &[(ATTRIBUTES, bad)]);
        table.row(format!("{bad}, created"), answer.said(), "400 InvalidHeaderValue");
    }
}

#[test]
fn attributes_of_directories() {
    let stage = Stage::new();
    let mut table = Table::new("smb_properties: attributes of directories");
    #[rustfmt::skip]
    let rows: &[(Option<&str>, &str, &str)] = &[
        // sent                  new directory              set on a directory
        (None,                   "Directory",               "Directory Hidden"),
        (Some("None"),           "Directory",               "Directory"),
        (Some("Directory"),      "Directory",               "Directory"),
        (Some("ReadOnly"),       "Directory ReadOnly",      "Directory ReadOnly"),
        (Some("Hidden|System|Directory"), "Directory Hidden System", "Directory Hidden System"),
    ];
    for (number, (sent, created, set)) in rows.iter().enumerate() {
        let headers: Vec<(&str, &str)> = sent.iter().map(|sent| (ATTRIBUTES, *sent)).collect();
        let target = format!("share/dir{number}?restype=directory");
        let made = stage.call(&format!("PUT {target}"), &headers, "").ok();
        table.row(format!("{sent:?}, created"), attributes(made.header(ATTRIBUTES)), created);
        let target = format!("share/set{number}?restype=directory");
        stage.call(&format!("PUT {target}"), &[(ATTRIBUTES, "Hidden")], "").ok();
        stage.call(&format!("PUT {target}&comp=properties"), &headers, "").ok();
        table.row(format!("{sent:?}, set"), attributes(stage.head(&target).header(ATTRIBUTES)), set);
    }
    let refused = stage.call("PUT share/bad?restype=directory", &[(ATTRIBUTES, "Shiny")], "");
    table.row("bad", refused.said(), "400 InvalidHeaderValue");
}

/// What each way of giving a time makes of it, on files and on directories.
#[test]
fn times() {
    let stage = Stage::new();
    let mut table = Table::new("smb_properties: times");
    for kind in ["file", "directory"] {
        let (create, set, restype): (&str, &str, &str) = match kind {
            "file" => ("PUT share/thing", "PUT share/thing?comp=properties", ""),
            _ => (
                "PUT share/thing?restype=directory",
                "PUT share/thing?restype=directory&comp=properties",
                "?restype=directory",
            ),
        };
        let target = format!("share/thing{restype}");
        let head = || {
            let head = stage.head(&target).ok();
            [CREATION, WRITE, CHANGE].map(|name| head.header(name).expect("a time").to_owned())
        };
        let common: Headers<'_> = if kind == "file" { &[crate::stage::FILE, (LENGTH, "0")] } else { &[] };
        for name in [CREATION, WRITE, CHANGE] {
            let made = stage.call(create, &[common, &[(name, TIME)]].concat(), "");
            table.row(format!("{kind}, created with {name}"), made.said(), "201");
            let at = [CREATION, WRITE, CHANGE].iter().position(|known| *known == name).expect("one of them");
            table.row(format!("{kind}, {name} as given"), &head()[at], TIME);
            table.row(format!("{kind}, {name} told"), made.header(name).unwrap_or("none"), TIME);
            for (other, value) in head().iter().enumerate().filter(|(other, _)| *other != at) {
                table.row(format!("{kind}, {name} given: {other} is now"), value.starts_with("2020-"), false);
            }
            stage.delete(&target).ok();
        }
        stage.call(create, &[common, &[(CREATION, "now"), (WRITE, "now")]].concat(), "").ok();
        let made = head();
        table.row(format!("{kind}, both are now"), made[0] == made[1], true);
        let form = &made[0];
        table.row(format!("{kind}: the form of {form}"), form.len() == TIME.len() && form.ends_with('Z'), true);
        stage.server.advance(100);
        stage.call(set, &[(CREATION, "preserve"), (WRITE, "preserve")], "").ok();
        table.row(format!("{kind}, preserved"), head()[..2] == made[..2], true);
        table.row(format!("{kind}, changed"), head()[2] > made[2], true);
        stage.call(set, &[(WRITE, "now")], "").ok();
        table.row(format!("{kind}, written now"), head()[1] > made[1] && head()[0] == made[0], true);
        stage.call(set, &[(CREATION, TIME), (WRITE, TIME), (CHANGE, TIME)], "").ok();
        table.row(format!("{kind}, all as given"), head().join(" "), [TIME; 3].join(" "));
        #[rustfmt::skip]
        let forms = [
            ("2020-03-04T05:06:07Z",         "2020-03-04T05:06:07.0000000Z"),
            ("2020-03-04T05:06:07.1Z",       "2020-03-04T05:06:07.1000000Z"),
            ("1601-01-01T00:00:00.0000001Z", "1601-01-01T00:00:00.0000001Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ];
        for (sent, expected) in forms {
            stage.call(set, &[(CREATION, sent)], "").ok();
            table.row(format!("{kind}, {sent}"), &head()[0], expected);
        }
        for bad in ["yesterday", "2020-13-01T00:00:00Z", "2020-03-04", "12:00", "1583414767"] {
            let refused = stage.call(set, &[(CREATION, bad)], "");
            // A day alone is a time in other places of the protocol; here it may be one, too.
            let said = refused.said();
            table.row(format!("{kind}, {bad}"), said == "400 InvalidHeaderValue" || bad == "2020-03-04", true);
        }
        stage.delete(&target).ok();
    }
}

/// Every id is of its own, and a parent's id is that of the directory.
#[test]
fn ids_are_unique() {
    let stage = Stage::new();
    let mut seen = Vec::new();
    for directory in 0..5 {
        let parent = format!("share/d{directory}");
        let made = stage.make_directory(&parent);
        let id = made.header("x-ms-file-id").expect("an id").to_owned();
        for file in 0..5 {
            let made = stage.make_file(&format!("{parent}/f{file}"), 0);
            assert_eq!(made.header("x-ms-file-parent-id"), Some(&*id));
            seen.push(made.header("x-ms-file-id").expect("an id").parse::<u64>().expect("a number"));
        }
        seen.push(id.parse().expect("a number"));
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

/// All of it is there after a kill.
#[test]
fn after_a_kill() {
    let mut stage = Stage::new();
    let headers = [
        (ATTRIBUTES, "Hidden|System"),
        (CREATION, TIME),
        (WRITE, TIME),
        ("x-ms-meta-a", "1"),
        ("x-ms-content-type", "a/b"),
    ];
    stage.call("PUT share/dir?restype=directory", &headers[..4], "").ok();
    stage.create_file("share/file", 2_000, &headers).ok();
    stage.write("share/file", 700, "written");
    let before = stage.everything();
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!(stage.everything(), before);
}
