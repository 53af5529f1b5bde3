//! The keys of an issuer of tokens: found through its discovery document, kept, and fetched anew when they grow old or
//! when a token names one that is not among them.
//!
//! A fetch that fails changes nothing: the keys from before stay in effect, and the log says so once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use auth::{KeySet, Tokens};
use fetch::Client;
use http::{HeaderMap, Uri, uri::Scheme};
use serde_json::Value;
use service::current::Shared;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Where an issuer says what it is, below its own address; from OpenID Connect Discovery.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// A key that its issuer has withdrawn is taken for no longer than this.
pub const KEYS_AGE_MAX: Duration = Duration::from_secs(3600);
/// After a fetch that failed.
pub const RETRY_PAUSE: Duration = Duration::from_secs(15);
/// Any client can send tokens that name unknown keys. They must not make the server ask the issuer more often than this.
pub const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(10);
/// For both documents. A request may wait for it.
const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Real ones have a few KiB.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// An issuer whose tokens are taken.
#[derive(Debug)]
pub struct Issuer {
    /// As tokens name it.
    name: String,
    discovery: Uri,
    client: Client,
    tokens: Arc<Shared<Tokens>>,
    wish: Notify,
    /// When the last fetch for an unknown key ended. Held while one is under way, so that all who miss a key wait for
    /// the same one.
    missed: tokio::sync::Mutex<Option<Instant>>,
    /// What went wrong the last time, so that it is said once.
    trouble: Mutex<Option<String>>,
}

/// The address is none that keys can be fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIssuer;

impl fmt::Display for BadIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an issuer is an http or https URL without a query")
    }
}

impl std::error::Error for BadIssuer {}

impl Issuer {
    /// No token is taken before the first [`Issuer::fetch`].
    pub fn new(name: &str, client: Client) -> Result<Issuer, BadIssuer> {
        let url: Uri = name.parse().map_err(|_| BadIssuer)?;
        let is_url = is(&url, &Scheme::HTTP) || is(&url, &Scheme::HTTPS);
        let has_host = url.host().is_some_and(|host| !host.is_empty());
        // With a name and a password before the host it is not at a glance where it leads to.
        if !is_url || !has_host || name.contains(['?', '#', '@']) {
            return Err(BadIssuer);
        }
        let discovery = format!("{}{DISCOVERY}", name.strip_suffix('/').unwrap_or(name));
        let discovery: Uri = discovery.parse().map_err(|_| BadIssuer)?;
        let tokens = Arc::new(Shared::new(Tokens::verified(KeySet::default()).issuer(name)));
        Ok(Issuer {
            name: name.to_owned(),
            discovery,
            client,
            tokens,
            wish: Notify::new(),
            missed: tokio::sync::Mutex::default(),
            trouble: Mutex::default(),
        })
    }

    /// What is taken at this time.
    pub fn tokens(&self) -> Arc<Shared<Tokens>> {
        Arc::clone(&self.tokens)
    }

    /// Fetches the keys and says how many they are now; if that fails, in a sentence, why.
    pub async fn fetch(&self) -> Result<usize, String> {
        let outcome = timeout(FETCH_TIME_MAX, self.keys()).await.unwrap_or_else(|_| Err("it takes too long".into()));
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(keys) => {
                if trouble.take().is_some() {
                    tracing::warn!("the keys of {} can be fetched again", self.name);
                }
                let count = keys.len();
                self.tokens.set(Tokens::verified(keys).issuer(&self.name));
                Ok(count)
            }
            Err(why) => {
                let sentence = format!("The keys of {} cannot be fetched: {why}.", self.name);
                if trouble.as_ref() != Some(&sentence) {
                    tracing::warn!("{sentence} Those from before stay in effect, and it is tried again.");
                    *trouble = Some(sentence.clone());
                }
                Err(sentence)
            }
        }
    }

    /// Fetches again whenever the keys are old, and after [`Issuer::ask`].
    pub async fn keep_up(&self) {
        loop {
            let is_well = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).is_none();
            let pause = if is_well { KEYS_AGE_MAX } else { RETRY_PAUSE };
            let _ = timeout(pause, self.wish.notified()).await;
            let _ = self.fetch().await;
        }
    }

    /// Makes [`Issuer::keep_up`] fetch now.
    pub fn ask(&self) {
        self.wish.notify_one();
    }

    /// A token names a key that is not among `seen`: whether there are others by now. Asks the issuer unless that was
    /// done a moment ago.
    pub(crate) async fn has_others_than(self: &Arc<Issuer>, seen: Arc<Tokens>) -> bool {
        let issuer = Arc::clone(self);
        // On its own: a client that goes away must not end what others wait for.
        let looking = tokio::spawn(async move {
            let mut missed = issuer.missed.lock().await;
            if !Arc::ptr_eq(&seen, &issuer.tokens.get()) {
                return true;
            }
            if missed.is_some_and(|at| at.elapsed() < UNKNOWN_KEY_PAUSE) {
                return false;
            }
            let fetched = issuer.fetch().await;
            *missed = Some(Instant::now());
            fetched.is_ok()
        });
        looking.await.unwrap_or(false)
    }

    async fn keys(&self) -> Result<KeySet, String> {
        let document = self.document(&self.discovery).await?;
        let document: Value =
            serde_json::from_str(&document).map_err(|_| format!("{} is no discovery document", self.discovery))?;
        let text = |name| document.get(name).and_then(Value::as_str);
        let without_slash = |name: &str| name.strip_suffix('/').unwrap_or(name).to_owned();
        match text("issuer") {
            Some(issuer) if without_slash(issuer) == without_slash(&self.name) => {}
            Some(issuer) => return Err(format!("{} speaks for the issuer {issuer}", self.discovery)),
            None => return Err(format!("{} names no issuer", self.discovery)),
        }
        let place = text("jwks_uri").and_then(|place| place.parse::<Uri>().ok());
        let place = place.ok_or_else(|| format!("{} does not say where the keys are", self.discovery))?;
        if is(&self.discovery, &Scheme::HTTPS) && !is(&place, &Scheme::HTTPS) {
            return Err(format!("{} sends us to {place}, which is not https", self.discovery));
        }
        let document = self.document(&place).await?;
        KeySet::parse(&document).map_err(|error| format!("{place} has no keys that we can use: {error}"))
    }

    async fn document(&self, place: &Uri) -> Result<String, String> {
        let about = |error: fetch::FetchError| format!("{place}: {error}");
        let answer = self.client.get(place, HeaderMap::new()).await.map_err(about)?;
        if answer.status != http::StatusCode::OK {
            return Err(format!("{place} answers {}", answer.status));
        }
        let bytes = answer.body.whole(DOCUMENT_BYTES_MAX).await.map_err(about)?;
        String::from_utf8(bytes).map_err(|_| format!("{place} is no text"))
    }
}

fn is(url: &Uri, scheme: &Scheme) -> bool {
    url.scheme() == Some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_an_address() {
        for (name, discovery) in [
            ("https://login.example.org/tenant/", "https://login.example.org/tenant/.well-known/openid-configuration"),
            ("http://127.0.0.1:80", "http://127.0.0.1:80/.well-known/openid-configuration"),
        ] {
            assert_eq!(Issuer::new(name, Client::default()).unwrap().discovery, discovery);
        }
        for name in [
            "",
            "login.example.org",
            "ftp://example.org",
            "https://",
            "https://x/?a=b",
            "https://x/#a",
            "https://a@x",
            "a b",
        ] {
            assert_eq!(Issuer::new(name, Client::default()).map(|_| ()), Err(BadIssuer), "{name}");
        }
    }
}
