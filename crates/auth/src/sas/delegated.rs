//! Signatures made with a user delegation key. They repeat what the key was made from, so that it can be made again, and
//! sign all of that.

use concurrency::Timestamp;
use http::HeaderName;

use super::{Lines, Signer, Token, find, full_resource, scope, time};
use crate::Request;
use crate::bearer::Bearer;
use crate::delegation::{DelegationKey, Secret};
use crate::grant::{Delegation, GrantKind, Service};
use crate::refusal::{Fault, Refusal};

/// The first version in which a signature could be tied to one user.
const ONE_USER_SINCE: &str = "2025-07-05";
/// The first version in which a signature could be tied to headers and parameters of the request.
const REQUEST_SINCE: &str = "2026-04-06";

/// From when to when the key signs.
pub(super) struct Lifetime {
    start: Timestamp,
    expiry: Timestamp,
}

impl Lifetime {
    /// The start belongs to it, the expiry does not.
    pub(super) fn hold_at(&self, now: Timestamp) -> Result<(), Refusal> {
        let Lifetime { start, expiry } = *self;
        if start <= now && now < expiry {
            return Ok(());
        }
        Err(Refusal::AuthenticationFailed(Fault::OutsideKeyTimeFrame { start, expiry, now }))
    }
}

/// What the signature claims to be for, the text it must have signed, and the key it must have been signed with.
pub(super) fn claimed<'a>(
    request: &Request<'_>,
    token: &Token<'_>,
    secret: Secret<'_>,
) -> Result<(GrantKind, String, Signer<'a>), Refusal> {
    let Some(secret) = secret.0 else {
        return Err(Refusal::other("User delegation signatures are not supported."));
    };
    if !first_version(request.service).is_some_and(|first| token.since(first)) {
        return Err(Refusal::field("sv", "is too old for a user delegation signature"));
    }
    if token.si.is_some() {
        return Err(Refusal::field("si", "cannot be used with a user delegation signature"));
    }
    if token.saoid.is_some() && token.suoid.is_some() {
        return Err(Refusal::field("suoid", "cannot be used together with saoid"));
    }
    let key = key(request, token)?;
    let (scope, resource) = scope(request, token)?;
    let text = text(request, token, &resource)?;
    let lifetime = Lifetime { start: key.start, expiry: key.expiry };
    Ok((GrantKind::Service(scope), text, Signer::User { key: key.signing_key(secret), lifetime }))
}

/// Tables have none.
fn first_version(service: Service) -> Option<&'static str> {
    match service {
        Service::Blob => Some("2018-11-09"),
        Service::Queue | Service::File => Some("2025-07-05"),
        Service::Table => None,
    }
}

fn key<'a>(request: &Request<'a>, token: &Token<'a>) -> Result<DelegationKey<'a>, Refusal> {
    let t = token;
    let given = |name, value: Option<&'a str>| value.ok_or(Refusal::field(name, "is mandatory. Cannot be empty"));
    let at = |name, value| time(name, value)?.ok_or(Refusal::field(name, "is mandatory. Cannot be empty"));
    if given("sks", t.sks)?.as_bytes() != [request.service.letter()] {
        return Err(Refusal::field("sks", "is not this service"));
    }
    Ok(DelegationKey {
        account: request.account,
        oid: given("skoid", t.skoid)?,
        tid: given("sktid", t.sktid)?,
        start: at("skt", t.skt)?,
        expiry: at("ske", t.ske)?,
        service: request.service,
        version: given("skv", t.skv)?,
        delegated_tid: t.skdutid,
    })
}

/// Whether `saoid`, `suoid` and `scid` are signed.
fn signs_users(service: Service, token: &Token<'_>) -> bool {
    service == Service::Blob && token.since("2020-02-10")
}

