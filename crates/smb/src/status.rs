//! NTSTATUS: what an answer says of its request (MS-ERREF 2.3.1). The names are the documented ones without `STATUS_`.

use std::fmt;

/// The status of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

/// What a decoder or a command answers when it does not answer what was asked for.
pub type Result<T> = std::result::Result<T, Status>;

macro_rules! statuses {
    ($($name:ident = $value:literal,)*) => {
        impl Status {
            $(#[doc = concat!("`STATUS_", stringify!($name), "`.")] pub const $name: Status = Status($value);)*

            /// Every status that has a name here.
            pub const ALL: &'static [Status] = &[$(Status($value)),*];

            /// The documented name, without `STATUS_`.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0x0000_0000,
    PENDING = 0x0000_0103,
    NOTIFY_CLEANUP = 0x0000_010B,
    NOTIFY_ENUM_DIR = 0x0000_010C,
    BUFFER_OVERFLOW = 0x8000_0005,
    NO_MORE_FILES = 0x8000_0006,
    NO_MORE_ENTRIES = 0x8000_001A,
    STOPPED_ON_SYMLINK = 0x8000_002D,
    UNSUCCESSFUL = 0xC000_0001,
    NOT_IMPLEMENTED = 0xC000_0002,
    INVALID_INFO_CLASS = 0xC000_0003,
    INFO_LENGTH_MISMATCH = 0xC000_0004,
    INVALID_HANDLE = 0xC000_0008,
    INVALID_PARAMETER = 0xC000_000D,
    NO_SUCH_FILE = 0xC000_000F,
    INVALID_DEVICE_REQUEST = 0xC000_0010,
    END_OF_FILE = 0xC000_0011,
    MORE_PROCESSING_REQUIRED = 0xC000_0016,
    NO_MEMORY = 0xC000_0017,
    CONFLICTING_ADDRESSES = 0xC000_0018,
    INVALID_LOCK_SEQUENCE = 0xC000_001E,
    INVALID_VIEW_SIZE = 0xC000_001F,
    ACCESS_DENIED = 0xC000_0022,
    BUFFER_TOO_SMALL = 0xC000_0023,
    OBJECT_NAME_INVALID = 0xC000_0033,
    OBJECT_NAME_NOT_FOUND = 0xC000_0034,
    OBJECT_NAME_COLLISION = 0xC000_0035,
    OBJECT_PATH_INVALID = 0xC000_0039,
    OBJECT_PATH_NOT_FOUND = 0xC000_003A,
    OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
    DATA_ERROR = 0xC000_003E,
    SHARING_VIOLATION = 0xC000_0043,
    QUOTA_EXCEEDED = 0xC000_0044,
    EAS_NOT_SUPPORTED = 0xC000_004F,
    EA_TOO_LARGE = 0xC000_0050,
    NO_EAS_ON_FILE = 0xC000_0052,
    FILE_LOCK_CONFLICT = 0xC000_0054,
    LOCK_NOT_GRANTED = 0xC000_0055,
    DELETE_PENDING = 0xC000_0056,
    PRIVILEGE_NOT_HELD = 0xC000_0061,
    WRONG_PASSWORD = 0xC000_006A,
    LOGON_FAILURE = 0xC000_006D,
    ACCOUNT_RESTRICTION = 0xC000_006E,
    INVALID_SECURITY_DESCR = 0xC000_0079,
    RANGE_NOT_LOCKED = 0xC000_007E,
    DISK_FULL = 0xC000_007F,
    FILE_INVALID = 0xC000_0098,
    INSUFFICIENT_RESOURCES = 0xC000_009A,
    BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
    MEDIA_WRITE_PROTECTED = 0xC000_00A2,
    PIPE_NOT_AVAILABLE = 0xC000_00AC,
    PIPE_BUSY = 0xC000_00AE,
    PIPE_DISCONNECTED = 0xC000_00B0,
    PIPE_CLOSING = 0xC000_00B1,
    IO_TIMEOUT = 0xC000_00B5,
    FILE_FORCED_CLOSED = 0xC000_00B6,
    FILE_IS_A_DIRECTORY = 0xC000_00BA,
    NOT_SUPPORTED = 0xC000_00BB,
    NETWORK_NAME_DELETED = 0xC000_00C9,
    BAD_DEVICE_TYPE = 0xC000_00CB,
    BAD_NETWORK_NAME = 0xC000_00CC,
    REQUEST_NOT_ACCEPTED = 0xC000_00D0,
    NOT_SAME_DEVICE = 0xC000_00D4,
    PIPE_EMPTY = 0xC000_00D9,
    INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
    INTERNAL_ERROR = 0xC000_00E5,
    UNEXPECTED_IO_ERROR = 0xC000_00E9,
    DIRECTORY_NOT_EMPTY = 0xC000_0101,
    NOT_A_DIRECTORY = 0xC000_0103,
    NAME_TOO_LONG = 0xC000_0106,
    TOO_MANY_OPENED_FILES = 0xC000_011F,
    CANCELLED = 0xC000_0120,
    CANNOT_DELETE = 0xC000_0121,
    FILE_DELETED = 0xC000_0123,
    FILE_CLOSED = 0xC000_0128,
    INVALID_LEVEL = 0xC000_0148,
    PIPE_BROKEN = 0xC000_014B,
    FS_DRIVER_REQUIRED = 0xC000_019C,
    INVALID_LOCK_RANGE = 0xC000_01A1,
    USER_SESSION_DELETED = 0xC000_0203,
    CONNECTION_REFUSED = 0xC000_0236,
    INVALID_DEVICE_STATE = 0xC000_0184,
    NOT_FOUND = 0xC000_0225,
    DUPLICATE_OBJECTID = 0xC000_022A,
    RETRY = 0xC000_022D,
    NOT_A_REPARSE_POINT = 0xC000_0275,
    NETWORK_SESSION_EXPIRED = 0xC000_035C,
    SMB_TOO_MANY_UIDS = 0xC000_0362,
    VIRUS_INFECTED = 0xC000_0906,
    FILE_NOT_AVAILABLE = 0xC000_0467,
    HASH_NOT_PRESENT = 0xC000_A101,
    OS2_INVALID_LEVEL = 0x007C_0001,
    SMB_BAD_CLUSTER_DIALECT = 0xC05D_0001,
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D_0000,
}

impl Status {
    /// Whether the request failed. Warnings (0x8...) carry an answer of their command.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#010X}", self.0),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_name() {
        let mut values: Vec<u32> = Status::ALL.iter().map(|status| status.0).collect();
        values.sort_unstable();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "a value has two names");
    }

    #[test]
    fn warnings_are_no_errors() {
        assert!(Status::ACCESS_DENIED.is_error());
        assert!(!Status::BUFFER_OVERFLOW.is_error());
        assert!(!Status::PENDING.is_error());
        assert_eq!(format!("{}", Status::DELETE_PENDING), "DELETE_PENDING");
        assert_eq!(format!("{}", Status(0xC000_FFFF)), "0xC000FFFF");
    }
}
