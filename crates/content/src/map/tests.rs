//! What files' maps do, case by case; `at_random` compares them with plain bytes.

mod at_random;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use engine::collector::{self, Handled, Handler, steps};
use engine::due::Due;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Changes, Commit, Engine, EngineError, Key, Rows, Staged, Tick, Unread, commit, read};
use service::testing::figure;
use service::{space, unrefused};

use super::*;
use crate::pieces;

/// Handles due rows, but does not rewrite groups.
#[derive(Debug)]
struct PrunesOnly;

impl Handler for PrunesOnly {
    fn spaces(&self) -> &[u8] {
        &[space::PAGE_MAP]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            if due.owner.last() == Some(&compact::DUE_MARK) && due.owner.len() == 17 {
                steps(engine, due, |_, _, _| Ok(false)).await?;
                return Ok(Handled::Done);
            }
            MapCollector.handle(engine, due).await
        })
    }
}

/// An engine, and decisions on it.
#[derive(Clone)]
struct Bench(Arc<MemoryEngine>);

impl Bench {
    fn new() -> Bench {
        Bench(Arc::new(MemoryEngine::default()))
    }

    async fn decide<T: Send + 'static>(
        &self,
        mut decide: impl FnMut(&dyn Rows, Tick, &mut Changes) -> Result<T, Unread> + Send + 'static,
    ) -> T {
        let decided = commit::<_, Infallible, _>(&*self.0, Key::new(space::ENTRY), move |rows, tick| {
            let mut changes = Changes::none();
            let outcome = decide(rows, tick, &mut changes)?;
            Ok(Commit { changes, outcome })
        });
        unrefused(decided.await).unwrap()
    }

    async fn read<T: Send + 'static>(&self, mut run: impl FnMut(&dyn Rows) -> Result<T, Unread> + Send + 'static) -> T {
        unrefused(read::<_, Infallible, _>(&*self.0, move |rows, _| Ok(run(rows)?)).await).unwrap()
    }

    async fn new_map(&self) -> FileView {
        let create = |_: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let view = FileView::new(tick.id(1));
            view.create(changes);
            Ok(view)
        };
        self.decide(create).await
    }

    async fn stage(&self, bytes: &[u8]) -> Staged {
        let mut writer = self.0.writer(Some(bytes.len() as u64));
        writer.write(Bytes::copy_from_slice(bytes)).await.unwrap();
        writer.finish().await.unwrap()
    }

    /// Writes without taking anything along.
    async fn write(&self, view: FileView, start: u64, bytes: &[u8]) {
        let staged = self.stage(bytes).await;
        let span = ByteSpan { start, end: start + bytes.len() as u64 };
        self.decide(move |rows, tick, changes| view.write(rows, span, &staged, tick, changes)).await;
    }

    /// Writes as the service does: with its neighbours.
    async fn write_gathered(&self, view: FileView, start: u64, bytes: &[u8]) {
        let span = ByteSpan { start, end: start + bytes.len() as u64 };
        let gathered = self.read(move |rows| view.gather(rows, span)).await.read().await.unwrap();
        let staged = self.stage(&[&gathered.before, bytes, &gathered.after].concat()).await;
        let write = move |rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.write_gathered(rows, span, (&gathered, &staged), tick, changes)
        };
        self.decide(write).await;
    }

    async fn clear(&self, view: FileView, start: u64, end: u64) {
        self.decide(move |rows, tick, changes| view.clear(rows, ByteSpan { start, end }, tick, changes)).await;
    }

    async fn cut(&self, view: FileView, length: u64, end: u64) -> Option<FileView> {
        self.decide(move |rows, tick, changes| view.cut(rows, (length, end), tick.id(1), tick, changes)).await
    }

    /// Clears, and says how many rows that changes.
    async fn clear_any(&self, view: FileView, length: u64, span: ByteSpan) -> (Option<FileView>, usize) {
        let clear = move |rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let view = view.clear_any(rows, (length, span), tick.id(1), tick, changes)?;
            Ok((view, changes.rows.len()))
        };
        self.decide(clear).await
    }

    async fn bytes(&self, view: FileView, start: u64, end: u64) -> Vec<u8> {
        let pieces = self.read(move |rows| view.open(rows, start, end)).await;
        pieces::whole(pieces).await.unwrap().to_vec()
    }

    async fn ranges(&self, view: FileView, length: u64) -> Vec<(u64, u64)> {
        let whole = self.ranges_by(view, length, usize::MAX).await;
        let by_ones = self.ranges_by(view, length, 1).await;
        assert_eq!(by_ones, whole, "one by one");
        whole
    }

    async fn ranges_by(&self, view: FileView, length: u64, most: usize) -> Vec<(u64, u64)> {
        let (mut all, mut from) = (Vec::new(), Some(0));
        while let Some(start) = from {
            let span = ByteSpan { start, end: length };
            let (some, next) = self.read(move |rows| view.ranges(rows, span, most)).await;
            all.extend(some.into_iter().map(|range| (range.start, range.end)));
            from = next;
        }
        all
    }

    /// The written and the cleared pages that a comparison tells of, as ranges of bytes.
    async fn changes(
        &self,
        view: FileView,
        earlier: (FileView, Timestamp),
        length: u64,
    ) -> (Vec<(u64, u64)>, Vec<(u64, u64)>) {
        let span = ByteSpan { start: 0, end: length };
        let (told, next) = self.read(move |rows| view.changes_since(rows, earlier, span, usize::MAX)).await;
        assert_eq!(next, None);
        let of = |is_cleared: bool| {
            let told = told.iter().filter(|told| told.is_cleared == is_cleared);
            told.map(|told| (told.span.start, told.span.end)).collect()
        };
        (of(false), of(true))
    }

    /// Keeps this epoch for a snapshot, and says when that was.
    async fn snapshot(&self, view: FileView) -> (FileView, Timestamp) {
        let keep = move |_: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.next().refer(changes);
            Ok((view.next(), tick.stamp))
        };
        self.decide(keep).await
    }

    async fn let_go(&self, view: FileView) {
        self.decide(move |_, tick, changes| {
            view.let_go(changes, tick.now);
            Ok(())
        })
        .await;
    }

    async fn sweep(&self, handler: &dyn Handler) {
        while collector::sweep(&*self.0, &[handler]).await.unwrap() > 0 {}
    }

    fn figures(&self) -> (u64, u64) {
        (figure(&*self.0, "rows"), figure(&*self.0, "contents"))
    }

    async fn runs(&self, view: FileView, group: u64) -> usize {
        let found = self.read(move |rows| view.load_group(rows, group)).await;
        found.map_or(0, |found| found.group.runs.len())
    }
}

