//! What operations have in common in what they take: names, conditions, leases, metadata, checksums.
//!
//! Everything here turns text into values that cannot be wrong; a refusal names the header or parameter.

use concurrency::{Conditions, ETagMatch, TagExpression};
use content::map::PAGE_BYTES;
pub use service::request::{
    BodySums, RangeSum, SUMMED_RANGE_BYTES_MAX, body_sums, date, flag, lease_id, md5, metadata, no_body, number, range,
    range_sum, required, source_sums, stored, structured_body, text,
};
use service::{HttpHeaderNames, RequestError};
use wire::dates;
use wire::http::Head;
use wire::names::{BlobName, ContainerName};
use wire::tags::Tags;

use crate::error::BlobError;
use crate::model::protection::{Mode, Policy};
use crate::model::tier::{Priority, Tier};
use crate::model::{BlobType, HttpHeaders, PAGE_BLOB_BYTES_MAX, PublicAccess, VersionId, Which};
use crate::rules::creation_options::CreationOptions;
pub use crate::rules::immutability::POLICY_UNTIL;

/// The container that a container operation names.
pub fn container(head: &Head) -> Result<ContainerName, BlobError> {
    let name = head.first_segment().ok_or(BlobError::Request(RequestError::InvalidResourceName))?;
    if head.rest().is_some() {
        return Err(BlobError::Request(RequestError::InvalidResourceName));
    }
    Ok(ContainerName::parse(name)?)
}

/// The container and the blob that a blob operation names. A path of one segment is a blob of `$root`.
pub fn blob(head: &Head) -> Result<(ContainerName, BlobName), BlobError> {
    match (head.first_segment(), head.rest()) {
        (Some(container), Some(blob)) => {
            let container = ContainerName::parse(container)?;
            // A slash would make the first segment a container, so no blob of the root has one.
            if container.is_root() && blob.contains('/') {
                return Err(BlobError::Request(RequestError::InvalidResourceName));
            }
            Ok((container, BlobName::parse(blob)?))
        }
        // A slash at the end says that there is a container, and no blob.
        (Some(_), None) if head.resource.ends_with('/') => Err(BlobError::Request(RequestError::OutOfRangeInput)),
        (Some(blob), None) => Ok((ContainerName::root(), BlobName::parse(blob)?)),
        (None, _) => Err(BlobError::Request(RequestError::InvalidResourceName)),
    }
}

pub fn which(head: &Head) -> Result<Which, BlobError> {
    let time = |name| match head.query.get(name) {
        None => Ok(None),
        Some(text) => dates::parse_iso_ticks(text).map(Some).ok_or_else(|| BlobError::query(name, text)),
    };
    match (time("snapshot")?, time("versionid")?) {
        (Some(_), Some(_)) => Err(BlobError::query("versionid", head.query.get("versionid").unwrap_or_default())),
        (Some(snapshot), None) => Ok(Which::Snapshot(snapshot)),
        (None, Some(version)) => Ok(Which::Version(VersionId(version))),
        (None, None) => Ok(Which::Base),
    }
}

/// Snapshots and versions never change: an operation that writes does not take them.
pub fn only_base(head: &Head) -> Result<(), BlobError> {
    match which(head)? {
        Which::Base => Ok(()),
        Which::Snapshot(_) | Which::Version(_) => Err(BlobError::InvalidOperation),
    }
}

pub const BLOB_CONTENT_LENGTH: &str = "x-ms-blob-content-length";

/// The length that a page blob is to have: whole pages.
pub fn page_blob_length(head: &Head) -> Result<Option<u64>, BlobError> {
    let is_right = |length: &u64| length.is_multiple_of(PAGE_BYTES) && *length <= PAGE_BLOB_BYTES_MAX;
    match number(head, BLOB_CONTENT_LENGTH)? {
        Some(length) if !is_right(&length) => Err(BlobError::header(BLOB_CONTENT_LENGTH, length.to_string())),
        length => Ok(length),
    }
}

/// The sequence number that a page blob is to have.
pub fn sequence_number(head: &Head) -> Result<Option<u64>, BlobError> {
    const NAME: &str = "x-ms-blob-sequence-number";
    match number(head, NAME)? {
        Some(number) if number > SEQUENCE_NUMBER_MAX => Err(BlobError::header(NAME, number.to_string())),
        number => Ok(number),
    }
}

pub const SEQUENCE_NUMBER_MAX: u64 = i64::MAX as u64;

