//! Entity Group Transaction: up to 100 writes of one partition, all of them or none; or a single query.
//!
//! The answer is always 202. Its body has one part for each operation; or, if an operation was refused, a single part
//! with that refusal, whose text begins with the index of the operation.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Changes, Key, Rows, Tick};
use service::Operation;
use wire::http::{Body, Head, Query, Reply, ReplyBody, StatusCode, collect, header};
use wire::multipart::{self, Malformed, Part, Writer};
use wire::percent;

use super::{BODY_BYTES_MAX, Call, query_entities};
use crate::answer::Answer;
use crate::error::TableError;
use crate::format::Prefer;
use crate::model::{self, Halt, refuse};
use crate::request_parts::BatchedRequest;
use crate::scope::Reach;
use crate::write::{EntityWrite, EntityWritten, InsertReply};
use crate::{Failure, Op};

pub const OPERATIONS_MAX: usize = 100;

const MALFORMED: TableError = TableError::InvalidInput("The body is not a batch of the right form.");
const HTTP_PART: [(&str, &str); 2] = [("Content-Type", "application/http"), ("Content-Transfer-Encoding", "binary")];

impl From<Malformed> for TableError {
    fn from(_: Malformed) -> TableError {
        MALFORMED
    }
}

/// Up to [`OPERATIONS_MAX`] writes of one partition of one table, no entity twice. All of them are done or none.
#[derive(Clone, Debug)]
pub struct EntityGroupTransaction {
    writes: Vec<EntityWrite>,
}

impl EntityGroupTransaction {
    /// Refuses the first write that is refused itself or does not fit those before it, with its index.
    pub fn new(
        writes: impl IntoIterator<Item = Result<EntityWrite, TableError>>,
    ) -> Result<EntityGroupTransaction, TableError> {
        let mut accepted: Vec<EntityWrite> = Vec::new();
        let mut rows = HashSet::new();
        for (index, write) in writes.into_iter().enumerate() {
            if index == OPERATIONS_MAX {
                return Err(TableError::BatchTooLong.at(0));
            }
            let write = write.map_err(|error| error.at(index))?;
            let is_other = |first: &EntityWrite| {
                !first.table.is(write.table.as_str()) || first.key.partition != write.key.partition
            };
            if accepted.first().is_some_and(is_other) {
                return Err(TableError::CommandsInBatchActOnDifferentPartitions.at(index));
            }
            if !rows.insert(write.key.row.clone()) {
                return Err(TableError::InvalidDuplicateRow { row: write.key.row }.at(index));
            }
            accepted.push(write);
        }
        match accepted.is_empty() {
            true => Err(TableError::EmptyBatch.at(0)),
            false => Ok(EntityGroupTransaction { writes: accepted }),
        }
    }
}

impl Operation for EntityGroupTransaction {
    /// One for each write, in their order.
    type Outcome = Vec<EntityWritten>;
    type Refusal = TableError;