/// The recorded answers of the service.
#[tokio::test]
async fn ranges_are_pages_cut_at_the_length() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    bench.write(view, 1_023, b"hello").await;
    assert_eq!(bench.ranges(view, 4_096).await, [(512, 1_536)]);
    assert_eq!(bench.bytes(view, 1_022, 1_029).await, b"\0hello\0");

    let short = bench.new_map().await;
    bench.write(short, 0, &[1; 10]).await;
    assert_eq!(bench.ranges(short, 10).await, [(0, 10)]);
    // A clear inside of a page leaves it listed; one that touches nothing that was written writes nothing.
    bench.clear(short, 2, 5).await;
    assert_eq!(bench.ranges(short, 10).await, [(0, 10)]);
    assert_eq!(bench.bytes(short, 0, 10).await, [1, 1, 0, 0, 0, 1, 1, 1, 1, 1]);
    let before = bench.figures();
    bench.clear(short, 100, 300).await;
    bench.clear(short, 600, 2_000).await;
    bench.clear(short, 3, 4).await;
    assert_eq!(bench.figures(), before);
    assert_eq!(bench.ranges(short, 2_000).await, [(0, 512)]);
    bench.clear(short, 0, 512).await;
    assert_eq!(bench.ranges(short, 2_000).await, []);
}

