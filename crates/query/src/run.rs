//! A query at work: bytes of the blob in, bytes of the answer out.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::avro::{Record as Told, Writer};
use crate::delimited::{self, Delimited};
use crate::evaluate::{Record, Row, Steps, Trouble, Value, as_number, as_text, compared, number_of};
use crate::json::{self, Json, write_name};
use crate::sql::{Columns, Query, TotalKind};
use crate::{
    DATA_BYTES, RECORD_BYTES_MAX, RECORD_STEPS_MAX, RECORD_VALUES_MAX, ROW_BYTES_MAX, STEPS_PER_BYTE_MAX, TURN_STEPS,
};

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
    /// Steps that the rest of the query may take.
    steps: u64,
    is_over: bool,
    /// A fatal error was told: there are no totals.
    has_failed: bool,
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
            steps: RECORD_STEPS_MAX + total.saturating_mul(STEPS_PER_BYTE_MAX),
            is_over,
            has_failed: false,
        }
    }

    /// Whether nothing more of the blob is wanted.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the next bytes of the blob, and adds what there is to tell to `out`. One turn of work: what it did not come
    /// to stays in `bytes`, and others may do something before the next call.
    pub fn push(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) {
        let mut turn = TURN_STEPS;
        while !self.is_over && turn > 0 && self.data.len().max(out.len()) < DATA_BYTES {
            let (before, length) = (self.scanned, bytes.len());
            let record = self.next_record(bytes);
            let read = (length - bytes.len()) as u64;
            self.scanned += read;
            let steps = Steps::new(self.steps.min(RECORD_STEPS_MAX));
            let most = steps.left();
            match record {
                Ok(Some(record)) => self.take(&record, &steps, before, out),
                Ok(None) => break,
                Err(trouble) => self.tell(&trouble, before, out),
            }
            let spent = most - steps.left();
            self.steps -= spent;
            turn = turn.saturating_sub(read + spent);
        }
        if self.is_over {
            self.scanned += bytes.len() as u64;
            *bytes = &[];
        }
        if self.data.len() >= DATA_BYTES {
            self.flush(out);
            self.writer.record(&Told::Progress { scanned: self.scanned, total: self.total }, out);
        }
    }

    fn next_record(&mut self, bytes: &mut &[u8]) -> Result<Option<Record>, Trouble> {
        match &mut self.reader {
            Reader::Delimited(reader) => match reader.next(bytes) {
                Ok(fields) => Ok(fields.map(fields_of)),
                Err(delimited::TooLong) => Err(too_long()),
            },
            Reader::Json(reader) => match reader.next(bytes) {
                Ok(None) => Ok(None),
                Ok(Some(Json::Object(members))) => Ok(Some(Record::Object(members))),
                Ok(Some(_)) | Err(json::Fault::NotJson) => Err(not_json()),
                Err(json::Fault::TooLong) => Err(too_long()),
            },
        }
    }

    /// The blob has ended, or the rest of it is not wanted.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.is_over {
            let last = match &mut self.reader {
                Reader::Delimited(reader) => Ok(reader.finish().map(fields_of)),
                Reader::Json(reader) => reader.finish().map(|()| None).map_err(|_| not_json()),
            };
            match last {
                Ok(Some(record)) => {
                    let steps = Steps::new(self.steps.min(RECORD_STEPS_MAX));
                    self.take(&record, &steps, self.scanned, out);
                }
                Ok(None) => {}
                Err(trouble) => self.tell(&trouble, self.scanned, out),
            }
        }
        if matches!(self.query.columns, Columns::Totals(_)) && !self.has_failed {
            let mark = self.data.len();
            if let Err(trouble) = self.write_totals() {
                self.data.truncate(mark);
                self.tell(&trouble, self.scanned, out);
            }
        }
        self.flush(out);
        self.writer.record(&Told::Progress { scanned: self.total, total: self.total }, out);
        self.writer.record(&Told::End { total: self.total }, out);
        self.is_over = true;
    }

    fn take(&mut self, record: &Record, steps: &Steps, position: u64, out: &mut Vec<u8>) {
        if let (true, Record::Fields(fields)) = (self.awaits_headers, record) {
            self.awaits_headers = false;
            let text = |field: &Json| if let Json::Text(text) = field { text.clone() } else { String::new() };
            self.headers = Some(fields.iter().map(text).collect());
            return;
        }
        let mark = self.data.len();
        match self.answer(record, steps) {
            Ok(true) => {
                self.owes_headers = false;
                self.rows += 1;
                self.is_over = self.query.limit.is_some_and(|limit| self.rows >= limit);
            }
            Ok(false) => {}
            Err(trouble) => {
                self.data.truncate(mark);
                self.tell(&trouble, position, out);
            }
        }
    }

    /// Writes what the query makes of a record, or adds it to the totals. `false`: there is no row.
    fn answer(&mut self, record: &Record, steps: &Steps) -> Result<bool, Trouble> {
        let row = Row { record, headers: self.headers.as_deref(), steps };
        if let Some(filter) = &self.query.filter
            && row.is_true(filter)? != Some(true)
        {
            return Ok(false);
        }
        let mut out = RowWriter::begin(&self.output, &mut self.data, steps);
        match &self.query.columns {
            Columns::Totals(columns) => {
                // Each is looked at, also one that computes nothing, as `COUNT(*)`.
                steps.spend(columns.len())?;
                let mut held: usize = self.totals.iter().map(|total| total.weight).sum();
                for (total, column) in self.totals.iter_mut().zip(columns) {
                    held -= total.weight;
                    match &column.value.of {
                        None => total.count += 1,
                        Some(of) => total.add(&row.value(of)?, column.value.kind, steps)?,
                    }
                    held += total.weight;
                    if held > ROW_BYTES_MAX {
                        return Err(row_too_long());
                    }
                }
                return Ok(false);
            }
            Columns::All => {
                if self.owes_headers {
                    (0..record.columns()).try_for_each(|at| out.name(&column_name(record, row.headers, at)))?;
                    out.end_names();
                }
                for at in 0..record.columns() {
                    out.value(|| column_name(record, row.headers, at), Some(record.column(at)))?;
                }
            }
            Columns::Each(columns) => {
                let name = |at: usize| {
                    let column = &columns[at];
                    let named = column.name.as_deref().or_else(|| last_name(&column.value));
                    named.map_or_else(|| Cow::Owned(ordinal(at)), Cow::Borrowed)
                };
                if self.owes_headers {
                    (0..columns.len()).try_for_each(|at| out.name(&name(at)))?;
                    out.end_names();
                }
                for (at, column) in columns.iter().enumerate() {
                    out.value(|| name(at), row.value(&column.value)?.as_deref())?;
                }
            }
        }
        out.end();
        Ok(true)
    }

    fn write_totals(&mut self) -> Result<(), Trouble> {
        let Columns::Totals(columns) = &self.query.columns else { return Ok(()) };
        let name = |at: usize| columns[at].name.clone().unwrap_or(ordinal(at));
        let steps = Steps::new(RECORD_STEPS_MAX);
        let mut out = RowWriter::begin(&self.output, &mut self.data, &steps);
        if self.owes_headers {
            (0..columns.len()).try_for_each(|at| out.name(&name(at)))?;
            out.end_names();
        }
        for (at, (column, total)) in columns.iter().zip(&self.totals).enumerate() {
            out.value(|| name(at).into(), Some(&total.result(column.value.kind)))?;
        }
        out.end();
        Ok(())
    }

    fn tell(&mut self, trouble: &Trouble, position: u64, out: &mut Vec<u8>) {
        // What came before it is told before it; if that was nothing, then so.
        if trouble.fatal {
            if self.data.is_empty() && self.rows == 0 {
                self.writer.record(&Told::Data(b""), out);
            }
            self.flush(out);
            (self.is_over, self.has_failed) = (true, true);
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

/// Writes one row, column by column: a row of many large columns is noticed before there is room for all of them.
struct RowWriter<'a> {
    output: &'a Output,
    data: &'a mut Vec<u8>,
    /// Names are paid for here. Values were when they were computed.
    steps: &'a Steps,
    began: usize,
    /// Columns written, and those of them that are there.
    names: usize,
    columns: usize,
}

impl<'a> RowWriter<'a> {
    fn begin(output: &'a Output, data: &'a mut Vec<u8>, steps: &'a Steps) -> RowWriter<'a> {
        RowWriter { output, began: data.len(), data, steps, names: 0, columns: 0 }
    }

    /// The name of the next column, in a row of names.
    fn name(&mut self, name: &str) -> Result<(), Trouble> {
        self.steps.spend(name.len())?;
        if let Output::Delimited(form) = self.output {
            form.write_field(self.names, name.as_bytes(), self.data);
        }
        self.names += 1;
        self.check()
    }

    fn end_names(&mut self) {
        if let Output::Delimited(form) = self.output {
            form.end_record(self.data);
        }
    }

    fn value<'n>(&mut self, name: impl FnOnce() -> Cow<'n, str>, value: Option<&Json>) -> Result<(), Trouble> {
        match (self.output, value) {
            (Output::Delimited(form), value) => {
                let value = value.map(Cow::Borrowed);
                form.write_field(self.columns, as_text(&value).unwrap_or_default().as_bytes(), self.data);
            }
            // A member that is not there is not there in the answer.
            (Output::Json { .. }, None) => return Ok(()),
            (Output::Json { .. }, Some(value)) => {
                let name = name();
                self.steps.spend(name.len())?;
                self.data.push(if self.columns == 0 { b'{' } else { b',' });
                write_name(&name, self.data);
                value.write(self.data);
            }
        }
        self.columns += 1;
        self.check()
    }

    fn end(self) {
        match self.output {
            Output::Delimited(form) => form.end_record(self.data),
            Output::Json { record_separator } => {
                self.data.extend_from_slice(if self.columns == 0 { b"{}" } else { b"}" });
                self.data.extend_from_slice(record_separator);
            }
        }
    }

    fn check(&self) -> Result<(), Trouble> {
        if self.data.len() - self.began > ROW_BYTES_MAX { Err(row_too_long()) } else { Ok(()) }
    }
}

impl Record {
    fn columns(&self) -> usize {
        match self {
            Record::Fields(fields) => fields.len(),
            Record::Object(members) => members.len(),
        }
    }

    fn column(&self, at: usize) -> &Json {
        match self {
            Record::Fields(fields) => &fields[at],
            Record::Object(members) => &members[at].1,
        }
    }
}

fn fields_of(fields: Vec<String>) -> Record {
    Record::Fields(fields.into_iter().map(Json::Text).collect())
}

/// What the column of a whole record is called.
fn column_name<'r>(record: &'r Record, headers: Option<&'r [String]>, at: usize) -> Cow<'r, str> {
    match record {
        Record::Object(members) => Cow::Borrowed(&members[at].0),
        Record::Fields(_) => match headers.and_then(|headers| headers.get(at)) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(ordinal(at)),
        },
    }
}

