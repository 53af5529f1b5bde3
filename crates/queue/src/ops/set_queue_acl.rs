//! Set Queue ACL: replace the stored policies.

use service::StoredPolicy;
use wire::http::{Body, Reply, collect};
use wire::xml::SignedIdentifiers;

use super::Call;
use super::set_queue_metadata::write;
use crate::error::QueueError;
use crate::{Failure, request};

/// Five policies fit many times over.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let name = request::queue(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = StoredPolicy::all_of(&SignedIdentifiers::parse(&document).map_err(QueueError::from)?);
    write(call, name, move |queue| queue.policies = policies.clone()).await
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, refusal};
    use service::RequestError;

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
