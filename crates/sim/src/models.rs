//! What the objects of the four services are, said as simply as possible.

mod tree;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

use concurrency::{BreakPeriod, Lease, LeaseDuration, LeaseId, Timestamp};
use engine_embedded::virtual_time;
use histories::{Model, Span};

pub use tree::{FileAnswer, FileCall, Path, Tree};

/// Tells apart all that was ever written.
pub type Value = u64;

/// What a client learned from a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told<A> {
    Answer(A),
    /// An error that says that nothing was done.
    NotDone,
}

/// An object of a service. Time moves in whole seconds, so a call happened in one of few.
pub trait Object: Clone + Eq + Hash + Debug + Default {
    type Call: Clone + Debug;
    type Answer: Clone + Debug;

    /// What the object may be after the call, if it was made at `now` and had this answer; nothing if it cannot have had it.
    /// Without an answer: all that it may have led to.
    fn step(&self, call: &Self::Call, answer: Option<&Self::Answer>, now: Timestamp) -> Vec<Self>;

    /// The values that a call would write.
    fn written(call: &Self::Call) -> Vec<Value>;

    /// The values that an answer shows.
    fn seen(answer: &Self::Answer) -> Vec<Value>;
}

/// An object as the checker takes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Judged<O>(O);

impl<O: Object> Judged<O> {
    fn after(&self, call: &O::Call, answer: Option<&O::Answer>, span: Span) -> Vec<Judged<O>> {
        let mut after: Vec<Judged<O>> = Vec::new();
        for second in span.begin..=span.end {
            let now = virtual_time::WALL_AT_START.plus_seconds(second);
            for next in self.0.step(call, answer, now).into_iter().map(Judged) {
                if !after.contains(&next) {
                    after.push(next);
                }
            }
        }
        after
    }
}

impl<O: Object> Model for Judged<O> {
    type Call = O::Call;
    type Answer = Told<O::Answer>;

    fn answered(&self, call: &O::Call, answer: &Told<O::Answer>, span: Span) -> Vec<Self> {
        match answer {
            Told::Answer(answer) => self.after(call, Some(answer), span),
            Told::NotDone => vec![self.clone()],
        }
    }

    fn unanswered(&self, call: &O::Call, span: Span) -> Vec<Self> {
        let mut after = self.after(call, None, span);
        after.retain(|next| next != self);
        after
    }
}

/// A container with its blobs: registers with an ETag, a lease and snapshots.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Container(Option<Blobs>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Blob {
    value: Value,
    /// `None` until somebody is told.
    etag: Option<String>,
    lease: Lease,
    snapshots: BTreeMap<String, Value>,
}

#[derive(Clone, Debug)]
pub enum BlobCall {
    CreateContainer,
    DeleteContainer,
    Put { blob: u8, value: Value, when: When, lease: Option<LeaseId>, in_blocks: bool },
    Get { blob: u8 },
    Delete { blob: u8, when: When, lease: Option<LeaseId>, in_blocks: bool },
    Snapshot { blob: u8 },
    GetSnapshot { blob: u8, id: String },
    List,
    Lease { blob: u8, action: LeaseAction },
}

/// On which condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    Always,
    Matches(String),
    IsNew,
}

