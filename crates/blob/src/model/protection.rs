//! What protects a state of a blob: a legal hold, and a policy until its date.
//!
//! Whether anything in a container is protected is asked when the container is to be deleted. So each protection has a row
//! by container generation and end, written in the commit that changes it; what is over stands before the time of asking.

use concurrency::Timestamp;
use engine::{Changes, Key, KeyReader};
use minicbor::{Decode, Encode};
use service::{codec, space};

use super::blob::Committed;

/// What protects one state of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Protection {
    /// The container that its rows name.
    #[n(0)]
    pub generation: u64,
    #[n(1)]
    pub policy: Option<Policy>,
    /// `None`: no legal hold was ever set or cleared.
    #[n(2)]
    pub legal_hold: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Policy {
    #[cbor(n(0), with = "codec::time")]
    pub until: Timestamp,
    #[n(1)]
    pub mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum Mode {
    #[default]
    #[n(0)]
    Unlocked,
    #[n(1)]
    Locked,
}

impl Mode {
    /// As the service tells it; clients write it with a capital.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Unlocked => "unlocked",
            Mode::Locked => "locked",
        }
    }
}

impl Protection {
    pub fn new(policy: Option<Policy>, legal_hold: Option<bool>) -> Option<Protection> {
        let is_said = policy.is_some() || legal_hold.is_some();
        is_said.then_some(Protection { generation: 0, policy, legal_hold })
    }

    /// The same for a blob of this container.
    pub fn within(self, generation: u64) -> Protection {
        Protection { generation, ..self }
    }

    /// The rows that say when it ends, of the state that is called `version`.
    pub fn rows(&self, version: u64) -> impl Iterator<Item = Key> {
        let hold = (self.legal_hold == Some(true)).then_some(NEVER);
        let ends = [self.policy.map(|policy| policy.until), hold];
        let generation = self.generation;
        ends.into_iter().flatten().map(move |end| rows_of(generation).number(end.0).number(version))
    }
}

/// The end of a hold.
pub const NEVER: Timestamp = Timestamp(u64::MAX);

pub fn rows_of(generation: u64) -> Key {
    Key::new(space::PROTECTED).number(generation)
}

/// The protection of the state called `version` becomes another, or goes, or comes.
pub fn project(before: Option<&Protection>, after: Option<&Protection>, version: u64, changes: &mut Changes) {
    if before == after {
        return;
    }
    for row in before.into_iter().flat_map(|protection| protection.rows(version)) {
        changes.delete(row);
    }
    for row in after.into_iter().flat_map(|protection| protection.rows(version)) {
        changes.put(row, bytes::Bytes::new());
    }
}

/// A new state takes its place at the key of its blob.
pub fn enter(state: &mut Committed, blob: &Key, changes: &mut Changes) {
    let generation = KeyReader::new(blob.as_bytes()).number();
    if let (Some(protection), Some(generation)) = (state.protection, generation) {
        state.protection = Some(protection.within(generation));
        project(None, state.protection.as_ref(), state.version, changes);
    }
}

/// What protects `current` goes over to `previous`, the version that it has been until now.
pub fn pass_on(current: &mut Committed, previous: &mut Committed, changes: &mut Changes) {
    let protection = current.protection.take();
    project(protection.as_ref(), None, current.version, changes);
    project(None, protection.as_ref(), previous.version, changes);
    previous.protection = protection;
}
