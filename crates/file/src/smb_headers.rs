//! The headers that set what SMB sees of a file or directory: attributes, times and permission.

use concurrency::Timestamp;
use service::RequestError;
use wire::dates;
use wire::http::Head;

use crate::change::copy::{AttributesSetting, CopiedNfs, CopiedTime, CopyMode};
use crate::change::properties::{
    GROUP, MODE, NfsSettings, OWNER, PermissionSetting, Semantics, SmbSettings, TimeSetting,
};
use crate::error::FileError;
use crate::model::{Attributes, FileMode};
use crate::permission_format::PermissionFormat;
use crate::request::{number, required, text};
use crate::security::{PERMISSION_HEADER_BYTES_MAX, PermissionKey};

/// Before this version requests and answers had none of these headers.
pub const SMB_HEADERS_SINCE: &str = "2019-02-02";
/// Before this version they had to be given. Since then, the change time can be set, too.
const OPTIONAL_SINCE: &str = "2021-06-08";

const ATTRIBUTES: &str = "x-ms-file-attributes";
const CREATION_TIME: &str = "x-ms-file-creation-time";
pub const LAST_WRITE_TIME: &str = "x-ms-file-last-write-time";
const CHANGE_TIME: &str = "x-ms-file-change-time";
const PERMISSION: &str = "x-ms-file-permission";
const PERMISSION_KEY: &str = "x-ms-file-permission-key";
const SEMANTICS: &str = "x-ms-file-property-semantics";
/// How a copy gets the mode, and how owner and group, in a share for NFS.
pub const MODE_COPY_MODE: &str = "x-ms-file-mode-copy-mode";
pub const OWNER_COPY_MODE: &str = "x-ms-file-owner-copy-mode";
const PERMISSION_COPY_MODE: &str = "x-ms-file-permission-copy-mode";
/// Before this version a copy had none of these headers.
const COPY_SETTINGS_SINCE: &str = "2019-07-07";

const SOURCE: &str = "source";
const OVERRIDE: &str = "override";
const NOW: &str = "now";
const PRESERVE: &str = "preserve";
const INHERIT: &str = "inherit";

/// The first time that SMB can express: 1601-01-01.
const FIRST: Timestamp = Timestamp(504_911_232_000_000_000);

/// The settings of a Create or Set operation.
pub fn parse(head: &Head) -> Result<SmbSettings, FileError> {
    if head.since(SMB_HEADERS_SINCE) && !head.since(OPTIONAL_SINCE) {
        for name in [ATTRIBUTES, CREATION_TIME, LAST_WRITE_TIME] {
            required(head, name)?;
        }
        if !head.has_header(PERMISSION_KEY) {
            required(head, PERMISSION)?;
        }
    }
    parse_optional(head)
}

/// The settings of a rename, which could always leave them out.
pub fn parse_optional(head: &Head) -> Result<SmbSettings, FileError> {
    if !head.since(SMB_HEADERS_SINCE) {
        return Ok(SmbSettings::default());
    }
    let settings = SmbSettings {
        attributes: attributes(head)?,
        created: time(head, CREATION_TIME)?,
        written: time(head, LAST_WRITE_TIME)?,
        changed: change_time(head)?,
        accessed: TimeSetting::Preserve,
        permission: permission(head)?,
        semantics: semantics(head)?,
        nfs: nfs(head)?,
    };
    Ok(SmbSettings { semantics: settings.semantics.with(&settings.permission), ..settings })
}

/// The settings of a symbolic link: only times, owner and group can be given.
pub fn parse_symbolic_link(head: &Head) -> Result<SmbSettings, FileError> {
    Ok(SmbSettings {
        created: time(head, CREATION_TIME)?,
        written: time(head, LAST_WRITE_TIME)?,
        nfs: NfsSettings { mode: Some(FileMode::SYMBOLIC_LINK), ..nfs(head)? },
        ..SmbSettings::default()
    })
}

/// What a copy sets of the properties that SMB sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopySettings {
    pub attributes: AttributesSetting,
    pub created: CopiedTime,
    pub written: CopiedTime,
    pub changed: CopiedTime,
    /// `None`: the permission of the source.
    pub permission: Option<PermissionSetting>,
    pub nfs: CopiedNfs,
}

