//! What operations of all services take from a request: headers as values that cannot be wrong. A refusal names the header.

use concurrency::{LeaseId, Timestamp};
use wire::http::{Body, Head, find, header};
use wire::metadata::Metadata;
use wire::ranges::RangeHeader;
use wire::{base64, dates};

use crate::{Pairs, RequestError};

/// A header as text, if it says anything. One that is not visible ASCII, or that is there twice, is refused and not passed
/// over.
pub fn text<'a>(head: &'a Head, name: &'static str) -> Result<Option<&'a str>, RequestError> {
    let Some(value) = find(&head.headers, name) else { return Ok(None) };
    match (value.to_str(), head.headers.get_all(name).iter().nth(1)) {
        (Ok(text), None) => Ok(Some(text).filter(|text| !text.is_empty())),
        _ => Err(RequestError::header(name, String::from_utf8_lossy(value.as_bytes()))),
    }
}

/// A header that must be there.
pub fn required<'a>(head: &'a Head, name: &'static str) -> Result<&'a str, RequestError> {
    text(head, name)?.ok_or(RequestError::MissingRequiredHeader { name })
}

/// A number that is not negative.
pub fn number(head: &Head, name: &'static str) -> Result<Option<u64>, RequestError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    // Also refuses a sign, which `parse` would take.
    let digits = Some(value).filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).map(Some).ok_or_else(|| RequestError::header(name, value))
}

/// `x-ms-lease-id`.
pub fn lease_id(head: &Head) -> Result<Option<LeaseId>, RequestError> {
    guid(head, "x-ms-lease-id")
}

/// A GUID. Lease ids are the only ones that requests name.
pub fn guid(head: &Head, name: &'static str) -> Result<Option<LeaseId>, RequestError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    LeaseId::parse(value).map(Some).ok_or_else(|| RequestError::header(name, value))
}

/// An HTTP date.
pub fn date(head: &Head, name: &'static str) -> Result<Option<Timestamp>, RequestError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    dates::parse_http_date(value).map(Some).ok_or_else(|| RequestError::header(name, value))
}

/// The metadata in the `x-ms-meta-*` headers.
pub fn metadata(head: &Head) -> Result<Pairs, RequestError> {
    Ok(Metadata::of(head)?.into_pairs())
}

/// A header to store as it is.
pub fn stored(head: &Head, name: &'static str) -> Result<Option<String>, RequestError> {
    Ok(text(head, name)?.map(str::to_owned))
}

/// An MD5 that the bytes are compared with.
pub fn md5(head: &Head, name: &'static str) -> Result<Option<[u8; 16]>, RequestError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    base64::md5_header(value).map(Some).ok_or(RequestError::InvalidMd5)
}

/// What the client says the body's checksum is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BodySums {
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

/// `Content-MD5` and `x-ms-content-crc64`.
pub fn body_sums(head: &Head) -> Result<BodySums, RequestError> {
    sums(head, "content-md5", "x-ms-content-crc64")
}

/// What the client says the checksum of a copy's source is.
pub fn source_sums(head: &Head) -> Result<BodySums, RequestError> {
    sums(head, "x-ms-source-content-md5", "x-ms-source-content-crc64")
}

fn sums(head: &Head, md5_name: &'static str, crc64_name: &'static str) -> Result<BodySums, RequestError> {
    let md5 = md5(head, md5_name)?;
    let crc64 = match text(head, crc64_name)? {
        None => None,
        Some(value) => Some(base64::crc64_header(value).ok_or_else(|| RequestError::header(crc64_name, value))?),
    };
    if md5.is_some() && crc64.is_some() {
        return Err(RequestError::BothCrc64AndMd5HeaderPresent);
    }
    Ok(BodySums { md5, crc64 })
}

pub const STRUCTURED_BODY: &str = "x-ms-structured-body";

/// Whether the body comes, or is to go, as a structured one. There is only one kind of it.
pub fn structured_body(head: &Head) -> Result<bool, RequestError> {
    match text(head, STRUCTURED_BODY)? {
        None => Ok(false),
        Some(value) if wire::structured::is_known(value) => Ok(true),
        Some(other) => Err(RequestError::header(STRUCTURED_BODY, other)),
    }
}

/// How many bytes of content a structured body has.
pub fn structured_content_length(head: &Head) -> Result<u64, RequestError> {
    const NAME: &str = "x-ms-structured-content-length";
    number(head, NAME)?.ok_or(RequestError::MissingRequiredHeader { name: NAME })
}

