//! Share modes: what an open file lets others do, and what a REST operation counts as beside open handles.
//!
//! Every handle says what it does with the file (its access) and what others may do meanwhile (its sharing). Two handles can be open
//! together if the access of each is in the sharing of the other. A handle that neither reads, writes nor deletes (attributes only)
//! meets nobody. A REST operation is treated as a handle that is open only while it is at work, so both kinds of clients follow one rule.
//! The rule is that of MS-FSA; what each REST operation counts as follows
//! <https://learn.microsoft.com/rest/api/storageservices/managing-file-locks>.

/// A set of the three things that count: reading, writing, deleting. Access and sharing are both such sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access(u8);

impl Access {
    pub const NONE: Access = Access(0);
    pub const READ: Access = Access(1);
    pub const WRITE: Access = Access(2);
    pub const DELETE: Access = Access(4);
    pub const ALL: Access = Access(7);

    /// What the access mask of an SMB open asks for. Rights over attributes, descriptors and time do not count; generic rights must have
    /// been replaced by what they stand for.
    pub fn from_mask(mask: u32) -> Access {
        const FILE_READ_DATA: u32 = 0x1;
        const FILE_WRITE_DATA: u32 = 0x2;
        const FILE_APPEND_DATA: u32 = 0x4;
        const FILE_EXECUTE: u32 = 0x20;
        const DELETE: u32 = 0x1_0000;
        let any = |bits: u32, access: Access| if mask & bits == 0 { Access::NONE } else { access };
        any(FILE_READ_DATA | FILE_EXECUTE, Access::READ)
            .and(any(FILE_WRITE_DATA | FILE_APPEND_DATA, Access::WRITE))
            .and(any(DELETE, Access::DELETE))
    }

    /// The share bits of an SMB open: 1 read, 2 write, 4 delete. Other bits mean nothing.
    pub fn from_share_bits(bits: u32) -> Access {
        Access((bits & u32::from(Access::ALL.0)) as u8)
    }

    #[must_use]
    pub const fn and(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }

    pub fn is_none(self) -> bool {
        self == Access::NONE
    }

    /// Whether everything in `other` is in this set.
    pub fn contains(self, other: Access) -> bool {
        other.0 & !self.0 == 0
    }
}

/// One handle of a file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Open {
    pub access: Access,
    /// What it lets others do.
    pub sharing: Access,
}

impl Open {
    /// What a REST lease that is held counts as for everyone who opens the file. REST requests do not meet it: they name the lease.
    pub const REST_LEASE: Open = Open { access: Access::ALL, sharing: Access::READ };

    /// Whether the two cannot be open together. It does not matter which came first.
    pub fn conflicts_with(self, other: Open) -> bool {
        if self.access.is_none() || other.access.is_none() {
            return false;
        }
        !self.sharing.contains(other.access) || !other.sharing.contains(self.access)
    }
}

/// The REST operations, by what they need of an open file. Operations that need the same share a name here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RestAccess {
    /// List Directories and Files, Get Properties, Get Metadata, and every action on a lease but acquire.
    Look,
    /// Get File, List Ranges, and the source of a copy.
    Read,
    /// Put Range in all its forms, Set Properties, Set Metadata.
    Write,
    /// Create File, also over an existing file; the target of a copy.
    Replace,
    /// Delete File, Delete Directory. No handle of any kind may be open, whatever it shares.
    Delete,
    /// The source of a rename, and a file that a rename replaces.
    Rename,
    /// Acquire of a file lease.
    AcquireLease,
}

/// The handle stands against the request: 409 `SharingViolation` over REST, `STATUS_SHARING_VIOLATION` over SMB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharingViolation;

impl RestAccess {
    pub const EVERY: [RestAccess; 7] = [
        RestAccess::Look,
        RestAccess::Read,
        RestAccess::Write,
        RestAccess::Replace,
        RestAccess::Delete,
        RestAccess::Rename,
        RestAccess::AcquireLease,
    ];

    /// The handle that the operation counts as while it is at work.
    pub fn open(self) -> Open {
        let (access, sharing) = match self {
            RestAccess::Look => (Access::NONE, Access::ALL),
            RestAccess::Read => (Access::READ, Access::ALL),
            RestAccess::Write => (Access::WRITE, Access::ALL),
            RestAccess::Replace => (Access::WRITE.and(Access::DELETE), Access::ALL),
            RestAccess::Delete => (Access::DELETE, Access::NONE),
            RestAccess::Rename => (Access::DELETE, Access::ALL),
            RestAccess::AcquireLease => return Open::REST_LEASE,
        };
        Open { access, sharing }
    }

