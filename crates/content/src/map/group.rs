//! One row of a map: where the bytes of a group are. Values and pure functions.
//!
//! Positions and counts are in units of the map: pages of 512 bytes for page blobs, bytes for files.

use std::collections::BTreeSet;

use concurrency::Timestamp;
use minicbor::{Decode, Encode};
use service::codec;

/// The content of a run of zeros: it is stored nowhere, and no row refers to it.
pub(super) const ZEROS: u64 = 0;

/// One row: the bytes of a group, as one epoch left them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub(super) struct Group {
    /// The owner of its references to contents.
    #[n(0)]
    pub id: u64,
    /// In order, without overlap.
    #[n(1)]
    pub runs: Vec<Run>,
    /// What held something once and is unwritten now, in order, without overlap among them or with the runs.
    #[cbor(n(2), default)]
    pub cleared: Vec<Cleared>,
}

/// Units that follow each other in the resource and in one content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub(super) struct Run {
    /// The first unit, counted from the start of the group.
    #[n(0)]
    pub first: u64,
    #[n(1)]
    pub count: u64,
    #[n(2)]
    pub content: u64,
    /// The unit of the content that this begins with. Of zeros the stamp of the clear, so that two clears can be told apart.
    #[n(3)]
    pub skip: u64,
}

/// Units that follow each other and were cleared together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub(super) struct Cleared {
    /// The first unit, counted from the start of the group.
    #[n(0)]
    pub first: u64,
    #[n(1)]
    pub count: u64,
    /// The stamp of the clear.
    #[cbor(n(2), with = "codec::time")]
    pub at: Timestamp,
}

impl Cleared {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part of it from `from` up to `to`.
    fn within(&self, from: u64, to: u64) -> Option<Cleared> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        (first < end).then(|| Cleared { first, count: end - first, ..*self })
    }
}

impl Run {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part of it from `from` up to `to`.
    pub fn within(&self, from: u64, to: u64) -> Option<Run> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        (first < end).then(|| Run { first, count: end - first, skip: self.skip_at(first), ..*self })
    }

    /// The unit of the content that stands at `position`, which lies in the run. All zeros of one clear are alike.
    pub fn skip_at(&self, position: u64) -> u64 {
        if self.content == ZEROS { self.skip } else { self.skip + (position - self.first) }
    }

    /// Zeros in its place. What is zeros already stays as it is.
    fn zeroed(self, at: Timestamp) -> Run {
        if self.content == ZEROS { self } else { Run { content: ZEROS, skip: at.0, ..self } }
    }
}

impl Group {
    /// The contents that it refers to.
    pub fn contents(&self) -> BTreeSet<u64> {
        self.runs.iter().map(|run| run.content).filter(|content| *content != ZEROS).collect()
    }

    /// The runs from `from` up to `to`, cut at both.
    pub fn runs_within(&self, from: u64, to: u64) -> impl Iterator<Item = Run> {
        self.runs.iter().filter_map(move |run| run.within(from, to))
    }

    /// The group up to `end`: what lies beyond is not written.
    pub fn up_to(self, end: u64) -> Group {
        let runs = self.runs_within(0, end).collect();
        let cleared = self.cleared.iter().filter_map(|mark| mark.within(0, end)).collect();
        Group { id: self.id, runs, cleared }
    }

    /// The runs once what lies from `from` up to `to` is `run`.
    pub fn written(&self, run: Run) -> Vec<Run> {
        self.painted(run.first, run.end(), [run])
    }

    /// The runs once what lies from `from` up to `to` is unwritten.
    pub fn cut_out(&self, from: u64, to: u64) -> Vec<Run> {
        self.painted(from, to, [])
    }