/// A header that says yes or no.
pub fn flag(head: &Head, name: &'static str) -> Result<Option<bool>, RequestError> {
    match text(head, name)? {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(value) => Err(RequestError::header(name, value)),
    }
}

/// A request that takes its bytes from elsewhere has none of its own.
pub fn no_body(body: &dyn Body) -> Result<(), RequestError> {
    match body.length() {
        None | Some(0) => Ok(()),
        Some(length) => Err(RequestError::header("content-length", length.to_string())),
    }
}

/// `x-ms-range` counts before `Range`. A `Range` that means nothing is ignored, as HTTP has it; ours is refused.
pub fn range(head: &Head) -> Result<RangeHeader, RequestError> {
    const NAME: &str = "x-ms-range";
    match text(head, NAME)? {
        Some(text) => match RangeHeader::parse(Some(text)) {
            RangeHeader::Ignored => Err(RequestError::header(NAME, text)),
            range => Ok(range),
        },
        None => Ok(RangeHeader::parse(head.header(header::RANGE.as_str()))),
    }
}

/// A sum of the range itself is computed for ranges up to this size.
pub const SUMMED_RANGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Which sum of the range itself a read wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeSum {
    Md5,
    Crc64,
}

/// The sum of the range that a read asks for. Only a read of a range can.
pub fn range_sum(head: &Head, range: RangeHeader) -> Result<Option<RangeSum>, RequestError> {
    const MD5: &str = "x-ms-range-get-content-md5";
    const CRC64: &str = "x-ms-range-get-content-crc64";
    let asked = |name| flag(head, name).map(|flag| flag == Some(true));
    let (sum, name) = match (asked(MD5)?, asked(CRC64)?) {
        (false, false) => return Ok(None),
        (true, true) => return Err(RequestError::BothCrc64AndMd5HeaderPresent),
        (true, false) => (RangeSum::Md5, MD5),
        (false, true) => (RangeSum::Crc64, CRC64),
    };
    match range {
        RangeHeader::Span { .. } => Ok(Some(sum)),
        RangeHeader::None | RangeHeader::Ignored => Err(RequestError::header(name, "true")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    fn with(headers: &[(&str, &str)]) -> Head {
        request("PUT", "cont/blob", headers)
    }

    #[test]
    fn malformed_headers_are_named() {
        for (name, value) in [("x-ms-lease-id", "me"), ("x-ms-content-crc64", "A")] {
            let head = with(&[(name, value)]);
            let refused = lease_id(&head).err().or(body_sums(&head).err());
            assert_eq!(refused, Some(RequestError::header(name, value)));
        }
        assert_eq!(date(&with(&[("a", "soon")]), "a"), Err(RequestError::header("a", "soon")));
        for value in ["-1", "+1", "x", "18446744073709551616"] {
            assert_eq!(number(&with(&[("a", value)]), "a"), Err(RequestError::header("a", value)));
        }
        assert_eq!(flag(&with(&[("a", "yes")]), "a"), Err(RequestError::header("a", "yes")));
        let mine = "01010101-0101-0101-0101-010101010101";
        assert!(lease_id(&with(&[("x-ms-lease-id", mine), ("x-ms-lease-id", mine)])).is_err());
    }

    #[test]
    fn two_checksums_are_one_too_many() {
        let sums =
            body_sums(&with(&[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-ms-content-crc64", "AQAAAAAAAAA=")]));
        assert_eq!(sums, Err(RequestError::BothCrc64AndMd5HeaderPresent));
        assert_eq!(body_sums(&with(&[("content-md5", "AAAA")])), Err(RequestError::InvalidMd5));
    }

    #[test]
    fn the_own_range_header_counts_before_the_one_of_http() {
        let span = |first, last| Ok(RangeHeader::Span { first, last });
        assert_eq!(range(&with(&[("range", "bytes=0-0"), ("x-ms-range", "bytes=1-2")])), span(1, Some(2)));
        assert_eq!(range(&with(&[("range", "bytes=4-")])), span(4, None));
        assert_eq!(range(&with(&[("range", "bytes=-3")])), Ok(RangeHeader::Ignored));
        assert_eq!(range(&with(&[("x-ms-range", "bytes=-3")])), Err(RequestError::header("x-ms-range", "bytes=-3")));
        assert_eq!(range(&with(&[])), Ok(RangeHeader::None));
    }
}
