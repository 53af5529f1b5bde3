//! What happened, in order: hashed, so that two runs can be compared, and printed when somebody wants to read it.

use std::fmt;
use std::hash::Hasher;
use std::sync::Mutex;

#[derive(Debug, Default)]
pub struct Story {
    told: Mutex<Told>,
    prints: bool,
}

#[derive(Debug, Default)]
struct Told {
    lines: u64,
    hash: std::hash::DefaultHasher,
}

impl Story {
    #[must_use]
    pub fn new(prints: bool) -> Story {
        Story { prints, ..Story::default() }
    }

    pub fn tell(&self, line: fmt::Arguments<'_>) {
        let line = line.to_string();
        let mut told = self.told.lock().expect("nothing panics under this lock");
        told.lines += 1;
        told.hash.write(line.as_bytes());
        if self.prints {
            println!("{:>7} {line}", told.lines);
        }
    }

    /// The next order number.
    pub fn order(&self) -> u64 {
        let mut told = self.told.lock().expect("nothing panics under this lock");
        told.lines += 1;
        told.lines
    }

    /// How much was told, and its hash.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        let told = self.told.lock().expect("nothing panics under this lock");
        (told.lines, told.hash.finish())
    }
}
