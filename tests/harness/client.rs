//! An HTTP/1.1 client on a plain socket, signing with Shared Key.
//!
//! What a test gives is what is sent; only `Host`, the length, the version, the date and the signature are added. Every
//! answer is held against what all answers have in common.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use auth::Key;
use concurrency::Timestamp;
use wire::{dates, percent};

use super::xml::Element;

pub const ACCOUNT: &str = "devstoreaccount1";
pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2026-10-06";
/// A test that waits longer than this for a byte has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// A caller with one connection, kept open between requests as long as the server keeps it.
pub struct Client {
    address: SocketAddr,
    /// Further nodes of the same cluster: then every request goes to the next one, over a connection of its own.
    others: Vec<SocketAddr>,
    key: Key,
    /// The text that it signs: that of the Table service is shorter.
    string_to_sign: fn(&str, &str, &[(String, String)]) -> String,
    /// The account stands in the host, not in the path: `devstoreaccount1.file.localhost`.
    host: Option<String>,
    connection: RefCell<Option<BufReader<TcpStream>>>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let key = Key::from_base64(KEY).expect("the well-known key");
        Client { address, others: Vec::new(), key, string_to_sign, host: None, connection: RefCell::new(None) }
    }

    /// A caller of the Table service.
    pub fn of_tables(address: SocketAddr) -> Client {
        Client { string_to_sign: table_string_to_sign, ..Client::new(address) }
    }

    /// Signing with another key.
    pub fn with_key(self, key: &str) -> Client {
        Client { key: Key::from_base64(key).expect("a key"), ..self }
    }

    /// Naming the account in the host (`account.service.localhost`), no longer in the path.
    pub fn in_host_style(self, service: &str) -> Client {
        Client { host: Some(format!("{ACCOUNT}.{service}.localhost:{}", self.address.port())), ..self }
    }

    /// Where `rest` is below the account, and the host that is asked for it.
    fn target(&self, rest: &str) -> (String, String) {
        match &self.host {
            Some(host) => (format!("/{rest}"), host.clone()),
            None => (format!("/{ACCOUNT}/{rest}"), self.address.to_string()),
        }
    }

    pub fn with_others(self, others: Vec<SocketAddr>) -> Client {
        Client { others, ..self }
    }

    fn kept(&self) -> Option<BufReader<TcpStream>> {
        self.connection.take().filter(|_| self.others.is_empty())
    }

    fn next_address(&self) -> SocketAddr {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % (self.others.len() + 1);
        turn.checked_sub(1).map_or(self.address, |other| self.others[other])
    }

    /// Sends `line`, a verb and what follows the account in the URL (`PUT cont/blob?comp=lease`), and takes the answer.
    pub fn call(&self, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let head = self.head(line, headers, Some(body.len() as u64));
        self.exchange(line, &head, body)
    }

    /// The same, but an error when the server goes away before the whole answer is there. The next call connects anew.
    pub fn try_call(&self, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Result<Answer, NoAnswer> {
        let body = body.as_ref();
        let head = self.head(line, headers, Some(body.len() as u64));
        let mut connection = match self.kept() {
            Some(connection) => connection,
            None => self.try_connect().map_err(|_| NoAnswer::NotSent)?,
        };
        connection.get_mut().write_all(&[head.as_bytes(), body].concat()).map_err(|_| NoAnswer::Lost)?;
        let answer = Answer::read(&mut connection, is_head(line)).ok_or(NoAnswer::Lost)?;
        self.connection.replace(Some(connection));
        Ok(answer)
    }

    /// The same with a head made by hand: `head` says what comes, `body` is what comes. The connection ends with it.
    pub fn call_odd(&self, line: &str, head: &str, body: &[u8]) -> Answer {
        self.connection.take();
        let answer = self.exchange(line, head, body);
        self.connection.take();
        answer
    }

    /// Sends a request and takes the answer as it is, over the connection that is kept. `None`: there was no answer.
    pub fn probe(&self, line: &str, head: &str, body: &[u8]) -> Option<Answer> {
        let mut connection = match self.kept() {
            Some(connection) => connection,
            None => self.try_connect().ok()?,
        };
        // A server that refuses early may close before it has read everything; its answer is there all the same.
        let _ = connection.get_mut().write_all(&[head.as_bytes(), body].concat());
        let answer = Answer::read(&mut connection, is_head(line))?;
        if answer.header("connection") != Some("close") {
            self.connection.replace(Some(connection));
        }
        Some(answer)
    }

    /// Sends a head made by hand and takes the answer as it is: not all answers are the service's.
    pub fn browse(&self, line: &str, head: &str) -> Answer {
        let mut connection = self.connect();
        connection.get_mut().write_all(head.as_bytes()).expect("sent");
        Answer::read(&mut connection, is_head(line)).unwrap_or_else(|| panic!("{line}: no answer"))
    }

    /// Sends a head and only a part of its body, then hangs up without waiting for an answer.
    pub fn hang_up(&self, head: &str, part: &[u8]) {
        let mut stream = self.connect().into_inner();
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(part)).expect("sent");
    }

    /// Sends a head and a part of its body and says that no more will come. The answer is `None` if there is none.
    pub fn cut_short(&self, line: &str, head: &str, part: &[u8]) -> Option<Answer> {
        let mut connection = self.connect();
        let stream = connection.get_mut();
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(part)).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        Answer::read(&mut connection, is_head(line))
    }

    /// Sends a request and takes only the head of the answer; the body stays on the way until it is asked for.
    pub fn begin(&self, line: &str, headers: Headers<'_>) -> Begun {
        let mut connection = self.connect();
        let head = self.head(line, headers, None);
        connection.get_mut().write_all(head.as_bytes()).expect("sent");
        let (status, headers) = read_head(&mut connection).expect("an answer");
        Begun { answer: Answer { status, headers, body: Vec::new() }, connection }
    }

    /// The head of a signed request.
    pub fn head(&self, line: &str, headers: Headers<'_>, length: Option<u64>) -> String {
        let (verb, rest) = line.split_once(' ').expect("a verb and a target");
        let (target, host) = self.target(rest);
        let mut all: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())).collect();
        if let Some(length) = length.filter(|length| *length > 0 || verb == "PUT" || verb == "POST") {
            all.push(("content-length".into(), length.to_string()));
        }
        if !all.iter().any(|(name, _)| name == "x-ms-version") {
            all.push(("x-ms-version".into(), VERSION.into()));
        }
        all.push(("x-ms-date".into(), dates::http_date(wall_clock()).to_string()));
        let signature = self.key.sign((self.string_to_sign)(verb, &target, &all).as_bytes());
        all.push(("authorization".into(), format!("SharedKey {ACCOUNT}:{signature}")));
        written(verb, &target, &host, &all)
    }

    /// Where something of the account is, as others would be told.
    pub fn url(&self, target: &str) -> String {
        let (target, host) = self.target(target);
        format!("http://{host}{target}")
    }

    /// Signs a text with the key of the account, for signatures that go into a URL.
    pub fn sign(&self, text: &str) -> String {
        self.key.sign(text.as_bytes()).to_string()
    }

    /// The head of a request that nobody signed.
    pub fn unsigned_head(&self, line: &str, headers: Headers<'_>) -> String {
        let (verb, rest) = line.split_once(' ').expect("a verb and a target");
        let mut all: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.push(("x-ms-version".into(), VERSION.into()));
        let (target, host) = self.target(rest);
        written(verb, &target, &host, &all)
    }

    fn exchange(&self, line: &str, head: &str, body: &[u8]) -> Answer {
        let mut connection = self.kept().unwrap_or_else(|| self.connect());
        let stream = connection.get_mut();
        // A server that refuses early may close before it has read everything; its answer is there all the same.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        let answer = Answer::read(&mut connection, is_head(line)).unwrap_or_else(|| panic!("{line}: no answer"));
        answer.check(line);
        if answer.header("connection") != Some("close") {
            self.connection.replace(Some(connection));
        }
        answer
    }

    fn connect(&self) -> BufReader<TcpStream> {
        self.try_connect().expect("the server listens")
    }

    fn try_connect(&self) -> std::io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.next_address())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }
}

