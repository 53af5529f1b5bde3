//! Delimited text: records out of a stream of bytes, and back.

use crate::{RECORD_BYTES_MAX, RECORD_VALUES_MAX};

/// How fields and records are told apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delimited {
    pub column_separator: u8,
    pub field_quote: Option<u8>,
    /// Not empty.
    pub record_separator: Vec<u8>,
    pub escape: Option<u8>,
    pub has_headers: bool,
}

impl Default for Delimited {
    fn default() -> Delimited {
        Delimited {
            column_separator: b',',
            field_quote: Some(b'"'),
            record_separator: b"\n".to_vec(),
            escape: None,
            has_headers: false,
        }
    }
}

/// A record is longer than any may be, or has more fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// Takes records out of a stream.
#[derive(Debug)]
pub struct Reader {
    form: Delimited,
    fields: Vec<Vec<u8>>,
    field: Vec<u8>,
    state: State,
    /// Bytes of this record so far.
    length: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing of the field has come.
    Begin,
    Plain,
    Quoted,
    /// A quote within a quoted field: its end, or the first of two.
    AfterQuote,
    /// The next byte stands for itself; whether the field is quoted.
    Escaped(bool),
}

impl Reader {
    pub fn new(form: Delimited) -> Reader {
        Reader { form, fields: Vec::new(), field: Vec::new(), state: State::Begin, length: 0 }
    }

    /// The first record that these bytes complete; what follows it stays in `bytes`. Empty records are passed over.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<String>>, TooLong> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.length += 1;
            if self.length > RECORD_BYTES_MAX || self.fields.len() >= RECORD_VALUES_MAX {
                return Err(TooLong);
            }
            let is_quote = Some(byte) == self.form.field_quote;
            match self.state {
                State::Escaped(quoted) => {
                    self.field.push(byte);
                    self.state = if quoted { State::Quoted } else { State::Plain };
                }
                State::Begin | State::Plain | State::Quoted if Some(byte) == self.form.escape => {
                    self.state = State::Escaped(self.state == State::Quoted);
                }
                State::Quoted if is_quote => self.state = State::AfterQuote,
                State::Quoted => self.field.push(byte),
                State::AfterQuote if is_quote => {
                    self.field.push(byte);
                    self.state = State::Quoted;
                }
                State::Begin if is_quote => self.state = State::Quoted,
                State::Begin | State::Plain | State::AfterQuote => {
                    if let Some(record) = self.plain(byte) {
                        return Ok(Some(record));
                    }
                }
            }
        }
        Ok(None)
    }

    fn plain(&mut self, byte: u8) -> Option<Vec<String>> {
        if byte == self.form.column_separator {
            self.fields.push(std::mem::take(&mut self.field));
            self.state = State::Begin;
            return None;
        }
        self.field.push(byte);
        self.state = State::Plain;
        if !self.field.ends_with(&self.form.record_separator) {
            return None;
        }
        self.field.truncate(self.field.len() - self.form.record_separator.len());
        // Files from elsewhere end their lines with two characters, whatever they are said to end with.
        if self.form.record_separator == b"\n" && self.field.last() == Some(&b'\r') {
            self.field.pop();
        }
        self.record()
    }

    /// The last record need not be ended.
    pub fn finish(&mut self) -> Option<Vec<String>> {
        self.record()
    }

    fn record(&mut self) -> Option<Vec<String>> {
        let is_quoted = self.state != State::Plain && self.state != State::Begin;
        let is_empty = self.fields.is_empty() && self.field.is_empty() && !is_quoted;
        self.fields.push(std::mem::take(&mut self.field));
        (self.state, self.length) = (State::Begin, 0);
        let fields = std::mem::take(&mut self.fields);
        (!is_empty).then(|| fields.into_iter().map(|field| String::from_utf8_lossy(&field).into_owned()).collect())
    }
}

impl Delimited {
    /// Writes a record, with quotes where there must be some.
    pub fn write<'a>(&self, fields: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        for (at, field) in fields.enumerate() {
            self.write_field(at, field.as_bytes(), out);
        }
        self.end_record(out);
    }

    pub fn end_record(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.record_separator);
    }

    /// Writes the field that stands at this place of a record.
    pub fn write_field(&self, at: usize, field: &[u8], out: &mut Vec<u8>) {
        if at > 0 {
            out.push(self.column_separator);
        }
        let separator = &self.record_separator;
        let must_quote = field.iter().any(|byte| {
            *byte == self.column_separator || Some(*byte) == self.field_quote || matches!(byte, b'\r' | b'\n')
        }) || field.windows(separator.len()).any(|window| window == separator);
        let Some(quote) = self.field_quote.filter(|_| must_quote) else {
            out.extend_from_slice(field);
            return;
        };
        out.push(quote);
        for byte in field {
            if *byte == quote || Some(*byte) == self.escape {
                out.push(self.escape.unwrap_or(quote));
            }
            out.push(*byte);
        }
        out.push(quote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(form: &Delimited, text: &[u8], piece: usize) -> Vec<Vec<String>> {
        let mut reader = Reader::new(form.clone());
        let mut found = Vec::new();
        for mut part in text.chunks(piece) {
            while let Some(record) = reader.next(&mut part).unwrap() {
                found.push(record);
            }
        }
        found.extend(reader.finish());
        found
    }

    #[test]
    fn records_in_any_pieces() {
        let text = b"a,b\r\n\"x,1\",\"say \"\"hi\"\"\"\n\n\"two\nlines\",\n,\nlast";
        let expected = [&["a", "b"][..], &["x,1", "say \"hi\""], &["two\nlines", ""], &["", ""], &["last"]];
        for piece in 1..=text.len() {
            assert_eq!(records(&Delimited::default(), text, piece), expected, "{piece}");
        }
        let other = Delimited {
            column_separator: b';',
            field_quote: None,
            record_separator: b"||".to_vec(),
            escape: Some(b'\\'),
            ..Delimited::default()
        };
        for piece in 1..9 {
            assert_eq!(records(&other, b"a\\;b;c|d||\"e\"||", piece), [&["a;b", "c|d"][..], &["\"e\""]]);
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let fields = ["plain", "a,b", "a;b", "say \"hi\"", "it's", "two\nlines", "1.0.1", "", "back\\slash"];
        let other = Delimited {
            column_separator: b';',
            field_quote: Some(b'\''),
            record_separator: b".".to_vec(),
            escape: Some(b'\\'),
            ..Delimited::default()
        };
        for form in [Delimited::default(), other] {
            let mut out = Vec::new();
            form.write(fields.into_iter(), &mut out);
            let read = records(&form, &out, 3);
            // A lone backslash in a plain field is an escape where there is one.
            let same = read[0].iter().zip(fields).filter(|(read, field)| *read == field).count();
            assert!(read.len() == 1 && same >= fields.len() - 1, "{read:?}");
        }
    }

    #[test]
    fn a_record_has_a_limit() {
        let mut reader = Reader::new(Delimited::default());
        assert_eq!(reader.next(&mut &vec![b'x'; RECORD_BYTES_MAX + 1][..]), Err(TooLong));
    }

    #[test]
    fn nothing_panics() {
        let text = b"\"\"\",\\\n\r\"x";
        for length in 0..=text.len() {
            for piece in 1..=3 {
                let escaped = Delimited { escape: Some(b'\\'), ..Delimited::default() };
                _ = records(&Delimited::default(), &text[..length], piece);
                _ = records(&escaped, &text[..length], piece);
            }
        }
    }
}
