//! Who serves SMB, and what a decision on a share may do: pure functions of the rows.

use std::time::Duration;

use concurrency::Timestamp;

use super::rows::{NodeAddress, Owner, ShareMark, TermId};

/// How long a node is the owner after it has said so.
pub const TERM: Duration = Duration::from_secs(15);
/// How often it says so.
pub const RENEWAL_PAUSE: Duration = Duration::from_secs(5);
/// An owner that could not say so serves no SMB this long before its term ends.
pub const TERM_MARGIN: Duration = Duration::from_secs(3);

fn after_term(now: Timestamp) -> Timestamp {
    now.plus_seconds(TERM.as_secs())
}

/// The row of the node `id`, which wants to begin a term or to go on with it. `Err`: the owner that it has to wait for.
///
/// `former` is a term of the same node that has ended: the node need not wait for itself.
pub fn take(
    found: Option<Owner>,
    id: TermId,
    former: Option<TermId>,
    address: &NodeAddress,
    now: Timestamp,
) -> Result<Owner, Owner> {
    match found {
        Some(owner) if owner.is_alive(now) && owner.id != id && Some(owner.id) != former => Err(owner),
        Some(_) | None => Ok(Owner { id, address: address.clone(), until: after_term(now) }),
    }
}

/// Goes on with a term. `None`: it has ended, and may have been another node's turn since.
pub fn renew(found: Option<Owner>, id: TermId, now: Timestamp) -> Option<Owner> {
    let owner = found.filter(|owner| owner.id == id && owner.is_alive(now))?;
    Some(Owner { until: after_term(now), ..owner })
}

/// Whose decision or read it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// A REST request's. `own` is the term of this node, if it is the owner.
    Rest { own: Option<TermId> },
    /// An SMB client's, connected in this term. `None`: in no term, so nothing is allowed.
    Smb { term: Option<TermId> },
}

/// What becomes of a decision or read on a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    GoesOn,
    /// The mark is that of an owner that is gone. Who changes something removes the mark with it, so that the former owner, should it
    /// only have stood still, commits nothing more.
    GoesOnAndFences,
    /// Another node has the table of opens of this share.
    Elsewhere(NodeAddress),
    /// The term has ended in which the client connected.
    Deposed,
}

