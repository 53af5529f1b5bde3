//! Put Message: add a message behind those that are visible, or one that is hidden for a while first.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, RequestError};
use wire::http::{Body, Head, Reply, StatusCode};
use wire::names::QueueName;

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Lifetime, Message, queue_key};
use crate::reply::Shown;
use crate::request::VISIBILITY_TIMEOUT;
use crate::shelf::Shelf;
use crate::{Failure, reply, request};

/// How long a message lives if the request does not say, and the longest it could live before version 2017-07-29.
const LIFETIME_SECS: u64 = 7 * 24 * 3_600;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutMessage {
    pub queue: QueueName,
    pub text: String,
    pub lifetime: Lifetime,
    /// The visibility timeout: the message is hidden for so long at first.
    pub invisible_secs: u64,
}

async fn parse(head: &Head, body: &mut dyn Body) -> Result<PutMessage, Failure> {
    let queue = request::queue(head)?;
    let (lifetime, invisible_secs) = times(head)?;
    let text = request::text(head, body).await?;
    let text = text.ok_or(QueueError::from(RequestError::MissingRequiredXmlNode { node: "MessageText" }))?;
    Ok(PutMessage { queue, text, lifetime, invisible_secs })
}

/// How long the message lives, and how many seconds it is hidden at first.
fn times(head: &Head) -> Result<(Lifetime, u64), QueueError> {
    let invisible_secs = request::invisible_secs(head)?.unwrap_or(0);
    let lifetime = lifetime(head)?;
    // It would expire before anybody could see it.
    if matches!(lifetime, Lifetime::Seconds(seconds) if invisible_secs >= seconds) {
        return Err(QueueError::query(VISIBILITY_TIMEOUT, invisible_secs.to_string()));
    }
    Ok((lifetime, invisible_secs))
}

fn lifetime(head: &Head) -> Result<Lifetime, QueueError> {
    const NAME: &str = "messagettl";
    let Some(value) = request::integer(head, NAME)? else { return Ok(Lifetime::Seconds(LIFETIME_SECS)) };
    let is_new = head.since("2017-07-29");
    match u64::try_from(value) {
        Ok(seconds) if seconds > LIFETIME_SECS && !is_new => {
            let (value, least, most) = (value.to_string(), 1, LIFETIME_SECS);
            Err(RequestError::OutOfRangeQueryParameterValue { name: NAME, value, least, most }.into())
        }
        Ok(seconds) if seconds > 0 => Ok(Lifetime::Seconds(seconds)),
        Err(_) if value == -1 && is_new => Ok(Lifetime::Forever),
        Ok(_) | Err(_) => Err(QueueError::query(NAME, value.to_string())),
    }
}

impl Operation for PutMessage {
    type Outcome = Message;
    type Refusal = QueueError;

