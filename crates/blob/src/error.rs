//! Why the service refuses a request: every code with its status and text, in one place.

use concurrency::{LeaseRefusal, Unmet};
use content::source::CopySourceFault;
use service::RequestError;
use wire::http::ErrorReply;
use wire::metadata::MetadataError;
use wire::names::NameError;
use wire::tags::TagsError;
use wire::xml::XmlError;

/// A refusal. Nothing was changed; the same request may succeed once what it names has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlobError {
    /// The request itself is wrong, as it would be for any service.
    Request(RequestError),
    /// No verb of any service.
    InvalidHttpVerb,
    /// The operation takes no such header. Its value, which may be a secret, is not repeated.
    UnsupportedHeader {
        name: &'static str,
    },

    // The request itself (400 and its kin).
    AccessTierNotSupportedForBlobType,
    BlobAccessTierNotSupportedForAccountType,
    BlockListTooLong,
    ConditionHeadersNotSupported,
    InvalidBlobOrBlock,
    InvalidBlockList,
    /// A query that cannot be run, and why.
    InvalidQuery(String),
    /// A search for tags that cannot be run, and why.
    InvalidTagQuery {
        message: String,
        query: String,
    },
    InvalidOperation,
    MultipleConditionHeadersNotSupported,
    PreviousSnapshotCannotBeNewer,
    Tags(TagsError),
    UnsatisfiableCondition,

    // What is, or is not, there.
    BlobAlreadyExists,
    /// By another key or scope than the request names.
    BlobCustomerSpecifiedEncryptionMismatch,
    BlobDoesNotUseCustomerSpecifiedEncryption,
    BlobArchived,
    BlobBeingRehydrated,
    BlobImmutableDueToLegalHold,
    BlobImmutableDueToPolicy,
    BlobIsSealed,
    BlobNotFound,
    BlobOperationNotSupported,
    /// It was made anew since the snapshot that it is compared with.
    BlobOverwritten,
    BlobUsesCustomerSpecifiedEncryption,
    BlobTierInadequateForContentLength,
    BlockCountExceedsLimit,
    CannotChangeToLowerTier,
    ContainerAlreadyExists,
    ContentLengthLargerThanTierLimit,
    ContainerNotFound,
    /// The operation belongs to blobs of another type.
    InvalidBlobType,
    /// Pages begin and end at multiples of 512, within the blob.
    InvalidPageRange,
    InvalidRange {
        length: u64,
    },
    /// The current version is deleted as the blob, not by its id.
    OperationNotAllowedOnRootBlob,
    /// Only what is deleted can be deleted for good, and only where the account allows it.
    PermanentDeleteNotAllowed,
    PreviousSnapshotNotFound,
    RequestForbiddenByContainerEncryptionPolicy,
    SequenceNumberIncrementTooLarge,
    SnapshotsPresent,
    /// The caller may create, and there is something already.
    UnauthorizedBlobOverwrite,

    // Copies.
    BothUserTagsAndSourceTagsCopyPresentException,
    /// The source could not be read, and why.
    CannotVerifyCopySource(Box<CopySourceFault>),
    CopyIdMismatch,
    IncrementalCopyBlobMismatch,
    IncrementalCopyOfEarlierSnapshotNotAllowed,
    IncrementalCopySourceMustBeSnapshot,
    InfiniteLeaseDurationRequired,
    InvalidSourceBlobType,
    NoPendingCopyOperation,
    OperationNotAllowedOnIncrementalCopyBlob,
    PendingCopyOperation,
    SourceConditionNotMet,

    // Conditions.
    /// A read finds nothing newer than what the client has.
    NotModified,
    ConditionNotMet,
    AppendPositionConditionNotMet,
    MaxBlobSizeConditionNotMet,
    SequenceNumberConditionNotMet,

    // Leases.
    LeaseAlreadyPresent,
    LeaseIdMismatchWithBlobOperation,
    LeaseIdMismatchWithContainerOperation,
    LeaseIdMismatchWithLeaseOperation,
    /// The same code, of a container.
    ContainerLeaseIdMismatchWithLeaseOperation,
    LeaseIdMissing,
    /// The same code, of a container.
    ContainerLeaseIdMissing,
    LeaseIsBreakingAndCannotBeAcquired,
    LeaseIsBreakingAndCannotBeChanged,
    LeaseIsBrokenAndCannotBeRenewed,
    LeaseLost,
    /// The same code, of a container.
    ContainerLeaseLost,
    LeaseNotPresentWithBlobOperation,
    LeaseNotPresentWithContainerOperation,
    LeaseNotPresentWithLeaseOperation,
    /// The same code, of a container.
    ContainerLeaseNotPresentWithLeaseOperation,
}

