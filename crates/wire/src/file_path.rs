//! Names and paths of files and directories inside a share. A value of these types is a valid name.
//!
//! A name keeps the spelling that its creator gave it. Two names are the same if their folded forms are (see [`crate::fold`]); files
//! and directories share one name space. Trailing dots are taken away before anything else is looked at, unless the request keeps them.

use std::fmt;

use crate::fold::{fold, same_name};

/// Counted in UTF-16 units, as the service's own runtime counts the length of a string.
pub const COMPONENT_CHARS_MAX: usize = 255;
/// Counted decoded, in UTF-16 units, with the slashes between the components and without trailing dots that were taken away.
pub const PATH_CHARS_MAX: usize = 2048;
/// Components of a path. The documentation speaks of the depth of directories; here the last component counts, too.
pub const PATH_DEPTH_MAX: usize = 250;

/// Separators of paths and streams, and what a search pattern is made of. Control characters are refused beside these.
const FORBIDDEN: [char; 9] = ['"', '\\', '/', ':', '|', '<', '>', '*', '?'];

/// Names of devices, in any case. With an extension they are ordinary names, as the service documents the bare names alone.
const DEVICES: [&str; 5] = ["PRN", "AUX", "NUL", "CON", "CLOCK$"];
const NUMBERED_DEVICES: [&str; 2] = ["LPT", "COM"];

/// What becomes of dots at the end of a component (`x-ms-allow-trailing-dot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TrailingDots {
    /// `file1...` is `file1`.
    #[default]
    Strip,
    /// They are part of the name.
    Keep,
}

/// Which kind of resource a path names in a request. A slash at the end is dropped from a directory and refused for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    File,
    Directory,
}

/// What is wrong with a path or one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// A control character or one of `" \ / : | < > * ?`.
    Characters,
    /// `.`, `..` or the name of a device.
    Reserved,
    /// Nothing is left: two slashes in a row, a slash at the end of a file's path, a name of dots alone, or no path where a file is asked for.
    Empty,
    /// A component of more than 255 characters.
    ComponentLength,
    /// A path of more than 2,048 characters.
    PathLength,
    /// More than 250 components.
    Depth,
}

impl PathError {
    /// The service's error code; the status is 400.
    pub fn code(self) -> &'static str {
        match self {
            PathError::Characters | PathError::Reserved | PathError::Empty => "InvalidResourceName",
            PathError::ComponentLength | PathError::PathLength | PathError::Depth => "InvalidFileOrDirectoryPathName",
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathError::Characters => "the name has characters that are not allowed there",
            PathError::Reserved => "the name is reserved",
            PathError::Empty => "a component of the path is empty",
            PathError::ComponentLength => "a component of the path is too long",
            PathError::PathLength => "the path is too long",
            PathError::Depth => "the path has too many components",
        })
    }
}

impl std::error::Error for PathError {}

/// The name of one file or directory: one component of a path, as its creator spelled it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FileName(Box<str>);

