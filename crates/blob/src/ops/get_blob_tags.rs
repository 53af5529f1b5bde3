//! Get Blob Tags: what a blob, a snapshot or a version is tagged with.

use concurrency::Timestamp;
use engine::read;
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;

use super::Call;
use super::get_blob::ReadBlob;
use crate::error::BlobError;
use crate::model::{self, Seen, refuse};
use crate::{Failure, reply, request};

fn parse(head: &Head) -> Result<ReadBlob, BlobError> {
    Ok(ReadBlob { conditions: request::tag_conditions(head)?, ..ReadBlob::parse(head)? })
}

/// The conditions are about the blob, of which nothing is sent: that it has not changed is no answer, so they are judged
/// like those of a write.
fn decide(op: &ReadBlob, found: Option<Seen>, now: Timestamp) -> Result<Seen, BlobError> {
    let seen = found.ok_or(BlobError::BlobNotFound)?;
    op.conditions.check_write(Some(&seen.state.version()))?;
    seen.lease.unwrap_or_default().check_read(op.lease, now).map_err(BlobError::lease_on_blob)?;
    Ok(seen)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let seen = read(call.engine, move |rows, now| {
        let generation = model::generation(rows, account, &op.container)?;
        let found = model::see(rows, generation, &op.name, op.which)?;
        decide(&op, found, now).map_err(refuse)
    })
    .await?;
    let mut xml = XmlWriter::document();
    reply::tags_element(&mut xml, seen.state.tags());
    Ok(reply::xml(StatusCode::OK, xml))
}
