//! What `--debug FILE` says of each request: its head, what it asked for, who called, why it was refused, and the head of
//! the answer, in one line. Nothing of it is made without that flag.
//!
//! Secrets are left out: signatures in URLs and headers, tokens, and keys of clients.

use std::fmt::Write as _;
use std::net::SocketAddr;

use auth::{Caller, GrantKind};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use wire::http::ErrorReply;

use crate::access_log::{is_secret, put_query};
use crate::request_id::RequestId;

/// Headers whose value is a secret as a whole. `authorization` is one in part.
const SECRET_HEADERS: [&str; 5] = [
    "x-ms-encryption-key",
    "x-ms-source-encryption-key",
    "x-ms-copy-source-authorization",
    "proxy-authorization",
    "cookie",
];

/// Whether the debug log is on.
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: "request", tracing::Level::DEBUG)
}

/// The head of a request as it is logged, and what must not be: a refusal may tell the client what it has sent.
#[derive(Debug)]
pub(crate) struct LoggedRequest {
    text: String,
    secrets: Vec<String>,
}

/// The head of a request, if the debug log is on. To be called first: the walk takes the head apart.
pub(crate) fn request(parts: &Parts) -> Option<LoggedRequest> {
    is_on().then(|| LoggedRequest { text: request_text(parts), secrets: secrets(parts) })
}

/// The same for a request that came inside another.
pub(crate) fn request_inside(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<LoggedRequest> {
    is_on().then(|| {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (method.clone(), uri.clone(), headers.clone());
        LoggedRequest { text: request_text(&parts), secrets: secrets(&parts) }
    })
}

/// What the request, or the source that it names, is signed in with, as it was sent and as it is read.
fn secrets(parts: &Parts) -> Vec<String> {
    let in_headers = parts.headers.values().filter_map(|value| value.to_str().ok());
    let texts = parts.uri.query().into_iter().chain(in_headers);
    let pairs = texts.flat_map(|text| text.split(['?', '&', '#'])).filter_map(|pair| pair.split_once('='));
    let mut secrets: Vec<String> =
        pairs.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_owned()).collect();
    let decoded = secrets.iter().filter_map(|secret| Some(wire::percent::decode_query(secret).ok()?.into_owned()));
    secrets.extend(decoded.collect::<Vec<_>>());
    let values = parts
        .headers
        .iter()
        .filter(|(name, _)| **name == header::AUTHORIZATION || SECRET_HEADERS.contains(&name.as_str()));
    for value in values.map(|(_, value)| String::from_utf8_lossy(value.as_bytes())) {
        secrets.extend(value.split([' ', ':']).next_back().map(str::to_owned));
    }
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

fn request_text(parts: &Parts) -> String {
    let mut text = format!("{} ", parts.method);
    put_url(&mut text, &parts.uri.to_string());
    let _ = write!(text, " {:?}", parts.version);
    put_headers(&mut text, &parts.headers);
    text
}

/// One line for a request that has its answer.
pub(crate) fn write(
    request: &LoggedRequest,
    id: &RequestId,
    peer: SocketAddr,
    operation: Option<&str>,
    caller: Option<&str>,
    error: Option<&ErrorReply>,
    answer: (StatusCode, &HeaderMap),
) {
    let (operation, caller) = (operation.unwrap_or("unknown"), caller.unwrap_or("unknown"));
    let (request, text) = (&request.text, outcome(&request.secrets, error, answer));
    tracing::debug!(target: "request", "{} from {peer}: {request} operation={operation} caller={caller}{text}", id.as_str());
}

fn outcome(secrets: &[String], error: Option<&ErrorReply>, (status, headers): (StatusCode, &HeaderMap)) -> String {
    let mut text = String::new();
    let without =
        |text: &str| secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "REDACTED"));
    if let Some(error) = error {
        let _ = write!(text, " refused={}: \"", error.code);
        put_value(&mut text, without(&error.message).as_bytes());
        for (name, value) in &error.details {
            let _ = write!(text, "; {name}: ");
            put_value(&mut text, without(value).as_bytes());
        }
        text.push('"');
    }
    let _ = write!(text, " answer={}", status.as_u16());
    put_headers(&mut text, headers);
    text
}

/// The caller, without signatures and tokens.
pub(crate) fn caller_name(caller: &Caller) -> String {
    match caller {
        Caller::Owner => "owner".to_owned(),
        Caller::Anonymous => "anonymous".to_owned(),
        Caller::Bearer(_) => "bearer token".to_owned(),
        Caller::Sas(grant) => match &grant.kind {
            GrantKind::Account { .. } => "account SAS".to_owned(),
            GrantKind::Service(_) => "service SAS".to_owned(),
        },
    }
}

