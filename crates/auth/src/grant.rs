//! What a caller may do, and what an operation needs.

use crate::bearer::Bearer;
use crate::refusal::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    Blob,
    Queue,
    Table,
    File,
}

impl Service {
    pub(crate) fn letter(self) -> u8 {
        match self {
            Service::Blob => b'b',
            Service::Queue => b'q',
            Service::Table => b't',
            Service::File => b'f',
        }
    }

    /// As it stands in the resource of a service signature.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Service::Blob => "blob",
            Service::Queue => "queue",
            Service::Table => "table",
            Service::File => "file",
        }
    }
}

/// On which level an operation works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceType {
    Service,
    /// A container, queue, table or share.
    Container,
    /// A blob, message, entity or file.
    Object,
}

impl ResourceType {
    pub(crate) fn letter(self) -> u8 {
        match self {
            ResourceType::Service => b's',
            ResourceType::Container => b'c',
            ResourceType::Object => b'o',
        }
    }
}

/// A set of lower-case letters: permissions, services or resource types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    pub const NONE: Permissions = Permissions(0);

    /// For letters that stand in our own source. Anything but a lower-case letter is a mistake there.
    pub const fn of(letters: &str) -> Permissions {
        let letters = letters.as_bytes();
        let mut bits = 0;
        let mut at = 0;
        while at < letters.len() {
            assert!(letters[at].is_ascii_lowercase());
            bits |= bit(letters[at]);
            at += 1;
        }
        Permissions(bits)
    }

    /// Letters from outside, in any order: each one of `known`, none twice.
    pub fn parse(letters: &str, known: Permissions) -> Option<Permissions> {
        letters.bytes().try_fold(Permissions::NONE, |set, letter| {
            let fresh = letter.is_ascii_lowercase() && known.has(letter) && !set.has(letter);
            fresh.then(|| Permissions(set.0 | bit(letter)))
        })
    }

    pub const fn has(self, letter: u8) -> bool {
        letter.is_ascii_lowercase() && self.0 & bit(letter) != 0
    }

    pub const fn has_any(self, of: Permissions) -> bool {
        self.0 & of.0 != 0
    }

    pub const fn has_all(self, of: Permissions) -> bool {
        self.0 & of.0 == of.0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const fn bit(letter: u8) -> u32 {
    1 << (letter - b'a')
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Holds a key of the account and may do everything.
    Owner,
    /// Holds a signature that allows some things.
    Sas(Grant),
    /// Holds a bearer token. There are no roles here: every token may do what tokens can do at all.
    Bearer(Bearer),
    /// Without a credential. The operation says what is public.
    Anonymous,
}

impl Caller {
    pub fn may(&self, need: &Need) -> Result<(), Refusal> {
        match (self, need.bearer) {
            (Caller::Owner | Caller::Sas(_), BearerUse::Only) => {
                Err(Refusal::other("Only authentication scheme Bearer is supported"))
            }
            (Caller::Owner, BearerUse::Any | BearerUse::Never) => Ok(()),
            (Caller::Sas(grant), BearerUse::Any | BearerUse::Never) => grant.may(need),
            (Caller::Bearer(_), BearerUse::Never) => Err(Refusal::NotByBearer),
            (Caller::Bearer(_), BearerUse::Any | BearerUse::Only) => Ok(()),
            (Caller::Anonymous, _) => Err(Refusal::NoAuthenticationInformation),
        }
    }

    /// Whether the caller has this permission, for rules that only show when the operation runs: a create permission does
    /// not overwrite, a write permission does.
    pub fn has(&self, letter: u8) -> bool {
        match self {
            Caller::Owner | Caller::Bearer(_) => true,
            Caller::Sas(grant) => grant.permissions.has(letter),
            Caller::Anonymous => false,
        }
    }

    /// The signature, if that is what the caller holds.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Caller::Sas(grant) => Some(grant),
            Caller::Owner | Caller::Bearer(_) | Caller::Anonymous => None,
        }
    }

    /// The holder of the token, if the caller came with one: who a user delegation key is made for.
    pub fn bearer(&self) -> Option<&Bearer> {
        match self {
            Caller::Bearer(bearer) => Some(bearer),
            Caller::Owner | Caller::Sas(_) | Caller::Anonymous => None,
        }
    }
}

/// What a verified signature allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub kind: GrantKind,
    pub permissions: Permissions,
    /// Response headers that the signature sets.
    pub overrides: Option<Box<Overrides>>,
    /// Writes must use this encryption scope.
    pub encryption_scope: Option<Box<str>>,
    /// The holder of the user delegation key that signed, if it was one.
    pub delegation: Option<Box<Delegation>>,
}

/// On whose behalf a signature was made, as far as it is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delegation {
    /// The user that the key was made for.
    pub oid: String,
    pub tid: String,
    /// `saoid`: the user that the holder of the key vouches for.
    pub authorized_oid: Option<String>,
    /// `suoid`: the user whose access the access lists of a directory still decide.
    pub unauthorized_oid: Option<String>,
    /// `scid`: for the log.
    pub correlation_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantKind {
    Account { services: Permissions, resource_types: Permissions },
    Service(Scope),
}

