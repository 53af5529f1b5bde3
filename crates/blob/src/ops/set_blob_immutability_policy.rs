//! Set Blob Immutability Policy: a blob, a snapshot or a version can be neither changed nor deleted until a date. Neither ETag nor
//! Last-Modified change.
//!
//! The service asks that the container was made for it, which only its management interface can say. There is none here,
//! so every container takes policies.

use concurrency::{Conditions, Timestamp};
use engine::{Changes, Commit, commit};
use service::RequestError;
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::protection::{Mode, Policy, Protection};
use crate::model::target::Target;
use crate::model::{self, Committed, refuse};
use crate::{Failure, reply, request};

/// A change of what protects a state; Delete Blob Immutability Policy and Set Blob Legal Hold are the same kind.
pub struct Protect {
    container: ContainerName,
    name: BlobName,
    which: Which,
    conditions: Conditions,
}

impl Protect {
    /// Of the conditions they take at most one.
    pub fn parse(head: &Head) -> Result<Protect, BlobError> {
        let (container, name) = request::blob(head)?;
        let dates = request::conditions(head)?.dates_only();
        Ok(Protect {
            container,
            name,
            which: request::which(head)?,
            conditions: Conditions { if_modified_since: None, ..dates },
        })
    }

    /// Commits the state with what `decide` makes of its protection, and answers with that.
    pub async fn run(
        self,
        call: Call<'_>,
        decide: impl Fn(Protection, Timestamp) -> Result<Protection, BlobError> + Send + 'static,
    ) -> Result<Protection, Failure> {
        let account = call.account;
        let partition = model::blob_partition(account, &self.container, &self.name);
        let protection = commit(call.engine, partition, move |rows, tick| {
            let generation = model::generation(rows, account, &self.container)?;
            let found = Target::find(rows, generation, &self.name, self.which)?;
            let target = found.ok_or(refuse(BlobError::BlobNotFound))?;
            self.conditions.check_write(Some(&target.state.version())).map_err(|unmet| refuse(unmet.into()))?;
            let before = target.state.protection.unwrap_or_default();
            let protection = decide(before, tick.now).map_err(refuse)?.within(generation);
            let after = Committed { protection: Some(protection), ..target.state.clone() };
            let mut changes = Changes::none();
            target.store(after, &mut changes);
            Ok(Commit { changes, outcome: protection })
        });
        Ok(protection.await?)
    }
}

