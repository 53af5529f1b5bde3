//! Every kind of operation on files under kill -9, the collection of what they leave behind included.
//!
//! Each writer has a directory with one file in it, and goes round: create, write little and much, clear, grow, cut, rename the
//! file, rename the directory, replace, delete. Whatever it was doing when the server died was done whole or not at all: where
//! the file is, every byte of it, its length, its id and its ETag, and the usage of the share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::client::{Answer, Client};
use crate::ledger::ask;

const LENGTH: usize = 200_000;
const HOMES: [&str; 2] = ["a", "b"];
const NAMES: [&str; 2] = ["File.x", "File.y"];

/// What is known of a writer's directory by who alone writes to it.
#[derive(Clone, Default, Debug)]
pub struct Tree {
    home: usize,
    file: Option<File>,
    steps: u64,
    in_flight: Option<Kind>,
}

#[derive(Clone, PartialEq, Eq)]
struct File {
    name: usize,
    content: Vec<u8>,
    metadata: Option<u64>,
    /// If its writer was told.
    id: Option<String>,
    etag: Option<String>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let File { name, content, metadata, id, etag } = self;
        let written = content.iter().filter(|byte| **byte != 0).count();
        write!(f, "{} of {} bytes, {written} not zero, {metadata:?} {id:?} {etag:?}", NAMES[*name], content.len())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Create,
    PutSmall,
    PutLarge,
    Clear,
    Grow,
    Cut,
    SetMetadata,
    RenameFile,
    RenameDirectory,
    Delete,
}

use Kind::{Clear, Create, Cut, Delete, Grow, PutLarge, PutSmall, RenameDirectory, RenameFile, SetMetadata};

/// Creating what is there replaces it.
#[rustfmt::skip]
const ROUND: [Kind; 17] = [
    Create, PutLarge, PutSmall, RenameDirectory, Clear, Grow, PutLarge, RenameFile, SetMetadata, Cut, PutSmall, RenameDirectory,
    Create, PutLarge, RenameFile, Cut, Delete,
];

pub type Trees = Arc<Mutex<BTreeMap<u64, Tree>>>;

impl Tree {
    /// What comes next: the round, unless what it needs is not there.
    fn next(&self) -> Kind {
        match (ROUND[(self.steps % ROUND.len() as u64) as usize], &self.file) {
            (RenameDirectory, _) => RenameDirectory,
            (_, None) => Create,
            (kind, Some(_)) => kind,
        }
    }

    fn directory(&self, number: u64) -> String {
        format!("kill/w{number}{}", HOMES[self.home])
    }

    /// First byte and length of what the next step writes or clears.
    fn span(&self, kind: Kind) -> (usize, usize) {
        let length = self.file.as_ref().map_or(0, |file| file.content.len());
        let wanted = match kind {
            PutSmall => 300,
            PutLarge => 150_000,
            _ => length / 3,
        };
        let size = wanted.min(length);
        ((self.steps as usize * 104_729) % (length - size + 1), size)
    }

    fn bytes(&self, size: usize) -> Vec<u8> {
        let mut state = self.steps.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&(state | 0x0101_0101_0101_0101).to_le_bytes());
        }
        bytes.truncate(size);
        bytes
    }

    /// The tree once it is done.
    fn after(&self, kind: Kind, answer: Option<&Answer>) -> Tree {
        let told = |header: &str| answer.and_then(|answer| answer.header(header)).map(str::to_owned);
        let mut tree = Tree { steps: self.steps + 1, in_flight: None, ..self.clone() };
        let (first, size) = self.span(kind);
        match (kind, &mut tree.file) {
            (RenameDirectory, _) => tree.home = 1 - self.home,
            (Create, file) => {
                let before = file.take();
                let (name, id) = before.map_or((0, None), |file| (file.name, file.id));
                let id = told("x-ms-file-id").or(id);
                *file = Some(File { name, content: vec![0; LENGTH], metadata: None, id, etag: None });
            }
            (Delete, file) => *file = None,
            (PutSmall | PutLarge, Some(file)) => file.content[first..first + size].copy_from_slice(&self.bytes(size)),
            (Clear, Some(file)) => file.content[first..first + size].fill(0),
            (Grow, Some(file)) => file.content.resize(LENGTH + 70_000, 0),
            (Cut, Some(file)) => file.content.truncate(file.content.len() / 2 + 1),
            (SetMetadata, Some(file)) => file.metadata = Some(self.steps),
            (RenameFile, Some(file)) => file.name = 1 - file.name,
            (_, None) => unreachable!("there is a file"),
        }
        // A rename of the directory does not touch the file.
        if let Some(file) = tree.file.as_mut().filter(|_| kind != RenameDirectory) {
            file.etag = told("etag");
        }
        tree
    }
}

