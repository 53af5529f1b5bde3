//! Background work of the Queue service: removing expired messages, and the messages of queues that were deleted or
//! cleared.

use engine::collector::{Handled, Handler, steps, steps_in};
use engine::due::Due;
use engine::{BoxFuture, Engine, EngineError};
use service::space;

use crate::QueueService;
use crate::shelf::{self, DueWork, Shelf};

impl Handler for QueueService {
    fn spaces(&self) -> &[u8] {
        &[space::MESSAGE_TEXT, space::QUEUE_MARKS]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            match DueWork::of(due).ok_or_else(|| due.unknown())? {
                DueWork::Expiry { generation, queue } => {
                    let woken = due.at;
                    steps_in(queue.clone(), engine, due, move |rows, tick, changes| {
                        let mut shelf = Shelf::of(rows, queue.clone(), generation)?;
                        let more = shelf.sweep(woken, tick.now)?;
                        shelf.close(changes);
                        Ok(more)
                    })
                    .await?;
                }
                DueWork::Purge { generation } => {
                    steps(engine, due, move |rows, _, changes| shelf::purge(rows, generation, changes)).await?;
                }
            }
            Ok(Handled::Done)
        })
    }
}
