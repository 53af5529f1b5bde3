//! Faults of a request that are the same in every service.

use wire::base64;
use wire::http::ErrorReply;
use wire::metadata::MetadataError;
use wire::names::NameError;
use wire::structured::Fault;
use wire::xml::XmlError;

/// A refusal because of the request itself. Nothing was read, nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// Not built yet (501). It must not be 500, because clients retry a 500 for minutes.
    NotImplemented,
    BothCrc64AndMd5HeaderPresent,
    /// A CORS preflight without one of its required headers.
    CorsHeaderMissing {
        name: &'static str,
    },
    CorsPreflightFailure,
    Crc64Mismatch {
        given: u64,
        computed: u64,
    },
    InvalidHeaderValue {
        name: &'static str,
        value: String,
    },
    /// A structured body that is none.
    InvalidInput(Fault),
    InvalidMd5,
    InvalidQueryParameterValue {
        name: &'static str,
        value: String,
    },
    InvalidResourceName,
    InvalidXmlDocument,
    InvalidXmlNodeValue {
        node: &'static str,
        value: String,
    },
    Md5Mismatch {
        given: [u8; 16],
        computed: [u8; 16],
    },
    Metadata(MetadataError),
    MissingContentLengthHeader,
    MissingRequiredHeader {
        name: &'static str,
    },
    MissingRequiredQueryParameter {
        name: &'static str,
    },
    MissingRequiredXmlNode {
        node: &'static str,
    },
    /// A name that is too short or too long.
    NameLength,
    OutOfRangeInput,
    OutOfRangeQueryParameterValue {
        name: &'static str,
        value: String,
        least: u64,
        most: u64,
    },
    RequestBodyTooLarge {
        most: u64,
    },
    UnsupportedHttpVerb,
}

impl RequestError {
    pub fn header(name: &'static str, value: impl Into<String>) -> RequestError {
        RequestError::InvalidHeaderValue { name, value: value.into() }
    }

    pub fn query(name: &'static str, value: impl Into<String>) -> RequestError {
        RequestError::InvalidQueryParameterValue { name, value: value.into() }
    }

