//! Owner, group and mode: what shares that are mounted over NFS have in the place of attributes and permissions.

use minicbor::{Decode, Encode};

/// What NFS sees of a file or directory beside its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct NfsProperties {
    /// The id of a user. 0 is root.
    #[n(0)]
    pub owner: u32,
    /// The id of a group.
    #[n(1)]
    pub group: u32,
    #[n(2)]
    pub mode: FileMode,
}

impl NfsProperties {
    /// Those of something new whose creator names none.
    pub fn new(is_directory: bool) -> NfsProperties {
        let mode = if is_directory { FileMode::NEW_DIRECTORY } else { FileMode::NEW_FILE };
        NfsProperties { owner: 0, group: 0, mode }
    }
}

/// The twelve bits of a mode: set-user-id, set-group-id and sticky, then read, write and execute of owner, group and others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(transparent)]
pub struct FileMode(#[n(0)] u16);

impl FileMode {
    const NEW_FILE: FileMode = FileMode(0o664);
    const NEW_DIRECTORY: FileMode = FileMode(0o755);
    /// That of every symbolic link. What may be done is said by the file that it leads to.
    pub const SYMBOLIC_LINK: FileMode = FileMode(0o777);

    /// Takes `0644` and `644`, and `rw-r--r--`. `None` for text that is no mode.
    pub fn parse(text: &str) -> Option<FileMode> {
        let is_octal = matches!(text.len(), 3 | 4) && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        if is_octal { u16::from_str_radix(text, 8).ok().map(FileMode) } else { symbolic(text) }
    }
}

/// Three letters each for owner, group and others. The third one also tells one of the special bits: a small letter with the bit to
/// execute, a capital without.
fn symbolic(text: &str) -> Option<FileMode> {
    let letters: [u8; 9] = text.as_bytes().try_into().ok()?;
    let classes = [(b's', 0o4000), (b's', 0o2000), (b't', 0o1000)];
    let mut mode = 0;
    for ((class, (special, bit)), shift) in letters.chunks(3).zip(classes).zip([6, 3, 0]) {
        let read = flag(class[0], b'r', 0o4)?;
        let write = flag(class[1], b'w', 0o2)?;
        let execute = match class[2] {
            letter if letter == special => 0o1 << shift | bit,
            letter if letter == special.to_ascii_uppercase() => bit,
            letter => flag(letter, b'x', 0o1)? << shift,
        };
        mode |= (read | write) << shift | execute;
    }
    Some(FileMode(mode))
}

/// The bit if the letter is there, and none for a hyphen.
fn flag(letter: u8, known: u8, bit: u16) -> Option<u16> {
    match letter {
        b'-' => Some(0),
        _ if letter == known => Some(bit),
        _ => None,
    }
}

/// Four octal digits.
impl std::fmt::Display for FileMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_in_both_notations() {
        for (text, shown) in [
            ("0644", "0644"),
            ("755", "0755"),
            ("7777", "7777"),
            ("000", "0000"),
            ("rw-r--r--", "0644"),
            ("rwxr-xr-x", "0755"),
            ("---------", "0000"),
            ("rwsrwsrwt", "7777"),
            ("rwSrwSrwT", "7666"),
            ("--x--s--t", "3111"),
        ] {
            assert_eq!(FileMode::parse(text).map(|mode| mode.to_string()).as_deref(), Some(shown), "{text}");
        }
        let bad = [
            "",
            "8",
            "0888",
            "64",
            "07777",
            "+644",
            "rw-r--r-",
            "rw-r--r--x",
            "rwtr--r--",
            "r-wr--r--",
            "rw-r--r-s",
            "ä",
        ];
        for text in bad {
            assert_eq!(FileMode::parse(text), None, "{text}");
        }
    }
}
