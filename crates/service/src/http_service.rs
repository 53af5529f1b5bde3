//! HTTP is one way to call a service: what all services do with a request.

use std::sync::Arc;

use engine::{Engine, EngineError, Rows, Unread};
use wire::http::{Body, Head, Reply};

use crate::operation::{self, Operation, ReadOperation};
use crate::properties::{KnownRules, Properties, Rules};
use crate::{Asker, Failure, StoredPolicy, unrefused};

/// A request as an operation gets it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub engine: &'a dyn Engine,
    pub account: u64,
    pub head: &'a Head,
    pub asker: Asker<'a>,
}

impl Call<'_> {
    /// Decides an operation in this request's account and commits what it changes.
    pub async fn commit<O: Operation>(&self, operation: &Arc<O>) -> Result<O::Outcome, Failure<O::Refusal>> {
        operation::commit(self.engine, self.account, operation).await
    }

    /// Runs an operation that changes nothing in this request's account.
    pub async fn read<O: ReadOperation>(&self, operation: &Arc<O>) -> Result<O::Outcome, Failure<O::Refusal>> {
        operation::read(self.engine, self.account, operation).await
    }
}

/// What every service holds: the engine, and the CORS rules of its accounts as they were parsed last.
#[derive(Clone, Debug)]
pub struct ServiceState {
    engine: Arc<dyn Engine>,
    rules: Arc<KnownRules>,
}

impl ServiceState {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> ServiceState {
        ServiceState { engine, rules: Arc::default() }
    }
}

/// A service that answers HTTP requests. An implementation says what differs between services; the provided methods are what
/// a server calls.
pub trait HttpService: Sync {
    /// The service's operations.
    type Op: Send;
    /// The service's refusals.
    type Error: Send + 'static;

    fn state(&self) -> &ServiceState;

    /// The settings of the service in an account, CORS rules among them.
    fn properties() -> &'static Properties;

    /// Runs an operation for a caller who has been checked.
    fn answer(
        &self,
        op: Self::Op,
        call: Call<'_>,
        body: &mut dyn Body,
    ) -> impl Future<Output = Result<Reply, Failure<Self::Error>>> + Send;

    /// The stored access policies of the queue, table or other resource of this name. `None`: it does not exist.
    fn find_policies(rows: &dyn Rows, account: u64, name: &str) -> Result<Option<Vec<StoredPolicy>>, Unread>;

    /// Runs an operation for the owner of the account.
    fn run(
        &self,
        op: Self::Op,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> impl Future<Output = Result<Reply, Failure<Self::Error>>> + Send {
        self.run_for(Asker::OWNER, op, head, account, body)
    }

    /// Runs an operation for a caller who has been checked: they may.
    fn run_for(
        &self,
        asker: Asker<'_>,
        op: Self::Op,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> impl Future<Output = Result<Reply, Failure<Self::Error>>> + Send {
        async move { self.answer(op, Call { engine: &*self.state().engine, account, head, asker }, body).await }
    }

    /// The CORS rules of an account, if it has any.
    fn cors(&self, account: u64) -> impl Future<Output = Result<Option<Rules>, EngineError>> + Send {
        let ServiceState { engine, rules } = self.state();
        rules.of(Self::properties(), &**engine, account)
    }

    /// The stored access policies of a resource. One that does not exist has none.
    fn policies(
        &self,
        account: u64,
        name: &str,
    ) -> impl Future<Output = Result<Vec<StoredPolicy>, EngineError>> + Send {
        let (engine, name) = (&*self.state().engine, name.to_owned());
        async move {
            let find = move |rows: &dyn Rows, _| Ok(Self::find_policies(rows, account, &name)?);
            Ok(unrefused(engine::read(engine, find).await)?.unwrap_or_default())
        }
    }
}
