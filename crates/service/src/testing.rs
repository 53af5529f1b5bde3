//! What the tests of every service share.

use wire::http::{Head, HeaderMap, HeaderName, HeaderValue, Method, Query};

/// A request of the newest version, with the URL written below the account.
///
/// # Panics
/// If it cannot be sent like that.
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