fn put_headers(out: &mut String, headers: &HeaderMap) {
    out.push_str(" {");
    for (at, (name, value)) in headers.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        let _ = write!(out, "{name}: ");
        match name.as_str() {
            name if SECRET_HEADERS.contains(&name) => out.push_str("REDACTED"),
            _ if *name == header::AUTHORIZATION => put_authorization(out, value.as_bytes()),
            _ => put_url(out, &String::from_utf8_lossy(value.as_bytes())),
        }
    }
    out.push('}');
}

/// The scheme, and the account where it is named.
fn put_authorization(out: &mut String, value: &[u8]) {
    let value = String::from_utf8_lossy(value);
    let (scheme, rest) = value.split_once(' ').unwrap_or((&value, ""));
    let is_scheme = scheme.len() <= 20 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_scheme || rest.is_empty() {
        return out.push_str("REDACTED");
    }
    out.push_str(scheme);
    out.push(' ');
    if let (true, Some((account, _))) = (scheme.starts_with("SharedKey"), rest.split_once(':')) {
        put_value(out, account.as_bytes());
        out.push(':');
    }
    out.push_str("REDACTED");
}

/// A text that may have a URL in it, without the signature that the URL may have.
fn put_url(out: &mut String, text: &str) {
    match text.split_once('?') {
        None if text.to_ascii_lowercase().contains("sig=") => put_query(out, text),
        None => put_value(out, text.as_bytes()),
        Some((before, query)) => {
            put_value(out, before.as_bytes());
            out.push('?');
            put_query(out, query);
        }
    }
}

/// Nothing a client sends may end the line, or look as if we had said it.
fn put_value(out: &mut String, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' ' => out.push(' '),
            byte if byte.is_ascii_graphic() => out.push(char::from(*byte)),
            byte => _ = write!(out, "\\x{byte:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_without_its_secrets() {
        let request = http::Request::builder()
            .method("PUT")
            .uri("/acct/box/thing?sv=1&sig=c2VjcmV0%3D&comp=x")
            .header("authorization", "SharedKey acct:c2VjcmV0")
            .header("x-ms-encryption-key", "c2VjcmV0")
            .header("x-ms-copy-source", "http://a/b?sp=r&Sig=c2VjcmV0")
            .header("x-ms-copy-source-authorization", "Bearer c2VjcmV0")
            .header("referer", "sig=c2VjcmV0")
            .header("x-ms-version", "2021-12-02")
            .header("if-match", "\"0x1\"");
        let text = request_text(&request.body(()).unwrap().into_parts().0);
        assert!(!text.contains("c2V"), "{text}");
        for part in [
            "PUT /acct/box/thing?sv=1&sig=REDACTED&comp=x HTTP/1.1 {",
            "authorization: SharedKey acct:REDACTED",
            "x-ms-encryption-key: REDACTED",
            "x-ms-copy-source: http://a/b?sp=r&Sig=REDACTED",
            "x-ms-version: 2021-12-02",
            "if-match: \\\"0x1\\\"",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    /// The service tells a client which signature it has sent, and that can be one that is good at another time.
    #[test]
    fn a_refusal_does_not_repeat_what_was_signed_in_with() {
        let request = http::Request::builder().uri("/a?sig=c2Vj%3Dx").header("authorization", "SharedKey a:c2VjcmV0");
        let request = request.header("x-ms-copy-source", "http://a/b?sv=1&sig=c2Vj%3Dz#x");
        let secrets = secrets(&request.body(()).unwrap().into_parts().0);
        let said =
            "The signature 'c2VjcmV0', or 'c2Vj=x', or 'c2Vj%3Dx', or 'http://a/b?sv=1&sig=c2Vj%3Dz#x', or 'c2Vj=z'";
        let error = ErrorReply::new(403, "AuthenticationFailed", said).detail("AuthenticationErrorDetail", said);
        let text = outcome(&secrets, Some(&error), (StatusCode::FORBIDDEN, &HeaderMap::new()));
        assert!(!text.contains("c2V") && text.contains("signature 'REDACTED'"), "{text}");
    }

    #[test]
    fn other_ways_to_sign_in_say_their_scheme_only() {
        for (value, expected) in [
            ("Bearer c2VjcmV0", "Bearer REDACTED"),
            ("SharedKeyLite acct:c2VjcmV0", "SharedKeyLite acct:REDACTED"),
            ("c2VjcmV0", "REDACTED"),
            ("c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0 x", "REDACTED"),
            ("SharedKey c2VjcmV0", "SharedKey REDACTED"),
        ] {
            let mut out = String::new();
            put_authorization(&mut out, value.as_bytes());
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn why_it_was_refused_and_what_was_answered() {
        let error = ErrorReply::new(403, "AuthenticationFailed", "No.\nReally \"no\".").detail("Reason", "sig");
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-request-id", HeaderValue::from_static("id"));
        let text = outcome(&[], Some(&error), (StatusCode::FORBIDDEN, &headers));
        let expected = " refused=AuthenticationFailed: \"No.\\x0aReally \\\"no\\\".; Reason: sig\" answer=403 {x-ms-request-id: id}";
        assert_eq!(text, expected);
    }
}
