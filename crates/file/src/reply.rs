//! What operations have in common in what they answer: the headers of shares, directories and files.
