//! Create File.

use service::RequestError;
use wire::http::{Body, Reply};

use super::Call;
use crate::Failure;
use crate::error::FileError;

pub async fn run(_call: Call<'_>, _body: &mut dyn Body) -> Result<Reply, Failure> {
    Err(FileError::from(RequestError::NotImplemented).into())
}
