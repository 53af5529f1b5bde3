//! How the names of metadata are spelled.
//!
//! Header names have no case for hyper: it reads and writes them in small letters. For Azure the names of metadata are
//! equal in any case, but they are kept and given back as they were written, and some clients look for exactly that. So
//! the stream looks at each head on its way in, and changes letters (never lengths) in heads on their way out.
//!
//! Between the stream and a service the spelling travels in the header [`NAMES`]: a list of the names that have capitals.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::{memchr_iter, memmem};

use crate::limits::CONNECTION_BUFFER_BYTES;

/// Carries the spelling to a service and back. It never comes from a client and never goes to one.
pub const NAMES: HeaderName = HeaderName::from_static(wire::metadata::SPELLED_NAMES);
const PREFIX: &[u8] = b"x-ms-meta-";

/// Names on their way between the stream and the requests on it.
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

    /// Tells a service how the client spelled.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        headers.remove(NAMES);
        if let Some(names) = self.get() {
            self.clear();
            if let Ok(names) = HeaderValue::from_bytes(&names) {
                headers.insert(NAMES, names);
            }
        }
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

/// Reads a head as it comes in, for the names in it.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// What came of a head that is not complete.
    part: Vec<u8>,
    ended: bool,
}

impl Reader {
    /// The next bytes begin a head.
    pub(crate) fn begin(&mut self) {
        self.part.clear();
        self.ended = false;
    }

    pub(crate) fn read(&mut self, bytes: &[u8], spelling: &Spelling) {
        if self.ended {
            return;
        }
        if self.part.is_empty() {
            match names(bytes) {
                Some(names) => self.end(names, spelling),
                None => self.part.extend_from_slice(bytes),
            }
            return;
        }
        let seen = self.part.len().saturating_sub(3);
        self.part.extend_from_slice(bytes);
        if memmem::find(&self.part[seen..], b"\r\n\r\n").is_some() {
            let names = names(&self.part).unwrap_or_default();
            self.end(names, spelling);
        } else if self.part.len() > CONNECTION_BUFFER_BYTES {
            // hyper refuses it, too.
            self.end(Vec::new(), spelling);
        }
    }

    fn end(&mut self, names: Vec<u8>, spelling: &Spelling) {
        self.ended = true;
        self.part = Vec::new();
        if !names.is_empty() {
            spelling.put(names);
        }
    }
}

/// The names with capitals in a head; `None` if it is not complete.
fn names(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes) {
        let line = &bytes[start..end];
        start = end + 1;
        if line == b"\r" {
            return Some(names);
        }
        let Some((prefix, rest)) = line.split_at_checked(PREFIX.len()) else { continue };
        if prefix[0] | 0x20 != b'x' || !prefix.eq_ignore_ascii_case(PREFIX) {
            continue;
        }
        let name = rest.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.iter().any(u8::is_ascii_uppercase)
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        {
            if !names.is_empty() {
                names.push(b',');
            }
            names.extend_from_slice(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "PUT /a HTTP/1.1\r\nx-ms-meta-plain: 1\r\nX-Ms-Meta-Colour: blue\r\nx-ms-meta-twoWords:2\r\n\r\n";

    fn told(spelling: &Spelling) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(NAMES, HeaderValue::from_static("Forged"));
        spelling.tell(&mut headers);
        headers.get(NAMES).map(|names| names.to_str().unwrap().to_owned())
    }

    #[test]
    fn names_are_found_however_the_head_comes() {
        for size in 1..=HEAD.len() {
            let (spelling, mut reader) = (Spelling::default(), Reader::default());
            reader.begin();
            for part in HEAD.as_bytes().chunks(size) {
                reader.read(part, &spelling);
            }
            // What follows is a body.
            reader.read(b"\r\nx-ms-meta-Not: 1\r\n\r\n", &spelling);
            assert_eq!(told(&spelling).as_deref(), Some("Colour,twoWords"), "in parts of {size}");
            assert_eq!(told(&spelling), None);
        }
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
