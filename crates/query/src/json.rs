//! JSON: records out of a stream of bytes, values out of a record, and back.

use concurrency::Depth;

use crate::{RECORD_BYTES_MAX, RECORD_VALUES_MAX};

/// Values may nest this deep.
const DEPTH_MAX: usize = 64;

/// A value. Members stay in their order, and numbers as they were written.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &[u8]) -> Result<Json, Fault> {
        let mut rest = Rest { text, at: 0, depth: Depth::up_to(DEPTH_MAX), values: 0 };
        let value = rest.value();
        rest.space();
        match value {
            Some(value) if rest.at == text.len() => Ok(value),
            _ if rest.values > RECORD_VALUES_MAX => Err(Fault::TooLong),
            _ => Err(Fault::NotJson),
        }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        match self {
            Json::Null | Json::Bool(_) => 1,
            Json::Number(text) | Json::Text(text) => 1 + text.len(),
            Json::Array(values) => 1 + values.iter().map(Json::weight).sum::<usize>(),
            Json::Object(members) => 1 + members.iter().map(|(name, value)| name.len() + value.weight()).sum::<usize>(),
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Json::Number(text) => out.extend_from_slice(text.as_bytes()),
            Json::Text(text) => write_text(text, out),
            Json::Array(values) => {
                out.push(b'[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    value.write(out);
                }
                out.push(b']');
            }
            Json::Object(members) => write_object(members.iter().map(|(name, value)| (name.as_str(), value)), out),
        }
    }
}

fn write_object<'a>(members: impl Iterator<Item = (&'a str, &'a Json)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_name(name, out);
        value.write(out);
    }
    out.push(b'}');
}

