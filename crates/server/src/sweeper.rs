//! The background task that does what is due.

use std::sync::Arc;

use engine::Engine;
use engine::collector::{self, DUE_PER_SWEEP, Handler};

use crate::limits::{SWEEP_PAUSE, SWEEPS_AT_ONCE_MAX};
use crate::listener::Connections;
use crate::panics::{Panicked, caught};

#[derive(Debug)]
pub(crate) struct Sweeper {
    pub engine: Arc<dyn Engine>,
    pub handlers: Vec<Arc<dyn Handler>>,
}

/// Whether a sweep left something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    /// It did as much as one sweep does.
    Probably,
}

impl Sweeper {
    /// Sweeps until shutdown begins.
    pub(crate) async fn run(&self, connections: Connections) {
        while !connections.is_ending() {
            match self.sweep().await {
                // Others get their turn in between.
                Left::Probably => tokio::task::yield_now().await,
                Left::Nothing => tokio::select! {
                    () = connections.ending() => return,
                    () = tokio::time::sleep(SWEEP_PAUSE) => {}
                },
            }
        }
    }

    /// Does what is due now. Two that sweep at once do no harm: every step is a decision that finds its row or does not.
    pub(crate) async fn catch_up(&self) {
        for _ in 0..SWEEPS_AT_ONCE_MAX {
            if self.sweep().await == Left::Nothing {
                return;
            }
        }
    }

    async fn sweep(&self) -> Left {
        let handlers: Vec<&dyn Handler> = self.handlers.iter().map(AsRef::as_ref).collect();
        match caught(collector::sweep(self.engine.as_ref(), &handlers)).await {
            Ok(Ok(handled)) if handled >= DUE_PER_SWEEP => Left::Probably,
            Ok(Ok(_)) => Left::Nothing,
            Ok(Err(error)) => {
                // What was not done is still due; the next round tries again.
                tracing::warn!(%error, "a sweep did not finish");
                Left::Nothing
            }
            Err(Panicked) => Left::Nothing,
        }
    }
}
