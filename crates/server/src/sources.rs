//! Where copies come from: which URLs name something of this server, whether the caller may read that, and how to get what is
//! elsewhere.
//!
//! A source in this server is judged by the code that judges reads: the same signatures, tokens, policies and public access.
//! It is not fetched. What is elsewhere is, from hosts that the operator allows.

use std::net::{IpAddr, SocketAddr};

use auth::{Caller, GrantKind};
use blob::{Fetched, Outside, Running, Unreached};
use engine::{BoxFuture, EngineError};
use fetch::{FetchError, Url};
use http::{HeaderMap, HeaderValue, Method, header};
use service::Manners;
use service::sources::{Located, Manner, Sources, Wish};
use wire::http::{ErrorReply, Head};

use crate::pipeline::{Entered, Pipeline, Stop};
use crate::service::Service;
use crate::services::{Op, SourceReads};
use crate::target::{self, Hosts, Target};

const INTENT: &str = "x-ms-file-request-intent";

/// Finds sources for one request.
pub(crate) struct CallersSources<'a> {
    pub pipeline: &'a Pipeline,
    pub entered: &'a Entered,
}

/// A request that a URL stands for, and its caller.
struct SourceRequest {
    account: u64,
    head: Head,
    caller: Caller,
}

/// Says no more than whose they are: what they hold opens doors.
impl std::fmt::Debug for CallersSources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallersSources({})", self.entered.head.request_id)
    }
}

impl Sources for CallersSources<'_> {
    fn locate<'a>(&'a self, wish: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>> {
        Box::pin(async move {
            let Ok(url) = Url::parse(&wish.url) else { return Ok(Located::Unclear) };
            let Some((service, reads)) = self.service_at(&url) else { return Ok(Located::There) };
            match self.read(service, reads, &url, wish).await {
                Ok((account, head)) => {
                    Ok(Located::Here { service: service.signed_as(), account, head: Box::new(head) })
                }
                Err(Stop::Refused(reply)) => Ok(Located::Refused(reply)),
                Err(Stop::Failed(error)) => Err(error),
                // The request has no body and no time-out of its own.
                Err(Stop::Body(_) | Stop::TimedOut) => Err(EngineError::Busy),
            }
        })
    }

    fn may_write<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            let Ok(url) = Url::parse(url) else { return Ok(false) };
            match self.write(&url).await {
                Ok(()) => Ok(true),
                Err(Stop::Refused(_)) => Ok(false),
                Err(Stop::Failed(error)) => Err(error),
                Err(Stop::Body(_) | Stop::TimedOut) => Err(EngineError::Busy),
            }
        })
    }
}

