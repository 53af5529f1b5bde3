//! IOCTL: file system controls and pipes (MS-SMB2 3.3.5.15).

use file::door::{Chunk, CopyAccess};

use super::refusal::status_of;
use super::{Answer, Call, create, pipe};
use crate::open::OpenKind;
use crate::status::{Result, Status};
use crate::wire::fsctl::{
    self, COPY_BYTES_MAX, COPY_CHUNK_BYTES_MAX, COPY_CHUNKS_MAX, COPY_TO_END, CopyChunk, DuplicateExtents,
    NetworkInterface, Range, ResumeKey, ValidateNegotiate, code,
};
use crate::wire::negotiate::Dialect;
use crate::wire::{Response, ioctl, snapshot_token};

/// Ranges in one answer of QUERY_ALLOCATED_RANGES; a client asks again from the end of the last one.
const ALLOCATED_RANGES_MAX: usize = 4_096;

/// The speed that is told of the network: ten gigabits. Nobody knows the real one.
const LINK_SPEED: u64 = 10_000_000_000;

pub(super) async fn run(call: &Call, request: ioctl::Request) -> Result<Answer> {
    let (output, status) = match request.code {
        code::VALIDATE_NEGOTIATE_INFO => (validate_negotiate(call, &request)?, Status::SUCCESS),
        code::QUERY_NETWORK_INTERFACE_INFO => (network_interfaces(call, &request)?, Status::SUCCESS),
        code::PIPE_TRANSCEIVE => transceive(call, &request).await?,
        code::PIPE_PEEK => (peek(call, &request)?, Status::SUCCESS),
        code::PIPE_WAIT => {
            call.tree()?;
            match crate::pipe::is_srvsvc(&fsctl::pipe_wait(&request.input)?) {
                true => (Vec::new(), Status::SUCCESS),
                false => return Err(Status::OBJECT_NAME_NOT_FOUND),
            }
        }
        code::SRV_REQUEST_RESUME_KEY => (resume_key(call, &request)?, Status::SUCCESS),
        code::SRV_COPYCHUNK => copy_chunks(call, &request, CopyAccess::ReadAndWrite).await?,
        code::SRV_COPYCHUNK_WRITE => copy_chunks(call, &request, CopyAccess::Write).await?,
        code::DUPLICATE_EXTENTS_TO_FILE => (duplicate_extents(call, &request).await?, Status::SUCCESS),
        code::SRV_ENUMERATE_SNAPSHOTS => (snapshots(call, &request).await?, Status::SUCCESS),
        code::SET_SPARSE => (set_sparse(call, &request).await?, Status::SUCCESS),
        code::SET_ZERO_DATA => (set_zero_data(call, &request).await?, Status::SUCCESS),
        code::QUERY_ALLOCATED_RANGES => allocated_ranges(call, &request).await?,
        code::GET_COMPRESSION => {
            call.open(request.file_id)?.file()?;
            (fsctl::compression(), Status::SUCCESS)
        }
        // No file is compressed, and none can be.
        code::SET_COMPRESSION => {
            call.open(request.file_id)?.file()?;
            match fsctl::set_compression(&request.input)? {
                false => (Vec::new(), Status::SUCCESS),
                true => return Err(Status::NOT_SUPPORTED),
            }
        }
        other => return refused(call, &request, other),
    };
    if output.len() > request.max_output as usize {
        return Err(Status::BUFFER_TOO_SMALL);
    }
    let body = ioctl::Response { code: request.code, file_id: request.file_id, output };
    Ok(Answer::with(status, Response::Ioctl(body)))
}

/// Controls that are not there, with the status that clients expect for each.
fn refused(call: &Call, request: &ioctl::Request, code: u32) -> Result<Answer> {
    call.tree()?;
    // Clients ask this first of all, without a file, and go on without DFS.
    if matches!(code, code::DFS_GET_REFERRALS | code::DFS_GET_REFERRALS_EX) {
        return Err(Status::FS_DRIVER_REQUIRED);
    }
    call.open(request.file_id)?.file()?;
    Err(match code {
        code::GET_REPARSE_POINT | code::DELETE_REPARSE_POINT => Status::NOT_A_REPARSE_POINT,
        code::SET_REPARSE_POINT => Status::NOT_SUPPORTED,
        _ => Status::INVALID_DEVICE_REQUEST,
    })
}

/// Tells a client of 3.0 or 3.0.2 what was negotiated. If that is not what it saw somebody has changed it on its way: the
/// connection ends.
fn validate_negotiate(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let asked = ValidateNegotiate::decode(&request.input)?;
    let negotiated = call.conversation.connection().negotiated().cloned().ok_or(Status::INVALID_PARAMETER)?;
    let dialect = asked.dialects.iter().filter_map(|dialect| Dialect::from_u16(*dialect)).max();
    let is_same = dialect == Some(negotiated.algorithms.dialect)
        && asked.capabilities == negotiated.client_capabilities
        && asked.client_guid == negotiated.client_guid
        && asked.security_mode == negotiated.client_security_mode;
    if !is_same {
        call.conversation.outbox.close();
        return Err(Status::INVALID_PARAMETER);
    }
    let dialect = negotiated.algorithms.dialect as u16;
    Ok(fsctl::validate_negotiate(negotiated.capabilities, negotiated.server_guid, negotiated.security_mode, dialect))
}

