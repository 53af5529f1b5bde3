//! Writes, clears, cuts, copies, shared ranges and snapshots at random, against plain bytes.

use super::*;
use crate::source::Extent;

/// Numbers that are always the same (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A file as plain bytes.
#[derive(Clone, Default)]
struct Model {
    bytes: Vec<u8>,
    /// Of every byte 1 if it was written and neither cut off nor cleared with its whole page.
    written: Vec<u8>,
    pages: Vec<ModelPage>,
}

#[derive(Clone, Copy, Default)]
struct ModelPage {
    /// The step that last changed something in it, or may have.
    touched: usize,
    /// The step that last wrote to it.
    written_at: usize,
    /// The step that last unwrote it.
    cleared: usize,
}

const LENGTH_MAX: u64 = 4 * GROUP_BYTES;
const PAGE: usize = PAGE_BYTES as usize;

impl Model {
    fn new() -> Model {
        let length = LENGTH_MAX as usize;
        Model { bytes: vec![0; length], written: vec![0; length], pages: vec![ModelPage::default(); length / PAGE] }
    }

    fn is_written(&self, page: usize) -> bool {
        self.written[page * PAGE..(page + 1) * PAGE] != [0; PAGE]
    }

    fn write(&mut self, start: usize, bytes: &[u8], step: usize) {
        let end = start + bytes.len();
        self.bytes[start..end].copy_from_slice(bytes);
        self.written[start..end].fill(1);
        for page in &mut self.pages[start / PAGE..end.div_ceil(PAGE)] {
            (page.touched, page.written_at) = (step, step);
        }
    }

    /// Clears whole pages and zeroes the rest; a cut leaves nothing of the rest either.
    fn clear(&mut self, start: usize, end: usize, is_cut: bool, step: usize) {
        for page in start / PAGE..end.div_ceil(PAGE) {
            if !self.is_written(page) {
                continue;
            }
            let (from, to) = (start.max(page * PAGE), end.min((page + 1) * PAGE));
            self.bytes[from..to].fill(0);
            if is_cut || to - from == PAGE {
                self.written[from..to].fill(0);
            }
            self.pages[page].touched = step;
            if !self.is_written(page) {
                self.pages[page].cleared = step;
            }
        }
    }

    /// Makes bytes those of `source`, and written where some contents hold them.
    fn share(&mut self, span: ByteSpan, source: &[u8], extents: &[Extent], step: usize) {
        let (start, end) = (span.start as usize, span.end as usize);
        let pages = start / PAGE..end.div_ceil(PAGE);
        let before: Vec<bool> = pages.clone().map(|page| self.is_written(page)).collect();
        self.bytes[start..end].copy_from_slice(source);
        self.written[start..end].fill(0);
        for extent in extents {
            self.written[extent.span.start as usize..extent.span.end as usize].fill(1);
        }
        for (page, was) in pages.zip(before) {
            // What a snapshot saw may be back.
            (self.pages[page].touched, self.pages[page].written_at) = (step, 0);
            if was && !self.is_written(page) {
                self.pages[page].cleared = step;
            }
        }
    }

    fn ranges(&self, length: u64, counts: impl Fn(usize) -> bool) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for page in (0..length.div_ceil(PAGE_BYTES)).filter(|page| counts(*page as usize)) {
            let (start, end) = (page * PAGE_BYTES, ((page + 1) * PAGE_BYTES).min(length));
            match ranges.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => ranges.push((start, end)),
            }
        }
        ranges
    }
}

/// One state of a file.
#[derive(Clone)]
struct State {
    view: FileView,
    length: u64,
    model: Model,
}

struct Snapshot {
    state: State,
    at: Timestamp,
    step: usize,
    /// The file goes back to this snapshot without having been replaced.
    is_comparable: bool,
    /// Its map knows of all clears since.
    knows_clears: bool,
}