/// Asks for it. `None`: the server died first.
fn write(client: &Client, number: u64, tree: &Tree, kind: Kind) -> Option<Answer> {
    let directory = tree.directory(number);
    let name = |file: &File| format!("{directory}/{}", NAMES[file.name]);
    let path = tree.file.as_ref().map_or(format!("{directory}/{}", NAMES[0]), name);
    let (first, size) = tree.span(kind);
    let range = format!("bytes={first}-{}", (first + size).saturating_sub(1));
    let length = |length: usize| length.to_string();
    let set =
        |length: String| ask(client, &format!("PUT {path}?comp=properties"), &[("x-ms-content-length", &length)], "");
    let put = |write: &str, body: &[u8]| {
        ask(client, &format!("PUT {path}?comp=range"), &[("x-ms-write", write), ("x-ms-range", &range)], body)
    };
    let rename = |from: String, to: String| {
        ask(client, &format!("PUT {to}comp=rename"), &[("x-ms-file-rename-source", &client.url(&from))], "")
    };
    let answer = match kind {
        Create => {
            let headers = [("x-ms-type", "file"), ("x-ms-content-length", &*length(LENGTH))];
            ask(client, &format!("PUT {path}"), &headers, "")?
        }
        PutSmall | PutLarge => put("update", &tree.bytes(size))?,
        Clear => put("clear", b"")?,
        Grow => set(length(LENGTH + 70_000))?,
        Cut => set(length(tree.file.as_ref()?.content.len() / 2 + 1))?,
        SetMetadata => {
            let value = tree.steps.to_string();
            ask(client, &format!("PUT {path}?comp=metadata"), &[("x-ms-meta-version", &value)], "")?
        }
        RenameFile => {
            let other = NAMES[1 - tree.file.as_ref()?.name];
            rename(path.clone(), format!("{directory}/{other}?"))?
        }
        RenameDirectory => {
            let other = Tree { home: 1 - tree.home, ..tree.clone() }.directory(number);
            rename(directory.clone(), format!("{other}?restype=directory&"))?
        }
        Delete => ask(client, &format!("DELETE {path}"), &[], "")?,
    };
    assert!(answer.is_success(), "{number} {kind:?}: {}, {tree:?}", answer.said());
    Some(answer)
}

/// The share, and a directory for each writer. Each begins at another place of the round.
pub fn prepare(client: &Client, trees: &Trees, writers: u64) {
    client.call("PUT kill?restype=share", &[], "").ok();
    for number in 0..writers {
        let tree = Tree { steps: number * 103, ..Tree::default() };
        client.call(&format!("PUT {}?restype=directory", tree.directory(number)), &[], "").ok();
        trees.lock().expect("nobody else runs").insert(number, tree);
    }
}

/// Goes round until the server is gone.
pub fn writer(number: u64, address: SocketAddr, trees: &Trees, stop: &AtomicBool) {
    let client = Client::new(address);
    while !stop.load(Ordering::Acquire) {
        let tree = {
            let mut trees = trees.lock().expect("no writer panics with it");
            let tree = trees.get_mut(&number).expect("a tree");
            tree.in_flight = Some(tree.next());
            tree.clone()
        };
        let kind = tree.next();
        let Some(answer) = write(&client, number, &tree, kind) else { return };
        let after = tree.after(kind, Some(&answer));
        trees.lock().expect("no writer panics with it").insert(number, after);
    }
}

/// Holds what the server has against what it acknowledged, takes over what happened without an answer, and says what was
/// being done.
pub fn verify(client: &Client, trees: &Trees) -> BTreeSet<Kind> {
    let mut interrupted = BTreeSet::new();
    let mut usage = 0;
    for (number, tree) in trees.lock().expect("nobody else runs").iter_mut() {
        let found = look(client, *number);
        let done = tree.in_flight.map(|kind| tree.after(kind, None));
        interrupted.extend(tree.in_flight);
        let candidates = [Some(tree.clone()), done];
        let settled = candidates.into_iter().flatten().find(|tree| is_so(tree, &found));
        let Some(settled) = settled else { panic!("{number}: found {found:?}, but {tree:?}") };
        usage += found.1.as_ref().map_or(0, |file| file.content.len());
        *tree = Tree { file: found.1, in_flight: None, ..settled };
    }
    let stats = client.call("GET kill?restype=share&comp=stats", &[], "").ok().xml();
    assert_eq!(stats.text_of("ShareUsageBytes"), Some(usage.to_string()), "the usage of the share");
    interrupted
}

/// What is not known may be anything.
fn is_so(tree: &Tree, (home, file): &(usize, Option<File>)) -> bool {
    let same = |known: &Option<String>, found: &Option<String>| known.is_none() || known == found;
    let is_file = match (&tree.file, file) {
        (None, None) => true,
        (Some(known), Some(found)) => {
            (known.name, known.metadata) == (found.name, found.metadata)
                && known.content == found.content
                && same(&known.id, &found.id)
                && same(&known.etag, &found.etag)
        }
        _ => false,
    };
    tree.home == *home && is_file
}

/// Where a writer's directory is, and what is in it.
fn look(client: &Client, number: u64) -> (usize, Option<File>) {
    let list = |target: &str| client.call(&format!("GET {target}"), &[], "").ok().xml();
    let root = list(&format!("kill?restype=directory&comp=list&prefix=w{number}"));
    let homes: Vec<String> = root.all("Entries").iter().filter_map(|entry| entry.text_of("Name")).collect();
    assert_eq!(homes.len(), 1, "{number}: one directory, under one name: {homes:?}");
    let home = HOMES.iter().position(|home| homes[0] == format!("w{number}{home}")).expect("one of the two");
    let entries = list(&format!("kill/{}?restype=directory&comp=list", homes[0]));
    assert!(entries.all("Entries").len() <= 1, "{number}: one file, under one name: {entries:?}");
    let Some(entry) = entries.all("Entries").first() else { return (home, None) };
    let name = entry.text_of("Name").expect("a name");
    let read = client.call(&format!("GET kill/{}/{name}", homes[0]), &[], "").ok();
    let length = read.body.len().to_string();
    assert_eq!(entry.text_of("Properties/Content-Length"), Some(length), "{number}: the length");
    let file = File {
        name: NAMES.iter().position(|known| *known == name).expect("one of the two"),
        metadata: read.header("x-ms-meta-version").and_then(|text| text.parse().ok()),
        id: read.header("x-ms-file-id").map(str::to_owned),
        etag: Some(read.etag()),
        content: read.body,
    };
    assert_eq!(entry.text_of("FileId"), file.id, "{number}: the id");
    (home, Some(file))
}
