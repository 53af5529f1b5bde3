//! The two forms in which REST takes and tells a permission (`x-ms-file-permission-format`).

use wire::http::Head;

use crate::error::FileError;
use crate::request::text;
use crate::security::{Permission, PermissionError};

const HEADER: &str = "x-ms-file-permission-format";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PermissionFormat {
    #[default]
    Sddl,
    /// The self-relative form in base64.
    Binary,
}

impl PermissionFormat {
    pub fn parse(word: &str) -> Option<PermissionFormat> {
        match word {
            _ if word.eq_ignore_ascii_case("sddl") => Some(PermissionFormat::Sddl),
            _ if word.eq_ignore_ascii_case("binary") => Some(PermissionFormat::Binary),
            _ => None,
        }
    }

    /// The format that a request names in its header.
    pub fn of(head: &Head) -> Result<PermissionFormat, FileError> {
        let Some(word) = text(head, HEADER)? else { return Ok(PermissionFormat::default()) };
        PermissionFormat::parse(word).ok_or_else(|| FileError::header(HEADER, word))
    }

    pub fn read(self, text: &str) -> Result<Permission, PermissionError> {
        match self {
            PermissionFormat::Sddl => Permission::from_sddl(text),
            PermissionFormat::Binary => Permission::from_base64(text),
        }
    }

    pub fn write(self, permission: &Permission) -> Result<String, PermissionError> {
        match self {
            PermissionFormat::Sddl => permission.to_sddl(),
            PermissionFormat::Binary => Ok(permission.to_base64()),
        }
    }
}
