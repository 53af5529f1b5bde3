//! The commands, one file each: a request in, an answer or the status of a refusal out. What a command means for files is decided by
//! `file::door`.

mod change_notify;
mod close;
mod create;
mod durable;
mod flush;
mod ioctl;
mod lock;
mod logoff;
mod oplock_break;
mod pipe;
mod query_directory;
mod query_info;
mod read;
mod refusal;
mod set_info;
mod tree_connect;
mod tree_disconnect;
mod write;

use std::sync::Arc;

use crate::breaks::{BreakWaiting, Owner};
use crate::conversation::Shared;
use crate::open::{FileOpen, Open, OpenKind};
use crate::status::{Result, Status};
use crate::user::{Tree, User};
use crate::wire::negotiate::Dialect;
use crate::wire::{Empty, FileId, Request, Response};

/// A request's surroundings.
#[derive(Debug)]
pub(crate) struct Call {
    pub conversation: Arc<Shared>,
    pub user: Option<Arc<User>>,
    pub tree_id: Option<u32>,
    /// The request may go on after an interim answer: it is the last of its frame.
    pub may_wait: bool,
    /// The client has sent the request before and does not know what became of it.
    pub is_replay: bool,
    /// Whether it waits for other clients to give up what they cache.
    pub breaks: Arc<BreakWaiting>,
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    /// SUCCESS, or a warning that comes with a body.
    pub status: Status,
    pub body: Response,
    /// The tree that TREE_CONNECT made.
    pub tree_id: Option<u32>,
    /// The open that CREATE made. It hears of breaks when the answer is on its way.
    pub opened: Option<Arc<Owner>>,
}

impl Answer {
    pub fn new(body: Response) -> Answer {
        Answer::with(Status::SUCCESS, body)
    }

    pub fn with(status: Status, body: Response) -> Answer {
        Answer { status, body, tree_id: None, opened: None }
    }
}

impl Call {
    pub fn user(&self) -> Result<&Arc<User>> {
        self.user.as_ref().ok_or(Status::USER_SESSION_DELETED)
    }

    /// The number of the account that is logged on.
    pub async fn account(&self) -> Result<u64> {
        let name = &self.user()?.session.user;
        self.conversation.server.host.account_id(name).await.map_err(|error| {
            tracing::error!(%error, "an SMB request failed: the account has no number");
            Status::UNEXPECTED_IO_ERROR
        })
    }

    /// The GUID of the client.
    pub fn client(&self) -> Result<u128> {
        self.conversation.client().ok_or(Status::USER_SESSION_DELETED)
    }

    pub fn tree(&self) -> Result<Arc<Tree>> {
        self.user()?.tree(self.tree_id.ok_or(Status::NETWORK_NAME_DELETED)?)
    }

    /// Whether the connection has version 2 of durable opens.
    pub fn knows_v2(&self) -> Result<bool> {
        let negotiated = self.conversation.connection().negotiated().cloned();
        let dialect = negotiated.ok_or(Status::USER_SESSION_DELETED)?.algorithms.dialect;
        Ok(dialect != Dialect::Smb210)
    }

    /// An open of the call's tree, which is used.
    pub fn open(&self, id: FileId) -> Result<Arc<Open>> {
        let tree = self.tree()?;
        let open = self.user()?.open(tree.id, id)?;
        if let OpenKind::File(file) = &open.kind {
            file.used();
        }
        Ok(open)
    }
}

impl Open {
    /// The file of an open that is no pipe.
    pub fn file(&self) -> Result<&FileOpen> {
        match &self.kind {
            OpenKind::File(file) => Ok(file),
            OpenKind::Pipe(_) => Err(Status::INVALID_DEVICE_REQUEST),
        }
    }
}

/// A time as FILETIME.
fn filetime(time: concurrency::Timestamp) -> i64 {
    i64::try_from(file::door::filetime(time)).unwrap_or(i64::MAX)
}

/// Runs a request. Futures of commands that are large are boxed: there are many requests at a time.
pub(crate) async fn run(call: &Call, request: Request) -> Result<Answer> {
    match request {
        Request::Echo(_) => Ok(Answer::new(Response::Echo(Empty))),
        Request::Logoff(_) => logoff::run(call).await,
        Request::TreeConnect(request) => Box::pin(tree_connect::run(call, &request)).await,
        Request::TreeDisconnect(_) => tree_disconnect::run(call).await,
        Request::Create(request) => Box::pin(create::run(call, *request)).await,
        Request::Close(request) => Box::pin(close::run(call, request)).await,
        Request::Flush(request) => Box::pin(flush::run(call, request)).await,
        Request::Read(request) => Box::pin(read::run(call, request)).await,
        Request::Write(request) => Box::pin(write::run(call, request)).await,
        Request::Lock(request) => Box::pin(lock::run(call, request)).await,
        Request::Ioctl(request) => Box::pin(ioctl::run(call, request)).await,
        Request::QueryDirectory(request) => Box::pin(query_directory::run(call, request)).await,
        Request::ChangeNotify(request) => Box::pin(change_notify::run(call, request)).await,
        Request::QueryInfo(request) => Box::pin(query_info::run(call, request)).await,
        Request::SetInfo(request) => Box::pin(set_info::run(call, request)).await,
        Request::OplockBreak(request) => oplock_break::run(call, request).await,
        // CANCEL has no answer; NEGOTIATE and SESSION_SETUP stand alone in their frames and are answered by the connection.
        Request::Cancel(_) | Request::Negotiate(_) | Request::SessionSetup(_) => Err(Status::INVALID_PARAMETER),
    }
}
