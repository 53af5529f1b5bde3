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
    /// It has done something. That may have made other rows due, or be only a part of what its row asks for.
    Perhaps,
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
                Left::Nothing | Left::Perhaps => tokio::select! {
                    () = connections.ending() => return,
                    () = tokio::time::sleep(SWEEP_PAUSE) => {}
                },
            }
        }
    }

    /// Does everything that is due now. Two that sweep at once do no harm: every step is a decision that finds its row or does not.
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
                match swept.handled {
                    _ if swept.is_more_left => Left::Probably,
                    0 => Left::Nothing,
                    _ => Left::Perhaps,
                }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use engine::due::{self, Due};
    use engine::memory::MemoryEngine;
    use engine::{BoxFuture, Changes, Commit, EngineError, Key, Timestamp};

    use super::*;

    const SPACE: u8 = 0x70;
    const STEPS: u64 = 250;

    fn counter() -> Key {
        Key::new(SPACE).text("steps")
    }

    fn number(row: Option<bytes::Bytes>) -> u64 {
        row.map_or(0, |row| u64::from_be_bytes(row.as_ref().try_into().expect("eight bytes")))
    }

    /// Takes more steps than one turn has. With the last one another row becomes due, which the next sweep finds.
    #[derive(Debug)]
    struct ManySteps;

    impl Handler for ManySteps {
        fn spaces(&self) -> &[u8] {
            &[SPACE]
        }

        fn handle<'a>(
            &'a self,
            engine: &'a dyn Engine,
            due: &'a Due,
        ) -> BoxFuture<'a, Result<collector::Handled, EngineError>> {
            let is_first = due.owner == b"first";
            let done = collector::steps(engine, due, move |rows, tick, changes| {
                let count = number(rows.get(&counter())?) + 1;
                changes.put(counter(), count.to_be_bytes().to_vec());
                if is_first && count == STEPS {
                    changes.put(due::key(tick.now, SPACE, b"second"), bytes::Bytes::new());
                }
                Ok(is_first && count < STEPS)
            });
            Box::pin(async move { done.await.map(|()| collector::Handled::Done) })
        }
    }

    #[tokio::test]
    async fn catching_up_does_everything_that_is_due() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(1));
        let put = engine::commit::<(), Infallible, _>(&*engine, Key::new(SPACE), |_, _| {
            let mut changes = Changes::none();
            changes.put(due::key(Timestamp(7), SPACE, b"first"), bytes::Bytes::new());
            Ok(Commit { changes, outcome: () })
        });
        put.await.expect("a due row");
        let handlers: Vec<Arc<dyn Handler>> = vec![Arc::new(ManySteps)];
        let sweeper = Sweeper { engine: Arc::clone(&engine), handlers, sweeper: collector::Sweeper::default() };
        sweeper.catch_up().await;
        let steps = engine::read::<_, Infallible, _>(&*engine, |rows, _| Ok(number(rows.get(&counter())?))).await;
        assert_eq!(steps.expect("read"), STEPS + 1);
        assert_eq!(collector::sweep(&*engine, &[&ManySteps]).await, Ok(0), "nothing is due any more");
    }
}
