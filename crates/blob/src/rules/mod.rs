//! What holds whichever operation asks: pure functions over rows.

pub mod copy;
pub mod copy_source;
pub mod creation_options;
pub mod encryption;
pub mod immutability;
pub mod soft_delete;
pub mod tier;
pub mod writable;
