//! Get File Service Properties: metrics, CORS rules and soft delete of an account's shares.

use service::RequestError;
use service::properties::{Properties, usual_defaults};
use wire::http::Reply;

use super::Call;
use crate::Failure;
use crate::error::FileError;

pub static PROPERTIES: Properties = Properties::new("file", |_| usual_defaults());

pub async fn run(_call: Call<'_>) -> Result<Reply, Failure> {
    Err(FileError::from(RequestError::NotImplemented).into())
}
