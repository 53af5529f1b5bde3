//! Records as bytes, one after the other in a chunk. The bytes never leave the process, so their form has no version.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use concurrency::{Lease, LeaseDuration, LeaseId, MessageId, Seen, SeenLease, SeenMessage, Timestamp, Until};

use crate::record::{Caller, Judged, PATH_BYTES_MAX, Record, Sent, Service, TEXT_BYTES_MAX, cut};

/// So many messages of one request are kept: as many as one request can take.
const MESSAGES_MAX: usize = 32;
/// No record is longer: its path, thirteen texts, 32 messages of 32 bytes, and less than 300 bytes of numbers.
pub const RECORD_BYTES_MAX: usize = 8 * 1024;
const NO_TEXT: u16 = u16::MAX;

/// Appends a record with its length before it.
pub fn put<S: AsRef<str>>(out: &mut Vec<u8>, record: &Record<S>) {
    let begin = out.len();
    out.extend([0; 4]);
    let mut to = Writer(out);
    to.number(record.seq);
    to.number(record.at.0);
    to.0.extend(record.took_us.to_le_bytes());
    to.0.extend(record.request_id);
    to.number(record.connection);
    to.0.extend(record.status.to_le_bytes());
    to.0.push(record.service as u8);
    to.0.extend(match record.caller {
        Caller::Unknown => [0, 0],
        Caller::Anonymous => [1, 0],
        Caller::Key(key) => [2, key],
        Caller::Signature => [3, 0],
        Caller::Token => [4, 0],
        Caller::Console => [5, 0],
    });
    to.0.push(match record.judged {
        Judged::Door => 0,
        Judged::Commit => 1,
    });
    to.peer(record.peer);
    to.text(Some(&record.path), PATH_BYTES_MAX);
    let Sent {
        if_match,
        if_none_match,
        if_modified_since,
        if_unmodified_since,
        if_tags,
        lease_action,
        signed_at,
        lease,
    } = &record.sent;
    let texts = [
        Some(&record.op),
        Some(&record.account),
        record.client_request_id.as_ref(),
        record.trace.as_ref(),
        record.agent.as_ref(),
        record.code.as_ref(),
        record.etag.as_ref(),
        if_match.as_ref(),
        if_none_match.as_ref(),
        if_modified_since.as_ref(),
        if_unmodified_since.as_ref(),
        if_tags.as_ref(),
        lease_action.as_ref(),
    ];
    for text in texts {
        to.text(text, TEXT_BYTES_MAX);
    }
    to.number(signed_at.map_or(0, |at| at.0.saturating_add(1)));
    to.lease_id(*lease);
    to.lease_id(record.lease_given);
    to.seen(record.seen.as_ref());
    let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// The records of a chunk, oldest first.
pub fn records(chunk: &[u8]) -> impl Iterator<Item = Record> + '_ {
    let mut from = Reader(chunk);
    std::iter::from_fn(move || {
        let length = u32::from_le_bytes(from.array()?);
        let mut one = Reader(from.take(usize::try_from(length).ok()?)?);
        one.record()
    })
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text<S: AsRef<str>>(&mut self, text: Option<&S>, most: usize) {
        let Some(text) = text else { return self.0.extend(NO_TEXT.to_le_bytes()) };
        let text = cut(text.as_ref(), most);
        self.0.extend((text.len() as u16).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn lease_id(&mut self, id: Option<LeaseId>) {
        self.0.push(u8::from(id.is_some()));
        if let Some(id) = id {
            self.0.extend(id.0);
        }
    }

    fn peer(&mut self, peer: Option<SocketAddr>) {
        let Some(peer) = peer else { return self.0.push(0) };
        match peer.ip() {
            IpAddr::V4(ip) => {
                self.0.push(4);
                self.0.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                self.0.push(6);
                self.0.extend(ip.octets());
            }
        }
        self.0.extend(peer.port().to_le_bytes());
    }

    fn seen(&mut self, seen: Option<&Seen>) {
        let Some(Seen { etag, lease, messages }) = seen else { return self.0.push(0) };
        self.0.push(1);
        self.text(etag.as_ref(), TEXT_BYTES_MAX);
        match lease {
            None => self.0.push(0),
            Some(SeenLease { lease, now }) => {
                self.0.push(1);
                self.number(now.0);
                self.lease(lease);
            }
        }
        let messages = &messages[..messages.len().min(MESSAGES_MAX)];
        self.0.push(messages.len() as u8);
        for SeenMessage { id, visible, taken } in messages {
            self.0.extend(id.0);
            self.number(visible.0);
            self.number(*taken);
        }
    }

    fn lease(&mut self, lease: &Lease) {
        match lease {
            Lease::Available => self.0.push(0),
            Lease::Leased { id, duration, until } => {
                self.0.push(1);
                self.0.extend(id.0);
                self.0.push(match duration {
                    LeaseDuration::Infinite => 0,
                    LeaseDuration::Seconds(seconds) => *seconds,
                });
                self.number(match until {
                    Until::Forever => u64::MAX,
                    Until::At(end) => end.0,
                });
            }
            Lease::Breaking { id, until } => {
                self.0.push(2);
                self.0.extend(id.0);
                self.number(until.0);
            }
            Lease::Broken { id } => {
                self.0.push(3);
                self.0.extend(id.0);
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// `Some(None)`: there is no text here.
    #[expect(clippy::option_option, reason = "bytes may be missing, and so may the text")]
    fn text(&mut self) -> Option<Option<String>> {
        let length = u16::from_le_bytes(self.array()?);
        if length == NO_TEXT {
            return Some(None);
        }
        let bytes = self.take(length.into())?;
        Some(Some(String::from_utf8_lossy(bytes).into_owned()))
    }

    #[expect(clippy::option_option, reason = "bytes may be missing, and so may the id")]
    fn lease_id(&mut self) -> Option<Option<LeaseId>> {
        if self.byte()? == 0 { Some(None) } else { self.array().map(LeaseId).map(Some) }
    }

    #[expect(clippy::option_option, reason = "bytes may be missing, and so may the peer")]
    fn peer(&mut self) -> Option<Option<SocketAddr>> {
        let ip = match self.byte()? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            _ => return Some(None),
        };
        Some(Some(SocketAddr::new(ip, u16::from_le_bytes(self.array()?))))
    }

    #[expect(clippy::option_option, reason = "bytes may be missing, and so may what was seen")]
    fn seen(&mut self) -> Option<Option<Seen>> {
        if self.byte()? == 0 {
            return Some(None);
        }
        let etag = self.text()?;
        let lease = if self.byte()? == 0 {
            None
        } else {
            let now = Timestamp(self.number()?);
            Some(SeenLease { lease: self.lease()?, now })
        };
        let mut messages = Vec::new();
        for _ in 0..self.byte()? {
            let id = MessageId(self.array()?);
            messages.push(SeenMessage { id, visible: Timestamp(self.number()?), taken: self.number()? });
        }
        Some(Some(Seen { etag, lease, messages }))
    }

    fn lease(&mut self) -> Option<Lease> {
        Some(match self.byte()? {
            1 => {
                let id = LeaseId(self.array()?);
                let duration = match self.byte()? {
                    0 => LeaseDuration::Infinite,
                    seconds => LeaseDuration::Seconds(seconds),
                };
                let until = match self.number()? {
                    u64::MAX => Until::Forever,
                    end => Until::At(Timestamp(end)),
                };
                Lease::Leased { id, duration, until }
            }
            2 => Lease::Breaking { id: LeaseId(self.array()?), until: Timestamp(self.number()?) },
            3 => Lease::Broken { id: LeaseId(self.array()?) },
            _ => Lease::Available,
        })
    }

    fn record(&mut self) -> Option<Record> {
        let (seq, at) = (self.number()?, Timestamp(self.number()?));
        let took_us = u32::from_le_bytes(self.array()?);
        let request_id = self.array()?;
        let connection = self.number()?;
        let status = u16::from_le_bytes(self.array()?);
        let service = *Service::ALL.get(usize::from(self.byte()?))?;
        let caller = match self.array()? {
            [1, _] => Caller::Anonymous,
            [2, key] => Caller::Key(key),
            [3, _] => Caller::Signature,
            [4, _] => Caller::Token,
            [5, _] => Caller::Console,
            [_, _] => Caller::Unknown,
        };
        let judged = if self.byte()? == 0 { Judged::Door } else { Judged::Commit };
        let peer = self.peer()?;
        let path = self.text()?.unwrap_or_default();
        let (op, account) = (self.text()?.unwrap_or_default(), self.text()?.unwrap_or_default());
        let (client_request_id, trace, agent) = (self.text()?, self.text()?, self.text()?);
        let (code, etag) = (self.text()?, self.text()?);
        let sent = Sent {
            if_match: self.text()?,
            if_none_match: self.text()?,
            if_modified_since: self.text()?,
            if_unmodified_since: self.text()?,
            if_tags: self.text()?,
            lease_action: self.text()?,
            signed_at: self.number()?.checked_sub(1).map(Timestamp),
            lease: self.lease_id()?,
        };
        let lease_given = self.lease_id()?;
        let seen = self.seen()?;
        Some(Record {
            seq,
            at,
            took_us,
            request_id,
            client_request_id,
            trace,
            service,
            op,
            account,
            path,
            caller,
            peer,
            connection,
            agent,
            sent,
            seen,
            judged,
            status,
            code,
            etag,
            lease_given,
        })
    }
}
