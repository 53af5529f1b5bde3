//! A query at work: bytes of the blob in, bytes of the answer out.

use std::cmp::Ordering;

use crate::RECORD_BYTES_MAX;
use crate::avro::{Record as Told, Writer};
use crate::delimited::{self, Delimited};
use crate::evaluate::{Record, Row, Trouble, Value, as_number, as_text, compared, number_of};
use crate::json::{self, Json, write_object};
use crate::sql::{Columns, Query, TotalKind};

/// Rows go out together, up to about this many bytes.
const DATA_BYTES: usize = 4 * 1024 * 1024;

/// What the blob is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    Delimited(Delimited),
    Json,
}

/// What the answer is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    Delimited(Delimited),
    Json { record_separator: Vec<u8> },
}

#[derive(Debug)]
enum Reader {
    Delimited(delimited::Reader),
    Json(json::Reader),
}

#[derive(Debug)]
pub struct Run {
    query: Query,
    reader: Reader,
    /// The first record is to be the names of the columns.
    awaits_headers: bool,
    headers: Option<Vec<String>>,
    output: Output,
    /// The names of the columns are still to be written.
    owes_headers: bool,
    totals: Vec<Running>,
    writer: Writer,
    /// Rows that wait to go out.
    data: Vec<u8>,
    rows: u64,
    scanned: u64,
    total: u64,
    is_over: bool,
}

impl Run {
    /// For a blob of `total` bytes. The first bytes of the answer are put into `out`.
    pub fn begin(query: Query, input: Input, output: Output, total: u64, sync: [u8; 16], out: &mut Vec<u8>) -> Run {
        let writer = Writer::begin(sync, out);
        // Clients take the first record as they are made; it must not be an error.
        writer.record(&Told::Progress { scanned: 0, total }, out);
        let totals = match &query.columns {
            Columns::Totals(columns) => columns.iter().map(|_| Running::default()).collect(),
            Columns::All | Columns::Each(_) => Vec::new(),
        };
        let (reader, awaits_headers) = match input {
            Input::Delimited(form) => {
                let awaits = form.has_headers;
                (Reader::Delimited(delimited::Reader::new(form)), awaits)
            }
            Input::Json => (Reader::Json(json::Reader::default()), false),
        };
        let owes_headers = matches!(&output, Output::Delimited(form) if form.has_headers);
        let is_over = query.limit == Some(0) && totals.is_empty();
        Run {
            query,
            reader,
            awaits_headers,
            headers: None,
            output,
            owes_headers,
            totals,
            writer,
            data: Vec::new(),
            rows: 0,
            scanned: 0,
            total,
            is_over,
        }
    }

