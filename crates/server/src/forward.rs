//! REST requests for a share that SMB uses, which another node decides on: the request goes there as it came, and the answer comes back.
//!
//! The node that a client has reached tells the owner the client's address, because signatures may be limited to addresses and failed
//! sign-ins are counted by them. It does so in a header with a signature under the nodes' common secret, which covers the request. A request
//! whose header has no good signature is refused, whoever sends it. There is one hop: a forwarded request is never forwarded again.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use auth::NodeKey;
use bytes::Bytes;
use concurrency::Timestamp;
use engine::EngineError;
use fetch::FetchError;
use file::owner::Owner;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::base64;
use wire::http::{Body as _, BodyError, BoxFuture, ByteStream, Reply, ReplyBody};

use crate::body::RequestBody;
use crate::limits::{FORWARDED_PIECES_MAX, FORWARDING_TIME, LOG_PAUSE, SMB_OWNER_LOOK};
use crate::log_throttle::LogThrottle;
use crate::metadata_case::NAMES;
use crate::nodes::{ClientNote, Nodes, SmbOwner};
use crate::pipeline::Stop;

/// Who the client is, signed.
const CLIENT: HeaderName = HeaderName::from_static("x-lazurite-client");
/// How names of metadata are spelled, from node to node and back.
const SPELLED: HeaderName = HeaderName::from_static("x-lazurite-spelled-names");
const PURPOSE: &str = "forwarded request";
/// Headers that are about a connection and not about the request or answer.
const OF_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];

/// A request on its way to the owner.
#[derive(Debug)]
pub(crate) struct Forwarded<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: HeaderMap,
    pub client: SocketAddr,
    /// How long it may take by itself.
    pub patience: Duration,
}

/// What the signature covers: the client, and the request that it is about.
fn parts<'a>(note: &'a [u8], method: &'a Method, uri: &'a Uri, headers: &'a HeaderMap) -> [&'a [u8]; 6] {
    let value = |name: &HeaderName| headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    [
        note,
        method.as_str().as_bytes(),
        target.as_bytes(),
        value(&header::HOST),
        value(&header::AUTHORIZATION),
        value(&SPELLED),
    ]
}

fn signed_note(key: &NodeKey, note: ClientNote, method: &Method, uri: &Uri, headers: &HeaderMap) -> String {
    let note = note.to_bytes();
    let signature = key.sign(PURPOSE, &parts(&note, method, uri, headers));
    base64::encode(&[&note[..], &signature[..]].concat())
}

/// Something that only nodes say is not said as a node would say it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotSigned;

/// The client of a request that another node has forwarded. `None`: no node has.
pub(crate) fn client_of(key: &NodeKey, request: &mut Parts, now: Timestamp) -> Result<Option<SocketAddr>, NotSigned> {
    let Some(said) = request.headers.get(CLIENT) else {
        request.headers.remove(SPELLED);
        return Ok(None);
    };
    let found = said.to_str().ok().and_then(base64::decode);
    let client = found.and_then(|bytes| {
        let (note, signature) = bytes.split_first_chunk::<{ ClientNote::BYTES }>()?;
        let signature: &[u8; 32] = signature.try_into().ok()?;
        let parts = parts(note, &request.method, &request.uri, &request.headers);
        let note = ClientNote::from_bytes(note);
        (key.signed(PURPOSE, &parts, signature) && note.is_fresh(now)).then_some(note.client)
    });
    request.headers.remove(CLIENT);
    let spelled = request.headers.remove(SPELLED);
    if client.is_some()
        && let Some(names) = spelled
    {
        request.headers.insert(NAMES, names);
    }
    client.map(Some).ok_or(NotSigned)
}

/// Says in the log that a note was not believed: two nodes have different secrets, or clocks that are far apart, or a client made it up.
pub(crate) fn refused_note(peer: SocketAddr) {
    static REFUSED: LogThrottle = LogThrottle::new();
    if let Some(count) = REFUSED.due(LOG_PAUSE) {
        tracing::warn!(%peer, count, "requests name a client as other nodes do, without a good signature of now");
    }
}

/// Tells the node that has forwarded the request how the names in the answer are spelled.
pub(crate) fn tell_spelling(headers: &mut HeaderMap) {
    if let Some(names) = headers.get(NAMES).cloned() {
        headers.insert(SPELLED, names);
    }
}

