//! What the answers of several operations share. An answer is sent by itself or as a part of a transaction's answer.

use std::borrow::Cow;

use bytes::Bytes;
use concurrency::Timestamp;
use wire::dates;
use wire::http::{ErrorReply, HeaderName, HeaderValue, Reply, ReplyBody, StatusCode, header};

use crate::entity::write::Metadata;
use crate::format::Prefer;

/// An answer, with its headers in the order and the spelling in which the service sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(status: StatusCode) -> Answer {
        Answer { status, headers: Vec::with_capacity(8), body: Vec::new() }
            .with("X-Content-Type-Options", "nosniff")
            .with("Cache-Control", "no-cache")
    }

    /// The answer to a write that shows no entity.
    pub fn empty() -> Answer {
        Answer::new(StatusCode::NO_CONTENT).with("DataServiceVersion", "1.0;")
    }

    pub fn json(status: StatusCode, metadata: Metadata, prefer: Prefer, body: Vec<u8>) -> Answer {
        let mut answer = Answer::new(status).preferring(prefer).with("DataServiceVersion", "3.0;");
        answer.headers.push(("Content-Type", metadata.content_type().into()));
        answer.body = body;
        answer
    }

    /// The answer to an insert or to Create Table: it shows what was created, unless the client prefers that it does
    /// not.
    pub fn made(metadata: Metadata, prefer: Prefer, location: String, shown: impl FnOnce() -> Vec<u8>) -> Answer {
        let answer = match prefer {
            Prefer::NoContent => {
                let answer = Answer::new(StatusCode::NO_CONTENT).preferring(prefer).with("DataServiceVersion", "3.0;");
                answer.with("DataServiceId", location.clone())
            }
            Prefer::Unsaid | Prefer::Content => Answer::json(StatusCode::CREATED, metadata, prefer, shown()),
        };
        answer.with("Location", location)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    fn preferring(self, prefer: Prefer) -> Answer {
        match prefer.applied() {
            Some(applied) => self.with("Preference-Applied", applied),
            None => self,
        }
    }

    /// A refusal, as a part of a transaction's answer.
    pub fn refusal(error: &ErrorReply, prefer: Prefer, request_id: &str, now: Timestamp) -> Answer {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = format!("{}\nRequestId:{request_id}\nTime:{}", error.message, dates::iso_ticks(now));
        Answer::json(status, Metadata::Minimal, prefer, error_body(error.code, &message))
    }

    /// Writes the answer as HTTP/1.1 text, for a part of a multipart body.
    pub fn write(&self, out: &mut Vec<u8>, content_id: Option<&str>) {
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        put("HTTP/1.1 ");
        put(self.status.as_str());
        put(" ");
        put(self.status.canonical_reason().unwrap_or_default());
        put("\r\n");
        if let Some(id) = content_id {
            put(&format!("Content-ID: {id}\r\n"));
        }
        for (name, value) in &self.headers {
            put(name);
            put(": ");
            put(value);
            put("\r\n");
        }
        put("\r\n");
        out.extend_from_slice(&self.body);
        out.extend_from_slice(b"\r\n");
    }
}

/// The JSON of a refusal.
#[must_use]
pub fn error_body(code: &str, message: &str) -> Vec<u8> {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{\"odata.error\":{{\"code\":{},\"message\":{{\"lang\":\"en-US\",\"value\":{}}}}}}}",
        text(code),
        text(message)
    )
    .into_bytes()
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        let mut reply = Reply::new(answer.status);
        reply.headers.reserve(answer.headers.len() + HEADERS_TO_COME);
        for (name, value) in answer.headers {
            let value = match value {
                Cow::Borrowed(text) => Ok(HeaderValue::from_static(text)),
                Cow::Owned(text) => HeaderValue::from_maybe_shared(Bytes::from(text)),
            };
            if let (Some(name), Ok(value)) = (header_name(name), value) {
                reply.headers.insert(name, value);
            }
        }
        if !answer.body.is_empty() {
            reply.body = ReplyBody::Bytes(answer.body.into());
        }
        reply
    }
}

/// Room for the headers that the server adds to an answer: its name and version, the date, the request's id.
const HEADERS_TO_COME: usize = 8;

static DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
static DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");

/// The header's name. The names that nearly every answer has are constants, which need not be parsed.
fn header_name(spelled: &str) -> Option<HeaderName> {
    Some(match spelled {
        "Cache-Control" => header::CACHE_CONTROL,
        "Content-Type" => header::CONTENT_TYPE,
        "DataServiceId" => DATA_SERVICE_ID.clone(),
        "DataServiceVersion" => DATA_SERVICE_VERSION.clone(),
        "ETag" => header::ETAG,
        "Location" => header::LOCATION,
        "X-Content-Type-Options" => header::X_CONTENT_TYPE_OPTIONS,
        other => HeaderName::from_bytes(other.as_bytes()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_are_spelled() {
        for spelled in [
            "Cache-Control",
            "Content-Type",
            "DataServiceId",
            "DataServiceVersion",
            "ETag",
            "Location",
            "Preference-Applied",
            "X-Content-Type-Options",
        ] {
            assert_eq!(header_name(spelled), HeaderName::from_bytes(spelled.as_bytes()).ok(), "{spelled}");
        }
    }
}
