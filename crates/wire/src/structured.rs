//! Structured bodies (`x-ms-structured-body: XSM/1.0; properties=crc64`): a payload in numbered segments, each with its
//! CRC64, and the CRC64 of all of it at the end.
//!
//! ```text
//! message   version u8 = 1 | length of the whole message u64 | flags u16 = 1 (CRC64) | segments u16
//! segment   number u16, from 1 | length u64 | payload | CRC64 of the payload
//! end       CRC64 of the whole payload
//! ```
//!
//! Numbers are little-endian. Encoder and decoder take bytes in pieces of any size and hold none of the payload, so a
//! message of any length needs only a few bytes of memory.

use bytes::{Buf, Bytes};

use crate::checksum::Crc64;

/// The only form that exists, as the header names it. An answer repeats it.
pub const VALUE: &str = "XSM/1.0; properties=crc64";

const VERSION: u8 = 1;
const FLAGS_CRC64: u16 = 1;
const MESSAGE_HEADER_BYTES: usize = 13;
const SEGMENT_HEADER_BYTES: usize = 10;
const SUM_BYTES: usize = 8;
/// The length of the longest part that is not payload.
const PART_BYTES_MAX: usize = MESSAGE_HEADER_BYTES;
/// The length of the segments that we write, unless that would make more segments than can be counted.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;
const SEGMENTS_MAX: u64 = u16::MAX as u64;

/// Whether a header names this form. Spaces and case do not matter.
#[must_use]
pub fn is_known(header: &str) -> bool {
    let plain = |text: &str| text.bytes().filter(|byte| *byte != b' ').map(|byte| byte.to_ascii_lowercase()).collect();
    let (given, known): (Vec<u8>, Vec<u8>) = (plain(header), plain(VALUE));
    given == known
}

/// Why a message is refused. Nothing of it may be kept then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It has another version.
    Version(u8),
    /// Its length field differs from the length of the body.
    MessageLength { given: u64, expected: u64 },
    /// Its flags differ from the properties in the header.
    Flags(u16),
    /// There must be a segment, even in an empty message.
    NoSegments,
    /// Segments come in order, from 1 on.
    SegmentNumber { given: u16, expected: u16 },
    /// The segments together are longer or shorter than the announced payload.
    PayloadLength { expected: u64 },
    /// The CRC64 of a segment does not match.
    SegmentSum { number: u16, given: u64, computed: u64 },
    /// The CRC64 of each segment matches, but not that of the whole payload.
    MessageSum { given: u64, computed: u64 },
    /// It ends too early.
    Incomplete,
    /// Bytes follow after its end.
    TooLong,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Version(given) => write!(f, "version {given} of the message is not known"),
            Fault::MessageLength { given, expected } => {
                write!(f, "the message gives its length as {given}, but the body has {expected} bytes")
            }
            Fault::Flags(given) => write!(f, "the flags of the message are {given:#x}, and not those of crc64"),
            Fault::NoSegments => f.write_str("the message has no segments"),
            Fault::SegmentNumber { given, expected } => write!(f, "segment {given} came in place of {expected}"),
            Fault::PayloadLength { expected } => {
                write!(f, "the segments do not add up to the {expected} bytes that were announced")
            }
            Fault::SegmentSum { number, .. } => write!(f, "the CRC64 of segment {number} is not that of its bytes"),
            Fault::MessageSum { .. } => f.write_str("the CRC64 of the message is not that of its bytes"),
            Fault::Incomplete => f.write_str("the message ends too early"),
            Fault::TooLong => f.write_str("there are bytes after the end of the message"),
        }
    }
}

/// Decodes a message.
#[derive(Clone, Debug)]
pub struct Decoder {
    message_length: u64,
    payload_length: u64,
    /// How many bytes of payload are still to come.
    left: u64,
    segments: u16,
    /// The number of the current or last segment.
    segment: u16,
    segment_sum: Crc64,
    sum: Crc64,
    part: Part,
    /// The bytes of a part that is not complete yet.
    held: [u8; PART_BYTES_MAX],
    held_length: usize,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    MessageHeader,
    SegmentHeader,
    Payload { left: u64 },
    SegmentSum,
    MessageSum,
    End,
}

