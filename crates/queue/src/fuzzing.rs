//! What the crate `fuzzing` calls: the decoders of rows, with arbitrary bytes.

use concurrency::Timestamp;
use service::codec;

use crate::model::{Marks, Message, Queue, Text};

/// Decodes a row as each kind of row.
pub fn rows(row: &[u8]) {
    let _ = (codec::decode::<Queue>(row).is_ok(), codec::decode::<Message>(row).is_ok());
    let _ = (codec::decode::<Text>(row).is_ok(), codec::decode::<Marks>(row).is_ok());
}

/// Valid rows, for the mutator to start from.
#[must_use]
pub fn row_samples() -> Vec<Vec<u8>> {
    let queue = Queue { generation: 7, metadata: vec![("a".into(), "b".into())], policies: vec![] };
    let text = Text { text: "text".into(), first: Timestamp(1_000) };
    let samples = [codec::encode(&queue), codec::encode(&text), codec::encode(&Marks::default())];
    samples.iter().map(|row| row.to_vec()).collect()
}
