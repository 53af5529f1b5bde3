//! What every engine must do, as tests that each engine runs: memory, embedded, and those to come.
//!
//! `conformance_tests!(make)` turns each of these into a test of the calling crate; `make` gives a fresh engine.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::{
    Changes, Commit, Content, ContentId, Engine, EngineError, INLINE_MAX, Key, NotCommitted, PREFETCH_KEYS_MAX,
    Partitions, Rows, Staged, Stop, Timestamp, Unread, VALUE_BYTES_MAX, Visit, account, collector, commit, read, space,
};

/// Runs every test of this module against engines made by `$make` (an expression that gives an `Arc<dyn Engine>`). After
/// `optional` it gives an `Option`, and `None` where what the engine needs is not installed, having said so.
#[macro_export]
macro_rules! conformance_tests {
    (optional $make:expr) => {
        $crate::conformance_tests!(@all $make);
    };
    ($make:expr) => {
        $crate::conformance_tests!(@all Some($make));
    };
    (@all $make:expr) => {
        $crate::conformance_tests!(@each $make;
            a_commit_is_seen_by_every_later_read, a_refusal_changes_nothing, decisions_see_those_before_them,
            one_winner_per_version, the_later_of_two_writes_counts, stamps_rise_and_ids_never_repeat,
            stamps_rise_past_decisions_over_many_rows, many_rows_are_judged_as_one_state, many_rows_that_another_partition_writes_are_judged_as_one_state,
            rows_of_another_partition_are_as_they_were_read, two_partitions_never_make_the_same_row, decisions_with_a_partition_in_common_are_judged_in_turn,
            a_row_that_leads_to_another_is_the_newest, announced_rows_are_seen_as_they_are,
            an_announced_row_that_is_not_looked_at_makes_no_conflict, scans_keep_order_and_bounds, scans_skip_and_stop, a_read_is_one_state, contents_come_back_whole,
            ranges_of_contents_are_right, small_contents_are_read_again, a_content_nobody_stored_is_not_there,
            an_open_content_outlives_its_owner, the_last_reference_takes_the_content_along,
            account_ids_stay, the_clock_only_goes_forward, a_row_too_large_is_refused_whole,
            a_panicking_decision_harms_nobody_else, a_closed_engine_takes_nothing
        );
    };
    (@each $make:expr; $($name:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if let Some(engine) = $make {
                $crate::conformance::$name(engine).await;
            }
        })+
    };
}

const SPACE: u8 = 0x70;

fn key(text: &str) -> Key {
    Key::new(SPACE).text(text)
}

async fn put(engine: &dyn Engine, name: &str, value: impl Into<Bytes>) {
    let (key, value) = (key(name), value.into());
    commit::<(), Infallible, _>(engine, key.clone(), move |_, _| {
        let mut changes = Changes::none();
        changes.put(key.clone(), value.clone());
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a plain write");
}

async fn get(engine: &dyn Engine, name: &str) -> Option<Bytes> {
    let key = key(name);
    read::<_, Infallible, _>(engine, move |rows, _| Ok(rows.get(&key)?)).await.expect("a plain read")
}

fn number(row: Option<Bytes>) -> u64 {
    row.map_or(0, |row| u64::from_be_bytes(row.as_ref().try_into().expect("eight bytes")))
}

/// Adds one to the row and answers its new value.
async fn increment(engine: &dyn Engine, name: &str) -> u64 {
    let key = key(name);
    commit::<u64, Infallible, _>(engine, key.clone(), move |rows, _| {
        let next = number(rows.get(&key)?) + 1;
        let mut changes = Changes::none();
        changes.put(key.clone(), Bytes::copy_from_slice(&next.to_be_bytes()));
        Ok(Commit { changes, outcome: next })
    })
    .await
    .expect("an increment")
}

async fn stage(engine: &dyn Engine, bytes: &Bytes, piece: usize) -> Staged {
    let mut writer = engine.writer(Some(bytes.len() as u64));
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        writer.write(rest.split_to(piece.min(rest.len()))).await.expect("a piece");
    }
    writer.finish().await.expect("a staged content")
}

/// Stores a content referred to by `owner` and returns its id.
async fn store(engine: &dyn Engine, bytes: &Bytes, owner: u64) -> ContentId {
    let staged = stage(engine, bytes, 100_000).await;
    let id = staged.id();
    commit::<(), Infallible, _>(engine, key("store"), move |_, _| {
        let mut changes = Changes::none();
        changes.store(&staged, owner);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a stored content");
    id
}

async fn open(engine: &dyn Engine, id: ContentId) -> Result<Content, NotCommitted<Infallible>> {
    read(engine, move |rows, _| Ok(rows.content(id)?)).await
}

async fn read_all(content: &Content, from: u64, to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while from + (out.len() as u64) < to {
        let at = from + out.len() as u64;
        let most = usize::try_from(to - at).expect("fits").min(256 * 1024);
        let bytes = content.read(at, most).await.expect("bytes");
        assert!(!bytes.is_empty() && bytes.len() <= most);
        out.extend_from_slice(&bytes);
    }
    out
}

fn noise(length: usize, seed: u64) -> Bytes {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(length.div_ceil(8)).flatten().collect();
    bytes.truncate(length);
    Bytes::from(bytes)
}

fn figure(engine: &dyn Engine, name: &str) -> u64 {
    engine.figures().iter().find(|(figure, _)| *figure == name).map_or(0, |(_, value)| *value)
}

pub async fn a_commit_is_seen_by_every_later_read(engine: Arc<dyn Engine>) {
    assert_eq!(get(&*engine, "a").await, None);
    put(&*engine, "a", "1").await;
    assert_eq!(get(&*engine, "a").await.as_deref(), Some(&b"1"[..]));
    put(&*engine, "a", "2").await;
    let other = Arc::clone(&engine);
    let seen = tokio_free_spawn(async move { get(&*other, "a").await });
    assert_eq!(seen.as_deref(), Some(&b"2"[..]));
}

/// Runs a future on a thread of its own: another connection.
fn tokio_free_spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    std::thread::spawn(move || block_on(future)).join().expect("the other thread")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

pub async fn a_refusal_changes_nothing(engine: Arc<dyn Engine>) {
    put(&*engine, "a", "7").await;
    let refused = commit::<(), &str, _>(&*engine, key("a"), |_, _| Err(Stop::Refused("no"))).await;
    assert_eq!(refused, Err(NotCommitted::Refused("no")));
    assert_eq!(get(&*engine, "a").await.as_deref(), Some(&b"7"[..]));
}

pub async fn decisions_see_those_before_them(engine: Arc<dyn Engine>) {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let engine = Arc::clone(&engine);
            std::thread::spawn(move || {
                block_on(async {
                    let mut seen = Vec::new();
                    for _ in 0..50 {
                        seen.push(increment(&*engine, "counter").await);
                    }
                    seen
                })
            })
        })
        .collect();
    let mut seen: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().expect("a writer")).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=400).collect::<Vec<u64>>(), "every value exactly once");
    assert_eq!(number(get(&*engine, "counter").await), 400);
}