    /// Whether nothing more of the blob is wanted.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the next bytes of the blob, and adds what there is to tell to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        let length = bytes.len() as u64;
        let start = self.scanned;
        while !self.is_over {
            let before = start + length - bytes.len() as u64;
            let record = match &mut self.reader {
                Reader::Delimited(reader) => reader
                    .next(&mut bytes)
                    .map(|record| record.map(Record::Fields))
                    .map_err(|delimited::TooLong| too_long()),
                Reader::Json(reader) => match reader.next(&mut bytes) {
                    Ok(None) => Ok(None),
                    Ok(Some(Json::Object(members))) => Ok(Some(Record::Object(members))),
                    Ok(Some(_)) | Err(json::Fault::NotJson) => Err(not_json()),
                    Err(json::Fault::TooLong) => Err(too_long()),
                },
            };
            match record {
                Ok(Some(record)) => self.take(&record, before, out),
                Ok(None) => break,
                Err(trouble) => self.tell(&trouble, before, out),
            }
        }
        self.scanned = start + length;
        if self.data.len() >= DATA_BYTES {
            self.flush(out);
            self.writer.record(&Told::Progress { scanned: self.scanned, total: self.total }, out);
        }
    }

    /// The blob has ended, or the rest of it is not wanted.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.is_over {
            let last = match &mut self.reader {
                Reader::Delimited(reader) => Ok(reader.finish().map(Record::Fields)),
                Reader::Json(reader) => reader.finish().map(|()| None).map_err(|_| not_json()),
            };
            match last {
                Ok(Some(record)) => self.take(&record, self.scanned, out),
                Ok(None) => {}
                Err(trouble) => self.tell(&trouble, self.scanned, out),
            }
        }
        if let Columns::Totals(columns) = &self.query.columns {
            let names = columns.iter().enumerate().map(|(at, column)| column.name.clone().unwrap_or(ordinal(at)));
            let values = columns.iter().zip(&self.totals).map(|(column, total)| total.result(column.value.kind));
            let row: Vec<(String, Value)> = names.zip(values).collect();
            self.write(&row);
        }
        self.flush(out);
        self.writer.record(&Told::Progress { scanned: self.total, total: self.total }, out);
        self.writer.record(&Told::End { total: self.total }, out);
        self.is_over = true;
    }

    fn take(&mut self, record: &Record, position: u64, out: &mut Vec<u8>) {
        if let (true, Record::Fields(fields)) = (self.awaits_headers, record) {
            self.awaits_headers = false;
            self.headers = Some(fields.clone());
            return;
        }
        match self.answer(record) {
            Ok(Some(row)) => {
                self.write(&row);
                self.rows += 1;
                self.is_over = self.query.limit.is_some_and(|limit| self.rows >= limit);
            }
            Ok(None) => {}
            Err(trouble) => self.tell(&trouble, position, out),
        }
    }

    /// What the query makes of a record. `None`: nothing, or nothing yet.
    fn answer(&mut self, record: &Record) -> Result<Option<Vec<(String, Value)>>, Trouble> {
        let row = Row { record, headers: self.headers.as_deref() };
        if let Some(filter) = &self.query.filter
            && row.is_true(filter)? != Some(true)
        {
            return Ok(None);
        }
        match &self.query.columns {
            Columns::All => Ok(Some(self.whole(record))),
            Columns::Each(columns) => {
                let named = columns.iter().enumerate().map(|(at, column)| {
                    let name = column.name.clone().or_else(|| last_name(&column.value)).unwrap_or(ordinal(at));
                    Ok((name, row.value(&column.value)?))
                });
                named.collect::<Result<_, Trouble>>().map(Some)
            }
            Columns::Totals(columns) => {
                let values: Vec<Value> = columns
                    .iter()
                    .map(|column| match &column.value.of {
                        None => Ok(Some(Json::Bool(true))),
                        Some(of) => row.value(of),
                    })
                    .collect::<Result<_, Trouble>>()?;
                for (total, value) in self.totals.iter_mut().zip(values) {
                    total.add(value);
                }
                Ok(None)
            }
        }
    }

    fn whole(&self, record: &Record) -> Vec<(String, Value)> {
        match record {
            Record::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect()
            }
            Record::Fields(fields) => {
                let name = |at: usize| self.headers.as_ref().and_then(|headers| headers.get(at).cloned());
                let named =
                    |(at, field): (usize, &String)| (name(at).unwrap_or(ordinal(at)), Some(Json::Text(field.clone())));
                fields.iter().enumerate().map(named).collect()
            }
        }
    }

    fn write(&mut self, row: &[(String, Value)]) {
        match &self.output {
            Output::Delimited(form) => {
                if std::mem::take(&mut self.owes_headers) {
                    form.write(row.iter().map(|(name, _)| name.as_str()), &mut self.data);
                }
                let fields: Vec<String> = row.iter().map(|(_, value)| as_text(value).unwrap_or_default()).collect();
                form.write(fields.iter().map(String::as_str), &mut self.data);
            }
            Output::Json { record_separator } => {
                let members = row.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)));
                write_object(members, &mut self.data);
                self.data.extend_from_slice(record_separator);
            }
        }
    }

    fn tell(&mut self, trouble: &Trouble, position: u64, out: &mut Vec<u8>) {
        // What came before it is told before it; if that was nothing, then so.
        if trouble.fatal {
            if self.data.is_empty() && self.rows == 0 {
                self.writer.record(&Told::Data(b""), out);
            }
            self.flush(out);
            self.is_over = true;
        }
        let Trouble { name, description, fatal } = trouble;
        self.writer.record(&Told::Error { fatal: *fatal, name, description, position }, out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.data.is_empty() {
            self.writer.record(&Told::Data(&self.data), out);
            self.data.clear();
        }
    }
}

fn not_json() -> Trouble {
    let description = "The blob is not made of JSON objects.".to_owned();
    Trouble { name: "ParseError", description, fatal: true }
}

fn too_long() -> Trouble {
    let description = format!("A record is longer than {RECORD_BYTES_MAX} bytes.");
    Trouble { name: "RecordTooLong", description, fatal: true }
}

/// What a column is called that has no name.
fn ordinal(at: usize) -> String {
    format!("_{}", at + 1)
}

