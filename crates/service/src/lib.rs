//! What the services have in common, beneath any of them.
//!
//! - [`codec`]: rows to values and back.
//! - [`current`]: values that are replaced while the server runs, the accounts and their keys above all.
//! - [`space`]: whose rows are whose.
//! - [`RequestError`]: what is wrong with a request before anything is looked up; every service gives the same codes.
//! - [`properties`]: the settings of a service in an account, CORS rules among them.
//! - [`StoredPolicy`]: a stored access policy, of a container, a queue, a table or a share.
//! - [`sources`]: what the source of a copy is.
//! - [`listing`]: the parameters that every listing takes.
//! - [`user_delegation_key`], [`stats`]: operations that are the same everywhere.
//! - [`Operation`]: an operation as a value that any protocol can build, and [`commit`], which takes it to the engine.
//! - [`HttpService`], [`Call`], [`Asker`]: how a service is called with an HTTP request.
//! - [`Failure`]: how a service says that there is no result.

pub mod codec;
pub mod current;
mod delegation;
mod http_service;
pub mod listing;
mod operation;
mod policy;
pub mod properties;
mod request_error;
pub mod sources;
pub mod space;
mod stats;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

use auth::delegation::Secret;
use auth::{Caller, Settings};
use concurrency::Timestamp;
use engine::{EngineError, NotCommitted};
use wire::http::BodyError;

pub use delegation::user_delegation_key;
pub use http_service::{Call, HttpService, ServiceState};
pub use operation::{Operation, ReadOperation, commit, read};
pub use policy::StoredPolicy;
pub use request_error::RequestError;
use sources::Sources;
pub use stats::stats;

/// Names and values as the client wrote them.
pub type Pairs = Vec<(String, String)>;

/// Makes `Op`, the operations of one service, from their names in the REST reference.
#[macro_export]
macro_rules! operations {
    ($($name:ident),* $(,)?) => {
        /// What a request asks for. Closed: a new operation makes the compiler name every place that must know it.
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

/// Who asks, for the few operations that differ by it. That they may has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    pub caller: &'a Caller,
    /// The time by which the caller was judged. Clients sign with their own clocks, so a test clock has no say in it.
    pub now: Timestamp,
    /// What the account is like.
    pub settings: &'a Settings,
    /// What user delegation keys are made from.
    pub secret: Secret<'a>,
    /// Finds what the URLs of copies name, as far as the caller may read it.
    pub sources: &'a dyn Sources,
    pub manners: Manners,
}

/// Whose behaviour is expected where the two differ and scripts rely on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manners {
    #[default]
    Azure,
    /// Under the names of Azurite, and by `--azurite-compat`.
    Azurite,
}

/// The settings of an account that nothing was said about.
static USUAL: Settings = Settings::USUAL;

impl Asker<'_> {
    /// Somebody who holds the account's key.
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
    /// The service says no: an answer like any other.
    Refused(E),
    /// The engine could not do it.
    Failed(EngineError),
    /// The body did not arrive.
    Body(BodyError),
}

impl<E> From<EngineError> for Failure<E> {
    fn from(error: EngineError) -> Failure<E> {
        Failure::Failed(error)
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
