//! `multipart/mixed`: several requests in one body, and several answers in one. Blob batches and entity group
//! transactions share it.
//!
//! Reading is lenient where clients differ: header names in any case, lines that end in LF alone, empty lines more than
//! needed, text before the first delimiter, a last delimiter without its two dashes. Writing is exact, CRLF everywhere.
//!
//! ```text
//! --boundary            <- a delimiter
//! Content-Type: ...     <- headers of the part
//!                       <- an empty line
//! ...                   <- its content: another multipart body, or a request or an answer as HTTP writes it
//! --boundary--          <- the last delimiter
//! ```

use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A boundary is no longer than this (RFC 2046).
const BOUNDARY_BYTES_MAX: usize = 70;
/// More headers than this in one part are refused.
const HEADERS_PER_PART_MAX: usize = 64;
/// Room for as many headers as most parts have.
const HEADERS_PER_PART_USUAL: usize = 6;

/// The body is not valid `multipart/mixed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A part: its headers, and what follows them.
#[derive(Debug)]
pub struct Part<'a> {
    pub headers: Headers<'a>,
    pub content: &'a [u8],
}

/// The headers of a part, borrowed from the body: a batch has hundreds of headers, and few are read.
#[derive(Clone, Debug, Default)]
pub struct Headers<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Headers<'a> {
    /// All values of a header, in their order; names are compared without case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let is_named = move |(known, _): &&(&[u8], &[u8])| known.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().filter(is_named).map(|(_, value)| *value)
    }

    /// The header as text; `None` if it is missing or not visible ASCII.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let value = self.all(name).next()?;
        let is_text = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        std::str::from_utf8(value).ok().filter(|_| is_text)
    }

    /// The headers in the form that other requests have.
    pub fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.0.len());
        for (name, value) in &self.0 {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        map
    }
}

/// A request inside a part.
#[derive(Debug)]
pub struct InnerRequest<'a> {
    pub method: Method,
    /// The URL of the request line: absolute, or a path.
    pub target: &'a str,
    pub headers: Headers<'a>,
    pub body: &'a [u8],
}

/// The boundary that a `Content-Type` names, if it is one of `multipart/mixed`.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim())
    })?;
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let is_boundary = !value.is_empty()
        && value.len() <= BOUNDARY_BYTES_MAX
        && value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    is_boundary.then_some(value)
}

/// Splits a body into parts. After `most` + 1 parts it stops: the caller refuses that many.
pub fn parts<'a>(body: &'a [u8], boundary: &str, most: usize) -> Result<Vec<Part<'a>>, Malformed> {
    let mut parts = Vec::new();
    // Where the content of the current part began, once the first delimiter was found.
    let mut began = None;
    let mut at = 0;
    while at < body.len() {
        let line = &body[at..];
        let length = memchr::memchr(b'\n', line).map_or(line.len(), |end| end + 1);
        if let Some(delimiter) = Delimiter::read(&line[..length], boundary.as_bytes()) {
            if let Some(began) = began {
                parts.push(part(without_line_end(&body[began..at]))?);
                if parts.len() > most {
                    return Ok(parts);
                }
            }
            began = Some(at + length);
            if delimiter == Delimiter::Last {
                return Ok(parts);
            }
        }
        at += length;
    }
    // The last delimiter may lack its dashes, but the last part must have been ended by one.
    match began {
        Some(began) if body[began..].iter().all(u8::is_ascii_whitespace) && !parts.is_empty() => Ok(parts),
        _ => Err(Malformed),
    }
}

#[derive(PartialEq, Eq)]
enum Delimiter {
    Between,
    Last,
}

impl Delimiter {
    fn read(line: &[u8], boundary: &[u8]) -> Option<Delimiter> {
        let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
        match rest.trim_ascii_end() {
            b"" => Some(Delimiter::Between),
            b"--" => Some(Delimiter::Last),
            _ => None,
        }
    }
}

/// The line end before a delimiter belongs to the delimiter.
fn without_line_end(content: &[u8]) -> &[u8] {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    content.strip_suffix(b"\r").unwrap_or(content)
}

fn part(text: &[u8]) -> Result<Part<'_>, Malformed> {
    let mut rest = text;
    let headers = headers(&mut rest)?;
    Ok(Part { headers, content: rest })
}