impl FileName {
    /// Takes a decoded component. A name with several faults is refused for the first of: reserved, empty, characters, length.
    pub fn parse(name: &str, dots: TrailingDots) -> Result<FileName, PathError> {
        if matches!(name, "." | "..") {
            return Err(PathError::Reserved);
        }
        let name = match dots {
            TrailingDots::Strip => name.trim_end_matches('.'),
            TrailingDots::Keep => name,
        };
        if name.is_empty() {
            return Err(PathError::Empty);
        }
        if name.contains(|letter: char| letter.is_control() || FORBIDDEN.contains(&letter)) {
            return Err(PathError::Characters);
        }
        if is_device(name) {
            return Err(PathError::Reserved);
        }
        if utf16_len(name) > COMPONENT_CHARS_MAX {
            return Err(PathError::ComponentLength);
        }
        Ok(FileName(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form by which entries are found and sorted.
    pub fn folded(&self) -> FoldedName {
        FoldedName(fold(&self.0).into())
    }

    /// Whether both are names of one entry.
    pub fn is_same(&self, other: &FileName) -> bool {
        same_name(&self.0, &other.0)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A name without its case: equal for all spellings of one name, and in the order of listings. The root directory has an empty one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FoldedName(Box<str>);

impl FoldedName {
    /// A name that was stored as [`FoldedName::as_str`] gave it.
    pub fn stored(folded: &str) -> FoldedName {
        FoldedName(folded.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a file or directory is in its share: the names from the root down. Without names it is the root directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FilePath(Vec<FileName>);

impl FilePath {
    /// Takes a decoded path without the share and without a slash in front. A slash that came encoded separates like any other.
    ///
    /// The names are judged from the root down, then the depth, then the whole length.
    pub fn parse(path: &str, kind: PathKind, dots: TrailingDots) -> Result<FilePath, PathError> {
        let path = match kind {
            PathKind::Directory => path.strip_suffix('/').unwrap_or(path),
            PathKind::File => path,
        };
        if path.is_empty() {
            return if kind == PathKind::Directory { Ok(FilePath::root()) } else { Err(PathError::Empty) };
        }
        let names = path.split('/').take(PATH_DEPTH_MAX + 1).map(|name| FileName::parse(name, dots));
        let names = names.collect::<Result<Vec<FileName>, PathError>>()?;
        if names.len() > PATH_DEPTH_MAX {
            return Err(PathError::Depth);
        }
        let path = FilePath(names);
        if path.utf16_len() > PATH_CHARS_MAX { Err(PathError::PathLength) } else { Ok(path) }
    }

    /// The directory that every share has.
    pub fn root() -> FilePath {
        FilePath(Vec::new())
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// From the root down.
    pub fn names(&self) -> &[FileName] {
        &self.0
    }

    /// The directory it is in and its name there; nothing for the root.
    pub fn split_last(&self) -> Option<(FilePath, &FileName)> {
        let (name, directory) = self.0.split_last()?;
        Some((FilePath(directory.to_vec()), name))
    }

    /// Whether this is `directory` or something below it, whatever the case: a directory cannot be renamed to such a path.
    pub fn is_within(&self, directory: &FilePath) -> bool {
        self.0.len() >= directory.0.len() && self.0.iter().zip(&directory.0).all(|(name, other)| name.is_same(other))
    }

    fn utf16_len(&self) -> usize {
        self.0.iter().map(|name| utf16_len(&name.0)).sum::<usize>() + self.0.len().saturating_sub(1)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, name) in self.0.iter().enumerate() {
            let slash = if place == 0 { "" } else { "/" };
            write!(f, "{slash}{name}")?;
        }
        Ok(())
    }
}

fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}

fn is_device(name: &str) -> bool {
    let is_numbered = |device: &&str| {
        name.len() == 4
            && name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(device))
            && matches!(name.as_bytes().last(), Some(b'1'..=b'9'))
    };
    DEVICES.iter().any(|device| name.eq_ignore_ascii_case(device)) || NUMBERED_DEVICES.iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::percent::{BadEncoding, decode_path};

    fn name(text: &str) -> Result<String, PathError> {
        FileName::parse(text, TrailingDots::Strip).map(|name| name.to_string())
    }

    fn kept(text: &str) -> Result<String, PathError> {
        FileName::parse(text, TrailingDots::Keep).map(|name| name.to_string())
    }

    fn file(path: &str) -> Result<String, PathError> {
        FilePath::parse(path, PathKind::File, TrailingDots::Strip).map(|path| path.to_string())
    }

    fn directory(path: &str) -> Result<String, PathError> {
        FilePath::parse(path, PathKind::Directory, TrailingDots::Strip).map(|path| path.to_string())
    }

    fn path(text: &str) -> FilePath {
        FilePath::parse(text, PathKind::Directory, TrailingDots::Strip).expect("a valid path")
    }

    #[test]
    fn ordinary_and_strange_names_are_names() {
        for text in [
            "a",
            "Read Me.txt",
            ".hidden",
            "a..b",
            "trailing space ",
            " ",
            "100%",
            "a+b;c=d&e#f",
            "$root",
            "~",
            "{[(^'`!@,)]}",
            "äöü",
            "日本語",
            "😀",
            // Hostile Unicode: right-to-left override, zero width, joiners, a lone combining accent, private use, noncharacters.
            "a\u{202E}txt.exe",
            "a\u{200B}",
            "\u{301}",
            "\u{E000}",
            "\u{FFFE}\u{FFFF}",
            "\u{FEFF}",
            "\u{10FFFF}",
            "\u{2028}",
            "\u{A0}",
            // Letters that only look like forbidden ones.
            "：＊？／＼",
            "ＣＯＮ",
        ] {
            assert_eq!(name(text), Ok(text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn forbidden_characters_are_refused() {
        for letter in "\"\\/:|<>*?".chars() {
            for text in [format!("a{letter}b"), format!("{letter}"), format!("{letter}a"), format!("a{letter}.")] {
                assert_eq!(name(&text), Err(PathError::Characters), "{text:?}");
                assert_eq!(kept(&text), Err(PathError::Characters), "{text:?}");
            }
        }
        for code in (0..0x20).chain(0x7F..0xA0) {
            let text = format!("a{}", char::from_u32(code).expect("a character"));
            assert_eq!(name(&text), Err(PathError::Characters), "{text:?}");
        }
    }

    #[test]
    fn names_of_devices_are_reserved_in_any_case() {
        for text in ["PRN", "aux", "Nul", "CON", "clock$", "LPT1", "lpt9", "COM1", "Com9", "CON.", "lpt1...", ".", ".."]
        {
            assert_eq!(name(text), Err(PathError::Reserved), "{text:?}");
        }
        for text in
            ["CON.txt", "CONS", "LPT", "LPT0", "LPT10", "COM0", "COM¹", "COMä", "CLOCK", "NUL ", "ＮＵＬ", "LP1"]
        {
            assert_eq!(name(text), Ok(text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn trailing_dots_are_taken_away_unless_the_request_keeps_them() {
        for (text, stripped) in [("file1...", "file1"), ("a.b.", "a.b"), ("a. .", "a. "), ("..a", "..a")] {
            assert_eq!(name(text), Ok(stripped.to_owned()));
            assert_eq!(kept(text), Ok(text.to_owned()));
        }
        assert_eq!(name("..."), Err(PathError::Empty));
        assert_eq!(kept("..."), Ok("...".to_owned()));
        assert_eq!(kept("CON."), Ok("CON.".to_owned()));
        for text in [".", ".."] {
            assert_eq!(kept(text), Err(PathError::Reserved));
        }
        assert_eq!(directory("a./b../c"), Ok("a/b/c".to_owned()));
    }

    #[test]
    fn a_component_has_at_most_255_utf16_units() {
        for text in ["a".repeat(255), "ä".repeat(255), "日".repeat(255), format!("{}a", "😀".repeat(127))] {
            assert_eq!(name(&text), Ok(text));
        }
        for text in ["a".repeat(256), "日".repeat(256), "😀".repeat(128)] {
            assert_eq!(name(&text), Err(PathError::ComponentLength));
        }
        assert_eq!(name(&format!("{}...", "a".repeat(255))), Ok("a".repeat(255)), "dots that go do not count");
        assert_eq!(kept(&format!("{}.", "a".repeat(255))), Err(PathError::ComponentLength));
        assert_eq!(name(&"*".repeat(256)), Err(PathError::Characters), "of two faults the characters are told");
    }

    #[test]
    fn a_path_has_at_most_2048_utf16_units() {
        let long = |last: usize| format!("{}{}", format!("{}/", "a".repeat(255)).repeat(7), "b".repeat(last));
        assert!(file(&format!("{}/{}", long(254), "c")).is_ok_and(|path| path.len() == 2048));
        assert_eq!(file(&format!("{}/{}", long(254), "cc")), Err(PathError::PathLength));
        assert!(directory(&format!("{}/c/", long(254))).is_ok(), "the slash at the end does not count");
    }

    #[test]
    fn a_path_has_at_most_250_components() {
        assert!(file(&vec!["a"; 250].join("/")).is_ok());
        assert_eq!(file(&vec!["a"; 251].join("/")), Err(PathError::Depth));
        assert_eq!(file(&"a/".repeat(100_000)), Err(PathError::Depth));
    }

    #[test]
    fn slashes_separate_names() {
        assert_eq!(file("a/b/C.txt"), Ok("a/b/C.txt".to_owned()));
        assert_eq!(directory("a/b/"), Ok("a/b".to_owned()));
        for bad in ["a/", "/a", "a//b", "//", "/", "", "a/.../b"] {
            assert_eq!(file(bad), Err(PathError::Empty), "{bad:?}");
        }
        for bad in ["/a", "a//b", "a//", "//"] {
            assert_eq!(directory(bad), Err(PathError::Empty), "{bad:?}");
        }
        for bad in ["a/../b", "./a", "..", "a/CON/b"] {
            assert_eq!(directory(bad), Err(PathError::Reserved), "{bad:?}");
        }
    }

    #[test]
    fn no_path_is_the_root_directory() {
        for text in ["", "/"] {
            assert_eq!(FilePath::parse(text, PathKind::Directory, TrailingDots::Strip), Ok(FilePath::root()));
        }
        assert!(path("").is_root() && path("").split_last().is_none() && !path("a").is_root());
    }

    #[test]
    fn a_path_is_judged_after_it_was_decoded() {
        let decoded = |raw: &str| decode_path(raw).map(|path| directory(&path));
        assert_eq!(decoded("a%2Fb"), Ok(Ok("a/b".to_owned())));
        assert_eq!(decoded("a%20b%25"), Ok(Ok("a b%".to_owned())));
        assert_eq!(decoded("a%2F..%2Fb"), Ok(Err(PathError::Reserved)));
        assert_eq!(decoded("a%5Cb"), Ok(Err(PathError::Characters)));
        assert_eq!(decoded("a%00"), Ok(Err(PathError::Characters)));
        // Half of a surrogate pair, too long a form of a slash, and a cut character are no UTF-8: 400 InvalidUri.
        for raw in ["%ED%A0%80", "%C0%AF", "%E6%97", "%zz"] {
            assert_eq!(decoded(raw), Err(BadEncoding), "{raw}");
        }
    }

    #[test]
    fn spelling_is_kept_and_case_does_not_count() {
        let parse = |text| FileName::parse(text, TrailingDots::Strip).expect("a valid name");
        assert_eq!(parse("ReadMe").as_str(), "ReadMe");
        assert!(parse("ReadMe").is_same(&parse("README")) && parse("ReadMe") != parse("README"));
        assert_eq!(parse("ReadMe").folded(), parse("rEADmE").folded());
        assert_ne!(parse("a").folded(), parse("b").folded());
        assert!(parse("b").folded() > parse("A").folded() && parse("a_").folded() > parse("aB").folded());
    }

    #[test]
    fn a_path_is_within_itself_and_what_is_above() {
        for (inner, outer) in [("a/b", "a"), ("A/B/c", "a/b"), ("a", "A"), ("a", ""), ("", "")] {
            assert!(path(inner).is_within(&path(outer)), "{inner} {outer}");
        }
        for (inner, outer) in [("ab/c", "a"), ("a", "a/b"), ("b/a", "a"), ("", "a")] {
            assert!(!path(inner).is_within(&path(outer)), "{inner} {outer}");
        }
    }

    #[test]
    fn a_path_splits_into_directory_and_name() {
        let whole = path("a/b/c");
        let (directory, name) = whole.split_last().expect("not the root");
        assert_eq!((directory, name.as_str()), (path("a/b"), "c"));
        let top = path("a");
        let (directory, _) = top.split_last().expect("not the root");
        assert!(directory.is_root());
    }

    #[test]
    fn each_refusal_has_its_code() {
        for (refusal, code) in [
            (PathError::Characters, "InvalidResourceName"),
            (PathError::Reserved, "InvalidResourceName"),
            (PathError::Empty, "InvalidResourceName"),
            (PathError::ComponentLength, "InvalidFileOrDirectoryPathName"),
            (PathError::PathLength, "InvalidFileOrDirectoryPathName"),
            (PathError::Depth, "InvalidFileOrDirectoryPathName"),
        ] {
            assert_eq!(refusal.code(), code);
        }
    }
}
