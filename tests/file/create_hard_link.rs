//! Create Hard Link.

use crate::harness::{Headers, Table};
use crate::stage::{A, B, FILE, Stage};

const TARGET: &str = "x-ms-file-target-file";

/// A server with the share `nfs`, which has a directory and a file.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.call("PUT nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], "").ok();
    stage.make_directory("nfs/dir");
    stage.put_file("nfs/file", "content");
    stage
}

#[test]
#[rustfmt::skip]
fn answers() {
    let stage = stage();
    stage.put_file("share/file", "content");
    stage.put_file("nfs/leased", "content");
    stage.call("PUT nfs/leased?comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)], "").ok();
    stage.call("PUT nfs/symbolic?restype=symboliclink", &[("x-ms-link-text", "file")], "").ok();
    let to = |file| [FILE, (TARGET, file)];
    let mut table = Table::new("create_hard_link");
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("a link",             "PUT nfs/dir/link?restype=hardlink", &to("file"), "201"),
        ("a link to a link",   "PUT nfs/other?restype=hardlink",    &to("/dir/LINK"), "201"),
        ("no type",            "PUT nfs/more?restype=hardlink",     &[(TARGET, "file")], "400 MissingRequiredHeader"),
        ("another type",       "PUT nfs/more?restype=hardlink",     &[("x-ms-type", "link"), (TARGET, "file")], "400 InvalidHeaderValue"),
        ("no file",            "PUT nfs/more?restype=hardlink",     &[FILE], "400 MissingRequiredHeader"),
        ("no share",           "PUT none/more?restype=hardlink",    &to("file"), "404 ShareNotFound"),
        ("no directory",       "PUT nfs/no/more?restype=hardlink",  &to("no/file"), "404 ParentNotFound"),
        ("a file not there",   "PUT nfs/more?restype=hardlink",     &to("none"), "404 ResourceNotFound"),
        ("below none",         "PUT nfs/more?restype=hardlink",     &to("no/file"), "404 ResourceNotFound"),
        ("a directory",        "PUT nfs/more?restype=hardlink",     &to("dir"), "409 ResourceTypeMismatch"),
        ("a symbolic link",    "PUT nfs/more?restype=hardlink",     &to("symbolic"), "409 ResourceTypeMismatch"),
        ("a name taken",       "PUT nfs/OTHER?restype=hardlink",    &to("none"), "409 ResourceAlreadyExists"),
        ("in a share for SMB", "PUT share/more?restype=hardlink",   &to("file"), "400 UnsupportedQueryParameter"),
        ("no lease named",     "PUT nfs/more?restype=hardlink",     &to("leased"), "412 LeaseIdMissing"),
        ("another lease",      "PUT nfs/more?restype=hardlink",     &[FILE, (TARGET, "leased"), ("x-ms-lease-id", B)], "412 LeaseIdMismatchWithFileOperation"),
        ("its lease",          "PUT nfs/more?restype=hardlink",     &[FILE, (TARGET, "leased"), ("x-ms-lease-id", A)], "201"),
        ("a lease of nothing", "PUT nfs/last?restype=hardlink",     &[FILE, (TARGET, "file"), ("x-ms-lease-id", A)], "412 LeaseNotPresentWithFileOperation"),
        ("asked",              "GET nfs/other?restype=hardlink",    &[], "405 UnsupportedHttpVerb"),
    ];
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), *expected);
    }
    table.row("what is there", stage.names("nfs"), "dir/ file leased more other symbolic");
}

/// Through a kill after each change.
#[test]
fn all_names_lead_to_one_file() {
    let mut stage = stage();
    let again = |stage: &mut Stage| {
        stage.server.kill_and_restart();
        stage.client = stage.server.client();
    };
    let count = |stage: &Stage, path: &str| stage.head(path).ok().header("x-ms-link-count").map(str::to_owned);
    for (path, file) in [("nfs/two", "file"), ("nfs/dir/three", "two")] {
        stage.call(&format!("PUT {path}?restype=hardlink"), &[FILE, (TARGET, file)], "").ok();
    }
    again(&mut stage);
    stage.write("nfs/dir/three", 0, "CON");
    again(&mut stage);
    for path in ["nfs/file", "nfs/two", "nfs/dir/three"] {
        assert_eq!((stage.read(path), count(&stage, path)), (b"CONtent".to_vec(), Some("3".to_owned())), "{path}");
    }
    assert_eq!(stage.delete("nfs/file").ok().header("x-ms-link-count"), Some("2"));
    stage.rename_file("nfs/two", "nfs/renamed", &[]).ok();
    again(&mut stage);
    assert_eq!(stage.delete("nfs/dir/three").ok().header("x-ms-link-count"), Some("1"));
    again(&mut stage);
    assert_eq!((stage.read("nfs/renamed"), count(&stage, "nfs/renamed")), (b"CONtent".to_vec(), Some("1".to_owned())));
    assert_eq!(stage.names("nfs"), "dir/ renamed");
    assert_eq!(stage.delete("nfs/renamed").ok().header("x-ms-link-count"), Some("0"));
}
