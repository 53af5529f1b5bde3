//! Get Table Service Stats: how far the secondary lags behind. Here the secondary is the primary itself, so it never
//! does.

use wire::http::Reply;

use super::Call;
use crate::Failure;
use crate::error::TableError;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    Ok(service::stats(call.engine, call.head).map_err(TableError::from)?)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, refusal, request, text};
    use service::RequestError;

    #[tokio::test]
    async fn only_the_secondary_tells() {
        let bench = Bench::new();
        let url = "?restype=service&comp=stats";
        let refused = refusal(bench.call("GET", url, &[], b"").await);
        assert_eq!(refused, RequestError::query("comp", "stats").into());
        let mut head = request("GET", url, &[]);
        head.secondary = true;
        assert!(text(bench.send(head, b"").await.unwrap()).await.contains("<Status>live</Status><LastSyncTime>"));
    }
}
