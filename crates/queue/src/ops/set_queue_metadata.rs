//! Set Queue Metadata: replace all metadata of a queue. There are no conditions: the last write wins.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, Pairs, codec};
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Queue, existing_queue, queue_key};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetQueueMetadata {
    pub queue: QueueName,
    pub metadata: Pairs,
}

fn parse(head: &Head) -> Result<SetQueueMetadata, QueueError> {
    Ok(SetQueueMetadata { queue: request::queue(head)?, metadata: request::metadata(head)? })
}

impl Operation for SetQueueMetadata {
    type Outcome = ();
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, _: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let queue = existing_queue(rows, account, &self.queue)?;
        let queue = Queue { metadata: self.metadata.clone(), ..queue };
        changes.put(queue_key(account, &self.queue), codec::encode(&queue));
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    call.commit(&Arc::new(parse(call.head)?)).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, header, refusal};

    const URL: &str = "que?comp=metadata";

    #[tokio::test]
    async fn all_of_it_is_replaced_and_nothing_else() {
        let bench = Bench::with_queue().await;
        bench.put("kept").await;
        assert_eq!(bench.call("PUT", URL, &[("x-ms-meta-a", "1")], b"").await.unwrap().status, 204);
        bench.call("PUT", URL, &[("x-ms-meta-b", "2")], b"").await.unwrap();
        let told = bench.call("GET", URL, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("2")));
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert_eq!(header(&bench.call("GET", URL, &[], b"").await.unwrap(), "x-ms-meta-b"), None);
        assert_eq!(bench.peek(1).await, ["kept"]);
    }

    #[tokio::test]
    async fn a_bad_name_comes_before_a_missing_queue() {
        let bench = Bench::new();
        assert_eq!(refusal(bench.call("PUT", URL, &[], b"").await), QueueError::QueueNotFound);
        let refused = bench.call("PUT", URL, &[("x-ms-meta-1", "x")], b"").await;
        assert_eq!(refusal(refused), wire::metadata::MetadataError::InvalidMetadata.into());
    }
}
