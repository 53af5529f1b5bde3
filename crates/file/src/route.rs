//! Which operation a request names. No other place knows.
//!
//! `restype` and the path give the level (service, share, directory, file); then `comp`, the verb and, for files, a header or two
//! decide.

use service::RequestError;
use wire::http::{Head, Method};

use crate::error::FileError;
use crate::op::Op;

/// The header that makes a PUT of a file or of a range a copy.
const COPY_SOURCE: &str = "x-ms-copy-source";
const FILE_LEASES_SINCE: &str = "2019-02-02";
const SHARE_LEASES_SINCE: &str = "2020-02-10";
const RENAMES_SINCE: &str = "2021-04-10";

impl Op {
    /// The operation that a request names.
    pub fn named_by(head: &Head) -> Result<Op, FileError> {
        if head.method == Method::OPTIONS {
            return Ok(Op::PreflightFileRequest);
        }
        let [restype, comp] = ["restype", "comp"].map(|name| head.query.get(name).map(str::to_ascii_lowercase));
        let comp = comp.as_deref();
        match (restype.as_deref(), head.first_segment(), head.rest()) {
            (Some("service"), ..) | (None, None, _) => service(head, comp),
            (Some("share"), Some(_), None) => share(head, comp),
            (Some("directory"), Some(_), _) => directory(head, comp),
            (Some("symboliclink"), Some(_), Some(_)) => symbolic_link(head, comp),
            (Some("hardlink"), Some(_), Some(_)) => hard_link(head, comp),
            (None, Some(_), None) => root(head, comp),
            (None, Some(_), Some(_)) => file(head, comp),
            (Some("share"), Some(_), Some(_)) => Err(RequestError::InvalidResourceName.into()),
            (Some(other), ..) => Err(FileError::query("restype", other)),
        }
    }
}

fn service(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    Ok(match (&head.method, comp) {
        (&Method::GET, Some("list")) => Op::ListShares,
        (&Method::GET, Some("properties")) => Op::GetFileServiceProperties,
        (&Method::PUT, Some("properties")) => Op::SetFileServiceProperties,
        (&Method::POST, Some("userdelegationkey")) => Op::GetUserDelegationKey,
        (_, Some("list" | "properties" | "userdelegationkey")) => return unsupported_verb(),
        (_, Some(other)) => return Err(FileError::query("comp", other)),
        (_, None) => return Err(RequestError::MissingRequiredQueryParameter { name: "comp" }.into()),
    })
}

fn share(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    Ok(match (&head.method, comp) {
        (&Method::PUT, None) => Op::CreateShare,
        (&Method::GET | &Method::HEAD, None) => Op::GetShareProperties,
        (&Method::DELETE, None) => Op::DeleteShare,
        (&Method::PUT, Some("properties")) => Op::SetShareProperties,
        (&Method::GET | &Method::HEAD, Some("metadata")) => Op::GetShareMetadata,
        (&Method::PUT, Some("metadata")) => Op::SetShareMetadata,
        (&Method::GET | &Method::HEAD, Some("acl")) => Op::GetShareAcl,
        (&Method::PUT, Some("acl")) => Op::SetShareAcl,
        (&Method::GET, Some("stats")) => Op::GetShareStats,
        (&Method::PUT, Some("snapshot")) => Op::SnapshotShare,
        (&Method::PUT, Some("undelete")) => Op::RestoreShare,
        (&Method::PUT, Some("lease")) if head.since(SHARE_LEASES_SINCE) => Op::LeaseShare,
        (&Method::PUT, Some("filepermission")) => Op::CreatePermission,
        (&Method::GET, Some("filepermission")) => Op::GetPermission,
        (
            _,
            None
            | Some("properties" | "metadata" | "acl" | "stats" | "snapshot" | "undelete" | "lease" | "filepermission"),
        ) => return unsupported_verb(),
        (_, Some(other)) => return Err(FileError::query("comp", other)),
    })
}

fn directory(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    Ok(match (&head.method, comp) {
        (&Method::PUT, None) => Op::CreateDirectory,
        (&Method::GET | &Method::HEAD, None) => Op::GetDirectoryProperties,
        (&Method::DELETE, None) => Op::DeleteDirectory,
        (&Method::PUT, Some("properties")) => Op::SetDirectoryProperties,
        (&Method::GET | &Method::HEAD, Some("metadata")) => Op::GetDirectoryMetadata,
        (&Method::PUT, Some("metadata")) => Op::SetDirectoryMetadata,
        (&Method::PUT, Some("rename")) if head.since(RENAMES_SINCE) => Op::RenameDirectory,
        (&Method::GET, Some("list")) => Op::ListDirectoriesAndFiles,
        (_, Some("listhandles" | "forceclosehandles")) => return handles(head, comp),
        (_, None | Some("properties" | "metadata" | "rename" | "list")) => return unsupported_verb(),
        (_, Some(other)) => return Err(FileError::query("comp", other)),
    })
}

