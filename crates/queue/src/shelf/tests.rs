use super::*;
use crate::model::{Lifetime, Queue};
use crate::testing::{Bench, NOW};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Rows that count how often they are read, with a clock of their own.
#[derive(Default)]
struct Store {
    rows: BTreeMap<Vec<u8>, Bytes>,
    looked: Cell<usize>,
    ticks: u64,
    secs: u64,
}

impl Rows for Store {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.looked.set(self.looked.get() + 1);
        Ok(self.rows.get(key.as_bytes()).cloned())
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        _about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        self.looked.set(self.looked.get() + 1);
        let (from, to) = (from.as_bytes().to_vec(), to.as_bytes().to_vec());
        for (key, row) in self.rows.range(from.clone()..to.max(from)) {
            self.looked.set(self.looked.get() + 1);
            if visit(key, row) == Visit::Stop {
                break;
            }
        }
        Ok(())
    }

    fn content(&self, _: engine::ContentId) -> Result<engine::Content, Unread> {
        unreachable!("queues have no contents")
    }
}

const GENERATION: u64 = 7;

impl Store {
    fn tick(&mut self) -> Tick {
        self.ticks += 16;
        let now = NOW.plus_seconds(self.secs).plus_ticks(self.ticks);
        Tick { now, stamp: now, entropy: u128::from(self.ticks) }
    }