struct Play {
    bench: Bench,
    random: Random,
    base: State,
    snapshots: Vec<Snapshot>,
    other: Option<State>,
    step: usize,
    /// The next change keeps what was there for a snapshot, in its own decision.
    keeps: bool,
    compacts: bool,
    /// How many ranges were shared, and how many were too much.
    shares: (usize, usize),
    seed: u64,
}

impl Play {
    async fn new(seed: u64, compacts: bool) -> Play {
        let bench = Bench::new();
        let base = State { view: bench.new_map().await, length: LENGTH_MAX, model: Model::new() };
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Play {
            bench,
            random,
            base,
            snapshots: vec![],
            other: None,
            step: 0,
            keeps: false,
            compacts,
            shares: (0, 0),
            seed,
        }
    }

    /// A position, mostly near the border of a group or in a few pages where much happens.
    fn position(&mut self) -> u64 {
        let near = match self.random.below(3) {
            0 => self.random.below(5) * GROUP_BYTES + self.random.below(2_000),
            1 => GROUP_BYTES + self.random.below(20_000),
            _ => 10_000 + self.random.below(3_000),
        };
        let position = near.saturating_sub(1_000).min(self.base.length);
        if self.random.below(4) == 0 { position - position % PAGE_BYTES } else { position }
    }

    fn span(&mut self) -> ByteSpan {
        let start = self.position();
        let end = match self.random.below(6) {
            0 => self.position(),
            1 => start + self.random.below(100_000),
            _ => start + self.random.below(800),
        };
        ByteSpan { start: start.min(end), end: start.max(end).min(self.base.length).max(start.min(end)) }
    }

