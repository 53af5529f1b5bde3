//! Page blobs against a plain list of pages: writes, clears, snapshots, resizes and copies.

use std::collections::BTreeSet;

use content::map::{GROUP_BYTES, ORIGINS_MAX, PAGE_BYTES};

use crate::model::PAGE_BLOB_BYTES_MAX;
use crate::testing::{Bench, Random, between, header};

const GROUP_PAGES: u64 = GROUP_BYTES / PAGE_BYTES;

/// A page as the reference has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Page {
    /// 0 for zeros, otherwise which write it is of.
    write: u64,
    /// The step that last made zeros of something.
    cleared: usize,
}

impl Page {
    fn clear(&mut self, step: usize) {
        if self.write != 0 {
            *self = Page { write: 0, cleared: step };
        }
    }
}

/// A blob as a plain list of pages.
type Model = Vec<Page>;

const LENGTHS: [u64; 4] = [0, 2_050, 4_100, 3 * GROUP_PAGES];

/// A page, mostly near the border of a group.
fn some_page(random: &mut Random, end: u64) -> u64 {
    let near = random.below(5) * GROUP_PAGES / 2 + random.below(12);
    near.saturating_sub(6).min(end)
}

struct Play {
    bench: Bench,
    random: Random,
    base: Model,
    /// Pages beyond the end of the blob, up to the largest it may get.
    cut: Model,
    /// By URL, with the step at which it was taken.
    snapshots: Vec<(String, Model, usize)>,
    writes: u64,
    steps: usize,
    /// Another blob, to which the first is copied and from which it is copied back.
    other: Option<Model>,
    copies: bool,
}

const URL: &str = "cont/blob?comp=page";

impl Play {
    async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> wire::http::Reply {
        self.bench.call(method, url, headers, body).await.unwrap()
    }

