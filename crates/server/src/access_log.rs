//! One line per request, in the common log format, followed by operation, time taken and request id.
//!
//! Lines gather in memory and one thread writes them, so no request waits for a slow terminal or a full pipe. When
//! nobody takes the lines, the newest are dropped and counted; requests go on. Signatures never reach a line.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use concurrency::Timestamp;
use http::{Method, Uri, Version};
use smb::server::Answered;
use wire::dates;

use crate::limits::{ACCESS_LOG_BYTES_MAX, ACCESS_LOG_PAUSE};

/// What a line tells.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub at: Timestamp,
    pub peer: IpAddr,
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub http: Version,
    pub status: u16,
    pub bytes: u64,
    pub operation: &'a str,
    pub took: Duration,
    pub request_id: &'a str,
}

/// The log. Clones write to the same place.
#[derive(Clone, Debug)]
pub struct AccessLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    something: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: String,
    dropped: u64,
    writing: bool,
    closed: bool,
}

impl AccessLog {
    /// A log that writes to `out`, on a thread of its own.
    pub fn to(mut out: impl Write + Send + 'static) -> std::io::Result<AccessLog> {
        let shared = Arc::new(Shared { waiting: Mutex::default(), something: Condvar::new() });
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("access-log".into()).spawn(move || theirs.write_to(&mut out))?;
        Ok(AccessLog(shared))
    }

    pub(crate) fn write(&self, line: &Line<'_>) {
        // Written down before the lock is taken: there is one lock for all.
        LINE.with_borrow_mut(|text| {
            text.clear();
            put(text, line);
            self.append(text);
        });
    }

    /// A line for an SMB request: the command in the place of the request line, the status by its name.
    pub(crate) fn write_smb(&self, at: Timestamp, answered: &Answered<'_>) {
        LINE.with_borrow_mut(|text| {
            text.clear();
            put_smb(text, at, answered);
            self.append(text);
        });
    }

