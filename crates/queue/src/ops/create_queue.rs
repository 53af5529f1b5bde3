//! Create Queue: a new, empty queue. If there is one with the same metadata already, the request succeeds and changes nothing.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, Pairs, codec};
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Queue, find_queue, queue_key, refuse};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateQueue {
    pub queue: QueueName,
    pub metadata: Pairs,
}

/// How Create Queue succeeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueCreated {
    New,
    /// There was a queue with the same metadata; nothing was changed.
    AlreadyThere,
}

fn parse(head: &Head) -> Result<CreateQueue, QueueError> {
    Ok(CreateQueue { queue: request::queue(head)?, metadata: request::metadata(head)? })
}

impl Operation for CreateQueue {
    type Outcome = QueueCreated;
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    /// A name is free as soon as its queue is deleted: the messages of the deleted queue belong to another generation.
    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<QueueCreated, Halt> {
        match find_queue(rows, account, &self.queue)? {
            None => {
                let metadata = self.metadata.clone();
                let queue = Queue { generation: tick.id(0), metadata, policies: Vec::new() };
                changes.put(queue_key(account, &self.queue), codec::encode(&queue));
                Ok(QueueCreated::New)
            }
            Some(queue) if same(&queue.metadata, &self.metadata) => Ok(QueueCreated::AlreadyThere),
            Some(_) => Err(refuse(QueueError::QueueAlreadyExists)),
        }
    }
}

/// Names of metadata have no case and no order; values have case.
fn same(one: &Pairs, other: &Pairs) -> bool {
    let holds = |(name, value): &(String, String)| {
        other.iter().any(|(known, held)| known.eq_ignore_ascii_case(name) && held == value)
    };
    one.len() == other.len() && one.iter().all(holds)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let status = match call.commit(&Arc::new(parse(call.head)?)).await? {
        QueueCreated::New => StatusCode::CREATED,
        QueueCreated::AlreadyThere => StatusCode::NO_CONTENT,
    };
    Ok(Reply::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, refusal};
    use service::RequestError;

    #[tokio::test]
    async fn the_same_again_is_no_fault() {
        let bench = Bench::new();
        let create = async |headers: &[(&str, &str)]| bench.call("PUT", "que", headers, b"").await;
        assert_eq!(create(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]).await.unwrap().status, 201);
        assert_eq!(create(&[("x-ms-meta-B", "2"), ("x-ms-meta-a", "1")]).await.unwrap().status, 204);
        let others: [&[(&str, &str)]; 4] = [
            &[],
            &[("x-ms-meta-a", "1")],
            &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "3")],
            &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2"), ("x-ms-meta-c", "3")],
        ];
        for other in others {
            assert_eq!(refusal(create(other).await), QueueError::QueueAlreadyExists);
        }
    }

    #[tokio::test]
    async fn what_is_in_the_queue_stays_when_it_is_created_again() {
        let bench = Bench::with_queue().await;
        bench.put("kept").await;
        assert_eq!(bench.call("PUT", "que", &[], b"").await.unwrap().status, 204);
        assert_eq!(bench.peek(32).await, ["kept"]);
    }

    #[tokio::test]
    async fn faults_in_the_request_come_before_what_is_there() {
        let bench = Bench::with_queue().await;
        for (url, error) in [
            ("q", RequestError::NameLength),
            ("a--b", RequestError::InvalidResourceName),
            ("Queue", RequestError::InvalidResourceName),
        ] {
            assert_eq!(refusal(bench.call("PUT", url, &[], b"").await), error.into(), "{url}");
        }
        let refused = bench.call("PUT", "que", &[("x-ms-meta-1", "x")], b"").await;
        assert_eq!(refusal(refused), wire::metadata::MetadataError::InvalidMetadata.into());
    }
}
