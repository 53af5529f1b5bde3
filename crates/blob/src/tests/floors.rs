//! The floors of the crate: a module imports only from floors below its own, and from its own modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// From below, as `lib.rs` describes them.
const FLOORS: [&[&str]; 8] = [
    &["error"],
    &["model"],
    &["op"],
    &["rules"],
    &["download", "request", "encryption_headers", "listing", "reply"],
    &["source", "background_copy"],
    &["ops"],
    &["route", "website", "collect", "check", "fuzzing"],
];

/// Modules of one floor that know each other one way only.
const BESIDE: [(&str, &str); 2] = [("encryption_headers", "request"), ("background_copy", "source")];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The code of a file without its tests, which stand at its end and may use everything.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    text[..end].lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n")
}

/// The modules of the crate that a text names: `crate::a::..` and `crate::{a, b::..}`.
fn named(code: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let mut found: Vec<String> = Vec::new();
    for after in code.split("crate::").skip(1) {
        if !after.starts_with('{') {
            found.push(word(after));
            continue;
        }
        let (mut depth, mut begins) = (0, false);
        for (at, letter) in after.char_indices() {
            match letter {
                '{' => (depth, begins) = (depth + 1, depth == 0),
                '}' if depth == 1 => break,
                '}' => depth -= 1,
                ',' => begins = depth == 1,
                letter if letter.is_whitespace() => {}
                _ if begins => {
                    found.push(word(&after[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found.retain(|name| floor(name).is_some());
    found
}

fn files(folder: &Path, module: &str, found: &mut BTreeMap<String, Vec<std::path::PathBuf>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = if module.is_empty() { name.clone() } else { module.to_owned() };
        if name == "tests" || floor(&module).is_none() {
            continue;
        }
        match path.is_dir() {
            true => files(&path, &module, found),
            false => found.entry(module).or_default().push(path),
        }
    }
}

#[test]
fn every_module_knows_only_what_is_below_it() {
    let mut modules = BTreeMap::new();
    files(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), "", &mut modules);
    assert_eq!(modules.len(), FLOORS.iter().map(|floor| floor.len()).sum::<usize>(), "{:?}", modules.keys());
    for (module, paths) in &modules {
        for path in paths {
            for other in named(&code(path)) {
                let is_below = floor(&other) < floor(module);
                let is_allowed = is_below || other == *module || BESIDE.contains(&(module.as_str(), other.as_str()));
                assert!(is_allowed, "{} imports {other}", path.display());
            }
        }
    }
}

#[test]
fn imports_are_found() {
    assert_eq!(
        named("use crate::model::{self, refuse};\nuse crate::{Failure, reply, request};"),
        ["model", "reply", "request"]
    );
    assert_eq!(named("fn a() { crate::ops::run(); }"), ["ops"]);
    assert_eq!(named("use crate::{error::{BlobError, Failure}, source};"), ["error", "source"]);
}
