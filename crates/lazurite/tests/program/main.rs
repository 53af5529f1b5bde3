//! The program as a person or a test tool starts it.

#![allow(clippy::unwrap_used)] // Clippy sees tests only inside #[test]; all of this is one.

mod accounts;
mod azurite;
mod descriptors;
mod issuer;
mod start;
mod support;
mod tls;
mod tokens;
