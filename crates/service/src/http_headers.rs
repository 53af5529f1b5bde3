//! The HTTP headers that a blob or a file stores and that its downloads carry.

use minicbor::{Decode, Encode};
use wire::base64;
use wire::http::{Head, HeaderMap, HeaderName, header};

use crate::{RequestError, reply, request};

/// The HTTP headers that a client has set on a blob or a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct HttpHeaders {
    #[n(0)]
    pub content_type: Option<String>,
    #[n(1)]
    pub content_encoding: Option<String>,
    #[n(2)]
    pub content_language: Option<String>,
    #[n(3)]
    pub content_disposition: Option<String>,
    #[n(4)]
    pub cache_control: Option<String>,
    /// As the client gave it: only Put Blob compares it with the bytes.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub content_md5: Option<Vec<u8>>,
}

/// The request headers that set them. Blobs and files have names of their own.
#[derive(Clone, Copy, Debug)]
pub struct HttpHeaderNames {
    pub content_type: &'static str,
    pub content_encoding: &'static str,
    pub content_language: &'static str,
    pub content_disposition: &'static str,
    pub cache_control: &'static str,
    pub content_md5: &'static str,
}

impl HttpHeaderNames {
    /// Whether a request has any of them.
    pub fn are_in(&self, head: &Head) -> bool {
        let HttpHeaderNames {
            content_type,
            content_encoding,
            content_language,
            content_disposition,
            cache_control,
            content_md5,
        } = self;
        let names = [content_type, content_encoding, content_language, content_disposition, cache_control, content_md5];
        names.iter().any(|name| head.has_header(name))
    }
}

impl HttpHeaders {
    /// The headers that a request sets, under these names.
    pub fn parse(head: &Head, names: &HttpHeaderNames) -> Result<HttpHeaders, RequestError> {
        Ok(HttpHeaders {
            content_type: request::stored(head, names.content_type)?,
            content_encoding: request::stored(head, names.content_encoding)?,
            content_language: request::stored(head, names.content_language)?,
            content_disposition: request::stored(head, names.content_disposition)?,
            cache_control: request::stored(head, names.cache_control)?,
            content_md5: stored_md5(head, names.content_md5)?,
        })
    }

    /// Sets them on an answer, but for the MD5: under which name that goes depends on whether the answer has all bytes.
    pub fn set_on(&self, headers: &mut HeaderMap) {
        set_text(headers, header::CONTENT_TYPE, self.content_type.as_deref());
        set_text(headers, header::CONTENT_ENCODING, self.content_encoding.as_deref());
        set_text(headers, header::CONTENT_LANGUAGE, self.content_language.as_deref());
        set_text(headers, header::CONTENT_DISPOSITION, self.content_disposition.as_deref());
        set_text(headers, header::CACHE_CONTROL, self.cache_control.as_deref());
    }
}

/// An MD5 is stored as it is given. It is not compared with the bytes, so its length does not matter either.
fn stored_md5(head: &Head, name: &'static str) -> Result<Option<Vec<u8>>, RequestError> {
    let Some(value) = request::text(head, name)? else { return Ok(None) };
    base64::decode(value).map(Some).ok_or(RequestError::InvalidMd5)
}

fn set_text(headers: &mut HeaderMap, name: HeaderName, text: Option<&str>) {
    if let Some(text) = text {
        headers.insert(name, reply::value(text.to_owned()));
    }
}
