//! Get Directory Metadata.

use wire::http::Reply;

use super::Call;
use super::get_directory_properties::ReadDirectory;
use crate::reply::node;
use crate::{Failure, entering};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let target = ReadDirectory::parse(call.head)?;
    let (_, shown) = entering::look(call, &target, ReadDirectory).await?;
    Ok(node::metadata(&shown.node))
}
