//! The headers by which a request says how a blob is encrypted: a customer-provided key, or an encryption scope.
//!
//! What follows from them is in `rules/encryption.rs`; what an answer says of it is in `reply.rs`.

use auth::{Caller, Settings};
use content::sealing::KEY_BYTES;
use service::RequestError;
use wire::base64;
use wire::http::Head;

use crate::error::BlobError;
use crate::request;
use crate::rules::encryption::{ACCOUNT_SCOPE, CustomerKey, WriteEncryption};

/// The names of the three headers that bring a key.
#[derive(Debug)]
pub struct KeyHeaders {
    pub key: &'static str,
    pub sha256: &'static str,
    pub algorithm: &'static str,
}

/// The key of the blob that the request names.
pub const OF_BLOB: KeyHeaders = KeyHeaders { key: KEY, sha256: SHA256_OF_KEY, algorithm: ALGORITHM };
/// The key of the blob that is copied from.
pub const OF_SOURCE: KeyHeaders = KeyHeaders {
    key: "x-ms-source-encryption-key",
    sha256: "x-ms-source-encryption-key-sha256",
    algorithm: "x-ms-source-encryption-algorithm",
};

pub const KEY: &str = "x-ms-encryption-key";
pub const SHA256_OF_KEY: &str = "x-ms-encryption-key-sha256";
pub const ALGORITHM: &str = "x-ms-encryption-algorithm";
const AES256: &str = "AES256";
pub const SCOPE: &str = "x-ms-encryption-scope";

impl KeyHeaders {
    pub fn all(&self) -> [&'static str; 3] {
        [self.key, self.sha256, self.algorithm]
    }
}

/// A customer-provided key. The three headers belong together. A key is never repeated in a refusal.
pub fn customer_key(head: &Head, names: &KeyHeaders) -> Result<Option<CustomerKey>, BlobError> {
    if names.all().iter().all(|name| !head.has_header(name)) {
        return Ok(None);
    }
    let hidden = || BlobError::header(names.key, "");
    let text = request::required(head, names.key).map_err(|error| match error {
        RequestError::InvalidHeaderValue { .. } => hidden(),
        other => other.into(),
    })?;
    let secret = base64::decode_exact::<KEY_BYTES>(text).ok_or_else(hidden)?;
    let given = request::required(head, names.sha256)?;
    let algorithm = request::required(head, names.algorithm)?;
    if algorithm != AES256 {
        return Err(BlobError::header(names.algorithm, algorithm));
    }
    let key = CustomerKey::new(secret);
    if base64::decode_exact::<32>(given) != Some(key.sha256) {
        return Err(BlobError::header(names.sha256, given));
    }
    Ok(Some(key))
}

/// The headers by which another server is asked for what is sealed with a key.
pub fn of_key(key: &CustomerKey) -> [(&'static str, String); 3] {
    [(KEY, base64::encode(&key.secret.0)), (SHA256_OF_KEY, base64::encode(&key.sha256)), (ALGORITHM, AES256.to_owned())]
}

/// How a write is to be encrypted, by its headers and by the encryption scope of the caller's signature.
pub fn of_write(head: &Head, caller: &Caller, settings: &Settings) -> Result<WriteEncryption, BlobError> {
    let key = customer_key(head, &OF_BLOB)?;
    let signed = caller.grant().and_then(|grant| grant.encryption_scope.as_deref());
    let named = scope(head, settings, SCOPE)?;
    let scope = match (named, signed) {
        (Some(named), Some(signed)) if named != signed => return Err(BlobError::header(SCOPE, named)),
        (named, signed) => named.or(signed),
    };
    match (key, scope.filter(|scope| *scope != ACCOUNT_SCOPE)) {
        (Some(_), Some(scope)) => Err(BlobError::header(SCOPE, scope)),
        (Some(key), None) => Ok(WriteEncryption::by_key(key)),
        (None, Some(scope)) => Ok(WriteEncryption::by_scope(scope)),
        (None, None) => Ok(WriteEncryption::default()),
    }
}

/// A scope that a header names: one that the account has.
pub fn scope<'a>(head: &'a Head, settings: &Settings, name: &'static str) -> Result<Option<&'a str>, BlobError> {
    let Some(scope) = request::text(head, name)? else { return Ok(None) };
    let is_known = scope == ACCOUNT_SCOPE || settings.encryption_scopes.iter().any(|known| known == scope);
    if is_known { Ok(Some(scope)) } else { Err(BlobError::header(name, scope)) }
}

/// Refuses a customer-provided key where the service takes none.
pub fn no_customer_key(head: &Head) -> Result<(), BlobError> {
    request::not_supported(head, &OF_BLOB.all())
}

/// The same for the key of a copy's source.
pub fn no_source_key(head: &Head) -> Result<(), BlobError> {
    request::not_supported(head, &OF_SOURCE.all())
}
