//! Create Symbolic Link and Get Symbolic Link.

use crate::harness::{Headers, Table};
use crate::stage::{A, FILE, LENGTH, Stage};

const TEXT: &str = "x-ms-link-text";
const LINK: (&str, &str) = (TEXT, "dir/file");

/// A server with the share `nfs`, which has a directory, a file and a link.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.call("PUT nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], "").ok();
    stage.make_directory("nfs/dir");
    stage.put_file("nfs/dir/file", "content");
    stage.call("PUT nfs/link?restype=symboliclink", &[LINK], "").ok();
    stage
}

#[test]
#[rustfmt::skip]
fn answers() {
    let stage = stage();
    stage.put_file("share/file", "content");
    let mut table = Table::new("create_symbolic_link");
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("a link",              "PUT nfs/new?restype=symboliclink",      &[LINK], "201"),
        ("its text",            "GET nfs/new?restype=symboliclink",      &[], "200"),
        ("to nowhere",          "PUT nfs/lost?restype=symboliclink",     &[(TEXT, "/no/where")], "201"),
        ("no text",             "PUT nfs/more?restype=symboliclink",     &[], "400 MissingRequiredHeader"),
        ("a bad owner",         "PUT nfs/more?restype=symboliclink",     &[LINK, ("x-ms-owner", "me")], "400 InvalidHeaderValue"),
        ("no share",            "PUT none/more?restype=symboliclink",    &[LINK], "404 ShareNotFound"),
        ("no directory",        "PUT nfs/no/more?restype=symboliclink",  &[LINK], "404 ParentNotFound"),
        ("below a link",        "PUT nfs/link/more?restype=symboliclink", &[LINK], "404 ParentNotFound"),
        ("over a link",         "PUT nfs/LINK?restype=symboliclink",     &[LINK], "409 ResourceAlreadyExists"),
        ("over a file",         "PUT nfs/dir/file?restype=symboliclink", &[LINK], "409 ResourceAlreadyExists"),
        ("over a directory",    "PUT nfs/dir?restype=symboliclink",      &[LINK], "409 ResourceAlreadyExists"),
        ("with a lease",        "PUT nfs/more?restype=symboliclink",     &[LINK, ("x-ms-lease-id", A)], "412 LeaseNotPresentWithFileOperation"),
        ("in a share for SMB",  "PUT share/new?restype=symboliclink",    &[LINK], "400 UnsupportedQueryParameter"),
        ("a file, asked",       "GET nfs/dir/file?restype=symboliclink", &[], "404 ResourceNotFound"),
        ("nothing, asked",      "GET nfs/no?restype=symboliclink",       &[], "404 ResourceNotFound"),
        ("deleted as a link",   "DELETE nfs/new?restype=symboliclink",   &[], "405 UnsupportedHttpVerb"),
        ("read as a file",      "GET nfs/link",                          &[], "409 ResourceTypeMismatch"),
        ("written as a file",   "PUT nfs/link",                          &[FILE, (LENGTH, "3")], "409 ResourceTypeMismatch"),
        ("leased",              "PUT nfs/link?comp=lease",               &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")], "409 ResourceTypeMismatch"),
        ("a version too old",   "PUT nfs/more?restype=symboliclink",     &[LINK, ("x-ms-version", "2024-11-04")], "400 InvalidQueryParameterValue"),
        ("deleted",             "DELETE nfs/new",                        &[], "202"),
    ];
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), *expected);
    }
    table.row("what is left", stage.names("nfs"), "dir/ link lost");
}

#[test]
fn a_link_is_there_after_a_kill() {
    let mut stage = stage();
    stage.call("PUT nfs/link?comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    let told = stage.get("nfs/link?restype=symboliclink").ok();
    assert_eq!(told.header(TEXT), Some("dir%2Ffile"));
    let seen = stage.head("nfs/link").ok();
    assert_eq!(seen.header("x-ms-file-file-type"), Some("SymLink"));
    assert_eq!((seen.header("x-ms-meta-a"), seen.header("content-length")), (Some("1"), Some("8")));
    assert_eq!(stage.read("nfs/dir/file"), b"content");
}
