//! Answers as the wire has them: what every answer carries, refusals in the shape each service gives them, and what a
//! failure of ours is allowed to say.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::EngineError;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;
use wire::dates;
use wire::http::{BodyError, ErrorReply, Reply, ReplyBody};
use wire::xml::XmlWriter;

use crate::body::{AnswerBody, Rest};
use crate::limits::CLIENT_REQUEST_ID_BYTES_MAX;
use crate::request_id::RequestId;
use crate::service::Service;
use crate::services::Op;
use crate::stream::Traffic;
use crate::version;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
/// From this version on an error names itself in a header, too.
const ERROR_CODE_SINCE: &str = "2017-07-29";

/// What an answer needs to know of its request.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub service: Service,
    /// What it asked for, if that is known.
    pub op: Option<Op>,
    pub is_head: bool,
    pub version: HeaderValue,
    pub client_request_id: Option<HeaderValue>,
}

impl Envelope {
    /// The client's own id, if it may be repeated.
    pub(crate) fn echoed(sent: Option<&HeaderValue>) -> Option<HeaderValue> {
        let is_echoed = |value: &&HeaderValue| {
            value.len() <= CLIENT_REQUEST_ID_BYTES_MAX
                && value.as_bytes().iter().all(|byte| matches!(byte, 0x20..=0x7e))
        };
        sent.filter(is_echoed).cloned()
    }
}

