//! Texts that all nodes share and operators change. They are no rows of the seam, because operators change them without a node.

use std::time::{Duration, Instant};

use engine::EngineError;
use tokio_postgres::Client;

use crate::pool::Pool;
use crate::trouble::Trouble;
use crate::{Inner, Options, PostgresEngine, checked, contents, schema};

/// Two that change settings at once wait for each other.
const SETTING_LOCK: i64 = 0x6c61_7a75_7365_7474;
const PAUSE: Duration = Duration::from_millis(50);

/// A setting as it is, and which change made it so.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Setting {
    pub version: i64,
    pub text: String,
}

/// Leaves out the text, which may hold keys.
impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("version", &self.version).finish_non_exhaustive()
    }
}

impl PostgresEngine {
    /// The setting as it is now; `None`: it is still that of `version`. One that was never set is empty, of version 0.
    pub async fn setting(&self, name: &'static str, version: i64) -> Result<Option<Setting>, EngineError> {
        let inner = std::sync::Arc::clone(&self.inner);
        let asking = self.inner.source.runtime.spawn(async move { inner.setting(name, version).await });
        contents::joined(asking).await
    }
}

impl Inner {
    async fn setting(&self, name: &str, version: i64) -> Result<Option<Setting>, EngineError> {
        let deadline = Instant::now() + self.options.patience;
        loop {
            match self.setting_once(name, version).await {
                Ok(found) => return Ok(found),
                Err(Trouble::Fatal(what)) => return Err(Trouble::Fatal(what).into_engine()),
                Err(_) if Instant::now() + PAUSE > deadline => return Err(EngineError::Busy),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn setting_once(&self, name: &str, version: i64) -> Result<Option<Setting>, Trouble> {
        let pool = &self.source.pool;
        let loan = pool.get().await?;
        let (conn, parameters): (_, crate::pool::Parameters<'_>) = (&loan.conn, &[&name, &version]);
        let asked = conn.client.query_opt(&conn.statements.setting, parameters);
        let row = pool.answer(async { Ok(asked.await?) }).await?;
        pool.give_back(loan);
        let Some(row) = row else { return Ok((version != 0).then(Setting::default)) };
        Ok(row.get::<_, Option<String>>(1).map(|text| Setting { version: row.get(0), text }))
    }
}

/// A setting from being read to being written. It is locked meanwhile. Dropping it changes nothing.
pub struct SettingEdit {
    client: Client,
    name: &'static str,
    pub text: String,
}

/// Leaves out the text, which may hold keys.
impl std::fmt::Debug for SettingEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingEdit").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Begins to change a setting, as an operator does: without a node.
pub async fn edit_setting(url: &str, options: &Options, name: &'static str) -> Result<SettingEdit, String> {
    let pool = Pool::new(url, checked(&options.schema)?, 1)?;
    let client = pool.connect_plain().await.map_err(|trouble| trouble.to_string())?;
    schema::check(&client).await.map_err(|trouble| trouble.to_string())?;
    let failed = |error| Trouble::of(&error).to_string();
    client.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({SETTING_LOCK})")).await.map_err(failed)?;
    let row = client.query_opt("SELECT value FROM setting WHERE name = $1", &[&name]).await.map_err(failed)?;
    Ok(SettingEdit { client, name, text: row.map(|row| row.get(0)).unwrap_or_default() })
}

impl SettingEdit {
    /// Every node uses it from the next request on.
    pub async fn put(self, text: &str) -> Result<(), String> {
        let failed = |error| Trouble::of(&error).to_string();
        let sql = "INSERT INTO setting (name, version, value) VALUES ($1, 1, $2) \
                   ON CONFLICT (name) DO UPDATE SET version = setting.version + 1, value = excluded.value";
        self.client.execute(sql, &[&self.name, &text]).await.map_err(failed)?;
        self.client.batch_execute("COMMIT").await.map_err(failed)
    }
}