    fn append(&self, line: &str) {
        let mut waiting = self.0.lock();
        if waiting.lines.len() >= ACCESS_LOG_BYTES_MAX {
            waiting.dropped += 1;
            return;
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.push_str(line);
        drop(waiting);
        if was_empty {
            self.0.something.notify_all();
        }
    }

    /// Writes what waits, but does not wait for ever for a reader that is gone.
    pub fn close(&self, patience: Duration) {
        let mut waiting = self.0.lock();
        waiting.closed = true;
        self.0.something.notify_all();
        let unfinished = |waiting: &mut Waiting| !waiting.lines.is_empty() || waiting.writing;
        drop(self.0.something.wait_timeout_while(waiting, patience, unfinished));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write_to(&self, out: &mut impl Write) {
        let mut taken = String::new();
        loop {
            let (dropped, closed) = self.take(&mut taken);
            if dropped > 0 {
                let _ = writeln!(taken, "({dropped} lines of the access log were dropped: nobody took them)");
            }
            // A log that cannot be written is no reason to stop serving.
            let _ = out.write_all(taken.as_bytes()).and_then(|()| out.flush());
            taken.clear();
            self.lock().writing = false;
            self.something.notify_all();
            if closed {
                return;
            }
            // Let lines gather: one write for many.
            std::thread::sleep(ACCESS_LOG_PAUSE);
        }
    }

    /// Waits for lines and takes them all.
    fn take(&self, into: &mut String) -> (u64, bool) {
        let idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.closed;
        let waited = self.something.wait_while(self.lock(), idle);
        let mut waiting = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, into);
        waiting.writing = true;
        (std::mem::take(&mut waiting.dropped), waiting.closed)
    }
}

thread_local! {
    /// The line that this thread is writing.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

fn put(out: &mut String, line: &Line<'_>) {
    let _ = write!(out, "{} - -", line.peer);
    put_date(out, line.at);
    out.push_str(line.method.as_str());
    out.push(' ');
    put_escaped(out, line.uri.path());
    if let Some(query) = line.uri.query() {
        out.push('?');
        put_query(out, query);
    }
    let (millis, micros) = (line.took.as_millis(), line.took.subsec_micros() % 1000);
    let (status, bytes, operation, id) = (line.status, line.bytes, line.operation, line.request_id);
    let _ = writeln!(out, " {:?}\" {status} {bytes} {operation} {millis}.{micros:03}ms {id}", line.http);
}

/// ` [15/Nov/2026:20:54:37 +0000] "`, made of `Sun, 15 Nov 2026 20:54:37 GMT`.
fn put_date(out: &mut String, at: Timestamp) {
    let date = dates::http_date(at);
    let date = date.as_str();
    for part in [" [", &date[5..7], "/", &date[8..11], "/", &date[12..16], ":", &date[17..25], " +0000] \""] {
        out.push_str(part);
    }
}

fn put_smb(out: &mut String, at: Timestamp, answered: &Answered<'_>) {
    let _ = write!(out, "{} - ", answered.peer.ip());
    put_escaped(out, answered.user.unwrap_or("-"));
    put_date(out, at);
    let (millis, micros) = (answered.took.as_millis(), answered.took.subsec_micros() % 1000);
    let (command, status, sent) = (answered.command.name(), answered.status, answered.sent);
    let _ = writeln!(out, "SMB {command}\" {status} {sent} {millis}.{micros:03}ms");
}

/// The query without the secret that is in it.
pub(crate) fn put_query(out: &mut String, query: &str) {
    for (at, pair) in query.split('&').enumerate() {
        if at > 0 {
            out.push('&');
        }
        let name = pair.split('=').next().unwrap_or_default();
        if is_secret(name) {
            put_escaped(out, name);
            out.push_str("=REDACTED");
        } else {
            put_escaped(out, pair);
        }
    }
}

/// `sig`, however it is written: a server decodes names and ignores their case.
pub(crate) fn is_secret(name: &str) -> bool {
    name.contains('%') && wire::percent::decode_query(name).is_ok_and(|name| name.eq_ignore_ascii_case("sig"))
        || name.eq_ignore_ascii_case("sig")
}

/// Nothing a client sends may end a line or a quotation.
fn put_escaped(out: &mut String, text: &str) {
    if text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        return out.push_str(text);
    }
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            byte if byte.is_ascii_graphic() => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn line(uri: &str) -> String {
        let mut text = String::new();
        let line = Line {
            at: Timestamp::from_unix_seconds(1_700_000_000),
            peer: IpAddr::from([127, 0, 0, 1]),
            method: &Method::GET,
            uri: &uri.parse().unwrap(),
            http: Version::HTTP_11,
            status: 200,
            bytes: 4096,
            operation: "GetBlob",
            took: Duration::from_micros(1_250),
            request_id: "id",
        };
        put(&mut text, &line);
        text
    }

    #[test]
    fn a_line() {
        let expected =
            "127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a/c/b?x=1 HTTP/1.1\" 200 4096 GetBlob 1.250ms id\n";
        assert_eq!(line("/a/c/b?x=1"), expected);
    }

    #[test]
    fn a_line_of_smb() {
        let mut text = String::new();
        let answered = Answered {
            peer: ([127, 0, 0, 1], 5).into(),
            command: smb::wire::header::Command::Read,
            status: smb::Status::END_OF_FILE,
            user: Some("a\"b"),
            took: Duration::from_micros(1_250),
            received: 9,
            sent: 73,
        };
        put_smb(&mut text, Timestamp::from_unix_seconds(1_700_000_000), &answered);
        let expected = "127.0.0.1 - a\\\"b [14/Nov/2023:22:13:20 +0000] \"SMB READ\" END_OF_FILE 73 1.250ms\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn signatures_are_left_out() {
        for uri in ["/a?sv=1&sig=secret%3D", "/a?SIG=secret", "/a?%73ig=secret&x=1", "/a?sig=secret=secret"] {
            let line = line(uri);
            assert!(!line.contains("secret") && line.contains("REDACTED"), "{line}");
        }
        assert!(line("/a?signal=loud").contains("loud"));
    }

    #[test]
    fn quotes_do_not_end_the_quotation() {
        assert!(line("/a/\"b\"").contains("/a/\\\"b\\\" HTTP"));
    }

    #[test]
    fn lines_arrive_and_a_reader_that_is_gone_does_no_harm() {
        struct Out(mpsc::Sender<String>);
        impl Write for Out {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.send(String::from_utf8_lossy(bytes).into_owned()).map_err(std::io::Error::other)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (sender, receiver) = mpsc::channel();
        let log = AccessLog::to(Out(sender)).unwrap();
        log.append("hello\n");
        assert_eq!(receiver.recv_timeout(Duration::from_secs(5)).unwrap(), "hello\n");
        drop(receiver);
        log.append("lost\n");
        log.close(Duration::from_secs(5));
        assert!(log.0.lock().lines.is_empty());
    }
}
