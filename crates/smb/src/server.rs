//! What all SMB connections of a server share: settings, the File service, the accounts, and who is logged on.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use auth::Accounts;
use engine::{BoxFuture, EngineError};
use file::door::Door;
use ring::rand::{SecureRandom, SystemRandom};
use service::current::Current;

use crate::connection::{Drawn, Settings};
use crate::conversation::Shared;
use crate::durable::Disconnected;
use crate::logon_throttle::LogonThrottle;
use crate::lost::Lost;
use crate::memory::MemoryPool;
use crate::ntlm::NtHash;
use crate::replay::Replays;
use crate::status::Status;
use crate::user::User;
use crate::wire::header::Command;

/// Seconds from 1601, where FILETIME begins, to 1970.
const FILETIME_EPOCH_SECS: u64 = 11_644_473_600;

/// What the server around the SMB connections gives them, and what it wants to know of them.
pub trait Host: fmt::Debug + Send + Sync {
    /// The number that rows have for an account.
    fn account_id<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<u64, EngineError>>;

    /// A request has its final answer.
    fn answered(&self, answered: &Answered<'_>);

    /// A logon failed. `wait` is how long its refusal is held back.
    fn logon_failed(&self, peer: SocketAddr, wait: Duration);
}

/// A request that was answered, for the log and the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    pub peer: SocketAddr,
    pub command: Command,
    pub status: Status,
    pub user: Option<&'a str>,
    pub took: Duration,
    /// Bytes that the request carried, and those of its answer.
    pub received: u64,
    pub sent: u64,
}

/// What all connections share.
#[derive(Debug)]
pub struct Server {
    pub(crate) settings: Arc<Settings>,
    pub(crate) door: Door,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) throttle: LogonThrottle,
    pub(crate) memory: MemoryPool,
    accounts: AccountSource,
    sessions: Mutex<HashMap<u64, Weak<User>>>,
    /// By the GUID of the client.
    conversations: Mutex<HashMap<u128, Vec<Weak<Shared>>>>,
    disconnected: Mutex<Disconnected<Lost>>,
    /// CREATE requests that may be sent again.
    pub(crate) replays: Arc<Replays>,
    next_open: AtomicU64,
    random: SystemRandom,
}

struct AccountSource(Arc<dyn Current<Accounts>>);

impl fmt::Debug for AccountSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountSource")
    }
}

impl Server {
    /// A server without connections.
    pub fn new(settings: Settings, door: Door, accounts: Arc<dyn Current<Accounts>>, host: Arc<dyn Host>) -> Server {
        let random = SystemRandom::new();
        Server {
            next_open: AtomicU64::new(first_open(&random)),
            settings: Arc::new(settings),
            door,
            host,
            throttle: LogonThrottle::default(),
            memory: MemoryPool::default(),
            accounts: AccountSource(accounts),
            sessions: Mutex::default(),
            conversations: Mutex::default(),
            disconnected: Mutex::default(),
            replays: Arc::default(),
            random,
        }
    }

    /// The accounts as they are known now.
    pub(crate) fn accounts(&self) -> Arc<Accounts> {
        self.accounts.0.get()
    }

    /// The accounts as they are at this call, wherever they are kept.
    pub(crate) async fn newest_accounts(&self) -> Result<Arc<Accounts>, EngineError> {
        service::current::newest(&*self.accounts.0).await
    }

    pub(crate) fn drawn(&self) -> Drawn {
        let session_id = u64::from_le_bytes(self.bytes());
        Drawn { session_id, challenge: self.bytes(), salt: self.bytes(), time: filetime_now() }
    }

    /// Random bytes. A system without randomness cannot run this server at all, so zeros are never sent: the panic ends the connection.
    pub(crate) fn bytes<const N: usize>(&self) -> [u8; N] {
        drawn(&self.random)
    }

    /// The persistent half of a new file id: no other open has it.
    pub(crate) fn next_open(&self) -> u64 {
        self.next_open.fetch_add(1, Ordering::Relaxed)
    }

    /// Durable opens without a connection.
    pub(crate) fn disconnected(&self) -> MutexGuard<'_, Disconnected<Lost>> {
        self.disconnected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u64, Weak<User>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_session(&self, user: &Arc<User>) {
        self.sessions().insert(user.session.id, Arc::downgrade(user));
    }

    pub(crate) fn remove_session(&self, id: u64) {
        self.sessions().remove(&id);
    }

    fn conversations(&self) -> MutexGuard<'_, HashMap<u128, Vec<Weak<Shared>>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has made a connection.
    pub(crate) fn add_conversation(&self, client: u128, conversation: &Arc<Shared>) {
        self.conversations().entry(client).or_default().push(Arc::downgrade(conversation));
    }

    pub(crate) fn remove_conversation(&self, client: u128, conversation: &Arc<Shared>) {
        let mut all = self.conversations();
        let Some(of_client) = all.get_mut(&client) else { return };
        of_client.retain(|other| other.as_ptr() != Arc::as_ptr(conversation));
        if of_client.is_empty() {
            all.remove(&client);
        }
    }

    /// The connections of a client.
    pub(crate) fn conversations_of(&self, client: u128) -> Vec<Arc<Shared>> {
        self.conversations().get(&client).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// A session of the account, on whatever connection.
    pub(crate) fn find_session(&self, id: u64, account: &str) -> Option<Arc<User>> {
        let user = self.sessions().get(&id)?.upgrade()?;
        (user.session.user == account).then_some(user)
    }
}

fn drawn<const N: usize>(random: &SystemRandom) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// Where the persistent halves of file ids begin. A client that comes back after a restart does not meet the open of another one.
fn first_open(random: &SystemRandom) -> u64 {
    // The upper half is left free: numbers rise for as long as the process runs.
    (u64::from_le_bytes(drawn(random)) >> 1).max(1)
}

/// The hashes of an account's keys; none for a name that is unknown.
pub(crate) fn hashes(accounts: &Accounts, name: &str) -> Vec<NtHash> {
    accounts.keys(name).iter().map(|key| NtHash::of(key.expose())).collect()
}

/// The time of this machine as FILETIME.
pub(crate) fn filetime_now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_1601 = since_1970 + Duration::from_secs(FILETIME_EPOCH_SECS);
    i64::try_from(since_1601.as_nanos() / 100).unwrap_or(i64::MAX)
}
