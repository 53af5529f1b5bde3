//! `lazurite account ...`: edits the accounts in the configuration file or, for a cluster, in its database, and nothing else. The
//! data is never opened, so this works while a server runs; it reads them again by itself, and has done so when the command
//! ends.

use std::fmt;
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use crate::accounts::WELL_KNOWN_ACCOUNT;
use crate::cluster::AccountsEdit;
use crate::config::{self, BadConfig, ConfiguredAccount};
use crate::flags::{Cluster, Options, Wrong};
use crate::greeting::{self, Endpoints, say};
use crate::paths;
use crate::private_file::Replacement;
use crate::program_name::CalledAs;
use crate::reload;
use crate::secret::Secret;

/// As long as those of the service.
const KEY_BYTES: usize = 64;

#[derive(Debug, PartialEq)]
pub enum Action {
    Add { name: String, key: Option<Secret> },
    List,
    Show { name: String },
    Rotate { name: String, which: Which },
}

/// One of the two keys of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Primary,
    Secondary,
}

pub fn run(action: Action, options: &Options, called_as: CalledAs) -> Result<(), Wrong> {
    let home = &Home::of(options, called_as);
    let endpoints = Endpoints::expected(options, called_as);
    match action {
        Action::Add { name, key } => {
            let key = add(home, &name, key)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::Rotate { name, which } => {
            let key = rotate(home, &name, which)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::Show { name } => {
            let key = primary_key(home, &name)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::List => say(&list(&read(home)?)),
    }
    Ok(())
}

fn add(home: &Home<'_>, name: &str, key: Option<Secret>) -> Result<Secret, Wrong> {
    config::is_name(name).map_err(|BadConfig(what)| Wrong(format!("There cannot be {what}.")))?;
    if key.as_ref().is_some_and(|key| auth::Key::from_base64(key.expose()).is_err()) {
        return Err(Wrong("--key is not base64.".into()));
    }
    let key = match key {
        Some(key) => key,
        None => new_key()?,
    };
    let edit = Edit::begin(home)?;
    if edit.accounts.iter().any(|account| account.name == name) {
        return Err(Wrong(format!("There is an account {name} in {home} already.")));
    }
    let is_first = edit.accounts.is_empty();
    edit.put(|document| add_to(document, name, &key))?;
    if is_first && name != WELL_KNOWN_ACCOUNT {
        eprintln!("From now on {WELL_KNOWN_ACCOUNT} with the key that everybody knows is not served any more.");
    }
    Ok(key)
}

fn rotate(home: &Home<'_>, name: &str, which: Which) -> Result<Secret, Wrong> {
    let key = new_key()?;
    let edit = Edit::begin(home)?;
    if !edit.accounts.iter().any(|account| account.name == name) {
        return Err(no_such_account(name, home));
    }
    edit.put(|document| rotate_in(document, name, which, &key))?;
    Ok(key)
}

fn primary_key(home: &Home<'_>, name: &str) -> Result<Secret, Wrong> {
    let account = read(home)?.into_iter().find(|account| account.name == name);
    let key = account.and_then(|account| account.keys.into_iter().next());
    key.ok_or_else(|| no_such_account(name, home))
}

fn list(accounts: &[ConfiguredAccount]) -> String {
    let lines = accounts.iter().map(|account| {
        let keys = if account.keys.len() == 1 { "1 key" } else { "2 keys" };
        let settings: String = config::given(&account.settings).iter().map(|setting| format!(", {setting}")).collect();
        format!("{:<24} {keys}{settings}\n", account.name)
    });
    lines.collect()
}

fn read(home: &Home<'_>) -> Result<Vec<ConfiguredAccount>, Wrong> {
    let accounts = match home {
        Home::File(file) => config::read(file).map_err(|BadConfig(sentence)| Wrong(sentence))?,
        Home::Database(cluster) => {
            let text = AccountsEdit::begin(cluster)?.text().to_owned();
            Some(home.parse(&text)?).filter(|accounts| !accounts.is_empty())
        }
    };
    accounts.ok_or_else(|| match home {
        Home::File(file) => Wrong(format!("There is no configuration {} yet.", file.display())),
        Home::Database(_) => Wrong(format!("There are no accounts in {home} yet.")),
    })
}

fn no_such_account(name: &str, home: &Home<'_>) -> Wrong {
    Wrong(format!("There is no account {name} in {home}."))
}

fn new_key() -> Result<Secret, Wrong> {
    Secret::random::<KEY_BYTES>().map_err(|error| Wrong(format!("The system gives no random bytes: {error}.")))
}

/// Where the accounts are that are meant: as a server with these options would have it.
enum Home<'a> {
    File(PathBuf),
    Database(&'a Cluster),
}

impl Home<'_> {
    fn of(options: &Options, called_as: CalledAs) -> Home<'_> {
        let file = paths::config(options, called_as);
        match &options.cluster {
            Some(cluster) if options.config.is_none() && !file.exists() => Home::Database(cluster),
            Some(_) | None => Home::File(file),
        }
    }

    fn parse(&self, text: &str) -> Result<Vec<ConfiguredAccount>, Wrong> {
        config::parse(text).map_err(|BadConfig(what)| match self {
            Home::File(file) => Wrong(config::about(file, &what).0),
            Home::Database(_) => Wrong(format!("The configuration in {self} {what}")),
        })
    }
}

impl fmt::Display for Home<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Home::File(file) => write!(f, "{}", file.display()),
            Home::Database(_) => f.write_str("the database"),
        }
    }
}

