//! A connection before its protocol begins: plain, or inside TLS, in which this server speaks HTTP/1 and nothing else.
//!
//! Certificates and their choice come with the setup. The protocol that TLS negotiates is set here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::limits::{LINGER_BYTES_MAX, Limits, SMB_PROBE_AFTER, SMB_PROBE_PAUSE, SMB_PROBES};

/// What carries the bytes of a port.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    Https(TlsAcceptor),
    /// TLS or not, as the first byte of the client says.
    Either(TlsAcceptor),
}

/// What a client sends first that begins TLS: the type of a handshake record.
const TLS_HANDSHAKE: u8 = 22;

impl Transport {
    pub(crate) fn https(config: &ServerConfig) -> Transport {
        let mut config = config.clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Transport::Https(TlsAcceptor::from(Arc::new(config)))
    }

    /// The same for a port whose clients may also do without TLS.
    pub(crate) fn or_plain(self) -> Transport {
        match self {
            Transport::Https(acceptor) => Transport::Either(acceptor),
            Transport::Plain | Transport::Either(_) => self,
        }
    }

    /// What stands at the beginning of a URL.
    pub(crate) fn is_https(&self) -> bool {
        match self {
            Transport::Https(_) => true,
            Transport::Plain | Transport::Either(_) => false,
        }
    }

    /// Makes a connection ready for its protocol. `None`: it came to nothing, is counted, and is closed.
    pub(crate) async fn accept(&self, tcp: TcpStream, limits: &Limits, failed: &AtomicU64) -> Option<Socket> {
        let deadline = Instant::now() + limits.handshake;
        let acceptor = match self {
            Transport::Plain => return Some(Socket::Plain(tcp)),
            Transport::Https(acceptor) => acceptor,
            Transport::Either(acceptor) => {
                let mut first = [0];
                match timeout_at(deadline, tcp.peek(&mut first)).await {
                    Ok(Ok(1)) if first[0] == TLS_HANDSHAKE => acceptor,
                    // A connection that has ended or failed already says so to its protocol.
                    Ok(_) => return Some(Socket::Plain(tcp)),
                    Err(_) => return None,
                }
            }
        };
        match timeout_at(deadline, shake_hands(acceptor, tcp)).await {
            Ok(Ok(stream)) => return Some(Socket::Tls(Box::new(stream))),
            Ok(Err((error, tcp))) => {
                failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a handshake failed");
                close(tcp, limits).await;
            }
            Err(_) => {
                failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!("a handshake took too long");
            }
        }
        None
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Transport::Plain => "Plain",
            Transport::Https(_) => "Https",
            Transport::Either(_) => "Either",
        })
    }
}

/// Has the system end an SMB connection whose other side is gone without a word: a machine that lost its power or its network.
pub(crate) fn notice_loss(tcp: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(SMB_PROBE_AFTER).with_interval(SMB_PROBE_PAUSE).with_retries(SMB_PROBES);
    if let Err(error) = SockRef::from(tcp).set_tcp_keepalive(&probes) {
        tracing::debug!(%error, "a connection that is lost will not be noticed");
    }
}

async fn shake_hands(
    acceptor: &TlsAcceptor,
    mut tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, (io::Error, TcpStream)> {
    let mut first = [0];
    match tcp.peek(&mut first).await {
        Ok(1) if first[0].is_ascii_uppercase() => {
            // A method: the client speaks plain HTTP to a TLS port. An HTTP answer tells it more than a TLS alert.
            let written = tcp.write_all(PLAIN_REFUSED.as_bytes()).await;
            Err((written.err().unwrap_or(io::Error::other("plain HTTP on a port for TLS")), tcp))
        }
        Ok(_) => acceptor.accept(tcp).into_fallible().await,
        Err(error) => Err((error, tcp)),
    }
}

/// The service has a word for that.
const PLAIN_REFUSED: &str = "HTTP/1.1 400 The account being accessed does not support http.\r\n\
    Content-Type: application/xml\r\n\
    x-ms-error-code: AccountRequiresHttps\r\n\
    Content-Length: 154\r\n\
    Connection: close\r\n\
    \r\n\
    <?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>AccountRequiresHttps</Code>\
    <Message>The account being accessed does not support http.</Message></Error>";

/// Ends a connection so that what was written arrives: closed over unread bytes, it would be reset.
async fn close(mut tcp: TcpStream, limits: &Limits) {
    let read_on = async {
        tcp.shutdown().await?;
        tokio::io::copy(&mut (&mut tcp).take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    };
    let _ = timeout(limits.linger, read_on).await;
}

/// The bytes of a connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    /// Boxed: it is some kilobytes, and most servers have none.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// What is under TLS, for bytes that nobody wants to understand.
    pub(crate) fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(stream) => stream.get_mut().0,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Socket::Plain(tcp) => tcp.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn an_smb_connection_that_is_lost_is_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(!SockRef::from(&tcp).keepalive().unwrap());
        notice_loss(&tcp);
        let socket = SockRef::from(&tcp);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SMB_PROBE_AFTER);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), SMB_PROBE_PAUSE);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), SMB_PROBES);
    }

    #[test]
    fn the_answer_to_plain_http_says_its_length() {
        let (head, body) = PLAIN_REFUSED.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{}", body.len());
    }
}
