//! A server of the test's own in this process, and a client that speaks HTTP by hand: a library would hide exactly what
//! these tests are about.

// No test file uses all of it. And clippy does not see that this is for tests only.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use auth::{Account, AccountKey, Accounts, Key, Tokens};
use concurrency::Timestamp;
use engine::Engine;
use engine::memory::MemoryEngine;
use server::{Door, Doors, Hosts, Limits, Manners, Server, Service, Setup, Shared, SmbEncryption};
use tokio::sync::oneshot;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, Stream};
use wire::dates;

pub const ACCOUNT: &str = "acct";
pub const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
/// Signed by itself for localhost and 127.0.0.1, and for these tests only.
pub const CERTIFICATE: &[u8] = include_bytes!("localhost.crt");
const CERTIFICATE_KEY: &[u8] = include_bytes!("localhost.key");
/// Only against hanging: a busy machine takes its time.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It ends when it is dropped, or by `stop`.
pub struct Running {
    pub blob: SocketAddr,
    pub queue: SocketAddr,
    pub table: SocketAddr,
    pub file: SocketAddr,
    pub dfs: SocketAddr,
    pub admin: SocketAddr,
    pub accounts: Arc<Shared<Accounts>>,
    pub tokens: Arc<Shared<Tokens>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What tests have differently.
pub struct Choice {
    pub engine: Arc<dyn Engine>,
    pub limits: Limits,
    pub test_clock: bool,
    pub tls: bool,
    pub tokens: Tokens,
    pub copy_sources: fetch::Hosts,
    pub manners: Manners,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            engine: Arc::new(MemoryEngine::default()),
            limits: Limits::default(),
            test_clock: false,
            tls: false,
            tokens: Tokens::refused(),
            copy_sources: fetch::Hosts::loopback(),
            manners: Manners::Azure,
        }
    }
}

pub fn start() -> Running {
    start_with(Limits::default(), true)
}

pub fn start_with(limits: Limits, test_clock: bool) -> Running {
    start_as(Choice { limits, test_clock, ..Choice::default() })
}

pub fn start_on(engine: Arc<dyn Engine>, limits: Limits, test_clock: bool) -> Running {
    start_as(Choice { engine, limits, test_clock, ..Choice::default() })
}

pub fn start_as(choice: Choice) -> Running {
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let accounts = Arc::new(Shared::new(accounts([KEY])));
    let tokens = Arc::new(Shared::new(choice.tokens));
    let setup = Setup {
        engine: choice.engine,
        accounts: Arc::clone(&accounts) as _,
        tokens: Arc::clone(&tokens),
        issuer: None,
        tls: choice.tls.then(server_config),
        delegation_secret: [7; 32],
        hosts: Hosts::MayNameAccounts,
        copy_sources: choice.copy_sources,
        manners: choice.manners,
        limits: choice.limits,
        access_log: None,
        test_clock: choice.test_clock,
        smb: SmbEncryption::default(),
        cluster: None,
        admin_names: vec!["admin.example.org".into()],
    };
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let mut doors = Doors::default();
            let [blob, queue, table, file, dfs] =
                [Service::Blob, Service::Queue, Service::Table, Service::File, Service::Dfs]
                    .map(|service| doors.open(Door::Rest(service), any, None).unwrap());
            let admin = doors.open(Door::Admin, any, None).unwrap();
            let server = Server::new(setup).await.unwrap();
            tell.send((blob, queue, table, file, dfs, admin)).unwrap();
            let stop = async {
                let _ = stopped.await;
            };
            server.run(doors, stop).await.unwrap();
        });
    });
    let (blob, queue, table, file, dfs, admin) = told.recv_timeout(PATIENCE).unwrap();
    Running { blob, queue, table, file, dfs, admin, accounts, tokens, stop: Some(stop), thread: Some(thread) }
}

/// The one account with these keys.
pub fn accounts<const N: usize>(keys: [&str; N]) -> Accounts {
    let keys = keys.iter().map(|key| AccountKey::from_base64(key).unwrap()).collect();
    Accounts::new([Account::new(ACCOUNT, keys)])
}

fn server_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(CERTIFICATE_KEY).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

/// A client that trusts that certificate and offers these protocols.
fn client_connection(protocols: &[&[u8]]) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap()
}

