//! What was asked of the server, what came of it, and why.
//!
//! Records stand in memory, within a bound, and are gone with the process. Words are made when somebody asks for them, never
//! on the way of a request.
//!
//! - [`record`]: what is kept of a request
//! - [`ring`]: where it is kept: bounded, and a shard for each thread
//! - [`query`]: requests by filter or id, the chain of an object, the leases that are held
//! - [`words`]: why a request was refused: a record and its neighbours in, sentences out

#![forbid(unsafe_code)]

mod codec;
pub mod query;
pub mod record;
pub mod ring;
pub mod words;

pub use query::{Chain, Filter, HeldLease};
pub use record::{Caller, Judged, Read, Record, Sent, Service};
pub use ring::History;
pub use words::{Sentence, why};

#[cfg(test)]
mod tests;