/// The accounts from reading them to writing them. Nobody else edits them meanwhile.
struct Edit {
    held: Held,
    text: String,
    accounts: Vec<ConfiguredAccount>,
}

enum Held {
    File(Replacement),
    Database(Box<AccountsEdit>),
}

impl Edit {
    fn begin(home: &Home<'_>) -> Result<Edit, Wrong> {
        let (held, text) = match home {
            Home::File(file) => read_to_replace(file)?,
            Home::Database(cluster) => {
                let edit = AccountsEdit::begin(cluster)?;
                let text = edit.text().to_owned();
                (Held::Database(Box::new(edit)), text)
            }
        };
        Ok(Edit { held, accounts: home.parse(&text)?, text })
    }

    fn put(self, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> Result<(), Wrong> {
        let place = match &self.held {
            Held::File(file) => file.path().display().to_string(),
            Held::Database(_) => "What the database holds".to_owned(),
        };
        let wrong = || Wrong(format!("{place} is written in a way that only you can edit."));
        let mut document: DocumentMut = self.text.parse().map_err(|_| wrong())?;
        change(&mut document).ok_or_else(wrong)?;
        let text = document.to_string();
        config::parse(&text).map_err(|_| wrong())?;
        match self.held {
            Held::File(file) => {
                file.put(text.as_bytes()).map_err(|error| Wrong(format!("{place} cannot be written: {error}.")))?;
                // When the command has answered, a key that was replaced is refused everywhere.
                std::thread::sleep(reload::SEEN_AFTER);
                Ok(())
            }
            Held::Database(edit) => edit.put(&text),
        }
    }
}

fn read_to_replace(file: &Path) -> Result<(Held, String), Wrong> {
    let wrong = |error: std::io::Error| Wrong(format!("{} cannot be edited: {error}.", file.display()));
    let folder: PathBuf = file.parent().unwrap_or(Path::new(".")).into();
    std::fs::create_dir_all(&folder).map_err(wrong)?;
    let replacement = Replacement::begin(file).map_err(wrong)?;
    let text = match std::fs::read_to_string(replacement.path()) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(wrong(error)),
    };
    Ok((Held::File(replacement), text))
}

fn add_to(document: &mut DocumentMut, name: &str, key: &Secret) -> Option<()> {
    let mut accounts = Table::new();
    accounts.set_implicit(true);
    let accounts = document.entry("accounts").or_insert(Item::Table(accounts)).as_table_like_mut()?;
    let mut account = Table::new();
    account.insert("keys", value(Array::from_iter([key.expose()])));
    accounts.insert(name, Item::Table(account));
    Some(())
}

fn rotate_in(document: &mut DocumentMut, name: &str, which: Which, key: &Secret) -> Option<()> {
    fn inside<'a>(item: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
        item.get_mut(name)?.as_table_like_mut()
    }
    let account = inside(inside(document.as_table_mut(), "accounts")?, name)?;
    let keys = account.get_mut("keys")?.as_array_mut()?;
    match which {
        Which::Primary => drop(keys.replace(0, key.expose())),
        Which::Secondary if keys.len() > 1 => drop(keys.replace(1, key.expose())),
        Which::Secondary => keys.push(key.expose()),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> String {
        let mut document: DocumentMut = text.parse().unwrap();
        change(&mut document).unwrap();
        document.to_string()
    }

    #[test]
    fn the_first_account_of_an_empty_file() {
        let text = edited("", |document| add_to(document, "abc", &Secret::new("AAAA")));
        assert_eq!(text, "[accounts.abc]\nkeys = [\"AAAA\"]\n");
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "# ours\n[accounts.abc] # the first\nversioning = true # yes\nkeys = [\n  \"AAAA\", # old\n]\n";
        let text = edited(text, |document| add_to(document, "def", &Secret::new("BBBB")));
        let text = edited(&text, |document| rotate_in(document, "abc", Which::Primary, &Secret::new("CCCC")));
        let begin = "# ours\n[accounts.abc] # the first\nversioning = true # yes\nkeys = [\n  \"CCCC\", # old\n]\n";
        assert_eq!(text, format!("{begin}\n[accounts.def]\nkeys = [\"BBBB\"]\n"));
    }

    #[test]
    fn either_key_is_rotated() {
        let rotated = |text, which| edited(text, |document| rotate_in(document, "abc", which, &Secret::new("NEW1")));
        let one = "[accounts.abc]\nkeys = [\"AAAA\"]\n";
        assert_eq!(rotated(one, Which::Primary), "[accounts.abc]\nkeys = [\"NEW1\"]\n");
        assert_eq!(rotated(one, Which::Secondary), "[accounts.abc]\nkeys = [\"AAAA\", \"NEW1\"]\n");
        let two = "[accounts.abc]\nkeys = [\"AAAA\", \"BBBB\"]\n";
        assert_eq!(rotated(two, Which::Primary), "[accounts.abc]\nkeys = [\"NEW1\", \"BBBB\"]\n");
        assert_eq!(rotated(two, Which::Secondary), "[accounts.abc]\nkeys = [\"AAAA\", \"NEW1\"]\n");
    }

    #[test]
    fn the_list_has_settings_and_no_keys() {
        let accounts = config::parse("[accounts.abc]\nkeys = [\"AAAA\", \"BBBB\"]\nversioning = true\n").unwrap();
        assert_eq!(list(&accounts), "abc                      2 keys, versioning = true\n");
    }
}
