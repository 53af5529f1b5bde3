//! Get Container Properties: what a container is, without what is in it.

use concurrency::{LeaseId, Timestamp};
use engine::read;
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::encryption::ACCOUNT_SCOPE;
use crate::error::BlobError;
use crate::model::{self, Container, refuse};
use crate::{Failure, reply, request};

/// A read of a container that may name a lease; Get Container Metadata and Get Container ACL are the same kind.
pub struct ReadContainer {
    name: ContainerName,
    lease: Option<LeaseId>,
}

impl ReadContainer {
    pub fn parse(head: &Head) -> Result<ReadContainer, BlobError> {
        Ok(ReadContainer { name: request::container(head)?, lease: request::lease_id(head)? })
    }

    fn decide(&self, found: Option<Container>, now: Timestamp) -> Result<Container, BlobError> {
        let container = found.ok_or(BlobError::ContainerNotFound)?;
        container.lease.check_read(self.lease, now).map_err(BlobError::lease_on_container)?;
        Ok(container)
    }

    /// The container, and the time at which it was looked at.
    pub async fn run(&self, call: Call<'_>) -> Result<(Container, Timestamp), Failure> {
        let found = read(call.engine, |rows, now| {
            let found = model::find_container(rows, call.account, &self.name)?;
            Ok((self.decide(found, now).map_err(refuse)?, now))
        });
        Ok(found.await?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (container, now) = ReadContainer::parse(call.head)?.run(call).await?;
    let mut answer = reply::reply(StatusCode::OK);
    let headers = &mut answer.headers;
    reply::set_version(headers, container.stamp);
    reply::set_metadata(headers, &container.metadata);
    reply::set_lease(headers, &container.lease, now);
    if let Some(level) = reply::public_access(container.public) {
        headers.insert(&reply::BLOB_PUBLIC_ACCESS, HeaderValue::from_static(level));
    }
    headers.insert(&reply::HAS_IMMUTABILITY_POLICY, reply::FALSE);
    headers.insert(&reply::HAS_LEGAL_HOLD, reply::FALSE);
    headers.insert(&reply::IMMUTABLE_STORAGE, reply::FALSE);
    headers.insert(&reply::DEFAULT_ENCRYPTION_SCOPE, reply::value(default_scope(&container).to_owned()));
    let denies = if container.denies_other_scopes { reply::TRUE } else { reply::FALSE };
    headers.insert(&reply::DENY_ENCRYPTION_SCOPE_OVERRIDE, denies);
    Ok(answer)
}

/// The scope of the container's blobs, which is the account's if none was chosen.
pub fn default_scope(container: &Container) -> &str {
    container.default_scope.as_deref().unwrap_or(ACCOUNT_SCOPE)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn what_was_set_is_told() {
        let bench = Bench::new().await;
        let headers = [("x-ms-meta-Colour", "blue"), ("x-ms-blob-public-access", "blob")];
        let made = bench.call("PUT", "cont?restype=container", &headers, b"").await.unwrap();
        let told = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(told.status, 200);
        assert_eq!(header(&told, "etag"), header(&made, "etag"));
        assert_eq!(header(&told, "x-ms-meta-colour"), Some("blue"));
        assert_eq!(header(&told, "x-ms-blob-public-access"), Some("blob"));
        assert_eq!(header(&told, "x-ms-lease-state"), Some("available"));
        assert_eq!(header(&told, "x-ms-lease-duration"), None);
    }

    #[tokio::test]
    async fn a_missing_container_comes_before_its_lease() {
        let bench = Bench::with_container().await;
        let lease = [("x-ms-lease-id", "00000000-0000-0000-0000-000000000001")];
        let refused = bench.call("GET", "gone?restype=container", &lease, b"").await;
        assert_eq!(refusal(refused), BlobError::ContainerNotFound);
        let refused = bench.call("GET", "cont?restype=container", &lease, b"").await;
        assert_eq!(refusal(refused), BlobError::LeaseNotPresentWithContainerOperation);
    }
}
