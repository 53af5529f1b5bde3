//! The configuration file: what it may say, and where it is wrong.
//!
//! ```toml
//! [accounts.mine]
//! keys = ["...", "..."]       # one or two, base64
//! versioning = true
//! ```
//!
//! Whatever is not understood is an error with its line: a misspelled setting that is passed over is found out too late.
//! No message repeats a value, because a key may stand there.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use auth::{Key, Kind, Settings};
use toml_edit::{Document, Item, TableLike};
use wire::names::AccountName;

use crate::secret::Secret;

/// As the service has it.
const SOFT_DELETE_DAYS: RangeInclusive<i64> = 1..=365;
/// As the service has it.
const SCOPE_NAME_CHARS: RangeInclusive<usize> = 3..=63;

/// An account as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredAccount {
    pub name: String,
    /// One or two, each of them valid.
    pub keys: Vec<Secret>,
    pub settings: Settings,
}

/// Why a configuration cannot be used. Never says a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfig(pub String);

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads the file; `Ok(None)`: there is none.
pub fn read(path: &Path) -> Result<Option<Vec<ConfiguredAccount>>, BadConfig> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text).map(Some).map_err(|BadConfig(what)| about(path, &what)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(about(path, &format!("cannot be read: {error}."))),
    }
}

/// A sentence about a file.
pub fn about(path: &Path, what: &str) -> BadConfig {
    BadConfig(format!("The configuration {} {what}", path.display()))
}

/// Reads the accounts, in the order of the file. Sentences go on from "The configuration".
pub fn parse(text: &str) -> Result<Vec<ConfiguredAccount>, BadConfig> {
    // The parser's own message repeats the line, and there may be a key in it.
    let document = Document::parse(text).map_err(|error| {
        let line = Lines(text).of(error.span());
        BadConfig(format!("is not TOML in line {line}: {}.", error.message().trim_end_matches('.')))
    })?;
    let lines = Lines(text);
    let mut accounts = Vec::new();
    for (name, item) in document.iter() {
        let Some(table) = item.as_table_like().filter(|_| name == "accounts") else {
            return Err(unknown(name, lines.of_key(document.as_table(), name)));
        };
        for (name, item) in table.iter() {
            accounts.push(account(name, item, lines.of_key(table, name), lines)?);
        }
    }
    Ok(accounts)
}

fn account(name: &str, item: &Item, line: usize, lines: Lines<'_>) -> Result<ConfiguredAccount, BadConfig> {
    is_name(name).map_err(|BadConfig(what)| BadConfig(format!("has {what} in line {line}.")))?;
    let Some(table) = item.as_table_like() else {
        return Err(BadConfig(format!("has no section [accounts.{name}], only a value in line {line}.")));
    };
    let (mut keys, mut settings) = (None, Settings::default());
    for (key, item) in table.iter() {
        let line = lines.of_key(table, key);
        let wrong = |what: &str| BadConfig(format!("wants {key} to be {what} (account {name}, line {line})."));
        match key {
            "keys" => keys = Some(read_keys(item).map_err(|()| wrong("a list of one or two keys in base64"))?),
            "kind" => {
                settings.kind = match item.as_str() {
                    Some("standard") => Kind::Standard,
                    Some("premium") => Kind::Premium,
                    _ => return Err(wrong("\"standard\" or \"premium\"")),
                }
            }
            "versioning" => settings.versioning = item.as_bool().ok_or_else(|| wrong("true or false"))?,
            "container_soft_delete_days" => {
                settings.container_soft_delete_days = Some(days(item).ok_or_else(|| wrong(DAYS))?)
            }
            "blob_soft_delete_days" => settings.blob_soft_delete_days = Some(days(item).ok_or_else(|| wrong(DAYS))?),
            "share_soft_delete_days" => settings.share_soft_delete_days = Some(days(item).ok_or_else(|| wrong(DAYS))?),
            "encryption_scopes" => {
                settings.encryption_scopes = scopes(item)
                    .ok_or_else(|| wrong("a list of different names, each 3 to 63 letters, digits and dashes"))?;
            }
            other => return Err(unknown(other, line)),
        }
    }
    let keys = keys.ok_or_else(|| {
        BadConfig(format!(
            "gives account {name} in line {line} no keys; write keys = [\"...\"] with one or two in base64."
        ))
    })?;
    Ok(ConfiguredAccount { name: name.to_owned(), keys, settings })
}

/// The rule for names, as the end of a sentence.
pub fn is_name(name: &str) -> Result<(), BadConfig> {
    let named = AccountName::parse(name);
    named.map(drop).map_err(|_| BadConfig(format!("an account \"{name}\" (names are 3 to 24 of a-z and 0-9)")))
}

fn unknown(key: &str, line: usize) -> BadConfig {
    BadConfig(format!("has \"{key}\" in line {line}, which means nothing here."))
}

fn read_keys(item: &Item) -> Result<Vec<Secret>, ()> {
    let keys: Option<Vec<&str>> = item.as_array().ok_or(())?.iter().map(|key| key.as_str()).collect();
    let keys = keys.filter(|keys| (1..=2).contains(&keys.len())).ok_or(())?;
    if keys.iter().any(|key| Key::from_base64(key).is_err()) {
        return Err(());
    }
    Ok(keys.into_iter().map(Secret::new).collect())
}

