//! The operations of all services, as the walk sees them. A new service is a new variant: the compiler names every place
//! that must know it.

use auth::Need;
use wire::http::{ErrorReply, Head};

use crate::service::Service;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Blob(blob::Op),
    Queue(queue::Op),
}

impl Op {
    /// What a request to a service asks for.
    pub(crate) fn named_by(service: Service, head: &Head) -> Result<Op, ErrorReply> {
        match service {
            Service::Blob => Ok(Op::Blob(blob::Op::named_by(head)?)),
            Service::Queue => Ok(Op::Queue(queue::Op::named_by(head)?)),
            Service::Table | Service::File | Service::Dfs => Err(not_built(service)),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Op> {
        let blob = blob::Op::ALL.iter().copied().map(Op::Blob);
        blob.chain(queue::Op::ALL.iter().copied().map(Op::Queue))
    }

    pub(crate) fn service(self) -> Service {
        match self {
            Op::Blob(_) => Service::Blob,
            Op::Queue(_) => Service::Queue,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Blob(op) => op.name(),
            Op::Queue(op) => op.name(),
        }
    }

    /// A number of its own, from 0 on and without a gap: where it stands in [`Op::all`].
    pub(crate) fn place(self) -> usize {
        match self {
            Op::Blob(op) => op as usize,
            Op::Queue(op) => blob::Op::ALL.len() + op as usize,
        }
    }

    /// How many there are.
    pub(crate) const COUNT: usize = blob::Op::ALL.len() + queue::Op::ALL.len();

    /// The right that this request must carry.
    pub(crate) fn needed_by(self, head: &Head) -> Need {
        match self {
            Op::Blob(op) => op.needed_by(head),
            Op::Queue(op) => op.needs(),
        }
    }

    /// A browser's question, which comes without a credential.
    pub(crate) fn is_preflight(self) -> bool {
        match self {
            Op::Blob(op) => op == blob::Op::PreflightBlobRequest,
            Op::Queue(op) => op == queue::Op::PreflightQueueRequest,
        }
    }
}

/// A service that listens but is not built yet says so; with 500 clients would try again for minutes.
pub(crate) fn not_built(service: Service) -> ErrorReply {
    let message = format!("The {} service is not implemented yet.", service.name());
    ErrorReply::new(501, "APINotImplemented", message)
}
