//! Set Blob Tier: of a blob, a snapshot or a version. Neither ETag nor Last-Modified change.

use auth::account::Kind;
use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Changes, Commit, commit};
use service::Manners;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::target::Target;
use crate::model::tier::{Priority, Tier};
use crate::model::{self, Committed, refuse};
use crate::{Failure, reply, request};

struct SetBlobTier {
    container: ContainerName,
    name: BlobName,
    which: Which,
    conditions: Conditions,
    lease: Option<LeaseId>,
    tier: Tier,
    priority: Option<Priority>,
    is_premium: bool,
}

fn parse(head: &Head, kind: Kind) -> Result<SetBlobTier, BlobError> {
    let (container, name) = request::blob(head)?;
    request::no_foreign_headers(head)?;
    // Of the conditions it takes only the one on tags.
    let conditions = Conditions { if_tags: request::if_tags(head)?, ..Conditions::default() };
    request::required(head, request::ACCESS_TIER)?;
    Ok(SetBlobTier {
        container,
        name,
        which: request::which(head)?,
        conditions,
        lease: request::lease_id(head)?,
        tier: request::tier(head)?.unwrap_or(Tier::ACCOUNT_DEFAULT),
        priority: request::rehydrate_priority(head)?,
        is_premium: kind == Kind::Premium,
    })
}

