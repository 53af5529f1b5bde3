//! What operations have in common in what they answer: headers of containers and blobs.

use concurrency::{Lease, Timestamp};
use content::copy_state::CopyState;
pub use service::reply::{
    CONTENT_MD5, CONTENT_TYPE_DEFAULT, FALSE, REQUEST_SERVER_ENCRYPTED, SERVER_ENCRYPTED, SNAPSHOT, TRUE, date, flag,
    lease_duration, lease_state, lease_status, metadata_element, reply, set_crc64, set_lease, set_md5, set_metadata,
    set_version, value, xml,
};
use wire::http::{HeaderMap, HeaderName, HeaderValue, header};
use wire::xml::XmlWriter;
use wire::{base64, dates};

use crate::model::encryption::Encryption;
use crate::model::tier::Tier;
use crate::model::{BlobType, Committed, PublicAccess, VersionId};
use crate::rules::soft_delete::Written;

macro_rules! names {
    ($($constant:ident = $name:literal;)*) => {
        $(pub static $constant: HeaderName = HeaderName::from_static($name);)*
    };
}

names! {
    ACCESS_TIER = "x-ms-access-tier";
    ACCESS_TIER_CHANGE_TIME = "x-ms-access-tier-change-time";
    ACCESS_TIER_INFERRED = "x-ms-access-tier-inferred";
    ARCHIVE_STATUS = "x-ms-archive-status";
    BLOB_APPEND_OFFSET = "x-ms-blob-append-offset";
    BLOB_COMMITTED_BLOCK_COUNT = "x-ms-blob-committed-block-count";
    BLOB_CONTENT_LENGTH = "x-ms-blob-content-length";
    BLOB_CONTENT_MD5 = "x-ms-blob-content-md5";
    BLOB_PUBLIC_ACCESS = "x-ms-blob-public-access";
    BLOB_SEQUENCE_NUMBER = "x-ms-blob-sequence-number";
    BLOB_SEALED = "x-ms-blob-sealed";
    BLOB_TYPE = "x-ms-blob-type";
    CREATION_TIME = "x-ms-creation-time";
    DEFAULT_ENCRYPTION_SCOPE = "x-ms-default-encryption-scope";
    DELETE_TYPE_PERMANENT = "x-ms-delete-type-permanent";
    DENY_ENCRYPTION_SCOPE_OVERRIDE = "x-ms-deny-encryption-scope-override";
    ENCRYPTION_KEY_SHA256 = "x-ms-encryption-key-sha256";
    ENCRYPTION_SCOPE = "x-ms-encryption-scope";
    HAS_IMMUTABILITY_POLICY = "x-ms-has-immutability-policy";
    HAS_LEGAL_HOLD = "x-ms-has-legal-hold";
    IMMUTABLE_STORAGE = "x-ms-immutable-storage-with-versioning-enabled";
    IS_CURRENT_VERSION = "x-ms-is-current-version";
    LEGAL_HOLD = "x-ms-legal-hold";
    POLICY_MODE = "x-ms-immutability-policy-mode";
    POLICY_UNTIL = "x-ms-immutability-policy-until-date";
    REHYDRATE_PRIORITY = "x-ms-rehydrate-priority";
    SMART_ACCESS_TIER = "x-ms-smart-access-tier";
    TAG_COUNT = "x-ms-tag-count";
    VERSION_ID = "x-ms-version-id";
}

/// The same of what was just written, with the version id that it got.
pub fn set_written(headers: &mut HeaderMap, written: Written) {
    set_version(headers, written.stamp);
    set_version_id(headers, written.version_id);
}

pub fn set_version_id(headers: &mut HeaderMap, id: Option<VersionId>) {
    if let Some(VersionId(at)) = id {
        headers.insert(&VERSION_ID, value(dates::iso_ticks(at).as_str().to_owned()));
    }
}

