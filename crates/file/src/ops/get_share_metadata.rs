//! Get Share Metadata: what a client has written on a share.

use std::sync::Arc;

use service::reply;
use wire::http::{Reply, StatusCode};

use super::Call;
use super::get_share_properties::ReadShare;
use crate::Failure;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (share, _) = call.read(&Arc::new(ReadShare::parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, share.stamp);
    reply::set_metadata(&mut answer.headers, &share.metadata);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn only_metadata_and_the_version() {
        let bench = Bench::new();
        let made = bench.call("PUT", "share?restype=share", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let told = bench.call("GET", "share?restype=share&comp=metadata", &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "etag")), (Some("1"), header(&made, "etag")));
        assert_eq!(header(&told, "x-ms-share-quota"), None);
        let gone = bench.call("GET", "gone?restype=share&comp=metadata", &[], b"").await;
        assert_eq!(refusal(gone), FileError::ShareNotFound);
        let snapshot = "share?restype=share&comp=metadata&sharesnapshot=2026-11-15T18:00:00.0000000Z";
        assert_eq!(refusal(bench.call("GET", snapshot, &[], b"").await), FileError::ShareNotFound);
    }
}
