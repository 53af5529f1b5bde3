//! The requests of a frame, one after the other, and their answers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use super::{INTERIM_AFTER, Place, Running, Shared, WAITING_REQUESTS_MAX, lock, poll_once};
use crate::breaks::{BreakWaiting, Owner};
use crate::command::{self, Answer, Call};
use crate::connection::Incoming;
use crate::server::Answered;
use crate::session::{Reply, Session, frame_of};
use crate::status::{Result, Status};
use crate::user::User;
use crate::wire::compound::Outgoing;
use crate::wire::frame::FRAME_BYTES_MAX;
use crate::wire::fsctl::code;
use crate::wire::header::{Command, Flags, Header, Route};
use crate::wire::{FileId, Request, Response};

/// What related requests of a frame take over from the one before.
#[derive(Debug)]
struct Chain {
    tree_id: Option<u32>,
    /// The file, or why there is none.
    file: Result<FileId>,
}

/// What is left of a request while it is at work. Its bytes are not: a request that waits would hold its whole frame.
#[derive(Debug)]
pub(super) struct Asked {
    pub header: Header,
    pub session: Option<Arc<Session>>,
    pub sign: bool,
    /// Bytes that it came in.
    pub received: u64,
    pub began: Instant,
}

impl Asked {
    pub fn new(incoming: Incoming) -> (Asked, Result<Request>) {
        let Incoming { header, bytes, request, session, sign } = incoming;
        (Asked { header, session, sign, received: bytes.len() as u64, began: Instant::now() }, request)
    }
}

/// Answers of a frame that were not sent yet.
#[derive(Debug, Default)]
struct Replies {
    replies: Vec<Reply>,
    bytes: usize,
}

impl Replies {
    fn push(&mut self, reply: Reply) {
        self.bytes += reply.message.len();
        self.replies.push(reply);
    }

    fn take(&mut self) -> Vec<Reply> {
        self.bytes = 0;
        std::mem::take(&mut self.replies)
    }
}

/// The running request is known by its message id for as long as this lives.
struct Listed<'a> {
    shared: &'a Shared,
    message_id: u64,
    running: Arc<Running>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.shared.running).remove(&self.message_id);
    }
}

/// How a request can be cancelled.
struct Wait<'a> {
    running: &'a Running,
    /// At any time.
    can_be_cancelled: bool,
    /// While it waits for other clients to give up what they cache.
    breaks: &'a BreakWaiting,
    /// The session may end before the connection does.
    user: Option<&'a User>,
}

