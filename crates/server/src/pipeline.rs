//! The walk: identify the caller, name the operation, may the caller, run, reply.
//!
//! `walk` is the whole house in one function; everything it calls is one floor further in. Whatever happens in there, a
//! refusal, a failure or a panic, becomes one answer here, is logged once, and leaves the connection in good order.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use ::service::current::{self, Current, Shared};
use ::service::{Failure, Manners};
use auth::delegation::Secret;
use auth::{Accounts, Caller, Identifier, Refusal, Settings, TokenFault, Tokens};
use blob::Asker;
use concurrency::Timestamp;
use engine::{Engine, EngineError};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use wire::cors;
use wire::http::{Body, BodyError, ErrorReply, Head, Query, Reply, find, header};

use crate::access_log::{AccessLog, Line};
use crate::activity::Activity;
use crate::body::{AnswerBody, PublicAnswers, RequestBody, TooManyBytes};
use crate::debug_log;
use crate::dfs;
use crate::failed_sign_ins::FailedSignIns;
use crate::forward::{self, Forwarded};
use crate::http1::Answers;
use crate::issuer::Issuer;
use crate::limits::{HEAD_BYTES_MAX, LOG_PAUSE, Limits};
use crate::log_throttle::LogThrottle;
use crate::metrics::{Metrics, RequestKind};
use crate::nodes::Nodes;
use crate::request_id::{RequestId, RequestIds};
use crate::respond::{self, Envelope};
use crate::service::Service;
use crate::services::{Op, Services, not_built};
use crate::sources::CallersSources;
use crate::stream::Traffic;
use crate::target::{self, Hosts, Target};
use crate::timeouts;
use crate::version;
use engine::panics::{Panicked, caught};

/// What all services of a server have in common.
pub(crate) struct House {
    pub accounts: Arc<dyn Current<Accounts>>,
    pub tokens: Arc<Shared<Tokens>>,
    pub issuer: Option<Arc<Issuer>>,
    pub delegation_secret: [u8; 32],
    pub account_ids: AccountIds,
    pub services: Services,
    pub metrics: Arc<Metrics>,
    pub hosts: Hosts,
    pub manners: Manners,
    pub limits: Limits,
    pub access_log: Option<AccessLog>,
    pub request_ids: RequestIds,
    pub failed_sign_ins: FailedSignIns,
    pub public_answers: PublicAnswers,
    /// The other nodes of a cluster.
    pub nodes: Option<Arc<Nodes>>,
    /// Where the services listen for REST requests, once they do.
    pub rest_addresses: OnceLock<Vec<(Service, SocketAddr)>>,
}

impl House {
    pub(crate) fn rest_addresses(&self) -> &[(Service, SocketAddr)] {
        self.rest_addresses.get().map_or(&[], Vec::as_slice)
    }
}

/// Leaves out the secret.
impl fmt::Debug for House {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("House").field("hosts", &self.hosts).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Rows carry numbers instead of account names. A number never changes, so it is asked for once.
#[derive(Debug)]
pub(crate) struct AccountIds {
    engine: Arc<dyn Engine>,
    known: RwLock<HashMap<String, u64>>,
}

impl AccountIds {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> AccountIds {
        AccountIds { engine, known: RwLock::default() }
    }

    /// The number of an account that exists. The first request for an account gives it its number.
    pub(crate) async fn of(&self, name: &str) -> Result<u64, EngineError> {
        if let Some(id) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(*id);
        }
        let id = engine::account::id(self.engine.as_ref(), name).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), id);
        Ok(id)
    }
}

/// One service, as a port sees it.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub house: Arc<House>,
    pub service: Service,
    pub https: bool,
}

/// What the URL of a request says about where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlStyle {
    PathStyle,
    HostStyle,
    Website,
}

/// Where the walk has come to; the log wants to know, however it ends.
#[derive(Debug)]
pub(crate) struct Progress {
    pub asked: RequestKind,
    pub version: HeaderValue,
    pub account: Option<u64>,
    /// The signature or token was not good.
    pub failed_sign_in: bool,
    /// It was.
    pub signed_in: bool,
    /// Who called, if the debug log wants to know.
    pub caller: Option<String>,
    /// Of the connection, which has to hear when its client was let in. None for a part of a batch.
    pub activity: Option<Arc<Activity>>,
    /// What another node has to answer.
    pub elsewhere: Option<Box<Elsewhere>>,
}

