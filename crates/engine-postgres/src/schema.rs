//! The tables and functions in the database: made and brought up to date by `migrate`, checked at every start.

use tokio_postgres::{Client, Transaction};

use crate::garbage::ENDED_AFTER;
use crate::node::LEASE;
use crate::pool::Pool;
use crate::trouble::{Trouble, is_missing_table};

/// Each brings the schema from its number (from 0 on) to the next. Never change one that was released: add another.
const MIGRATIONS: [&str; 4] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
];
/// Two that migrate at once wait for each other.
const MIGRATION_LOCK: i64 = 0x6c61_7a75_7269_7465;

/// The schema this program works with.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// Creates the schema or brings it up to date. Returns the versions before and after.
pub async fn migrate(pool: &Pool, schema: &str) -> Result<(i64, i64), String> {
    let mut client = pool.connect_plain().await.map_err(|trouble| trouble.to_string())?;
    let transaction = client.transaction().await.map_err(failed)?;
    let before = bring_up_to_date(&transaction, schema).await?;
    transaction.commit().await.map_err(failed)?;
    Ok((before, VERSION.max(before)))
}

async fn bring_up_to_date(transaction: &Transaction<'_>, schema: &str) -> Result<i64, String> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    let make = format!(
        "SET LOCAL client_min_messages = error; SET LOCAL statement_timeout = 0; CREATE SCHEMA IF NOT EXISTS {schema}; \
         CREATE TABLE IF NOT EXISTS {schema}.schema_version (version bigint NOT NULL)"
    );
    transaction.batch_execute(&make).await.map_err(failed)?;
    let version = "SELECT coalesce(max(version), 0) FROM schema_version";
    let before: i64 = transaction.query_one(version, &[]).await.map_err(failed)?.get(0);
    if (1..VERSION).contains(&before) {
        refuse_running_nodes(transaction).await?;
    }
    for (number, migration) in (0_i64..).zip(MIGRATIONS) {
        if number >= before {
            transaction.batch_execute(migration).await.map_err(failed)?;
            let note = "INSERT INTO schema_version (version) VALUES ($1)";
            transaction.execute(note, &[&(number + 1)]).await.map_err(failed)?;
        }
    }
    Ok(before)
}

/// A node that runs would find other tables and functions than it knows. One that is only silent may be alive: after a
/// fail-over all of them are. Until the migration ends none can start; then it is told that it is too old.
async fn refuse_running_nodes(transaction: &Transaction<'_>) -> Result<(), String> {
    transaction.batch_execute("LOCK TABLE node IN EXCLUSIVE MODE").await.map_err(failed)?;
    let sql = "SELECT count(*) FROM node WHERE epoch <> 0 AND expires > clock_timestamp() - make_interval(secs => $1)";
    let row = transaction.query_one(sql, &[&ENDED_AFTER.as_secs_f64()]).await.map_err(failed)?;
    let count: i64 = row.get(0);
    let seconds = (LEASE + ENDED_AFTER).as_secs();
    match count {
        0 => Ok(()),
        count => Err(format!(
            "nodes still run ({count}): stop them all first (one that was killed counts as running for {seconds} seconds)"
        )),
    }
}

/// Whether the schema is the one this program works with.
pub async fn check(client: &Client) -> Result<(), Trouble> {
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[]).await;
    let found: i64 = row.map_err(|error| explain(&error).unwrap_or_else(|| Trouble::of(&error)))?.get(0);
    match found {
        VERSION => Ok(()),
        older if older < VERSION => Err(Trouble::Fatal(format!(
            "its schema has version {older}, this program needs {VERSION}: run `lazurite migrate`"
        ))),
        newer => Err(Trouble::Fatal(format!(
            "its schema has version {newer}, which is newer than this program ({VERSION}): use a newer program"
        ))),
    }
}

pub fn explain(error: &tokio_postgres::Error) -> Option<Trouble> {
    is_missing_table(error).then(|| Trouble::Fatal("it has no schema yet: run `lazurite migrate`".into()))
}

fn failed(error: tokio_postgres::Error) -> String {
    Trouble::of(&error).to_string()
}
