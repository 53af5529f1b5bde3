//! The pre-authentication integrity hash (MS-SMB2 3.3.5.4): SHA-512 over the hash so far and the next message.

use ring::digest::{Context, SHA512};

/// A hash so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preauth(pub [u8; 64]);

impl Default for Preauth {
    fn default() -> Preauth {
        Preauth([0; 64])
    }
}

impl Preauth {
    /// Takes a message in, from its SMB2 header on, as it is on the wire.
    pub fn update(&mut self, message: &[u8]) {
        let mut hash = Context::new(&SHA512);
        hash.update(&self.0);
        hash.update(message);
        self.0.copy_from_slice(hash.finish().as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_counts_in_its_order() {
        let of = |messages: &[&[u8]]| {
            let mut hash = Preauth::default();
            messages.iter().for_each(|message| hash.update(message));
            hash
        };
        assert_ne!(of(&[b"a", b"b"]), of(&[b"b", b"a"]));
        assert_ne!(of(&[b"ab"]), of(&[b"a", b"b"]));
        // SHA-512 of 64 zeros.
        assert_eq!(of(&[b""]).0[..8], super::super::hex("7be9fda48f4179e6")[..]);
    }
}
