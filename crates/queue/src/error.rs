//! Why the service refuses a request: every code with its status and text, in one place.

use concurrency::ReceiptRefusal;
use service::RequestError;
use wire::http::ErrorReply;
use wire::metadata::MetadataError;
use wire::names::NameError;
use wire::xml::XmlError;

/// A refusal. Nothing was changed. The same request may succeed later, when the queue or message has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueError {
    /// The request itself is at fault.
    Request(RequestError),
    InvalidMarker,
    /// A path that names neither a queue nor its messages.
    InvalidUri,
    /// A pop receipt that this service cannot have issued.
    InvalidPopReceipt {
        value: String,
    },
    MessageNotFound,
    PopReceiptMismatch,
    QueueAlreadyExists,
    QueueNotFound,
}

impl QueueError {
    pub(crate) fn query(name: &'static str, value: impl Into<String>) -> QueueError {
        RequestError::query(name, value).into()
    }

    /// Status, code and text. Codes are what clients match on.
    fn table(&self) -> (u16, &'static str, &'static str) {
        match self {
            QueueError::Request(error) => error.table(),
            QueueError::InvalidMarker => (400, "InvalidMarker", "The specified marker is invalid."),
            QueueError::InvalidUri => {
                (400, "InvalidUri", "The requested URI does not represent any resource on the server.")
            }
            QueueError::InvalidPopReceipt { .. } => (
                400,
                "InvalidQueryParameterValue",
                "Value for one of the query parameters specified in the request URI is invalid.",
            ),
            QueueError::MessageNotFound => (404, "MessageNotFound", "The specified message does not exist."),
            QueueError::PopReceiptMismatch => (
                400,
                "PopReceiptMismatch",
                "The specified pop receipt did not match the pop receipt for a dequeued message.",
            ),
            QueueError::QueueAlreadyExists => (409, "QueueAlreadyExists", "The specified queue already exists."),
            QueueError::QueueNotFound => (404, "QueueNotFound", "The specified queue does not exist."),
        }
    }
}

/// The refusal as the wire shows it.
impl From<QueueError> for ErrorReply {
    fn from(error: QueueError) -> ErrorReply {
        let (status, code, message) = error.table();
        let reply = ErrorReply::new(status, code, message);
        match error {
            QueueError::Request(error) => error.into(),
            QueueError::InvalidPopReceipt { value } => reply
                .detail("QueryParameterName", "popreceipt")
                .detail("QueryParameterValue", value)
                .detail("Reason", "Invalid pop receipt format"),
            QueueError::InvalidMarker
            | QueueError::InvalidUri
            | QueueError::MessageNotFound
            | QueueError::PopReceiptMismatch
            | QueueError::QueueAlreadyExists
            | QueueError::QueueNotFound => reply,
        }
    }
}

impl From<RequestError> for QueueError {
    fn from(error: RequestError) -> QueueError {
        QueueError::Request(error)
    }
}

impl From<NameError> for QueueError {
    fn from(error: NameError) -> QueueError {
        QueueError::Request(error.into())
    }
}

impl From<MetadataError> for QueueError {
    fn from(error: MetadataError) -> QueueError {
        QueueError::Request(error.into())
    }
}

impl From<XmlError> for QueueError {
    fn from(error: XmlError) -> QueueError {
        QueueError::Request(error.into())
    }
}

/// A stale pop receipt is answered like a message that does not exist: the client cannot tell the two apart.
impl From<ReceiptRefusal> for QueueError {
    fn from(refusal: ReceiptRefusal) -> QueueError {
        match refusal {
            ReceiptRefusal::OtherMessage => QueueError::PopReceiptMismatch,
            ReceiptRefusal::Stale => QueueError::MessageNotFound,
        }
    }
}
