//! Rename Directory: moves a directory with everything below it, in one step. Nothing below is touched.

use wire::http::Reply;

use super::{Call, rename_file};
use crate::Failure;
use crate::change::rename::RenamedKind;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    rename_file::run_as(call, RenamedKind::Directory).await
}
