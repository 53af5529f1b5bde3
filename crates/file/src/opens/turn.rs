//! Turns: one operation at a time looks at the rows behind a name and then at the table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::{Opens, Refusal, TURNS_PER_NAME_MAX};

/// Far more than cores, so that operations on different directories rarely meet.
const SHARDS: u64 = 64;

/// A name in a directory. Ids of directories are unique in the whole store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameKey {
    pub directory: u64,
    /// The name as names are compared.
    pub folded: Arc<str>,
}

/// The right to look at the rows behind a name, or two, and then at the table: for an SMB CREATE and for every REST
/// operation that changes what openers look at. Dropped, the next one waiting has it.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct Turn {
    _first: Held,
    _second: Option<Held>,
}

#[derive(Debug)]
struct Held {
    /// Released before the seat is given up: fields are dropped in order.
    _lock: OwnedMutexGuard<()>,
    _seat: Seat,
}

/// One that has the turn or waits for it. The queue of a name exists while there is a seat.
#[derive(Debug)]
struct Seat {
    turns: Arc<Turns>,
    name: NameKey,
}

#[derive(Debug)]
pub(super) struct Turns {
    shards: Vec<Mutex<HashMap<NameKey, Queue>>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Tokio's mutex is fair: those who wait have it in the order in which they came.
    lock: Arc<tokio::sync::Mutex<()>>,
    seats: usize,
}

impl Opens {
    /// Waits for the turn at a name. Dropping the future leaves the queue.
    ///
    /// The only refusal is [`Refusal::TooMany`].
    pub async fn turn(&self, name: NameKey) -> Result<Turn, Refusal> {
        Ok(Turn { _first: self.turns.take(name).await?, _second: None })
    }

    /// Waits for the turn at the name of a file that is deleted because its last handle closed. It is never refused: those who
    /// wait, however many, must not keep the file from being deleted, and each file is deleted once.
    pub async fn turn_to_remove(&self, name: NameKey) -> Turn {
        let (seat, lock, _) = self.turns.sit(name);
        Turn { _first: Held { _lock: lock.lock_owned().await, _seat: seat }, _second: None }
    }

    /// Waits for the turn at both names of a rename. They are taken in order, so two renames never wait for each other.
    pub async fn turn_at_both(&self, one: NameKey, other: NameKey) -> Result<Turn, Refusal> {
        if one == other {
            return self.turn(one).await;
        }
        let (first, second) = if one < other { (one, other) } else { (other, one) };
        let first = self.turns.take(first).await?;
        Ok(Turn { _first: first, _second: Some(self.turns.take(second).await?) })
    }
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Turns {
    async fn take(self: &Arc<Turns>, name: NameKey) -> Result<Held, Refusal> {
        let (seat, lock, seats) = self.sit(name);
        if seats > TURNS_PER_NAME_MAX {
            return Err(Refusal::TooMany);
        }
        Ok(Held { _lock: lock.lock_owned().await, _seat: seat })
    }

    /// A seat, what to wait for, and how many seats there are now.
    fn sit(self: &Arc<Turns>, name: NameKey) -> (Seat, Arc<tokio::sync::Mutex<()>>, usize) {
        let mut shard = self.shard(&name);
        let queue = shard.entry(name.clone()).or_default();
        queue.seats += 1;
        let (lock, seats) = (Arc::clone(&queue.lock), queue.seats);
        (Seat { turns: Arc::clone(self), name }, lock, seats)
    }

    fn shard(&self, name: &NameKey) -> MutexGuard<'_, HashMap<NameKey, Queue>> {
        self.shards[(name.directory % SHARDS) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut shard = self.turns.shard(&self.name);
        let queue = shard.get_mut(&self.name).expect("a queue exists while it has a seat");
        queue.seats -= 1;
        if queue.seats == 0 {
            shard.remove(&self.name);
        }
    }
}
