//! The form of requests and answers: media types, levels of metadata, and `Prefer`.

use crate::entity::write::Metadata;
use crate::error::TableError;
use crate::request_parts::RequestParts;

/// Whether the answer to an insert shows what was inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefer {
    /// The request has no preference: the answer shows it.
    Unsaid,
    Content,
    NoContent,
}

impl Prefer {
    pub fn of(head: &impl RequestParts) -> Prefer {
        match head.header("prefer").map(str::trim) {
            Some("return-no-content") => Prefer::NoContent,
            Some("return-content") => Prefer::Content,
            _ => Prefer::Unsaid,
        }
    }

    /// The value of `Preference-Applied` in the answer.
    pub fn applied(self) -> Option<&'static str> {
        match self {
            Prefer::Unsaid => None,
            Prefer::Content => Some("return-content"),
            Prefer::NoContent => Some("return-no-content"),
        }
    }
}

/// How much metadata the answer has: `$format` says, or else the first supported type of `Accept`.
pub fn metadata(head: &impl RequestParts) -> Result<Metadata, TableError> {
    if let Some(format) = head.query().get("$format").filter(|format| !format.is_empty()) {
        let format = if format.eq_ignore_ascii_case("json") { "application/json" } else { format };
        return level(format).ok_or(TableError::MediaTypeNotSupported);
    }
    match head.header("accept").filter(|accept| !accept.trim().is_empty()) {
        None => Ok(Metadata::Minimal),
        Some(accept) => accept.split(',').find_map(level).ok_or_else(|| unsupported(accept)),
    }
}

/// Refuses a body whose `Content-Type` is not JSON. A request without the header is taken for JSON.
pub fn check_body(head: &impl RequestParts) -> Result<(), TableError> {
    match head.header("content-type") {
        None => Ok(()),
        Some(kind) if level(kind).is_some() => Ok(()),
        Some(kind) => Err(unsupported(kind)),
    }
}

fn unsupported(kinds: &str) -> TableError {
    match kinds.to_ascii_lowercase().contains("atom") {
        true => TableError::AtomFormatNotSupported,
        false => TableError::MediaTypeNotSupported,
    }
}

fn level(kind: &str) -> Option<Metadata> {
    // The exact text that client libraries send is found without further parsing.
    if let Some(level) = kind.strip_prefix("application/json;odata=").and_then(named) {
        return Some(level);
    }
    let mut words = kind.split(';').map(str::trim);
    let name = words.next().unwrap_or_default();
    if !["application/json", "application/*", "*/*"].iter().any(|json| json.eq_ignore_ascii_case(name)) {
        return None;
    }
    let odata = words.find_map(|word| {
        let (name, value) = word.split_once('=')?;
        name.eq_ignore_ascii_case("odata").then_some(value)
    });
    odata.map_or(Some(Metadata::Minimal), |level| named(&level.to_ascii_lowercase()))
}

fn named(level: &str) -> Option<Metadata> {
    match level {
        "minimalmetadata" => Some(Metadata::Minimal),
        "nometadata" => Some(Metadata::None),
        "fullmetadata" => Some(Metadata::Full),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn how_much_is_told() {
        let of = |url: &str, accept: &str| metadata(&request("GET", url, &[("accept", accept)]));
        for (accept, expected) in [
            ("application/json", Metadata::Minimal),
            ("application/json;odata=minimalmetadata", Metadata::Minimal),
            ("application/json; odata=fullmetadata; charset=utf-8", Metadata::Full),
            ("Application/JSON;ODATA=NoMetadata", Metadata::None),
            ("application/atom+xml,application/json;odata=nometadata", Metadata::None),
            ("*/*", Metadata::Minimal),
            ("", Metadata::Minimal),
        ] {
            assert_eq!(of("t()", accept), Ok(expected), "{accept}");
        }
        assert_eq!(metadata(&request("GET", "t()", &[])), Ok(Metadata::Minimal));
        assert_eq!(of("t()", "application/atom+xml"), Err(TableError::AtomFormatNotSupported));
        assert_eq!(of("t()", "text/html"), Err(TableError::MediaTypeNotSupported));
        assert_eq!(of("t()", "application/json;odata=some"), Err(TableError::MediaTypeNotSupported));
        let url = "t()?$format=application/json;odata%3Dfullmetadata";
        assert_eq!(of(url, "application/json;odata=nometadata"), Ok(Metadata::Full));
        assert_eq!(of("t()?$format=json", "text/html"), Ok(Metadata::Minimal));
        assert_eq!(of("t()?$format=atom", "*/*"), Err(TableError::MediaTypeNotSupported));
    }

    #[test]
    fn bodies_are_json() {
        let of = |kind: &str| check_body(&request("POST", "t", &[("content-type", kind)]));
        assert_eq!(of("application/json;odata=nometadata"), Ok(()));
        assert_eq!(of("application/atom+xml"), Err(TableError::AtomFormatNotSupported));
        assert_eq!(of("text/plain"), Err(TableError::MediaTypeNotSupported));
        assert_eq!(check_body(&request("POST", "t", &[])), Ok(()));
    }
}
