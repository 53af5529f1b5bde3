//! The header in front of each message (MS-SMB2 2.2.1): 64 bytes, with a tree or with an asynchronous id.

use super::cursor::{Put, Reader};
use crate::status::Status;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;

/// The first bytes of an SMB2 message.
pub const PROTOCOL_SMB2: [u8; 4] = *b"\xFESMB";
/// The first bytes of an SMB1 message.
pub const PROTOCOL_SMB1: [u8; 4] = *b"\xFFSMB";
/// The first bytes of an encrypted message.
pub const PROTOCOL_TRANSFORM: [u8; 4] = *b"\xFDSMB";
/// The first bytes of a compressed message. Compression is not offered.
pub const PROTOCOL_COMPRESSED: [u8; 4] = *b"\xFCSMB";

/// Where the signature stands in a message.
pub const SIGNATURE: std::ops::Range<usize> = 48..64;

/// The message id of a break that the server sends by itself.
pub const UNSOLICITED: u64 = u64::MAX;

macro_rules! commands {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        /// The commands. `NAMES` are those of MS-SMB2, for logs and metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Command { $($name = $value,)* }

        impl Command {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Command] = &[$(Command::$name),*];

            /// The command of a number.
            #[must_use]
            pub fn from_u16(value: u16) -> Option<Command> {
                match value { $($value => Some(Command::$name),)* _ => None }
            }

            /// The documented name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Command::$name => $text,)* }
            }
        }
    };
}

commands! {
    Negotiate = 0x0, "NEGOTIATE";
    SessionSetup = 0x1, "SESSION_SETUP";
    Logoff = 0x2, "LOGOFF";
    TreeConnect = 0x3, "TREE_CONNECT";
    TreeDisconnect = 0x4, "TREE_DISCONNECT";
    Create = 0x5, "CREATE";
    Close = 0x6, "CLOSE";
    Flush = 0x7, "FLUSH";
    Read = 0x8, "READ";
    Write = 0x9, "WRITE";
    Lock = 0xA, "LOCK";
    Ioctl = 0xB, "IOCTL";
    Cancel = 0xC, "CANCEL";
    Echo = 0xD, "ECHO";
    QueryDirectory = 0xE, "QUERY_DIRECTORY";
    ChangeNotify = 0xF, "CHANGE_NOTIFY";
    QueryInfo = 0x10, "QUERY_INFO";
    SetInfo = 0x11, "SET_INFO";
    OplockBreak = 0x12, "OPLOCK_BREAK";
}

