//! Groups of files that small writes have broken into many runs are rewritten as one content.
//!
//! Every write brings the row of its group along, so a group of many runs makes each write slow. More than [`RUNS_DUE`] runs
//! ask the collector to rewrite the group; at more than [`RUNS_MAX`] a writer must do it first ([`Found::crowded`]). The bytes
//! are read and staged before the decision, which only counts if the row is still the same. It names the same bytes as
//! before, so readers at any epoch see no difference.
//!
//! Comparisons with a snapshot go by contents. So pages that are as the newest snapshot saw them keep their runs, unless too
//! many runs would be left; then the next comparison tells more pages than have changed.

use std::collections::VecDeque;
use std::convert::Infallible;

use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, EngineError, Key, Rows, Unread, Visit, commit, due, read};
use service::{codec, space, unrefused};

use super::group::{Group, Run};
use super::read::{Found, OpenContents};
use super::{FileView, GROUP_BYTES, PAGE_BYTES, View, group_rows, key, parts, rows_of};
use crate::pieces::{self, Piece};

/// A group with more runs than this is rewritten in the background.
pub const RUNS_DUE: usize = if cfg!(test) { 16 } else { 256 };
/// A group with more runs than this must be rewritten before the next write.
pub const RUNS_MAX: usize = if cfg!(test) { 64 } else { 2_048 };
/// If more runs than this would be left, pages that a snapshot sees are rewritten, too. Alternating pages make so many at
/// most, so a rewritten group is never crowded.
const RUNS_LEFT_MAX: usize = RUNS_MAX / 2;
/// How often a rewrite begins anew because the group was written meanwhile.
const ATTEMPTS: usize = 4;

/// Ends the owner of due rows that ask for a group to be rewritten.
pub(super) const DUE_MARK: u8 = 1;

/// The content of runs that are not staged yet.
const NEW: u64 = u64::MAX;

/// A group that must be rewritten, with [`compact`], before it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowded {
    pub map: u64,
    pub group: u64,
}

/// The due row that asks for a group to be rewritten.
pub(super) fn due_row(map: u64, group: u64, now: Timestamp) -> Key {
    let owner = [&map.to_be_bytes()[..], &group.to_be_bytes(), &[DUE_MARK]].concat();
    due::key(now, space::PAGE_MAP, &owner)
}

/// Whether a write that leaves so many runs asks for the group to be rewritten: not each one does.
pub(super) fn is_due(before: usize, after: usize) -> bool {
    let step = |runs: usize| runs.saturating_sub(1) / RUNS_DUE;
    step(before) < step(after)
}

impl Found {
    /// Whether it must be rewritten before it is written to.
    pub(super) fn crowded(&self, group: u64) -> Option<Crowded> {
        (self.group.runs.len() > RUNS_MAX).then_some(Crowded { map: self.map, group })
    }
}

/// Rewrites a group of a file's map as one content, if that leaves fewer runs.
pub async fn compact(engine: &dyn Engine, map: u64, group: u64) -> Result<(), EngineError> {
    for _ in 0..ATTEMPTS {
        let planned = read::<_, Infallible, _>(engine, move |rows, _| Ok(Plan::of(rows, map, group)?));
        let Some(mut plan) = unrefused(planned.await)? else { return Ok(()) };
        let mut writer = engine.writer(Some(plan.length()));
        while let Some(bytes) = pieces::next(&mut plan.pieces).await? {
            writer.write(bytes).await?;
        }
        let staged = writer.finish().await?;
        let rewritten = commit::<_, Infallible, _>(engine, rows_of(map), move |rows, tick| {
            let key = key(map, group, plan.epoch);
            let is_same =
                rows.get(&key)?.map(|row| codec::decode::<Group>(&row)).transpose()?.as_ref() == Some(&plan.before);
            let mut changes = Changes::none();
            if is_same {
                let after = plan.after(staged.id().0);
                changes.store(&staged, after.id);
                for content in plan.before.contents().difference(&after.contents()) {
                    changes.unrefer(space::CONTENT, *content, after.id, tick.now);
                }
                changes.put(key, codec::encode(&after));
            }
            Ok(Commit { changes, outcome: is_same })
        });
        if unrefused(rewritten.await)? {
            return Ok(());
        }
    }
    Ok(())
}

