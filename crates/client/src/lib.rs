//! Getting something over HTTP from hosts that the operator allows.
//!
//! Whoever may ask this server to fetch a URL must not thereby reach what only this server can reach. So every request
//! goes to a host that an entry of [`Hosts`] allows; the name is resolved once, the addresses that came of it are judged,
//! and the connection goes to one of exactly those. No redirect is followed and no proxy is asked.
//!
//! - [`url`]: what a URL says
//! - [`hosts`]: where we may go
//! - [`Client`]: one GET, one connection

pub mod hosts;
pub mod url;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub use hosts::{BadHost, Hosts};
pub use url::{BadUrl, Url};

/// Name, connection and handshake must be there in this time.
const CONNECT: Duration = Duration::from_secs(20);
/// A host may think this long before its answer begins.
const ANSWER: Duration = Duration::from_secs(60);
/// It may pause this long within a body.
const PAUSE: Duration = Duration::from_secs(60);
/// The head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Gets what URLs name, as far as it may.
#[derive(Clone)]
pub struct Client {
    hosts: Hosts,
    /// Read when it is first needed: most servers never go anywhere.
    tls: Arc<OnceLock<Arc<ClientConfig>>>,
}

/// What came back. An error status is an answer, too.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// Why there is no answer, or no more of it. Says nothing about what the network looks like from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GetError {
    /// No entry of the configuration allows this host, or not at the address that it has.
    NotAllowed,
    /// It has no address, does not take the connection, or is not who it says it is.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// It ended before its end, or is no HTTP.
    Broken,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GetError::NotAllowed => "The host is not one that this server may read from.",
            GetError::Unreachable => "The host cannot be reached.",
            GetError::TimedOut => "The host took too long.",
            GetError::Broken => "The answer of the host ended early or makes no sense.",
        })
    }
}

impl std::error::Error for GetError {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that trusts the certificates that this machine trusts.
    #[must_use]
    pub fn new(hosts: Hosts) -> Client {
        Client { hosts, tls: Arc::default() }
    }

    /// A client that trusts others.
    #[must_use]
    pub fn trusting(hosts: Hosts, roots: RootCertStore) -> Client {
        Client { hosts, tls: Arc::new(OnceLock::from(config(roots))) }
    }

    /// Asks for what `url` names.
    pub async fn get(&self, url: &Url, headers: HeaderMap) -> Result<Answer, GetError> {
        let mut sender = timeout(CONNECT, self.connect(url)).await.map_err(|_| GetError::TimedOut)??;
        let mut request = Request::get(url.path_and_query()).body(String::new()).map_err(|_| GetError::Broken)?;
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&url.authority()).map_err(|_| GetError::Broken)?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let answer = timeout(ANSWER, sender.send_request(request)).await.map_err(|_| GetError::TimedOut)?;
        let (head, body) = answer.map_err(broken)?.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body: Body(body) })
    }

    async fn connect(&self, url: &Url) -> Result<SendRequest<String>, GetError> {
        let tcp = self.reach(url).await?;
        let _ = tcp.set_nodelay(true);
        if !url.is_https() {
            return speak(tcp).await;
        }
        let name = ServerName::try_from(url.host().to_owned()).map_err(|_| GetError::Unreachable)?;
        let config = self.tls.get_or_init(|| config(native_roots()));
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await.map_err(unreachable)?;
        speak(stream).await
    }

    /// Connects to an address that the name has now, if it is one we may go to.
    async fn reach(&self, url: &Url) -> Result<TcpStream, GetError> {
        // Before anybody is asked for the address: the question alone tells something to who answers it.
        if !self.hosts.may_ask_for(url.host(), url.port()) {
            return Err(GetError::NotAllowed);
        }
        let found: Vec<SocketAddr> = match url.ip() {
            Some(ip) => vec![SocketAddr::new(ip, url.port())],
            None => lookup_host((url.host(), url.port())).await.map_err(unreachable)?.collect(),
        };
        let allowed: Vec<SocketAddr> =
            found.iter().copied().filter(|at| self.hosts.allow(url.host(), at.ip(), at.port())).collect();
        if allowed.is_empty() {
            return Err(if found.is_empty() { GetError::Unreachable } else { GetError::NotAllowed });
        }
        TcpStream::connect(allowed.as_slice()).await.map_err(unreachable)
    }
}

