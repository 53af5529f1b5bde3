//! Names of files and directories: what they may be, when two are the same, how long and how deep they may go.

use crate::harness::Table;
use crate::stage::{FILE, LENGTH, Stage, percent};

const BAD: &str = "400 InvalidResourceName";
const TOO_LONG: &str = "400 InvalidFileOrDirectoryPathName";
const KEEP: (&str, &str) = ("x-ms-allow-trailing-dot", "true");

fn create(stage: &Stage, path: &str) -> String {
    stage.create_file(path, 0, &[]).said()
}

fn create_directory(stage: &Stage, path: &str) -> String {
    stage.call(&format!("PUT {path}?restype=directory"), &[], "").said()
}

/// Every name that is one comes back as it was spelt; every other is refused, for files and for directories.
#[test]
fn what_a_name_may_be() {
    let stage = Stage::new();
    let mut table = Table::new("names: one component");
    #[rustfmt::skip]
    let good = [
        "a", "Read Me.txt", ".hidden", "a..b", "..a", "trailing space ", " ", " leading", "100%", "a+b;c=d&e#f", "$root", "~", "{[(^'`!@,)]}",
        "äöü", "日本語", "😀", "a\u{202E}txt.exe", "a\u{200B}", "\u{301}", "\u{E000}", "\u{FEFF}x", "\u{10FFFF}", "\u{2028}", "\u{A0}",
        "：＊？／＼", "ＣＯＮ", "CON.txt", "CONS", "LPT", "LPT0", "COM0", "LPT10", "CLOCK", "NUL ", "com¹",
    ];
    for name in good {
        for (kind, said) in [
            ("file", create(&stage, &format!("share/{}", percent(name)))),
            ("directory", {
                stage.delete(&format!("share/{}", percent(name)));
                create_directory(&stage, &format!("share/{}", percent(name)))
            }),
        ] {
            table.row(format!("{name:?}, {kind}"), said, "201");
        }
        let listed = stage.list("share", &format!("prefix={}", percent(name)));
        table.row(format!("{name:?}, listed"), listed.iter().any(|entry| crate::stage::name_of(entry) == name), true);
        stage.delete(&format!("share/{}?restype=directory", percent(name)));
    }
    assert_eq!(stage.names("share"), "");
    #[rustfmt::skip]
    let bad = [
        "a\"b", "a:b", "a|b", "a<b", "a>b", "a*b", "a?b", ":", "*", "a:", "file:stream", "a\u{1}", "\u{1f}", "a\u{7f}", "a\tb", "a\nb",
        "CON", "con", "PRN", "aux", "Nul", "CLOCK$", "clock$", "COM1", "com9", "LPT1", "lpt9", "CON.", "nul...",
    ];
    for name in bad {
        table.row(format!("{name:?}, file"), create(&stage, &format!("share/{}", percent(name))), BAD);
        let path = format!("share/{}", percent(name));
        table.row(format!("{name:?}, directory"), create_directory(&stage, &path), BAD);
        // In the middle of a path, too.
        table.row(format!("{name:?}, above"), create(&stage, &format!("share/{}/file", percent(name))), BAD);
        let renamed = {
            stage.make_file("share/source", 0);
            let said = stage.rename_file("share/source", &path, &[]).said();
            stage.delete("share/source").ok();
            said
        };
        table.row(format!("{name:?}, renamed to"), renamed, BAD);
    }
    // A null, and what is no text at all.
    for (row, path) in [
        ("a null", "share/a%00"),
        ("half a character", "share/%E6%97"),
        ("a surrogate", "share/%ED%A0%80"),
        ("no byte", "share/%zz"),
    ] {
        table.row(row, &create(&stage, path)[..3], "400");
    }
    assert_eq!(stage.names("share"), "");
}

/// Dots by themselves, and paths with nothing between two slashes.
#[test]
fn dots_and_slashes() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let mut table = Table::new("names: dots and slashes");
    #[rustfmt::skip]
    let rows = [
        ("share/%2E",          BAD), ("share/%2E%2E",          BAD), ("share/dir/%2E%2E/x",  BAD), ("share/dir/%2E/x",    BAD),
        ("share/%2E%2E%2E",    BAD), ("share//x",              BAD), ("share/dir//x",        BAD), ("share/dir/x/",       BAD),
        ("share/dir%2Fx",      "201"), ("share/dir%2F%2E%2E%2Fx", BAD),
    ];
    for (path, expected) in rows {
        table.row(path, create(&stage, path), expected);
    }
    table.row("an encoded slash is a slash", stage.names("share/dir"), "x");
    table.row("a directory's slash", create_directory(&stage, "share/dir/inner/"), "201");
    table.row("two of them", create_directory(&stage, "share/dir/second//"), BAD);
    table.row("a slash at the end of a file", stage.get("share/dir/x/").said(), BAD);
    table.row("what there is", stage.names("share/dir"), "inner/ x");
}