/// What a service signature was made for. That the request lies inside it has been checked with the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Blob,
    Snapshot,
    Version,
    Container,
    Directory {
        depth: usize,
    },
    Queue,
    /// The table in lower case, and the range of keys inside it.
    Table {
        name: Box<str>,
        start: KeyBound,
        end: KeyBound,
    },
    File,
    Share,
}

/// One end of a range of table keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBound {
    pub partition: Option<Box<str>>,
    /// Only together with a partition.
    pub row: Option<Box<str>>,
}

/// Response headers that a service signature sets on reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_type: Option<String>,
}

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub service: Service,
    pub resource: ResourceType,
    /// A signature of the account that is for containers will do as well as one for `resource`.
    pub or_container: bool,
    /// One of these will do; none means no permission is needed.
    pub any_of: Permissions,
    /// All of these as well.
    pub all_of: Permissions,
    pub sas: SasUse,
    pub bearer: BearerUse,
}

/// Which signatures can allow an operation at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasUse {
    Any,
    AccountOnly,
    Never,
}

/// Whether a token can allow an operation at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerUse {
    Any,
    Never,
    /// Nothing else can: there must be a user to act for.
    Only,
}

impl Need {
    pub const fn new(service: Service, resource: ResourceType, any_of: &str) -> Need {
        Need {
            service,
            resource,
            or_container: false,
            any_of: Permissions::of(any_of),
            all_of: Permissions::NONE,
            sas: SasUse::Any,
            bearer: BearerUse::Any,
        }
    }

    pub const fn all_of(mut self, letters: &str) -> Need {
        self.all_of = Permissions::of(letters);
        self
    }

    pub const fn or_container(mut self) -> Need {
        self.or_container = true;
        self
    }

    pub const fn account_sas_only(mut self) -> Need {
        self.sas = SasUse::AccountOnly;
        self
    }

    /// For access lists: no signature will do.
    pub const fn never_by_sas(mut self) -> Need {
        self.sas = SasUse::Never;
        self
    }

    /// For access lists of queues and tables: no token will do, either.
    pub const fn never_by_bearer(mut self) -> Need {
        self.bearer = BearerUse::Never;
        self
    }

    /// For Get User Delegation Key.
    pub const fn only_by_bearer(mut self) -> Need {
        self.sas = SasUse::Never;
        self.bearer = BearerUse::Only;
        self
    }
}

impl Grant {
    /// The order is the service's: what can never be allowed, then service, resource type, permission.
    pub fn may(&self, need: &Need) -> Result<(), Refusal> {
        match (&self.kind, need.sas) {
            (_, SasUse::Never) | (GrantKind::Service(_), SasUse::AccountOnly) => {
                return Err(Refusal::AuthorizationFailure);
            }
            (GrantKind::Account { services, resource_types }, SasUse::Any | SasUse::AccountOnly) => {
                if !services.has(need.service.letter()) {
                    return Err(Refusal::ServiceMismatch);
                }
                let by_container = need.or_container && resource_types.has(ResourceType::Container.letter());
                if !by_container && !resource_types.has(need.resource.letter()) {
                    return Err(Refusal::ResourceTypeMismatch);
                }
            }
            (GrantKind::Service(scope), SasUse::Any) => scope.covers(need)?,
        }
        let any = need.any_of.is_empty() || self.permissions.has_any(need.any_of);
        let enough = any && self.permissions.has_all(need.all_of);
        enough.then_some(()).ok_or(Refusal::PermissionMismatch)
    }
}

impl Scope {
    pub(crate) fn service(&self) -> Service {
        match self {
            Scope::Blob | Scope::Snapshot | Scope::Version | Scope::Container | Scope::Directory { .. } => {
                Service::Blob
            }
            Scope::Queue => Service::Queue,
            Scope::Table { .. } => Service::Table,
            Scope::File | Scope::Share => Service::File,
        }
    }

