//! DCE/RPC packets (C706 chapter 12, MS-RPCE 2.2.2): bind, request, answer, fault; fragments in and out.

use super::ndr::BadStub;
use super::srvsvc::{self, Server};
use crate::status::{Result, Status};
use crate::wire::cursor::{Put, Reader, Short, len16, len32};

const HEADER_BYTES: usize = 16;
const RESPONSE_HEADER_BYTES: usize = 24;

/// Bytes of a packet in either direction.
pub const FRAGMENT_BYTES_MAX: usize = 4_280;
/// The smallest that a client must be able to take (C706 12.6.3.1).
const FRAGMENT_BYTES_MIN: usize = 1_432;
/// Bytes of the arguments of a call, over all its fragments.
pub const CALL_BYTES_MAX: usize = 64 << 10;
/// Interfaces in a bind, and transfer syntaxes of each.
pub const CONTEXTS_MAX: usize = 16;
const SYNTAXES_MAX: usize = 16;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 2;
const FAULT: u8 = 3;
const BIND: u8 = 11;
const BIND_ACK: u8 = 12;
const ALTER_CONTEXT: u8 = 14;
const ALTER_CONTEXT_RESPONSE: u8 = 15;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const OBJECT: u8 = 0x80;

/// 4B324FC8-1670-01D3-1278-5A47BF6EE188, version 3.0.
const SRVSVC: [u8; 20] =
    [0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88, 3, 0, 0, 0];
/// 8A885D04-1CEB-11C9-9FE8-08002B104860, version 2.0.
const NDR32: [u8; 20] =
    [0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60, 2, 0, 0, 0];

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// `nca_s_op_rng_error`
    UnknownCall = 0x1C01_0002,
    /// `nca_s_unk_if`
    UnknownInterface = 0x1C01_0003,
    /// `nca_s_proto_error`
    Protocol = 0x1C01_000B,
    /// `RPC_X_BAD_STUB_DATA`
    BadStub = 0x6F7,
}

impl From<BadStub> for Fault {
    fn from(BadStub: BadStub) -> Fault {
        Fault::BadStub
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    kind: u8,
    flags: u8,
    call_id: u32,
    body: Vec<u8>,
}

/// Bytes that have arrived, until they are packets.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Takes bytes.
    ///
    /// # Errors
    /// PIPE_DISCONNECTED for more than a WRITE of packets would bring.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.len() + bytes.len() > CALL_BYTES_MAX + FRAGMENT_BYTES_MAX {
            return Err(Status::PIPE_DISCONNECTED);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether the next packet is a call, if it is complete.
    ///
    /// # Errors
    /// PIPE_DISCONNECTED when the bytes are no packet that we read: another version, big-endian, signed, or too long.
    pub fn next_is_call(&self) -> Result<Option<bool>> {
        Ok(self.next_length()?.map(|_| self.bytes.get(2) == Some(&REQUEST)))
    }

    /// The length of the next packet, if it is complete.
    fn next_length(&self) -> Result<Option<usize>> {
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes([header[8], header[9]]));
        let signed = header[10..12] != [0, 0];
        if header[0] != 5 || header[4] != 0x10 || signed || !(HEADER_BYTES..=FRAGMENT_BYTES_MAX).contains(&length) {
            return Err(Status::PIPE_DISCONNECTED);
        }
        Ok((self.bytes.len() >= length).then_some(length))
    }

    /// The next packet, if it is complete.
    ///
    /// # Errors
    /// Those of [`Incoming::next_is_call`].
    pub fn next_packet(&mut self) -> Result<Option<Packet>> {
        let Some(length) = self.next_length()? else { return Ok(None) };
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let (kind, flags) = (header[2], header[3]);
        let call_id = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        let body = self.bytes[HEADER_BYTES..length].to_vec();
        self.bytes.drain(..length);
        Ok(Some(Packet { kind, flags, call_id, body }))
    }
}