/// Parses the request in a part.
pub fn request(content: &[u8]) -> Result<InnerRequest<'_>, Malformed> {
    let mut rest = content.trim_ascii_start();
    let line = std::str::from_utf8(line(&mut rest)).map_err(|_| Malformed)?;
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(target), version, None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(Malformed);
    };
    if version.is_some_and(|version| !version.starts_with("HTTP/1.")) {
        return Err(Malformed);
    }
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Malformed)?;
    let headers = headers(&mut rest)?;
    Ok(InnerRequest { method, target, headers, body: rest })
}

/// Headers up to the empty line that ends them, or to the end.
fn headers<'a>(rest: &mut &'a [u8]) -> Result<Headers<'a>, Malformed> {
    let mut headers = Vec::with_capacity(HEADERS_PER_PART_USUAL);
    while !rest.is_empty() {
        let text = line(rest);
        if text.is_empty() {
            break;
        }
        let colon = memchr::memchr(b':', text).ok_or(Malformed)?;
        let (name, value) = (text[..colon].trim_ascii(), text[colon + 1..].trim_ascii());
        if !is_name(name) || !is_value(value) || headers.len() == HEADERS_PER_PART_MAX {
            return Err(Malformed);
        }
        headers.push((name, value));
    }
    Ok(Headers(headers))
}

/// A token of HTTP.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Anything but control characters.
fn is_value(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

/// The next line without its end.
fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    let (line, after) = rest.split_at(length);
    *rest = after;
    without_line_end(line)
}

/// Writes a body part by part.
#[derive(Debug)]
pub struct Writer {
    body: Vec<u8>,
    boundary: String,
}

impl Writer {
    #[must_use]
    pub fn new(boundary: impl Into<String>) -> Writer {
        Writer { body: Vec::with_capacity(1024), boundary: boundary.into() }
    }

    /// The value of `Content-Type` for this body.
    #[must_use]
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Begins a part with these headers; what is written next is its content.
    pub fn part(&mut self, headers: &[(&str, &str)]) -> &mut Vec<u8> {
        self.delimiter("\r\n");
        for (name, value) in headers {
            for text in [name, ": ", value, "\r\n"] {
                self.body.extend_from_slice(text.as_bytes());
            }
        }
        self.body.extend_from_slice(b"\r\n");
        &mut self.body
    }

