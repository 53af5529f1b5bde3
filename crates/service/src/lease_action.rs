//! The actions of Lease Container, Lease Blob, Lease Share and Lease File: what they take and what they answer.

use concurrency::{BreakPeriod, Lease, LeaseDuration, LeaseId, LeaseRefusal};
use engine::Tick;
use wire::http::{Head, HeaderValue, Reply, StatusCode};

use crate::{RequestError, reply, request};

/// The leases that a resource can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseKind {
    /// Of containers, blobs and shares: for 15 to 60 seconds or without end. They can be renewed, and a break may take time.
    Timed,
    /// Of files: without end. There is nothing to renew, and a break is done at once.
    Infinite,
}

/// What a lease operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseAction {
    Acquire { duration: LeaseDuration, proposed: Option<LeaseId> },
    Renew { id: LeaseId },
    Change { id: LeaseId, proposed: LeaseId },
    Release { id: LeaseId },
    Break { period: Option<BreakPeriod> },
}

/// What has become of the lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseOutcome {
    Acquired(LeaseId),
    Kept(LeaseId),
    Released,
    /// Whole seconds until a new lease can be taken.
    Breaking(u64),
}

impl LeaseAction {
    pub fn parse(head: &Head, kind: LeaseKind) -> Result<LeaseAction, RequestError> {
        const ACTION: &str = "x-ms-lease-action";
        let action = request::required(head, ACTION)?;
        Ok(match action.to_ascii_lowercase().as_str() {
            "acquire" => {
                LeaseAction::Acquire { duration: duration(head, kind)?, proposed: request::guid(head, PROPOSED)? }
            }
            "renew" if kind == LeaseKind::Timed => LeaseAction::Renew { id: held(head)? },
            "change" => LeaseAction::Change { id: held(head)?, proposed: proposed(head)? },
            "release" => LeaseAction::Release { id: held(head)? },
            "break" => LeaseAction::Break { period: break_period(head, kind)? },
            _ => return Err(RequestError::header(ACTION, action)),
        })
    }

    /// The lease as it becomes, and what to tell.
    pub fn decide(&self, lease: &Lease, tick: Tick) -> Result<(Lease, LeaseOutcome), LeaseRefusal> {
        let now = tick.now;
        Ok(match *self {
            LeaseAction::Acquire { duration, proposed } => {
                let fresh = fresh_id(tick.entropy);
                (lease.acquire(proposed, fresh, duration, now)?, LeaseOutcome::Acquired(proposed.unwrap_or(fresh)))
            }
            LeaseAction::Renew { id } => (lease.renew(id, now)?, LeaseOutcome::Kept(id)),
            LeaseAction::Change { id, proposed } => (lease.change(id, proposed, now)?, LeaseOutcome::Kept(proposed)),
            LeaseAction::Release { id } => (lease.release(id, now)?, LeaseOutcome::Released),
            LeaseAction::Break { period } => {
                let (lease, seconds) = lease.break_(period, now)?;
                (lease, LeaseOutcome::Breaking(seconds))
            }
        })
    }
}

impl LeaseOutcome {
    pub fn answer(self) -> Reply {
        let status = match self {
            LeaseOutcome::Acquired(_) => StatusCode::CREATED,
            LeaseOutcome::Kept(_) | LeaseOutcome::Released => StatusCode::OK,
            LeaseOutcome::Breaking(_) => StatusCode::ACCEPTED,
        };
        let mut answer = reply::reply(status);
        match self {
            LeaseOutcome::Acquired(id) | LeaseOutcome::Kept(id) => reply::set_lease_id(&mut answer.headers, id),
            LeaseOutcome::Released => {}
            LeaseOutcome::Breaking(seconds) => {
                _ = answer.headers.insert(&reply::LEASE_TIME, HeaderValue::from(seconds))
            }
        }
        answer
    }
}

const PROPOSED: &str = "x-ms-proposed-lease-id";

fn held(head: &Head) -> Result<LeaseId, RequestError> {
    request::lease_id(head)?.ok_or(RequestError::MissingRequiredHeader { name: "x-ms-lease-id" })
}

fn proposed(head: &Head) -> Result<LeaseId, RequestError> {
    request::guid(head, PROPOSED)?.ok_or(RequestError::MissingRequiredHeader { name: PROPOSED })
}

fn duration(head: &Head, kind: LeaseKind) -> Result<LeaseDuration, RequestError> {
    const NAME: &str = "x-ms-lease-duration";
    let value = request::required(head, NAME)?;
    let is_possible = |duration: &LeaseDuration| match kind {
        LeaseKind::Timed => true,
        LeaseKind::Infinite => *duration == LeaseDuration::Infinite,
    };
    let duration = value.parse().ok().and_then(LeaseDuration::from_header_value).filter(is_possible);
    duration.ok_or_else(|| RequestError::header(NAME, value))
}

