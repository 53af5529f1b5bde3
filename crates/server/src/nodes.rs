//! This node among others: which node serves SMB, and how nodes prove to each other what they say about a client.
//!
//! One node is the owner: it serves SMB for all of them ([`file::owner`]). Each node that has an SMB port tries to become it. The owner
//! renews its term, and ends its SMB connections when it could not, before another node can take its place.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::NodeKey;
use concurrency::Timestamp;
use engine::panics::caught;
use engine::{Engine, EngineError};
use file::owner::shares::{MARK_PAUSE, remove_former_marks, remove_marks as remove_marks_of};
use file::owner::{self, NodeAddress, Owner, Ownership, RENEWAL_PAUSE, TERM, TERM_MARGIN, TermId};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::forward::PassedBody;
use crate::limits::{Limits, NODE_MESSAGE_AGE_MAX, SMB_OWNER_LOOK};
use crate::metrics::Metrics;

/// Which node serves SMB, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SmbOwner {
    Nobody,
    /// This one, in this term.
    Here(TermId),
    There(Owner),
}

/// Terms of this node that the row may still name: it does not wait for itself, and forwards nothing to itself.
#[derive(Debug, Default)]
struct OwnTerms {
    /// One that has ended.
    former: Option<TermId>,
    /// One that it tried to begin, and does not know whether it did.
    tried: Option<TermId>,
}

/// What a node knows of the others.
pub(crate) struct Nodes {
    engine: Arc<dyn Engine>,
    pub ownership: Arc<Ownership>,
    pub key: NodeKey,
    /// The name or address by which other nodes reach this one.
    pub advertised: String,
    owner: watch::Sender<SmbOwner>,
    /// Until when the term of this node counts, by two clocks.
    serves_until: Mutex<(Instant, Timestamp)>,
    pub client: fetch::KeepingClient<PassedBody>,
    metrics: Arc<Metrics>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("advertised", &self.advertised).finish_non_exhaustive()
    }
}

impl Nodes {
    pub(crate) fn new(
        engine: &Arc<dyn Engine>,
        advertised: String,
        secret: &[u8; 32],
        limits: &Limits,
        metrics: &Arc<Metrics>,
    ) -> Nodes {
        let pause = limits.body_pause;
        Nodes {
            engine: Arc::clone(engine),
            ownership: Arc::default(),
            key: NodeKey::new(secret),
            advertised,
            owner: watch::Sender::new(SmbOwner::Nobody),
            serves_until: Mutex::new((Instant::now(), Timestamp(0))),
            client: fetch::KeepingClient::new(fetch::Client::new(fetch::Limits { pause, ..fetch::Limits::default() })),
            metrics: Arc::clone(metrics),
        }
    }

    /// Begins to look who serves SMB, and to serve it when it is this node's turn: if it has an address, at which others reach it.
    pub(crate) fn start(self: &Arc<Nodes>, address: Option<NodeAddress>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        self.set(SmbOwner::Nobody);
        // A node without an SMB port relays nothing, and reads who the owner is where it forwards a request.
        let Some(address) = address else { return tasks };
        let nodes = Arc::clone(self);
        tasks.spawn(async move {
            let mut own = OwnTerms::default();
            while caught(nodes.keep(&mut own, &address)).await.is_err() {
                tracing::error!("keeping the term panicked: the SMB connections of this node end");
                own.former = nodes.ownership.term().or(own.former);
                nodes.set(SmbOwner::Nobody);
                tokio::time::sleep(SMB_OWNER_LOOK).await;
            }
        });
        let nodes = Arc::clone(self);
        tasks.spawn(async move {
            while caught(nodes.remove_marks()).await.is_err() {
                tracing::error!("removing marks of shares panicked");
                tokio::time::sleep(RENEWAL_PAUSE).await;
            }
        });
        tasks
    }

    /// The time of all nodes.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The owner that the row names.
    pub(crate) async fn find_owner(&self) -> Result<Option<Owner>, EngineError> {
        owner::find(&*self.engine).await
    }

