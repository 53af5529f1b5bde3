//! Clear Messages: all messages of a queue are gone at once, hidden ones too; the rows behind them go later.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, codec};
use wire::http::{Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Queue, existing_queue, queue_key};
use crate::shelf::Shelf;
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClearMessages {
    pub queue: QueueName,
}

impl Operation for ClearMessages {
    type Outcome = ();
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let queue = existing_queue(rows, account, &self.queue)?;
        let key = queue_key(account, &self.queue);
        Shelf::of(rows, key.clone(), queue.generation)?.abandon(tick.now, changes);
        changes.put(key, codec::encode(&Queue { generation: tick.id(0), ..queue }));
        changes.frees_space = true;
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    call.commit(&Arc::new(ClearMessages { queue: request::queue(call.head)? })).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn everything_goes_but_the_queue() {
        let bench = Bench::new();
        bench.call("PUT", "que", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let empty = bench.rows();
        for n in 0..1_200 {
            bench.put(&n.to_string()).await;
        }
        bench.put_with("hidden", "visibilitytimeout=10&messagettl=-1").await;
        let taken = bench.take(1, 5).await.remove(0);
        assert_eq!(bench.call("DELETE", "que/messages", &[], b"").await.unwrap().status, 204);
        assert_eq!((bench.count().await, bench.peek(32).await.len()), (0, 0));
        assert_eq!(refusal(bench.delete(&taken.put).await), QueueError::MessageNotFound);
        bench.put("new").await;
        bench.advance(10).await;
        bench.sweep().await;
        assert_eq!((bench.count().await, bench.peek(32).await), (1, vec!["new".to_owned()]));
        let told = bench.call("GET", "que?comp=metadata", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-meta-a"), Some("1"));
        bench.call("DELETE", "que/messages", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.rows(), empty);
    }

    #[tokio::test]
    async fn a_queue_that_is_not_there() {
        let bench = Bench::new();
        assert_eq!(refusal(bench.call("DELETE", "que/messages", &[], b"").await), QueueError::QueueNotFound);
    }
}
