//! Get User Delegation Key: a key for somebody who came with a token, to sign with for a few days.
//!
//! Nothing is stored: the key is made from a secret of the server and from what a signature made with it repeats.

use auth::{DelegationKey, Service};
use wire::http::{Body, Head, Reply, StatusCode, collect};
use wire::xml::{KeyInfo, XmlWriter};

use crate::{Asker, Failure, RequestError};

/// Two times and a tenant.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// Makes a key for signatures of one service.
pub async fn user_delegation_key<E: From<RequestError>>(
    service: Service,
    asker: Asker<'_>,
    head: &Head,
    body: &mut dyn Body,
) -> Result<Reply, Failure<E>> {
    let refused = |error: RequestError| Failure::Refused(error.into());
    // Who has no token has been refused before; a server without a secret has no such keys.
    let (Some(bearer), Some(secret)) = (asker.caller.bearer(), asker.secret.0) else {
        return Err(refused(RequestError::NotImplemented));
    };
    let document = collect(body, BODY_BYTES_MAX).await?;
    let info = KeyInfo::parse(&document).map_err(|error| refused(error.into()))?;
    let key = DelegationKey::wanted(bearer, &head.account, service, &head.version, &info, asker.now);
    let mut xml = XmlWriter::document();
    key.map_err(|error| refused(error.into()))?.answer(secret).write(&mut xml);
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}
