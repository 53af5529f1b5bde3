//! What operations of all services put into an answer: headers, and bodies of XML.

use bytes::Bytes;
use concurrency::{DurationKind, ETag, Lease, LeaseId, LeaseState, Timestamp};
use wire::http::{HeaderMap, HeaderName, HeaderValue, Reply, StatusCode, header};
pub use wire::metadata::{element as metadata_element, set as set_metadata};
use wire::xml::XmlWriter;
use wire::{base64, dates};

macro_rules! names {
    ($($constant:ident = $name:literal;)*) => {
        $(pub static $constant: HeaderName = HeaderName::from_static($name);)*
    };
}

names! {
    CONTENT_CRC64 = "x-ms-content-crc64";
    CONTENT_MD5 = "content-md5";
    LEASE_DURATION = "x-ms-lease-duration";
    LEASE_ID = "x-ms-lease-id";
    LEASE_STATE = "x-ms-lease-state";
    LEASE_STATUS = "x-ms-lease-status";
    LEASE_TIME = "x-ms-lease-time";
    REQUEST_SERVER_ENCRYPTED = "x-ms-request-server-encrypted";
    SERVER_ENCRYPTED = "x-ms-server-encrypted";
    SNAPSHOT = "x-ms-snapshot";
    STRUCTURED_BODY = "x-ms-structured-body";
    STRUCTURED_CONTENT_LENGTH = "x-ms-structured-content-length";
}

/// Most answers about a blob or a file have between 15 and 24 headers; the server adds a few.
const HEADERS_USUAL: usize = 32;

pub const TRUE: HeaderValue = HeaderValue::from_static("true");
pub const FALSE: HeaderValue = HeaderValue::from_static("false");

/// An answer with room for its headers.
pub fn reply(status: StatusCode) -> Reply {
    let mut reply = Reply::new(status);
    reply.headers = HeaderMap::with_capacity(HEADERS_USUAL);
    reply
}

/// ETag and Last-Modified, which are made of one stamp.
pub fn set_version(headers: &mut HeaderMap, stamp: Timestamp) {
    headers.insert(header::ETAG, value(ETag::new(stamp).quoted()));
    headers.insert(header::LAST_MODIFIED, date(stamp));
}

/// Lease status and state, and the duration of one that is held.
pub fn set_lease(headers: &mut HeaderMap, lease: &Lease, now: Timestamp) {
    headers.insert(&LEASE_STATUS, HeaderValue::from_static(lease_status(lease, now)));
    headers.insert(&LEASE_STATE, HeaderValue::from_static(lease_state(lease, now)));
    if let Some(duration) = lease_duration(lease, now) {
        headers.insert(&LEASE_DURATION, HeaderValue::from_static(duration));
    }
}

pub fn lease_status(lease: &Lease, now: Timestamp) -> &'static str {
    if lease.is_locked(now) { "locked" } else { "unlocked" }
}

pub fn lease_state(lease: &Lease, now: Timestamp) -> &'static str {
    match lease.state(now) {
        LeaseState::Available => "available",
        LeaseState::Leased => "leased",
        LeaseState::Expired => "expired",
        LeaseState::Breaking => "breaking",
        LeaseState::Broken => "broken",
    }
}

pub fn lease_duration(lease: &Lease, now: Timestamp) -> Option<&'static str> {
    lease.duration_kind(now).map(|kind| match kind {
        DurationKind::Infinite => "infinite",
        DurationKind::Fixed => "fixed",
    })
}

pub fn set_lease_id(headers: &mut HeaderMap, id: LeaseId) {
    headers.insert(&LEASE_ID, value(id.to_string()));
}

pub fn flag(is_set: bool) -> HeaderValue {
    if is_set { TRUE } else { FALSE }
}

/// The content type of a blob or file whose creator names none. Setting the properties without one leaves none.
pub const CONTENT_TYPE_DEFAULT: &str = "application/octet-stream";

pub fn set_md5(headers: &mut HeaderMap, name: &HeaderName, md5: &[u8]) {
    headers.insert(name, value(base64::encode(md5)));
}

pub fn set_crc64(headers: &mut HeaderMap, sum: u64) {
    headers.insert(&CONTENT_CRC64, value(base64::encode_crc64(sum)));
}

/// An HTTP date.
pub fn date(at: Timestamp) -> HeaderValue {
    value(Bytes::copy_from_slice(dates::http_date(at).as_bytes()))
}

/// A value from text of our own or text that came in a header: both fit.
pub fn value(text: impl Into<Bytes>) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.into()).unwrap_or(HeaderValue::from_static(""))
}

/// An answer with an XML document.
pub fn xml(status: StatusCode, xml: XmlWriter) -> Reply {
    reply(status).with_body("application/xml", xml.finish())
}