impl Running {
    /// Asks the server to end, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn client(&self) -> Client {
        Client::to(self.blob)
    }

    /// Makes a container with a blob in it.
    pub fn with_blob(self, content: &[u8]) -> Running {
        let mut client = self.client();
        assert_eq!(client.ask(&signed("PUT", "/acct/box?restype=container", "", b"")).status, 201);
        assert_eq!(client.ask(&put_blob("/acct/box/thing", content)).status, 201);
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        if !std::thread::panicking() {
            self.wait();
        }
    }
}

/// An account signature for everything, as a query.
pub fn sas() -> String {
    sas_for("rwdlacup")
}

/// An account signature with these permissions.
pub fn sas_for(sp: &str) -> String {
    sas_with(sp, "")
}

/// The same for a protocol.
pub fn sas_with(sp: &str, spr: &str) -> String {
    account_sas("bqtf", "sco", sp, spr)
}

pub fn account_sas(ss: &str, srt: &str, sp: &str, spr: &str) -> String {
    let (se, sv) = (EXPIRY, "2021-12-02");
    let text = [ACCOUNT, sp, ss, srt, "", se, "", spr, sv, "", ""].join("\n");
    let spr = if spr.is_empty() { String::new() } else { format!("&spr={spr}") };
    format!("sv={sv}&ss={ss}&srt={srt}&sp={sp}&se={se}{spr}&sig={}", signature(&text))
}

pub const EXPIRY: &str = "2098-01-01T00:00:00Z";

/// The account's signature of a text, for a query.
pub fn signature(text: &str) -> String {
    escaped(&Key::from_base64(KEY).unwrap().sign(text.as_bytes()))
}

pub fn escaped(signature: &str) -> String {
    signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// A signature with one of the account's keys for a container (`sr` is `c`) or a blob in it (`b`), or by a policy `si`
/// instead of permissions.
pub fn service_sas(sr: &str, resource: &str, sp: &str, si: &str) -> String {
    let (sv, se) = ("2021-12-02", if si.is_empty() { EXPIRY } else { "" });
    let resource = format!("/blob/{ACCOUNT}/{resource}");
    let text = [sp, "", se, &resource, si, "", "", sv, sr, "", "", "", "", "", "", ""].join("\n");
    let fields = [("sp", sp), ("se", se), ("si", si)].into_iter().filter(|(_, value)| !value.is_empty());
    let fields: String = fields.map(|(name, value)| format!("&{name}={value}")).collect();
    format!("sv={sv}&sr={sr}{fields}&sig={}", signature(&text))
}

/// A whole request signed with the account's key, in the short form.
pub fn by_owner(method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!("x-ms-date: {}\r\nx-ms-version: 2021-12-02\r\n{headers}", dates::http_date(now()));
    let lines = headers.lines().filter_map(|line| line.split_once(": "));
    let mut signed: Vec<String> = lines.map(|(name, value)| format!("{}:{value}\n", name.to_lowercase())).collect();
    signed.retain(|line| line.starts_with("x-ms-"));
    signed.sort();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let comp = query.split('&').find(|pair| pair.starts_with("comp=")).map(|comp| format!("?{comp}"));
    let text = format!("{method}\n\n\n\n{}/{ACCOUNT}{path}{}", signed.concat(), comp.unwrap_or_default());
    let signature = Key::from_base64(KEY).unwrap().sign(text.as_bytes());
    raw(method, target, &format!("{headers}Authorization: SharedKeyLite {ACCOUNT}:{signature}\r\n"), body)
}

pub fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::UNIX_EPOCH.plus_ticks(since.as_nanos() as u64 / 100)
}

pub const OID: &str = "11111111-1111-1111-1111-111111111111";
pub const TID: &str = "22222222-2222-2222-2222-222222222222";

/// Lines with a token that says the right things and that nobody has signed.
pub fn bearer() -> String {
    let now = now().unix_seconds();
    let claims = format!(
        "{{\"aud\":\"https://storage.azure.com\",\"iss\":\"https://sts.windows.net/{TID}/\",\"oid\":\"{OID}\",\"tid\":\"{TID}\",\
         \"iat\":{now},\"nbf\":{now},\"exp\":{}}}",
        now + 3600
    );
    let part = |text: &str| {
        let text = wire::base64::encode(text.as_bytes());
        text.replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned()
    };
    let token = format!("{}.{}.", part("{\"alg\":\"RS256\",\"typ\":\"JWT\"}"), part(&claims));
    format!("Authorization: Bearer {token}{}\r\nx-ms-version: 2021-12-02\r\n", part("no signature"))
}