/// Where the client believes an append blob to end.
pub fn append_position(head: &Head) -> Result<Option<u64>, BlobError> {
    Ok(number(head, "x-ms-blob-condition-appendpos")?)
}

/// The four conditional headers.
pub fn conditions(head: &Head) -> Result<Conditions, BlobError> {
    Ok(Conditions {
        if_match: if_match(head, "if-match")?,
        if_none_match: etags(head, "if-none-match")?,
        if_modified_since: date(head, "if-modified-since")?,
        if_unmodified_since: date(head, "if-unmodified-since")?,
        if_tags: if_tags(head)?,
    })
}

/// The conditions of Get and Set Blob Tags, which have names of their own for the four headers.
pub fn tag_conditions(head: &Head) -> Result<Conditions, BlobError> {
    let plain = conditions(head)?;
    let conditions = Conditions {
        if_match: if_match(head, "x-ms-blob-if-match")?.or(plain.if_match),
        if_none_match: etags(head, "x-ms-blob-if-none-match")?.or(plain.if_none_match),
        if_modified_since: date(head, "x-ms-blob-if-modified-since")?.or(plain.if_modified_since),
        if_unmodified_since: date(head, "x-ms-blob-if-unmodified-since")?.or(plain.if_unmodified_since),
        if_tags: plain.if_tags,
    };
    conditions.check_write_combination()?;
    Ok(conditions)
}

/// What is asked of the tags of a blob.
pub fn if_tags(head: &Head) -> Result<Option<TagExpression>, BlobError> {
    tag_condition(head, "x-ms-if-tags")
}

pub const SOURCE_IF_TAGS: &str = "x-ms-source-if-tags";

fn tag_condition(head: &Head, name: &'static str) -> Result<Option<TagExpression>, BlobError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    TagExpression::parse(value).map(Some).ok_or_else(|| BlobError::header(name, value))
}

/// The tags that a new blob is to have.
pub fn tags(head: &Head) -> Result<Tags, BlobError> {
    Ok(text(head, "x-ms-tags")?.map(Tags::parse_header).transpose()?.unwrap_or_default())
}

/// The conditions of a write to a container, which takes dates only. To pass over an ETag could destroy what the client
/// meant to protect.
pub fn container_conditions(head: &Head) -> Result<Conditions, BlobError> {
    let conditions = conditions(head)?;
    if conditions != conditions.dates_only() {
        return Err(BlobError::ConditionHeadersNotSupported);
    }
    conditions.check_write_combination()?;
    Ok(conditions)
}

/// The conditions on the source of a copy.
pub fn source_conditions(head: &Head) -> Result<Conditions, BlobError> {
    Ok(Conditions {
        if_match: if_match(head, "x-ms-source-if-match")?,
        if_none_match: etags(head, "x-ms-source-if-none-match")?,
        if_modified_since: date(head, "x-ms-source-if-modified-since")?,
        if_unmodified_since: date(head, "x-ms-source-if-unmodified-since")?,
        if_tags: tag_condition(head, SOURCE_IF_TAGS)?,
    })
}

/// What is no ETag is the ETag of nothing: the service answers that the condition is not met.
fn if_match(head: &Head, name: &'static str) -> Result<Option<ETagMatch>, BlobError> {
    let value = text(head, name)?;
    Ok(value.map(|value| ETagMatch::parse(value).unwrap_or_else(|| ETagMatch::OneOf(vec![value.to_owned()]))))
}

/// To take what is no ETag for one that differs would let every write through, so it is refused.
fn etags(head: &Head, name: &'static str) -> Result<Option<ETagMatch>, BlobError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    ETagMatch::parse(value).map(Some).ok_or_else(|| BlobError::header(name, value))
}

pub fn public_access(head: &Head) -> Result<PublicAccess, BlobError> {
    const NAME: &str = "x-ms-blob-public-access";
    match text(head, NAME)? {
        None => Ok(PublicAccess::None),
        Some("blob") => Ok(PublicAccess::Blob),
        Some("container") => Ok(PublicAccess::Container),
        Some(other) => Err(BlobError::header(NAME, other)),
    }
}

pub const BLOB_CONTENT_MD5: &str = "x-ms-blob-content-md5";

/// The headers that set the blob's own.
pub const BLOB_HEADERS: HttpHeaderNames = HttpHeaderNames {
    content_type: "x-ms-blob-content-type",
    content_encoding: "x-ms-blob-content-encoding",
    content_language: "x-ms-blob-content-language",
    content_disposition: "x-ms-blob-content-disposition",
    cache_control: "x-ms-blob-cache-control",
    content_md5: BLOB_CONTENT_MD5,
};

