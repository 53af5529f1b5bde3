//! Against a server that sends what the test says, byte by byte.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;

const SHORT: Duration = Duration::from_millis(200);

fn limits() -> Limits {
    Limits { answer: SHORT, pause: SHORT, ..Limits::default() }
}

/// Answers one connection with these bytes, then ends it, or holds it open. Comes back with what was asked.
async fn answering(bytes: impl Into<Vec<u8>>, holds: bool) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, bytes) = (listener.local_addr().unwrap(), bytes.into());
    let asked = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, bytes, holds).await
    });
    (address, asked)
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: Vec<u8>, holds: bool) -> String {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(stream.read_u8().await.unwrap());
    }
    // The other side may have had enough before the end.
    let _ = stream.write_all(&bytes).await;
    if holds {
        let _ = stream.read_u8().await;
    } else {
        let _ = stream.shutdown().await;
    }
    String::from_utf8(asked).unwrap()
}

fn url(address: SocketAddr, rest: &str) -> Uri {
    format!("http://{address}{rest}").parse().unwrap()
}

async fn fetched(bytes: impl Into<Vec<u8>>, holds: bool) -> Result<Vec<u8>, FetchError> {
    let (address, _asked) = answering(bytes, holds).await;
    let answer = Client::new(limits()).get(&url(address, "/"), HeaderMap::new()).await?;
    answer.body.whole(10).await
}

#[tokio::test]
async fn what_is_asked_and_what_comes() {
    let (address, asked) =
        answering("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nx-ms-y: z\r\n\r\nhello", false).await;
    let mut headers = HeaderMap::new();
    headers.insert("range", HeaderValue::from_static("bytes=1-2"));
    let answer = Client::default().get(&url(address, "/a%20b?c=d"), headers).await.unwrap();
    assert_eq!((answer.status, &answer.headers["x-ms-y"]), (StatusCode::NOT_FOUND, &HeaderValue::from_static("z")));
    assert_eq!(wire::http::Body::length(&answer.body), Some(5));
    assert_eq!(answer.body.whole(5).await.unwrap(), b"hello");
    let asked = asked.await.unwrap();
    assert!(asked.starts_with("GET /a%20b?c=d HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("host: {address}\r\n")) && asked.contains("range: bytes=1-2\r\n"), "{asked}");
    assert!(asked.contains("connection: close\r\n"));
}

#[tokio::test]
async fn a_head_has_no_body() {
    let (address, asked) = answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", false).await;
    let answer = Client::default().head(&url(address, ""), HeaderMap::new()).await.unwrap();
    assert_eq!(answer.headers["content-length"], "500");
    assert_eq!(answer.body.whole(0).await.unwrap(), b"");
    assert!(asked.await.unwrap().starts_with("HEAD / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn bodies_of_every_kind() {
    assert_eq!(fetched("HTTP/1.1 200 OK\r\n\r\nhello", false).await.unwrap(), b"hello");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nx: y\r\n\r\n";
    assert_eq!(fetched(chunked, true).await.unwrap(), b"hello");
}

#[tokio::test]
async fn what_is_wrong_is_told_apart() {
    let whole = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{body}");
    let is = |outcome: Result<Vec<u8>, FetchError>, what: &str| {
        let error = outcome.expect_err(what);
        assert!(format!("{error:?}").starts_with(what), "{error:?} instead of {what}");
    };
    is(fetched(whole("short"), false).await, "Incomplete");
    is(fetched(whole("short"), true).await, "Slow");
    is(fetched("", true).await, "Slow");
    is(fetched("HTTP/1.1 200 OK\r\n\r\n12345678901", false).await, "TooLarge");
    is(fetched("SSH-2.0-OpenSSH\r\n", false).await, "Protocol");
    is(fetched("", false).await, "Protocol");
    is(fetched(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(1_000_000)), true).await, "Protocol");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::new(limits());
    let ask = async |url: &str| client.get(&url.parse().unwrap(), HeaderMap::new()).await.map(|_| Vec::new());
    is(ask(&format!("http://{nobody}/")).await, "Unreachable");
    for other in ["ftp://127.0.0.1/", "/path", "127.0.0.1"] {
        is(ask(other).await, "Url");
    }
}

#[tokio::test]
async fn https_with_a_certificate_that_is_trusted_and_with_another() {
    let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (own, other) = (made(), made());
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, b"HTTP/1.1 200 OK\r\n\r\nsecret".to_vec(), false).await;
            }
        }
    });
    let url: Uri = format!("https://localhost:{port}/").parse().unwrap();
    let client = |cert: &rcgen::Certificate| Client::trusting(limits(), authorities([cert.der().clone()]));
    let answer = client(&own.cert).get(&url, HeaderMap::new()).await.unwrap();
    assert_eq!(answer.body.whole(6).await.unwrap(), b"secret");
    let refused = client(&other.cert).get(&url, HeaderMap::new()).await;
    assert!(matches!(refused, Err(FetchError::Tls(_))), "{refused:?}");
    let by_address: Uri = format!("https://127.0.0.1:{port}/").parse().unwrap();
    assert!(matches!(client(&own.cert).get(&by_address, HeaderMap::new()).await, Err(FetchError::Tls(_))));
}

