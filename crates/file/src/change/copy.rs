//! Making a file what a source is: another file, a blob, or something elsewhere.
//!
//! A file of this server is copied by a map that stands in front of its own, and a blob by a map that refers to its contents: no
//! bytes move, and the copy is done in the decision that began it. What does not fit into one decision, and what is elsewhere, makes
//! a file of its length that waits for its bytes.

use concurrency::Timestamp;
use content::copy_state::CopyState;
use content::map::{ByteSpan, FileView, GROUP_BYTES, SHARED_GROUPS_MAX};
use content::source::LocalSource;
use engine::{Changes, Rows, Tick};
use service::{HttpHeaders, Pairs};

use super::create::{NewNode, Replacing};
use super::properties::{NfsSettings, PermissionSetting, Semantics, SmbSettings, TimeSetting};
use super::write::MAP_ID;
use super::{entry, permission};
use crate::error::FileError;
use crate::model::{Attributes, FileState, Halt, NfsProperties, Node, NodeKind, Protocol, refuse};
use crate::security::Permission;
use crate::smb_headers::{MODE_COPY_MODE, OWNER_COPY_MODE};
use crate::tree::Spot;

/// How many contents of a blob one decision refers to.
const EXTENTS_MAX: usize = 4_096;

/// How a file is copied to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copying {
    /// The URL of the source.
    pub url: String,
    pub replacing: Replacing,
    /// None: that of the source.
    pub metadata: Pairs,
    pub attributes: AttributesSetting,
    /// It gets the Archive attribute whatever else is said.
    pub sets_archive: bool,
    pub created: CopiedTime,
    pub written: CopiedTime,
    pub changed: CopiedTime,
    /// `None`: that of the source.
    pub permission: Option<PermissionSetting>,
    /// In a share for NFS.
    pub nfs: CopiedNfs,
}

/// The attributes that a copy gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttributesSetting {
    /// Those of a new file.
    New,
    Given(Attributes),
    OfSource,
}

/// Owner, group and mode of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopiedNfs {
    /// What the request names of them. The rest is as in a new file.
    pub given: NfsSettings,
    /// Where owner and group come from, if the request says so.
    pub owner: Option<CopyMode>,
    /// Where the mode comes from.
    pub mode: Option<CopyMode>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyMode {
    /// The source. One that has none leaves what a new file has.
    Source,
    /// The request.
    Override,
}

impl CopiedNfs {
    /// A share that is mounted over SMB has none of them.
    fn check(self, protocol: Protocol) -> Result<(), FileError> {
        let named = [(OWNER_COPY_MODE, self.owner), (MODE_COPY_MODE, self.mode)];
        match named.into_iter().find_map(|(name, mode)| mode.map(|mode| (name, mode))) {
            Some((name, mode)) if protocol == Protocol::Smb => Err(FileError::header(name, mode.name())),
            Some(_) | None => Ok(()),
        }
    }

    fn settings(self, source: Option<NfsProperties>) -> NfsSettings {
        let of = |mode, given: NfsSettings| match (mode, source) {
            (Some(CopyMode::Source), Some(NfsProperties { owner, group, mode })) => {
                NfsSettings { owner: Some(owner), group: Some(group), mode: Some(mode) }
            }
            (Some(CopyMode::Source | CopyMode::Override) | None, _) => given,
        };
        NfsSettings { mode: of(self.mode, self.given).mode, ..of(self.owner, self.given) }
    }
}

impl CopyMode {
    pub fn name(self) -> &'static str {
        match self {
            CopyMode::Source => "source",
            CopyMode::Override => "override",
        }
    }
}

/// A time that a copy gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopiedTime {
    Set(TimeSetting),
    OfSource,
}

/// What is known of a source, wherever it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Described {
    pub length: u64,
    pub headers: HttpHeaders,
    pub metadata: Pairs,
    /// What only files have.
    pub attributes: Option<Attributes>,
    pub created: Option<Timestamp>,
    pub written: Option<Timestamp>,
    pub changed: Option<Timestamp>,
    pub permission: Option<Permission>,
    pub nfs: Option<NfsProperties>,
}

impl Described {
    /// A file of this server, with its permission as its own share has it.
    pub fn file(spot: &Spot, node: &Node, copying: &Copying, rows: &dyn Rows) -> Result<Described, Halt> {
        let state = node.as_read_file().map_err(refuse)?;
        let permission = match copying.permission {
            Some(_) => None,
            None => Some(permission::find(spot.share, node.permission, rows)?),
        };
        Ok(Described {
            length: state.length,
            headers: state.headers.clone(),
            metadata: node.metadata.clone(),
            attributes: Some(node.attributes),
            created: Some(node.created),
            written: Some(node.written),
            changed: Some(node.changed),
            permission,
            nfs: node.nfs,
        })
    }

    /// A blob of this server.
    pub fn blob(source: &LocalSource) -> Described {
        let LocalSource { length, headers, metadata, .. } = source.clone();
        Described { length, headers, metadata, ..Described::default() }
    }
}

/// What the file holds from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopiedBytes {
    /// All bytes of the source.
    All(FileView),
    /// None of them yet.
    None(FileView),
}

