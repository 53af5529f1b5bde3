//! Get User Delegation Key: a key for somebody who came with a token, to sign with for a few days.

use auth::{DelegationKey, Service};
use service::RequestError;
use wire::http::{Body, Reply, StatusCode, collect};
use wire::xml::{KeyInfo, XmlWriter};

use super::Call;
use crate::error::QueueError;
use crate::{Failure, reply};

/// Two times and a tenant.
const BODY_BYTES_MAX: usize = 4 * 1024;

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let asker = call.asker;
    // Who has no token has been refused before; a server without a secret has no such keys.
    let (Some(bearer), Some(secret)) = (asker.caller.bearer(), asker.secret.0) else {
        return Err(QueueError::from(RequestError::NotImplemented).into());
    };
    let document = collect(body, BODY_BYTES_MAX).await?;
    let info = KeyInfo::parse(&document).map_err(QueueError::from)?;
    let (account, version) = (call.head.account.as_str(), call.head.version.as_str());
    let key = DelegationKey::wanted(bearer, account, Service::Queue, version, &info, asker.now);
    let mut xml = XmlWriter::document();
    key.map_err(QueueError::from)?.answer(secret).write(&mut xml);
    Ok(reply::xml(StatusCode::OK, xml))
}