/// A request that another node has to answer.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    address: String,
    headers: HeaderMap,
    patience: Duration,
}

impl Progress {
    pub(crate) fn new(service: Service, version: HeaderValue) -> Progress {
        let asked = RequestKind::Unknown(service);
        let (failed_sign_in, signed_in) = (false, false);
        let (account, caller, activity, elsewhere) = (None, None, None, None);
        Progress { asked, version, account, failed_sign_in, signed_in, caller, activity, elsewhere }
    }

    fn of_connection(self, activity: &Arc<Activity>) -> Progress {
        Progress { activity: Some(Arc::clone(activity)), ..self }
    }
}

/// A request that may be done: the door is behind it.
#[derive(Debug)]
pub(crate) struct Entered {
    pub head: Head,
    pub account: u64,
    pub settings: Arc<Settings>,
    pub caller: Caller,
    pub now: Timestamp,
    pub op: Op,
    /// What the request was judged by, for what it names further.
    pub accounts: Arc<Accounts>,
    pub peer: SocketAddr,
}

impl House {
    /// The accounts as they are now.
    async fn accounts(&self) -> Result<Arc<Accounts>, EngineError> {
        current::newest(&*self.accounts).await
    }
}

impl Pipeline {
    /// The same for another service, for what a request names beside its own resource.
    pub(crate) fn of(&self, service: Service) -> Pipeline {
        Pipeline { house: Arc::clone(&self.house), service, https: self.https }
    }

    /// The walk.
    async fn walk(
        &self,
        request: &mut Parts,
        request_id: &RequestId,
        peer: SocketAddr,
        body: &mut dyn Body,
        progress: &mut Progress,
    ) -> Result<Reply, Stop> {
        let (head, place) = self.head(request, request_id, progress)?;
        if !Services::is_built(self.service) {
            return Err(not_built(self.service).into());
        }
        // What is seldom asked for stands apart: every request has room for the largest of what it may become.
        if place == UrlStyle::Website {
            return Box::pin(self.website(head, progress)).await;
        }
        let entered = self.enter(head, place == UrlStyle::PathStyle, peer, progress).await?;
        if entered.op == Op::Blob(blob::Op::BlobBatch) {
            // Each part of it is walked like a request of its own.
            return Box::pin(self.batch(&entered, peer, body)).await;
        }
        let outcome = self.run(&entered, body).await;
        if let Err(Stop::Failed(EngineError::Elsewhere { address: Some(address) })) = &outcome {
            let patience = timeouts::of(&entered.head, entered.op, body.length())?;
            let (address, headers) = (address.clone(), entered.head.headers);
            progress.elsewhere = Some(Box::new(Elsewhere { address, headers, patience }));
        }
        outcome
    }

    /// A page of an account's website, which has a walk of its own: reads need no credential, and there is nothing but reads.
    async fn website(&self, head: Head, progress: &mut Progress) -> Result<Reply, Stop> {
        if self.service != Service::Blob {
            return Err(ErrorReply::new(400, "InvalidUri", "The requested URI does not represent any resource.").into());
        }
        let accounts = self.house.accounts().await?;
        let Some(known) = accounts.get(&head.account) else { return Err(Refusal::AccountNotFound.into()) };
        let account = self.house.account_ids.of(&head.account).await?;
        progress.account = Some(account);
        let op = Op::Blob(blob::Op::GetBlob);
        progress.asked = RequestKind::Known(op);
        let asker = Asker { caller: &Caller::Anonymous, now: wall_clock(), settings: &known.settings, ..Asker::OWNER };
        let patience = timeouts::of(&head, op, None)?;
        let running = self.house.services.website(asker, &head, account);
        tokio::time::timeout(patience, running).await.map_err(|_| Stop::TimedOut)?
    }