/// Why a call has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoAnswer {
    /// There was no connection, so the server never saw the request.
    NotSent,
    /// The connection ended; the request may have been carried out or not.
    Lost,
}

/// An answer whose body is still to come.
pub struct Begun {
    pub answer: Answer,
    connection: BufReader<TcpStream>,
}

impl Begun {
    /// Takes the rest.
    pub fn finish(mut self) -> Answer {
        self.answer.body = read_body(&mut self.connection, &self.answer.headers).expect("the whole body");
        self.answer
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The status, and the error code if there is one: `201`, `412 LeaseIdMissing`.
    pub fn said(&self) -> String {
        match self.header("x-ms-error-code") {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Goes on only with a success.
    #[track_caller]
    pub fn ok(self) -> Answer {
        assert!(self.is_success(), "{} {}", self.said(), String::from_utf8_lossy(&self.body));
        self
    }

    #[track_caller]
    pub fn etag(&self) -> String {
        self.header("etag").expect("an ETag").to_owned()
    }

    #[track_caller]
    pub fn last_modified(&self) -> String {
        self.header("last-modified").expect("a Last-Modified").to_owned()
    }

    #[track_caller]
    pub fn xml(&self) -> Element {
        assert_eq!(self.header("content-type"), Some("application/xml"));
        Element::parse(&self.body).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// What all answers have in common.
    fn check(&self, line: &str) {
        for name in ["x-ms-request-id", "x-ms-version", "date"] {
            assert!(self.header(name).is_some(), "{line}: {} without {name}", self.status);
        }
        let code = self.header("x-ms-error-code");
        assert_eq!(code.is_some(), self.status >= 300, "{line}: {} {code:?}", self.status);
        assert_ne!(self.status, 500, "{line}: {}", String::from_utf8_lossy(&self.body));
        if self.status >= 300 && self.status != 304 && !is_head(line) {
            let is_json = self.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
            let (said, message) = if is_json { self.json_error() } else { self.xml_error() };
            assert_eq!(Some(said.as_str()), code, "{line}");
            assert!(message.contains("\nRequestId:") && message.contains("\nTime:"), "{line}: {message}");
        }
    }

    /// Code and message of a refusal.
    fn xml_error(&self) -> (String, String) {
        let error = self.xml();
        assert_eq!(error.name, "Error");
        (error.text_of("Code").expect("a code"), error.text_of("Message").expect("a message"))
    }

    /// The same, as the Table service has it.
    fn json_error(&self) -> (String, String) {
        let json = self.json();
        let error = &json["odata.error"];
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        (text(&error["code"]), text(&error["message"]["value"]))
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.body)))
    }

    fn read(connection: &mut BufReader<TcpStream>, is_head: bool) -> Option<Answer> {
        let (status, headers) = loop {
            let (status, headers) = read_head(connection)?;
            if status != 100 {
                break (status, headers);
            }
        };
        let has_body = !is_head && status != 304 && status != 204;
        let body = if has_body { read_body(connection, &headers)? } else { Vec::new() };
        Some(Answer { status, headers, body })
    }
}

fn is_head(line: &str) -> bool {
    line.starts_with("HEAD ")
}

fn read_head(connection: &mut BufReader<TcpStream>) -> Option<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        connection.read_line(line).ok().filter(|count| *count > 0)
    };
    next(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let mut headers = Vec::new();
    loop {
        next(&mut line)?;
        let text = line.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Some((status, headers));
        }
        let (name, value) = text.split_once(':').expect("a header");
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// `None`: the connection ended before the whole body was there.
fn read_body(connection: &mut BufReader<TcpStream>, headers: &[(String, String)]) -> Option<Vec<u8>> {
    if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
        return read_chunks(connection);
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value);
    let length: usize = length.expect("a Content-Length").parse().expect("a number");
    let mut body = vec![0; length];
    connection.read_exact(&mut body).ok()?;
    Some(body)
}