    /// Whether the operation and the handle cannot be there together.
    pub fn conflicts_with(self, handle: Open) -> bool {
        self == RestAccess::Delete || self.open().conflicts_with(handle)
    }

    /// Judges the operation beside the handles that are open. REST operations do not exclude one another: commits are in order anyway.
    pub fn check(self, handles: impl IntoIterator<Item = Open>) -> Result<(), SharingViolation> {
        let refused = handles.into_iter().any(|handle| self.conflicts_with(handle));
        if refused { Err(SharingViolation) } else { Ok(()) }
    }
}

/// What becomes of a new handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Admission {
    Admitted,
    /// Only REST operations at work stand against it. They leave soon; the open waits and is judged again, so that no SMB client is
    /// refused because of a request in flight.
    Wait,
    Refused(SharingViolation),
}

/// Judges a new handle beside those that are open, a REST lease if one is held, and the REST operations at work.
pub fn admit(
    new: Open,
    handles: impl IntoIterator<Item = Open>,
    is_leased: bool,
    at_work: impl IntoIterator<Item = RestAccess>,
) -> Admission {
    let lease = is_leased.then_some(Open::REST_LEASE);
    if handles.into_iter().chain(lease).any(|handle| handle.conflicts_with(new)) {
        return Admission::Refused(SharingViolation);
    }
    if at_work.into_iter().any(|operation| operation.conflicts_with(new)) {
        return Admission::Wait;
    }
    Admission::Admitted
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Access = Access::READ;
    const W: Access = Access::WRITE;
    const D: Access = Access::DELETE;
    const NONE: Access = Access::NONE;
    const ALL: Access = Access::ALL;

    fn every_set() -> impl Iterator<Item = Access> {
        (0..8).map(Access)
    }

    fn every_open() -> impl Iterator<Item = Open> {
        every_set().flat_map(|access| every_set().map(move |sharing| Open { access, sharing }))
    }

    fn is_refused(operation: RestAccess, access: Access, sharing: Access) -> bool {
        operation.check([Open { access, sharing }]).is_err()
    }

    /// The published table: which operations answer 409 beside one open, by what the open shares.
    #[test]
    fn the_table_of_share_modes_and_rest_operations() {
        use RestAccess::{AcquireLease, Delete, Read, Replace, Write};
        let table = [
            // shares, Create, Get and List Ranges, Put Range and Set, Delete, Lease acquire
            (NONE, [true, true, true, true, true]),
            (R, [true, false, true, true, true]),
            (W, [true, true, false, true, true]),
            (D, [true, true, true, true, true]),
            (R.and(W), [true, false, false, true, true]),
            (R.and(D), [true, false, true, true, true]),
            (W.and(D), [false, true, false, true, true]),
            (ALL, [false, false, false, true, false]),
        ];
        for (sharing, refused) in table {
            for (operation, refused) in [Replace, Read, Write, Delete, AcquireLease].into_iter().zip(refused) {
                assert_eq!(
                    is_refused(operation, R, sharing),
                    refused,
                    "{operation:?} beside a reader that shares {sharing:?}"
                );
            }
        }
    }

    #[test]
    fn what_the_open_does_itself_counts_only_for_a_lease() {
        for open in every_open().filter(|open| !open.access.is_none()) {
            for operation in RestAccess::EVERY.into_iter().filter(|one| *one != RestAccess::AcquireLease) {
                assert_eq!(operation.conflicts_with(open), operation.conflicts_with(Open { access: R, ..open }));
            }
        }
        for (access, refused) in [(NONE, false), (R, false), (W, true), (D, true), (R.and(W), true), (ALL, true)] {
            assert_eq!(is_refused(RestAccess::AcquireLease, access, ALL), refused, "{access:?}");
        }
    }

    #[test]
    fn the_access_of_each_rest_operation() {
        for (operation, access, sharing) in [
            (RestAccess::Look, NONE, ALL),
            (RestAccess::Read, R, ALL),
            (RestAccess::Write, W, ALL),
            (RestAccess::Replace, W.and(D), ALL),
            (RestAccess::Delete, D, NONE),
            (RestAccess::Rename, D, ALL),
            (RestAccess::AcquireLease, ALL, R),
        ] {
            assert_eq!(operation.open(), Open { access, sharing });
        }
    }

    #[test]
    fn looking_is_never_refused_and_a_delete_always_is() {
        for open in every_open() {
            assert_eq!(RestAccess::Look.check([open]), Ok(()));
            assert_eq!(RestAccess::Delete.check([open]), Err(SharingViolation));
        }
        assert_eq!(RestAccess::Delete.check([]), Ok(()));
    }

    #[test]
    fn a_rename_needs_delete_sharing() {
        for open in every_open().filter(|open| !open.access.is_none()) {
            assert_eq!(RestAccess::Rename.conflicts_with(open), !open.sharing.contains(D), "{open:?}");
        }
    }

    #[test]
    fn an_open_of_attributes_alone_meets_only_a_delete() {
        for sharing in every_set() {
            let open = Open { access: NONE, sharing };
            for other in every_open() {
                assert!(!open.conflicts_with(other));
            }
            for operation in RestAccess::EVERY {
                assert_eq!(operation.conflicts_with(open), operation == RestAccess::Delete);
            }
        }
    }

    #[test]
    fn it_does_not_matter_who_came_first() {
        for one in every_open() {
            for other in every_open() {
                assert_eq!(one.conflicts_with(other), other.conflicts_with(one), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn two_handles_share_what_both_allow() {
        let open = |access, sharing| Open { access, sharing };
        for (one, other, conflict) in [
            (open(R, R), open(R, R), false),
            (open(R, R), open(W, ALL), true),
            (open(W, R), open(R, R), true),
            (open(W, R), open(R, R.and(W)), false),
            (open(R, NONE), open(R, ALL), true),
            (open(D, ALL), open(R, R.and(W)), true),
            (open(D, ALL), open(R, ALL), false),
            (open(ALL, ALL), open(ALL, ALL), false),
        ] {
            assert_eq!(one.conflicts_with(other), conflict, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_held_rest_lease_admits_readers_that_share_everything() {
        for new in every_open() {
            let expected = if new.access.is_none() || (new.access == R && new.sharing == ALL) {
                Admission::Admitted
            } else {
                Admission::Refused(SharingViolation)
            };
            assert_eq!(admit(new, [], true, []), expected, "{new:?}");
            assert_eq!(admit(new, [], false, []), Admission::Admitted, "{new:?}");
        }
    }

    #[test]
    fn a_handle_waits_for_rest_operations_and_is_refused_for_handles() {
        let new = Open { access: R, sharing: NONE };
        let reader = Open { access: R, sharing: ALL };
        assert_eq!(admit(new, [], false, [RestAccess::Look]), Admission::Admitted);
        assert_eq!(admit(new, [], false, [RestAccess::Look, RestAccess::Read]), Admission::Wait);
        assert_eq!(admit(reader, [], false, [RestAccess::Write, RestAccess::Replace]), Admission::Admitted);
        assert_eq!(admit(reader, [], false, [RestAccess::Delete]), Admission::Wait);
        assert_eq!(admit(new, [reader], false, [RestAccess::Read]), Admission::Refused(SharingViolation));
        assert_eq!(admit(reader, [reader, reader], false, []), Admission::Admitted);
    }

    #[test]
    fn one_handle_of_many_is_enough_to_refuse() {
        let (open, closed) = (Open { access: R, sharing: ALL }, Open { access: R, sharing: R });
        assert_eq!(RestAccess::Write.check([open, open]), Ok(()));
        assert_eq!(RestAccess::Write.check([open, closed, open]), Err(SharingViolation));
    }

    #[test]
    fn masks_of_smb() {
        for (mask, access) in [
            (0x1, R),
            (0x20, R),
            (0x2, W),
            (0x4, W),
            (0x1_0000, D),
            (0x1_0027, ALL),
            // Attributes, extended attributes, deletion of children, descriptors, synchronize.
            (0x8 | 0x10 | 0x40 | 0x80 | 0x100 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x10_0000, NONE),
            (0, NONE),
        ] {
            assert_eq!(Access::from_mask(mask), access, "{mask:#x}");
        }
        for (bits, sharing) in [(0, NONE), (1, R), (2, W), (4, D), (7, ALL), (0xFFFF_FFF8, NONE)] {
            assert_eq!(Access::from_share_bits(bits), sharing);
        }
    }
}