    /// The walk up to the operation: who calls, what for, and may they.
    pub(crate) async fn enter(
        &self,
        head: Head,
        path_style: bool,
        peer: SocketAddr,
        progress: &mut Progress,
    ) -> Result<Entered, Stop> {
        let is_for_blobs = self.service == Service::Blob && head.method != Method::OPTIONS;
        let dfs = if is_for_blobs { dfs::DataLakeRequest::by(&head) } else { None };
        if dfs.is_some() {
            progress.asked = RequestKind::Unknown(Service::Dfs);
        }
        // Taken once: the whole request is judged by one list.
        let accounts = self.house.accounts().await?;
        let Some(known) = accounts.get(&head.account) else { return Err(Refusal::AccountNotFound.into()) };
        let account = self.house.account_ids.of(&head.account).await?;
        progress.account = Some(account);
        let now = wall_clock();
        let caller = match head.method {
            // Browsers send preflight requests without credentials.
            Method::OPTIONS => Caller::Anonymous,
            _ => {
                let caller = self.identify(&head, path_style, peer, &accounts, account, now).await;
                progress.failed_sign_in = matches!(caller, Err(Stop::Refused(_)));
                caller?
            }
        };
        progress.signed_in = caller != Caller::Anonymous;
        // At once, because what it asks for may take long.
        if let Some(activity) = progress.activity.as_ref().filter(|_| progress.signed_in) {
            activity.admit();
        }
        progress.caller = debug_log::is_on().then(|| debug_log::caller_name(&caller));
        if let Some(dfs) = dfs {
            return Err(dfs.refused(&caller, &head).into());
        }
        let op = Op::named_by(self.service, &head)?;
        progress.asked = RequestKind::Known(op);
        self.may(&caller, op, account, &head).await?;
        Ok(Entered { settings: Arc::clone(&known.settings), head, account, caller, now, op, accounts, peer })
    }

    /// The rest of the walk.
    pub(crate) async fn run(&self, entered: &Entered, body: &mut dyn Body) -> Result<Reply, Stop> {
        let Entered { head, account, settings, caller, now, op, .. } = entered;
        let patience = timeouts::of(head, *op, body.length())?;
        let secret = Secret(Some(&self.house.delegation_secret));
        let sources = CallersSources { pipeline: self, entered };
        let manners = self.house.manners;
        let asker = Asker { caller, now: *now, settings, secret, sources: &sources, manners };
        let running = pin!(self.house.services.run(*op, asker, head, *account, body));
        let reply = tokio::time::timeout(patience, running).await.map_err(|_| Stop::TimedOut)??;
        Ok(with_overrides(reply, caller, head))
    }

    /// The request line and headers as values.
    fn head(
        &self,
        request: &mut Parts,
        request_id: &RequestId,
        progress: &mut Progress,
    ) -> Result<(Head, UrlStyle), ErrorReply> {
        let query = target::query(&request.uri);
        let nothing = Query::default();
        // The version first: it decides how every refusal looks.
        progress.version = version::of(&request.headers, query.as_ref().unwrap_or(&nothing), self.service)?;
        let query = query?;
        check_host(request)?;
        let target = Target::parse(&request.uri, &request.headers, self.house.hosts, self.https)?;
        let head_bytes = request.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
        if head_bytes > HEAD_BYTES_MAX {
            return Err(ErrorReply::new(431, "RequestHeaderTooLarge", "The headers of the request are too large."));
        }
        let head = Head {
            method: request.method.clone(),
            account: target.account,
            secondary: target.secondary,
            resource: target.resource,
            raw_path: request.uri.path().to_owned(),
            query,
            headers: std::mem::take(&mut request.headers),
            endpoint: target.endpoint,
            version: version::text(&progress.version).to_owned(),
            request_id: request_id.as_str().to_owned(),
            https: self.https,
        };
        let place = match (target.website, target.path_style) {
            (true, _) => UrlStyle::Website,
            (false, true) => UrlStyle::PathStyle,
            (false, false) => UrlStyle::HostStyle,
        };
        Ok((head, place))
    }

