//! Set Container ACL: replace the stored policies and the public access together.

use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::SignedIdentifiers;

use super::Call;
use super::set_container_metadata::WriteContainer;
use crate::error::BlobError;
use crate::model::StoredPolicy;
use crate::{Failure, reply, request};

/// Five policies fit many times over.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let op = WriteContainer::parse(call.head)?;
    let public = request::public_access(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = SignedIdentifiers::parse(&document).map_err(BlobError::from)?;
    let policies = StoredPolicy::all_of(&policies);
    let change = move |container: &mut crate::model::Container| {
        container.public = public;
        container.policies = policies.clone();
    };
    let stamp = op.run(call, change).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, header, refusal};
    use crate::{BlobError, PublicAccess};
    use service::RequestError;

    const URL: &str = "cont?restype=container&comp=acl";
    const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
        <Start>2026-01-01</Start><Expiry>2026-12-31T00:00:00Z</Expiry><Permission>rl</Permission></AccessPolicy>\
        </SignedIdentifier></SignedIdentifiers>";

    #[tokio::test]
    async fn what_is_set_is_told_and_replaced_whole() {
        let bench = Bench::with_container().await;
        let access = [("x-ms-blob-public-access", "container")];
        assert_eq!(bench.call("PUT", URL, &access, POLICIES.as_bytes()).await.unwrap().status, 200);
        assert!(bench.text("GET", URL).await.ends_with(POLICIES));
        let told = bench.call("HEAD", URL, &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-blob-public-access"), Some("container"));
        let access = bench.service.access(1, "cont").await.unwrap();
        assert_eq!(access.public, PublicAccess::Container);
        assert_eq!(access.policies[0].permission.as_deref(), Some("rl"));

        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert!(bench.text("GET", URL).await.ends_with("<SignedIdentifiers />"));
        assert_eq!(bench.service.access(1, "cont").await.unwrap(), Default::default());
        assert_eq!(bench.service.access(1, "gone").await.unwrap(), Default::default());
        assert_eq!(bench.service.access(1, "NO").await.unwrap(), Default::default());
    }

    #[tokio::test]
    async fn bad_documents_change_nothing() {
        let bench = Bench::with_container().await;
        let before = bench.figures();
        assert_eq!(
            refusal(bench.call("PUT", URL, &[], b"<a/>").await),
            BlobError::Request(RequestError::InvalidXmlDocument)
        );
        let six = format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier/>".repeat(6));
        assert_eq!(
            refusal(bench.call("PUT", URL, &[], six.as_bytes()).await),
            BlobError::Request(RequestError::InvalidXmlDocument)
        );
        let long = format!("<SignedIdentifiers>{}</SignedIdentifiers>", " ".repeat(100_000));
        assert!(bench.call("PUT", URL, &[], long.as_bytes()).await.is_err());
        assert_eq!(bench.figures(), before);
    }
}
