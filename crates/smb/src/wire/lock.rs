//! LOCK: locks and unlocks ranges of a file (MS-SMB2 2.2.26).

pub use super::Empty as Response;
use super::{FileId, body};
use crate::status::{Result, Status};

const SIZE: u16 = 48;
const ELEMENT_BYTES: usize = 24;

/// Ranges in one request. A frame would have room for hundreds of thousands; an open may hold 4,096 locks.
pub const LOCKS_PER_REQUEST_MAX: usize = 4_096;

/// What is done with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Lock {
        exclusive: bool,
        fail_immediately: bool,
    },
    Unlock,
    /// Flags that contradict each other. What they are answered with depends on what comes before them.
    Invalid,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub offset: u64,
    pub length: u64,
    pub action: Action,
}

/// The request: all locks or all unlocks, or one that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub file_id: FileId,
    /// Four bits.
    pub sequence_number: u8,
    /// The place of the number, 1 to 64; 0 is none.
    pub sequence_index: u32,
    pub locks: Vec<Element>,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for no range.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let count = usize::from(reader.u16()?);
        let sequence = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        if count == 0 || count > LOCKS_PER_REQUEST_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let elements = reader.take(count * ELEMENT_BYTES)?;
        let locks = elements.chunks_exact(ELEMENT_BYTES).map(element).collect::<Result<Vec<Element>>>()?;
        Ok(Request { file_id, sequence_number: (sequence & 0xF) as u8, sequence_index: sequence >> 4, locks })
    }
}

fn element(bytes: &[u8]) -> Result<Element> {
    let mut reader = super::cursor::Reader::new(bytes);
    let offset = reader.u64()?;
    let length = reader.u64()?;
    let action = match reader.u32()? {
        0x01 => Action::Lock { exclusive: false, fail_immediately: false },
        0x11 => Action::Lock { exclusive: false, fail_immediately: true },
        0x02 => Action::Lock { exclusive: true, fail_immediately: false },
        0x12 => Action::Lock { exclusive: true, fail_immediately: true },
        0x04 => Action::Unlock,
        _ => Action::Invalid,
    };
    Ok(Element { offset, length, action })
}
