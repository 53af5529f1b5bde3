//! What the tests of all services share: requests from text, answers as text, and steps of the engine.

use std::fmt::Debug;

use engine::Engine;
use engine::collector::{self, Handler};
use wire::http::{Head, HeaderMap, HeaderName, HeaderValue, Method, Query, Reply, ReplyBody};

use crate::Failure;

/// A request of the newest version, with the URL written below the account.
///
/// # Panics
/// If it is not a valid request.
#[must_use]
pub fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> Head {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let pairs = wire::percent::query_pairs(query).map(|pair| pair.expect("a query"));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        map.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    Head {
        method: Method::from_bytes(method.as_bytes()).expect("a method"),
        account: "acct".into(),
        secondary: false,
        resource: wire::percent::decode_path(path).expect("a path").into_owned(),
        raw_path: format!("/acct/{path}"),
        query: Query::new(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()),
        headers: map,
        endpoint: "http://127.0.0.1:10000/acct".into(),
        version: "2026-10-06".into(),
        request_id: "test".into(),
        https: false,
    }
}

/// A header of an answer, as text.
///
/// # Panics
/// If the header is not text.
#[must_use]
pub fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.get(name).map(|value| value.to_str().expect("a header of text"))
}

/// The whole body of an answer.
///
/// # Panics
/// If the body ends early, or has another length than it said.
pub async fn bytes(reply: Reply) -> Vec<u8> {
    let (length, mut stream) = match reply.body {
        ReplyBody::Empty => return Vec::new(),
        ReplyBody::Bytes(bytes) => return bytes.to_vec(),
        ReplyBody::Open(stream) => (None, stream),
        ReplyBody::Stream { length, stream } => (Some(length), stream),
    };
    let mut whole = Vec::new();
    while let Some(bytes) = stream.next().await {
        whole.extend_from_slice(&bytes.expect("the body goes on"));
    }
    assert!(length.is_none_or(|length| length == whole.len() as u64), "{} bytes came, not {length:?}", whole.len());
    whole
}

/// The whole body of an answer, as text.
///
/// # Panics
/// If it is not text.
pub async fn text(reply: Reply) -> String {
    String::from_utf8(bytes(reply).await).expect("text")
}

/// The refusal that a request was answered with.
///
/// # Panics
/// If there was another answer.
pub fn refusal<T: Debug, E: Debug>(result: Result<T, Failure<E>>) -> E {
    match result {
        Err(Failure::Refused(error)) => error,
        other => panic!("not a refusal: {other:?}"),
    }
}

/// All texts that stand between `before` and `after` in a document.
#[must_use]
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(inner, _)| inner).collect()
}

/// Does everything that is due now, and what that makes due.
///
/// # Panics
/// If the engine fails.
pub async fn sweep(engine: &dyn Engine, handlers: &[&dyn Handler]) {
    while collector::sweep(engine, handlers).await.expect("a sweep") > 0 {}
}

/// One of the engine's figures, by its name.
///
/// # Panics
/// If the engine does not have it.
#[must_use]
pub fn figure(engine: &dyn Engine, name: &str) -> u64 {
    engine.figures().iter().find(|(known, _)| *known == name).expect("a figure of the engine").1
}
