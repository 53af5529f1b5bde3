//! Connections: a bounded number, prepared once, given back clean or not at all.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, poll_fn};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::schema;
use crate::trouble::Trouble;

/// How long one server is tried: less than a machine that is gone would take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// After the server was away this long, callers are refused at once; one of them tries for all.
const AWAY_BEFORE_REFUSING: Duration = Duration::from_secs(5);
/// How long a round trip may take before the connection is given up.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// The SQL of every statement, in the order of [`Statements`].
const SQL: [&str; 5] = [
    "SELECT e.head, e.rest, e.version, e.value FROM unnest($1::bytea[], $2::bytea[]) AS k (head, disc) \
     JOIN entry e ON e.head = k.head AND e.disc = k.disc \
     UNION ALL SELECT NULL, int8send((extract(epoch FROM clock_timestamp() + ahead) * 1000000)::bigint), clock_offset, NULL FROM state",
    "SELECT head, rest, version, value FROM entry WHERE head >= $1 AND head <= $3 \
     AND (head, rest) >= ($1, $2) AND (head, rest) < ($3, $4) ORDER BY head, rest LIMIT $5",
    "SELECT id, length, sum, CASE WHEN $2 THEN bytes END, bytes IS NULL FROM content \
     WHERE id = ANY ($1::bigint[]) AND (dropped IS NULL OR $3)",
    "SELECT outcome, last, dropped_bytes FROM commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
     $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, \
     $38, $39, $40)",
    "SELECT version, CASE WHEN version <> $2 THEN value END FROM setting WHERE name = $1",
];

pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

#[derive(Debug)]
pub struct Statements {
    pub points: Statement,
    pub range: Statement,
    pub contents: Statement,
    pub commit: Statement,
    pub setting: Statement,
}

/// One connection, and what it was heard to say.
#[derive(Debug)]
pub struct Conn {
    pub client: Client,
    pub statements: Statements,
    /// The server gave a warning: a commit may not have reached the standby.
    warned: Arc<AtomicBool>,
}

impl Conn {
    /// Whether the server gave a warning since this was last asked.
    pub fn was_warned(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }
}

/// A connection on loan. Dropping it closes it; [`Pool::give_back`] keeps it.
#[derive(Debug)]
pub struct Loan {
    pub conn: Conn,
    permit: OwnedSemaphorePermit,
}

pub struct Pool {
    /// One for each server that may take writes.
    servers: Vec<Config>,
    /// The one that did when last asked.
    primary: AtomicUsize,
    tls: MakeRustlsConnect,
    idle: Mutex<Vec<Conn>>,
    permits: Arc<Semaphore>,
    /// How long an answer is waited for.
    patience: Duration,
    away: Mutex<Away>,
    pub round_trips: AtomicU64,
    pub connects: AtomicU64,
}

#[derive(Debug, Default)]
struct Away {
    since: Option<Instant>,
    somebody_tries: bool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("away", &self.away).finish_non_exhaustive()
    }
}

