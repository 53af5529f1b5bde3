//! The background task that does what is due.

use std::sync::Arc;

use engine::Engine;
use engine::collector::{self, Handler};

use crate::limits::{SWEEP_PAUSE, SWEEPS_AT_ONCE_MAX};
use crate::listener::Connections;
use engine::panics::{Panicked, caught};

#[derive(Debug)]
pub(crate) struct Sweeper {
    pub engine: Arc<dyn Engine>,
    pub handlers: Vec<Arc<dyn Handler>>,
    pub sweeper: collector::Sweeper,
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
        match caught(self.sweeper.sweep(self.engine.as_ref(), &handlers)).await {
            Ok(Ok(swept)) => {
                for failed in &swept.failures {
                    let (what, error, times) = (&failed.what, &failed.error, failed.times);
                    tracing::warn!(what, %error, times, "cannot be done now; it will be tried again, later each time");
                }
                if swept.is_more_left { Left::Probably } else { Left::Nothing }
            }
            Ok(Err(error)) => {
                // What was not done is still due; the next round tries again.
                tracing::warn!(%error, "a sweep did not finish");
                Left::Nothing
            }
            Err(Panicked) => Left::Nothing,
        }
    }
}
