//! Get User Delegation Key: a key with which the holder of a bearer token can sign shared access signatures for a few
//! days.
//!
//! Keys are not stored. A key is derived from a secret of the server and from values that every signature made with the
//! key repeats, so it can be derived again.

use auth::{DelegationKey, Service};
use wire::http::{Body, Head, Reply, StatusCode, collect};
use wire::xml::{KeyInfo, XmlWriter};

use crate::{Asker, Failure, RequestError};

/// Enough for the document, which holds two times and a tenant.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// Makes a key for shared access signatures of one service.
pub async fn user_delegation_key<E: From<RequestError>>(
    service: Service,
    asker: Asker<'_>,
    head: &Head,
    body: &mut dyn Body,
) -> Result<Reply, Failure<E>> {
    let refused = |error: RequestError| Failure::Refused(error.into());
    // Callers without a bearer token were refused before. A server without a secret has no user delegation keys.
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