impl BlobError {
    pub(crate) fn header(name: &'static str, value: impl Into<String>) -> BlobError {
        BlobError::Request(RequestError::header(name, value))
    }

    pub(crate) fn query(name: &'static str, value: impl Into<String>) -> BlobError {
        BlobError::Request(RequestError::query(name, value))
    }

    pub(crate) fn lease_on_blob(refusal: LeaseRefusal) -> BlobError {
        match refusal {
            LeaseRefusal::IdMismatch => BlobError::LeaseIdMismatchWithBlobOperation,
            LeaseRefusal::NotPresent => BlobError::LeaseNotPresentWithBlobOperation,
            other => BlobError::lease(other),
        }
    }

    pub(crate) fn lease_on_container(refusal: LeaseRefusal) -> BlobError {
        match refusal {
            LeaseRefusal::IdMismatch => BlobError::LeaseIdMismatchWithContainerOperation,
            LeaseRefusal::NotPresent => BlobError::LeaseNotPresentWithContainerOperation,
            LeaseRefusal::IdMissing => BlobError::ContainerLeaseIdMissing,
            LeaseRefusal::Lost => BlobError::ContainerLeaseLost,
            LeaseRefusal::IdMismatchWithLeaseOperation => BlobError::ContainerLeaseIdMismatchWithLeaseOperation,
            LeaseRefusal::NotPresentWithLeaseOperation => BlobError::ContainerLeaseNotPresentWithLeaseOperation,
            other => BlobError::lease(other),
        }
    }

    fn lease(refusal: LeaseRefusal) -> BlobError {
        match refusal {
            LeaseRefusal::AlreadyPresent => BlobError::LeaseAlreadyPresent,
            LeaseRefusal::IdMismatchWithLeaseOperation | LeaseRefusal::IdMismatch => {
                BlobError::LeaseIdMismatchWithLeaseOperation
            }
            LeaseRefusal::IsBreakingAndCannotBeAcquired => BlobError::LeaseIsBreakingAndCannotBeAcquired,
            LeaseRefusal::IsBreakingAndCannotBeChanged => BlobError::LeaseIsBreakingAndCannotBeChanged,
            LeaseRefusal::IsBrokenAndCannotBeRenewed => BlobError::LeaseIsBrokenAndCannotBeRenewed,
            LeaseRefusal::NotPresentWithLeaseOperation | LeaseRefusal::NotPresent => {
                BlobError::LeaseNotPresentWithLeaseOperation
            }
            LeaseRefusal::IdMissing => BlobError::LeaseIdMissing,
            LeaseRefusal::Lost => BlobError::LeaseLost,
        }
    }

