//! What operations have in common in what they answer.
//!
//! - `share`: the headers of shares.
//! - `node`: the headers of directories and files.

pub mod node;
pub mod share;
