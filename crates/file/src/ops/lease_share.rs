//! Lease Share: keep a share from being deleted or changed by others. Five actions, chosen by a header.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Changes, Key, Rows, Tick};
use service::{LeaseAction, LeaseKind, LeaseOutcome, Operation, codec, reply};
use wire::http::{Head, Reply};
use wire::names::ShareName;

use super::Call;
use crate::error::FileError;
use crate::model::{Halt, Share, ShareSnapshot, existing_share, existing_snapshot, refuse, share_key, snapshot_key};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseShare {
    pub share: ShareName,
    /// The snapshot that the lease is on.
    pub snapshot: Option<Timestamp>,
    pub action: LeaseAction,
}

fn parse(head: &Head) -> Result<LeaseShare, FileError> {
    let share = request::share(head)?;
    request::no_conditions(head)?;
    let snapshot = request::snapshot(head)?;
    Ok(LeaseShare { share, snapshot, action: LeaseAction::parse(head, LeaseKind::Timed)? })
}

impl Operation for LeaseShare {
    /// What has become of the lease, and the stamp of the share.
    type Outcome = (LeaseOutcome, Timestamp);
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.share)
    }

    /// ETag and Last-Modified stay as they are.
    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(LeaseOutcome, Timestamp), Halt> {
        let share = existing_share(rows, account, &self.share)?;
        let Some(time) = self.snapshot else {
            let (share, outcome) = self.leased(share, tick).map_err(refuse)?;
            changes.put(share_key(account, &self.share), codec::encode(&share));
            return Ok((outcome, share.stamp));
        };
        let snapshot = existing_snapshot(rows, share.generation, time)?;
        let key = snapshot_key(share.generation, time);
        let (share, outcome) = self.leased(snapshot.share, tick).map_err(refuse)?;
        let stamp = share.stamp;
        changes.put(key, codec::encode(&ShareSnapshot { share, ..snapshot }));
        Ok((outcome, stamp))
    }
}

impl LeaseShare {
    /// A share or a snapshot with the lease that it has afterwards.
    fn leased(&self, share: Share, tick: Tick) -> Result<(Share, LeaseOutcome), FileError> {
        let (lease, outcome) = self.action.decide(&share.lease, tick).map_err(FileError::share_lease)?;
        Ok((Share { lease, ..share }, outcome))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (outcome, stamp) = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = outcome.answer();
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header, refusal};
    use wire::http::ErrorReply;

    const SHARE: &str = "share?restype=share";
    const URL: &str = "share?restype=share&comp=lease";
    const A: &str = "0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a";
    const B: &str = "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b";
    const C: &str = "0c0c0c0c-0c0c-0c0c-0c0c-0c0c0c0c0c0c";

    /// The states of the table, in its order.
    const STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

    async fn act(bench: &Bench, words: &str) -> Result<Reply, Failure> {
        let mut words = words.split(' ');
        let action = words.next().unwrap();
        let mut headers = vec![("x-ms-lease-action", action)];
        let rest: Vec<&str> = words.collect();
        let id = |name: &str| match name {
            "A" => A,
            "B" => B,
            "C" => C,
            other => panic!("{other} is no id"),
        };
        match (action, &rest[..]) {
            ("acquire", []) => headers.push(("x-ms-lease-duration", "60")),
            ("acquire", [proposed]) => {
                headers.extend([("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", id(proposed))]);
            }
            ("change", [held, proposed]) => {
                headers.extend([("x-ms-lease-id", id(held)), ("x-ms-proposed-lease-id", id(proposed))]);
            }
            ("renew" | "release", [held]) => headers.push(("x-ms-lease-id", id(held))),
            ("break", [period]) => headers.push(("x-ms-lease-break-period", period)),
            other => panic!("{other:?}"),
        }
        bench.call("PUT", URL, &headers, b"").await
    }

    /// A share whose lease, if it has one, is A's.
    async fn in_state(state: &str) -> Bench {
        let bench = Bench::with_share().await;
        match state {
            "available" => {}
            "leased" | "breaking" | "broken" | "expired" => {
                act(&bench, "acquire A").await.unwrap();
            }
            other => panic!("{other} is no state"),
        }
        match state {
            "breaking" => _ = act(&bench, "break 30").await.unwrap(),
            "broken" => _ = act(&bench, "break 0").await.unwrap(),
            "expired" => bench.advance(61).await,
            _ => {}
        }
        assert_eq!(shown(&bench).await, state);
        bench
    }

