//! Create Permission and Get Permission: security descriptors that files share, by key.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{LENGTH, Stage};

const URL: &str = "share?restype=share&comp=filepermission";
const KEY: &str = "x-ms-file-permission-key";
const PERMISSION: &str = "x-ms-file-permission";
const FORMAT: &str = "x-ms-file-permission-format";
/// The descriptor is taken as it is; a new file's would also take from its parent what is missing.
const RESTORE: (&str, &str) = ("x-ms-file-property-semantics", "Restore");

/// What the vendor's clients are tested with.
const SAMPLE: &str = "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513\
    D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)";
const NO_AUDIT: &str = "S:NO_ACCESS_CONTROL";

fn create(stage: &Stage, text: &str) -> Answer {
    stage.call(&format!("PUT {URL}"), &[("content-type", "application/json")], format!("{{\"permission\":{text:?}}}"))
}

#[track_caller]
fn key_of(answer: &Answer) -> String {
    let key = answer.header(KEY).expect("a key").to_owned();
    let halves: Vec<&str> = key.split('*').collect();
    assert!(halves.len() == 2 && halves.iter().all(|half| half.parse::<u64>().is_ok()), "{key}");
    key
}

fn get(stage: &Stage, key: &str, headers: Headers<'_>) -> Answer {
    stage.call(&format!("GET {URL}"), &[&[(KEY, key)], headers].concat(), "")
}

#[track_caller]
fn text_of(stage: &Stage, key: &str) -> String {
    get(stage, key, &[]).ok().json()["permission"].as_str().expect("a permission").to_owned()
}

/// The descriptor comes back as text, with what it says about audits.
#[test]
fn what_is_put_comes_back() {
    let stage = Stage::new();
    let mut table = Table::new("create_permission: texts");
    let many: String = (0..60).map(|n| format!("(A;;FR;;;S-1-5-21-1-2-3-{n})")).collect();
    for (row, put, got) in [
        ("the sample", SAMPLE.to_owned(), SAMPLE.to_owned()),
        ("no audit", format!("{SAMPLE}{NO_AUDIT}"), format!("{SAMPLE}{NO_AUDIT}")),
        ("short names", "O:SYG:BAD:(A;;FA;;;WD)".to_owned(), "O:SYG:BAD:(A;;FA;;;WD)".to_owned()),
        (
            "numbers of well-known ones",
            "O:S-1-5-18G:S-1-5-32-544D:(A;;FA;;;S-1-1-0)".to_owned(),
            "O:SYG:BAD:(A;;FA;;;WD)".to_owned(),
        ),
        (
            "flags",
            "O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;OICIIO;0x1301bf;;;AU)".to_owned(),
            "O:SYG:SYD:PAI(A;OICI;FA;;;SY)(A;OICIIO;0x1301bf;;;AU)".to_owned(),
        ),
        ("denied", "O:SYG:SYD:(D;;FA;;;BG)(A;;FR;;;BU)".to_owned(), "O:SYG:SYD:(D;;FA;;;BG)(A;;FR;;;BU)".to_owned()),
        ("nobody", "O:SYG:SYD:".to_owned(), "O:SYG:SYD:".to_owned()),
        ("sixty", format!("O:SYG:SYD:{many}"), format!("O:SYG:SYD:{many}")),
    ] {
        let created = create(&stage, &put);
        table.row(format!("{row}: answer"), created.said(), "201");
        if created.is_success() {
            let key = key_of(&created);
            let text = text_of(&stage, &key);
            table.row(row, &text, got);
            // What was told is the same descriptor again.
            table.row(format!("{row}: again"), key_of(&create(&stage, &text)), key);
        }
    }
}

