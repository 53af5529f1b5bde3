//! Where a request goes: account, resource and query, from its URL.
//!
//! Path style has the account as the first segment of the path; host style has it as the first label of the host, with
//! the service as the second. Everything that leaves here is percent-decoded; what clients sign stays as it was sent.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use wire::http::{ErrorReply, Query};
use wire::percent;

use crate::service::Service;

/// A URL taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub account: String,
    pub secondary: bool,
    /// The account was the first segment of the path.
    pub path_style: bool,
    /// Below the account, decoded, without a leading slash.
    pub resource: String,
    /// `scheme://authority[/account]`.
    pub endpoint: String,
    /// The host names the static website of the account.
    pub website: bool,
}

/// How hosts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// `account.blob.host` names an account; every other host does not.
    MayNameAccounts,
    /// The account is always in the path.
    NeverNameAccounts,
}

impl Target {
    pub(crate) fn parse(uri: &Uri, headers: &HeaderMap, hosts: Hosts, https: bool) -> Result<Target, ErrorReply> {
        let host = host(uri, headers).unwrap_or("localhost");
        let path = uri.path().strip_prefix('/').unwrap_or(uri.path());
        let named_by_host = match hosts {
            Hosts::MayNameAccounts => account_of_host(host),
            Hosts::NeverNameAccounts => None,
        };
        let website = named_by_host.is_some_and(|(_, what)| what == Named::Website);
        let named_by_host = named_by_host.map(|(account, _)| account);
        // The account ends at the first slash as it was sent. Decoding first would let `%2F` move the border between
        // what a signature was checked for and what is done.
        let (named, path) = match named_by_host {
            Some(account) => (account, path),
            None => path.split_once('/').unwrap_or((path, "")),
        };
        let resource = resource(path)?;
        let (account, secondary) = match named.strip_suffix("-secondary") {
            Some(account) => (account, true),
            None => (named, false),
        };
        let scheme = if https { "https" } else { "http" };
        let endpoint = match named_by_host {
            Some(_) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{host}/{named}"),
        };
        let path_style = named_by_host.is_none();
        Ok(Target { account: account.to_owned(), secondary, path_style, resource, endpoint, website })
    }
}

/// The path of a request inside another, which is for the same account: path style names that again, host style does
/// not. Clients write the one or the other whatever they called the outer request by.
pub(crate) fn inside(uri: &Uri, account: &str) -> Result<(String, bool), ErrorReply> {
    let path = uri.path().strip_prefix('/').unwrap_or(uri.path());
    let below = path.strip_prefix(account).and_then(|rest| rest.strip_prefix('/'));
    Ok((resource(below.unwrap_or(path))?, below.is_some()))
}

/// A path below the account, decoded.
fn resource(path: &str) -> Result<String, ErrorReply> {
    let resource = percent::decode_path(path).map_err(|_| unparsable())?;
    if resource.contains('\0') {
        return Err(unparsable());
    }
    // The service takes a backslash in a path for a slash.
    Ok(if resource.contains('\\') { resource.replace('\\', "/") } else { resource.into_owned() })
}

/// The query, decoded.
pub(crate) fn query(uri: &Uri) -> Result<Query, ErrorReply> {
    let raw = uri.query().unwrap_or_default();
    let pairs = percent::query_pairs(raw).map(|pair| {
        let (name, value) = pair.map_err(|_| unparsable())?;
        Ok((name.into_owned(), value.into_owned()))
    });
    pairs.collect::<Result<_, ErrorReply>>().map(Query::new)
}

/// The host as the client wrote it: an absolute request line wins over the header, as HTTP has it.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(header::HOST)?.to_str().ok().filter(|host| host.parse::<Authority>().is_ok()),
    }
}

/// What follows the account in `account.blob.host`: `blob.host`.
pub(crate) fn site_of_host(host: &str) -> Option<&str> {
    account_of_host(host).and_then(|(account, _)| host.strip_prefix(account)?.strip_prefix('.'))
}

/// What a host names beside the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Service,
    Website,
}

/// `account.blob.host` and its like; `account.web.host` is the account's website.
fn account_of_host(host: &str) -> Option<(&str, Named)> {
    let mut labels = host.split(['.', ':']);
    let (account, label) = (labels.next().filter(|account| !account.is_empty())?, labels.next()?);
    if label == "web" {
        return Some((account, Named::Website));
    }
    Service::ALL.iter().any(|known| known.label() == label).then_some((account, Named::Service))
}

