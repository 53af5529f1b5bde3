//! Get Blob Metadata: the metadata alone; older than Get Blob Properties, which tells it too.

use engine::read;
use wire::http::{Reply, StatusCode};

use super::Call;
use super::get_blob::ReadBlob;
use crate::{Failure, reply};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = ReadBlob::parse(call.head)?;
    let account = call.account;
    let seen = read(call.engine, move |rows, now| op.look_inside(rows, account, now)).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, seen.state.stamp);
    reply::set_metadata(&mut answer.headers, &seen.state.metadata);
    Ok(answer)
}