/// The same descriptor has the same key, whoever brought it and in whichever share; another one has another.
#[test]
fn one_descriptor_one_key() {
    let stage = Stage::new();
    let key = key_of(&create(&stage, SAMPLE));
    assert_eq!(key_of(&create(&stage, SAMPLE)), key);
    assert_ne!(key_of(&create(&stage, "O:SYG:SYD:(A;;FA;;;SY)")), key);
    // By a header.
    let made = stage.create_file("share/file", 0, &[(PERMISSION, SAMPLE), RESTORE]).ok();
    assert_eq!(key_of(&made), key);
    assert_eq!(key_of(&stage.head("share/file")), key);
    let made = stage.call("PUT share/dir?restype=directory", &[(PERMISSION, SAMPLE), RESTORE], "").ok();
    assert_eq!(key_of(&made), key);
    // By its key.
    let made = stage.create_file("share/second", 0, &[(KEY, &key), RESTORE]).ok();
    assert_eq!(key_of(&made), key);
    // Set later, it is what was sent.
    stage.make_file("share/third", 0);
    let set = stage.call("PUT share/third?comp=properties", &[(PERMISSION, SAMPLE)], "").ok();
    assert_eq!(key_of(&set), key);
    // A protected list takes nothing from above.
    let protected = SAMPLE.replace("D:AI", "D:P");
    let made = stage.create_file("share/fourth", 0, &[(PERMISSION, &protected)]).ok();
    assert_eq!(key_of(&made), key_of(&create(&stage, &protected)));
    // Saying that there is no audit is saying nothing.
    assert_eq!(text_of(&stage, &key), SAMPLE);
    // In another share the first half is the same, and the key is known only where it was made.
    stage.make_share("other");
    let other =
        stage.call("PUT other?restype=share&comp=filepermission", &[], format!("{{\"permission\":{SAMPLE:?}}}")).ok();
    assert_eq!(key_of(&other).split('*').next(), key.split('*').next());
}

/// What is made in a directory inherits what the directory says about its children, and so all of them have one key.
#[test]
fn children_inherit() {
    let stage = Stage::new();
    stage.make_file("share/a", 0);
    stage.make_file("share/b", 0);
    stage.make_directory("share/dir");
    stage.make_directory("share/dir/inner");
    stage.make_file("share/dir/c", 0);
    let key = |target: &str| key_of(&stage.head(target).ok());
    assert_eq!(key("share/a"), key("share/b"));
    assert_eq!(key("share/a"), key("share/dir/c"), "what the root passes on goes on");
    assert_eq!(key("share/dir?restype=directory"), key("share/dir/inner?restype=directory"));
    let inherited = text_of(&stage, &key("share/a"));
    for named in ["SY", "BA", "AU"] {
        assert!(inherited.contains(&format!(";;;{named})")), "{inherited}");
    }

    // Only what is for children goes on to them: to files, to directories, or to both.
    let parent = "O:SYG:SYD:(A;;FA;;;BA)(A;OI;FR;;;BU)(A;CI;FW;;;BG)(A;OICI;FA;;;SY)";
    stage.call("PUT share/own?restype=directory", &[(PERMISSION, parent)], "").ok();
    stage.make_file("share/own/file", 0);
    stage.make_directory("share/own/dir");
    let text = |target: &str| text_of(&stage, &key(target));
    let entries = |target: &str| {
        let text = text(target);
        let list = text.split("D:").nth(1).expect("a list").split("S:").next().expect("its end").to_owned();
        ["BA", "BU", "BG", "SY"].into_iter().filter(|who| list.contains(&format!(";;;{who})"))).collect::<Vec<_>>()
    };
    assert_eq!(entries("share/own/file"), ["BU", "SY"], "{}", text("share/own/file"));
    // An entry for files alone is carried by directories without effect, for the files in them.
    let own = text("share/own/dir?restype=directory");
    assert!(own.contains("IO") && !own.contains("(A;;FR;;;BU)") && !own.contains("(A;ID;FR;;;BU)"), "{own}");
    assert!(["BG", "SY"].iter().all(|who| entries("share/own/dir?restype=directory").contains(who)), "{own}");
    assert!(!entries("share/own/dir?restype=directory").contains(&"BA"), "{own}");
    // `inherit` says the same as nothing.
    let made = stage.create_file("share/own/second", 0, &[(PERMISSION, "inherit")]).ok();
    assert_eq!(key_of(&made), key("share/own/file"));
}

