//! Text and bytes to values and back.
//!
//! Everything here is a plain function of its arguments: no sockets, no clock, no runtime. Values from this crate are
//! valid, so no other crate checks them again.

pub mod base64;
pub mod checksum;
pub mod cors;
pub mod dates;
pub mod file_path;
pub mod fold;
pub mod http;
pub mod metadata;
pub mod multipart;
pub mod names;
pub mod percent;
pub mod ranges;
pub mod structured;
pub mod tags;
pub mod xml;
