//! Metadata of a resource: the `x-ms-meta-*` headers.

use std::fmt;

use crate::http::{Head, HeaderMap, HeaderName, HeaderValue};
use crate::xml::XmlWriter;

/// HTTP libraries lose the case of header names, but Azure keeps the case of metadata names. This internal header
/// carries it from the connection to a service and back, as a comma-separated list of the names with capitals. It never
/// comes from a client and never goes to one.
pub const SPELLED_NAMES: &str = "lazurite-metadata-names";

/// Names and values together, without the prefix.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// The prefix of a metadata header, in lower case.
pub const PREFIX: &str = "x-ms-meta-";

/// Valid metadata, in the order and the case in which it was sent. Names are equal when they differ only in case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(String, String)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// A header with the prefix and nothing after it.
    EmptyMetadataKey,
    /// A name that is not an identifier, a name given twice, or a value that is not printable ASCII.
    InvalidMetadata,
    MetadataTooLarge,
}

impl MetadataError {
    /// The error code; the status is 400 for all of them.
    pub fn code(self) -> &'static str {
        match self {
            MetadataError::EmptyMetadataKey => "EmptyMetadataKey",
            MetadataError::InvalidMetadata => "InvalidMetadata",
            MetadataError::MetadataTooLarge => "MetadataTooLarge",
        }
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::error::Error for MetadataError {}

impl Metadata {
    /// The metadata of a request, its names in the case in which they were sent.
    pub fn of(head: &Head) -> Result<Metadata, MetadataError> {
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let metadata = Metadata::parse(headers)?;
        Ok(match head.header(SPELLED_NAMES) {
            Some(spelled) => metadata.spelled(spelled),
            None => metadata,
        })
    }

    /// Collects the metadata from all headers of a request; headers without the prefix are skipped.
    pub fn parse<N: AsRef<str>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Metadata, MetadataError> {
        let mut metadata = Metadata::default();
        let mut bytes = 0;
        for (header, value) in headers {
            let Some(name) = name_in(header.as_ref()) else { continue };
            let value = value.as_ref().trim_ascii();
            check_name(name)?;
            check_value(value)?;
            if metadata.get(name).is_some() {
                return Err(MetadataError::InvalidMetadata);
            }
            bytes += name.len() + value.len();
            if bytes > METADATA_BYTES_MAX {
                return Err(MetadataError::MetadataTooLarge);
            }
            metadata.0.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
        }
        Ok(metadata)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the names the case that `spelled` (see [`SPELLED_NAMES`]) has.
    #[must_use]
    pub fn spelled(mut self, spelled: &str) -> Metadata {
        for spelling in spelled.split(',') {
            let same = self.0.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(spelling));
            if let Some((name, _)) = same {
                spelling.clone_into(name);
            }
        }
        self
    }

    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

/// Adds the metadata headers to an answer. The metadata was checked when it was set.
pub fn set(headers: &mut HeaderMap, metadata: &[(String, String)]) {
    let spelled = spelling(metadata.iter().map(|(name, _)| name.as_str()));
    if let (false, Ok(spelled)) = (spelled.is_empty(), HeaderValue::try_from(spelled)) {
        headers.insert(HeaderName::from_static(SPELLED_NAMES), spelled);
    }
    for (name, text) in metadata {
        let mut header = String::with_capacity(PREFIX.len() + name.len());
        header.push_str(PREFIX);
        header.push_str(name);
        // The HTTP library has lower-case names only.
        header.make_ascii_lowercase();
        if let (Ok(name), Ok(text)) = (HeaderName::try_from(header), HeaderValue::try_from(text.as_str())) {
            headers.insert(name, text);
        }
    }
}

/// Metadata inside a listing. Its names are identifiers, so they can be elements.
pub fn element(xml: &mut XmlWriter, metadata: &[(String, String)]) {
    if metadata.is_empty() {
        xml.empty("Metadata");
        return;
    }
    xml.open("Metadata");
    for (name, text) in metadata {
        xml.leaf(name, text);
    }
    xml.close("Metadata");
}

/// What follows the prefix, if the header has it.
fn name_in(header: &str) -> Option<&str> {
    let (prefix, name) = header.split_at_checked(PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then_some(name)
}

/// A C# identifier, as far as a header name can hold one.
fn check_name(name: &str) -> Result<(), MetadataError> {
    let mut chars = name.bytes();
    match chars.next() {
        None => Err(MetadataError::EmptyMetadataKey),
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') if chars.all(|c| c.is_ascii_alphanumeric() || c == b'_') => Ok(()),
        Some(_) => Err(MetadataError::InvalidMetadata),
    }
}

fn check_value(value: &[u8]) -> Result<(), MetadataError> {
    let printable = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    value.iter().all(printable).then_some(()).ok_or(MetadataError::InvalidMetadata)
}

/// The value of [`SPELLED_NAMES`]; empty if all names are in lower case.
pub fn spelling<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let with_capitals = names.filter(|name| name.bytes().any(|byte| byte.is_ascii_uppercase()));
    with_capitals.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_spelled_as_they_came() {
        let headers = [("x-ms-meta-two", b"2".as_slice()), ("x-ms-meta-mixed_case", b"v")];
        let metadata = super::Metadata::parse(headers).expect("metadata").spelled("Mixed_Case,Other");
        let names: Vec<String> = metadata.into_pairs().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["two", "Mixed_Case"]);
        assert_eq!(super::spelling(names.iter().map(String::as_str)), "Mixed_Case");
    }

