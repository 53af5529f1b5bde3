//! Get Container Metadata: the metadata alone; older than Get Container Properties, which tells it too.

use wire::http::{Reply, StatusCode};

use super::Call;
use super::get_container_properties::ReadContainer;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (container, _) = ReadContainer::parse(call.head)?.run(call).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, container.stamp);
    reply::set_metadata(&mut answer.headers, &container.metadata);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header};

    #[tokio::test]
    async fn only_the_metadata() {
        let bench = Bench::new().await;
        bench.call("PUT", "cont?restype=container", &[("x-ms-meta-a", "b")], b"").await.unwrap();
        let told = bench.call("GET", "cont?restype=container&comp=metadata", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-meta-a"), Some("b"));
        assert!(header(&told, "etag").is_some());
        assert_eq!(header(&told, "x-ms-lease-state"), None);
    }
}
