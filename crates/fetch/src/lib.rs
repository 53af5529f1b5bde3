//! Asking another server: one GET or HEAD over http or https, with a limit on everything, and the body as it comes.
//!
//! One request, one connection, unless the caller asks for [`KeepingClient`]. A redirect is an answer like any other: to follow it, the caller has to decide anew whether
//! that is a place to go to, and so it is with whether to ask at all. Nothing here says what was asked for: a URL may
//! carry a signature.
//!
//! Whoever may make this server ask must not thereby reach what only this server can reach. So a client that asks on behalf
//! of others is kept [`Client::within`] some [`Hosts`]: the name is resolved once, the addresses that came of it are judged,
//! and the connection goes to one of exactly those.

pub mod hosts;
mod kept;
pub mod url;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::Scheme};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use wire::http::{BodyError, BoxFuture};

pub use hosts::{BadHost, Hosts};
pub use kept::KeepingClient;
pub use url::{BadUrl, Url};

/// How long and how large.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Finding the address, connecting and the handshake of TLS, together.
    pub connect: Duration,
    /// From the request to the head of the answer.
    pub answer: Duration,
    /// About how long the head of the answer may be: the buffer it is read into. Not less than 8 KiB.
    pub head_bytes: usize,
    /// The other side may pause this long within a body.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            pause: Duration::from_secs(30),
        }
    }
}

/// Asks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Client {
    limits: Limits,
    /// Made when it is needed for the first time: many never ask over https.
    tls: Arc<OnceCell<Arc<ClientConfig>>>,
    /// `None`: everywhere.
    hosts: Option<Arc<Hosts>>,
}

/// What the other side said.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// Why there is no answer, or not all of it.
#[derive(Debug)]
pub enum FetchError {
    /// Not `http://host...` or `https://host...`.
    Url,
    /// The host is not one to go to, or not at the address that it has.
    NotAllowed,
    /// The name has no address, or nothing listens there.
    Unreachable(io::Error),
    /// This machine has no certificates of authorities, so no server can be trusted.
    NoTrust,
    /// No connection over TLS, because of the certificate or otherwise.
    Tls(io::Error),
    /// What came is not HTTP.
    Protocol(hyper::Error),
    Slow,
    /// More bytes than the caller takes.
    TooLarge,
    /// The body ended too early, or does not keep to its own form.
    Incomplete,
}

impl Client {
    /// Trusts the authorities that the machine trusts; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    pub fn new(limits: Limits) -> Client {
        Client { limits, tls: Arc::default(), hosts: None }
    }

    /// Trusts these authorities only.
    pub fn trusting(limits: Limits, authorities: RootCertStore) -> Client {
        Client { limits, tls: Arc::new(OnceCell::new_with(Some(config(authorities)))), hosts: None }
    }

    /// Goes to these hosts only.
    pub fn within(self, hosts: Hosts) -> Client {
        Client { hosts: Some(Arc::new(hosts)), ..self }
    }

    pub async fn get(&self, url: &Uri, headers: HeaderMap) -> Result<Answer, FetchError> {
        self.ask(Method::GET, url, headers).await
    }

    pub async fn head(&self, url: &Uri, headers: HeaderMap) -> Result<Answer, FetchError> {
        self.ask(Method::HEAD, url, headers).await
    }

    async fn ask(&self, method: Method, url: &Uri, headers: HeaderMap) -> Result<Answer, FetchError> {
        let place = Endpoint::of(url)?;
        let request = request(method, url, &place, headers)?;
        self.send(&place, request, self.limits.answer).await
    }

    async fn send<B>(&self, place: &Endpoint<'_>, request: Request<B>, answer: Duration) -> Result<Answer, FetchError>
    where
        B: hyper::body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut sender, connection) = self.connect(place).await?;
        let answered = timeout(answer, sender.send_request(request)).await.map_err(|_| FetchError::Slow)?;
        Ok(self.answer(answered.map_err(FetchError::Protocol)?, connection, None))
    }

    /// A connection that is ready for a request.
    async fn connect<B>(&self, place: &Endpoint<'_>) -> Result<(SendRequest<B>, Connection), FetchError>
    where
        B: hyper::body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let tcp = self.reach(place);
        let slow = |_| FetchError::Unreachable(io::ErrorKind::TimedOut.into());
        if place.https {
            let connected = timeout(self.limits.connect, async {
                let config = self.tls.get_or_try_init(trusting_the_machine).await?;
                let name = ServerName::try_from(place.host.to_owned()).map_err(|_| FetchError::Url)?;
                let tcp = tcp.await?;
                TlsConnector::from(Arc::clone(config)).connect(name, tcp).await.map_err(FetchError::Tls)
            });
            self.speak(connected.await.map_err(slow)??).await
        } else {
            self.speak(timeout(self.limits.connect, tcp).await.map_err(slow)??).await
        }
    }

    /// Connects to an address that the name has now, if it is one to go to.
    async fn reach(&self, place: &Endpoint<'_>) -> Result<TcpStream, FetchError> {
        let Some(hosts) = &self.hosts else {
            return TcpStream::connect((place.host, place.port)).await.map_err(FetchError::Unreachable);
        };
        let host = place.host.strip_suffix('.').unwrap_or(place.host).to_ascii_lowercase();
        // Before the address is looked up: the question alone tells the name server something.
        if !hosts.may_ask_for(&host, place.port) {
            return Err(FetchError::NotAllowed);
        }
        let found = lookup_host((host.as_str(), place.port)).await.map_err(FetchError::Unreachable)?;
        let found: Vec<SocketAddr> = found.filter(|at| hosts.allow(&host, at.ip(), at.port())).collect();
        if found.is_empty() {
            return Err(FetchError::NotAllowed);
        }
        TcpStream::connect(found.as_slice()).await.map_err(FetchError::Unreachable)
    }

    async fn speak<S, B>(&self, stream: S) -> Result<(SendRequest<B>, Connection), FetchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        B: hyper::body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(self.limits.head_bytes);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(FetchError::Protocol)?;
        Ok((sender, Connection(tokio::spawn(connection).abort_handle())))
    }

    fn answer(&self, answer: Response<Incoming>, connection: Connection, keep: Option<Keep>) -> Answer {
        let (parts, incoming) = answer.into_parts();
        let pause = self.limits.pause;
        let body = Body { incoming, pause, has_ended: false, connection: Some(connection), keep };
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

/// What becomes of a connection whose answer was read to its end.
type Keep = Box<dyn FnOnce(Connection) + Send + Sync>;

/// Where to connect to.
struct Endpoint<'a> {
    https: bool,
    host: &'a str,
    port: u16,
}