/// Puts an answer into its envelope.
pub(crate) fn answer(
    reply: Reply,
    envelope: Envelope,
    request_id: &RequestId,
    rest: Rest,
    traffic: Arc<Traffic>,
) -> Response<AnswerBody> {
    let Reply { status, mut headers, body } = reply;
    traffic.answered.hear(&mut headers);
    headers.insert(header::SERVER, envelope.service.banner());
    identify(&mut headers, &envelope, request_id);
    if rest == Rest::Unread {
        traffic.linger();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let body = if envelope.is_head || status == StatusCode::NOT_MODIFIED {
        if let (true, ReplyBody::Stream { length, .. }) = (envelope.is_head, &body) {
            headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(*length));
        }
        ReplyBody::Empty
    } else {
        // The body knows its length better than a header can.
        headers.remove(header::CONTENT_LENGTH);
        body
    };
    let mut response = Response::new(AnswerBody::new(body, traffic));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Says which request this is the answer to.
pub(crate) fn identify(headers: &mut HeaderMap, envelope: &Envelope, request_id: &RequestId) {
    headers.insert(VERSION, envelope.version.clone());
    if let Ok(id) = HeaderValue::from_bytes(request_id.as_bytes()) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(id) = &envelope.client_request_id {
        headers.insert(CLIENT_REQUEST_ID, id.clone());
    }
}

/// Writes a refusal as the service writes it. The date is for the reader of the message.
pub(crate) fn refusal(error: &ErrorReply, envelope: &Envelope, request_id: &RequestId, now: Timestamp) -> Reply {
    let mut reply = Reply::new(StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    for (name, value) in &error.headers {
        reply.set(name, value);
    }
    if version::text(&envelope.version) >= ERROR_CODE_SINCE
        && let Ok(code) = HeaderValue::from_str(error.code)
    {
        reply.headers.insert(ERROR_CODE, code);
    }
    if envelope.is_head || reply.status == StatusCode::NOT_MODIFIED {
        return reply;
    }
    let message = format!("{}\nRequestId:{}\nTime:{}", error.message, request_id.as_str(), dates::iso_ticks(now));
    let is_xml = envelope.op.is_some_and(Op::refuses_in_xml);
    match envelope.service {
        Service::Blob | Service::Queue | Service::File => {
            reply.with_body("application/xml", xml(error.code, &message, &error.details))
        }
        Service::Table if is_xml => reply.with_body("application/xml", xml(error.code, &message, &error.details)),
        Service::Table => {
            let kind = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
            reply.with_body(kind, table::error_body(error.code, &message))
        }
        Service::Dfs => {
            let text = serde_json::json!({"error": {"code": error.code, "message": message}});
            reply.with_body("application/json;charset=utf-8", text.to_string())
        }
    }
}

/// The reason phrase is the message, as the service has it: some tools show nothing else.
pub(crate) fn reason(error: &ErrorReply) -> Option<ReasonPhrase> {
    let first_line = error.message.lines().next()?;
    ReasonPhrase::try_from(first_line.to_owned()).ok()
}

fn xml(code: &str, message: &str, details: &[(&'static str, String)]) -> Bytes {
    let mut xml = XmlWriter::document();
    xml.reserve(320);
    xml.open("Error");
    for (name, text) in [("Code", code), ("Message", message)] {
        xml.open(name).text(text).close(name);
    }
    for (name, text) in details {
        xml.open(name).text(text).close(name);
    }
    xml.close("Error");
    xml.finish().into()
}

/// What the client learns of a failure of the engine: nothing about the inside.
pub(crate) fn engine_failure(error: &EngineError) -> ErrorReply {
    match error {
        EngineError::Busy | EngineError::Closed | EngineError::Elsewhere { .. } => {
            let message = "The server is currently unable to receive requests. Please retry your request.";
            ErrorReply::new(503, "ServerBusy", message).header("retry-after", "1")
        }
        EngineError::Full => {
            let message = "The disk is full; what needs space is refused until some is freed. Deleting is possible.";
            ErrorReply::new(503, "ServerBusy", message).header("retry-after", "10")
        }
        EngineError::TooLarge { .. } => {
            ErrorReply::new(400, "OutOfRangeInput", "One of the request inputs is out of range.")
        }
        EngineError::Unavailable(_) | EngineError::Corrupt(_) => internal_error(),
    }
}

pub(crate) fn internal_error() -> ErrorReply {
    ErrorReply::new(500, "InternalError", "The server encountered an internal error. Please retry the request.")
}

/// What the client learns when its time is up. What was asked for may still have been done.
pub(crate) fn timed_out() -> ErrorReply {
    ErrorReply::new(500, "OperationTimedOut", "The operation could not be completed within the permitted time.")
}

/// What the client learns when its body did not arrive whole.
pub(crate) fn body_failure(error: &BodyError) -> ErrorReply {
    match error {
        BodyError::Incomplete => ErrorReply::new(400, "InvalidInput", "The request body ended before it was complete."),
        BodyError::TimedOut => {
            ErrorReply::new(408, "OperationTimedOut", "The request body could not be read within the permitted time.")
        }
        BodyError::TooLarge => {
            let message = "The request body is too large and exceeds the maximum permissible limit.";
            ErrorReply::new(413, "RequestBodyTooLarge", message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_id::RequestIds;

    fn envelope(service: Service, version: &'static str) -> Envelope {
        let version = HeaderValue::from_static(version);
        Envelope { service, op: None, is_head: false, version, client_request_id: None }
    }

    fn body(reply: &Reply) -> &str {
        match &reply.body {
            ReplyBody::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
            ReplyBody::Empty | ReplyBody::Stream { .. } | ReplyBody::Open(_) => "",
        }
    }

    const NOW: Timestamp = Timestamp(638_000_000_000_000_001);

    #[test]
    fn a_refusal_in_xml() {
        let id = RequestIds::new().next();
        let error = ErrorReply::new(400, "InvalidHeaderValue", "Wrong <value>.").detail("HeaderName", "x-ms-a&b");
        let reply = refusal(&error, &envelope(Service::Blob, "2021-12-02"), &id, NOW);
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>InvalidHeaderValue</Code><Message>Wrong &lt;value&gt;.\n\
             RequestId:{}\nTime:2022-09-28T22:13:20.0000001Z</Message><HeaderName>x-ms-a&amp;b</HeaderName></Error>",
            id.as_str()
        );
        assert_eq!(body(&reply), expected);
        assert_eq!(reply.headers["content-type"], "application/xml");
        assert_eq!(reply.headers["x-ms-error-code"], "InvalidHeaderValue");
    }

    #[test]
    fn what_xml_cannot_say_is_replaced() {
        assert_eq!(xml("C", "a\u{1}b\u{ffff}", &[]), xml("C", "a\u{fffd}b\u{fffd}", &[]));
    }

    #[test]
    fn a_refusal_of_the_table_service_is_json() {
        let error = ErrorReply::new(501, "APINotImplemented", "Not \"here\".");
        let reply = refusal(&error, &envelope(Service::Table, "2019-02-02"), &RequestIds::new().next(), NOW);
        let value: serde_json::Value = serde_json::from_str(body(&reply)).unwrap();
        assert_eq!(value["odata.error"]["code"], "APINotImplemented");
        assert!(value["odata.error"]["message"]["value"].as_str().unwrap().starts_with("Not \"here\".\nRequestId:"));
    }

    #[test]
    fn what_speaks_xml_refuses_in_xml() {
        let error = ErrorReply::new(404, "TableNotFound", "No.");
        let acl = Envelope { op: Some(Op::Table(table::Op::GetTableAcl)), ..envelope(Service::Table, "2019-02-02") };
        let reply = refusal(&error, &acl, &RequestIds::new().next(), NOW);
        assert!(body(&reply).starts_with("<?xml"), "{}", body(&reply));
    }

    #[test]
    fn old_versions_have_no_header_for_the_code_and_head_has_no_body() {
        let error = ErrorReply::new(404, "BlobNotFound", "No.");
        let reply = refusal(&error, &envelope(Service::Blob, "2017-04-17"), &RequestIds::new().next(), NOW);
        assert!(!reply.headers.contains_key("x-ms-error-code"));
        let head = Envelope { is_head: true, ..envelope(Service::Blob, "2017-07-29") };
        let reply = refusal(&error, &head, &RequestIds::new().next(), NOW);
        assert_eq!((body(&reply), &reply.headers["x-ms-error-code"]), ("", &HeaderValue::from_static("BlobNotFound")));
    }

    #[test]
    fn only_visible_ids_are_repeated() {
        let echoed = |id: &[u8]| Envelope::echoed(HeaderValue::from_bytes(id).ok().as_ref()).is_some();
        assert!(echoed(b"my id") && echoed(&[b'x'; 1024]));
        assert!(!echoed(&[b'x'; 1025]) && !echoed("ä".as_bytes()) && !echoed(b"a\tb"));
    }

    #[test]
    fn failures_say_nothing_about_the_inside() {
        for error in [EngineError::Corrupt("/secret/path".into()), EngineError::Unavailable("/secret/path".into())] {
            let reply = engine_failure(&error);
            assert_eq!((reply.status, reply.code), (500, "InternalError"));
            assert!(!reply.message.contains("secret"));
        }
        assert_eq!(engine_failure(&EngineError::Busy).status, 503);
    }
}
