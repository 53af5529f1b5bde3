//! Copies into files that go on after their answer: how [`content::background_copy`] finds, writes and ends a file.
//!
//! A file has its length from the beginning, so that the quota is judged when the copy is asked for; it holds zeros, which fill up.

use concurrency::Timestamp;
use content::background_copy::{Copier, Destination, Done};
use content::copy_state::{CopyState, CopyStatus};
use content::map::{ByteSpan, FileView};
use content::source::Extent;
use engine::{Changes, Key, KeyReader, Rows, Staged, Stop, Tick, Unread, Visit};
use service::{codec, space};
use wire::names::ShareName;

use crate::change::entry;
use crate::change::write::MAP_ID;
use crate::model::{DeletedShare, FileState, Node, NodeKind, deleted_shares_named, find_guard, share_key};
use crate::tree::{self, Spot};

/// Runs the background copies of the service.
pub type FileCopier = Copier<FileDestination>;

/// The file that a copy fills. Its id stays when it, or a directory above it, is renamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDestination {
    pub account: u64,
    pub share: ShareName,
    pub generation: u64,
    pub id: u64,
}

/// A file that waits for a copy.
pub type WaitingFile = (Spot, Node);

impl Destination for FileDestination {
    const SPACE: u8 = space::FILE_COPY;

    type Found = WaitingFile;

    fn to_bytes(&self) -> Vec<u8> {
        let key = Key::new(Self::SPACE).number(self.account).text(self.share.as_str());
        key.number(self.generation).number(self.id).as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<FileDestination> {
        let mut reader = KeyReader::new(bytes);
        let (account, share) = (reader.number()?, ShareName::parse(&reader.text()?).ok()?);
        Some(FileDestination { account, share, generation: reader.number()?, id: reader.number()? })
    }

    fn partition(&self) -> Key {
        share_key(self.account, &self.share)
    }

    fn find(&self, rows: &dyn Rows, job: u64) -> Result<Option<WaitingFile>, Unread> {
        let share = find_guard(rows, self.account, &self.share)?;
        let Some(share) = share.filter(|share| share.generation == self.generation) else { return Ok(None) };
        let Some(spot) = tree::find_by_id(rows, share, self.id)? else { return Ok(None) };
        let is_ours = |copy: &CopyState| copy.status == CopyStatus::Pending && copy.job == Some(job);
        let Some(node) = spot.node.clone().filter(|node| node.id == self.id) else { return Ok(None) };
        let copy = node.file().and_then(|state| state.copy.as_deref());
        Ok(copy.is_some_and(is_ours).then_some((spot, node)))
    }

    /// With its share, if that is deleted and can be restored.
    fn may_return(&self, rows: &dyn Rows, now: Timestamp) -> Result<bool, Unread> {
        let all = deleted_shares_named(self.account, &self.share);
        let mut found = Ok(false);
        rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
            let deleted = codec::decode::<DeletedShare>(row);
            let is_ours =
                |deleted: DeletedShare| deleted.share.generation == self.generation && deleted.mark.is_kept(now);
            found = deleted.map(is_ours);
            if matches!(found, Ok(false)) { Visit::Next } else { Visit::Stop }
        })?;
        found
    }

    fn store(&self, (spot, mut node): WaitingFile, rows: &dyn Rows, changes: &mut Changes) -> Result<(), Unread> {
        entry::begin(&spot, &mut node, rows, changes)?;
        entry::replace(&spot, &node, changes);
        Ok(())
    }

    fn copy((_, node): &mut WaitingFile) -> Option<&mut CopyState> {
        state_of(node).and_then(|state| state.copy.as_deref_mut())
    }

    fn is_sparse(_: &WaitingFile) -> bool {
        true
    }

    fn write(
        (spot, node): &mut WaitingFile,
        span: ByteSpan,
        staged: &Staged,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        entry::begin(spot, node, rows, changes)?;
        // Readers see it, so it is another state of the file.
        node.stamp = tick.stamp;
        node.file().map_or(Ok(()), |state| state.view.write(rows, span, staged, tick, changes))
    }

    fn share(
        (spot, node): &mut WaitingFile,
        shared: (ByteSpan, &[Extent]),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<bool, Unread> {
        entry::begin(spot, node, rows, changes)?;
        node.stamp = tick.stamp;
        node.file().map_or(Ok(false), |state| state.view.share(rows, shared, tick, changes))
    }

    fn clear((spot, node): &mut WaitingFile, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
        entry::begin(spot, node, rows, changes)?;
        node.stamp = tick.stamp;
        if let Some(state) = state_of(node) {
            forget(state, tick, changes);
        }
        Ok(())
    }

    fn complete((_, node): &mut WaitingFile, _: &[Staged], done: &Done, tick: Tick, _: &mut Changes) {
        (node.stamp, node.changed) = (tick.stamp, tick.now);
        if let (Some(state), Some(md5)) = (state_of(node), &done.content_md5) {
            state.headers.content_md5 = Some(md5.clone());
        }
    }

    /// The file stays, and with it all that is said of it but its bytes.
    fn empty(
        &self,
        (spot, node): &mut WaitingFile,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        let length = node.length();
        spot.share.count(rows, length, 0, changes).map_err(|halt| match halt {
            Stop::Unread(unread) => unread,
            Stop::Refused(_) => codec::corrupt("the usage of a share that a file leaves"),
        })?;
        entry::begin(spot, node, rows, changes)?;
        (node.stamp, node.changed) = (tick.stamp, tick.now);
        if let Some(state) = state_of(node) {
            forget(state, tick, changes);
            state.length = 0;
        }
        Ok(())
    }
}

fn state_of(node: &mut Node) -> Option<&mut FileState> {
    match &mut node.kind {
        NodeKind::File(state) => Some(state),
        NodeKind::Directory | NodeKind::SymbolicLink(_) => None,
    }
}

/// Gives a file a map in which nothing is written.
fn forget(state: &mut FileState, tick: Tick, changes: &mut Changes) {
    state.view.let_go(changes, tick.now);
    state.view = FileView::new(tick.id(MAP_ID));
    state.view.create(changes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_stored_and_read() {
        let share = ShareName::parse("docs").unwrap();
        let destination = FileDestination { account: 3, share, generation: 8, id: 9 };
        assert_eq!(FileDestination::from_bytes(&destination.to_bytes()), Some(destination));
        for bytes in [&b""[..], b"short", &[0xFF; 40]] {
            assert_eq!(FileDestination::from_bytes(bytes), None);
        }
    }
}
