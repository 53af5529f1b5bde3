//! A connection at work: frames in, answers into the outbox, many requests at once (MS-SMB2 3.3.5.2).
//!
//! [`Conversation::receive`] takes one frame. NEGOTIATE, SESSION_SETUP and CANCEL are done before it returns; the requests of any other
//! frame become a task of their own, run one after the other there, and are answered in one frame when all of them are done. So answers
//! of different frames come in any order. A task is first polled in the order in which the frames came: what needs no waiting is done in
//! that order.
//!
//! A request that waits (LOCK, CHANGE_NOTIFY, anything after [`INTERIM_AFTER`]) and is the last of its frame gets an interim answer, gives
//! its place to others, and is answered later.

mod logon;
mod requests;

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use engine::panics::{Panicked, caught};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::connection::{Connection, Disconnect, Incoming, Plain, Received};
use crate::credits::CREDITS_MAX;
use crate::lost::Ending;
use crate::memory::Memory;
use crate::outbox::{OUTBOX_BYTES_MAX, OUTBOX_BYTES_MAX_BEFORE_LOGON, Outbox};
use crate::server::{Server, filetime_now, hashes};
use crate::session::{Reply, Session, frame_of};
use crate::user::User;
use crate::wire::frame::{FRAME_BYTES_MAX, FRAME_BYTES_MAX_BEFORE_LOGON};
use crate::wire::header::{Command, Header, Route};

/// Frames at work at once. The next one is read when one of them is done or has got an interim answer.
pub const REQUESTS_MAX: usize = 128;

/// Requests that wait after an interim answer. More are refused with INSUFFICIENT_RESOURCES.
pub const WAITING_REQUESTS_MAX: usize = 1_024;

/// A request that is not done after this long gets an interim answer, so that its client does not take the server for dead.
pub const INTERIM_AFTER: Duration = Duration::from_secs(1);

/// A conversation with one client.
#[derive(Debug)]
pub struct Conversation {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

/// What the tasks of a conversation share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    pub(crate) peer: SocketAddr,
    /// The address that the client reached.
    pub(crate) local: SocketAddr,
    pub(crate) outbox: Outbox,
    connection: Mutex<Connection>,
    users: Mutex<HashMap<u64, Arc<User>>>,
    running: Mutex<HashMap<u64, Arc<Running>>>,
    places: Arc<Semaphore>,
    /// Credits of the requests at work and of their answers until they are sent: [`CREDITS_MAX`].
    credits_at_work: Arc<Semaphore>,
    /// One logon at a time, with the time that its refusal is held back.
    logons: Arc<Semaphore>,
    waiting: AtomicUsize,
    next_async_id: AtomicU64,
    /// The conversation ends: nothing may wait any more.
    ending: watch::Sender<bool>,
}

/// What a frame has while it is at work: one of the places of its connection, and memory, which its answers keep.
#[derive(Debug)]
struct Place {
    _place: OwnedSemaphorePermit,
    memory: Memory,
}

/// A request at work.
#[derive(Debug)]
struct Running {
    /// The client sent CANCEL, or the conversation ends.
    cancelled: Notify,
    /// 0: no interim answer was sent.
    async_id: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls a future once, and gives what it is ready with.
pub(crate) async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

impl Conversation {
    /// A conversation before its first frame. `local` is the address that the client reached.
    #[must_use]
    pub fn new(server: Arc<Server>, peer: SocketAddr, local: SocketAddr) -> Conversation {
        let connection = Mutex::new(Connection::new(Arc::clone(&server.settings)));
        let shared = Shared {
            server,
            peer,
            local,
            outbox: Outbox::default(),
            connection,
            users: Mutex::default(),
            running: Mutex::default(),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            waiting: AtomicUsize::new(0),
            credits_at_work: Arc::new(Semaphore::new(CREDITS_MAX)),
            logons: Arc::new(Semaphore::new(1)),
            next_async_id: AtomicU64::new(1),
            ending: watch::Sender::new(false),
        };
        Conversation { shared: Arc::new(shared), tasks: JoinSet::new() }
    }

    /// Where the answers are.
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        self.shared.outbox.clone()
    }