#[derive(Clone, Copy, Debug)]
pub enum LeaseAction {
    Acquire(LeaseId, LeaseDuration),
    Renew(LeaseId),
    Release(LeaseId),
    Break(Option<BreakPeriod>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobAnswer {
    Done,
    Written { etag: String },
    Read { value: Value, etag: String },
    Snapshot { id: String },
    Listed(Vec<(u8, String)>),
    Refused(String),
}

pub type Blobs = BTreeMap<u8, Blob>;

impl Object for Container {
    type Call = BlobCall;
    type Answer = BlobAnswer;

    fn step(&self, call: &BlobCall, answer: Option<&BlobAnswer>, now: Timestamp) -> Vec<Container> {
        if let Some(BlobAnswer::Refused(code)) = answer {
            return if may_refuse(self.0.as_ref(), call, code, now) { vec![self.clone()] } else { vec![] };
        }
        let next = match (&self.0, call) {
            (None, BlobCall::CreateContainer) => Some(Some(Blobs::new())),
            (Some(_), BlobCall::DeleteContainer) => Some(None),
            (Some(_), BlobCall::CreateContainer) | (None, _) => None,
            (Some(blobs), call) => changed(blobs, call, answer, now).map(Some),
        };
        next.into_iter().map(Container).collect()
    }

    fn written(call: &BlobCall) -> Vec<Value> {
        if let BlobCall::Put { value, .. } = call { vec![*value] } else { vec![] }
    }

    fn seen(answer: &BlobAnswer) -> Vec<Value> {
        if let BlobAnswer::Read { value, .. } = answer { vec![*value] } else { vec![] }
    }
}

/// The blobs after a call that was not refused.
fn changed(blobs: &Blobs, call: &BlobCall, answer: Option<&BlobAnswer>, now: Timestamp) -> Option<Blobs> {
    let mut blobs = blobs.clone();
    match call {
        BlobCall::CreateContainer | BlobCall::DeleteContainer => return None,
        BlobCall::Put { blob, value, when, lease, .. } => {
            let old = blobs.get(blob);
            let lease = may_write(old, when, *lease, now)?;
            let snapshots = old.map(|old| old.snapshots.clone()).unwrap_or_default();
            let etag = match answer {
                Some(BlobAnswer::Written { etag }) => Some(etag.clone()),
                Some(_) => return None,
                None => None,
            };
            blobs.insert(*blob, Blob { value: *value, etag, lease, snapshots });
        }
        BlobCall::Delete { blob, when, lease, in_blocks } => match blobs.get(blob) {
            // What has only blocks yet can be deleted.
            None if *in_blocks && *when == When::Always => {}
            None => return None,
            old => {
                may_write(old, when, *lease, now)?;
                blobs.remove(blob);
            }
        },
        BlobCall::Get { blob } => {
            let found = blobs.get_mut(blob)?;
            if let Some(BlobAnswer::Read { value, etag }) = answer {
                if *value != found.value || !found.is_called(etag) {
                    return None;
                }
                found.etag = Some(etag.clone());
            }
        }
        BlobCall::Snapshot { blob } => {
            let found = blobs.get_mut(blob)?;
            if let Some(BlobAnswer::Snapshot { id }) = answer {
                found.snapshots.insert(id.clone(), found.value);
            }
        }
        BlobCall::GetSnapshot { blob, id } => {
            let found = blobs.get(blob)?.snapshots.get(id)?;
            if let Some(BlobAnswer::Read { value, .. }) = answer
                && value != found
            {
                return None;
            }
        }
        BlobCall::List => {
            if let Some(BlobAnswer::Listed(listed)) = answer {
                let same = listed.len() == blobs.len()
                    && listed.iter().all(|(blob, etag)| blobs.get(blob).is_some_and(|found| found.is_called(etag)));
                if !same {
                    return None;
                }
                for (blob, etag) in listed {
                    blobs.get_mut(blob)?.etag = Some(etag.clone());
                }
            }
        }
        BlobCall::Lease { blob, action } => {
            let found = blobs.get_mut(blob)?;
            found.lease = acted(found.lease, *action, now)?;
        }
    }
    Some(blobs)
}

impl Blob {
    fn is_called(&self, etag: &str) -> bool {
        self.etag.as_deref().is_none_or(|known| known == etag)
    }

    fn meets(&self, when: &When) -> bool {
        match when {
            When::Always => true,
            When::Matches(etag) => self.etag.as_deref() == Some(etag),
            When::IsNew => false,
        }
    }
}

fn acted(lease: Lease, action: LeaseAction, now: Timestamp) -> Option<Lease> {
    match action {
        LeaseAction::Acquire(id, duration) => lease.acquire(Some(id), id, duration, now).ok(),
        LeaseAction::Renew(id) => lease.renew(id, now).ok(),
        LeaseAction::Release(id) => lease.release(id, now).ok(),
        LeaseAction::Break(period) => lease.break_(period, now).ok().map(|(lease, _)| lease),
    }
}

/// The lease after a write, if the write may be done.
fn may_write(old: Option<&Blob>, when: &When, lease: Option<LeaseId>, now: Timestamp) -> Option<Lease> {
    match old {
        Some(old) if old.meets(when) => old.lease.check_write(lease, now).ok(),
        Some(_) => None,
        None if matches!(when, When::Matches(_)) || lease.is_some() => None,
        None => Some(Lease::Available),
    }
}

/// Which refusals are right. Where two apply, either is.
fn may_refuse(blobs: Option<&Blobs>, call: &BlobCall, code: &str, now: Timestamp) -> bool {
    let Some(blobs) = blobs else { return code == "ContainerNotFound" };
    match call {
        BlobCall::CreateContainer => code == "ContainerAlreadyExists",
        BlobCall::DeleteContainer | BlobCall::List => false,
        BlobCall::Put { blob, when, lease, in_blocks, .. } => {
            let old = blobs.get(blob);
            write_refused(old, when, *lease, code, now) || (*in_blocks && code == "InvalidBlockList")
        }
        BlobCall::Delete { blob, when, lease, .. } => match blobs.get(blob) {
            None => code == "BlobNotFound" || write_refused(None, when, *lease, code, now),
            old => write_refused(old, when, *lease, code, now),
        },
        BlobCall::Get { blob } | BlobCall::Snapshot { blob } => code == "BlobNotFound" && !blobs.contains_key(blob),
        BlobCall::GetSnapshot { blob, id } => {
            code == "BlobNotFound" && blobs.get(blob).is_none_or(|found| !found.snapshots.contains_key(id))
        }
        BlobCall::Lease { blob, action } => match blobs.get(blob) {
            None => code == "BlobNotFound",
            Some(found) => code.contains("Lease") && acted(found.lease, *action, now).is_none(),
        },
    }
}

fn write_refused(old: Option<&Blob>, when: &When, lease: Option<LeaseId>, code: &str, now: Timestamp) -> bool {
    match code {
        "ConditionNotMet" => matches!(when, When::Matches(_)) && old.is_none_or(|old| !old.meets(when)),
        "BlobAlreadyExists" => *when == When::IsNew && old.is_some(),
        code if code.contains("Lease") => match old {
            Some(old) => old.lease.check_write(lease, now).is_err(),
            None => lease.is_some(),
        },
        _ => false,
    }
}

/// A queue and its messages, which are there from the begin.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Queue(Messages);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// `None` until somebody is told.
    id: Option<String>,
    receipt: Option<String>,
    visible_from: Timestamp,
    dequeued: u64,
}

#[derive(Clone, Debug)]
pub enum QueueCall {
    Put {
        value: Value,
        hidden_secs: u64,
    },
    /// One message.
    Get {
        hide_secs: u64,
    },
    Peek,
    Delete {
        ticket: Receipt,
    },
    Update {
        ticket: Receipt,
        hide_secs: u64,
    },
}

/// What a client needs to change a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub id: String,
    pub receipt: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueAnswer {
    Put(Receipt),
    Got(Option<(Value, Receipt, u64)>),
    Peeked(Vec<Value>),
    Deleted,
    Updated { receipt: String },
    Refused(String),
}

/// More than there ever are.
pub const PEEK_MAX: usize = 32;

pub type Messages = BTreeMap<Value, Message>;

impl Object for Queue {
    type Call = QueueCall;
    type Answer = QueueAnswer;

