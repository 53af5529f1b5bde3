//! The message in another server's error document.

use super::read::parse;

/// The first line of the message; the others repeat the request's id and time. `None`: the document has no message.
pub fn parse_error_message(document: &[u8]) -> Option<String> {
    let error = parse(document, "Error").ok()?;
    let line = error.required("Message").ok()?.text.lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_the_message() {
        let read = |text: &str| parse_error_message(text.as_bytes());
        let told = "<?xml version=\"1.0\"?><Error><Code>A</Code><Message>It is &gt; gone.\nRequestId:1\nTime:2</Message></Error>";
        assert_eq!(read(told).as_deref(), Some("It is > gone."));
        for nothing in ["", "<html/>", "<Error/>", "<Error><Message/></Error>", "<Error><Message>\nx</Message></Error>"]
        {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
