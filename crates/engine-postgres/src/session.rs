//! Reads: one connection, one snapshot, and one round trip for all that is wanted at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use futures_util::future::join_all;
use tokio_postgres::types::ToSql;

use crate::contents::{Extent, StoredContent, Whereabouts};
use crate::key::{StoredKey, whole};
use crate::node::Node;
use crate::pool::{Loan, Pool};
use crate::trouble::Trouble;
use crate::view::{LoadedRows, MissingRows};

/// Contents opened together are loaded with their bytes only up to this number; otherwise when they are read.
const LOADED_AT_ONCE: usize = 4;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const EXTENTS: &str =
    "SELECT content, object, length, sums FROM extent WHERE content = ANY ($1::bigint[]) ORDER BY content, number";

/// A node that is stopped in its turn is cut off after this long, so that the others do not wait longer.
const IDLE_IN_TURN: Duration = Duration::from_secs(4);
/// The next ones get their turn, and the connection is as it was.
pub const END_TURN: &str =
    "SELECT pg_advisory_unlock_all(); RESET idle_session_timeout; RESET idle_in_transaction_session_timeout";

/// A snapshot that is being read.
#[derive(Debug)]
pub struct Session {
    pool: Arc<Pool>,
    loan: Loan,
    begun: bool,
    /// Others wait until this ends.
    in_turn: bool,
}

/// Which commits wait while a decision that keeps losing is read and committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn<'a> {
    /// Those that commit to one of these partitions.
    Partitions(&'a [i64]),
    /// All that commit: what was read cannot change.
    All,
}

impl Session {
    pub async fn begin(pool: &Arc<Pool>) -> Result<Session, Trouble> {
        Ok(Session { pool: Arc::clone(pool), loan: pool.get().await?, begun: false, in_turn: false })
    }

    /// Waits for its turn first, and takes the snapshot then. In one message, so that a node that is stopped in between is
    /// always either cut off or at work.
    pub async fn begin_in_turn(pool: &Arc<Pool>, turn: Turn<'_>) -> Result<Session, Trouble> {
        let loan = pool.get().await?;
        let partitions = match turn {
            Turn::Partitions(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                format!("'{{{}}}'", numbers.join(","))
            }
            Turn::All => "NULL".to_owned(),
        };
        let idle = IDLE_IN_TURN.as_millis();
        let begin = format!(
            "BEGIN; SET idle_session_timeout = {idle}; SET idle_in_transaction_session_timeout = {idle}; \
             SELECT take_turn({partitions}); COMMIT; {BEGIN}"
        );
        pool.answer(async { Ok(loan.conn.client.batch_execute(&begin).await?) }).await?;
        Ok(Session { pool: Arc::clone(pool), loan, begun: true, in_turn: true })
    }

    /// Adds what is wanted to what is loaded, in one round trip. The first one takes the snapshot.
    pub async fn load(&mut self, wanted: &MissingRows, loaded: &mut LoadedRows, node: &Node) -> Result<(), Trouble> {
        let begin = !std::mem::replace(&mut self.begun, true);
        let pool = Arc::clone(&self.pool);
        pool.answer(self.load_all(begin, wanted, loaded, node)).await
    }

    async fn load_all(
        &self,
        begin: bool,
        wanted: &MissingRows,
        loaded: &mut LoadedRows,
        node: &Node,
    ) -> Result<(), Trouble> {
        let (client, statements) = (&self.loan.conn.client, &self.loan.conn.statements);
        let begun = async {
            match begin {
                true => client.batch_execute(BEGIN).await,
                false => Ok(()),
            }
        };
        let keys: Vec<StoredKey<'_>> = wanted.keys().map(|key| StoredKey::of(key)).collect();
        let heads: Vec<&[u8]> = keys.iter().map(|key| key.head).collect();
        let discs: Vec<Vec<u8>> = keys.iter().map(StoredKey::disc).collect();
        let point_parameters: [&(dyn ToSql + Sync); 2] = [&heads, &discs];
        let sent = node.clock_run();
        let points = async {
            let points = client.query(&statements.points, &point_parameters).await?;
            // At once: the longer it takes, the less the time is worth.
            let told = points.iter().find_map(|row| told(row).transpose()).transpose()?;
            let (microseconds, offset) = told.ok_or_else(|| Trouble::Fatal("it does not say the time".into()))?;
            node.hear(sent, microseconds);
            node.raise_offset(offset);
            Ok::<_, Trouble>(points)
        };
        let ranges = join_all(wanted.ranges.iter().map(|(from, to, limit)| async move {
            let (from, to) = (StoredKey::of(from), StoredKey::of(to));
            let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
            client.query(&statements.range, &[&from.head, &from.rest, &to.head, &to.rest, &limit]).await
        }));
        let ids: Vec<i64> = wanted.contents.iter().map(|id| id.cast_signed()).collect();
        let contents = async {
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let with_bytes = ids.len() <= LOADED_AT_ONCE;
            client.query(&statements.contents, &[&ids, &with_bytes, &false]).await
        };
        // Sent one after another without waiting for answers: the order in which they are first polled is the order on
        // the wire.
        let (begun, points, ranges, contents) = tokio::join!(biased; begun, points, ranges, contents);
        begun?;
        for key in wanted.keys() {
            loaded.add_point(key.clone(), None);
        }
        for row in points? {
            if let Some(head) = row.get::<_, Option<&[u8]>>(0) {
                let value = Bytes::copy_from_slice(row.get::<_, &[u8]>(3));
                loaded.add_point(whole(head, row.get(1)), Some((row.get(2), value)));
            }
        }
        for ((from, to, limit), rows) in wanted.ranges.iter().zip(ranges) {
            let row = |row: &tokio_postgres::Row| {
                let value = Bytes::copy_from_slice(row.get::<_, &[u8]>(3));
                (whole(row.get(0), row.get(1)), (row.get(2), value))
            };
            loaded.add_range(from.clone(), to.clone(), *limit, rows?.iter().map(row).collect());
        }
        self.add_contents(&ids, contents?, loaded).await
    }