/// A share without `restype`: its root directory, for the operations that name a directory without saying so.
fn root(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    match comp {
        Some("listhandles" | "forceclosehandles") => handles(head, comp),
        Some(_) | None => Err(RequestError::MissingRequiredQueryParameter { name: "restype" }.into()),
    }
}

/// Handles of directories and files: the request does not say which.
fn handles(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    match (&head.method, comp) {
        (&Method::GET, Some("listhandles")) => Ok(Op::ListHandles),
        (&Method::PUT, Some("forceclosehandles")) => Ok(Op::ForceCloseHandles),
        _ => unsupported_verb(),
    }
}

fn file(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    let is_copy = head.has_header(COPY_SOURCE);
    Ok(match (&head.method, comp) {
        (&Method::PUT, None) if is_copy => Op::CopyFile,
        (&Method::PUT, None) => Op::CreateFile,
        (&Method::GET, None) => Op::GetFile,
        (&Method::HEAD, None) => Op::GetFileProperties,
        (&Method::DELETE, None) => Op::DeleteFile,
        (&Method::PUT, Some("properties")) => Op::SetFileProperties,
        (&Method::GET | &Method::HEAD, Some("metadata")) => Op::GetFileMetadata,
        (&Method::PUT, Some("metadata")) => Op::SetFileMetadata,
        (&Method::PUT, Some("lease")) if head.since(FILE_LEASES_SINCE) => Op::LeaseFile,
        (&Method::PUT, Some("range")) if is_copy => Op::PutRangeFromUrl,
        (&Method::PUT, Some("range")) => Op::PutRange,
        (&Method::GET, Some("rangelist")) => Op::ListRanges,
        (&Method::PUT, Some("copy")) => Op::AbortCopyFile,
        (&Method::PUT, Some("rename")) if head.since(RENAMES_SINCE) => Op::RenameFile,
        (_, Some("listhandles" | "forceclosehandles")) => return handles(head, comp),
        (_, None | Some("properties" | "metadata" | "lease" | "range" | "rangelist" | "copy" | "rename")) => {
            return unsupported_verb();
        }
        (_, Some(other)) => return Err(FileError::query("comp", other)),
    })
}

fn symbolic_link(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    no_comp(comp)?;
    match head.method {
        Method::PUT => Ok(Op::CreateSymbolicLink),
        Method::GET | Method::HEAD => Ok(Op::GetSymbolicLink),
        _ => unsupported_verb(),
    }
}

fn hard_link(head: &Head, comp: Option<&str>) -> Result<Op, FileError> {
    no_comp(comp)?;
    if head.method == Method::PUT { Ok(Op::CreateHardLink) } else { unsupported_verb() }
}

fn no_comp(comp: Option<&str>) -> Result<(), FileError> {
    comp.map_or(Ok(()), |other| Err(FileError::query("comp", other)))
}

