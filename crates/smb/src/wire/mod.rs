//! Messages: requests decoded, answers encoded. One file per command.
//!
//! Decoders are total: any bytes give a request or the status that the request is answered with. Offsets in a body count from the start of
//! its header, so each decoder takes the whole message. Answers append their body behind a header of [`header::HEADER_BYTES`] bytes.

pub mod cancel;
pub mod change_notify;
pub mod close;
pub mod compound;
pub mod create;
pub mod create_context;
pub mod cursor;
pub mod echo;
pub mod error;
pub mod flush;
pub mod frame;
pub mod fsctl;
pub mod header;
pub mod info;
pub mod ioctl;
pub mod lock;
pub mod logoff;
pub mod negotiate;
pub mod negotiate_context;
pub mod oplock_break;
pub mod query_directory;
pub mod query_info;
pub mod read;
pub mod session_setup;
pub mod set_info;
pub mod smb1;
pub mod snapshot_token;
pub mod transform;
pub mod tree_connect;
pub mod tree_disconnect;
pub mod write;

use bytes::Bytes;

use self::cursor::{Put, Reader};
use self::header::{Command, HEADER_BYTES};
use crate::status::{Result, Status};

/// A file id, as a handle is called on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    pub persistent: u64,
    pub volatile: u64,
}

impl FileId {
    /// In a related request: the file of the request before it.
    pub const RELATED: FileId = FileId { persistent: u64::MAX, volatile: u64::MAX };

    pub(crate) fn decode(reader: &mut Reader<'_>) -> std::result::Result<FileId, cursor::Short> {
        Ok(FileId { persistent: reader.u64()?, volatile: reader.u64()? })
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.put_u64(self.persistent);
        out.put_u64(self.volatile);
    }
}

/// The four times of a file as FILETIME: units of 100 ns since 1601.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    pub creation: i64,
    pub last_access: i64,
    pub last_write: i64,
    pub change: i64,
}

impl Times {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> std::result::Result<Times, cursor::Short> {
        Ok(Times {
            creation: reader.i64()?,
            last_access: reader.i64()?,
            last_write: reader.i64()?,
            change: reader.i64()?,
        })
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        [self.creation, self.last_access, self.last_write, self.change].into_iter().for_each(|time| out.put_i64(time));
    }
}

/// A body that says nothing: size 4, two bytes reserved. LOGOFF, TREE_DISCONNECT, CANCEL, ECHO, and the answers of FLUSH and LOCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Empty;

impl Empty {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &[u8]) -> Result<Empty> {
        body(message, 4).map(|_| Empty)
    }

    /// Appends the body.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u16(4);
        out.put_u16(0);
    }
}

/// A request of any command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Negotiate(negotiate::Request),
    SessionSetup(session_setup::Request),
    Logoff(logoff::Request),
    TreeConnect(tree_connect::Request),
    TreeDisconnect(tree_disconnect::Request),
    Create(Box<create::Request>),
    Close(close::Request),
    Flush(flush::Request),
    Read(read::Request),
    Write(write::Request),
    Lock(lock::Request),
    Ioctl(ioctl::Request),
    Cancel(cancel::Request),
    Echo(echo::Request),
    QueryDirectory(query_directory::Request),
    ChangeNotify(change_notify::Request),
    QueryInfo(query_info::Request),
    SetInfo(set_info::Request),
    OplockBreak(oplock_break::Request),
}