    /// The longest frame that is taken now.
    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        if self.is_logged_on() { FRAME_BYTES_MAX } else { FRAME_BYTES_MAX_BEFORE_LOGON }
    }

    /// How many bytes of answers may wait before the next frame is taken.
    #[must_use]
    pub fn outbox_bytes_max(&self) -> usize {
        if self.is_logged_on() { OUTBOX_BYTES_MAX } else { OUTBOX_BYTES_MAX_BEFORE_LOGON }
    }

    /// Whether anybody is logged on.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.watcher().is_logged_on()
    }

    /// Whether a request is at work or a file is open: such a connection may be silent.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.watcher().is_in_use()
    }

    /// Looks at the conversation while it takes frames.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        Watcher(Arc::clone(&self.shared))
    }

    /// Takes a frame. Waits while as many as may be are at work.
    ///
    /// # Errors
    /// When the connection must end.
    pub async fn receive(&mut self, frame: BytesMut) -> Result<(), Disconnect> {
        while self.tasks.try_join_next().is_some() {}
        self.end_rotated_sessions().await;
        let shared = &self.shared;
        // A large frame takes a while: those who send answers need the connection meanwhile.
        let encrypted = lock(&shared.connection).encrypted_by(&frame)?;
        let frame = Plain::decrypted(frame, encrypted)?;
        let received = lock(&shared.connection).receive_plain(frame)?;
        let (mut requests, encrypted) = match received {
            Received::MultiProtocol => {
                let message = lock(&shared.connection).multi_protocol(filetime_now());
                shared.outbox.push(frame_of(vec![Reply { message, sign: None }], None));
                return Ok(());
            }
            Received::Requests { requests, encrypted } => (requests, encrypted),
        };
        if let [incoming] = &requests[..] {
            match Command::from_u16(incoming.header.command) {
                Some(Command::Negotiate) => {
                    shared.negotiate(incoming)?;
                    if let Some(client) = shared.client() {
                        shared.server.add_conversation(client, shared);
                    }
                    return Ok(());
                }
                Some(Command::SessionSetup) => {
                    let incoming = requests.remove(0);
                    let later = Box::pin(shared.session_setup(incoming, encrypted.as_deref())).await?;
                    if let Some(later) = later {
                        // Other sessions of the connection do not wait for it.
                        self.tasks.spawn(Arc::clone(shared).answer_later(later));
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        requests.retain(|incoming| !shared.cancels(incoming));
        if requests.is_empty() {
            return Ok(());
        }
        self.start(requests, encrypted).await;
        Ok(())
    }

    /// Has the requests of a frame run.
    async fn start(&mut self, requests: Vec<Incoming>, encrypted: Option<Arc<Session>>) {
        let place = self.shared.place(&requests).await;
        let shared = Arc::clone(&self.shared);
        let mut task = Box::pin(async move {
            let outbox = shared.outbox.clone();
            if let Err(Panicked) = caught(shared.run(requests, encrypted, place)).await {
                tracing::error!("an SMB request panicked; its connection ends");
                outbox.close();
            }
        });
        // Polled here first: what needs no waiting is done in the order of the frames.
        if poll_once(task.as_mut()).await.is_none() {
            self.tasks.spawn(task);
        }
    }

    /// Ends sessions whose account key was replaced. Called for each frame and from time to time.
    pub async fn end_rotated_sessions(&self) {
        self.shared.end_rotated_sessions().await;
    }

    /// Ends the conversation: what waits is cancelled, what is at work comes to its end, every file is closed that is not durable.
    pub async fn end(self) {
        self.end_as(Ending::Lost).await;
    }

    /// The same on a node that serves SMB no longer: durable files are closed, too, because their clients will come back to another node.
    pub async fn end_for_good(self) {
        self.end_as(Ending::Final).await;
    }

    async fn end_as(mut self, ending: Ending) {
        self.shared.ending.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        let users: Vec<Arc<User>> = lock(&self.shared.users).drain().map(|(_, user)| user).collect();
        for user in users {
            self.shared.end_session(&user, ending).await;
        }
        self.shared.outbox.close();
    }
}

/// A conversation that ends in another way than by [`Conversation::end`], such as a panic, closes its files none the less.
impl Drop for Conversation {
    fn drop(&mut self) {
        self.shared.ending.send_replace(true);
        self.shared.outbox.close();
        if let Some(client) = self.shared.client() {
            self.shared.server.remove_conversation(client, &self.shared);
        }
        let users: Vec<Arc<User>> = lock(&self.shared.users).drain().map(|(_, user)| user).collect();
        if users.is_empty() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            for user in users {
                shared.end_session(&user, Ending::Lost).await;
            }
        });
    }
}

/// What can be asked of a conversation while it takes frames.
#[derive(Clone, Debug)]
pub struct Watcher(Arc<Shared>);

impl Watcher {
    /// Whether anybody is logged on.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        !lock(&self.0.users).is_empty()
    }

    /// Whether a request is at work or a file is open: such a connection may be silent.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        !lock(&self.0.running).is_empty() || lock(&self.0.users).values().any(|user| user.has_opens())
    }

    /// Whether requests wait for memory that the answers of others keep.
    #[must_use]
    pub fn is_memory_short(&self) -> bool {
        self.0.server.memory.is_short()
    }

    /// Ends sessions whose account key was replaced.
    pub async fn end_rotated_sessions(&self) {
        self.0.end_rotated_sessions().await;
    }
}