    fn covers(&self, need: &Need) -> Result<(), Refusal> {
        if self.service() != need.service {
            return Err(Refusal::ServiceMismatch);
        }
        let covered = match self {
            // The path of a directory below `restype=container` would name the whole container.
            Scope::Blob | Scope::Snapshot | Scope::Version | Scope::Directory { .. } | Scope::File => {
                need.resource == ResourceType::Object
            }
            Scope::Container | Scope::Queue | Scope::Table { .. } | Scope::Share => {
                need.resource != ResourceType::Service
            }
        };
        covered.then_some(()).ok_or(Refusal::ResourceTypeMismatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Need = Need::new(Service::Blob, ResourceType::Object, "r");
    const LIST: Need = Need::new(Service::Blob, ResourceType::Container, "l");
    const UPSERT: Need = Need::new(Service::Table, ResourceType::Object, "").all_of("au");

    fn account(services: &str, resource_types: &str, permissions: &str) -> Grant {
        let (services, resource_types) = (Permissions::of(services), Permissions::of(resource_types));
        grant(GrantKind::Account { services, resource_types }, permissions)
    }

    fn grant(kind: GrantKind, permissions: &str) -> Grant {
        Grant {
            kind,
            permissions: Permissions::of(permissions),
            overrides: None,
            encryption_scope: None,
            delegation: None,
        }
    }

    #[test]
    fn letters() {
        let known = Permissions::of("rwd");
        assert_eq!(Permissions::parse("dr", known), Some(Permissions::of("rd")));
        assert_eq!(Permissions::parse("", known), Some(Permissions::NONE));
        for bad in ["rr", "x", "R", "r ", "rä", "r1"] {
            assert_eq!(Permissions::parse(bad, known), None, "{bad}");
        }
    }

    #[test]
    fn an_account_signature_fails_in_order() {
        assert_eq!(account("b", "o", "r").may(&READ), Ok(()));
        assert_eq!(account("q", "s", "w").may(&READ), Err(Refusal::ServiceMismatch));
        assert_eq!(account("b", "s", "w").may(&READ), Err(Refusal::ResourceTypeMismatch));
        assert_eq!(account("b", "o", "w").may(&READ), Err(Refusal::PermissionMismatch));
        assert_eq!(account("q", "s", "w").may(&READ.never_by_sas()), Err(Refusal::AuthorizationFailure));
        assert_eq!(account("b", "o", "r").may(&READ.account_sas_only()), Ok(()));
    }

    #[test]
    fn any_of_and_all_of() {
        let create = Need::new(Service::Blob, ResourceType::Object, "cw");
        for permissions in ["c", "w", "cw"] {
            assert_eq!(account("b", "o", permissions).may(&create), Ok(()));
        }
        assert_eq!(account("t", "o", "au").may(&UPSERT), Ok(()));
        assert_eq!(account("t", "o", "a").may(&UPSERT), Err(Refusal::PermissionMismatch));
    }

    #[test]
    fn a_service_signature_stays_in_its_scope() {
        let service = |scope, permissions| grant(GrantKind::Service(scope), permissions);
        assert_eq!(service(Scope::Blob, "r").may(&READ), Ok(()));
        assert_eq!(service(Scope::Blob, "rl").may(&LIST), Err(Refusal::ResourceTypeMismatch));
        assert_eq!(service(Scope::Directory { depth: 1 }, "rl").may(&LIST), Err(Refusal::ResourceTypeMismatch));
        assert_eq!(service(Scope::Container, "rl").may(&LIST), Ok(()));
        assert_eq!(service(Scope::Container, "rl").may(&READ), Ok(()));
        assert_eq!(service(Scope::Container, "r").may(&LIST), Err(Refusal::PermissionMismatch));
        assert_eq!(service(Scope::Container, "rl").may(&LIST.account_sas_only()), Err(Refusal::AuthorizationFailure));
        assert_eq!(service(Scope::Queue, "r").may(&READ), Err(Refusal::ServiceMismatch));
    }

    #[test]
    fn who_has_what() {
        let sas = Caller::Sas(account("b", "o", "c"));
        assert!(sas.has(b'c') && !sas.has(b'w') && sas.grant().is_some());
        assert!(Caller::Owner.has(b'w') && Caller::Owner.may(&READ.never_by_sas()).is_ok());
        assert!(!Caller::Anonymous.has(b'r') && Caller::Anonymous.grant().is_none());
    }

    #[test]
    fn a_token_allows_everything_but_access_lists() {
        let bearer = Caller::Bearer(Bearer { oid: "o".into(), tid: "t".into() });
        assert!(bearer.has(b'w') && bearer.grant().is_none() && bearer.bearer().is_some());
        for need in [READ, LIST, UPSERT, LIST.account_sas_only(), LIST.never_by_sas(), READ.only_by_bearer()] {
            assert_eq!(bearer.may(&need), Ok(()), "{need:?}");
        }
        for need in [LIST.never_by_bearer(), LIST.never_by_sas().never_by_bearer()] {
            assert_eq!(bearer.may(&need), Err(Refusal::NotByBearer), "{need:?}");
            assert_eq!(Caller::Owner.may(&need), Ok(()), "{need:?}");
        }
    }

    #[test]
    fn a_delegation_key_needs_a_user() {
        let need = Need::new(Service::Blob, ResourceType::Service, "").only_by_bearer();
        for caller in [Caller::Owner, Caller::Sas(account("b", "s", "r"))] {
            let refused = caller.may(&need).expect_err("no user");
            assert_eq!((refused.status(), refused.code()), (403, "AuthenticationFailed"));
            assert_eq!(refused.detail().as_deref(), Some("Only authentication scheme Bearer is supported"));
        }
        assert_eq!(Caller::Anonymous.may(&need), Err(Refusal::NoAuthenticationInformation));
    }
}