/// A body of unknown length: pieces, each with its length in hexadecimal before it, up to one of none.
fn read_chunks(connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let length = usize::from_str_radix(line.trim(), 16).expect("a length");
        let mut piece = vec![0; length + 2];
        connection.read_exact(&mut piece).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(&piece[..length]);
    }
}

fn written(verb: &str, target: &str, host: &str, headers: &[(String, String)]) -> String {
    let mut head = format!("{verb} {target} HTTP/1.1\r\nhost: {host}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

/// The text that Shared Key signs; see the REST reference, "Authorize with Shared Key".
fn string_to_sign(verb: &str, target: &str, headers: &[(String, String)]) -> String {
    const LINES: [&str; 11] = [
        "content-encoding",
        "content-language",
        "content-length",
        "content-md5",
        "content-type",
        "date",
        "if-modified-since",
        "if-match",
        "if-none-match",
        "if-unmodified-since",
        "range",
    ];
    let value_of = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.trim());
        found.filter(|value| wanted != "content-length" || *value != "0").unwrap_or_default()
    };
    let mut text = format!("{verb}\n");
    for name in LINES {
        text += &format!("{}\n", value_of(name));
    }
    let mut named: Vec<_> = headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
    named.sort();
    for (name, value) in named {
        text += &format!("{name}:{}\n", value.trim());
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    text += &format!("/{ACCOUNT}{path}");
    let mut pairs: Vec<_> =
        percent::query_pairs(query).filter_map(Result::ok).map(|(name, value)| (name.to_lowercase(), value)).collect();
    pairs.sort();
    for (name, value) in pairs {
        text += &format!("\n{name}:{value}");
    }
    text
}

/// The same for the Table service, which signs less.
fn table_string_to_sign(verb: &str, target: &str, headers: &[(String, String)]) -> String {
    let value_of = |wanted: &str| {
        headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.trim()).unwrap_or_default()
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let comp = query.split('&').find(|pair| pair.starts_with("comp="));
    let comp = comp.map(|comp| format!("?{comp}")).unwrap_or_default();
    let lines = [verb, value_of("content-md5"), value_of("content-type"), value_of("x-ms-date")];
    format!("{}\n/{ACCOUNT}{path}{comp}", lines.join("\n"))
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    Timestamp::UNIX_EPOCH.plus_ticks(since.as_secs() * Timestamp::TICKS_PER_SECOND)
}

/// A date of a header, moved by whole seconds.
pub fn date_after(date: &str, seconds: i64) -> String {
    let ticks = dates::parse_http_date(date).expect("a date").0;
    let moved = ticks.saturating_add_signed(seconds * Timestamp::TICKS_PER_SECOND as i64);
    dates::http_date(Timestamp(moved)).to_string()
}

/// A POST to the admin port; gives back everything that comes.
pub fn plain_post(address: SocketAddr, path: &str, body: &str) -> String {
    plain(address, &format!("POST {path}"), body)
}

/// The same for a GET.
pub fn plain_get(address: SocketAddr, path: &str) -> String {
    plain(address, &format!("GET {path}"), "")
}

fn plain(address: SocketAddr, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the admin port");
    let length = body.len();
    let request =
        format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}
