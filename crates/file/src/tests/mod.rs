//! Tests over many operations at once.
//!
//! - `refusals`: what every operation on a path refuses, and which of two faults it tells.
//! - `leases`: the lease tables, cell by cell.
//! - `share_modes`: REST operations beside open SMB handles.
//! - `snapshots`: share snapshots stay as they were, whatever is done.
//! - `snapshot_rules`: what is done with share snapshots, what they refuse, and range diffs.
//! - `tree_model`: random trees against a plain model.
//! - `races`: writers while their directory is renamed.
//! - `copies`: random copies against plain bytes.
//! - `links`: hard and symbolic links, and random links against a plain model.
//! - `dropped`: requests that are dropped while their commit waits.

mod copies;
pub mod dropped;
mod leases;
mod links;
mod races;
mod refusals;
mod share_modes;
mod snapshot_rules;
mod snapshots;
mod tree_model;

/// A request as a test writes it: method, URL below the account, headers, body.
#[derive(Clone, Copy, Debug)]
struct Ask {
    name: &'static str,
    method: &'static str,
    url: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static [u8],
}

const fn ask(
    name: &'static str,
    method: &'static str,
    url: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static [u8],
) -> Ask {
    Ask { name, method, url, headers, body }
}

const CREATE: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-content-length", "1024")];
const UPDATE: &[(&str, &str)] = &[("x-ms-write", "update"), ("x-ms-range", "bytes=0-3")];
const CLEAR: &[(&str, &str)] = &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-511")];
const ACQUIRE: &[(&str, &str)] = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
const BREAK: &[(&str, &str)] = &[("x-ms-lease-action", "break")];

/// Operations that read a file. `PATH` stands for its path.
const FILE_READS: &[Ask] = &[
    ask("GetFile", "GET", "PATH", &[], b""),
    ask("GetFileProperties", "HEAD", "PATH", &[], b""),
    ask("GetFileMetadata", "GET", "PATH?comp=metadata", &[], b""),
    ask("ListRanges", "GET", "PATH?comp=rangelist", &[], b""),
];

/// Operations that change a file that is there.
const FILE_WRITES: &[Ask] = &[
    ask("SetFileProperties", "PUT", "PATH?comp=properties", &[("x-ms-content-type", "text/plain")], b""),
    ask("SetFileMetadata", "PUT", "PATH?comp=metadata", &[("x-ms-meta-a", "b")], b""),
    ask("PutRange", "PUT", "PATH?comp=range", UPDATE, b"data"),
    ask("ClearRange", "PUT", "PATH?comp=range", CLEAR, b""),
    ask("DeleteFile", "DELETE", "PATH", &[], b""),
];

const LEASES: &[Ask] = &[
    ask("AcquireLease", "PUT", "PATH?comp=lease", ACQUIRE, b""),
    ask("BreakLease", "PUT", "PATH?comp=lease", BREAK, b""),
];

const CREATE_FILE: Ask = ask("CreateFile", "PUT", "PATH", CREATE, b"");
const CREATE_DIRECTORY: Ask = ask("CreateDirectory", "PUT", "PATH?restype=directory", &[], b"");

const DIRECTORY_READS: &[Ask] = &[
    ask("GetDirectoryProperties", "GET", "PATH?restype=directory", &[], b""),
    ask("GetDirectoryMetadata", "GET", "PATH?restype=directory&comp=metadata", &[], b""),
    ask("ListDirectoriesAndFiles", "GET", "PATH?restype=directory&comp=list", &[], b""),
];

const DIRECTORY_WRITES: &[Ask] = &[
    ask("SetDirectoryProperties", "PUT", "PATH?restype=directory&comp=properties", &[], b""),
    ask("SetDirectoryMetadata", "PUT", "PATH?restype=directory&comp=metadata", &[], b""),
    ask("DeleteDirectory", "DELETE", "PATH?restype=directory", &[], b""),
];

const HANDLES: &[Ask] = &[
    ask("ListHandles", "GET", "PATH?comp=listhandles", &[], b""),
    ask("ForceCloseHandles", "PUT", "PATH?comp=forceclosehandles", &[("x-ms-handle-id", "*")], b""),
];

impl Ask {
    fn url(&self, path: &str) -> String {
        self.url.replace("PATH", path)
    }
}