#[tokio::test]
async fn a_clear_takes_whole_pages_out_and_leaves_those_it_cuts() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let length = 2 * GROUP_BYTES + 4_096;
    bench.write(view, 0, &vec![7; length as usize]).await;
    bench.clear(view, 100, GROUP_BYTES + 700).await;
    let written = [(0, 512), (GROUP_BYTES + 512, length)];
    assert_eq!(bench.ranges(view, length).await, written);
    let bytes = bench.bytes(view, 0, length).await;
    let is_right = |(at, byte): (usize, &u8)| (*byte == 0) == (100..GROUP_BYTES as usize + 700).contains(&at);
    assert!(bytes.iter().enumerate().all(is_right));
}

/// What is cut off does not come back, and what it costs does not depend on how much that is.
#[tokio::test]
async fn cuts() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let length = 8 * GROUP_BYTES;
    bench.write(view, 0, &vec![7; length as usize]).await;
    // Few groups go at once.
    let same = bench.cut(view, length, 7 * GROUP_BYTES + 5).await.unwrap();
    assert_eq!(same, view);
    // Many stay behind a new map that ends before them.
    let end = 2 * GROUP_BYTES + 100;
    let cut = bench.cut(view, 7 * GROUP_BYTES + 5, end).await.unwrap();
    assert_ne!(cut.map, view.map);
    bench.sweep(&MapCollector).await;
    let check = async |view: FileView, end: u64| {
        let bytes = bench.bytes(view, 0, length).await;
        assert!(
            bytes[..end as usize].iter().all(|byte| *byte == 7) && bytes[end as usize..].iter().all(|byte| *byte == 0)
        );
        assert_eq!(bench.ranges(view, length).await, [(0, end.next_multiple_of(PAGE_BYTES))]);
    };
    check(cut, end).await;
    // Again, so that two maps with ends stand behind one.
    bench.write(cut, end, &vec![7; 5 * GROUP_BYTES as usize]).await;
    let again = bench.cut(cut, end + 5 * GROUP_BYTES, GROUP_BYTES + 9).await.unwrap();
    assert_ne!(again.map, cut.map);
    bench.sweep(&MapCollector).await;
    check(again, GROUP_BYTES + 9).await;
    FileView::settle(&*bench.0, again.map).await.unwrap();
    bench.sweep(&MapCollector).await;
    check(again, GROUP_BYTES + 9).await;
    // One row for the map, one reference to it, two groups with a reference each.
    assert_eq!(bench.figures(), (6, 1));
    let empty = bench.cut(again, GROUP_BYTES + 9, 0).await.unwrap();
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.ranges(empty, length).await, []);
    assert_eq!(bench.figures(), (2, 0));
    bench.let_go(empty).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

/// A request found that its file must be settled, and before it does so the file is deleted.
#[tokio::test]
async fn a_file_that_is_gone_is_not_settled() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let length = 12 * GROUP_BYTES;
    bench.write(view, 0, &vec![1; length as usize]).await;
    let cut = bench.cut(view, length, 11 * GROUP_BYTES - 1).await.unwrap();
    let cut = bench.cut(cut, 11 * GROUP_BYTES - 1, 8 * GROUP_BYTES).await.unwrap();
    assert_ne!(cut.map, view.map);
    bench.let_go(cut).await;
    // Before the collector comes to it, and afterwards.
    let before = bench.figures();
    FileView::settle(&*bench.0, cut.map).await.unwrap();
    assert_eq!(bench.figures(), before);
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
    FileView::settle(&*bench.0, cut.map).await.unwrap();
    assert_eq!(bench.figures(), (0, 0));
}

/// A content for each group, from the first on.
async fn groups_of_their_own(bench: &Bench, view: FileView, count: u64) {
    for group in 0..count {
        bench.write(view, group * GROUP_BYTES, &[group as u8 + 1; 1_000]).await;
    }
}

/// What a cut leaves behind another map is not kept for that map.
#[tokio::test]
async fn what_is_cut_off_gives_its_space_back() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    groups_of_their_own(&bench, view, 8).await;
    let (before, contents) = bench.figures();
    let cut = bench.cut(view, 8 * GROUP_BYTES, 2 * GROUP_BYTES + 100).await.unwrap();
    assert_ne!(cut.map, view.map);
    bench.sweep(&MapCollector).await;
    let (after, left) = bench.figures();
    assert_eq!((contents, left), (8, 3));
    assert!(after < before, "{after} rows after {before}");
    let bytes = bench.bytes(cut, 0, 8 * GROUP_BYTES).await;
    assert!(bytes[2 * GROUP_BYTES as usize..][..100] == [3; 100]);
    assert!(bytes[2 * GROUP_BYTES as usize + 100..].iter().all(|byte| *byte == 0));
    bench.let_go(cut).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