/// What was agreed on, and the call that is on its way.
#[derive(Debug, Default)]
pub struct Binding {
    contexts: Vec<u16>,
    /// The largest packet that the client takes.
    fragment_bytes: usize,
    call: Option<Call>,
}

#[derive(Debug)]
struct Call {
    id: u32,
    context: u16,
    opnum: u16,
    stub: Vec<u8>,
}

impl Binding {
    /// Answers a packet.
    ///
    /// # Errors
    /// PIPE_DISCONNECTED for packets that a client does not send, or not now.
    pub fn answer(&mut self, packet: &Packet, server: &Server<'_>) -> Result<Vec<Vec<u8>>> {
        match packet.kind {
            BIND => Ok(vec![self.bind(packet, BIND_ACK).map_err(|_| Status::PIPE_DISCONNECTED)?]),
            ALTER_CONTEXT => {
                Ok(vec![self.bind(packet, ALTER_CONTEXT_RESPONSE).map_err(|_| Status::PIPE_DISCONNECTED)?])
            }
            REQUEST => self.request(packet, server),
            _ => Err(Status::PIPE_DISCONNECTED),
        }
    }

    fn bind(&mut self, packet: &Packet, answer: u8) -> std::result::Result<Vec<u8>, Short> {
        let mut reader = Reader::new(&packet.body);
        reader.skip(2)?;
        let taken = usize::from(reader.u16()?);
        self.fragment_bytes = taken.clamp(FRAGMENT_BYTES_MIN, FRAGMENT_BYTES_MAX);
        reader.skip(4)?;
        let count = usize::from(reader.u8()?);
        reader.skip(3)?;
        if count > CONTEXTS_MAX {
            return Err(Short);
        }
        let mut body = Vec::new();
        body.put_u16(len16(FRAGMENT_BYTES_MAX));
        body.put_u16(len16(FRAGMENT_BYTES_MAX));
        body.put_u32(1);
        const ADDRESS: &[u8] = b"\\PIPE\\srvsvc\0";
        body.put_u16(len16(ADDRESS.len()));
        body.put(ADDRESS);
        body.align(0, 4);
        body.put_u8(count as u8);
        body.put_zeros(3);
        for _ in 0..count {
            self.context(&mut reader, &mut body)?;
        }
        Ok(packed(answer, FIRST | LAST, packet.call_id, &body))
    }

    /// Takes or refuses one interface: srvsvc in NDR32, and nothing else.
    fn context(&mut self, reader: &mut Reader<'_>, body: &mut Vec<u8>) -> std::result::Result<(), Short> {
        const REFUSED: u16 = 2;
        const NO_SUCH_INTERFACE: u16 = 1;
        const NO_SUCH_SYNTAX: u16 = 2;
        let id = reader.u16()?;
        let syntaxes = usize::from(reader.u8()?);
        reader.skip(1)?;
        if syntaxes > SYNTAXES_MAX {
            return Err(Short);
        }
        let interface: [u8; 20] = reader.array()?;
        let mut ndr32 = false;
        for _ in 0..syntaxes {
            ndr32 |= reader.array()? == NDR32;
        }
        let (result, reason, syntax) = match (interface == SRVSVC, ndr32) {
            (true, true) => (0, 0, NDR32),
            (false, _) => (REFUSED, NO_SUCH_INTERFACE, [0; 20]),
            (true, false) => (REFUSED, NO_SUCH_SYNTAX, [0; 20]),
        };
        if result == 0 && !self.contexts.contains(&id) && self.contexts.len() < CONTEXTS_MAX {
            self.contexts.push(id);
        }
        body.put_u16(result);
        body.put_u16(reason);
        body.put(&syntax);
        Ok(())
    }

    fn request(&mut self, packet: &Packet, server: &Server<'_>) -> Result<Vec<Vec<u8>>> {
        self.fragment(packet).map_err(|_| Status::PIPE_DISCONNECTED)?;
        if packet.flags & LAST == 0 {
            return Ok(Vec::new());
        }
        let call = self.call.take().ok_or(Status::PIPE_DISCONNECTED)?;
        let result = match self.contexts.contains(&call.context) {
            true => srvsvc::call(call.opnum, &call.stub, server),
            false => Err(Fault::UnknownInterface),
        };
        Ok(match result {
            Ok(stub) => self.responses(&call, &stub),
            Err(fault) => vec![faulted(&call, fault)],
        })
    }