    fn step(&self, call: &QueueCall, answer: Option<&QueueAnswer>, now: Timestamp) -> Vec<Queue> {
        let state = &self.0;
        let after = match call {
            QueueCall::Put { value, hidden_secs } => put(state, *value, now.plus_seconds(*hidden_secs), answer),
            QueueCall::Get { hide_secs } => got(state, now, now.plus_seconds(*hide_secs), answer),
            QueueCall::Peek => match answer {
                Some(QueueAnswer::Peeked(peeked)) => {
                    let visible = state.iter().filter(|(_, message)| message.visible_from <= now);
                    let mut visible: Vec<Value> = visible.map(|(value, _)| *value).collect();
                    let mut peeked = peeked.clone();
                    visible.sort_unstable();
                    peeked.sort_unstable();
                    if visible == peeked { vec![state.clone()] } else { vec![] }
                }
                Some(_) => vec![],
                None => vec![state.clone()],
            },
            QueueCall::Delete { ticket } => with_ticket(state, ticket, answer, |messages, value| {
                messages.remove(&value);
            }),
            QueueCall::Update { ticket, hide_secs } => with_ticket(state, ticket, answer, |messages, value| {
                let receipt = match answer {
                    Some(QueueAnswer::Updated { receipt }) => Some(receipt.clone()),
                    _ => None,
                };
                if let Some(message) = messages.get_mut(&value) {
                    message.receipt = receipt;
                    message.visible_from = now.plus_seconds(*hide_secs);
                }
            }),
        };
        after.into_iter().map(Queue).collect()
    }