impl Shared {
    /// Ends sessions whose account key was replaced, and lets go of those that another connection has ended.
    async fn end_rotated_sessions(&self) {
        let accounts = self.server.accounts();
        let users: Vec<Arc<User>> = lock(&self.users).values().cloned().collect();
        for user in users {
            if user.is_ended() {
                self.end_session(&user, Ending::Lost).await;
            } else if user.keys_seen(&accounts) {
                continue;
            } else if user.session.key_is_among(&hashes(&accounts, &user.session.user)) {
                user.see_keys(&accounts);
            } else {
                tracing::debug!(user = user.session.user, "an SMB session ends: its key was replaced");
                self.end_session(&user, Ending::Final).await;
            }
        }
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        lock(&self.connection)
    }

    fn negotiate(&self, incoming: &Incoming) -> Result<(), Disconnect> {
        let message = self.connection().negotiate(incoming, self.server.bytes(), filetime_now())?;
        self.outbox.push(frame_of(vec![Reply { message, sign: None }], None));
        Ok(())
    }

    /// The GUID of the client, once it has negotiated.
    pub(crate) fn client(&self) -> Option<u128> {
        self.connection().negotiated().map(|negotiated| negotiated.client_guid)
    }

    /// A session of the account on this connection.
    pub(crate) fn session_of(&self, account: &str) -> Option<Arc<Session>> {
        let users = lock(&self.users);
        let user = users.values().find(|user| !user.is_ended() && user.session.user == account);
        user.map(|user| Arc::clone(&user.session))
    }

    /// The user of a session of this connection that has not ended.
    pub(crate) fn user(&self, session: &Session) -> Option<Arc<User>> {
        lock(&self.users).get(&session.id).filter(|user| !user.is_ended()).cloned()
    }

    /// Ends a session: its files are closed or kept, and requests on it are refused from now on.
    pub(crate) async fn end_session(&self, user: &Arc<User>, ending: Ending) {
        lock(&self.users).remove(&user.session.id);
        self.connection().end_session(user.session.id);
        self.server.remove_session(user.session.id);
        // A task of its own: files that were taken out of the session are closed, even if nobody waits for it any more.
        let (server, user) = (Arc::clone(&self.server), Arc::clone(user));
        let _ = tokio::spawn(async move { server.end_opens(&user, ending).await }).await;
    }

    /// Takes CANCEL, which has no answer. Other requests are left alone.
    fn cancels(&self, incoming: &Incoming) -> bool {
        if Command::from_u16(incoming.header.command) != Some(Command::Cancel) {
            return false;
        }
        if incoming.request.is_ok() {
            let running = lock(&self.running);
            let found = match incoming.header.route {
                Route::Async(0) => None,
                Route::Async(id) => running.values().find(|running| running.async_id.load(Ordering::Relaxed) == id),
                Route::Tree { .. } => running.get(&incoming.header.message_id),
            };
            if let Some(found) = found {
                found.cancelled.notify_one();
            }
        }
        true
    }

    /// Waits for a place.
    async fn place(&self, requests: &[Incoming]) -> Place {
        let credits: usize = requests.iter().map(|incoming| usize::from(incoming.header.credit_charge.max(1))).sum();
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        let memory = self.server.memory.take(&self.credits_at_work, credits).await;
        Place { _place: place, memory }
    }

    fn credits(&self, header: &Header) -> u16 {
        self.connection().grant(header.credits)
    }
}

#[cfg(test)]
mod tests;
