//! Stored access policies.

use minicbor::{Decode, Encode};
use wire::xml::{SignedIdentifier, SignedIdentifiers};

/// A stored access policy, as the client set it. Its times and permissions are parsed only when a shared access
/// signature refers to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct StoredPolicy {
    #[n(0)]
    pub id: String,
    #[n(1)]
    pub start: Option<String>,
    #[n(2)]
    pub expiry: Option<String>,
    #[n(3)]
    pub permission: Option<String>,
}

impl StoredPolicy {
    /// The stored policies of a document from Set ACL.
    pub fn all_of(document: &SignedIdentifiers) -> Vec<StoredPolicy> {
        document.as_slice().iter().cloned().map(Into::into).collect()
    }

    /// The document for Get ACL.
    pub fn document(policies: &[StoredPolicy]) -> SignedIdentifiers {
        SignedIdentifiers::of(policies.iter().cloned().map(SignedIdentifier::from))
    }
}

impl From<StoredPolicy> for SignedIdentifier {
    fn from(policy: StoredPolicy) -> SignedIdentifier {
        let StoredPolicy { id, start, expiry, permission } = policy;
        SignedIdentifier { id, start, expiry, permission }
    }
}

impl From<SignedIdentifier> for StoredPolicy {
    fn from(policy: SignedIdentifier) -> StoredPolicy {
        let SignedIdentifier { id, start, expiry, permission } = policy;
        StoredPolicy { id, start, expiry, permission }
    }
}