/// A new file has what was sent and, behind it, what its parent passes on by itself (`AI`).
#[test]
fn a_new_descriptor_takes_from_its_parent_what_is_missing() {
    let stage = Stage::new();
    let parent = "O:SYG:SYD:PAI(A;OICI;FR;;;BU)";
    stage.call("PUT share/dir?restype=directory", &[(PERMISSION, parent), RESTORE], "").ok();
    let own = "O:SYG:SYD:(A;;FA;;;BA)";
    for (semantics, has_both) in [(None, true), (Some("New"), true), (Some("Restore"), false)] {
        let mut headers = vec![(PERMISSION, own)];
        headers.extend(semantics.map(|value| (RESTORE.0, value)));
        let path = format!("share/dir/{}", semantics.unwrap_or("default"));
        let made = stage.create_file(&path, 0, &headers).ok();
        let text = text_of(&stage, &key_of(&made));
        assert!(text.contains("(A;;FA;;;BA)"), "{semantics:?}: {text}");
        assert_eq!(text.contains(";;;BU)"), has_both, "{semantics:?}: {text}");
    }
}

/// A change of the parent changes no child that is there.
#[test]
fn what_a_parent_says_later_does_not_reach_its_children() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.make_file("share/dir/file", 0);
    let before = key_of(&stage.head("share/dir/file"));
    let set = [(PERMISSION, "O:SYG:SYD:P(A;OICI;FA;;;BA)")];
    stage.call("PUT share/dir?restype=directory&comp=properties", &set, "").ok();
    assert_eq!(key_of(&stage.head("share/dir/file")), before);
    stage.make_file("share/dir/later", 0);
    assert_ne!(key_of(&stage.head("share/dir/later")), before);
    // A rename takes the descriptor along.
    stage.rename_file("share/dir/later", "share/moved", &[]).ok();
    let moved = key_of(&stage.head("share/moved"));
    stage.make_file("share/dir/again", 0);
    assert_eq!(moved, key_of(&stage.head("share/dir/again")));
}

#[test]
fn texts_that_are_none() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    let before = stage.everything();
    let mut table = Table::new("create_permission: bad texts");
    #[rustfmt::skip]
    let rows = [
        ("nothing",              ""),
        ("words",                "everybody"),
        ("no owner",             "G:SYD:(A;;FA;;;SY)"),
        ("no group",             "O:SYD:(A;;FA;;;SY)"),
        ("no list",              "O:SYG:SY"),
        ("admins of a domain",   "O:DAG:SYD:(A;;FA;;;SY)"),
        ("users of a domain",    "O:SYG:DUD:(A;;FA;;;SY)"),
        ("a domain in the list", "O:SYG:SYD:(A;;FA;;;DA)"),
        ("an open bracket",      "O:SYG:SYD:(A;;FA;;;SY"),
        ("four parts",           "O:SYG:SYD:(A;;FA;;SY)"),
        ("no such right",        "O:SYG:SYD:(A;;XX;;;SY)"),
        ("no such kind",         "O:SYG:SYD:(Z;;FA;;;SY)"),
        ("no such name",         "O:SYG:SYD:(A;;FA;;;QQ)"),
        ("a long number",        "O:S-1-5-99999999999999999999G:SYD:(A;;FA;;;SY)"),
        ("too many numbers",     "O:S-1-5-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16G:SYD:(A;;FA;;;SY)"),
        ("two owners",           "O:SYO:SYG:SYD:(A;;FA;;;SY)"),
    ];
    for (row, text) in rows {
        table.row(row, create(&stage, text).said(), "400 FileInvalidPermission");
        if !text.is_empty() {
            let made = stage.create_file("share/new", 0, &[(PERMISSION, text)]);
            table.row(format!("{row}, in a header"), made.said(), "400 FileInvalidPermission");
            let set = stage.call("PUT share/file?comp=properties", &[(PERMISSION, text)], "");
            table.row(format!("{row}, set"), set.said(), "400 FileInvalidPermission");
        }
    }
    for (row, body) in [
        ("no JSON", "O:SYG:SYD:"),
        ("another field", "{\"permit\":\"x\"}"),
        ("no text", "{\"permission\":1}"),
        ("no body", ""),
    ] {
        table.row(row, stage.call(&format!("PUT {URL}"), &[], body).status, 400);
    }
    assert_eq!(stage.everything(), before);
}

