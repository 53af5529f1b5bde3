//! How the names of metadata are spelled.
//!
//! Header names have no case for hyper: it reads and writes them in small letters. For Azure the names of metadata are
//! equal in any case, but they are kept and given back as they were written, and some clients look for exactly that. So
//! the stream looks at each head on its way in, and changes letters (never lengths) in heads on their way out.
//!
//! Between the stream and a service the spelling travels in the header [`NAMES`]: a list of the names that have capitals.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::{memchr_iter, memmem};

use crate::limits::CONNECTION_BUFFER_BYTES;

/// Carries the spelling to a service and back. It never comes from a client and never goes to one.
pub const NAMES: HeaderName = HeaderName::from_static(wire::metadata::SPELLED_NAMES);
const PREFIX: &[u8] = b"x-ms-meta-";

/// Names on their way from an answer to the stream.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    /// Most heads have none; this tells without a lock.
    any: AtomicBool,
    names: Mutex<Vec<u8>>,
}

impl Spelling {
    /// A comma-separated list.
    fn put(&self, names: Vec<u8>) {
        self.any.store(!names.is_empty(), Ordering::Relaxed);
        *self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = names;
    }

    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn get(&self) -> Option<Vec<u8>> {
        let names = || self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        self.is_any().then(names)
    }

    fn clear(&self) {
        self.any.store(false, Ordering::Relaxed);
    }

    /// Hears from a service how to spell the answer.
    pub(crate) fn hear(&self, headers: &mut HeaderMap) {
        if let Some(names) = headers.remove(NAMES) {
            self.put(names.as_bytes().to_vec());
        }
    }

    /// The bytes with the names spelled as they should be, if they have a part of a head in them and there are any.
    pub(crate) fn spelled(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let names = self.get()?;
        let mut bytes = bytes.to_vec();
        // What comes after the head is content, and not to be touched.
        let head = memmem::find(&bytes, b"\r\n\r\n").unwrap_or(bytes.len());
        for name in names.split(|byte| *byte == b',') {
            let line = [b"\r\n", PREFIX, &name.to_ascii_lowercase(), b":"].concat();
            if let Some(at) = memmem::find(&bytes[..head], &line) {
                let start = at + 2 + PREFIX.len();
                bytes[start..start + name.len()].copy_from_slice(name);
            }
        }
        Some(bytes)
    }

    /// So many bytes of what `spelled` gave have been written.
    pub(crate) fn written(&self, spelled: &[u8], count: usize) {
        let head = memmem::find(spelled, b"\r\n\r\n").map(|at| at + 4);
        if head.is_some_and(|head| count >= head) {
            self.clear();
        }
    }
}

/// The names of requests that were read and have not begun: a client may send many requests before the first answer.
#[derive(Debug, Default)]
pub(crate) struct AskedNames {
    /// Most heads have none; this tells without a lock.
    any: AtomicBool,
    /// By the number of the request on its connection. No more of them than fit into what is read ahead.
    waiting: Mutex<VecDeque<(u64, Vec<u8>)>>,
}

impl AskedNames {
    fn put(&self, request: u64, names: Vec<u8>) {
        self.lock().push_back((request, names));
        self.any.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Vec<u8>)>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tells a service how the client spelled the names in this request, which is the first or a later one of its
    /// connection.
    pub(crate) fn tell(&self, request: u64, headers: &mut HeaderMap) {
        headers.remove(NAMES);
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.lock();
        while let Some((number, _)) = waiting.front()
            && *number <= request
        {
            let (number, names) = waiting.pop_front().unwrap_or_default();
            if let (true, Ok(names)) = (number == request, HeaderValue::from_bytes(&names)) {
                headers.insert(NAMES, names);
            }
        }
        self.any.store(!waiting.is_empty(), Ordering::Relaxed);
    }
}

/// Reads what comes in, request by request, for the names in the heads.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    place: Place,
    /// What came of a head, or of a line between chunks, that is not complete.
    part: Vec<u8>,
    /// How many heads have ended.
    heads: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Head,
    /// A body with so many bytes to come.
    Body(u64),
    /// The line that says how long a chunk is.
    ChunkSize,
    /// A chunk with so many bytes to come, and the end of its line.
    Chunk(u64),
    /// The lines after the last chunk.
    Trailers,
    /// Whatever this is, hyper refuses it.
    Lost,
}

