//! Bytes of a resource: in, out, sparse, copied. What the Blob and the File service share about contents.
//!
//! - [`map`]: which content holds which bytes of a sparse resource (page blobs and files), and as what snapshots see it.
//! - [`pieces`]: bytes on their way out: parts of opened contents as one body.
//! - [`sealing`]: contents that only the holder of a customer-provided key can read.
//! - [`upload`]: a request body on its way into a content, with its checksums.

pub mod map;
pub mod pieces;
pub mod sealing;
pub mod upload;
