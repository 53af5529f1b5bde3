//! What the requests of several operations share: names, numbers in a range, pop receipts, the text of a message.

use concurrency::{MessageId, PopReceipt};
use service::{Pairs, RequestError};
use wire::base64;
use wire::http::{Body, BodyError, Head, collect};
use wire::metadata::Metadata;
use wire::names::QueueName;
use wire::xml::parse_queue_message;

use crate::Failure;
use crate::error::QueueError;

/// The longest visibility timeout: seven days.
pub const INVISIBLE_SECS_MAX: u64 = 7 * 24 * 3_600;
/// The same, for Get Messages before version 2011-08-18.
const INVISIBLE_SECS_MAX_BEFORE_2011: u64 = 2 * 3_600;
/// The most messages that one request gives out.
pub const MESSAGES_MAX: u64 = 32;
/// The longest text of a message, as it is stored.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// The same before version 2011-08-18.
const TEXT_BYTES_MAX_BEFORE_2011: usize = 8 * 1024;
/// The longest text with every character escaped (`&quot;`), and the elements around it.
const BODY_BYTES_MAX: usize = 6 * TEXT_BYTES_MAX + 1024;

pub const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";
const VERSION_2011: &str = "2011-08-18";

pub fn queue(head: &Head) -> Result<QueueName, QueueError> {
    Ok(QueueName::parse(head.first_segment().ok_or(RequestError::InvalidResourceName)?)?)
}

pub fn metadata(head: &Head) -> Result<Pairs, QueueError> {
    Ok(Metadata::of(head)?.into_pairs())
}

/// A query parameter that is a whole number, with or without a sign.
pub fn integer(head: &Head, name: &'static str) -> Result<Option<i64>, QueueError> {
    let Some(text) = head.query.get(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| QueueError::query(name, text))
}

/// A number between two bounds, both included.
fn between(head: &Head, name: &'static str, least: u64, most: u64) -> Result<Option<u64>, QueueError> {
    let Some(value) = integer(head, name)? else { return Ok(None) };
    match u64::try_from(value) {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => Err(RequestError::OutOfRangeQueryParameterValue { name, value: value.to_string(), least, most }.into()),
    }
}

/// The visibility timeout of a message that is put or updated.
pub fn invisible_secs(head: &Head) -> Result<Option<u64>, QueueError> {
    between(head, VISIBILITY_TIMEOUT, 0, INVISIBLE_SECS_MAX)
}

/// The visibility timeout of a message that is given out: at least a second.
pub fn taken_secs(head: &Head) -> Result<u64, QueueError> {
    const DEFAULT: u64 = 30;
    let most = if head.since(VERSION_2011) { INVISIBLE_SECS_MAX } else { INVISIBLE_SECS_MAX_BEFORE_2011 };
    Ok(between(head, VISIBILITY_TIMEOUT, 1, most)?.unwrap_or(DEFAULT))
}

/// The most messages that the request asks for.
pub fn number_of_messages(head: &Head) -> Result<usize, QueueError> {
    let number = between(head, "numofmessages", 1, MESSAGES_MAX)?.unwrap_or(1);
    Ok(number as usize)
}

/// The message that the path names. A segment that is not an id names no message.
pub fn message_id(head: &Head) -> Result<MessageId, QueueError> {
    let path = head.rest().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().and_then(MessageId::parse).ok_or(QueueError::MessageNotFound)
}

pub fn pop_receipt(head: &Head) -> Result<PopReceipt, QueueError> {
    const NAME: &str = "popreceipt";
    let text = head.query.get(NAME);
    let text = text.ok_or(RequestError::MissingRequiredQueryParameter { name: NAME })?;
    let bytes = base64::decode_url(text);
    let receipt = bytes.and_then(|bytes| PopReceipt::from_bytes(&bytes));
    receipt.ok_or_else(|| QueueError::InvalidPopReceipt { value: text.to_owned() })
}