impl Endpoint<'_> {
    fn of(url: &Uri) -> Result<Endpoint<'_>, FetchError> {
        let https = match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(FetchError::Url),
        };
        let host = url.host().filter(|host| !host.is_empty()).ok_or(FetchError::Url)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(Endpoint { https, host, port: url.port_u16().unwrap_or(if https { 443 } else { 80 }) })
    }
}

fn request(
    method: Method,
    url: &Uri,
    place: &Endpoint<'_>,
    mut headers: HeaderMap,
) -> Result<Request<String>, FetchError> {
    let authority = url.authority().ok_or(FetchError::Url)?.as_str();
    // What stands before the `@` would be credentials, which are not sent.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let usual = if place.https { ":443" } else { ":80" };
    let host = host.strip_suffix(usual).unwrap_or(host);
    headers.insert(header::HOST, HeaderValue::from_str(host).map_err(|_| FetchError::Url)?);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(method).uri(path).body(String::new()).map_err(|_| FetchError::Url)?;
    *request.headers_mut() = headers;
    Ok(request)
}

async fn trusting_the_machine() -> Result<Arc<ClientConfig>, FetchError> {
    // Some hundred small files, perhaps.
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
    let found = found.await.map_err(|_| FetchError::NoTrust)?;
    let authorities = authorities(found.certs);
    if authorities.is_empty() { Err(FetchError::NoTrust) } else { Ok(config(authorities)) }
}

/// A store has old certificates that cannot be read any more; they are passed over.
pub fn authorities(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

fn config(authorities: RootCertStore) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the suites of these versions");
    Arc::new(config.with_root_certificates(authorities).with_no_client_auth())
}

/// A body on its way in.
pub struct Body {
    incoming: Incoming,
    pause: Duration,
    has_ended: bool,
    connection: Option<Connection>,
    /// `None`: the connection ends with the body.
    keep: Option<Keep>,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("incoming", &self.incoming).finish_non_exhaustive()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let is_whole = self.has_ended || self.incoming.is_end_stream();
        if let (true, Some(keep), Some(connection)) = (is_whole, self.keep.take(), self.connection.take()) {
            keep(connection);
        }
    }
}

/// Dropping it ends the connection.
#[derive(Debug)]
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body {
    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut self.incoming).poll_frame(context));
            match timeout(self.pause, frame).await.map_err(|_| FetchError::Slow)? {
                None => {
                    self.has_ended = true;
                    return Ok(None);
                }
                // There may be trailers; nobody here needs them.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => continue,
                },
                Some(Err(_)) => return Err(FetchError::Incomplete),
            }
        }
    }

    /// The whole of it, if it is small.
    pub async fn whole(mut self, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            if whole.len() + bytes.len() > bytes_max {
                return Err(FetchError::TooLarge);
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}

/// So that it can be stored as if a client had sent it.
impl wire::http::Body for Body {
    fn length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        Box::pin(async {
            match Body::next(self).await {
                Ok(bytes) => bytes.map(Ok),
                Err(FetchError::Slow) => Some(Err(BodyError::TimedOut)),
                Err(_) => Some(Err(BodyError::Incomplete)),
            }
        })
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Url => f.write_str("it is not an http or https URL"),
            FetchError::NotAllowed => f.write_str("it is not a host that this server may ask"),
            FetchError::Unreachable(error) => write!(f, "it cannot be reached: {error}"),
            FetchError::NoTrust => {
                f.write_str("this machine trusts no certificate authority; SSL_CERT_FILE can name a file of them")
            }
            FetchError::Tls(error) => write!(f, "no secure connection: {error}"),
            FetchError::Protocol(error) => write!(f, "it does not speak HTTP as it should: {error}"),
            FetchError::Slow => f.write_str("it takes too long"),
            FetchError::TooLarge => f.write_str("it sends more than is taken"),
            FetchError::Incomplete => f.write_str("the answer ended too early"),
        }
    }
}

impl std::error::Error for FetchError {}

#[cfg(test)]
mod tests;