/// A head that is complete.
#[derive(Debug, Default)]
struct HeadRead {
    length: usize,
    names: Vec<u8>,
    body_length: u64,
    chunked: bool,
}

/// The line before a chunk is short.
const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;

impl Reader {
    pub(crate) fn read(&mut self, mut bytes: &[u8], asked: &AskedNames) {
        while !bytes.is_empty() {
            match self.place {
                Place::Head => self.read_head(&mut bytes, asked),
                Place::Body(left) => {
                    let left = left - skip(&mut bytes, left);
                    self.place = if left == 0 { Place::Head } else { Place::Body(left) };
                }
                Place::Chunk(left) => {
                    let left = left - skip(&mut bytes, left);
                    self.place = if left == 0 { Place::ChunkSize } else { Place::Chunk(left) };
                }
                Place::ChunkSize => {
                    let Some(line) = self.line(&mut bytes) else { continue };
                    let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                    let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
                    self.place = match size {
                        None => Place::Lost,
                        Some(0) => Place::Trailers,
                        Some(size) => Place::Chunk(size.saturating_add(2)),
                    };
                }
                Place::Trailers => {
                    if self.line(&mut bytes).is_some_and(|line| line.is_empty()) {
                        self.place = Place::Head;
                    }
                }
                Place::Lost => return,
            }
        }
    }

    /// How many bytes have come of a head that has not ended.
    pub(crate) fn unfinished(&self) -> usize {
        if self.place == Place::Head { self.part.len() } else { 0 }
    }

    fn read_head(&mut self, bytes: &mut &[u8], asked: &AskedNames) {
        if self.part.is_empty() {
            // Empty lines before a request are passed over.
            while let [b'\r' | b'\n', rest @ ..] = bytes {
                *bytes = rest;
            }
            match head(bytes) {
                Some(head) => {
                    *bytes = &bytes[head.length..];
                    self.end_head(head, asked);
                }
                None => self.keep(bytes, CONNECTION_BUFFER_BYTES),
            }
            return;
        }
        let (before, seen) = (self.part.len(), self.part.len().saturating_sub(3));
        self.part.extend_from_slice(bytes);
        if memmem::find(&self.part[seen..], b"\n\r\n").is_none() && memmem::find(&self.part[seen..], b"\n\n").is_none()
        {
            *bytes = &[];
            return self.check_part(CONNECTION_BUFFER_BYTES);
        }
        let head = head(&self.part).unwrap_or_default();
        *bytes = &bytes[head.length.saturating_sub(before).min(bytes.len())..];
        self.part = Vec::new();
        self.end_head(head, asked);
    }

    fn end_head(&mut self, head: HeadRead, asked: &AskedNames) {
        self.heads += 1;
        if !head.names.is_empty() {
            asked.put(self.heads, head.names);
        }
        self.place = match head.body_length {
            _ if head.chunked => Place::ChunkSize,
            0 => Place::Head,
            length => Place::Body(length),
        };
    }

    /// The next line without its end, if all of it is there.
    fn line(&mut self, bytes: &mut &[u8]) -> Option<Vec<u8>> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.keep(bytes, CHUNK_LINE_BYTES_MAX);
            return None;
        };
        let mut line = std::mem::take(&mut self.part);
        line.extend_from_slice(&bytes[..end]);
        *bytes = &bytes[end + 1..];
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }

    /// Keeps the bytes for when more have come.
    fn keep(&mut self, bytes: &mut &[u8], most: usize) {
        self.part.extend_from_slice(bytes);
        *bytes = &[];
        self.check_part(most);
    }

    fn check_part(&mut self, most: usize) {
        if self.part.len() > most {
            (self.place, self.part) = (Place::Lost, Vec::new());
        }
    }
}

/// Passes over so many bytes, or all there are, and says how many.
fn skip(bytes: &mut &[u8], most: u64) -> u64 {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
    *bytes = &bytes[count..];
    count as u64
}

/// What the bytes begin with; `None` if it is not complete.
fn head(bytes: &[u8]) -> Option<HeadRead> {
    let mut head = HeadRead::default();
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes) {
        let line = &bytes[start..end];
        start = end + 1;
        match line {
            b"\r" | b"" => {
                head.length = start;
                return Some(head);
            }
            [b'x' | b'X', ..] => head.take_name(line),
            [b'c' | b'C', ..] => {
                if let Some(length) = value(line, b"content-length") {
                    head.body_length = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
                }
            }
            [b't' | b'T', ..] => {
                let coding = value(line, b"transfer-encoding");
                head.chunked |= coding.is_some_and(|coding| coding.to_ascii_lowercase().ends_with(b"chunked"));
            }
            _ => {}
        }
    }
    None
}