    fn partition(&self, account: u64) -> Key {
        self.writes[0].partition(account)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Vec<EntityWritten>, Halt> {
        let at = |index: usize| {
            move |halt| match halt {
                Halt::Refused(error) => refuse(TableError::at(error, index)),
                unread @ Halt::Unread(_) => unread,
            }
        };
        let generation = model::generation(rows, account, &self.writes[0].table).map_err(at(0))?;
        changes.frees_space = self.writes.iter().all(EntityWrite::is_delete);
        let keys: Vec<Key> = self.writes.iter().map(|write| write.key.in_table(generation)).collect();
        rows.prefetch(&keys);
        let mut written = Vec::with_capacity(self.writes.len());
        for (index, (write, key)) in self.writes.iter().zip(keys).enumerate() {
            // Each has a timestamp of its own.
            let stamp = Timestamp(tick.id(index as u64));
            written.push(write.apply_at(rows, key, stamp, changes).map_err(at(index))?);
        }
        Ok(written)
    }
}

/// The body of a transaction.
#[derive(Debug)]
enum Batch<'a> {
    Query(Box<BatchedRequest<'a>>),
    Changes(Vec<BatchedRequest<'a>>),
}

impl<'a> Batch<'a> {
    fn parse(head: &Head, body: &'a [u8]) -> Result<Batch<'a>, TableError> {
        let boundary = head.header(header::CONTENT_TYPE.as_str()).and_then(multipart::boundary).ok_or(MALFORMED)?;
        let mut parts = multipart::parts(body, boundary, 1)?;
        let (Some(part), true) = (parts.pop(), parts.is_empty()) else {
            return Err(TableError::InvalidInput("A batch has one change set, or one query."));
        };
        match multipart::boundary(part.headers.text("content-type").unwrap_or_default()) {
            None => Ok(Batch::Query(Box::new(inner(head, &part)?))),
            Some(boundary) => {
                let parts = multipart::parts(part.content, boundary, OPERATIONS_MAX)?;
                match parts.len() {
                    0 => Err(TableError::EmptyBatch.at(0)),
                    count if count > OPERATIONS_MAX => Err(TableError::BatchTooLong.at(0)),
                    _ => Ok(Batch::Changes(parts.iter().map(|part| inner(head, part)).collect::<Result<_, _>>()?)),
                }
            }
        }
    }
}

fn inner<'a>(outer: &Head, part: &Part<'a>) -> Result<BatchedRequest<'a>, TableError> {
    let multipart::InnerRequest { method, target: line, headers, body } = multipart::request(part.content)?;
    let (resource, query) = target(outer, line).ok_or(MALFORMED)?;
    let content_id = part.headers.text("content-id").or_else(|| headers.text("content-id"));
    Ok(BatchedRequest { method, resource, query, headers, body: body.trim_ascii(), content_id })
}

/// The head of the request that the operation would be by itself.
fn head_of(outer: &Head, inner: &BatchedRequest<'_>) -> Head {
    Head {
        method: inner.method.clone(),
        resource: inner.resource.clone().into_owned(),
        raw_path: String::new(),
        query: inner.query.clone(),
        headers: inner.headers.to_map(),
        ..outer.clone()
    }
}

/// The path below the account, and the query, of a request line inside the body, whose URL may be absolute or not.
/// `None` if the URL is malformed or names another account than the request around it.
fn target<'a>(outer: &Head, target: &'a str) -> Option<(Cow<'a, str>, Query)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (host, path) = match path.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or((Some(rest), ""), |(host, path)| (Some(host), path)),
        None => (None, path.strip_prefix('/').unwrap_or(path)),
    };
    let is_path_style = outer.endpoint.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let is_ours = |named: &str| {
        let account = named.strip_suffix("-secondary").unwrap_or(named);
        account.eq_ignore_ascii_case(&outer.account)
    };
    // A slash behind a parenthesis belongs to a key.
    let path = match path.split_once('/').filter(|(first, _)| !first.contains('(')) {
        Some((account, below)) => (is_path_style && is_ours(account)).then_some(below)?,
        None => path,
    };
    if !is_path_style && !host.is_none_or(|host| is_ours(host.split('.').next().unwrap_or(host))) {
        return None;
    }
    let mut resource = percent::decode_path(path).ok()?;
    if resource.contains('\\') {
        resource = resource.replace('\\', "/").into();
    }
    let own = |pair: Result<_, _>| {
        pair.map(|(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned()))
    };
    let pairs = percent::query_pairs(query).map(own).collect::<Result<_, _>>().ok()?;
    Some((resource, Query::new(pairs)))
}

