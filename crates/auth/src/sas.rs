//! Shared access signatures: a signature in the query, with limits that are signed along.
//!
//! An account signature (`ss` and `srt`) opens services and levels; a service signature opens one resource, which is part
//! of the signed text though it does not stand in the query. A user delegation signature (`skoid`) is a service signature
//! made with the key of a user. Which fields are signed, and in which order, depends on the version `sv` and is written
//! down once, in [`account_text`], [`service_text`] and [`delegated`].

mod delegated;

use std::net::IpAddr;

use concurrency::Timestamp;
use wire::dates;
use wire::names::ContainerName;
use wire::xml::SignedIdentifier;

use crate::Request;
use crate::account::{Account, Key};
use crate::bearer::Bearer;
use crate::delegation::Secret;
use crate::grant::{Grant, GrantKind, KeyBound, Overrides, Permissions, Scope, Service};
use crate::refusal::{Fault, Refusal};

/// Every permission that any service or version knows.
const PERMISSIONS: Permissions = Permissions::of("racwdxyltfmeopiu");
const SERVICES: Permissions = Permissions::of("bqtf");
const RESOURCE_TYPES: Permissions = Permissions::of("sco");
const POLICY_ID_CHARS_MAX: usize = 64;
/// Deeper than any blob name goes.
const DIRECTORY_DEPTH_MAX: usize = 254;

/// A stored access policy: what it sets, the signature must leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub start: Option<Timestamp>,
    pub expiry: Option<Timestamp>,
    pub permission: Option<String>,
}

impl From<&SignedIdentifier> for Policy {
    fn from(stored: &SignedIdentifier) -> Policy {
        Policy { start: stored.start_time(), expiry: stored.expiry_time(), permission: stored.permission.clone() }
    }
}

/// The stored policy that a signature refers to, so that it can be at hand before the signature is checked. Nothing has
/// been proved yet about who asks.
pub fn policy_named<'a>(request: &Request<'a>) -> Option<&'a str> {
    find(request.query, "si").filter(|id| !id.is_empty() && is_signed(request.query))
}

pub(crate) fn is_signed(query: &[(String, String)]) -> bool {
    find(query, "sig").is_some()
}

/// Whether there is a signature for one user only, which needs a token of that user, too.
pub(crate) fn names_a_user(query: &[(String, String)]) -> bool {
    ["sig", "skoid", "sduoid"].iter().all(|name| find(query, name).is_some_and(|value| !value.is_empty()))
}

fn find<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Checks a signature: its fields, then that it is genuine, then time, user, address and protocol. What it allows is for
/// the grant to say.
pub(crate) fn verify(
    request: &Request<'_>,
    account: &Account,
    secret: Secret<'_>,
    bearer: Option<&Bearer>,
    now: Timestamp,
    policies: impl Fn(&str) -> Option<Policy>,
) -> Result<Grant, Refusal> {
    let token = Token::of(request.query)?;
    let limits = Limits::parse(&token)?;
    let (kind, text, signer) = match (token.skoid, token.ss, token.srt) {
        (Some(_), _, _) => delegated::claimed(request, &token, secret)?,
        (None, Some(services), Some(resource_types)) => {
            let kind = account_kind(&token, services, resource_types)?;
            (kind, account_text(&token, &account.name), Signer::Account(account))
        }
        (None, _, _) => {
            let (kind, text) = service_kind(request, &token)?;
            (kind, text, Signer::Account(account))
        }
    };
    verify_signature(&token, &signer, text)?;
    let terms = Terms::agree(&token, policies)?;
    terms.hold_at(now)?;
    if let Signer::User { lifetime, .. } = &signer {
        lifetime.hold_at(now)?;
        delegated::verify_user(&token, bearer)?;
    }
    limits.hold_for(request)?;
    Ok(Grant {
        overrides: overrides(&token, &kind),
        encryption_scope: encryption_scope(&token, &kind),
        delegation: matches!(signer, Signer::User { .. })
            .then(|| Box::new(delegated::delegation(request.service, &token))),
        kind,
        permissions: terms.permissions,
    })
}

/// The holder of the key that a signature names, before it is checked.
enum Signer<'a> {
    Account(&'a Account),
    /// The holder of a user delegation key.
    User {
        key: Key,
        lifetime: delegated::Lifetime,
    },
}