    async fn step(&mut self) {
        self.steps += 1;
        let end = self.base.len() as u64;
        let first = some_page(&mut self.random, end);
        let is_short = self.random.below(3) > 0;
        let last = if is_short { (first + self.random.below(12)).min(end) } else { some_page(&mut self.random, end) };
        let (first, last) = (first.min(last), first.max(last));
        let range = format!("bytes={}-{}", first * PAGE_BYTES, (last * PAGE_BYTES).wrapping_sub(1));
        match self.random.below(100) {
            0..40 if first < last => {
                self.writes += 1;
                let pages = (last - first).min(40);
                let range = format!("bytes={}-{}", first * PAGE_BYTES, (first + pages) * PAGE_BYTES - 1);
                let body: Vec<u8> = (first..first + pages).flat_map(|page| bytes_of(page, self.writes)).collect();
                self.call("PUT", URL, &[("x-ms-page-write", "update"), ("x-ms-range", &range)], &body).await;
                let written = Page { write: self.writes, cleared: 0 };
                self.base[first as usize..(first + pages) as usize].fill(written);
            }
            40..65 if first < last => {
                self.call("PUT", URL, &[("x-ms-page-write", "clear"), ("range", &range)], b"").await;
                let pages = &mut self.base[first as usize..last as usize];
                pages.iter_mut().for_each(|page| page.clear(self.steps));
            }
            65..75 if self.snapshots.len() < 6 => {
                let answer = self.call("PUT", "cont/blob?comp=snapshot", &[], b"").await;
                let url = format!("cont/blob?snapshot={}", header(&answer, "x-ms-snapshot").unwrap());
                self.snapshots.push((url, self.base.clone(), self.steps));
            }
            75..85 if !self.snapshots.is_empty() => {
                let at = self.random.below(self.snapshots.len() as u64) as usize;
                let (url, ..) = self.snapshots.remove(at);
                self.call("DELETE", &url, &[], b"").await;
            }
            85..90 => {
                let length = LENGTHS[self.random.below(4) as usize];
                let bytes = (length * PAGE_BYTES).to_string();
                self.call("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-length", &bytes)], b"").await;
                // Pages that are cut off are cleared, which shows once the blob grows again.
                self.base.append(&mut self.cut);
                self.cut = self.base.split_off(length as usize);
                self.cut.iter_mut().for_each(|page| page.clear(self.steps));
            }
            90 => self.create().await,
            91..93 => {
                self.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"").await;
                self.snapshots.clear();
            }
            93..95 if self.copies => {
                self.copy("cont/blob", "cont/other").await;
                self.other = Some(self.base.clone());
            }
            95..97 if self.copies && self.other.is_some() => {
                self.copy("cont/other", "cont/blob").await;
                self.begin_with(self.other.clone().unwrap());
            }
            97 if self.copies => {
                if let Some((url, model, _)) = self.snapshots.last().cloned() {
                    self.copy(&url, "cont/blob").await;
                    self.begin_with(model);
                }
            }
            98 if self.copies && self.other.take().is_some() => {
                self.call("DELETE", "cont/other", &[], b"").await;
            }
            _ => self.check_contents().await,
        }
    }

    async fn copy(&self, from: &str, to: &str) {
        self.call("PUT", to, &[("x-ms-copy-source", &crate::testing::url(from))], b"").await;
    }

    async fn create(&mut self) {
        let bytes = (3 * GROUP_BYTES).to_string();
        let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*bytes)];
        self.call("PUT", "cont/blob", &headers, b"").await;
        self.begin_with(vec![Page::default(); 3 * GROUP_PAGES as usize]);
    }

    fn begin_with(&mut self, model: Model) {
        self.cut = vec![Page::default(); 3 * GROUP_PAGES as usize - model.len()];
        self.base = model;
    }

    /// Once everything is swept, those contents are left of which somebody can see a page.
    async fn check_contents(&mut self) {
        self.bench.sweep().await;
        let snapshots = self.snapshots.iter().flat_map(|(_, model, _)| model);
        let pages = self.base.iter().chain(snapshots).chain(self.other.iter().flatten());
        let mut seen: BTreeSet<u64> = pages.map(|page| page.write).collect();
        seen.remove(&0);
        let (seen, stored) = (seen.len() as u64, self.bench.figures().1);
        // A map that stands behind another keeps what it had, seen or not.
        assert!(if self.copies { seen <= stored } else { seen == stored }, "{seen} {stored}");
    }

    async fn check(&mut self, all: bool) {
        let base = ("cont/blob".to_owned(), self.base.clone(), 0);
        let other = self.other.clone().map(|model| ("cont/other".to_owned(), model, 0));
        for (url, model, _) in self.snapshots.iter().chain([&base]).chain(&other) {
            let joint = if url.contains('?') { '&' } else { '?' };
            let told = self.bench.text("GET", &format!("{url}{joint}comp=pagelist")).await;
            assert_eq!(listed(&told), ranges_of(model, |_, page| page.write != 0), "{url}");
            if url != "cont/other" {
                self.check_changes(url, model).await;
            }
            let whole = 0..model.len() as u64;
            let from = some_page(&mut self.random, model.len() as u64);
            let span = if all { whole } else { from..(from + 20).min(model.len() as u64) };
            if span.is_empty() {
                continue;
            }
            let range = format!("bytes={}-{}", span.start * PAGE_BYTES, span.end * PAGE_BYTES - 1);
            let part = self.call("GET", url, &[("range", &range)], b"").await;
            let part = crate::testing::bytes(part).await;
            for (page, bytes) in span.zip(part.chunks(PAGE_BYTES as usize)) {
                assert!(bytes == bytes_of(page, model[page as usize].write), "{url}: page {page}");
            }
        }
    }
}

