//! What `fuzzing` calls: decoders of what is in the files, with arbitrary bytes.

use bytes::Bytes;

use crate::batch::{Batch, BatchBuilder, BatchHeader};
use crate::manifest::Manifest;

/// Reads a batch of the log, and a row that says where a content is. Few spoiled batches have the right sums, so the bytes also stand as the
/// rows of one that has.
pub fn log_batch(bytes: &[u8]) {
    let _ = Manifest::decode(bytes).is_ok();
    read(bytes);
    let mut builder = BatchBuilder::new(1, 0, 5, 9);
    builder.add_raw_rows(bytes);
    read(&builder.finish(4));
}

fn read(record: &[u8]) {
    let Some(header) = BatchHeader::decode(record, 1, 0) else { return };
    if let Some(batch) = Batch::decode(Bytes::copy_from_slice(record), header) {
        let _ = (batch.contents().count(), batch.rows());
    }
}

/// Batches to begin with.
#[must_use]
pub fn log_batch_samples() -> Vec<Vec<u8>> {
    let mut builder = BatchBuilder::new(1, 0, 5, 9);
    builder.add_row(b"key", Some(b"value"));
    builder.add_row(b"gone", None);
    builder.add_content(3, b"content", crc32c::crc32c(b"content"));
    let rows = b"\x03\0\0\0\x05\0\0\0keyvalue\x04\0\0\0\xff\xff\xff\xffgone";
    vec![builder.finish(4), rows.to_vec()]
}
