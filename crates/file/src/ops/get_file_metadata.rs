//! Get File Metadata.

use wire::http::Reply;

use super::Call;
use super::get_file_properties::ReadFile;
use crate::reply::node;
use crate::{Failure, entering};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, read) = ReadFile::parse(call.head)?;
    let (_, shown) = entering::look(call, &target, read).await?;
    Ok(node::metadata(&shown.node))
}
