//! Accounts, their keys and their settings. Keys are decoded once, no part of them is ever printed, and their text is wiped from
//! memory when an account goes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wire::names::AccountName;
use zeroize::Zeroizing;

/// A key ready to sign with: the state of HMAC-SHA256 after the key has gone in.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// The text is not base64, or nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKey;

impl Key {
    pub fn from_base64(text: &str) -> Result<Key, BadKey> {
        let bytes = wire::base64::decode(text).filter(|bytes| !bytes.is_empty()).ok_or(BadKey)?;
        Ok(Key::from_bytes(&Zeroizing::new(bytes)))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Key {
        Key(Hmac::new_from_slice(bytes).expect("HMAC takes a key of any length"))
    }

    /// Whether this key made the signature. Takes the same time wherever the two differ.
    pub fn signed(&self, message: &[u8], signature: &[u8; 32]) -> bool {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify(signature.into()).is_ok()
    }

    /// The signature of a message, as it is written on the wire.
    pub fn sign(&self, message: &[u8]) -> String {
        wire::base64::encode(&self.tag(message))
    }

    /// The same as bytes.
    pub(crate) fn tag(&self, message: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A key of an account. REST requests are signed with it; in a logon its text is the password.
#[derive(Clone)]
pub struct AccountKey {
    signing: Key,
    text: Zeroizing<String>,
}

impl AccountKey {
    pub fn from_base64(text: &str) -> Result<AccountKey, BadKey> {
        Ok(AccountKey { signing: Key::from_base64(text)?, text: Zeroizing::new(text.to_owned()) })
    }

    /// Whether this key made the signature.
    pub fn signed(&self, message: &[u8], signature: &[u8; 32]) -> bool {
        self.signing.signed(message, signature)
    }

    /// The key as its owner writes it. Only a protocol that must have the password of a logon asks for it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

/// For sessions that end when their key is replaced. Both are keys of ours, so the time it takes tells a client nothing.
impl PartialEq for AccountKey {
    fn eq(&self, other: &AccountKey) -> bool {
        self.text == other.text
    }
}

impl Eq for AccountKey {}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

/// A name, the keys that speak for it (any of them will do), and what the account is like.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub keys: Vec<AccountKey>,
    pub settings: Arc<Settings>,
}

/// The settings of an account, as the operator has configured them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub kind: Kind,
    pub versioning: bool,
    /// `None`: what is deleted is gone.
    pub container_soft_delete_days: Option<u16>,
    /// First value; afterwards the service properties decide.
    pub blob_soft_delete_days: Option<u16>,
    /// First value; afterwards the service properties decide.
    pub share_soft_delete_days: Option<u16>,
    pub encryption_scopes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Standard,
    Premium,
}

impl Settings {
    /// Those of an account that nothing was said about.
    pub const USUAL: Settings = Settings {
        kind: Kind::Standard,
        versioning: false,
        container_soft_delete_days: None,
        blob_soft_delete_days: None,
        share_soft_delete_days: None,
        encryption_scopes: Vec::new(),
    };
}

impl Account {
    /// An account with the usual settings.
    pub fn new(name: impl Into<String>, keys: Vec<AccountKey>) -> Account {
        Account { name: name.into(), keys, settings: Arc::default() }
    }

    /// Whether one of the keys made the signature.
    pub fn signed(&self, message: &[u8], signature: &[u8; 32]) -> bool {
        self.keys.iter().any(|key| key.signed(message, signature))
    }
}

/// The accounts this server has.
#[derive(Clone, Debug, Default)]
pub struct Accounts(HashMap<String, Account>);

/// What is wrong with a list of accounts. Says where, never what: a key may stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAccounts {
    /// The entry at this place, counted from one, is not `name:key1[:key2]`.
    Entry(usize),
    Name(usize),
    Key(usize),
}

impl Accounts {
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Accounts {
        Accounts(accounts.into_iter().map(|account| (account.name.clone(), account)).collect())
    }

