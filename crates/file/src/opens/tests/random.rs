//! Thousands of random operations against the model: every answer, every wait, and nothing left over.

use std::collections::HashMap;

use concurrency::range_lock::LockKind;

use super::model::{Key, Model, ModelEntry, ModelOpen, Outcome};
use super::*;

const PLACES: [(u64, &[u64]); 3] = [(10, &[10, SHARE]), (20, &[20, SHARE]), (21, &[21, 20, SHARE])];

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn access(&mut self) -> RestAccess {
        RestAccess::EVERY[self.below(7) as usize]
    }

    pub fn open(&mut self) -> Open {
        // Many that share, so that several are open together.
        let sharing = if self.one_in(2) { 7 } else { self.below(8) };
        open(Access::from_share_bits(self.below(8) as u32), Access::from_share_bits(sharing as u32))
    }

    pub fn range(&mut self) -> LockRange {
        range(self.below(6), 1 + self.below(4))
    }

    pub fn kind(&mut self) -> LockKind {
        if self.one_in(2) { LockKind::Shared } else { LockKind::Exclusive }
    }

    pub fn transfer(&mut self) -> Transfer {
        if self.one_in(2) { Transfer::Read } else { Transfer::Write }
    }
}

type Locking = Step<Result<(), HandleRefusal>>;