    pub(crate) async fn identify(
        &self,
        head: &Head,
        path_style: bool,
        peer: SocketAddr,
        accounts: &Accounts,
        account: u64,
        now: Timestamp,
    ) -> Result<Caller, Stop> {
        let request = auth::Request {
            service: self.service.signed_as(),
            method: head.method.as_str(),
            account: &head.account,
            path_style,
            path: &head.raw_path,
            query: head.query.pairs(),
            headers: &head.headers,
            https: head.https,
            peer: Some(peer.ip()),
        };
        // Few signatures lean on a stored policy; only then is there anything to look up before the signature is checked.
        let policies = match auth::policy_named(&request) {
            Some(_) => self.house.services.policies(self.service, account, head).await?,
            None => Vec::new(),
        };
        let named = |id: &str| {
            policies.iter().find(|stored| stored.id == id).map(|stored| auth::Policy::from(&stored.clone().into()))
        };
        let tokens = self.house.tokens.get();
        let identify = |tokens: &Tokens| {
            let identifier = Identifier::new(accounts).tokens(tokens).delegation_secret(&self.house.delegation_secret);
            identifier.identify(&request, now, named)
        };
        let caller = identify(&tokens);
        if let Err(Refusal::InvalidToken { fault: TokenFault::UnknownKey, .. }) = caller
            && let Some(issuer) = &self.house.issuer
            && Box::pin(issuer.has_others_than(tokens)).await
        {
            return Ok(identify(&self.house.tokens.get())?);
        }
        Ok(caller?)
    }

    /// May the caller do this here?
    pub(crate) async fn may(&self, caller: &Caller, op: Op, account: u64, head: &Head) -> Result<(), Stop> {
        if op.is_preflight() {
            return Ok(());
        }
        if *caller == Caller::Anonymous {
            if !self.house.services.is_public(op, account, head).await? {
                return Err(Refusal::anonymous(head.header("x-ms-version")).into());
            }
        } else {
            caller.may(&op.needed_by(head))?;
        }
        // Azurite has one place for both, and takes writes by either name.
        let is_read_only = head.secondary && self.house.manners == Manners::Azure;
        if is_read_only && !matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            let message = "Write operations are not allowed.";
            return Err(ErrorReply::new(403, "InsufficientAccountPermissions", message).into());
        }
        Ok(())
    }

    pub(crate) fn record(&self, line: &Line<'_>) {
        if let Some(log) = &self.house.access_log {
            log.write(line);
        }
    }

    /// An answer to a client without a credential, if not too much waits for such clients already.
    fn counted(&self, reply: Reply) -> Result<Reply, ErrorReply> {
        let body = self.house.public_answers.count(reply.body);
        let body = body.map_err(|TooManyBytes| respond::engine_failure(&EngineError::Busy))?;
        Ok(Reply { body, ..reply })
    }

    /// Has the refusal of a bad signature or token wait, if there were too many from this address.
    pub(crate) async fn slow_down(&self, peer: SocketAddr) {
        let wait = self.house.failed_sign_ins.note(peer.ip(), Instant::now());
        self.house.metrics.sign_ins_failed.fetch_add(1, Ordering::Relaxed);
        if !wait.is_zero() {
            self.house.metrics.sign_ins_slowed.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(wait).await;
        }
    }

    /// Tells browsers which pages may see the answer, whatever it is.
    async fn share(&self, account: u64, origin: Option<&HeaderValue>, method: &Method, headers: &mut HeaderMap) {
        // Without an origin only a read can be told anything, because a cache may hand it to a page later.
        if *method == Method::OPTIONS || origin.is_none() && !matches!(*method, Method::GET | Method::HEAD) {
            return;
        }
        // Should they not be readable, the answer stands without them.
        if let Ok(Ok(Some(rules))) = caught(self.house.services.cors(self.service, account)).await {
            let origin = origin.and_then(|origin| origin.to_str().ok());
            cors::actual(&rules, origin, method.as_str()).add_to(headers);
        }
    }
}

/// One answer for whatever came of the walk.
pub(crate) fn settled(outcome: Result<Result<Reply, Stop>, Panicked>, id: &RequestId) -> Result<Reply, ErrorReply> {
    Err(match outcome {
        Ok(Ok(reply)) => return Ok(reply),
        Ok(Err(Stop::Refused(error))) => error,
        Ok(Err(Stop::Failed(error))) => {
            log_failure(&error, id);
            respond::engine_failure(&error)
        }
        Ok(Err(Stop::Body(error))) => respond::body_failure(&error),
        Ok(Err(Stop::TimedOut)) => respond::timed_out(),
        Err(Panicked) => {
            tracing::error!(request_id = id.as_str(), "a request panicked");
            respond::internal_error()
        }
    })
}

