//! The five actions of Lease Blob and Lease Container: what they take and what they answer.

use concurrency::{BreakPeriod, Lease, LeaseDuration, LeaseId, LeaseRefusal};
use engine::Tick;
use service::RequestError;
use wire::http::{Head, HeaderValue, Reply, StatusCode};

use crate::error::BlobError;
use crate::{reply, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseAction {
    Acquire { duration: LeaseDuration, proposed: Option<LeaseId> },
    Renew { id: LeaseId },
    Change { id: LeaseId, proposed: LeaseId },
    Release { id: LeaseId },
    Break { period: Option<BreakPeriod> },
}

/// What the client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    Acquired(LeaseId),
    Kept(LeaseId),
    Released,
    /// Whole seconds until a new lease can be taken.
    Breaking(u64),
}

impl LeaseAction {
    pub fn parse(head: &Head) -> Result<LeaseAction, BlobError> {
        const ACTION: &str = "x-ms-lease-action";
        let action = request::required(head, ACTION)?;
        Ok(match action.to_ascii_lowercase().as_str() {
            "acquire" => LeaseAction::Acquire { duration: duration(head)?, proposed: request::guid(head, PROPOSED)? },
            "renew" => LeaseAction::Renew { id: held(head)? },
            "change" => LeaseAction::Change { id: held(head)?, proposed: proposed(head)? },
            "release" => LeaseAction::Release { id: held(head)? },
            "break" => LeaseAction::Break { period: break_period(head)? },
            _ => return Err(BlobError::header(ACTION, action)),
        })
    }

    /// The lease as it becomes, and what to tell.
    pub fn decide(&self, lease: &Lease, tick: Tick) -> Result<(Lease, Told), LeaseRefusal> {
        let now = tick.now;
        Ok(match *self {
            LeaseAction::Acquire { duration, proposed } => {
                let fresh = fresh_id(tick.entropy);
                (lease.acquire(proposed, fresh, duration, now)?, Told::Acquired(proposed.unwrap_or(fresh)))
            }
            LeaseAction::Renew { id } => (lease.renew(id, now)?, Told::Kept(id)),
            LeaseAction::Change { id, proposed } => (lease.change(id, proposed, now)?, Told::Kept(proposed)),
            LeaseAction::Release { id } => (lease.release(id, now)?, Told::Released),
            LeaseAction::Break { period } => {
                let (lease, seconds) = lease.break_(period, now)?;
                (lease, Told::Breaking(seconds))
            }
        })
    }
}

impl Told {
    pub fn answer(self) -> Reply {
        let status = match self {
            Told::Acquired(_) => StatusCode::CREATED,
            Told::Kept(_) | Told::Released => StatusCode::OK,
            Told::Breaking(_) => StatusCode::ACCEPTED,
        };
        let mut answer = reply::reply(status);
        match self {
            Told::Acquired(id) | Told::Kept(id) => reply::set_lease_id(&mut answer.headers, id),
            Told::Released => {}
            Told::Breaking(seconds) => _ = answer.headers.insert(&reply::LEASE_TIME, HeaderValue::from(seconds)),
        }
        answer
    }
}

const PROPOSED: &str = "x-ms-proposed-lease-id";

fn held(head: &Head) -> Result<LeaseId, BlobError> {
    request::lease_id(head)?.ok_or(BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-lease-id" }))
}

fn proposed(head: &Head) -> Result<LeaseId, BlobError> {
    request::guid(head, PROPOSED)?.ok_or(BlobError::Request(RequestError::MissingRequiredHeader { name: PROPOSED }))
}

fn duration(head: &Head) -> Result<LeaseDuration, BlobError> {
    const NAME: &str = "x-ms-lease-duration";
    let value = request::required(head, NAME)?;
    let duration = value.parse().ok().and_then(LeaseDuration::from_header_value);
    duration.ok_or_else(|| BlobError::header(NAME, value))
}

fn break_period(head: &Head) -> Result<Option<BreakPeriod>, BlobError> {
    const NAME: &str = "x-ms-lease-break-period";
    let Some(value) = request::text(head, NAME)? else { return Ok(None) };
    let period = value.parse().ok().and_then(BreakPeriod::from_header_value);
    period.map(Some).ok_or_else(|| BlobError::header(NAME, value))
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
    use crate::testing::{MINE, YOURS, request, tick};

    const MINE_TEXT: &str = "01010101-0101-0101-0101-010101010101";
    const YOURS_TEXT: &str = "02020202-0202-0202-0202-020202020202";

    fn parse(headers: &[(&str, &str)]) -> Result<LeaseAction, BlobError> {
        LeaseAction::parse(&request("PUT", "cont/blob?comp=lease", headers))
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
        let missing = |name| Err(BlobError::Request(RequestError::MissingRequiredHeader { name }));
        assert_eq!(parse(&[]), missing("x-ms-lease-action"));
        assert_eq!(parse(&[action("acquire")]), missing("x-ms-lease-duration"));
        assert_eq!(parse(&[action("renew")]), missing("x-ms-lease-id"));
        assert_eq!(parse(&[action("change"), mine]), missing(PROPOSED));
        assert_eq!(parse(&[action("steal")]), Err(BlobError::header("x-ms-lease-action", "steal")));
        for duration in ["0", "14", "61", "-2", "x"] {
            let refused = parse(&[action("acquire"), ("x-ms-lease-duration", duration)]);
            assert_eq!(refused, Err(BlobError::header("x-ms-lease-duration", duration)));
        }
        for period in ["61", "-1", "x"] {
            let refused = parse(&[action("break"), ("x-ms-lease-break-period", period)]);
            assert_eq!(refused, Err(BlobError::header("x-ms-lease-break-period", period)));
        }
    }

    #[test]
    fn an_id_is_made_where_none_is_proposed() {
        let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
        let (lease, told) = acquire.decide(&Lease::Available, tick()).unwrap();
        let Told::Acquired(id) = told else { panic!("{told:?}") };
        assert_eq!(lease.holder(tick().now), Some(id));
        assert_eq!(&id.to_string()[14..15], "4");
    }
}
