//! Get Queue Service Stats: how far the secondary lags behind. Here the secondary is the primary itself, so it never
//! does.

use wire::http::Reply;

use super::Call;
use crate::Failure;
use crate::error::QueueError;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    Ok(service::stats(call.engine, call.head).map_err(QueueError::from)?)
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal, request, text};
    use wire::http::FixedBody;

    #[tokio::test]
    async fn only_the_secondary_tells() {
        let bench = Bench::new();
        let url = "?restype=service&comp=stats";
        assert_eq!(refusal(bench.call("GET", url, &[], b"").await), QueueError::query("comp", "stats"));
        let mut head = request("GET", url, &[]);
        head.secondary = true;
        let told = text(bench.send(head, &mut FixedBody::new("")).await.unwrap()).await;
        assert!(told.contains("<Status>live</Status><LastSyncTime>"));
    }
}
