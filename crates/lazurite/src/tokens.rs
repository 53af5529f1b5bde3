//! Which bearer tokens are taken: `--oauth` and `--oauth-jwks`.

use auth::{KeySet, Tokens};
use server::Manners;

use crate::flags::{OAuth, Wrong};

impl OAuth {
    /// Reads the keys, if there are any to read.
    pub fn load(&self, manners: Manners) -> Result<Tokens, Wrong> {
        let (keys, issuer) = match self {
            OAuth::Off => return Ok(Tokens::refused()),
            OAuth::Basic => {
                return Ok(match manners {
                    Manners::Azure => Tokens::basic(),
                    Manners::Azurite => Tokens::basic_of_azurite(),
                });
            }
            OAuth::Verified { keys, issuer } => (keys, issuer),
            // Its keys are fetched later.
            OAuth::Issuer(issuer) => return Ok(Tokens::verified(KeySet::default()).issuer(issuer)),
        };
        let wrong = |what: String| Wrong(format!("The keys in {} cannot be used: {what}.", keys.display()));
        let text = std::fs::read_to_string(keys).map_err(|error| wrong(error.to_string()))?;
        let tokens = Tokens::verified(KeySet::parse(&text).map_err(|error| wrong(error.to_string()))?);
        Ok(match issuer {
            Some(issuer) => tokens.issuer(issuer),
            None => tokens,
        })
    }
}