fn unparsable() -> ErrorReply {
    ErrorReply::new(400, "RequestUrlFailedToParse", "The url in the request could not be parsed.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(host: &str, uri: &str) -> Result<Target, ErrorReply> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        Target::parse(&uri.parse().unwrap(), &headers, Hosts::MayNameAccounts, false)
    }

    fn target(account: &str, secondary: bool, resource: &str, endpoint: &str) -> Target {
        let path_style = endpoint.ends_with(account) || secondary && endpoint.ends_with("-secondary");
        let website = endpoint.contains(".web.");
        let (account, resource, endpoint) = (account.into(), resource.into(), endpoint.into());
        Target { account, secondary, path_style, resource, endpoint, website }
    }

    #[test]
    fn path_style() {
        for (uri, account, secondary, resource) in [
            ("/acct/c/b", "acct", false, "c/b"),
            ("/acct/c/dir/b", "acct", false, "c/dir/b"),
            ("/acct/c/", "acct", false, "c/"),
            ("/acct/c?restype=container", "acct", false, "c"),
            ("/acct/", "acct", false, ""),
            ("/acct", "acct", false, ""),
            ("/", "", false, ""),
            ("/acct-secondary/c/b", "acct", true, "c/b"),
            ("/acct/c/a%20b%2Fc", "acct", false, "c/a b/c"),
            ("/acct/c/a\\b", "acct", false, "c/a/b"),
            ("/acct/c/a%5Cb", "acct", false, "c/a/b"),
            ("/acct/c//b", "acct", false, "c//b"),
            ("/acct/c/%C3%A4", "acct", false, "c/ä"),
        ] {
            let found = parse("127.0.0.1:10000", uri).unwrap();
            let named = if secondary { format!("{account}-secondary") } else { account.to_owned() };
            let expected = target(account, secondary, resource, &format!("http://127.0.0.1:10000/{named}"));
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    fn an_encoded_slash_does_not_end_the_account() {
        assert_eq!(parse("127.0.0.1", "/acct%2Fbox/thing").unwrap().account, "acct%2Fbox");
        assert_eq!(parse("127.0.0.1", "/acct/box%2Fthing").unwrap().resource, "box/thing");
    }

    #[test]
    fn hosts_that_name_no_account() {
        for host in ["127.0.0.1", "127.0.0.1:10000", "[::1]:10000", "localhost:10000", "azurite", "blob:10000"] {
            assert_eq!(parse(host, "/acct/c").unwrap().account, "acct", "{host}");
        }
        assert_eq!(parse("storage.example.com", "/acct/c").unwrap().account, "acct");
        assert_eq!(parse("host.docker.internal:10000", "/acct/c").unwrap().account, "acct");
    }

    #[test]
    fn host_style() {
        let found = parse("acct.blob.localhost:10000", "/c/b").unwrap();
        assert_eq!(found, target("acct", false, "c/b", "http://acct.blob.localhost:10000"));
        let found = parse("acct-secondary.blob.core.example.net", "/c").unwrap();
        assert_eq!(found, target("acct", true, "c", "http://acct-secondary.blob.core.example.net"));
        assert_eq!(parse("acct.queue.localhost", "/q").unwrap().account, "acct");
        let found = parse("acct.web.localhost:10000", "/docs/").unwrap();
        assert_eq!(found, target("acct", false, "docs/", "http://acct.web.localhost:10000"));
        assert!(!parse("web.localhost:10000", "/acct/docs").unwrap().website);
    }

    #[test]
    fn host_style_can_be_switched_off() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "acct.blob.localhost".parse().unwrap());
        let found = Target::parse(&"/other/c".parse().unwrap(), &headers, Hosts::NeverNameAccounts, true).unwrap();
        assert_eq!((found.account.as_str(), found.endpoint.as_str()), ("other", "https://acct.blob.localhost/other"));
    }

    #[test]
    fn an_absolute_request_line_names_the_host() {
        let found = parse("ignored", "http://acct.blob.localhost/c/b").unwrap();
        assert_eq!((found.account.as_str(), found.resource.as_str()), ("acct", "c/b"));
    }

    #[test]
    fn paths_that_do_not_decode_are_refused() {
        for uri in ["/acct/c/%zz", "/acct/c/%", "/acct/c/%ff", "/acct/c/a%00b"] {
            assert_eq!(parse("127.0.0.1", uri).unwrap_err().code, "RequestUrlFailedToParse", "{uri}");
        }
        assert_eq!(query(&"/acct?a=%ff".parse().unwrap()).unwrap_err().status, 400);
    }
}