impl Signer<'_> {
    fn signed(&self, text: &[u8], signature: &[u8; 32]) -> bool {
        match self {
            Signer::Account(account) => account.signed(text, signature),
            Signer::User { key, .. } => key.signed(text, signature),
        }
    }
}

fn verify_signature(token: &Token<'_>, signer: &Signer<'_>, text: String) -> Result<(), Refusal> {
    let signature = token.sig.unwrap_or_default();
    // A plus sign that was not encoded has become a space on the way. There are no spaces in base64.
    let genuine = |signature: &str| {
        wire::base64::decode_exact(signature).is_some_and(|bytes| signer.signed(text.as_bytes(), &bytes))
    };
    let genuine = if signature.contains(' ') { genuine(&signature.replace(' ', "+")) } else { genuine(signature) };
    genuine.then_some(()).ok_or(Refusal::AuthenticationFailed(Fault::SasMismatch { string_to_sign: text }))
}

/// The parameters that make up a signature or are signed with it. An empty one counts as absent.
macro_rules! token {
    ($($name:ident)*) => {
        #[derive(Default)]
        struct Token<'a> {
            $($name: Option<&'a str>,)*
        }

        impl<'a> Token<'a> {
            /// None of them may be there twice: we and the operation might read different ones.
            fn of(query: &'a [(String, String)]) -> Result<Token<'a>, Refusal> {
                let mut token = Token::default();
                for (name, value) in query {
                    let mut lower = [0; 16];
                    let Some(lower) = lower.get_mut(..name.len()) else { continue };
                    lower.copy_from_slice(name.as_bytes());
                    lower.make_ascii_lowercase();
                    match std::str::from_utf8(lower) {
                        $(Ok(stringify!($name)) => take(&mut token.$name, stringify!($name), value)?,)*
                        Ok(_) | Err(_) => {}
                    }
                }
                $(token.$name = token.$name.filter(|value| !value.is_empty());)*
                Ok(token)
            }
        }
    };
}

token! {
    sv ss srt sp st se sip spr si sr sdd sig snapshot versionid restype tn spk srk epk erk rscc rscd rsce rscl rsct ses
    skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid srh srq
}

fn take<'a>(field: &mut Option<&'a str>, name: &'static str, value: &'a str) -> Result<(), Refusal> {
    // Fields are signed as lines, so a field with two lines could pass for two fields.
    if value.contains('\n') {
        return Err(Refusal::field(name, "is not valid"));
    }
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::field(name, "is given more than once")),
    }
}

impl Token<'_> {
    /// No version at all means the first ones, whose signatures did not have it.
    fn version(&self) -> &str {
        self.sv.unwrap_or_default()
    }

    fn since(&self, version: &str) -> bool {
        self.version() >= version
    }

    /// The one state of a blob that the signature is for.
    fn state(&self) -> Option<&str> {
        match self.sr {
            Some("bs") => self.snapshot,
            Some("bv") => self.versionid,
            _ => None,
        }
    }
}

/// Lines of a text to sign: joined by line feeds, absent ones empty.
struct Lines(String);

impl Lines {
    fn of(fields: &[Option<&str>]) -> Lines {
        let mut lines = Lines(String::with_capacity(256));
        lines.0.push_str(fields.first().copied().flatten().unwrap_or_default());
        lines.add(fields.get(1..).unwrap_or_default());
        lines
    }

    fn add(&mut self, fields: &[Option<&str>]) {
        for field in fields {
            self.0.push('\n');
            self.0.push_str(field.unwrap_or_default());
        }
    }
}

fn account_text(token: &Token<'_>, account: &str) -> String {
    let t = token;
    let mut lines = Lines::of(&[Some(account), t.sp, t.ss, t.srt, t.st, t.se, t.sip, t.spr, t.sv]);
    if t.since("2020-12-06") {
        lines.add(&[t.ses]);
    }
    lines.add(&[None]);
    lines.0
}

