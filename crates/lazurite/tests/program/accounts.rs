//! Accounts: where they come from, and that they change while the server runs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::*;

const KEY: &str = "c2VjcmV0";
const OTHER_KEY: &str = "b3RoZXI=";

fn config(keys: &[&str]) -> String {
    format!("# ours\n[accounts.first]\nkeys = {keys:?}\nversioning = true\n")
}

fn unsigned(account: &str) -> String {
    format!("GET /{account}/c/b HTTP/1.1\r\nHost: x\r\nx-ms-version: 2021-12-02\r\n\r\n")
}

/// Runs `lazurite account` and returns what it says.
fn account(folder: &Folder, arguments: &[&str]) -> String {
    let mut command = bare(env!("CARGO_BIN_EXE_lazurite"));
    let output = command.arg("account").args(arguments).arg("--location").arg(folder.data()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn key_in(connection_string: &str) -> String {
    let (_, rest) = connection_string.split_once("AccountKey=").unwrap();
    rest.split(';').next().unwrap().to_owned()
}

fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).unwrap().permissions().mode() & 0o777 == 0o600
}

#[test]
fn a_file_replaces_the_well_known_account() {
    let folder = Folder::new("accounts");
    let file = folder.0.join("accounts.toml");
    std::fs::write(&file, config(&[KEY])).unwrap();
    let program = Program::start(&folder, &["--config", file.to_str().unwrap()]);
    let blob = program.address("Blob");
    assert!(ask(blob, &signed("first", KEY)).starts_with("HTTP/1.1 200 "));
    assert!(ask(blob, &signed("first", OTHER_KEY)).starts_with("HTTP/1.1 403 "));
    assert!(ask(blob, &unsigned("devstoreaccount1")).starts_with("HTTP/1.1 404 "));
    program.stop();
    std::fs::write(&file, "[accounts.first]\nkeys = [\"not base64\"]").unwrap();
    let said = refusal(&mut command(&folder, &["--config", file.to_str().unwrap()]));
    assert!(said.contains("base64") && said.contains("line 2") && !said.contains("not base64"), "{said}");
    let said = refusal(&mut command(&folder, &["--config", "nowhere.toml"]));
    assert!(said.contains("nowhere.toml is not there"), "{said}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let folder = Folder::new("precedence");
    std::fs::create_dir(folder.data()).unwrap();
    std::fs::write(folder.data().join("lazurite.toml"), config(&["ZmlsZQ=="])).unwrap();
    let start = |options: &[&str], variables: &[(&str, &str)]| {
        let mut program = Program::spawn(command(&folder, options).envs(variables.iter().copied()));
        program.wait_for("Ready.");
        program
    };
    let flag = ["--accounts", "first:ZmxhZw=="];
    let environment = [("AZURITE_ACCOUNTS", "first:ZW52;second:ZW52")];
    let flag_as_variable = [("LAZURITE_ACCOUNTS", "first:ZmxhZw=="), environment[0]];
    for (options, variables, key, other) in [
        (&[][..], &[][..], "ZmlsZQ==", "HTTP/1.1 404 "),
        (&[], &environment, "ZW52", "HTTP/1.1 200 "),
        (&flag, &environment, "ZmxhZw==", "HTTP/1.1 200 "),
        (&[], &flag_as_variable, "ZmxhZw==", "HTTP/1.1 200 "),
    ] {
        let program = start(options, variables);
        let blob = program.address("Blob");
        assert!(ask(blob, &signed("first", key)).starts_with("HTTP/1.1 200 "), "{options:?} {variables:?}");
        assert!(ask(blob, &signed("second", "ZW52")).starts_with(other), "{options:?} {variables:?}");
        program.stop();
    }
}

#[test]
fn keys_change_while_it_runs() {
    let folder = Folder::new("rotation");
    std::fs::create_dir(folder.data()).unwrap();
    let file = folder.data().join("lazurite.toml");
    std::fs::write(&file, config(&[KEY])).unwrap();
    let mut program = Program::start(&folder, &["--debug", "log.txt"]);
    let blob = program.address("Blob");
    let asked = |key: &'static str| move || ask(blob, &signed("first", key));
    assert!(asked(KEY)().starts_with("HTTP/1.1 200 "));
    std::fs::write(&file, config(&[KEY, OTHER_KEY])).unwrap();
    ask_until("HTTP/1.1 200 ", asked(OTHER_KEY));
    std::fs::write(&file, config(&[OTHER_KEY])).unwrap();
    ask_until("HTTP/1.1 403 ", asked(KEY));

    // What cannot be used changes nothing, and the log says why.
    for (bad, word) in [("[accounts.first]\nkeys = 7\n", "line 2"), ("[other]\n", "other")] {
        std::fs::write(&file, bad).unwrap();
        wait_for_log(&folder, word);
        assert!(asked(OTHER_KEY)().starts_with("HTTP/1.1 200 "));
    }
    std::fs::remove_file(&file).unwrap();
    wait_for_log(&folder, "is not there");
    assert!(asked(OTHER_KEY)().starts_with("HTTP/1.1 200 "));
    assert!(ask(blob, &unsigned("devstoreaccount1")).starts_with("HTTP/1.1 404 "));

    // A hangup is a wish to read again, not to end.
    let before = log(&folder).matches("is not there").count();
    program.signal("-HUP");
    let began = std::time::Instant::now();
    while log(&folder).matches("is not there").count() == before {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(program.child.try_wait().unwrap().is_none());
    assert!(!log(&folder).contains(KEY) && !log(&folder).contains(OTHER_KEY));
    program.stop();
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.0.join("log.txt")).unwrap()
}

fn wait_for_log(folder: &Folder, word: &str) {
    let began = std::time::Instant::now();
    while !log(folder).lines().any(|line| line.contains(word) && line.contains("stays in effect")) {
        assert!(began.elapsed() < PATIENCE, "no {word} in {}", log(folder));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn the_account_command_edits_the_file_and_the_server_follows() {
    let folder = Folder::new("account-command");
    let said = account(&folder, &["add", "mine", "--blob-port", "7"]);
    assert!(said.contains("AccountName=mine;") && said.contains("BlobEndpoint=http://127.0.0.1:7/mine;"), "{said}");
    let first = key_in(&said);
    assert_eq!(wire::base64::decode(&first).unwrap().len(), 64);
    let file = folder.data().join("lazurite.toml");
    assert!(is_private(&file));

    let program = Program::start(&folder, &["--host", "0.0.0.0", "--silent"]);
    let blob = std::net::SocketAddr::from(([127, 0, 0, 1], program.address("Blob").port()));
    let asked = |account: &'static str, key: String| move || ask(blob, &signed(account, &key));
    assert!(asked("mine", first.clone())().starts_with("HTTP/1.1 200 "));
    account(&folder, &["add", "other", "--key", KEY]);
    assert!(asked("other", KEY.to_owned())().starts_with("HTTP/1.1 200 "));
    let second = key_in(&account(&folder, &["rotate", "mine", "--secondary"]));
    assert!(asked("mine", second.clone())().starts_with("HTTP/1.1 200 "));
    assert!(asked("mine", first.clone())().starts_with("HTTP/1.1 200 "));
    let third = key_in(&account(&folder, &["rotate", "mine"]));
    assert!(asked("mine", first.clone())().starts_with("HTTP/1.1 403 "));
    assert!(asked("mine", second)().starts_with("HTTP/1.1 200 "));

    assert_eq!(key_in(&account(&folder, &["show", "mine"])), third);
    assert_eq!(account(&folder, &["list"]), "mine                     2 keys\nother                    1 key\n");
    assert!(is_private(&file));
    program.stop();
}

/// Not a moment after the command has ended does the key that it replaced open anything, however busy the server is.
#[test]
fn the_first_request_after_a_rotation_sees_it() {
    let folder = Folder::new("rotation-at-once");
    let mut key = key_in(&account(&folder, &["add", "mine"]));
    let program = Program::start(&folder, &["--silent"]);
    let blob = program.address("Blob");
    let is_over = AtomicBool::new(false);
    let answers: Vec<[String; 2]> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                ask(blob, &unsigned("mine"));
            }
        });
        let rotate = |_| {
            let old = std::mem::replace(&mut key, key_in(&account(&folder, &["rotate", "mine"])));
            [&old, &key].map(|key| ask(blob, &signed("mine", key)))
        };
        let answers = (0..20).map(rotate).collect();
        is_over.store(true, Ordering::Relaxed);
        answers
    });
    for [with_old, with_new] in answers {
        assert!(with_old.starts_with("HTTP/1.1 403 "), "{with_old}");
        assert!(with_new.starts_with("HTTP/1.1 200 "), "{with_new}");
    }
    program.stop();
}