/// The `x-ms-blob-*` headers that become the blob's own.
pub fn blob_headers(head: &Head) -> Result<HttpHeaders, BlobError> {
    Ok(HttpHeaders::parse(head, &BLOB_HEADERS)?)
}

pub const ACCESS_TIER: &str = "x-ms-access-tier";

/// The tier that a blob is to have.
pub fn tier(head: &Head) -> Result<Option<Tier>, BlobError> {
    let Some(value) = text(head, ACCESS_TIER)? else { return Ok(None) };
    Tier::parse(value).map(Some).ok_or_else(|| BlobError::header(ACCESS_TIER, value))
}

/// How fast an archived blob is to be back.
pub fn rehydrate_priority(head: &Head) -> Result<Option<Priority>, BlobError> {
    const NAME: &str = "x-ms-rehydrate-priority";
    match text(head, NAME)? {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case("Standard") => Ok(Some(Priority::Standard)),
        Some(value) if value.eq_ignore_ascii_case("High") => Ok(Some(Priority::High)),
        Some(other) => Err(BlobError::header(NAME, other)),
    }
}

pub const LEGAL_HOLD: &str = "x-ms-legal-hold";

/// Until when a blob is to be protected. A mode alone says nothing.
pub fn policy(head: &Head) -> Result<Option<Policy>, BlobError> {
    const MODE: &str = "x-ms-immutability-policy-mode";
    let mode = match text(head, MODE)? {
        None => None,
        Some(value) if value.eq_ignore_ascii_case("Unlocked") => Some(Mode::Unlocked),
        Some(value) if value.eq_ignore_ascii_case("Locked") => Some(Mode::Locked),
        Some(other) => return Err(BlobError::header(MODE, other)),
    };
    match (date(head, POLICY_UNTIL)?, mode) {
        (Some(until), mode) => Ok(Some(Policy { until, mode: mode.unwrap_or_default() })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(RequestError::MissingRequiredHeader { name: POLICY_UNTIL }.into()),
    }
}

/// Whether a blob is to be held.
pub fn legal_hold(head: &Head) -> Result<Option<bool>, BlobError> {
    Ok(flag(head, LEGAL_HOLD)?)
}

/// What a request says of the new blob, of this kind and, if it is known beforehand, length.
pub fn creation_options(
    head: &Head,
    kind: BlobType,
    length: u64,
    is_premium: bool,
) -> Result<CreationOptions, BlobError> {
    let options = creation_options_unchecked(head, is_premium)?;
    if let Some(tier) = options.tier {
        tier.check(kind, length, is_premium)?;
    }
    Ok(options)
}

/// The same for a blob of which nothing is known yet: whether it can have the tier is still to be seen.
pub fn creation_options_unchecked(head: &Head, is_premium: bool) -> Result<CreationOptions, BlobError> {
    let (policy, legal_hold) = (policy(head)?, legal_hold(head)?);
    Ok(CreationOptions { tier: tier(head)?, tags: tags(head)?, policy, legal_hold, is_premium })
}

/// Which tags a copy gets: those of the request, or those of its source.
pub fn takes_tags(head: &Head) -> Result<bool, BlobError> {
    const NAME: &str = "x-ms-copy-source-tag-option";
    match text(head, NAME)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("replace") => Ok(false),
        Some(value) if !value.eq_ignore_ascii_case("copy") => Err(BlobError::header(NAME, value)),
        Some(_) if head.has_header("x-ms-tags") => Err(BlobError::BothUserTagsAndSourceTagsCopyPresentException),
        Some(_) => Ok(true),
    }
}

/// Refuses headers that mean something, but nothing that the operation could do. To ignore them would store or show something
/// else than was asked for.
pub fn not_supported(head: &Head, names: &[&'static str]) -> Result<(), BlobError> {
    let name = names.iter().find(|name| head.has_header(name));
    name.map_or(Ok(()), |name| Err(BlobError::UnsupportedHeader { name }))
}

/// Whether a token for a source may be used on files, whatever their permissions say.
pub fn file_intent(head: &Head) -> Result<bool, BlobError> {
    match text(head, FILE_INTENT)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("backup") => Ok(true),
        Some(value) => Err(BlobError::header(FILE_INTENT, value)),
    }
}

pub const FILE_INTENT: &str = "x-ms-file-request-intent";