impl Answers for Pipeline {
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        traffic: Arc<Traffic>,
    ) -> Response<AnswerBody> {
        let began = Instant::now();
        let (mut parts, incoming) = request.into_parts();
        let asked_for = debug_log::request(&parts);
        traffic.tell_names(&mut parts.headers);
        let said = match &self.house.nodes {
            Some(nodes) => forward::client_of(&nodes.key, &mut parts, nodes.now()),
            None => Ok(None),
        };
        let forwarded_for = said.unwrap_or(None);
        if forwarded_for.is_some() {
            traffic.activity.is_of_node_now();
        }
        let (node, peer) = (peer, forwarded_for.unwrap_or(peer));
        let id = self.house.request_ids.next();
        let origin = parts.headers.get(header::ORIGIN).cloned();
        let client_request_id = Envelope::echoed(find(&parts.headers, "x-ms-client-request-id"));
        let mut body = RequestBody::new(incoming, &parts.headers, self.house.limits.body_pause);
        if self.house.nodes.is_some() && self.service == Service::File {
            body = body.keeping();
        }
        let mut progress =
            Progress::new(self.service, HeaderValue::from_static(version::NEWEST)).of_connection(&traffic.activity);

        // Pinned here: as an argument it would be moved, and every request would have room for it twice.
        let mut outcome = if said.is_err() {
            forward::refused_note(node);
            Ok(Err(Stop::Failed(EngineError::Busy)))
        } else {
            let walk = pin!(self.walk(&mut parts, &id, peer, &mut body, &mut progress));
            caught(walk).await
        };
        if let (Some(elsewhere), Some(nodes), None) = (progress.elsewhere.take(), &self.house.nodes, forwarded_for) {
            let Elsewhere { address, headers, patience } = *elsewhere;
            let forwarded = Forwarded { method: &parts.method, uri: &parts.uri, headers, client: peer, patience };
            outcome = caught(Box::pin(nodes.forward(forwarded, &address, &mut body))).await;
        }
        let is_timed_out = matches!(outcome, Ok(Err(Stop::TimedOut)));
        let rest = if is_timed_out { body.rest() } else { body.drain().await };

        // Who is served what is public may stay, but takes no place from those who sign in.
        if matches!(&outcome, Ok(Ok(reply)) if reply.status.as_u16() < 400) {
            traffic.activity.let_stay();
        }
        let Progress { asked, version, account, failed_sign_in, signed_in, caller, .. } = progress;
        if failed_sign_in {
            Box::pin(self.slow_down(peer)).await;
        }
        let is_head = parts.method == Method::HEAD;
        let envelope = Envelope { service: asked.service(), op: asked.op(), is_head, version, client_request_id };
        let answered = settled(outcome, &id).and_then(|reply| if signed_in { Ok(reply) } else { self.counted(reply) });
        let (mut reply, error) = match answered {
            Ok(reply) => (reply, None),
            Err(error) => (respond::refusal(&error, &envelope, &id, wall_clock()), Some(error)),
        };
        self.record(&Line {
            at: wall_clock(),
            peer: peer.ip(),
            method: &parts.method,
            uri: &parts.uri,
            http: parts.version,
            status: reply.status.as_u16(),
            bytes: if is_head { 0 } else { reply.body.length() },
            operation: asked.operation().unwrap_or("-"),
            took: began.elapsed(),
            request_id: id.as_str(),
        });
        if forwarded_for.is_some() {
            forward::tell_spelling(&mut reply.headers);
        }
        let code = error.as_ref().map(|error| error.code);
        self.house.metrics.answered(asked, reply.status.as_u16(), code, began.elapsed(), body.received());
        let mut response = respond::answer(reply, envelope, &id, rest, traffic);
        if let Some(account) = account {
            self.share(account, origin.as_ref(), &parts.method, response.headers_mut()).await;
        }
        response.body_mut().count_for(&self.house.metrics, asked);
        if let Some(asked_for) = asked_for {
            let answer = (response.status(), response.headers());
            debug_log::write(&asked_for, &id, peer, asked.operation(), caller.as_deref(), error.as_ref(), answer);
        }
        if let Some(reason) = error.as_ref().and_then(respond::reason) {
            response.extensions_mut().insert(reason);
        }
        response
    }
}