#[test]
fn keys_and_headers_that_cannot_be() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    let key = key_of(&create(&stage, SAMPLE));
    let before = stage.everything();
    let long = format!("O:SYG:SYD:{}", "(A;;FR;;;S-1-5-21-1-2-3-4)".repeat(400));
    let mut table = Table::new("create_permission: keys");
    for (row, bad) in
        [("a key of nothing", "1*2"), ("no key", "key"), ("half a key", "123"), ("too large", "99999999999999999999*1")]
    {
        table.row(row, get(&stage, bad, &[]).said(), "400 FileInvalidPermissionKey");
        let made = stage.create_file("share/new", 0, &[(KEY, bad)]);
        table.row(format!("{row}, for a file"), made.said(), "400 FileInvalidPermissionKey");
    }
    table.row("no header", stage.get(URL).said(), "400 MissingRequiredHeader");
    table.row(
        "no share",
        stage.call("GET none?restype=share&comp=filepermission", &[(KEY, &key)], "").said(),
        "404 ShareNotFound",
    );
    let both = stage.create_file("share/new", 0, &[(KEY, &key), (PERMISSION, SAMPLE)]);
    table.row("both", both.status, 400);
    let set = stage.call("PUT share/file?comp=properties", &[(KEY, &key), (PERMISSION, SAMPLE)], "");
    table.row("both, set", set.status, 400);
    table.row("too long for a header", stage.create_file("share/new", 0, &[(PERMISSION, &long)]).status, 400);
    assert_eq!(stage.everything(), before);
    let created = create(&stage, &long);
    table.row("but not for a key", created.said(), "201");
    let made = stage.call("PUT share/new", &[crate::stage::FILE, (LENGTH, "0"), (KEY, &key_of(&created))], "");
    table.row("by its key", made.said(), "201");
}

/// The binary form is the same descriptor, in base64.
#[test]
fn in_binary() {
    let stage = Stage::new();
    let key = key_of(&create(&stage, SAMPLE));
    let told = get(&stage, &key, &[(FORMAT, "Binary")]).ok().json();
    let binary = told["permission"].as_str().expect("a permission").to_owned();
    let bytes = wire::base64::decode(&binary).expect("base64");
    assert_eq!((bytes[0], bytes[3] & 0x80), (1, 0x80), "revision 1, self-relative: {bytes:?}");
    let body = format!("{{\"permission\":\"{binary}\",\"format\":\"binary\"}}");
    assert_eq!(key_of(&stage.call(&format!("PUT {URL}"), &[], &body).ok()), key);
    let made = stage.create_file("share/file", 0, &[(PERMISSION, &binary), (FORMAT, "Binary"), RESTORE]).ok();
    assert_eq!(key_of(&made), key);
    let set = stage.call("PUT share/file?comp=properties", &[(PERMISSION, SAMPLE), (FORMAT, "Sddl")], "").ok();
    assert_eq!(key_of(&set), key);
    let mut table = Table::new("create_permission: binary");
    for (row, text) in [("no base64", "!!"), ("too short", "AQAEgA=="), ("text", "TzpTWUc6U1lEOg==")] {
        let body = format!("{{\"permission\":\"{text}\",\"format\":\"binary\"}}");
        table.row(row, stage.call(&format!("PUT {URL}"), &[], body).said(), "400 FileInvalidPermission");
        let made = stage.create_file("share/new", 0, &[(PERMISSION, text), (FORMAT, "Binary")]);
        table.row(format!("{row}, in a header"), made.said(), "400 FileInvalidPermission");
    }
    table.row("no such form", get(&stage, &key, &[(FORMAT, "Hex")]).said(), "400 InvalidHeaderValue");
}
