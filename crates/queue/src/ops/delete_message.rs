//! Delete Message: remove a message that was given out, by its pop receipt.

use std::sync::Arc;

use concurrency::{MessageId, PopReceipt};
use engine::{Changes, Key, Rows, Tick};
use service::Operation;
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Message, queue_key, refuse};
use crate::shelf::Shelf;
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteMessage {
    pub queue: QueueName,
    pub message: MessageId,
    pub receipt: PopReceipt,
}

fn parse(head: &Head) -> Result<DeleteMessage, QueueError> {
    let queue = request::queue(head)?;
    let receipt = request::pop_receipt(head)?;
    Ok(DeleteMessage { queue, receipt, message: request::message_id(head)? })
}

impl DeleteMessage {
    fn decide(&self, found: Option<Message>) -> Result<Message, QueueError> {
        self.receipt.check(self.message, found.as_ref().map(Message::receipt).as_ref())?;
        found.ok_or(QueueError::MessageNotFound)
    }
}

impl Operation for DeleteMessage {
    type Outcome = ();
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let mut shelf = Shelf::open_for(rows, account, &self.queue, &self.receipt)?;
        let found = self.decide(shelf.find(&self.receipt, tick.now)?).map_err(refuse)?;
        shelf.remove(&found);
        shelf.close(changes);
        changes.frees_space = true;
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    call.commit(&Arc::new(parse(call.head)?)).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, Put, refusal};
    use service::RequestError;

    #[tokio::test]
    async fn a_deleted_message_is_gone_for_good() {
        let bench = Bench::with_queue().await;
        bench.put("a").await;
        let taken = bench.take(1, 5).await.remove(0);
        assert_eq!(bench.delete(&taken.put).await.unwrap().status, 204);
        bench.advance(60).await;
        assert_eq!(bench.take(32, 5).await.len(), 0);
        assert_eq!(refusal(bench.delete(&taken.put).await), QueueError::MessageNotFound);
    }

    #[tokio::test]
    async fn every_refusal_and_two_at_once() {
        let bench = Bench::with_queue().await;
        let (one, two) = (bench.put("one").await, bench.put("two").await);
        let put = |id: &str, receipt: &str| Put { id: id.into(), receipt: receipt.into() };
        let delete = async |put: Put| refusal(bench.delete(&put).await);
        assert_eq!(delete(put(&one.id, &two.receipt)).await, QueueError::PopReceiptMismatch);
        let missing = RequestError::MissingRequiredQueryParameter { name: "popreceipt" };
        assert_eq!(delete(put("nobody", "")).await, missing.into());
        let bad = QueueError::InvalidPopReceipt { value: "x".into() };
        assert_eq!(delete(put("nobody", "x")).await, bad);
        assert_eq!(delete(put("nobody", &one.receipt)).await, QueueError::MessageNotFound);
        let url = format!("other/messages/{}?popreceipt={}", one.id, one.receipt);
        assert_eq!(refusal(bench.call("DELETE", &url, &[], b"").await), QueueError::QueueNotFound);
        bench.take(1, 5).await;
        assert_eq!(delete(one).await, QueueError::MessageNotFound);
        assert_eq!(bench.count().await, 2);
    }
}
