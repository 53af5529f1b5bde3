//! How one blob takes over the content of another.
//!
//! A copy inside this server moves no bytes: the new blob refers to what the old one refers to, in the commit that looked at
//! the old one. So it is as quick for a terabyte as for a byte, and whatever happens to its source later is nothing to it.

use content::map::PageView;
use engine::{Changes, Key, Rows, Tick};
use service::codec;

use super::copy_source::SourceBlob;
use crate::model::{self, BlobType, Committed, ContentRef, Halt, blob_key};

/// The content of a source, as it becomes that of another blob.
pub enum Shared {
    By(ContentRef),
    /// Too many page maps stand behind this one: see [`content::map::PageView::settle`].
    AfterSettling(u64),
}

/// Lets the version `tick.id(1)` of the blob at `key` refer to what `state` refers to, which was found as `source` in the same
/// step. Bytes stay where they are.
pub fn share(
    rows: &dyn Rows,
    source: &SourceBlob,
    state: &Committed,
    key: &Key,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Shared, Halt> {
    let version = tick.id(1);
    Ok(Shared::By(match (state.content, state.kind) {
        (ContentRef::Empty, _) => ContentRef::Empty,
        (ContentRef::Whole(content), _) => {
            changes.refer(content, version);
            ContentRef::Whole(content)
        }
        (ContentRef::Blocks(list), BlobType::Block) => {
            changes.refer(list, version);
            ContentRef::Blocks(list)
        }
        (ContentRef::Blocks(list) | ContentRef::Shared(list), _) => {
            changes.refer(list, version);
            ContentRef::Shared(list)
        }
        (ContentRef::Pages(view), _) => {
            let Some(branch) = view.branch(rows, tick.id(2), changes)? else {
                return Ok(Shared::AfterSettling(view.map));
            };
            if branch.needs_this {
                keep_epoch(rows, source, view, key, changes)?;
            }
            ContentRef::Pages(branch.view)
        }
    }))
}

/// The blob that a copy was made of goes on in the next epoch, if it can change at all. If it is the one at `key`, it is being
/// replaced, and does not.
fn keep_epoch(
    rows: &dyn Rows,
    source: &SourceBlob,
    view: PageView,
    key: &Key,
    changes: &mut Changes,
) -> Result<(), Halt> {
    let source_key = blob_key(model::generation(rows, source.account, &source.container)?, &source.name);
    let Some(mut blob) = model::find_blob(rows, &source_key)? else { return Ok(()) };
    match &mut blob.committed {
        Some(state) if state.content == ContentRef::Pages(view) && source_key != *key => {
            state.content = ContentRef::Pages(view.move_on(changes));
        }
        // A snapshot or a version.
        Some(_) | None => return Ok(()),
    }
    changes.put(source_key, codec::encode(&blob));
    Ok(())
}
