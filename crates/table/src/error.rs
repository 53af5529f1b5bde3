//! Why the service refuses a request: every code with its status and text, in one place.

use auth::Refusal;
use service::RequestError;
use wire::http::ErrorReply;
use wire::names::NameError;
use wire::xml::XmlError;

/// A refusal. Nothing was changed. The same request may succeed later, when the table or entity has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableError {
    /// A fault that every service refuses in the same way.
    Request(RequestError),
    /// The caller's credentials do not allow it. The server checks most permissions before it runs an operation; only
    /// the operation knows the keys of its entities and the requests inside a transaction.
    NotAllowed(Refusal),

    // Faults of the request itself (400 and the like).
    AtomFormatNotSupported,
    BatchTooLong,
    CommandsInBatchActOnDifferentPartitions,
    DuplicatePropertiesSpecified,
    EmptyBatch,
    EntityTooLarge,
    InvalidDuplicateRow {
        row: String,
    },
    InvalidETag {
        value: String,
    },
    /// With a text that says what is wrong.
    InvalidInput(&'static str),
    InvalidValueType {
        name: String,
    },
    KeyValueTooLarge,
    /// What follows the name of the table in the URL is not the key of an entity.
    KeysDoNotMatch,
    MediaTypeNotSupported,
    MethodNotAllowed,
    NameLength,
    /// A part of OData's query language that the Table service does not support.
    NotImplemented(&'static str),
    OutOfRangeInput {
        name: &'static str,
        value: String,
    },
    PropertiesNeedValue,
    PropertyNameInvalid {
        name: String,
    },
    PropertyNameTooLong,
    PropertyValueTooLarge {
        name: String,
    },
    RequestBodyTooLarge,
    TooManyProperties,
    XMethodIncorrectCount,
    XMethodIncorrectValue,
    XMethodNotUsingPost,

    // Faults that depend on what is stored.
    EntityAlreadyExists,
    ResourceNotFound,
    TableAlreadyExists,
    TableNotFound,
    UpdateConditionNotSatisfied,

    /// The operation of a transaction that was refused, by its index.
    InTransaction {
        index: usize,
        error: Box<TableError>,
    },
}

impl TableError {
    /// Status, code and text. A transaction has the status and code of the operation that was refused.
    fn table(&self) -> (u16, &'static str, String) {
        let (status, code, text) = match self {
            TableError::Request(error) => {
                let (status, code, text) = error.table();
                return (status, code, text.to_owned());
            }
            TableError::NotAllowed(refusal) => {
                let reply = ErrorReply::from(refusal.clone());
                return (reply.status, reply.code, reply.message);
            }
            TableError::InTransaction { index, error } => {
                let (status, code, text) = error.table();
                return (status, code, format!("{index}:{text}"));
            }
            TableError::InvalidDuplicateRow { row } => {
                let text = format!(
                    "A command with RowKey '{row}' is already present in the batch. An entity can appear only once in a batch."
                );
                return (400, "InvalidDuplicateRow", text);
            }
            TableError::InvalidETag { value } => {
                let text = format!(
                    "The etag value '{value}' specified in one of the request headers is not valid. Please make sure only \
                     one etag value is specified and is valid."
                );
                return (400, "InvalidInput", text);
            }
            TableError::OutOfRangeInput { name, value } => {
                return (400, "OutOfRangeInput", format!("The '{name}' parameter of value '{value}' is out of range."));
            }
            TableError::InvalidInput(what) => {
                return (400, "InvalidInput", format!("One of the request inputs is not valid. {what}"));
            }
            TableError::InvalidValueType { name } => {
                let text = format!("The value of the property '{name}' does not fit its type.");
                return (400, "InvalidInput", text);
            }
            TableError::NotImplemented(what) => {
                return (
                    501,
                    "NotImplemented",
                    format!("The requested operation is not implemented on the specified resource. {what}"),
                );
            }
            TableError::PropertyNameInvalid { name } => {
                return (400, "PropertyNameInvalid", format!("The property name '{name}' is invalid."));
            }
            TableError::PropertyValueTooLarge { name } => {
                let text = format!(
                    "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is \
                     UTF-16 encoded and the maximum number of characters should be 32K or less. Property: {name}."
                );
                return (400, "PropertyValueTooLarge", text);
            }
            TableError::AtomFormatNotSupported => {
                (415, "AtomFormatNotSupported", "Atom format is not supported; the service speaks JSON.")
            }
            TableError::BatchTooLong => {
                (400, "InvalidInput", "The batch request operation exceeds the maximum 100 changes per change set.")
            }
            TableError::CommandsInBatchActOnDifferentPartitions => (
                400,
                "CommandsInBatchActOnDifferentPartitions",
                "All commands in a batch must operate on same entity group.",
            ),
            TableError::DuplicatePropertiesSpecified => {
                (400, "DuplicatePropertiesSpecified", "A property is specified more than one time.")
            }
            TableError::EmptyBatch => (400, "InvalidInput", "An error occurred while processing this request."),
            TableError::EntityTooLarge => {
                (400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")
            }
            TableError::KeyValueTooLarge => {
                (400, "KeyValueTooLarge", "A PartitionKey or RowKey is larger than the maximum allowed size (1KB).")
            }
            TableError::KeysDoNotMatch => (
                400,
                "InvalidInput",
                "The number of keys specified in the URI does not match number of key properties for the resource.",
            ),
            TableError::NameLength => {
                (400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
            }
            TableError::MediaTypeNotSupported => {
                (415, "MediaTypeNotSupported", "None of the provided media types are supported.")
            }
            TableError::MethodNotAllowed => {
                (405, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
            }
            TableError::PropertiesNeedValue => {
                (400, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
            }
            TableError::PropertyNameTooLong => {
                (400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
            }
            TableError::RequestBodyTooLarge => {
                (413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
            }
            TableError::TooManyProperties => (
                400,
                "TooManyProperties",
                "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data.",
            ),
            TableError::XMethodIncorrectCount => {
                (400, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
            }
            TableError::XMethodIncorrectValue => {
                (400, "XMethodIncorrectValue", "The specified X-HTTP-Method is invalid.")
            }
            TableError::XMethodNotUsingPost => {
                (400, "XMethodNotUsingPost", "The request uses X-HTTP-Method with a verb other than POST.")
            }

            TableError::EntityAlreadyExists => (409, "EntityAlreadyExists", "The specified entity already exists."),
            TableError::ResourceNotFound => (404, "ResourceNotFound", "The specified resource does not exist."),
            TableError::TableAlreadyExists => (409, "TableAlreadyExists", "The table specified already exists."),
            TableError::TableNotFound => (404, "TableNotFound", "The table specified does not exist."),
            TableError::UpdateConditionNotSatisfied => {
                (412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied.")
            }
        };
        (status, code, text.to_owned())
    }

    /// The refusal of a transaction because of its operation at `index`.
    #[must_use]
    pub fn at(self, index: usize) -> TableError {
        TableError::InTransaction { index, error: Box::new(self) }
    }
}

/// The refusal as the wire shows it.
impl From<TableError> for ErrorReply {
    fn from(error: TableError) -> ErrorReply {
        match error {
            TableError::Request(error) => error.into(),
            TableError::NotAllowed(refusal) => refusal.into(),
            error => {
                let (status, code, text) = error.table();
                ErrorReply::new(status, code, text)
            }
        }
    }
}

impl From<RequestError> for TableError {
    fn from(error: RequestError) -> TableError {
        TableError::Request(error)
    }
}

impl From<NameError> for TableError {
    fn from(error: NameError) -> TableError {
        match error {
            NameError::Length => TableError::NameLength,
            NameError::Characters => RequestError::InvalidResourceName.into(),
        }
    }
}

impl From<XmlError> for TableError {
    fn from(error: XmlError) -> TableError {
        RequestError::from(error).into()
    }
}

impl From<Refusal> for TableError {
    fn from(refusal: Refusal) -> TableError {
        TableError::NotAllowed(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_of_a_transaction_is_named_by_its_number() {
        let reply = ErrorReply::from(TableError::EntityAlreadyExists.at(3));
        assert_eq!((reply.status, reply.code), (409, "EntityAlreadyExists"));
        assert_eq!(reply.message, "3:The specified entity already exists.");
    }
}
