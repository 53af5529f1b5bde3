//! Files' maps against plain bytes.
