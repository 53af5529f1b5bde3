//! What a listener of the debug log hears of a batch.

mod support;

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, PoisonError};

use support::{signed, start};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static HEARD: Mutex<String> = Mutex::new(String::new());

/// Listens to requests alone.
struct Listener;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        let _ = writeln!(self.0, "{value:?}");
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "request"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        HEARD.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn each_part_of_a_batch_has_a_line_without_its_secret() {
    tracing::subscriber::set_global_default(Listener).unwrap();
    let server = start().with_blob(b"hello");
    let part = "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE /acct/box/thing?sv=2021-12-02&sig=topsecret HTTP/1.1\r\n\r\n--b--";
    let headers = "Content-Type: multipart/mixed; boundary=b\r\n";
    let answer = server.client().ask(&signed("POST", "/acct?comp=batch", headers, part.as_bytes()));
    assert_eq!(answer.status, 202);
    let heard = HEARD.lock().unwrap().clone();
    assert!(!heard.contains("topsecret"), "{heard}");
    let lines: Vec<&str> = heard.lines().filter(|line| line.contains(": DELETE /acct/box/thing?")).collect();
    let [line] = lines[..] else { panic!("{heard}") };
    for part in ["sig=REDACTED", "caller=unknown", "refused=AuthenticationFailed", "answer=403"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(heard.contains("operation=BlobBatch"), "{heard}");
}
