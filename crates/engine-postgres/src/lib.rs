//! The engine for many machines: rows in PostgreSQL, large contents in a byte store, any number of stateless nodes.
//!
//! What always holds:
//!
//! - A decision is committed only if all it has read is still so, in one call that either happens once or not at all.
//! - A read sees one snapshot of the primary, and the primary shows a commit only when its standby has it.
//! - A row never points at bytes that are not durable; bytes are removed only when no node can be reading them.
//! - Nothing that matters is kept on a node: it can be killed at any time.
//!
//! `decider` runs decisions and `commit` commits them, `session` reads, `node` is this node among the others, `garbage`
//! removes garbage.

mod clock;
mod commit;
mod contents;
mod decider;
mod garbage;
mod key;
mod node;
mod pool;
mod schema;
mod session;
mod setting;
mod trouble;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::byte_store::ByteStore;
use engine::hints::Hints;
use engine::{BoxFuture, ContentWriter, Decision, Engine, EngineError, Query, Timestamp, Unread};
use tokio::task::JoinHandle;

use contents::{Source, Writer, joined};
use decider::Waiting;
use garbage::Garbage;
use node::Node;
use pool::Pool;
use session::Session;
pub use setting::{Setting, SettingEdit, edit_setting};
use trouble::Trouble;
use view::{LoadedRows, MissingRows, Overlay, RunNotes, View};

/// How often garbage is looked for.
const GARBAGE_PAUSE: Duration = Duration::from_secs(3);

/// Limits and names.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many connections to the database this node may have; one of them is for saying that it lives.
    pub connections: usize,
    /// How many decisions may wait.
    pub waiting_max: usize,
    /// How long a decision or a read is tried while the database is away or others are faster.
    pub patience: Duration,
    /// The schema the tables are in: letters, digits and underscores.
    pub schema: String,
}

/// The engine of one node.
#[derive(Debug)]
pub struct PostgresEngine {
    inner: Arc<Inner>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    options: Options,
    waiting: Waiting,
    hints: Hints,
    garbage: Garbage,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    commits: AtomicU64,
    refusals: AtomicU64,
    batches: AtomicU64,
    /// Round trips that brought rows.
    loads: AtomicU64,
    conflicts: AtomicU64,
    retries: AtomicU64,
    queries: AtomicU64,
    objects_removed: AtomicU64,
    orphans_removed: AtomicU64,
    garbage_failures: AtomicU64,
}

/// Creates the schema in the database or brings it up to date. Returns the versions before and after.
pub async fn migrate(url: &str, options: &Options) -> Result<(i64, i64), String> {
    schema::migrate(&Pool::new(url, checked(&options.schema)?, 1)?, &options.schema).await
}

fn checked(schema: &str) -> Result<&str, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match !schema.is_empty() && schema.bytes().all(plain) {
        true => Ok(schema),
        false => Err(format!("the schema's name {schema} is not of lower-case letters, digits and underscores")),
    }
}

