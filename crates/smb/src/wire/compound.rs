//! Compounds: messages one after the other in a frame, each 8-byte aligned (MS-SMB2 3.3.5.2.7, 3.3.4.1.3).

use bytes::Bytes;

use super::cursor::Put;
use super::header::{BadHeader, HEADER_BYTES, Header};

/// Requests in one frame. Clients send three or four; the limit keeps one frame from holding all places of a connection.
pub const COMPOUND_REQUESTS_MAX: usize = 64;

/// One message of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub header: Header,
    /// Header and body, and the padding before the next message: what is signed. Offsets in bodies count from its start.
    pub bytes: Bytes,
}

/// The messages of a frame, in order.
///
/// # Errors
/// When a header is bad, a distance is not aligned or leads out of the frame, or there are too many: the connection ends.
pub fn split(frame: &Bytes) -> Result<Vec<Message>, BadHeader> {
    let mut messages = Vec::with_capacity(1);
    let mut rest = frame.clone();
    loop {
        let header = Header::decode(&rest)?;
        if messages.len() == COMPOUND_REQUESTS_MAX {
            return Err(BadHeader);
        }
        let next = header.next as usize;
        if next == 0 {
            messages.push(Message { header, bytes: rest });
            return Ok(messages);
        }
        if !next.is_multiple_of(8) || next < HEADER_BYTES || next >= rest.len() {
            return Err(BadHeader);
        }
        let bytes = rest.split_to(next);
        messages.push(Message { header, bytes });
    }
}

/// One answer before it is signed or encrypted: what was encoded, and data that follows it without being copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Header and body.
    pub head: Vec<u8>,
    /// The data of a READ.
    pub data: Vec<Bytes>,
}

impl Outgoing {
    /// An answer of `header` and `body`.
    #[must_use]
    pub fn new(header: &Header, body: &super::Response) -> Outgoing {
        let mut head = Vec::with_capacity(HEADER_BYTES + 96);
        header.encode(&mut head);
        let data = body.encode(&mut head);
        Outgoing { head, data }
    }

    /// The length of both.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.data.iter().map(Bytes::len).sum::<usize>()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Both as slices, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.head[..]).chain(self.data.iter().map(|data| &data[..]))
    }

    /// Both in one piece.
    #[must_use]
    pub fn joined(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.parts().for_each(|part| out.extend_from_slice(part));
        out
    }
}

/// Makes a compound of answers: aligns all but the last and says in each how far the next one is. Sign them afterwards.
pub fn join(answers: &mut [Outgoing]) {
    let Some((_, others)) = answers.split_last_mut() else { return };
    for answer in others {
        let over = answer.len() % 8;
        if over != 0 {
            let padding = 8 - over;
            match answer.data.is_empty() {
                true => answer.head.put_zeros(padding),
                false => answer.data.push(Bytes::from_static(&[0; 7]).slice(..padding)),
            }
        }
        let next = u32::try_from(answer.len()).unwrap_or(0);
        answer.head.replace(20, &next.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::{Command, request};
    use super::super::{Response, read};
    use super::*;

    fn answer(data: &'static [u8]) -> Outgoing {
        let body = Response::Read(read::Response { data: vec![Bytes::from_static(data)], remaining: 0 });
        Outgoing::new(&request(Command::Read), &body)
    }

    #[test]
    fn what_is_joined_is_split_again() {
        let mut answers = [answer(b"abc"), answer(b""), answer(b"12345678"), answer(b"x")];
        join(&mut answers);
        let frame: Vec<u8> = answers.iter().flat_map(Outgoing::joined).collect();
        let messages = split(&frame.into()).unwrap();
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[0].header.next % 8, 0);
        assert_eq!(&messages[0].bytes[80..83], b"abc");
        assert_eq!(&messages[2].bytes[80..], b"12345678");
        assert_eq!(&messages[3].bytes[80..], b"x");
    }

    #[test]
    fn distances_stay_within_the_frame() {
        let frame = |next: u32| {
            let mut frame = Vec::new();
            Header { next, ..request(Command::Echo) }.encode(&mut frame);
            request(Command::Echo).encode(&mut frame);
            Bytes::from(frame)
        };
        assert_eq!(split(&frame(64)).map(|messages| messages.len()), Ok(2));
        for next in [8, 63, 65, 128, 136, u32::MAX] {
            assert_eq!(split(&frame(next)), Err(BadHeader), "{next}");
        }
    }

    #[test]
    fn a_frame_has_a_limited_number_of_requests() {
        let mut frame = Vec::new();
        for _ in 0..=COMPOUND_REQUESTS_MAX {
            Header { next: 64, ..request(Command::Echo) }.encode(&mut frame);
        }
        assert_eq!(split(&frame.into()), Err(BadHeader));
    }
}
