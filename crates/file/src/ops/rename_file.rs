//! Rename File, and what it has in common with Rename Directory: the source is moved to the path of the request, in one step.

use service::sources::without_signature;
use wire::file_path::{FilePath, PathKind};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ShareName;
use wire::percent;

use super::Call;
use crate::change::rename::{RenamedKind, Renaming};
use crate::entering::{self, RenameNode};
use crate::error::FileError;
use crate::request::{flag, guid, required, text};
use crate::{Failure, request, smb_headers};

const SOURCE: &str = "x-ms-file-rename-source";

pub fn parse(head: &Head, kind: RenamedKind) -> Result<RenameNode, FileError> {
    let (target, path_kind) = match kind {
        RenamedKind::File => (request::file(head)?, PathKind::File),
        RenamedKind::Directory => (request::directory(head)?, PathKind::Directory),
    };
    request::only_base(head)?;
    request::no_conditions(head)?;
    let source = source(head, &target.share, path_kind)?;
    let metadata = request::metadata(head)?;
    let renaming = Renaming {
        kind,
        source_lease: guid(head, "x-ms-source-lease-id")?,
        target_lease: guid(head, "x-ms-destination-lease-id")?,
        replaces: flag(head, "x-ms-file-rename-replace-if-exists")?.unwrap_or(false),
        ignores_read_only: flag(head, "x-ms-file-rename-ignore-readonly")?.unwrap_or(false),
        settings: smb_headers::parse_optional(head)?,
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
        content_type: text(head, "x-ms-content-type")?.map(str::to_owned),
    };
    Ok(RenameNode { source, target, renaming })
}

/// The path of the source: the header has its URL, and the source must be in the same share.
fn source(head: &Head, share: &ShareName, kind: PathKind) -> Result<FilePath, FileError> {
    let url = required(head, SOURCE)?;
    let wrong = || FileError::header(SOURCE, without_signature(url));
    let (path, _query) = url.split_once('?').unwrap_or((url, ""));
    let path = below_account(head, path).and_then(|path| percent::decode_path(path).ok()).ok_or_else(wrong)?;
    let (name, rest) = path.split_once('/').unwrap_or((&path, ""));
    if name != share.as_str() {
        return Err(wrong());
    }
    Ok(FilePath::parse(rest, kind, request::source_trailing_dots(head)?)?)
}

/// The part of a URL behind the account. The account is in the host or in the path, as it is in the URL of the request.
fn below_account<'a>(head: &Head, url: &'a str) -> Option<&'a str> {
    let (_, rest) = url.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    if !head.endpoint.ends_with(&format!("/{}", head.account)) {
        return Some(path);
    }
    path.strip_prefix(&head.account)?.strip_prefix('/')
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    run_as(call, RenamedKind::File).await
}

pub async fn run_as(call: Call<'_>, kind: RenamedKind) -> Result<Reply, Failure> {
    let rename = parse(call.head, kind)?;
    let shown = entering::rename(call, rename).await?;
    Ok(shown.changed(call.head, StatusCode::OK))
}
