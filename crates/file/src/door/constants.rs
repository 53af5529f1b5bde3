//! Bits of SMB that the door understands, with the names that MS-SMB2 and MS-FSCC give them.

/// Access masks.
pub mod access {
    /// Also: list a directory.
    pub const FILE_READ_DATA: u32 = 0x1;
    /// Also: add a file to a directory.
    pub const FILE_WRITE_DATA: u32 = 0x2;
    /// Also: add a directory to a directory.
    pub const FILE_APPEND_DATA: u32 = 0x4;
    pub const FILE_READ_EA: u32 = 0x8;
    pub const FILE_WRITE_EA: u32 = 0x10;
    pub const FILE_EXECUTE: u32 = 0x20;
    pub const FILE_DELETE_CHILD: u32 = 0x40;
    pub const FILE_READ_ATTRIBUTES: u32 = 0x80;
    pub const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    pub const DELETE: u32 = 0x1_0000;
    pub const READ_CONTROL: u32 = 0x2_0000;
    pub const WRITE_DAC: u32 = 0x4_0000;
    pub const WRITE_OWNER: u32 = 0x8_0000;
    pub const SYNCHRONIZE: u32 = 0x10_0000;
    pub const ACCESS_SYSTEM_SECURITY: u32 = 0x100_0000;
    pub const MAXIMUM_ALLOWED: u32 = 0x200_0000;
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    pub const GENERIC_EXECUTE: u32 = 0x2000_0000;
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    pub const GENERIC_READ: u32 = 0x8000_0000;
    /// Everything that reads, and nothing that changes.
    pub const READ_AND_EXECUTE: u32 = 0x12_00A9;
    /// Everything that there is to be granted on a file: what the owner of the account key may.
    pub const FILE_ALL_ACCESS: u32 = 0x1F_01FF;
}

/// Share access.
pub mod sharing {
    pub const READ: u32 = 0x1;
    pub const WRITE: u32 = 0x2;
    pub const DELETE: u32 = 0x4;
}

/// Create options. Those that the door does not look at are for the wire.
pub mod options {
    pub const DIRECTORY_FILE: u32 = 0x1;
    pub const WRITE_THROUGH: u32 = 0x2;
    pub const SEQUENTIAL_ONLY: u32 = 0x4;
    pub const NO_INTERMEDIATE_BUFFERING: u32 = 0x8;
    pub const SYNCHRONOUS_IO_ALERT: u32 = 0x10;
    pub const SYNCHRONOUS_IO_NONALERT: u32 = 0x20;
    pub const NON_DIRECTORY_FILE: u32 = 0x40;
    pub const COMPLETE_IF_OPLOCKED: u32 = 0x100;
    pub const NO_EA_KNOWLEDGE: u32 = 0x200;
    pub const OPEN_REMOTE_INSTANCE: u32 = 0x400;
    pub const RANDOM_ACCESS: u32 = 0x800;
    pub const DELETE_ON_CLOSE: u32 = 0x1000;
    pub const OPEN_BY_FILE_ID: u32 = 0x2000;
    pub const OPEN_FOR_BACKUP_INTENT: u32 = 0x4000;
    pub const NO_COMPRESSION: u32 = 0x8000;
    pub const OPEN_REQUIRING_OPLOCK: u32 = 0x1_0000;
    pub const DISALLOW_EXCLUSIVE: u32 = 0x2_0000;
    pub const RESERVE_OPFILTER: u32 = 0x10_0000;
    pub const OPEN_REPARSE_POINT: u32 = 0x20_0000;
    pub const OPEN_NO_RECALL: u32 = 0x40_0000;
    pub const OPEN_FOR_FREE_SPACE_QUERY: u32 = 0x80_0000;
}

/// File attributes.
pub mod attributes {
    pub const READ_ONLY: u32 = 0x1;
    pub const HIDDEN: u32 = 0x2;
    pub const SYSTEM: u32 = 0x4;
    pub const DIRECTORY: u32 = 0x10;
    pub const ARCHIVE: u32 = 0x20;
    /// A file without any attribute has this one over SMB.
    pub const NORMAL: u32 = 0x80;
    pub const TEMPORARY: u32 = 0x100;
    pub const SPARSE_FILE: u32 = 0x200;
}

/// Which parts of a security descriptor are read or set.
pub mod security_parts {
    pub const OWNER: u32 = 0x1;
    pub const GROUP: u32 = 0x2;
    pub const DACL: u32 = 0x4;
    pub const SACL: u32 = 0x8;
}

/// The completion filter of CHANGE_NOTIFY.
pub mod notify_filter {
    pub const FILE_NAME: u32 = 0x1;
    pub const DIR_NAME: u32 = 0x2;
    pub const ATTRIBUTES: u32 = 0x4;
    pub const SIZE: u32 = 0x8;
    pub const LAST_WRITE: u32 = 0x10;
    pub const LAST_ACCESS: u32 = 0x20;
    pub const CREATION: u32 = 0x40;
    pub const SECURITY: u32 = 0x100;
}
