//! The in-memory engine does what every engine must.

use std::sync::Arc;

engine::conformance_tests!(Arc::new(engine::memory::MemoryEngine::default()));

/// An engine that has nothing at hand does what every engine must, too.
mod loading {
    use super::*;
    use engine::loads::LoadingEngine;
    use engine::memory::MemoryEngine;

    engine::conformance_tests!(Arc::new(LoadingEngine::new(Arc::new(MemoryEngine::default()))));
}
