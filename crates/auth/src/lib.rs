//! Who calls, and what may they do.
//!
//! [`Identifier`] turns the credentials of a request into a [`Caller`]; [`Caller::may`] holds it against what an operation
//! needs. Both are plain functions of their arguments: the time and the stored policies are given, nothing is looked up.
//!
//! - [`account`]: names and keys
//! - [`shared_key`]: the `Authorization` header signed with an account key
//! - [`bearer`]: the `Authorization` header with a token
//! - [`sas`]: the signature in the query, with limits of its own
//! - [`delegation`]: the keys that users sign such a query with
//! - [`grant`]: what such a signature allows
//! - [`refusal`]: every way to be turned away, as the wire says it

pub mod account;
pub mod bearer;
mod collation;
pub mod delegation;
pub mod grant;
mod node_key;
pub mod refusal;
pub mod sas;
pub mod shared_key;

use std::fmt;
use std::net::IpAddr;

use concurrency::Timestamp;
use delegation::Secret;

pub use account::{Account, AccountKey, Accounts, BadAccounts, BadKey, Key, Kind, Settings};
pub use bearer::{BadKeySet, Bearer, KeySet, Tokens};
pub use delegation::DelegationKey;
pub use grant::{
    BearerUse, Caller, Delegation, Grant, GrantKind, Need, Overrides, Permissions, ResourceType, SasUse, Scope, Service,
};
pub use node_key::NodeKey;
pub use refusal::{Fault, Refusal, TokenFault};
pub use sas::{Policy, policy_named};

/// What of a request decides who calls.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub service: Service,
    pub method: &'a str,
    /// From the URL, without `-secondary`.
    pub account: &'a str,
    /// The first segment of the path names the account; otherwise the host does.
    pub path_style: bool,
    /// Percent-encoded, exactly as sent, without the query.
    pub path: &'a str,
    /// Decoded, in the order sent.
    pub query: &'a [(String, String)],
    pub headers: &'a http::HeaderMap,
    pub https: bool,
    pub peer: Option<IpAddr>,
}

/// Leaves out the query and the headers, because credentials stand there.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {} of {}", self.service, self.method, self.path, self.account)
    }
}

/// What a server knows about its callers: the accounts, and on request the issuers whose tokens it takes and the secret that
/// user delegation keys are derived from.
#[derive(Clone, Copy, Debug)]
pub struct Identifier<'a> {
    accounts: &'a Accounts,
    tokens: &'a Tokens,
    secret: Secret<'a>,
}

static NO_TOKENS: Tokens = Tokens::refused();