pub fn public_access(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::None => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

/// What Get Blob and Get Blob Properties tell of a blob, but for its length and the checksum of what is sent.
pub fn set_blob(headers: &mut HeaderMap, blob: &Committed, lease: Option<&Lease>, now: Timestamp) {
    set_version(headers, blob.stamp);
    headers.insert(&CREATION_TIME, date(blob.created));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(&BLOB_TYPE, HeaderValue::from_static(blob.kind.name()));
    headers.insert(&SERVER_ENCRYPTED, TRUE);
    set_encryption(headers, blob.encryption.as_ref());
    set_metadata(headers, &blob.metadata);
    if !blob.tags().is_empty() {
        headers.insert(&TAG_COUNT, HeaderValue::from(blob.tags().len()));
    }
    set_version_id(headers, blob.version_id);
    if let Some(lease) = lease {
        set_lease(headers, lease, now);
        if blob.version_id.is_some() {
            headers.insert(&IS_CURRENT_VERSION, TRUE);
        }
    }
    set_tier(headers, blob, now);
    set_protection(headers, blob);
    match blob.kind {
        BlobType::Block => {}
        BlobType::Append { blocks, sealed } => {
            headers.insert(&BLOB_COMMITTED_BLOCK_COUNT, HeaderValue::from(blocks));
            if sealed {
                headers.insert(&BLOB_SEALED, TRUE);
            }
        }
        BlobType::Page { sequence } => _ = headers.insert(&BLOB_SEQUENCE_NUMBER, HeaderValue::from(sequence)),
    }
    if let Some(copy) = &blob.copy {
        copy.tell(headers, now);
    }
    blob.headers.set_on(headers);
}

fn set_tier(headers: &mut HeaderMap, blob: &Committed, now: Timestamp) {
    let Some(shown) = blob.tier_at(now) else { return };
    headers.insert(&ACCESS_TIER, HeaderValue::from_static(shown.tier.name()));
    match shown.since {
        Some(since) => _ = headers.insert(&ACCESS_TIER_CHANGE_TIME, date(since)),
        None => _ = headers.insert(&ACCESS_TIER_INFERRED, TRUE),
    }
    if shown.tier == Tier::Smart {
        headers.insert(&SMART_ACCESS_TIER, HeaderValue::from_static(Tier::SMART_DEFAULT.name()));
    }
    if let (Some(status), Some(back)) = (shown.archive_status(), shown.rehydration) {
        headers.insert(&ARCHIVE_STATUS, HeaderValue::from_static(status));
        headers.insert(&REHYDRATE_PRIORITY, HeaderValue::from_static(back.priority.name()));
    }
}

fn set_protection(headers: &mut HeaderMap, blob: &Committed) {
    if let Some(policy) = blob.policy() {
        headers.insert(&POLICY_UNTIL, date(policy.until));
        headers.insert(&POLICY_MODE, HeaderValue::from_static(policy.mode.name()));
    }
    if let Some(hold) = blob.legal_hold() {
        headers.insert(&LEGAL_HOLD, flag(hold));
    }
}

/// What a listing tells of the copy that a blob came from.
pub fn copy_elements(xml: &mut XmlWriter, copy: &CopyState, now: Timestamp) {
    let (status, progress, completed) = copy.shown(now);
    xml.leaf("CopyId", &copy.id).leaf("CopyStatus", status.name()).leaf("CopySource", &copy.source);
    xml.leaf("CopyProgress", progress);
    if let Some(at) = completed {
        xml.leaf("CopyCompletionTime", dates::http_date(at).as_str());
    }
    xml.leaf_if("CopyStatusDescription", copy.description.as_deref());
    if let Some(incremental) = &copy.incremental {
        xml.leaf("IncrementalCopy", "true");
        xml.leaf("CopyDestinationSnapshot", dates::iso_ticks(incremental.snapshot).as_str());
    }
}

/// Names the customer-provided key or the encryption scope of a blob.
pub fn set_encryption(headers: &mut HeaderMap, encryption: Option<&Encryption>) {
    match encryption {
        None => {}
        Some(Encryption::Key(sealed)) => {
            headers.insert(&ENCRYPTION_KEY_SHA256, value(base64::encode(&sealed.sha256)));
        }
        Some(Encryption::Scope(scope)) => _ = headers.insert(&ENCRYPTION_SCOPE, value(scope.clone())),
    }
}

/// What the answer to a write says of the encryption of what was written.
pub fn set_encrypted(headers: &mut HeaderMap, encryption: Option<&Encryption>) {
    headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
    set_encryption(headers, encryption);
}

/// Tags inside a listing, or as an answer of their own.
pub fn tags_element(xml: &mut XmlWriter, tags: &[(String, String)]) {
    wire::tags::write(xml, tags.iter().map(|(key, value)| (key.as_str(), value.as_str())));
}
