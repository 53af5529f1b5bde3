//! `lazurite account ...`: edits the accounts in the configuration file, and nothing else. The data is never opened, so
//! this works while a server runs; it reads the file again by itself, and has done so when the command ends.

use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use crate::accounts::WELL_KNOWN_ACCOUNT;
use crate::config::{self, BadConfig, ConfiguredAccount};
use crate::flags::{Options, Wrong};
use crate::greeting::{self, Endpoints, say};
use crate::name::CalledAs;
use crate::place;
use crate::private_file::Replacement;
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
    let file = place::config(options, called_as);
    let endpoints = Endpoints::expected(options, called_as);
    match action {
        Action::Add { name, key } => {
            let key = add(&file, &name, key)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::Rotate { name, which } => {
            let key = rotate(&file, &name, which)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::Show { name } => {
            let key = primary_key(&file, &name)?;
            say(&format!("{}\n", greeting::connection_string(&name, key.expose(), &endpoints)));
        }
        Action::List => say(&list(&read(&file)?)),
    }
    Ok(())
}

fn add(file: &Path, name: &str, key: Option<Secret>) -> Result<Secret, Wrong> {
    config::is_name(name).map_err(|BadConfig(what)| Wrong(format!("There cannot be {what}.")))?;
    if key.as_ref().is_some_and(|key| auth::Key::from_base64(key.expose()).is_err()) {
        return Err(Wrong("--key is not base64.".into()));
    }
    let key = match key {
        Some(key) => key,
        None => new_key()?,
    };
    let edit = Edit::begin(file)?;
    if edit.accounts.iter().any(|account| account.name == name) {
        return Err(Wrong(format!("There is an account {name} in {} already.", edit.file.path().display())));
    }
    let is_first = edit.accounts.is_empty();
    edit.put(|document| add_to(document, name, &key))?;
    if is_first && name != WELL_KNOWN_ACCOUNT {
        eprintln!("From now on {WELL_KNOWN_ACCOUNT} with the key that everybody knows is not served any more.");
    }
    Ok(key)
}

fn rotate(file: &Path, name: &str, which: Which) -> Result<Secret, Wrong> {
    let key = new_key()?;
    let edit = Edit::begin(file)?;
    if !edit.accounts.iter().any(|account| account.name == name) {
        return Err(no_such_account(name, edit.file.path()));
    }
    edit.put(|document| rotate_in(document, name, which, &key))?;
    Ok(key)
}

fn primary_key(file: &Path, name: &str) -> Result<Secret, Wrong> {
    let account = read(file)?.into_iter().find(|account| account.name == name);
    let key = account.and_then(|account| account.keys.into_iter().next());
    key.ok_or_else(|| no_such_account(name, file))
}

fn list(accounts: &[ConfiguredAccount]) -> String {
    let lines = accounts.iter().map(|account| {
        let keys = if account.keys.len() == 1 { "1 key" } else { "2 keys" };
        let settings: String = config::given(&account.settings).iter().map(|setting| format!(", {setting}")).collect();
        format!("{:<24} {keys}{settings}\n", account.name)
    });
    lines.collect()
}

fn read(file: &Path) -> Result<Vec<ConfiguredAccount>, Wrong> {
    let accounts = config::read(file).map_err(|BadConfig(sentence)| Wrong(sentence))?;
    accounts.ok_or_else(|| Wrong(format!("There is no configuration {} yet.", file.display())))
}

fn no_such_account(name: &str, file: &Path) -> Wrong {
    Wrong(format!("There is no account {name} in {}.", file.display()))
}

fn new_key() -> Result<Secret, Wrong> {
    Secret::random::<KEY_BYTES>().map_err(|error| Wrong(format!("The system gives no random bytes: {error}.")))
}

/// The file from reading it to writing it. Nobody else edits it meanwhile.
struct Edit {
    file: Replacement,
    text: String,
    accounts: Vec<ConfiguredAccount>,
}

impl Edit {
    fn begin(file: &Path) -> Result<Edit, Wrong> {
        let wrong = |error: std::io::Error| Wrong(format!("{} cannot be edited: {error}.", file.display()));
        let folder: PathBuf = file.parent().unwrap_or(Path::new(".")).into();
        std::fs::create_dir_all(&folder).map_err(wrong)?;
        let replacement = Replacement::begin(file).map_err(wrong)?;
        let text = match std::fs::read_to_string(replacement.path()) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(wrong(error)),
        };
        let accounts = config::parse(&text).map_err(|BadConfig(what)| Wrong(config::about(file, &what).0))?;
        Ok(Edit { file: replacement, text, accounts })
    }

    fn put(self, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> Result<(), Wrong> {
        let path = self.file.path().display().to_string();
        let wrong = || Wrong(format!("{path} is written in a way that only you can edit."));
        let mut document: DocumentMut = self.text.parse().map_err(|_| wrong())?;
        change(&mut document).ok_or_else(wrong)?;
        let text = document.to_string();
        config::parse(&text).map_err(|_| wrong())?;
        self.file.put(text.as_bytes()).map_err(|error| Wrong(format!("{path} cannot be written: {error}.")))?;
        // Whoever gets our answer may rely on it: a key that was replaced opens nothing any more.
        std::thread::sleep(reload::SEEN_AFTER);
        Ok(())
    }
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
