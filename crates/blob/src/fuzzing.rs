//! What `fuzzing` calls: decoders of requests and of rows, with arbitrary bytes.

use concurrency::{Lease, Timestamp};
use engine::Unread;
use minicbor::Decode;
use service::codec;
use wire::http::Head;

use crate::model::tags;
use crate::model::{
    Blob, Block, Committed, Container, ContainerGuard, DeletedContainer, ListChunk, ListEntry, PublicAccess,
};
use crate::request;

/// Reads from a head all that operations read from heads.
pub fn head(head: &Head) {
    let _ = (request::container(head), request::blob(head), request::which(head), request::only_base(head));
    let _ = (request::conditions(head), request::tag_conditions(head), request::source_conditions(head));
    let _ = (request::container_conditions(head), request::if_tags(head), request::tags(head));
    let _ = (request::metadata(head), request::public_access(head), request::blob_headers(head));
    let _ = (request::page_blob_length(head), request::sequence_number(head), request::append_position(head));
    let _ = (request::lease_id(head), request::body_sums(head), request::source_sums(head), request::tier(head));
    let _ = (request::structured_body(head), request::policy(head), request::legal_hold(head));
}

/// Reads a row as each kind of row.
pub fn rows(row: &[u8]) {
    fn read<T: for<'b> Decode<'b, ()>>(row: &[u8]) -> Result<T, Unread> {
        codec::decode(row)
    }
    let _ = (read::<Blob>(row).is_ok(), read::<Committed>(row).is_ok(), read::<Block>(row).is_ok());
    let _ =
        (read::<Container>(row).is_ok(), read::<DeletedContainer>(row).is_ok(), read::<ContainerGuard>(row).is_ok());
    let _ = (read::<ListChunk>(row).is_ok(), read::<ListEntry>(row).is_ok());
    let _ = tags::TagIndexKey::read(row).is_ok();
    content::map::fuzz(row);
    crate::background_copy::fuzz(row);
}

/// Rows to begin with.
#[must_use]
pub fn row_samples() -> Vec<Vec<u8>> {
    let container = Container {
        generation: 7,
        stamp: Timestamp(1_000),
        lease: Lease::Available,
        metadata: vec![("a".into(), "b".into())],
        public: PublicAccess::None,
        policies: vec![],
        default_scope: None,
        denies_other_scopes: false,
    };
    let samples = [codec::encode(&Blob::default()), codec::encode(&ListChunk::default()), codec::encode(&container)];
    samples.iter().map(|row| row.to_vec()).collect()
}
