//! A source of copies that is not the server under test: a small web server on loopback that gives its bytes only as far as the
//! test lets it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Everybody who asks gets the same. It ends with the process.
pub struct Elsewhere {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    content: Vec<u8>,
    /// More lines of the head.
    headers: String,
    etag: u32,
    /// So much of the content may go out.
    open: usize,
    /// Nobody gets an answer.
    gone: bool,
    requests: u32,
}

impl Elsewhere {
    pub fn start(content: impl Into<Vec<u8>>, open: usize, headers: &[(&str, &str)]) -> Elsewhere {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let state = State { content: content.into(), headers, etag: 1, open, gone: false, requests: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let server = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = server.clone();
                thread::spawn(move || shared.answer(stream));
            }
        });
        Elsewhere { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/source", self.address)
    }

    /// Lets all of it go out.
    pub fn open(&self) {
        self.change(|state| state.open = usize::MAX);
    }

    /// Has another content of the same length from now on.
    pub fn change_content(&self) {
        self.change(|state| {
            state.etag += 1;
            state.content.iter_mut().for_each(|byte| *byte = !*byte);
        });
    }

    /// Breaks everything off, and answers nobody any more.
    pub fn leave(&self) {
        self.change(|state| state.gone = true);
    }

    pub fn requests(&self) -> u32 {
        self.shared.state.lock().expect("whole").requests
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.lock().expect("whole"));
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// The one answer of a connection. Who hangs up early is not waited for.
    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let mut wanted = None;
        loop {
            let line = lines.next()?.ok()?.to_ascii_lowercase();
            match line.strip_prefix("if-match: ") {
                Some(etag) => wanted = Some(etag.to_owned()),
                None if line.is_empty() => break,
                None => {}
            }
        }
        let mut state = self.state.lock().ok()?;
        state.requests += 1;
        if state.gone {
            return stream.shutdown(Shutdown::Both).ok();
        }
        let etag = format!("\"{}\"", state.etag);
        if wanted.is_some_and(|wanted| wanted != etag) {
            return stream.write_all(b"HTTP/1.1 412 Changed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok();
        }
        let (length, etag_sent) = (state.content.len(), state.etag);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\netag: {etag}\r\n{}", state.headers);
        stream.write_all((head + "connection: close\r\n\r\n").as_bytes()).ok()?;
        let mut sent = 0;
        while sent < length && !state.gone && state.etag == etag_sent {
            let end = state.open.min(length).min(sent + 4096);
            if sent < end {
                stream.write_all(&state.content[sent..end]).ok()?;
                sent = end;
            } else {
                state = self.changed.wait(state).ok()?;
            }
        }
        stream.shutdown(Shutdown::Both).ok()
    }
}
