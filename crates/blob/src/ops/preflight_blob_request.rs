//! Preflight Blob Request: a browser asks whether a page of another site may send a request.

use wire::http::Reply;

use super::Call;
use crate::Failure;
use crate::model::service_properties::PROPERTIES;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    PROPERTIES.preflight(call.engine, call.account, call.head).await
}
