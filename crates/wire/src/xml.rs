//! XML bodies: a writer for answers, and readers for the few documents that clients send.
//!
//! Readers refuse document types and all entities that XML does not define itself, so a document can neither expand nor
//! refer to another one. What they return is within Azure's limits.

mod block_list;
mod error_message;
mod key_info;
mod protocol_settings;
mod query_request;
mod queue_message;
mod read;
mod service_properties;
mod signed_identifiers;
mod user_delegation_key;
mod write;

pub use block_list::{BLOCKS_PER_LIST_MAX, BlockEntry, BlockSearch, parse_block_list};
pub use error_message::parse_error_message;
pub use key_info::KeyInfo;
pub use protocol_settings::{NfsSettings, ProtocolSettings, SmbSettings};
pub use query_request::{QueryFormat, QueryRequest};
pub use queue_message::parse_queue_message;
pub use read::XmlError;
pub(crate) use read::parse;
pub use service_properties::{
    CORS_RULES_MAX, CorsRule, DeleteRetention, Logging, Metrics, Retention, ServiceProperties, ShareDeleteRetention,
    StaticWebsite,
};
pub use signed_identifiers::{SIGNED_IDENTIFIERS_MAX, SignedIdentifier, SignedIdentifiers};
pub use user_delegation_key::UserDelegationKey;
pub use write::XmlWriter;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudorandom numbers: a failure can be repeated with its seed.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn no_document_makes_a_reader_panic() {
        let samples = [
            "<BlockList><Latest>QQ==</Latest><Committed>Qg==</Committed></BlockList>",
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2026-01-01</Start></AccessPolicy>\
             </SignedIdentifier></SignedIdentifiers>",
            "<StorageServiceProperties><Cors><CorsRule/></Cors><StaticWebsite><Enabled>true</Enabled></StaticWebsite>\
             </StorageServiceProperties>",
            "<StorageServiceProperties><ProtocolSettings><SMB><Multichannel><Enabled>true</Enabled></Multichannel></SMB>\
             </ProtocolSettings></StorageServiceProperties>",
            "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>",
            "<KeyInfo><Start>2026-01-01</Start><Expiry>2026-01-02T00:00:00+01:00</Expiry></KeyInfo>",
            "<QueueMessage><MessageText>a&amp;b</MessageText></QueueMessage>",
        ];
        let pieces = [
            "<",
            ">",
            "/",
            "&",
            ";",
            "&#0;",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<?",
            "?>",
            "<!DOCTYPE",
            "\"",
            "\u{fffe}",
        ];
        for seed in 0..4_000_u64 {
            let mut state = seed;
            let mut document = samples[next(&mut state) % samples.len()].as_bytes().to_vec();
            for _ in 0..1 + next(&mut state) % 4 {
                let at = next(&mut state) % document.len();
                let until = (at + next(&mut state) % 4).min(document.len());
                document.splice(at..until, pieces[next(&mut state) % pieces.len()].bytes());
            }
            _ = parse_block_list(&document);
            _ = SignedIdentifiers::parse(&document);
            _ = ServiceProperties::parse_any(&document);
            _ = crate::tags::Tags::parse_xml(&document);
            _ = KeyInfo::parse(&document);
            _ = parse_queue_message(&document);
        }
    }
}