impl Pool {
    /// `url` as libpq takes it; `schema` is where the tables are.
    pub fn new(url: &str, schema: &str, connections: usize) -> Result<Pool, String> {
        let servers: Vec<Config> =
            one_by_one(url).iter().map(|url| configure(url, schema)).collect::<Result<_, _>>()?;
        Ok(Pool {
            tls: tls(servers.first().map_or(SslMode::Disable, Config::get_ssl_mode))?,
            servers,
            primary: AtomicUsize::new(0),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(connections)),
            patience: ANSWER_PATIENCE,
            away: Mutex::default(),
            round_trips: AtomicU64::new(0),
            connects: AtomicU64::new(0),
        })
    }

    /// One whose connections are given up sooner.
    pub fn with_patience(self, patience: Duration) -> Pool {
        Pool { patience, ..self }
    }

    /// A connection that works, as far as one can know.
    pub async fn get(&self) -> Result<Loan, Trouble> {
        let closed = |_| Trouble::Fatal("the pool is closed".into());
        let waiting = tokio::time::timeout(ANSWER_PATIENCE, Arc::clone(&self.permits).acquire_owned());
        let permit =
            waiting.await.map_err(|_| Trouble::Refused("no connection became free".into()))?.map_err(closed)?;
        loop {
            let idle = self.idle.lock().expect("nothing panics under this lock").pop();
            match idle {
                Some(conn) if conn.client.is_closed() => {}
                Some(conn) => return Ok(Loan { conn, permit }),
                None => break,
            }
        }
        let conn = self.connect().await?;
        Ok(Loan { conn, permit })
    }

    /// Only when nothing is left open on it.
    pub fn give_back(&self, loan: Loan) {
        if !loan.conn.client.is_closed() {
            self.idle.lock().expect("nothing panics under this lock").push(loan.conn);
        }
        drop(loan.permit);
    }

    /// A wait for the server, bounded: a connection that says nothing for so long is given up.
    pub async fn answer<T>(&self, round_trip: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.patiently(round_trip).await
    }

    /// The same for statements whose caller does not wait.
    pub async fn patiently<T>(&self, round_trip: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        match tokio::time::timeout(self.patience, round_trip).await {
            Ok(answer) => answer,
            Err(_) => Err(Trouble::Lost("no answer".into())),
        }
    }

    /// The rows a statement answers.
    pub async fn ask(&self, loan: &Loan, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, Trouble> {
        self.answer(async { Ok(loan.conn.client.query(sql, parameters).await?) }).await
    }

    /// The one row it answers.
    pub async fn ask_one(&self, loan: &Loan, sql: &str, parameters: Parameters<'_>) -> Result<Row, Trouble> {
        self.answer(async { Ok(loan.conn.client.query_one(sql, parameters).await?) }).await
    }

    /// How many rows it changes.
    pub async fn tell(&self, loan: &Loan, sql: &str, parameters: Parameters<'_>) -> Result<u64, Trouble> {
        self.answer(async { Ok(loan.conn.client.execute(sql, parameters).await?) }).await
    }

    async fn connect(&self) -> Result<Conn, Trouble> {
        let trying = self.may_try()?;
        let tried = self.try_connect().await;
        drop(trying);
        let mut away = self.away.lock().expect("nothing panics under this lock");
        match &tried {
            Ok(_) => {
                if let Some(since) = away.since.take() {
                    tracing::info!(seconds = since.elapsed().as_secs(), "the database is back");
                }
            }
            Err(error) => {
                if away.since.is_none() {
                    tracing::warn!(%error, "the database is away");
                    away.since = Some(Instant::now());
                }
            }
        }
        tried
    }

    fn may_try(&self) -> Result<Trying<'_>, Trouble> {
        let mut away = self.away.lock().expect("nothing panics under this lock");
        let long = away.since.is_some_and(|since| since.elapsed() > AWAY_BEFORE_REFUSING);
        if long && away.somebody_tries {
            return Err(Trouble::Away("the database is away".into()));
        }
        away.somebody_tries |= long;
        Ok(Trying { pool: self, alone: long })
    }

    async fn try_connect(&self) -> Result<Conn, Trouble> {
        let (client, warned) = self.find_primary().await?;
        let preparing = join_all(SQL.iter().map(|sql| client.prepare(sql)));
        let prepared = tokio::time::timeout(CONNECT_PATIENCE, preparing).await.map_err(|_| too_slow())?;
        let mut statements = Vec::with_capacity(SQL.len());
        for statement in prepared {
            statements.push(statement.map_err(|error| schema::explain(&error).unwrap_or_else(|| away(&error)))?);
        }
        let [points, range, contents, commit, setting] =
            <[Statement; 5]>::try_from(statements).map_err(|_| Trouble::Fatal("statements".into()))?;
        self.connects.fetch_add(1, Ordering::Relaxed);
        Ok(Conn { client, statements: Statements { points, range, contents, commit, setting }, warned })
    }

    /// A connection to the server that takes writes: first the one that did so far, then each of the others. One that does
    /// not answer is not waited for longer than [`CONNECT_PATIENCE`], and later connections do not meet it again.
    async fn find_primary(&self) -> Result<(Client, Arc<AtomicBool>), Trouble> {
        let first = self.primary.load(Ordering::Relaxed);
        let mut trouble = Trouble::Away("no server is named".into());
        for number in (first..self.servers.len()).chain(0..first) {
            let connecting = self.servers[number].connect(self.tls.clone());
            let tried = match tokio::time::timeout(CONNECT_PATIENCE, connecting).await {
                Ok(Ok((client, connection))) => {
                    self.primary.store(number, Ordering::Relaxed);
                    let warned = Arc::new(AtomicBool::new(false));
                    tokio::spawn(listen(connection, Arc::clone(&warned)));
                    return Ok((client, warned));
                }
                Ok(Err(error)) => away(&error),
                Err(_) => too_slow(),
            };
            // What will not work the next time either is what should be heard.
            if !matches!(trouble, Trouble::Fatal(_)) {
                trouble = tried;
            }
        }
        Err(trouble)
    }

    /// A connection without prepared statements, for the schema.
    pub async fn connect_plain(&self) -> Result<Client, Trouble> {
        self.find_primary().await.map(|(client, _)| client)
    }

    pub fn is_away(&self) -> bool {
        self.away.lock().expect("nothing panics under this lock").since.is_some()
    }
}

