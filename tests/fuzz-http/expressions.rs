//! Expressions of the three languages that requests carry, long and deep ones among them.
//!
//! Bytes changed at random seldom get past the first token. These are mostly sentences of the language, or nearly.

use crate::random::Random;

/// How deep one part stands in another, apart from what is repeated.
const LEVELS: usize = 4;
/// How often an operator, or something that opens a level, is repeated at most.
const CHAIN_MAX: usize = 400;
const NEST_MAX: usize = 3_000;

/// What a language is made of.
pub struct Language {
    atoms: &'static [&'static str],
    operators: &'static [&'static str],
    /// What stands before and after something deeper.
    levels: &'static [(&'static str, &'static str)],
}

/// Of Query Blob Contents.
pub const SQL: Language = Language {
    atoms: &[
        "1",
        "-2.5e3",
        "'text'",
        "'it''s'",
        "name",
        "size",
        "_1",
        "_3",
        "a.b[0]",
        "s.*",
        "*",
        "NULL",
        "TRUE",
        "\"name\"",
        "COUNT(*)",
        "9999999999999999999",
        "''",
    ],
    operators: &[
        " + ",
        " - ",
        "*",
        "/",
        "%",
        " || ",
        " = ",
        " <> ",
        "<",
        ">=",
        " AND ",
        " OR ",
        " LIKE ",
        " IN ",
        ", ",
        " BETWEEN ",
        " IS ",
        " AS ",
    ],
    levels: &[
        ("(", ")"),
        ("-", ""),
        ("NOT ", ""),
        ("CAST(", " AS INT)"),
        ("UPPER(", ")"),
        ("CASE WHEN 1 = 1 THEN ", " ELSE 2 END"),
        ("CASE ", " WHEN 1 THEN 2 END"),
        ("1 BETWEEN ", " AND 3"),
        ("1 BETWEEN 0 AND ", ""),
        ("name LIKE '%' || ", ""),
        ("COALESCE(1, ", ")"),
        ("SUM(", ")"),
        ("SUBSTRING('abc', ", ", 2)"),
        ("1 IN (2, ", ")"),
        ("NULLIF(", ", 1)"),
    ],
};

/// Of Query Entities and Query Tables.
pub const ODATA: Language = Language {
    atoms: &[
        "1",
        "42L",
        "1.5",
        "'it''s'",
        "true",
        "false",
        "PartitionKey",
        "RowKey",
        "Timestamp",
        "n",
        "s",
        "datetime'2020-01-01T00:00:00Z'",
        "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
        "X'0aff'",
        "NaN",
        "-INF",
        "TableName",
        "PartitionKey eq 'p'",
        "RowKey ge '1'",
        "n ne 3",
    ],
    operators: &[" eq ", " ne ", " gt ", " ge ", " lt ", " le ", " and ", " or ", " add ", ","],
    levels: &[("(", ")"), ("not ", ""), ("not (", ")"), ("startswith(", ",'a')")],
};

/// Of Find Blobs by Tags and of conditions on tags.
pub const TAGS: Language = Language {
    atoms: &["a", "\"a\"", "'b'", "@container", "'cont'", "a = 'b'", "\"c\" >= 'd'", "@container = 'cont'", "a <> 'x'"],
    operators: &[" = ", " > ", " >= ", " < ", " <= ", " <> ", " AND ", " OR "],
    levels: &[("(", ")"), ("NOT ", "")],
};

impl Language {
    pub fn expression(&self, random: &mut Random) -> String {
        self.part(random, LEVELS)
    }

    fn part(&self, random: &mut Random, levels: usize) -> String {
        if levels == 0 {
            return (*random.of(self.atoms)).to_owned();
        }
        let inner = |random: &mut Random| self.part(random, levels - 1);
        match random.below(7) {
            0 => (*random.of(self.atoms)).to_owned(),
            1 | 2 => [&*inner(random), *random.of(self.operators), &*inner(random)].concat(),
            3 => {
                let (open, close) = *random.of(self.levels);
                [open, &*inner(random), close].concat()
            }
            4 => {
                let link = [*random.of(self.atoms), *random.of(self.operators)].concat();
                link.repeat(random.size(CHAIN_MAX)) + &inner(random)
            }
            5 => {
                let (open, close) = random.of(self.levels);
                let depth = random.size(NEST_MAX);
                open.repeat(depth) + &inner(random) + &close.repeat(depth)
            }
            // One that does not end.
            _ => {
                let (open, _) = random.of(self.levels);
                open.repeat(random.size(NEST_MAX)) + &inner(random)
            }
        }
    }
}
