//! Finds the source of a copy by its URL, and checks that the caller may read it. The server implements this: it checks
//! the URL like a request that reads it.

use std::fmt;

use auth::Service;
use engine::{BoxFuture, EngineError};
use wire::http::{ErrorReply, Head};

/// Finds sources of copies for one caller.
pub trait Sources: fmt::Debug + Send + Sync {
    fn locate<'a>(&'a self, wish: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>>;

    /// Whether the URL names something in the caller's account and has a signature that lets it be written. The source of a rename
    /// goes away, so it is not enough that it may be read.
    fn may_write<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<bool, EngineError>> {
        let _ = url;
        Box::pin(async { Ok(false) })
    }
}

/// The source that a copy asks for.
#[derive(Clone, PartialEq, Eq)]
pub struct Wish {
    pub url: String,
    /// `x-ms-copy-source-authorization`: a bearer token for the source.
    pub authorization: Option<String>,
    /// The copy also reads the source's tags, which needs a permission of its own.
    pub reads_tags: bool,
    pub manner: Manner,
}

/// Leaves out the token and the signature.
impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", without_signature(&self.url), self.manner)
    }
}

/// How a copy accesses its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Copy Blob: the owner of an account may read sources in the same account without a signature in the URL. If the
    /// source refuses, its refusal is the answer.
    Copy,
    /// The operations "from URL": they read the source with what the URL and its token allow. If the source refuses,
    /// the answer says which status the source gave.
    FromUrl,
}

/// What a source's URL names.
#[derive(Clone, Debug)]
pub enum Located {
    /// A resource of this server that the caller may read, with the request that would read it.
    Here { service: Service, account: u64, head: Box<Head> },
    /// A resource of this server that the caller may not read, with the answer that a read would get.
    Refused(ErrorReply),
    /// A resource of another server.
    There,
    /// The text is not a URL.
    Unclear,
}

/// Finds no source: for operations that the program itself runs, of which none copies.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Sources for Nothing {
    fn locate<'a>(&'a self, _: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>> {
        Box::pin(async { Ok(Located::Unclear) })
    }
}

/// The URL without its signature, which would let everybody who sees it read the source.
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