impl CallersSources<'_> {
    /// Whether the URL, with the signature in it, would be let in as the target of a rename in the caller's account.
    async fn write(&self, url: &Url) -> Result<(), Stop> {
        let SourceRequest { account, head, caller } = self.asked(self.pipeline, url, None).await?;
        if caller == Caller::Anonymous || head.account != self.entered.head.account {
            return Err(auth::Refusal::NoAuthenticationInformation.into());
        }
        self.pipeline.may(&caller, Op::File(file::Op::RenameFile), account, &head).await
    }

    /// The service of this server that a request for the URL would come to, if it is one to copy from: the URL has the host
    /// that the caller has reached us by, or an address and port at which we listen.
    fn service_at(&self, url: &Url) -> Option<(Service, SourceReads<Op>)> {
        let house = &self.pipeline.house;
        let own = Url::parse(&self.entered.head.endpoint).ok().map(|own| Site::of(&own, house.hosts));
        let by_host = own.and_then(|own| own.service_at(&Site::of(url, house.hosts), self.pipeline.service));
        let at_door = house.rest_addresses().iter().filter(|(_, address)| is_at(url, *address));
        let services = by_host.into_iter().chain(at_door.map(|(service, _)| *service));
        services.filter_map(|service| Some((service, Op::reading_source(service)?))).next()
    }

    /// A request for the URL, and its caller by the signature in the URL or by the token.
    async fn asked(&self, pipeline: &Pipeline, url: &Url, authorization: Option<&str>) -> Result<SourceRequest, Stop> {
        let uri = url.uri().map_err(|_| ErrorReply::new(400, "InvalidUri", "The URL cannot be parsed."))?;
        let target = Target::parse(&uri, &HeaderMap::new(), pipeline.house.hosts, url.is_https())?;
        if self.entered.accounts.get(&target.account).is_none() {
            return Err(auth::Refusal::AccountNotFound.into());
        }
        let mut headers = HeaderMap::new();
        let mut set = |name, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        set(http::HeaderName::from_static("x-ms-version"), &self.entered.head.version);
        if let Some(token) = authorization {
            set(header::AUTHORIZATION, token);
            // A token for a file must come with it.
            if let Some(intent) = self.entered.head.header(INTENT) {
                set(http::HeaderName::from_static(INTENT), intent);
            }
        }
        let head = Head {
            method: Method::GET,
            account: target.account,
            secondary: target.secondary,
            resource: target.resource,
            raw_path: uri.path().to_owned(),
            query: target::query(&uri)?,
            headers,
            endpoint: target.endpoint,
            version: self.entered.head.version.clone(),
            request_id: self.entered.head.request_id.clone(),
            // A token came the way of this request; a signature says by itself which way it may be used.
            https: if authorization.is_some() { self.entered.head.https } else { url.is_https() },
        };
        let account = pipeline.house.account_ids.of(&head.account).await?;
        let (accounts, path_style) = (&self.entered.accounts, target.path_style);
        let peer = self.entered.peer;
        let caller = pipeline.identify(&head, path_style, peer, accounts, account, self.entered.now).await;
        if matches!(caller, Err(Stop::Refused(_))) {
            pipeline.slow_down(peer).await;
        }
        let caller = caller?;
        Ok(SourceRequest { account, head, caller })
    }

    /// The request that would read the source, if it would be answered.
    async fn read(
        &self,
        service: Service,
        reads: SourceReads<Op>,
        url: &Url,
        wish: &Wish,
    ) -> Result<(u64, Head), Stop> {
        let pipeline = self.pipeline.of(service);
        let SourceRequest { account, head, caller } = self.asked(&pipeline, url, wish.authorization.as_deref()).await?;
        if caller == Caller::Anonymous && wish.manner == Manner::Copy && self.may_as_caller(&head, reads, wish) {
            return Ok((account, head));
        }
        // Azurite looks at no credential for a source of the same account. It knows no files.
        let is_own = head.account == self.entered.head.account && self.entered.caller != Caller::Anonymous;
        let is_of_blobs = [self.pipeline.service, service] == [Service::Blob; 2];
        if caller == Caller::Anonymous && is_own && is_of_blobs && pipeline.house.manners == Manners::Azurite {
            return Ok((account, head));
        }
        pipeline.may(&caller, reads.content, account, &head).await?;
        if let (true, Some(tags)) = (wish.reads_tags, reads.tags) {
            pipeline.may(&caller, tags, account, &head).await?;
        }
        Ok((account, head))
    }

    /// Whether a caller that may copy into the account may read from it, too. A signature for one container or blob says nothing
    /// about others.
    fn may_as_caller(&self, source: &Head, reads: SourceReads<Op>, wish: &Wish) -> bool {
        let is_own = source.account == self.entered.head.account;
        is_own
            && match &self.entered.caller {
                Caller::Owner | Caller::Bearer(_) => true,
                Caller::Sas(grant) => {
                    let may = |op: Op| grant.may(&op.needed_by(source)).is_ok();
                    let is_account = matches!(grant.kind, GrantKind::Account { .. });
                    is_account && may(reads.content) && (!wish.reads_tags || reads.tags.is_none_or(may))
                }
                Caller::Anonymous => false,
            }
    }
}

/// What a URL's host says, without the account that it may name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Site {
    /// `blob` of `account.blob.host`.
    label: Option<String>,
    domain: String,
    /// If it is not the usual one.
    port: Option<u16>,
}

impl Site {
    fn of(url: &Url, hosts: Hosts) -> Site {
        let site = match hosts {
            Hosts::MayNameAccounts => target::site_of_host(url.host()),
            Hosts::NeverNameAccounts => None,
        };
        let (label, domain) = match site {
            Some(site) => site.split_once('.').map_or((Some(site), ""), |(label, domain)| (Some(label), domain)),
            None => (None, url.host()),
        };
        let usual = if url.is_https() { 443 } else { 80 };
        let port = Some(url.port()).filter(|port| *port != usual);
        Site { label: label.map(str::to_owned), domain: domain.to_owned(), port }
    }

    /// The service at another site, if both are sites of one server. `own` is the service here.
    fn service_at(&self, other: &Site, own: Service) -> Option<Service> {
        if self == other {
            return Some(own);
        }
        let (_, label) = (self.label.as_ref()?, other.label.as_ref()?);
        let is_beside = (&self.domain, self.port) == (&other.domain, other.port);
        Service::ALL.into_iter().filter(|_| is_beside).find(|service| service.label() == label)
    }
}

fn is_at(url: &Url, door: SocketAddr) -> bool {
    let is_here = match url.ip() {
        Some(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some_and(|four| four.is_loopback()) => true,
        Some(ip) => ip.is_loopback() || ip == door.ip(),
        None => url.host() == "localhost" || url.host().ends_with(".localhost"),
    };
    is_here
        && url.port() == door.port()
        && (door.ip().is_loopback() || door.ip().is_unspecified() || url.ip().is_some())
}

/// What is elsewhere, as far as the operator allows.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub client: fetch::Client,
}