/// The file was cut before, and the map of that time is kept for a few bytes: it needs nothing of the map behind it any more.
#[tokio::test]
async fn what_is_cut_off_twice_gives_its_space_back() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    groups_of_their_own(&bench, view, 12).await;
    let cut = bench.cut(view, 12 * GROUP_BYTES, 8 * GROUP_BYTES).await.unwrap();
    bench.write(cut, 500, b"later").await;
    let again = bench.cut(cut, 8 * GROUP_BYTES, 2 * GROUP_BYTES).await.unwrap();
    assert!(again.map != cut.map && cut.map != view.map);
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures().1, 3, "two groups, and what was written later");
    let mut expected = vec![0; 8 * GROUP_BYTES as usize];
    expected[..1_000].fill(1);
    expected[500..505].copy_from_slice(b"later");
    expected[GROUP_BYTES as usize..][..1_000].fill(2);
    assert!(bench.bytes(again, 0, 8 * GROUP_BYTES).await == expected);
    bench.let_go(again).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

/// A copy has its source behind it, and the map that was behind its source. The source is settled and goes: what it had cleared
/// does not show again in the copy.
#[tokio::test]
async fn what_was_cleared_stays_so_in_a_copy_when_its_source_is_settled() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    groups_of_their_own(&bench, view, 8).await;
    let source = bench.cut(view, 8 * GROUP_BYTES, 3 * GROUP_BYTES).await.unwrap();
    assert_ne!(source.map, view.map);
    bench.clear(source, GROUP_BYTES, 2 * GROUP_BYTES).await;
    let copied = bench.decide(move |rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
        let branch = source.branch(rows, tick.id(1), changes)?.unwrap();
        assert!(branch.needs_this);
        Ok((branch.view, source.move_on(changes)))
    });
    let (copy, source) = copied.await;
    let mut expected = vec![0; 3 * GROUP_BYTES as usize];
    expected[..1_000].fill(1);
    expected[2 * GROUP_BYTES as usize..][..1_000].fill(3);
    assert!(bench.bytes(copy, 0, 3 * GROUP_BYTES).await == expected);
    FileView::settle(&*bench.0, source.map).await.unwrap();
    bench.let_go(source).await;
    bench.sweep(&MapCollector).await;
    assert!(bench.bytes(copy, 0, 3 * GROUP_BYTES).await == expected);
    bench.let_go(copy).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

/// A clear costs the same however many groups it takes out; their space is given back, and what is around them stays.
#[tokio::test]
async fn clears_of_many_groups() {
    let mut costs = Vec::new();
    for count in [8, 40] {
        let bench = Bench::new();
        let view = bench.new_map().await;
        groups_of_their_own(&bench, view, count).await;
        let length = count * GROUP_BYTES;
        let span = ByteSpan { start: 100, end: (count - 1) * GROUP_BYTES + 700 };
        let (cleared, cost) = bench.clear_any(view, length, span).await;
        let cleared = cleared.unwrap();
        assert_ne!(cleared.map, view.map);
        costs.push(cost);
        bench.sweep(&MapCollector).await;
        assert_eq!(bench.figures().1, 2, "the first and the last group");
        let mut expected = vec![0; length as usize];
        expected[..100].fill(1);
        expected[span.end as usize..][..300].fill(count as u8);
        assert!(bench.bytes(cleared, 0, length).await == expected, "{count}");
        // The page that the clear begins in and the one that it ends in stay written.
        let last = (count - 1) * GROUP_BYTES;
        assert_eq!(bench.ranges(cleared, length).await, [(0, 512), (last + 512, last + 1_024)]);
        // All of it, up to the end: nothing is behind the new map.
        bench.write(cleared, 2 * GROUP_BYTES, b"again").await;
        bench.write(cleared, 4 * GROUP_BYTES, b"again").await;
        let (empty, _) = bench.clear_any(cleared, length, ByteSpan { start: 0, end: length }).await;
        bench.sweep(&MapCollector).await;
        assert_eq!(bench.figures(), (2, 0));
        bench.let_go(empty.unwrap()).await;
        bench.sweep(&MapCollector).await;
        assert_eq!(bench.figures(), (0, 0));
    }
    assert_eq!(costs[0], costs[1], "rows of a clear");
}

