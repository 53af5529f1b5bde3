//! The body of Put Message and Update Message: the text of a message.

use super::read::{self, XmlError};
use super::write::is_xml_char;

/// The text of a message, exactly as it was written; `None` if the document has none.
pub fn parse_queue_message(document: &[u8]) -> Result<Option<String>, XmlError> {
    let mut root = read::parse(document, "QueueMessage")?;
    root.only(&["MessageText"])?;
    let Some(node) = root.children.pop() else { return Ok(None) };
    // Markup in the text must be escaped. A character that answers could not contain must be refused here.
    if !node.children.is_empty() || !node.text.chars().all(is_xml_char) {
        return Err(XmlError::Malformed);
    }
    Ok(Some(node.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(inner: &str) -> Result<Option<String>, XmlError> {
        parse_queue_message(format!("<QueueMessage>{inner}</QueueMessage>").as_bytes())
    }

    #[test]
    fn the_text_is_kept_to_the_byte() {
        for (written, meant) in [
            ("hello", "hello"),
            (" two  spaces ", " two  spaces "),
            ("\n\t", "\n\t"),
            ("&lt;a&gt; &amp;amp; &quot;", "<a> &amp; \""),
            ("a&#13;&#10;b", "a\r\nb"),
            ("<![CDATA[<x>&]]>", "<x>&"),
            ("ä😀\u{feff}", "ä😀\u{feff}"),
            ("SGVsbG8=", "SGVsbG8="),
        ] {
            assert_eq!(parse(&format!("<MessageText>{written}</MessageText>")), Ok(Some(meant.into())), "{written}");
        }
        assert_eq!(parse("<MessageText/>"), Ok(Some(String::new())));
        assert_eq!(parse("\n  <MessageText></MessageText>\n"), Ok(Some(String::new())));
        assert_eq!(parse(""), Ok(None));
    }

    #[test]
    fn anything_else_is_refused() {
        for inner in [
            "text",
            "<MessageText>a<b/>c</MessageText>",
            "<MessageText><b/></MessageText>",
            "<MessageText>a</MessageText><MessageText>b</MessageText>",
            "<MessageText>a</MessageText><Other/>",
            "<MessageText>a",
            "<MessageText>\u{1}</MessageText>",
            "<MessageText>&#1;</MessageText>",
            "<MessageText>\u{ffff}</MessageText>",
        ] {
            assert_eq!(parse(inner), Err(XmlError::Malformed), "{inner:?}");
        }
        assert_eq!(parse_queue_message(b""), Err(XmlError::Malformed));
        assert_eq!(parse_queue_message(b"<MessageText>a</MessageText>"), Err(XmlError::Malformed));
    }
}
