//! Accounts: from flags, from the environment, from the configuration file, or the one everybody knows.

use std::path::PathBuf;
use std::sync::Arc;

use auth::{Account, AccountKey, Accounts, Settings};

use crate::config::{self, BadConfig, ConfiguredAccount};
use crate::secret::Secret;

/// The account of every storage emulator. Its key is public knowledge.
pub const WELL_KNOWN_ACCOUNT: &str = "devstoreaccount1";
pub const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Where accounts come from. Kept while the server runs, to look there again.
#[derive(Clone, Debug)]
pub struct Sources {
    /// `--accounts`, then `AZURITE_ACCOUNTS`: `name:key1[:key2];...`. The first that knows a name decides its keys.
    pub lists: Vec<(&'static str, Secret)>,
    /// As Azurite reads them: what is no base64 in a key of those lists is passed over.
    pub takes_loose_keys: bool,
    pub file: PathBuf,
    /// Whether there has to be a file: it was asked for, or it was there before.
    pub file_is_needed: bool,
}

/// The accounts of this server.
#[derive(Debug, Default)]
pub struct Known {
    pub accounts: Accounts,
    /// Their names; those of the file first, in its order.
    names: Vec<String>,
    /// Those that have a key which everybody knows.
    pub well_known: Vec<String>,
    pub from_file: bool,
}

impl Sources {
    /// Whether nobody names any account: then those of the database count, where there is one.
    pub fn are_silent(&self) -> Result<bool, BadConfig> {
        let is_silent = |list: &Secret| list.expose().trim().is_empty();
        let no_file = !self.file_is_needed && config::read(&self.file)?.is_none();
        Ok(no_file && self.lists.iter().all(|(_, list)| is_silent(list)))
    }

    /// Without any account there is the well-known one.
    pub fn load(&self) -> Result<Known, BadConfig> {
        let found = config::read(&self.file)?;
        if found.is_none() && self.file_is_needed {
            return Err(config::about(&self.file, "is not there."));
        }
        self.with(found)
    }

    /// The same with a text in the place of the file.
    pub fn with_text(&self, text: &str) -> Result<Known, BadConfig> {
        let found = config::parse(text).map_err(|BadConfig(what)| BadConfig(format!("The configuration {what}")))?;
        self.with(Some(found).filter(|found| !found.is_empty()))
    }