    /// Every part must have ended with a line end.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.delimiter("--\r\n");
        self.body
    }

    /// Like `finish`, without a line end after the last delimiter.
    #[must_use]
    pub fn finish_bare(mut self) -> Vec<u8> {
        self.delimiter("--");
        self.body
    }

    fn delimiter(&mut self, end: &str) {
        for text in ["--", &self.boundary, end] {
            self.body.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries() {
        let table = [
            ("multipart/mixed; boundary=batch_1", Some("batch_1")),
            ("Multipart/Mixed;charset=utf-8; Boundary=\"a b\"", None),
            ("multipart/mixed; charset=utf-8; boundary=\"a=b\"", Some("a=b")),
            ("multipart/mixed; boundary=", None),
            ("multipart/mixed", None),
            ("application/json; boundary=a", None),
        ];
        for (text, found) in table {
            assert_eq!(boundary(text), found, "{text}");
        }
        assert_eq!(boundary(&format!("multipart/mixed; boundary={}", "x".repeat(71))), None);
    }

    fn contents(body: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
        Ok(parts(body, "b", 9)?.iter().map(|part| part.content).collect())
    }

    #[test]
    fn bodies_as_clients_write_them() {
        let table: &[(&[u8], &[&[u8]])] = &[
            (b"--b\r\nA: 1\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n", &[b"one", b"two"]),
            (b"\r\n\r\n--b\r\n\r\none\r\n--b--", &[b"one"]),
            (b"for old readers\n--b \n\none\n--b--\n", &[b"one"]),
            // No dashes at the end, and what looks like a delimiter but is none.
            (b"--b\r\n\r\none\r\n--bb\r\nx--b--\r\n--b\r\n", &[b"one\r\n--bb\r\nx--b--"]),
            (b"--b\r\n\r\n\r\n--b--\r\n", &[b""]),
            (b"--b--\r\n", &[]),
        ];
        for (body, expected) in table {
            assert_eq!(contents(body).as_deref(), Ok(*expected), "{}", body.escape_ascii());
        }
        let found = parts(b"--b\r\nconTent-ID: 7\r\n\r\n--b--", "b", 9).unwrap();
        assert_eq!(found[0].headers.text("content-id"), Some("7"));
    }

    #[test]
    fn bodies_that_are_none() {
        for body in
            [&b""[..], b"one", b"--b\r\n", b"--b\r\n\r\none", b"--b\r\nno header\r\n\r\n--b--", b"--b\r\n: x\r\n--b--"]
        {
            assert_eq!(contents(body), Err(Malformed), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn no_more_parts_are_read_than_wanted() {
        let body = "--b\r\n\r\n".repeat(1_000) + "--b--";
        assert_eq!(parts(body.as_bytes(), "b", 5).unwrap().len(), 6);
    }

    #[test]
    fn requests() {
        let text =
            b"PUT http://h/t(PartitionKey='a',RowKey='') HTTP/1.1\r\nIf-Match: *\r\nIF-MATCH: x\r\n\r\n{\"a\":1}";
        let request = request(text).unwrap();
        assert_eq!((request.method, request.target), (Method::PUT, "http://h/t(PartitionKey='a',RowKey='')"));
        assert_eq!(request.headers.all("if-match").collect::<Vec<_>>(), [&b"*"[..], b"x"]);
        assert_eq!((request.headers.text("if-match"), request.headers.text("if-none-match")), (Some("*"), None));
        assert_eq!(request.headers.to_map().get_all("if-match").iter().count(), 2);
        assert_eq!(request.body, b"{\"a\":1}");
        let bare = super::request(b"\r\nMERGE /t HTTP/1.1").unwrap();
        assert_eq!((bare.method.as_str(), bare.target, bare.body), ("MERGE", "/t", &b""[..]));
        for text in
            [&b""[..], b"GET", b"GET / HTTP/2", b"G\xC3\xA4T /", b"GET / HTTP/1.1 x", b"GET / HTTP/1.1\r\nx", b"\xff /"]
        {
            assert!(super::request(text).is_err(), "{}", text.escape_ascii());
        }
    }

    /// Header names and values are accepted by the same rules as outside of batches.
    #[test]
    fn names_and_values_of_headers() {
        for byte in 0..=255u8 {
            for text in [vec![byte], vec![b'a', byte, b'b']] {
                assert_eq!(is_name(&text), HeaderName::from_bytes(&text).is_ok(), "{}", text.escape_ascii());
                assert_eq!(is_value(&text), HeaderValue::from_bytes(&text).is_ok(), "{}", text.escape_ascii());
                let shown = HeaderValue::from_bytes(&text).ok();
                let shown = shown.as_ref().and_then(|value| value.to_str().ok());
                let headers = Headers(vec![(b"a", &text)]);
                assert_eq!(headers.text("A").filter(|_| is_value(&text)), shown, "{}", text.escape_ascii());
            }
        }
        assert!(!is_name(b""));
        let many = |count: usize| format!("--b\r\n{}\r\n--b--", "a: 1\r\n".repeat(count));
        assert!(parts(many(64).as_bytes(), "b", 9).is_ok());
        assert_eq!(parts(many(65).as_bytes(), "b", 9).err(), Some(Malformed));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut writer = Writer::new("b");
        assert_eq!(writer.content_type(), "multipart/mixed; boundary=b");
        writer.part(&[("Content-Type", "application/http"), ("Content-ID", "0")]).extend_from_slice(b"one\r\n");
        writer.part(&[]).extend_from_slice(b"two\r\n");
        let body = writer.finish();
        let expected =
            "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n";
        assert_eq!(String::from_utf8(body.clone()).unwrap(), expected);
        assert_eq!(contents(&body), Ok(vec![&b"one"[..], b"two"]));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let words: [&[u8]; 12] =
            [b"--b", b"--", b"b", b"\r\n", b"\n", b"\r", b": ", b"A: 1", b" ", b"GET / HTTP/1.1", b"\0\xff", b"x"];
        for _ in 0..20_000 {
            let mut body = Vec::new();
            for _ in 0..12 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                body.extend_from_slice(words[(seed % 12) as usize]);
            }
            for part in parts(&body, "b", 3).unwrap_or_default() {
                let _ = request(part.content);
            }
            let _ = request(&body);
        }
    }
}