impl<'a> Identifier<'a> {
    /// Knows keys and what they have signed.
    pub fn new(accounts: &'a Accounts) -> Identifier<'a> {
        Identifier { accounts, tokens: &NO_TOKENS, secret: Secret(None) }
    }

    /// Takes tokens as well.
    pub fn tokens(self, tokens: &'a Tokens) -> Identifier<'a> {
        Identifier { tokens, ..self }
    }

    /// Takes signatures made with user delegation keys as well, if they were derived from this secret.
    pub fn delegation_secret(self, secret: &'a [u8; 32]) -> Identifier<'a> {
        Identifier { secret: Secret(Some(secret)), ..self }
    }

    /// Identifies the caller. A request with an `Authorization` header and a signature in the query has the caller of the
    /// header, but both must be valid; the header is judged first. A user delegation SAS for one user (`sduoid`) is the
    /// exception: the signature says what is allowed, and the token in the header must be of that user. Without either the
    /// caller is anonymous, which the operation may or may not accept.
    ///
    /// `policies` answers with the stored access policy of that id on the container (queue, table, share) of the request;
    /// [`policy_named`] tells beforehand which one will be asked for.
    pub fn identify(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        policies: impl Fn(&str) -> Option<Policy>,
    ) -> Result<Caller, Refusal> {
        let account = self.accounts.get(request.account).ok_or(Refusal::AccountNotFound)?;
        let mut headers = request.headers.get_all(http::header::AUTHORIZATION).iter();
        if let (Some(_), Some(_)) = (headers.next(), headers.next()) {
            return Err(Refusal::InvalidAuthenticationInfo);
        }
        let signature = |bearer: Option<&Bearer>| {
            sas::verify(request, account, self.secret, bearer, now, policies).map(Caller::Sas)
        };
        if let Some(token) = bearer::token(request) {
            let bearer = self.tokens.verify(request, token, now)?;
            if sas::names_a_user(request.query) {
                return signature(Some(&bearer));
            }
            if sas::is_signed(request.query) {
                signature(None)?;
            }
            return Ok(Caller::Bearer(bearer));
        }
        let is_owner = request.headers.contains_key(http::header::AUTHORIZATION);
        if is_owner {
            shared_key::verify(request, account, now)?;
        }
        let signed = sas::is_signed(request.query).then(|| signature(None)).transpose()?;
        Ok(if is_owner { Caller::Owner } else { signed.unwrap_or(Caller::Anonymous) })
    }
}

/// Finds out who calls by keys alone: see [`Identifier::identify`].
pub fn identify(
    request: &Request<'_>,
    accounts: &Accounts,
    now: Timestamp,
    policies: impl Fn(&str) -> Option<Policy>,
) -> Result<Caller, Refusal> {
    Identifier::new(accounts).identify(request, now, policies)
}

#[cfg(test)]
pub(crate) mod testing {
    //! The well-known development account, which the published examples use.

    use super::*;

    pub const NAME: &str = "devstoreaccount1";
    pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    pub const OTHER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    pub fn key(text: &str) -> Key {
        Key::from_base64(text).expect("a valid key")
    }

    pub fn account_key(text: &str) -> AccountKey {
        AccountKey::from_base64(text).expect("a valid key")
    }

    pub fn accounts() -> Accounts {
        Accounts::new([Account::new(NAME, vec![account_key(OTHER_KEY), account_key(KEY)])])
    }

    pub fn at(text: &str) -> Timestamp {
        wire::dates::parse_iso(text).expect("a valid date")
    }

    pub fn pairs(raw: &str) -> Vec<(String, String)> {
        let decoded = wire::percent::query_pairs(raw).map(|pair| pair.expect("well-formed"));
        decoded.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
    }

    pub fn headers(pairs: &[(&str, &str)]) -> http::HeaderMap {
        let mut headers = http::HeaderMap::new();
        for (name, value) in pairs {
            let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a valid name");
            headers.append(name, value.parse().expect("a valid value"));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    fn request<'a>(account: &'a str, query: &'a [(String, String)], headers: &'a http::HeaderMap) -> Request<'a> {
        Request {
            service: Service::Blob,
            method: "GET",
            account,
            path_style: true,
            path: "/devstoreaccount1/c/b",
            query,
            headers,
            https: false,
            peer: None,
        }
    }

    #[test]
    fn without_credentials_the_caller_is_anonymous() {
        let empty = http::HeaderMap::new();
        let caller = identify(&request(NAME, &[], &empty), &accounts(), at("2026-01-01"), |_| None);
        assert_eq!(caller, Ok(Caller::Anonymous));
        let need = Need::new(Service::Blob, ResourceType::Object, "r");
        assert_eq!(Caller::Anonymous.may(&need), Err(Refusal::NoAuthenticationInformation));
    }

    #[test]
    fn no_credentials_are_printed() {
        let headers = headers(&[("authorization", "SharedKey a:c2VjcmV0")]);
        let query = pairs("sig=c2VjcmV0");
        let printed = format!("{:?}", request(NAME, &query, &headers));
        assert_eq!(printed, "Blob GET /devstoreaccount1/c/b of devstoreaccount1");
    }

    #[test]
    fn an_unknown_account_is_not_found() {
        let empty = http::HeaderMap::new();
        let caller = identify(&request("nobody", &[], &empty), &accounts(), at("2026-01-01"), |_| None);
        assert_eq!(caller, Err(Refusal::AccountNotFound));
    }

    #[test]
    fn a_header_is_judged_before_a_signature_in_the_query() {
        let headers = headers(&[("authorization", "SharedKey")]);
        let query = pairs("sig=AAAA");
        let caller = identify(&request(NAME, &query, &headers), &accounts(), at("2026-01-01"), |_| None);
        assert_eq!(caller, Err(Refusal::InvalidAuthenticationInfo));
    }
}