    /// The runs once what lies from `from` up to `to` is zeros: whole pages of `page` units are unwritten; pages that are
    /// cleared in part stay written where they were. `at` is the stamp of the clear.
    pub fn zeroed(&self, from: u64, to: u64, page: u64, at: Timestamp) -> Vec<Run> {
        let (whole_from, whole_to) = whole_pages(from, to, page);
        let edges = [(from, whole_from), (whole_to, to)];
        let zeros = edges.into_iter().flat_map(|(from, to)| self.runs_within(from, to)).map(|run| run.zeroed(at));
        let mut runs = self.painted(from, to, zeros);
        runs.dedup_by(|next, last| {
            let is_one =
                last.end() == next.first && (last.content, last.skip) == (ZEROS, next.skip) && next.content == ZEROS;
            last.count += if is_one { next.count } else { 0 };
            is_one
        });
        runs
    }

    /// The runs once what lies from `from` up to `to` is these.
    pub fn painted(&self, from: u64, to: u64, with: impl IntoIterator<Item = Run>) -> Vec<Run> {
        let mut runs = Vec::with_capacity(self.runs.len() + 2);
        runs.extend(self.runs_within(0, from));
        runs.extend(with);
        runs.extend(self.runs_within(to, u64::MAX));
        runs
    }

    /// What is known to be cleared once what lies from `from` up to `to` is written.
    pub fn cleared_after_write(&self, from: u64, to: u64) -> Vec<Cleared> {
        outside(&self.cleared, from, to)
    }

    /// What is known to be cleared once what lies from `from` up to `to` is unwritten by the tick with the stamp `at`. What
    /// is unwritten already stays as it is.
    pub fn cleared_after_clear(&self, from: u64, to: u64, at: Timestamp) -> Vec<Cleared> {
        let mark = |run: Run| Cleared { first: run.first, count: run.count, at };
        let mut marks: Vec<Cleared> =
            self.cleared.iter().copied().chain(self.runs_within(from, to).map(mark)).collect();
        marks.sort_unstable_by_key(|mark| mark.first);
        marks.dedup_by(|next, last| {
            let is_one = last.end() == next.first && last.at == next.at;
            last.count += if is_one { next.count } else { 0 };
            is_one
        });
        marks
    }

    /// Where `after` differs, as units from and to, or was cleared after `since`.
    pub fn changes_to(&self, after: &Group, since: Timestamp) -> Vec<(u64, u64)> {
        // Between two borders every unit has one answer.
        let borders = self.runs.iter().chain(&after.runs).flat_map(|run| [run.first, run.end()]);
        let marks = after.cleared.iter().filter(|mark| mark.at > since);
        let borders = borders.chain(marks.clone().flat_map(|mark| [mark.first, mark.end()]));
        let borders: Vec<u64> = borders.collect::<BTreeSet<u64>>().into_iter().collect();
        let (old, new) = (self.places_at(&borders), after.places_at(&borders));
        let mut marks = marks.peekable();
        let mut changes = Vec::new();
        for (at, pair) in borders.windows(2).enumerate() {
            while marks.next_if(|mark| mark.end() <= pair[0]).is_some() {}
            let is_marked = marks.peek().is_some_and(|mark| mark.first <= pair[0]);
            if old[at] != new[at] || (new[at].is_none() && is_marked) {
                changes.push((pair[0], pair[1]));
            }
        }
        changes
    }

    /// Which unit of which content stands at each of some positions, which are in order.
    fn places_at(&self, positions: &[u64]) -> Vec<Option<(u64, u64)>> {
        let mut runs = self.runs.iter().peekable();
        let at = |&position: &u64| {
            while runs.next_if(|run| run.end() <= position).is_some() {}
            let run = runs.peek().filter(|run| run.first <= position)?;
            Some((run.content, run.skip_at(position)))
        };
        positions.iter().map(at).collect()
    }
}

/// Marks without what lies from `from` up to `to`.
pub(super) fn outside(marks: &[Cleared], from: u64, to: u64) -> Vec<Cleared> {
    marks.iter().flat_map(|mark| [mark.within(0, from), mark.within(to, u64::MAX)]).flatten().collect()
}