fn row_too_long() -> Trouble {
    let description = format!("A row of the answer is longer than {ROW_BYTES_MAX} bytes.");
    Trouble { name: "RowTooLong", description, fatal: true }
}

fn not_json() -> Trouble {
    let description = "The blob is not made of JSON objects.".to_owned();
    Trouble { name: "ParseError", description, fatal: true }
}

fn too_long() -> Trouble {
    let description =
        format!("A record is longer than {RECORD_BYTES_MAX} bytes or has more than {RECORD_VALUES_MAX} values.");
    Trouble { name: "RecordTooLong", description, fatal: true }
}

/// What a column is called that has no name.
fn ordinal(at: usize) -> String {
    format!("_{}", at + 1)
}

fn last_name(expression: &crate::sql::Expression) -> Option<&str> {
    let crate::sql::Expression::Path(steps) = expression else {
        return None;
    };
    steps.iter().rev().find_map(|step| match step {
        crate::sql::Step::Name(name) => Some(name.as_str()),
        crate::sql::Step::Index(_) => None,
    })
}

/// A total as far as it has come.
#[derive(Debug, Default)]
struct Running {
    count: u64,
    numbers: u64,
    sum: f64,
    /// The least value, or the largest.
    extreme: Option<Json>,
    /// Of the extreme.
    weight: usize,
}

