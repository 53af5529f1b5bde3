//! What the two listings share: pages, markers and what to include.

use concurrency::Timestamp;
use wire::base64;
use wire::http::Head;

use crate::error::BlobError;

/// The default and the cap of a page.
pub const RESULTS_MAX: usize = 5_000;
/// How many rows a page may look at. Rows that are not shown count too; then the page is short and has a marker.
/// Tests would take long to make so many.
pub const ROWS_VISITED_MAX: usize = if cfg!(test) { 1_000 } else { 20_000 };
/// How many bytes of rows a page may hold. Metadata makes rows of 8 KiB; a page of 5,000 such blobs would take 40 MB for each
/// client that asks. Beyond it the page is short and has a marker.
pub const ROW_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

pub use service::listing::{include, max_results as max_results_of};

pub fn max_results(head: &Head) -> Result<usize, BlobError> {
    Ok(max_results_of(head, RESULTS_MAX)?)
}

/// Where a page ended: the next one begins after it. Names, not positions, so that nothing is shown twice or left out
/// when others write meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum After {
    /// Everything of this name.
    Name(String),
    /// This snapshot of this name, and all before it.
    Snapshot(String, Timestamp),
    /// All snapshots of this name, this previous version and all before it.
    Version(String, Timestamp),
    /// Everything that begins so.
    Prefix(String),
}

impl After {
    pub fn parse(head: &Head) -> Result<Option<After>, BlobError> {
        const NAME: &str = "marker";
        let Some(text) = head.query.get(NAME) else { return Ok(None) };
        After::from_marker(text).map(Some).ok_or_else(|| BlobError::query(NAME, text))
    }

    /// The marker that clients hand back; they must not read anything into it.
    pub fn to_marker(&self) -> String {
        let mut bytes = Vec::with_capacity(64);
        match self {
            After::Name(name) => {
                bytes.push(0);
                bytes.extend_from_slice(name.as_bytes());
            }
            After::Snapshot(name, at) | After::Version(name, at) => {
                bytes.push(if matches!(self, After::Snapshot(..)) { 1 } else { 3 });
                bytes.extend_from_slice(&at.0.to_be_bytes());
                bytes.extend_from_slice(name.as_bytes());
            }
            After::Prefix(prefix) => {
                bytes.push(2);
                bytes.extend_from_slice(prefix.as_bytes());
            }
        }
        base64::encode(&bytes)
    }

    fn from_marker(text: &str) -> Option<After> {
        let bytes = base64::decode(text)?;
        let (kind, rest) = bytes.split_first()?;
        let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        match kind {
            0 => Some(After::Name(name(rest)?)),
            1 | 3 => {
                let (at, rest) = rest.split_first_chunk::<8>()?;
                let after = if *kind == 1 { After::Snapshot } else { After::Version };
                Some(after(name(rest)?, Timestamp(u64::from_be_bytes(*at))))
            }
            2 => Some(After::Prefix(name(rest)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use service::RequestError;

    #[test]
    fn markers_come_back_as_they_went() {
        let cases = [
            After::Name("a/ä".into()),
            After::Snapshot("b".into(), Timestamp(77)),
            After::Version("b".into(), Timestamp(78)),
            After::Prefix("dir/".into()),
        ];
        for after in cases {
            assert_eq!(After::from_marker(&after.to_marker()), Some(after));
        }
        for text in ["?", "AA=", "AQ==", "CQ==", "AP8="] {
            assert_eq!(After::from_marker(text), None, "{text}");
        }
    }

    #[test]
    fn page_sizes() {
        let of = |query: &str| max_results(&request("GET", &format!("?comp=list&{query}"), &[]));
        assert_eq!(of(""), Ok(5_000));
        assert_eq!(of("maxresults=7"), Ok(7));
        assert_eq!(of("maxresults=5001"), Ok(5_000));
        assert_eq!(of("maxresults=x"), Err(BlobError::query("maxresults", "x")));
        for value in ["0", "-1"] {
            let refused = of(&format!("maxresults={value}"));
            assert!(
                matches!(refused, Err(BlobError::Request(RequestError::OutOfRangeQueryParameterValue { .. }))),
                "{value}"
            );
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        let of = |query: &str| include(&request("GET", &format!("?comp=list&{query}"), &[]), &["metadata", "copy"]);
        assert_eq!(of("include=Metadata,copy"), Ok(vec!["metadata".into(), "copy".into()]));
        assert_eq!(of("include=metadata&include=copy"), Ok(vec!["metadata".into(), "copy".into()]));
        assert_eq!(of("include="), Ok(vec![]));
        assert_eq!(of("include=all"), Err(RequestError::query("include", "all")));
    }
}
