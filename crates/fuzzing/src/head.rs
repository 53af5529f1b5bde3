//! A request from text: its line, and headers below it.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use wire::http::{Head, Method, Query};

/// `None` where no HTTP reader would hand it on.
pub fn of(bytes: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    let (method, url) = lines.next()?.split_once(' ')?;
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut pairs = Vec::new();
    for pair in wire::percent::query_pairs(query) {
        let (name, value) = pair.ok()?;
        pairs.push((name.into_owned(), value.into_owned()));
    }
    let mut headers = HeaderMap::new();
    for line in lines.take(100) {
        let (name, value) = line.split_once(':')?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).ok()?;
        headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    Some(Head {
        method: Method::from_bytes(method.as_bytes()).ok()?,
        account: "devstoreaccount1".into(),
        secondary: false,
        resource: wire::percent::decode_path(path).ok()?.into_owned(),
        raw_path: format!("/devstoreaccount1/{path}"),
        query: Query::new(pairs),
        headers,
        endpoint: "http://127.0.0.1:10000/devstoreaccount1".into(),
        version: "2026-10-06".into(),
        request_id: "fuzzing".into(),
        https: false,
    })
}