    /// Reads `name:key1[:key2];name2:key1`, the form of `AZURITE_ACCOUNTS`.
    pub fn parse(list: &str) -> Result<Accounts, BadAccounts> {
        let entries = list.split(';').map(str::trim).filter(|entry| !entry.is_empty());
        let accounts: Result<Vec<Account>, _> = entries.enumerate().map(|(at, entry)| account(entry, at + 1)).collect();
        accounts.map(Accounts::new)
    }

    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// The keys that speak for an account; none for a name that is unknown.
    pub fn keys(&self, name: &str) -> &[AccountKey] {
        self.get(name).map_or(&[], |account| &account.keys)
    }

    pub fn insert(&mut self, account: Account) {
        self.0.insert(account.name.clone(), account);
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn account(entry: &str, place: usize) -> Result<Account, BadAccounts> {
    let mut parts = entry.split(':');
    let name = parts.next().unwrap_or_default();
    let keys: Vec<&str> = parts.collect();
    if !(1..=2).contains(&keys.len()) {
        return Err(BadAccounts::Entry(place));
    }
    AccountName::parse(name).map_err(|_| BadAccounts::Name(place))?;
    let keys: Result<Vec<AccountKey>, BadKey> = keys.into_iter().map(AccountKey::from_base64).collect();
    Ok(Account::new(name, keys.map_err(|_| BadAccounts::Key(place))?))
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key is not base64")
    }
}

impl std::error::Error for BadKey {}

impl fmt::Display for BadAccounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAccounts::Entry(place) => write!(f, "account {place} is not of the form name:key or name:key:key"),
            BadAccounts::Name(place) => write!(f, "the name of account {place} is not 3 to 24 of a-z and 0-9"),
            BadAccounts::Key(place) => write!(f, "a key of account {place} is not base64"),
        }
    }
}

impl std::error::Error for BadAccounts {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn no_part_of_a_key_is_printed() {
        let printed = format!("{:?}", accounts());
        assert!(printed.contains(NAME) && printed.contains("AccountKey(..)"));
        assert!(!printed.contains(&KEY[..8]) && !printed.contains(&OTHER_KEY[..8]), "{printed}");
        assert_eq!(format!("{:?}", account_key(KEY)), "AccountKey(..)");
        assert_eq!(format!("{:?}", key(KEY)), "Key(..)");
        let refused = Accounts::parse("abc:c2VjcmV0:not base64").expect_err("refused");
        assert!(!format!("{refused:?} {refused}").contains("c2Vj"));
    }

    #[test]
    fn either_key_signs() {
        let accounts = accounts();
        let account = accounts.get(NAME).expect("known");
        for text in [KEY, OTHER_KEY] {
            let signature = wire::base64::decode_exact(&key(text).sign(b"hello")).expect("32 bytes");
            assert!(account.signed(b"hello", &signature));
            assert!(!account.signed(b"hallo", &signature));
        }
        assert!(!account.signed(b"hello", &[0; 32]));
    }

    #[test]
    fn a_logon_gets_the_keys_as_their_owner_writes_them() {
        let accounts = accounts();
        let passwords: Vec<&str> = accounts.keys(NAME).iter().map(AccountKey::expose).collect();
        assert_eq!(passwords, [OTHER_KEY, KEY]);
        assert!(accounts.keys("nobody").is_empty());
        assert!(accounts.keys(NAME).contains(&account_key(KEY)));
        assert!(!accounts.keys(NAME).contains(&account_key("AAAA")));
    }

    #[test]
    fn lists_of_accounts() {
        let accounts = Accounts::parse("abc:AAAA;; def:AAAA:BBBB ;").expect("valid");
        assert_eq!(accounts.get("abc").map(|a| a.keys.len()), Some(1));
        assert_eq!(accounts.get("def").map(|a| a.keys.len()), Some(2));
        assert_eq!(accounts.names().count(), 2);
        for (list, error) in [
            ("abc", BadAccounts::Entry(1)),
            ("abc:AAAA;def:AAAA:BBBB:CCCC", BadAccounts::Entry(2)),
            ("ABC:AAAA", BadAccounts::Name(1)),
            ("abc:A", BadAccounts::Key(1)),
            ("abc:", BadAccounts::Key(1)),
        ] {
            assert_eq!(Accounts::parse(list).map(|_| ()), Err(error), "{list}");
        }
    }
}
