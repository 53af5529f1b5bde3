//! The six writes of an entity, alone or in a transaction.
//!
//! | write | nothing there | there | `If-Match` |
//! |---|---|---|---|
//! | insert | is made | 409 | none |
//! | update, merge | 404 | is replaced, is merged | required: a version, or `*` |
//! | insert or replace, insert or merge | is made | is replaced, is merged | none |
//! | delete | 404 | goes | required |

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{Changes, Key, Rows, Tick, read as read_rows};
use service::{Call, Operation};
use wire::http::Head;

use crate::address::Address;
use crate::answer::Answer;
use crate::entity::write::{Metadata, Shape, link};
use crate::entity::{Entity, Property, Row, read};
use crate::error::TableError;
use crate::etag::{self, IfMatch};
use crate::format::{self, Prefer};
use crate::key::EntityKey;
use crate::model::{self, Halt, refuse};
use crate::name::TableName;
use crate::ops::table_of;
use crate::request_parts::RequestParts;
use crate::scope::Reach;
use crate::{Failure, Op};

/// A write of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityWrite {
    pub table: TableName,
    pub key: EntityKey,
    pub change: EntityChange,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EntityChange {
    Insert(Vec<Property<'static>>),
    Update(Vec<Property<'static>>, IfMatch),
    Merge(Vec<Property<'static>>, IfMatch),
    InsertOrReplace(Vec<Property<'static>>),
    InsertOrMerge(Vec<Property<'static>>),
    Delete(IfMatch),
}

/// What has become of the entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityWritten {
    /// The entity's new timestamp, of which its ETag is made.
    pub stamp: Timestamp,
    /// The stored row; `None` if the entity was deleted.
    row: Option<Bytes>,
}

/// In what form the answer shows an inserted entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsertReply {
    metadata: Metadata,
    prefer: Prefer,
}

impl EntityWrite {
    /// The rules: the entity after the write, from what was found; `None` if it is deleted.
    pub fn decide<'a>(&'a self, found: Option<&Row<'a>>, stamp: Timestamp) -> Result<Option<Entity<'a>>, Halt> {
        let there = || found.ok_or(refuse(TableError::ResourceNotFound));
        let whole = |properties: &'a [Property<'static>]| Entity::of(stamp, properties);
        let becomes = match &self.change {
            EntityChange::Insert(_) if found.is_some() => return Err(refuse(TableError::EntityAlreadyExists)),
            EntityChange::Insert(properties) | EntityChange::InsertOrReplace(properties) => whole(properties),
            EntityChange::InsertOrMerge(properties) => match found {
                None => whole(properties),
                Some(found) => found.entity()?.merged(stamp, properties),
            },
            EntityChange::Update(properties, if_match) => {
                if_match.check(there()?.stamp).map_err(refuse)?;
                whole(properties)
            }
            EntityChange::Merge(properties, if_match) => {
                let found = there()?;
                if_match.check(found.stamp).map_err(refuse)?;
                found.entity()?.merged(stamp, properties)
            }
            EntityChange::Delete(if_match) => {
                if_match.check(there()?.stamp).map_err(refuse)?;
                return Ok(None);
            }
        };
        becomes.check(&self.key).map_err(refuse)?;
        Ok(Some(becomes))
    }

    /// The rules, for the entity's row at `key`. Each write of a transaction has a stamp of its own.
    pub fn apply_at(
        &self,
        rows: &dyn Rows,
        key: Key,
        stamp: Timestamp,
        changes: &mut Changes,
    ) -> Result<EntityWritten, Halt> {
        let bytes = rows.get(&key)?;
        let found = bytes.as_deref().map(Row::open).transpose()?;
        match self.decide(found.as_ref(), stamp)? {
            Some(entity) => {
                let row = entity.to_row();
                changes.put(key, row.clone());
                Ok(EntityWritten { stamp, row: Some(row) })
            }
            None => {
                changes.delete(key);
                Ok(EntityWritten { stamp, row: None })
            }
        }
    }

    /// Whether it only frees space, and so may go on when the disk is full.
    pub fn is_delete(&self) -> bool {
        match &self.change {
            EntityChange::Delete(_) => true,
            EntityChange::Insert(_) | EntityChange::Update(..) | EntityChange::Merge(..) => false,
            EntityChange::InsertOrReplace(_) | EntityChange::InsertOrMerge(_) => false,
        }
    }

    /// The write that a request asks for, and in what form its answer shows an inserted entity.
    pub fn parse(op: Op, head: &impl RequestParts, body: &[u8]) -> Result<(EntityWrite, InsertReply), TableError> {
        let address = Address::parse(head.resource())?;
        let table = TableName::parse(address.entities_of().unwrap_or_default())?;
        if op != Op::InsertEntity && head.has_header("if-none-match") {
            return Err(TableError::InvalidInput("A write of an entity takes no If-None-Match."));
        }
        if let Op::DeleteEntity = op {
            let Address::Entity(_, key) = address else { return Err(TableError::KeysDoNotMatch) };
            let write = EntityWrite { table, key, change: EntityChange::Delete(if_match(head)?) };
            return Ok((write, InsertReply { metadata: Metadata::Minimal, prefer: Prefer::Unsaid }));
        }
        format::check_body(head)?;
        let reply = InsertReply { metadata: format::metadata(head)?, prefer: Prefer::of(head) };
        let read::SentEntity { partition, row, odd_key, properties } = read::read(body)?;
        let key = match address {
            Address::Entity(_, key) => same(key, partition.as_deref(), row.as_deref())?,
            Address::Service
            | Address::Batch
            | Address::Tables
            | Address::Table(_)
            | Address::Entities(_)
            | Address::Beyond(_) => match (partition, row, odd_key) {
                (_, _, Some(key)) => return Err(TableError::InvalidValueType { name: key.to_owned() }),
                (Some(partition), Some(row), None) => EntityKey::new(partition, row)?,
                (None, _, None) | (_, None, None) => return Err(TableError::PropertiesNeedValue),
            },
        };
        let change = match op {
            Op::InsertEntity => EntityChange::Insert(properties),
            Op::UpdateEntity => EntityChange::Update(properties, if_match(head)?),
            Op::MergeEntity => EntityChange::Merge(properties, if_match(head)?),
            Op::InsertOrReplaceEntity => EntityChange::InsertOrReplace(properties),
            Op::InsertOrMergeEntity => EntityChange::InsertOrMerge(properties),
            // A delete has no body, and is done above.
            Op::DeleteEntity
            | Op::QueryEntities
            | Op::EntityGroupTransaction
            | Op::QueryTables
            | Op::CreateTable
            | Op::DeleteTable
            | Op::GetTableAcl
            | Op::SetTableAcl
            | Op::GetTableServiceProperties
            | Op::SetTableServiceProperties
            | Op::GetTableServiceStats
            | Op::PreflightTableRequest => {
                return Err(TableError::InvalidInput("This operation does not write an entity."));
            }
        };
        Ok((EntityWrite { table, key, change }, reply))
    }

    /// The answer of a write that is done. `head` is that of the HTTP request, which may be the transaction around the write.
    pub fn answer(&self, head: &Head, reply: InsertReply, written: &EntityWritten) -> Answer {
        match &self.change {
            EntityChange::Insert(_) => {
                let location = link(&head.endpoint, self.table.as_str(), self.key.view());
                let shown = || self.shown(head, reply.metadata, written);
                Answer::made(reply.metadata, reply.prefer, location, shown).with("ETag", etag::of(written.stamp))
            }
            EntityChange::Delete(_) => Answer::empty(),
            EntityChange::Update(..)
            | EntityChange::Merge(..)
            | EntityChange::InsertOrReplace(_)
            | EntityChange::InsertOrMerge(_) => Answer::empty().with("ETag", etag::of(written.stamp)),
        }
    }

    fn shown(&self, head: &Head, metadata: Metadata, written: &EntityWritten) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let table = self.table.as_str();
        let shape = Shape { metadata, endpoint: &head.endpoint, account: &head.account, table, select: None };
        let row = written.row.as_deref().map(Row::open);
        if let Some(Ok(row)) = row {
            shape.alone(&mut out, self.key.view(), &row).expect("a row that was just written can be read");
        }
        out
    }
}

impl Operation for EntityWrite {
    type Outcome = EntityWritten;
    type Refusal = TableError;

    fn partition(&self, account: u64) -> Key {
        model::partition(account, &self.table, &self.key)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<EntityWritten, Halt> {
        let generation = model::generation(rows, account, &self.table)?;
        changes.frees_space = self.is_delete();
        self.apply_at(rows, self.key.in_table(generation), tick.stamp, changes)
    }
}

/// Runs a write that is a request of its own.
pub async fn run(op: Op, call: Call<'_>, body: &[u8]) -> Result<Answer, Failure> {
    let (write, reply) = match EntityWrite::parse(op, call.head, body) {
        Err(error @ (TableError::PropertiesNeedValue | TableError::KeysDoNotMatch)) => {
            return Err(after_table(call, error).await);
        }
        parsed => parsed?,
    };
    Reach::of(call.asker.caller).check(&write.key)?;
    let write = Arc::new(write);
    let written = call.commit(&write).await?;
    Ok(write.answer(call.head, reply, &written))
}

/// The error of a write whose keys are missing or malformed. If the table does not exist, Azure gives that error first.
/// Clients get here whose service endpoint ends with the name of a table.
async fn after_table(call: Call<'_>, error: TableError) -> Failure {
    let table = match table_of(call.head) {
        Ok(table) => table,
        Err(error) => return error.into(),
    };
    let account = call.account;
    match read_rows(call.engine, move |rows, _| model::generation(rows, account, &table)).await {
        Ok(_) => error.into(),
        Err(error) => error.into(),
    }
}

fn if_match(head: &impl RequestParts) -> Result<IfMatch, TableError> {
    let mut values = head.headers("if-match");
    let value = values.next().ok_or(service::RequestError::MissingRequiredHeader { name: "If-Match" })?;
    let text = if value.is_empty() { Some("") } else { head.header("if-match") };
    match (text, values.next()) {
        (Some(text), None) => IfMatch::parse(text),
        _ => Err(TableError::InvalidETag { value: String::from_utf8_lossy(value).into_owned() }),
    }
}

/// The key in the URL. Keys in the body are optional then, but must be the same.
fn same(key: EntityKey, partition: Option<&str>, row: Option<&str>) -> Result<EntityKey, TableError> {
    let is_same = partition.is_none_or(|partition| partition == key.partition) && row.is_none_or(|row| row == key.row);
    is_same.then_some(key).ok_or(TableError::InvalidInput("The keys in the body are not those of the URL."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::value::Value;

    const STAMP: Timestamp = Timestamp(900);
    const FOUND: Timestamp = Timestamp(700);

    fn property(name: &'static str, value: i32) -> Property<'static> {
        (name.into(), Value::Int32(value))
    }

    fn every_change(if_match: IfMatch) -> [EntityChange; 6] {
        let properties = || vec![property("b", 20), property("c", 30)];
        [
            EntityChange::Insert(properties()),
            EntityChange::Update(properties(), if_match),
            EntityChange::Merge(properties(), if_match),
            EntityChange::InsertOrReplace(properties()),
            EntityChange::InsertOrMerge(properties()),
            EntityChange::Delete(if_match),
        ]
    }

    fn decide(change: EntityChange, is_there: bool) -> Result<Option<Vec<(String, i32)>>, TableError> {
        let key = EntityKey::new("p", "r").unwrap();
        let write = EntityWrite { table: TableName::parse("tab").unwrap(), key, change };
        let row = Entity { stamp: FOUND, properties: vec![property("a", 1), property("b", 2)] }.to_row();
        let found = is_there.then(|| Row::open(&row).unwrap());
        match write.decide(found.as_ref(), STAMP) {
            Ok(None) => Ok(None),
            Ok(Some(entity)) => {
                assert_eq!(entity.stamp, STAMP);
                let whole = |value| if let Value::Int32(value) = value { value } else { 0 };
                let properties = entity.properties.into_iter();
                Ok(Some(properties.map(|(name, value)| (name.into_owned(), whole(value))).collect()))
            }
            Err(Halt::Refused(error)) => Err(error),
            Err(Halt::Unread(unread)) => panic!("{unread:?}"),
        }
    }

    #[test]
    fn what_becomes_of_an_entity() {
        let replaced = || Ok(Some(vec![("b".into(), 20), ("c".into(), 30)]));
        let merged = || Ok(Some(vec![("a".into(), 1), ("b".into(), 20), ("c".into(), 30)]));
        let not_found = || Err(TableError::ResourceNotFound);
        let exists = || Err(TableError::EntityAlreadyExists);
        let stale = || Err(TableError::UpdateConditionNotSatisfied);
        // In the order of `every_change`.
        for right in [IfMatch::Any, IfMatch::Version(FOUND)] {
            let outcomes = every_change(right).map(|change| decide(change, true));
            assert_eq!(outcomes, [exists(), replaced(), merged(), replaced(), merged(), Ok(None)]);
        }
        for wrong in [IfMatch::Version(Timestamp(1)), IfMatch::Unknown] {
            let outcomes = every_change(wrong).map(|change| decide(change, true));
            assert_eq!(outcomes, [exists(), stale(), stale(), replaced(), merged(), stale()]);
        }
        for any in [IfMatch::Any, IfMatch::Version(FOUND), IfMatch::Unknown] {
            let outcomes = every_change(any).map(|change| decide(change, false));
            assert_eq!(outcomes, [replaced(), not_found(), not_found(), replaced(), replaced(), not_found()]);
        }
    }

    #[test]
    fn a_merge_may_not_outgrow_the_limits() {
        let many = |from: usize, count: usize| -> Vec<Property<'static>> {
            (from..from + count).map(|n| (format!("p{n}").into(), Value::Int32(0))).collect()
        };
        let row = Entity { stamp: FOUND, properties: many(0, 200) }.to_row();
        let key = EntityKey::new("p", "r").unwrap();
        let merge = |properties| {
            let change = EntityChange::InsertOrMerge(properties);
            let write = EntityWrite { table: TableName::parse("tab").unwrap(), key: key.clone(), change };
            write.decide(Some(&Row::open(&row).unwrap()), STAMP).map(|entity| entity.unwrap().properties.len())
        };
        assert_eq!(merge(many(150, 102)), Ok(252));
        assert_eq!(merge(many(150, 103)), Err(refuse(TableError::TooManyProperties)));
    }
}