    /// One decision. Returns how many rows it read, and how many it changed.
    fn decide<T>(&mut self, with: impl FnOnce(&mut Shelf<'_>, Tick) -> T) -> (T, usize, usize) {
        let tick = self.tick();
        self.looked.set(0);
        let mut shelf = Shelf::of(self, Key::new(space::QUEUE), GENERATION).unwrap();
        let outcome = with(&mut shelf, tick);
        let mut changes = Changes::none();
        shelf.close(&mut changes);
        let changed = changes.rows.len();
        let looked = self.looked.get();
        self.apply(changes);
        (outcome, looked, changed)
    }

    fn apply(&mut self, changes: Changes) {
        for (key, row) in changes.rows {
            match row {
                Some(row) => self.rows.insert(key.as_bytes().to_vec(), row),
                None => self.rows.remove(key.as_bytes()),
            };
        }
    }

    fn put(&mut self, lifetime: Lifetime) -> (Message, usize, usize) {
        self.decide(|shelf, tick| {
            let message = Message::new(lifetime, 0, tick);
            shelf.put(&message, "text");
            message
        })
    }

    fn take(&mut self, most: usize, secs: u64) -> (TakenMessages, usize, usize) {
        self.decide(|shelf, tick| shelf.take(most, secs, tick).unwrap())
    }

    fn delete(&mut self, message: &Message) -> (bool, usize, usize) {
        self.decide(|shelf, tick| {
            let found = shelf.find(&message.receipt(), tick.now).unwrap();
            found.inspect(|found| shelf.remove(found)).is_some()
        })
    }

    fn marks(&self) -> Marks {
        find_marks(self, GENERATION).unwrap()
    }

    fn count(&self) -> u64 {
        count(self, GENERATION, NOW.plus_seconds(self.secs).plus_ticks(self.ticks)).unwrap()
    }

    fn sweep(&mut self) -> usize {
        let mut steps = 0;
        while let Some(due) = self.marks().due.filter(|due| due.0 <= NOW.plus_seconds(self.secs).0 + self.ticks) {
            steps += 1;
            self.decide(|shelf, tick| shelf.sweep(due, tick.now).unwrap());
        }
        steps
    }

    fn rows_in(&self, space: u8) -> usize {
        self.rows.keys().filter(|key| key[0] == space).count()
    }
}

const WEEK: Lifetime = Lifetime::Seconds(604_800);

#[test]
fn what_it_costs_does_not_depend_on_how_many_there_are() {
    let mut costs = Vec::new();
    for depth in [10, 1_000, 20_000] {
        let mut store = Store::default();
        for _ in 0..depth {
            store.put(WEEK);
        }
        let (_, put_looks, put_changes) = store.put(WEEK);
        let (taken, take_looks, take_changes) = store.take(1, 30);
        let (found, delete_looks, delete_changes) = store.delete(&taken.messages[0].0);
        assert!(found);
        costs.push([put_looks, put_changes, take_looks, take_changes, delete_looks, delete_changes]);
    }
    // Put: marks; message, text, marks. Take: marks, scan, message, text; message twice, marks. Delete: marks, message;
    // message, text, marks.
    assert_eq!(costs, [[1, 3, 4, 3, 2, 3]; 3]);
}

#[test]
fn the_low_mark_is_never_above_a_message() {
    let mut store = Store::default();
    let mut held: Vec<Message> = Vec::new();
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..4_000 {
        match next(8) {
            0..=2 => drop(store.put(if next(3) == 0 { Lifetime::Seconds(1 + next(40)) } else { WEEK })),
            3 | 4 => held.extend(store.take(1 + next(4) as usize, 1 + next(30)).0.messages.into_iter().map(|m| m.0)),
            5 if !held.is_empty() => {
                let message = held.swap_remove(next(held.len() as u64) as usize);
                store.delete(&message);
            }
            6 if !held.is_empty() => {
                let message = held.swap_remove(next(held.len() as u64) as usize);
                let secs = next(20);
                store.decide(|shelf, tick| {
                    let Some(found) = shelf.find(&message.receipt(), tick.now).unwrap() else { return };
                    if let Ok(new) = found.updated(secs, tick) {
                        shelf.replace(&found, &new, None);
                        held.push(new);
                    }
                });
            }
            // Sometimes the clock is set back.
            _ if next(10) == 0 => store.secs = store.secs.saturating_sub(next(60)),
            _ => store.secs += next(10),
        }
        if next(20) == 0 {
            store.sweep();
        }
        let marks = store.marks();
        let first = store.rows.keys().find(|key| key[0] == space::MESSAGE);
        assert!(first.is_none_or(|key| place_of(key).unwrap() >= marks.low), "a message below the low mark");
        let text = store.rows.keys().find(|key| key[0] == space::MESSAGE_TEXT);
        assert!(text.is_none_or(|key| place_of(key).unwrap().at >= marks.swept), "a text that is not swept");
        assert_eq!(store.rows_in(space::MESSAGE_TEXT) as u64, marks.count);
        assert_eq!(store.rows_in(space::MESSAGE) as u64, marks.count + marks.ghosts);
        let earliest = text.map(|key| place_of(key).unwrap().at);
        if let Some(earliest) = earliest {
            assert!(marks.due.is_some_and(|due| due <= whole_second_after(earliest)), "nobody will sweep");
        }
    }
}

/// A count that is wrong must not look right again: the decision fails, and `lazurite check` finds it.
#[test]
#[should_panic(expected = "every text is counted")]
fn a_message_that_was_not_counted_is_not_removed() {
    let mut store = Store::default();
    let message = store.put(WEEK).0;
    let marks = Marks { count: 0, ..store.marks() };
    store.rows.insert(marks_key(GENERATION).as_bytes().to_vec(), codec::encode(&marks));
    store.delete(&message);
}

#[test]
fn asking_an_empty_queue_moves_the_low_mark_now_and_then() {
    let mut store = Store::default();
    store.put(WEEK);
    store.take(1, 600);
    let writes: usize = (0..1_000).map(|_| store.take(1, 30).2).sum();
    assert_eq!(writes, 0, "no time has passed to speak of");
    store.secs += 1;
    let writes: usize = (0..1_000).map(|_| store.take(1, 30).2).sum();
    assert_eq!(writes, 1);
}

#[test]
fn expired_messages_that_nobody_took_leave_nothing() {
    let mut store = Store::default();
    for _ in 0..1_000 {
        store.put(Lifetime::Seconds(5));
    }
    let kept = store.put(WEEK).0;
    store.secs += 5;
    assert_eq!(store.count(), 1_001 - 1_000);
    store.secs += 1;
    assert_eq!(store.sweep(), 10);
    assert_eq!((store.rows_in(space::MESSAGE), store.rows_in(space::MESSAGE_TEXT)), (1, 1));
    assert_eq!((store.marks().ghosts, store.marks().count), (0, 1));
    assert_eq!(store.marks().due, Some(whole_second_after(kept.expires)));
    // There was never more than one due row, and there is one now.
    assert_eq!(store.rows_in(space::DUE), 1);
}

/// The first message is never taken, so takes do not get past it; still the ghosts behind it do not pile up.
#[test]
fn ghosts_do_not_pile_up() {
    let mut store = Store::default();
    store.put(WEEK);
    let mut most = 0;
    for _ in 0..60 {
        for _ in 0..100 {
            let message = store.put(Lifetime::Seconds(5)).0;
            store.decide(|shelf, tick| shelf.replace(&message, &message.updated(1, tick).unwrap(), None));
        }
        store.secs += 6;
        store.sweep();
        assert_eq!(store.marks().count, 1);
        assert_eq!(store.rows_in(space::MESSAGE) as u64, 1 + store.marks().ghosts);
        most = most.max(store.marks().ghosts);
    }
    assert_eq!(most, 1_000);
    store.take(32, 1);
    assert_eq!(store.marks().ghosts, store.rows_in(space::MESSAGE) as u64 - 1);
}

#[test]
fn a_due_row_that_is_out_of_date_does_nothing() {
    let mut store = Store::default();
    store.put(Lifetime::Seconds(50));
    let late = store.marks().due.unwrap();
    store.put(Lifetime::Seconds(5));
    let early = store.marks().due.unwrap();
    assert!(early < late);
    assert_eq!(store.rows_in(space::DUE), 1);
    store.secs += 100;
    let before = store.rows.clone();
    let (more, _, changed) = store.decide(|shelf, tick| shelf.sweep(late, tick.now).unwrap());
    assert_eq!((more, changed, store.rows == before), (false, 0, true));
}

#[test]
fn due_rows_name_their_queue() {
    let queue = Key::new(space::QUEUE).number(1).text("que");
    let asked = |key: Key| DueWork::of(&Due::from_key(key.as_bytes()).unwrap());
    let expiry = asked(expiry_due(NOW, 9, &queue));
    assert_eq!(expiry, Some(DueWork::Expiry { generation: 9, queue }));
    assert_eq!(asked(purge_due(NOW, 9)), Some(DueWork::Purge { generation: 9 }));
    for (space, owner) in [(space::MESSAGE_TEXT, &b""[..]), (space::QUEUE, &[1; 8]), (space::QUEUE_MARKS, &[1])] {
        assert_eq!(DueWork::of(&Due::new(NOW, space, owner)), None);
    }
}

/// A ghost, after the clock was set back to before the message expired.
fn haunted() -> (Store, Message) {
    let mut store = Store::default();
    let short = store.put(Lifetime::Seconds(5)).0;
    let (moved, ..) = store.decide(|shelf, tick| {
        let moved = short.updated(0, tick).unwrap();
        shelf.replace(&short, &moved, None);
        moved
    });
    store.put(WEEK);
    store.secs += 6;
    assert_eq!((store.sweep(), store.marks().ghosts, store.marks().count), (1, 1, 1));
    store.secs -= 6;
    (store, moved)
}

#[test]
fn a_ghost_is_not_seen_after_the_clock_went_back() {
    let (mut store, ghost) = haunted();
    let now = store.tick().now;
    for most in [1, 32] {
        assert_eq!(peek(&store, GENERATION, most, now).unwrap().len(), 1, "{most}");
    }
    let (taken, ..) = store.take(1, 30);
    assert_eq!((taken.messages.len(), taken.unfinished), (0, true), "somebody stands behind the ghost");
    assert_eq!((store.marks().ghosts, store.rows_in(space::MESSAGE)), (0, 1));
    assert_eq!(store.take(1, 30).0.messages.len(), 1);
    let (mut store, _) = haunted();
    assert!(!store.delete(&ghost).0, "it is not found by its receipt");
    assert_eq!((store.marks().count, store.marks().ghosts), (1, 1));
}

/// The rows of a generation that was abandoned, after all steps of its purge.
fn purge_all(store: &mut Store) {
    loop {
        let mut changes = Changes::none();
        let more = purge(store, GENERATION, &mut changes).unwrap();
        store.apply(changes);
        if !more {
            return;
        }
    }
}

#[test]
fn a_purge_after_half_a_hunt_leaves_nothing() {
    // The sweeper may have read its due row before the queue was deleted, and come for another step.
    for sweeper_comes_late in [false, true] {
        let mut store = Store::default();
        for _ in 0..1_200 {
            let message = store.put(Lifetime::Seconds(5)).0;
            store.decide(|shelf, tick| shelf.replace(&message, &message.updated(3, tick).unwrap(), None));
        }
        store.put(WEEK);
        store.secs += 6;
        while store.marks().hunted.is_none() {
            let due = store.marks().due.unwrap();
            store.decide(|shelf, tick| shelf.sweep(due, tick.now).unwrap());
        }
        let due = store.marks().due.unwrap();
        // After the clock was set back, a text expires before the time that the search for ghosts has reached.
        store.secs = 0;
        store.put(Lifetime::Seconds(1));
        let due = store.marks().due.unwrap_or(due);
        let now = store.tick().now;
        let mut changes = Changes::none();
        Shelf::of(&store, Key::new(space::QUEUE), GENERATION).unwrap().abandon(now, &mut changes);
        store.apply(changes);
        if sweeper_comes_late {
            store.secs += 100;
            store.decide(|shelf, tick| shelf.sweep(due, tick.now).unwrap());
        }
        purge_all(&mut store);
        assert_eq!((store.rows_in(space::MESSAGE), store.rows_in(space::MESSAGE_TEXT)), (0, 0));
        assert_eq!((store.rows_in(space::QUEUE_MARKS), store.rows_in(space::DUE)), (0, 1), "the purge's own due row");
    }
}

#[test]
fn nothing_is_left_of_a_message_that_was_put_and_deleted() {
    let mut store = Store::default();
    let message = store.put(Lifetime::Forever).0;
    assert!(store.delete(&message).0);
    assert_eq!(store.rows.len(), 0);
}

#[tokio::test]
async fn a_message_without_its_text_is_as_if_it_were_gone() {
    let bench = Bench::with_queue().await;
    bench.put("a").await;
    let name = QueueName::parse("que").unwrap();
    engine::commit::<(), crate::QueueError, _>(&*bench.engine, Key::new(space::QUEUE), move |rows, _| {
        let row = rows.get(&queue_key(1, &name))?.unwrap();
        let generation = codec::decode::<Queue>(&row)?.generation;
        let mut changes = Changes::none();
        let all = texts_of(generation);
        delete_some(rows, &all, &all.after_all(), 10, &mut changes, |_, _, _| {})?;
        Ok(engine::Commit { changes, outcome: () })
    })
    .await
    .unwrap();
    bench.put("b").await;
    assert_eq!(bench.peek(1).await, ["b"]);
    let taken = bench.take(1, 30).await;
    assert_eq!(taken.iter().map(|taken| taken.text.as_str()).collect::<Vec<_>>(), ["b"]);
}