#[test]
fn the_account_command_refuses_in_a_sentence() {
    let folder = Folder::new("account-refusals");
    account(&folder, &["add", "mine"]);
    let file = folder.data().join("lazurite.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    for (arguments, word) in [
        (&["add", "mine"][..], "already"),
        (&["add", "MINE"], "3 to 24"),
        (&["add", "other", "--key", "not base64"], "base64"),
        (&["rotate", "other"], "no account other"),
        (&["show", "other"], "no account other"),
        (&["drop", "mine"], "lazurite account takes"),
    ] {
        let mut command = bare(env!("CARGO_BIN_EXE_lazurite"));
        let said = refusal(command.arg("account").args(arguments).arg("--location").arg(folder.data()));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.data()).unwrap().count(), 1);
}

#[test]
fn a_file_with_the_known_key_is_not_taken_later_either() {
    let folder = Folder::new("known-key-later");
    account(&folder, &["add", "first", "--key", KEY]);
    let program = Program::start(&folder, &["--host", "0.0.0.0", "--debug", "log.txt"]);
    let blob = std::net::SocketAddr::from(([127, 0, 0, 1], program.address("Blob").port()));
    std::fs::write(folder.data().join("lazurite.toml"), config(&[WELL_KNOWN_KEY])).unwrap();
    wait_for_log(&folder, "everybody knows");
    assert!(ask(blob, &signed("first", WELL_KNOWN_KEY)).starts_with("HTTP/1.1 403 "));
    assert!(ask(blob, &signed("first", KEY)).starts_with("HTTP/1.1 200 "));
    program.stop();
}