fn text(request: &Request<'_>, token: &Token<'_>, resource: &str) -> Result<String, Refusal> {
    let t = token;
    let is_blob = request.service == Service::Blob;
    let full = full_resource(token, request.service, request.account, resource);
    let mut lines = Lines::of(&[t.sp, t.st, t.se, Some(&full), t.skoid, t.sktid, t.skt, t.ske, t.sks, t.skv]);
    if signs_users(request.service, token) {
        lines.add(&[t.saoid, t.suoid, t.scid]);
    }
    if t.since(ONE_USER_SINCE) {
        lines.add(&[t.skdutid, t.sduoid]);
    }
    lines.add(&[t.sip, t.spr, t.sv]);
    if is_blob {
        lines.add(&[t.sr, t.state()]);
    }
    if is_blob && t.since("2020-12-06") {
        lines.add(&[t.ses]);
    }
    if is_blob && t.since(REQUEST_SINCE) {
        let (headers, parameters) = (signed_headers(request, t.srh)?, signed_parameters(request, t.srq)?);
        lines.add(&[Some(&headers), Some(&parameters)]);
    }
    match request.service {
        Service::Blob | Service::File => lines.add(&[t.rscc, t.rscd, t.rsce, t.rscl, t.rsct]),
        Service::Queue | Service::Table => {}
    }
    Ok(lines.0)
}

/// A line for each header that the signature names, as the request has it.
fn signed_headers(request: &Request<'_>, names: Option<&str>) -> Result<String, Refusal> {
    let mut text = String::new();
    for name in names.into_iter().flat_map(|names| names.split(',')) {
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refusal::field("srh", "is not valid"))?;
        let mut values = request.headers.get_all(&parsed).iter();
        let value = values.next().ok_or(Refusal::field("srh", "names a header that the request does not have"))?;
        if values.next().is_some() {
            return Err(Refusal::DuplicateHeader(parsed.as_str().to_owned()));
        }
        text.push_str(name);
        text.push(':');
        text.push_str(&String::from_utf8_lossy(value.as_bytes()));
        text.push('\n');
    }
    Ok(text)
}

/// The same for parameters of the query. A colon in a name or a line feed in a value could be read in two ways.
fn signed_parameters(request: &Request<'_>, names: Option<&str>) -> Result<String, Refusal> {
    let mut text = String::new();
    for name in names.into_iter().flat_map(|names| names.split(',')) {
        let is_name = |known: &&(String, String)| known.0.eq_ignore_ascii_case(name);
        let value = find(request.query, name);
        let value = value.ok_or(Refusal::field("srq", "names a parameter that the request does not have"))?;
        let twice = request.query.iter().filter(is_name).nth(1).is_some();
        if twice || name.contains(':') || value.contains('\n') {
            return Err(Refusal::field("srq", "is not valid"));
        }
        text.push('\n');
        text.push_str(name);
        text.push(':');
        text.push_str(value);
    }
    Ok(text)
}

/// A signature for one user only needs a token of that user.
pub(super) fn verify_user(token: &Token<'_>, bearer: Option<&Bearer>) -> Result<(), Refusal> {
    let Some(oid) = token.sduoid.filter(|_| token.since(ONE_USER_SINCE)) else { return Ok(()) };
    let Some(bearer) = bearer else {
        return Err(Refusal::other("The signature is for one user, and there is no token to show who calls."));
    };
    let tid = token.skdutid.or(token.sktid).unwrap_or_default();
    let is_user = bearer.oid.eq_ignore_ascii_case(oid) && bearer.tid.eq_ignore_ascii_case(tid);
    is_user.then_some(()).ok_or(Refusal::other("The signature is for another user than the token."))
}

/// On whose behalf the signature was made. What it does not sign does not count.
pub(super) fn delegation(service: Service, token: &Token<'_>) -> Delegation {
    let is_signed = signs_users(service, token);
    let signed = |value: Option<&str>| value.filter(|_| is_signed).map(str::to_owned);
    Delegation {
        oid: token.skoid.unwrap_or_default().to_owned(),
        tid: token.sktid.unwrap_or_default().to_owned(),
        authorized_oid: signed(token.saoid),
        unauthorized_oid: signed(token.suoid),
        correlation_id: signed(token.scid),
    }
}

#[cfg(test)]
mod tests;