impl SetBlobTier {
    /// The state as it becomes. The lease stands as it is: nothing of the blob is written.
    fn decide(&self, found: Option<&Target>, now: Timestamp) -> Result<Committed, BlobError> {
        self.conditions.check_write(found.map(|target| target.state.version()).as_ref())?;
        let target = found.ok_or(BlobError::BlobNotFound)?;
        target.lease.check_write(self.lease, now).map_err(BlobError::lease_on_blob)?;
        target.state.check_no_copy(now)?;
        self.tier.check(target.state.kind, target.state.length, self.is_premium)?;
        target.state.to_tier(self.tier, self.priority, now)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head, call.asker.settings.kind)?;
    let account = call.account;
    let partition = model::blob_partition(account, &op.container, &op.name);
    let manners = call.asker.manners;
    let is_on_its_way = commit(call.engine, partition, move |rows, tick| {
        let generation = model::generation(rows, account, &op.container)?;
        let found = Target::find(rows, generation, &op.name, op.which)?;
        let after = op.decide(found.as_ref(), tick.now).map_err(refuse)?;
        let outcome = after.tier_at(tick.now).is_some_and(|shown| shown.rehydration.is_some());
        let after = match manners {
            Manners::Azure => after,
            // Azurite answers the same, but nothing has to be waited for.
            Manners::Azurite => after.rehydrated_at_once(tick.now),
        };
        let mut changes = Changes::none();
        if let Some(target) = found {
            target.store(after, &mut changes);
        }
        Ok(Commit { changes, outcome })
    })
    .await?;
    Ok(reply::reply(if is_on_its_way { StatusCode::ACCEPTED } else { StatusCode::OK }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, Bench, HELD, MINE, NOW, YOURS, between, header, refusal};
    use concurrency::{Lease, TagExpression};
    use service::RequestError;
    use wire::http::Reply;

    const HOUR: u64 = 3600;

    async fn set(bench: &Bench, url: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let join = if url.contains('?') { '&' } else { '?' };
        bench.call("PUT", &format!("{url}{join}comp=tier"), headers, b"").await
    }

    fn to(tier: &str) -> [(&'static str, &str); 1] {
        [("x-ms-access-tier", tier)]
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let ask = |lease, if_tags: Option<&str>| SetBlobTier {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            which: Which::Base,
            conditions: Conditions { if_tags: if_tags.and_then(TagExpression::parse), ..Conditions::default() },
            lease,
            tier: Tier::P4,
            priority: None,
            is_premium: false,
        };
        let (free, held) = (Target::current(Lease::Available), Target::current(HELD));
        let decide = |op: SetBlobTier, found: Option<&Target>| op.decide(found, NOW).err();
        assert_eq!(decide(ask(None, None), None), Some(BlobError::BlobNotFound));
        assert_eq!(decide(ask(None, None), Some(&free)), Some(BlobError::AccessTierNotSupportedForBlobType));
        assert_eq!(decide(ask(None, Some("a='1'")), Some(&held)), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(None, None), Some(&held)), Some(BlobError::LeaseIdMissing));
        let mismatch = Some(BlobError::LeaseIdMismatchWithBlobOperation);
        assert_eq!(decide(ask(Some(YOURS), None), Some(&held)), mismatch);
        let unsupported = Some(BlobError::AccessTierNotSupportedForBlobType);
        assert_eq!(decide(ask(Some(MINE), None), Some(&held)), unsupported);
    }

    #[tokio::test]
    async fn the_tier_changes_and_the_version_does_not() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"hello").await;
        for tier in ["Cool", "Cold", "Hot", "Smart"] {
            assert_eq!(set(&bench, "cont/blob", &to(tier)).await.unwrap().status, StatusCode::OK);
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            assert_eq!((header(&told, "x-ms-access-tier"), header(&told, "etag")), (Some(tier), Some(&*etag)));
            assert!(header(&told, "x-ms-access-tier-change-time").is_some());
            assert_eq!(header(&told, "x-ms-access-tier-inferred"), None);
            let smart = (tier == "Smart").then_some("Hot");
            assert_eq!(header(&told, "x-ms-smart-access-tier"), smart);
        }
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(list.contains("<AccessTier>Smart</AccessTier>") && list.contains("<SmartAccessTier>Hot<"), "{list}");
    }

    #[tokio::test]
    async fn what_is_archived_is_out_of_reach_until_it_is_back() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        set(&bench, "cont/blob", &to("Archive")).await.unwrap();
        let block = [("x-ms-blob-type", "BlockBlob")];
        let query: &[u8] = b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>";
        // The reference lists what an archived blob allows; these are not among it.
        let refused: [Ask<'_>; 9] = [
            ("GET", "cont/blob", &[], b""),
            ("PUT", "cont/blob?comp=block&blockid=QQ==", &[], b"x"),
            ("GET", "cont/blob?comp=blocklist", &[], b""),
            ("POST", "cont/blob?comp=query", &[], query),
            ("PUT", "cont/blob", &block, b"other"),
            ("PUT", "cont/blob?comp=blocklist", &[], b"<BlockList/>"),
            ("PUT", "cont/blob?comp=metadata", &[], b""),
            ("PUT", "cont/blob?comp=properties", &[], b""),
            ("PUT", "cont/blob?comp=snapshot", &[], b""),
        ];
        let check_all = async || {
            for (method, url, headers, body) in refused {
                assert_eq!(
                    refusal(bench.call(method, url, headers, body).await),
                    BlobError::BlobArchived,
                    "{method} {url}"
                );
            }
            let allowed = [("HEAD", "cont/blob"), ("GET", "cont/blob?comp=metadata"), ("GET", "cont/blob?comp=tags")];
            for (method, url) in allowed {
                bench.call(method, url, &[], b"").await.unwrap();
            }
            bench.call("PUT", "cont/blob?comp=tags", &[], b"<Tags><TagSet/></Tags>").await.unwrap();
        };
        check_all().await;
        assert_eq!(set(&bench, "cont/blob", &to("Archive")).await.unwrap().status, StatusCode::OK);
        let high = [("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "High")];
        assert_eq!(set(&bench, "cont/blob", &high).await.unwrap().status, StatusCode::ACCEPTED);
        check_all().await;
        assert_eq!(refusal(set(&bench, "cont/blob", &to("Cool")).await), BlobError::BlobBeingRehydrated);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-access-tier"), Some("Archive"));
        assert_eq!(header(&told, "x-ms-archive-status"), Some("rehydrate-pending-to-hot"));
        assert_eq!(header(&told, "x-ms-rehydrate-priority"), Some("High"));
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert_eq!(between(&list, "<ArchiveStatus>", "<"), ["rehydrate-pending-to-hot"]);
        assert_eq!(between(&list, "<RehydratePriority>", "<"), ["High"]);
        bench.advance(HOUR).await;
        assert_eq!(bench.get("cont/blob").await, b"hello");
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-access-tier"), header(&told, "x-ms-archive-status")), (Some("Hot"), None));
        set(&bench, "cont/blob", &to("Archive")).await.unwrap();
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    }

    #[tokio::test]
    async fn a_snapshot_has_its_own() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        let at = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        let url = format!("cont/blob?snapshot={}", header(&at, "x-ms-snapshot").unwrap());
        set(&bench, &url, &to("Archive")).await.unwrap();
        assert_eq!(refusal(bench.call("GET", &url, &[], b"").await), BlobError::BlobArchived);
        assert_eq!(bench.get("cont/blob").await, b"hello");
        let missing = set(&bench, "cont/blob?snapshot=2020-01-01T00:00:00.0000000Z", &to("Cool")).await;
        assert_eq!(refusal(missing), BlobError::BlobNotFound);
    }

    #[tokio::test]
    async fn bad_requests() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        bench.put_pages("cont/pages", 512).await;
        let missing = BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-access-tier" });
        assert_eq!(refusal(set(&bench, "cont/blob", &[]).await), missing);
        assert_eq!(refusal(set(&bench, "cont/blob", &to("Warm")).await), BlobError::header("x-ms-access-tier", "Warm"));
        let urgent = [("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "Now")];
        let refused = refusal(set(&bench, "cont/blob", &urgent).await);
        assert_eq!(refused, BlobError::header("x-ms-rehydrate-priority", "Now"));
        let unsupported = BlobError::AccessTierNotSupportedForBlobType;
        assert_eq!(refusal(set(&bench, "cont/pages", &to("Hot")).await), unsupported);
        let account = BlobError::BlobAccessTierNotSupportedForAccountType;
        assert_eq!(refusal(set(&bench, "cont/pages", &to("P10")).await), account);
    }

    #[tokio::test]
    async fn pages_of_a_premium_account() {
        let mut bench = Bench::with_container().await;
        bench.settings.kind = Kind::Premium;
        bench.put_pages("cont/pages", 512).await;
        let told = bench.call("HEAD", "cont/pages", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-access-tier"), Some("P10"));
        assert_eq!(header(&told, "x-ms-access-tier-inferred"), Some("true"));
        set(&bench, "cont/pages", &to("P50")).await.unwrap();
        let told = bench.call("HEAD", "cont/pages", &[], b"").await.unwrap();
        assert_eq!(
            (header(&told, "x-ms-access-tier"), header(&told, "x-ms-access-tier-inferred")),
            (Some("P50"), None)
        );
        assert_eq!(refusal(set(&bench, "cont/pages", &to("P4")).await), BlobError::CannotChangeToLowerTier);
        let grow = [("x-ms-blob-content-length", "5497558138880")];
        let refused = refusal(bench.call("PUT", "cont/pages?comp=properties", &grow, b"").await);
        assert_eq!(refused, BlobError::ContentLengthLargerThanTierLimit);
        let large =
            [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "68719476736"), ("x-ms-access-tier", "P4")];
        let refused = refusal(bench.call("PUT", "cont/large", &large, b"").await);
        assert_eq!(refused, BlobError::BlobTierInadequateForContentLength);
    }

    #[tokio::test]
    async fn a_delete_may_depend_on_when_the_tier_was_set() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        set(&bench, "cont/blob", &to("Cool")).await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let since = header(&told, "x-ms-access-tier-change-time").unwrap().to_owned();
        let past = "Sun, 15 Nov 2020 18:00:00 GMT";
        let delete = async |name: &str, date: &str| bench.call("DELETE", "cont/blob", &[(name, date)], b"").await;
        let (modified, unmodified) = ("x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since");
        assert_eq!(refusal(delete(modified, &since).await), BlobError::ConditionNotMet);
        assert_eq!(refusal(delete(unmodified, past).await), BlobError::ConditionNotMet);
        assert_eq!(refusal(delete(unmodified, "x").await), BlobError::header(unmodified, "x"));
        delete(unmodified, &since).await.unwrap();
        bench.put("cont/blob", b"hello").await;
        delete(modified, past).await.unwrap();
    }
}
