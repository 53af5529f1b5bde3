//! Entries of an open directory.

use engine::Rows;
use wire::file_path::FoldedName;
use wire::fold::fold;

use super::decide::{Stopped, ended};
use super::pattern::Pattern;
use super::values::Position;
use super::{DirectoryEntry, LISTED_ENTRIES_MAX, OpenFile, ROWS_PASSED_MAX, Refused, access};
use crate::model::{Node, refuse as halt};
use crate::ops::list_directories_and_files::ListDirectoriesAndFiles;
use crate::past;
use crate::tree::Spot;

/// How far the listing of a handle has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    pattern: Pattern,
    position: Position,
    /// The client was told of an entry.
    has_answered: bool,
}

/// A part of a listing.
struct Part {
    entries: Vec<DirectoryEntry>,
    /// Where to go on, if there may be more.
    next: Option<Position>,
}

impl OpenFile {
    /// The next entries that match the pattern, at most `most` and [`super::LISTED_ENTRIES_MAX`], from the position of the handle.
    /// The position does not move: [`OpenFile::advance`] moves it behind the last entry that fitted into the answer.
    ///
    /// The pattern is that of the first call, and of each call that restarts. None: [`Refused::NoSuchFile`] in a first call,
    /// [`Refused::NoMoreFiles`] later. Needs FILE_READ_DATA.
    ///
    /// One call passes at most [`super::ROWS_PASSED_MAX`] names that do not match. If that was all it is answered with nothing,
    /// and the position has moved: the next call, which must not restart, goes on there. In between the caller can look whether
    /// anybody still wants to know.
    pub async fn list(&self, pattern: &str, restart: bool, most: usize) -> Result<Vec<DirectoryEntry>, Refused> {
        if !self.is_directory() {
            return Err(Refused::InvalidParameter);
        }
        self.need(access::FILE_READ_DATA)?;
        let listing = self.listing(pattern, restart)?;
        let most = most.clamp(1, LISTED_ENTRIES_MAX);
        let (mut entries, mut position) = (Vec::new(), Some(listing.position.clone()));
        let mut parts = ROWS_PASSED_MAX / LISTED_ENTRIES_MAX;
        while let Some(from) = position.take().filter(|_| entries.len() < most) {
            if parts == 0 {
                position = Some(from);
                break;
            }
            parts -= 1;
            let (pattern, room) = (listing.pattern.clone(), most - entries.len());
            let location = self.location()?;
            let part = self.tree.read(move |rows, share, _| {
                // Both are asked for before either is missed.
                let above = (from < Position::DotDot).then(|| location.find_directory(rows, share));
                let spot = location.find(rows, share)?;
                part((&spot, above.transpose()?), rows, &pattern, &from, room)
            });
            let part = part.await?;
            entries.extend(part.entries);
            position = part.next;
        }
        if !entries.is_empty() {
            return Ok(entries);
        }
        if let Some(reached) = position {
            self.pass(&listing, reached);
            return Ok(Vec::new());
        }
        Err(if listing.has_answered { Refused::NoMoreFiles } else { Refused::NoSuchFile })
    }

    /// The entry, and all before it, have been told to the client.
    pub fn advance(&self, entry: &DirectoryEntry) {
        if let Some(listing) = &mut self.state().listing {
            listing.position = entry.position.clone();
            listing.has_answered = true;
        }
    }

    /// Moves the position past names that do not match, unless another request has moved it meanwhile.
    fn pass(&self, begun: &Listing, reached: Position) {
        if let Some(listing) = self.state().listing.as_mut().filter(|listing| **listing == *begun) {
            listing.position = reached;
        }
    }

    fn listing(&self, pattern: &str, restart: bool) -> Result<Listing, Refused> {
        let mut state = self.state();
        if let Some(listing) = state.listing.as_ref().filter(|_| !restart) {
            return Ok(listing.clone());
        }
        let listing = Listing { pattern: Pattern::parse(pattern)?, position: Position::Start, has_answered: false };
        state.listing = Some(listing.clone());
        Ok(listing)
    }
}

/// Some of what comes behind a position.
fn part(
    (spot, above): (&Spot, Option<Spot>),
    rows: &dyn Rows,
    pattern: &Pattern,
    from: &Position,
    room: usize,
) -> Result<Part, Stopped> {
    let mut entries = Vec::new();
    let own = spot.existing().map_err(|error| ended(halt(error)))?;
    if *from < Position::Dot && pattern.matches(".") {
        entries.push(DirectoryEntry::new(own, ".", Position::Dot));
    }
    let above = above.and_then(|above| above.node).filter(|_| pattern.matches("..") && entries.len() < room);
    entries.extend(above.map(|above| DirectoryEntry::new(&above, "..", Position::DotDot)));
    let after = match from {
        Position::Name(name) => Some(name.clone()),
        Position::Start | Position::Dot | Position::DotDot => None,
    };
    if entries.len() >= room {
        let next = entries.last().map(|entry| entry.position.clone());
        return Ok(Part { entries, next });
    }
    if let Some(only) = pattern.only() {
        if after.is_none_or(|after| after < only) {
            let found = past::see(rows, spot.share.generation, spot.at, own.id, &FoldedName::stored(&only))?;
            // The root's own row has no name.
            let found = found.map(|seen| seen.node).filter(|_| !only.is_empty());
            entries.extend(found.map(|node| DirectoryEntry::named(&node)));
        }
        return Ok(Part { entries, next: None });
    }
    let list = ListDirectoriesAndFiles { prefix: pattern.prefix(), after, max: LISTED_ENTRIES_MAX };
    let (nodes, next) = list.page(spot, rows).map_err(ended)?;
    let mut next = next.map(Position::Name);
    for node in nodes.iter().filter(|node| pattern.matches(&node.name)) {
        if entries.len() == room {
            next = entries.last().map(|entry| entry.position.clone());
            break;
        }
        entries.push(DirectoryEntry::named(node));
    }
    Ok(Part { entries, next })
}

impl DirectoryEntry {
    fn named(node: &Node) -> DirectoryEntry {
        DirectoryEntry::new(node, &node.name, Position::Name(fold(&node.name).into_owned()))
    }
}