    /// Status, code and text. Codes are what clients match on; of the texts only a few.
    fn table(&self) -> (u16, &'static str, &'static str) {
        match self {
            BlobError::Request(error) => error.table(),
            BlobError::InvalidHttpVerb => {
                (400, "InvalidHttpVerb", "The HTTP verb specified was not recognized by the server.")
            }
            BlobError::UnsupportedHeader { .. } => {
                (400, "UnsupportedHeader", "One of the HTTP headers specified in the request is not supported.")
            }
            BlobError::AccessTierNotSupportedForBlobType => {
                (400, "AccessTierNotSupportedForBlobType", "The access tier is not supported for this blob type.")
            }
            BlobError::BlobAccessTierNotSupportedForAccountType => (
                400,
                "BlobAccessTierNotSupportedForAccountType",
                "The access tier is not supported for this account type.",
            ),
            BlobError::BlockListTooLong => {
                (400, "BlockListTooLong", "The block list may not contain more than 50,000 blocks.")
            }
            BlobError::ConditionHeadersNotSupported => {
                (400, "ConditionHeadersNotSupported", "Condition headers are not supported.")
            }
            BlobError::InvalidBlobOrBlock => {
                (400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
            }
            BlobError::InvalidBlockList => (400, "InvalidBlockList", "The specified block list is invalid."),
            BlobError::InvalidQuery(_) => (400, "InvalidInput", "The query cannot be run."),
            BlobError::InvalidTagQuery { .. } => (400, "InvalidQueryParameterValue", ""),
            BlobError::InvalidOperation => (400, "InvalidOperation", "Invalid operation against a blob snapshot."),
            BlobError::MultipleConditionHeadersNotSupported => {
                (400, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.")
            }
            BlobError::PreviousSnapshotCannotBeNewer => (
                400,
                "PreviousSnapshotCannotBeNewer",
                "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
            ),
            BlobError::Tags(error) => (400, error.code(), error.text()),
            BlobError::UnsatisfiableCondition => {
                (400, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation.")
            }

            BlobError::BlobAlreadyExists => (409, "BlobAlreadyExists", "The specified blob already exists."),
            BlobError::BlobArchived => (409, "BlobArchived", "This operation is not permitted on an archived blob."),
            BlobError::BlobBeingRehydrated => {
                (409, "BlobBeingRehydrated", "This operation is not permitted because the blob is being rehydrated.")
            }
            BlobError::BlobImmutableDueToLegalHold => (
                409,
                "BlobImmutableDueToLegalHold",
                "This operation is not permitted as the blob is immutable due to one or more legal holds.",
            ),
            BlobError::BlobImmutableDueToPolicy => (
                409,
                "BlobImmutableDueToPolicy",
                "This operation is not permitted as the blob is immutable due to a policy.",
            ),
            BlobError::BlobCustomerSpecifiedEncryptionMismatch => (
                409,
                "BlobCustomerSpecifiedEncryptionMismatch",
                "The given customer specified encryption does not match the encryption used to encrypt the blob.",
            ),
            BlobError::BlobDoesNotUseCustomerSpecifiedEncryption => (
                409,
                "BlobDoesNotUseCustomerSpecifiedEncryption",
                "The blob is not encrypted with customer specified encryption, but it was provided in the request.",
            ),
            BlobError::BlobUsesCustomerSpecifiedEncryption => (
                409,
                "BlobUsesCustomerSpecifiedEncryption",
                "The blob is encrypted with customer specified encryption, but it was not provided in the request.",
            ),
            BlobError::RequestForbiddenByContainerEncryptionPolicy => (
                403,
                "RequestForbiddenByContainerEncryptionPolicy",
                "The request is forbidden by the container encryption policy.",
            ),
            BlobError::BlobIsSealed => (
                409,
                "BlobIsSealed",
                "The specified blob is sealed, and its contents can't be modified unless the blob is re-created after a delete.",
            ),
            BlobError::BlobNotFound => (404, "BlobNotFound", "The specified blob does not exist."),
            BlobError::BlobOperationNotSupported => {
                (409, "BlobOperationNotSupported", "The operation is not supported in this kind of account.")
            }
            BlobError::BlobTierInadequateForContentLength => (
                409,
                "BlobTierInadequateForContentLength",
                "The specified blob tier size limit cannot be less than content length.",
            ),
            BlobError::ContentLengthLargerThanTierLimit => {
                (409, "ContentLengthLargerThanTierLimit", "The blob's content length cannot exceed its tier limit.")
            }
            BlobError::CannotChangeToLowerTier => {
                (409, "CannotChangeToLowerTier", "A higher blob tier has already been explicitly set.")
            }
            BlobError::BlobOverwritten => {
                (409, "BlobOverwritten", "The blob has been recreated since the previous snapshot was taken.")
            }
            BlobError::BlockCountExceedsLimit => (
                409,
                "BlockCountExceedsLimit",
                "The committed block count cannot exceed the maximum limit of 50,000 blocks.",
            ),
            BlobError::ContainerAlreadyExists => {
                (409, "ContainerAlreadyExists", "The specified container already exists.")
            }
            BlobError::ContainerNotFound => (404, "ContainerNotFound", "The specified container does not exist."),
            BlobError::InvalidBlobType => (409, "InvalidBlobType", "The blob type is invalid for this operation."),
            BlobError::InvalidPageRange => (416, "InvalidPageRange", "The page range specified is invalid."),
            BlobError::InvalidRange { .. } => {
                (416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
            }
            BlobError::PreviousSnapshotNotFound => {
                (409, "PreviousSnapshotNotFound", "The previous snapshot is not found.")
            }
            BlobError::SequenceNumberIncrementTooLarge => (
                409,
                "SequenceNumberIncrementTooLarge",
                "The sequence number increment cannot be performed because it would result in overflow of the sequence number.",
            ),
            BlobError::OperationNotAllowedOnRootBlob => {
                (403, "OperationNotAllowedOnRootBlob", "The specified operation is not allowed on root blob.")
            }
            BlobError::PermanentDeleteNotAllowed => (
                409,
                "PermanentDeleteNotAllowed",
                "Only a deleted snapshot or version can be deleted permanently, and only if the account allows it.",
            ),
            BlobError::SnapshotsPresent => {
                (409, "SnapshotsPresent", "This operation is not permitted while the blob has snapshots.")
            }
            BlobError::UnauthorizedBlobOverwrite => {
                (403, "UnauthorizedBlobOverwrite", "This request is not authorized to overwrite a blob.")
            }

            BlobError::BothUserTagsAndSourceTagsCopyPresentException => (
                400,
                "BothUserTagsAndSourceTagsCopyPresentException",
                "x-ms-tags header must not be present with x-ms-copy-source-tag-option as COPY.",
            ),
            BlobError::CannotVerifyCopySource(fault) => {
                (fault.status, "CannotVerifyCopySource", "The copy source could not be read.")
            }
            BlobError::CopyIdMismatch => (
                409,
                "CopyIdMismatch",
                "The specified copy ID did not match the copy ID for the pending copy operation.",
            ),
            BlobError::IncrementalCopyBlobMismatch => (
                409,
                "IncrementalCopyBlobMismatch",
                "The specified source blob is different than the copy source of the existing incremental copy blob.",
            ),
            BlobError::IncrementalCopyOfEarlierSnapshotNotAllowed => (
                409,
                "IncrementalCopyOfEarlierSnapshotNotAllowed",
                "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob.",
            ),
            BlobError::IncrementalCopySourceMustBeSnapshot => (
                409,
                "IncrementalCopySourceMustBeSnapshot",
                "The source for incremental copy request must be a snapshot.",
            ),
            BlobError::InfiniteLeaseDurationRequired => (
                412,
                "InfiniteLeaseDurationRequired",
                "The lease ID matched, but the specified lease must be an infinite-duration lease.",
            ),
            BlobError::InvalidSourceBlobType => {
                (409, "InvalidSourceBlobType", "The copy source blob type is invalid for this operation.")
            }
            BlobError::NoPendingCopyOperation => {
                (409, "NoPendingCopyOperation", "There is currently no pending copy operation.")
            }
            BlobError::OperationNotAllowedOnIncrementalCopyBlob => (
                409,
                "OperationNotAllowedOnIncrementalCopyBlob",
                "The specified operation is not allowed on an incremental copy blob.",
            ),
            BlobError::PendingCopyOperation => {
                (409, "PendingCopyOperation", "There is currently a pending copy operation.")
            }
            BlobError::SourceConditionNotMet => (
                412,
                "SourceConditionNotMet",
                "The source condition specified using HTTP conditional header(s) is not met.",
            ),

            BlobError::NotModified => (304, "ConditionNotMet", CONDITION_NOT_MET),
            BlobError::ConditionNotMet => (412, "ConditionNotMet", CONDITION_NOT_MET),
            BlobError::AppendPositionConditionNotMet => {
                (412, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
            }
            BlobError::MaxBlobSizeConditionNotMet => {
                (412, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
            }
            BlobError::SequenceNumberConditionNotMet => {
                (412, "SequenceNumberConditionNotMet", "The sequence number condition specified was not met.")
            }

            BlobError::LeaseAlreadyPresent => (409, "LeaseAlreadyPresent", "There is already a lease present."),
            BlobError::LeaseIdMismatchWithBlobOperation => (
                412,
                "LeaseIdMismatchWithBlobOperation",
                "The lease ID specified did not match the lease ID for the blob.",
            ),
            BlobError::LeaseIdMismatchWithContainerOperation => (
                412,
                "LeaseIdMismatchWithContainerOperation",
                "The lease ID specified did not match the lease ID for the container.",
            ),
            BlobError::LeaseIdMismatchWithLeaseOperation => (
                409,
                "LeaseIdMismatchWithLeaseOperation",
                "The lease ID specified did not match the lease ID for the blob.",
            ),
            BlobError::ContainerLeaseIdMismatchWithLeaseOperation => (
                409,
                "LeaseIdMismatchWithLeaseOperation",
                "The lease ID specified did not match the lease ID for the container.",
            ),
            BlobError::LeaseIdMissing => (
                412,
                "LeaseIdMissing",
                "There is currently a lease on the blob and no lease ID was specified in the request.",
            ),
            BlobError::ContainerLeaseIdMissing => (
                412,
                "LeaseIdMissing",
                "There is currently a lease on the container and no lease ID was specified in the request.",
            ),
            BlobError::LeaseIsBreakingAndCannotBeAcquired => (
                409,
                "LeaseIsBreakingAndCannotBeAcquired",
                "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
            ),
            BlobError::LeaseIsBreakingAndCannotBeChanged => (
                409,
                "LeaseIsBreakingAndCannotBeChanged",
                "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
            ),
            BlobError::LeaseIsBrokenAndCannotBeRenewed => (
                409,
                "LeaseIsBrokenAndCannotBeRenewed",
                "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
            ),
            BlobError::LeaseLost => {
                (412, "LeaseLost", "A lease ID was specified, but the lease for the blob has expired.")
            }
            BlobError::ContainerLeaseLost => {
                (412, "LeaseLost", "A lease ID was specified, but the lease for the container has expired.")
            }
            BlobError::LeaseNotPresentWithBlobOperation => {
                (412, "LeaseNotPresentWithBlobOperation", "There is currently no lease on the blob.")
            }
            BlobError::LeaseNotPresentWithContainerOperation => {
                (412, "LeaseNotPresentWithContainerOperation", "There is currently no lease on the container.")
            }
            BlobError::LeaseNotPresentWithLeaseOperation => {
                (409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the blob.")
            }
            BlobError::ContainerLeaseNotPresentWithLeaseOperation => {
                (409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the container.")
            }
        }
    }

    /// The refusal as the wire shows it.
    #[must_use]
    pub fn to_reply(&self) -> ErrorReply {
        let (status, code, message) = self.table();
        let reply = ErrorReply::new(status, code, message);
        match self {
            BlobError::Request(error) => error.clone().into(),
            BlobError::UnsupportedHeader { name } => reply.detail("HeaderName", *name),
            BlobError::InvalidQuery(reason) => reply.detail("Reason", reason),
            BlobError::InvalidTagQuery { message, query } => ErrorReply::new(status, code, &**message)
                .detail("QueryParameterName", "where")
                .detail("QueryParameterValue", query)
                .detail("Reason", "This query parameter value is invalid."),
            BlobError::CannotVerifyCopySource(fault) => fault.to_reply(code),
            BlobError::InvalidRange { length } => reply.header("content-range", format!("bytes */{length}")),
            _ => reply,
        }
    }
}

const CONDITION_NOT_MET: &str = "The condition specified using HTTP conditional header(s) is not met.";

impl From<CopySourceFault> for BlobError {
    fn from(fault: CopySourceFault) -> BlobError {
        BlobError::CannotVerifyCopySource(Box::new(fault))
    }
}

/// Why a request has no result.
pub type Failure = service::Failure<BlobError>;

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Failure {
        Failure::Refused(error)
    }
}

impl From<Unmet> for BlobError {
    fn from(unmet: Unmet) -> BlobError {
        match unmet {
            Unmet::NotModified => BlobError::NotModified,
            Unmet::PreconditionFailed => BlobError::ConditionNotMet,
            Unmet::MultipleConditions => BlobError::MultipleConditionHeadersNotSupported,
            Unmet::Unsatisfiable => BlobError::UnsatisfiableCondition,
            Unmet::AlreadyExists => BlobError::BlobAlreadyExists,
        }
    }
}

impl From<RequestError> for BlobError {
    fn from(error: RequestError) -> BlobError {
        BlobError::Request(error)
    }
}

impl From<NameError> for BlobError {
    fn from(error: NameError) -> BlobError {
        BlobError::Request(error.into())
    }
}

impl From<MetadataError> for BlobError {
    fn from(error: MetadataError) -> BlobError {
        BlobError::Request(error.into())
    }
}

impl From<TagsError> for BlobError {
    fn from(error: TagsError) -> BlobError {
        match error {
            TagsError::Xml(error) => error.into(),
            other => BlobError::Tags(other),
        }
    }
}

impl From<XmlError> for BlobError {
    fn from(error: XmlError) -> BlobError {
        BlobError::Request(error.into())
    }
}

impl From<BlobError> for ErrorReply {
    fn from(error: BlobError) -> ErrorReply {
        error.to_reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs look for these texts, or for parts of them.
    #[test]
    fn texts_are_those_of_the_service() {
        for (error, text) in [
            (BlobError::BlobIsSealed, "its contents can't be modified unless the blob is re-created after a delete."),
            (
                BlobError::LeaseIdMissing,
                "There is currently a lease on the blob and no lease ID was specified in the request.",
            ),
            (
                BlobError::ContainerLeaseIdMissing,
                "There is currently a lease on the container and no lease ID was specified in the request.",
            ),
            (BlobError::LeaseLost, "A lease ID was specified, but the lease for the blob has expired."),
            (BlobError::LeaseAlreadyPresent, "There is already a lease present."),
            (BlobError::SnapshotsPresent, "This operation is not permitted while the blob has snapshots."),
            (BlobError::InvalidBlobOrBlock, "The specified blob or block content is invalid."),
            (BlobError::Tags(TagsError::DuplicateTagNames), "The tags specified contain duplicate names."),
            (
                BlobError::Request(RequestError::Md5Mismatch { given: [0; 16], computed: [1; 16] }),
                "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
            ),
        ] {
            assert!(error.to_reply().message.ends_with(text), "{error:?}");
        }
    }
}