const DAYS: &str = "a number of days from 1 to 365";

fn days(item: &Item) -> Option<u16> {
    let days = item.as_integer().filter(|days| SOFT_DELETE_DAYS.contains(days))?;
    u16::try_from(days).ok()
}

fn scopes(item: &Item) -> Option<Vec<String>> {
    let is_scope = |name: &&str| {
        SCOPE_NAME_CHARS.contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let mut scopes: Vec<String> = Vec::new();
    for name in item.as_array()?.iter() {
        let name = name.as_str().filter(is_scope).filter(|name| !scopes.iter().any(|known| known == name))?;
        scopes.push(name.to_owned());
    }
    Some(scopes)
}

/// Where in the text something stands, as people count.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of(self, span: Option<Range<usize>>) -> usize {
        let before = span.and_then(|span| self.0.get(..span.start)).unwrap_or_default();
        1 + before.matches('\n').count()
    }

    fn of_key(self, table: &dyn TableLike, key: &str) -> usize {
        self.of(table.key(key).and_then(toml_edit::Key::span))
    }
}

/// The settings in the spelling of the file, without those that are as they are anyway.
pub fn given(settings: &Settings) -> Vec<String> {
    let mut given = Vec::new();
    if settings.kind == Kind::Premium {
        given.push("kind = \"premium\"".to_owned());
    }
    if settings.versioning {
        given.push("versioning = true".to_owned());
    }
    for (name, days) in [
        ("container_soft_delete_days", settings.container_soft_delete_days),
        ("blob_soft_delete_days", settings.blob_soft_delete_days),
        ("share_soft_delete_days", settings.share_soft_delete_days),
    ] {
        given.extend(days.map(|days| format!("{name} = {days}")));
    }
    if !settings.encryption_scopes.is_empty() {
        given.push(format!("encryption_scopes = {:?}", settings.encryption_scopes));
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_it_may_say() {
        let text = "# mine\n[accounts.abc]\nkeys = [\"AAAA\", \"BBBB\"]\nversioning = true\nkind = \"premium\"\n\
                    container_soft_delete_days = 7\nblob_soft_delete_days = 1\nshare_soft_delete_days = 365\n\
                    encryption_scopes = [\"scope1\", \"scope2\"]\n[accounts.def]\nkeys=[\"AAAA\"]";
        let accounts = parse(text).unwrap();
        let names: Vec<&str> = accounts.iter().map(|account| account.name.as_str()).collect();
        assert_eq!(names, ["abc", "def"]);
        let settings = Settings {
            kind: Kind::Premium,
            versioning: true,
            container_soft_delete_days: Some(7),
            blob_soft_delete_days: Some(1),
            share_soft_delete_days: Some(365),
            encryption_scopes: vec!["scope1".into(), "scope2".into()],
        };
        assert_eq!(accounts[0].settings, settings);
        assert_eq!(accounts[0].keys, [Secret::new("AAAA"), Secret::new("BBBB")]);
        assert_eq!(accounts[1].settings, Settings::default());
        assert_eq!(given(&settings).len(), 6);
        assert!(given(&Settings::default()).is_empty());
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(parse("accounts = { abc = { keys = [\"AAAA\"] } }").unwrap()[0].name, "abc");
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_keys_are_not() {
        for (text, words) in [
            ("\n[accounts.abc]", ["no keys", "line 2"]),
            ("[accounts.abc]\nkeys = []", ["one or two keys", "line 2"]),
            ("[accounts.abc]\nkeys = [\"AAAA\", \"AAAA\", \"AAAA\"]", ["one or two keys", "line 2"]),
            ("[accounts.abc]\nkeys = \"secret\"", ["one or two keys", "line 2"]),
            ("[accounts.abc]\n\nkeys = [\"secret!\"]", ["base64", "line 3"]),
            ("[accounts.AB]\nkeys = [\"AAAA\"]", ["3 to 24", "line 1"]),
            ("[accounts]\nabc = 7", ["abc", "line 2"]),
            ("# x\n[other]", ["other", "line 2"]),
            ("x = 1", ["\"x\"", "line 1"]),
            ("accounts = 1", ["accounts", "line 1"]),
            ("[accounts.abc]\nkeys = [\"secret\"", ["not TOML", "line 2"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nkeys = [\"secret\"]", ["not TOML", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nversionig = true", ["\"versionig\"", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nversioning = 1", ["true or false", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nkind = \"cheap\"", ["premium", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nblob_soft_delete_days = 0", ["1 to 365", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nencryption_scopes = [\"a\"]", ["3 to 63", "line 3"]),
            ("[accounts.abc]\nkeys = [\"AAAA\"]\nencryption_scopes = [\"abc\", \"abc\"]", ["different", "line 3"]),
        ] {
            let BadConfig(sentence) = parse(text).unwrap_err();
            assert!(words.iter().all(|word| sentence.contains(word)), "{text}: {sentence}");
            assert!(!sentence.contains("secret"), "{sentence}");
        }
    }
}
