//! Undelete Blob: what is deleted of a blob comes back: the blob itself, its snapshots and its versions.

use concurrency::Timestamp;
use engine::{Changes, Commit, commit};
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::keeping;
use crate::model::{self, Blob, blob_key, refuse};
use crate::{Failure, reply, request};

struct UndeleteBlob {
    container: ContainerName,
    name: BlobName,
}

fn parse(head: &Head) -> Result<UndeleteBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_unbuilt_headers(head)?;
    Ok(UndeleteBlob { container, name })
}

/// Whether there is anything that the name stands for: the blob, deleted or not, or earlier states of it.
fn is_known(blob: &Blob, now: Timestamp) -> bool {
    let past = blob.past.as_ref();
    let deleted = past.and_then(|past| past.deleted.as_ref()?.deleted);
    blob.committed.is_some()
        || blob.snapshots > 0
        || deleted.is_some_and(|mark| mark.is_kept(now))
        || past.is_some_and(|past| past.has_versions() || past.deleted_snapshots > 0)
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let partition = model::blob_partition(account, &op.container, &op.name);
    commit(call.engine, partition, move |rows, tick| {
        let generation = model::generation(rows, account, &op.container)?;
        let key = blob_key(generation, &op.name);
        let found = model::find_blob(rows, &key)?.filter(|blob| is_known(blob, tick.now));
        let blob = found.ok_or(refuse(BlobError::BlobNotFound))?;
        let mut changes = Changes::none();
        if let Some(blob) = keeping::undelete(rows, &key, blob, tick, &mut changes)? {
            blob.store(key, &mut changes);
        }
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(reply::reply(StatusCode::OK))
}
