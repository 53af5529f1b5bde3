//! Peek Messages: show visible messages, and leave them as they are.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::ReadOperation;
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Message, generation};
use crate::reply::Shown;
use crate::{Failure, reply, request, shelf};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeekMessages {
    pub queue: QueueName,
    /// At most this many messages.
    pub most: usize,
}

fn parse(head: &Head) -> Result<PeekMessages, QueueError> {
    Ok(PeekMessages { queue: request::queue(head)?, most: request::number_of_messages(head)? })
}

impl ReadOperation for PeekMessages {
    /// The messages with their texts.
    type Outcome = Vec<(Message, String)>;
    type Refusal = QueueError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Vec<(Message, String)>, Halt> {
        let generation = generation(rows, account, &self.queue)?;
        Ok(shelf::peek(rows, generation, self.most, now)?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let seen = call.read(&Arc::new(parse(call.head)?)).await?;
    let messages = seen.iter().map(|(message, text)| (message, Shown::Peeked(text)));
    Ok(reply::xml(StatusCode::OK, reply::messages(messages)))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn nothing_changes_and_no_receipt_is_shown() {
        let bench = Bench::with_queue().await;
        bench.put("a<&>").await;
        bench.put("b").await;
        bench.put_with("hidden", "visibilitytimeout=10").await;
        for _ in 0..2 {
            let shown = bench.text("GET", "que/messages?peekonly=true&numofmessages=32").await;
            assert_eq!(shown.matches("<DequeueCount>0</DequeueCount>").count(), 2, "{shown}");
            assert!(shown.contains("<MessageText>a&lt;&amp;&gt;</MessageText>"), "{shown}");
            assert!(!shown.contains("PopReceipt") && !shown.contains("TimeNextVisible"), "{shown}");
        }
        assert_eq!(bench.peek(1).await, ["a<&>"]);
        bench.take(2, 5).await;
        assert_eq!(bench.peek(32).await.len(), 0);
        bench.advance(5).await;
        let shown = bench.text("GET", "que/messages?peekonly=true").await;
        assert!(shown.contains("<DequeueCount>1</DequeueCount>"), "{shown}");
    }

    #[tokio::test]
    async fn a_queue_that_is_not_there() {
        let bench = Bench::new();
        let refused = bench.call("GET", "que/messages?peekonly=true", &[], b"").await;
        assert_eq!(refusal(refused), QueueError::QueueNotFound);
        let refused = bench.call("GET", "que/messages?peekonly=true&numofmessages=x", &[], b"").await;
        assert_eq!(refusal(refused), QueueError::query("numofmessages", "x"));
    }
}
