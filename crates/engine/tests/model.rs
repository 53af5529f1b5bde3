//! Random decisions on the memory engine.

use std::sync::Arc;

use engine::Engine;
use engine::memory::MemoryEngine;

engine_model::model_tests!(Some(vec![Arc::new(MemoryEngine::default()) as Arc<dyn Engine>]));

/// An engine that has nothing at hand answers the same.
mod loading {
    use super::*;
    use engine::loads::LoadingEngine;

    engine_model::model_tests!(Some(vec![
        Arc::new(LoadingEngine::new(Arc::new(MemoryEngine::default()))) as Arc<dyn Engine>
    ]));
}
