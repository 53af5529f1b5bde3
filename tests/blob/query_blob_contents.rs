//! Query Blob Contents: rows and columns of a blob, in an answer of unknown length.

use crate::harness::Table;
use crate::stage::Stage;

const LINE: &str = "POST cont/blob?comp=query";

fn asked(expression: &str, more: &str) -> String {
    format!("<QueryRequest><QueryType>SQL</QueryType><Expression>{expression}</Expression>{more}</QueryRequest>")
}

fn format(side: &str, kind: &str) -> String {
    format!("<{side}Serialization><Format><Type>{kind}</Type></Format></{side}Serialization>")
}

fn holds(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn rows_are_found() {
    let stage = Stage::new();
    let lines: String = (0..200_000).map(|n| format!("{n},name {n}\n")).collect();
    stage.put("cont/blob", &lines);
    let answer = stage.call(LINE, &[], asked("SELECT _2 FROM BlobStorage WHERE _1 &gt; 199997", "")).ok();
    assert_eq!(answer.header("content-type"), Some("avro/binary"));
    assert!(answer.body.starts_with(b"Obj\x01") && holds(&answer.body, "name 199998\nname 199999\n"));
    let all = stage.call(LINE, &[], asked("SELECT * FROM BlobStorage", "")).ok();
    assert!(all.body.len() > lines.len() && holds(&all.body, "queryBlobContents.end"));
    let total = stage.call(LINE, &[], asked("SELECT COUNT(*) FROM BlobStorage", &format("Output", "json"))).ok();
    assert!(holds(&total.body, "{\"_1\":200000}\n"));

    stage.put("cont/blob", "{\"a\":{\"b\":7}}\n{\"a\":1} {broken");
    let some = stage.call(LINE, &[], asked("SELECT a.b FROM BlobStorage", &format("Input", "json"))).ok();
    assert!(holds(&some.body, "7\n\n") && holds(&some.body, "ParseError"));
}

#[test]
fn what_cannot_be_asked() {
    let stage = Stage::new();
    stage.put("cont/blob", "a,b\n");
    stage.put_pages("cont/pages", 512);
    let all = "SELECT * FROM BlobStorage";
    let mut table = Table::new("query_blob_contents");
    for (row, line, body, expected) in [
        ("no query", LINE, asked("SELEKT", ""), "400 InvalidInput"),
        ("another table", LINE, asked("SELECT * FROM Users", ""), "400 InvalidInput"),
        ("Parquet", LINE, asked(all, &format("Input", "parquet")), "400 InvalidInput"),
        ("Arrow", LINE, asked(all, &format("Output", "arrow")), "400 InvalidInput"),
        ("no such form", LINE, asked(all, &format("Output", "zip")), "400 InvalidXmlNodeValue"),
        ("no XML", LINE, "SELECT".to_owned(), "400 InvalidXmlDocument"),
        ("pages", "POST cont/pages?comp=query", asked(all, ""), "409 InvalidBlobType"),
        ("nothing there", "POST cont/none?comp=query", asked(all, ""), "404 BlobNotFound"),
    ] {
        table.row(row, stage.call(line, &[], body).said(), expected);
    }
}
