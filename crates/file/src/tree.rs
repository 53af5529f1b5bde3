//! From a path to the file or directory that stands there.
//!
//! Every step of a path is one row: the entry of a name in a directory. A decision resolves its path itself, so it is judged on the
//! tree as it is in its turn, whatever was renamed since the request came.

use concurrency::Timestamp;
use engine::{Key, Rows, Stop, Unread};
use service::codec;
use wire::file_path::{FileName, FilePath, FoldedName};
use wire::names::ShareName;

use crate::error::FileError;
use crate::model::{
    Entry, Halt, Node, NodePlace, ShareGuard, entry_key, guard, place_key, place_of_entry, refuse, root_key,
};
use crate::past;

/// What a request names: a share, or a snapshot of it, and a path in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub share: ShareName,
    pub path: FilePath,
    /// The time of the snapshot. `None`: the share as it is.
    pub snapshot: Option<Timestamp>,
}

/// A path that was looked up: where it is in the tree, and what stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    pub share: ShareGuard,
    /// The ids of the directories above, from the root down. Empty for the root itself.
    pub above: Vec<u64>,
    /// The last of them, if it was looked at and is not the root.
    parent: Option<Box<Node>>,
    /// The folded name in the last of them. Empty for the root.
    pub name: FoldedName,
    /// The same name as the request spells it.
    pub spelling: String,
    pub node: Option<Node>,
    /// The epoch of the snapshot that was looked at. `None`: the share as it is.
    pub at: Option<u64>,
    /// What stands here is kept for snapshots, and is there no longer.
    pub is_past: bool,
}

/// Looks a path up. The share and every directory above must be there; the last name may be free.
pub fn find(rows: &dyn Rows, account: u64, target: &Target) -> Result<Spot, Halt> {
    find_announcing(rows, account, target, &|_| ())
}

/// The same; `announce` is called with the spot before it is known what stands there. An engine that must fetch its rows fetches those
/// that are asked for then together with the last one of the path.
pub fn find_announcing(rows: &dyn Rows, account: u64, target: &Target, announce: &dyn Fn(&Spot)) -> Result<Spot, Halt> {
    let share = guard(rows, account, &target.share)?;
    let at = past::epoch_of(rows, share, target.snapshot)?;
    walk(rows, share, at, &target.path, announce)
}

/// Looks a path up in a share that was looked up before.
pub fn find_in(rows: &dyn Rows, share: ShareGuard, path: &FilePath) -> Result<Spot, Halt> {
    find_at(rows, share, None, path)
}

/// The same; for `announce` see [`find_announcing`].
pub fn find_in_announcing(
    rows: &dyn Rows,
    share: ShareGuard,
    path: &FilePath,
    announce: &dyn Fn(&Spot),
) -> Result<Spot, Halt> {
    walk(rows, share, None, path, announce)
}

/// Looks a path up in a share, or, with the epoch of a snapshot, in that snapshot.
pub fn find_at(rows: &dyn Rows, share: ShareGuard, at: Option<u64>, path: &FilePath) -> Result<Spot, Halt> {
    walk(rows, share, at, path, &|_| ())
}

fn walk(
    rows: &dyn Rows,
    share: ShareGuard,
    at: Option<u64>,
    path: &FilePath,
    announce: &dyn Fn(&Spot),
) -> Result<Spot, Halt> {
    let Some((name, directories)) = path.names().split_last() else { return root(rows, share, at) };
    let mut above = Vec::with_capacity(path.names().len());
    above.push(share.generation);
    let mut parent = None;
    for directory in directories {
        let found = descend(rows, share, at, &above, directory)?;
        above.push(found.id);
        parent = Some(Box::new(found));
    }
    let (name, spelling) = (name.folded(), name.as_str().to_owned());
    let spot = Spot { share, above, parent, name, spelling, node: None, at, is_past: false };
    announce(&spot);
    let seen = past::see(rows, share.generation, at, spot.directory(), &spot.name)?;
    Ok(Spot { is_past: seen.as_ref().is_some_and(|seen| seen.is_past), node: seen.map(|seen| seen.node), ..spot })
}

fn root(rows: &dyn Rows, share: ShareGuard, at: Option<u64>) -> Result<Spot, Halt> {
    let (name, spelling) = (FoldedName::default(), String::new());
    let seen = past::see(rows, share.generation, at, share.generation, &name)?;
    let past::Seen { node, is_past } = seen.ok_or_else(|| codec::corrupt("a share without a root"))?;
    Ok(Spot { share, above: Vec::new(), parent: None, name, spelling, node: Some(node), at, is_past })
}