    /// Adds a fragment to the call that it belongs to.
    fn fragment(&mut self, packet: &Packet) -> std::result::Result<(), Short> {
        let mut reader = Reader::new(&packet.body);
        reader.skip(4)?;
        let context = reader.u16()?;
        let opnum = reader.u16()?;
        if packet.flags & OBJECT != 0 {
            reader.skip(16)?;
        }
        if packet.flags & FIRST != 0 {
            self.call = Some(Call { id: packet.call_id, context, opnum, stub: Vec::new() });
        }
        let call = self.call.as_mut().filter(|call| call.id == packet.call_id).ok_or(Short)?;
        if call.stub.len() + reader.rest().len() > CALL_BYTES_MAX {
            return Err(Short);
        }
        call.stub.extend_from_slice(reader.rest());
        Ok(())
    }

    /// The results in as many packets as the client needs.
    fn responses(&self, call: &Call, stub: &[u8]) -> Vec<Vec<u8>> {
        let room = self.fragment_bytes.max(FRAGMENT_BYTES_MIN) - RESPONSE_HEADER_BYTES;
        let pieces: Vec<&[u8]> = if stub.is_empty() { vec![stub] } else { stub.chunks(room).collect() };
        let last = pieces.len() - 1;
        let packet = |(place, piece): (usize, &&[u8])| {
            let flags = if place == 0 { FIRST } else { 0 } | if place == last { LAST } else { 0 };
            let mut body = Vec::with_capacity(8 + piece.len());
            body.put_u32(len32(piece.len()));
            body.put_u16(call.context);
            body.put_u16(0);
            body.put(piece);
            packed(RESPONSE, flags, call.id, &body)
        };
        pieces.iter().enumerate().map(packet).collect()
    }
}

fn faulted(call: &Call, fault: Fault) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u32(0);
    body.put_u16(call.context);
    body.put_u16(0);
    body.put_u32(fault as u32);
    body.put_u32(0);
    packed(FAULT, FIRST | LAST, call.id, &body)
}

fn packed(kind: u8, flags: u8, call_id: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![5, 0, kind, flags, 0x10, 0, 0, 0];
    out.put_u16(len16(HEADER_BYTES + body.len()));
    out.put_u16(0);
    out.put_u32(call_id);
    out.put(body);
    out
}

#[cfg(any(test, feature = "testing"))]
pub(crate) mod client {
    use super::*;

    #[cfg(test)]
    pub(crate) const NDR64: [u8; 20] =
        [0x33, 0x05, 0x71, 0x71, 0xBA, 0xBE, 0x37, 0x49, 0x83, 0x19, 0xB5, 0xDB, 0xEF, 0x9C, 0xCC, 0x36, 1, 0, 0, 0];

    /// A bind of contexts 0, 1, ..., each of srvsvc with one syntax.
    pub(crate) fn bind(syntaxes: &[[u8; 20]]) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u16(4280);
        body.put_u16(4280);
        body.put_u32(0);
        body.put_u32(syntaxes.len() as u32);
        for (id, syntax) in syntaxes.iter().enumerate() {
            body.put_u16(id as u16);
            body.put_u16(1);
            body.put(&SRVSVC);
            body.put(syntax);
        }
        packed(BIND, FIRST | LAST, 1, &body)
    }

    pub(crate) fn ndr32() -> [u8; 20] {
        NDR32
    }

    pub(crate) fn request(context: u16, opnum: u16, stub: &[u8], flags: u8) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u32(len32(stub.len()));
        body.put_u16(context);
        body.put_u16(opnum);
        body.put(stub);
        packed(REQUEST, flags, 2, &body)
    }
}
