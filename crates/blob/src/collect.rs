//! What goes later: the handlers of the due rows that the service writes.

use engine::collector::Handler;
use engine::due::{Due, Kind};
use engine::{BoxFuture, Engine, EngineError};

use crate::BlobService;

impl Handler for BlobService {
    fn handle<'a>(&'a self, _engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            match due.kind {
                Kind::BlockList | Kind::Staging | Kind::UncommittedBlocks | Kind::ContainerPurge => Ok(false),
                Kind::Content | Kind::Other => Ok(false),
            }
        })
    }
}
