//! The Queue service.
//!
//! [`Op::named_by`] says which operation a request names, [`QueueService::run_for`] runs it. Each operation has its own
//! file under `ops`: `parse` turns the request into values that cannot be wrong, `model.rs` says what becomes of a message,
//! `shelf.rs` which rows are looked at and changed for it, and `run` takes that to the engine and writes the answer.
//!
//! What always holds:
//!
//! - A queue is one partition: its decisions are judged one after another, so no message is given to two at a time.
//! - Every decision on a message reads the row of its queue in the same step, so nothing can be put into a queue that is
//!   being deleted.
//! - What it costs to put, take, change or delete a message depends neither on how many there are nor on how many there
//!   were.
//! - What clients see is computed from the time of the decision. Nothing waits for the sweeper.

mod check;
mod collect;
#[cfg(test)]
mod crashes;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod model;
mod op;
mod ops;
mod reply;
mod request;
#[cfg(test)]
mod round_trips;
mod route;
mod shelf;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use engine::{Engine, EngineError};
use service::properties::{KnownRules, Rules};
use service::{Asker, StoredPolicy, unrefused};
use wire::http::{Body, Head, Reply};
use wire::names::QueueName;

pub use check::check;
pub use error::QueueError;
pub use op::Op;

use ops::get_queue_service_properties::PROPERTIES;

/// Why a request has no result.
pub type Failure = service::Failure<QueueError>;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct QueueService {
    engine: Arc<dyn Engine>,
    rules: Arc<KnownRules>,
}

impl QueueService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> QueueService {
        QueueService { engine, rules: Arc::default() }
    }

    /// Runs an operation for the owner of the account.
    pub async fn run(&self, op: Op, head: &Head, account: u64, body: &mut dyn Body) -> Result<Reply, Failure> {
        self.run_for(Asker::OWNER, op, head, account, body).await
    }

    /// Runs an operation for a caller who may.
    pub async fn run_for(
        &self,
        asker: Asker<'_>,
        op: Op,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> Result<Reply, Failure> {
        ops::run(op, ops::Call { engine: &*self.engine, account, head, asker }, body).await
    }

    /// The rules for pages of other sites that an account has, if it has any.
    pub async fn cors(&self, account: u64) -> Result<Option<Rules>, EngineError> {
        self.rules.of(&PROPERTIES, &*self.engine, account).await
    }

    /// The stored policies of a queue. One that is not there has none.
    pub async fn policies(&self, account: u64, queue: &str) -> Result<Vec<StoredPolicy>, EngineError> {
        let Ok(name) = QueueName::parse(queue) else { return Ok(Vec::new()) };
        let found = engine::read(&*self.engine, |rows, _| Ok(model::find_queue(rows, account, &name)?)).await;
        Ok(unrefused(found)?.map_or_else(Vec::new, |queue| queue.policies))
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Failure {
        Failure::Refused(error)
    }
}