impl Play {
    /// Against the snapshots that were taken before, unless the blob was made anew since then.
    async fn check_changes(&self, url: &str, model: &Model) {
        let joint = if url.contains('?') { '&' } else { '?' };
        let at = self.snapshots.iter().position(|(known, ..)| known == url).unwrap_or(self.snapshots.len());
        for (earlier, before, taken) in &self.snapshots[..at] {
            let id = earlier.split_once('=').unwrap().1;
            let list = format!("{url}{joint}comp=pagelist&prevsnapshot={id}");
            let told = match self.bench.call("GET", &list, &[], b"").await {
                Ok(answer) => String::from_utf8(crate::testing::bytes(answer).await).unwrap(),
                Err(error) => {
                    assert_eq!(error, crate::Failure::Refused(crate::BlobError::BlobOverwritten));
                    continue;
                }
            };
            let was = |at: usize| before.get(at).map_or(0, |page| page.write);
            let written = ranges_of(model, |at, page| page.write != 0 && page.write != was(at));
            assert_eq!(listed(&told), written, "{url} since {earlier}");
            let cleared = ranges_of(model, |at, page| page.write == 0 && (was(at) != 0 || page.cleared > *taken));
            let told = told.replace("PageRange", "").replace("ClearRange", "PageRange");
            assert_eq!(listed(&told), cleared, "{url} since {earlier}");
        }
    }
}

/// Every page of every write is another one.
fn bytes_of(page: u64, write: u64) -> Vec<u8> {
    let word = if write == 0 { [0; 8] } else { (write * 10_000 + page).to_be_bytes() };
    word.repeat(PAGE_BYTES as usize / 8)
}

fn listed(document: &str) -> Vec<(u64, u64)> {
    let number = |range: &str, name: &str| {
        between(range, &format!("<{name}>"), &format!("</{name}>"))[0].parse::<u64>().unwrap()
    };
    let ranges = between(document, "<PageRange>", "</PageRange>").into_iter();
    ranges.map(|range| (number(range, "Start") / PAGE_BYTES, (number(range, "End") + 1) / PAGE_BYTES)).collect()
}

fn ranges_of(model: &Model, counts: impl Fn(usize, &Page) -> bool) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (page, _) in model.iter().enumerate().filter(|(at, page)| counts(*at, page)) {
        let page = page as u64;
        match ranges.last_mut() {
            Some((_, end)) if *end == page => *end += 1,
            _ => ranges.push((page, page + 1)),
        }
    }
    ranges
}

async fn play(seed: u64, steps: usize, copies: bool) {
    let bench = Bench::with_container().await;
    let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (base, cut, snapshots, other) = (vec![], vec![], vec![], None);
    let mut play = Play { bench, random, base, cut, snapshots, writes: 0, steps: 0, other, copies };
    play.create().await;
    for step in 0..steps {
        play.step().await;
        play.check(step % 100 == 99).await;
    }
    play.check_contents().await;
    play.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await;
    let _ = play.bench.call("DELETE", "cont/other", &[], b"").await;
    play.bench.sweep().await;
    assert_eq!(play.bench.figures(), (1, 0), "seed {seed}");
}

/// What a clear stores depends on what was written, not on how much it covers, and goes with the last snapshot.
#[tokio::test]
async fn clears_of_huge_ranges_stay_small() {
    let bench = Bench::with_container().await;
    let length = PAGE_BLOB_BYTES_MAX;
    bench.put_pages("cont/blob", length).await;
    let empty = bench.figures();
    let put = async |kind: &str, start: u64, end: u64, body: &[u8]| {
        let range = format!("bytes={start}-{}", end - 1);
        bench.call("PUT", URL, &[("x-ms-page-write", kind), ("range", &range)], body).await.unwrap();
    };
    let made = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    let since = format!("cont/blob?comp=pagelist&prevsnapshot={}", header(&made, "x-ms-snapshot").unwrap());
    let before = bench.figures().0;
    put("clear", 0, length, b"").await;
    assert_eq!(bench.figures().0, before);
    for start in [0, GROUP_BYTES, length / 2, length - 512] {
        put("update", start, start + 512, &[1; 512]).await;
    }
    put("clear", 0, length, b"").await;
    bench.sweep().await;
    assert_eq!(bench.figures(), (before + 4, 0));
    let told = bench.text("GET", &since).await;
    assert_eq!((told.matches("<ClearRange>").count(), told.matches("<PageRange>").count()), (4, 0), "{told}");
    bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), empty);
}

