//! Set Queue Metadata: replace all of it.

use engine::{Changes, Commit, commit};
use service::codec;
use wire::http::{Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Queue, find_queue, queue_key, refuse};
use crate::{Failure, request};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = request::queue(call.head)?;
    let metadata = request::metadata(call.head)?;
    write(call, name, move |queue| queue.metadata = metadata.clone()).await
}

/// Changes a queue's own row. There are no conditions: who writes last wins.
pub async fn write(
    call: Call<'_>,
    name: QueueName,
    change: impl Fn(&mut Queue) + Send + 'static,
) -> Result<Reply, Failure> {
    let key = queue_key(call.account, &name);
    let account = call.account;
    commit(call.engine, key.clone(), move |rows, _| {
        let found = find_queue(rows, account, &name)?;
        let mut queue = found.ok_or(refuse(QueueError::QueueNotFound))?;
        change(&mut queue);
        let mut changes = Changes::none();
        changes.put(key.clone(), codec::encode(&queue));
        Ok(Commit { changes, outcome: () })
    })
    .await?;
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
