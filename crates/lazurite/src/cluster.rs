//! One node of many: rows in PostgreSQL, large contents in an S3 store, both shared.

use std::sync::Arc;

use engine::Engine;
use engine_postgres::PostgresEngine;

use crate::flags::{Cluster, Wrong};

/// `lazurite migrate`.
pub fn migrate(cluster: &Cluster) -> Result<(), Wrong> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Wrong(format!("The runtime does not start: {error}.")))?;
    let migrated = runtime.block_on(engine_postgres::migrate(cluster.metadata.expose(), &options()));
    let (before, after) = migrated.map_err(|error| no_database(&error))?;
    crate::greeting::say(&match before == after {
        true => format!("The tables are up to date (version {after}).\n"),
        false => format!("The tables were brought from version {before} to {after}.\n"),
    });
    Ok(())
}

/// Both must be there at the start: what is wrong with an address or a key shows here, and not at the first upload.
pub async fn open(cluster: &Cluster) -> Result<Arc<dyn Engine>, Wrong> {
    let address = cluster.bytes.as_ref().ok_or_else(|| Wrong("--bytes is missing.".into()))?;
    let store = engine_s3::open(address, None).map_err(|error| Wrong(format!("--bytes: {error}.")))?;
    store.check().await.map_err(|error| Wrong(format!("The store of --bytes cannot be used: {error}.")))?;
    let engine = PostgresEngine::open(cluster.metadata.expose(), store, options()).await;
    Ok(engine.map_err(|error| no_database(&error))?)
}

fn no_database(error: &str) -> Wrong {
    Wrong(format!("The database of --metadata cannot be used: {error}."))
}

fn options() -> engine_postgres::Options {
    engine_postgres::Options::default()
}
