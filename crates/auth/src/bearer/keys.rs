//! The public keys of an issuer, as its JSON Web Key Set has them, and what they have signed.

use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

use super::Token;
use crate::refusal::TokenFault;

/// An issuer has a handful: the one in use, the ones before it and the next.
const KEYS_MAX: usize = 100;

/// Keys that may have signed a token. More than one, so that an issuer can go over from one to the next.
#[derive(Clone, Default)]
pub struct KeySet(Vec<PublicKey>);

/// Why a document is no key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKeySet {
    /// Not JSON, or without a list of `keys`.
    Malformed,
    /// None of the keys can verify a signature that we take.
    NoKeys,
    TooMany,
}

#[derive(Clone)]
struct PublicKey {
    kid: Option<String>,
    /// The only algorithm it is for, if it says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256([u8; 65]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Es256,
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys that are for something else are passed over.
    pub fn parse(document: &str) -> Result<KeySet, BadKeySet> {
        let document: Value = serde_json::from_str(document).map_err(|_| BadKeySet::Malformed)?;
        let keys = document.get("keys").and_then(Value::as_array).ok_or(BadKeySet::Malformed)?;
        if keys.len() > KEYS_MAX {
            return Err(BadKeySet::TooMany);
        }
        let keys: Vec<PublicKey> = keys.iter().filter_map(Value::as_object).filter_map(PublicKey::parse).collect();
        if keys.is_empty() { Err(BadKeySet::NoKeys) } else { Ok(KeySet(keys)) }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), TokenFault> {
        let field = |name| token.header.get(name).and_then(Value::as_str);
        // A token may demand that its reader knows an extension. We know none.
        if token.header.contains_key("crit") {
            return Err(TokenFault::Algorithm);
        }
        let algorithm = field("alg").and_then(Algorithm::named).ok_or(TokenFault::Algorithm)?;
        let kid = field("kid");
        let mut keys = self.0.iter().filter(|key| key.is_for(kid, algorithm)).peekable();
        if keys.peek().is_none() {
            return Err(TokenFault::UnknownKey);
        }
        let signed = keys.any(|key| key.signed(algorithm, token.signed.as_bytes(), &token.signature));
        signed.then_some(()).ok_or(TokenFault::Signature)
    }
}

impl Algorithm {
    /// `none` is none of them, and neither are those where the verifier could have signed.
    fn named(name: &str) -> Option<Algorithm> {
        Some(match name {
            "RS256" => Algorithm::Rs256,
            "RS384" => Algorithm::Rs384,
            "RS512" => Algorithm::Rs512,
            "PS256" => Algorithm::Ps256,
            "ES256" => Algorithm::Es256,
            _ => return None,
        })
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Algorithm::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Algorithm::Es256 => None,
        }
    }
}

impl PublicKey {
    fn parse(key: &Map<String, Value>) -> Option<PublicKey> {
        let text = |name| key.get(name).and_then(Value::as_str);
        let number = |name| text(name).and_then(wire::base64::decode_url);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let algorithm = match text("alg") {
            Some(name) => Some(Algorithm::named(name)?),
            None => None,
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa { n: minimal(number("n")?), e: minimal(number("e")?) },
            ("EC", Some("P-256")) => Material::P256(point(&number("x")?, &number("y")?)?),
            _ => return None,
        };
        Some(PublicKey { kid: text("kid").map(str::to_owned), algorithm, material })
    }

    fn is_for(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        let is_named = match (kid, &self.kid) {
            (Some(kid), Some(own)) => kid == own,
            (None, _) | (_, None) => true,
        };
        let is_kind = match &self.material {
            Material::Rsa { .. } => algorithm.rsa().is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
        };
        is_named && is_kind && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, algorithm.rsa()) {
            (Material::Rsa { n, e }, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            (Material::P256(point), None) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Material::Rsa { .. }, None) | (Material::P256(_), Some(_)) => false,
        }
    }
}

/// Without the zeros that some put in front.
fn minimal(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

fn point(x: &[u8], y: &[u8]) -> Option<[u8; 65]> {
    let mut point = [4; 65];
    point[1..33].copy_from_slice(x.get(..32).filter(|_| x.len() == 32)?);
    point[33..].copy_from_slice(y.get(..32).filter(|_| y.len() == 32)?);
    Some(point)
}

/// The names of the keys; the keys themselves are public but long.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.kid.as_deref().unwrap_or("(no name)"))).finish()
    }
}

impl fmt::Display for BadKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadKeySet::Malformed => f.write_str("the key set is not JSON with a list of keys"),
            BadKeySet::NoKeys => f.write_str("the key set has no RSA or P-256 key for signatures"),
            BadKeySet::TooMany => write!(f, "the key set has more than {KEYS_MAX} keys"),
        }
    }
}

impl std::error::Error for BadKeySet {}