    fn written(call: &QueueCall) -> Vec<Value> {
        if let QueueCall::Put { value, .. } = call { vec![*value] } else { vec![] }
    }

    fn seen(answer: &QueueAnswer) -> Vec<Value> {
        match answer {
            QueueAnswer::Got(Some((value, _, _))) => vec![*value],
            QueueAnswer::Peeked(values) => values.clone(),
            _ => vec![],
        }
    }
}

fn put(state: &Messages, value: Value, visible_from: Timestamp, answer: Option<&QueueAnswer>) -> Vec<Messages> {
    let ticket = match answer {
        Some(QueueAnswer::Put(ticket)) => Some(ticket),
        Some(_) => return vec![],
        None => None,
    };
    let (id, receipt) = (ticket.map(|ticket| ticket.id.clone()), ticket.map(|ticket| ticket.receipt.clone()));
    let mut messages = state.clone();
    messages.insert(value, Message { id, receipt, visible_from, dequeued: 0 });
    vec![messages]
}

fn got(state: &Messages, now: Timestamp, until: Timestamp, answer: Option<&QueueAnswer>) -> Vec<Messages> {
    let mut visible = state.iter().filter(|(_, message)| message.visible_from <= now);
    let taken = |value: Value, ticket: Option<&Receipt>| {
        let mut messages = state.clone();
        let message = messages.get_mut(&value)?;
        message.dequeued += 1;
        message.visible_from = until;
        message.receipt = ticket.map(|ticket| ticket.receipt.clone());
        message.id = message.id.take().or_else(|| ticket.map(|ticket| ticket.id.clone()));
        Some(messages)
    };
    match answer {
        None => visible.filter_map(|(value, _)| taken(*value, None)).collect(),
        Some(QueueAnswer::Got(None)) => {
            if visible.next().is_none() {
                vec![state.clone()]
            } else {
                vec![]
            }
        }
        Some(QueueAnswer::Got(Some((value, ticket, dequeued)))) => {
            let fits = state.get(value).is_some_and(|message| {
                message.visible_from <= now
                    && message.dequeued + 1 == *dequeued
                    && message.id.as_ref().is_none_or(|id| *id == ticket.id)
            });
            if fits { taken(*value, Some(ticket)).into_iter().collect() } else { vec![] }
        }
        Some(_) => vec![],
    }
}

/// Does something with the message of a ticket; a ticket that is no longer good is refused.
fn with_ticket(
    state: &Messages,
    ticket: &Receipt,
    answer: Option<&QueueAnswer>,
    change: impl FnOnce(&mut Messages, Value),
) -> Vec<Messages> {
    let holds = |message: &Message| {
        message.id.as_ref() == Some(&ticket.id) && message.receipt.as_ref() == Some(&ticket.receipt)
    };
    let found = state.iter().find(|(_, message)| holds(message)).map(|(value, _)| *value);
    match (found, answer) {
        (None, Some(QueueAnswer::Refused(code))) if code == "MessageNotFound" || code == "PopReceiptMismatch" => {
            vec![state.clone()]
        }
        (Some(value), None | Some(QueueAnswer::Deleted | QueueAnswer::Updated { .. })) => {
            let mut messages = state.clone();
            change(&mut messages, value);
            vec![messages]
        }
        _ => vec![],
    }
}

/// The entities of one partition, written in groups.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Partition(Entities);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entity {
    value: Value,
    etag: Option<String>,
}

