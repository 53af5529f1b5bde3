//! Query Blob Contents: the rows and columns of a blob that a query asks for.
//!
//! The answer is made while the blob is read, so its length is not known before it ends; what is wrong with a record is
//! told in between. What is wrong with the query is told before anything is read.

use std::collections::VecDeque;

use bytes::Bytes;
use engine::{BoxFuture, read};
use query::{Delimited, Input, Output, Query, Run};
use wire::http::{Body, ByteStream, Reply, ReplyBody, StatusCode, collect};
use wire::xml::{QueryFormat, QueryRequest};

use super::Call;
use super::get_blob::ReadBlob;
use crate::download::{self, Piece};
use crate::error::BlobError;
use crate::model::{BlobType, refuse};
use crate::{Failure, reply};

/// The longest query is 256 KiB; the XML around it is short.
const BODY_BYTES_MAX: usize = 512 * 1024;
/// A separator of records is short.
const SEPARATOR_BYTES_MAX: usize = 16;

struct QueryBlobContents {
    read: ReadBlob,
    query: Query,
    input: Input,
    output: Output,
}

fn parse(document: &[u8], read: ReadBlob) -> Result<QueryBlobContents, BlobError> {
    let request = QueryRequest::parse(document)?;
    let input = match request.input {
        None => Input::Delimited(Delimited::default()),
        Some(QueryFormat::Json { .. }) => Input::Json,
        Some(format @ (QueryFormat::Delimited { .. } | QueryFormat::Arrow | QueryFormat::Parquet)) => {
            Input::Delimited(delimited(format)?)
        }
    };
    let output = match request.output {
        None => Output::Delimited(Delimited::default()),
        Some(QueryFormat::Json { record_separator }) => Output::Json { record_separator: separator(record_separator)? },
        Some(format @ (QueryFormat::Delimited { .. } | QueryFormat::Arrow | QueryFormat::Parquet)) => {
            Output::Delimited(delimited(format)?)
        }
    };
    let query = Query::parse(&request.expression).map_err(|error| BlobError::InvalidQuery(error.to_string()))?;
    Ok(QueryBlobContents { read, query, input, output })
}

fn delimited(format: QueryFormat) -> Result<Delimited, BlobError> {
    let not_built = |format: &str| Err(BlobError::InvalidQuery(format!("{format} is not supported here.")));
    match format {
        QueryFormat::Arrow => not_built("Arrow"),
        QueryFormat::Parquet => not_built("Parquet"),
        QueryFormat::Json { .. } => not_built("JSON in the place of delimited text"),
        QueryFormat::Delimited { column_separator, field_quote, record_separator, escape_char, has_headers } => {
            Ok(Delimited {
                column_separator: byte(column_separator, "ColumnSeparator")?.unwrap_or(b','),
                field_quote: byte(field_quote, "FieldQuote")?,
                record_separator: separator(record_separator)?,
                escape: byte(escape_char, "EscapeChar")?,
                has_headers,
            })
        }
    }
}

fn byte(text: Option<String>, node: &'static str) -> Result<Option<u8>, BlobError> {
    match text.unwrap_or_default().as_bytes() {
        [] => Ok(None),
        [byte] if byte.is_ascii() => Ok(Some(*byte)),
        _ => Err(BlobError::InvalidQuery(format!("{node} must be one character of ASCII."))),
    }
}

fn separator(text: Option<String>) -> Result<Vec<u8>, BlobError> {
    let text = text.filter(|text| !text.is_empty()).unwrap_or_else(|| "\n".to_owned());
    if text.len() > SEPARATOR_BYTES_MAX {
        return Err(BlobError::InvalidQuery("RecordSeparator is too long.".to_owned()));
    }
    Ok(text.into_bytes())
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let read_blob = ReadBlob::parse(call.head)?;
    let document = collect(body, BODY_BYTES_MAX).await?;
    let op = parse(&document, read_blob)?;
    let (seen, pieces, now) = read(call.engine, |rows, now| {
        let seen = op.read.look_inside(rows, call.account, now)?;
        if seen.state.kind != BlobType::Block {
            return Err(refuse(BlobError::InvalidBlobType));
        }
        seen.state.check_not_archived(now).map_err(refuse)?;
        let pieces = download::open(rows, &seen.state, None)?;
        Ok((seen, download::unlocked(pieces, op.read.key.as_ref()), now))
    })
    .await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_blob(&mut answer.headers, &seen.state, seen.lease.as_ref(), now);
    let mut first = Vec::new();
    let total = seen.state.length;
    let run = Run::begin(op.query, op.input, op.output, total, mark(&call.head.request_id), &mut first);
    let stream = Answer { pieces, run, first: Some(first.into()), is_done: false };
    answer.headers.insert(wire::http::header::CONTENT_TYPE, reply::value("avro/binary"));
    answer.body = ReplyBody::Open(Box::new(stream));
    Ok(answer)
}