/// The resource as it is signed.
fn full_resource(token: &Token<'_>, service: Service, account: &str, resource: &str) -> String {
    let mut full = String::with_capacity(resource.len() + account.len() + 8);
    if token.since("2015-02-21") {
        full.push('/');
        full.push_str(service.word());
    }
    full.push('/');
    full.push_str(account);
    full.push('/');
    full.push_str(resource);
    full
}

fn service_text(token: &Token<'_>, service: Service, account: &str, resource: &str) -> String {
    let t = token;
    let full = full_resource(token, service, account, resource);
    let mut lines = Lines::of(&[t.sp, t.st, t.se, Some(&full), t.si]);
    if t.since("2015-04-05") {
        lines.add(&[t.sip, t.spr]);
    }
    if t.since("2012-02-12") {
        lines.add(&[t.sv]);
    }
    if service == Service::Blob && t.since("2018-11-09") {
        lines.add(&[t.sr, t.state()]);
    }
    if service == Service::Blob && t.since("2020-12-06") {
        lines.add(&[t.ses]);
    }
    match service {
        Service::Blob | Service::File if t.since("2013-08-15") => lines.add(&[t.rscc, t.rscd, t.rsce, t.rscl, t.rsct]),
        Service::Table if t.since("2012-02-12") => lines.add(&[t.spk, t.srk, t.epk, t.erk]),
        Service::Blob | Service::File | Service::Queue | Service::Table => {}
    }
    lines.0
}

fn account_kind(token: &Token<'_>, services: &str, resource_types: &str) -> Result<GrantKind, Refusal> {
    if token.version() < "2015-04-05" {
        return Err(Refusal::field("sv", "is too old for an account signature"));
    }
    if token.si.is_some() {
        return Err(Refusal::field("si", "cannot be used with an account signature"));
    }
    let set = |text, known, name| Permissions::parse(text, known).ok_or(Refusal::field(name, "is not valid"));
    Ok(GrantKind::Account {
        services: set(services, SERVICES, "ss")?,
        resource_types: set(resource_types, RESOURCE_TYPES, "srt")?,
    })
}

/// What a service signature is for, and the text that it signs for this request.
fn service_kind(request: &Request<'_>, token: &Token<'_>) -> Result<(GrantKind, String), Refusal> {
    let (scope, resource) = scope(request, token)?;
    // The first versions had blobs only, and did not sign which service they were for.
    if request.service != Service::Blob && !token.since("2012-02-12") {
        return Err(Refusal::field("sv", "is too old for this service"));
    }
    let text = service_text(token, request.service, request.account, &resource);
    Ok((GrantKind::Service(scope), text))
}

/// What a signature for this request is for, and how that is named below the account.
fn scope(request: &Request<'_>, token: &Token<'_>) -> Result<(Scope, String), Refusal> {
    let path = below_account(request)?;
    match request.service {
        Service::Blob => blob_scope(token, &path),
        Service::File => file_scope(token, &path),
        Service::Queue => Ok((Scope::Queue, split(&path).0.to_owned())),
        Service::Table => table_scope(token, &path),
    }
}

/// The path below the account, decoded, without a leading slash; a backslash is a slash. Operations read it the same way,
/// so that what was signed is what is opened.
fn below_account(request: &Request<'_>) -> Result<String, Refusal> {
    let mut path = request.path.strip_prefix('/').unwrap_or(request.path);
    if request.path_style {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        // An account written in any other way could be split from the rest in another place than ours.
        if first.strip_suffix("-secondary").unwrap_or(first) != request.account {
            return Err(Refusal::other("The path of the URL does not begin with the account."));
        }
        path = rest;
    }
    let decoded =
        wire::percent::decode_path(path).map_err(|_| Refusal::other("The path of the URL cannot be decoded."))?;
    Ok(decoded.replace('\\', "/"))
}

/// The first segment, and what follows it if anything does.
fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('/') {
        Some((first, rest)) => (first, Some(rest).filter(|rest| !rest.is_empty())),
        None => (path, None),
    }
}