    fn with(&self, found: Option<Vec<ConfiguredAccount>>) -> Result<Known, BadConfig> {
        let from_file = found.is_some();
        let mut accounts = found.unwrap_or_default();
        for (name, list) in self.lists.iter().rev() {
            let list = if self.takes_loose_keys { &strict(list) } else { list };
            for (account, keys) in read_list(name, list)? {
                put_keys(&mut accounts, account, keys);
            }
        }
        if accounts.is_empty() {
            put_keys(&mut accounts, WELL_KNOWN_ACCOUNT.to_owned(), vec![Secret::new(WELL_KNOWN_KEY)]);
        }
        Known::new(accounts, from_file)
    }
}

impl Known {
    fn new(configured: Vec<ConfiguredAccount>, from_file: bool) -> Result<Known, BadConfig> {
        let mut known = Known { from_file, ..Known::default() };
        for ConfiguredAccount { name, keys, settings } in configured {
            if keys.iter().any(is_well_known) {
                known.well_known.push(name.clone());
            }
            let keys: Result<Vec<AccountKey>, _> =
                keys.iter().map(|key| AccountKey::from_base64(key.expose())).collect();
            let keys = keys.map_err(|_| BadConfig(format!("A key of account {name} is not base64.")))?;
            known.accounts.insert(Account { name: name.clone(), keys, settings: Arc::new(settings) });
            known.names.push(name);
        }
        Ok(known)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// Keys of a list win over those of the file; what the file says beside them stays.
fn put_keys(accounts: &mut Vec<ConfiguredAccount>, name: String, keys: Vec<Secret>) {
    match accounts.iter_mut().find(|account| account.name == name) {
        Some(account) => account.keys = keys,
        None => accounts.push(ConfiguredAccount { name, keys, settings: Settings::default() }),
    }
}

fn read_list(name: &str, list: &Secret) -> Result<Vec<(String, Vec<Secret>)>, BadConfig> {
    Accounts::parse(list.expose()).map_err(|error| BadConfig(format!("{name} is wrong: {error}.")))?;
    let entries = list.expose().split(';').map(str::trim).filter(|entry| !entry.is_empty());
    Ok(entries
        .map(|entry| {
            let mut parts = entry.split(':');
            (parts.next().unwrap_or_default().to_owned(), parts.map(Secret::new).collect())
        })
        .collect())
}

/// The list with each key as strict base64. Node reads base64 in either alphabet, needs no padding, and passes over what is
/// none.
fn strict(list: &Secret) -> Secret {
    let entries = list.expose().split(';').map(|entry| {
        let mut parts = entry.trim().split(':');
        let name = parts.next().unwrap_or_default().to_owned();
        parts.fold(name, |entry, key| format!("{entry}:{}", wire::base64::encode(&wire::base64::decode_loose(key))))
    });
    Secret::new(entries.collect::<Vec<_>>().join(";"))
}

/// However it is written.
fn is_well_known(key: &Secret) -> bool {
    wire::base64::decode(key.expose()) == wire::base64::decode(WELL_KNOWN_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(lists: &[&str]) -> Sources {
        let lists = lists.iter().map(|list| ("LIST", Secret::new(*list))).collect();
        Sources { lists, takes_loose_keys: false, file: "/nowhere/lazurite.toml".into(), file_is_needed: false }
    }

    fn names(known: &Known) -> Vec<&str> {
        known.names().collect()
    }

    #[test]
    fn without_any_there_is_the_well_known_account() {
        let known = sources(&[]).load().unwrap();
        assert_eq!(names(&known), [WELL_KNOWN_ACCOUNT]);
        assert_eq!(known.well_known, [WELL_KNOWN_ACCOUNT]);
        assert!(!known.from_file);
        assert!(Sources { file_is_needed: true, ..sources(&[]) }.load().is_err());
    }

    #[test]
    fn from_lists_and_the_first_wins() {
        let known = sources(&["abc:AAAA;def:AAAA:BBBB"]).load().unwrap();
        assert_eq!(names(&known), ["abc", "def"]);
        assert!(known.well_known.is_empty());
        assert_eq!(known.accounts.get("def").unwrap().keys.len(), 2);
        assert_eq!(sources(&["abc:AAAA", "abc:AAAA:BBBB"]).load().unwrap().accounts.get("abc").unwrap().keys.len(), 1);
        let BadConfig(sentence) = sources(&["c2VjcmV0"]).load().unwrap_err();
        assert!(sentence.starts_with("LIST is wrong") && !sentence.contains("c2V"), "{sentence}");
        assert_eq!(names(&sources(&["  "]).load().unwrap()), [WELL_KNOWN_ACCOUNT]);
    }

    #[test]
    fn azurites_keys_need_not_be_strict_base64() {
        let loose = |list: &str| Sources { takes_loose_keys: true, ..sources(&[list]) }.load();
        for list in ["abc:key1", "abc:c2Vj-_V0", "abc:c2VjcmV0:c2Vj cmV0"] {
            assert_eq!(names(&loose(list).unwrap()), ["abc"], "{list}");
        }
        assert!(sources(&["abc:c2Vj-_V0"]).load().is_err(), "only in Azurite's place");
        assert!(loose("abc:!!").is_err() && loose("abc:").is_err(), "nothing is no key");
        let known = loose(&format!("abc:{}", WELL_KNOWN_KEY.trim_end_matches('='))).unwrap();
        assert_eq!(known.well_known, ["abc"], "however it is written");
    }

    #[test]
    fn a_list_decides_the_keys_and_the_file_the_rest() {
        let text = format!("[accounts.abc]\nkeys = [\"{WELL_KNOWN_KEY}\"]\nshare_soft_delete_days = 7\n");
        let file = std::env::temp_dir().join(format!("lazurite-accounts-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let from_file = Sources { file: file.clone(), ..sources(&[]) }.load().unwrap();
        let both = Sources { file: file.clone(), ..sources(&["abc:AAAA"]) }.load().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(from_file.well_known, ["abc"]);
        assert!(from_file.from_file && both.from_file);
        assert_eq!(names(&both), ["abc"]);
        assert!(both.well_known.is_empty());
        assert_eq!(both.accounts.get("abc").unwrap().settings.share_soft_delete_days, Some(7));
    }

    #[test]
    fn nothing_of_a_key_is_printed() {
        let sources = sources(&["abc:c2VjcmV0"]);
        assert!(!format!("{sources:?} {:?}", sources.load().unwrap()).contains("c2V"));
    }
}