/// The transaction of a change set, after the caller's permission for each write is checked; and the form in which each
/// write is answered.
fn transaction(
    call: Call<'_>,
    inner: &[BatchedRequest<'_>],
) -> Result<(EntityGroupTransaction, Vec<InsertReply>), TableError> {
    let reach = Reach::of(call.asker.caller);
    let mut replies = Vec::with_capacity(inner.len());
    let transaction = EntityGroupTransaction::new(inner.iter().map(|operation| {
        let (write, reply) = write(call, &reach, operation)?;
        replies.push(reply);
        Ok(write)
    }))?;
    Ok((transaction, replies))
}

fn write(
    call: Call<'_>,
    reach: &Reach,
    operation: &BatchedRequest<'_>,
) -> Result<(EntityWrite, InsertReply), TableError> {
    let op = Op::named_in(operation)?;
    call.asker.caller.may(&op.needs())?;
    let (write, reply) = EntityWrite::parse(op, operation, operation.body)?;
    reach.check_table(&write.table)?;
    reach.check(&write.key)?;
    Ok((write, reply))
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let body = collect(body, BODY_BYTES_MAX).await?;
    let outcome = match Batch::parse(call.head, &body) {
        Ok(Batch::Query(inner)) => return query(call, &inner).await,
        Ok(Batch::Changes(inner)) => change(call, &inner).await,
        // A fault of the change set is answered inside the 202; a fault of the body is not.
        Err(error @ TableError::InTransaction { .. }) => Err((error.into(), Prefer::Unsaid)),
        Err(error) => return Err(error.into()),
    };
    let answers = match outcome {
        Ok(answers) => answers,
        Err((Failure::Refused(error), prefer)) => {
            vec![(Answer::refusal(&error.into(), prefer, &call.head.request_id, now(call)), None)]
        }
        Err((failure, _)) => return Err(failure),
    };
    let mut changes = Writer::new(format!("changesetresponse_{}", call.head.request_id));
    for (answer, content_id) in &answers {
        answer.write(changes.part(&HTTP_PART), *content_id);
    }
    let mut batch = batch(call);
    batch.part(&[("Content-Type", &changes.content_type())]).extend_from_slice(&changes.finish());
    Ok(reply(batch))
}

/// The answers of the operations, with their content ids.
type Answers<'a> = Vec<(Answer, Option<&'a str>)>;

/// Commits a change set and returns the answer of each operation; or why not, and the `Prefer` of the refused
/// operation.
async fn change<'a>(call: Call<'_>, inner: &[BatchedRequest<'a>]) -> Result<Answers<'a>, (Failure, Prefer)> {
    let prefer = |error: &TableError| match error {
        TableError::InTransaction { index, .. } => inner.get(*index).map_or(Prefer::Unsaid, Prefer::of),
        _ => Prefer::Unsaid,
    };
    let refused = |error: TableError| {
        let prefer = prefer(&error);
        (Failure::Refused(error), prefer)
    };
    let (transaction, replies) = transaction(call, inner).map_err(refused)?;
    let transaction = Arc::new(transaction);
    let written = match call.commit(&transaction).await {
        Ok(written) => written,
        Err(Failure::Refused(error)) => return Err(refused(error)),
        Err(failure) => return Err((failure, Prefer::Unsaid)),
    };
    let done = transaction.writes.iter().zip(replies).zip(&written).zip(inner);
    let answer =
        |(((write, reply), written), inner): (((&EntityWrite, InsertReply), &EntityWritten), &BatchedRequest<'a>)| {
            (write.answer(call.head, reply, written), inner.content_id)
        };
    Ok(done.map(answer).collect())
}

/// Answers the single query of a batch; it is a part of the batch, without a change set around it.
async fn query(call: Call<'_>, inner: &BatchedRequest<'_>) -> Result<Reply, Failure> {
    let head = head_of(call.head, inner);
    let asked = async {
        let op = Op::named_by(&head)?;
        if op != Op::QueryEntities {
            return Err(TableError::InvalidInput("Outside of a change set only a query can stand.").into());
        }
        call.asker.caller.may(&op.needs()).map_err(TableError::from)?;
        let reach = Reach::of(call.asker.caller);
        let name = super::table_of(&head)?;
        reach.check_table(&name)?;
        query_entities::answer(Call { head: &head, ..call }).await
    };
    let answer = match asked.await {
        Ok(answer) => answer,
        Err(Failure::Refused(error)) => {
            Answer::refusal(&error.into(), Prefer::Unsaid, &call.head.request_id, now(call))
        }
        Err(failure) => return Err(failure),
    };
    let mut batch = batch(call);
    answer.write(batch.part(&HTTP_PART), inner.content_id);
    Ok(reply(batch))
}

fn batch(call: Call<'_>) -> Writer {
    Writer::new(format!("batchresponse_{}", call.head.request_id))
}

fn reply(batch: Writer) -> Reply {
    let kind = batch.content_type();
    let mut reply = Reply::new(StatusCode::ACCEPTED).with("content-type", kind);
    reply.set("x-content-type-options", "nosniff");
    reply.set("cache-control", "no-cache");
    reply.body = ReplyBody::Bytes(batch.finish().into());
    reply
}

fn now(call: Call<'_>) -> Timestamp {
    call.engine.now()
}

#[cfg(test)]
mod tests;