fn blob_scope(token: &Token<'_>, path: &str) -> Result<(Scope, String), Refusal> {
    let (container, blob) = match split(path) {
        (first, None) if !token.restype.is_some_and(names_no_blob) => (ContainerName::ROOT, Some(first)),
        parts => parts,
    };
    let whole = || blob.map_or(container.to_owned(), |blob| format!("{container}/{blob}"));
    // Before these versions `sr` is not signed, so a signature for one blob could be passed off as one for a directory.
    let since = |version: &str| token.since(version);
    Ok(match token.sr.ok_or(Refusal::field("sr", "is mandatory. Cannot be empty"))? {
        "b" => (Scope::Blob, whole()),
        "c" => (Scope::Container, container.to_owned()),
        "bs" if since("2018-11-09") => (Scope::Snapshot, whole()),
        "bv" if since("2018-11-09") => (Scope::Version, whole()),
        "d" if since("2020-02-10") => {
            let depth = directory_depth(token)?;
            let segments = blob.unwrap_or_default().split('/').take(depth);
            let directory = segments.fold(container.to_owned(), |path, segment| path + "/" + segment);
            (Scope::Directory { depth }, directory)
        }
        _ => return Err(Refusal::field("sr", "is not valid")),
    })
}

/// A path of one segment names a blob of the root container, unless this says that it is a container.
fn names_no_blob(restype: &str) -> bool {
    ["container", "account"].iter().any(|kind| kind.eq_ignore_ascii_case(restype))
}

fn directory_depth(token: &Token<'_>) -> Result<usize, Refusal> {
    let text = token.sdd.ok_or(Refusal::field("sdd", "is mandatory. Cannot be empty"))?;
    let depth = text.parse().ok().filter(|depth| *depth <= DIRECTORY_DEPTH_MAX);
    depth.ok_or(Refusal::field("sdd", "is not valid"))
}

fn file_scope(token: &Token<'_>, path: &str) -> Result<(Scope, String), Refusal> {
    match token.sr.ok_or(Refusal::field("sr", "is mandatory. Cannot be empty"))? {
        "f" => Ok((Scope::File, path.to_owned())),
        "s" => Ok((Scope::Share, split(path).0.to_owned())),
        _ => Err(Refusal::field("sr", "is not valid")),
    }
}

/// The table stands in the query, so it must be held against the path; a batch names its tables inside.
fn table_scope(token: &Token<'_>, path: &str) -> Result<(Scope, String), Refusal> {
    let name = token.tn.ok_or(Refusal::field("tn", "is mandatory. Cannot be empty"))?.to_ascii_lowercase();
    let named = split(path).0.split('(').next().unwrap_or_default();
    if named != "$batch" && !named.eq_ignore_ascii_case(&name) {
        return Err(Refusal::field("tn", "does not name the table of the URL"));
    }
    let bound = |partition: Option<&str>, row: Option<&str>, name| match (partition, row) {
        (None, Some(_)) => Err(Refusal::field(name, "needs a partition key")),
        _ => Ok(KeyBound { partition: partition.map(Into::into), row: row.map(Into::into) }),
    };
    let start = bound(token.spk, token.srk, "srk")?;
    let end = bound(token.epk, token.erk, "erk")?;
    Ok((Scope::Table { name: name.as_str().into(), start, end }, name))
}

/// Only signatures for blobs and files sign them, so only there do they count.
fn overrides(token: &Token<'_>, kind: &GrantKind) -> Option<Box<Overrides>> {
    let t = token;
    let fields = [t.rscc, t.rscd, t.rsce, t.rscl, t.rsct];
    let signed = match kind {
        GrantKind::Service(scope) => matches!(scope.service(), Service::Blob | Service::File) && t.since("2013-08-15"),
        GrantKind::Account { .. } => false,
    };
    if !signed || fields.iter().all(Option::is_none) {
        return None;
    }
    let [cache_control, content_disposition, content_encoding, content_language, content_type] =
        fields.map(|field| field.map(str::to_owned));
    Some(Box::new(Overrides { cache_control, content_disposition, content_encoding, content_language, content_type }))
}

/// The same for accounts and blobs.
fn encryption_scope(token: &Token<'_>, kind: &GrantKind) -> Option<Box<str>> {
    let signed = match kind {
        GrantKind::Service(scope) => scope.service() == Service::Blob,
        GrantKind::Account { .. } => true,
    };
    token.ses.filter(|_| signed && token.since("2020-12-06")).map(Into::into)
}

