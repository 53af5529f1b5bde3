//! Set Blob Legal Hold: a blob, a snapshot or a version can be neither changed nor deleted until the hold is cleared.

use service::RequestError;
use wire::http::{Reply, StatusCode};

use super::Call;
use super::set_blob_immutability_policy::Protect;
use crate::error::BlobError;
use crate::model::protection::Protection;
use crate::{Failure, reply, request};

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Protect::parse(call.head)?;
    let missing = RequestError::MissingRequiredHeader { name: request::LEGAL_HOLD };
    let hold = request::legal_hold(call.head)?.ok_or(BlobError::from(missing))?;
    op.run(call, move |before, _| Ok(Protection { legal_hold: Some(hold), ..before })).await?;
    let mut answer = reply::reply(StatusCode::OK);
    answer.headers.insert(&reply::LEGAL_HOLD, reply::flag(hold));
    Ok(answer)
}