/// One of the requests that wait, for as long as this lives.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Runs the requests of a frame and queues their answers.
    pub(super) async fn run(self: Arc<Self>, requests: Vec<Incoming>, encrypted: Option<Arc<Session>>, place: Place) {
        let mut place = Some(place);
        let mut replies = Replies::default();
        let mut chain = Chain { tree_id: None, file: Err(Status::INVALID_PARAMETER) };
        let mut left = requests.len();
        let mut opened = Vec::new();
        for incoming in requests {
            left -= 1;
            let (asked, request) = Asked::new(incoming);
            let (outcome, async_id) = match self.prepare(&asked, request, &mut chain, left == 0) {
                Ok((call, request)) => {
                    let waits = waits_for_others(&request);
                    let can_be_cancelled = waits || may_be_left(&request);
                    let mut future = Box::pin(command::run(&call, request));
                    let listed = self.list(&asked.header);
                    let user = call.user.as_deref();
                    let wait = Wait { running: &listed.running, can_be_cancelled, breaks: &call.breaks, user };
                    match self.first(waits, future.as_mut(), left == 0, &wait).await {
                        Some(outcome) => (outcome, None),
                        None => {
                            let waits = waits || call.breaks.is_waiting();
                            // Work that goes on keeps its place: a slow engine is not given more to do.
                            let given_up = if waits { &mut place } else { &mut None };
                            match self.go_async(&asked, &listed.running, &mut replies, encrypted.as_deref(), given_up) {
                                Some((async_id, _waiting)) => {
                                    answered(&mut opened);
                                    (self.wait(future.as_mut(), &wait).await, Some(async_id))
                                }
                                None if waits => (Err(Status::INSUFFICIENT_RESOURCES), None),
                                // What has begun goes on without an interim answer.
                                None => (self.wait(future.as_mut(), &wait).await, None),
                            }
                        }
                    }
                }
                Err(status) => (Err(status), None),
            };
            self.follow(&asked, &outcome, &mut chain);
            let made = outcome.as_ref().ok().and_then(|answer| answer.opened.clone());
            let reply = self.reply(&asked, outcome, async_id, chain.tree_id);
            if replies.bytes + reply.message.len() > FRAME_BYTES_MAX {
                self.outbox.push(frame_of(replies.take(), encrypted.as_deref()));
                answered(&mut opened);
            }
            replies.push(reply);
            opened.extend(made);
        }
        let memory = place.map(|place| place.memory);
        self.outbox.push_paid(frame_of(replies.take(), encrypted.as_deref()), memory);
        answered(&mut opened);
    }

    /// The request with what it belongs to: its user, and, if it is related, the tree and the file of the one before.
    fn prepare(
        self: &Arc<Self>,
        asked: &Asked,
        request: Result<Request>,
        chain: &mut Chain,
        is_last: bool,
    ) -> Result<(Call, Request)> {
        let is_related = asked.header.flags.has(Flags::RELATED);
        // Also for a request that cannot be read: what follows it is related to it, not to the one before.
        if !is_related {
            chain.file = Err(Status::INVALID_PARAMETER);
            chain.tree_id = asked.header.tree_id();
        }
        let mut request = request?;
        // The first of the frame was related to nothing, and so is all that is related to it.
        if is_related && chain.tree_id.is_none() {
            return Err(Status::INVALID_PARAMETER);
        }
        let user = match &asked.session {
            Some(session) => Some(self.user(session).ok_or(Status::USER_SESSION_DELETED)?),
            None => None,
        };
        if let Some(file_id) = request.file_id() {
            if is_related && file_id == FileId::RELATED {
                request.set_file_id(chain.file?);
            } else {
                chain.file = Ok(file_id);
            }
        }
        let breaks = Arc::default();
        let call = Call {
            conversation: Arc::clone(self),
            user,
            tree_id: chain.tree_id,
            may_wait: is_last,
            is_replay: asked.header.flags.has(Flags::REPLAY),
            breaks,
        };
        Ok((call, request))
    }

    /// What the next related request finds.
    fn follow(&self, asked: &Asked, outcome: &Result<Answer>, chain: &mut Chain) {
        match (asked.header.command(), outcome) {
            (Ok(Command::Create), Ok(Answer { body: Response::Create(created), .. })) => {
                chain.file = Ok(created.file_id)
            }
            // All that follows was meant for this file.
            (Ok(Command::Create), Err(status)) => chain.file = Err(*status),
            (Ok(Command::TreeConnect), Ok(Answer { tree_id: Some(tree_id), .. })) => chain.tree_id = Some(*tree_id),
            _ => {}
        }
    }

    fn list(&self, header: &Header) -> Listed<'_> {
        let running = Arc::new(Running { cancelled: Notify::new(), async_id: AtomicU64::new(0) });
        lock(&self.running).insert(header.message_id, Arc::clone(&running));
        Listed { shared: self, message_id: header.message_id, running }
    }

    /// The outcome, unless the request must wait and may get an interim answer.
    async fn first<F: Future<Output = Result<Answer>> + ?Sized>(
        &self,
        waits: bool,
        mut future: Pin<&mut F>,
        is_last: bool,
        wait: &Wait<'_>,
    ) -> Option<Result<Answer>> {
        if !is_last {
            return Some(self.wait(future, wait).await);
        }
        if let Some(outcome) = poll_once(future.as_mut()).await {
            return Some(outcome);
        }
        if waits {
            return None;
        }
        tokio::select! {
            biased;
            outcome = future => Some(outcome),
            () = wait.breaks.began.notified() => None,
            () = tokio::time::sleep(INTERIM_AFTER) => None,
        }
    }

    /// Sends the answers so far and the interim one, which keep the memory of a place that is given up. Frames leave in order, so it
    /// also covers those that were sent before. None when too many wait already.
    fn go_async(
        &self,
        asked: &Asked,
        running: &Running,
        replies: &mut Replies,
        encrypted: Option<&Session>,
        given_up: &mut Option<Place>,
    ) -> Option<(u64, Waiting<'_>)> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(self);
        if before >= WAITING_REQUESTS_MAX {
            return None;
        }
        let async_id = self.next_async_id.fetch_add(1, Ordering::Relaxed);
        running.async_id.store(async_id, Ordering::Relaxed);
        let credits = self.credits(&asked.header);
        let mut header = asked.header.answer_async(Status::PENDING, credits, async_id);
        if let Some(session) = &asked.session {
            header.session_id = session.id;
        }
        // Not signed: the final answer has the same message id, and with AES-GMAC that would use one nonce twice.
        replies.push(Reply { message: Outgoing::new(&header, &Response::error()), sign: None });
        let memory = given_up.take().map(|place| place.memory);
        self.outbox.push_paid(frame_of(replies.take(), encrypted), memory);
        Some((async_id, waiting))
    }

    /// Waits for the outcome, or until the request is cancelled, if it can be: what changes something comes to its end, and can be
    /// cancelled only while it waits for other clients.
    async fn wait<F: Future<Output = Result<Answer>> + ?Sized>(
        &self,
        mut future: Pin<&mut F>,
        wait: &Wait<'_>,
    ) -> Result<Answer> {
        let mut ending = self.ending.subscribe();
        let mut is_ending = false;
        loop {
            tokio::select! {
                biased;
                outcome = future.as_mut() => return outcome,
                () = wait.running.cancelled.notified() => {}
                // Also for a request that begins to wait when the conversation is about to end.
                _ = ending.wait_for(|ending| *ending), if !is_ending => is_ending = true,
                // A durable open outlives its session: a lock must not be granted to a request that nobody waits for.
                () = session_ended(wait.user), if !is_ending => is_ending = true,
                () = wait.breaks.began.notified(), if is_ending => {}
            }
            if wait.can_be_cancelled || wait.breaks.is_waiting() {
                return Err(Status::CANCELLED);
            }
        }
    }

    /// The answer. The final one after an interim answer grants no credits: that did.
    fn reply(
        &self,
        asked: &Asked,
        outcome: Result<Answer>,
        async_id: Option<u64>,
        tree_of_chain: Option<u32>,
    ) -> Reply {
        let Answer { status, body, tree_id, .. } =
            outcome.unwrap_or_else(|status| Answer::with(status, Response::error()));
        let mut header = match async_id {
            Some(id) => asked.header.answer_async(status, 0, id),
            None => asked.header.answer(status, self.credits(&asked.header)),
        };
        match &asked.session {
            // A related request has all ones for what it takes over; its answer says what that was.
            Some(session) => header.session_id = session.id,
            None => header = header.with_signature_of(&asked.header),
        }
        if let (Some(tree), Route::Tree { process, .. }) = (tree_id.or(tree_of_chain), header.route) {
            header.route = Route::Tree { process, tree };
        }
        let message = Outgoing::new(&header, &body);
        let user = asked.session.as_ref().map(|session| session.user.as_str());
        self.told(asked, status, user, message.len() as u64);
        Reply { message, sign: asked.session.clone().filter(|_| asked.sign) }
    }

    /// Tells the host of an answer.
    pub(super) fn told(&self, asked: &Asked, status: Status, user: Option<&str>, sent: u64) {
        let Ok(command) = asked.header.command() else { return };
        let (received, took) = (asked.received, asked.began.elapsed());
        self.server.host.answered(&Answered { peer: self.peer, command, status, user, took, received, sent });
    }
}

/// The answers to CREATE are in the outbox: breaks of these opens may follow them.
fn answered(opened: &mut Vec<Arc<Owner>>) {
    for owner in opened.drain(..) {
        owner.answered();
    }
}

async fn session_ended(user: Option<&User>) {
    match user {
        Some(user) => user.ended().await,
        None => std::future::pending().await,
    }
}

/// LOCK and CHANGE_NOTIFY wait for what other clients do.
fn waits_for_others(request: &Request) -> bool {
    matches!(request, Request::Lock(_) | Request::ChangeNotify(_))
}

/// Requests that take long and leave nothing half done: a listing changes nothing, and every step of a copy is a commit of its own, which
/// comes to its end.
fn may_be_left(request: &Request) -> bool {
    match request {
        Request::QueryDirectory(_) => true,
        Request::Ioctl(request) => {
            matches!(request.code, code::SRV_COPYCHUNK | code::SRV_COPYCHUNK_WRITE | code::DUPLICATE_EXTENTS_TO_FILE)
        }
        _ => false,
    }
}
