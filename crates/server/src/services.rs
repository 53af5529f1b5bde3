//! The services behind the walk: the one place that hands a request to the crate it belongs to.
//!
//! The `services!` list at the end of this file names each service once. What the server asks of a service is
//! [`RestService`], and of its operations [`RestOperation`]; both are implemented in a file of its own under `services/`. So a
//! new service is a line in the list and a file, and the compiler asks for what is missing.

pub(crate) mod blob;
mod file;
mod queue;
mod table;

use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use ::blob::Outside;
use ::file::opens::Opens;
use ::file::owner::Ownership;
use ::service::properties::Rules;
use ::service::{Asker, StoredPolicy};
use auth::Need;
use content::map::MapCollector;
use engine::collector::Handler;
use engine::{Engine, EngineError};
use wire::http::{Body, ErrorReply, Head, Reply};

use crate::pipeline::Stop;
use crate::service::Service;
use crate::timeouts;

/// An operation of a service, as the walk sees it.
pub(crate) trait RestOperation: Copy + 'static {
    /// All of them, each where its number says.
    const ALL: &'static [Self];

    /// What a request asks for.
    fn named_by(head: &Head) -> Result<Self, ErrorReply>;

    fn name(self) -> &'static str;

    /// Its place in [`RestOperation::ALL`].
    fn number(self) -> usize;

    /// The right that this request must carry.
    fn needed_by(self, head: &Head) -> Need;

    /// A browser's question, which comes without a credential.
    fn is_preflight(self) -> bool;

    /// Whether a refusal of it is XML.
    fn refuses_in_xml(self) -> bool {
        true
    }

    /// How long it may take until its answer begins. `length` is that of the request's body.
    fn time_limit(self, _length: u64) -> Duration {
        timeouts::USUAL
    }
}

/// The operations that read what a copy reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceReads<O> {
    pub content: O,
    /// `None`: what it reads has no tags.
    pub tags: Option<O>,
}

impl<O> SourceReads<O> {
    fn map<P>(self, wrap: impl Fn(O) -> P) -> SourceReads<P> {
        SourceReads { content: wrap(self.content), tags: self.tags.map(wrap) }
    }
}

/// What services are made of.
#[derive(Debug)]
pub(crate) struct Parts {
    engine: Arc<dyn Engine>,
    /// Where copies may come from, apart from this server itself.
    outside: Arc<dyn Outside>,
    /// The table of open files.
    opens: Arc<Opens>,
    /// On a node of many: its part in serving SMB.
    ownership: Option<Arc<Ownership>>,
}

