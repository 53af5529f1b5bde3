//! The embedded engine does what every engine must.

use std::sync::Arc;

use engine::Engine;
use engine_embedded::{EmbeddedEngine, Options};

mod full {
    use super::*;
    engine::conformance_tests!(make(Options::default()));
}

/// With tiny budgets everything happens often: logs end, memtables are written out, rows leave the cache.
mod cramped {
    use super::*;
    engine::conformance_tests!(make(Options {
        memtable_bytes: 8 << 10,
        log_bytes: 64 << 10,
        segment_bytes: 1 << 20,
        row_cache_bytes: 4 << 10,
        ..Options::default()
    }));
}

mod relaxed {
    use super::*;
    engine::conformance_tests!(make(Options {
        durability: engine_embedded::Durability::Relaxed,
        ..Options::default()
    }));
}

fn make(options: Options) -> Arc<dyn Engine> {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let engine = EmbeddedEngine::open(&folder, options).expect("opened");
    Arc::new(InFolder { engine, folder })
}

/// Removes its folder when the test is over.
#[derive(Debug)]
struct InFolder {
    engine: Arc<EmbeddedEngine>,
    folder: std::path::PathBuf,
}

impl Drop for InFolder {
    fn drop(&mut self) {
        // `close` does its work when it is called; nothing is left to wait for.
        drop(self.engine.close());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Engine for InFolder {
    fn commit(&self, decision: Box<dyn engine::Decision>) -> engine::BoxFuture<'_, Result<(), engine::EngineError>> {
        self.engine.commit(decision)
    }
    fn query<'a>(&'a self, query: &'a mut dyn engine::Query) -> engine::BoxFuture<'a, Result<(), engine::EngineError>> {
        self.engine.query(query)
    }
    fn writer(&self, length: Option<u64>) -> Box<dyn engine::ContentWriter> {
        self.engine.writer(length)
    }
    fn now(&self) -> engine::Timestamp {
        self.engine.now()
    }
    fn advance_clock(&self, seconds: u64) -> engine::BoxFuture<'_, Result<u64, engine::EngineError>> {
        self.engine.advance_clock(seconds)
    }
    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
    fn close(&self) -> engine::BoxFuture<'_, Result<(), engine::EngineError>> {
        self.engine.close()
    }
}