/// Judges by the mark of the share. `owner` is asked for only if that is needed; an owner whose term is over is none.
pub fn judge<E>(
    side: Side,
    mark: Option<ShareMark>,
    now: Timestamp,
    owner: impl FnOnce() -> Result<Option<Owner>, E>,
) -> Result<Judgement, E> {
    let named = mark.map(|mark| mark.owner);
    Ok(match (side, named) {
        (Side::Smb { term }, named) => match term.is_some() && term == named {
            true => Judgement::GoesOn,
            false => Judgement::Deposed,
        },
        (Side::Rest { .. }, None) => Judgement::GoesOn,
        (Side::Rest { own }, Some(named)) if own == Some(named) => Judgement::GoesOn,
        (Side::Rest { .. }, Some(named)) => match owner()?.filter(|owner| owner.id == named && owner.is_alive(now)) {
            Some(owner) => Judgement::Elsewhere(owner.address),
            None => Judgement::GoesOnAndFences,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000_000);

    fn term(number: u128) -> TermId {
        TermId::new(number)
    }

    fn address(host: &str) -> NodeAddress {
        NodeAddress { host: host.into(), smb_port: 445, https: false, file_port: Some(10_004), blob_port: None }
    }

    fn owner(id: u128, until: Timestamp) -> Owner {
        Owner { id: term(id), address: address(&format!("node{id}")), until }
    }

    fn mark(owner: u128) -> Option<ShareMark> {
        Some(ShareMark { owner: term(owner), stamp: Timestamp(1) })
    }

    const SECOND: u64 = Timestamp::TICKS_PER_SECOND;

    #[test]
    fn a_place_is_taken_when_it_is_free_or_its_term_is_over() {
        let (mine, taken) = (address("node1"), owner(1, after_term(NOW)));
        assert_eq!(taken.until, Timestamp(NOW.0 + 15 * SECOND));
        let take = |found, former| take(found, term(1), former, &mine, NOW);
        assert_eq!(take(None, None), Ok(taken.clone()));
        for (until, is_free) in [(NOW.0 - SECOND, true), (NOW.0, true), (NOW.0 + 1, false), (NOW.0 + SECOND, false)] {
            let other = owner(2, Timestamp(until));
            let expected = if is_free { Ok(taken.clone()) } else { Err(other.clone()) };
            assert_eq!(take(Some(other.clone()), None), expected, "{until}");
            assert_eq!(take(Some(other.clone()), Some(term(3))), expected, "{until}");
            assert_eq!(take(Some(other), Some(term(2))), Ok(taken.clone()), "a node does not wait for itself");
        }
        assert_eq!(take(Some(owner(1, after_term(NOW))), None), Ok(taken));
    }

    #[test]
    fn only_a_term_that_lasts_goes_on() {
        let alive = |id| Some(owner(id, Timestamp(NOW.0 + 1)));
        assert_eq!(renew(alive(1), term(1), NOW), Some(owner(1, after_term(NOW))));
        assert_eq!(renew(alive(2), term(1), NOW), None);
        assert_eq!(renew(Some(owner(1, NOW)), term(1), NOW), None, "another node may have looked");
        assert_eq!(renew(None, term(1), NOW), None);
    }

    /// Whose mark the share has x which owner there is x who asks. 1 is this node, 2 another one, 3 a third.
    #[test]
    fn every_state_of_a_share() {
        let alive = |id| Some(owner(id, Timestamp(NOW.0 + 1)));
        let expired = |id| Some(owner(id, NOW));
        let rest = Side::Rest { own: None };
        let at_owner = Side::Rest { own: Some(term(1)) };
        let (smb, former) = (Side::Smb { term: Some(term(1)) }, Side::Smb { term: None });
        use Judgement::{Deposed, GoesOn, GoesOnAndFences as Fences};
        let elsewhere = |id: u128| Judgement::Elsewhere(address(&format!("node{id}")));
        for (what, mark, owner, expected) in [
            ("nobody uses it", None, None, [GoesOn, GoesOn, Deposed]),
            ("nobody uses it, 1 is the owner", None, alive(1), [GoesOn, GoesOn, Deposed]),
            ("nobody uses it, 2 is the owner", None, alive(2), [GoesOn, GoesOn, Deposed]),
            ("1 uses it and lives", mark(1), alive(1), [elsewhere(1), GoesOn, GoesOn]),
            // Nobody has acted on the share since: what the former owner still does hurts nobody.
            ("1 uses it, its term is over", mark(1), expired(1), [Fences, GoesOn, GoesOn]),
            ("1 uses it, there is no owner", mark(1), None, [Fences, GoesOn, GoesOn]),
            ("1 uses it, 2 has taken over", mark(1), alive(2), [Fences, GoesOn, GoesOn]),
            ("2 uses it and lives", mark(2), alive(2), [elsewhere(2), elsewhere(2), Deposed]),
            ("2 uses it, its term is over", mark(2), expired(2), [Fences, Fences, Deposed]),
            ("2 uses it, there is no owner", mark(2), None, [Fences, Fences, Deposed]),
            ("2 uses it, 1 has taken over", mark(2), alive(1), [Fences, Fences, Deposed]),
            ("2 uses it, 3 has taken over", mark(2), alive(3), [Fences, Fences, Deposed]),
        ] {
            let judge = |side| super::judge::<()>(side, mark, NOW, || Ok(owner.clone())).unwrap();
            assert_eq!([rest, at_owner, smb].map(judge), expected, "{what}");
            assert_eq!(judge(former), Deposed, "{what}");
        }
    }

    #[test]
    fn the_owner_is_asked_for_only_where_another_node_is_named() {
        let unasked = || -> Result<Option<Owner>, ()> { panic!("it was asked for") };
        for (side, mark) in [
            (Side::Rest { own: None }, None),
            (Side::Rest { own: Some(term(1)) }, None),
            (Side::Rest { own: Some(term(1)) }, mark(1)),
            (Side::Smb { term: Some(term(1)) }, mark(1)),
            (Side::Smb { term: Some(term(1)) }, mark(2)),
            (Side::Smb { term: Some(term(1)) }, None),
        ] {
            judge(side, mark, NOW, unasked).unwrap();
        }
    }
}
