//! What the Blob, File, Queue and Table services share.
//!
//! - [`codec`]: values to rows and back.
//! - [`current`]: values that are replaced while the server runs, the accounts and their keys above all.
//! - [`space`]: whose rows are whose.
//! - [`RequestError`]: faults of a request that are found before anything is read; every service gives them the same
//!   codes.
//! - [`properties`]: the settings of a service in an account, CORS rules among them.
//! - [`request`], [`reply`]: headers of requests as values, and headers of answers.
//! - [`LeaseAction`]: the actions of Lease Container, Lease Blob, Lease Share and Lease File.
//! - [`Deletion`]: the mark of what is soft-deleted.
//! - [`remove_rows`]: how the rows of what is gone are removed in the background.
//! - [`each_row`]: a walk over all rows of a space, for `lazurite check`.
//! - [`HttpHeaders`]: the HTTP headers that a blob or a file stores.
//! - [`StoredPolicy`]: a stored access policy, of a container, a queue, a table or a share.
//! - [`sources`]: finds the source of a copy by its URL.
//! - [`listing`]: the parameters that every listing takes.
//! - [`user_delegation_key`], [`stats`]: operations that are the same in every service.
//! - [`Operation`]: an operation as a value that any protocol can build, and [`commit`], which takes it to the engine.
//! - [`HttpService`], [`Call`], [`Asker`]: how a service is called with an HTTP request.
//! - [`Failure`]: how a service says that there is no result.

pub mod codec;
pub mod current;
mod delegation;
mod each_row;
mod http_headers;
mod http_service;
mod lease_action;
pub mod listing;
mod operation;
mod policy;
pub mod properties;
mod remove_rows;
pub mod reply;
pub mod request;
mod request_error;
mod soft_delete;
pub mod sources;
pub mod space;
mod stats;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

use auth::delegation::Secret;
use auth::{Caller, Settings};
use concurrency::Timestamp;
use engine::{EngineError, NotCommitted};
use wire::http::BodyError;

pub use delegation::user_delegation_key;
pub use each_row::{ROWS_PER_SLICE, each_row};
pub use http_headers::{HttpHeaderNames, HttpHeaders};
pub use http_service::{Call, HttpService, ServiceState};
pub use lease_action::{LeaseAction, LeaseKind, LeaseOutcome};
pub use operation::{Operation, ReadOperation, commit, read};
pub use policy::StoredPolicy;
pub use remove_rows::{Removed, remove_rows, remove_rows_from};
pub use request_error::RequestError;
pub use soft_delete::Deletion;
use sources::Sources;
pub use stats::stats;

/// Names and values as the client wrote them.
pub type Pairs = Vec<(String, String)>;

/// Makes `Op`, the operations of one service, from their names in the REST reference.
#[macro_export]
macro_rules! operations {
    ($($name:ident),* $(,)?) => {
        /// An operation of the service. Matches on it have no wildcard, so a new operation does not compile until every
        /// match knows it.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Op { $($name),* }

        impl Op {
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name)),* }
            }
        }
    };
}

/// The caller of an operation, for the few operations whose result depends on it. The caller's permissions have been
/// checked.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    pub caller: &'a Caller,
    /// The time at which the credentials were checked. It is the machine's time: clients sign with their own clocks, so
    /// the engine's test clock does not count here.
    pub now: Timestamp,
    /// The settings of the account.
    pub settings: &'a Settings,
    /// The secret from which user delegation keys are derived.
    pub secret: Secret<'a>,
    /// Finds the sources of copies, with the caller's permissions.
    pub sources: &'a dyn Sources,
    pub manners: Manners,
}

/// Which behaviour clients expect, where Azure and Azurite differ and scripts rely on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manners {
    #[default]
    Azure,
    /// When the program is started under a name of Azurite's, or with `--azurite-compat`.
    Azurite,
}

/// The default settings of an account.
static USUAL: Settings = Settings::USUAL;

impl Asker<'_> {
    /// The owner of the account, as if a request were signed with the account key.
    pub const OWNER: Asker<'static> = Asker {
        caller: &Caller::Owner,
        now: Timestamp(0),
        settings: &USUAL,
        secret: Secret(None),
        sources: &sources::Nothing,
        manners: Manners::Azure,
    };
}

/// Why a request has no result. `E` are the refusals of one service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure<E> {
    /// The service refuses the request; that is a regular answer.
    Refused(E),
    /// The engine failed.
    Failed(EngineError),
    /// The request's body did not arrive as it should.
    Body(BodyError),
}

impl<E> From<EngineError> for Failure<E> {
    fn from(error: EngineError) -> Failure<E> {
        Failure::Failed(error)
    }
}

impl<E: From<RequestError>> From<RequestError> for Failure<E> {
    fn from(error: RequestError) -> Failure<E> {
        Failure::Refused(error.into())
    }
}

impl<E> From<BodyError> for Failure<E> {
    fn from(error: BodyError) -> Failure<E> {
        Failure::Body(error)
    }
}

impl<E> From<NotCommitted<E>> for Failure<E> {
    fn from(error: NotCommitted<E>) -> Failure<E> {
        match error {
            NotCommitted::Refused(error) => Failure::Refused(error),
            NotCommitted::Failed(error) => Failure::Failed(error),
        }
    }
}

/// The result of a read that cannot be refused.
pub fn unrefused<T>(result: Result<T, NotCommitted<std::convert::Infallible>>) -> Result<T, EngineError> {
    result.map_err(|error| match error {
        NotCommitted::Failed(error) => error,
        NotCommitted::Refused(never) => match never {},
    })
}
