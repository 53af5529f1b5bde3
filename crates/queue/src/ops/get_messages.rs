//! Get Messages: hand out visible messages, each to this caller alone until its visibility timeout ends.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::Operation;
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, queue_key};
use crate::reply::Shown;
use crate::shelf::{Shelf, TakenMessages};
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetMessages {
    pub queue: QueueName,
    /// At most this many messages.
    pub most: usize,
    /// The visibility timeout.
    pub invisible_secs: u64,
}

fn parse(head: &Head) -> Result<GetMessages, QueueError> {
    Ok(GetMessages {
        queue: request::queue(head)?,
        most: request::number_of_messages(head)?,
        invisible_secs: request::taken_secs(head)?,
    })
}

impl Operation for GetMessages {
    type Outcome = TakenMessages;
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<TakenMessages, Halt> {
        let mut shelf = Shelf::open(rows, account, &self.queue)?;
        let taken = shelf.take(self.most, self.invisible_secs, tick)?;
        shelf.close(changes);
        // A client that empties a queue calls this first, so it must work when the disk is full.
        changes.frees_space = true;
        Ok(taken)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let taken = loop {
        let taken = call.commit(&op).await?;
        // Expired messages were in the way of all others. They are removed now, so the next look gets further.
        if !taken.messages.is_empty() || !taken.unfinished {
            break taken;
        }
    };
    let messages = taken.messages.iter().map(|(message, text)| (message, Shown::Taken(text)));
    Ok(reply::xml(StatusCode::OK, reply::messages(messages)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn first_come_first_served_and_each_to_one_only() {
        let bench = Bench::with_queue().await;
        for n in 0..40 {
            bench.put(&n.to_string()).await;
        }
        let mut seen = Vec::new();
        for most in [1, 32, 5, 32] {
            let taken = bench.take(most, 30).await;
            seen.extend(taken.iter().map(|taken| taken.text.parse::<u32>().unwrap()));
            assert!(taken.iter().all(|taken| taken.dequeued == 1));
        }
        assert_eq!(seen, (0..40).collect::<Vec<_>>());
        let none = bench.text("GET", "que/messages").await;
        assert!(none.ends_with("<QueueMessagesList />"), "{none}");
    }

    #[tokio::test]
    async fn what_is_not_deleted_comes_back_with_its_count_raised() {
        let bench = Bench::with_queue().await;
        bench.put("a").await;
        for round in 1..=3 {
            let taken = bench.take(1, 10).await;
            assert_eq!((taken[0].text.as_str(), taken[0].dequeued), ("a", round));
            bench.advance(9).await;
            assert_eq!(bench.take(32, 10).await.len(), 0, "still hidden");
            bench.advance(1).await;
        }
    }

    #[tokio::test]
    async fn the_order_is_by_when_they_can_be_seen() {
        let bench = Bench::with_queue().await;
        bench.put_with("third", "visibilitytimeout=20").await;
        bench.put_with("second", "visibilitytimeout=10").await;
        bench.put("first").await;
        assert_eq!(bench.take(32, 30).await.len(), 1);
        bench.advance(20).await;
        let taken = bench.take(32, 30).await;
        assert_eq!(taken.iter().map(|taken| taken.text.as_str()).collect::<Vec<_>>(), ["second", "third"]);
        bench.advance(10).await;
        assert_eq!(bench.take(32, 30).await[0].text, "first");
    }

    #[tokio::test]
    async fn an_old_receipt_is_good_until_somebody_else_is_given_the_message() {
        let bench = Bench::with_queue().await;
        bench.put("a").await;
        let first = bench.take(1, 5).await.remove(0);
        bench.advance(60).await;
        let updated = bench.update(&first.put, 5, None).await.unwrap();
        bench.advance(60).await;
        let second = bench.take(1, 5).await.remove(0);
        assert_eq!(second.dequeued, 2);
        assert_eq!(refusal(bench.delete(&first.put).await), QueueError::MessageNotFound);
        assert_eq!(refusal(bench.delete(&updated).await), QueueError::MessageNotFound);
        bench.delete(&second.put).await.unwrap();
        assert_eq!(refusal(bench.delete(&second.put).await), QueueError::MessageNotFound);
    }

    #[tokio::test]
    async fn what_has_expired_is_gone_hidden_or_not() {
        let bench = Bench::with_queue().await;
        bench.put_with("seen", "messagettl=10").await;
        let hidden = bench.put_with("hidden", "messagettl=10&visibilitytimeout=9").await;
        bench.put_with("taken", "messagettl=10").await;
        bench.put("lives").await;
        let taken = bench.take(2, 100).await.remove(1);
        assert_eq!(taken.text, "taken");
        bench.advance(10).await;
        assert_eq!(bench.peek(32).await, ["lives"]);
        for message in [&hidden, &taken.put] {
            assert_eq!(refusal(bench.delete(message).await), QueueError::MessageNotFound);
            assert_eq!(refusal(bench.update(message, 0, None).await), QueueError::MessageNotFound);
        }
        assert_eq!(bench.take(32, 5).await.len(), 1);
        bench.advance(100).await;
        assert_eq!(bench.take(32, 5).await[0].text, "lives");
        assert_eq!(bench.count().await, 1);
    }

    /// More expired messages than one decision removes; the client does not notice.
    #[tokio::test]
    async fn many_expired_messages_are_not_in_the_way() {
        let bench = Bench::with_queue().await;
        for n in 0..350 {
            bench.put_with(&n.to_string(), "messagettl=10").await;
        }
        bench.put("lives").await;
        bench.advance(10).await;
        assert_eq!(bench.count().await, 1);
        let taken = bench.take(5, 5).await;
        assert_eq!(taken[0].text, "lives");
        assert_eq!(bench.count().await, 1);
        bench.delete(&taken[0].put).await.unwrap();
        bench.sweep().await;
        // Besides the queue and its marks, the due row of the message that would have lived for a week may be left.
        assert!(bench.rows() <= 3, "{} rows", bench.rows());
        bench.advance(8 * 24 * 3_600).await;
        bench.sweep().await;
        assert_eq!(bench.rows(), 2);
    }

    #[tokio::test]
    async fn of_two_faults_the_one_in_the_request_comes_first() {
        let bench = Bench::new();
        let refused = bench.call("GET", "other/messages?numofmessages=x", &[], b"").await;
        assert_eq!(refusal(refused), QueueError::query("numofmessages", "x"));
        assert_eq!(refusal(bench.call("GET", "other/messages", &[], b"").await), QueueError::QueueNotFound);
    }
}
