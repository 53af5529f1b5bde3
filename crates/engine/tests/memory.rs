//! The in-memory engine does what every engine must.

use std::sync::Arc;

engine::conformance_tests!(Arc::new(engine::memory::MemoryEngine::default()));