/// Where the file or directory of an id is, if it is there.
pub fn find_by_id(rows: &dyn Rows, share: ShareGuard, id: u64) -> Result<Option<Spot>, Unread> {
    let Some(place) = place_of(rows, share, id)? else { return Ok(None) };
    let mut above = vec![place.directory];
    // Every directory but the root has a place.
    while let Some(higher) = place_of(rows, share, last(&above))? {
        above.push(higher.directory);
    }
    above.reverse();
    let name = FoldedName::stored(&place.name);
    let node = entry(rows, &entry_key(share.generation, place.directory, &name))?;
    let spelling = node.as_ref().map(|node| node.name.clone()).unwrap_or_default();
    Ok(Some(Spot { share, above, parent: None, name, spelling, node, at: None, is_past: false }))
}

/// What a handle has open. `above` and `name` say where the handle found it, which is where it is unless it is being renamed.
pub fn find_open(
    rows: &dyn Rows,
    share: ShareGuard,
    (above, name): (&[u64], &FoldedName),
    id: u64,
) -> Result<Option<Spot>, Unread> {
    if id == share.generation {
        return Ok(match root(rows, share, None) {
            Ok(spot) => Some(spot),
            Err(Stop::Unread(unread)) => return Err(unread),
            Err(Stop::Refused(_)) => None,
        });
    }
    let directory = above.last().copied().unwrap_or(share.generation);
    let node = entry(rows, &entry_key(share.generation, directory, name))?;
    match node.filter(|node| node.id == id) {
        Some(node) => {
            let (above, name, spelling) = (above.to_vec(), name.clone(), node.name.clone());
            Ok(Some(Spot { share, above, parent: None, name, spelling, node: Some(node), at: None, is_past: false }))
        }
        None => Ok(find_by_id(rows, share, id)?.filter(|spot| spot.id() == Some(id))),
    }
}

fn place_of(rows: &dyn Rows, share: ShareGuard, id: u64) -> Result<Option<NodePlace>, Unread> {
    rows.get(&place_key(share.generation, id))?.map(|row| codec::decode(&row)).transpose()
}

/// The directory that a spot is in, with all of its properties. The root is in itself.
pub fn directory_above(rows: &dyn Rows, spot: &Spot) -> Result<Node, Unread> {
    let found = match &spot.parent {
        Some(parent) => return Ok((**parent).clone()),
        None if spot.directory() == spot.share.generation => entry(rows, &root_key(spot.share.generation))?,
        None => find_by_id(rows, spot.share, spot.directory())?.and_then(|above| above.node),
    };
    found.ok_or_else(|| codec::corrupt("a directory that holds something is not there"))
}

/// What stands at a name of a directory in the snapshot of the epoch `at`. An empty `above` stands for the root.
pub fn find_past(
    rows: &dyn Rows,
    share: ShareGuard,
    at: u64,
    (above, name): (&[u64], &FoldedName),
) -> Result<Option<Spot>, Unread> {
    let directory = above.last().copied().unwrap_or(share.generation);
    let Some(past::Seen { node, is_past }) = past::see(rows, share.generation, Some(at), directory, name)? else {
        return Ok(None);
    };
    let (above, name, spelling) = (above.to_vec(), name.clone(), node.name.clone());
    Ok(Some(Spot { share, above, parent: None, name, spelling, node: Some(node), at: Some(at), is_past }))
}

/// The names of the directories that a path leads through, in the share or in the snapshot of the epoch `at`, as they are spelled.
pub fn spelled_directories(
    rows: &dyn Rows,
    share: ShareGuard,
    at: Option<u64>,
    path: &FilePath,
) -> Result<Vec<String>, Halt> {
    let directories = path.names().split_last().map_or(&[][..], |(_, directories)| directories);
    let (mut above, mut names) = (vec![share.generation], Vec::with_capacity(directories.len() + 1));
    for directory in directories {
        let found = descend(rows, share, at, &above, directory)?;
        above.push(found.id);
        names.push(found.name);
    }
    Ok(names)
}

/// A directory on the way down.
fn descend(rows: &dyn Rows, share: ShareGuard, at: Option<u64>, above: &[u64], name: &FileName) -> Result<Node, Halt> {
    let found = past::see(rows, share.generation, at, last(above), &name.folded())?;
    found.map(|seen| seen.node).filter(Node::is_directory).ok_or(refuse(FileError::ParentNotFound))
}