fn unsupported_verb() -> Result<Op, FileError> {
    Err(RequestError::UnsupportedHttpVerb.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn the_request_lines_of_the_reference_name_their_operations() {
        let table = [
            ("GET", "?comp=list", Op::ListShares),
            ("GET", "?restype=service&comp=properties", Op::GetFileServiceProperties),
            ("PUT", "?restype=service&comp=properties", Op::SetFileServiceProperties),
            ("POST", "?restype=service&comp=userdelegationkey", Op::GetUserDelegationKey),
            ("OPTIONS", "share/file", Op::PreflightFileRequest),
            ("PUT", "share?restype=share", Op::CreateShare),
            ("PUT", "share?restype=share&comp=snapshot", Op::SnapshotShare),
            ("GET", "share?restype=share", Op::GetShareProperties),
            ("HEAD", "share?restype=SHARE", Op::GetShareProperties),
            ("PUT", "share?restype=share&comp=properties", Op::SetShareProperties),
            ("GET", "share?restype=share&comp=metadata", Op::GetShareMetadata),
            ("PUT", "share?restype=share&comp=metadata", Op::SetShareMetadata),
            ("GET", "share?restype=share&comp=acl", Op::GetShareAcl),
            ("PUT", "share?restype=share&comp=acl", Op::SetShareAcl),
            ("GET", "share?restype=share&comp=stats", Op::GetShareStats),
            ("DELETE", "share?restype=share", Op::DeleteShare),
            ("PUT", "share?restype=share&comp=undelete", Op::RestoreShare),
            ("PUT", "share?restype=share&comp=lease", Op::LeaseShare),
            ("PUT", "share?restype=share&comp=filepermission", Op::CreatePermission),
            ("GET", "share?restype=share&comp=filepermission", Op::GetPermission),
            ("PUT", "share/dir?restype=directory", Op::CreateDirectory),
            ("GET", "share/dir?restype=directory", Op::GetDirectoryProperties),
            ("HEAD", "share?restype=directory", Op::GetDirectoryProperties),
            ("PUT", "share/dir?restype=directory&comp=properties", Op::SetDirectoryProperties),
            ("GET", "share/dir?restype=directory&comp=metadata", Op::GetDirectoryMetadata),
            ("PUT", "share/dir?restype=directory&comp=metadata", Op::SetDirectoryMetadata),
            ("DELETE", "share/dir?restype=directory", Op::DeleteDirectory),
            ("PUT", "share/dir?restype=directory&comp=rename", Op::RenameDirectory),
            ("GET", "share/dir/sub?restype=directory&comp=list", Op::ListDirectoriesAndFiles),
            ("GET", "share?restype=directory&comp=list", Op::ListDirectoriesAndFiles),
            ("GET", "share?comp=listhandles", Op::ListHandles),
            ("GET", "share/dir/file?comp=listhandles", Op::ListHandles),
            ("PUT", "share/dir?comp=forceclosehandles", Op::ForceCloseHandles),
            ("PUT", "share/dir/file", Op::CreateFile),
            ("GET", "share/file", Op::GetFile),
            ("HEAD", "share/file", Op::GetFileProperties),
            ("PUT", "share/file?comp=properties", Op::SetFileProperties),
            ("GET", "share/file?comp=metadata", Op::GetFileMetadata),
            ("HEAD", "share/file?comp=metadata", Op::GetFileMetadata),
            ("PUT", "share/file?comp=metadata", Op::SetFileMetadata),
            ("DELETE", "share/file", Op::DeleteFile),
            ("PUT", "share/file?comp=rename", Op::RenameFile),
            ("PUT", "share/file?comp=lease", Op::LeaseFile),
            ("PUT", "share/file?comp=range", Op::PutRange),
            ("GET", "share/file?comp=rangelist", Op::ListRanges),
            ("PUT", "share/file?comp=copy&copyid=x", Op::AbortCopyFile),
            ("PUT", "share/file?restype=symboliclink", Op::CreateSymbolicLink),
            ("GET", "share/file?restype=symboliclink", Op::GetSymbolicLink),
            ("PUT", "share/file?restype=hardlink", Op::CreateHardLink),
        ];
        for (method, url, op) in table {
            assert_eq!(Op::named_by(&request(method, url, &[])), Ok(op), "{method} {url}");
        }
        let source = [("x-ms-copy-source", "http://127.0.0.1/acct/share/other")];
        assert_eq!(Op::named_by(&request("PUT", "share/file", &source)), Ok(Op::CopyFile));
        assert_eq!(Op::named_by(&request("PUT", "share/file?comp=range", &source)), Ok(Op::PutRangeFromUrl));
        let copies = [Op::CopyFile, Op::PutRangeFromUrl];
        for op in Op::ALL.iter().filter(|op| !copies.contains(op)) {
            assert!(table.iter().any(|row| row.2 == *op), "no request names {}", op.name());
        }
    }

    #[test]
    fn requests_that_name_nothing() {
        let verb = FileError::from(RequestError::UnsupportedHttpVerb);
        let table = [
            ("GET", "", RequestError::MissingRequiredQueryParameter { name: "comp" }.into()),
            ("GET", "?comp=x", FileError::query("comp", "x")),
            ("GET", "share", RequestError::MissingRequiredQueryParameter { name: "restype" }.into()),
            ("GET", "share?restype=container", FileError::query("restype", "container")),
            ("GET", "share/dir?restype=share", RequestError::InvalidResourceName.into()),
            ("POST", "share?restype=share", verb.clone()),
            ("GET", "share?restype=share&comp=x", FileError::query("comp", "x")),
            ("POST", "share/dir?restype=directory", verb.clone()),
            ("GET", "share/dir?restype=directory&comp=lease", FileError::query("comp", "lease")),
            ("PUT", "share/dir?restype=directory&comp=list", verb.clone()),
            ("POST", "share/file", verb.clone()),
            ("GET", "share/file?comp=range", verb.clone()),
            ("GET", "share/file?comp=block", FileError::query("comp", "block")),
            ("GET", "share/file?comp=forceclosehandles", verb),
        ];
        for (method, url, error) in table {
            assert_eq!(Op::named_by(&request(method, url, &[])), Err(error), "{method} {url}");
        }
    }
}