    fn partition(&self, account: u64) -> Key {
        queue_key(account, &self.queue)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Message, Halt> {
        let mut shelf = Shelf::open(rows, account, &self.queue)?;
        let message = Message::new(self.lifetime, self.invisible_secs, tick);
        shelf.put(&message, &self.text);
        shelf.close(changes);
        Ok(message)
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let message = call.commit(&Arc::new(parse(call.head, body).await?)).await?;
    // Before this version the answer had no body.
    if !call.head.since("2016-05-31") {
        return Ok(Reply::new(StatusCode::CREATED));
    }
    let list = reply::messages([(&message, Shown::Put)].into_iter());
    Ok(reply::xml(StatusCode::CREATED, list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, body, refusal, request, text};
    use wire::http::FixedBody;

    fn parsed(version: &str, query: &str) -> Result<(Lifetime, u64), QueueError> {
        let mut head = request("POST", &format!("que/messages?{query}"), &[]);
        head.version = version.into();
        times(&head)
    }

    #[test]
    fn lifetimes_and_what_they_allow() {
        let week = Lifetime::Seconds(604_800);
        let newest = "2026-10-06";
        for (query, expected) in [
            ("", (week, 0)),
            ("visibilitytimeout=604799", (week, 604_799)),
            ("messagettl=1", (Lifetime::Seconds(1), 0)),
            ("messagettl=604801", (Lifetime::Seconds(604_801), 0)),
            ("messagettl=9223372036854775807", (Lifetime::Seconds(i64::MAX as u64), 0)),
            ("messagettl=-1&visibilitytimeout=604800", (Lifetime::Forever, 604_800)),
            ("messagettl=604801&visibilitytimeout=604800", (Lifetime::Seconds(604_801), 604_800)),
        ] {
            assert_eq!(parsed(newest, query), Ok(expected), "{query}");
        }
        for (query, name, value) in [
            ("messagettl=0", "messagettl", "0"),
            ("messagettl=-2", "messagettl", "-2"),
            ("messagettl=x", "messagettl", "x"),
            ("messagettl=9223372036854775808", "messagettl", "9223372036854775808"),
            ("visibilitytimeout=604800", "visibilitytimeout", "604800"),
            ("messagettl=5&visibilitytimeout=5", "visibilitytimeout", "5"),
            ("messagettl=5&visibilitytimeout=6", "visibilitytimeout", "6"),
            ("messagettl=0&visibilitytimeout=x", "visibilitytimeout", "x"),
        ] {
            assert_eq!(parsed(newest, query), Err(QueueError::query(name, value)), "{query}");
        }
    }

    #[test]
    fn before_2017_a_week_is_the_most() {
        let old = "2017-04-17";
        assert_eq!(parsed(old, "messagettl=604800"), Ok((Lifetime::Seconds(604_800), 0)));
        assert_eq!(parsed(old, "messagettl=-1"), Err(QueueError::query("messagettl", "-1")));
        let refused = parsed(old, "messagettl=604801").unwrap_err();
        assert!(matches!(
            refused,
            QueueError::Request(RequestError::OutOfRangeQueryParameterValue { least: 1, most: 604_800, .. })
        ));
    }

    #[tokio::test]
    async fn the_answer_shows_a_receipt_and_no_text() {
        let bench = Bench::with_queue().await;
        let answer = bench.call("POST", "que/messages", &[], &body("hello")).await.unwrap();
        assert_eq!(answer.status, 201);
        let told = text(answer).await;
        let order = ["<MessageId>", "<InsertionTime>", "<ExpirationTime>", "<PopReceipt>", "<TimeNextVisible>"];
        let places: Vec<_> = order.iter().map(|element| told.find(element).expect(element)).collect();
        assert!(places.is_sorted(), "{told}");
        assert!(!told.contains("DequeueCount") && !told.contains("MessageText"), "{told}");
        let mut head = request("POST", "que/messages", &[]);
        head.version = "2015-12-11".into();
        let answer = bench.send(head, &mut FixedBody::new(body("hello"))).await.unwrap();
        assert_eq!((answer.status.as_u16(), text(answer).await.as_str()), (201, ""));
    }

    #[tokio::test]
    async fn a_receipt_for_what_was_put_can_be_used() {
        let bench = Bench::with_queue().await;
        let message = bench.put("gone soon").await;
        bench.delete(&message).await.unwrap();
        assert_eq!(bench.peek(1).await.len(), 0);
    }

    #[tokio::test]
    async fn refusals_change_nothing() {
        let bench = Bench::with_queue().await;
        let before = bench.rows();
        let post = async |url: &str, body: &[u8]| refusal(bench.call("POST", url, &[], body).await);
        let missing = RequestError::MissingRequiredXmlNode { node: "MessageText" };
        assert_eq!(post("que/messages", b"").await, missing.clone().into());
        assert_eq!(post("que/messages", b"<QueueMessage/>").await, missing.into());
        assert_eq!(post("que/messages", b"plain").await, RequestError::InvalidXmlDocument.into());
        assert_eq!(post("other/messages", &body("x")).await, QueueError::QueueNotFound);
        // Of two faults the one in the request comes first.
        assert_eq!(post("other/messages", b"plain").await, RequestError::InvalidXmlDocument.into());
        assert_eq!(post("other/messages?messagettl=0", b"plain").await, QueueError::query("messagettl", "0"));
        assert_eq!(bench.rows(), before);
    }
}
