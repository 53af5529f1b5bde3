//! Text that is not for others: it is never printed by accident.

use std::fmt;

/// A key or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// For code that checks the secret or hands it to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Random bytes in base64.
    pub fn random<const BYTES: usize>() -> Result<Secret, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Secret(wire::base64::encode(&bytes)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("topsecret")), "Secret(..)");
    }

    #[test]
    fn random_ones_differ() {
        let (one, other) = (Secret::random::<64>().unwrap(), Secret::random::<64>().unwrap());
        assert_ne!(one, other);
        assert_eq!(wire::base64::decode(one.expose()).unwrap().len(), 64);
    }
}
