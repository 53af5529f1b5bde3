//! Preflight Blob Request: a browser asks whether a page of another site may send a request.
//!
//! It is asked without credentials, and whether there is anything at the path makes no difference.

use engine::read;
use wire::cors;
use wire::http::Reply;

use super::Call;
use super::get_blob_service_properties::find;
use crate::Failure;
use crate::error::BlobError;

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let found = read::<_, BlobError, _>(call.engine, |rows, _| Ok(find(rows, call.account, None)?)).await?;
    let [origin, method, headers] = ["origin", "access-control-request-method", "access-control-request-headers"]
        .map(|name| call.head.header(name));
    let reply = cors::preflight(&found.cors.unwrap_or_default(), origin, method, headers);
    Ok(reply.map_err(BlobError::from)?)
}
