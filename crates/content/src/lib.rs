//! Bytes of a resource: in, out, sparse, copied. What the Blob and the File service share about contents.
//!
//! - [`background_copy`]: copies that go on after their answer.
//! - [`copy_state`]: what a resource knows of the copy that it came from.
//! - [`map`]: which content holds which bytes of a sparse resource (page blobs and files), and as what snapshots see it.
//! - [`pieces`]: bytes on their way out: parts of opened contents as one body.
//! - [`sealing`]: contents that only the holder of a customer-provided key can read.
//! - [`source`]: where the bytes of a copy come from.
//! - [`upload`]: a request body on its way into a content, with its checksums.

pub mod background_copy;
pub mod copy_state;
pub mod map;
pub mod pieces;
pub mod sealing;
pub mod source;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod upload;
