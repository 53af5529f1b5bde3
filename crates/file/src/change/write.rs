//! Writing, clearing and resizing the bytes of a file.
