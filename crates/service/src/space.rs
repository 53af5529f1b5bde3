//! The spaces of all services' rows: each is written by one owner only. The engines' own are here, too.
//!
//! 0x04 and 0x05 stay free: earlier versions wrote these numbers into due rows, with another meaning. For the same reason nothing in
//! 0x02 and 0x03 ever has a due row.

pub use engine::space::*;

/// Service properties, by account and service.
pub const SERVICE: u8 = 0x02;
/// Secrets that all nodes share, by name.
pub const SECRET: u8 = 0x03;
/// Containers by account and name; the row of a live container.
pub const CONTAINER: u8 = 0x10;
/// Deleted containers by account, name and version.
pub const CONTAINER_DELETED: u8 = 0x11;
/// Blobs by container generation and name: the head row, which is also what List Blobs walks.
pub const BLOB: u8 = 0x12;
/// Uncommitted blocks by staging id and block id.
pub const BLOCK: u8 = 0x13;
/// Snapshots by blob uid and stamp.
pub const SNAPSHOT: u8 = 0x14;
/// Committed block lists by list id and chunk number.
pub const BLOCK_LIST: u8 = 0x15;
/// Where the pages of page blobs are: a row by map id, and others by map id, group of pages and epoch.
pub const PAGE_MAP: u8 = 0x16;
/// Previous versions of blobs by uid and version id.
pub const VERSION: u8 = 0x17;
/// The index of tags, by account, key, value and blob (container generation and name).
pub const TAG: u8 = 0x18;
/// The names of containers that were restored under another, by generation.
pub const CONTAINER_MOVED: u8 = 0x19;
/// What protects blobs from being changed, by container generation, end and state.
pub const PROTECTED: u8 = 0x1A;
/// Copies from elsewhere that are under way, by id.
pub const COPY: u8 = 0x1C;

/// Tables by account and name in lower case.
pub const TABLE: u8 = 0x20;
/// Entities by table generation, partition key and row key, in the order of a query.
pub const ENTITY: u8 = 0x21;

/// Queues by account and name.
pub const QUEUE: u8 = 0x30;
/// What is known of all messages of a queue generation.
pub const QUEUE_MARKS: u8 = 0x31;
/// Messages by queue generation, the time at which they can be seen, and number.
pub const MESSAGE: u8 = 0x32;
/// Their texts by queue generation, expiry and number.
pub const MESSAGE_TEXT: u8 = 0x33;

/// Shares by account and name; the row of a live share.
pub const SHARE: u8 = 0x40;
/// Deleted shares by account, name and version.
pub const SHARE_DELETED: u8 = 0x41;
/// Share snapshots by share generation and time.
pub const SHARE_SNAPSHOT: u8 = 0x42;
/// Files and directories by share generation, directory id and folded name: the head row, which is also what List Directories and
/// Files walks.
pub const ENTRY: u8 = 0x43;
/// Where the file or directory of an id is: by share generation and id.
pub const PLACE: u8 = 0x44;
/// Entries as share snapshots see them, by share generation, directory id, folded name and the newest snapshot that does.
pub const PAST_ENTRY: u8 = 0x45;
/// Which past entries hang on which snapshot, by share generation and snapshot.
pub const KEPT_ENTRY: u8 = 0x46;
/// How many bytes the files of a share generation have.
pub const SHARE_USAGE: u8 = 0x47;
/// Security descriptors by share generation and hash.
pub const PERMISSION: u8 = 0x48;
/// Files that have several names, by share generation and id.
pub const LINKED_FILE: u8 = 0x49;
/// Which node serves SMB: one row.
pub const SMB_OWNER: u8 = 0x4A;
/// Shares that SMB uses, by account and name.
pub const SMB_SHARE: u8 = 0x4B;
/// Copies into files that are under way, by id.
pub const FILE_COPY: u8 = 0x4C;
