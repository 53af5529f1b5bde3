//! Find Blobs by Tags in Container: the search of the account, in the container of the path.

use wire::http::Reply;

use super::Call;
use super::find_blobs_by_tags::FindBlobsByTags;
use crate::{Failure, request};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let container = request::container(call.head)?;
    FindBlobsByTags::parse(call.head, call.account, Some(container))?.run(call).await
}
