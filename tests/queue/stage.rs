//! What the tests begin with: a server, a queue, a client, and messages as values.

use crate::harness::{Answer, Client, Element, Headers, Server, Service};

pub struct Stage {
    pub server: Server,
    pub client: Client,
}

/// A message as an answer shows it. What an answer leaves out is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    pub id: String,
    pub receipt: String,
    pub inserted: String,
    pub expires: String,
    pub next_visible: String,
    pub dequeued: Option<u64>,
    pub text: Option<String>,
}

impl Message {
    fn of(element: &Element) -> Message {
        assert_eq!(element.name, "QueueMessage");
        let text = |name: &str| element.text_of(name).unwrap_or_default();
        Message {
            id: text("MessageId"),
            receipt: text("PopReceipt"),
            inserted: text("InsertionTime"),
            expires: text("ExpirationTime"),
            next_visible: text("TimeNextVisible"),
            dequeued: element.text_of("DequeueCount").map(|count| count.parse().expect("a number")),
            text: element.text_of("MessageText"),
        }
    }

    /// The URL of the message, with its receipt.
    pub fn url(&self) -> String {
        format!("que/messages/{}?popreceipt={}", self.id, self.receipt)
    }
}

/// The messages that an answer lists.
#[track_caller]
pub fn messages(answer: Answer) -> Vec<Message> {
    let list = answer.ok().xml();
    assert_eq!(list.name, "QueueMessagesList");
    list.children.iter().map(Message::of).collect()
}

pub fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_deref().unwrap_or_default()).collect()
}

/// The body that carries a text.
pub fn body(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#13;");
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

impl Stage {
    /// A server with the queue `que`.
    pub fn new() -> Stage {
        let server = Server::serving(Service::Queue);
        let client = server.client();
        let stage = Stage { server, client };
        assert_eq!(stage.call("PUT que", &[], "").said(), "201");
        stage
    }

    pub fn call(&self, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Answer {
        self.client.call(line, headers, body)
    }

    #[track_caller]
    pub fn put(&self, text: &str) -> Message {
        self.put_with(text, "")
    }

    #[track_caller]
    pub fn put_with(&self, text: &str, query: &str) -> Message {
        let answer = self.call(&format!("POST que/messages?{query}"), &[], body(text));
        assert_eq!(answer.said(), "201");
        messages(answer).remove(0)
    }

    #[track_caller]
    pub fn take(&self, most: usize, secs: u64) -> Vec<Message> {
        let line = format!("GET que/messages?numofmessages={most}&visibilitytimeout={secs}");
        messages(self.call(&line, &[], ""))
    }

    #[track_caller]
    pub fn peek(&self, most: usize) -> Vec<Message> {
        messages(self.call(&format!("GET que/messages?peekonly=true&numofmessages={most}"), &[], ""))
    }

    pub fn delete(&self, message: &Message) -> Answer {
        self.call(&format!("DELETE {}", message.url()), &[], "")
    }

    /// Hides the message for so long; with another text if there is one.
    pub fn update(&self, message: &Message, secs: u64, text: Option<&str>) -> Answer {
        let line = format!("PUT {}&visibilitytimeout={secs}", message.url());
        self.call(&line, &[], text.map(body).unwrap_or_default())
    }

    #[track_caller]
    pub fn count(&self) -> u64 {
        let told = self.call("GET que?comp=metadata", &[], "").ok();
        told.header("x-ms-approximate-messages-count").expect("a count").parse().expect("a number")
    }
}
