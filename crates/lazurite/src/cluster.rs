//! One node of many: rows in PostgreSQL, large contents in an S3 store, both shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use auth::Accounts;
use engine::{BoxFuture, EngineError};
use engine_postgres::{PostgresEngine, Setting, SettingEdit};
use server::{Current, Shared};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::accounts::Known;
use crate::flags::{Cluster, Wrong};

/// The setting that holds the accounts, written as in the configuration file.
const ACCOUNTS: &str = "accounts";

/// `lazurite migrate`.
pub fn migrate(cluster: &Cluster) -> Result<(), Wrong> {
    let migrated = runtime()?.block_on(engine_postgres::migrate(cluster.metadata.expose(), &options()));
    let (before, after) = migrated.map_err(|error| no_database(&error))?;
    crate::greeting::say(&match before == after {
        true => format!("The tables are up to date (version {after}).\n"),
        false => format!("The tables were brought from version {before} to {after}.\n"),
    });
    Ok(())
}

fn runtime() -> Result<Runtime, Wrong> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Wrong(format!("The runtime does not start: {error}.")))
}

/// Both must be there at the start: what is wrong with an address or a key shows here, and not at the first upload.
pub async fn open(cluster: &Cluster) -> Result<Arc<PostgresEngine>, Wrong> {
    let address = cluster.bytes.as_ref().ok_or_else(|| Wrong("--bytes is missing.".into()))?;
    let store = engine_s3::open(address, None).map_err(|error| Wrong(format!("--bytes: {error}.")))?;
    store.check().await.map_err(|error| Wrong(format!("The store of --bytes cannot be used: {error}.")))?;
    let engine = PostgresEngine::open(cluster.metadata.expose(), store, options()).await;
    engine.map_err(|error| no_database(&error))
}

/// Makes accounts of the text in the database, or says what is wrong with it.
type Read = dyn Fn(&str) -> Result<Known, String> + Send + Sync;

/// The accounts that all nodes share. Each request asks the database whether they are still the same; requests that come
/// while another one asks are answered together by the next question.
pub struct SharedAccounts {
    engine: Arc<PostgresEngine>,
    read: Box<Read>,
    accounts: Shared<Accounts>,
    /// How many questions were begun.
    begun: AtomicU64,
    asked: Mutex<LastAnswer>,
}

#[derive(Default)]
struct LastAnswer {
    /// The last question that was answered.
    answered: u64,
    version: i64,
}

impl SharedAccounts {
    pub async fn open(engine: Arc<PostgresEngine>, read: Box<Read>) -> Result<(Known, Arc<SharedAccounts>), Wrong> {
        let found = engine.setting(ACCOUNTS, 0).await.map_err(|error| no_database(&error.to_string()))?;
        let Setting { version, text } = found.unwrap_or_default();
        let known = read(&text).map_err(Wrong)?;
        let accounts = Shared::new(known.accounts.clone());
        let asked = Mutex::new(LastAnswer { answered: 0, version });
        let shared = SharedAccounts { engine, read, accounts, begun: AtomicU64::new(0), asked };
        Ok((known, Arc::new(shared)))
    }

    async fn ask(&self) -> Result<(), EngineError> {
        let before = self.begun.load(Ordering::Acquire);
        let mut asked = self.asked.lock().await;
        if asked.answered > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        if let Some(Setting { version, text }) = self.engine.setting(ACCOUNTS, asked.version).await? {
            match (self.read)(&text) {
                Ok(known) => self.accounts.set(known.accounts),
                // As with a file that cannot be used: what was read before goes on.
                Err(sentence) => tracing::error!("{sentence}"),
            }
            asked.version = version;
        }
        asked.answered = number;
        Ok(())
    }
}

impl Current<Accounts> for SharedAccounts {
    fn get(&self) -> Arc<Accounts> {
        self.accounts.get()
    }

    fn refresh(&self) -> Option<BoxFuture<'_, Result<(), EngineError>>> {
        Some(Box::pin(self.ask()))
    }
}

/// The text of the accounts in the database, from reading it to writing it. Nobody else edits it meanwhile.
pub struct AccountsEdit {
    runtime: Runtime,
    edit: SettingEdit,
}

impl AccountsEdit {
    pub fn begin(cluster: &Cluster) -> Result<AccountsEdit, Wrong> {
        let runtime = runtime()?;
        let edit = runtime.block_on(engine_postgres::edit_setting(cluster.metadata.expose(), &options(), ACCOUNTS));
        Ok(AccountsEdit { edit: edit.map_err(|error| no_database(&error))?, runtime })
    }

    pub fn text(&self) -> &str {
        &self.edit.text
    }

    pub fn put(self, text: &str) -> Result<(), Wrong> {
        self.runtime.block_on(self.edit.put(text)).map_err(|error| no_database(&error))
    }
}

fn no_database(error: &str) -> Wrong {
    Wrong(format!("The database of --metadata cannot be used: {error}."))
}

fn options() -> engine_postgres::Options {
    engine_postgres::Options::default()
}
