//! Every decoder, as a function of bytes that nobody would send. None may panic, hang or take memory without end.
//!
//! The functions are called by ordinary tests with a few thousand inputs, mutated from a small corpus by a seed (`tests/short.rs`), for
//! longer by `cargo xtask fuzz NAME MINUTES`, and by libFuzzer (`fuzz/`), which looks at what the code does.

mod corpus;
mod head;
mod mutator;
mod targets;

pub use corpus::corpus;
pub use mutator::Mutator;
pub use targets::{TARGETS, Target};
