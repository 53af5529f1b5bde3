//! Tags.
