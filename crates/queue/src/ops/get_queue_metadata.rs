//! Get Queue Metadata: the metadata of a queue, and how many messages it has.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::{Pairs, ReadOperation};
use wire::http::{Reply, StatusCode};
use wire::metadata;
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, existing_queue};
use crate::{Failure, request, shelf};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueueMetadata {
    pub queue: QueueName,
}

/// What Get Queue Metadata answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueMetadata {
    pub metadata: Pairs,
    /// Messages that have not expired, hidden ones too.
    pub messages: u64,
}

impl ReadOperation for GetQueueMetadata {
    type Outcome = QueueMetadata;
    type Refusal = QueueError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<QueueMetadata, Halt> {
        let queue = existing_queue(rows, account, &self.queue)?;
        let messages = shelf::count(rows, queue.generation, now)?;
        Ok(QueueMetadata { metadata: queue.metadata, messages })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = call.read(&Arc::new(GetQueueMetadata { queue: request::queue(call.head)? })).await?;
    let mut answer = Reply::new(StatusCode::OK).with("x-ms-approximate-messages-count", found.messages.to_string());
    metadata::set(&mut answer.headers, &found.metadata);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn messages_count_whether_they_can_be_seen_or_not() {
        let bench = Bench::with_queue().await;
        assert_eq!(bench.count().await, 0);
        bench.put("seen").await;
        bench.put_with("hidden", "visibilitytimeout=100").await;
        bench.put_with("short", "messagettl=10").await;
        bench.put_with("endless", "messagettl=-1").await;
        assert_eq!(bench.count().await, 4);
        let taken = bench.take(1, 5).await;
        assert_eq!(bench.count().await, 4);
        bench.delete(&taken[0].put).await.unwrap();
        assert_eq!(bench.count().await, 3);
        bench.advance(10).await;
        assert_eq!(bench.count().await, 2, "one has expired, though nobody has swept");
        bench.sweep().await;
        assert_eq!(bench.count().await, 2);
        bench.advance(7 * 24 * 3_600).await;
        assert_eq!(bench.count().await, 1);
    }

    #[tokio::test]
    async fn metadata_is_told() {
        let bench = Bench::new();
        bench.call("PUT", "que", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        for method in ["GET", "HEAD"] {
            let told = bench.call(method, "que?comp=metadata", &[], b"").await.unwrap();
            assert_eq!(told.status, 200);
            assert_eq!(header(&told, "x-ms-meta-a"), Some("1"));
            assert_eq!(header(&told, "x-ms-approximate-messages-count"), Some("0"));
        }
        let missing = bench.call("GET", "other?comp=metadata", &[], b"").await;
        assert_eq!(refusal(missing), QueueError::QueueNotFound);
    }
}
