//! Peek Messages: show messages that can be seen, and leave them as they are.

use engine::read;
use wire::http::{Reply, StatusCode};

use super::Call;
use crate::model::generation;
use crate::reply::Shown;
use crate::{Failure, reply, request, shelf};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = request::queue(call.head)?;
    let most = request::number_of_messages(call.head)?;
    let seen = read(call.engine, |rows, now| {
        let generation = generation(rows, call.account, &name)?;
        Ok(shelf::peek(rows, generation, most, now)?)
    })
    .await?;
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