fn last_name(expression: &crate::sql::Expression) -> Option<String> {
    let crate::sql::Expression::Path(steps) = expression else {
        return None;
    };
    steps.iter().rev().find_map(|step| match step {
        crate::sql::Step::Name(name) => Some(name.clone()),
        crate::sql::Step::Index(_) => None,
    })
}

/// A total as far as it has come.
#[derive(Debug, Default)]
struct Running {
    count: u64,
    numbers: u64,
    sum: f64,
    least: Value,
    most: Value,
}

impl Running {
    fn add(&mut self, value: Value) {
        if matches!(value, None | Some(Json::Null)) {
            return;
        }
        self.count += 1;
        // Text that says a number is one here.
        let number = as_number(&value);
        let value = if number.is_some() { number_of(number) } else { value };
        if let Some(number) = number {
            self.numbers += 1;
            self.sum += number;
        }
        if self.least.is_none() || compared(&value, &self.least) == Some(Ordering::Less) {
            self.least = value.clone();
        }
        if self.most.is_none() || compared(&value, &self.most) == Some(Ordering::Greater) {
            self.most = value;
        }
    }

    fn result(&self, kind: TotalKind) -> Value {
        let null = Some(Json::Null);
        match kind {
            TotalKind::Count => Some(Json::Number(self.count.to_string())),
            TotalKind::Sum | TotalKind::Average if self.numbers == 0 => null,
            TotalKind::Sum => number_of(Some(self.sum)),
            TotalKind::Average => number_of(Some(self.sum / self.numbers as f64)),
            TotalKind::Least => self.least.clone().or(null),
            TotalKind::Most => self.most.clone().or(null),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: [u8; 16] = *b"0123456789abcdef";

    /// The data and the errors of an answer, in order.
    fn told(answer: &[u8]) -> (String, Vec<(bool, String)>, bool) {
        let (mut data, mut errors, mut ended) = (String::new(), Vec::new(), false);
        let blocks: Vec<&[u8]> = split(answer);
        for block in &blocks[1..] {
            // A count of one, the length, the kind.
            let mut rest = &block[1..];
            let length = long(&mut rest);
            assert_eq!(length as usize, rest.len());
            match long(&mut rest) {
                0 => {
                    let length = long(&mut rest) as usize;
                    data.push_str(std::str::from_utf8(&rest[..length]).unwrap());
                }
                1 => {
                    let fatal = rest[0] == 1;
                    rest = &rest[1..];
                    let length = long(&mut rest) as usize;
                    errors.push((fatal, String::from_utf8_lossy(&rest[..length]).into_owned()));
                }
                2 => {}
                3 => ended = true,
                other => panic!("record {other}"),
            }
        }
        (data, errors, ended)
    }

    fn split(answer: &[u8]) -> Vec<&[u8]> {
        let mut parts = Vec::new();
        let mut rest = answer;
        while let Some(at) = rest.windows(16).position(|window| window == SYNC) {
            parts.push(&rest[..at]);
            rest = &rest[at + 16..];
        }
        assert!(rest.is_empty());
        parts
    }

    fn long(rest: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = rest[0];
            *rest = &rest[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number >> 1;
            }
        }
    }

    fn run(query: &str, input: &Input, output: &Output, blob: &[u8], piece: usize) -> (String, Vec<(bool, String)>) {
        let mut out = Vec::new();
        let query = Query::parse(query).unwrap();
        let mut run = Run::begin(query, input.clone(), output.clone(), blob.len() as u64, SYNC, &mut out);
        for part in blob.chunks(piece) {
            run.push(part, &mut out);
        }
        run.finish(&mut out);
        let (data, errors, ended) = told(&out);
        assert!(ended);
        (data, errors)
    }

    fn text() -> Input {
        Input::Delimited(Delimited::default())
    }

    fn headed() -> Input {
        Input::Delimited(Delimited { has_headers: true, ..Delimited::default() })
    }

    fn plain() -> Output {
        Output::Delimited(Delimited::default())
    }

    fn json() -> Output {
        Output::Json { record_separator: b";".to_vec() }
    }

    const PEOPLE: &[u8] = b"name,age\r\nAda,36\r\nBob,7\r\n\"C, D\",70\r\n";

    #[test]
    fn delimited_text() {
        for (query, input, output, expected) in [
            ("SELECT * FROM BlobStorage", text(), plain(), "name,age\nAda,36\nBob,7\n\"C, D\",70\n"),
            ("SELECT * FROM BlobStorage", headed(), plain(), "Ada,36\nBob,7\n\"C, D\",70\n"),
            ("SELECT _2 FROM BlobStorage WHERE _1 = 'Bob'", text(), plain(), "7\n"),
            ("SELECT name FROM BlobStorage WHERE age > 30 LIMIT 1", headed(), plain(), "Ada\n"),
            ("SELECT name FROM BlobStorage LIMIT 0", headed(), plain(), ""),
            (
                "SELECT age + 1 AS next, name FROM BlobStorage WHERE age < 10",
                headed(),
                json(),
                "{\"next\":8,\"name\":\"Bob\"};",
            ),
            (
                "SELECT COUNT(*), SUM(age), AVG(age), MIN(age), MAX(name) FROM BlobStorage",
                headed(),
                plain(),
                "3,113,37.666666666666664,7,\"C, D\"\n",
            ),
            ("SELECT SUM(age) AS s FROM BlobStorage WHERE FALSE", headed(), json(), "{\"s\":null};"),
            (
                "SELECT * FROM BlobStorage WHERE age = 7",
                headed(),
                Output::Delimited(Delimited { has_headers: true, ..Delimited::default() }),
                "name,age\nBob,7\n",
            ),
        ] {
            for piece in [1, 2, 7, 1_000] {
                assert_eq!(
                    run(query, &input, &output, PEOPLE, piece),
                    (expected.to_owned(), vec![]),
                    "{query} by {piece}"
                );
            }
        }
    }

    #[test]
    fn json_records() {
        let blob =
            b"{\"name\": \"owner\", \"id\": 1}{\"name2\": \"x\"}\n{\"name\": \"owner\", \"id\": 12345678901234567890}";
        for (query, output, expected) in [
            ("SELECT name FROM BlobStorage", json(), "{\"name\":\"owner\"};{};{\"name\":\"owner\"};"),
            ("SELECT * FROM BlobStorage WHERE id > 1", json(), "{\"name\":\"owner\",\"id\":12345678901234567890};"),
            ("SELECT id FROM BlobStorage", plain(), "1\n\n12345678901234567890\n"),
            ("SELECT COUNT(id) FROM BlobStorage", plain(), "2\n"),
        ] {
            for piece in [1, 5, 1_000] {
                assert_eq!(run(query, &Input::Json, &output, blob, piece), (expected.to_owned(), vec![]), "{query}");
            }
        }
    }

    #[test]
    fn troubles() {
        let short = b"a,b\nc\nd,e\n";
        let (data, errors) = run("SELECT _2 FROM BlobStorage", &text(), &plain(), short, 4);
        assert_eq!((data.as_str(), errors), ("b\ne\n", vec![(false, "InvalidColumnOrdinal".to_owned())]));
        let (data, errors) = run("SELECT nobody FROM BlobStorage", &headed(), &plain(), PEOPLE, 9);
        assert_eq!((data.as_str(), errors), ("", vec![(true, "UnresolvedColumn".to_owned())]));
        for piece in [1, 100] {
            let (data, errors) = run("SELECT * FROM BlobStorage", &Input::Json, &json(), b"{} {name: x} {}", piece);
            assert_eq!((data.as_str(), errors), ("{};", vec![(true, "ParseError".to_owned())]));
        }
        let (data, errors) = run("SELECT * FROM BlobStorage", &Input::Json, &json(), b"{} {", 3);
        assert_eq!((data.as_str(), errors), ("{};", vec![(true, "ParseError".to_owned())]));
        let long = vec![b'x'; RECORD_BYTES_MAX + 1];
        let (_, errors) = run("SELECT * FROM BlobStorage", &text(), &plain(), &long, 100_000);
        assert_eq!(errors, [(true, "RecordTooLong".to_owned())]);
    }

    /// Whatever the blob holds, there is an answer, and it does not depend on the pieces.
    #[test]
    fn noise() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let letters = b"{}[]\":,;\n\r\\ab1 \xff\x00";
        for round in 0..400 {
            let blob: Vec<u8> = (0..random(120)).map(|_| letters[random(letters.len() as u64) as usize]).collect();
            for input in [text(), headed(), Input::Json] {
                let query = "SELECT _1, a FROM BlobStorage WHERE _1 <> 'x' OR _2 LIKE '%a' LIMIT 9";
                let whole = run(query, &input, &json(), &blob, 1_000);
                let piece = 1 + random(9) as usize;
                assert_eq!(run(query, &input, &json(), &blob, piece), whole, "round {round}, {input:?}");
            }
        }
    }
}