/// The settings of a copy. What it does not name is as in a new file.
pub fn parse_copy(head: &Head) -> Result<CopySettings, FileError> {
    if !head.since(COPY_SETTINGS_SINCE) {
        let now = CopiedTime::Set(TimeSetting::Now);
        let attributes = AttributesSetting::New;
        return Ok(CopySettings {
            attributes,
            created: now,
            written: now,
            changed: now,
            permission: Some(PermissionSetting::Inherit),
            nfs: CopiedNfs::default(),
        });
    }
    let is_of_source =
        |name| text(head, name).map(|value| value.is_some_and(|value| value.eq_ignore_ascii_case(SOURCE)));
    let of_time = |name| match is_of_source(name)? {
        true => Ok::<_, FileError>(CopiedTime::OfSource),
        false => Ok(CopiedTime::Set(time(head, name)?)),
    };
    Ok(CopySettings {
        attributes: match is_of_source(ATTRIBUTES)? {
            true => AttributesSetting::OfSource,
            false => attributes(head)?.map_or(AttributesSetting::New, AttributesSetting::Given),
        },
        created: of_time(CREATION_TIME)?,
        written: of_time(LAST_WRITE_TIME)?,
        changed: match is_of_source(CHANGE_TIME)? && head.since(OPTIONAL_SINCE) {
            true => CopiedTime::OfSource,
            false => CopiedTime::Set(change_time(head)?.map_or(TimeSetting::Now, TimeSetting::At)),
        },
        permission: copied_permission(head)?,
        nfs: copied_nfs(head)?,
    })
}

/// Owner, group and mode of a copy: given, those of the source, or those of a new file.
fn copied_nfs(head: &Head) -> Result<CopiedNfs, FileError> {
    let given = nfs(head)?;
    let owner = copy_mode(head, OWNER_COPY_MODE)?;
    let mode = copy_mode(head, MODE_COPY_MODE)?;
    for (name, set, is_given) in [
        (OWNER_COPY_MODE, owner, given.owner.is_some() || given.group.is_some()),
        (MODE_COPY_MODE, mode, given.mode.is_some()),
    ] {
        if set == Some(CopyMode::Source) && is_given {
            return Err(FileError::header(name, SOURCE));
        }
    }
    Ok(CopiedNfs { given, owner, mode })
}

fn copy_mode(head: &Head, name: &'static str) -> Result<Option<CopyMode>, FileError> {
    match text(head, name)? {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case(SOURCE) => Ok(Some(CopyMode::Source)),
        Some(value) if value.eq_ignore_ascii_case(OVERRIDE) => Ok(Some(CopyMode::Override)),
        Some(value) => Err(FileError::header(name, value)),
    }
}

/// A permission is given only if the mode says that it overrides that of the source.
fn copied_permission(head: &Head) -> Result<Option<PermissionSetting>, FileError> {
    let given = permission(head)?;
    match text(head, PERMISSION_COPY_MODE)? {
        Some(mode) if mode.eq_ignore_ascii_case(SOURCE) => match given {
            PermissionSetting::Preserve => Ok(None),
            PermissionSetting::Inherit | PermissionSetting::Given(_) | PermissionSetting::Key(_) => {
                Err(FileError::header(PERMISSION_COPY_MODE, mode))
            }
        },
        Some(mode) if mode.eq_ignore_ascii_case(OVERRIDE) => match given {
            PermissionSetting::Preserve => Err(RequestError::MissingRequiredHeader { name: PERMISSION }.into()),
            given => Ok(Some(given)),
        },
        Some(mode) => Err(FileError::header(PERMISSION_COPY_MODE, mode)),
        None => match given {
            PermissionSetting::Preserve => Ok(Some(PermissionSetting::Inherit)),
            given => Ok(Some(given)),
        },
    }
}

fn attributes(head: &Head) -> Result<Option<Attributes>, FileError> {
    match text(head, ATTRIBUTES)? {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case(PRESERVE) => Ok(None),
        Some(value) => Attributes::parse(value).map(Some).ok_or_else(|| FileError::header(ATTRIBUTES, value)),
    }
}