fn network_interfaces(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    call.tree()?;
    let address = call.conversation.local.ip();
    if request.file_id != crate::wire::FileId::RELATED {
        return Err(Status::INVALID_PARAMETER);
    }
    if address.is_unspecified() {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(fsctl::network_interfaces(&[NetworkInterface { index: 1, link_speed: LINK_SPEED, address }]))
}

async fn transceive(call: &Call, request: &ioctl::Request) -> Result<(Vec<u8>, Status)> {
    let open = call.open(request.file_id)?;
    let OpenKind::Pipe(pipe) = &open.kind else { return Err(Status::INVALID_DEVICE_REQUEST) };
    pipe::write(call, pipe, &request.input).await?;
    let (data, status, _) = pipe::read(pipe, request.max_output as usize)?;
    Ok((data, status))
}

fn peek(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let open = call.open(request.file_id)?;
    let OpenKind::Pipe(pipe) = &open.kind else { return Err(Status::INVALID_DEVICE_REQUEST) };
    Ok(fsctl::pipe_peek(pipe::available(pipe)))
}

/// The key by which a copy names its source.
fn resume_key(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let open = call.open(request.file_id)?;
    open.file()?;
    let key = fsctl::resume_key(&ResumeKey { file_id: open.id, session_id: call.user()?.session.id });
    if (request.max_output as usize) < key.len() { Err(Status::INVALID_PARAMETER) } else { Ok(key) }
}

/// Copies inside of the server. A refusal also says how far the copy has come, and INVALID_PARAMETER what the limits are.
async fn copy_chunks(call: &Call, request: &ioctl::Request, needs: CopyAccess) -> Result<(Vec<u8>, Status)> {
    let open = call.open(request.file_id)?;
    let target = open.file()?;
    let key = fsctl::copy_source(&request.input)?;
    let user = call.user()?;
    let source = user.open_anywhere(key.file_id).filter(|_| key.session_id == user.session.id);
    let source = source.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    let limits = fsctl::copied(COPY_CHUNKS_MAX, COPY_CHUNK_BYTES_MAX, COPY_BYTES_MAX);
    if (request.max_output as usize) < limits.len() {
        return Err(Status::INVALID_PARAMETER);
    }
    let copy = match (fsctl::CopyChunks::decode(&request.input), source.is_pipe()) {
        (Ok(copy), false) => copy,
        (Ok(_) | Err(_), _) => return Ok((limits, Status::INVALID_PARAMETER)),
    };
    let chunks: Vec<Chunk> = copy.chunks.iter().map(chunk).collect();
    let (copied, result) = Box::pin(target.door.copy_chunks(&source.file()?.door, &chunks, needs)).await;
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let told = fsctl::copied(number(copied.chunks as u64), 0, number(copied.bytes));
    Ok(match result.map_err(status_of) {
        Ok(()) => (told, Status::SUCCESS),
        Err(Status::INVALID_PARAMETER) => (limits, Status::INVALID_PARAMETER),
        Err(status) => (told, status),
    })
}

fn chunk(chunk: &CopyChunk) -> Chunk {
    let to = Some(chunk.target_offset).filter(|offset| *offset != COPY_TO_END);
    Chunk { from: chunk.source_offset, to, length: chunk.length.into() }
}

async fn duplicate_extents(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let open = call.open(request.file_id)?;
    let target = open.file()?;
    let DuplicateExtents { source, source_offset, target_offset, length } = DuplicateExtents::decode(&request.input)?;
    let source = call.user()?.open_anywhere(source).ok_or(Status::INVALID_HANDLE)?;
    let done = target.door.duplicate_extents(&source.file()?.door, source_offset, target_offset, length);
    Box::pin(done).await.map_err(status_of)?;
    Ok(Vec::new())
}

/// The share's snapshots: previous versions of everything in it.
async fn snapshots(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    call.open(request.file_id)?.file()?;
    let tree = call.tree()?;
    let (share, _) = create::share(&tree.kind)?;
    let times = share.snapshots().await.map_err(status_of)?;
    let names: Vec<String> = times.into_iter().map(snapshot_token::of).collect();
    fsctl::snapshots(&names, request.max_output as usize)
}

async fn set_sparse(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let open = call.open(request.file_id)?;
    open.file()?.door.set_sparse(fsctl::set_sparse(&request.input)).await.map_err(status_of)?;
    Ok(Vec::new())
}

async fn set_zero_data(call: &Call, request: &ioctl::Request) -> Result<Vec<u8>> {
    let open = call.open(request.file_id)?;
    let Range { offset, end } = fsctl::set_zero_data(&request.input)?;
    open.file()?.door.set_zero_data(offset, end).await.map_err(status_of)?;
    Ok(Vec::new())
}

async fn allocated_ranges(call: &Call, request: &ioctl::Request) -> Result<(Vec<u8>, Status)> {
    let open = call.open(request.file_id)?;
    let Range { offset, end } = fsctl::query_allocated_ranges(&request.input)?;
    let fit = (request.max_output as usize / 16).min(ALLOCATED_RANGES_MAX);
    let (ranges, more) =
        open.file()?.door.allocated_ranges(offset, end - offset, fit.max(1)).await.map_err(status_of)?;
    let ranges: Vec<Range> =
        ranges.into_iter().map(|(offset, length)| Range { offset, end: offset.saturating_add(length) }).collect();
    let (output, status) = fsctl::allocated_ranges(&ranges, request.max_output as usize)?;
    Ok((output, if more { Status::BUFFER_OVERFLOW } else { status }))
}