/// The message text in the body; `None` if there is no body, or no text in it.
pub async fn text(head: &Head, body: &mut dyn Body) -> Result<Option<String>, Failure> {
    let most = if head.since(VERSION_2011) { TEXT_BYTES_MAX } else { TEXT_BYTES_MAX_BEFORE_2011 };
    let too_large = || Failure::from(QueueError::from(RequestError::RequestBodyTooLarge { most: most as u64 }));
    let document = collect(body, BODY_BYTES_MAX).await.map_err(|error| match error {
        BodyError::TooLarge => too_large(),
        other => other.into(),
    })?;
    if document.is_empty() {
        return Ok(None);
    }
    let text = parse_queue_message(&document).map_err(QueueError::from)?;
    match text {
        Some(text) if text.len() > most => Err(too_large()),
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use wire::http::FixedBody;

    fn head(query: &str) -> Head {
        request("GET", &format!("que/messages/00000000-0000-4000-8000-000000000001?{query}"), &[])
    }

    fn out_of_range(name: &'static str, value: &str, least: u64, most: u64) -> QueueError {
        RequestError::OutOfRangeQueryParameterValue { name, value: value.into(), least, most }.into()
    }

    #[test]
    fn numbers_have_their_ranges() {
        let name = VISIBILITY_TIMEOUT;
        for (query, expected) in [
            ("", Ok(None)),
            ("visibilitytimeout=", Ok(None)),
            ("visibilitytimeout=0", Ok(Some(0))),
            ("visibilitytimeout=604800", Ok(Some(604_800))),
            ("visibilitytimeout=604801", Err(out_of_range(name, "604801", 0, 604_800))),
            ("visibilitytimeout=-1", Err(out_of_range(name, "-1", 0, 604_800))),
            ("visibilitytimeout=1.5", Err(QueueError::query(name, "1.5"))),
            ("visibilitytimeout=99999999999999999999", Err(QueueError::query(name, "99999999999999999999"))),
        ] {
            assert_eq!(invisible_secs(&head(query)), expected, "{query}");
        }
        assert_eq!(taken_secs(&head("")), Ok(30));
        assert_eq!(taken_secs(&head("visibilitytimeout=1")), Ok(1));
        assert_eq!(taken_secs(&head("visibilitytimeout=0")), Err(out_of_range(name, "0", 1, 604_800)));
        let mut old = head("visibilitytimeout=7201");
        old.version = "2009-09-19".into();
        assert_eq!(taken_secs(&old), Err(out_of_range(name, "7201", 1, 7_200)));
        assert_eq!(number_of_messages(&head("")), Ok(1));
        assert_eq!(number_of_messages(&head("numofmessages=32")), Ok(32));
        for value in ["0", "33", "-5"] {
            let refused = number_of_messages(&head(&format!("numofmessages={value}")));
            assert_eq!(refused, Err(out_of_range("numofmessages", value, 1, 32)));
        }
    }

    #[test]
    fn a_receipt_must_be_one_of_ours() {
        let missing = RequestError::MissingRequiredQueryParameter { name: "popreceipt" };
        assert_eq!(pop_receipt(&head("")), Err(missing.clone().into()));
        assert_eq!(pop_receipt(&head("popreceipt=")), Err(missing.into()));
        for text in ["x", "AAAA", "+/8=", &"A".repeat(44)] {
            let refused = pop_receipt(&head(&format!("popreceipt={}", text.replace('+', "%2B"))));
            assert_eq!(refused, Err(QueueError::InvalidPopReceipt { value: text.to_owned() }));
        }
        let receipt = crate::testing::message().receipt();
        let text = base64::encode_url(&receipt.to_bytes());
        assert_eq!(pop_receipt(&head(&format!("popreceipt={text}"))), Ok(receipt));
    }

    #[test]
    fn what_is_no_id_names_no_message() {
        assert_eq!(message_id(&head("")).unwrap().to_string(), "00000000-0000-4000-8000-000000000001");
        assert_eq!(message_id(&request("PUT", "que/messages/x", &[])), Err(QueueError::MessageNotFound));
    }

    async fn text_of(version: &str, document: &str) -> Result<Option<String>, Failure> {
        let mut head = head("");
        head.version = version.into();
        text(&head, &mut FixedBody::new(document.to_owned())).await
    }

    #[tokio::test]
    async fn texts_have_their_length() {
        let document = |text: &str| format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let too_large = |most| Err(Failure::Refused(RequestError::RequestBodyTooLarge { most }.into()));
        let newest = "2026-10-06";
        for (text, length) in [("x", 1), ("&quot;", 1), ("ä", 2)] {
            let fits = text.repeat(TEXT_BYTES_MAX / length);
            assert_eq!(text_of(newest, &document(&fits)).await.unwrap().unwrap().len(), TEXT_BYTES_MAX, "{text}");
            assert_eq!(text_of(newest, &document(&(fits + text))).await, too_large(65_536), "{text}");
        }
        assert_eq!(text_of(newest, &document(&"x".repeat(BODY_BYTES_MAX))).await, too_large(65_536));
        assert_eq!(text_of("2009-09-19", &document(&"x".repeat(8_193))).await, too_large(8_192));
        assert_eq!(text_of(newest, "").await, Ok(None));
        assert_eq!(text_of(newest, &document("")).await, Ok(Some(String::new())));
    }
}