pub async fn one_winner_per_version(engine: Arc<dyn Engine>) {
    increment(&*engine, "version").await;
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let engine = Arc::clone(&engine);
            std::thread::spawn(move || block_on(race(&*engine)))
        })
        .collect();
    let won: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().expect("a writer")).collect();
    let distinct: HashSet<u64> = won.iter().copied().collect();
    assert_eq!(distinct.len(), won.len(), "no version has two winners");
    assert_eq!(number(get(&*engine, "version").await), won.len() as u64 + 1, "no update is lost");
}

/// Reads a version and tries to replace just that one, forty times. Returns the versions it replaced.
async fn race(engine: &dyn Engine) -> Vec<u64> {
    let mut won = Vec::new();
    for _ in 0..40 {
        let seen = number(get(engine, "version").await);
        let key = key("version");
        let tried = commit::<(), (), _>(engine, key.clone(), move |rows, _| {
            if number(rows.get(&key)?) != seen {
                return Err(Stop::Refused(()));
            }
            let mut changes = Changes::none();
            changes.put(key.clone(), Bytes::copy_from_slice(&(seen + 1).to_be_bytes()));
            Ok(Commit { changes, outcome: () })
        });
        if tried.await.is_ok() {
            won.push(seen);
        }
    }
    won
}

