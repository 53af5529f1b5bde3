//! A byte store over the S3 API: AWS itself, or any server that speaks it.
//!
//! It asks little: PUT, ranged GET, DELETE and a listing. No conditional requests, which not every server answers right,
//! and no multipart uploads, because nobody writes objects that large. Credentials come from the environment
//! (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, or the machine's role), never from the address.

mod address;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::byte_store::ByteStore;
use engine::{BoxFuture, EngineError};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};

pub use address::Address;

/// How long one request may take: an object of 8 MiB over a slow line.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a request is tried again while the store is away; then the caller is told that it is.
const RETRY_PATIENCE: Duration = Duration::from_secs(10);
const RETRIES: usize = 5;
/// How many objects are removed at a time.
const DELETES_AT_ONCE: usize = 16;
/// How many names one listing gives.
const NAMES_PER_LIST: usize = 1_000;

#[derive(Debug)]
pub struct S3Store {
    store: AmazonS3,
    prefix: String,
}

/// Keys given by hand, instead of those of the environment.
#[derive(Clone)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl S3Store {
    /// Nothing is asked of the server yet.
    pub fn new(address: &Address, credentials: Option<&Credentials>) -> Result<S3Store, String> {
        // The client takes the process's provider of cryptography; ours is the same everywhere. It may be set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = ClientOptions::new().with_timeout(REQUEST_PATIENCE).with_connect_timeout(CONNECT_PATIENCE);
        let mut builder = AmazonS3Builder::from_env()
            .with_client_options(options)
            .with_retry(RetryConfig {
                backoff: BackoffConfig { init_backoff: Duration::from_millis(50), ..BackoffConfig::default() },
                max_retries: RETRIES,
                retry_timeout: RETRY_PATIENCE,
            })
            .with_bucket_name(&address.bucket);
        if let Some(endpoint) = &address.endpoint {
            // Who names an http endpoint wants http.
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(region) = &address.region {
            builder = builder.with_region(region);
        }
        if let Some(credentials) = credentials {
            builder = builder
                .with_access_key_id(&credentials.access_key_id)
                .with_secret_access_key(&credentials.secret_access_key);
        }
        let store = builder.build().map_err(|error| format!("the byte store: {error}"))?;
        let prefix = if address.prefix.is_empty() { String::new() } else { format!("{}/", address.prefix) };
        Ok(S3Store { store, prefix })
    }

    /// Writes, reads and removes an object: what is wrong with address, bucket or keys shows at the start. It is nobody
    /// else's: other nodes may start at the same time.
    pub async fn check(&self) -> Result<(), EngineError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let name = format!("check-{:016x}", u64::from_be_bytes(random));
        self.put(&name, vec![Bytes::from_static(b"lazurite")]).await?;
        let read = self.get(&name, 0..8).await;
        self.delete(vec![name]).await?;
        let read = read?;
        match read.as_ref() {
            b"lazurite" => Ok(()),
            _ => Err(EngineError::Corrupt("the byte store gives back other bytes than it was given".into())),
        }
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }
}

/// The store being away is something that passes; the details are for the log.
fn failed(what: &str, error: &Error) -> EngineError {
    match error {
        Error::NotFound { path, .. } => EngineError::Corrupt(format!("object {path} is not there")),
        Error::Generic { .. } => {
            tracing::warn!(%error, "the byte store does not {what}");
            EngineError::Busy
        }
        error => EngineError::Unavailable(format!("the byte store does not {what}: {error}")),
    }
}

impl ByteStore for S3Store {
    fn put<'a>(&'a self, name: &'a str, pieces: Vec<Bytes>) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let payload: PutPayload = pieces.into_iter().collect();
            let put = self.store.put(&self.path(name), payload).await;
            put.map(|_| ()).map_err(|error| failed("take an object", &error))
        })
    }

    fn get<'a>(&'a self, name: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, EngineError>> {
        Box::pin(async move {
            let length = range.end.saturating_sub(range.start);
            let bytes = self.store.get_range(&self.path(name), range).await;
            let bytes = bytes.map_err(|error| failed("give an object", &error))?;
            match bytes.len() as u64 == length {
                true => Ok(bytes),
                false => Err(EngineError::Corrupt(format!("object {name} is shorter than it was"))),
            }
        })
    }

    fn delete(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let removals = stream::iter(names).map(|name| async move {
                match self.store.delete(&self.path(&name)).await {
                    Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(failed("remove an object", &error)),
                }
            });
            removals.buffer_unordered(DELETES_AT_ONCE).try_collect::<()>().await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, after: &'a str) -> BoxFuture<'a, Result<Vec<String>, EngineError>> {
        Box::pin(async move {
            let (within, from) = (self.path(prefix), self.path(after));
            let listed = match after.is_empty() {
                true => self.store.list(Some(&within)),
                false => self.store.list_with_offset(Some(&within), &from),
            };
            let names = listed.take(NAMES_PER_LIST).map_ok(|object| object.location).try_collect::<Vec<Path>>().await;
            let names = names.map_err(|error| failed("list objects", &error))?;
            Ok(names.iter().filter_map(|path| path.as_ref().strip_prefix(&self.prefix)).map(str::to_owned).collect())
        })
    }
}

/// A store at this address, as engines take it.
pub fn open(address: &Address, credentials: Option<&Credentials>) -> Result<Arc<S3Store>, String> {
    S3Store::new(address, credentials).map(Arc::new)
}
