//! The engine on a real PostgreSQL does what every engine must, whatever holds the bytes.

mod common;

use std::sync::Arc;

use engine::Engine;
use engine::byte_store::ByteStore;
use engine::memory::MemoryBytes;

mod bytes_in_memory {
    use super::*;
    engine::conformance_tests!(optional make(Some(Arc::new(MemoryBytes::default()))).await);
}

mod bytes_in_s3 {
    use super::*;
    engine::conformance_tests!(optional make(common::s3()).await);
}

async fn make(store: Option<Arc<dyn ByteStore>>) -> Option<Arc<dyn Engine>> {
    let url = common::postgres()?;
    let options = common::fresh(url).await;
    Some(common::open(url, store?, &options).await)
}