/// A rewrite, before its bytes are staged.
struct Plan {
    epoch: u64,
    before: Group,
    /// The runs once it is rewritten. Those of the new content name [`NEW`].
    runs: Vec<Run>,
    /// The bytes of the new content.
    pieces: VecDeque<Piece>,
}

impl Plan {
    /// For the newest row of a group. `None`: it has none, or too few runs to gain anything.
    fn of(rows: &dyn Rows, map: u64, group: u64) -> Result<Option<Plan>, Unread> {
        let Some((epoch, before)) = newest_row(rows, map, group)? else { return Ok(None) };
        let view: FileView = View { map, epoch };
        let earlier = view.earlier_group(rows, group)?;
        let mut runs = rewritten(&before, earlier.as_ref());
        if runs.len() > RUNS_LEFT_MAX {
            runs = rewritten(&before, None);
        }
        if runs.len() >= before.runs.len() {
            return Ok(None);
        }
        let mut contents = OpenContents::new(rows);
        let mut pieces = VecDeque::new();
        for new in runs.iter().filter(|run| run.content == NEW) {
            let mut at = new.first;
            for old in before.runs_within(new.first, new.end()) {
                if at < old.first {
                    pieces.push_back(Piece::zeros(old.first - at));
                }
                pieces.push_back(contents.run(old)?);
                at = old.end();
            }
        }
        Ok(Some(Plan { epoch, before, runs, pieces }))
    }

    fn length(&self) -> u64 {
        self.runs.iter().filter(|run| run.content == NEW).map(|run| run.count).sum()
    }

    /// The row, once the bytes are in `content`.
    fn after(&self, content: u64) -> Group {
        let named = |run: &Run| if run.content == NEW { Run { content, ..*run } } else { *run };
        Group { runs: self.runs.iter().map(named).collect(), ..self.before.clone() }
    }
}

/// The newest row of a group, with its epoch.
fn newest_row(rows: &dyn Rows, map: u64, group: u64) -> Result<Option<(u64, Group)>, Unread> {
    let mut newest: Option<Result<(u64, Group), Unread>> = None;
    rows.scan(&group_rows(map, group), &group_rows(map, group).after_all(), 1, &mut |key, row| {
        newest = Some(parts(key).and_then(|(_, epoch)| Ok((epoch, codec::decode(row)?))));
        Visit::Next
    })?;
    newest.transpose()
}

/// The runs of a group in which each stretch of pages is one run of a new content, but for pages that are as in `earlier`.
/// What is unwritten within a stretch becomes zeros, which changes nothing: clients are told of whole pages.
fn rewritten(group: &Group, earlier: Option<&Group>) -> Vec<Run> {
    let pages = |from: u64, to: u64| (from / PAGE_BYTES) as usize..to.div_ceil(PAGE_BYTES) as usize;
    let mut is_written = [false; (GROUP_BYTES / PAGE_BYTES) as usize];
    group.runs.iter().for_each(|run| is_written[pages(run.first, run.end())].fill(true));
    let is_new = match earlier {
        None => is_written,
        Some(earlier) => {
            let mut is_new = [false; (GROUP_BYTES / PAGE_BYTES) as usize];
            for (from, to) in earlier.changes_to(group, Timestamp(u64::MAX)) {
                // Pages that are unwritten now have changed, too, and stay unwritten.
                let pages = pages(from, to);
                is_new[pages.clone()].copy_from_slice(&is_written[pages]);
            }
            is_new
        }
    };
    let mut runs = Vec::new();
    let mut length = 0;
    let mut at = 0;
    for stretch in is_new.chunk_by(|a, b| a == b) {
        let (from, to) = (at, at + stretch.len() as u64 * PAGE_BYTES);
        at = to;
        if !stretch[0] {
            runs.extend(group.runs_within(from, to));
            continue;
        }
        let mut inside = group.runs_within(from, to);
        let Some(first) = inside.next() else { continue };
        let end = inside.last().unwrap_or(first).end();
        let count = end - first.first;
        runs.push(Run { first: first.first, count, content: NEW, skip: length });
        length += count;
    }
    runs
}
