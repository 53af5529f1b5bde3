//! What the tests share: requests from text, a service on the memory engine, and a few values.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::{MessageId, Timestamp};
use engine::memory::MemoryEngine;
use engine::{Engine, Tick};
use service::HttpService;
use wire::http::{Body, FixedBody, Head, Reply};

use crate::model::Message;
use crate::{Failure, Op, QueueService};

pub use service::testing::{between, header, refusal, text};

pub const NOW: Timestamp = Timestamp(0x8DE_0000_0000_0000);

const ACCOUNT: u64 = 1;

pub fn tick() -> Tick {
    Tick { now: NOW, stamp: NOW.plus_ticks(100), entropy: 7 }
}

/// A message that is visible now and lives for a minute.
pub fn message() -> Message {
    Message {
        id: MessageId::new(5, 3),
        inserted: NOW,
        expires: NOW.plus_seconds(60),
        next_visible: NOW,
        secret: 1,
        dequeued: 0,
    }
}

/// A request, with the URL written below the account.
pub fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> Head {
    let head = service::testing::request(method, url, headers);
    Head { endpoint: "http://127.0.0.1:10001/acct".into(), ..head }
}

/// The body that carries a text.
pub fn body(text: &str) -> Vec<u8> {
    let mut xml = wire::xml::XmlWriter::fragment();
    xml.open("QueueMessage").leaf("MessageText", text).close("QueueMessage");
    xml.finish()
}

/// What a client needs to change a message.
#[derive(Clone, Debug)]
pub struct Put {
    pub id: String,
    pub receipt: String,
}

/// A message from Get Messages.
#[derive(Clone, Debug)]
pub struct TakenMessage {
    pub put: Put,
    pub text: String,
    pub dequeued: u64,
}

/// A service on an engine of its own, with the queue `que` in most tests.
pub struct Bench {
    pub engine: Arc<MemoryEngine>,
    pub service: QueueService,
}

impl Bench {
    pub fn new() -> Bench {
        let engine = Arc::new(MemoryEngine::default());
        Bench { service: QueueService::new(engine.clone()), engine }
    }

    pub async fn with_queue() -> Bench {
        let bench = Bench::new();
        bench.call("PUT", "que", &[], b"").await.unwrap();
        bench
    }

    pub async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        let mut body = FixedBody::new(Bytes::copy_from_slice(body));
        self.send(request(method, url, headers), &mut body).await
    }

    pub async fn send(&self, head: Head, body: &mut dyn Body) -> Result<Reply, Failure> {
        let op = Op::named_by(&head)?;
        self.service.run(op, &head, ACCOUNT, body).await
    }

    /// The body of an answer as text.
    pub async fn text(&self, method: &str, url: &str) -> String {
        text(self.call(method, url, &[], b"").await.unwrap()).await
    }

    pub async fn put(&self, text: &str) -> Put {
        self.put_with(text, "").await
    }

    pub async fn put_with(&self, text: &str, query: &str) -> Put {
        let answer = self.call("POST", &format!("que/messages?{query}"), &[], &body(text)).await.unwrap();
        shown(&service::testing::text(answer).await)
    }

    pub async fn take(&self, most: usize, secs: u64) -> Vec<TakenMessage> {
        let url = format!("que/messages?numofmessages={most}&visibilitytimeout={secs}");
        let list = self.text("GET", &url).await;
        let messages = between(&list, "<QueueMessage>", "</QueueMessage>");
        let taken = messages.into_iter().map(|message| TakenMessage {
            put: shown(message),
            text: text_in(message),
            dequeued: between(message, "<DequeueCount>", "<")[0].parse().unwrap(),
        });
        taken.collect()
    }

    pub async fn peek(&self, most: usize) -> Vec<String> {
        let list = self.text("GET", &format!("que/messages?peekonly=true&numofmessages={most}")).await;
        between(&list, "<QueueMessage>", "</QueueMessage>").into_iter().map(text_in).collect()
    }

    pub async fn delete(&self, message: &Put) -> Result<Reply, Failure> {
        self.call("DELETE", &url_of(message), &[], b"").await
    }

    pub async fn update(&self, message: &Put, secs: u64, text: Option<&str>) -> Result<Put, Failure> {
        let url = format!("{}&visibilitytimeout={secs}", url_of(message));
        let answer = self.call("PUT", &url, &[], &text.map(body).unwrap_or_default()).await?;
        Ok(Put { id: message.id.clone(), receipt: header(&answer, "x-ms-popreceipt").unwrap().to_owned() })
    }

    pub async fn count(&self) -> u64 {
        let told = self.call("GET", "que?comp=metadata", &[], b"").await.unwrap();
        header(&told, "x-ms-approximate-messages-count").unwrap().parse().unwrap()
    }

    pub async fn advance(&self, seconds: u64) {
        self.engine.advance_clock(seconds).await.unwrap();
    }

    /// Does everything that is due now, and what that makes due.
    pub async fn sweep(&self) {
        service::testing::sweep(&*self.engine, &[&self.service]).await;
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        service::testing::figure(&*self.engine, "rows")
    }
}

fn url_of(message: &Put) -> String {
    format!("que/messages/{}?popreceipt={}", message.id, message.receipt)
}

fn shown(message: &str) -> Put {
    let element = |name: &str| between(message, &format!("<{name}>"), "<")[0].to_owned();
    Put { id: element("MessageId"), receipt: element("PopReceipt") }
}

fn text_in(message: &str) -> String {
    let text = between(message, "<MessageText>", "</MessageText>").first().copied().unwrap_or_default();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