/// Begins to speak HTTP. The connection runs until both sides have said everything, or this side drops its end.
async fn speak(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<SendRequest<String>, GetError> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(connection);
    Ok(sender)
}

fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn native_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the certificates that this machine trusts cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}

fn unreachable(error: io::Error) -> GetError {
    tracing::debug!(%error, "a host cannot be reached");
    GetError::Unreachable
}

fn broken(error: hyper::Error) -> GetError {
    tracing::debug!(%error, "an answer is broken");
    GetError::Broken
}

/// A body on its way in. Dropped, the connection ends.
#[derive(Debug)]
pub struct Body(Incoming);

impl Body {
    /// The next bytes; `None` at the end. A body that is cut is an error, never an end.
    pub async fn next(&mut self) -> Option<Result<Bytes, GetError>> {
        loop {
            let mut body: Pin<&mut Incoming> = pin!(&mut self.0);
            let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx));
            let frame = match timeout(PAUSE, frame).await {
                Err(_) => return Some(Err(GetError::TimedOut)),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(broken(error))),
                Ok(Some(Ok(frame))) => frame,
            };
            if let Ok(bytes) = frame.into_data()
                && !bytes.is_empty()
            {
                return Some(Ok(bytes));
            }
        }
    }

    /// All of it, if it is no more than `most` bytes.
    pub async fn collect(mut self, most: usize) -> Result<Vec<u8>, GetError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            if whole.len() + bytes.len() > most {
                return Err(GetError::Broken);
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server for one connection, which answers with these bytes. Returns its port, and what it was asked.
    async fn server(answer: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        (port, asked)
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[tokio::test]
    async fn an_answer_with_its_body() {
        let (port, asked) = server(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello").await;
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-4"));
        let url = url(&format!("http://localhost:{port}/a%20b?c=d%3D"));
        let answer = Client::new(Hosts::loopback()).get(&url, headers).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.headers["x-a"].to_str().unwrap()), (206, "b"));
        assert_eq!(answer.body.collect(5).await.unwrap(), b"hello");
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("GET /a%20b?c=d%3D HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains(&format!("host: localhost:{port}\r\n")), "{asked}");
        assert!(asked.contains("range: bytes=0-4\r\n"), "{asked}");
    }

    #[tokio::test]
    async fn a_body_that_is_cut_is_no_end_and_one_that_is_too_long_is_not_taken() {
        let (port, _asked) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello").await;
        let client = Client::new(Hosts::loopback());
        let answer = client.get(&url(&format!("http://127.0.0.1:{port}/")), HeaderMap::new()).await.unwrap();
        assert_eq!(answer.body.collect(100).await, Err(GetError::Broken));
        let (port, _asked) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        let answer = client.get(&url(&format!("http://127.0.0.1:{port}/")), HeaderMap::new()).await.unwrap();
        assert_eq!(answer.body.collect(4).await, Err(GetError::Broken));
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_like_any_other() {
        let (port, _asked) = server(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n").await;
        let client = Client::new(Hosts::loopback());
        let answer = client.get(&url(&format!("http://127.0.0.1:{port}/")), HeaderMap::new()).await.unwrap();
        assert_eq!(answer.status, 302);
    }

    #[tokio::test]
    async fn where_we_may_not_go_nobody_is_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let refused = async |hosts: &str, host: &str| {
            let client = Client::new(hosts.parse().unwrap());
            client.get(&url(&format!("http://{host}:{port}/")), HeaderMap::new()).await.unwrap_err()
        };
        // A name that is allowed must not lead back to this machine, which only `loopback` allows.
        assert_eq!(refused("localhost", "localhost").await, GetError::NotAllowed);
        assert_eq!(refused("*", "127.0.0.1").await, GetError::NotAllowed);
        assert_eq!(refused("*", "[::ffff:127.0.0.1]").await, GetError::NotAllowed);
        assert_eq!(refused("example.org", "127.0.0.1").await, GetError::NotAllowed);
        assert_eq!(refused("", "127.0.0.1").await, GetError::NotAllowed);
        assert_eq!(refused("loopback", "10.0.0.1").await, GetError::NotAllowed);
        let nobody = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(nobody.is_err(), "somebody came");
    }

    #[tokio::test]
    async fn nobody_listens_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let client = Client::new(Hosts::loopback());
        let answer = client.get(&url(&format!("http://127.0.0.1:{port}/")), HeaderMap::new()).await;
        assert_eq!(answer.unwrap_err(), GetError::Unreachable);
    }
}
