//! A table of rows, each with the answer it must get. All rows run; what differs is told at the end, together.

use std::fmt::Display;

/// Collects what rows got and what they should have got, and fails the test when it goes out of scope.
///
/// A row that is known to get another answer stands in the suite's `NOT_YET` list as (`table: row`, reason). It is let
/// through, but as soon as it gets the right answer, or no longer exists, the test fails: the list cannot rot.
pub struct Table {
    title: &'static str,
    known: Vec<(&'static str, bool)>,
    wrong: Vec<String>,
}

impl Table {
    pub fn new(title: &'static str) -> Table {
        let row_of = |entry: &'static str| entry.strip_prefix(title)?.strip_prefix(": ");
        let known = crate::NOT_YET.iter().filter_map(|(entry, _)| Some((row_of(entry)?, false))).collect();
        Table { title, known, wrong: Vec::new() }
    }

    pub fn row(&mut self, row: impl Display, got: impl Display, expected: impl Display) {
        let (row, got, expected) = (row.to_string(), got.to_string(), expected.to_string());
        let known = self.known.iter_mut().find(|(known, _)| *known == row);
        match (got == expected, known) {
            (true, None) => {}
            (false, Some((_, seen))) => *seen = true,
            (false, None) => self.wrong.push(format!("{row}: expected {expected}, got {got}")),
            (true, Some((_, seen))) => {
                *seen = true;
                self.wrong.push(format!("{row}: gets {expected} by now; take it out of NOT_YET"));
            }
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        for (row, _) in self.known.iter().filter(|(_, seen)| !seen) {
            self.wrong.push(format!("{row}: stands in NOT_YET, and there is no such row"));
        }
        let report = format!("{} rows of {}:\n  {}", self.wrong.len(), self.title, self.wrong.join("\n  "));
        match (self.wrong.is_empty(), std::thread::panicking()) {
            (true, _) => {}
            (false, true) => eprintln!("{report}"),
            (false, false) => panic!("{report}"),
        }
    }
}
