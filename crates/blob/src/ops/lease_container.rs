//! Lease Container: keep a container from being deleted by others. Five actions, chosen by a header.

use concurrency::{Conditions, Timestamp};
use engine::{Changes, Commit, Tick, commit};
use service::{LeaseAction, LeaseKind, LeaseOutcome, codec};
use wire::http::{Head, Reply};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Container, container_key, refuse};
use crate::{Failure, reply, request};

struct LeaseContainer {
    name: ContainerName,
    conditions: Conditions,
    action: LeaseAction,
}

fn parse(head: &Head) -> Result<LeaseContainer, BlobError> {
    Ok(LeaseContainer {
        name: request::container(head)?,
        conditions: request::container_conditions(head)?,
        action: LeaseAction::parse(head, LeaseKind::Timed)?,
    })
}

impl LeaseContainer {
    /// ETag and Last-Modified stay as they are.
    fn decide(&self, found: Option<Container>, tick: Tick) -> Result<(Container, LeaseOutcome), BlobError> {
        let container = found.ok_or(BlobError::ContainerNotFound)?;
        self.conditions.check_write(Some(&container.version()))?;
        let (lease, told) = self.action.decide(&container.lease, tick).map_err(BlobError::lease_on_container)?;
        Ok((Container { lease, ..container }, told))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let key = container_key(call.account, &op.name);
    let account = call.account;
    let (told, stamp): (LeaseOutcome, Timestamp) = commit(call.engine, key.clone(), move |rows, tick| {
        let found = model::find_container(rows, account, &op.name)?;
        let (container, told) = op.decide(found, tick).map_err(refuse)?;
        let mut changes = Changes::none();
        changes.put(key.clone(), codec::encode(&container));
        Ok(Commit { changes, outcome: (told, container.stamp) })
    })
    .await?;
    let mut answer = told.answer();
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    const ID: &str = "01010101-0101-0101-0101-010101010101";
    const URL: &str = "cont?restype=container&comp=lease";

    #[tokio::test]
    async fn a_leased_container_is_deleted_by_its_holder_only() {
        let bench = Bench::with_container().await;
        let before = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", ID)];
        let answer = bench.call("PUT", URL, &acquire, b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-lease-id")), (201, Some(ID)));
        assert_eq!(header(&answer, "etag"), header(&before, "etag"));
        let told = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-lease-duration"), Some("fixed"));
        assert_eq!(header(&told, "x-ms-lease-status"), Some("locked"));
        let delete = bench.call("DELETE", "cont?restype=container", &[], b"").await;
        assert_eq!(refusal(delete), BlobError::ContainerLeaseIdMissing);
        // What is inside does not care.
        bench.put("cont/blob", b"x").await;
        bench.advance(16).await;
        let late = bench.call("DELETE", "cont?restype=container", &[("x-ms-lease-id", ID)], b"").await;
        assert_eq!(refusal(late), BlobError::ContainerLeaseLost);
        let renew = [("x-ms-lease-action", "renew"), ("x-ms-lease-id", ID)];
        assert_eq!(bench.call("PUT", URL, &renew, b"").await.unwrap().status, 200);
        let answer = bench.call("PUT", URL, &[("x-ms-lease-action", "break")], b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-lease-time")), (202, Some("15")));
        let delete = bench.call("DELETE", "cont?restype=container", &[("x-ms-lease-id", ID)], b"").await;
        assert_eq!(delete.unwrap().status, 202);
        assert_eq!(refusal(bench.call("PUT", URL, &renew, b"").await), BlobError::ContainerNotFound);
    }
}
