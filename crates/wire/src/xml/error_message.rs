//! Why another server refuses: the message in the document of its error.

use super::read::parse;

/// The first line of the message, which is all that is not about the request. `None`: the document says nothing of the kind.
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
