//! Delete Queue: the queue and its messages are gone at once; the rows behind them go later.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::Operation;
use wire::http::{Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, queue_key};
use crate::shelf::Shelf;
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteQueue {
    pub queue: QueueName,
}

impl Operation for DeleteQueue {
    type Outcome = ();
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        Shelf::open(rows, account, &self.queue)?.abandon(tick.now, changes);
        changes.delete(queue_key(account, &self.queue));
        changes.frees_space = true;
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    call.commit(&Arc::new(DeleteQueue { queue: request::queue(call.head)? })).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn the_name_is_free_at_once_and_the_old_messages_are_not_seen() {
        let bench = Bench::with_queue().await;
        let old = bench.put("old").await;
        assert_eq!(bench.call("DELETE", "que", &[], b"").await.unwrap().status, 204);
        assert_eq!(refusal(bench.call("DELETE", "que", &[], b"").await), QueueError::QueueNotFound);
        assert_eq!(refusal(bench.call("GET", "que/messages", &[], b"").await), QueueError::QueueNotFound);
        bench.call("PUT", "que", &[], b"").await.unwrap();
        assert_eq!(bench.peek(32).await.len(), 0);
        assert_eq!(refusal(bench.delete(&old).await), QueueError::MessageNotFound);
        bench.put("new").await;
        bench.sweep().await;
        assert_eq!(bench.peek(32).await, ["new"]);
    }
}
