//! The headers that answers about shares have in common.