fn time(head: &Head, name: &'static str) -> Result<TimeSetting, FileError> {
    match text(head, name)? {
        None => Ok(TimeSetting::Preserve),
        Some(value) if value.eq_ignore_ascii_case(PRESERVE) => Ok(TimeSetting::Preserve),
        Some(value) if value.eq_ignore_ascii_case(NOW) => Ok(TimeSetting::Now),
        Some(value) => point_in_time(name, value).map(TimeSetting::At),
    }
}

fn change_time(head: &Head) -> Result<Option<Timestamp>, FileError> {
    match text(head, CHANGE_TIME)?.filter(|_| head.since(OPTIONAL_SINCE)) {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case(NOW) => Ok(None),
        Some(value) => point_in_time(CHANGE_TIME, value).map(Some),
    }
}

fn point_in_time(name: &'static str, value: &str) -> Result<Timestamp, FileError> {
    dates::parse_iso(value).filter(|time| *time >= FIRST).ok_or_else(|| FileError::header(name, value))
}

/// Put Range only says whether the last write time moves.
pub fn last_write_time_moves(head: &Head) -> Result<bool, FileError> {
    match text(head, LAST_WRITE_TIME)? {
        None => Ok(true),
        Some(value) if value.eq_ignore_ascii_case(NOW) => Ok(true),
        Some(value) if value.eq_ignore_ascii_case(PRESERVE) => Ok(false),
        Some(value) => Err(FileError::header(LAST_WRITE_TIME, value)),
    }
}

fn permission(head: &Head) -> Result<PermissionSetting, FileError> {
    match (text(head, PERMISSION)?, text(head, PERMISSION_KEY)?) {
        (None, None) => Ok(PermissionSetting::Preserve),
        (None, Some(key)) => Ok(PermissionSetting::Key(PermissionKey::parse(key)?)),
        (Some(_), Some(key)) => Err(FileError::header(PERMISSION_KEY, key)),
        (Some(value), None) if value.eq_ignore_ascii_case(PRESERVE) => Ok(PermissionSetting::Preserve),
        (Some(value), None) if value.eq_ignore_ascii_case(INHERIT) => Ok(PermissionSetting::Inherit),
        // A longer one is made by Create Permission and named by its key.
        (Some(value), None) if value.len() > PERMISSION_HEADER_BYTES_MAX => {
            Err(FileError::header(PERMISSION, format!("{} bytes", value.len())))
        }
        (Some(value), None) => Ok(PermissionSetting::Given(Box::new(PermissionFormat::of(head)?.read(value)?))),
    }
}

/// Owner, group and mode. Only shares that are mounted over NFS have them; which share it is turns out later.
fn nfs(head: &Head) -> Result<NfsSettings, FileError> {
    let mode = match text(head, MODE)? {
        None => None,
        Some(value) => Some(FileMode::parse(value).ok_or_else(|| FileError::header(MODE, value))?),
    };
    Ok(NfsSettings { owner: id(head, OWNER)?, group: id(head, GROUP)?, mode })
}

/// The id of a user or of a group.
fn id(head: &Head, name: &'static str) -> Result<Option<u32>, FileError> {
    let Some(number) = number(head, name)? else { return Ok(None) };
    u32::try_from(number).map(Some).map_err(|_| FileError::header(name, number.to_string()))
}

