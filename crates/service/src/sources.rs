//! What the URL of a copy's source names, and whether the caller may read it. The server says so: it judges such a URL as it
//! would judge a read of it.

use std::fmt;

use auth::Service;
use engine::{BoxFuture, EngineError};
use wire::http::{ErrorReply, Head};

/// Finds what URLs name, for one caller.
pub trait Sources: fmt::Debug + Send + Sync {
    fn locate<'a>(&'a self, wish: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>>;
}

/// What is to be found, and by whose right.
#[derive(Clone, PartialEq, Eq)]
pub struct Wish {
    pub url: String,
    /// A token for the source.
    pub authorization: Option<String>,
    /// Its tags are asked for, too, which needs a right of its own.
    pub reads_tags: bool,
    pub manner: Manner,
}

/// Leaves out what opens doors.
impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", without_signature(&self.url), self.manner)
    }
}

/// How a copy treats its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Copy Blob: who may do everything in an account may read a source in it, and what the source refuses is the answer.
    Copy,
    /// The operations "from URL" read the source like anybody who has the URL, and say what it answered.
    FromUrl,
}

/// What a URL turned out to be.
#[derive(Clone, Debug)]
pub enum Located {
    /// A resource of this server, which the caller may read: the request that would read it.
    Here { service: Service, account: u64, head: Box<Head> },
    /// One that the caller may not read, and what a read would be answered.
    Refused(ErrorReply),
    /// Something elsewhere.
    There,
    /// No URL.
    Unclear,
}

/// Finds nothing: for who asks within the program, where nobody copies.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Sources for Nothing {
    fn locate<'a>(&'a self, _: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>> {
        Box::pin(async { Ok(Located::Unclear) })
    }
}

/// A URL as everybody may see it: without the signature, which would let them read what it names.
#[must_use]
pub fn without_signature(url: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let is_shown = |pair: &&str| !pair.split('=').next().unwrap_or_default().eq_ignore_ascii_case("sig");
    let query: Vec<&str> = query.split('&').filter(is_shown).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_not_shown() {
        assert_eq!(without_signature("http://h/a/c/b"), "http://h/a/c/b");
        assert_eq!(without_signature("http://h/a/c/b?sv=1&sig=secret%3D&sr=b"), "http://h/a/c/b?sv=1&sr=b");
        assert_eq!(without_signature("http://h/a/c/b?SIG=secret"), "http://h/a/c/b");
        assert_eq!(without_signature("http://h/a/c/b?snapshot=x"), "http://h/a/c/b?snapshot=x");
    }
}
