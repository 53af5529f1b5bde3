//! Query Blob Contents: the rows and columns of a blob that a query asks for.
//!
//! The answer is made while the blob is read, so its length is not known before it ends; what is wrong with a record is
//! told in between. What is wrong with the query is told before anything is read.
//!
//! Queries compute, so they run beside the threads that serve requests, a turn at a time, and only so many at once.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use content::pieces::{self, Piece};
use engine::{BoxFuture, EngineError, read};
use query::{Delimited, Input, Output, Query, Run};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use wire::http::{Body, ByteStream, Reply, ReplyBody, StatusCode, collect};
use wire::xml::{QueryFormat, QueryRequest};

use super::Call;
use super::get_blob::ReadBlob;
use crate::download;
use crate::error::BlobError;
use crate::model::{BlobType, refuse};
use crate::{Failure, reply};

/// The longest query is 256 KiB; the XML around it is short.
const BODY_BYTES_MAX: usize = 512 * 1024;
/// A separator of records is short.
const SEPARATOR_BYTES_MAX: usize = 16;
/// Queries at once in this process, until their answers are sent. Each may hold some 40 MB in the worst case; who comes
/// when all places are taken is told to come again.
const QUERIES_MAX: usize = 32;

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(QUERIES_MAX)));

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
    // Before the query is read: a tree takes more room than its text.
    let place = enter(&PLACES)?;
    let op = parse(&document, read_blob)?;
    let (looked, account) = (op.read, call.account);
    let (seen, pieces, now) = read(call.engine, move |rows, now| {
        let seen = looked.look_inside(rows, account, now)?;
        if seen.state.kind != BlobType::Block {
            return Err(refuse(BlobError::InvalidBlobType));
        }
        seen.state.check_not_archived(now).map_err(refuse)?;
        let pieces = download::open(rows, &seen.state, None)?;
        Ok((seen, pieces::unlocked(pieces, looked.key.as_ref().map(|key| &key.secret)), now))
    })
    .await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_blob(&mut answer.headers, &seen.state, seen.lease.as_ref(), now);
    let mut first = Vec::new();
    let total = seen.state.length;
    let run = Run::begin(op.query, op.input, op.output, total, mark(&call.head.request_id), &mut first);
    let work = Work { run, bytes: Bytes::new(), is_done: false, _place: place };
    let stream = Answer { pieces, first: Some(first.into()), work: Some(work) };
    answer.headers.insert(wire::http::header::CONTENT_TYPE, reply::value("avro/binary"));
    answer.body = ReplyBody::Open(Box::new(stream));
    Ok(answer)
}

fn enter(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, EngineError> {
    Arc::clone(places).try_acquire_owned().map_err(|_| EngineError::Busy)
}

/// What stands between the blocks of the answer: the id of the request, which nobody knew when the blob was written.
fn mark(request_id: &str) -> [u8; 16] {
    let md5 = wire::checksum::Md5::of(request_id.as_bytes());
    md5.map(|byte| byte ^ 0x5a)
}

struct Answer {
    pieces: VecDeque<Piece>,
    first: Option<Bytes>,
    /// `None`: the last turn was lost.
    work: Option<Work>,
}

/// What a turn needs, and keeps its place until it is done even if nobody waits for it any more.
struct Work {
    run: Run,
    /// Of the blob, not yet taken.
    bytes: Bytes,
    is_done: bool,
    _place: OwnedSemaphorePermit,
}

impl Work {
    /// Takes some of the bytes, or ends the answer if there are none.
    fn turn(mut self) -> (Work, Vec<u8>) {
        let mut out = Vec::new();
        if self.bytes.is_empty() {
            self.run.finish(&mut out);
            self.is_done = true;
        } else {
            let mut rest: &[u8] = &self.bytes;
            self.run.push(&mut rest, &mut out);
            let rest = rest.len();
            self.bytes = self.bytes.split_off(self.bytes.len() - rest);
        }
        (self, out)
    }
}

impl Answer {
    /// The next bytes of the answer; empty at its end.
    async fn bytes(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let mut work = self.work.take().ok_or("the query was lost")?;
            if work.is_done {
                self.work = Some(work);
                return Ok(Vec::new());
            }
            if work.bytes.is_empty() && !work.run.is_over() {
                let next = pieces::next(&mut self.pieces).await.map_err(|error| error.to_string())?;
                work.bytes = next.unwrap_or_default();
            }
            let (work, out) = spawn_blocking(|| work.turn()).await.map_err(|error| error.to_string())?;
            self.work = Some(work);
            if !out.is_empty() {
                return Ok(out);
            }
        }
    }
}

impl ByteStream for Answer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async {
            if let Some(first) = self.first.take() {
                return Some(Ok(first));
            }
            match self.bytes().await {
                Ok(out) => (!out.is_empty()).then(|| Ok(out.into())),
                Err(error) => Some(Err(error)),
            }
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

    #[test]
    fn only_so_many_run_at_once() {
        let places = Arc::new(Semaphore::new(2));
        let held = [enter(&places).unwrap(), enter(&places).unwrap()];
        assert!(matches!(enter(&places), Err(EngineError::Busy)));
        drop(held);
        assert!(enter(&places).is_ok());
    }

    /// As large as the answer to a record may be, and with more turns than pieces.
    #[tokio::test]
    async fn hostile_queries_get_an_answer() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", "x".repeat(1024 * 1024 - 1).as_bytes()).await;
        let columns = vec!["_1"; 300].join(",");
        let like = format!("'%_{}b%'", "x".repeat(100_000));
        for (query, expected) in [
            (format!("SELECT {columns} FROM BlobStorage"), "RowTooLong"),
            (format!("SELECT * FROM BlobStorage WHERE _1 LIKE {like}"), "QueryTooComplex"),
        ] {
            let found = bytes(bench.call("POST", URL, &[], &body(&query, "")).await.unwrap()).await;
            assert!(holds(&found, expected.as_bytes()));
            assert!(found.len() < 100_000, "{}", found.len());
        }
        for deep in ["(", "NOT ", "COALESCE("] {
            let query = format!("SELECT * FROM BlobStorage WHERE {}{}", "1+".repeat(70), deep.repeat(2_000));
            let refused = refusal(bench.call("POST", URL, &[], &body(&query, "")).await);
            assert!(matches!(refused, BlobError::InvalidQuery(_)), "{refused:?}");
        }
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
