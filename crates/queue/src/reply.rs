//! What the answers of several operations share: messages as XML elements.

use concurrency::PopReceipt;
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, dates};

use crate::model::Message;

pub fn xml(status: StatusCode, xml: XmlWriter) -> Reply {
    Reply::new(status).with_body("application/xml", xml.finish())
}

pub fn receipt(receipt: PopReceipt) -> String {
    base64::encode_url(&receipt.to_bytes())
}

/// Which parts of a message an answer shows, besides its id and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown<'a> {
    /// For Put Message: the pop receipt, but not the text, which the client has sent.
    Put,
    /// For Get Messages: everything.
    Taken(&'a str),
    /// For Peek Messages: the text, but no pop receipt.
    Peeked(&'a str),
}

/// A list of messages; `<QueueMessagesList />` if there are none.
pub fn messages<'a>(messages: impl ExactSizeIterator<Item = (&'a Message, Shown<'a>)>) -> XmlWriter {
    const LIST: &str = "QueueMessagesList";
    let mut xml = XmlWriter::document();
    if messages.len() == 0 {
        xml.empty(LIST);
        return xml;
    }
    xml.open(LIST);
    for (message, shown) in messages {
        element(&mut xml, message, shown);
    }
    xml.close(LIST);
    xml
}

fn element(xml: &mut XmlWriter, message: &Message, shown: Shown<'_>) {
    xml.open("QueueMessage").leaf("MessageId", message.id.to_string());
    xml.leaf("InsertionTime", dates::http_date(message.inserted).as_str());
    xml.leaf("ExpirationTime", dates::http_date(message.expires).as_str());
    if let Shown::Put | Shown::Taken(_) = shown {
        xml.leaf("PopReceipt", receipt(message.receipt()));
        xml.leaf("TimeNextVisible", dates::http_date(message.next_visible).as_str());
    }
    if let Shown::Taken(text) | Shown::Peeked(text) = shown {
        xml.reserve(text.len() + 64);
        xml.number("DequeueCount", message.dequeued).leaf("MessageText", text);
    }
    xml.close("QueueMessage");
}