/// The value of the header that the line is, if it is this one.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let rest = rest.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
}

impl HeadRead {
    /// Keeps the name of metadata that is in the line, if it has capitals.
    fn take_name(&mut self, line: &[u8]) {
        let Some((prefix, rest)) = line.split_at_checked(PREFIX.len()) else { return };
        if !prefix.eq_ignore_ascii_case(PREFIX) {
            return;
        }
        let name = rest.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.iter().any(u8::is_ascii_uppercase)
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        {
            if !self.names.is_empty() {
                self.names.push(b',');
            }
            self.names.extend_from_slice(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "PUT /a HTTP/1.1\r\nx-ms-meta-plain: 1\r\nX-Ms-Meta-Colour: blue\r\nx-ms-meta-twoWords:2\r\n\r\n";

    fn told(asked: &AskedNames, request: u64) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(NAMES, HeaderValue::from_static("Forged"));
        asked.tell(request, &mut headers);
        headers.get(NAMES).map(|names| names.to_str().unwrap().to_owned())
    }

    /// One after another on a connection, in any pieces, before the first is answered.
    #[test]
    fn names_are_found_however_the_heads_come() {
        let body = "\r\nx-ms-meta-Not: 1\r\n\r\n";
        let with_body = HEAD.replace("\r\n\r\n", &format!("\r\ncontent-Length: {}\r\n\r\n{body}", body.len()));
        let chunked = format!(
            "PUT /b HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\nx-ms-meta-Third: 1\r\n\r\n{:x};a=b\r\n{body}\r\n3\r\nabc\r\n0\r\nX-Ms-Meta-Late: 1\r\n\r\n",
            body.len()
        );
        let all = [HEAD, &with_body, "\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", &chunked, HEAD].concat();
        for size in 1..=all.len() {
            let (asked, mut reader) = (AskedNames::default(), Reader::default());
            for part in all.as_bytes().chunks(size) {
                reader.read(part, &asked);
            }
            let expected =
                [Some("Colour,twoWords"), Some("Colour,twoWords"), None, Some("Third"), Some("Colour,twoWords")];
            for (at, expected) in expected.into_iter().enumerate() {
                assert_eq!(told(&asked, at as u64 + 1).as_deref(), expected, "request {at} in parts of {size}");
            }
            assert_eq!(told(&asked, 6), None);
        }
    }

    #[test]
    fn a_head_without_end_is_given_up() {
        let (asked, mut reader) = (AskedNames::default(), Reader::default());
        reader.read(HEAD.as_bytes(), &asked);
        assert_eq!(reader.unfinished(), 0);
        for count in 0..=CONNECTION_BUFFER_BYTES / 1_000 + 1 {
            assert!(reader.unfinished() == 1_000 * count || reader.place == Place::Lost);
            reader.read(&[b'x'; 1_000], &asked);
        }
        assert_eq!((reader.place, reader.part.capacity(), reader.unfinished()), (Place::Lost, 0, 0));
    }

    #[test]
    fn answers_are_spelled_and_contents_are_left_alone() {
        let spelling = Spelling::default();
        let answer =
            b"HTTP/1.1 200 OK\r\nx-ms-meta-colour: blue\r\nx-ms-meta-colours: 2\r\n\r\n\r\nx-ms-meta-colour: body";
        assert_eq!(spelling.spelled(answer), None);
        let mut headers = HeaderMap::new();
        headers.insert(NAMES, HeaderValue::from_static("Colour,missing"));
        spelling.hear(&mut headers);
        assert!(headers.is_empty());
        let spelled = spelling.spelled(answer).unwrap();
        let expected =
            "HTTP/1.1 200 OK\r\nx-ms-meta-Colour: blue\r\nx-ms-meta-colours: 2\r\n\r\n\r\nx-ms-meta-colour: body";
        assert_eq!(String::from_utf8_lossy(&spelled), expected);
        spelling.written(&spelled, 10);
        assert!(spelling.spelled(answer).is_some(), "there is more of the head to write");
        spelling.written(&spelled, spelled.len());
        assert_eq!(spelling.spelled(answer), None);
    }
}
