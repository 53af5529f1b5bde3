//! Who calls, and what may they do.