/// The whole pages of `page` units from `from` up to `to`. If there are none, both are the same border and all of it counts
/// as before it.
pub(super) fn whole_pages(from: u64, to: u64, page: u64) -> (u64, u64) {
    let first = from.next_multiple_of(page).min(to);
    (first, (to - to % page).max(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::copy::{Origin, Origins};

    const GROUP_PAGES: u64 = 2_048;
    /// When something was cleared.
    const AT: Timestamp = Timestamp(60);

    fn run(first: u64, count: u64, content: u64, skip: u64) -> Run {
        Run { first, count, content, skip }
    }

    #[test]
    fn what_is_written_over_is_cut() {
        let group = Group { id: 1, runs: vec![run(0, 10, 7, 0), run(20, 10, 8, 5)], cleared: vec![] };
        let write = run(5, 20, 9, 0);
        assert_eq!(group.written(write), [run(0, 5, 7, 0), run(5, 20, 9, 0), run(25, 5, 8, 10)]);
        for page in [1, 2] {
            assert_eq!(group.zeroed(2, 4, page, AT), [run(0, 2, 7, 0), run(4, 6, 7, 4), run(20, 10, 8, 5)]);
            assert_eq!(group.zeroed(0, GROUP_PAGES, page, AT), []);
            assert_eq!(group.zeroed(12, 18, page, AT), group.runs);
        }
    }

    #[test]
    fn pages_that_are_cleared_in_part_stay_written() {
        let group = Group { id: 1, runs: vec![run(1_000, 100, 7, 0), run(2_000, 100, 8, 5)], cleared: vec![] };
        // The end of page 1, and all of page 2.
        assert_eq!(
            group.zeroed(1_010, 1_536, 512, AT),
            [run(1_000, 10, 7, 0), run(1_010, 14, 0, 60), run(2_000, 100, 8, 5)]
        );
        // Inside of one page.
        let inside = [run(1_000, 100, 7, 0), run(2_000, 10, 8, 5), run(2_010, 10, 0, 60), run(2_020, 28, 8, 25)];
        assert_eq!(group.zeroed(2_010, 2_020, 512, AT)[..3], inside[..3]);
        // Where nothing was written nothing is.
        assert_eq!(group.zeroed(1_200, 1_300, 512, AT), group.runs);
        assert_eq!(group.zeroed(100, 400, 512, AT), group.runs);
        // Zeros are not zeroed again, and touching ones are one run.
        let zeros = Group { runs: vec![run(0, 100, 0, 60)], ..Group::default() };
        assert_eq!(zeros.zeroed(10, 50, 512, AT), zeros.runs);
        assert_eq!(zeros.contents(), BTreeSet::new());
        let next = Group { runs: vec![run(0, 100, 0, 60), run(100, 50, 7, 0)], ..Group::default() };
        assert_eq!(next.zeroed(100, 150, 512, AT), [run(0, 150, 0, 60)]);
        // Those of an earlier clear are other zeros.
        assert_eq!(next.zeroed(100, 150, 512, Timestamp(70)), [run(0, 100, 0, 60), run(100, 50, 0, 70)]);
        assert_eq!(next.zeroed(50, 150, 512, Timestamp(70)), [run(0, 100, 0, 60), run(100, 50, 0, 70)]);
        // A cut leaves nothing, wherever it is.
        assert_eq!(group.cut_out(1_010, u64::MAX), [run(1_000, 10, 7, 0)]);
        assert_eq!(group.clone().up_to(2_010).runs, [run(1_000, 100, 7, 0), run(2_000, 10, 8, 5)]);
    }

    #[test]
    fn whole_pages_of_a_span() {
        let table = [
            ((0, 512), (0, 512)),
            ((0, 1_000), (0, 512)),
            ((1, 1_024), (512, 1_024)),
            ((1, 1_023), (512, 512)),
            ((1, 500), (500, 500)),
            ((0, 500), (0, 0)),
            ((513, 1_023), (1_023, 1_023)),
        ];
        for ((from, to), whole) in table {
            assert_eq!(whole_pages(from, to, 512), whole, "{from} to {to}");
            assert_eq!(whole_pages(from, to, 1), (from, to));
        }
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    /// Rows as they were stored for page blobs before files used the same maps, byte by byte.
    #[test]
    fn stored_rows_of_page_blobs_stay_as_they_are() {
        let mark = Cleared { first: 10, count: 3, at: Timestamp(0x08DE_0000_0000_0000) };
        let runs = vec![run(0, 10, 7, 0), run(20, 2_028, 0x8DE0_0000_0000_0065, 5)];
        let group = Group { id: 0x8DE0_0000_0000_0064, runs, cleared: vec![mark] };
        let row = bytes_of(
            "01a3001b8de0000000000064018284000a070084141907ec1b8de0000000000065050281830a031b08de000000000000",
        );
        assert_eq!(codec::encode(&group), row);
        assert_eq!(codec::decode::<Group>(&row), Ok(group));

        let origin = |map, epoch| Origin { map, epoch, end: None, start: None };
        let origins = Origins { views: vec![origin(0x8DE0_0000_0000_0064, 3), origin(9, 1)] };
        let row = bytes_of("01a10082821b8de000000000006403820901");
        assert_eq!(codec::encode(&origins), row);
        assert_eq!(codec::decode::<Origins>(&row), Ok(origins));
        let ended = Origins { views: vec![Origin { end: Some(5), ..origin(9, 1) }] };
        assert_eq!(codec::decode::<Origins>(&codec::encode(&ended)), Ok(ended));
        let begun = Origins { views: vec![Origin { start: Some(1 << 20), ..origin(9, 1) }] };
        assert_eq!(codec::decode::<Origins>(&codec::encode(&begun)), Ok(begun));
    }

    /// Rows of before there were marks.
    #[test]
    fn rows_without_marks_are_read() {
        #[derive(Encode)]
        #[cbor(map)]
        struct Before {
            #[n(0)]
            id: u64,
            #[n(1)]
            runs: Vec<Run>,
        }
        let runs = vec![run(0, 10, 7, 0)];
        let row = codec::encode(&Before { id: 1, runs: runs.clone() });
        assert_eq!(codec::decode::<Group>(&row).unwrap(), Group { id: 1, runs, cleared: vec![] });
    }

    #[test]
    fn clears_are_marked_where_something_was() {
        let mark = |first, count, at| Cleared { first, count, at: Timestamp(at) };
        let runs = vec![run(0, 10, 7, 0), run(10, 2, 8, 0), run(20, 10, 9, 5)];
        let group = Group { id: 1, runs, cleared: vec![mark(12, 3, 50)] };
        assert_eq!(group.cleared_after_clear(2, 4, Timestamp(60)), [mark(2, 2, 60), mark(12, 3, 50)]);
        let all = group.cleared_after_clear(0, GROUP_PAGES, Timestamp(60));
        assert_eq!(all, [mark(0, 12, 60), mark(12, 3, 50), mark(20, 10, 60)]);
        assert_eq!(group.cleared_after_clear(12, 20, Timestamp(60)), group.cleared);
        assert_eq!(group.cleared_after_write(13, 14), [mark(12, 1, 50), mark(14, 1, 50)]);
        assert_eq!(group.cleared_after_write(0, 12), group.cleared);

        let after = Group { id: 1, runs: vec![run(14, 1, 7, 0)], cleared: vec![mark(12, 2, 50), mark(30, 4, 60)] };
        let changes = |since| Group::default().changes_to(&after, Timestamp(since));
        assert_eq!(changes(49), [(12, 14), (14, 15), (30, 34)]);
        assert_eq!(changes(50), [(14, 15), (30, 34)]);
        assert_eq!(changes(60), [(14, 15)]);
    }
}
