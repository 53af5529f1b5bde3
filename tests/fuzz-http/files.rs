//! Examples for the operations of the File service, by their names.

use crate::examples::{END_OF_PROPERTIES, Example, KEY_INFO, POLICIES, PREFLIGHT, SERVICE_PROPERTIES, example};
use crate::harness::Client;

const FILE: (&str, &str) = ("x-ms-type", "file");
const LENGTH: (&str, &str) = ("x-ms-content-length", "5000");
const OF_FILES_ALONE: &str = "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>3</Days></ShareDeleteRetentionPolicy>\
    <ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB></ProtocolSettings>";
/// The service has no logs of its own.
const LOGGING_ENDS: &str = "</Logging>";
const SDDL: &str = "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:SYD:PAI(A;OICI;FA;;;SY)(D;ID;0x1200a9;;;BU)S:NO_ACCESS_CONTROL";

/// What makes the state that the examples are about.
pub fn before() -> Vec<Example> {
    vec![
        example("PUT share?restype=share", &[], ""),
        example("PUT share/dir?restype=directory", &[("x-ms-meta-Some", "thing")], ""),
        example("PUT share/dir/inner?restype=directory", &[], ""),
        example("PUT share/dir/file", &[FILE, LENGTH], ""),
        example("PUT share/from", &[FILE, LENGTH], ""),
        example("PUT nfs?restype=share", &[("x-ms-enabled-protocols", "NFS")], ""),
        example("PUT nfs/file", &[FILE, LENGTH], ""),
    ]
}

