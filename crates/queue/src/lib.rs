//! The Queue service.
//!
//! [`Op::named_by`] says which operation a request names, [`HttpService::run_for`] runs it. Each operation has its own file
//! under `ops` and is a value, such as [`CreateQueue`], that any protocol can build: `parse` makes it from an HTTP request,
//! `apply` has the rules, and `run` takes it to the engine and writes the answer. `model.rs` says what becomes of a message,
//! `shelf.rs` which rows are looked at and changed for it.
//!
//! What always holds:
//!
//! - A queue is one partition: its decisions are made one after another, so no message is given to two clients at a
//!   time.
//! - Every decision on a message reads the row of its queue in the same step, so nothing can be put into a queue that is
//!   being deleted.
//! - The cost of putting, taking, changing or deleting a message depends neither on how many messages the queue holds
//!   nor on how many it has held.
//! - What clients see is computed from the time of the decision. No answer depends on the sweeper having run.

mod check;
mod collect;
#[cfg(test)]
mod crashes;
mod error;
#[cfg(any(test, feature = "testing"))]
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

use engine::{Engine, Rows, Unread};
use service::properties::Properties;
use service::{Call, HttpService, ServiceState, StoredPolicy};
use wire::http::{Body, Reply};
use wire::names::QueueName;

pub use check::check;
pub use error::QueueError;
pub use model::{Lifetime, Message};
pub use op::Op;
pub use ops::{
    ClearMessages, CreateQueue, DeleteMessage, DeleteQueue, GetMessages, GetQueueAcl, GetQueueMetadata, ListQueues,
    ListedQueue, PeekMessages, PutMessage, QueueCreated, QueueMetadata, QueuesPage, SetQueueAcl, SetQueueMetadata,
    UpdateMessage,
};
pub use shelf::TakenMessages;

use ops::get_queue_service_properties::PROPERTIES;

/// Why a request has no result.
pub type Failure = service::Failure<QueueError>;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct QueueService(ServiceState);

impl QueueService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> QueueService {
        QueueService(ServiceState::new(engine))
    }
}

impl HttpService for QueueService {
    type Op = Op;
    type Error = QueueError;

    fn state(&self) -> &ServiceState {
        &self.0
    }

    fn properties() -> &'static Properties {
        &PROPERTIES
    }

    async fn answer(&self, op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
        ops::run(op, call, body).await
    }

    fn find_policies(rows: &dyn Rows, account: u64, queue: &str) -> Result<Option<Vec<StoredPolicy>>, Unread> {
        let Ok(name) = QueueName::parse(queue) else { return Ok(None) };
        Ok(model::find_queue(rows, account, &name)?.map(|queue| queue.policies))
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Failure {
        Failure::Refused(error)
    }
}
