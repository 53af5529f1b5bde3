//! Continuation tokens: where the next page begins, as `1!<length>!<base64>`, which headers and URLs can carry.

use wire::base64;
use wire::http::Head;

use crate::error::TableError;

pub fn write(text: &str) -> String {
    let encoded = base64::encode(text.as_bytes()).replace('=', "-");
    format!("1!{}!{encoded}", encoded.len())
}

/// The token in a query parameter. An empty one counts as none.
pub fn read(head: &Head, name: &'static str) -> Result<Option<String>, TableError> {
    let Some(text) = head.query.get(name) else { return Ok(None) };
    parse(text).map(Some).ok_or(TableError::InvalidInput("A continuation token is not one of ours."))
}

fn parse(text: &str) -> Option<String> {
    let (length, encoded) = text.strip_prefix("1!")?.split_once('!')?;
    if length.parse() != Ok(encoded.len()) {
        return None;
    }
    // A client that does not encode a plus sign sends what is decoded as a space.
    let bytes = base64::decode(&encoded.replace('-', "=").replace(' ', "+"))?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        for text in ["", "a", "ab", "abc", "it's 😀 ä", "\u{10ffff}~~??>>"] {
            let token = write(text);
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'='), "{token}");
            assert_eq!(parse(&token).as_deref(), Some(text));
            assert_eq!(parse(&token.replace('+', " ")).as_deref(), Some(text));
        }
        for text in ["x", "1!", "1!4!", "1!3!YWI-", "2!4!YWI-", "1!4!/w--x", "1!4!/w--"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
