//! What operations have in common in what they take: shares, paths, snapshots, lease ids.

use std::time::Duration;

use concurrency::Timestamp;
use service::{HttpHeaderNames, Pairs, RequestError};
use wire::dates;
use wire::file_path::{FilePath, PathKind, TrailingDots};
use wire::http::Head;
use wire::metadata::Metadata;
use wire::names::ShareName;

use crate::error::FileError;
use crate::tree::Target;

pub use service::request::{flag, guid, lease_id, number, required, text};

/// Since this version a request can keep the dots at the end of names.
const TRAILING_DOTS_SINCE: &str = "2022-11-02";
const ALLOW_TRAILING_DOT: &str = "x-ms-allow-trailing-dot";
/// The same for the source of a rename or copy.
const SOURCE_ALLOW_TRAILING_DOT: &str = "x-ms-source-allow-trailing-dot";
pub const SHARE_SNAPSHOT: &str = "sharesnapshot";

/// Before this version no request could name a link.
const LINKS_SINCE: &str = "2025-05-05";

/// The link that an operation on links names.
pub fn link(head: &Head) -> Result<Target, FileError> {
    let target = file(head)?;
    if !head.since(LINKS_SINCE) {
        return Err(FileError::query("restype", head.query.get("restype").unwrap_or_default()));
    }
    Ok(target)
}

/// A header with a path, which must be there. Unlike other headers it may have letters beyond ASCII: clients send them as they are.
pub fn required_path<'a>(head: &'a Head, name: &'static str) -> Result<&'a str, FileError> {
    let mut values = head.headers.get_all(name).iter();
    let value = values.next().filter(|value| !value.is_empty()).ok_or(RequestError::MissingRequiredHeader { name })?;
    match (std::str::from_utf8(value.as_bytes()), values.next()) {
        (Ok(path), None) => Ok(path),
        _ => Err(FileError::header(name, String::from_utf8_lossy(value.as_bytes()))),
    }
}

/// The share that a share operation names.
pub fn share(head: &Head) -> Result<ShareName, FileError> {
    let name = head.first_segment().ok_or(RequestError::InvalidResourceName)?;
    if head.rest().is_some() {
        return Err(RequestError::InvalidResourceName.into());
    }
    Ok(ShareName::parse(name)?)
}

/// The file that a file operation names.
pub fn file(head: &Head) -> Result<Target, FileError> {
    target(head, PathKind::File)
}

/// The directory that a directory operation names. No path is the root.
pub fn directory(head: &Head) -> Result<Target, FileError> {
    target(head, PathKind::Directory)
}

fn target(head: &Head, kind: PathKind) -> Result<Target, FileError> {
    let share = ShareName::parse(head.first_segment().ok_or(RequestError::InvalidResourceName)?)?;
    let path = FilePath::parse(head.rest().unwrap_or_default(), kind, trailing_dots(head)?)?;
    Ok(Target { share, path, snapshot: None })
}

/// What becomes of dots at the end of the names in the URL.
pub fn trailing_dots(head: &Head) -> Result<TrailingDots, FileError> {
    dots(head, ALLOW_TRAILING_DOT)
}

/// What becomes of dots at the end of the names in the URL of a source.
pub fn source_trailing_dots(head: &Head) -> Result<TrailingDots, FileError> {
    dots(head, SOURCE_ALLOW_TRAILING_DOT)
}

fn dots(head: &Head, name: &'static str) -> Result<TrailingDots, FileError> {
    let is_kept = flag(head, name)?.unwrap_or(false) && head.since(TRAILING_DOTS_SINCE);
    Ok(if is_kept { TrailingDots::Keep } else { TrailingDots::Strip })
}

/// The share snapshot that a read asks for.
pub fn snapshot(head: &Head) -> Result<Option<Timestamp>, FileError> {
    let Some(value) = snapshot_text(head) else { return Ok(None) };
    dates::parse_iso_ticks(value).map(Some).ok_or_else(|| FileError::query(SHARE_SNAPSHOT, value))
}

/// The same as a target, which a read has looked at before.
pub fn at_snapshot(head: &Head, target: Target) -> Result<Target, FileError> {
    Ok(Target { snapshot: snapshot(head)?, ..target })
}

/// Snapshots never change: an operation that writes does not take one.
pub fn only_base(head: &Head) -> Result<(), FileError> {
    match snapshot_text(head) {
        None => Ok(()),
        Some(value) => Err(FileError::query(SHARE_SNAPSHOT, value)),
    }
}

/// An empty parameter counts: a request with one does not mean the share itself.
fn snapshot_text(head: &Head) -> Option<&str> {
    named_even_if_empty(head, SHARE_SNAPSHOT)
}

/// A parameter of the query that counts also if it is empty.
pub fn named_even_if_empty<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    let mut pairs = head.query.pairs().iter();
    pairs.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Files have no conditional headers. To pass over one could destroy what the client meant to protect.
pub fn no_conditions(head: &Head) -> Result<(), FileError> {
    let names = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    if names.iter().any(|name| head.has_header(name)) {
        return Err(FileError::ConditionHeadersNotSupported);
    }
    Ok(())
}

/// The metadata in the `x-ms-meta-*` headers.
pub fn metadata(head: &Head) -> Result<Pairs, FileError> {
    Ok(Metadata::of(head)?.into_pairs())
}

/// The request headers that set the HTTP headers of a file.
/// How long an operation waits at most for SMB clients to give up what they cache, as Azure has it.
pub const CACHES_PATIENCE_MAX: Duration = Duration::from_secs(30);
/// The server ends a request when its time is over. Waiting ends a little before, so that the answer says why.
const CACHES_PATIENCE_MARGIN: Duration = Duration::from_millis(200);

/// How long a request waits for SMB clients to give up what they cache: the time that its client has set, if that is less than usual.
pub fn caches_patience(head: &Head) -> Duration {
    let asked = head.query.get("timeout").and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
    let patience = asked.map_or(CACHES_PATIENCE_MAX, |seconds| Duration::from_secs(seconds).min(CACHES_PATIENCE_MAX));
    patience.saturating_sub(CACHES_PATIENCE_MARGIN)
}

pub const HTTP_HEADERS: HttpHeaderNames = HttpHeaderNames {
    content_type: "x-ms-content-type",
    content_encoding: "x-ms-content-encoding",
    content_language: "x-ms-content-language",
    content_disposition: "x-ms-content-disposition",
    cache_control: "x-ms-cache-control",
    content_md5: "x-ms-content-md5",
};

/// The longest file.
pub const FILE_BYTES_MAX: u64 = 4 << 40;
/// Before this version files were not as long.
const LONG_FILES_SINCE: &str = "2020-02-10";
const FILE_BYTES_MAX_BEFORE: u64 = 1 << 40;

pub const FILE_LENGTH: &str = "x-ms-content-length";

/// The length that a file is to have.
pub fn file_length(head: &Head) -> Result<Option<u64>, FileError> {
    let Some(value) = text(head, FILE_LENGTH)? else { return Ok(None) };
    let most = if head.since(LONG_FILES_SINCE) { FILE_BYTES_MAX } else { FILE_BYTES_MAX_BEFORE };
    let length: i128 = value.parse().map_err(|_| FileError::header(FILE_LENGTH, value))?;
    match u64::try_from(length) {
        Ok(length) if length <= most => Ok(Some(length)),
        Ok(_) | Err(_) => Err(RequestError::OutOfRangeInput.into()),
    }
}
