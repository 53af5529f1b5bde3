//! Operations as values: what is asked for, without the protocol that asks.
//!
//! A protocol builds the value: HTTP parses it from a request, `--create` fills it in. [`commit`] and [`read`] take it to
//! the engine, and the protocol writes its reply from the outcome. So Azure's rules for an operation are in one pure
//! function, and every protocol gets the same ones.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, Key, Partitions, Rows, Stop, Tick};

use crate::Failure;

/// An operation that may change something. It names its resource inside an account; which account is the caller's to say.
pub trait Operation: Send + Sync + 'static {
    /// What has become of it.
    type Outcome: Send + 'static;
    type Refusal: Send + 'static;

    /// The partition of the engine in which the operation is decided.
    fn partition(&self, account: u64) -> Key;

    /// All partitions in which it changes something: mostly that one alone.
    fn partitions(&self, account: u64) -> Partitions {
        self.partition(account).into()
    }

    /// The rules of the operation: looks at what is stored and writes down what changes. It may run more than once, so it
    /// must be a pure function of its arguments; after a refusal the changes are thrown away.
    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Self::Outcome, Stop<Self::Refusal>>;
}

/// An operation that changes nothing.
pub trait ReadOperation: Send + Sync + 'static {
    type Outcome: Send + 'static;
    type Refusal: Send + 'static;

    /// The rules of the operation, on one state of the store. It may run more than once.
    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Self::Outcome, Stop<Self::Refusal>>;
}

/// Decides an operation in its turn and commits what it changes.
pub async fn commit<O: Operation>(
    engine: &dyn Engine,
    account: u64,
    operation: &Arc<O>,
) -> Result<O::Outcome, Failure<O::Refusal>> {
    let operation = Arc::clone(operation);
    let decided = engine::commit(engine, operation.partitions(account), move |rows, tick| {
        let mut changes = Changes::none();
        let outcome = operation.apply(rows, account, tick, &mut changes)?;
        Ok(Commit { changes, outcome })
    });
    Ok(decided.await?)
}

/// Runs an operation that changes nothing on the newest durable state.
pub async fn read<O: ReadOperation>(
    engine: &dyn Engine,
    account: u64,
    operation: &Arc<O>,
) -> Result<O::Outcome, Failure<O::Refusal>> {
    let operation = Arc::clone(operation);
    Ok(engine::read(engine, move |rows, now| operation.apply(rows, account, now)).await?)
}
