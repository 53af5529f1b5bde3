//! A value that many read and that is replaced while they do: the accounts and their keys, tokens, certificates.

use std::sync::{Arc, PoisonError, RwLock};

use auth::{AccountKey, Accounts};
use engine::{BoxFuture, EngineError};

/// Readers take the value as it is and keep it for as long as they need it; a reader that asks after [`Shared::set`] gets the
/// new one.
#[derive(Debug, Default)]
pub struct Shared<T>(RwLock<Arc<T>>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        Shared(RwLock::new(Arc::new(value)))
    }

    pub fn get(&self) -> Arc<T> {
        // Nothing can panic while the lock is held: it only ever guards a pointer.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, value: T) {
        let value = Arc::new(value);
        let before = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), value);
        // Dropped after the lock: it may be the last, and large.
        drop(before);
    }
}

/// A value as it is now.
pub trait Current<T>: Send + Sync {
    fn get(&self) -> Arc<T>;

    /// Where it is kept elsewhere: makes sure that [`Current::get`] gives nothing older than this call.
    fn refresh(&self) -> Option<BoxFuture<'_, Result<(), EngineError>>> {
        None
    }
}

impl<T: Send + Sync> Current<T> for Shared<T> {
    fn get(&self) -> Arc<T> {
        Shared::get(self)
    }
}

/// The value as it is at this call, wherever it is kept.
pub async fn newest<T>(current: &dyn Current<T>) -> Result<Arc<T>, EngineError> {
    if let Some(refreshing) = current.refresh() {
        refreshing.await?;
    }
    Ok(current.get())
}

/// The keys that open an account at this call: what a logon with the account's name and key is checked against. None for a
/// name that is unknown.
pub async fn account_keys(accounts: &dyn Current<Accounts>, name: &str) -> Result<Vec<AccountKey>, EngineError> {
    Ok(newest(accounts).await?.keys(name).to_vec())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use auth::Account;

    use super::*;

    #[test]
    fn who_has_the_old_value_keeps_it() {
        let shared = Shared::new(1);
        let before = shared.get();
        shared.set(2);
        assert_eq!((*before, *shared.get()), (1, 2));
    }

    fn accounts(keys: &[&str]) -> Accounts {
        let keys = keys.iter().map(|text| AccountKey::from_base64(text).expect("base64")).collect();
        Accounts::new([Account::new("acct", keys)])
    }

    #[tokio::test]
    async fn a_logon_is_checked_against_both_keys_until_one_is_replaced() {
        let current = Shared::new(accounts(&["AAAA", "BBBB"]));
        let before = account_keys(&current, "acct").await.expect("keys");
        assert_eq!(before.iter().map(AccountKey::expose).collect::<Vec<_>>(), ["AAAA", "BBBB"]);
        assert_eq!(account_keys(&current, "nobody").await, Ok(Vec::new()));
        current.set(accounts(&["AAAA", "CCCC"]));
        let after = account_keys(&current, "acct").await.expect("keys");
        assert_eq!(after.iter().map(AccountKey::expose).collect::<Vec<_>>(), ["AAAA", "CCCC"]);
        // A session that was begun with a key knows by this whether that key still counts.
        assert_eq!(before.iter().map(|key| after.contains(key)).collect::<Vec<_>>(), [true, false]);
    }

    /// Accounts that are kept elsewhere, and there is a new key which only a question brings here.
    struct Elsewhere {
        known: Shared<Accounts>,
        is_there: AtomicBool,
    }

    impl Current<Accounts> for Elsewhere {
        fn get(&self) -> Arc<Accounts> {
            self.known.get()
        }

        fn refresh(&self) -> Option<BoxFuture<'_, Result<(), EngineError>>> {
            Some(Box::pin(async {
                if !self.is_there.load(Ordering::Relaxed) {
                    return Err(EngineError::Busy);
                }
                self.known.set(accounts(&["CCCC"]));
                Ok(())
            }))
        }
    }

    #[tokio::test]
    async fn a_logon_gets_no_keys_from_before_it_asked() {
        let elsewhere = Elsewhere { known: Shared::new(accounts(&["AAAA"])), is_there: AtomicBool::new(false) };
        assert_eq!(account_keys(&elsewhere, "acct").await, Err(EngineError::Busy));
        elsewhere.is_there.store(true, Ordering::Relaxed);
        let keys = account_keys(&elsewhere, "acct").await.expect("keys");
        assert_eq!(keys.iter().map(AccountKey::expose).collect::<Vec<_>>(), ["CCCC"]);
    }
}
