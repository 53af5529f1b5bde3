//! Create Queue: a new, empty queue. Who finds one with the same metadata has what he wants.

use engine::{Changes, Commit, Tick, commit};
use service::{Pairs, codec};
use wire::http::{Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Queue, find_queue, queue_key, refuse};
use crate::{Failure, request};

struct CreateQueue {
    name: QueueName,
    metadata: Pairs,
}

fn parse(head: &Head) -> Result<CreateQueue, QueueError> {
    Ok(CreateQueue { name: request::queue(head)?, metadata: request::metadata(head)? })
}

impl CreateQueue {
    /// `None`: there is one already, and nothing to do. A name is free as soon as its queue is deleted: what that held
    /// belongs to another generation.
    fn decide(&self, found: Option<&Queue>, tick: Tick) -> Result<Option<Queue>, QueueError> {
        match found {
            None => Ok(Some(Queue { generation: tick.id(0), metadata: self.metadata.clone(), policies: Vec::new() })),
            Some(queue) if same(&queue.metadata, &self.metadata) => Ok(None),
            Some(_) => Err(QueueError::QueueAlreadyExists),
        }
    }
}

/// Names have no case and no order; values have both.
fn same(one: &Pairs, other: &Pairs) -> bool {
    let holds = |(name, value): &(String, String)| {
        other.iter().any(|(known, held)| known.eq_ignore_ascii_case(name) && held == value)
    };
    one.len() == other.len() && one.iter().all(holds)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let key = queue_key(call.account, &op.name);
    let account = call.account;
    let status = commit(call.engine, key.clone(), move |rows, tick| {
        let found = find_queue(rows, account, &op.name)?;
        let mut changes = Changes::none();
        let outcome = match op.decide(found.as_ref(), tick).map_err(refuse)? {
            None => StatusCode::NO_CONTENT,
            Some(queue) => {
                changes.put(key.clone(), codec::encode(&queue));
                StatusCode::CREATED
            }
        };
        Ok(Commit { changes, outcome })
    });
    Ok(Reply::new(status.await?))
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