    async fn shown(bench: &Bench) -> String {
        let told = bench.call("HEAD", SHARE, &[], b"").await.unwrap();
        header(&told, "x-ms-lease-state").unwrap().to_owned()
    }

    fn code(result: Result<Reply, Failure>) -> String {
        match result {
            Ok(reply) => reply.status.as_u16().to_string(),
            Err(failure) => {
                let error = ErrorReply::from(refusal::<Reply, _>(Err(failure)));
                format!("{} {}", error.status, error.code)
            }
        }
    }

    const MISSING: &str = "412 LeaseIdMissing";
    const MISMATCH: &str = "412 LeaseIdMismatchWithContainerOperation";
    const NONE: &str = "412 LeaseNotPresentWithContainerOperation";

    /// The use of a share, by the state of its lease: the published table.
    #[tokio::test]
    async fn use_of_a_share_by_its_lease() {
        let metadata = ("PUT", "share?restype=share&comp=metadata");
        let acl = ("PUT", "share?restype=share&comp=acl");
        let properties = ("PUT", "share?restype=share&comp=properties");
        let reads = ["", "&comp=metadata", "&comp=acl", "&comp=stats"].map(|query| format!("{SHARE}{query}"));
        let reads: Vec<(&str, &str)> = reads.iter().map(|url| ("GET", url.as_str())).collect();
        let sets = [metadata, acl, properties];
        let delete = [("DELETE", SHARE)];
        type Row<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, [&'a str; 5]);
        let rows: [Row<'_>; 9] = [
            (&delete, Some(A), [NONE, "202", "202", NONE, NONE]),
            (&delete, Some(B), [NONE, MISMATCH, MISMATCH, NONE, NONE]),
            (&delete, None, ["202", MISSING, MISSING, "202", "202"]),
            (&reads, Some(A), [NONE, "200", "200", NONE, NONE]),
            (&reads, Some(B), [NONE, MISMATCH, MISMATCH, NONE, NONE]),
            (&reads, None, ["200"; 5]),
            (&sets, Some(A), [NONE, "200", "200", NONE, NONE]),
            (&sets, Some(B), [NONE, MISMATCH, MISMATCH, NONE, NONE]),
            (&sets, None, ["200", MISSING, MISSING, "200", "200"]),
        ];
        for (uses, id, cells) in rows {
            for (state, expected) in STATES.into_iter().zip(cells) {
                for (method, url) in uses {
                    let bench = in_state(state).await;
                    let lease = id.map(|id| ("x-ms-lease-id", id));
                    let answer = code(bench.call(method, url, lease.as_slice(), b"").await);
                    assert_eq!(answer, expected, "{method} {url} with {id:?} while {state}");
                }
            }
        }
    }

    const PRESENT: &str = "409 LeaseAlreadyPresent";
    const WRONG: &str = "409 LeaseIdMismatchWithLeaseOperation";
    const NO_LEASE: &str = "409 LeaseNotPresentWithLeaseOperation";
    const NO_ACQUIRE: &str = "409 LeaseIsBreakingAndCannotBeAcquired";
    const NO_CHANGE: &str = "409 LeaseIsBreakingAndCannotBeChanged";
    const NO_RENEWAL: &str = "409 LeaseIsBrokenAndCannotBeRenewed";

    /// The five actions, by the state of the lease: the published table. A success is told by the state that follows.
    #[tokio::test]
    async fn actions_on_the_lease() {
        let table: [(&str, [&str; 5]); 12] = [
            ("acquire", ["201 leased", PRESENT, PRESENT, "201 leased", "201 leased"]),
            ("acquire A", ["201 leased", "201 leased", NO_ACQUIRE, "201 leased", "201 leased"]),
            ("acquire B", ["201 leased", PRESENT, PRESENT, "201 leased", "201 leased"]),
            ("break 0", [NO_LEASE, "202 broken", "202 broken", "202 broken", "202 broken"]),
            ("break 20", [NO_LEASE, "202 breaking", "202 breaking", "202 broken", "202 broken"]),
            ("change A B", [NO_LEASE, "200 leased", NO_CHANGE, NO_LEASE, NO_LEASE]),
            ("change B A", [NO_LEASE, "200 leased", WRONG, NO_LEASE, NO_LEASE]),
            ("change B C", [NO_LEASE, WRONG, WRONG, NO_LEASE, NO_LEASE]),
            ("renew A", [WRONG, "200 leased", NO_RENEWAL, NO_RENEWAL, "200 leased"]),
            ("renew B", [WRONG, WRONG, WRONG, WRONG, WRONG]),
            ("release A", [WRONG, "200 available", "200 available", "200 available", "200 available"]),
            ("release B", [WRONG, WRONG, WRONG, WRONG, WRONG]),
        ];
        for (words, cells) in table {
            for (state, expected) in STATES.into_iter().zip(cells) {
                let bench = in_state(state).await;
                let before = bench.call("HEAD", SHARE, &[], b"").await.unwrap();
                let answer = act(&bench, words).await;
                let after = bench.call("HEAD", SHARE, &[], b"").await.unwrap();
                assert_eq!(header(&before, "etag"), header(&after, "etag"), "{words} while {state}");
                let answer = match &answer {
                    Ok(_) => format!("{} {}", code(answer), shown(&bench).await),
                    Err(_) => {
                        assert_eq!(shown(&bench).await, state, "{words} while {state}");
                        code(answer)
                    }
                };
                assert_eq!(answer, expected, "{words} while {state}");
            }
        }
    }

    #[tokio::test]
    async fn what_time_does() {
        let bench = in_state("leased").await;
        bench.advance(59).await;
        assert_eq!(shown(&bench).await, "leased");
        bench.advance(2).await;
        assert_eq!(shown(&bench).await, "expired");
        let bench = in_state("breaking").await;
        bench.advance(29).await;
        assert_eq!(shown(&bench).await, "breaking");
        bench.advance(2).await;
        assert_eq!(shown(&bench).await, "broken");
        // A new acquisition by the holder begins the time anew.
        let bench = in_state("leased").await;
        bench.advance(50).await;
        act(&bench, "acquire A").await.unwrap();
        bench.advance(50).await;
        assert_eq!(shown(&bench).await, "leased");
    }

    #[tokio::test]
    async fn what_the_answers_tell() {
        let bench = Bench::with_share().await;
        let made = act(&bench, "acquire A").await.unwrap();
        assert_eq!((made.status.as_u16(), header(&made, "x-ms-lease-id")), (201, Some(A)));
        let told = bench.call("HEAD", SHARE, &[], b"").await.unwrap();
        assert_eq!(header(&made, "etag"), header(&told, "etag"));
        assert_eq!(header(&told, "x-ms-lease-duration"), Some("fixed"));
        assert_eq!(header(&told, "x-ms-lease-status"), Some("locked"));
        assert_eq!(header(&act(&bench, "change A B").await.unwrap(), "x-ms-lease-id"), Some(B));
        assert_eq!(header(&act(&bench, "renew B").await.unwrap(), "x-ms-lease-id"), Some(B));
        assert_eq!(header(&act(&bench, "break 20").await.unwrap(), "x-ms-lease-time"), Some("20"));
        assert_eq!(header(&act(&bench, "release B").await.unwrap(), "x-ms-lease-id"), None);
    }

    #[tokio::test]
    async fn each_refusal_of_the_request_and_two_at_once() {
        let bench = Bench::new();
        let lease = async |query: &str, headers: &[(&str, &str)]| {
            refusal(bench.call("PUT", &format!("{URL}{query}"), headers, b"").await)
        };
        let acquire = |seconds| [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", seconds)];
        assert_eq!(lease("", &acquire("15")).await, FileError::ShareNotFound);
        for seconds in ["0", "14", "61", "-2", "x"] {
            assert_eq!(lease("", &acquire(seconds)).await, FileError::header("x-ms-lease-duration", seconds));
        }
        let snapshot = "&sharesnapshot=2026-11-15T18:00:00.0000000Z";
        bench.call("PUT", SHARE, &[], b"").await.unwrap();
        assert_eq!(lease(snapshot, &acquire("15")).await, FileError::ShareNotFound);
        let named = [acquire("15")[0], acquire("15")[1], ("x-ms-proposed-lease-id", "me")];
        assert_eq!(lease("", &named).await, FileError::header("x-ms-proposed-lease-id", "me"));
        let conditional = [acquire("15")[0], acquire("15")[1], ("if-match", "*")];
        assert_eq!(lease("", &conditional).await, FileError::ConditionHeadersNotSupported);
        assert_eq!(shown(&bench).await, "available");
    }
}
