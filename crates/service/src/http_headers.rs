//! The HTTP headers that a blob or a file stores and that its downloads carry.

use minicbor::{Decode, Encode};

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