impl Copying {
    /// Makes the file at a spot a copy. A file that is replaced keeps its id and its lease.
    pub fn apply(
        &self,
        spot: &Spot,
        source: &Described,
        (bytes, copy): (CopiedBytes, CopyState),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Node, Halt> {
        let lease = self.replacing.judge(spot, tick.now).map_err(refuse)?;
        self.nfs.check(spot.share.protocol).map_err(refuse)?;
        let before = spot.node.as_ref();
        let mut headers = source.headers.clone();
        let view = match bytes {
            CopiedBytes::All(view) => view,
            CopiedBytes::None(view) => {
                // It is told with the bytes that it is the sum of.
                headers.content_md5 = None;
                view
            }
        };
        let state =
            FileState { length: source.length, view, born: tick.stamp, headers, lease, copy: Some(Box::new(copy)) };
        let id = before.map_or(tick.id(0), |node| node.id);
        let metadata = if self.metadata.is_empty() { source.metadata.clone() } else { self.metadata.clone() };
        let new = NewNode { settings: self.settings(source), metadata };
        let mut node = new.node(id, NodeKind::File(state), spot, rows, tick, changes)?;
        node.attributes = self.attributes(source);
        node.links = before.and_then(|old| old.links.clone());
        spot.share.count(rows, before.map_or(0, Node::length), source.length, changes)?;
        match before {
            None => entry::add(spot, &node, changes),
            Some(_) => entry::supplant(spot, &node, rows, tick, changes)?,
        }
        Ok(node)
    }

    /// Times and permission. A source that has none of its own leaves them as those of a new file.
    fn settings(&self, source: &Described) -> SmbSettings {
        let time = |setting: CopiedTime, own: Option<Timestamp>| match (setting, own) {
            (CopiedTime::Set(setting), _) => setting,
            (CopiedTime::OfSource, Some(own)) => TimeSetting::At(own),
            (CopiedTime::OfSource, None) => TimeSetting::Now,
        };
        let changed = match time(self.changed, source.changed) {
            TimeSetting::At(at) => Some(at),
            TimeSetting::Preserve | TimeSetting::Now => None,
        };
        let (permission, semantics) = match (&self.permission, &source.permission) {
            (Some(setting), _) => (setting.clone(), Semantics::New),
            // What the source has is taken as it is.
            (None, Some(own)) => (PermissionSetting::Given(Box::new(own.clone())), Semantics::Restore),
            (None, None) => (PermissionSetting::Inherit, Semantics::New),
        };
        SmbSettings {
            attributes: None,
            created: time(self.created, source.created),
            written: time(self.written, source.written),
            changed,
            accessed: TimeSetting::Preserve,
            permission,
            semantics,
            nfs: self.nfs.settings(source.nfs),
        }
    }

    fn attributes(&self, source: &Described) -> Attributes {
        let attributes = match (self.attributes, source.attributes) {
            (AttributesSetting::Given(given), _) => given,
            (AttributesSetting::OfSource, Some(own)) => own,
            (AttributesSetting::New, _) | (AttributesSetting::OfSource, None) => Attributes::ARCHIVE,
        };
        let archive = if self.sets_archive { Attributes::ARCHIVE } else { Attributes::NONE };
        attributes.with(archive).without(Attributes::DIRECTORY).as_sparse_as(Attributes::NONE)
    }
}

/// A map that begins as the file `node` at `source`. That file goes on in the next epoch, unless it is the one at `target`, which is
/// replaced, or a past one of a snapshot, which does not change.
pub fn branch(
    (source, node): (&Spot, &Node),
    target: &Spot,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<FileView, Halt> {
    let view = node.as_read_file().map_err(refuse)?.view;
    let branched = view.branch(rows, tick.id(MAP_ID), changes)?;
    let branched = branched.ok_or(refuse(FileError::Unsettled { map: view.map }))?;
    let is_replaced = source.share.generation == target.share.generation && target.id() == Some(node.id);
    if branched.needs_this && !source.is_past && !is_replaced {
        let mut node = node.clone();
        if let NodeKind::File(state) = &mut node.kind {
            state.view = view.move_on(changes);
        }
        entry::replace_unseen(source, &node, changes);
    }
    Ok(branched.view)
}

/// A new map that refers to the contents of a blob, or, if they are too many for one decision, one that waits for them.
pub fn share(source: &LocalSource, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<CopiedBytes, Halt> {
    let view = FileView::new(tick.id(MAP_ID));
    view.create(changes);
    if source.length == 0 {
        return Ok(CopiedBytes::All(view));
    }
    if source.length > SHARED_GROUPS_MAX * GROUP_BYTES {
        return Ok(CopiedBytes::None(view));
    }
    let span = ByteSpan { start: 0, end: source.length };
    let extents = source.bytes.extents(rows, span, EXTENTS_MAX)?;
    let is_shared = extents.is_some_and(|extents| view.share_new((span, &extents), tick, changes));
    Ok(if is_shared { CopiedBytes::All(view) } else { CopiedBytes::None(view) })
}