    pub(crate) fn owner(&self) -> watch::Receiver<SmbOwner> {
        self.owner.subscribe()
    }

    /// Whether this node may answer SMB clients of this term. A node that stood still learns from its clock that it may not.
    pub(crate) fn serves(&self, term: TermId) -> bool {
        let is_in_time = {
            let (until, by_engine) = *self.serves_until();
            Instant::now() < until && self.engine.now() < by_engine
        };
        is_in_time && *self.owner.borrow() == SmbOwner::Here(term)
    }

    fn serves_until(&self) -> MutexGuard<'_, (Instant, Timestamp)> {
        self.serves_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, owner: SmbOwner) {
        let term = match &owner {
            SmbOwner::Here(term) => Some(*term),
            SmbOwner::Nobody | SmbOwner::There(_) => None,
        };
        if self.ownership.term() != term {
            self.ownership.set_term(term);
        }
        self.metrics.smb_owner.get_or_init(AtomicBool::default).store(term.is_some(), Ordering::Relaxed);
        self.owner.send_if_modified(|known| {
            let is_other = match (&*known, &owner) {
                // Another end of the same term is nothing new.
                (SmbOwner::There(known), SmbOwner::There(owner)) => known.id != owner.id,
                (known, owner) => known != owner,
            };
            if is_other {
                tracing::info!(?owner, "this is the node that serves SMB now");
            }
            *known = owner;
            is_other
        });
    }

    /// Keeps the term, or waits for one. Does not end.
    async fn keep(&self, own: &mut OwnTerms, address: &NodeAddress) {
        loop {
            let known = self.owner.borrow().clone();
            match known {
                SmbOwner::Here(term) => {
                    self.keep_term(term).await;
                    own.former = Some(term);
                    self.set(SmbOwner::Nobody);
                }
                SmbOwner::Nobody | SmbOwner::There(_) => {
                    if let Err(error) = self.look(own, address).await {
                        tracing::debug!(%error, "it is not known which node serves SMB");
                    }
                    if !matches!(*self.owner.borrow(), SmbOwner::Here(_)) {
                        tokio::time::sleep(SMB_OWNER_LOOK).await;
                    }
                }
            }
        }
    }

    /// Looks who the owner is, and becomes it if there is none.
    async fn look(&self, own: &mut OwnTerms, address: &NodeAddress) -> Result<(), EngineError> {
        let found = self.find_owner().await?;
        if let Some(other) = found.filter(|owner| Some(owner.id) != own.former && Some(owner.id) != own.tried) {
            self.set(SmbOwner::There(other));
            return Ok(());
        }
        let (id, began) = (own.tried.map_or_else(|| random().map(TermId::new), Ok)?, Instant::now());
        // Where the answer gets lost the row may be this node's.
        own.tried = Some(id);
        let taken = owner::take(&*self.engine, id, own.former, address.clone()).await?;
        own.tried = None;
        match taken {
            Ok(owner) => {
                self.extend(began, owner.until);
                self.set(SmbOwner::Here(owner.id));
            }
            Err(other) => self.set(SmbOwner::There(other)),
        }
        Ok(())
    }

    /// The term lasts from `began` on, which was before it was written down.
    fn extend(&self, began: Instant, until: Timestamp) {
        let margin = TERM_MARGIN.as_secs() * Timestamp::TICKS_PER_SECOND;
        *self.serves_until() = (began + (TERM - TERM_MARGIN), Timestamp(until.0.saturating_sub(margin)));
    }

    /// Renews the term until it cannot be renewed in time, or other nodes have taken this one for gone.
    async fn keep_term(&self, term: TermId) {
        let mut pause = RENEWAL_PAUSE;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.ownership.term_lost(term) => {
                    tracing::warn!("other nodes have taken this one for gone: its SMB connections end");
                    return;
                }
            }
            if !self.serves(term) {
                tracing::warn!("the term of this node is over: its SMB connections end");
                return;
            }
            let (began, until) = (Instant::now(), self.serves_until().0);
            pause = match timeout_at(until, owner::renew(&*self.engine, term)).await {
                Ok(Ok(Some(owner))) => {
                    self.extend(began, owner.until);
                    RENEWAL_PAUSE
                }
                Ok(Ok(None)) => {
                    tracing::warn!("another node has taken the place of this one: its SMB connections end");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the term of this node could not be renewed");
                    SMB_OWNER_LOOK.min(until.saturating_duration_since(Instant::now()))
                }
                Err(_) => Duration::ZERO,
            };
        }
    }

    /// Removes the marks of shares that SMB clients use no longer, and once in each term those that former terms have left.
    async fn remove_marks(&self) {
        let mut cleared = None;
        loop {
            tokio::time::sleep(RENEWAL_PAUSE).await;
            if let Some(term) = self.ownership.term().filter(|term| cleared != Some(*term)) {
                match remove_former_marks(&*self.engine, term).await {
                    Ok(()) => cleared = Some(term),
                    Err(error) => tracing::debug!(%error, "marks of former terms are still there"),
                }
            }
            if let Err(error) = self.ownership.remove_unused_marks(&*self.engine, MARK_PAUSE).await {
                tracing::debug!(%error, "a share is still marked as used by SMB");
            }
        }
    }

    /// Gives the term up in good order, after the last connection has ended: another node need not wait for its end.
    pub(crate) async fn resign(&self) {
        let Some(term) = self.ownership.term() else { return };
        let unused = self.ownership.take_unused_marks();
        // From now on this node answers for no share that was marked.
        self.set(SmbOwner::Nobody);
        let released = owner::release(&*self.engine, term).await;
        let removed = remove_marks_of(&*self.engine, unused).await;
        if let Err(error) = released.and(removed) {
            tracing::debug!(%error, "the term of this node lasts until its end, or marks of shares are left");
        }
    }
}