#[derive(Clone, Debug)]
pub enum TableCall {
    /// An entity group transaction.
    Group(Vec<(u8, EntityWrite)>),
    /// All entities of the partition, in one answer.
    Query,
}

#[derive(Clone, Debug)]
pub enum EntityWrite {
    Insert(Value),
    Upsert(Value),
    Update { etag: String, value: Value },
    Delete { etag: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableAnswer {
    Done,
    Found(Vec<(u8, Value, String)>),
    Refused(String),
}

pub type Entities = BTreeMap<u8, Entity>;

impl Object for Partition {
    type Call = TableCall;
    type Answer = TableAnswer;

    fn step(&self, call: &TableCall, answer: Option<&TableAnswer>, _: Timestamp) -> Vec<Partition> {
        let state = &self.0;
        let after = match (call, answer) {
            (TableCall::Query, None) => vec![state.clone()],
            (TableCall::Query, Some(TableAnswer::Found(found))) => queried(state, found).into_iter().collect(),
            (TableCall::Query, Some(_)) => vec![],
            (TableCall::Group(writes), Some(TableAnswer::Refused(code))) => {
                let refused = writes.iter().any(|(row, write)| refused(state.get(row), write) == Some(code));
                if refused { vec![state.clone()] } else { vec![] }
            }
            (TableCall::Group(writes), None | Some(TableAnswer::Done)) => {
                let is_refused = writes.iter().any(|(row, write)| refused(state.get(row), write).is_some());
                if is_refused { vec![] } else { vec![written(state, writes)] }
            }
            (TableCall::Group(_), Some(TableAnswer::Found(_))) => vec![],
        };
        after.into_iter().map(Partition).collect()
    }

    fn written(call: &TableCall) -> Vec<Value> {
        let TableCall::Group(writes) = call else { return vec![] };
        let value = |(_, write): &(u8, EntityWrite)| match write {
            EntityWrite::Insert(value) | EntityWrite::Upsert(value) | EntityWrite::Update { value, .. } => Some(*value),
            EntityWrite::Delete { .. } => None,
        };
        writes.iter().filter_map(value).collect()
    }

    fn seen(answer: &TableAnswer) -> Vec<Value> {
        if let TableAnswer::Found(found) = answer { found.iter().map(|(_, value, _)| *value).collect() } else { vec![] }
    }
}

fn queried(state: &Entities, found: &[(u8, Value, String)]) -> Option<Entities> {
    if found.len() != state.len() {
        return None;
    }
    let mut entities = state.clone();
    for (row, value, etag) in found {
        let entity = entities.get_mut(row)?;
        if entity.value != *value || entity.etag.as_ref().is_some_and(|known| known != etag) {
            return None;
        }
        entity.etag = Some(etag.clone());
    }
    Some(entities)
}

fn refused(entity: Option<&Entity>, write: &EntityWrite) -> Option<&'static str> {
    match (entity, write) {
        (Some(_), EntityWrite::Insert(_)) => Some("EntityAlreadyExists"),
        (None, EntityWrite::Update { .. } | EntityWrite::Delete { .. }) => Some("ResourceNotFound"),
        (Some(entity), EntityWrite::Update { etag, .. } | EntityWrite::Delete { etag }) => {
            (entity.etag.as_ref() != Some(etag)).then_some("UpdateConditionNotSatisfied")
        }
        (None, EntityWrite::Insert(_)) | (_, EntityWrite::Upsert(_)) => None,
    }
}

fn written(state: &Entities, writes: &[(u8, EntityWrite)]) -> Entities {
    let mut entities = state.clone();
    for (row, write) in writes {
        match write {
            EntityWrite::Insert(value) | EntityWrite::Upsert(value) | EntityWrite::Update { value, .. } => {
                entities.insert(*row, Entity { value: *value, etag: None });
            }
            EntityWrite::Delete { .. } => {
                entities.remove(row);
            }
        }
    }
    entities
}