    /// Status, code and text.
    #[must_use]
    pub fn table(&self) -> (u16, &'static str, &'static str) {
        match self {
            RequestError::NotImplemented => (501, "APINotImplemented", "This operation is not implemented yet."),
            RequestError::BothCrc64AndMd5HeaderPresent => (
                400,
                "BothCrc64AndMd5HeaderPresent",
                "Both x-ms-content-crc64 header and content-md5 header are present.",
            ),
            RequestError::CorsHeaderMissing { .. } => {
                (400, "InvalidHeaderValue", "A required CORS header is not present.")
            }
            RequestError::CorsPreflightFailure => {
                (403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.")
            }
            RequestError::Crc64Mismatch { .. } => (
                400,
                "Crc64Mismatch",
                "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
            ),
            RequestError::InvalidHeaderValue { .. } => {
                (400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
            }
            RequestError::InvalidInput(_) => (400, "InvalidInput", "One of the request inputs is not valid."),
            RequestError::InvalidMd5 => (
                400,
                "InvalidMd5",
                "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded.",
            ),
            RequestError::InvalidQueryParameterValue { .. } => (
                400,
                "InvalidQueryParameterValue",
                "Value for one of the query parameters specified in the request URI is invalid.",
            ),
            RequestError::InvalidResourceName => {
                (400, "InvalidResourceName", "The specified resource name contains invalid characters.")
            }
            RequestError::InvalidXmlDocument => {
                (400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
            }
            RequestError::InvalidXmlNodeValue { .. } => {
                (400, "InvalidXmlNodeValue", "The value for one of the XML nodes is not in the correct format.")
            }
            RequestError::Md5Mismatch { .. } => (
                400,
                "Md5Mismatch",
                "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
            ),
            RequestError::Metadata(MetadataError::EmptyMetadataKey) => {
                (400, "EmptyMetadataKey", "The key for one of the metadata key-value pairs is empty.")
            }
            RequestError::Metadata(MetadataError::InvalidMetadata) => {
                (400, "InvalidMetadata", "The metadata specified is invalid. It has characters that are not permitted.")
            }
            RequestError::Metadata(MetadataError::MetadataTooLarge) => {
                (400, "MetadataTooLarge", "The metadata specified exceeds the maximum permissible limit.")
            }
            RequestError::MissingContentLengthHeader => {
                (411, "MissingContentLengthHeader", "The Content-Length header was not specified.")
            }
            RequestError::MissingRequiredHeader { .. } => {
                (400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
            }
            RequestError::MissingRequiredQueryParameter { .. } => (
                400,
                "MissingRequiredQueryParameter",
                "A query parameter that's mandatory for this request is not specified.",
            ),
            RequestError::MissingRequiredXmlNode { .. } => (
                400,
                "MissingRequiredXmlNode",
                "An XML node that's mandatory for this request is not specified in the request body.",
            ),
            RequestError::NameLength => {
                (400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
            }
            RequestError::OutOfRangeInput => (400, "OutOfRangeInput", "One of the request inputs is out of range."),
            RequestError::OutOfRangeQueryParameterValue { .. } => (
                400,
                "OutOfRangeQueryParameterValue",
                "One of the query parameters specified in the request URI is outside the permissible range.",
            ),
            RequestError::RequestBodyTooLarge { .. } => {
                (413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
            }
            RequestError::UnsupportedHttpVerb => {
                (405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
            }
        }
    }
}

/// The refusal as an HTTP answer.
impl From<RequestError> for ErrorReply {
    fn from(error: RequestError) -> ErrorReply {
        let (status, code, message) = error.table();
        let reply = ErrorReply::new(status, code, message);
        match error {
            RequestError::InvalidHeaderValue { name, value } => {
                reply.detail("HeaderName", name).detail("HeaderValue", value)
            }
            RequestError::InvalidInput(fault) => reply.detail("Reason", fault.to_string()),
            RequestError::Md5Mismatch { given, computed } => reply
                .detail("UserSpecifiedMd5", base64::encode(&given))
                .detail("ServerCalculatedMd5", base64::encode(&computed)),
            RequestError::Crc64Mismatch { given, computed } => reply
                .detail("UserSpecifiedCrc64", base64::encode_crc64(given))
                .detail("ServerCalculatedCrc64", base64::encode_crc64(computed)),
            RequestError::MissingRequiredHeader { name } | RequestError::CorsHeaderMissing { name } => {
                reply.detail("HeaderName", name)
            }
            RequestError::MissingRequiredQueryParameter { name } => reply.detail("QueryParameterName", name),
            RequestError::InvalidQueryParameterValue { name, value } => {
                reply.detail("QueryParameterName", name).detail("QueryParameterValue", value)
            }
            RequestError::OutOfRangeQueryParameterValue { name, value, least, most } => reply
                .detail("QueryParameterName", name)
                .detail("QueryParameterValue", value)
                .detail("MinimumAllowed", least.to_string())
                .detail("MaximumAllowed", most.to_string()),
            RequestError::InvalidXmlNodeValue { node, value } => {
                reply.detail("XmlNodeName", node).detail("XmlNodeValue", value)
            }
            RequestError::MissingRequiredXmlNode { node } => reply.detail("XmlNodeName", node),
            RequestError::RequestBodyTooLarge { most } => reply.detail("MaxLimit", most.to_string()),
            RequestError::NotImplemented
            | RequestError::BothCrc64AndMd5HeaderPresent
            | RequestError::CorsPreflightFailure
            | RequestError::InvalidMd5
            | RequestError::InvalidResourceName
            | RequestError::InvalidXmlDocument
            | RequestError::Metadata(_)
            | RequestError::MissingContentLengthHeader
            | RequestError::NameLength
            | RequestError::OutOfRangeInput
            | RequestError::UnsupportedHttpVerb => reply,
        }
    }
}

impl From<NameError> for RequestError {
    fn from(error: NameError) -> RequestError {
        match error {
            NameError::Length => RequestError::NameLength,
            NameError::Characters => RequestError::InvalidResourceName,
        }
    }
}

impl From<wire::cors::Refused> for RequestError {
    fn from(refused: wire::cors::Refused) -> RequestError {
        match refused {
            wire::cors::Refused::Missing(name) => RequestError::CorsHeaderMissing { name },
            wire::cors::Refused::NotAllowed => RequestError::CorsPreflightFailure,
        }
    }
}

impl From<Fault> for RequestError {
    fn from(fault: Fault) -> RequestError {
        match fault {
            Fault::SegmentSum { given, computed, .. } | Fault::MessageSum { given, computed } => {
                RequestError::Crc64Mismatch { given, computed }
            }
            other => RequestError::InvalidInput(other),
        }
    }
}

impl From<MetadataError> for RequestError {
    fn from(error: MetadataError) -> RequestError {
        RequestError::Metadata(error)
    }
}

impl From<XmlError> for RequestError {
    fn from(error: XmlError) -> RequestError {
        match error {
            XmlError::Malformed | XmlError::TooMany { .. } => RequestError::InvalidXmlDocument,
            XmlError::Missing(node) => RequestError::MissingRequiredXmlNode { node },
            XmlError::BadValue { node, value } => RequestError::InvalidXmlNodeValue { node, value },
        }
    }
}
