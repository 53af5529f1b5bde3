//! Get Container Properties: what a container is, without what is in it.

use concurrency::{LeaseId, Timestamp};
use engine::{Rows, read};
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Container, Halt, refuse};
use crate::rules::encryption::ACCOUNT_SCOPE;
use crate::rules::immutability::Standing;
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

    fn look(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Container, Halt> {
        let found = model::find_container(rows, account, &self.name)?;
        self.decide(found, now).map_err(refuse)
    }

    /// The container, and the time at which it was looked at.
    pub async fn run(self, call: Call<'_>) -> Result<(Container, Timestamp), Failure> {
        let account = call.account;
        Ok(read(call.engine, move |rows, now| Ok((self.look(rows, account, now)?, now))).await?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = ReadContainer::parse(call.head)?;
    let account = call.account;
    let (container, standing, now) = read(call.engine, move |rows, now| {
        let container = op.look(rows, account, now)?;
        let standing = Standing::of(rows, container.generation, now)?;
        Ok((container, standing, now))
    })
    .await?;
    let mut answer = reply::reply(StatusCode::OK);
    let headers = &mut answer.headers;
    reply::set_version(headers, container.stamp);
    reply::set_metadata(headers, &container.metadata);
    reply::set_lease(headers, &container.lease, now);
    if let Some(level) = reply::public_access(container.public) {
        headers.insert(&reply::BLOB_PUBLIC_ACCESS, HeaderValue::from_static(level));
    }
    headers.insert(&reply::HAS_IMMUTABILITY_POLICY, reply::flag(standing.policy));
    headers.insert(&reply::HAS_LEGAL_HOLD, reply::flag(standing.legal_hold));
    headers.insert(&reply::IMMUTABLE_STORAGE, reply::flag(standing.is_any()));
    headers.insert(&reply::DEFAULT_ENCRYPTION_SCOPE, reply::value(default_scope(&container).to_owned()));
    headers.insert(&reply::DENY_ENCRYPTION_SCOPE_OVERRIDE, reply::flag(container.denies_other_scopes));
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
