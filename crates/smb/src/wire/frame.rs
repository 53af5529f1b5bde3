//! Frames of the direct TCP transport: four bytes, of which the last three are the length, big-endian (MS-SMB2 2.1).

/// Bytes of the prefix.
pub const FRAME_PREFIX_BYTES: usize = 4;

/// The largest message that is taken: a write of 8 MiB (or as much input of an IOCTL) with headers, in a compound, encrypted.
pub const FRAME_BYTES_MAX: usize = (8 << 20) + (256 << 10);

/// The largest message before a logon: NEGOTIATE and SESSION_SETUP, whose tokens have 64 KiB at most.
pub const FRAME_BYTES_MAX_BEFORE_LOGON: usize = 68 << 10;

/// What follows a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message of so many bytes.
    Message(usize),
    /// A NetBIOS keep-alive: nothing follows, and it has no answer.
    KeepAlive,
}

/// A prefix after which the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// The first byte is no session message.
    NoMessage,
    /// The message is longer than the limit, or shorter than any message.
    Length,
}

/// Reads the four bytes in front of a message.
///
/// # Errors
/// When the connection must end.
pub fn decode(prefix: [u8; FRAME_PREFIX_BYTES], max: usize) -> Result<Frame, BadFrame> {
    let length = u32::from_be_bytes([0, prefix[1], prefix[2], prefix[3]]) as usize;
    match prefix[0] {
        0x00 if length == 0 || length > max => Err(BadFrame::Length),
        0x00 => Ok(Frame::Message(length)),
        0x85 if length == 0 => Ok(Frame::KeepAlive),
        _ => Err(BadFrame::NoMessage),
    }
}

/// The four bytes in front of a message of `length` bytes.
///
/// # Panics
/// For a message that has no room in a frame: answers are split long before.
#[must_use]
pub fn prefix(length: usize) -> [u8; FRAME_PREFIX_BYTES] {
    assert!(length < 1 << 24, "answers are bounded far below the frame's limit");
    let length = u32::try_from(length).unwrap_or(0).to_be_bytes();
    [0, length[1], length[2], length[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_big_endian_and_bounded() {
        assert_eq!(decode([0, 0, 1, 2], 1000), Ok(Frame::Message(258)));
        assert_eq!(decode([0, 1, 0, 0], 1000), Err(BadFrame::Length));
        assert_eq!(decode([0, 0, 0, 0], 1000), Err(BadFrame::Length));
        assert_eq!(decode([0x85, 0, 0, 0], 1000), Ok(Frame::KeepAlive));
        assert_eq!(decode([0x81, 0, 0, 68], 1000), Err(BadFrame::NoMessage));
        assert_eq!(decode(prefix(258), 1000), Ok(Frame::Message(258)));
    }
}