impl Nodes {
    /// Has the node at `address` answer the request.
    pub(crate) async fn forward(
        &self,
        forwarded: Forwarded<'_>,
        address: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Stop> {
        let busy = || Stop::Failed(EngineError::Busy);
        if !body.rewind() {
            return Err(busy());
        }
        let Forwarded { method, uri, mut headers, client, patience } = forwarded;
        OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
        headers.remove(SPELLED);
        if let Some(names) = headers.remove(NAMES) {
            headers.insert(SPELLED, names);
        }
        let note = signed_note(&self.key, ClientNote { client, at: self.now() }, method, uri, &headers);
        headers.insert(CLIENT, HeaderValue::from_str(&note).map_err(|_| busy())?);

        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let place: Uri = format!("{address}{target}").parse().map_err(|_| busy())?;
        let (pieces, passed) = PassedBody::new(body);
        let mut request = Request::builder().method(method).uri(target).body(passed).map_err(|_| busy())?;
        *request.headers_mut() = headers;
        let asking = self.client.pass(&place, request, patience + FORWARDING_TIME);
        let answer = tokio::select! {
            answer = asking => answer,
            error = pump(body, pieces) => return Err(Stop::Body(error)),
            // It may have stood still before or after it has done what it was asked for.
            () = self.gone(address) => return Err(Stop::TimedOut),
        };
        match answer {
            Ok(answer) => Ok(reply(answer, *method == Method::HEAD)),
            Err(error) => {
                static FAILED: LogThrottle = LogThrottle::new();
                if let Some(count) = FAILED.due(LOG_PAUSE) {
                    tracing::warn!(%error, address, count, "requests could not be forwarded to the node that serves SMB");
                }
                let is_unsent = matches!(
                    error,
                    FetchError::Url
                        | FetchError::NotAllowed
                        | FetchError::Unreachable(_)
                        | FetchError::NoTrust
                        | FetchError::Tls(_)
                );
                // Otherwise it is not known what the owner did with it.
                Err(if is_unsent { busy() } else { Stop::TimedOut })
            }
        }
    }
}

impl Nodes {
    /// Resolves when the node at an address was the owner and is it no longer. A request does not wait for a machine that stands still.
    async fn gone(&self, address: &str) {
        let is_at = |Owner { address: node, .. }: &Owner| {
            [node.file_port, node.blob_port].into_iter().flatten().any(|port| node.url(port) == address)
        };
        let is_there = |owner: &SmbOwner| matches!(owner, SmbOwner::There(owner) if is_at(owner));
        let mut owner = self.owner();
        loop {
            // The sender lives as long as this, so waiting cannot fail.
            if timeout(2 * SMB_OWNER_LOOK, owner.wait_for(|owner| is_there(owner))).await.is_ok() {
                let _ = owner.wait_for(|owner| !is_there(owner)).await;
                return;
            }
            // This node does not follow the owner, or it knows of another one: the row says which it is.
            if let Ok(found) = self.find_owner().await
                && !found.is_some_and(|owner| is_at(&owner))
            {
                return;
            }
        }
    }
}

/// Hands the body on, piece by piece. Ends only with an error: the answer is what the request waits for.
async fn pump(body: &mut RequestBody, pieces: mpsc::Sender<Piece>) -> BodyError {
    loop {
        let (piece, error) = match body.next().await {
            Some(Ok(bytes)) => (Piece::Bytes(bytes), None),
            None => (Piece::End, None),
            Some(Err(error)) => (Piece::Broken, Some(error)),
        };
        let is_end = matches!(piece, Piece::End);
        let is_taken = pieces.send(piece).await.is_ok();
        match error {
            Some(error) => return error,
            None if is_end || !is_taken => std::future::pending().await,
            None => {}
        }
    }
}

fn reply(answer: fetch::Answer, is_head: bool) -> Reply {
    use wire::http::Body;
    let fetch::Answer { status, mut headers, body } = answer;
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
    if let Some(names) = headers.remove(SPELLED) {
        headers.insert(NAMES, names);
    }
    let length = Body::length(&body);
    let body = match length {
        _ if is_head => ReplyBody::Empty,
        Some(0) => ReplyBody::Empty,
        Some(length) => ReplyBody::Stream { length, stream: Box::new(PassedAnswer(body)) },
        None => ReplyBody::Open(Box::new(PassedAnswer(body))),
    };
    Reply { status, headers, body }
}

struct PassedAnswer(fetch::Body);

impl ByteStream for PassedAnswer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async {
            match self.0.next().await {
                Ok(bytes) => bytes.map(Ok),
                Err(error) => Some(Err(error.to_string())),
            }
        })
    }
}

/// A part of a body between two connections.
enum Piece {
    Bytes(Bytes),
    End,
    /// The client did not send all of it.
    Broken,
}

/// The body of a forwarded request, as the connection to the owner takes it.
pub(crate) struct PassedBody {
    pieces: mpsc::Receiver<Piece>,
    length: Option<u64>,
    has_ended: bool,
}

impl PassedBody {
    fn new(body: &RequestBody) -> (mpsc::Sender<Piece>, PassedBody) {
        let (sender, pieces) = mpsc::channel(FORWARDED_PIECES_MAX);
        let length = body.exact_length();
        (sender, PassedBody { pieces, length, has_ended: length == Some(0) })
    }
}