/// Two spellings of one name, or two names: letters of the first plane that have one capital are the same as that.
#[test]
fn case_does_not_count() {
    let stage = Stage::new();
    let mut table = Table::new("names: case");
    #[rustfmt::skip]
    let rows: &[(&str, &str, bool)] = &[
        // one       other      the same
        ("File",     "fILE",     true),
        ("ärger",    "ÄRGER",    true),
        ("ÿ",        "Ÿ",        true),
        ("жук",      "ЖУК",      true),
        ("σίγμα",    "ΣΊΓΜΑ",    true),
        ("ς",        "Σ",        true),
        ("ａｂｃ",   "ＡＢＣ",   true),
        ("ա",        "Ա",        true),
        ("ß",        "SS",       false),
        ("ß",        "ẞ",        false),
        ("ı",        "I",        false),
        ("i",        "İ",        false),
        ("ſ",        "S",        false),
        ("k",        "\u{212A}", false),
        ("é",        "e\u{301}", false),
        ("ﬁ",        "FI",       false),
        ("\u{10428}", "\u{10400}", false),
        ("a",        "а",        false),
        ("a",        "ａ",       false),
    ];
    for (count, (one, other, same)) in rows.iter().enumerate() {
        let folder = format!("share/d{count}");
        stage.make_directory(&folder);
        let (first, second) = (format!("{folder}/{}", percent(one)), format!("{folder}/{}", percent(other)));
        stage.put_file(&first, "first");
        let row = format!("{one:?} and {other:?}");
        table.row(&row, stage.head(&second).said(), if *same { "200" } else { "404 ResourceNotFound" });
        let made = create_directory(&stage, &second);
        table.row(format!("{row}: as a directory"), made, if *same { "409 ResourceAlreadyExists" } else { "201" });
        let count = stage.list(&folder, "").len();
        table.row(format!("{row}: how many"), count, if *same { 1 } else { 2 });
    }
}

