//! Insert Or Merge Entity: insert an entity, or set some properties of the existing one. `write.rs` has the rules.

use wire::http::{Body, Reply, collect};

use super::{BODY_BYTES_MAX, Call};
use crate::{Failure, Op, write};

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let body = collect(body, BODY_BYTES_MAX).await?;
    Ok(write::run(Op::InsertOrMergeEntity, call, &body).await?.into())
}