    use super::*;

    fn parse(headers: &[(&str, &str)]) -> Result<Vec<(String, String)>, MetadataError> {
        Metadata::parse(headers.iter().copied()).map(Metadata::into_pairs)
    }

    #[test]
    fn only_headers_with_the_prefix_count() {
        let found =
            parse(&[("x-ms-date", "d"), ("x-ms-meta-Name", " v w "), ("X-MS-META-_a1", ""), ("x-ms-metab", "c")]);
        assert_eq!(found, Ok(vec![("Name".into(), "v w".into()), ("_a1".into(), "".into())]));
    }

    #[test]
    fn names_are_found_in_any_case() {
        let metadata = Metadata::parse([("x-ms-meta-Colour", "blue")]).expect("valid");
        assert_eq!(metadata.get("cOLOUR"), Some("blue"));
        assert_eq!(metadata.get("shade"), None);
        assert!(!metadata.is_empty() && metadata.iter().len() == 1);
    }

    #[test]
    fn refusals() {
        assert_eq!(parse(&[("x-ms-meta-", "v")]), Err(MetadataError::EmptyMetadataKey));
        for name in ["x-ms-meta-1a", "x-ms-meta-a-b", "x-ms-meta-a.b", "x-ms-meta-a b", "x-ms-meta-ä"] {
            assert_eq!(parse(&[(name, "v")]), Err(MetadataError::InvalidMetadata), "{name}");
        }
        assert_eq!(parse(&[("x-ms-meta-a", "v"), ("x-ms-meta-A", "w")]), Err(MetadataError::InvalidMetadata));
        for value in ["ä", "\u{7f}", "\u{1}"] {
            assert_eq!(parse(&[("x-ms-meta-a", value)]), Err(MetadataError::InvalidMetadata), "{value:?}");
        }
    }

    #[test]
    fn names_and_values_share_one_limit() {
        let fits = "v".repeat(METADATA_BYTES_MAX - 2);
        assert!(parse(&[("x-ms-meta-a", &fits), ("x-ms-meta-b", "")]).is_ok());
        assert_eq!(parse(&[("x-ms-meta-a", &fits), ("x-ms-meta-b", "1")]), Err(MetadataError::MetadataTooLarge));
    }
}