/// The spelling is that of whoever made it; who comes later finds it by any.
#[test]
fn spelling_is_kept() {
    let stage = Stage::new();
    stage.make_directory("share/MyDir");
    stage.put_file("share/mydir/ReadMe.TXT", "first");
    assert_eq!((stage.names("share"), stage.names("share/MYDIR")), ("MyDir/".to_owned(), "ReadMe.TXT".to_owned()));
    assert_eq!(stage.read("share/MYDIR/README.txt"), b"first");
    // Writing by another spelling does not change it.
    stage.write("share/mYdIr/rEaDmE.tXt", 0, "FIRST");
    stage.call("PUT share/mydir/README.TXT?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    let made = stage.create_file("share/mydir/README.TXT", 2, &[]).ok();
    assert_eq!(stage.names("share/mydir").to_lowercase(), "readme.txt");
    assert_eq!(stage.list("share/mydir", "").len(), 1);
    assert_eq!(made.header("x-ms-file-id"), stage.head("share/mydir/readme.txt").header("x-ms-file-id"));
    stage.rename_file("share/MYDIR/readme.txt", "share/mydir/ReadMe.md", &[]).ok();
    assert_eq!(stage.names("share/mydir"), "ReadMe.md");
    stage.rename_file("share/mydir/readme.md", "share/mydir/README.MD", &[]).ok();
    assert_eq!(stage.names("share/mydir"), "README.MD");
    stage.delete("share/mydir/readme.md").ok();
    assert_eq!(stage.delete("share/MYDIR?restype=directory").said(), "202");
}

/// Dots at the end are taken away, unless the request says that they belong to the name.
#[test]
fn dots_at_the_end() {
    let stage = Stage::new();
    let mut table = Table::new("names: dots at the end");
    stage.put_file("share/file1...", "stripped");
    table.row("stripped", stage.names("share"), "file1");
    table.row("found by either", String::from_utf8_lossy(&stage.read("share/file1..")), "stripped");
    table.row("not with its dots", stage.call("GET share/file1...", &[KEEP], "").said(), "404 ResourceNotFound");
    stage.create_file("share/file1...", 4, &[KEEP]).ok();
    stage.put_range("share/file1...", 0, "kept", &[KEEP]).ok();
    table.row("two files", stage.names("share"), "file1 file1...");
    table.row("the one", String::from_utf8_lossy(&stage.call("GET share/file1...", &[KEEP], "").body), "kept");
    table.row("the other", String::from_utf8_lossy(&stage.read("share/file1...")), "stripped");
    let explicit = stage.call("GET share/file1...", &[("x-ms-allow-trailing-dot", "false")], "");
    table.row("said so", String::from_utf8_lossy(&explicit.body), "stripped");
    table.row(
        "maybe",
        stage.call("GET share/file1", &[("x-ms-allow-trailing-dot", "maybe")], "").said(),
        "400 InvalidHeaderValue",
    );

    // In every component.
    stage.call("PUT share/dir.?restype=directory", &[KEEP], "").ok();
    stage.create_file("share/dir./inner.", 0, &[KEEP]).ok();
    table.row("a directory", stage.names("share"), "dir./ file1 file1...");
    table.row("no such directory", stage.create_file("share/dir./x", 0, &[]).said(), "404 ParentNotFound");
    let listed = stage.call("GET share/dir.?restype=directory&comp=list", &[KEEP], "").ok().xml();
    table.row("inside", crate::stage::names(listed.all("Entries")), "inner.");
    // A rename has two ends, each with a header of its own.
    let source = stage.client.url("share/dir./inner.");
    let renamed = stage.call(
        "PUT share/out.?comp=rename",
        &[(crate::stage::SOURCE, &source), ("x-ms-source-allow-trailing-dot", "true")],
        "",
    );
    table.row("renamed", renamed.said(), "200");
    table.row("without the dot", stage.names("share"), "dir./ file1 file1... out");
    let source = stage.client.url("share/out");
    let renamed = stage.call("PUT share/out.?comp=rename", &[(crate::stage::SOURCE, &source), KEEP], "");
    table.row("and back", renamed.said(), "200");
    table.row("with the dot", stage.names("share"), "dir./ file1 file1... out.");
    for (name, expected) in [("%2E", BAD), ("%2E%2E", BAD), ("%2E%2E%2E", "201"), ("CON%2E", "201")] {
        let made = stage.call(&format!("PUT share/{name}"), &[FILE, (LENGTH, "0"), KEEP], "");
        table.row(format!("{name}, kept"), made.said(), expected);
    }
    table.row("deleted", stage.call("DELETE share/out.", &[KEEP], "").said(), "202");
}

/// 255 characters in a component, 2,048 in a path, 250 components, each as UTF-16 counts.
#[test]
fn how_long_and_how_deep() {
    let stage = Stage::new();
    let mut table = Table::new("names: lengths");
    for (row, name, expected) in [
        ("255 letters", "a".repeat(255), "201"),
        ("256 letters", "b".repeat(256), TOO_LONG),
        ("255 of two bytes", "ä".repeat(255), "201"),
        ("255 of three bytes", "日".repeat(255), "201"),
        ("256 of three bytes", "本".repeat(256), TOO_LONG),
        ("127 of four bytes", "😀".repeat(127), "201"),
        ("128 of four bytes", "😁".repeat(128), TOO_LONG),
        ("255 and dots that go", format!("{}...", "c".repeat(255)), "201"),
    ] {
        table.row(row, create(&stage, &format!("share/{}", percent(&name))), expected);
        let path = format!("share/{}", percent(&name.to_uppercase()));
        let expected = if expected == "201" { "409 ResourceAlreadyExists" } else { expected };
        table.row(format!("{row}, a directory of the name"), create_directory(&stage, &path), expected);
    }
    // Seven directories of 255 letters, the slashes between them, and what is left.
    let mut path = "share".to_owned();
    for _ in 0..7 {
        path += &format!("/{}", "d".repeat(255));
        table.row(format!("{} letters", path.len()), create_directory(&stage, &path), "201");
    }
    table.row("2047 letters", create(&stage, &format!("{path}/{}", "f".repeat(255))), "201");
    stage.make_directory(&format!("{path}/e"));
    let rest = 2048 - (path.len() - 6) - 3;
    table.row("2048 letters, deeper", create(&stage, &format!("{path}/e/{}", "f".repeat(rest))), "201");
    table.row("2049 letters", create(&stage, &format!("{path}/e/{}", "f".repeat(rest + 1))), TOO_LONG);
    table.row("2049 letters, asked for", stage.get(&format!("{path}/e/{}", "f".repeat(rest + 1))).said(), TOO_LONG);

    let mut path = "share".to_owned();
    for _ in 0..249 {
        path += "/d";
        stage.make_directory(&path);
    }
    table.row("250 components", create(&stage, &format!("{path}/f")), "201");
    table.row("a 250th directory", create_directory(&stage, &format!("{path}/g")), "201");
    table.row("251 components", create(&stage, &format!("{path}/g/f")), TOO_LONG);
    table.row("3,000 components", create(&stage, &format!("share/{}f", "d/".repeat(3_000))), TOO_LONG);
    stage.put_file(&format!("{path}/f"), "deep");
    table.row("what is there", String::from_utf8_lossy(&stage.read(&format!("{path}/f"))), "deep");
}

/// What a rename brings below itself may be too long or too deep under the new name; it is there all the same, or it is refused:
/// never is something there that cannot be reached.
#[test]
fn a_rename_hides_nothing() {
    let stage = Stage::new();
    let mut deep = "share".to_owned();
    for _ in 0..200 {
        deep += "/d";
        stage.make_directory(&deep);
    }
    let mut other = "share/x".to_owned();
    stage.make_directory(&other);
    for _ in 0..99 {
        other += "/x";
        stage.make_directory(&other);
    }
    stage.put_file(&format!("{other}/file"), "kept");
    let renamed = stage.rename_directory("share/x", &format!("{deep}/x"), &[]);
    if renamed.is_success() {
        // Back again, since nobody can name what is at the bottom.
        stage.rename_directory(&format!("{deep}/x"), "share/x", &[]).ok();
    } else {
        assert_eq!(renamed.status, 400);
    }
    assert_eq!(stage.read(&format!("{other}/file")), b"kept");
}