fn random() -> Result<u128, EngineError> {
    let mut bytes = [0; 16];
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    filled.map_err(|_| EngineError::Unavailable("the system gives no random bytes".into()))?;
    Ok(u128::from_le_bytes(bytes))
}

/// The address of a client as one node writes it for another, with the time of writing: 26 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientNote {
    pub client: SocketAddr,
    pub at: Timestamp,
}

impl ClientNote {
    pub(crate) const BYTES: usize = 26;

    pub(crate) fn to_bytes(self) -> [u8; ClientNote::BYTES] {
        let six = match self.client.ip() {
            IpAddr::V4(four) => four.to_ipv6_mapped(),
            IpAddr::V6(six) => six,
        };
        let mut bytes = [0; ClientNote::BYTES];
        bytes[..16].copy_from_slice(&six.octets());
        bytes[16..18].copy_from_slice(&self.client.port().to_be_bytes());
        bytes[18..].copy_from_slice(&self.at.0.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; ClientNote::BYTES]) -> ClientNote {
        let ip = bytes.first_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets));
        let port = u16::from_be_bytes([bytes[16], bytes[17]]);
        let at = bytes.last_chunk::<8>().map_or(0, |ticks| u64::from_be_bytes(*ticks));
        ClientNote { client: SocketAddr::new(IpAddr::V6(ip).to_canonical(), port), at: Timestamp(at) }
    }

    /// Whether it was written about now.
    pub(crate) fn is_fresh(self, now: Timestamp) -> bool {
        self.at.0.abs_diff(now.0) <= NODE_MESSAGE_AGE_MAX.as_secs() * Timestamp::TICKS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::memory::MemoryEngine;

    #[test]
    fn a_client_is_known_again_by_its_note() {
        for client in ["10.1.2.3:4567", "[2001:db8::7]:1"] {
            let second = Timestamp::TICKS_PER_SECOND;
            let note = ClientNote { client: client.parse().unwrap(), at: Timestamp(1_000 * second) };
            assert_eq!(ClientNote::from_bytes(&note.to_bytes()), note);
            for (seconds, is_fresh) in [(699, false), (700, true), (1_000, true), (1_300, true), (1_301, false)] {
                assert_eq!(note.is_fresh(Timestamp(seconds * second)), is_fresh, "{seconds}");
            }
        }
    }

    fn nodes(engine: &Arc<dyn Engine>, name: &str) -> Arc<Nodes> {
        let metrics = Arc::new(Metrics::new());
        Arc::new(Nodes::new(engine, name.to_owned(), &[7; 32], &Limits::default(), &metrics))
    }

    fn address(nodes: &Nodes, port: u16) -> Option<NodeAddress> {
        let host = nodes.advertised.clone();
        Some(NodeAddress { host, smb_port: 445, https: false, file_port: Some(port), blob_port: None })
    }

    async fn owned_by(nodes: &Nodes, expected: impl Fn(&SmbOwner) -> bool) -> SmbOwner {
        nodes.owner().wait_for(|owner| expected(owner)).await.unwrap().clone()
    }

    fn is_here(owner: &SmbOwner) -> bool {
        matches!(owner, SmbOwner::Here(_))
    }

    /// The first becomes the owner, the second follows it, and takes over when it resigns.
    #[tokio::test]
    async fn one_node_is_the_owner_and_another_follows() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let (one, two) = (nodes(&engine, "one"), nodes(&engine, "two"));
        let mut tasks = one.start(address(&one, 1));
        let SmbOwner::Here(term) = owned_by(&one, is_here).await else { panic!("it is here") };
        assert!(one.serves(term) && !two.serves(term));
        // One without an SMB port neither follows nor takes over.
        let three = nodes(&engine, "three");
        assert!(three.start(None).is_empty());
        let _tasks = two.start(address(&two, 2));
        let there = owned_by(&two, |owner| matches!(owner, SmbOwner::There(_))).await;
        let SmbOwner::There(owner) = there else { panic!("it is there") };
        assert_eq!((owner.id, owner.address.host.as_str(), owner.address.file_port), (term, "one", Some(1)));
        tasks.shutdown().await;
        one.resign().await;
        assert!(!one.serves(term));
        let SmbOwner::Here(next) = owned_by(&two, is_here).await else { panic!("it is here") };
        assert_eq!(three.find_owner().await.unwrap().expect("an owner").id, next);
    }

    /// An engine that does what it is asked first, and whose answer gets lost.
    #[derive(Debug)]
    struct FirstUnanswered(Arc<dyn Engine>, AtomicBool);

    impl engine::Wrapper for FirstUnanswered {
        fn inner(&self) -> &dyn Engine {
            &*self.0
        }

        fn commit(&self, decision: Box<dyn engine::Decision>) -> engine::BoxFuture<'_, Result<(), EngineError>> {
            Box::pin(async {
                self.0.commit(decision).await?;
                match self.1.swap(true, Ordering::Relaxed) {
                    false => Err(EngineError::Unavailable("lost".into())),
                    true => Ok(()),
                }
            })
        }
    }

    #[tokio::test]
    async fn a_node_knows_a_term_again_that_it_may_have_begun() {
        let inner: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let engine: Arc<dyn Engine> = Arc::new(FirstUnanswered(Arc::clone(&inner), AtomicBool::new(false)));
        let one = nodes(&engine, "one");
        let (mut own, address) = (OwnTerms::default(), address(&one, 1).unwrap());
        one.look(&mut own, &address).await.unwrap_err();
        let begun = owner::find(&*inner).await.unwrap().expect("it was done").id;
        one.look(&mut own, &address).await.unwrap();
        assert!(one.serves(begun));
    }

    /// The engine's time leaps beyond the term, as after a pause of the machine: the node stops before it knows anything else.
    #[tokio::test]
    async fn an_owner_whose_time_is_over_serves_nobody() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let one = nodes(&engine, "one");
        let _tasks = one.start(address(&one, 1));
        let SmbOwner::Here(term) = owned_by(&one, is_here).await else { panic!("it is here") };
        engine.advance_clock(11).await.unwrap();
        assert!(one.serves(term));
        engine.advance_clock(2).await.unwrap();
        assert!(!one.serves(term), "two seconds before the end of its term");
        // It begins another.
        owned_by(&one, |owner| is_here(owner) && *owner != SmbOwner::Here(term)).await;
    }
}
