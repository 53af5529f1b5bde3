//! XML bodies: a writer for what we answer and readers for the few documents that callers send.
//!
//! Readers refuse document types and every entity that XML does not define itself, so a document can neither grow nor
//! reach out. What they return has been checked against the limits of the service.

mod block_list;
mod key_info;
mod read;
mod service_properties;
mod signed_identifiers;
mod write;

pub use block_list::{BLOCKS_PER_LIST_MAX, BlockEntry, BlockSearch, parse_block_list};
pub use key_info::KeyInfo;
pub use read::XmlError;
pub(crate) use read::parse;
pub use service_properties::{
    CORS_RULES_MAX, CorsRule, DeleteRetention, Logging, Metrics, Retention, ServiceProperties, StaticWebsite,
};
pub use signed_identifiers::{SIGNED_IDENTIFIERS_MAX, SignedIdentifier, SignedIdentifiers};
pub use write::XmlWriter;
