//! Errors of the database, sorted by what the engine does about them.

use engine::EngineError;
use tokio_postgres::error::SqlState;

/// Raised by `commit_batch` when a row has come that a decision did not see.
const ROW_HAS_COME: &str = "LZ001";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Others were faster: nothing was done, and it may be tried again at once.
    Conflict,
    /// Nothing was done; another try, perhaps with another server, may work.
    Refused(String),
    /// The connection is gone. What was under way may have been done.
    Lost(String),
    /// No server was there to begin with; nothing was done.
    Away(String),
    /// It will not work the next time either.
    Fatal(String),
}

impl Trouble {
    pub fn of(error: &tokio_postgres::Error) -> Trouble {
        let Some(db) = error.as_db_error() else { return Trouble::Lost(whole_story(error)) };
        let code = db.code().code();
        Trouble::of_code(code, format!("{} ({code})", db.message()))
    }

    fn of_code(code: &str, text: String) -> Trouble {
        match code {
            ROW_HAS_COME | "40001" | "40P01" | "55P03" => Trouble::Conflict,
            // Read-only: this server is not, or no longer, the one that takes writes.
            "25006" | "53300" | "53400" => Trouble::Refused(text),
            // A node that was stopped within a transaction is cut off, and reads so in answer to its next question.
            "25P03" => Trouble::Lost(text),
            code if code.starts_with("08") || code.starts_with("57") => Trouble::Lost(text),
            // A disk that is full, memory that is short: it may pass.
            code if code.starts_with("53") || code.starts_with("58") => Trouble::Refused(text),
            _ => Trouble::Fatal(text),
        }
    }

    /// The error for the caller when no more is tried.
    pub fn into_engine(self) -> EngineError {
        match self {
            Trouble::Conflict | Trouble::Refused(_) | Trouble::Away(_) => EngineError::Busy,
            Trouble::Lost(what) => EngineError::Unavailable(format!("the database: {what}")),
            Trouble::Fatal(what) => EngineError::Unavailable(format!("the database refuses: {what}")),
        }
    }

    /// Whether it was done is not known.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Trouble::Lost(_))
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Conflict => f.write_str("others were faster"),
            Trouble::Refused(what) | Trouble::Lost(what) | Trouble::Away(what) | Trouble::Fatal(what) => {
                f.write_str(what)
            }
        }
    }
}

/// The error and what is behind it; the outermost sentence alone often says nothing.
fn whole_story(error: &tokio_postgres::Error) -> String {
    let mut story = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        story = format!("{story}: {error}");
        source = error.source();
    }
    story
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        Trouble::of(&error)
    }
}

/// Whether the schema is missing, which needs a clearer sentence than the server's.
pub fn is_missing_table(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_cut_off_asks_again_and_is_not_refused() {
        let of = |code| Trouble::of_code(code, String::new());
        // Idle in a transaction, idle in its turn, ended by an administrator, a broken connection.
        for code in ["25P03", "57P05", "57P01", "08006"] {
            assert_eq!(of(code), Trouble::Lost(String::new()), "{code}");
        }
        assert_eq!(of("25006"), Trouble::Refused(String::new()), "a server that takes no writes");
        assert_eq!(of("25P02"), Trouble::Fatal(String::new()), "a fault of ours");
    }
}
