//! HTTP requests and answers as values; there are no sockets here.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The head of a request, with its URL taken apart.
#[derive(Clone, Debug)]
pub struct Head {
    pub method: Method,
    /// The account named by the URL, without `-secondary`.
    pub account: String,
    /// The URL named the secondary endpoint.
    pub secondary: bool,
    /// The path below the account, percent-decoded, without a leading slash: `container/blob/with/slashes`.
    pub resource: String,
    /// The path exactly as sent, because that is what clients sign.
    pub raw_path: String,
    pub query: Query,
    pub headers: HeaderMap,
    /// `scheme://authority[/account]` as the client wrote it: listings repeat it.
    pub endpoint: String,
    /// The version of the protocol that this request is answered in: `x-ms-version`, or its substitute.
    pub version: String,
    /// The id that the server has drawn for this request.
    pub request_id: String,
    pub https: bool,
}

/// Up to so many headers are compared one by one: that costs less than the hash by which the map finds a name.
const FEW_HEADERS: usize = 16;

/// The first value of a header.
#[must_use]
pub fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    if headers.len() > FEW_HEADERS {
        return headers.get(name);
    }
    headers.iter().find(|(known, _)| known.as_str().eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl Head {
    /// The header as text. A header that is not visible ASCII counts as absent, and so does an empty one: clients send
    /// `x-ms-proposed-lease-id:` and the like when they have no value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)?.to_str().ok().filter(|text| !text.is_empty())
    }

    /// Whether the header is there and not empty.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        find(&self.headers, name).is_some_and(|value| !value.is_empty())
    }

    /// The first segment of the resource path: the container, queue, table or share.
    #[must_use]
    pub fn first_segment(&self) -> Option<&str> {
        let segment = self.resource.split('/').next().unwrap_or_default();
        (!segment.is_empty()).then_some(segment)
    }

    /// Everything after the first segment: the blob or file path. `None` when there is nothing after the slash.
    #[must_use]
    pub fn rest(&self) -> Option<&str> {
        let (_, rest) = self.resource.split_once('/')?;
        (!rest.is_empty()).then_some(rest)
    }
}

/// The query, decoded, in the order it was sent.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    #[must_use]
    pub fn new(pairs: Vec<(String, String)>) -> Query {
        Query(pairs)
    }

    /// The first value of `name`; names are compared without case, as Azure does. An empty parameter counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let is_said = |(key, value): &&(String, String)| key.eq_ignore_ascii_case(name) && !value.is_empty();
        self.0.iter().find(is_said).map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// Why a request body could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The client disconnected, or sent fewer or more bytes than `Content-Length` says.
    Incomplete,
    /// The client was too slow.
    TimedOut,
    /// More bytes than the operation takes.
    TooLarge,
}

/// A request body on its way in. The first call to `next` is what makes `100 Continue` go out.
pub trait Body: Send {
    /// `Content-Length`, if the client sent one.
    fn length(&self) -> Option<u64>;
    /// The next bytes; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>>;
}

/// Reads a small body whole.
pub async fn collect(body: &mut dyn Body, most: usize) -> Result<Vec<u8>, BodyError> {
    if body.length().is_some_and(|length| length > most as u64) {
        return Err(BodyError::TooLarge);
    }
    // No more memory than this is reserved on the word of `Content-Length`.
    const BELIEVED_BYTES: u64 = 64 * 1024;
    let expected = body.length().unwrap_or_default().min(BELIEVED_BYTES) as usize;
    let mut whole = Vec::with_capacity(expected);
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        if whole.len() + bytes.len() > most {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// A body whose bytes are in memory; for tests and for parts of a batch.
#[derive(Debug)]
pub struct FixedBody(Option<Bytes>, u64);

impl FixedBody {
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> FixedBody {
        let bytes = bytes.into();
        let length = bytes.len() as u64;
        FixedBody((!bytes.is_empty()).then_some(bytes), length)
    }
}

impl Body for FixedBody {
    fn length(&self) -> Option<u64> {
        Some(self.1)
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        let bytes = self.0.take();
        Box::pin(async move { bytes.map(Ok) })
    }
}

/// An answer. The server adds the headers that every answer has (ids, version, date).
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ReplyBody,
}

impl Reply {
    #[must_use]
    pub fn new(status: StatusCode) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: ReplyBody::Empty }
    }

    /// Sets a header from text of our own. Text that is not a valid header value is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl AsRef<str>) -> Reply {
        self.set(name, value);
        self
    }

    pub fn set(&mut self, name: &'static str, value: impl AsRef<str>) {
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
    }

    #[must_use]
    pub fn with_body(mut self, content_type: &'static str, bytes: impl Into<Bytes>) -> Reply {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = ReplyBody::Bytes(bytes.into());
        self
    }
}

