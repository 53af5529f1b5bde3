//! Create Container: a new, empty container under a name that is free.

use std::sync::Arc;

use concurrency::{Lease, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, RequestError, codec};
use wire::http::{Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::encryption_headers;
use crate::error::BlobError;
use crate::model::{self, Container, Halt, Pairs, PublicAccess, container_key, refuse};
use crate::rules::encryption::ACCOUNT_SCOPE;
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateContainer {
    pub container: ContainerName,
    pub metadata: Pairs,
    pub public: PublicAccess,
    /// The encryption scope of blobs that name none.
    pub default_scope: Option<String>,
    /// No blob may name another scope.
    pub denies_other_scopes: bool,
}

impl CreateContainer {
    /// A container as it is if its creator says nothing but its name.
    #[must_use]
    pub fn named(container: ContainerName) -> CreateContainer {
        let (metadata, public) = (Pairs::new(), PublicAccess::None);
        CreateContainer { container, metadata, public, default_scope: None, denies_other_scopes: false }
    }
}

/// The scope of the container's blobs, and whether they may have another. The two headers belong together.
fn default_scope(call: &Call<'_>) -> Result<(Option<String>, bool), BlobError> {
    const SCOPE: &str = "x-ms-default-encryption-scope";
    const DENY: &str = "x-ms-deny-encryption-scope-override";
    let denies = match request::text(call.head, DENY)? {
        None => None,
        Some(value) if value.eq_ignore_ascii_case("true") => Some(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Some(false),
        Some(other) => return Err(BlobError::header(DENY, other)),
    };
    let missing = |name| BlobError::Request(RequestError::MissingRequiredHeader { name });
    match (encryption_headers::scope(call.head, call.asker.settings, SCOPE)?, denies) {
        (None, None) => Ok((None, false)),
        (Some(_), None) => Err(missing(DENY)),
        (None, Some(_)) => Err(missing(SCOPE)),
        (Some(scope), Some(denies)) => Ok((Some(scope.to_owned()).filter(|scope| scope != ACCOUNT_SCOPE), denies)),
    }
}

fn parse(call: &Call<'_>) -> Result<CreateContainer, BlobError> {
    let head = call.head;
    request::no_expiry(head)?;
    let (default_scope, denies_other_scopes) = default_scope(call)?;
    Ok(CreateContainer {
        default_scope,
        denies_other_scopes,
        container: request::container(head)?,
        metadata: request::metadata(head)?,
        public: request::public_access(head)?,
    })
}

impl Operation for CreateContainer {
    /// The stamp of the container, of which ETag and Last-Modified are made.
    type Outcome = Timestamp;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        container_key(account, &self.container)
    }

    /// A name is free as soon as its container is deleted: what that held belongs to another generation.
    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Timestamp, Halt> {
        if model::find_container(rows, account, &self.container)?.is_some() {
            return Err(refuse(BlobError::ContainerAlreadyExists));
        }
        let container = Container {
            generation: tick.id(0),
            stamp: tick.stamp,
            lease: Lease::Available,
            metadata: self.metadata.clone(),
            public: self.public,
            policies: Vec::new(),
            default_scope: self.default_scope.clone(),
            denies_other_scopes: self.denies_other_scopes,
        };
        changes.put(container_key(account, &self.container), codec::encode(&container));
        Ok(tick.stamp)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let stamp = call.commit(&Arc::new(parse(&call)?)).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, refusal};
    use service::RequestError;

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let bench = Bench::new().await;
        let made = bench.call("PUT", "cont?restype=container", &[("x-ms-meta-a", "b")], b"").await.unwrap();
        assert_eq!(made.status, 201);
        assert!(made.headers.contains_key("etag") && made.headers.contains_key("last-modified"));
        let again = bench.call("PUT", "cont?restype=container", &[], b"").await;
        assert_eq!(refusal(again), BlobError::ContainerAlreadyExists);
    }

    #[tokio::test]
    async fn faults_in_the_request_come_before_what_is_there() {
        let bench = Bench::with_container().await;
        let url = "cont?restype=container";
        let refused = bench.call("PUT", url, &[("x-ms-blob-public-access", "all")], b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-blob-public-access", "all"));
        let refused = bench.call("PUT", "a--b?restype=container", &[], b"").await;
        assert_eq!(refusal(refused), BlobError::Request(RequestError::InvalidResourceName));
        let refused = bench.call("PUT", "x?restype=container", &[], b"").await;
        assert_eq!(refusal(refused), BlobError::Request(RequestError::NameLength));
    }
}