impl Outside for Elsewhere {
    fn fetch<'a>(&'a self, url: &'a str, headers: HeaderMap) -> BoxFuture<'a, Result<Fetched, Unreached>> {
        Box::pin(async move {
            let uri = Url::parse(url).and_then(|url| url.uri()).map_err(|_| unreached(&FetchError::Url))?;
            let answer = self.client.get(&uri, headers).await.map_err(|error| unreached(&error))?;
            let status = answer.status.as_u16();
            Ok(Fetched { status, headers: answer.headers, body: Box::new(answer.body) })
        })
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) -> Box<dyn Running> {
        Box::new(Task(tokio::spawn(work).abort_handle()))
    }
}

/// Tells the caller nothing of what the network looks like from here.
fn unreached(error: &FetchError) -> Unreached {
    tracing::debug!(%error, "a copy source was not reached");
    let (is_forbidden, message) = match error {
        FetchError::Url => (true, "The copy source is not a URL that can be read."),
        FetchError::NotAllowed => (true, "The copy source is not at a host that this server may read from."),
        FetchError::Unreachable(_)
        | FetchError::NoTrust
        | FetchError::Tls(_)
        | FetchError::Protocol(_)
        | FetchError::Slow
        | FetchError::TooLarge
        | FetchError::Incomplete => (false, "The copy source cannot be read."),
    };
    Unreached { is_forbidden, message: message.to_owned() }
}

#[derive(Debug)]
struct Task(tokio::task::AbortHandle);

impl Running for Task {}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_from() {
        let reads = Op::reading_source(Service::Blob).expect("blobs are copied");
        assert_eq!((reads.content.name(), reads.tags.map(Op::name)), ("GetBlob", Some("GetBlobTags")));
        let reads = Op::reading_source(Service::File).expect("files are copied");
        assert_eq!((reads.content.name(), reads.tags), ("GetFile", None));
        for service in [Service::Queue, Service::Table, Service::Dfs] {
            assert_eq!(Op::reading_source(service), None, "{service:?}");
        }
    }

    #[test]
    fn which_urls_are_ours_and_whose() {
        let url = |text: &str| Url::parse(text).unwrap();
        let site = |text: &str| Site::of(&url(text), Hosts::MayNameAccounts);
        let service = |a: &str, b: &str| site(a).service_at(&site(b), Service::Blob);
        let same = |a: &str, b: &str| service(a, b) == Some(Service::Blob);
        assert!(same("http://127.0.0.1:10000/acct", "http://127.0.0.1:10000/other/c/b"));
        assert!(same("http://a.blob.localhost:10000", "http://b.blob.localhost:10000/c/b"));
        // A proxy in front of us may speak https.
        assert!(same("http://store.example.org/acct", "https://store.example.org/acct/c/b"));
        assert!(!same("http://127.0.0.1:10000/acct", "http://127.0.0.1:10001/acct/c/b"));
        assert!(!same("http://a.blob.example.org", "http://a.blob.example.net/c/b"));
        assert_eq!(service("http://a.blob.example.org", "http://b.file.example.org/s/f"), Some(Service::File));
        assert_eq!(service("http://a.blob.example.org", "http://a.queue.example.org/c/b"), Some(Service::Queue));
        assert_eq!(service("http://a.blob.example.org", "http://a.file.example.net/s/f"), None);
        assert_eq!(service("http://a.blob.example.org", "http://a.web.example.org/page"), None);
        assert_eq!(service("http://a.blob.example.org:1", "http://a.file.example.org:2/s/f"), None);
        assert_eq!(service("http://file.example.org", "http://a.file.example.org/s/f"), None);
        let at = |text: &str, door: &str| is_at(&url(text), door.parse().unwrap());
        assert!(at("http://localhost:10000/a/c/b", "127.0.0.1:10000"));
        assert!(at("http://127.0.0.1:10000/a/c/b", "0.0.0.0:10000"));
        assert!(at("http://a.blob.localhost:10000/c/b", "127.0.0.1:10000"));
        assert!(at("http://[::ffff:127.0.0.1]:10000/a/c/b", "127.0.0.1:10000"));
        assert!(at("http://10.0.0.7:10000/a/c/b", "10.0.0.7:10000"));
        assert!(!at("http://localhost:10001/a/c/b", "127.0.0.1:10000"));
        assert!(!at("http://10.0.0.8:10000/a/c/b", "10.0.0.7:10000"));
        assert!(!at("http://store.example.org:10000/a/c/b", "127.0.0.1:10000"));
    }
}
