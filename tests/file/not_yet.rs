//! What is not built answers 501 `APINotImplemented`, and stands in `docs/not-yet.txt`; what is built does neither.

use std::collections::BTreeSet;

use crate::harness::{Headers, Table};
use crate::stage::{CLEAR, FILE, LENGTH, SOURCE, Stage, UPDATE};

const COPY: (&str, &str) = ("x-ms-copy-source", "http://127.0.0.1/devstoreaccount1/share/file");
const LINK: (&str, &str) = ("x-ms-link-text", "target");

/// One request for every operation that `docs/operations.txt` has for the service.
#[rustfmt::skip]
const REQUESTS: &[(&str, &str, Headers<'static>, &str)] = &[
    ("ListShares",               "GET ?comp=list", &[], ""),
    ("GetFileServiceProperties", "GET ?restype=service&comp=properties", &[], ""),
    ("SetFileServiceProperties", "PUT ?restype=service&comp=properties", &[], "<StorageServiceProperties/>"),
    ("GetUserDelegationKey",     "POST ?restype=service&comp=userdelegationkey", &[], "<KeyInfo><Start>2026-01-01T00:00:00Z</Start><Expiry>2026-01-02T00:00:00Z</Expiry></KeyInfo>"),
    ("PreflightFileRequest",     "OPTIONS share/file", &[("origin", "http://a.example"), ("access-control-request-method", "GET")], ""),
    ("CreateShare",              "PUT other?restype=share", &[], ""),
    ("SnapshotShare",            "PUT share?restype=share&comp=snapshot", &[], ""),
    ("GetShareProperties",       "GET share?restype=share", &[], ""),
    ("SetShareProperties",       "PUT share?restype=share&comp=properties", &[], ""),
    ("GetShareMetadata",         "GET share?restype=share&comp=metadata", &[], ""),
    ("SetShareMetadata",         "PUT share?restype=share&comp=metadata", &[], ""),
    ("GetShareAcl",              "GET share?restype=share&comp=acl", &[], ""),
    ("SetShareAcl",              "PUT share?restype=share&comp=acl", &[], ""),
    ("GetShareStats",            "GET share?restype=share&comp=stats", &[], ""),
    ("DeleteShare",              "DELETE other?restype=share", &[], ""),
    ("RestoreShare",             "PUT other?restype=share&comp=undelete", &[("x-ms-deleted-share-name", "other"), ("x-ms-deleted-share-version", "1")], ""),
    ("LeaseShare",               "PUT share?restype=share&comp=lease", &[("x-ms-lease-action", "break")], ""),
    ("CreatePermission",         "PUT share?restype=share&comp=filepermission", &[], r#"{"permission":"O:SYG:SYD:(A;;FA;;;SY)"}"#),
    ("GetPermission",            "GET share?restype=share&comp=filepermission", &[("x-ms-file-permission-key", "1*2")], ""),
    ("CreateDirectory",          "PUT share/made?restype=directory", &[], ""),
    ("GetDirectoryProperties",   "GET share/dir?restype=directory", &[], ""),
    ("SetDirectoryProperties",   "PUT share/dir?restype=directory&comp=properties", &[], ""),
    ("GetDirectoryMetadata",     "GET share/dir?restype=directory&comp=metadata", &[], ""),
    ("SetDirectoryMetadata",     "PUT share/dir?restype=directory&comp=metadata", &[], ""),
    ("DeleteDirectory",          "DELETE share/none?restype=directory", &[], ""),
    ("RenameDirectory",          "PUT share/to?restype=directory&comp=rename", &[(SOURCE, "http://127.0.0.1/devstoreaccount1/share/none")], ""),
    ("ListDirectoriesAndFiles",  "GET share/dir?restype=directory&comp=list", &[], ""),
    ("ListHandles",              "GET share/dir?comp=listhandles", &[], ""),
    ("ForceCloseHandles",        "PUT share/dir?comp=forceclosehandles", &[("x-ms-handle-id", "*")], ""),
    ("CreateFile",               "PUT share/made.txt", &[FILE, (LENGTH, "0")], ""),
    ("GetFile",                  "GET share/file", &[], ""),
    ("GetFileProperties",        "HEAD share/file", &[], ""),
    ("SetFileProperties",        "PUT share/file?comp=properties", &[], ""),
    ("GetFileMetadata",          "GET share/file?comp=metadata", &[], ""),
    ("SetFileMetadata",          "PUT share/file?comp=metadata", &[], ""),
    ("DeleteFile",               "DELETE share/none", &[], ""),
    ("RenameFile",               "PUT share/to?comp=rename", &[(SOURCE, "http://127.0.0.1/devstoreaccount1/share/none")], ""),
    ("LeaseFile",                "PUT share/file?comp=lease", &[("x-ms-lease-action", "break")], ""),
    ("PutRange",                 "PUT share/file?comp=range", &[CLEAR, ("x-ms-range", "bytes=0-0")], ""),
    ("PutRangeFromUrl",          "PUT share/file?comp=range", &[COPY, UPDATE, ("x-ms-range", "bytes=0-0"), ("x-ms-source-range", "bytes=0-0")], ""),
    ("ListRanges",               "GET share/file?comp=rangelist", &[], ""),
    ("CopyFile",                 "PUT share/copy", &[COPY], ""),
    ("AbortCopyFile",            "PUT share/file?comp=copy&copyid=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", &[("x-ms-copy-action", "abort")], ""),
    ("CreateSymbolicLink",       "PUT share/link?restype=symboliclink", &[LINK], ""),
    ("GetSymbolicLink",          "GET share/link?restype=symboliclink", &[], ""),
    ("CreateHardLink",           "PUT share/hard?restype=hardlink", &[FILE, ("x-ms-file-target-file", "/share/file")], ""),
];

/// The operations of the File service in a list of `docs/`: service and operation, tabs between.
fn listed(file: &str) -> BTreeSet<String> {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    let lines = text.lines().filter_map(|line| line.strip_prefix("file\t"));
    lines.map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn every_operation_of_the_list_has_a_request() {
    let asked: BTreeSet<String> = REQUESTS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(asked, listed("operations.txt"));
}

#[test]
fn what_is_not_built_says_so_and_is_listed() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.make_file("share/file", 10);
    let missing = listed("not-yet.txt");
    let mut table = Table::new("not yet");
    for (name, line, headers, body) in REQUESTS {
        let is_missing = stage.call(line, headers, body).said() == "501 APINotImplemented";
        let word = |missing| if missing { "missing" } else { "built" };
        table.row(name, word(is_missing), word(missing.contains(*name)));
    }
}