    /// A change of the base, which may have to keep what was there first.
    async fn change<T: Send + 'static>(
        &mut self,
        change: impl Fn(FileView, &dyn Rows, Tick, &mut Changes) -> Result<T, Unread> + Send + 'static,
    ) -> T {
        let (view, keeps) = (self.base.view, std::mem::take(&mut self.keeps));
        let decide = move |rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let view = if keeps { view.next() } else { view };
            if keeps {
                view.refer(changes);
            }
            Ok((change(view, rows, tick, changes)?, tick.stamp))
        };
        let (outcome, stamp) = self.bench.decide(decide).await;
        if keeps {
            let state = self.base.clone();
            let at = Timestamp(stamp.0 - 1);
            let snapshot = Snapshot { state, at, step: self.step - 1, is_comparable: true, knows_clears: true };
            self.snapshots.push(snapshot);
            self.base.view = self.base.view.next();
        }
        outcome
    }

    async fn write(&mut self) {
        let span = self.span();
        let span = ByteSpan { end: span.end.min(span.start + 200_000), ..span };
        if span.is_empty() {
            return;
        }
        let bytes: Vec<u8> = (0..span.length()).map(|at| (self.step as u64 * 31 + at % 7) as u8 | 1).collect();
        let view = self.base.view;
        while let Some(Crowded { map, group }) =
            self.bench.read(move |rows| view.gather(rows, span)).await.crowded.filter(|_| self.compacts)
        {
            compact(&*self.bench.0, map, group).await.unwrap();
            if self.bench.runs(view, group).await > RUNS_MAX {
                // Tests have smaller limits than a group of alternating pages needs.
                break;
            }
        }
        let gathers = self.random.below(3) > 0;
        let gathered = match gathers {
            true => {
                let view = if self.keeps { view.next() } else { view };
                self.bench.read(move |rows| view.gather(rows, span)).await.read().await.unwrap()
            }
            false => Gathered::default(),
        };
        let extent = gathered.extent(span);
        assert!(extent == span || extent.length() <= GATHERED_BYTES_MAX);
        let staged = self.bench.stage(&[&gathered.before, &bytes[..], &gathered.after].concat()).await;
        if self.random.below(8) == 0 {
            // Another change comes between.
            Box::pin(self.clear()).await;
            self.step += 1;
        }
        let write = move |view: FileView, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.write_gathered(rows, span, (&gathered, &staged), tick, changes)
        };
        self.change(write).await;
        self.base.model.write(span.start as usize, &bytes, self.step);
    }

    async fn clear(&mut self) {
        let (mut span, length) = (self.span(), self.base.length);
        if span.end == length {
            // The last page ends with the file.
            span.end = span.end.next_multiple_of(PAGE_BYTES);
        }
        let clear = move |view: FileView, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.clear_any(rows, (length, span), tick.id(1), tick, changes)
        };
        let mut view = self.change(clear).await;
        if view.is_none() {
            FileView::settle(&*self.bench.0, self.base.view.map).await.unwrap();
            self.snapshots.iter_mut().for_each(|snapshot| snapshot.knows_clears = false);
            view = self.change(clear).await;
        }
        let view = view.unwrap();
        if !span.is_empty() {
            self.base.model.clear(span.start as usize, span.end as usize, false, self.step);
        }
        if view.map != self.base.view.map {
            let end = if span.end >= length { LENGTH_MAX } else { span.end };
            let pages = &mut self.base.model.pages[span.start as usize / PAGE..end as usize / PAGE];
            pages.iter_mut().for_each(|page| page.cleared = 0);
            if span.start == 0 && span.end >= length {
                self.snapshots.iter_mut().for_each(|snapshot| snapshot.knows_clears = false);
            }
        }
        self.base.view = view;
    }

    async fn cut(&mut self) {
        let mut end = if self.random.below(5) == 0 { 0 } else { self.position() };
        if self.compacts {
            // A rewrite may fill gaps within pages, which a cut inside of a page would show.
            end -= end % PAGE_BYTES;
        }
        let length = self.base.length;
        let cut = move |view: FileView, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            view.cut(rows, (length, end), tick.id(1), tick, changes)
        };
        let mut view = self.change(cut).await;
        if view.is_none() {
            FileView::settle(&*self.bench.0, self.base.view.map).await.unwrap();
            self.snapshots.iter_mut().for_each(|snapshot| snapshot.knows_clears = false);
            view = self.change(cut).await;
        }
        let view = view.unwrap();
        let model = &mut self.base.model;
        model.clear(end as usize, length as usize, true, self.step);
        if view.map != self.base.view.map {
            model.pages[end as usize / PAGE..].iter_mut().for_each(|page| page.cleared = 0);
        }
        if view.map != self.base.view.map && end == 0 {
            self.snapshots.iter_mut().for_each(|snapshot| snapshot.knows_clears = false);
        }
        self.base.view = view;
        self.base.length = end;
        // It grows again, and shows nothing of before.
        if self.random.below(3) > 0 {
            self.base.length = end.max(LENGTH_MAX - self.random.below(3) * 1_000);
        }
    }

    /// The base is copied to the other file.
    async fn copy(&mut self) {
        let branch = move |view: FileView, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let Some(branch) = view.branch(rows, tick.id(1), changes)? else { return Ok(None) };
            let view = if branch.needs_this { view.move_on(changes) } else { view };
            Ok(Some((branch.view, view)))
        };
        // The epoch that a snapshot keeps must not lose its reference to a copy.
        self.keeps = false;
        let mut copied = self.change(branch).await;
        if copied.is_none() {
            FileView::settle(&*self.bench.0, self.base.view.map).await.unwrap();
            self.snapshots.iter_mut().for_each(|snapshot| snapshot.knows_clears = false);
            copied = self.change(branch).await;
        }
        let (view, base) = copied.unwrap();
        self.base.view = base;
        if let Some(other) = self.other.replace(State { view, ..self.base.clone() }) {
            self.bench.let_go(other.view).await;
        }
    }

    /// A range of the base becomes that of the base, of the other file, or of a snapshot. Nothing changes if that is too much at once.
    async fn share(&mut self) {
        let mut to = self.span();
        // Every other page stays behind: that makes many runs.
        let is_striped = self.random.below(3) == 0;
        if is_striped {
            to.end = to.end.max(to.start + self.random.below(30_000)).min(self.base.length);
        }
        if self.compacts {
            // A rewrite may fill gaps within pages, which a hole inside of a page would show.
            to = ByteSpan { start: to.start - to.start % PAGE_BYTES, end: to.end - to.end % PAGE_BYTES };
        }
        let count = self.snapshots.len() as u64;
        let source = match self.random.below(3 + count) {
            0 | 1 => None,
            2 => self.other.clone(),
            n => Some(self.snapshots[(n - 3) as usize].state.clone()),
        };
        let from_view = source.as_ref().map(|state| state.view);
        let State { length, model, .. } = source.unwrap_or_else(|| self.base.clone());
        if to.start >= to.end || to.length() > length {
            return;
        }
        let start = match self.random.below(3) {
            0 => (9_000 + self.random.below(2_000)).min(length - to.length()),
            1 => self.random.below(length - to.length() + 1),
            _ => to.start.min(length - to.length()),
        };
        let from = ByteSpan { start, end: start + to.length() };
        let share = move |view: FileView, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            let found = from_view.unwrap_or(view).extents(rows, from, usize::MAX)?.unwrap_or_default();
            let place = |at: u64| to.start + (at - from.start);
            let moved = |extent: Extent| {
                let span = ByteSpan { start: place(extent.span.start), end: place(extent.span.end) };
                Extent { span, ..extent }
            };
            let mut extents: Vec<Extent> = found.into_iter().map(moved).collect();
            if is_striped {
                extents = extents.into_iter().flat_map(even_pages).collect();
            }
            let is_shared = view.share_over(rows, (to, &extents), tick, changes)?;
            Ok(is_shared.then_some(extents))
        };
        let Some(extents) = self.change(share).await else {
            self.shares.1 += 1;
            return;
        };
        self.shares.0 += 1;
        let mut bytes = model.bytes[from.start as usize..from.end as usize].to_vec();
        for (_, byte) in (to.start..).zip(&mut bytes).filter(|(at, _)| is_striped && at / PAGE_BYTES % 2 == 1) {
            *byte = 0;
        }
        self.base.model.share(to, &bytes, &extents, self.step);
    }

    /// The base is replaced by the other file, which goes.
    async fn replace(&mut self) {
        let Some(other) = self.other.take() else { return };
        self.keeps = false;
        self.bench.let_go(self.base.view).await;
        self.base = other;
        self.snapshots.iter_mut().for_each(|snapshot| snapshot.is_comparable = false);
    }

    async fn drop_snapshot(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        let at = self.random.below(self.snapshots.len() as u64) as usize;
        let snapshot = self.snapshots.remove(at);
        self.bench.let_go(snapshot.state.view).await;
    }

    async fn sweep(&self) {
        match self.compacts {
            true => self.bench.sweep(&MapCollector).await,
            false => self.bench.sweep(&PrunesOnly).await,
        }
    }

    async fn step(&mut self) {
        self.step += 1;
        match self.random.below(100) {
            0..42 => self.write().await,
            42..50 => self.share().await,
            50..70 => self.clear().await,
            70..76 => self.cut().await,
            76..84 if self.snapshots.len() < 5 => self.keeps = true,
            84..88 => self.drop_snapshot().await,
            88..91 => self.copy().await,
            91..92 => self.replace().await,
            _ => self.sweep().await,
        }
        if self.step.is_multiple_of(5) {
            self.check().await;
        }
    }

    async fn check(&mut self) {
        let snapshots = self.snapshots.iter().map(|snapshot| &snapshot.state);
        for state in snapshots.chain([&self.base]).chain(&self.other) {
            let State { view, length, model } = state;
            let bytes = self.bench.bytes(*view, 0, *length).await;
            if bytes != model.bytes[..*length as usize] {
                let wrong = bytes.iter().zip(&model.bytes).position(|(is, expected)| is != expected);
                panic!("byte {wrong:?} of {view:?} is wrong at step {}, seed {}", self.step, self.seed);
            }
            let expected = model.ranges(*length, |page| model.is_written(page));
            assert_eq!(self.bench.ranges(*view, *length).await, expected, "step {}, seed {}", self.step, self.seed);
        }
        for snapshot in self.snapshots.iter().filter(|snapshot| snapshot.is_comparable) {
            self.check_changes(snapshot).await;
        }
    }

    async fn check_changes(&self, snapshot: &Snapshot) {
        let State { view, length, model } = &self.base;
        let (written, cleared) = self.bench.changes(*view, (snapshot.state.view, snapshot.at), *length).await;
        let before = &snapshot.state.model;
        let is_told = |ranges: &[(u64, u64)], page: usize| {
            ranges.iter().any(|(start, end)| (*start..*end).contains(&(page as u64 * PAGE_BYTES)))
        };
        for page in 0..length.div_ceil(PAGE_BYTES) as usize {
            let (was, is) = (before.is_written(page), model.is_written(page));
            let (known, now) = (is_told(&written, page), is_told(&cleared, page));
            let place = format!("page {page} at step {} since {}, seed {}", self.step, snapshot.step, self.seed);
            let bytes = page * PAGE..(page + 1) * PAGE;
            let differs = before.bytes[bytes.clone()] != model.bytes[bytes];
            let state = model.pages[page];
            let must_be_written = is && (differs || !was || state.written_at > snapshot.step);
            let must_be_cleared = !is && (was || snapshot.knows_clears && state.cleared > snapshot.step);
            assert!(!must_be_written || known, "not told as written: {place}");
            assert!(!must_be_cleared || now, "not told as cleared: {place}");
            assert!(is || !known, "told as written: {place}");
            assert!(!is || !now, "told as cleared: {place}");
            let may = self.compacts || state.touched > snapshot.step || was != is;
            assert!(may || !known && !now, "told, but nothing has changed: {place}");
        }
    }

    /// Says how many ranges were shared, and how many were too much.
    async fn end(mut self) -> (usize, usize) {
        self.check().await;
        let snapshots = self.snapshots.iter().map(|snapshot| snapshot.state.view);
        for view in snapshots.chain([self.base.view]).chain(self.other.iter().map(|other| other.view)) {
            self.bench.let_go(view).await;
        }
        self.sweep().await;
        assert_eq!(self.bench.figures(), (0, 0));
        self.shares
    }
}

