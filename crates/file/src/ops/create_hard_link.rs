//! Create Hard Link.

use service::RequestError;
use wire::http::Reply;

use super::Call;
use crate::Failure;
use crate::error::FileError;

pub async fn run(_call: Call<'_>) -> Result<Reply, Failure> {
    Err(FileError::from(RequestError::NotImplemented).into())
}
