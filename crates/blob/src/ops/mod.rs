//! The operations, one file each, by the name the REST reference gives them.

mod create_container;
mod delete_blob;
mod delete_container;
mod get_blob;
mod get_blob_properties;
mod get_container_properties;
mod put_blob;

use engine::Engine;
use wire::http::{Body, Head, Reply};

use crate::error::BlobError;
use crate::{Failure, Op, Reach};

/// What every operation is given.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub engine: &'a dyn Engine,
    pub account: u64,
    pub head: &'a Head,
    pub reach: Reach,
}

pub async fn run(op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    match op {
        Op::CreateContainer => create_container::run(call).await,
        Op::DeleteBlob => delete_blob::run(call).await,
        Op::DeleteContainer => delete_container::run(call).await,
        Op::GetBlob => get_blob::run(call).await,
        Op::GetBlobProperties => get_blob_properties::run(call).await,
        Op::GetContainerProperties => get_container_properties::run(call).await,
        Op::PutBlob => put_blob::run(call, body).await,
        _ => Err(BlobError::NotImplemented.into()),
    }
}