/// Refuses what means something elsewhere, for operations that know nothing of encryption.
pub fn no_foreign_headers(head: &Head) -> Result<(), BlobError> {
    not_supported(head, &ENCRYPTION)?;
    no_expiry(head)
}

/// Refuses an expiry, which only accounts with a hierarchical namespace have: to ignore it would keep what was to go.
pub fn no_expiry(head: &Head) -> Result<(), BlobError> {
    let is_asked = head.has_header("x-ms-expiry-option") || head.has_header("x-ms-expiry-time");
    if is_asked { Err(BlobError::BlobOperationNotSupported) } else { Ok(()) }
}

const ENCRYPTION: [&str; 6] = [
    "x-ms-encryption-key",
    "x-ms-encryption-key-sha256",
    "x-ms-encryption-algorithm",
    "x-ms-encryption-scope",
    "x-ms-default-encryption-scope",
    "x-ms-deny-encryption-scope-override",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use concurrency::Timestamp;

    fn with(headers: &[(&str, &str)]) -> Head {
        request("PUT", "cont/blob", headers)
    }

    #[test]
    fn a_path_of_one_segment_is_a_blob_of_the_root() {
        let names = |url: &str| blob(&request("GET", url, &[])).map(|(c, b)| (c.to_string(), b.to_string()));
        assert_eq!(names("cont/a/b"), Ok(("cont".into(), "a/b".into())));
        assert_eq!(names("file.txt"), Ok(("$root".into(), "file.txt".into())));
        assert_eq!(names("$root/file.txt"), Ok(("$root".into(), "file.txt".into())));
        assert_eq!(names("$root/a/b"), Err(BlobError::Request(RequestError::InvalidResourceName)));
        assert_eq!(names("CONT/a"), Err(BlobError::Request(RequestError::InvalidResourceName)));
        assert_eq!(names("c/a"), Err(BlobError::Request(RequestError::NameLength)));
        assert_eq!(names(""), Err(BlobError::Request(RequestError::InvalidResourceName)));
        assert_eq!(names("cont/"), Err(BlobError::Request(RequestError::OutOfRangeInput)));
        assert_eq!(
            container(&request("PUT", "cont/a?restype=container", &[])),
            Err(BlobError::Request(RequestError::InvalidResourceName))
        );
    }

    #[test]
    fn snapshots_and_versions_are_exact_times() {
        let which_of = |query: &str| which(&request("GET", &format!("cont/blob?{query}"), &[]));
        assert_eq!(which_of(""), Ok(Which::Base));
        assert_eq!(which_of("snapshot=0001-01-01T00:00:01.0000000Z"), Ok(Which::Snapshot(Timestamp(10_000_000))));
        assert_eq!(
            which_of("versionid=0001-01-01T00:00:01.0000000Z"),
            Ok(Which::Version(VersionId(Timestamp(10_000_000))))
        );
        assert_eq!(which_of("snapshot=today"), Err(BlobError::query("snapshot", "today")));
        let both = which_of("snapshot=0001-01-01T00:00:01.0000000Z&versionid=0001-01-01T00:00:01.0000000Z");
        assert!(matches!(
            both,
            Err(BlobError::Request(RequestError::InvalidQueryParameterValue { name: "versionid", .. }))
        ));
    }

    #[test]
    fn malformed_headers_are_named() {
        for (name, value) in [("if-modified-since", "soon"), ("if-none-match", "\"a")] {
            assert_eq!(conditions(&with(&[(name, value)])), Err(BlobError::header(name, value)));
        }
        let twice = with(&[
            ("if-modified-since", "Sun, 15 Nov 2026 18:00:00 GMT"),
            ("if-modified-since", "Sun, 15 Nov 2026 18:00:01 GMT"),
        ]);
        assert!(conditions(&twice).is_err());
    }

    #[test]
    fn what_has_no_meaning_here_is_refused() {
        for name in ["x-ms-expiry-option", "x-ms-expiry-time"] {
            assert_eq!(no_foreign_headers(&with(&[(name, "a")])), Err(BlobError::BlobOperationNotSupported));
        }
        let refused = no_foreign_headers(&with(&[("x-ms-encryption-key", "c2VjcmV0")]));
        assert_eq!(refused, Err(BlobError::UnsupportedHeader { name: "x-ms-encryption-key" }));
        assert_eq!(no_foreign_headers(&with(&[("x-ms-meta-a", "b")])), Ok(()));
        assert!(matches!(
            tier(&with(&[("x-ms-access-tier", "hot")])),
            Err(BlobError::Request(RequestError::InvalidHeaderValue { .. }))
        ));
    }
}