impl PostgresEngine {
    /// Connects, checks the schema and claims a slot among the nodes. The database must be there.
    pub async fn open(url: &str, store: Arc<dyn ByteStore>, options: Options) -> Result<Arc<PostgresEngine>, String> {
        let pool = Arc::new(Pool::new(url, checked(&options.schema)?, options.connections.max(2) - 1)?);
        let client = pool.connect_plain().await.map_err(|trouble| trouble.to_string())?;
        schema::check(&client).await.map_err(|trouble| trouble.to_string())?;
        drop(client);
        let node = Arc::new(Node::new(Pool::new(url, &options.schema, 1)?.with_patience(node::BEAT_PATIENCE)));
        // Nodes that were killed a moment ago hold their slots until their leases end.
        let deadline = Instant::now() + 2 * node::LEASE;
        while let Err(trouble) = node.renew(false).await {
            if !matches!(trouble, Trouble::Refused(_)) || Instant::now() > deadline {
                return Err(trouble.to_string());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let inner = Arc::new(Inner {
            source: Source::new(pool, node, store),
            options,
            waiting: Waiting::default(),
            hints: Hints::default(),
            garbage: Garbage::default(),
            counters: Counters::default(),
        });
        let tasks = vec![tokio::spawn(beat(Arc::clone(&inner))), tokio::spawn(tidy(Arc::clone(&inner)))];
        Ok(Arc::new(PostgresEngine { inner, tasks: Mutex::new(tasks) }))
    }

    /// Removes garbage, as far as it is known now. For tests.
    pub async fn collect_now(&self) -> Result<(), EngineError> {
        let inner = Arc::clone(&self.inner);
        let round = async move {
            inner.source.node.renew(false).await?;
            garbage::round(&inner).await.map(|_| ())
        };
        joined(self.inner.source.runtime.spawn(async { round.await.map_err(Trouble::into_engine) })).await
    }
}

/// Says that this node lives, until the engine is closed.
async fn beat(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(node::BEAT).await;
        if let Err(error) = inner.source.node.renew(false).await {
            tracing::debug!(%error, "the node could not say that it lives");
        }
    }
}

async fn tidy(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(GARBAGE_PAUSE).await;
        loop {
            match garbage::round(&inner).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "garbage could not be removed and stays for now");
                    break;
                }
            }
        }
    }
}

impl Inner {
    /// Loads what a run of a function wanted into `loaded`, from the session's snapshot.
    async fn load(
        &self,
        session: &mut Option<Session>,
        noted: &RunNotes,
        loaded: &mut LoadedRows,
    ) -> Result<(), Trouble> {
        self.load_rows(session, &noted.wanted, loaded).await?;
        noted.teach(&self.hints, loaded);
        Ok(())
    }

    async fn load_rows(
        &self,
        session: &mut Option<Session>,
        wanted: &MissingRows,
        loaded: &mut LoadedRows,
    ) -> Result<(), Trouble> {
        let mut open = match session.take() {
            Some(open) => open,
            None => Session::begin(&self.source.pool).await?,
        };
        self.counters.loads.fetch_add(1, Ordering::Relaxed);
        open.load(wanted, loaded, &self.source.node).await?;
        *session = Some(open);
        Ok(())
    }

    /// Runs the query on one snapshot, from its start.
    async fn query_once(self: &Arc<Self>, query: &mut dyn Query) -> Result<Result<(), EngineError>, Trouble> {
        let (mut session, mut loaded, overlay) = (None, LoadedRows::default(), Overlay::default());
        let hold = self.source.node.begin_read();
        let mut moment = self.source.node.moment();
        let ended = loop {
            let (answer, mut noted) = {
                let view = View::new(&loaded, &overlay, &self.source, &self.hints, &hold);
                (run_query(query, &view, moment.now), view.into_noted())
            };
            if noted.wanted.is_empty() {
                break answer;
            }
            // On the engine's own runtime, whichever runtime polls this: it has timers, and nothing stops half way.
            let inner = Arc::clone(self);
            let mut moved = (session.take(), loaded, noted);
            let task = self
                .source
                .runtime
                .spawn(async move { inner.load(&mut moved.0, &moved.2, &mut moved.1).await.map(|()| moved) });
            let back = task.await.unwrap_or_else(|error| Err(Trouble::Fatal(error.to_string())))?;
            (session, loaded, noted) = back;
            let moved = self.source.node.follow(&mut moment, loaded.newest);
            let is_done = !moved && !noted.is_void() && answer != Err(Unread::NotYet);
            if is_done && loaded.fulfil(&noted.promised) {
                break answer;
            }
        };
        if let Some(session) = session {
            let _in_runtime = self.source.runtime.enter();
            session.end();
        }
        Ok(ended.map_err(|unread| match unread {
            Unread::Failed(error) => error,
            Unread::NotYet => EngineError::Unavailable("a query waits for a row it did not ask for".into()),
        }))
    }

