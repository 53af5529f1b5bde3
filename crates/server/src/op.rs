//! The operations of all services, as the walk sees them. A new service is a new variant: the compiler names every place
//! that must know it.

use auth::Need;
use wire::http::{ErrorReply, Head};

use crate::service::Service;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Blob(blob::Op),
    Queue(queue::Op),
    Table(table::Op),
}

impl Op {
    /// What a request to a service asks for.
    pub(crate) fn named_by(service: Service, head: &Head) -> Result<Op, ErrorReply> {
        match service {
            Service::Blob => Ok(Op::Blob(blob::Op::named_by(head)?)),
            Service::Queue => Ok(Op::Queue(queue::Op::named_by(head)?)),
            Service::Table => Ok(Op::Table(table::Op::named_by(head)?)),
            Service::File | Service::Dfs => Err(not_built(service)),
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Op> {
        let blob = blob::Op::ALL.iter().copied().map(Op::Blob);
        let queue = queue::Op::ALL.iter().copied().map(Op::Queue);
        blob.chain(queue).chain(table::Op::ALL.iter().copied().map(Op::Table))
    }

    pub(crate) fn service(self) -> Service {
        match self {
            Op::Blob(_) => Service::Blob,
            Op::Queue(_) => Service::Queue,
            Op::Table(_) => Service::Table,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Blob(op) => op.name(),
            Op::Queue(op) => op.name(),
            Op::Table(op) => op.name(),
        }
    }

    /// A number of its own, from 0 on and without a gap: where it stands in [`Op::all`].
    pub(crate) fn place(self) -> usize {
        match self {
            Op::Blob(op) => op as usize,
            Op::Queue(op) => blob::Op::ALL.len() + op as usize,
            Op::Table(op) => blob::Op::ALL.len() + queue::Op::ALL.len() + op as usize,
        }
    }

    /// How many there are.
    pub(crate) const COUNT: usize = blob::Op::ALL.len() + queue::Op::ALL.len() + table::Op::ALL.len();

    /// The right that this request must carry.
    pub(crate) fn needed_by(self, head: &Head) -> Need {
        match self {
            Op::Blob(op) => op.needed_by(head),
            Op::Queue(op) => op.needs(),
            Op::Table(op) => op.needs(),
        }
    }

    /// A browser's question, which comes without a credential.
    pub(crate) fn is_preflight(self) -> bool {
        match self {
            Op::Blob(op) => op == blob::Op::PreflightBlobRequest,
            Op::Queue(op) => op == queue::Op::PreflightQueueRequest,
            Op::Table(op) => op == table::Op::PreflightTableRequest,
        }
    }

    /// Whether a refusal of it is XML; the Table service speaks both.
    pub(crate) fn refuses_in_xml(self) -> bool {
        match self {
            Op::Blob(_) | Op::Queue(_) => true,
            Op::Table(op) => op.speaks_xml(),
        }
    }
}

/// A service that listens but is not built yet says so; with 500 clients would try again for minutes.
pub(crate) fn not_built(service: Service) -> ErrorReply {
    let message = format!("The {} service is not implemented yet.", service.name());
    ErrorReply::new(501, "APINotImplemented", message)
}
