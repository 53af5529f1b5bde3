//! QUERY_INFO: a file, its file system, its security, quotas (MS-SMB2 3.3.5.20).

use std::sync::atomic::Ordering;

use super::refusal::status_of;
use super::{Answer, Call, create, filetime};
use crate::open::{FileOpen, Open, OpenKind};
use crate::status::{Result, Status};
use crate::user::Tree;
use crate::wire::create::access;
use crate::wire::error::{self, ErrorData};
use crate::wire::info::file::{FileClass, FileInfo, Stream};
use crate::wire::info::file_system::{FileSystemClass, FileSystemInfo};
use crate::wire::info::quota::{self, QuotaRequest};
use crate::wire::negotiate::Dialect;
use crate::wire::query_info::{self, InfoType};
use crate::wire::{Response, info};

/// Owner, group, DACL and SACL. Other parts of a descriptor are not kept.
const SECURITY_PARTS: u32 = 0xF;

pub(super) async fn run(call: &Call, request: query_info::Request) -> Result<Answer> {
    let tree = call.tree()?;
    let open = call.open(request.file_id)?;
    let max = request.output_bytes as usize;
    let answered = match request.info_type {
        InfoType::File => {
            let class = FileClass::from_u8(request.class)?;
            file_info(&open, &tree, class).await?.encode(class, max)?
        }
        InfoType::FileSystem => {
            let class = FileSystemClass::from_u8(request.class)?;
            file_system(&tree).await?.encode(class, max)?
        }
        InfoType::Security => return security(call, open.file()?, &request).await,
        InfoType::Quota => {
            open.file()?;
            QuotaRequest::decode(&request.input)?;
            info::Answer { buffer: quota::encode(&[], max)?, status: Status::SUCCESS }
        }
    };
    Ok(Answer::with(answered.status, Response::QueryInfo(query_info::Response { buffer: answered.buffer })))
}

async fn file_info(open: &Open, tree: &Tree, class: FileClass) -> Result<FileInfo> {
    let file = match &open.kind {
        OpenKind::File(file) => file,
        // A pipe is told as an empty file that goes when it is closed.
        OpenKind::Pipe(_) => {
            let path = "\\srvsvc".to_owned();
            return Ok(FileInfo { attributes: 0x80, links: 1, delete_pending: true, path, ..FileInfo::default() });
        }
    };
    if file.door.access() & needed(class) != needed(class) {
        return Err(Status::ACCESS_DENIED);
    }
    let (_, volume_id) = create::share(&tree.kind)?;
    let found = file.door.query().await.map_err(status_of)?;
    let data = Stream { name: "::$DATA".into(), size: found.length, allocation_size: found.allocation };
    Ok(FileInfo {
        times: create::times(&found),
        attributes: found.attributes,
        allocation_size: found.allocation,
        end_of_file: found.length,
        // A file that is to be deleted has lost its name already, as Windows counts.
        links: if found.is_delete_pending { 0 } else { found.links },
        delete_pending: found.is_delete_pending,
        directory: found.is_directory,
        file_id: found.id,
        volume_id,
        access: found.access,
        position: file.position.load(Ordering::Relaxed),
        mode: file.mode,
        reparse_tag: 0,
        path: format!("\\{}", found.path),
        short_name: short_name(&found.path),
        streams: if found.is_directory { Vec::new() } else { vec![data] },
    })
}

/// The name that MS-DOS would have for a file: its own, if that is of 8 and 3 characters at most. Others have none.
fn short_name(path: &str) -> Option<String> {
    let name = path.rsplit('\\').next()?;
    let (base, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'()-@^_`{}~".contains(&byte));
    let fits = (1..=8).contains(&base.len()) && extension.len() <= 3 && !name.ends_with('.');
    (fits && is_plain(base) && is_plain(extension)).then(|| name.to_owned())
}

/// The access that a class needs (MS-FSA 2.1.5.12).
fn needed(class: FileClass) -> u32 {
    match class {
        FileClass::Basic | FileClass::All | FileClass::NetworkOpen | FileClass::AttributeTag => {
            access::FILE_READ_ATTRIBUTES
        }
        FileClass::FullEa => access::FILE_READ_EA,
        FileClass::Standard
        | FileClass::Internal
        | FileClass::Ea
        | FileClass::Access
        | FileClass::Name
        | FileClass::Position
        | FileClass::Mode
        | FileClass::Alignment
        | FileClass::AlternateName
        | FileClass::Stream
        | FileClass::Compression
        | FileClass::NormalizedName
        | FileClass::Id => 0,
    }
}

async fn file_system(tree: &Tree) -> Result<FileSystemInfo> {
    let (share, volume) = create::share(&tree.kind)?;
    let space = share.space().await.map_err(status_of)?;
    let mut object_id = [0; 16];
    object_id[..8].copy_from_slice(&volume.to_le_bytes());
    Ok(FileSystemInfo {
        created: filetime(space.created),
        serial: (volume ^ (volume >> 32)) as u32,
        label: share.name().to_owned(),
        object_id,
        total_bytes: space.quota_bytes,
        free_bytes: space.quota_bytes.saturating_sub(space.used_bytes),
    })
}

/// A descriptor is answered whole or not at all; a client learns how long it is.
async fn security(call: &Call, file: &FileOpen, request: &query_info::Request) -> Result<Answer> {
    let descriptor = file.door.security(request.additional & SECURITY_PARTS).await.map_err(status_of)?;
    if descriptor.len() > request.output_bytes as usize {
        let dialect = call.conversation.connection().negotiated().map(|negotiated| negotiated.algorithms.dialect);
        let bytes = u32::try_from(descriptor.len()).unwrap_or(u32::MAX);
        let data = ErrorData::Needed { bytes, context: dialect == Some(Dialect::Smb311) };
        return Ok(Answer::with(Status::BUFFER_TOO_SMALL, Response::Error(error::Response { data })));
    }
    Ok(Answer::new(Response::QueryInfo(query_info::Response { buffer: descriptor.to_vec() })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_names_that_are_short() {
        for (path, short) in [
            ("a.txt", Some("a.txt")),
            ("dir.long\\FILE_123.bin", Some("FILE_123.bin")),
            ("README", Some("README")),
            ("", None),
            ("123456789", None),
            ("a.html", None),
            ("a.b.c", None),
            (".git", None),
            ("a.", None),
            ("a b", None),
            ("\u{e4}.txt", None),
        ] {
            assert_eq!(short_name(path).as_deref(), short, "{path}");
        }
    }
}
