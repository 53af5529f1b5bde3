//! Bearer tokens: an `Authorization` header with a JSON Web Token of an issuer that the server trusts.
//!
//! What a token claims is checked in one place, [`Tokens`]; whether its issuer has signed it is for [`KeySet`], and
//! left out on purpose in the basic way, which is for development only. Both are values: keys that are fetched
//! anew make a new value.

mod keys;

use concurrency::Timestamp;
use http::header;
use serde_json::{Map, Value};

use crate::Request;
use crate::grant::Service;
use crate::refusal::{Refusal, TokenFault, is_challenged};

pub use keys::{BadKeySet, KeySet};

/// How far the clock of an issuer may be off, either way.
pub const TOKEN_SKEW_SECONDS_MAX: i64 = 5 * 60;
/// Longer ones are not read. Real tokens have one to three KiB.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Tokens for all accounts, by address and by number.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];
/// Where the endpoint of an account may be, for tokens that name it.
const CLOUDS: [&str; 4] = ["core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de"];
/// Each is followed by the tenant.
const ISSUERS: [&str; 4] = [
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://login.microsoftonline.com/",
];
/// Where test tenants of the service itself get theirs; Azurite takes those, too.
const TEST_ISSUER: &str = "https://sts.windows-ppe.net/";
/// Stands for a user or tenant that a token does not name.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The holder of a token: a user or a program, and the tenant it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    pub oid: Box<str>,
    pub tid: Box<str>,
}

/// Which tokens are taken.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    check: Check,
    issuers: Vec<String>,
    audiences: Vec<String>,
    takes_test_issuer: bool,
}

#[derive(Clone, Debug, Default)]
enum Check {
    #[default]
    Refused,
    Basic,
    Verified(KeySet),
}

impl Tokens {
    /// None.
    pub const fn refused() -> Tokens {
        Tokens { check: Check::Refused, issuers: Vec::new(), audiences: Vec::new(), takes_test_issuer: false }
    }

    /// Those whose times, audience and issuer are right. **Their signature is not verified**: anybody can make one.
    pub fn basic() -> Tokens {
        Tokens { check: Check::Basic, ..Tokens::default() }
    }

    /// Those that one of the keys has signed, too. Give the issuer along with keys that sign for many tenants, or a
    /// token of any of them will do.
    pub fn verified(keys: KeySet) -> Tokens {
        Tokens { check: Check::Verified(keys), ..Tokens::default() }
    }

    /// The same as Azurite has them: it knows one issuer more.
    pub fn basic_of_azurite() -> Tokens {
        Tokens { takes_test_issuer: true, ..Tokens::basic() }
    }

    /// Takes tokens of this issuer instead of those of the public clouds.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Tokens {
        self.issuers.push(issuer.into());
        self
    }

    /// Takes tokens for this audience as well.
    pub fn audience(mut self, audience: impl Into<String>) -> Tokens {
        self.audiences.push(audience.into());
        self
    }

    /// Checks a token: whether there may be one, then its form, its signature, its times, for whom and from whom it is.
    pub(crate) fn verify(&self, request: &Request<'_>, token: &str, now: Timestamp) -> Result<Bearer, Refusal> {
        if !request.https {
            return Err(Refusal::other("Authentication scheme Bearer is not allowed with HTTP."));
        }
        let version = request.headers.get("x-ms-version").and_then(|version| version.to_str().ok());
        if version.is_none_or(|version| version < first_version(request.service)) {
            return Err(Refusal::other("Authentication scheme Bearer is not supported in this version."));
        }
        if matches!(self.check, Check::Refused) {
            return Err(Refusal::other("Authentication scheme Bearer is not supported."));
        }
        require_intent(request)?;
        let challenge = is_challenged(request.service, version);
        self.judge(request, token, now).map_err(|fault| Refusal::InvalidToken { fault, challenge })
    }

    fn judge(&self, request: &Request<'_>, token: &str, now: Timestamp) -> Result<Bearer, TokenFault> {
        let token = Token::parse(token)?;
        if let Check::Verified(keys) = &self.check {
            keys.verify(&token)?;
        }
        let claims = Claims(json(token.claims)?);
        self.in_time(&claims, now)?;
        if !claims.audiences()?.any(|audience| self.is_audience(audience, request)) {
            return Err(TokenFault::Audience);
        }
        let bearer = self.bearer(&claims)?;
        let issuer = claims.text("iss").ok_or(TokenFault::MissingClaim("iss"))?;
        self.is_issuer(issuer, &bearer.tid).then_some(bearer).ok_or(TokenFault::Issuer)
    }

    /// Verified tokens of the public clouds have every claim. Others are made by hand, or by issuers without tenants.
    fn is_strict(&self) -> bool {
        matches!(self.check, Check::Verified(_)) && self.issuers.is_empty()
    }

    fn in_time(&self, claims: &Claims, now: Timestamp) -> Result<(), TokenFault> {
        let now = now.unix_seconds();
        let issued = claims.seconds("iat").ok_or(TokenFault::MissingClaim("iat"))?;
        let expiry = claims.seconds("exp").ok_or(TokenFault::MissingClaim("exp"))?;
        let start = match claims.seconds("nbf") {
            Some(start) => start,
            None if self.is_strict() => return Err(TokenFault::MissingClaim("nbf")),
            None => issued,
        };
        if now.saturating_sub(TOKEN_SKEW_SECONDS_MAX) >= expiry {
            return Err(TokenFault::Expired);
        }
        if start.max(issued) > now.saturating_add(TOKEN_SKEW_SECONDS_MAX) {
            return Err(TokenFault::NotYetValid);
        }
        Ok(())
    }

    fn bearer(&self, claims: &Claims) -> Result<Bearer, TokenFault> {
        let or_nobody = |name, text: Option<&str>| match text {
            Some(text) => Ok(text.into()),
            None if self.is_strict() => Err(TokenFault::MissingClaim(name)),
            None => Ok(NOBODY.into()),
        };
        let subject = claims.text("sub").filter(|_| !self.is_strict());
        let oid = or_nobody("oid", claims.text("oid").or(subject))?;
        Ok(Bearer { oid, tid: or_nobody("tid", claims.text("tid"))? })
    }

    fn is_audience(&self, audience: &str, request: &Request<'_>) -> bool {
        let is = |known: &str| without_slash(known) == without_slash(audience);
        AUDIENCES.into_iter().any(is) || is_endpoint(audience, request) || self.audiences.iter().any(|known| is(known))
    }

    fn is_issuer(&self, issuer: &str, tid: &str) -> bool {
        if !self.issuers.is_empty() {
            return self.issuers.iter().any(|known| without_slash(known) == without_slash(issuer));
        }
        let known = ISSUERS.into_iter().chain(self.takes_test_issuer.then_some(TEST_ISSUER));
        let tenant = known.into_iter().find_map(|known| issuer.strip_prefix(known));
        let tenant = tenant.map(|rest| rest.split('/').next().unwrap_or_default());
        tenant.is_some_and(|tenant| !self.is_strict() || tenant.eq_ignore_ascii_case(tid))
    }
}

