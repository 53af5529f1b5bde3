//! Random decisions on the memory engine.

use std::sync::Arc;

use engine::Engine;
use engine::memory::MemoryEngine;

engine_model::model_tests!(Some(vec![Arc::new(MemoryEngine::default()) as Arc<dyn Engine>]));
