//! Tests of the door.
//!
//! - `opening`: dispositions, options, access and attributes of a CREATE.
//! - `transfers`: bytes read, written, cut, cleared and locked.
//! - `names`: renames, deletions, listings.
//! - `settings`: times, attributes, descriptors.
//! - `watching`: CHANGE_NOTIFY, of what SMB does and of what REST does.
//! - `beside_rest`: handles and REST operations on the same files.
//! - `caching`: oplocks and leases beside REST operations and other SMB clients.
//! - `copies`: bytes copied from handle to handle, and sparse files.
//! - `previous_versions`: what is opened in share snapshots.
//! - `durable`: crashes, dropped futures, share snapshots, rows that must be fetched.

mod beside_rest;
mod caching;
mod copies;
mod durable;
mod names;
mod opening;
mod previous_versions;
mod settings;
mod transfers;
mod watching;

use std::sync::{Arc, Mutex};

use super::*;
use crate::opens::{Broken, CachingRequest, Client, HandleId};
use crate::testing::Bench;

/// An SMB session that notes which of its handles were closed by force.
#[derive(Debug, Default)]
pub struct Session {
    pub closed: Mutex<Vec<HandleId>>,
    pub broken: Mutex<Vec<Broken>>,
}

impl HandleOwner for Session {
    fn closed(&self, handle: HandleId) {
        self.closed.lock().unwrap().push(handle);
    }

    fn broken(&self, broken: Broken) -> bool {
        self.broken.lock().unwrap().push(broken);
        true
    }
}

const ALL: u32 = sharing::READ | sharing::WRITE | sharing::DELETE;
const READ: u32 = access::FILE_READ_DATA;
const WRITE: u32 = access::FILE_WRITE_DATA;
const APPEND: u32 = access::FILE_APPEND_DATA;
const DELETE: u32 = access::DELETE;
const LOOK: u32 = access::FILE_READ_ATTRIBUTES;

pub async fn tree(bench: &Bench) -> Tree {
    bench.service.door().connect(1, "share").await.unwrap()
}

/// Numbers that look random and are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Opens what is there with every right, and shares everything.
pub fn wish(path: &str) -> CreateRequest {
    CreateRequest {
        path: path.to_owned(),
        snapshot: None,
        access: access::FILE_ALL_ACCESS,
        sharing: ALL,
        disposition: Disposition::Open,
        options: 0,
        attributes: 0,
        security: None,
        allocation: None,
        caching: CachingRequest::None,
        client: Client { session: 7, address: "10.0.0.1:50000".parse().unwrap(), name: "client".to_owned() },
        owner: Arc::new(Session::default()),
    }
}

pub fn created(path: &str) -> CreateRequest {
    CreateRequest { disposition: Disposition::Create, ..wish(path) }
}

pub fn directory(path: &str) -> CreateRequest {
    CreateRequest { options: options::DIRECTORY_FILE, ..created(path) }
}

pub fn with(path: &str, access: u32, sharing: u32) -> CreateRequest {
    CreateRequest { access, sharing, ..wish(path) }
}

pub async fn open(tree: &Tree, request: CreateRequest) -> OpenFile {
    let path = request.path.clone();
    tree.open(request).await.unwrap_or_else(|refused| panic!("{path}: {refused:?}")).file
}

pub async fn refused(tree: &Tree, request: CreateRequest) -> Refused {
    tree.open(request).await.map(|opened| opened.action).unwrap_err()
}

/// A share with `dir/file`, which has ten bytes.
pub async fn bench() -> (Bench, Tree) {
    let bench = Bench::with_share().await;
    bench.mkdir("dir").await;
    bench.create("dir/file", 10).await;
    bench.write("dir/file", 0, b"0123456789").await;
    let tree = tree(&bench).await;
    (bench, tree)
}

/// Closes the handle, and holds the rows and the table against each other.
pub async fn done(bench: &Bench, files: impl IntoIterator<Item = OpenFile>) {
    for file in files {
        file.close().await.unwrap();
    }
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}
