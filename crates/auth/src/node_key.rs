//! How the nodes of a cluster know each other: by the secret that they share.

use crate::account::Key;

/// Keeps what nodes sign apart from anything else that the secret may ever be used for.
const LABEL: &[u8] = b"lazurite nodes 1";

/// Signs what one node tells another.
#[derive(Clone, Debug)]
pub struct NodeKey(Key);

impl NodeKey {
    pub fn new(secret: &[u8; 32]) -> NodeKey {
        NodeKey(Key::from_bytes(&Key::from_bytes(secret).tag(LABEL)))
    }

    /// The signature of a message for a purpose.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.0.tag(&message(purpose, parts))
    }

    /// Whether a node of the cluster made the signature. Takes the same time wherever the two differ.
    pub fn signed(&self, purpose: &str, parts: &[&[u8]], signature: &[u8; 32]) -> bool {
        self.0.signed(&message(purpose, parts), signature)
    }
}

fn message(purpose: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = Vec::new();
    append_parts(&mut message, std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()));
    message
}

/// Appends parts, each with its length before it: no part can be taken for a piece of its neighbour.
pub(crate) fn append_parts<'a>(message: &mut Vec<u8>, parts: impl IntoIterator<Item = &'a [u8]>) {
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_secret_one_purpose_and_these_parts() {
        let key = NodeKey::new(&[7; 32]);
        let signature = key.sign("purpose", &[b"one", b"two"]);
        assert!(key.signed("purpose", &[b"one", b"two"], &signature));
        assert!(!NodeKey::new(&[8; 32]).signed("purpose", &[b"one", b"two"], &signature));
        assert!(!key.signed("purpos", &[b"eone", b"two"], &signature));
        assert!(!key.signed("purpose", &[b"onet", b"wo"], &signature));
        assert!(!key.signed("purpose", &[b"one"], &signature));
        assert!(!key.signed("purpose", &[b"one", b"two", b""], &signature));
    }
}