/// The text between two tags.
pub fn element<'a>(xml: &'a str, name: &str) -> &'a str {
    let (_, rest) = xml.split_once(&format!("<{name}>")).expect("the element");
    rest.split_once("</").expect("its end").0
}

/// Adds to the query of a URL.
pub fn with_query(target: &str, query: &str) -> String {
    let sign = if target.contains('?') { '&' } else { '?' };
    format!("{target}{sign}{query}")
}

/// A whole request with a signature. `headers` are lines that end in `\r\n`.
pub fn signed(method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    raw(method, &with_query(target, &sas()), headers, body)
}

pub fn raw(method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

pub fn put_blob(path: &str, content: &[u8]) -> Vec<u8> {
    signed("PUT", path, "x-ms-blob-type: BlockBlob\r\n", content)
}

/// The ways to learn that a server has closed; the last one is TLS without a goodbye.
const CLOSED: [ErrorKind; 3] = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::UnexpectedEof];

pub struct Client {
    pub tcp: TcpStream,
    pub tls: Option<Box<ClientConnection>>,
    buffered: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub reason: String,
    pub headers: HashMap<String, String>,
    /// The head as it came.
    pub spelled: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn code(&self) -> &str {
        self.header("x-ms-error-code")
    }
}

impl Client {
    pub fn to(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect(address).unwrap())
    }

    pub fn over(tcp: TcpStream) -> Client {
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { tcp, tls: None, buffered: Vec::new() }
    }

    /// The same inside TLS.
    pub fn secure(address: SocketAddr) -> Client {
        Client { tls: Some(Box::new(client_connection(&[b"http/1.1"]))), ..Client::to(address) }
    }

    /// The same with other protocols on offer.
    pub fn offering(address: SocketAddr, protocols: &[&[u8]]) -> Client {
        Client { tls: Some(Box::new(client_connection(protocols))), ..Client::to(address) }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.write(bytes).unwrap();
    }

    /// Sends what the server lets us send.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.write(bytes).is_ok()
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.tls {
            None => self.tcp.write_all(bytes),
            Some(tls) => {
                let mut stream = Stream::new(tls.as_mut(), &mut self.tcp);
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    pub fn ask(&mut self, request: &[u8]) -> Answer {
        self.send(request);
        if request.starts_with(b"HEAD") { self.receive_head() } else { self.receive() }
    }

    /// The next answer with its body.
    pub fn receive(&mut self) -> Answer {
        let mut answer = self.receive_head();
        let length: usize = answer.header("content-length").parse().unwrap_or(0);
        while self.buffered.len() < length {
            assert!(self.fill(), "the body was cut off: {answer:?}");
        }
        answer.body = self.buffered.drain(..length).collect();
        answer
    }

    /// The next status line and headers.
    pub fn receive_head(&mut self) -> Answer {
        let end = loop {
            match self.buffered.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at,
                None => assert!(self.fill(), "closed before an answer"),
            }
        };
        let head: Vec<u8> = self.buffered.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap();
        let mut words = status_line.splitn(3, ' ');
        let (_, status, reason) = (words.next(), words.next().unwrap(), words.next().unwrap_or_default());
        let headers = lines.map(|line| line.split_once(": ").unwrap_or((line, "")));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Answer {
            status: status.parse().unwrap(),
            reason: reason.to_owned(),
            headers,
            spelled: head.clone(),
            body: Vec::new(),
        }
    }

    /// Whether the server has closed the connection, or does so soon.
    pub fn is_closed(&mut self) -> bool {
        self.buffered.is_empty() && !self.fill()
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        let read = match &mut self.tls {
            None => self.tcp.read(&mut buffer),
            Some(tls) => Stream::new(tls.as_mut(), &mut self.tcp).read(&mut buffer),
        };
        match read {
            Ok(0) => false,
            Ok(read) => {
                self.buffered.extend_from_slice(&buffer[..read]);
                true
            }
            Err(error) if CLOSED.contains(&error.kind()) => false,
            Err(error) => panic!("the server neither answers nor closes: {error}"),
        }
    }
}

/// A connection from another address of this machine.
pub fn client_from(address: [u8; 4], to: SocketAddr) -> Client {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tcp = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((address, 0))).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    tcp.set_nonblocking(false).unwrap();
    Client::over(tcp)
}
