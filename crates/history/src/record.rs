//! What is kept of a request. No body, signature, key, token or receipt is.

use std::fmt;
use std::net::SocketAddr;

use concurrency::{LeaseId, Seen, Timestamp, guid};

/// So many bytes of an object's path are kept.
pub const PATH_BYTES_MAX: usize = 1024;
/// So many bytes of a condition, of an id that a client made up, or of a user agent are kept.
pub const TEXT_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
    Dfs,
}

impl Service {
    pub const ALL: [Service; 5] = [Service::Blob, Service::Queue, Service::Table, Service::File, Service::Dfs];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Service::Blob => "blob",
            Service::Queue => "queue",
            Service::Table => "table",
            Service::File => "file",
            Service::Dfs => "dfs",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Service> {
        Service::ALL.into_iter().find(|service| service.name() == name)
    }
}

/// Who asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Caller {
    /// Nobody was identified: the request was refused before, or its signature was not good.
    Unknown,
    Anonymous,
    /// The owner, with the first (0) or the second (1) key of the account.
    Key(u8),
    /// A shared access signature.
    Signature,
    /// A bearer token.
    Token,
    /// The console, for whoever signed in there.
    Console,
}

impl Caller {
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Caller::Unknown => "unknown",
            Caller::Anonymous => "anonymous",
            Caller::Key(_) => "key",
            Caller::Signature => "signature",
            Caller::Token => "token",
            Caller::Console => "console",
        }
    }
}

/// When a request was judged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judged {
    /// By its head, before anything stored was looked at.
    Door,
    /// With what was stored.
    Commit,
}

impl Judged {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Judged::Door => "door",
            Judged::Commit => "commit",
        }
    }
}

/// Conditions and lease as the request had them: header values, cut to [`TEXT_BYTES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent<S> {
    pub if_match: Option<S>,
    pub if_none_match: Option<S>,
    pub if_modified_since: Option<S>,
    pub if_unmodified_since: Option<S>,
    pub if_tags: Option<S>,
    /// `x-ms-lease-action`: acquire, renew, change, release, break.
    pub lease_action: Option<S>,
    /// The time that the request was signed at, by its client's clock.
    pub signed_at: Option<Timestamp>,
    pub lease: Option<LeaseId>,
}

impl<S> Sent<S> {
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.if_match.is_some()
            || self.if_none_match.is_some()
            || self.if_modified_since.is_some()
            || self.if_unmodified_since.is_some()
            || self.if_tags.is_some()
    }
}

/// The ETags that a header names, each as [`bare`] has it.
pub fn etags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(bare)
}

/// An ETag without its quotes. A weak one stays as it is: that is how tables write them everywhere.
#[must_use]
pub fn bare(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(etag)
}

/// One request and its answer. What borrows its texts is written down; what owns them was read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record<S = String> {
    /// Rises in the order in which answers were made. The history gives it.
    pub seq: u64,
    /// When the request came.
    pub at: Timestamp,
    pub took_us: u32,
    pub request_id: [u8; 16],
    pub client_request_id: Option<S>,
    /// `traceparent` as sent.
    pub trace: Option<S>,
    pub service: Service,
    pub op: S,
    pub account: S,
    /// The path below the account: `orders/state.json`. Empty for a plain read, of which no text is kept.
    pub path: S,
    pub caller: Caller,
    pub peer: Option<SocketAddr>,
    pub connection: u64,
    pub agent: Option<S>,
    pub sent: Sent<S>,
    pub seen: Option<Seen>,
    pub judged: Judged,
    pub status: u16,
    pub code: Option<S>,
    /// The ETag that the answer gave, without quotes.
    pub etag: Option<S>,
    /// The lease id that the answer gave.
    pub lease_given: Option<LeaseId>,
}

impl<S: AsRef<str>> Record<S> {
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.status >= 400 || self.status == 304
    }

    /// `mine/orders/state.json`.
    #[must_use]
    pub fn object(&self) -> String {
        format!("{}/{}", self.account.as_ref(), self.path.as_ref())
    }

    #[must_use]
    pub fn request_id(&self) -> Guid {
        Guid(self.request_id)
    }

    /// What the client is called: the application id of its SDK, which stands before the SDK's own name, else its address.
    #[must_use]
    pub fn label(&self) -> String {
        let agent = self.agent.as_ref().map_or("", AsRef::as_ref);
        let first = agent.split_whitespace().next().unwrap_or_default();
        let is_own =
            !first.is_empty() && !first.starts_with("azsdk-") && !first.contains('/') && agent.contains(" azsdk-");
        match (is_own, self.peer) {
            (true, _) => first.to_owned(),
            (false, Some(peer)) => peer.to_string(),
            (false, None) => format!("connection {}", self.connection),
        }
    }
}

/// A plain read: no text is kept of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    pub seq: u64,
    pub at: Timestamp,
    pub request_id: [u8; 16],
    /// Hash of service, account and path.
    pub object: u64,
    /// Hash of the ETag given; 0 if there was none.
    pub etag: u64,
    pub connection: u64,
    pub took_us: u32,
    pub status: u16,
    pub service: Service,
    pub op: &'static str,
}

impl Read {
    /// As a record, for those who list requests. Its object is not known unless they know it.
    #[must_use]
    pub fn to_record(&self, account: &str, path: &str) -> Record {
        Record {
            seq: self.seq,
            at: self.at,
            took_us: self.took_us,
            request_id: self.request_id,
            client_request_id: None,
            trace: None,
            service: self.service,
            op: self.op.to_owned(),
            account: account.to_owned(),
            path: path.to_owned(),
            caller: Caller::Unknown,
            peer: None,
            connection: self.connection,
            agent: None,
            sent: Sent::default(),
            seen: None,
            judged: Judged::Commit,
            status: self.status,
            code: None,
            etag: None,
            lease_given: None,
        }
    }
}

/// A request id as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guid(pub [u8; 16]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        guid::write(&self.0, f)
    }
}

/// The first `most` bytes of a text, at the border of a character.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
