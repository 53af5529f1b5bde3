//! The Avro container file in which an answer comes: a header with the schema, then blocks of records.

const SCHEMA: &str = concat!(
    "[",
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.resultData","fields":[{"name":"data","type":"bytes"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.error","fields":[{"name":"fatal","type":"boolean"},{"name":"name","type":"string"},{"name":"description","type":"string"},{"name":"position","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.progress","fields":[{"name":"bytesScanned","type":"long"},{"name":"totalBytes","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.end","fields":[{"name":"totalBytes","type":"long"}]}"#,
    "]"
);

/// What an answer tells; the number of each is its place in the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    Data(&'a [u8]),
    Error { fatal: bool, name: &'a str, description: &'a str, position: u64 },
    Progress { scanned: u64, total: u64 },
    End { total: u64 },
}

/// Writes the file. `sync` stands after every block; it must not be guessable by whoever wrote the content.
#[derive(Clone, Debug)]
pub struct Writer {
    sync: [u8; 16],
}

impl Writer {
    /// Writes the header, too.
    pub fn begin(sync: [u8; 16], out: &mut Vec<u8>) -> Writer {
        out.extend_from_slice(b"Obj\x01");
        long(2, out);
        for (name, value) in [("avro.schema", SCHEMA), ("avro.codec", "null")] {
            bytes(name.as_bytes(), out);
            bytes(value.as_bytes(), out);
        }
        long(0, out);
        out.extend_from_slice(&sync);
        Writer { sync }
    }

    /// A record in a block of its own.
    pub fn record(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        // Not copied into `body` first: it is large.
        let mut data: &[u8] = &[];
        match record {
            Record::Data(rows) => {
                long(0, &mut body);
                long(rows.len() as u64, &mut body);
                data = rows;
            }
            Record::Error { fatal, name, description, position } => {
                long(1, &mut body);
                body.push(u8::from(*fatal));
                bytes(name.as_bytes(), &mut body);
                bytes(description.as_bytes(), &mut body);
                long(*position, &mut body);
            }
            Record::Progress { scanned, total } => {
                long(2, &mut body);
                long(*scanned, &mut body);
                long(*total, &mut body);
            }
            Record::End { total } => {
                long(3, &mut body);
                long(*total, &mut body);
            }
        }
        long(1, out);
        long((body.len() + data.len()) as u64, out);
        out.extend_from_slice(&body);
        out.extend_from_slice(data);
        out.extend_from_slice(&self.sync);
    }
}

/// A number that is not negative, as Avro writes signed ones: zigzag, then seven bits to a byte.
fn long(number: u64, out: &mut Vec<u8>) {
    let mut rest = u128::from(number) << 1;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (number, expected) in [(0, &[0][..]), (1, &[2]), (63, &[126]), (64, &[0x80, 1]), (8192, &[0x80, 0x80, 1])] {
            let mut out = Vec::new();
            long(number, &mut out);
            assert_eq!(out, expected, "{number}");
        }
    }

    #[test]
    fn written_out() {
        let mut out = Vec::new();
        let writer = Writer::begin([7; 16], &mut out);
        assert!(out.starts_with(b"Obj\x01\x04\x16avro.schema") && out.ends_with(&[7; 16]));
        out.clear();
        writer.record(&Record::Data(b"ab"), &mut out);
        assert_eq!(out, [&[2, 8, 0, 4][..], b"ab", &[7; 16]].concat());
        out.clear();
        writer.record(&Record::Error { fatal: true, name: "n", description: "d", position: 3 }, &mut out);
        assert_eq!(out, [&[2, 14, 2, 1, 2, b'n', 2, b'd', 6][..], &[7; 16]].concat());
    }
}
