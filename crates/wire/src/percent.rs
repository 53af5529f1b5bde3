//! Percent-encoding of paths, queries and names.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but letters, digits and `-._~/`: what a name looks like in a path or in `<Name Encoded="true">`.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same without the slash: one value of a query.
const VALUE: &AsciiSet = &NAME.add(b'/');

/// The text is not percent-encoded UTF-8: 400 `InvalidUri`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEncoding;

/// Decodes a path or a part of one. A plus sign stays a plus sign; every `%` must begin an escape.
pub fn decode_path(text: &str) -> Result<Cow<'_, str>, BadEncoding> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let escapes = text.split('%').skip(1);
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !escapes.into_iter().all(is_escape) {
        return Err(BadEncoding);
    }
    percent_decode_str(text).decode_utf8().map_err(|_| BadEncoding)
}

/// Decodes one name or value of a query. A plus sign becomes a space; a `%` that begins no escape stays as it is.
pub fn decode_query(text: &str) -> Result<Cow<'_, str>, BadEncoding> {
    // Most names and values have nothing to decode.
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    if !text.contains('+') {
        return percent_decode_str(text).decode_utf8().map_err(|_| BadEncoding);
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().map_err(|_| BadEncoding)?;
    Ok(Cow::Owned(decoded.into_owned()))
}

/// Splits a raw query (without the question mark) into decoded pairs, in order. A name without `=` has an empty value.
pub fn query_pairs(raw: &str) -> impl Iterator<Item = Result<(Cow<'_, str>, Cow<'_, str>), BadEncoding>> {
    raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode_query(name)?, decode_query(value)?))
    })
}

/// Encodes a name, keeping its slashes.
pub fn encode_name(name: &str) -> Cow<'_, str> {
    utf8_percent_encode(name, NAME).into()
}

/// Encodes one value of a query.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, VALUE).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(decode_path("/c/a%20b+c%2Fd"), Ok("/c/a b+c/d".into()));
        assert_eq!(decode_path("/%C3%A4"), Ok("/ä".into()));
        assert_eq!(decode_path("100%25"), Ok("100%".into()));
        for text in ["%", "a%2", "a%zz", "%+1", "%C3", "%ff", "%%41"] {
            assert_eq!(decode_path(text), Err(BadEncoding), "{text:?}");
        }
    }

    #[test]
    fn queries() {
        assert_eq!(decode_query("a+b%2Bc"), Ok("a b+c".into()));
        assert_eq!(decode_query("50%"), Ok("50%".into()));
        assert_eq!(decode_query("%ff"), Err(BadEncoding));
        assert_eq!(decode_query("+%ff"), Err(BadEncoding));
        let pairs: Result<Vec<_>, _> = query_pairs("restype=container&comp=list&&empty&a=b%3Dc=d").collect();
        let pairs = pairs.expect("well-formed");
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, [("restype", "container"), ("comp", "list"), ("empty", ""), ("a", "b=c=d")]);
        assert_eq!(query_pairs("").count(), 0);
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let name = "dir/ä b+c%\u{1}~.txt";
        assert_eq!(encode_name(name), "dir/%C3%A4%20b%2Bc%25%01~.txt");
        assert_eq!(decode_path(&encode_name(name)), Ok(name.into()));
        assert_eq!(decode_query(&encode_value(name)), Ok(name.into()));
        assert_eq!(encode_value("a/b"), "a%2Fb");
    }
}
