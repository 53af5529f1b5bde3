//! Why a permission is refused.

use std::fmt;

/// What is wrong with a permission that a client sent or asked for. Over SMB, a refused descriptor is
/// `STATUS_INVALID_SECURITY_DESCR` whatever the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionError {
    /// The text is no SDDL, or it is a kind of SDDL that the service does not take (conditional ACEs, resource attributes).
    Syntax,
    /// An alias such as `DA` names an account of a domain, and the service does not know which domain.
    DomainAlias,
    OwnerMissing,
    GroupMissing,
    DaclMissing,
    /// The binary form is not in base64.
    Base64,
    /// The binary form is damaged: an offset or a length leads outside, or a revision is unknown.
    Malformed,
    /// The descriptor has more than 64 KiB.
    TooLarge,
    /// SDDL has no words for an ACE of the descriptor.
    CustomAce,
    /// The text is no permission key.
    Key,
}

impl PermissionError {
    /// The service's error code; the status is 400.
    pub fn code(self) -> &'static str {
        match self {
            PermissionError::CustomAce => "CannotConvertToSddlDueToCustomAce",
            PermissionError::Key => "FileInvalidPermissionKey",
            PermissionError::Syntax
            | PermissionError::DomainAlias
            | PermissionError::OwnerMissing
            | PermissionError::GroupMissing
            | PermissionError::DaclMissing
            | PermissionError::Base64
            | PermissionError::Malformed
            | PermissionError::TooLarge => "FileInvalidPermission",
        }
    }
}

impl fmt::Display for PermissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PermissionError::Syntax => "the permission is no valid SDDL",
            PermissionError::DomainAlias => "the permission names an account of a domain by an alias; give its SID",
            PermissionError::OwnerMissing => "the permission has no owner",
            PermissionError::GroupMissing => "the permission has no group",
            PermissionError::DaclMissing => "the permission has no DACL",
            PermissionError::Base64 => "the permission is not in base64",
            PermissionError::Malformed => "the permission is no valid security descriptor",
            PermissionError::TooLarge => "the permission has more than 64 KiB",
            PermissionError::CustomAce => "SDDL cannot express an ACE of the permission; ask for the binary format",
            PermissionError::Key => "the permission key is not valid",
        })
    }
}

impl std::error::Error for PermissionError {}