impl Running {
    fn add(&mut self, value: &Value<'_>, kind: TotalKind, steps: &Steps) -> Result<(), Trouble> {
        let Some(found) = value.as_deref().filter(|value| **value != Json::Null) else { return Ok(()) };
        self.count += 1;
        let number = as_number(value);
        if let Some(number) = number {
            self.numbers += 1;
            self.sum += number;
        }
        let wanted = match kind {
            TotalKind::Count | TotalKind::Sum | TotalKind::Average => return Ok(()),
            TotalKind::Least => Ordering::Less,
            TotalKind::Most => Ordering::Greater,
        };
        // Text that says a number is one here.
        let number = number.map(|number| number_of(Some(number)));
        let found = number.as_ref().unwrap_or(found);
        if self.extreme.is_none() || compared(Some(found), self.extreme.as_ref(), steps)? == Some(wanted) {
            self.weight = found.weight();
            self.extreme = Some(found.clone());
        }
        Ok(())
    }

    fn result(&self, kind: TotalKind) -> Json {
        match kind {
            TotalKind::Count => Json::Number(self.count.to_string()),
            TotalKind::Sum | TotalKind::Average if self.numbers == 0 => Json::Null,
            TotalKind::Sum => number_of(Some(self.sum)),
            TotalKind::Average => number_of(Some(self.sum / self.numbers as f64)),
            TotalKind::Least | TotalKind::Most => self.extreme.clone().unwrap_or(Json::Null),
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
        for mut part in blob.chunks(piece) {
            while !part.is_empty() {
                let mut told = Vec::new();
                run.push(&mut part, &mut told);
                assert!(told.len() <= ROW_BYTES_MAX + 2 * DATA_BYTES, "a turn tells {} bytes", told.len());
                out.extend_from_slice(&told);
            }
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

    /// A record of a megabyte, asked for again and again.
    #[test]
    fn the_answer_to_one_record_is_bounded() {
        let blob = "x".repeat(RECORD_BYTES_MAX - 1);
        let many = |what: &str| format!("SELECT {} FROM BlobStorage", vec![what; 300].join(","));
        for output in [plain(), json()] {
            let (data, errors) = run(&many("_1"), &text(), &output, blob.as_bytes(), 100_000);
            assert_eq!((data.len(), errors), (0, vec![(true, "RowTooLong".to_owned())]));
            // The totals hold one value each.
            let (data, errors) = run(&many("MAX(_1)"), &text(), &output, blob.as_bytes(), 100_000);
            assert_eq!((data.len(), errors), (0, vec![(true, "RowTooLong".to_owned())]));
        }
        let (data, errors) = run("SELECT _1,_1,_1 FROM BlobStorage", &text(), &plain(), blob.as_bytes(), 100_000);
        assert_eq!((data.len(), errors), (3 * RECORD_BYTES_MAX, vec![]));
    }

    /// Totals that compute little of a short record, but of very many columns, or against a long one that came before.
    #[test]
    fn a_turn_of_totals_ends() {
        let counts = format!("SELECT {} FROM BlobStorage", vec!["COUNT(*)"; 10_000].join(","));
        let long = format!("{{\"a\":{{\"z\":\"{}\"}}}}", "x".repeat(RECORD_BYTES_MAX - 100));
        let most = "SELECT MAX(a) FROM BlobStorage".to_owned();
        for (query, input, blob) in
            [(counts, text(), "x\n".repeat(1_000)), (most, Input::Json, long + &"{\"a\":{\"b\":1}}".repeat(100))]
        {
            let (mut out, mut rest) = (Vec::new(), blob.as_bytes());
            let query = Query::parse(&query).unwrap();
            let mut run = Run::begin(query, input, plain(), blob.len() as u64, SYNC, &mut out);
            for _ in 0..3 {
                run.push(&mut rest, &mut out);
            }
            assert!(!rest.is_empty() && !run.is_over());
        }
    }

    /// A long name is written again for each record, also if a later column then makes nothing of it.
    #[test]
    fn a_turn_of_long_names_ends() {
        let query = format!("SELECT 1 AS {}, _9 FROM BlobStorage", "x".repeat(200_000));
        let headed = Output::Delimited(Delimited { has_headers: true, ..Delimited::default() });
        for output in [json(), headed] {
            let blob = "x\n".repeat(100);
            let (mut out, mut rest) = (Vec::new(), blob.as_bytes());
            let query = Query::parse(&query).unwrap();
            let mut run = Run::begin(query, text(), output, blob.len() as u64, SYNC, &mut out);
            run.push(&mut rest, &mut out);
            assert!(!rest.is_empty());
        }
    }

    /// Rows that become longer go out in many pieces; each turn makes one.
    #[test]
    fn many_rows_are_told_in_turns() {
        let blob = "0123456789\n".repeat(50_000);
        let query = format!("SELECT {} FROM BlobStorage", vec!["_1"; 40].join(","));
        let (data, errors) = run(&query, &text(), &plain(), blob.as_bytes(), blob.len());
        assert_eq!((data.len(), errors), (blob.len() * 40, vec![]));
    }

    #[test]
    fn a_query_over_many_small_records_has_an_end() {
        let blob = "1\n".repeat(1_000);
        let query = format!("SELECT _1 FROM BlobStorage WHERE {} _1 = 2", "_1 = 2 OR ".repeat(20_000));
        let (_, errors) = run(&query, &text(), &plain(), blob.as_bytes(), 1_000);
        assert_eq!(errors, vec![(true, "QueryTooComplex".to_owned())]);
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