impl http_body::Body for PassedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match self.pieces.poll_recv(context) {
            Poll::Ready(Some(Piece::Bytes(bytes))) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Poll::Ready(Some(Piece::End)) => {
                self.has_ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(Piece::Broken)) => Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
            // Nobody sends the rest, because the answer is there. The connection is not used again.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000 * Timestamp::TICKS_PER_SECOND);
    const CLIENT_ADDRESS: &str = "10.1.2.3:4567";

    fn request(method: &str, target: &str, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    const HEADERS: &[(&str, &str)] = &[("host", "a.file.example.org"), ("authorization", "SharedKey a:b")];

    fn noted(key: &NodeKey, note: ClientNote, mut request: Parts) -> Parts {
        let note = signed_note(key, note, &request.method, &request.uri, &request.headers);
        request.headers.insert(CLIENT, note.parse().unwrap());
        request
    }

    #[test]
    fn a_client_is_believed_for_the_request_that_was_signed() {
        let (key, client) = (NodeKey::new(&[7; 32]), CLIENT_ADDRESS.parse().unwrap());
        let mut good = noted(&key, ClientNote { client, at: NOW }, request("PUT", "/acct/share?comp=x", HEADERS));
        let note = good.headers.get(CLIENT).unwrap().clone();
        assert_eq!(client_of(&key, &mut good, NOW), Ok(Some(client)));
        assert_eq!(good.headers.get(CLIENT), None);
        for mut other in [
            request("GET", "/acct/share?comp=x", HEADERS),
            request("PUT", "/acct/share?comp=y", HEADERS),
            request("PUT", "/acct/share", HEADERS),
            request("PUT", "/acct/share?comp=x", &HEADERS[..1]),
            request("PUT", "/acct/share?comp=x", &[("host", "a"), HEADERS[1]]),
            request("PUT", "/acct/share?comp=x", &[HEADERS[0], HEADERS[1], ("x-lazurite-spelled-names", "Name")]),
        ] {
            other.headers.insert(CLIENT, note.clone());
            assert_eq!(client_of(&key, &mut other, NOW), Err(NotSigned), "{other:?}");
            assert!(!other.headers.contains_key(CLIENT) && !other.headers.contains_key(SPELLED));
            assert!(!other.headers.contains_key(NAMES), "who is not believed spells nothing");
        }
    }

    #[test]
    fn nothing_else_is_believed() {
        let (key, client) = (NodeKey::new(&[7; 32]), CLIENT_ADDRESS.parse().unwrap());
        let plain = || request("GET", "/acct/share", HEADERS);
        let note = ClientNote { client, at: NOW };
        let old = ClientNote { at: Timestamp(note.at.0 - 400 * Timestamp::TICKS_PER_SECOND), ..note };
        let mut forgeries = vec![noted(&NodeKey::new(&[8; 32]), note, plain()), noted(&key, old, plain())];
        for text in ["", "AAAA", "10.1.2.3:4567", &"A".repeat(80), &"A".repeat(10_000)] {
            let mut forged = plain();
            forged.headers.insert(CLIENT, text.parse().unwrap());
            forgeries.push(forged);
        }
        for mut forged in forgeries {
            assert_eq!(client_of(&key, &mut forged, NOW), Err(NotSigned), "{forged:?}");
            assert_eq!(forged.headers.get(CLIENT), None);
        }
        let mut of_client = request("GET", "/acct/share", &[HEADERS[0], ("x-lazurite-spelled-names", "Name")]);
        assert_eq!(client_of(&key, &mut of_client, NOW), Ok(None));
        assert!(!of_client.headers.contains_key(SPELLED) && !of_client.headers.contains_key(NAMES));
    }

    /// Between nodes the spelling of names has a header of its own, which the signature covers.
    #[test]
    fn names_are_spelled_as_the_client_wrote_them() {
        let (key, client) = (NodeKey::new(&[7; 32]), CLIENT_ADDRESS.parse().unwrap());
        let spelled = [HEADERS[0], ("x-lazurite-spelled-names", "CamelCase")];
        let mut good = noted(&key, ClientNote { client, at: NOW }, request("PUT", "/acct/share", &spelled));
        assert_eq!(client_of(&key, &mut good, NOW), Ok(Some(client)));
        assert_eq!(good.headers.get(NAMES).map(HeaderValue::as_bytes), Some(&b"CamelCase"[..]));
        let mut answer = HeaderMap::new();
        tell_spelling(&mut answer);
        assert!(answer.is_empty());
        answer.insert(NAMES, HeaderValue::from_static("CamelCase"));
        tell_spelling(&mut answer);
        assert_eq!(answer.get(SPELLED), answer.get(NAMES));
    }
}