/// Too many maps stand behind one: it must stand by itself first.
#[tokio::test]
async fn a_file_that_is_cut_too_often_is_settled() {
    let bench = Bench::new();
    let mut view = bench.new_map().await;
    let length = 4 * GROUP_BYTES;
    let mut settled = 0;
    for round in 1..=20 {
        bench.write(view, 0, &vec![round; length as usize]).await;
        view = match bench.cut(view, length, 100).await {
            Some(view) => view,
            None => {
                settled += 1;
                FileView::settle(&*bench.0, view.map).await.unwrap();
                bench.cut(view, length, 100).await.unwrap()
            }
        };
        bench.sweep(&MapCollector).await;
        let bytes = bench.bytes(view, 0, length).await;
        assert!(bytes[..100] == [round; 100] && bytes[100..].iter().all(|byte| *byte == 0));
    }
    assert!(settled > 0);
    bench.let_go(view).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

#[tokio::test]
async fn appends_leave_few_runs() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let mut all = Vec::new();
    let (mut most, mut written) = (0, 0);
    for n in 0..3_000_u64 {
        let part = [n as u8; 100];
        let before = bench.figures();
        bench.write_gathered(view, all.len() as u64, &part).await;
        all.extend_from_slice(&part);
        most = most.max(bench.runs(view, 0).await);
        written += bench.figures().0.abs_diff(before.0);
    }
    assert!(most <= 16, "{most} runs, {written}");
    assert!(bench.bytes(view, 0, all.len() as u64).await == all);
    bench.sweep(&PrunesOnly).await;
    let runs = bench.runs(view, 0).await as u64;
    // The map, its reference, its group, and a reference for each content.
    assert_eq!(bench.figures(), (3 + runs, runs));
}

/// Each write of bytes that are written already stores its own bytes and no others, however often it comes. What it cuts off is
/// left where it is.
#[tokio::test]
async fn what_is_written_over_brings_no_neighbours() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let mut all = vec![9; 100_000];
    bench.write(view, 0, &all).await;
    for round in 1..=3_u8 {
        for start in [4_096_usize, 0, 12_288, 14_000, 99_000] {
            let span = ByteSpan { start: start as u64, end: start as u64 + 1_000 };
            let gathered = bench.read(move |rows| view.gather(rows, span)).await.read().await.unwrap();
            assert_eq!(gathered.extent(span), span, "round {round}, at {start}");
            bench.write_gathered(view, start as u64, &vec![round; 1_000]).await;
            all[start..start + 1_000].fill(round);
        }
        // The five writes, and what lies between them.
        assert_eq!(bench.runs(view, 0).await, 9);
    }
    assert!(bench.bytes(view, 0, 100_000).await == all);
    // A log that goes round: each write cuts what is there, and takes those before it along.
    for n in 0..200_usize {
        let start = 20_000 + n * 100;
        bench.write_gathered(view, start as u64, &[n as u8; 100]).await;
        all[start..start + 100].fill(n as u8);
    }
    assert!(bench.runs(view, 0).await < 9 + 16);
    assert!(bench.bytes(view, 0, 100_000).await == all);
    bench.let_go(view).await;
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.figures(), (0, 0));
}

/// The row was changed between the read and the decision: only the bytes of the write itself are written.
#[tokio::test]
async fn neighbours_that_changed_are_not_taken_along() {
    let bench = Bench::new();
    let span = ByteSpan { start: 100, end: 200 };
    for (at, byte) in [(50, 8), (250, 9)] {
        let view = bench.new_map().await;
        bench.write(view, 0, &[1; 100]).await;
        bench.write(view, 200, &[2; 100]).await;
        let gathered = bench.read(move |rows| view.gather(rows, span)).await.read().await.unwrap();
        assert!(!gathered.before.is_empty() || !gathered.after.is_empty());
        let staged = bench.stage(&[&gathered.before, &[3; 100][..], &gathered.after].concat()).await;
        bench.write(view, at, &[byte; 10]).await;
        let write = move |rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.write_gathered(rows, span, (&gathered, &staged), tick, changes)
        };
        bench.decide(write).await;
        let bytes = bench.bytes(view, 0, 300).await;
        assert!(bytes[at as usize..at as usize + 10] == [byte; 10] && bytes[100..200] == [3; 100]);
    }
}