/// One content in two groups, both of which a clear leaves something of: each row holds on to it by itself.
#[tokio::test]
async fn each_row_has_references_of_its_own() {
    let bench = Bench::with_container().await;
    bench.put_pages("cont/blob", 2 * GROUP_BYTES).await;
    let put = async |kind: &str, pages: std::ops::Range<u64>, with: u8| {
        let range = format!("bytes={}-{}", pages.start * PAGE_BYTES, pages.end * PAGE_BYTES - 1);
        let length = if kind == "clear" { 0 } else { (pages.end - pages.start) * PAGE_BYTES };
        let headers = [("x-ms-page-write", kind), ("range", &*range)];
        bench.call("PUT", URL, &headers, &vec![with; length as usize]).await.unwrap();
    };
    let border = GROUP_PAGES;
    put("update", border - 8..border + 8, 1).await;
    bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    put("clear", border - 1..border + 1, 0).await;
    bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"").await.unwrap();
    put("update", border - 8..border - 1, 2).await;
    bench.sweep().await;
    let whole = bench.get("cont/blob").await;
    let page = |page: u64| whole[(page * PAGE_BYTES) as usize];
    assert_eq!([border - 8, border - 2, border - 1, border, border + 1, border + 7].map(page), [2, 2, 0, 0, 1, 1]);
    assert_eq!(bench.figures().1, 2);
}

/// Writes, clears, snapshots, resizes and all that against a plain list of pages.
#[tokio::test]
async fn the_map_is_a_list_of_pages() {
    for seed in 1..=6 {
        play(seed, 500, false).await;
    }
}

/// The same with copies there and back, which put one map in front of another.
#[tokio::test]
async fn copies_are_lists_of_pages_of_their_own() {
    for seed in 11..=14 {
        play(seed, 500, true).await;
    }
}

/// A copy costs the same however many pages there are, and a long row of copies ends in maps that stand by themselves.
#[tokio::test]
async fn copies_of_copies() {
    let bench = Bench::with_container().await;
    bench.put_pages("cont/0", 20 * GROUP_BYTES).await;
    let write = async |blob: u64, page: u64, with: u8| {
        let range = format!("bytes={}-{}", page * PAGE_BYTES, (page + 1) * PAGE_BYTES - 1);
        let headers = [("x-ms-page-write", "update"), ("range", &*range)];
        bench.call("PUT", &format!("cont/{blob}?comp=page"), &headers, &[with; 512]).await.unwrap();
    };
    for group in 0..20 {
        write(0, group * GROUP_PAGES, 200).await;
    }
    let mut rows = Vec::new();
    for blob in 1..=30 {
        let from = crate::testing::url(&format!("cont/{}", blob - 1));
        let before = bench.figures().0;
        bench.call("PUT", &format!("cont/{blob}"), &[("x-ms-copy-source", &from)], b"").await.unwrap();
        rows.push(bench.figures().0 - before);
        write(blob, blob, blob as u8).await;
    }
    assert!(rows[..ORIGINS_MAX].iter().all(|rows| *rows <= 4 + ORIGINS_MAX as u64), "{rows:?}");
    for blob in (0..30).step_by(3) {
        bench.call("DELETE", &format!("cont/{blob}"), &[], b"").await.unwrap();
    }
    bench.sweep().await;
    for blob in (1..=30).filter(|blob| blob % 3 != 0) {
        let whole = bench.get(&format!("cont/{blob}")).await;
        let page = |page: u64| whole[(page * PAGE_BYTES) as usize];
        for group in 1..20 {
            assert_eq!(page(group * GROUP_PAGES), 200, "{blob}: {group}");
        }
        for at in 1..=30 {
            assert_eq!(page(at), if at <= blob { at as u8 } else { 0 }, "{blob}: {at}");
        }
    }
    bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (0, 0));
}
