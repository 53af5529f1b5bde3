//! Update Message: hide a message that was given out for longer, show it at once, or change its text.

use std::sync::Arc;

use concurrency::{MessageId, PopReceipt};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, RequestError};
use wire::dates;
use wire::http::{Body, Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Message, queue_key, refuse};
use crate::request::VISIBILITY_TIMEOUT;
use crate::shelf::Shelf;
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpdateMessage {
    pub queue: QueueName,
    pub message: MessageId,
    pub receipt: PopReceipt,
    /// The new visibility timeout.
    pub invisible_secs: u64,
    /// `None`: the text stays.
    pub text: Option<String>,
}

async fn parse(head: &Head, body: &mut dyn Body) -> Result<UpdateMessage, Failure> {
    let queue = request::queue(head)?;
    let receipt = request::pop_receipt(head)?;
    let missing = QueueError::from(RequestError::MissingRequiredQueryParameter { name: VISIBILITY_TIMEOUT });
    let invisible_secs = request::invisible_secs(head)?.ok_or(missing)?;
    let message = request::message_id(head)?;
    Ok(UpdateMessage { queue, message, receipt, invisible_secs, text: request::text(head, body).await? })
}

impl UpdateMessage {
    fn decide(&self, found: Option<&Message>, tick: Tick) -> Result<Message, QueueError> {
        self.receipt.check(self.message, found.map(Message::receipt).as_ref())?;
        found.ok_or(QueueError::MessageNotFound)?.updated(self.invisible_secs, tick)
    }
}

impl Operation for UpdateMessage {
    type Outcome = Message;
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Message, Halt> {
        let mut shelf = Shelf::open_for(rows, account, &self.queue, &self.receipt)?;
        let found = shelf.find(&self.receipt, tick.now)?;
        let updated = self.decide(found.as_ref(), tick).map_err(refuse)?;
        if let Some(found) = &found {
            shelf.replace(found, &updated, self.text.as_deref());
        }
        shelf.close(changes);
        Ok(updated)
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let updated = call.commit(&Arc::new(parse(call.head, body).await?)).await?;
    let answer = Reply::new(StatusCode::NO_CONTENT)
        .with("x-ms-popreceipt", reply::receipt(updated.receipt()))
        .with("x-ms-time-next-visible", dates::http_date(updated.next_visible).as_str());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, NOW, body, header, message, refusal, tick};

    fn ask(receipt: PopReceipt, invisible_secs: u64) -> UpdateMessage {
        let queue = QueueName::parse("que").unwrap();
        UpdateMessage { queue, message: message().id, receipt, invisible_secs, text: None }
    }

    #[test]
    fn only_the_last_receipt_will_do_and_it_comes_before_the_time() {
        let found = message();
        let receipt = found.receipt();
        let updated = ask(receipt, 7).decide(Some(&found), tick()).unwrap();
        assert_eq!(updated.next_visible, NOW.plus_seconds(7));
        let stale = PopReceipt { secret: receipt.secret ^ 1, ..receipt };
        let other = PopReceipt { message: MessageId([9; 16]), ..receipt };
        // Two faults: 61 seconds are longer than the message lives.
        for secs in [7, 61] {
            assert_eq!(ask(receipt, secs).decide(None, tick()), Err(QueueError::MessageNotFound));
            assert_eq!(ask(stale, secs).decide(Some(&found), tick()), Err(QueueError::MessageNotFound));
            assert_eq!(ask(other, secs).decide(Some(&found), tick()), Err(QueueError::PopReceiptMismatch));
            assert_eq!(ask(other, secs).decide(None, tick()), Err(QueueError::PopReceiptMismatch));
        }
        assert!(ask(receipt, 61).decide(Some(&found), tick()).is_err());
    }

    #[tokio::test]
    async fn the_text_changes_only_if_there_is_one() {
        let bench = Bench::with_queue().await;
        bench.put("old").await;
        let taken = bench.take(1, 30).await.remove(0);
        let hidden = bench.update(&taken.put, 60, None).await.unwrap();
        assert_ne!(hidden.receipt, taken.put.receipt);
        assert_eq!(refusal(bench.update(&taken.put, 0, None).await), QueueError::MessageNotFound);
        let shown = bench.update(&hidden, 0, Some("new")).await.unwrap();
        assert_eq!(bench.peek(32).await, ["new"]);
        let shown = bench.update(&shown, 0, Some("")).await.unwrap();
        assert_eq!(bench.peek(32).await, [""]);
        let taken = bench.take(1, 30).await.remove(0);
        assert_eq!(taken.dequeued, 2, "an update does not count");
        assert_eq!(refusal(bench.update(&shown, 0, None).await), QueueError::MessageNotFound);
        assert_eq!(bench.count().await, 1);
    }

    #[tokio::test]
    async fn the_answer_tells_when_it_can_be_seen() {
        let bench = Bench::with_queue().await;
        let put = bench.put("a").await;
        let url = format!("que/messages/{}?popreceipt={}&visibilitytimeout=30", put.id, put.receipt);
        let answer = bench.call("PUT", &url, &[], b"").await.unwrap();
        assert_eq!(answer.status, 204);
        assert!(header(&answer, "x-ms-popreceipt").is_some());
        assert!(header(&answer, "x-ms-time-next-visible").unwrap().ends_with(" GMT"));
        assert_eq!(bench.take(1, 5).await.len(), 0);
    }

    #[tokio::test]
    async fn bad_requests_change_nothing() {
        let bench = Bench::with_queue().await;
        let (one, two) = (bench.put("one").await, bench.put("two").await);
        let update = async |url: &str, body: &[u8]| refusal(bench.call("PUT", url, &[], body).await);
        let url = |id: &str, rest: &str| format!("que/messages/{id}?{rest}");
        let good = format!("popreceipt={}", one.receipt);
        let missing = |name| QueueError::from(RequestError::MissingRequiredQueryParameter { name });
        assert_eq!(update(&url(&one.id, &good), b"").await, missing("visibilitytimeout"));
        assert_eq!(update(&url(&one.id, "visibilitytimeout=0"), b"").await, missing("popreceipt"));
        assert_eq!(update(&url(&one.id, ""), b"").await, missing("popreceipt"));
        let all = format!("{good}&visibilitytimeout=0");
        assert_eq!(update(&url("nobody", &all), b"").await, QueueError::MessageNotFound);
        assert_eq!(update(&url(&two.id, &all), b"").await, QueueError::PopReceiptMismatch);
        assert_eq!(update(&url(&one.id, &all), b"<x/>").await, RequestError::InvalidXmlDocument.into());
        assert_eq!(update(&url(&one.id, &all).replace("que/", "other/"), &body("x")).await, QueueError::QueueNotFound);
        assert_eq!(bench.peek(32).await, ["one", "two"]);
        bench.update(&one, 0, Some("changed")).await.unwrap();
    }
}