struct Run {
    random: Random,
    opens: Opens,
    model: Model,
    holder: Arc<Recorder>,
    /// Where each file and directory is.
    above: HashMap<u64, Vec<u64>>,
    last_key: Key,
    entries: Vec<(Key, Entry)>,
    handles: Vec<(Key, Arc<Handle>)>,
    opening: Vec<(Key, Step<Result<Handle, OpenRefusal>>)>,
    locking: Vec<(Key, Locking)>,
    removals: Vec<Removal>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let above = [(SHARE, vec![]), (10, vec![SHARE]), (20, vec![SHARE]), (21, vec![20, SHARE])];
        let files = (1..=4).map(|file| (file, PLACES[file as usize % 3].1.to_vec()));
        Run {
            random: Random(seed),
            opens: Opens::new(seed),
            model: Model::default(),
            holder: Arc::default(),
            above: above.into_iter().chain(files).collect(),
            last_key: 0,
            entries: vec![],
            handles: vec![],
            opening: vec![],
            locking: vec![],
            removals: vec![],
        }
    }

    fn key(&mut self) -> Key {
        self.last_key += 1;
        self.last_key
    }

    fn file(&mut self) -> FileId {
        let id = [1, 1, 1, 2, 3, 4, 10, 20, 21, SHARE][self.random.below(10) as usize];
        FileId { share: SHARE, id }
    }

    /// One of what is there, if anything is.
    fn pick(&mut self, length: usize) -> Option<usize> {
        (length > 0).then(|| self.random.below(length as u64) as usize)
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..3 => self.enter(),
            3..6 => self.leave(),
            6..9 => self.open(),
            9 => self.close(),
            10 => self.withdraw_open(),
            11 => self.finish_removal(),
            12 => self.set_pending(),
            13..15 => self.lock(),
            15 => self.unlock(),
            16 => self.withdraw_lock(),
            17 => self.relocate(),
            18 => self.force_close(),
            _ => self.drop_handle(),
        }
        self.settle();
        self.compare();
    }

    fn enter(&mut self) {
        let (key, file, access) = (self.key(), self.file(), self.random.access());
        let is_tree = self.random.one_in(4);
        let (range, transfer) = (self.random.range(), self.random.transfer());
        let bytes = span(range.offset(), range.length(), transfer).filter(|_| !is_tree && self.random.one_in(2));
        let real =
            if is_tree { now(self.opens.enter_tree(file, access)) } else { now(self.opens.enter(file, access, bytes)) };
        let modelled = self.model.enter(ModelEntry { key, file: file.id, access, is_tree, span: bytes });
        assert_eq!(real.as_ref().err().copied(), modelled.err(), "{file:?} {access:?}");
        self.entries.extend(real.ok().map(|entry| (key, entry)));
    }

    fn leave(&mut self) {
        let Some(place) = self.pick(self.entries.len()) else { return };
        let (key, entry) = self.entries.swap_remove(place);
        drop(entry);
        self.model.leave(key);
    }

    fn open(&mut self) {
        let (key, file, open) = (self.key(), self.file(), self.random.open());
        let mut modelled = ModelOpen::new(key, file.id, &self.above[&file.id], open);
        modelled.delete_on_close = self.random.one_in(8);
        modelled.is_leased = self.random.one_in(8);
        let request = OpenRequest {
            delete_on_close: modelled.delete_on_close,
            is_leased: modelled.is_leased,
            holder: self.holder.clone(),
            ..below(file, &modelled.above, open)
        };
        let mut future = opening(&self.opens, request);
        let real = future.poll();
        let expected = self.model.open(modelled);
        assert_eq!(real.as_ref().map(|one| one.as_ref().map(|_| ()).map_err(|refusal| *refusal)), expected);
        match real {
            Some(answer) => self.handles.extend(answer.ok().map(|handle| (key, Arc::new(handle)))),
            None => self.opening.push((key, future)),
        }
    }

    fn close(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        let (key, handle) = self.handles.swap_remove(place);
        let removal = handle.close();
        assert_eq!(removal.is_some(), self.model.close(key));
        self.removals.extend(removal);
    }

    /// Requests that wait keep the handle; then it is closed.
    fn drop_handle(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        if Arc::strong_count(&self.handles[place].1) > 1 {
            return self.close();
        }
        let (key, handle) = self.handles.swap_remove(place);
        drop(handle);
        let handed_over: Vec<_> = self.holder.removals.lock().unwrap().drain(..).collect();
        assert_eq!(handed_over.len(), usize::from(self.model.close(key)));
        self.removals.extend(handed_over);
    }

    fn force_close(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        let (key, handle) = self.handles.swap_remove(place);
        let root = Scope { file: FileId { share: SHARE, id: SHARE }, reach: Reach::Tree };
        let forced = self.opens.force_close(root, Which::One(handle.id()));
        assert_eq!((forced.closed, forced.removals.len()), (1, usize::from(self.model.close(key))));
        assert_eq!(self.holder.closed.lock().unwrap().pop(), Some(handle.id()));
        self.removals.extend(forced.removals);
    }

    fn withdraw_open(&mut self) {
        let Some(place) = self.pick(self.opening.len()) else { return };
        let (key, future) = self.opening.swap_remove(place);
        drop(future);
        self.model.withdraw_open(key);
    }

    fn finish_removal(&mut self) {
        let Some(place) = self.pick(self.removals.len()) else { return };
        let removal = self.removals.swap_remove(place);
        self.model.set_pending(removal.file().id, false);
    }

    fn set_pending(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        let pending = self.random.one_in(2);
        let (_, handle) = &self.handles[place];
        handle.set_delete_pending(pending).unwrap();
        self.model.set_pending(handle.file().id, pending);
    }

    fn lock(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        let (key, may_wait) = (self.key(), self.random.one_in(2));
        let count = if may_wait { 1 } else { 1 + self.random.below(2) };
        let wanted: Vec<_> = (0..count).map(|_| (self.random.range(), self.random.kind())).collect();
        let (owner, handle) = (self.handles[place].0, Arc::clone(&self.handles[place].1));
        let expected = self.model.lock(key, (owner, handle.file().id), &wanted, may_wait);
        let mut future = Step::of(async move {
            if may_wait { handle.lock(wanted[0].0, wanted[0].1).await } else { handle.lock_now(&wanted).await }
        });
        let real = future.poll();
        assert_eq!(real, expected);
        if real.is_none() {
            self.locking.push((key, future));
        }
    }

    fn withdraw_lock(&mut self) {
        let Some(place) = self.pick(self.locking.len()) else { return };
        let (key, future) = self.locking.swap_remove(place);
        drop(future);
        self.model.withdraw_lock(key);
    }

    fn unlock(&mut self) {
        let Some(place) = self.pick(self.handles.len()) else { return };
        let (any, transfer) = (self.random.range(), self.random.transfer());
        let (key, handle) = &self.handles[place];
        let range = if self.random.one_in(8) { any } else { self.model.locked_by(*key).unwrap_or(any) };
        let real = handle.check_io(range.offset(), range.length(), transfer);
        assert_eq!(real, self.model.check_io(*key, handle.file().id, range, transfer));
        // Last: the table grants at once what waits for it, the model when it settles.
        assert_eq!(handle.unlock(range), self.model.unlock(*key, range));
    }

    fn relocate(&mut self) {
        let Some(place) = self.pick(self.entries.len()) else { return };
        let (_, entry) = &self.entries[place];
        let (_, above) = PLACES[self.random.below(3) as usize];
        let file = entry.file().id;
        if file <= 4 {
            entry.moved_to(Place { path: "moved".to_owned(), above: above.to_vec() });
            self.model.moved(file, above);
            self.above.insert(file, above.to_vec());
        }
    }

    /// Polls everything that waits.
    fn settle(&mut self) {
        let mut expected = self.model.settle();
        let mut ended = Vec::new();
        for (key, mut future) in std::mem::take(&mut self.opening) {
            match future.poll() {
                Some(answer) => {
                    ended.push((key, Outcome::Open(answer.as_ref().map(|_| ()).map_err(|refusal| *refusal))));
                    self.handles.extend(answer.ok().map(|handle| (key, Arc::new(handle))));
                }
                None => self.opening.push((key, future)),
            }
        }
        for (key, mut future) in std::mem::take(&mut self.locking) {
            match future.poll() {
                Some(answer) => ended.push((key, Outcome::Lock(answer))),
                None => self.locking.push((key, future)),
            }
        }
        expected.sort_by_key(|(key, _)| *key);
        ended.sort_by_key(|(key, _)| *key);
        assert_eq!(ended, expected);
    }

    fn compare(&mut self) {
        assert_eq!(self.opens.is_empty(), self.model.is_empty());
        assert!(self.holder.removals.lock().unwrap().is_empty(), "a deletion that is nobody's");
        let ids: Vec<u64> = self.above.keys().copied().collect();
        assert_eq!(&self.opens.pending_among(SHARE, &ids), self.model.pending());
        let reach = if self.random.one_in(2) { Reach::Tree } else { Reach::Node };
        let scope = Scope { file: self.file(), reach };
        let listed: Vec<_> = self.opens.handles(scope, None, 1_000).handles.iter().map(|handle| handle.id).collect();
        let modelled = self.model.handles_in(scope);
        let known = self.handles.iter().filter(|(key, _)| modelled.contains(key));
        let mut expected: Vec<_> = known.map(|(_, handle)| handle.id()).collect();
        expected.sort();
        assert_eq!(listed, expected);
    }

    /// In the order of their names, which is no particular one.
    fn end(self) {
        let Run { opens, entries, handles, opening, locking, removals, holder, .. } = self;
        drop((entries, handles, opening, locking, removals));
        holder.removals.lock().unwrap().clear();
        assert!(opens.is_empty());
    }
}

#[test]
fn random_operations_agree_with_the_model_and_leave_nothing() {
    for seed in 0..100 {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..1_000 {
            run.step();
        }
        run.end();
    }
}
