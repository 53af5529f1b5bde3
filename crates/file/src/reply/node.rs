//! The headers that answers about directories and files have in common.
