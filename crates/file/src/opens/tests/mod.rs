//! Tests of the table through its own interface. Futures are polled by hand where it matters what they wait for.

mod caching;
mod deletion;
mod directories;
mod events;
mod handles;
mod locks;
mod model;
mod races;
mod random;
mod share_modes;
mod turns;
mod waiting;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use concurrency::Timestamp;
use concurrency::range_lock::{LockRange, Transfer};
use concurrency::share_mode::{Access, Open, RestAccess};

use super::*;

const SHARE: u64 = 100;
const R: Access = Access::READ;
const W: Access = Access::WRITE;
const D: Access = Access::DELETE;
const NONE: Access = Access::NONE;
const ALL: Access = Access::ALL;
const FILE: FileId = FileId { share: SHARE, id: 1 };

fn every_set() -> impl Iterator<Item = Access> {
    (0..8).map(Access::from_share_bits)
}

fn every_open() -> impl Iterator<Item = Open> {
    every_set().flat_map(|access| every_set().map(move |sharing| Open { access, sharing }))
}

fn open(access: Access, sharing: Access) -> Open {
    Open { access, sharing }
}

fn range(offset: u64, length: u64) -> LockRange {
    LockRange::new(offset, length).unwrap()
}

fn span(offset: u64, length: u64, transfer: Transfer) -> Option<Span> {
    Some(Span { offset, length, transfer })
}

fn opens() -> Opens {
    Opens::new(4_711)
}

/// Remembers what it was told.
#[derive(Debug, Default)]
struct Recorder {
    closed: Mutex<Vec<HandleId>>,
    removals: Mutex<Vec<Removal>>,
    broken: Mutex<Vec<Broken>>,
    /// Its client cannot be told of breaks.
    is_gone: bool,
}

impl Holder for Recorder {
    fn closed(&self, handle: HandleId) {
        self.closed.lock().unwrap().push(handle);
    }

    fn must_delete(&self, removal: Removal) {
        self.removals.lock().unwrap().push(removal);
    }

    fn broken(&self, broken: Broken) -> bool {
        self.broken.lock().unwrap().push(broken);
        !self.is_gone
    }
}

/// A request for a file in the root directory.
fn request(file: FileId, open: Open) -> OpenRequest {
    let above = if file.is_root() { vec![] } else { vec![file.share] };
    OpenRequest {
        file,
        place: Arc::new(Place { path: format!("file{}", file.id), above }),
        open,
        mask: if open.access.is_none() { 0x80 } else { 0x1 },
        also: Access::NONE,
        delete_on_close: false,
        is_leased: false,
        caching: CachingRequest::None,
        has_waited: false,
        client: Client { session: 7, address: "10.0.0.1:50000".parse().unwrap(), name: "client".to_owned() },
        now: Timestamp(1),
        holder: Arc::new(Recorder::default()),
    }
}

fn below(file: FileId, above: &[u64], open: Open) -> OpenRequest {
    let place = Arc::new(Place { path: format!("dir/file{}", file.id), above: above.to_vec() });
    OpenRequest { place, ..request(file, open) }
}

/// A future that is polled when the test says so.
struct Step<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Step<T> {
    fn of(future: impl Future<Output = T> + Send + 'static) -> Step<T> {
        Step(Box::pin(future))
    }

    fn poll(&mut self) -> Option<T> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}

/// The answer of a future that has nothing to wait for.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

fn opening(opens: &Opens, request: OpenRequest) -> Step<Result<Handle, OpenRefusal>> {
    let opens = opens.clone();
    Step::of(async move { opens.open(request).await })
}

fn enter(opens: &Opens, access: RestAccess) -> Result<Entry, Refusal> {
    now(opens.enter(FILE, access, None))
}