    async fn add_contents(
        &self,
        ids: &[i64],
        rows: Vec<tokio_postgres::Row>,
        loaded: &mut LoadedRows,
    ) -> Result<(), Trouble> {
        for id in ids {
            loaded.add_content(id.cast_unsigned(), None);
        }
        let with_bytes = ids.len() <= LOADED_AT_ONCE;
        let is_placed = |row: &&tokio_postgres::Row| row.get::<_, bool>(4);
        let placed: Vec<i64> = rows.iter().filter(is_placed).map(|row| row.get(0)).collect();
        let mut extents = match with_bytes && !placed.is_empty() {
            true => extents(&self.loan, &placed).await?,
            false => HashMap::new(),
        };
        for row in rows {
            let id: i64 = row.get(0);
            let length = row.get::<_, i64>(1).cast_unsigned();
            let whereabouts = match row.get::<_, Option<&[u8]>>(3) {
                Some(bytes) => Some(inline(id, row.get(2), bytes)?),
                None => extents.remove(&id).map(Whereabouts::placed),
            };
            loaded.add_content(id.cast_unsigned(), Some(Arc::new(StoredContent { length, whereabouts })));
        }
        Ok(())
    }

    /// Nothing more is read. The end of the snapshot is not waited for.
    pub fn end(self) {
        let end = match (self.begun, self.in_turn) {
            (false, false) => return self.pool.give_back(self.loan),
            (true, false) => "COMMIT".to_owned(),
            (false, true) => END_TURN.to_owned(),
            (true, true) => format!("COMMIT; {END_TURN}"),
        };
        tokio::spawn(async move {
            let ended = self.loan.conn.client.batch_execute(&end);
            if self.pool.patiently(async { Ok(ended.await?) }).await.is_ok() {
                self.pool.give_back(self.loan);
            }
        });
    }

    /// The connection, whether its snapshot must be ended, and whether others wait for it.
    pub fn into_parts(self) -> (Loan, bool, bool) {
        (self.loan, self.begun, self.in_turn)
    }
}

/// What the row without a key says: the time in microseconds since 1970, and the offset of the test clock.
fn told(row: &tokio_postgres::Row) -> Result<Option<(i64, i64)>, Trouble> {
    if row.get::<_, Option<&[u8]>>(0).is_some() {
        return Ok(None);
    }
    let time: [u8; 8] =
        row.get::<_, &[u8]>(1).try_into().map_err(|_| Trouble::Fatal("it says no time one can read".into()))?;
    Ok(Some((i64::from_be_bytes(time), row.get(2))))
}

fn inline(id: i64, sum: Option<i64>, bytes: &[u8]) -> Result<Whereabouts, Trouble> {
    if sum != Some(i64::from(crc32c::crc32c(bytes))) {
        return Err(Trouble::Fatal(format!("the bytes of content {id} do not match their sum")));
    }
    Ok(Whereabouts::Inline(Bytes::copy_from_slice(bytes)))
}

async fn extents(loan: &Loan, ids: &[i64]) -> Result<HashMap<i64, Vec<Extent>>, Trouble> {
    let mut extents: HashMap<i64, Vec<Extent>> = HashMap::new();
    for row in loan.conn.client.query(EXTENTS, &[&ids]).await? {
        let extent = Extent { object: row.get(1), length: row.get::<_, i64>(2).cast_unsigned(), sums: row.get(3) };
        extents.entry(row.get(0)).or_default().push(extent);
    }
    Ok(extents)
}

/// Where the bytes of an open content are, though it may have been dropped since.
pub async fn whereabouts(pool: &Arc<Pool>, id: u64) -> Result<Whereabouts, EngineError> {
    let id = id.cast_signed();
    let load = async {
        let loan = pool.get().await?;
        let found = pool
            .answer(async {
                let contents = &loan.conn.statements.contents;
                let Some(row) = loan.conn.client.query_opt(contents, &[&[id].as_slice(), &true, &true]).await? else {
                    return Ok(None);
                };
                match row.get::<_, Option<&[u8]>>(3) {
                    Some(bytes) => inline(id, row.get(2), bytes).map(Some),
                    None => Ok(extents(&loan, &[id]).await?.remove(&id).map(Whereabouts::placed)),
                }
            })
            .await?;
        pool.give_back(loan);
        Ok::<_, Trouble>(found)
    };
    let found = load.await.map_err(Trouble::into_engine)?;
    found.ok_or_else(|| EngineError::Corrupt(format!("content {id} is not there")))
}
