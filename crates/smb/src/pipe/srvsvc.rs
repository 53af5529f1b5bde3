//! The calls of the server service that list shares (MS-SRVS 3.1.4).

use super::ndr::{BadStub, NdrReader, NdrWriter};
use super::rpc::Fault;
use crate::wire::cursor::len32;

const SHARE_ENUM: u16 = 15;
const SHARE_GET_INFO: u16 = 16;
const SERVER_GET_INFO: u16 = 21;

/// `ERROR_INVALID_LEVEL`
const INVALID_LEVEL: u32 = 124;
/// `NERR_NetNameNotFound`
const NET_NAME_NOT_FOUND: u32 = 2310;
/// `ERROR_MORE_DATA` is not needed: an answer has all shares.
const SUCCESS: u32 = 0;

/// Shares in an answer. An account may have more; they are reached by name.
pub const SHARES_MAX: usize = 10_000;

/// What a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    Disk,
    /// IPC$.
    Ipc,
}

impl ShareKind {
    fn number(self) -> u32 {
        match self {
            ShareKind::Disk => 0,
            ShareKind::Ipc => 0x8000_0003,
        }
    }
}

/// A share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub name: String,
    pub kind: ShareKind,
    pub remark: String,
}

/// What calls are answered from.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// As the client calls it.
    pub name: &'a str,
    pub comment: &'a str,
    /// The shares of the account that is logged on, and IPC$.
    pub shares: &'a [Share],
}

/// Answers a call.
///
/// # Errors
/// The fault of a call that is unknown, or whose arguments are none.
pub fn call(opnum: u16, stub: &[u8], server: &Server<'_>) -> Result<Vec<u8>, Fault> {
    let mut reader = NdrReader::new(stub);
    match opnum {
        SHARE_ENUM => Ok(share_enum(&ShareEnum::decode(&mut reader)?, server)),
        SHARE_GET_INFO => {
            reader.optional_string()?;
            let name = reader.string()?;
            Ok(share_get_info(&name, reader.u32()?, server))
        }
        SERVER_GET_INFO => {
            reader.optional_string()?;
            Ok(server_get_info(reader.u32()?, server))
        }
        _ => Err(Fault::UnknownCall),
    }
}

/// The arguments of NetrShareEnum.
struct ShareEnum {
    level: u32,
    resume: Option<u32>,
}

impl ShareEnum {
    fn decode(reader: &mut NdrReader<'_>) -> Result<ShareEnum, BadStub> {
        reader.optional_string()?;
        let level = reader.u32()?;
        if reader.u32()? != level {
            return Err(BadStub);
        }
        if reader.u32()? != 0 {
            // The container is empty on its way in: clients send no entries.
            reader.u32()?;
            if reader.u32()? != 0 && reader.u32()? != 0 {
                return Err(BadStub);
            }
        }
        reader.u32()?;
        Ok(ShareEnum { level, resume: reader.optional_u32()? })
    }
}

/// How much of a share is shown.
#[derive(Clone, Copy)]
enum ShareLevel {
    Level0,
    Level1,
    Level2,
    Level501,
    Level502,
    Level1005,
}

impl ShareLevel {
    fn of(level: u32) -> Option<ShareLevel> {
        Some(match level {
            0 => ShareLevel::Level0,
            1 => ShareLevel::Level1,
            2 => ShareLevel::Level2,
            501 => ShareLevel::Level501,
            502 => ShareLevel::Level502,
            1005 => ShareLevel::Level1005,
            _ => return None,
        })
    }

    /// The part with numbers and pointers.
    fn fixed(self, share: &Share, out: &mut NdrWriter) {
        const ANY_NUMBER: u32 = u32::MAX;
        if let ShareLevel::Level1005 = self {
            return out.u32(0);
        }
        out.pointer();
        if let ShareLevel::Level0 = self {
            return;
        }
        out.u32(share.kind.number());
        out.pointer();
        match self {
            ShareLevel::Level0 | ShareLevel::Level1 | ShareLevel::Level1005 => {}
            ShareLevel::Level501 => out.u32(0),
            ShareLevel::Level2 | ShareLevel::Level502 => {
                out.u32(0);
                out.u32(ANY_NUMBER);
                out.u32(0);
                out.pointer();
                out.null();
                if let ShareLevel::Level502 = self {
                    out.u32(0);
                    out.null();
                }
            }
        }
    }

    /// The texts, in the order of their pointers.
    fn texts(self, share: &Share, out: &mut NdrWriter) {
        if let ShareLevel::Level1005 = self {
            return;
        }
        out.string(&share.name);
        if let ShareLevel::Level0 = self {
            return;
        }
        out.string(&share.remark);
        if let ShareLevel::Level2 | ShareLevel::Level502 = self {
            out.string("");
        }
    }
}

fn share_enum(call: &ShareEnum, server: &Server<'_>) -> Vec<u8> {
    let mut out = NdrWriter::default();
    out.u32(call.level);
    out.u32(call.level);
    let level = ShareLevel::of(call.level).filter(|level| !matches!(level, ShareLevel::Level1005));
    let shares = &server.shares[..server.shares.len().min(SHARES_MAX)];
    let status = match level {
        None => {
            out.null();
            out.u32(0);
            INVALID_LEVEL
        }
        Some(level) => {
            out.pointer();
            out.u32(len32(shares.len()));
            out.pointer();
            out.u32(len32(shares.len()));
            shares.iter().for_each(|share| level.fixed(share, &mut out));
            shares.iter().for_each(|share| level.texts(share, &mut out));
            out.u32(len32(shares.len()));
            SUCCESS
        }
    };
    match call.resume {
        None => out.null(),
        Some(_) => {
            out.pointer();
            out.u32(0);
        }
    }
    out.u32(status);
    out.finish()
}

fn share_get_info(name: &str, level: u32, server: &Server<'_>) -> Vec<u8> {
    let share = server.shares.iter().find(|share| share.name.eq_ignore_ascii_case(name));
    let mut out = NdrWriter::default();
    out.u32(level);
    let status = match (ShareLevel::of(level), share) {
        (None, _) => {
            out.null();
            INVALID_LEVEL
        }
        (Some(_), None) => {
            out.null();
            NET_NAME_NOT_FOUND
        }
        (Some(level), Some(share)) => {
            out.pointer();
            level.fixed(share, &mut out);
            level.texts(share, &mut out);
            SUCCESS
        }
    };
    out.u32(status);
    out.finish()
}

fn server_get_info(level: u32, server: &Server<'_>) -> Vec<u8> {
    const PLATFORM_NT: u32 = 500;
    /// Workstation, server, NT, server of NT.
    const TYPE: u32 = 0x9003;
    let mut out = NdrWriter::default();
    out.u32(level);
    if !matches!(level, 100 | 101) {
        out.null();
        out.u32(INVALID_LEVEL);
        return out.finish();
    }
    out.pointer();
    out.u32(PLATFORM_NT);
    out.pointer();
    if level == 101 {
        out.u32(10);
        out.u32(0);
        out.u32(TYPE);
        out.pointer();
    }
    out.string(server.name);
    if level == 101 {
        out.string(server.comment);
    }
    out.u32(SUCCESS);
    out.finish()
}