/// What an extent has in every other page.
fn even_pages(extent: Extent) -> impl Iterator<Item = Extent> {
    let pages = extent.span.start / PAGE_BYTES..extent.span.end.div_ceil(PAGE_BYTES);
    pages.filter(|page| page % 2 == 0).map(move |page| {
        let span = ByteSpan { start: page * PAGE_BYTES, end: (page + 1) * PAGE_BYTES }.cut_to(extent.span);
        Extent { span, skip: extent.skip + (span.start - extent.span.start), ..extent }
    })
}

async fn play(seeds: std::ops::RangeInclusive<u64>, steps: usize, compacts: bool) {
    let mut shares = (0, 0);
    for seed in seeds {
        let mut play = Play::new(seed, compacts).await;
        for _ in 0..steps {
            play.step().await;
        }
        let (shared, refused) = play.end().await;
        shares = (shares.0 + shared, shares.1 + refused);
    }
    assert!(shares.0 > 50 && shares.1 > 0, "{shares:?}");
}

/// Whatever is done to it, a file is its bytes, and what is told of it is what was done.
#[tokio::test]
async fn a_map_of_bytes_is_plain_bytes() {
    play(1..=6, 250, false).await;
}

/// The same while groups are rewritten all the time.
#[tokio::test]
async fn rewritten_groups_are_the_same_bytes() {
    play(11..=16, 250, true).await;
}