/// The token of the `Authorization` header, if that is what stands there.
pub(crate) fn token<'a>(request: &Request<'a>) -> Option<&'a str> {
    let text = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim_ascii();
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(token.trim_ascii())
}

/// The first version in which a service took tokens.
fn first_version(service: Service) -> &'static str {
    match service {
        Service::Blob | Service::Queue | Service::Table => "2017-11-09",
        Service::File => "2022-11-02",
    }
}

/// Files have access lists of their own. A request with a token must say that it means to pass them over.
fn require_intent(request: &Request<'_>) -> Result<(), Refusal> {
    const INTENT: &str = "x-ms-file-request-intent";
    let is_key = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("comp") && value.eq_ignore_ascii_case("userdelegationkey")
    };
    if request.service != Service::File || request.query.iter().any(is_key) {
        return Ok(());
    }
    let intent = request.headers.get(INTENT).ok_or(Refusal::MissingHeader(INTENT))?;
    let is_backup = intent.as_bytes().eq_ignore_ascii_case(b"backup");
    is_backup.then_some(()).ok_or(Refusal::InvalidHeader(INTENT))
}

/// `https://account.blob.core.windows.net`, for the account and the service of the request.
fn is_endpoint(audience: &str, request: &Request<'_>) -> bool {
    let label = |label: &str| match request.service {
        Service::Blob => matches!(label, "blob" | "dfs"),
        Service::Queue | Service::Table | Service::File => label == request.service.word(),
    };
    let host = without_slash(audience).strip_prefix("https://").and_then(|host| host.split_once('.'));
    let Some((account, rest)) = host else { return false };
    let service = rest.split_once('.').is_some_and(|(service, cloud)| label(service) && CLOUDS.contains(&cloud));
    account == request.account && service
}

fn without_slash(text: &str) -> &str {
    text.strip_suffix('/').unwrap_or(text)
}

/// A token taken apart.
pub(crate) struct Token<'a> {
    header: Map<String, Value>,
    /// As sent, in base64.
    claims: &'a str,
    /// Header and claims as sent: what is signed.
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    fn parse(text: &'a str) -> Result<Token<'a>, TokenFault> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        let signature = wire::base64::decode_url(signature).ok_or(TokenFault::Malformed)?;
        Ok(Token { header: json(header)?, claims, signed, signature })
    }
}

fn json(part: &str) -> Result<Map<String, Value>, TokenFault> {
    let bytes = wire::base64::decode_url(part).ok_or(TokenFault::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenFault::Malformed)
}

struct Claims(Map<String, Value>);

impl Claims {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Seconds since 1970; fractions are allowed and cut off.
    fn seconds(&self, name: &str) -> Option<i64> {
        let value = self.0.get(name)?;
        value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64))
    }

    /// One text or a list of them.
    fn audiences(&self) -> Result<impl Iterator<Item = &str>, TokenFault> {
        let claim = self.0.get("aud").ok_or(TokenFault::MissingClaim("aud"))?;
        let list = claim.as_array().map_or(std::slice::from_ref(claim), Vec::as_slice);
        Ok(list.iter().filter_map(Value::as_str))
    }
}

#[cfg(test)]
mod tests;
