//! One node of many serves SMB: the owner. Opens, locks and watches live in its memory.
//!
//! - [`rows`]: the row of the owner, and the marks of the shares that SMB uses.
//! - [`rules`]: who becomes the owner, and what a decision on a share may do.
//! - [`fence`]: the engine that asks those rules before every decision and read.
//! - [`shares`]: marks, from the first tree connect until a minute after the last tree is gone.
//!
//! What always holds:
//!
//! - A share without a mark has no SMB opens, anywhere: any node decides on it.
//! - Nothing is committed to a share with a mark, except by the term that the mark names, or together with the removal of the mark after
//!   that term has ended. So a former owner that only stood still commits nothing once another node has.
//! - A server that is alone has none of this: it is the owner, and reads no row of it.

pub mod fence;
pub mod rows;
pub mod rules;
pub mod shares;

use std::sync::{Mutex, MutexGuard, PoisonError};

use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, EngineError, Rows, Tick};
use service::{codec, unrefused};
use tokio::sync::watch;

pub use fence::{FencedEngine, Protected, RestPort};
pub use rows::{NodeAddress, Owner, TermId};
pub use rules::{RENEWAL_PAUSE, TERM, TERM_MARGIN};
use shares::MarkedShares;

/// What a node knows of its own part: whether it is the owner, and which shares its SMB clients use.
#[derive(Debug, Default)]
pub struct Ownership {
    term: Mutex<Option<TermId>>,
    /// The term in which a decision was refused because other nodes have taken this one for gone.
    lost: watch::Sender<Option<TermId>>,
    shares: Mutex<MarkedShares>,
}

impl Ownership {
    /// The term of this node, if it is the owner.
    pub fn term(&self) -> Option<TermId> {
        *self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A term of this node begins; or it has ended.
    pub fn set_term(&self, term: Option<TermId>) {
        *self.term.lock().unwrap_or_else(PoisonError::into_inner) = term;
        self.shares().keep_those_of(term);
    }

    /// Resolves when other nodes have taken this owner for gone.
    pub async fn term_lost(&self, term: TermId) {
        // The sender lives as long as this, so waiting cannot fail.
        let _ = self.lost.subscribe().wait_for(|lost| *lost == Some(term)).await;
    }

    fn lost(&self, term: TermId) {
        if self.term() == Some(term) {
            self.lost.send_replace(Some(term));
        }
    }

    fn shares(&self) -> MutexGuard<'_, MarkedShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who the owner is now, if there is one.
pub async fn find(engine: &dyn Engine) -> Result<Option<Owner>, EngineError> {
    let find = |rows: &dyn Rows, now: Timestamp| Ok(rows::find_owner(rows)?.filter(|owner| owner.is_alive(now)));
    unrefused(engine::read(engine, find).await)
}

/// Begins a term, unless another node is the owner: then that one is told.
pub async fn take(
    engine: &dyn Engine,
    id: TermId,
    former: Option<TermId>,
    address: NodeAddress,
) -> Result<Result<Owner, Owner>, EngineError> {
    decide(engine, move |found, now| match rules::take(found, id, former, &address, now) {
        Ok(owner) => (Some(Some(owner.clone())), Ok(owner)),
        Err(other) => (None, Err(other)),
    })
    .await
}

/// Goes on with a term. `None`: it has ended.
pub async fn renew(engine: &dyn Engine, id: TermId) -> Result<Option<Owner>, EngineError> {
    decide(engine, move |found, now| match rules::renew(found, id, now) {
        Some(owner) => (Some(Some(owner.clone())), Some(owner)),
        None => (None, None),
    })
    .await
}

/// Ends a term before its time.
pub async fn release(engine: &dyn Engine, id: TermId) -> Result<(), EngineError> {
    decide(engine, move |found, _| (found.is_some_and(|owner| owner.id == id).then_some(None), ())).await
}

/// Decides on the row of the owner. `change` answers the row as it is to be (`Some(None)`: gone; `None`: as it is) and an outcome.
async fn decide<T: Send + 'static>(
    engine: &dyn Engine,
    change: impl Fn(Option<Owner>, Timestamp) -> (Option<Option<Owner>>, T) + Send + 'static,
) -> Result<T, EngineError> {
    let decided = engine::commit(engine, rows::owner_key(), move |rows, tick: Tick| {
        let (row, outcome) = change(rows::find_owner(rows)?, tick.now);
        let mut changes = Changes::none();
        match row {
            Some(Some(owner)) => _ = changes.put(rows::owner_key(), codec::encode(&owner)),
            Some(None) => _ = changes.delete(rows::owner_key()),
            None => {}
        }
        Ok(Commit { changes, outcome })
    });
    unrefused(decided.await)
}

#[cfg(test)]
mod tests;
