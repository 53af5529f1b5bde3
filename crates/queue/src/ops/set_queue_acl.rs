//! Set Queue ACL: replace the stored access policies of a queue.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, StoredPolicy, codec};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::names::QueueName;
use wire::xml::SignedIdentifiers;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Queue, existing_queue, queue_key};
use crate::{Failure, request};

/// Much more than five policies need.
const BODY_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetQueueAcl {
    pub queue: QueueName,
    pub policies: Vec<StoredPolicy>,
}

impl Operation for SetQueueAcl {
    type Outcome = ();
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, _: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let queue = existing_queue(rows, account, &self.queue)?;
        let queue = Queue { policies: self.policies.clone(), ..queue };
        changes.put(queue_key(account, &self.queue), codec::encode(&queue));
        Ok(())
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let queue = request::queue(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = StoredPolicy::all_of(&SignedIdentifiers::parse(&document).map_err(QueueError::from)?);
    call.commit(&Arc::new(SetQueueAcl { queue, policies })).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal};
    use service::{HttpService, RequestError};

    const URL: &str = "que?comp=acl";
    const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
        <Start>2026-01-01</Start><Expiry>2026-12-31T00:00:00Z</Expiry><Permission>raup</Permission></AccessPolicy>\
        </SignedIdentifier></SignedIdentifiers>";

    #[tokio::test]
    async fn what_is_set_is_told_and_replaced_whole() {
        let bench = Bench::with_queue().await;
        assert!(bench.text("GET", URL).await.ends_with("<SignedIdentifiers />"));
        assert_eq!(bench.call("PUT", URL, &[], POLICIES.as_bytes()).await.unwrap().status, 204);
        assert!(bench.text("GET", URL).await.ends_with(POLICIES));
        let policies = bench.service.policies(1, "que").await.unwrap();
        assert_eq!(policies[0].permission.as_deref(), Some("raup"));
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert!(bench.text("GET", URL).await.ends_with("<SignedIdentifiers />"));
        for queue in ["que", "gone", "NO"] {
            assert_eq!(bench.service.policies(1, queue).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn a_bad_document_changes_nothing_and_comes_before_a_missing_queue() {
        let bench = Bench::with_queue().await;
        bench.call("PUT", URL, &[], POLICIES.as_bytes()).await.unwrap();
        let six = format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier/>".repeat(6));
        for document in ["<a/>", &six] {
            for url in [URL, "other?comp=acl"] {
                let refused = bench.call("PUT", url, &[], document.as_bytes()).await;
                assert_eq!(refusal(refused), RequestError::InvalidXmlDocument.into());
            }
        }
        assert!(bench.text("GET", URL).await.ends_with(POLICIES));
        for method in ["GET", "PUT"] {
            assert_eq!(refusal(bench.call(method, "other?comp=acl", &[], b"").await), QueueError::QueueNotFound);
        }
    }
}