/// The body of an answer.
pub enum ReplyBody {
    Empty,
    Bytes(Bytes),
    /// A stream of `length` bytes. To HEAD the server sends the length only.
    Stream {
        length: u64,
        stream: Box<dyn ByteStream>,
    },
    /// A stream whose length is not known yet.
    Open(Box<dyn ByteStream>),
}

impl ReplyBody {
    /// The length of the body; 0 if it is not known.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            ReplyBody::Empty | ReplyBody::Open(_) => 0,
            ReplyBody::Bytes(bytes) => bytes.len() as u64,
            ReplyBody::Stream { length, .. } => *length,
        }
    }
}

impl std::fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplyBody::Empty => f.write_str("Empty"),
            ReplyBody::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            ReplyBody::Stream { length, .. } => write!(f, "Stream({length})"),
            ReplyBody::Open(_) => f.write_str("Open"),
        }
    }
}

/// The bytes of an answer's body. An error closes the connection, so that no client takes a cut body for a whole one.
pub trait ByteStream: Send {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>>;
}

/// A refusal as the services give it; the server writes it as XML or JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// Further elements directly under `Error`, in order.
    pub details: Vec<(&'static str, String)>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

impl ErrorReply {
    #[must_use]
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> ErrorReply {
        ErrorReply { status, code, message: message.into(), details: Vec::new(), headers: Vec::new() }
    }

    #[must_use]
    pub fn detail(mut self, name: &'static str, value: impl Into<String>) -> ErrorReply {
        self.details.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> ErrorReply {
        self.headers.push((name, value.into()));
        self
    }
}

/// When a version matters: `head.since("2017-07-29")`.
impl Head {
    #[must_use]
    pub fn since(&self, version: &str) -> bool {
        self.version.as_str() >= version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&'static str, &'static str)], pairs: &[(&str, &str)]) -> Head {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Head {
            method: Method::GET,
            account: String::new(),
            secondary: false,
            resource: String::new(),
            raw_path: String::new(),
            query: Query::new(pairs.iter().map(own).collect()),
            headers: headers.iter().map(header).collect(),
            endpoint: String::new(),
            version: String::new(),
            request_id: String::new(),
            https: false,
        }
    }

    #[test]
    fn headers_are_found_whether_few_or_many_are_there() {
        for others in [0, FEW_HEADERS, 4 * FEW_HEADERS] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("x-ms-twice", "first"), ("x-ms-twice", "second"), ("host", "here")] {
                headers.append(name, HeaderValue::from_static(value));
            }
            for other in 0..others {
                let name = HeaderName::from_bytes(format!("x-ms-meta-{other}").as_bytes()).unwrap();
                headers.append(name, HeaderValue::from_static("other"));
            }
            for name in
                ["x-ms-twice", "X-Ms-Twice", "host", "x-ms-twic", "x-ms-meta-0", "content-length", "no name", ""]
            {
                assert_eq!(find(&headers, name), headers.get(name), "{name:?} beside {others} others");
            }
        }
    }

    #[test]
    fn what_is_empty_counts_as_absent() {
        let head =
            head(&[("x-ms-lease-id", ""), ("if-match", "*")], &[("snapshot", ""), ("Comp", ""), ("comp", "list")]);
        assert_eq!((head.header("x-ms-lease-id"), head.header("if-match")), (None, Some("*")));
        assert!(!head.has_header("x-ms-lease-id") && head.has_header("if-match") && !head.has_header("range"));
        assert!(!head.query.has("snapshot"));
        assert_eq!(head.query.get("comp"), Some("list"));
        assert_eq!(head.query.pairs().len(), 3, "signatures are over all of them");
    }
}
