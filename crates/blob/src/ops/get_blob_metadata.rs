//! Get Blob Metadata: the metadata alone; older than Get Blob Properties, which tells it too.

use std::sync::Arc;

use wire::http::{Reply, StatusCode};

use super::Call;
use super::get_blob::ReadBlob;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (seen, _) = call.read(&Arc::new(ReadBlob::parse(call.head)?)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, seen.state.stamp);
    reply::set_metadata(&mut answer.headers, &seen.state.metadata);
    Ok(answer)
}