pub async fn the_later_of_two_writes_counts(engine: Arc<dyn Engine>) {
    commit::<(), Infallible, _>(&*engine, key("a"), |_, _| {
        let mut changes = Changes::none();
        changes.put(key("a"), "first").put(key("a"), "second").put(key("b"), "x").delete(key("b"));
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("committed");
    assert_eq!(get(&*engine, "a").await.as_deref(), Some(&b"second"[..]));
    assert_eq!(get(&*engine, "b").await, None);
}

pub async fn stamps_rise_and_ids_never_repeat(engine: Arc<dyn Engine>) {
    let mut last = Timestamp(0);
    let mut ids = HashSet::new();
    for _ in 0..200 {
        let (stamp, some) = commit::<_, Infallible, _>(&*engine, key("t"), |_, tick| {
            Ok(Commit::unchanged((tick.stamp, [tick.id(0), tick.id(1), tick.id(15)])))
        })
        .await
        .expect("a tick");
        assert!(stamp > last);
        last = stamp;
        assert!(some.iter().all(|id| ids.insert(*id)), "an id came twice");
        let content = stage(&*engine, &Bytes::from_static(b"x"), 1).await;
        assert!(ids.insert(content.id().0), "a content has an id of its own");
    }
}

/// Decisions over so many rows that an engine may run them beside the others write their stamp into a row. They are of two
/// partitions. Decisions of one of the two, which write nothing that the large ones read, read that row: a decision that comes
/// before the large one has a lower stamp, and one that comes after it a higher one.
pub async fn stamps_rise_past_decisions_over_many_rows(engine: Arc<dyn Engine>) {
    let many = Key::new(SPACE).text("many");
    let fill = many.clone();
    commit::<(), Infallible, _>(&*engine, key("p"), move |_, _| {
        let mut changes = Changes::none();
        for number in 0..1_500 {
            changes.put(fill.clone().number(number), "x");
        }
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("many rows");
    let stop = Arc::new(AtomicBool::new(false));
    let others = (0..4).map(|other| {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !stop.load(Ordering::Acquire) {
                let partition = key(if other % 2 == 0 { "p" } else { "q" });
                let decided = commit::<(u64, u64), Infallible, _>(&*engine, partition, move |rows, tick| {
                    let before = number(rows.get(&key("stamp"))?);
                    let mut changes = Changes::none();
                    changes.put(key(&format!("other {other}")), "x");
                    Ok(Commit { changes, outcome: (before, tick.stamp.0) })
                });
                seen.push(block_on(decided).expect("decided"));
            }
            seen
        })
    });
    let others: Vec<_> = others.collect();
    let mut stamps = Vec::new();
    for _ in 0..20 {
        let (many, both) = (many.clone(), Partitions::of([key("q"), key("p")]));
        let decided = commit::<u64, Infallible, _>(&*engine, both, move |rows, tick| {
            rows.scan(&many, &many.after_all(), 2_000, &mut |_, _| Visit::Next)?;
            let mut changes = Changes::none();
            changes.put(key("stamp"), Bytes::copy_from_slice(&tick.stamp.0.to_be_bytes()));
            Ok(Commit { changes, outcome: tick.stamp.0 })
        });
        stamps.push(decided.await.expect("decided"));
    }
    stop.store(true, Ordering::Release);
    assert!(stamps.is_sorted(), "{stamps:?}");
    for (before, stamp) in others.into_iter().flat_map(|other| other.join().expect("no panic")) {
        let after = stamps.iter().find(|after| **after > before).copied().unwrap_or(u64::MAX);
        assert!(before < stamp && stamp < after, "{stamp} came between {before} and {after}");
    }
}

/// Decisions that count thousands of rows and add one, while a guard in another partition changes: none is lost.
pub async fn many_rows_are_judged_as_one_state(engine: Arc<dyn Engine>) {
    let row = |number: u64| Key::new(SPACE).text("many").number(number);
    commit::<(), Infallible, _>(&*engine, key("many"), move |_, _| {
        let mut changes = Changes::none();
        for number in 0..3_000 {
            changes.put(row(number), "x");
        }
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("many rows");
    let count_and_add = move |engine: &dyn Engine| {
        let decision = move |rows: &dyn crate::Rows, _| {
            let guard = number(rows.get(&key("guard"))?);
            let (from, mut count) = (Key::new(SPACE).text("many"), 0);
            rows.scan(&from, &from.after_all(), 3_000, &mut |_, _| {
                count += 1;
                Visit::Next
            })?;
            assert_eq!(guard, number(rows.get(&key("guard"))?));
            let mut changes = Changes::none();
            changes.put(row(count), "x");
            Ok(Commit { changes, outcome: (count, guard) })
        };
        block_on(commit::<(u64, u64), Infallible, _>(engine, key("many"), decision)).expect("counted")
    };
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let engine = Arc::clone(&engine);
            std::thread::spawn(move || (0..8).map(|_| count_and_add(&*engine)).collect::<Vec<_>>())
        })
        .collect();
    for _ in 0..20 {
        increment(&*engine, "guard").await;
    }
    let seen: Vec<(u64, u64)> = threads.into_iter().flat_map(|thread| thread.join().expect("a writer")).collect();
    let mut counts: Vec<u64> = seen.iter().map(|(count, _)| *count).collect();
    counts.sort_unstable();
    assert_eq!(counts, (3_000..3_024).collect::<Vec<u64>>(), "every count exactly once");
}

/// A gate, and so many rows behind it that a decision over all of them may be run beside the others. Writers of another
/// partition put, change and delete rows as long as they read that the gate is open; the decision that closes it writes
/// down what it found there. Whatever the order, nothing may be written behind the gate after that.
pub async fn many_rows_that_another_partition_writes_are_judged_as_one_state(engine: Arc<dyn Engine>) {
    const ROWS: u64 = 1_500;
    let behind = Key::new(SPACE).text("behind");
    let fill = behind.clone();
    commit::<(), Infallible, _>(&*engine, behind.clone(), move |_, _| {
        let mut changes = Changes::none();
        for number in 0..ROWS {
            changes.put(fill.clone().number(number), Bytes::copy_from_slice(&number.to_be_bytes()));
        }
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("many rows");
    for round in 0..8 {
        put(&*engine, "gate", "open").await;
        let writers = (0..4).map(|writer| {
            let (engine, behind) = (Arc::clone(&engine), behind.clone());
            std::thread::spawn(move || block_on(write_while_open(engine, behind, round * 4 + writer)))
        });
        let writers: Vec<_> = writers.collect();
        let sum = behind.clone();
        let closed = commit::<(u64, u64), Infallible, _>(&*engine, key("gate"), move |rows, _| {
            let found = count_and_sum(rows, &sum)?;
            let mut changes = Changes::none();
            changes.put(key("gate"), "closed");
            Ok(Commit { changes, outcome: found })
        });
        let closed = closed.await.expect("the gate is closed");
        for writer in writers {
            writer.join().expect("a writer");
        }
        let all = behind.clone();
        let left = read::<_, Infallible, _>(&*engine, move |rows, _| Ok(count_and_sum(rows, &all)?)).await;
        assert_eq!(left.expect("a read"), closed, "round {round}: something was written behind the closed gate");
    }
}

fn count_and_sum(rows: &dyn Rows, behind: &Key) -> Result<(u64, u64), Unread> {
    let mut found = (0, 0_u64);
    rows.scan(behind, &behind.after_all(), 2_000, &mut |_, row| {
        found = (found.0 + 1, found.1.wrapping_add(number(Some(row.clone()))));
        Visit::Next
    })?;
    Ok(found)
}

/// Writes rows behind the gate until it is closed: new ones, changed ones, and deletes.
async fn write_while_open(engine: Arc<dyn Engine>, behind: Key, writer: u64) {
    for turn in 0_u64.. {
        let behind = behind.clone();
        let written = commit::<(), (), _>(&*engine, key(&format!("writer {writer}")), move |rows, tick| {
            if rows.get(&key("gate"))?.is_none_or(|gate| gate != "open") {
                return Err(Stop::Refused(()));
            }
            let mut changes = Changes::none();
            let (new, old) = (behind.clone().number(10_000 + tick.id(0)), behind.clone().number(writer * 31 + turn));
            match turn % 3 {
                0 => changes.put(new, Bytes::copy_from_slice(&turn.to_be_bytes())),
                1 => changes.put(old, Bytes::copy_from_slice(&(turn << 20).to_be_bytes())),
                _ => changes.delete(old),
            };
            Ok(Commit { changes, outcome: () })
        });
        match written.await {
            Ok(()) => {}
            Err(NotCommitted::Refused(())) => return,
            Err(NotCommitted::Failed(error)) => panic!("a write failed: {error}"),
        }
    }
}

/// Two threads at once: each asks for `one` of the two, with its number and the round.
async fn two_at_once<F, W>(engine: &Arc<dyn Engine>, round: u64, one: F)
where
    F: Fn(Arc<dyn Engine>, u64, u64) -> W + Clone + Send + 'static,
    W: Future<Output = ()>,
{
    let begin = Arc::new(std::sync::Barrier::new(2));
    let threads = [0, 1].map(|number| {
        let (engine, one, begin) = (Arc::clone(engine), one.clone(), Arc::clone(&begin));
        std::thread::spawn(move || {
            begin.wait();
            block_on(one(engine, number, round));
        })
    });
    for thread in threads {
        thread.join().expect("a thread");
    }
}

const ROUNDS_AT_ONCE: u64 = 40;
const ROWS_AT_ONCE: u64 = 500;

/// Each of two partitions has a guard, and one may leave only while it reads that the other is there: never both leave.
pub async fn rows_of_another_partition_are_as_they_were_read(engine: Arc<dyn Engine>) {
    let guard = |number: u64| key(&format!("guard {number}"));
    let leave = move |engine: Arc<dyn Engine>, number: u64, _: u64| async move {
        let (own, other) = (guard(number), guard(1 - number));
        let left = commit::<(), (), _>(&*engine, own.clone(), move |rows, _| {
            if rows.get(&other)?.is_none_or(|other| other != "there") {
                return Err(Stop::Refused(()));
            }
            let mut changes = Changes::none();
            changes.put(own.clone(), "away");
            Ok(Commit { changes, outcome: () })
        });
        assert!(matches!(left.await, Ok(()) | Err(NotCommitted::Refused(()))));
    };
    for round in 0..ROUNDS_AT_ONCE {
        put(&*engine, "guard 0", "there").await;
        put(&*engine, "guard 1", "there").await;
        two_at_once(&engine, round, leave).await;
        let there = [get(&*engine, "guard 0").await, get(&*engine, "guard 1").await];
        let there = there.iter().filter(|guard| guard.as_deref() == Some(b"there")).count();
        assert_eq!(there, 1, "round {round}: one leaves, and one stays");
    }
}

/// Two partitions make the same row if it is not there: one of them does.
pub async fn two_partitions_never_make_the_same_row(engine: Arc<dyn Engine>) {
    let made = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&made);
    let make = move |engine: Arc<dyn Engine>, number: u64, round: u64| {
        let made = Arc::clone(&counted);
        async move {
            let row = key(&format!("new {round}"));
            let decided = commit::<(), (), _>(&*engine, key(&format!("maker {number}")), move |rows, _| {
                if rows.get(&row)?.is_some() {
                    return Err(Stop::Refused(()));
                }
                let mut changes = Changes::none();
                changes.put(row.clone(), "made");
                Ok(Commit { changes, outcome: () })
            });
            match decided.await {
                Ok(()) => _ = made.fetch_add(1, Ordering::AcqRel),
                Err(NotCommitted::Refused(())) => {}
                Err(NotCommitted::Failed(error)) => panic!("round {round}: {error}"),
            }
        }
    };
    for round in 0..ROUNDS_AT_ONCE {
        two_at_once(&engine, round, make.clone()).await;
        assert_eq!(made.load(Ordering::Acquire), round + 1);
    }
}

/// Each of two decisions counts the rows of a range and, if there are none, puts some into the range of the other. Nothing is
/// there that both could meet at, but one of them names the partition of the other: never both put.
pub async fn decisions_with_a_partition_in_common_are_judged_in_turn(engine: Arc<dyn Engine>) {
    let range = |number: u64, round: u64| Key::new(SPACE).text(format!("side {number}")).number(round);
    let decide = move |engine: Arc<dyn Engine>, number: u64, round: u64| async move {
        let partitions = match number {
            0 => Partitions::of([key("side 1"), key("side 0")]),
            _ => Partitions::of([key("side 2"), key("side 1")]),
        };
        let (own, other) = (range(number, round), range(1 - number, round));
        let decided = commit::<(), (), _>(&*engine, partitions, move |rows, _| {
            let mut count = 0;
            rows.scan(&other, &other.after_all(), 1, &mut |_, _| {
                count += 1;
                Visit::Next
            })?;
            if count > 0 {
                return Err(Stop::Refused(()));
            }
            // Many, so that the commit takes a while after it was looked at what the decision relies on.
            let mut changes = Changes::none();
            for row in 0..ROWS_AT_ONCE {
                changes.put(own.clone().number(row), "x");
            }
            Ok(Commit { changes, outcome: () })
        });
        assert!(matches!(decided.await, Ok(()) | Err(NotCommitted::Refused(()))));
    };
    for round in 0..ROUNDS_AT_ONCE {
        two_at_once(&engine, round, decide).await;
        let count = read::<usize, Infallible, _>(&*engine, move |rows, _| {
            let there = [0, 1].map(|number| rows.get(&range(number, round).number(0)));
            Ok(there.into_iter().collect::<Result<Vec<_>, Unread>>()?.iter().flatten().count())
        });
        assert_eq!(count.await, Ok(1), "round {round}: one puts, and the other sees it");
    }
}

/// The value of the row that the row "lead" names. Engines that fetch rows may guess what "lead" says.
fn follow_lead(rows: &dyn Rows) -> Result<Option<Bytes>, Unread> {
    let Some(lead) = rows.get(&key("lead"))? else { return Ok(None) };
    rows.get(&key(&String::from_utf8_lossy(&lead)))
}

pub async fn a_row_that_leads_to_another_is_the_newest(engine: Arc<dyn Engine>) {
    put(&*engine, "one", "1").await;
    put(&*engine, "two", "2").await;
    for round in 0..6 {
        let (name, value) = [("one", Some("1")), ("two", Some("2")), ("none", None)][round % 3];
        put(&*engine, "lead", name).await;
        let expected = value.map(|value| Bytes::from_static(value.as_bytes()));
        for _ in 0..2 {
            let seen = read::<_, Infallible, _>(&*engine, |rows, _| Ok(follow_lead(rows)?)).await;
            assert_eq!(seen, Ok(expected.clone()), "a read in round {round}");
            let decided = commit::<_, Infallible, _>(&*engine, key("copy"), |rows, _| {
                let found = follow_lead(rows)?;
                let mut changes = Changes::none();
                changes.rows.push((key("copy"), found.clone()));
                Ok(Commit { changes, outcome: found })
            });
            assert_eq!(decided.await, Ok(expected.clone()), "a decision in round {round}");
            assert_eq!(get(&*engine, "copy").await, expected, "round {round}");
        }
    }
    commit::<(), Infallible, _>(&*engine, key("lead"), |_, _| {
        let mut changes = Changes::none();
        changes.delete(key("lead"));
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("the lead is gone");
    let refused = commit::<(), &str, _>(&*engine, key("copy"), |rows, _| match follow_lead(rows)? {
        Some(_) => Ok(Commit::unchanged(())),
        None => Err(Stop::Refused("there is no lead")),
    });
    assert_eq!(refused.await, Err(NotCommitted::Refused("there is no lead")));
}

/// Rows that are there or not, announced twice, after they were read, or in larger numbers than an engine takes note of.
pub async fn announced_rows_are_seen_as_they_are(engine: Arc<dyn Engine>) {
    let row = |number: u64| Key::new(SPACE).text("announced").number(number);
    let all: Vec<Key> = (0..2 * PREFETCH_KEYS_MAX as u64).map(row).collect();
    for round in 1..=2_u64 {
        let announced = all.clone();
        let found = commit::<u64, Infallible, _>(&*engine, key("announced"), move |rows, _| {
            let first = number(rows.get(&announced[0])?);
            rows.prefetch(&announced);
            rows.prefetch(&announced[..3]);
            let mut changes = Changes::none();
            for key in &announced {
                let value = number(rows.get(key)?);
                assert_eq!(value, first, "one state");
                changes.put(key.clone(), Bytes::copy_from_slice(&(value + 1).to_be_bytes()));
            }
            Ok(Commit { changes, outcome: first })
        });
        assert_eq!(found.await, Ok(round - 1));
        let announced = all.clone();
        let sum = read::<u64, Infallible, _>(&*engine, move |rows, _| {
            rows.prefetch(&announced);
            let values = announced.iter().map(|key| Ok(number(rows.get(key)?)));
            Ok(values.sum::<Result<u64, Unread>>()?)
        });
        assert_eq!(sum.await, Ok(round * all.len() as u64));
    }
}

/// Decisions that announce a row, and do not look at it, while another partition changes it all the time.
pub async fn an_announced_row_that_is_not_looked_at_makes_no_conflict(engine: Arc<dyn Engine>) {
    let before = figure(&*engine, "conflicts");
    let other = Arc::clone(&engine);
    let writer = std::thread::spawn(move || {
        block_on(async {
            for _ in 0..100 {
                increment(&*other, "noise").await;
            }
        })
    });
    for round in 1..=100 {
        let counted = commit::<u64, Infallible, _>(&*engine, key("calm"), |rows, _| {
            rows.prefetch(&[key("noise"), key("calm")]);
            let next = number(rows.get(&key("calm"))?) + 1;
            let mut changes = Changes::none();
            changes.put(key("calm"), Bytes::copy_from_slice(&next.to_be_bytes()));
            Ok(Commit { changes, outcome: next })
        });
        assert_eq!(counted.await, Ok(round));
    }
    writer.join().expect("the writer");
    assert_eq!(number(get(&*engine, "noise").await), 100);
    assert_eq!(figure(&*engine, "conflicts"), before, "no decision read what another one wrote");
}

pub async fn scans_keep_order_and_bounds(engine: Arc<dyn Engine>) {
    let names = ["", "a", "a\0", "a/1", "a/2", "b", "c", "\u{e9}"];
    for name in names.iter().rev() {
        put(&*engine, name, name.as_bytes().to_vec()).await;
    }
    let all = scan(&*engine, &Key::new(SPACE), &Key::new(SPACE).after_all(), |_| Visit::Next).await;
    assert_eq!(all, names);
    let some = scan(&*engine, &key("a/1"), &key("c"), |_| Visit::Next).await;
    assert_eq!(some, ["a/1", "a/2", "b"]);
    let prefixed = Key::new(SPACE).text_prefix("a");
    let some = scan(&*engine, &prefixed, &prefixed.after_all(), |_| Visit::Next).await;
    assert_eq!(some, ["a", "a\0", "a/1", "a/2"]);
    assert!(scan(&*engine, &key("c"), &key("a"), |_| Visit::Next).await.is_empty());
}

async fn scan(
    engine: &dyn Engine,
    from: &Key,
    to: &Key,
    mut visit: impl FnMut(&str) -> Visit + Send + 'static,
) -> Vec<String> {
    let (from, to) = (from.clone(), to.clone());
    read::<_, Infallible, _>(engine, move |rows, _| {
        let mut seen = Vec::new();
        rows.scan(&from, &to, 10, &mut |key, value| {
            let name = String::from_utf8(value.to_vec()).expect("text");
            assert_eq!(key, self::key(&name).as_bytes());
            let next = visit(&name);
            seen.push(name);
            next
        })?;
        Ok(seen)
    })
    .await
    .expect("a scan")
}

pub async fn scans_skip_and_stop(engine: Arc<dyn Engine>) {
    for number in 0..300 {
        let name = format!("{number:03}");
        put(&*engine, &name, name.clone()).await;
    }
    let (from, to) = (Key::new(SPACE), Key::new(SPACE).after_all());
    let tens = scan(&*engine, &from, &to, |name| {
        let next = name.parse::<u32>().expect("a number") + 10;
        Visit::SkipTo(key(&format!("{next:03}")))
    });
    let expected: Vec<String> = (0..300).step_by(10).map(|number| format!("{number:03}")).collect();
    assert_eq!(tens.await, expected, "far skips");
    let even = scan(&*engine, &from, &to, |name| {
        let next = name.parse::<u32>().expect("a number") + 2;
        Visit::SkipTo(key(&format!("{next:03}")))
    });
    assert_eq!(even.await.len(), 150, "near skips");
    let stopped = scan(&*engine, &from, &to, |name| if name == "041" { Visit::Stop } else { Visit::Next }).await;
    assert_eq!(stopped.len(), 42);
    let end = to.clone();
    let past = scan(&*engine, &from, &to, move |_| Visit::SkipTo(end.clone())).await;
    assert_eq!(past, ["000"], "a skip to the end ends");
}

pub async fn a_read_is_one_state(engine: Arc<dyn Engine>) {
    let writer = {
        let engine = Arc::clone(&engine);
        std::thread::spawn(move || {
            block_on(async {
                for round in 0..200_u32 {
                    commit::<(), Infallible, _>(&*engine, key("x"), move |_, _| {
                        let mut changes = Changes::none();
                        for name in ["x", "y", "z"] {
                            changes.put(key(name), Bytes::copy_from_slice(&round.to_be_bytes()));
                        }
                        Ok(Commit { changes, outcome: () })
                    })
                    .await
                    .expect("a round");
                }
            });
        })
    };
    while !writer.is_finished() {
        let (x, y, z, scanned) = read::<_, Infallible, _>(&*engine, |rows, _| {
            let x = rows.get(&key("x"))?;
            std::thread::yield_now();
            let mut scanned = Vec::new();
            rows.scan(&key("x"), &Key::new(SPACE).after_all(), 3, &mut |_, value| {
                scanned.push(value.clone());
                Visit::Next
            })?;
            Ok((x, rows.get(&key("y"))?, rows.get(&key("z"))?, scanned))
        })
        .await
        .expect("a read");
        assert!(x == y && y == z, "{x:?} {y:?} {z:?}");
        assert!(scanned.iter().all(|value| Some(value) == x.as_ref()), "the scan shows another state");
    }
    writer.join().expect("the writer");
}

pub async fn contents_come_back_whole(engine: Arc<dyn Engine>) {
    let sizes = [0, 1, 4096, INLINE_MAX - 1, INLINE_MAX, INLINE_MAX + 1, 1 << 20, (8 << 20) + 1, 20_000_003];
    for (owner, size) in (1..).zip(sizes) {
        let bytes = noise(size, owner);
        let id = store(&*engine, &bytes, owner).await;
        let content = open(&*engine, id).await.expect("opened");
        assert_eq!(content.length(), size as u64);
        assert!(read_all(&content, 0, size as u64).await == bytes, "{size} bytes");
        assert!(content.read(size as u64, 10).await.expect("the end").is_empty());
    }
}

pub async fn ranges_of_contents_are_right(engine: Arc<dyn Engine>) {
    let bytes = noise(9_000_000, 5);
    let id = store(&*engine, &bytes, 1).await;
    let content = open(&*engine, id).await.expect("opened");
    let ranges =
        [(0, 1), (65_535, 65_537), (65_536, 131_072), (8_388_600, 8_388_620), (8_999_999, 9_000_000), (1, 9_000_000)];
    for (from, to) in ranges {
        let part = read_all(&content, from, to).await;
        let (from, to) = (usize::try_from(from).expect("fits"), usize::try_from(to).expect("fits"));
        assert!(part == bytes.slice(from..to), "{from}..{to}");
    }
}

/// A part, the whole, the whole and a part again: an engine may keep what was read in memory, until the content is gone.
pub async fn small_contents_are_read_again(engine: Arc<dyn Engine>) {
    for (owner, size) in (1..).zip([10_usize, 4096, 16_384, 16_385]) {
        let bytes = noise(size, owner);
        let id = store(&*engine, &bytes, owner).await;
        let part = open(&*engine, id).await.expect("opened");
        assert!(read_all(&part, 3, 7).await == bytes.slice(3..7), "a part of {size} bytes");
        for _ in 0..3 {
            let content = open(&*engine, id).await.expect("opened again");
            assert_eq!(content.length(), size as u64);
            assert!(read_all(&content, 0, size as u64).await == bytes, "{size} bytes");
            assert!(read_all(&content, 2, 9).await == bytes.slice(2..9), "a part of {size} bytes again");
        }
        unrefer(&*engine, id, owner).await;
        assert!(collector::sweep(&*engine, &[]).await.is_ok());
        assert!(open(&*engine, id).await.is_err(), "{size} bytes that nobody refers to are gone");
    }
}

pub async fn a_content_nobody_stored_is_not_there(engine: Arc<dyn Engine>) {
    let staged = stage(&*engine, &noise(200_000, 3), 70_000).await;
    assert!(open(&*engine, staged.id()).await.is_err());
    let refused = commit::<(), (), _>(&*engine, key("a"), {
        let staged = staged.clone();
        move |_, _| {
            let mut unused = Changes::none();
            unused.store(&staged, 1);
            Err(Stop::Refused(()))
        }
    });
    assert_eq!(refused.await, Err(NotCommitted::Refused(())));
    assert!(open(&*engine, staged.id()).await.is_err());
}

async fn unrefer(engine: &dyn Engine, id: ContentId, owner: u64) {
    commit::<(), Infallible, _>(engine, key("unrefer"), move |_, tick| {
        let mut changes = Changes::none();
        changes.unrefer(space::CONTENT, id.0, owner, tick.now);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a reference taken back");
}

pub async fn an_open_content_outlives_its_owner(engine: Arc<dyn Engine>) {
    for size in [10_usize, 3_000_000] {
        let bytes = noise(size, 11);
        let id = store(&*engine, &bytes, 1).await;
        let content = open(&*engine, id).await.expect("opened");
        unrefer(&*engine, id, 1).await;
        // An engine that knows of the only reference drops a content with it; then the collector has nothing to do.
        assert!(collector::sweep(&*engine, &[]).await.is_ok_and(|handled| handled <= 1));
        assert!(open(&*engine, id).await.is_err(), "it is gone for everybody else");
        assert!(read_all(&content, 0, size as u64).await == bytes, "who had it open reads it to its end");
    }
}

pub async fn the_last_reference_takes_the_content_along(engine: Arc<dyn Engine>) {
    let id = store(&*engine, &noise(100_000, 1), 1).await;
    commit::<(), Infallible, _>(&*engine, key("refer"), move |_, _| {
        let mut changes = Changes::none();
        changes.refer(id.0, 2);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a second reference");
    let before = figure(&*engine, "content_bytes");
    unrefer(&*engine, id, 1).await;
    assert_eq!(collector::sweep(&*engine, &[]).await, Ok(1));
    assert!(open(&*engine, id).await.is_ok(), "the second reference holds it");
    unrefer(&*engine, id, 2).await;
    assert_eq!(collector::sweep(&*engine, &[]).await, Ok(1));
    assert!(open(&*engine, id).await.is_err());
    assert_eq!(figure(&*engine, "content_bytes"), before - 100_000);
    assert_eq!(collector::sweep(&*engine, &[]).await, Ok(0), "nothing is left to do");
}

pub async fn account_ids_stay(engine: Arc<dyn Engine>) {
    let one = account::id(&*engine, "one").await.expect("an id");
    let two = account::id(&*engine, "two").await.expect("an id");
    assert_ne!(one, two);
    assert_eq!(account::id(&*engine, "one").await, Ok(one));
}

pub async fn the_clock_only_goes_forward(engine: Arc<dyn Engine>) {
    let before = engine.now();
    assert_eq!(engine.advance_clock(60).await, Ok(60));
    assert_eq!(engine.advance_clock(5).await, Ok(65));
    assert!(engine.now() >= before.plus_seconds(65));
    let (now, stamp) =
        commit::<_, Infallible, _>(&*engine, key("t"), |_, tick| Ok(Commit::unchanged((tick.now, tick.stamp))))
            .await
            .expect("a tick");
    assert!(now >= before.plus_seconds(65) && stamp >= before.plus_seconds(65));
}

pub async fn a_row_too_large_is_refused_whole(engine: Arc<dyn Engine>) {
    let refused = commit::<(), Infallible, _>(&*engine, key("a"), |_, _| {
        let mut changes = Changes::none();
        changes.put(key("small"), "x").put(key("large"), vec![0; VALUE_BYTES_MAX + 1]);
        Ok(Commit { changes, outcome: () })
    })
    .await;
    assert!(matches!(refused, Err(NotCommitted::Failed(EngineError::TooLarge { .. }))));
    assert_eq!(get(&*engine, "small").await, None);
    put(&*engine, "large", vec![7; VALUE_BYTES_MAX]).await;
    assert_eq!(get(&*engine, "large").await.map(|row| row.len()), Some(VALUE_BYTES_MAX));
}

pub async fn a_panicking_decision_harms_nobody_else(engine: Arc<dyn Engine>) {
    put(&*engine, "a", "1").await;
    let panicked = commit::<(), Infallible, _>(&*engine, key("a"), |_, _| panic!("on purpose, in a test"));
    assert!(matches!(panicked.await, Err(NotCommitted::Failed(_))));
    put(&*engine, "a", "2").await;
    assert_eq!(get(&*engine, "a").await.as_deref(), Some(&b"2"[..]));
}

pub async fn a_closed_engine_takes_nothing(engine: Arc<dyn Engine>) {
    put(&*engine, "a", "1").await;
    engine.close().await.expect("closed");
    let late = commit::<(), Infallible, _>(&*engine, key("a"), |_, _| Ok(Commit::unchanged(()))).await;
    assert_eq!(late, Err(NotCommitted::Failed(EngineError::Closed)));
    engine.close().await.expect("closing twice is fine");
}
