//! Delete Queue: the queue and its messages are gone at once; the rows behind them go later.

use engine::{Commit, commit};
use wire::http::{Reply, StatusCode};

use super::Call;
use crate::model::queue_key;
use crate::shelf::Shelf;
use crate::{Failure, request};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = request::queue(call.head)?;
    let key = queue_key(call.account, &name);
    let account = call.account;
    commit(call.engine, key.clone(), move |rows, tick| {
        let shelf = Shelf::open(rows, account, &name)?;
        let mut changes = shelf.abandon(tick.now).freeing_space();
        changes.delete(key.clone());
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn the_name_is_free_at_once_and_the_old_messages_are_not_seen() {
        let bench = Bench::with_queue().await;
        let old = bench.put("old").await;
        assert_eq!(bench.call("DELETE", "que", &[], b"").await.unwrap().status, 204);
        assert_eq!(refusal(bench.call("DELETE", "que", &[], b"").await), QueueError::QueueNotFound);
        assert_eq!(refusal(bench.call("GET", "que/messages", &[], b"").await), QueueError::QueueNotFound);
        bench.call("PUT", "que", &[], b"").await.unwrap();
        assert_eq!(bench.peek(32).await.len(), 0);
        assert_eq!(refusal(bench.delete(&old).await), QueueError::MessageNotFound);
        bench.put("new").await;
        bench.sweep().await;
        assert_eq!(bench.peek(32).await, ["new"]);
    }
}
