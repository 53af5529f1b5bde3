//! Delete Entity: remove an entity if its ETag is still the one the client knows. `write.rs` has the rules.

use wire::http::Reply;

use super::Call;
use crate::{Failure, Op, write};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    Ok(write::run(Op::DeleteEntity, call, b"").await?.into())
}
