//! Set Share ACL: replace the stored access policies of a share.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, StoredPolicy, reply};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::SignedIdentifiers;

use super::Call;
use super::set_share_metadata::WriteShare;
use crate::Failure;
use crate::error::FileError;
use crate::model::{Halt, Share};

/// Much more than five policies need.
const BODY_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetShareAcl {
    pub write: WriteShare,
    pub policies: Vec<StoredPolicy>,
}

impl Operation for SetShareAcl {
    type Outcome = Share;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        self.write.partition(account)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Share, Halt> {
        self.write.apply(rows, account, tick, changes, |share| {
            share.policies.clone_from(&self.policies);
            Ok(())
        })
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let write = WriteShare::parse(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = StoredPolicy::all_of(&SignedIdentifiers::parse(&document).map_err(FileError::from)?);
    let share = call.commit(&Arc::new(SetShareAcl { write, policies })).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, share.stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::FileError;
    use crate::testing::{Bench, header, refusal};
    use service::{HttpService, RequestError};

    const URL: &str = "share?restype=share&comp=acl";
    const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
        <Start>2026-01-01</Start><Expiry>2026-12-31T00:00:00Z</Expiry><Permission>rcwdl</Permission></AccessPolicy>\
        </SignedIdentifier></SignedIdentifiers>";

    #[tokio::test]
    async fn what_is_set_is_told_and_replaced_whole() {
        let bench = Bench::with_share().await;
        let before = bench.call("GET", URL, &[], b"").await.unwrap();
        assert!(bench.text("GET", URL).await.ends_with("<SignedIdentifiers />"));
        let set = bench.call("PUT", URL, &[], POLICIES.as_bytes()).await.unwrap();
        assert_eq!(set.status, 200);
        assert_ne!(header(&set, "etag"), header(&before, "etag"));
        assert!(bench.text("GET", URL).await.ends_with(POLICIES));
        assert_eq!(bench.service.policies(1, "share").await.unwrap()[0].permission.as_deref(), Some("rcwdl"));
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert!(bench.text("GET", URL).await.ends_with("<SignedIdentifiers />"));
        for share in ["share", "gone", "NO"] {
            assert_eq!(bench.service.policies(1, share).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn a_bad_document_changes_nothing_and_comes_before_a_missing_share() {
        let bench = Bench::with_share().await;
        bench.call("PUT", URL, &[], POLICIES.as_bytes()).await.unwrap();
        let six = format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier/>".repeat(6));
        for document in ["<a/>", &six] {
            for url in [URL, "other?restype=share&comp=acl"] {
                let refused = bench.call("PUT", url, &[], document.as_bytes()).await;
                assert_eq!(refusal(refused), RequestError::InvalidXmlDocument.into());
            }
        }
        assert!(bench.text("GET", URL).await.ends_with(POLICIES));
        for method in ["GET", "PUT"] {
            let refused = bench.call(method, "other?restype=share&comp=acl", &[], b"").await;
            assert_eq!(refusal(refused), FileError::ShareNotFound);
        }
    }
}