pub fn write_name(name: &str, out: &mut Vec<u8>) {
    write_text(name, out);
    out.push(b':');
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for char in text.chars() {
        match char {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' => out.extend_from_slice(format!("\\u{:04x}", u32::from(char)).as_bytes()),
            char => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

struct Rest<'a> {
    text: &'a [u8],
    at: usize,
    depth: Depth,
    values: usize,
}

impl Rest<'_> {
    fn space(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    }

    fn take(&mut self, text: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(text).then(|| self.at += text.len())
    }

    fn value(&mut self) -> Option<Json> {
        self.values += 1;
        if self.values > RECORD_VALUES_MAX {
            return None;
        }
        self.space();
        match self.text.get(self.at)? {
            b'n' => self.take(b"null").map(|()| Json::Null),
            b't' => self.take(b"true").map(|()| Json::Bool(true)),
            b'f' => self.take(b"false").map(|()| Json::Bool(false)),
            b'"' => self.string().map(Json::Text),
            b'[' => self.nested(|rest| rest.list(b']', Rest::value)).map(Json::Array),
            b'{' => self.nested(|rest| rest.list(b'}', Rest::member)).map(Json::Object),
            _ => self.number(),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let _level = self.depth.enter()?;
        self.at += 1;
        read(self)
    }

    fn list<T>(&mut self, end: u8, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        self.space();
        if self.take(&[end]).is_some() {
            return Some(found);
        }
        loop {
            found.push(read(self)?);
            self.space();
            if self.take(&[end]).is_some() {
                return Some(found);
            }
            self.take(b",")?;
        }
    }

    fn member(&mut self) -> Option<(String, Json)> {
        self.space();
        let name = self.string()?;
        self.space();
        self.take(b":")?;
        Some((name, self.value()?))
    }

    fn number(&mut self) -> Option<Json> {
        let end = self.text[self.at..].iter().take_while(|byte| b"+-.eE0123456789".contains(byte)).count();
        let text = std::str::from_utf8(&self.text[self.at..self.at + end]).ok()?;
        let begins = text.strip_prefix('-').unwrap_or(text);
        let is_number = begins.starts_with(|char: char| char.is_ascii_digit())
            && (!begins.starts_with('0') || !begins[1..].starts_with(|char: char| char.is_ascii_digit()))
            && !text.ends_with('.')
            && text.parse::<f64>().is_ok();
        self.at += end;
        is_number.then(|| Json::Number(text.to_owned()))
    }

    fn string(&mut self) -> Option<String> {
        self.take(b"\"")?;
        let mut bytes = Vec::new();
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(bytes).ok(),
                b'\\' => {
                    let char = self.escaped()?;
                    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..=0x1f => return None,
                byte => bytes.push(byte),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                match first {
                    0xD800..0xDC00 => {
                        self.take(b"\\u")?;
                        let second = self.hex().filter(|second| (0xDC00..0xE000).contains(second))?;
                        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?
                    }
                    other => char::from_u32(other)?,
                }
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = std::str::from_utf8(self.text.get(self.at..self.at + 4)?).ok()?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.at += 4;
        is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }
}

/// Why there are no more records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    NotJson,
    TooLong,
}

/// Takes records out of a stream: objects one after another, with or without something between them.
#[derive(Debug, Default)]
pub struct Reader {
    record: Vec<u8>,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Reader {
    /// The first record that these bytes complete; what follows it stays in `bytes`.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Json>, Fault> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if self.record.is_empty() {
                match byte {
                    b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' => continue,
                    b'{' => {}
                    _ => return Err(Fault::NotJson),
                }
            }
            if self.record.len() == RECORD_BYTES_MAX {
                return Err(Fault::TooLong);
            }
            self.record.push(byte);
            match (self.in_text, self.is_escaped, byte) {
                (true, true, _) => self.is_escaped = false,
                (true, false, b'\\') => self.is_escaped = true,
                (true, false, b'"') => self.in_text = false,
                (true, false, _) => {}
                (false, _, b'"') => self.in_text = true,
                (false, _, b'{') => self.depth += 1,
                (false, _, b'}') => self.depth -= 1,
                (false, ..) => {}
            }
            if self.depth == 0 {
                let record = std::mem::take(&mut self.record);
                return Json::parse(&record).map(Some);
            }
        }
        Ok(None)
    }

    /// Nothing may be left over.
    pub fn finish(&self) -> Result<(), Fault> {
        if self.record.is_empty() { Ok(()) } else { Err(Fault::NotJson) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> Option<String> {
        let mut out = Vec::new();
        Json::parse(text.as_bytes()).ok()?.write(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values() {
        for (text, written) in [
            (" { \"b\" : 1 , \"a\" : [ ] } ", "{\"b\":1,\"a\":[]}"),
            ("[null,true,false,-1.50e+3,\"\\u00e4\\n\\\"\"]", "[null,true,false,-1.50e+3,\"ä\\n\\\"\"]"),
            ("\"\\ud83d\\ude00\"", "\"😀\""),
        ] {
            assert_eq!(again(text).as_deref(), Some(written), "{text}");
        }
        for bad in ["", "{", "{name: 1}", "[1,]", "01", "1.", "-", "\"\\ud83d\"", "\"\\x\"", "nul", "1 2", "\"\n\""] {
            assert_eq!(again(bad), None, "{bad}");
        }
        assert_eq!(again(&format!("{}{}", "[".repeat(65), "]".repeat(65))), None);
    }

    fn records(text: &[u8], piece: usize) -> (usize, Result<(), Fault>) {
        let (mut reader, mut count) = (Reader::default(), 0);
        for mut part in text.chunks(piece) {
            loop {
                match reader.next(&mut part) {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => break,
                    Err(fault) => return (count, Err(fault)),
                }
            }
        }
        (count, reader.finish())
    }

    #[test]
    fn records_in_any_pieces() {
        let text = b"{\"a\":\"}{\\\"\"}{\"b\":{}}\r\n\n{\"c\":[{}]}; {}";
        for piece in 1..=text.len() {
            assert_eq!(records(text, piece), (4, Ok(())), "{piece}");
        }
        assert_eq!(records(b"{} {\"a\":", 3), (1, Err(Fault::NotJson)));
        assert_eq!(records(b"{} x {}", 3), (1, Err(Fault::NotJson)));
        assert_eq!(records(b"{name: owner}", 3), (0, Err(Fault::NotJson)));
        assert_eq!(
            records(&[b"{\"".as_slice(), &vec![b'a'; RECORD_BYTES_MAX]].concat(), 9_999),
            (0, Err(Fault::TooLong))
        );
        let many = format!("{{\"a\":[{}1]}}", "1,".repeat(RECORD_VALUES_MAX));
        assert_eq!(records(many.as_bytes(), 9_999), (0, Err(Fault::TooLong)));
    }
}