impl Request {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// The status of the answer.
    pub fn decode(command: Command, message: &Bytes) -> Result<Request> {
        Ok(match command {
            Command::Negotiate => Request::Negotiate(negotiate::Request::decode(message)?),
            Command::SessionSetup => Request::SessionSetup(session_setup::Request::decode(message)?),
            Command::Logoff => Request::Logoff(logoff::Request::decode(message)?),
            Command::TreeConnect => Request::TreeConnect(tree_connect::Request::decode(message)?),
            Command::TreeDisconnect => Request::TreeDisconnect(tree_disconnect::Request::decode(message)?),
            Command::Create => Request::Create(Box::new(create::Request::decode(message)?)),
            Command::Close => Request::Close(close::Request::decode(message)?),
            Command::Flush => Request::Flush(flush::Request::decode(message)?),
            Command::Read => Request::Read(read::Request::decode(message)?),
            Command::Write => Request::Write(write::Request::decode(message)?),
            Command::Lock => Request::Lock(lock::Request::decode(message)?),
            Command::Ioctl => Request::Ioctl(ioctl::Request::decode(message)?),
            Command::Cancel => Request::Cancel(cancel::Request::decode(message)?),
            Command::Echo => Request::Echo(echo::Request::decode(message)?),
            Command::QueryDirectory => Request::QueryDirectory(query_directory::Request::decode(message)?),
            Command::ChangeNotify => Request::ChangeNotify(change_notify::Request::decode(message)?),
            Command::QueryInfo => Request::QueryInfo(query_info::Request::decode(message)?),
            Command::SetInfo => Request::SetInfo(set_info::Request::decode(message)?),
            Command::OplockBreak => Request::OplockBreak(oplock_break::Request::decode(message)?),
        })
    }

    /// The file that the request is about. CREATE has none yet; an acknowledged lease break names a lease.
    #[must_use]
    pub fn file_id(&self) -> Option<FileId> {
        match self {
            Request::Close(request) => Some(request.file_id),
            Request::Flush(request) => Some(request.file_id),
            Request::Read(request) => Some(request.file_id),
            Request::Write(request) => Some(request.file_id),
            Request::Lock(request) => Some(request.file_id),
            Request::Ioctl(request) => Some(request.file_id),
            Request::QueryDirectory(request) => Some(request.file_id),
            Request::ChangeNotify(request) => Some(request.file_id),
            Request::QueryInfo(request) => Some(request.file_id),
            Request::SetInfo(request) => Some(request.file_id),
            Request::OplockBreak(oplock_break::Request::Oplock(request)) => Some(request.file_id),
            Request::OplockBreak(oplock_break::Request::Lease(_))
            | Request::Negotiate(_)
            | Request::SessionSetup(_)
            | Request::Logoff(_)
            | Request::TreeConnect(_)
            | Request::TreeDisconnect(_)
            | Request::Create(_)
            | Request::Cancel(_)
            | Request::Echo(_) => None,
        }
    }

    /// Puts the file of the request before it into a related request.
    pub fn set_file_id(&mut self, file_id: FileId) {
        match self {
            Request::Close(request) => request.file_id = file_id,
            Request::Flush(request) => request.file_id = file_id,
            Request::Read(request) => request.file_id = file_id,
            Request::Write(request) => request.file_id = file_id,
            Request::Lock(request) => request.file_id = file_id,
            Request::Ioctl(request) => request.file_id = file_id,
            Request::QueryDirectory(request) => request.file_id = file_id,
            Request::ChangeNotify(request) => request.file_id = file_id,
            Request::QueryInfo(request) => request.file_id = file_id,
            Request::SetInfo(request) => request.file_id = file_id,
            Request::OplockBreak(oplock_break::Request::Oplock(request)) => request.file_id = file_id,
            Request::OplockBreak(oplock_break::Request::Lease(_))
            | Request::Negotiate(_)
            | Request::SessionSetup(_)
            | Request::Logoff(_)
            | Request::TreeConnect(_)
            | Request::TreeDisconnect(_)
            | Request::Create(_)
            | Request::Cancel(_)
            | Request::Echo(_) => {}
        }
    }

    /// The larger of what the request carries and what its answer may carry: what its credit charge must pay for.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Request::Read(request) => u64::from(request.length),
            Request::Write(request) => request.data.len() as u64,
            Request::Ioctl(request) => {
                let answer = u64::from(request.max_input) + u64::from(request.max_output);
                answer.max(request.input.len() as u64)
            }
            Request::QueryDirectory(request) => u64::from(request.output_bytes),
            Request::ChangeNotify(request) => u64::from(request.output_bytes),
            Request::QueryInfo(request) => u64::from(request.output_bytes).max(request.input.len() as u64),
            Request::SetInfo(request) => request.buffer.len() as u64,
            Request::Negotiate(_)
            | Request::SessionSetup(_)
            | Request::Logoff(_)
            | Request::TreeConnect(_)
            | Request::TreeDisconnect(_)
            | Request::Create(_)
            | Request::Close(_)
            | Request::Flush(_)
            | Request::Lock(_)
            | Request::Cancel(_)
            | Request::Echo(_)
            | Request::OplockBreak(_) => 0,
        }
    }
}

