//! Accounts: from the configuration file, from the environment, or the one everybody knows.

use std::fmt;
use std::path::Path;

use auth::{Account, Accounts, Key};
use wire::names::AccountName;

/// The account of every storage emulator. Its key is public knowledge.
pub const WELL_KNOWN_ACCOUNT: &str = "devstoreaccount1";
pub const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The accounts of this server.
#[derive(Debug, Default)]
pub struct Known {
    pub accounts: Accounts,
    /// In the order they were given.
    pub names: Vec<String>,
    /// Those whose key everybody knows.
    pub well_known: Vec<String>,
    /// What was there and not understood.
    pub warnings: Vec<String>,
}

/// Why the accounts cannot be used. Never says a key.
#[derive(Debug, PartialEq, Eq)]
pub struct BadConfig(String);

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Known {
    /// `file` is the configuration, `list` the value of `AZURITE_ACCOUNTS`. Without either there is the well-known one.
    pub fn load(file: Option<&Path>, list: Option<&str>) -> Result<Known, BadConfig> {
        let mut known = Known::default();
        if let Some(path) = file {
            let bad = |what: String| BadConfig(format!("The configuration {} {what}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| bad(format!("cannot be read: {error}.")))?;
            known.read_file(&text).map_err(|BadConfig(what)| bad(what))?;
        }
        if let Some(list) = list.filter(|list| !list.trim().is_empty()) {
            known.read_list(list)?;
        }
        if known.names.is_empty() {
            known.add(WELL_KNOWN_ACCOUNT, &[WELL_KNOWN_KEY])?;
        }
        Ok(known)
    }

    fn read_list(&mut self, list: &str) -> Result<(), BadConfig> {
        Accounts::parse(list).map_err(|error| BadConfig(format!("AZURITE_ACCOUNTS is wrong: {error}.")))?;
        for entry in list.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
            let mut parts = entry.split(':');
            let name = parts.next().unwrap_or_default();
            self.add(name, &parts.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn read_file(&mut self, text: &str) -> Result<(), BadConfig> {
        // The parser's own message repeats the line, and there may be a key in it.
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            BadConfig(format!("is not TOML in line {line}: {}.", error.message().trim_end_matches('.')))
        })?;
        for (section, value) in &table {
            match (section.as_str(), value) {
                ("accounts", toml::Value::Table(accounts)) => {
                    for (name, account) in accounts {
                        self.read_account(name, account)?;
                    }
                }
                (other, _) => return Err(BadConfig(format!("has \"{other}\", which means nothing here."))),
            }
        }
        Ok(())
    }

    fn read_account(&mut self, name: &str, account: &toml::Value) -> Result<(), BadConfig> {
        let toml::Value::Table(account) = account else {
            return Err(BadConfig(format!("has no section [accounts.{name}].")));
        };
        for setting in account.keys().filter(|setting| *setting != "keys") {
            self.warnings.push(format!("The setting \"{setting}\" of account {name} has no effect yet."));
        }
        let keys = account.get("keys").and_then(toml::Value::as_array).ok_or_else(|| no_keys(name))?;
        let keys: Option<Vec<&str>> = keys.iter().map(toml::Value::as_str).collect();
        self.add(name, &keys.ok_or_else(|| no_keys(name))?)
    }

    fn add(&mut self, name: &str, keys: &[&str]) -> Result<(), BadConfig> {
        AccountName::parse(name)
            .map_err(|_| BadConfig(format!("names an account \"{name}\"; names are 3 to 24 of a-z and 0-9.")))?;
        if !(1..=2).contains(&keys.len()) {
            return Err(no_keys(name));
        }
        if keys.contains(&WELL_KNOWN_KEY) {
            self.well_known.push(name.to_owned());
        }
        let keys: Result<Vec<Key>, _> = keys.iter().map(|key| Key::from_base64(key)).collect();
        let keys = keys.map_err(|_| BadConfig(format!("has a key of account {name} that is not base64.")))?;
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        self.accounts.insert(Account { name: name.to_owned(), keys });
        Ok(())
    }
}

fn no_keys(name: &str) -> BadConfig {
    BadConfig(format!("gives account {name} no keys; write keys = [\"...\"] with one or two in base64."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Known, BadConfig> {
        let mut known = Known::default();
        known.read_file(text).map(|()| known)
    }

    #[test]
    fn without_any_there_is_the_well_known_account() {
        let known = Known::load(None, None).unwrap();
        assert_eq!(known.names, [WELL_KNOWN_ACCOUNT]);
        assert_eq!(known.well_known, [WELL_KNOWN_ACCOUNT]);
    }

    #[test]
    fn from_the_environment() {
        let known = Known::load(None, Some("abc:AAAA;def:AAAA:BBBB")).unwrap();
        assert_eq!(known.names, ["abc", "def"]);
        assert!(known.well_known.is_empty());
        assert_eq!(known.accounts.get("def").unwrap().keys.len(), 2);
        assert!(Known::load(None, Some("abc")).is_err());
        assert_eq!(Known::load(None, Some("  ")).unwrap().names, [WELL_KNOWN_ACCOUNT]);
    }

    #[test]
    fn from_a_file() {
        let known =
            file("[accounts.abc]\nkeys = [\"AAAA\", \"BBBB\"]\nversioning = true\n[accounts.def]\nkeys=[\"AAAA\"]")
                .unwrap();
        assert_eq!(known.names.len(), 2);
        assert_eq!(known.warnings, ["The setting \"versioning\" of account abc has no effect yet."]);
        let well_known = file(&format!("[accounts.abc]\nkeys = [\"{WELL_KNOWN_KEY}\"]")).unwrap();
        assert_eq!(well_known.well_known, ["abc"]);
    }

    #[test]
    fn mistakes_are_named_and_keys_are_not() {
        for (text, word) in [
            ("[accounts.abc]", "no keys"),
            ("[accounts.abc]\nkeys = []", "no keys"),
            ("[accounts.abc]\nkeys = \"secret\"", "no keys"),
            ("[accounts.abc]\nkeys = [\"secret!\"]", "base64"),
            ("[accounts.AB]\nkeys = [\"AAAA\"]", "3 to 24"),
            ("[other]", "other"),
            ("[accounts.abc]\nkeys = [\"secret\"", "line 2"),
        ] {
            let BadConfig(sentence) = file(text).unwrap_err();
            assert!(sentence.contains(word) && !sentence.contains("secret"), "{sentence}");
        }
    }
}