/// Each operation with its examples.
pub fn all(client: &Client) -> Vec<(&'static str, Vec<Example>)> {
    let source = client.url("share/from");
    let directory = client.url("share/dir/inner");
    let from = ("x-ms-file-rename-source", source.as_str());
    let copy = ("x-ms-copy-source", source.as_str());
    let one = |line: &str, headers: &[(&str, &str)], body: &str| vec![example(line, headers, body)];
    let smb = [
        ("x-ms-file-attributes", "Hidden | Archive"),
        ("x-ms-file-creation-time", "2026-01-01T00:00:00.1234567Z"),
        ("x-ms-file-last-write-time", "now"),
        ("x-ms-file-permission", SDDL),
    ];
    let set = [
        ("x-ms-file-attributes", "None"),
        ("x-ms-file-last-write-time", "preserve"),
        ("x-ms-file-permission", "preserve"),
    ];
    let leases = |line: &str, actions: &[&str], duration: &str| {
        let ids = [("x-ms-lease-id", "{lease}"), ("x-ms-proposed-lease-id", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")];
        let of = |action: &&str| {
            let headers =
                [("x-ms-lease-action", *action), ("x-ms-lease-duration", duration), ("x-ms-lease-break-period", "0")];
            example(line, &[&headers[..], &ids].concat(), "")
        };
        actions.iter().map(of).collect()
    };
    let (_, after_logging) = SERVICE_PROPERTIES.split_once(LOGGING_ENDS).expect("logs stand first");
    let properties = ["<StorageServiceProperties>", after_logging, OF_FILES_ALONE, END_OF_PROPERTIES].concat();
    let update = [("x-ms-write", "update"), ("x-ms-range", "bytes=510-520")];
    vec![
        (
            "ListShares",
            one("GET ?comp=list&prefix=s&marker={marker}&maxresults=2&include=metadata,deleted,snapshots", &[], ""),
        ),
        ("GetFileServiceProperties", one("GET ?restype=service&comp=properties", &[], "")),
        ("SetFileServiceProperties", one("PUT ?restype=service&comp=properties", &[], &properties)),
        ("GetUserDelegationKey", one("POST ?restype=service&comp=userdelegationkey", &[], KEY_INFO)),
        ("PreflightFileRequest", one("OPTIONS share/dir/file", PREFLIGHT, "")),
        (
            "CreateShare",
            one(
                "PUT other?restype=share",
                &[("x-ms-meta-a", "1"), ("x-ms-share-quota", "5"), ("x-ms-access-tier", "Hot")],
                "",
            ),
        ),
        ("SnapshotShare", one("PUT share?restype=share&comp=snapshot", &[("x-ms-meta-d", "4")], "")),
        ("GetShareProperties", one("HEAD share?restype=share", &[("x-ms-lease-id", "{lease}")], "")),
        ("SetShareProperties", one("PUT share?restype=share&comp=properties", &[("x-ms-share-quota", "100")], "")),
        ("GetShareMetadata", one("GET share?restype=share&comp=metadata", &[], "")),
        ("SetShareMetadata", one("PUT share?restype=share&comp=metadata", &[("x-ms-meta-b", "2")], "")),
        ("GetShareAcl", one("GET share?restype=share&comp=acl", &[], "")),
        ("SetShareAcl", one("PUT share?restype=share&comp=acl", &[], POLICIES)),
        ("GetShareStats", one("GET share?restype=share&comp=stats", &[], "")),
        ("DeleteShare", one("DELETE other?restype=share", &[("x-ms-delete-snapshots", "include")], "")),
        (
            "RestoreShare",
            one(
                "PUT other?restype=share&comp=undelete",
                &[("x-ms-deleted-share-name", "other"), ("x-ms-deleted-share-version", "{deleted}")],
                "",
            ),
        ),
        (
            "LeaseShare",
            leases("PUT other?restype=share&comp=lease", &["acquire", "renew", "change", "release", "break"], "15"),
        ),
        (
            "CreatePermission",
            vec![
                example(
                    "PUT share?restype=share&comp=filepermission",
                    &[("content-type", "application/json")],
                    format!("{{\"permission\":\"{SDDL}\"}}"),
                ),
                example(
                    "PUT share?restype=share&comp=filepermission",
                    &[],
                    "{\"permission\":\"AQAEgBQAAAAgAAAAAAAAACwAAAABAQAAAAAABRIAAAABAQAAAAAABRIAAAACAAgAAAAAAA==\",\"format\":\"binary\"}",
                ),
            ],
        ),
        (
            "GetPermission",
            one(
                "GET share?restype=share&comp=filepermission",
                &[("x-ms-file-permission-key", "{permission}"), ("x-ms-file-permission-format", "Binary")],
                "",
            ),
        ),
        ("CreateDirectory", one("PUT share/dir/made?restype=directory", &smb, "")),
        ("GetDirectoryProperties", one("GET share/dir?restype=directory", &[("x-ms-allow-trailing-dot", "true")], "")),
        ("SetDirectoryProperties", one("PUT share/dir?restype=directory&comp=properties", &set, "")),
        ("GetDirectoryMetadata", one("GET share/dir?restype=directory&comp=metadata", &[], "")),
        ("SetDirectoryMetadata", one("PUT share/dir?restype=directory&comp=metadata", &[("x-ms-meta-c", "3")], "")),
        (
            "RenameDirectory",
            one(
                "PUT share/moved?restype=directory&comp=rename",
                &[("x-ms-file-rename-source", &directory), ("x-ms-file-rename-replace-if-exists", "true")],
                "",
            ),
        ),
        ("DeleteDirectory", one("DELETE share/dir/made?restype=directory", &[], "")),
        (
            "ListDirectoriesAndFiles",
            one(
                "GET share/dir?restype=directory&comp=list&prefix=f&marker={marker}&maxresults=1&include=Timestamps,ETag,Attributes,PermissionKey",
                &[("x-ms-file-extended-info", "true")],
                "",
            ),
        ),
        ("ListHandles", one("GET share/dir?comp=listhandles&marker=&maxresults=5", &[("x-ms-recursive", "true")], "")),
        (
            "ForceCloseHandles",
            one("PUT share/dir?comp=forceclosehandles", &[("x-ms-handle-id", "*"), ("x-ms-recursive", "true")], ""),
        ),
        (
            "CreateFile",
            vec![
                example(
                    "PUT share/dir/file",
                    &[&[FILE, LENGTH, ("x-ms-content-type", "text/plain")], &smb[..]].concat(),
                    "",
                ),
                example(
                    "PUT share/dir/short",
                    &[FILE, ("x-ms-content-length", "5"), ("x-ms-file-property-semantics", "Restore")],
                    "bytes",
                ),
            ],
        ),
        (
            "PutRange",
            vec![
                example("PUT share/dir/file?comp=range", &update, "eleven byte"),
                example("PUT share/dir/file?comp=range", &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-511")], ""),
                example(
                    "PUT share/from?comp=range",
                    &[&update[..], &[("x-ms-file-last-write-time", "preserve")]].concat(),
                    "eleven byte",
                ),
            ],
        ),
        (
            "GetFile",
            one("GET share/dir/file", &[("x-ms-range", "bytes=2-9"), ("x-ms-range-get-content-md5", "true")], ""),
        ),
        ("GetFileProperties", one("HEAD share/dir/file", &[("x-ms-lease-id", "{lease}")], "")),
        (
            "SetFileProperties",
            one(
                "PUT share/dir/file?comp=properties",
                &[&[("x-ms-content-length", "600"), ("x-ms-cache-control", "no-store")], &set[..]].concat(),
                "",
            ),
        ),
        ("GetFileMetadata", one("GET share/dir/file?comp=metadata", &[], "")),
        ("SetFileMetadata", one("PUT share/dir/file?comp=metadata", &[("x-ms-meta-e", "5")], "")),
        ("ListRanges", one("GET share/dir/file?comp=rangelist", &[("x-ms-range", "bytes=0-2047")], "")),
        (
            "PutRangeFromUrl",
            one(
                "PUT share/dir/file?comp=range",
                &[copy, ("x-ms-write", "update"), ("x-ms-range", "bytes=0-9"), ("x-ms-source-range", "bytes=0-9")],
                "",
            ),
        ),
        (
            "RenameFile",
            one(
                "PUT share/dir/to?comp=rename",
                &[from, ("x-ms-file-rename-replace-if-exists", "true"), ("x-ms-file-rename-ignore-readonly", "true")],
                "",
            ),
        ),
        ("LeaseFile", leases("PUT share/dir/short?comp=lease", &["acquire", "change", "release", "break"], "-1")),
        ("CopyFile", one("PUT share/copy", &[copy, ("x-ms-file-permission-copy-mode", "source")], "")),
        ("AbortCopyFile", one("PUT share/copy?comp=copy&copyid={copy}", &[("x-ms-copy-action", "abort")], "")),
        ("CreateSymbolicLink", one("PUT nfs/link?restype=symboliclink", &[("x-ms-link-text", "../target")], "")),
        ("GetSymbolicLink", one("GET nfs/link?restype=symboliclink", &[], "")),
        ("CreateHardLink", one("PUT nfs/hard?restype=hardlink", &[FILE, ("x-ms-file-target-file", "file")], "")),
        ("DeleteFile", one("DELETE share/dir/to", &[], "")),
    ]
}