/// What stands between the blocks of the answer: the id of the request, which nobody knew when the blob was written.
fn mark(request_id: &str) -> [u8; 16] {
    let md5 = wire::checksum::Md5::of(request_id.as_bytes());
    md5.map(|byte| byte ^ 0x5a)
}

struct Answer {
    pieces: VecDeque<Piece>,
    run: Run,
    first: Option<Bytes>,
    is_done: bool,
}

impl ByteStream for Answer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async {
            if let Some(first) = self.first.take() {
                return Some(Ok(first));
            }
            let mut out = Vec::new();
            while out.is_empty() && !self.is_done {
                let wanted = if self.run.is_over() { Ok(None) } else { download::next(&mut self.pieces).await };
                match wanted {
                    Ok(Some(bytes)) => self.run.push(&bytes, &mut out),
                    Ok(None) => {
                        self.run.finish(&mut out);
                        self.is_done = true;
                    }
                    Err(error) => return Some(Err(error.to_string())),
                }
            }
            (!out.is_empty()).then(|| Ok(out.into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, header, refusal};
    use service::RequestError;

    const URL: &str = "cont/blob?comp=query";

    fn body(expression: &str, more: &str) -> Vec<u8> {
        let asked = format!("<QueryType>SQL</QueryType><Expression>{expression}</Expression>");
        format!("<QueryRequest>{asked}{more}</QueryRequest>").into_bytes()
    }

    fn format(side: &str, kind: &str) -> String {
        format!("<{side}Serialization><Format><Type>{kind}</Type></Format></{side}Serialization>")
    }

    fn holds(answer: &[u8], text: &[u8]) -> bool {
        answer.windows(text.len()).any(|window| window == text)
    }

    #[tokio::test]
    async fn rows_of_a_large_blob() {
        let bench = Bench::with_container().await;
        let lines: String = (0..100_000).map(|n| format!("{n},{}\n", n % 7)).collect();
        bench.put("cont/blob", lines.as_bytes()).await;
        let asked = body("SELECT COUNT(*), SUM(_1) FROM BlobStorage WHERE _2 = 3", "");
        let answer = bench.call("POST", URL, &[], &asked).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "content-type")), (200, Some("avro/binary")));
        let found = bytes(answer).await;
        assert!(found.starts_with(b"Obj\x01"));
        assert!(holds(&found, b"14286,714307143\n"));
        let limited = body("SELECT _1 FROM BlobStorage LIMIT 2", &format("Output", "json"));
        let found = bytes(bench.call("POST", URL, &[], &limited).await.unwrap()).await;
        assert!(holds(&found, b"{\"_1\":\"0\"}\n{\"_1\":\"1\"}\n"));
    }

    #[tokio::test]
    async fn refusals() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"a,b\n").await;
        bench.put_pages("cont/pages", 512).await;
        let all = "SELECT * FROM BlobStorage";
        for asked in [
            body("SELECT", ""),
            body("DELETE FROM BlobStorage", ""),
            body(all, &format("Input", "parquet")),
            body(all, &format("Output", "arrow")),
        ] {
            let refused = refusal(bench.call("POST", URL, &[], &asked).await);
            assert!(matches!(refused, BlobError::InvalidQuery(_)), "{refused:?}");
        }
        let refused = refusal(bench.call("POST", URL, &[], b"<QueryRequest/>").await);
        assert_eq!(refused, BlobError::Request(RequestError::MissingRequiredXmlNode { node: "QueryType" }));
        let pages = bench.call("POST", "cont/pages?comp=query", &[], &body(all, "")).await;
        assert_eq!(refusal(pages), BlobError::InvalidBlobType);
        let none = bench.call("POST", "cont/none?comp=query", &[], &body(all, "")).await;
        assert_eq!(refusal(none), BlobError::BlobNotFound);
        let stale = bench.call("POST", URL, &[("if-match", "\"0x1\"")], &body(all, "")).await;
        assert_eq!(refusal(stale), BlobError::ConditionNotMet);
    }
}