/// Bits of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// An answer.
    pub const RESPONSE: Flags = Flags(0x1);
    /// The header has an asynchronous id in the place of process and tree.
    pub const ASYNC: Flags = Flags(0x2);
    /// The request goes on with the session, tree and file of the one before it in the compound.
    pub const RELATED: Flags = Flags(0x4);
    /// The message is signed.
    pub const SIGNED: Flags = Flags(0x8);
    /// The priority, 3.1.1.
    pub const PRIORITY_MASK: Flags = Flags(0x70);
    /// Names are DFS names.
    pub const DFS: Flags = Flags(0x1000_0000);
    /// The request is sent again after a lost connection.
    pub const REPLAY: Flags = Flags(0x2000_0000);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other`.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The place that a request and its answer belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The tree of a synchronous message, and four bytes that are sent back as they came.
    Tree { process: u32, tree: u32 },
    /// The id of an asynchronous message.
    Async(u64),
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub credit_charge: u16,
    /// In a request of 3.x: the channel sequence, in its lower half.
    pub status: Status,
    /// The number of the command. Unknown ones are answered with INVALID_PARAMETER.
    pub command: u16,
    /// Asked for, or granted.
    pub credits: u16,
    pub flags: Flags,
    /// The distance to the next message of a compound, 0 in the last one.
    pub next: u32,
    pub message_id: u64,
    pub route: Route,
    pub session_id: u64,
    pub signature: [u8; 16],
}

/// Bytes that are no header: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHeader;

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// When the bytes are too short, of another protocol, or say another length.
    pub fn decode(bytes: &[u8]) -> Result<Header, BadHeader> {
        let header = bytes.get(..HEADER_BYTES).ok_or(BadHeader)?;
        if header[..4] != PROTOCOL_SMB2 || header[4..6] != [64, 0] {
            return Err(BadHeader);
        }
        let mut reader = Reader::new(&header[6..]);
        Header::fields(&mut reader).map_err(|_| BadHeader)
    }

    fn fields(reader: &mut Reader<'_>) -> Result<Header, super::cursor::Short> {
        let credit_charge = reader.u16()?;
        let status = Status(reader.u32()?);
        let command = reader.u16()?;
        let credits = reader.u16()?;
        let flags = Flags(reader.u32()?);
        let next = reader.u32()?;
        let message_id = reader.u64()?;
        let route = if flags.has(Flags::ASYNC) {
            Route::Async(reader.u64()?)
        } else {
            Route::Tree { process: reader.u32()?, tree: reader.u32()? }
        };
        let session_id = reader.u64()?;
        let signature = reader.array()?;
        Ok(Header { credit_charge, status, command, credits, flags, next, message_id, route, session_id, signature })
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(&PROTOCOL_SMB2);
        out.put_u16(64);
        out.put_u16(self.credit_charge);
        out.put_u32(self.status.0);
        out.put_u16(self.command);
        out.put_u16(self.credits);
        out.put_u32(self.flags.0);
        out.put_u32(self.next);
        out.put_u64(self.message_id);
        match self.route {
            Route::Tree { process, tree } => {
                out.put_u32(process);
                out.put_u32(tree);
            }
            Route::Async(id) => out.put_u64(id),
        }
        out.put_u64(self.session_id);
        out.put(&self.signature);
    }

    /// The header of the answer to this request.
    #[must_use]
    pub fn answer(&self, status: Status, credits: u16) -> Header {
        let kept = self.flags.0 & (Flags::RELATED.0 | Flags::PRIORITY_MASK.0 | Flags::REPLAY.0);
        Header {
            credit_charge: self.credit_charge,
            status,
            command: self.command,
            credits,
            flags: Flags(kept).with(Flags::RESPONSE),
            next: 0,
            message_id: self.message_id,
            route: self.route,
            session_id: self.session_id,
            signature: [0; 16],
        }
    }

    /// The same for a request whose session is not there, so that nothing can be signed. It has the signature of the request, as Windows
    /// sends it: clients that sign take the status out of it and trust nothing else.
    #[must_use]
    pub fn with_signature_of(self, request: &Header) -> Header {
        match request.flags.has(Flags::SIGNED) {
            true => Header { flags: self.flags.with(Flags::SIGNED), signature: request.signature, ..self },
            false => self,
        }
    }

    /// The header of an asynchronous answer: the interim one (`PENDING`, with credits) or the final one (without).
    #[must_use]
    pub fn answer_async(&self, status: Status, credits: u16, async_id: u64) -> Header {
        let answer = self.answer(status, credits);
        Header { flags: answer.flags.with(Flags::ASYNC), route: Route::Async(async_id), ..answer }
    }

    /// The header of a break that the server sends by itself. Breaks are not signed.
    #[must_use]
    pub fn unsolicited() -> Header {
        Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command: Command::OplockBreak as u16,
            credits: 0,
            flags: Flags::RESPONSE,
            next: 0,
            message_id: UNSOLICITED,
            route: Route::Tree { process: 0, tree: 0 },
            session_id: 0,
            signature: [0; 16],
        }
    }

    /// The command, if it is one.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a number that is none.
    pub fn command(&self) -> crate::status::Result<Command> {
        Command::from_u16(self.command).ok_or(Status::INVALID_PARAMETER)
    }

    /// The tree of a synchronous message.
    #[must_use]
    pub fn tree_id(&self) -> Option<u32> {
        match self.route {
            Route::Tree { tree, .. } => Some(tree),
            Route::Async(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) fn request(command: Command) -> Header {
    Header { command: command as u16, flags: Flags::default(), message_id: 7, ..Header::unsolicited() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let sync = Header {
            credit_charge: 1,
            status: Status(2),
            command: 5,
            credits: 3,
            flags: Flags::SIGNED,
            next: 128,
            message_id: 4,
            route: Route::Tree { process: 0xFEFF, tree: 6 },
            session_id: 7,
            signature: [9; 16],
        };
        let other = sync.answer_async(Status::PENDING, 1, 77);
        assert_eq!(other.route, Route::Async(77));
        for header in [sync, other] {
            let mut out = Vec::new();
            header.encode(&mut out);
            assert_eq!(out.len(), HEADER_BYTES);
            assert_eq!(Header::decode(&out), Ok(header));
            assert_eq!(Header::decode(&out[..63]), Err(BadHeader));
            out[4] = 63;
            assert_eq!(Header::decode(&out), Err(BadHeader));
            out[0] = 0xFF;
            assert_eq!(Header::decode(&out), Err(BadHeader));
        }
    }

    #[test]
    fn commands_have_their_numbers() {
        for (number, command) in Command::ALL.iter().enumerate() {
            assert_eq!(*command as usize, number);
            assert_eq!(Command::from_u16(*command as u16), Some(*command));
        }
        assert_eq!(Command::from_u16(0x13), None);
    }
}