impl Decoder {
    /// A decoder for a message of `message_length` bytes with a payload of `payload_length`, as the request's headers
    /// say.
    #[must_use]
    pub fn new(message_length: u64, payload_length: u64) -> Decoder {
        Decoder {
            message_length,
            payload_length,
            left: payload_length,
            segments: 0,
            segment: 0,
            segment_sum: Crc64::new(),
            sum: Crc64::new(),
            part: Part::MessageHeader,
            held: [0; PART_BYTES_MAX],
            held_length: 0,
        }
    }

    /// Consumes bytes from the front of `bytes` until it has payload to return or `bytes` is empty. Payload is returned
    /// before its CRC64 has been checked: it is valid only when [`Decoder::finish`] succeeds.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Fault> {
        while !bytes.is_empty() {
            if let Part::Payload { left } = self.part {
                let payload = bytes.split_to(usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len()));
                self.segment_sum.update(&payload);
                self.sum.update(&payload);
                self.in_payload(left - payload.len() as u64);
                return Ok(Some(payload));
            }
            let wanted = self.part_length().ok_or(Fault::TooLong)?;
            let taken = (wanted - self.held_length).min(bytes.len());
            bytes.copy_to_slice(&mut self.held[self.held_length..self.held_length + taken]);
            self.held_length += taken;
            if self.held_length == wanted {
                self.held_length = 0;
                self.part_came()?;
            }
        }
        Ok(None)
    }

    /// Checks that the message was complete and valid.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.part == Part::End { Ok(()) } else { Err(Fault::Incomplete) }
    }

    fn part_length(&self) -> Option<usize> {
        match self.part {
            Part::MessageHeader => Some(MESSAGE_HEADER_BYTES),
            Part::SegmentHeader => Some(SEGMENT_HEADER_BYTES),
            Part::SegmentSum | Part::MessageSum => Some(SUM_BYTES),
            Part::Payload { .. } | Part::End => None,
        }
    }

    fn part_came(&mut self) -> Result<(), Fault> {
        let mut held = &self.held[..];
        match self.part {
            Part::MessageHeader => {
                let (version, length) = (held.get_u8(), held.get_u64_le());
                let (flags, segments) = (held.get_u16_le(), held.get_u16_le());
                self.message_header(version, length, flags, segments)
            }
            Part::SegmentHeader => {
                let (number, length) = (held.get_u16_le(), held.get_u64_le());
                self.segment_header(number, length)
            }
            Part::SegmentSum => self.segment_sum(held.get_u64_le()),
            Part::MessageSum => self.message_sum(held.get_u64_le()),
            Part::Payload { .. } | Part::End => Ok(()),
        }
    }

    fn message_header(&mut self, version: u8, length: u64, flags: u16, segments: u16) -> Result<(), Fault> {
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        if length != self.message_length {
            return Err(Fault::MessageLength { given: length, expected: self.message_length });
        }
        if flags != FLAGS_CRC64 {
            return Err(Fault::Flags(flags));
        }
        if segments == 0 {
            return Err(Fault::NoSegments);
        }
        self.segments = segments;
        self.part = Part::SegmentHeader;
        Ok(())
    }

    fn segment_header(&mut self, number: u16, length: u64) -> Result<(), Fault> {
        // The number of segments was checked, so this cannot overflow.
        let expected = self.segment + 1;
        if number != expected {
            return Err(Fault::SegmentNumber { given: number, expected });
        }
        let is_last = number == self.segments;
        if length > self.left || is_last && length != self.left {
            return Err(Fault::PayloadLength { expected: self.payload_length });
        }
        self.segment = number;
        self.segment_sum = Crc64::new();
        self.left -= length;
        self.in_payload(length);
        Ok(())
    }

    fn in_payload(&mut self, left: u64) {
        self.part = if left > 0 { Part::Payload { left } } else { Part::SegmentSum };
    }

    fn segment_sum(&mut self, given: u64) -> Result<(), Fault> {
        let computed = std::mem::take(&mut self.segment_sum).finish();
        if given != computed {
            return Err(Fault::SegmentSum { number: self.segment, given, computed });
        }
        self.part = if self.segment == self.segments { Part::MessageSum } else { Part::SegmentHeader };
        Ok(())
    }

    fn message_sum(&mut self, given: u64) -> Result<(), Fault> {
        let computed = std::mem::take(&mut self.sum).finish();
        if given != computed {
            return Err(Fault::MessageSum { given, computed });
        }
        self.part = Part::End;
        Ok(())
    }
}