/// What the entry at a key leads to, if there is one.
pub fn entry(rows: &dyn Rows, key: &Key) -> Result<Option<Node>, Unread> {
    let Some(row) = rows.get(key)? else { return Ok(None) };
    match codec::decode(&row)? {
        Entry::Node(node) => Ok(Some(node)),
        Entry::Link(link) => {
            let place = place_of_entry(key.as_bytes());
            let (generation, place) = place.ok_or_else(|| codec::corrupt("the key of an entry cannot be read"))?;
            Ok(Some(past::follow(rows, generation, None, &place, link)?.node))
        }
    }
}

fn last(above: &[u64]) -> u64 {
    *above.last().expect("a path that is not the root's has the root above it")
}

impl Spot {
    pub fn is_root(&self) -> bool {
        self.above.is_empty()
    }

    /// The id of the directory that it is in. The root is in none; its row is kept under its own id.
    pub fn directory(&self) -> u64 {
        self.above.last().copied().unwrap_or(self.share.generation)
    }

    /// Where the entry is.
    pub fn place(&self) -> NodePlace {
        NodePlace { directory: self.directory(), name: self.name.as_str().to_owned() }
    }

    /// The key of the entry.
    pub fn key(&self) -> Key {
        entry_key(self.share.generation, self.directory(), &self.name)
    }

    /// What stands here, which must be there.
    pub fn existing(&self) -> Result<&Node, FileError> {
        self.node.as_ref().ok_or(FileError::ResourceNotFound)
    }

    /// A directory that is read. Where a file stands there is no such directory.
    pub fn read_directory(&self) -> Result<&Node, FileError> {
        self.existing().ok().filter(|node| node.is_directory()).ok_or(FileError::ResourceNotFound)
    }

    /// The id of what stands here.
    pub fn id(&self) -> Option<u64> {
        self.node.as_ref().map(|node| node.id)
    }

    /// The id that REST shows for the directory that it is in: that of the root is 0.
    pub fn shown_parent(&self) -> u64 {
        shown_id(self.share, self.directory())
    }
}

/// The id that REST shows for a file or directory: that of the root is 0.
pub fn shown_id(share: ShareGuard, id: u64) -> u64 {
    if id == share.generation { 0 } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, header};
    use wire::file_path::{PathKind, TrailingDots};

    fn path(text: &str) -> FilePath {
        FilePath::parse(text, PathKind::Directory, TrailingDots::Strip).unwrap()
    }

    async fn look<T: Send + 'static>(
        bench: &Bench,
        look: impl Fn(&dyn Rows, ShareGuard) -> Result<T, Halt> + Send + 'static,
    ) -> T {
        let name = ShareName::parse("share").unwrap();
        engine::read(&*bench.engine, move |rows, _| look(rows, guard(rows, 1, &name)?)).await.unwrap()
    }

    #[tokio::test]
    async fn a_path_and_the_way_back_from_an_id() {
        let bench = Bench::with_share().await;
        bench.mkdir("One").await;
        bench.mkdir("One/Two").await;
        bench.create("One/Two/File", 5).await;
        let id: u64 = header(&bench.file("one/two/file").await, "x-ms-file-id").unwrap().parse().unwrap();
        let spot = look(&bench, |rows, share| find_in(rows, share, &path("ONE/two/fILE"))).await;
        assert_eq!((spot.id(), spot.spelling.as_str(), spot.above.len()), (Some(id), "fILE", 3));
        assert_eq!(spot.above[0], spot.share.generation);
        let by_id = look(&bench, move |rows, share| Ok(find_by_id(rows, share, id)?)).await.unwrap();
        assert_eq!((&by_id.above, &by_id.name, &by_id.node), (&spot.above, &spot.name, &spot.node));
        assert_eq!(by_id.spelling, "File");
        let above = look(&bench, move |rows, _| {
            let of = |spot: &Spot| directory_above(rows, spot).map(|node| node.name);
            Ok((of(&spot)?, of(&by_id)?))
        });
        assert_eq!(above.await, ("Two".to_owned(), "Two".to_owned()));
        let spelled = look(&bench, |rows, share| spelled_directories(rows, share, None, &path("one/TWO/new"))).await;
        assert_eq!(spelled, ["One", "Two"]);
        let root = look(&bench, |rows, share| find_in(rows, share, &path(""))).await;
        assert!(root.is_root() && root.read_directory().is_ok());
        assert_eq!((root.shown_parent(), shown_id(root.share, root.id().unwrap())), (0, 0));
        assert_eq!(look(&bench, |rows, share| Ok(find_by_id(rows, share, 77)?)).await, None);
    }
}
