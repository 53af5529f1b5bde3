//! How a blob is encrypted, as it is stored.

use minicbor::{Decode, Encode};

/// How a blob is encrypted, as its row says; the same of what a request asks for.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Encryption {
    #[n(0)]
    Key(#[n(0)] Sealed),
    #[n(1)]
    Scope(#[n(0)] String),
}

/// What is stored of a blob that is sealed with a client's key.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Sealed {
    /// Of the key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub sha256: Vec<u8>,
    /// The metadata, which then stands nowhere else. `None`: there is none.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub metadata: Option<Vec<u8>>,
    /// The MD5 that the service computed.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub md5: Option<Vec<u8>>,
}