/// The address once for each server it names, since one that is gone must not keep the others from being tried.
fn one_by_one(url: &str) -> Vec<String> {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |length| begin + length);
    let hosts = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    url[hosts..end].split(',').map(|host| format!("{}{host}{}", &url[..hosts], &url[end..])).collect()
}

/// `url` as libpq takes it, for one server; `schema` is where the tables are.
fn configure(url: &str, schema: &str) -> Result<Config, String> {
    let mut config: Config = url.parse().map_err(|error| format!("the address of the database: {error}"))?;
    let given = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
    // Plans must not depend on when the tables were last looked at, and an acknowledged commit is a durable one.
    config.options(format!(
        "{given}-c search_path={schema} -c synchronous_commit=on -c jit=off -c plan_cache_mode=force_generic_plan \
         -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c statement_timeout=15s \
         -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s"
    ));
    // As psql does: so that an address without a password can stand in scripts and logs.
    if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
        config.password(password);
    }
    config.application_name("lazurite").target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.keepalives_idle(Duration::from_secs(10)).tcp_user_timeout(ANSWER_PATIENCE);
    Ok(config)
}

fn too_slow() -> Trouble {
    Trouble::Away("connecting takes too long".into())
}

/// What a failure to connect means: nothing was done.
fn away(error: &tokio_postgres::Error) -> Trouble {
    match Trouble::of(error) {
        Trouble::Fatal(what) => Trouble::Fatal(what),
        other => Trouble::Away(other.to_string()),
    }
}

/// While the server is away one tries for all.
struct Trying<'a> {
    pool: &'a Pool,
    alone: bool,
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if self.alone {
            self.pool.away.lock().expect("nothing panics under this lock").somebody_tries = false;
        }
    }
}

/// Drives a connection to its end and notes warnings. The one that matters says that a commit was not waited for.
async fn listen<S, T>(mut connection: Connection<S, T>, warned: Arc<AtomicBool>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) if notice.code().code() == "01000" => {
                tracing::warn!(notice = notice.message(), "the database warns");
                warned.store(true, Ordering::Release);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a connection to the database ended");
                return;
            }
        }
    }
}

fn tls(mode: SslMode) -> Result<MakeRustlsConnect, String> {
    let mut roots = tokio_rustls::rustls::RootCertStore::empty();
    if mode != SslMode::Disable {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = tokio_rustls::rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_several_servers_is_one_for_each() {
        assert_eq!(
            one_by_one("postgres://u:p@a:1,b:2/db?sslmode=disable"),
            ["postgres://u:p@a:1/db?sslmode=disable", "postgres://u:p@b:2/db?sslmode=disable"]
        );
        assert_eq!(one_by_one("postgresql://a,b"), ["postgresql://a", "postgresql://b"]);
        assert_eq!(one_by_one("postgres://u@[::1]:5/db?x=a,b"), ["postgres://u@[::1]:5/db?x=a,b"]);
        assert_eq!(one_by_one("postgres:///db?host=a,b"), ["postgres:///db?host=a,b"]);
        assert_eq!(one_by_one("postgres://u,v@a/db"), ["postgres://u,v@a/db"]);
    }
}