fn semantics(head: &Head) -> Result<Semantics, FileError> {
    match text(head, SEMANTICS)? {
        None => Ok(Semantics::New),
        Some(value) if value.eq_ignore_ascii_case("new") => Ok(Semantics::New),
        Some(value) if value.eq_ignore_ascii_case("restore") => Ok(Semantics::Restore),
        Some(value) => Err(FileError::header(SEMANTICS, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::Permission;
    use crate::testing::request;

    const PERMISSION_FORMAT: &str = "x-ms-file-permission-format";

    const SDDL: &str = "O:BAG:SYD:(A;;FA;;;BU)";

    fn parsed(version: &str, headers: &[(&str, &str)]) -> Result<SmbSettings, FileError> {
        let mut head = request("PUT", "share/file", headers);
        head.version = version.into();
        parse(&head)
    }

    fn newest(headers: &[(&str, &str)]) -> Result<SmbSettings, FileError> {
        parsed("2026-10-06", headers)
    }

    #[test]
    fn times_are_words_or_points() {
        let at = dates::parse_iso("2020-02-03T04:05:06.0000007Z").unwrap();
        for (value, expected) in [
            ("now", TimeSetting::Now),
            ("Preserve", TimeSetting::Preserve),
            ("2020-02-03T04:05:06.0000007Z", TimeSetting::At(at)),
            ("1601-01-01T00:00:00.0000000Z", TimeSetting::At(FIRST)),
        ] {
            for name in [CREATION_TIME, LAST_WRITE_TIME] {
                let settings = newest(&[(name, value)]).unwrap();
                let set = if name == CREATION_TIME { settings.created } else { settings.written };
                assert_eq!(set, expected, "{name}: {value}");
            }
        }
        assert_eq!(newest(&[(CHANGE_TIME, "now")]).unwrap().changed, None);
        assert_eq!(newest(&[(CHANGE_TIME, "2020-02-03T04:05:06.0000007Z")]).unwrap().changed, Some(at));
        assert_eq!(parsed("2020-10-02", &[(CHANGE_TIME, "then")]).unwrap_err(), missing(ATTRIBUTES));
        for name in [CREATION_TIME, LAST_WRITE_TIME, CHANGE_TIME] {
            for value in ["then", "1600-12-31T23:59:59Z", "2020-13-01T00:00:00Z", "1"] {
                assert_eq!(newest(&[(name, value)]), Err(FileError::header(name, value)));
            }
        }
        assert_eq!(newest(&[(CHANGE_TIME, "preserve")]), Err(FileError::header(CHANGE_TIME, "preserve")));
    }

    #[test]
    fn attributes_are_a_list_or_stay() {
        let of = |value| newest(&[(ATTRIBUTES, value)]).map(|settings| settings.attributes);
        assert_eq!(of("preserve"), Ok(None));
        assert_eq!(of("None"), Ok(Some(Attributes::NONE)));
        assert_eq!(of("ReadOnly|Archive"), Ok(Some(Attributes::READ_ONLY.with(Attributes::ARCHIVE))));
        assert_eq!(of("Normal"), Err(FileError::header(ATTRIBUTES, "Normal")));
    }

    #[test]
    fn a_permission_comes_as_a_word_as_text_as_bytes_or_by_its_key() {
        let of = |headers: &[(&str, &str)]| newest(headers).map(|settings| settings.permission);
        assert_eq!(of(&[]), Ok(PermissionSetting::Preserve));
        assert_eq!(of(&[(PERMISSION, "Inherit")]), Ok(PermissionSetting::Inherit));
        assert_eq!(of(&[(PERMISSION, "preserve")]), Ok(PermissionSetting::Preserve));
        let permission = Permission::from_sddl(SDDL).unwrap();
        let (binary, key) = (permission.to_base64(), permission.key());
        let given = Ok(PermissionSetting::Given(Box::new(permission)));
        assert_eq!(of(&[(PERMISSION, SDDL)]), given);
        assert_eq!(of(&[(PERMISSION, SDDL), (PERMISSION_FORMAT, "Sddl")]), given);
        assert_eq!(of(&[(PERMISSION, &binary), (PERMISSION_FORMAT, "binary")]), given);
        assert_eq!(of(&[(PERMISSION_KEY, &key.to_string())]), Ok(PermissionSetting::Key(key)));
        let both = of(&[(PERMISSION, SDDL), (PERMISSION_KEY, "1*2")]);
        assert_eq!(both, Err(FileError::header(PERMISSION_KEY, "1*2")));
        assert_eq!(of(&[(PERMISSION_KEY, "1")]), Err(FileError::FileInvalidPermissionKey));
        assert_eq!(of(&[(PERMISSION, "D:")]), Err(FileError::FileInvalidPermission));
        assert_eq!(of(&[(PERMISSION, SDDL), (PERMISSION_FORMAT, "binary")]), Err(FileError::FileInvalidPermission));
        let unknown = of(&[(PERMISSION, SDDL), (PERMISSION_FORMAT, "json")]);
        assert_eq!(unknown, Err(FileError::header(PERMISSION_FORMAT, "json")));
        let long = format!("O:BAG:SYD:{}", "(A;;FA;;;BU)".repeat(700));
        assert_eq!(of(&[(PERMISSION, &long)]), Err(FileError::header(PERMISSION, format!("{} bytes", long.len()))));
    }

    #[test]
    fn what_is_restored_comes_with_its_permission() {
        let of =
            |semantics, permission| newest(&[(SEMANTICS, semantics), permission]).map(|settings| settings.semantics);
        let given = (PERMISSION, SDDL);
        assert_eq!((of("New", given), of("restore", given)), (Ok(Semantics::New), Ok(Semantics::Restore)));
        assert_eq!(of("Restore", (PERMISSION_KEY, "1*2")), Ok(Semantics::Restore));
        for word in ["", "inherit", "preserve"] {
            assert_eq!(of("Restore", (PERMISSION, word)), Ok(Semantics::New), "{word}");
        }
        assert_eq!(of("old", given), Err(FileError::header(SEMANTICS, "old")));
    }

    #[test]
    fn owner_group_and_mode() {
        let of = |headers: &[(&str, &str)]| newest(headers).map(|settings| settings.nfs);
        let (owner, group) = (Some(345), Some(u32::MAX));
        assert_eq!(of(&[(OWNER, "345")]), Ok(NfsSettings { owner, ..NfsSettings::default() }));
        assert_eq!(of(&[(OWNER, "345"), (GROUP, "4294967295")]), Ok(NfsSettings { owner, group, mode: None }));
        let mode = FileMode::parse("0640");
        assert_eq!(of(&[(MODE, "rw-r-----")]), Ok(NfsSettings { mode, ..NfsSettings::default() }));
        for (name, value) in
            [(OWNER, "root"), (OWNER, "-1"), (GROUP, "4294967296"), (MODE, "0999"), (MODE, "everybody")]
        {
            assert_eq!(of(&[(name, value)]), Err(FileError::header(name, value)), "{name}: {value}");
        }
    }

    fn missing(name: &'static str) -> FileError {
        FileError::from(RequestError::MissingRequiredHeader { name })
    }

    #[test]
    fn for_two_years_all_of_them_had_to_be_given() {
        let all = [(ATTRIBUTES, "None"), (CREATION_TIME, "now"), (LAST_WRITE_TIME, "now"), (PERMISSION, "inherit")];
        let by_key = [all[0], all[1], all[2], (PERMISSION_KEY, "1*2")];
        for version in ["2019-02-02", "2020-10-02", "2021-04-10"] {
            assert!(parsed(version, &all).is_ok() && parsed(version, &by_key).is_ok(), "{version}");
            for (at, (name, _)) in all.iter().enumerate() {
                let mut headers = all.to_vec();
                headers.remove(at);
                assert_eq!(parsed(version, &headers), Err(missing(name)), "{version}");
            }
            let mut head = request("PUT", "share/file?comp=rename", &[]);
            head.version = version.into();
            assert_eq!(parse_optional(&head), Ok(SmbSettings::default()), "{version}");
        }
        for version in ["2018-11-09", "2021-06-08"] {
            assert_eq!(parsed(version, &[]), Ok(SmbSettings::default()), "{version}");
        }
        let before = parsed("2018-11-09", &[(ATTRIBUTES, "Normal"), (PERMISSION, "D:")]);
        assert_eq!(before, Ok(SmbSettings::default()), "they mean nothing yet");
    }

    #[test]
    fn a_range_moves_the_last_write_time_or_not() {
        let of = |headers: &[(&str, &str)]| last_write_time_moves(&request("PUT", "share/file?comp=range", headers));
        assert_eq!((of(&[]), of(&[(LAST_WRITE_TIME, "Now")])), (Ok(true), Ok(true)));
        assert_eq!(of(&[(LAST_WRITE_TIME, "preserve")]), Ok(false));
        let time = "2020-02-03T04:05:06.0000007Z";
        assert_eq!(of(&[(LAST_WRITE_TIME, time)]), Err(FileError::header(LAST_WRITE_TIME, time)));
    }
}
