//! Undelete Blob: what is deleted of a blob comes back: the blob itself, its snapshots and its versions.

use engine::{Changes, Commit, commit};
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Blob, blob_key, refuse};
use crate::rules::soft_delete;
use crate::{Failure, reply, request};

struct UndeleteBlob {
    container: ContainerName,
    name: BlobName,
}

fn parse(head: &Head) -> Result<UndeleteBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_foreign_headers(head)?;
    Ok(UndeleteBlob { container, name })
}

/// Whether there is anything that needs no undeleting: the blob, or earlier states of it.
fn is_there(blob: &Blob) -> bool {
    blob.committed.is_some() || blob.snapshots > 0 || blob.past.as_ref().is_some_and(|past| past.versions > 0)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let partition = model::blob_partition(account, &op.container, &op.name);
    commit(call.engine, partition, move |rows, tick| {
        let generation = model::generation(rows, account, &op.container)?;
        let key = blob_key(generation, &op.name);
        let blob = model::find_blob(rows, &key)?.ok_or(refuse(BlobError::BlobNotFound))?;
        let is_there = is_there(&blob);
        let mut changes = Changes::none();
        match soft_delete::undelete(rows, &key, blob, tick, &mut changes)? {
            Some(blob) => blob.store(key, &mut changes),
            // Nothing to do is fine, nothing at all is not.
            None if is_there => {}
            None => return Err(refuse(BlobError::BlobNotFound)),
        }
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(reply::reply(StatusCode::OK))
}
