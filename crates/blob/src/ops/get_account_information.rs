//! Get Account Information: what kind of account this is. It can be asked of the service, a container or a blob.

use auth::Kind;
use wire::http::{Reply, StatusCode};

use super::Call;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (sku, kind) = match call.asker.settings.kind {
        // The secondary endpoint answers, so the account is one of those that have it.
        Kind::Standard => ("Standard_RAGRS", "StorageV2"),
        Kind::Premium => ("Premium_LRS", "BlockBlobStorage"),
    };
    Ok(reply::reply(StatusCode::OK)
        .with("x-ms-sku-name", sku)
        .with("x-ms-account-kind", kind)
        .with("x-ms-is-hns-enabled", "false"))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header};

    #[tokio::test]
    async fn at_every_level() {
        let mut bench = Bench::new().await;
        for resource in ["", "cont", "cont/blob"] {
            let url = format!("{resource}?restype=account&comp=properties");
            let told = bench.call("GET", &url, &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-account-kind"), Some("StorageV2"), "{resource}");
        }
        bench.settings.kind = auth::Kind::Premium;
        let told = bench.call("GET", "?restype=account&comp=properties", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-sku-name"), Some("Premium_LRS"));
    }
}
