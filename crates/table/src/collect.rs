//! What is done later: the rows of deleted tables.

use engine::collector::{Handled, Handler, delete_some, steps};
use engine::due::{Due, Kind};
use engine::{BoxFuture, Engine, EngineError};

use crate::TableService;
use crate::key::entities;

/// Of one decision.
const ROWS_PER_STEP: usize = 500;

impl Handler for TableService {
    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            // Another kind is not ours, and an owner that is no generation was written by somebody who is not us.
            let (Kind::TablePurge, Some(generation)) = (due.kind, due.owner_id()) else { return Ok(Handled::NotMine) };
            let all = entities(generation);
            steps(engine, due, move |rows, _, changes| {
                delete_some(rows, &all, &all.after_all(), ROWS_PER_STEP, changes, |_, _, _| {})
            })
            .await?;
            Ok(Handled::Done)
        })
    }
}