/// Encodes a payload whose length is known.
#[derive(Clone, Debug)]
pub struct Encoder {
    length: u64,
    segment_length: u64,
    /// How many bytes of payload are still to come.
    left: u64,
    /// The number of the current or last segment.
    segment: u16,
    segment_left: u64,
    segment_sum: Crc64,
    sum: Crc64,
    begun: bool,
}

impl Encoder {
    /// An encoder for a payload of `length` bytes.
    #[must_use]
    pub fn new(length: u64) -> Encoder {
        Encoder::with_segments(length, SEGMENT_BYTES.max(length.div_ceil(SEGMENTS_MAX)))
    }

    fn with_segments(length: u64, segment_length: u64) -> Encoder {
        Encoder {
            length,
            segment_length,
            left: length,
            segment: 0,
            segment_left: 0,
            segment_sum: Crc64::new(),
            sum: Crc64::new(),
            begun: false,
        }
    }

    /// The length of the whole message.
    #[must_use]
    pub fn message_length(&self) -> u64 {
        let framing = (SEGMENT_HEADER_BYTES + SUM_BYTES) as u64 * self.segments();
        (MESSAGE_HEADER_BYTES + SUM_BYTES) as u64 + framing + self.length
    }

    fn segments(&self) -> u64 {
        self.length.div_ceil(self.segment_length).max(1)
    }

    /// The next pieces of the message, for the next bytes of the payload. Bytes beyond the payload's length are left
    /// out.
    pub fn next(&mut self, mut payload: Bytes) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(3);
        let mut framing = Vec::new();
        if !self.begun {
            self.begun = true;
            framing.push(VERSION);
            framing.extend_from_slice(&self.message_length().to_le_bytes());
            framing.extend_from_slice(&FLAGS_CRC64.to_le_bytes());
            framing.extend_from_slice(&(self.segments() as u16).to_le_bytes());
            self.begin_segment(&mut framing);
        }
        while !payload.is_empty() && self.segment_left > 0 {
            let taken = usize::try_from(self.segment_left).unwrap_or(usize::MAX).min(payload.len());
            let piece = payload.split_to(taken);
            self.segment_sum.update(&piece);
            self.sum.update(&piece);
            self.segment_left -= piece.len() as u64;
            self.left -= piece.len() as u64;
            push(&mut pieces, &mut framing);
            pieces.push(piece);
            if self.segment_left == 0 {
                self.end_segment(&mut framing);
            }
        }
        push(&mut pieces, &mut framing);
        pieces
    }

    fn begin_segment(&mut self, framing: &mut Vec<u8>) {
        self.segment += 1;
        self.segment_left = self.left.min(self.segment_length);
        framing.extend_from_slice(&self.segment.to_le_bytes());
        framing.extend_from_slice(&self.segment_left.to_le_bytes());
        if self.segment_left == 0 {
            self.end_segment(framing);
        }
    }

    fn end_segment(&mut self, framing: &mut Vec<u8>) {
        framing.extend_from_slice(&std::mem::take(&mut self.segment_sum).finish().to_le_bytes());
        if self.left > 0 {
            self.begin_segment(framing);
        } else {
            framing.extend_from_slice(&std::mem::take(&mut self.sum).finish().to_le_bytes());
        }
    }
}

