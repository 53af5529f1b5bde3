//! The only place that writes and removes the rows of files and directories.
//!
//! Share snapshots keep what they see from here, so nothing else may write an entry.
//!
//! A file that gets a second name moves into a row by its id, and its entries only refer to it: so what is done through one name is
//! seen through all. When one name is left the file moves back into the entry of that name, so that it costs no more than any other.

use engine::{Changes, Rows, Tick, Unread};
use service::codec;

use crate::model::{Halt, HardLink, Links, Node, NodeKind, NodePlace, ShareGuard, entry_key_at, linked_key, place_key};
use crate::past;
use crate::tree::Spot;

/// Stores a new file or directory at a free name.
pub fn add(spot: &Spot, node: &Node, changes: &mut Changes) {
    put_place(spot.share, node.id, &spot.place(), changes);
    changes.put(spot.key(), codec::encode(node));
}

/// What stands at a spot is about to become `node`. If a snapshot sees it as it was, it is kept, and the bytes of the file change
/// in the next epoch of its map. It comes before any change of the bytes, and may be called again.
pub fn begin(spot: &Spot, node: &mut Node, rows: &dyn Rows, changes: &mut Changes) -> Result<(), Unread> {
    if node.since == spot.share.epoch {
        return Ok(());
    }
    if past::keep(spot, rows, changes)?
        && let NodeKind::File(state) = &mut node.kind
    {
        state.view = state.view.next();
        state.view.refer(changes);
    }
    node.since = spot.share.epoch;
    Ok(())
}

/// Stores what has become of the file or directory that stands here, after [`begin`].
pub fn replace(spot: &Spot, node: &Node, changes: &mut Changes) {
    debug_assert_eq!(node.since, spot.share.epoch, "a change of an entry that snapshots did not keep");
    replace_unseen(spot, node, changes);
}

/// Stores what snapshots do not see of a file: its lease, and the epoch of its map, whose bytes are the same.
pub fn replace_unseen(spot: &Spot, node: &Node, changes: &mut Changes) {
    match &node.links {
        None => _ = changes.put(spot.key(), codec::encode(node)),
        Some(links) => put_linked(spot.share, node, links.clone().with(spot.place(), &node.name), changes),
    }
}

/// Stores another file in the place of the one that stands here, whose bytes go unless a snapshot sees them.
pub fn supplant(spot: &Spot, node: &Node, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    leave(spot, rows, tick, changes)?;
    replace(spot, node, changes);
    Ok(())
}

/// Removes the file or directory that stands here, with its bytes. A file that has other names only loses this one.
pub fn remove(spot: &Spot, node: &Node, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
    // Also where other names are left: it takes them all to free the space of the bytes.
    changes.frees_space = true;
    if node.links.is_some() {
        unlink(spot, Node { stamp: tick.stamp, changed: tick.now, ..node.clone() }, rows, changes)?;
        return Ok(());
    }
    take_away(spot, node, changes);
    leave(spot, rows, tick, changes)?;
    spot.share.count(rows, node.length(), 0, changes)?;
    Ok(())
}

/// Moves the file or directory that stands at `from` to a name that is free or another one of the same file, as `node`. Says what
/// it is then.
pub fn relocate(
    from: &Spot,
    to: &Spot,
    mut node: Node,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<Node, Unread> {
    begin(from, &mut node, rows, changes)?;
    let is_respelled = from.key() == to.key();
    let Some(links) = node.links.clone() else {
        if !is_respelled {
            past::note_place(from, &mut node, rows)?;
        }
        take_away(from, &node, changes);
        add(to, &node, changes);
        return Ok(node);
    };
    node.links = Some(links.with(to.place(), &node.name));
    if is_respelled {
        replace(to, &node, changes);
        return Ok(node);
    }
    if to.id() != Some(node.id) {
        put_link(to, node.id, changes);
    }
    unlink(from, node, rows, changes)
}

/// Gives the file that stands at `from`, as `node`, another name, which must be free. Says what it is then.
pub fn link(from: &Spot, to: &Spot, mut node: Node, rows: &dyn Rows, changes: &mut Changes) -> Result<Node, Unread> {
    begin(from, &mut node, rows, changes)?;
    let links = match node.links.take() {
        Some(links) => links,
        None => {
            past::note_place(from, &mut node, rows)?;
            put_link(from, node.id, changes);
            Links::new(from.place(), &node.name)
        }
    };
    put_link(to, node.id, changes);
    let links = links.with(to.place(), &to.spelling);
    put_linked(from.share, &node, links.clone(), changes);
    Ok(Node { name: to.spelling.clone(), links: Some(links), ..node })
}

/// Takes this name away from a file that has others. Says what it is then.
fn unlink(spot: &Spot, mut node: Node, rows: &dyn Rows, changes: &mut Changes) -> Result<Node, Unread> {
    begin(spot, &mut node, rows, changes)?;
    let Some(links) = node.links.take() else { return Ok(node) };
    past::keep_link(spot.share, &spot.place(), rows, changes)?;
    changes.delete(spot.key());
    let links = links.without(&spot.place());
    if let [first, ..] = links.names() {
        put_place(spot.share, node.id, &first.place, changes);
    }
    if let [last] = links.names() {
        past::keep_link(spot.share, &last.place, rows, changes)?;
        node.name.clone_from(&last.spelling);
        changes.put(entry_key_at(spot.share.generation, &last.place), codec::encode(&node));
        changes.delete(linked_key(spot.share.generation, node.id));
        return Ok(node);
    }
    put_linked(spot.share, &node, links.clone(), changes);
    Ok(Node { links: Some(links), ..node })
}

/// Stores a file that has several names. Which of them an operation came by is not for the row.
fn put_linked(share: ShareGuard, node: &Node, links: Links, changes: &mut Changes) {
    let row = Node { name: String::new(), links: Some(links), ..node.clone() };
    changes.put(linked_key(share.generation, node.id), codec::encode(&row));
}

/// Makes the name at a spot one of those of a file.
fn put_link(spot: &Spot, id: u64, changes: &mut Changes) {
    changes.put(spot.key(), codec::encode(&HardLink { id, since: spot.share.epoch }));
}

fn put_place(share: ShareGuard, id: u64, place: &NodePlace, changes: &mut Changes) {
    changes.put(place_key(share.generation, id), codec::encode(place));
}

fn take_away(spot: &Spot, node: &Node, changes: &mut Changes) {
    changes.delete(spot.key());
    changes.delete(place_key(spot.share.generation, node.id));
}

/// The file at a spot goes, and its bytes with it unless a snapshot sees them.
fn leave(spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    if !past::keep(spot, rows, changes)?
        && let Some(state) = spot.node.as_ref().and_then(Node::file)
    {
        state.view.let_go(changes, tick.now);
    }
    Ok(())
}