/// Why a walk ended early. Refused is not failed.
#[derive(Debug)]
pub(crate) enum Stop {
    Refused(ErrorReply),
    Failed(EngineError),
    Body(BodyError),
    /// It took longer than it may.
    TimedOut,
}

impl From<ErrorReply> for Stop {
    fn from(error: ErrorReply) -> Stop {
        Stop::Refused(error)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal.into())
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Stop {
        Stop::Failed(error)
    }
}

/// The failure of any service.
impl<E: Into<ErrorReply>> From<Failure<E>> for Stop {
    fn from(failure: Failure<E>) -> Stop {
        match failure {
            Failure::Refused(error) => Stop::Refused(error.into()),
            Failure::Failed(error) => Stop::Failed(error),
            Failure::Body(error) => Stop::Body(error),
        }
    }
}

/// A request has one host. With two, a proxy before us may have judged it by the other one.
fn check_host(request: &Parts) -> Result<(), ErrorReply> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let is_host = |host: &HeaderValue| host.to_str().is_ok_and(|host| host.parse::<Authority>().is_ok());
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => Ok(()),
        // An older client need not say it.
        (None, None) if request.version < Version::HTTP_11 => Ok(()),
        (None, _) => {
            let message = "An HTTP header that's mandatory for this request is not specified.";
            Err(ErrorReply::new(400, "MissingRequiredHeader", message).detail("HeaderName", "Host"))
        }
        (Some(_), _) => {
            let message = "The value for one of the HTTP headers is not in the correct format.";
            Err(ErrorReply::new(400, "InvalidHeaderValue", message).detail("HeaderName", "Host"))
        }
    }
}

/// What somebody must look at is an error; that there is too much to do is not. What fails for every request is said once in
/// a while.
fn log_failure(error: &EngineError, id: &RequestId) {
    static FULL: LogThrottle = LogThrottle::new();
    static UNAVAILABLE: LogThrottle = LogThrottle::new();
    let request_id = id.as_str();
    match error {
        EngineError::Busy | EngineError::Closed | EngineError::Elsewhere { .. } => {
            tracing::debug!(request_id, %error, "a request has to come again");
        }
        EngineError::Full => {
            if let Some(count) = FULL.due(LOG_PAUSE) {
                tracing::warn!(request_id, %error, count, "a write was refused");
            }
        }
        EngineError::Unavailable(_) => {
            if let Some(count) = UNAVAILABLE.due(LOG_PAUSE) {
                tracing::error!(request_id, %error, count, "the engine failed");
            }
        }
        EngineError::Corrupt(_) | EngineError::TooLarge { .. } => {
            tracing::error!(request_id, %error, "the engine failed");
        }
    }
}

/// A signature may set headers of what is read with it.
fn with_overrides(mut reply: Reply, caller: &Caller, head: &Head) -> Reply {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let Some(overrides) = caller.grant().and_then(|grant| grant.overrides.as_ref()).filter(|_| is_read) else {
        return reply;
    };
    for (name, value) in [
        (header::CACHE_CONTROL, &overrides.cache_control),
        (header::CONTENT_DISPOSITION, &overrides.content_disposition),
        (header::CONTENT_ENCODING, &overrides.content_encoding),
        (header::CONTENT_LANGUAGE, &overrides.content_language),
        (header::CONTENT_TYPE, &overrides.content_type),
    ] {
        if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
            reply.headers.insert(name, value);
        }
    }
    reply
}

/// The time by which credentials are judged. Clients sign with their own clock, so a test clock has no say here.
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ticks = u64::try_from(since.as_nanos() / 100).unwrap_or(u64::MAX);
    Timestamp::UNIX_EPOCH.plus_ticks(ticks)
}
