//! Preflight File Request: a browser asks whether a page of another origin may send a request (CORS).

use wire::http::Reply;

use super::Call;
use super::get_file_service_properties::PROPERTIES;
use crate::Failure;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    PROPERTIES.preflight(call.engine, call.account, call.head).await
}
