//! Get Account Information: what kind of account this is. It can be asked of the service, a container or a blob.

use wire::http::{Reply, StatusCode};

use super::Call;
use crate::{Failure, reply};

pub async fn run(_: Call<'_>) -> Result<Reply, Failure> {
    // The secondary endpoint answers, so the account is one of those that have it.
    Ok(reply::reply(StatusCode::OK)
        .with("x-ms-sku-name", "Standard_RAGRS")
        .with("x-ms-account-kind", "StorageV2")
        .with("x-ms-is-hns-enabled", "false"))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header};

    #[tokio::test]
    async fn at_every_level() {
        let bench = Bench::new().await;
        for resource in ["", "cont", "cont/blob"] {
            let url = format!("{resource}?restype=account&comp=properties");
            let told = bench.call("GET", &url, &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-account-kind"), Some("StorageV2"), "{resource}");
        }
    }
}