/// The protection with another policy. A locked one can only be prolonged, also when its time is over.
fn decide(policy: Policy, before: Protection, now: Timestamp) -> Result<Protection, BlobError> {
    policy.check_begins(now)?;
    match before.policy {
        Some(old) if old.mode == Mode::Locked && (policy.mode != Mode::Locked || policy.until < old.until) => {
            Err(BlobError::BlobImmutableDueToPolicy)
        }
        Some(_) | None => Ok(Protection { policy: Some(policy), ..before }),
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Protect::parse(call.head)?;
    let missing = RequestError::MissingRequiredHeader { name: request::POLICY_UNTIL };
    let policy = request::policy(call.head)?.ok_or(BlobError::from(missing))?;
    op.run(call, move |before, now| decide(policy, before, now)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    answer.headers.insert(&reply::POLICY_UNTIL, reply::date(policy.until));
    answer.headers.insert(&reply::POLICY_MODE, HeaderValue::from_static(policy.mode.name()));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, Bench, NOW, between, header, refusal};

    #[test]
    fn a_locked_policy_is_only_prolonged() {
        let at = |seconds, mode| Policy { until: NOW.plus_seconds(seconds), mode };
        let had = |policy| Protection { policy: Some(policy), ..Protection::default() };
        let (locked, unlocked) = (Mode::Locked, Mode::Unlocked);
        let immutable = Err(BlobError::BlobImmutableDueToPolicy);
        let decided = |new, old, now| decide(new, had(old), now).map(|after| after.policy);
        for mode in [locked, unlocked] {
            assert_eq!(decided(at(5, mode), at(10, unlocked), NOW), Ok(Some(at(5, mode))));
        }
        assert_eq!(decided(at(11, locked), at(10, locked), NOW), Ok(Some(at(11, locked))));
        assert_eq!(decided(at(10, locked), at(10, locked), NOW), Ok(Some(at(10, locked))));
        assert_eq!(decided(at(9, locked), at(10, locked), NOW), immutable);
        assert_eq!(decided(at(11, unlocked), at(10, locked), NOW), immutable);
        // Its time is over: it can still be prolonged, and is still locked. Else it could be removed in two steps.
        let over = NOW.plus_seconds(10);
        assert_eq!(decided(at(20, locked), at(10, locked), over), Ok(Some(at(20, locked))));
        assert_eq!(decided(at(20, unlocked), at(10, locked), over), immutable);
        assert_eq!(decided(at(20, unlocked), at(10, unlocked), over), Ok(Some(at(20, unlocked))));
        // A date that has passed is none, and is judged first.
        let past = decide(at(0, locked), had(at(10, locked)), NOW);
        assert!(matches!(past, Err(BlobError::Request(RequestError::InvalidHeaderValue { .. }))));
    }

    const FAR: &str = "Sun, 15 Nov 2099 18:00:00 GMT";
    const FARTHER: &str = "Mon, 16 Nov 2099 18:00:00 GMT";
    const URL: &str = "cont/blob?comp=immutabilityPolicies";
    const HOLD: &str = "cont/blob?comp=legalhold";

    fn until<'a>(date: &'a str, mode: &'a str) -> [(&'static str, &'a str); 2] {
        [("x-ms-immutability-policy-until-date", date), ("x-ms-immutability-policy-mode", mode)]
    }

    /// Everything that would change or remove the blob of each type.
    async fn writes(bench: &Bench) -> Vec<(String, BlobError)> {
        let update = [("x-ms-page-write", "clear"), ("range", "bytes=0-511")];
        let block = [("x-ms-blob-type", "BlockBlob")];
        let include = [("x-ms-delete-snapshots", "include")];
        let asks: [Ask<'_>; 11] = [
            ("PUT", "cont/blob", &block, b"other"),
            ("PUT", "cont/blob?comp=blocklist", &[], b"<BlockList/>"),
            ("PUT", "cont/blob?comp=metadata", &[], b""),
            ("PUT", "cont/blob?comp=properties", &[], b""),
            ("DELETE", "cont/blob", &[], b""),
            ("DELETE", "cont/blob", &include, b""),
            ("PUT", "cont/pages", &block, b"other"),
            ("PUT", "cont/pages?comp=page", &update, b""),
            ("DELETE", "cont/pages", &[], b""),
            ("PUT", "cont/append?comp=appendblock", &[], b"x"),
            ("PUT", "cont/append?comp=seal", &[], b""),
        ];
        let mut refused = Vec::new();
        for (method, url, headers, body) in asks {
            refused.push((format!("{method} {url}"), refusal(bench.call(method, url, headers, body).await)));
        }
        refused.push(("container".into(), refusal(bench.call("DELETE", "cont?restype=container", &[], b"").await)));
        refused
    }

    async fn bench() -> Bench {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        bench.put_pages("cont/pages", 512).await;
        bench.call("PUT", "cont/append", &[("x-ms-blob-type", "AppendBlob")], b"").await.unwrap();
        bench
    }

    #[tokio::test]
    async fn nothing_is_written_or_removed_while_it_lasts() {
        let bench = bench().await;
        for name in ["blob", "pages", "append"] {
            let url = format!("cont/{name}?comp=immutabilityPolicies");
            let set = bench.call("PUT", &url, &until(FAR, "Unlocked"), b"").await.unwrap();
            assert_eq!(header(&set, "x-ms-immutability-policy-until-date"), Some(FAR));
            assert_eq!(header(&set, "x-ms-immutability-policy-mode"), Some("unlocked"));
        }
        for (what, error) in writes(&bench).await {
            assert_eq!(error, BlobError::BlobImmutableDueToPolicy, "{what}");
        }
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-immutability-policy-until-date"), Some(FAR));
        let told = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-has-immutability-policy"), Some("true"));
        assert_eq!(header(&told, "x-ms-has-legal-hold"), Some("false"));
        let list = bench.text("GET", "?comp=list").await;
        assert!(list.contains("<HasImmutabilityPolicy>true</HasImmutabilityPolicy>"), "{list}");
        // Reading, tagging, leasing and keeping it go on.
        bench.call("PUT", "cont/blob?comp=tags", &[], b"<Tags><TagSet/></Tags>").await.unwrap();
        bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"hello");
        for name in ["blob", "pages", "append"] {
            let url = format!("cont/{name}?comp=immutabilityPolicies");
            bench.call("DELETE", &url, &[], b"").await.unwrap();
        }
        bench.put("cont/blob", b"other").await;
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn a_hold_lasts_until_it_is_taken_away() {
        let bench = bench().await;
        let set = async |name: &str, value: &str| {
            let url = format!("cont/{name}?comp=legalhold");
            bench.call("PUT", &url, &[("x-ms-legal-hold", value)], b"").await.unwrap()
        };
        for name in ["blob", "pages", "append"] {
            assert_eq!(header(&set(name, "true").await, "x-ms-legal-hold"), Some("true"));
        }
        // The hold is the stronger reason.
        bench.call("PUT", URL, &until(FAR, "Locked"), b"").await.unwrap();
        for (what, error) in writes(&bench).await {
            assert_eq!(error, BlobError::BlobImmutableDueToLegalHold, "{what}");
        }
        let list = bench.text("GET", "cont?restype=container&comp=list&include=immutabilitypolicy,legalhold").await;
        assert_eq!(between(&list, "<LegalHold>", "<"), ["true", "true", "true"]);
        assert_eq!(between(&list, "<ImmutabilityPolicyMode>", "<"), ["locked"]);
        assert_eq!(between(&list, "<ImmutabilityPolicyUntilDate>", "<"), [FAR]);
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(!list.contains("LegalHold") && !list.contains("ImmutabilityPolicy"), "{list}");
        let told = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-has-legal-hold"), Some("true"));
        for name in ["blob", "pages", "append"] {
            set(name, "false").await;
        }
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-legal-hold"), Some("false"));
        // The policy is still there, and locked.
        let overwritten = bench.call("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], b"").await;
        assert_eq!(refusal(overwritten), BlobError::BlobImmutableDueToPolicy);
        assert_eq!(refusal(bench.call("DELETE", URL, &[], b"").await), BlobError::BlobImmutableDueToPolicy);
        let shorter = bench.call("PUT", URL, &until("Sat, 14 Nov 2099 18:00:00 GMT", "Locked"), b"").await;
        assert_eq!(refusal(shorter), BlobError::BlobImmutableDueToPolicy);
        bench.call("PUT", URL, &until(FARTHER, "Locked"), b"").await.unwrap();
    }

    #[tokio::test]
    async fn its_time_is_over_by_the_clock() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        let soon = bench.engine_now().plus_seconds(100);
        let soon = wire::dates::http_date(soon).as_str().to_owned();
        bench.call("PUT", URL, &until(&soon, "Locked"), b"").await.unwrap();
        assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), BlobError::BlobImmutableDueToPolicy);
        bench.advance(100).await;
        // It can be deleted and not changed; with versions what is there stays as one.
        let overwritten = bench.call("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], b"").await;
        assert_eq!(refusal(overwritten), BlobError::BlobImmutableDueToPolicy);
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn on_creation_on_snapshots_and_on_versions() {
        let mut bench = Bench::with_container().await;
        let put =
            [&[("x-ms-blob-type", "BlockBlob"), ("x-ms-legal-hold", "true")], &until(FAR, "Unlocked")[..]].concat();
        bench.call("PUT", "cont/new", &put, b"x").await.unwrap();
        assert_eq!(refusal(bench.call("DELETE", "cont/new", &[], b"").await), BlobError::BlobImmutableDueToLegalHold);

        bench.put("cont/blob", b"hello").await;
        let at = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        let snapshot = format!("cont/blob?snapshot={}", header(&at, "x-ms-snapshot").unwrap());
        bench.call("PUT", &format!("{snapshot}&comp=legalhold"), &[("x-ms-legal-hold", "true")], b"").await.unwrap();
        let held = BlobError::BlobImmutableDueToLegalHold;
        for (url, value) in [(snapshot.as_str(), None), ("cont/blob", Some("include")), ("cont/blob", Some("only"))] {
            let headers: Vec<_> = value.map(|value| ("x-ms-delete-snapshots", value)).into_iter().collect();
            assert_eq!(refusal(bench.call("DELETE", url, &headers, b"").await), held, "{url} {value:?}");
        }
        bench.put("cont/blob", b"the base is free").await;
        bench.call("PUT", &format!("{snapshot}&comp=legalhold"), &[("x-ms-legal-hold", "false")], b"").await.unwrap();
        bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();

        // A version stays what it is when another takes its place, and cannot be removed.
        bench.settings.versioning = true;
        bench.put("cont/blob", b"first").await;
        bench.call("PUT", HOLD, &[("x-ms-legal-hold", "true")], b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let first = format!("cont/blob?versionid={}", header(&told, "x-ms-version-id").unwrap());
        assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), held);
        bench.put("cont/blob", b"second").await;
        assert_eq!(bench.get(&first).await, b"first");
        assert_eq!(refusal(bench.call("DELETE", &first, &[], b"").await), held);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-legal-hold"), None);
        bench.call("PUT", &format!("{first}&comp=legalhold"), &[("x-ms-legal-hold", "false")], b"").await.unwrap();
        bench.call("DELETE", &first, &[], b"").await.unwrap();
        bench.call("PUT", "cont/new?comp=legalhold", &[("x-ms-legal-hold", "false")], b"").await.unwrap();
        bench.call("DELETE", "cont/new?comp=immutabilityPolicies", &[], b"").await.unwrap();
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn bad_requests() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello").await;
        let missing = BlobError::Request(RequestError::MissingRequiredHeader { name: request::POLICY_UNTIL });
        assert_eq!(refusal(bench.call("PUT", URL, &[], b"").await), missing);
        let alone = bench.call("PUT", URL, &[("x-ms-immutability-policy-mode", "Locked")], b"").await;
        assert_eq!(refusal(alone), missing);
        let past = "Sun, 15 Nov 2020 18:00:00 GMT";
        let refused = bench.call("PUT", URL, &until(past, "Locked"), b"").await;
        assert_eq!(refusal(refused), BlobError::header(request::POLICY_UNTIL, past));
        let refused = bench.call("PUT", URL, &until(FAR, "Mutable"), b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-immutability-policy-mode", "Mutable"));
        let gone = bench.call("PUT", "cont/gone?comp=immutabilityPolicies", &until(FAR, "Locked"), b"").await;
        assert_eq!(refusal(gone), BlobError::BlobNotFound);
        let stale = [&until(FAR, "Locked")[..], &[("if-unmodified-since", past)]].concat();
        assert_eq!(refusal(bench.call("PUT", URL, &stale, b"").await), BlobError::ConditionNotMet);
        let maybe = bench.call("PUT", HOLD, &[("x-ms-legal-hold", "maybe")], b"").await;
        assert_eq!(refusal(maybe), BlobError::header("x-ms-legal-hold", "maybe"));
        let missing = BlobError::Request(RequestError::MissingRequiredHeader { name: request::LEGAL_HOLD });
        assert_eq!(refusal(bench.call("PUT", HOLD, &[], b"").await), missing);
        // Nothing came of all that.
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    }

    #[tokio::test]
    async fn a_blob_is_not_created_with_a_policy_of_the_past() {
        let bench = Bench::with_container().await;
        bench.put("cont/source", b"x").await;
        let past = "Sun, 15 Nov 2009 18:00:00 GMT";
        let [date, mode] = until(past, "Locked");
        let source = crate::testing::url("cont/source");
        let (block, copy) = (("x-ms-blob-type", "BlockBlob"), ("x-ms-copy-source", source.as_str()));
        let asks: [Ask<'_>; 5] = [
            ("PUT", "cont/new", &[block, date, mode], b"x"),
            ("PUT", "cont/new?comp=blocklist", &[date, mode], b"<BlockList/>"),
            ("PUT", "cont/new", &[copy, date, mode], b""),
            ("PUT", "cont/new", &[copy, ("x-ms-requires-sync", "true"), date, mode], b""),
            ("PUT", "cont/new", &[copy, block, date, mode], b""),
        ];
        for (method, url, headers, body) in asks {
            let refused = refusal(bench.call(method, url, headers, body).await);
            assert_eq!(refused, BlobError::header("x-ms-immutability-policy-until-date", past), "{headers:?}");
        }
    }
}