fn push(pieces: &mut Vec<Bytes>, framing: &mut Vec<u8>) {
    if !framing.is_empty() {
        pieces.push(Bytes::from(std::mem::take(framing)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: &[u8], segment_length: u64) -> Vec<u8> {
        Encoder::with_segments(payload.len() as u64, segment_length).next(Bytes::copy_from_slice(payload)).concat()
    }

    /// The result of decoding the message in pieces that end at `cuts`.
    fn decode(message: &[u8], payload_length: u64, cuts: &[usize]) -> Result<Vec<u8>, Fault> {
        let mut decoder = Decoder::new(message.len() as u64, payload_length);
        let (mut payload, mut start) = (Vec::new(), 0);
        for end in cuts.iter().copied().chain([message.len()]) {
            let mut piece = Bytes::copy_from_slice(&message[start..end]);
            while let Some(bytes) = decoder.next(&mut piece)? {
                payload.extend_from_slice(&bytes);
            }
            start = end;
        }
        decoder.finish().map(|()| payload)
    }

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|n| (n * 31 + n / 7) as u8).collect()
    }

    /// Pseudorandom numbers, the same in every run.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    #[test]
    fn written_out() {
        let expected = [
            &[1][..],
            &47_u64.to_le_bytes(),
            &[1, 0, 1, 0],
            &[1, 0],
            &9_u64.to_le_bytes(),
            b"123456789",
            &0xAE8B_1486_0A79_9888_u64.to_le_bytes(),
            &0xAE8B_1486_0A79_9888_u64.to_le_bytes(),
        ]
        .concat();
        // The message is 48 bytes long; with another length in it the decoder says so.
        let mut right = expected.clone();
        right[1] = 48;
        assert_eq!(message(b"123456789", 1_000), right);
        assert_eq!(decode(&right, 9, &[]), Ok(b"123456789".to_vec()));
        assert_eq!(decode(&expected, 9, &[]), Err(Fault::MessageLength { given: 47, expected: 48 }));
    }

    #[test]
    fn an_empty_payload_is_one_empty_segment() {
        let empty = message(b"", 4);
        assert_eq!((empty.len(), empty[11]), (39, 1));
        assert_eq!(decode(&empty, 0, &[]), Ok(vec![]));
    }

    #[test]
    fn every_split_of_a_short_message_is_the_same() {
        for length in [0, 1, 3, 4, 5, 8, 11] {
            let payload = payload(length);
            let message = message(&payload, 4);
            for first in 0..=message.len() {
                for second in first..=message.len() {
                    let whole = decode(&message, length as u64, &[first, second]);
                    assert_eq!(whole.as_ref(), Ok(&payload), "{length} bytes, cut at {first} and {second}");
                }
            }
        }
    }

    #[test]
    fn any_pieces_in_and_out_are_the_same() {
        for seed in 0..300 {
            let mut random = numbers(seed);
            let payload = payload(random(5_000) as usize);
            let segment_length = 1 + random(700);
            let whole = message(&payload, segment_length);
            let mut encoder = Encoder::with_segments(payload.len() as u64, segment_length);
            assert_eq!(encoder.message_length(), whole.len() as u64);
            let mut rest = Bytes::from(payload.clone());
            let mut pieces = encoder.next(Bytes::new()).concat();
            while !rest.is_empty() {
                let piece = rest.split_to((1 + random(900) as usize).min(rest.len()));
                pieces.extend(encoder.next(piece).concat());
            }
            assert_eq!(pieces, whole, "seed {seed}");

            let mut cuts: Vec<usize> = (0..random(9)).map(|_| random(whole.len() as u64 + 1) as usize).collect();
            cuts.sort_unstable();
            assert_eq!(decode(&whole, payload.len() as u64, &cuts), Ok(payload), "seed {seed}");
        }
    }

    /// A message with a changed byte, a truncated one and one with more bytes are always refused.
    #[test]
    fn no_damage_passes() {
        let payload = payload(11);
        let good = message(&payload, 4);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                for cuts in [&[][..], &[at], &[at.min(13), at]] {
                    assert!(decode(&bad, 11, cuts).is_err(), "byte {at}, bit {bit}");
                }
            }
        }
        for length in 0..good.len() {
            let mut decoder = Decoder::new(good.len() as u64, 11);
            let mut piece = Bytes::copy_from_slice(&good[..length]);
            while decoder.next(&mut piece).unwrap().is_some() {}
            assert_eq!(decoder.finish(), Err(Fault::Incomplete), "{length} bytes");
        }
        let mut decoder = Decoder::new(good.len() as u64, 11);
        let mut long = Bytes::from([&good[..], b"x"].concat());
        let fault = loop {
            match decoder.next(&mut long) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(fault) => break Some(fault),
            }
        };
        assert_eq!(fault, Some(Fault::TooLong));
    }

    #[test]
    fn each_fault() {
        let good = message(&payload(11), 4);
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = good.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            decode(&bad, 11, &[]).unwrap_err()
        };
        assert_eq!(with(0, &[2]), Fault::Version(2));
        assert_eq!(with(9, &[0]), Fault::Flags(0));
        assert_eq!(with(9, &[3]), Fault::Flags(3));
        assert_eq!(with(11, &[0]), Fault::NoSegments);
        assert_eq!(with(13, &[2]), Fault::SegmentNumber { given: 2, expected: 1 });
        assert_eq!(with(15, &u64::MAX.to_le_bytes()), Fault::PayloadLength { expected: 11 });
        assert_eq!(with(11, &[1]), Fault::PayloadLength { expected: 11 });
        assert!(matches!(with(23, &[255]), Fault::SegmentSum { number: 1, .. }));
        assert!(matches!(with(good.len() - 1, &[0]), Fault::MessageSum { .. }));
        assert_eq!(decode(&good, 10, &[]), Err(Fault::PayloadLength { expected: 10 }));
        assert_eq!(decode(&good, 12, &[]), Err(Fault::PayloadLength { expected: 12 }));
    }

    /// Any bytes are decoded or refused, and the result does not depend on how they are split.
    #[test]
    fn noise_is_refused_in_the_same_way_however_it_comes() {
        for seed in 0..2_000 {
            let mut random = numbers(seed);
            let mut noise: Vec<u8> = (0..random(80)).map(|_| random(256) as u8).collect();
            if seed % 2 == 0 && noise.len() >= 13 {
                let good = [&[1][..], &(noise.len() as u64).to_le_bytes(), &[1, 0, 1, 0]].concat();
                noise[..13].copy_from_slice(&good);
            }
            let mut cuts: Vec<usize> = (0..3).map(|_| random(noise.len() as u64 + 1) as usize).collect();
            cuts.sort_unstable();
            assert_eq!(decode(&noise, 20, &[]), decode(&noise, 20, &cuts), "seed {seed}");
        }
    }

    #[test]
    fn segments_can_be_counted_however_long_the_payload_is() {
        for length in [0, 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, SEGMENT_BYTES * SEGMENTS_MAX + 1, 190 << 40] {
            assert!((1..=SEGMENTS_MAX).contains(&Encoder::new(length).segments()), "{length}");
        }
    }

    #[test]
    fn the_form_that_there_is() {
        assert!(is_known(VALUE) && is_known("xsm/1.0;properties=CRC64"));
        for other in ["", "XSM/1.0", "XSM/2.0; properties=crc64", "XSM/1.0; properties=crc64, other"] {
            assert!(!is_known(other), "{other}");
        }
    }
}