/// A comparison with a snapshot tells of what was written since, not of the neighbours.
#[tokio::test]
async fn what_a_snapshot_sees_is_not_taken_along() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    bench.write_gathered(view, 0, &[1; 512]).await;
    let (next, at) = bench.snapshot(view).await;
    bench.write_gathered(next, 512, &[2; 100]).await;
    bench.write_gathered(next, 612, &[3; 100]).await;
    assert_eq!(bench.changes(next, (view, at), 4_096).await, (vec![(512, 1_024)], vec![]));
    assert_eq!(bench.runs(next, 0).await, 2);
    bench.clear(next, 512, 1_024).await;
    assert_eq!(bench.changes(next, (view, at), 4_096).await, (vec![], vec![(512, 1_024)]));
    bench.clear(next, 0, 100).await;
    assert_eq!(bench.changes(next, (view, at), 4_096).await, (vec![(0, 512)], vec![(512, 1_024)]));
}

#[tokio::test]
async fn groups_of_many_runs_are_rewritten() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let mut all = vec![0; 40_000];
    for n in 0..60_u64 {
        let start = n * 600 + 5;
        all[start as usize..start as usize + 100].fill(n as u8 + 1);
        bench.write(view, start, &[n as u8 + 1; 100]).await;
    }
    let ranges = bench.ranges(view, 40_000).await;
    assert_eq!(bench.runs(view, 0).await, 60);
    // Pages 0 to 69 but for a few: stretches of pages are one run each.
    bench.sweep(&MapCollector).await;
    let runs = bench.runs(view, 0).await;
    assert!(runs < 15, "{runs}");
    assert_eq!(bench.figures(), (4, 1));
    assert!(bench.bytes(view, 0, 40_000).await == all);
    assert_eq!(bench.ranges(view, 40_000).await, ranges);
}

/// Pages that are as a snapshot saw them stay where they are, so that it can still be told what has changed.
#[tokio::test]
async fn a_rewrite_does_not_change_what_a_comparison_tells() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    bench.write(view, 0, &[1; 20_000]).await;
    let (next, at) = bench.snapshot(view).await;
    for n in 0..20_u64 {
        bench.write(next, 4_096 + n * 200, &[n as u8 + 2; 100]).await;
    }
    let (told, bytes) = (bench.changes(next, (view, at), 20_000).await, bench.bytes(next, 0, 20_000).await);
    assert_eq!(told, (vec![(4_096, 8_192)], vec![]));
    bench.sweep(&MapCollector).await;
    assert_eq!(bench.runs(next, 0).await, 3);
    assert_eq!(bench.changes(next, (view, at), 20_000).await, told);
    assert!(bench.bytes(next, 0, 20_000).await == bytes);
    assert!(bench.bytes(view, 0, 20_000).await == [1; 20_000]);
}

#[tokio::test]
async fn crowded_groups_say_so() {
    let bench = Bench::new();
    let view = bench.new_map().await;
    let span = ByteSpan { start: 0, end: 10 };
    for n in 0..=RUNS_MAX as u64 {
        assert_eq!(bench.read(move |rows| view.gather(rows, span)).await.crowded, None);
        bench.write(view, n * 200, &[1; 100]).await;
    }
    let crowded = bench.read(move |rows| view.gather(rows, span)).await.crowded.unwrap();
    assert_eq!(crowded, Crowded { map: view.map, group: 0 });
    compact(&*bench.0, crowded.map, crowded.group).await.unwrap();
    assert_eq!(bench.read(move |rows| view.gather(rows, span)).await.crowded, None);
    assert_eq!(bench.runs(view, 0).await, 1);
}
