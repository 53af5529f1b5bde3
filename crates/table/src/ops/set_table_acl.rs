//! Set Table ACL: replace the stored policies of a table.

use engine::{Changes, Commit, commit};
use service::{StoredPolicy, codec};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::SignedIdentifiers;

use super::{Call, table_of};
use crate::Failure;
use crate::error::TableError;
use crate::model::{self, refuse, table_key};

/// Five policies fit many times over.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let name = table_of(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = SignedIdentifiers::parse(&document).map_err(TableError::from)?;
    let policies = StoredPolicy::all_of(&policies);
    let (key, account) = (table_key(call.account, &name), call.account);
    commit(call.engine, key.clone(), move |rows, _| {
        let mut table = model::find_table(rows, account, &name)?.ok_or(refuse(TableError::TableNotFound))?;
        table.policies = policies.clone();
        let mut changes = Changes::none();
        changes.put(key.clone(), codec::encode(&table));
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::TableError;
    use crate::testing::{Bench, refusal, text};
    use service::RequestError;

    const URL: &str = "tab?comp=acl";
    const ONE: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start>\
        <Expiry>2027-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

    #[tokio::test]
    async fn policies_are_replaced_as_a_whole() {
        let bench = Bench::with_table().await;
        let get = async || text(bench.call("GET", URL, &[], b"").await.unwrap());
        assert!(get().await.ends_with("<SignedIdentifiers />"));
        assert_eq!(bench.call("PUT", URL, &[], ONE.as_bytes()).await.unwrap().status, 204);
        assert!(get().await.ends_with(ONE), "{}", get().await);
        let policies = bench.service.policies(1, "TAB").await.unwrap();
        assert_eq!((policies.len(), policies[0].id.as_str()), (1, "readers"));
        assert_eq!(bench.service.policies(1, "other").await.unwrap(), []);
        bench.call("PUT", URL, &[], b"").await.unwrap();
        assert!(get().await.ends_with("<SignedIdentifiers />"));
    }

    #[tokio::test]
    async fn refusals() {
        let bench = Bench::with_table().await;
        let bad = refusal(bench.call("PUT", URL, &[], b"<a/>").await);
        assert_eq!(bad, RequestError::InvalidXmlDocument.into());
        // Of two faults the document is seen first.
        let both = refusal(bench.call("PUT", "missing?comp=acl", &[], b"<a/>").await);
        assert_eq!(both, RequestError::InvalidXmlDocument.into());
        let missing = refusal(bench.call("PUT", "missing?comp=acl", &[], ONE.as_bytes()).await);
        assert_eq!(missing, TableError::TableNotFound);
        assert_eq!(refusal(bench.call("GET", "missing?comp=acl", &[], b"").await), TableError::TableNotFound);
    }
}
