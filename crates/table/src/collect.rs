//! Background work of the Table service: removing the entities of deleted tables.

use engine::collector::{Handled, Handler, delete_some, steps};
use engine::due::Due;
use engine::{BoxFuture, Engine, EngineError};
use service::space;

use crate::TableService;
use crate::key::entities;

/// How many rows one decision removes.
const ROWS_PER_STEP: usize = 500;

impl Handler for TableService {
    fn spaces(&self) -> &[u8] {
        &[space::TABLE]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            let generation = due.owner_id().ok_or_else(|| due.unknown())?;
            let all = entities(generation);
            steps(engine, due, move |rows, _, changes| {
                delete_some(rows, &all, &all.after_all(), ROWS_PER_STEP, changes, |_, _, _| {})
            })
            .await?;
            Ok(Handled::Done)
        })
    }
}