    async fn query(self: &Arc<Self>, query: &mut dyn Query) -> Result<(), EngineError> {
        let deadline = Instant::now() + self.options.patience;
        let mut pause = Duration::from_millis(5);
        self.counters.queries.fetch_add(1, Ordering::Relaxed);
        loop {
            let trouble = match self.query_once(query).await {
                Ok(answer) => return answer,
                Err(Trouble::Fatal(what)) => return Err(Trouble::Fatal(what).into_engine()),
                Err(trouble) => trouble,
            };
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            if Instant::now() + pause > deadline {
                tracing::debug!(%trouble, "a read was given up");
                return Err(EngineError::Busy);
            }
            let _ = self.source.runtime.spawn(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    async fn advance_clock(&self, seconds: u64) -> Result<u64, Trouble> {
        let pool = &self.source.pool;
        let loan = pool.get().await?;
        let sql = "UPDATE state SET clock_offset = clock_offset + $1 RETURNING clock_offset";
        let seconds = i64::try_from(seconds).map_err(|_| Trouble::Fatal("that is too far ahead".into()))?;
        let offset: i64 = pool.ask_one(&loan, sql, &[&seconds]).await?.get(0);
        pool.give_back(loan);
        self.source.node.raise_offset(offset);
        Ok(self.source.node.offset_seconds())
    }
}

/// A panic on hints counts for nothing, as everything else that a function does on them.
fn run_query(query: &mut dyn Query, view: &View<'_>, now: Timestamp) -> Result<(), Unread> {
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| query.run(view, now)));
    run.unwrap_or_else(|panic| match view.is_void() {
        true => Err(Unread::NotYet),
        false => std::panic::resume_unwind(panic),
    })
}

impl Engine for PostgresEngine {
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        let waiting = decider::submit(&self.inner, decision);
        Box::pin(async move { waiting?.await.unwrap_or(Err(EngineError::Closed)) })
    }

    fn query(&self, mut query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.inner.query(&mut *query).await })
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(Writer::new(self.inner.source.clone(), length))
    }

    fn now(&self) -> Timestamp {
        self.inner.source.node.now()
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        let inner = Arc::clone(&self.inner);
        let moving = self
            .inner
            .source
            .runtime
            .spawn(async move { inner.advance_clock(seconds).await.map_err(Trouble::into_engine) });
        Box::pin(joined(moving))
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let counters = &self.inner.counters;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let pool = &self.inner.source.pool;
        let (beats, lifelines) = self.inner.source.node.lifeline_counts();
        vec![
            ("commits", load(&counters.commits)),
            ("refusals", load(&counters.refusals)),
            ("batches", load(&counters.batches)),
            ("queries", load(&counters.queries)),
            ("loads", load(&counters.loads)),
            ("conflicts", load(&counters.conflicts)),
            ("retries", load(&counters.retries)),
            ("round_trips", load(&pool.round_trips) + beats),
            ("connects", load(&pool.connects) + lifelines),
            ("database_away", u64::from(pool.is_away())),
            ("waiting", self.inner.waiting.count() as u64),
            ("content_bytes", self.inner.source.node.content_bytes()),
            ("objects_removed", load(&counters.objects_removed)),
            ("orphans_removed", load(&counters.orphans_removed)),
            ("garbage_failures", load(&counters.garbage_failures)),
        ]
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("nothing panics under this lock"));
        let inner = Arc::clone(&self.inner);
        let closing = self.inner.source.runtime.spawn(async move {
            inner.waiting.close().await;
            if !tasks.is_empty() {
                tasks.iter().for_each(JoinHandle::abort);
                inner.source.node.leave().await;
            }
            Ok(())
        });
        Box::pin(joined(closing))
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("nothing panics under this lock"));
        tasks.iter().for_each(JoinHandle::abort);
    }
}