/// An answer of any command, an error, or a break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    Error(error::Response),
    Negotiate(negotiate::Response),
    SessionSetup(session_setup::Response),
    Logoff(logoff::Response),
    TreeConnect(tree_connect::Response),
    TreeDisconnect(tree_disconnect::Response),
    Create(Box<create::Response>),
    Close(close::Response),
    Flush(flush::Response),
    Read(read::Response),
    Write(write::Response),
    Lock(lock::Response),
    Ioctl(ioctl::Response),
    Echo(echo::Response),
    QueryDirectory(query_directory::Response),
    ChangeNotify(change_notify::Response),
    QueryInfo(query_info::Response),
    SetInfo(set_info::Response),
    OplockBreak(oplock_break::Response),
    LeaseBreak(oplock_break::LeaseNotification),
}

impl Response {
    /// An error without data.
    #[must_use]
    pub fn error() -> Response {
        Response::Error(error::Response::default())
    }

    /// Appends the body and gives the data that follows it without being copied.
    #[must_use]
    pub fn encode(&self, out: &mut Vec<u8>) -> Vec<Bytes> {
        match self {
            Response::Error(response) => response.encode(out),
            Response::Negotiate(response) => response.encode(out),
            Response::SessionSetup(response) => response.encode(out),
            Response::Logoff(response) => response.encode(out),
            Response::TreeConnect(response) => response.encode(out),
            Response::TreeDisconnect(response) => response.encode(out),
            Response::Create(response) => response.encode(out),
            Response::Close(response) => response.encode(out),
            Response::Flush(response) => response.encode(out),
            Response::Read(response) => {
                response.encode(out);
                return response.data.clone();
            }
            Response::Write(response) => response.encode(out),
            Response::Lock(response) => response.encode(out),
            Response::Ioctl(response) => response.encode(out),
            Response::Echo(response) => response.encode(out),
            Response::QueryDirectory(response) => response.encode(out),
            Response::ChangeNotify(response) => response.encode(out),
            Response::QueryInfo(response) => response.encode(out),
            Response::SetInfo(response) => response.encode(out),
            Response::OplockBreak(response) => response.encode(out),
            Response::LeaseBreak(response) => response.encode(out),
        }
        Vec::new()
    }
}

/// The fields of a body whose structure has the documented `size`. An odd size counts one byte of the variable part, which may be missing.
fn body(message: &[u8], size: u16) -> Result<Reader<'_>> {
    let body = message.get(HEADER_BYTES..).ok_or(Status::INVALID_PARAMETER)?;
    let mut reader = Reader::new(body);
    if reader.u16()? != size || body.len() < usize::from(size & !1) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(reader)
}

/// The bytes that a body of the documented `size` points at. Nothing is at any place; something lies behind the fixed part.
fn buffer(message: &Bytes, size: u16, offset: usize, length: usize) -> Result<Bytes> {
    if length == 0 {
        return Ok(Bytes::new());
    }
    let end = offset.checked_add(length).filter(|end| *end <= message.len());
    let end = end.ok_or(Status::INVALID_PARAMETER)?;
    if offset < HEADER_BYTES + usize::from(size & !1) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(message.slice(offset..end))
}

/// A body that is one buffer: offset and length of what follows. QUERY_DIRECTORY, QUERY_INFO, CHANGE_NOTIFY.
fn encode_buffer(out: &mut Vec<u8>, buffer: &[u8]) {
    out.put_u16(9);
    out.put_u16(if buffer.is_empty() { 0 } else { 72 });
    out.put_u32(cursor::len32(buffer.len()));
    out.put(buffer);
    if buffer.is_empty() {
        out.put_u8(0);
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