/// From when to when, and what: from the signature or from the stored policy it names.
struct Terms {
    start: Option<Timestamp>,
    expiry: Timestamp,
    permissions: Permissions,
}

impl Terms {
    fn agree(token: &Token<'_>, policies: impl Fn(&str) -> Option<Policy>) -> Result<Terms, Refusal> {
        let policy = match token.si {
            None => Policy::default(),
            Some(id) => policies(id).ok_or(Refusal::field("si", "does not name a stored access policy"))?,
        };
        let start = one_of("st", time("st", token.st)?, policy.start)?;
        let expiry = one_of("se", time("se", token.se)?, policy.expiry)?;
        let letters = one_of("sp", token.sp, policy.permission.as_deref())?;
        let letters = letters.ok_or(Refusal::field("sp", "is mandatory. Cannot be empty"))?;
        Ok(Terms {
            start,
            expiry: expiry.ok_or(Refusal::field("se", "is mandatory. Cannot be empty"))?,
            permissions: Permissions::parse(letters, PERMISSIONS).ok_or(Refusal::field("sp", "is not valid"))?,
        })
    }

    /// The start belongs to the time frame, the expiry does not.
    fn hold_at(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.start.is_none_or(|start| start <= now) && now < self.expiry {
            return Ok(());
        }
        let (start, expiry) = (self.start, self.expiry);
        Err(Refusal::AuthenticationFailed(Fault::OutsideTimeFrame { start, expiry, now }))
    }
}

/// A field may stand in the signature or in the policy, not in both.
fn one_of<T>(name: &'static str, signed: Option<T>, stored: Option<T>) -> Result<Option<T>, Refusal> {
    match (signed, stored) {
        (Some(_), Some(_)) => Err(Refusal::AuthenticationFailed(Fault::FieldInBoth { name })),
        (signed, stored) => Ok(signed.or(stored)),
    }
}

fn time(name: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Refusal> {
    let parse = |text| dates::parse_iso(text).ok_or(Refusal::field(name, "is not a valid time"));
    text.map(parse).transpose()
}

/// From where and how the signature may be used.
struct Limits {
    addresses: Option<(IpAddr, IpAddr)>,
    https_only: bool,
}

impl Limits {
    /// Also refuses what is malformed anywhere else, so that this is known before anything is computed.
    fn parse(token: &Token<'_>) -> Result<Limits, Refusal> {
        let is_date = |text: &str| text.len() == 10 && dates::parse_iso(text).is_some();
        if !token.sv.is_none_or(is_date) {
            return Err(Refusal::field("sv", "is not a version"));
        }
        if token.si.is_some_and(|id| id.chars().count() > POLICY_ID_CHARS_MAX) {
            return Err(Refusal::field("si", "is too long"));
        }
        if token.sp.is_some_and(|letters| Permissions::parse(letters, PERMISSIONS).is_none()) {
            return Err(Refusal::field("sp", "is not valid"));
        }
        time("st", token.st)?;
        time("se", token.se)?;
        let https_only = match token.spr {
            None | Some("https,http" | "http,https") => false,
            Some("https") => true,
            Some(_) => return Err(Refusal::field("spr", "is not valid")),
        };
        Ok(Limits { addresses: token.sip.map(addresses).transpose()?, https_only })
    }

    fn hold_for(&self, request: &Request<'_>) -> Result<(), Refusal> {
        if let Some((first, last)) = self.addresses {
            let peer = request.peer.map(|peer| peer.to_canonical());
            if !peer.is_some_and(|peer| peer.is_ipv4() == first.is_ipv4() && (first..=last).contains(&peer)) {
                return Err(Refusal::SourceIpMismatch);
            }
        }
        if self.https_only && !request.https {
            return Err(Refusal::ProtocolMismatch);
        }
        Ok(())
    }
}

/// One address, or the first and the last of a range.
fn addresses(text: &str) -> Result<(IpAddr, IpAddr), Refusal> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parsed = first.parse::<IpAddr>().ok().zip(last.parse::<IpAddr>().ok());
    let range = parsed.filter(|(first, last)| first.is_ipv4() == last.is_ipv4() && first <= last);
    range.ok_or(Refusal::field("sip", "is not valid"))
}

#[cfg(test)]
mod tests;