#[tokio::test]
async fn who_goes_away_ends_the_connection() {
    let (address, asked) = answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", true).await;
    let answer = Client::default().get(&url(address, "/"), HeaderMap::new()).await.unwrap();
    drop(answer);
    timeout(Duration::from_secs(10), asked).await.expect("the other side notices").unwrap();
}

#[tokio::test]
async fn where_we_may_not_go_nobody_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refused = async |hosts: &str, host: &str| {
        let client = Client::default().within(hosts.parse().unwrap());
        let url = format!("http://{host}:{port}/").parse().unwrap();
        let refused = client.get(&url, HeaderMap::new()).await.unwrap_err();
        assert!(matches!(refused, FetchError::NotAllowed), "{hosts} {host}: {refused:?}");
    };
    // A name that is allowed must not lead back to this machine, which only `loopback` allows.
    refused("localhost", "localhost").await;
    refused("*", "127.0.0.1").await;
    refused("*", "[::ffff:127.0.0.1]").await;
    refused("example.org", "127.0.0.1").await;
    refused("", "127.0.0.1").await;
    refused("loopback", "10.0.0.1").await;
    let nobody = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(nobody.is_err(), "somebody came");
    let client = Client::default().within(Hosts::loopback());
    for host in ["localhost", "LOCALHOST.", "127.0.0.1"] {
        let (address, _asked) = answering("HTTP/1.1 200 OK\r\n\r\nhello", false).await;
        let url = format!("http://{host}:{}/", address.port()).parse().unwrap();
        assert_eq!(client.get(&url, HeaderMap::new()).await.unwrap().status, StatusCode::OK, "{host}");
    }
}

/// One connection carries one request after the other; one that the server has ended is not used again.
#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut asked = Vec::new();
        for requests in [2, 1] {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..requests {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                asked.push(String::from_utf8(head).unwrap().lines().next().unwrap().to_owned());
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
            }
        }
        asked
    });
    let client = KeepingClient::new(Client::new(Limits::default()));
    // The server ends the first connection after the second request.
    for path in ["/1", "/2", "/3"] {
        let request = Request::builder().uri(path).body(String::new()).unwrap();
        let answer = client.pass(&url(address, path), request, Duration::from_secs(60)).await.unwrap();
        assert_eq!(answer.body.whole(10).await.unwrap(), b"hi");
        if path != "/3" {
            client.settled(path == "/2").await;
        }
    }
    assert_eq!(server.await.unwrap(), ["GET /1 HTTP/1.1", "GET /2 HTTP/1.1", "GET /3 HTTP/1.1"]);
}
