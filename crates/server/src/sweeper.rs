//! The background task that does what is due.

use std::sync::Arc;

use engine::Engine;
use engine::collector::{self, DUE_PER_SWEEP, Handler};
use tokio::sync::Notify;

use crate::limits::SWEEP_PAUSE;
use crate::listener::Connections;
use crate::panics::{Panicked, caught};

/// Sweeps until shutdown begins. `nudge` makes it look at once.
pub(crate) async fn run(
    engine: Arc<dyn Engine>,
    handlers: Vec<Arc<dyn Handler>>,
    connections: Connections,
    nudge: Arc<Notify>,
) {
    while !connections.is_ending() {
        if sweep(engine.as_ref(), &handlers).await {
            // More may be due. Others get their turn in between.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = connections.ending() => return,
            () = nudge.notified() => {}
            () = tokio::time::sleep(SWEEP_PAUSE) => {}
        }
    }
}

/// Whether it found so much that there is probably more.
async fn sweep(engine: &dyn Engine, handlers: &[Arc<dyn Handler>]) -> bool {
    let handlers: Vec<&dyn Handler> = handlers.iter().map(AsRef::as_ref).collect();
    match caught(collector::sweep(engine, &handlers)).await {
        Ok(Ok(handled)) => handled >= DUE_PER_SWEEP,
        Ok(Err(error)) => {
            // What was not done is still due; the next round tries again.
            tracing::warn!(%error, "a sweep did not finish");
            false
        }
        Err(Panicked) => false,
    }
}