/// A service that answers REST requests.
pub(crate) trait RestService: Handler + Debug + Sized + 'static {
    type Op: RestOperation;

    /// How its resources are read when they are the source of a copy. `None`: copies cannot read from this service.
    const AS_SOURCE: Option<SourceReads<Self::Op>>;

    fn new(parts: &Parts) -> Self;

    fn run(
        &self,
        op: Self::Op,
        asker: Asker<'_>,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> impl Future<Output = Result<Reply, Stop>> + Send;

    /// The stored policies that a signature for this request may lean on.
    fn policies(
        &self,
        account: u64,
        head: &Head,
    ) -> impl Future<Output = Result<Vec<StoredPolicy>, EngineError>> + Send;

    /// Whether the request needs no credential, because what it asks for is public.
    fn is_public(
        &self,
        op: Self::Op,
        account: u64,
        head: &Head,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// The CORS rules of an account, if it has any.
    fn cors(&self, account: u64) -> impl Future<Output = Result<Option<Rules>, EngineError>> + Send;
}

/// A service that listens but is not built yet says so; with 500 clients would try again for minutes.
pub(crate) fn not_built(service: Service) -> ErrorReply {
    let message = format!("The {} service is not implemented yet.", service.name());
    ErrorReply::new(501, "APINotImplemented", message)
}

/// Makes [`Op`] and [`Services`] of the list, and hands everything asked of them to the service it belongs to.
macro_rules! services {
    ($($field:ident: $name:ident($service:ty)),*; not built: $($missing:ident),*) => {
        /// An operation of any service.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Op {
            $($name(<$service as RestService>::Op),)*
        }

        impl Op {
            /// How many there are.
            pub(crate) const COUNT: usize = 0 $(+ <<$service as RestService>::Op as RestOperation>::ALL.len())*;

            pub(crate) fn all() -> impl Iterator<Item = Op> {
                std::iter::empty()
                    $(.chain(<<$service as RestService>::Op as RestOperation>::ALL.iter().copied().map(Op::$name)))*
            }

            /// A number of its own, from 0 on and without a gap: where it stands in [`Op::all`].
            pub(crate) fn place(self) -> usize {
                let mut before = 0;
                $(
                    match self {
                        Op::$name(op) => return before + RestOperation::number(op),
                        _ => before += <<$service as RestService>::Op as RestOperation>::ALL.len(),
                    }
                )*
                before
            }

            /// What a request to a service asks for.
            pub(crate) fn named_by(service: Service, head: &Head) -> Result<Op, ErrorReply> {
                match service {
                    $(Service::$name => RestOperation::named_by(head).map(Op::$name),)*
                    $(Service::$missing)|* => Err(not_built(service)),
                }
            }

            /// How a copy reads a source in a service.
            pub(crate) fn reading_source(service: Service) -> Option<SourceReads<Op>> {
                match service {
                    $(Service::$name => <$service as RestService>::AS_SOURCE.map(|reads| reads.map(Op::$name)),)*
                    $(Service::$missing)|* => None,
                }
            }

            pub(crate) fn service(self) -> Service {
                match self {
                    $(Op::$name(_) => Service::$name,)*
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Op::$name(op) => RestOperation::name(op),)*
                }
            }

            pub(crate) fn needed_by(self, head: &Head) -> Need {
                match self {
                    $(Op::$name(op) => RestOperation::needed_by(op, head),)*
                }
            }

            pub(crate) fn is_preflight(self) -> bool {
                match self {
                    $(Op::$name(op) => RestOperation::is_preflight(op),)*
                }
            }

            pub(crate) fn refuses_in_xml(self) -> bool {
                match self {
                    $(Op::$name(op) => RestOperation::refuses_in_xml(op),)*
                }
            }

            pub(crate) fn time_limit(self, length: u64) -> Duration {
                match self {
                    $(Op::$name(op) => RestOperation::time_limit(op, length),)*
                }
            }
        }

        /// All services over one engine.
        #[derive(Debug)]
        pub(crate) struct Services {
            $($field: Arc<$service>,)*
        }

        impl Services {
            /// `outside` is where copies may come from, apart from this server itself.
            pub(crate) fn new(
                engine: &Arc<dyn Engine>,
                outside: &Arc<dyn Outside>,
                ownership: Option<&Arc<Ownership>>,
            ) -> Services {
                // The hasher's keys are random for each process. Numbers of handles need no more than that.
                let random = RandomState::new().hash_one(std::process::id());
                let opens = Arc::new(Opens::new(random));
                let ownership = ownership.cloned();
                let parts = Parts { engine: Arc::clone(engine), outside: Arc::clone(outside), opens, ownership };
                Services {
                    $($field: Arc::new(RestService::new(&parts)),)*
                }
            }

            /// The handlers of due rows: the services, and the collector of the maps that they share.
            pub(crate) fn handlers(&self) -> Vec<Arc<dyn Handler>> {
                vec![$(Arc::clone(&self.$field) as _,)* Arc::new(MapCollector)]
            }

            pub(crate) fn is_built(service: Service) -> bool {
                match service {
                    $(Service::$name)|* => true,
                    $(Service::$missing)|* => false,
                }
            }

            pub(crate) async fn run(
                &self,
                op: Op,
                asker: Asker<'_>,
                head: &Head,
                account: u64,
                body: &mut dyn Body,
            ) -> Result<Reply, Stop> {
                match op {
                    $(Op::$name(op) => RestService::run(&*self.$field, op, asker, head, account, body).await,)*
                }
            }

            /// The stored policies that a signature for this request may lean on.
            pub(crate) async fn policies(
                &self,
                service: Service,
                account: u64,
                head: &Head,
            ) -> Result<Vec<StoredPolicy>, EngineError> {
                match service {
                    $(Service::$name => RestService::policies(&*self.$field, account, head).await,)*
                    $(Service::$missing)|* => Ok(Vec::new()),
                }
            }

            /// Whether the request needs no credential, because what it asks for is public.
            pub(crate) async fn is_public(&self, op: Op, account: u64, head: &Head) -> Result<bool, EngineError> {
                match op {
                    $(Op::$name(op) => RestService::is_public(&*self.$field, op, account, head).await,)*
                }
            }

            /// The CORS rules of an account, if it has any.
            pub(crate) async fn cors(&self, service: Service, account: u64) -> Result<Option<Rules>, EngineError> {
                match service {
                    $(Service::$name => RestService::cors(&*self.$field, account).await,)*
                    $(Service::$missing)|* => Ok(None),
                }
            }
        }
    };
}

services! {
    blob: Blob(::blob::BlobService),
    file: File(::file::FileService),
    queue: Queue(::queue::QueueService),
    table: Table(::table::TableService);
    not built: Dfs
}

impl Services {
    /// The File service as SMB sees it.
    pub(crate) fn file_door(&self) -> ::file::door::Door {
        self.file.door()
    }

    /// A page of the website of an account.
    pub(crate) async fn website(&self, asker: Asker<'_>, head: &Head, account: u64) -> Result<Reply, Stop> {
        Ok(self.blob.website(asker, head, account).await?)
    }
}

#[cfg(test)]
mod tests {
    use ::blob::BlobService;
    use ::file::FileService;
    use ::file::opens::Opens;
    use ::queue::QueueService;
    use ::table::TableService;
    use engine::memory::MemoryEngine;

    use super::*;

    #[test]
    fn no_space_has_two_handlers() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let (blob, queue) = (BlobService::new(Arc::clone(&engine)), QueueService::new(Arc::clone(&engine)));
        let file = FileService::new(Arc::clone(&engine), Arc::new(Opens::new(1)));
        let table = TableService::new(engine);
        let mut spaces: Vec<u8> =
            [blob.spaces(), file.spaces(), queue.spaces(), table.spaces(), MapCollector.spaces()].concat();
        spaces.sort_unstable();
        let count = spaces.len();
        spaces.dedup();
        assert_eq!(spaces.len(), count);
    }
}
