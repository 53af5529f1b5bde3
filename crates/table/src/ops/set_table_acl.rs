//! Set Table ACL: replace the stored access policies of a table.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, StoredPolicy, codec};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::SignedIdentifiers;

use super::{Call, table_of};
use crate::Failure;
use crate::error::TableError;
use crate::model::{self, Halt, Table, table_key};
use crate::name::TableName;

/// Much more than five policies need.
const BODY_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetTableAcl {
    pub table: TableName,
    pub policies: Vec<StoredPolicy>,
}

impl Operation for SetTableAcl {
    type Outcome = ();
    type Refusal = TableError;

    fn partition(&self, account: u64) -> Key {
        table_key(account, &self.table)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, _: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let table = model::existing_table(rows, account, &self.table)?;
        let table = Table { policies: self.policies.clone(), ..table };
        changes.put(table_key(account, &self.table), codec::encode(&table));
        Ok(())
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let table = table_of(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let policies = StoredPolicy::all_of(&SignedIdentifiers::parse(&document).map_err(TableError::from)?);
    call.commit(&Arc::new(SetTableAcl { table, policies })).await?;
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use crate::TableError;
    use crate::testing::{Bench, refusal, text};
    use service::{HttpService, RequestError};

    const URL: &str = "tab?comp=acl";
    const ONE: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start>\
        <Expiry>2027-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

    #[tokio::test]
    async fn policies_are_replaced_as_a_whole() {
        let bench = Bench::with_table().await;
        let get = async || text(bench.call("GET", URL, &[], b"").await.unwrap()).await;
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
        // Of two faults, the document's is reported.
        let both = refusal(bench.call("PUT", "missing?comp=acl", &[], b"<a/>").await);
        assert_eq!(both, RequestError::InvalidXmlDocument.into());
        let missing = refusal(bench.call("PUT", "missing?comp=acl", &[], ONE.as_bytes()).await);
        assert_eq!(missing, TableError::TableNotFound);
        assert_eq!(refusal(bench.call("GET", "missing?comp=acl", &[], b"").await), TableError::TableNotFound);
    }
}