/// A lease without end that is broken without a period ends at once.
fn break_period(head: &Head, kind: LeaseKind) -> Result<Option<BreakPeriod>, RequestError> {
    const NAME: &str = "x-ms-lease-break-period";
    if kind == LeaseKind::Infinite {
        return Ok(None);
    }
    let Some(value) = request::text(head, NAME)? else { return Ok(None) };
    let period = value.parse().ok().and_then(BreakPeriod::from_header_value);
    period.map(Some).ok_or_else(|| RequestError::header(NAME, value))
}

/// A random GUID, with the bits that say it is one.
fn fresh_id(entropy: u128) -> LeaseId {
    let mut bytes = entropy.to_be_bytes();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    LeaseId(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use concurrency::Timestamp;

    const MINE: LeaseId = LeaseId([1; 16]);
    const YOURS: LeaseId = LeaseId([2; 16]);

    fn tick() -> Tick {
        Tick { now: Timestamp(1_000), stamp: Timestamp(2_000), entropy: 7 }
    }

    const MINE_TEXT: &str = "01010101-0101-0101-0101-010101010101";
    const YOURS_TEXT: &str = "02020202-0202-0202-0202-020202020202";

    fn parse(headers: &[(&str, &str)]) -> Result<LeaseAction, RequestError> {
        LeaseAction::parse(&request("PUT", "cont/blob?comp=lease", headers), LeaseKind::Timed)
    }

    #[test]
    fn leases_of_files_have_no_time() {
        let parse = |headers: &[(&str, &str)]| {
            LeaseAction::parse(&request("PUT", "share/file?comp=lease", headers), LeaseKind::Infinite)
        };
        let action = |name| ("x-ms-lease-action", name);
        let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
        assert_eq!(parse(&[action("acquire"), ("x-ms-lease-duration", "-1")]), Ok(acquire));
        let timed = parse(&[action("acquire"), ("x-ms-lease-duration", "15")]);
        assert_eq!(timed, Err(RequestError::header("x-ms-lease-duration", "15")));
        let renew = parse(&[action("renew"), ("x-ms-lease-id", MINE_TEXT)]);
        assert_eq!(renew, Err(RequestError::header("x-ms-lease-action", "renew")));
        let broken = parse(&[action("break"), ("x-ms-lease-break-period", "30")]).unwrap();
        let (held, _) = acquire.decide(&Lease::Available, tick()).unwrap();
        let (lease, outcome) = broken.decide(&held, tick()).unwrap();
        assert_eq!((lease.is_locked(tick().now), outcome), (false, LeaseOutcome::Breaking(0)));
        let answer = outcome.answer();
        assert_eq!((answer.status.as_u16(), &answer.headers["x-ms-lease-time"]), (202, &HeaderValue::from(0)));
    }

    #[test]
    fn each_action_takes_its_headers() {
        let action = |name| ("x-ms-lease-action", name);
        let (mine, yours) = (("x-ms-lease-id", MINE_TEXT), (PROPOSED, YOURS_TEXT));
        let infinite = ("x-ms-lease-duration", "-1");
        let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
        assert_eq!(parse(&[action("acquire"), infinite]), Ok(acquire));
        let acquire = LeaseAction::Acquire { duration: LeaseDuration::Seconds(15), proposed: Some(YOURS) };
        assert_eq!(parse(&[action("Acquire"), ("x-ms-lease-duration", "15"), yours]), Ok(acquire));
        assert_eq!(parse(&[action("renew"), mine]), Ok(LeaseAction::Renew { id: MINE }));
        assert_eq!(parse(&[action("change"), mine, yours]), Ok(LeaseAction::Change { id: MINE, proposed: YOURS }));
        assert_eq!(parse(&[action("release"), mine]), Ok(LeaseAction::Release { id: MINE }));
        assert_eq!(parse(&[action("break"), mine]), Ok(LeaseAction::Break { period: None }));
        let missing = |name| Err(RequestError::MissingRequiredHeader { name });
        assert_eq!(parse(&[]), missing("x-ms-lease-action"));
        assert_eq!(parse(&[action("acquire")]), missing("x-ms-lease-duration"));
        assert_eq!(parse(&[action("renew")]), missing("x-ms-lease-id"));
        assert_eq!(parse(&[action("change"), mine]), missing(PROPOSED));
        assert_eq!(parse(&[action("steal")]), Err(RequestError::header("x-ms-lease-action", "steal")));
        for duration in ["0", "14", "61", "-2", "x"] {
            let refused = parse(&[action("acquire"), ("x-ms-lease-duration", duration)]);
            assert_eq!(refused, Err(RequestError::header("x-ms-lease-duration", duration)));
        }
        for period in ["61", "-1", "x"] {
            let refused = parse(&[action("break"), ("x-ms-lease-break-period", period)]);
            assert_eq!(refused, Err(RequestError::header("x-ms-lease-break-period", period)));
        }
    }

    #[test]
    fn an_id_is_made_where_none_is_proposed() {
        let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
        let (lease, told) = acquire.decide(&Lease::Available, tick()).unwrap();
        let LeaseOutcome::Acquired(id) = told else { panic!("{told:?}") };
        assert_eq!(lease.holder(tick().now), Some(id));
        assert_eq!(&id.to_string()[14..15], "4");
    }
}
