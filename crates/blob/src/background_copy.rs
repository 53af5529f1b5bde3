//! Copies into blobs that go on after their answer: how [`content::background_copy`] finds, writes and ends a blob.

use content::background_copy::{Copier, Destination, Done, end};
use content::copy_state::{CopyState, CopyStatus};
use content::map::{ByteSpan, PageView};
use engine::{Changes, Key, Rows, Staged, Tick, Unread};
use service::{codec, space};

use crate::model::blocks;
use crate::model::tier::TierSet;
use crate::model::{self, Blob, BlobType, Committed, ContentRef, ListEntry, chunk_key};

/// Runs the background copies of the service.
pub type BlobCopier = Copier<BlobDestination>;

/// The blob that a copy fills, by its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobDestination(pub Key);

impl Destination for BlobDestination {
    const SPACE: u8 = space::COPY;

    type Found = (Blob, Committed);

    fn to_bytes(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<BlobDestination> {
        Some(BlobDestination(Key::from_bytes(bytes)))
    }

    fn partition(&self) -> Key {
        self.0.clone()
    }

    fn find(&self, rows: &dyn Rows, job: u64) -> Result<Option<(Blob, Committed)>, Unread> {
        let Some(mut blob) = model::find_blob(rows, &self.0)? else { return Ok(None) };
        let is_ours = |copy: &CopyState| copy.status == CopyStatus::Pending && copy.job == Some(job);
        let Some(state) = blob.committed.take() else { return Ok(None) };
        Ok(state.copy.as_deref().is_some_and(is_ours).then_some((blob, state)))
    }

    fn store(&self, (mut blob, state): (Blob, Committed), _: &dyn Rows, changes: &mut Changes) -> Result<(), Unread> {
        blob.committed = Some(state);
        changes.put(self.0.clone(), codec::encode(&blob));
        Ok(())
    }

    fn copy((_, state): &mut (Blob, Committed)) -> Option<&mut CopyState> {
        state.copy.as_deref_mut()
    }

    fn is_sparse((_, state): &(Blob, Committed)) -> bool {
        match state.kind {
            BlobType::Block | BlobType::Append { .. } => false,
            BlobType::Page { .. } => true,
        }
    }

    fn write(
        (_, state): &mut (Blob, Committed),
        span: ByteSpan,
        staged: &Staged,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        match state.content {
            ContentRef::Pages(view) => {
                // Readers see it, so it is another state of the blob.
                state.stamp = tick.stamp;
                view.write(rows, span, staged, tick, changes)
            }
            ContentRef::Empty | ContentRef::Whole(_) | ContentRef::Blocks(_) | ContentRef::Shared(_) => Ok(()),
        }
    }

    fn clear(
        (_, state): &mut (Blob, Committed),
        _: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        state.let_content_go(changes, tick.now);
        state.content = no_pages(tick, changes);
        state.stamp = tick.stamp;
        Ok(())
    }

    fn complete((_, state): &mut (Blob, Committed), pieces: &[Staged], done: &Done, tick: Tick, changes: &mut Changes) {
        state.stamp = tick.stamp;
        if let BlobType::Append { sealed, .. } = state.kind {
            state.kind = BlobType::Append { blocks: u32::try_from(pieces.len()).unwrap_or(u32::MAX), sealed };
        }
        state.length = done.length;
        if let Some(md5) = &done.content_md5 {
            state.headers.content_md5 = Some(md5.clone());
        }
        match (state.kind, pieces) {
            (BlobType::Page { .. }, _) | (_, []) => {}
            (BlobType::Block, [whole]) => {
                changes.store(whole, state.version);
                state.content = ContentRef::Whole(whole.id().0);
            }
            (BlobType::Block | BlobType::Append { .. }, pieces) => {
                state.content = ContentRef::Blocks(list(pieces, state, tick, changes));
            }
        }
    }

    fn empty(
        &self,
        (_, state): &mut (Blob, Committed),
        _: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        // The blob stays, and with it all that is said of it but its bytes.
        state.let_content_go(changes, tick.now);
        state.headers.content_md5 = None;
        state.content = match state.kind {
            BlobType::Block | BlobType::Append { .. } => ContentRef::Empty,
            BlobType::Page { .. } => no_pages(tick, changes),
        };
        state.length = 0;
        state.stamp = tick.stamp;
        // Nothing is left that would have to come out of the archive.
        if let Some(back) = state.rehydration.take() {
            state.tier = Some(TierSet { tier: back.to, since: tick.stamp, is_inferred: false });
        }
        Ok(())
    }
}

/// Ends the copy that the blob at `key` waits for, by itself or by a job, and returns which job that was.
pub fn abort(
    rows: &dyn Rows,
    key: Key,
    (blob, state): (Blob, Committed),
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<u64>, Unread> {
    let (destination, mut found) = (BlobDestination(key), (blob, state));
    let job = end(&destination, &mut found, (CopyStatus::Aborted, None), rows, tick, changes)?;
    destination.store(found, rows, changes)?;
    Ok(job)
}

/// A page map in which nothing is written.
fn no_pages(tick: Tick, changes: &mut Changes) -> ContentRef {
    let view = PageView::new(tick.id(2));
    view.create(changes);
    ContentRef::Pages(view)
}

/// A list of contents that follow each other. A block has an id in it, an appended one has none.
fn list(pieces: &[Staged], state: &Committed, tick: Tick, changes: &mut Changes) -> u64 {
    let list = tick.id(2);
    let id = |at: usize| match state.kind {
        BlobType::Block | BlobType::Page { .. } => (at as u64).to_be_bytes().to_vec(),
        BlobType::Append { .. } => Vec::new(),
    };
    let entry = |(at, piece): (usize, &Staged)| ListEntry { id: id(at), content: piece.id().0, size: piece.length() };
    let entries: Vec<ListEntry> = pieces.iter().enumerate().map(entry).collect();
    for piece in pieces {
        changes.store(piece, list);
    }
    for (end, row) in blocks::list_chunks(&entries) {
        changes.put(chunk_key(list, end), row);
    }
    changes.refer(list, state.version);
    list
}

/// Reads a row as that of a copy under way.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz(row: &[u8]) {
    let _ = codec::decode::<content::background_copy::Job>(row).is_ok();
}

#[cfg(test)]
mod tests;
