//! The only place that writes and removes the rows of files and directories.
//!
//! Share snapshots will keep what they see from here, so nothing else may write an entry.

use engine::{Changes, Rows, Tick};
use service::codec;

use crate::model::{Halt, Node, NodePlace, place_key};
use crate::tree::Spot;

/// Stores a new file or directory at a free name.
pub fn add(spot: &Spot, node: &Node, changes: &mut Changes) {
    let place = NodePlace { directory: spot.directory(), name: spot.name.as_str().to_owned() };
    changes.put(place_key(spot.share.generation, node.id), codec::encode(&place));
    changes.put(spot.key(), codec::encode(node));
}

/// Stores what has become of the file or directory that stands here.
pub fn replace(spot: &Spot, node: &Node, changes: &mut Changes) {
    changes.put(spot.key(), codec::encode(node));
}

/// Removes the file or directory that stands here, with its bytes.
pub fn remove(spot: &Spot, node: &Node, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
    take_away(spot, node, changes);
    if let Some(state) = node.file() {
        state.view.let_go(changes, tick.now);
        spot.share.count(rows, state.length, 0, changes)?;
    }
    changes.frees_space = true;
    Ok(())
}

/// Moves the file or directory that stands at `from` to a free name, as `node`.
pub fn relocate(from: &Spot, to: &Spot, node: &Node, changes: &mut Changes) {
    take_away(from, node, changes);
    add(to, node, changes);
}

fn take_away(spot: &Spot, node: &Node, changes: &mut Changes) {
    changes.delete(spot.key());
    changes.delete(place_key(spot.share.generation, node.id));
}
