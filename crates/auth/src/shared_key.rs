//! Shared Key and Shared Key Lite: an `Authorization` header signed with an account key.
//!
//! The caller and we each put the same text together from the request and sign it. Clients do not all put it together in
//! the same way, so where more than one way is known, each is tried before the caller is turned away. All ways name the
//! same request, so none of them lets in more than another.

use concurrency::Timestamp;
use http::header::{self, HeaderName};
use wire::dates;

use crate::Request;
use crate::account::Account;
use crate::collation;
use crate::grant::Service;
use crate::refusal::{Fault, Refusal};

/// How far the date of a request may lie from ours, either way.
pub const SKEW_SECONDS_MAX: u64 = 15 * 60;

const DATE: HeaderName = HeaderName::from_static("x-ms-date");
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");

/// The headers that have a line of their own, in the order of the lines.
const LINES: [HeaderName; 11] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    HeaderName::from_static("content-md5"),
    header::CONTENT_TYPE,
    header::DATE,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
];
/// The same for Lite and for tables.
const SHORT_LINES: [HeaderName; 3] = [HeaderName::from_static("content-md5"), header::CONTENT_TYPE, header::DATE];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Full,
    Lite,
}

/// Checks the header: its form, then the signature, then the date.
pub(crate) fn verify(request: &Request<'_>, account: &Account, now: Timestamp) -> Result<(), Refusal> {
    let (scheme, signature) = credentials(request)?;
    refuse_duplicates(request)?;
    verify_signature(request, account, scheme, signature)?;
    verify_date(request, now)
}

fn credentials<'a>(request: &Request<'a>) -> Result<(Scheme, &'a str), Refusal> {
    let mut values = request.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(Refusal::InvalidAuthenticationInfo) };
    let text = value.to_str().map_err(|_| Refusal::InvalidAuthenticationInfo)?;
    let (scheme, rest) = text.trim_ascii().split_once(' ').ok_or(Refusal::InvalidAuthenticationInfo)?;
    let scheme = match scheme {
        "SharedKey" => Scheme::Full,
        "SharedKeyLite" => Scheme::Lite,
        _ => return Err(Refusal::InvalidAuthenticationInfo),
    };
    let (name, signature) = rest.trim_ascii().split_once(':').ok_or(Refusal::InvalidAuthenticationInfo)?;
    if name.is_empty() || signature.is_empty() {
        return Err(Refusal::InvalidAuthenticationInfo);
    }
    if name != request.account {
        return Err(Refusal::other("The account of the Authorization header is not the account of the URL."));
    }
    Ok((scheme, signature))
}

/// A signed header sent twice could be read in two ways.
fn refuse_duplicates(request: &Request<'_>) -> Result<(), Refusal> {
    let signed = |name: &&HeaderName| name.as_str().starts_with("x-ms-") || LINES.contains(name);
    let twice = |name: &&HeaderName| request.headers.get_all(*name).iter().nth(1).is_some();
    match request.headers.keys().filter(signed).find(twice) {
        Some(name) => Err(Refusal::DuplicateHeader(name.as_str().to_owned())),
        None => Ok(()),
    }
}

fn verify_signature(request: &Request<'_>, account: &Account, scheme: Scheme, signature: &str) -> Result<(), Refusal> {
    let bytes = wire::base64::decode_exact::<32>(signature);
    let mut tried: Vec<Vec<u8>> = Vec::new();
    for way in WAYS {
        let Some(text) = string_to_sign(request, scheme, way) else { continue };
        if tried.contains(&text) {
            continue;
        }
        if bytes.is_some_and(|bytes| account.signed(&text, &bytes)) {
            return Ok(());
        }
        tried.push(text);
    }
    let string_to_sign = tried.first().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
    Err(Refusal::AuthenticationFailed(Fault::SharedKeyMismatch { signature: signature.to_owned(), string_to_sign }))
}

fn verify_date(request: &Request<'_>, now: Timestamp) -> Result<(), Refusal> {
    let value = request.headers.get(DATE).or_else(|| request.headers.get(header::DATE));
    let Some(value) = value else { return Err(Refusal::other("There is neither an x-ms-date nor a Date header.")) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let Some(date) = dates::parse_http_date(&text) else {
        return Err(Refusal::other("The date header is not a date."));
    };
    if date.0.abs_diff(now.0) > SKEW_SECONDS_MAX * Timestamp::TICKS_PER_SECOND {
        return Err(Refusal::AuthenticationFailed(Fault::DateTooOld { date: text.into_owned() }));
    }
    Ok(())
}

/// One way to put the text together.
#[derive(Clone, Copy, Debug)]
struct Way {
    order: Order,
    spaces: Spaces,
    secondary: Secondary,
}

/// In which order the `x-ms-` headers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// As the service and its own clients have it.
    Collation,
    /// As older and other clients have it.
    Bytes,
}

/// What becomes of runs of white space in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spaces {
    /// One space outside quotes: the documented form.
    Folded,
    /// Untouched: what many clients do.
    AsSent,
}

/// How the secondary endpoint stands in a path that names the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secondary {
    AsSent,
    Stripped,
}

const WAYS: [Way; 8] = {
    const fn way(order: Order, spaces: Spaces, secondary: Secondary) -> Way {
        Way { order, spaces, secondary }
    }
    [
        way(Order::Collation, Spaces::Folded, Secondary::AsSent),
        way(Order::Bytes, Spaces::Folded, Secondary::AsSent),
        way(Order::Collation, Spaces::AsSent, Secondary::AsSent),
        way(Order::Bytes, Spaces::AsSent, Secondary::AsSent),
        way(Order::Collation, Spaces::Folded, Secondary::Stripped),
        way(Order::Bytes, Spaces::Folded, Secondary::Stripped),
        way(Order::Collation, Spaces::AsSent, Secondary::Stripped),
        way(Order::Bytes, Spaces::AsSent, Secondary::Stripped),
    ]
};

/// The text that is signed, or `None` if there is no such way for this request.
fn string_to_sign(request: &Request<'_>, scheme: Scheme, way: Way) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(512);
    match (scheme, request.service) {
        (Scheme::Full, Service::Blob | Service::Queue | Service::File) => {
            push_line(&mut out, request.method.as_bytes());
            LINES.iter().for_each(|name| push_line(&mut out, line(request, name)));
            push_headers(request, way, &mut out);
            push_path(request, way.secondary, &mut out)?;
            push_query(request, &mut out);
        }
        (Scheme::Lite, Service::Blob | Service::Queue | Service::File) => {
            push_line(&mut out, request.method.as_bytes());
            SHORT_LINES.iter().for_each(|name| push_line(&mut out, line(request, name)));
            push_headers(request, way, &mut out);
            push_path(request, way.secondary, &mut out)?;
            push_comp(request, &mut out);
        }
        (Scheme::Full, Service::Table) => {
            push_line(&mut out, request.method.as_bytes());
            SHORT_LINES.iter().for_each(|name| push_line(&mut out, line(request, name)));
            push_path(request, way.secondary, &mut out)?;
            push_comp(request, &mut out);
        }
        (Scheme::Lite, Service::Table) => {
            push_line(&mut out, line(request, &header::DATE));
            push_path(request, way.secondary, &mut out)?;
            push_comp(request, &mut out);
        }
    }
    Some(out)
}

/// The value that stands on the line of a header; empty if there is none.
fn line<'a>(request: &Request<'a>, name: &HeaderName) -> &'a [u8] {
    let value = |name: &HeaderName| request.headers.get(name).map_or(&b""[..], |value| value.as_bytes().trim_ascii());
    if *name == header::DATE && request.headers.contains_key(DATE) {
        // The line is left empty because the other header is signed anyway; with tables it is not, so it stands here.
        return if request.service == Service::Table { value(&DATE) } else { b"" };
    }
    if *name == header::CONTENT_LENGTH && value(name) == b"0" && since(request, "2015-02-21") {
        return b"";
    }
    value(name)
}

/// Whether the request has this version or a newer one; no version means the newest.
fn since(request: &Request<'_>, version: &str) -> bool {
    request.headers.get(VERSION).is_none_or(|sent| sent.as_bytes() >= version.as_bytes())
}

fn push_line(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(b'\n');
}

fn push_headers(request: &Request<'_>, way: Way, out: &mut Vec<u8>) {
    let named = request.headers.iter().filter(|(name, _)| name.as_str().starts_with("x-ms-"));
    let mut headers: Vec<(&str, &[u8])> =
        named.map(|(name, value)| (name.as_str(), value.as_bytes().trim_ascii())).collect();
    if !since(request, "2016-05-31") {
        headers.retain(|(_, value)| !value.is_empty());
    }
    match way.order {
        Order::Collation => headers.sort_unstable_by(|left, right| collation::compare(left.0, right.0)),
        Order::Bytes => headers.sort_unstable_by_key(|header| header.0),
    }
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        match way.spaces {
            Spaces::Folded => push_folded(value, out),
            Spaces::AsSent => out.extend_from_slice(value),
        }
        out.push(b'\n');
    }
}

fn push_folded(value: &[u8], out: &mut Vec<u8>) {
    let mut quoted = false;
    let mut after_space = false;
    for byte in value {
        quoted ^= *byte == b'"';
        let space = !quoted && byte.is_ascii_whitespace();
        match (space, after_space) {
            (true, true) => {}
            (true, false) => out.push(b' '),
            (false, _) => out.push(*byte),
        }
        after_space = space;
    }
}

/// The account and the path as sent; in path style the account stands there twice.
fn push_path(request: &Request<'_>, secondary: Secondary, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'/');
    out.extend_from_slice(request.account.as_bytes());
    match secondary {
        Secondary::AsSent if request.path.is_empty() => out.push(b'/'),
        Secondary::AsSent => out.extend_from_slice(request.path.as_bytes()),
        Secondary::Stripped => {
            let rest = request.path.strip_prefix('/')?.strip_prefix(request.account)?.strip_prefix("-secondary")?;
            if !request.path_style || !(rest.is_empty() || rest.starts_with('/')) {
                return None;
            }
            out.push(b'/');
            out.extend_from_slice(request.account.as_bytes());
            out.extend_from_slice(rest.as_bytes());
        }
    }
    Some(())
}

/// Every parameter on a line of its own, by name; the values of a repeated one sorted and joined.
fn push_query(request: &Request<'_>, out: &mut Vec<u8>) {
    let mut query: Vec<(String, &str)> =
        request.query.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())).collect();
    query.sort_unstable();
    let mut previous = None;
    for (name, value) in &query {
        if previous == Some(name) {
            out.push(b',');
        } else {
            out.push(b'\n');
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
        }
        out.extend_from_slice(value.as_bytes());
        previous = Some(name);
    }
}

/// The one parameter that Lite and tables sign.
fn push_comp(request: &Request<'_>, out: &mut Vec<u8>) {
    if let Some((_, value)) = request.query.iter().find(|(name, _)| name.eq_ignore_ascii_case("comp")) {
        out.extend_from_slice(b"?comp=");
        out.extend_from_slice(value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{Caller, identify};

    const NOW: &str = "2026-01-02T03:04:05Z";
    const THEN: &str = "Fri, 02 Jan 2026 03:04:05 GMT";

    /// A request in the making.
    struct Asked {
        service: Service,
        method: &'static str,
        path: String,
        path_style: bool,
        query: Vec<(String, String)>,
        headers: http::HeaderMap,
    }

    impl Asked {
        fn new(service: Service, url: &str, pairs_of_headers: &[(&str, &str)]) -> Asked {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let headers = headers(pairs_of_headers);
            Asked { service, method: "GET", path: path.into(), path_style: true, query: pairs(query), headers }
        }

        fn method(self, method: &'static str) -> Asked {
            Asked { method, ..self }
        }

        fn host_style(self) -> Asked {
            Asked { path_style: false, ..self }
        }

        fn request(&self) -> Request<'_> {
            Request {
                service: self.service,
                method: self.method,
                account: NAME,
                path_style: self.path_style,
                path: &self.path,
                query: &self.query,
                headers: &self.headers,
                https: false,
                peer: None,
            }
        }

        fn text(&self, scheme: Scheme) -> String {
            String::from_utf8(string_to_sign(&self.request(), scheme, WAYS[0]).expect("a way")).expect("UTF-8")
        }

        fn authorized(mut self, scheme: &str, signature: &str) -> Asked {
            let value = format!("{scheme} {NAME}:{signature}").parse().expect("a header value");
            self.headers.insert(header::AUTHORIZATION, value);
            self
        }

        fn signed(self, text: &str) -> Asked {
            let signature = key(KEY).sign(text.as_bytes());
            self.authorized("SharedKey", &signature)
        }

        fn outcome(&self) -> Result<Caller, Refusal> {
            identify(&self.request(), &accounts(), at(NOW), |_| None)
        }
    }

    fn list() -> Asked {
        let headers = [("x-ms-version", "2026-06-06"), ("x-ms-date", THEN)];
        Asked::new(Service::Blob, "/devstoreaccount1/cont1?restype=container&comp=list", &headers)
    }

    const LIST: &str = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 02 Jan 2026 03:04:05 GMT\nx-ms-version:2026-06-06\n\
                        /devstoreaccount1/devstoreaccount1/cont1\ncomp:list\nrestype:container";

    #[test]
    fn known_signature_of_a_blob_request() {
        assert_eq!(list().text(Scheme::Full), LIST);
        let asked = list().authorized("SharedKey", "+xWkQ8oR0Y/2IjhX23i7OqwqZhkxoX/zAvcF1A73xis=");
        assert_eq!(asked.outcome(), Ok(Caller::Owner));
    }

    #[test]
    fn known_signatures_of_a_table_request() {
        let tables = || Asked::new(Service::Table, "/devstoreaccount1/Tables", &[("x-ms-date", THEN)]);
        let resource = "/devstoreaccount1/devstoreaccount1/Tables";
        assert_eq!(tables().text(Scheme::Full), format!("GET\n\n\n{THEN}\n{resource}"));
        assert_eq!(tables().text(Scheme::Lite), format!("{THEN}\n{resource}"));
        let full = tables().authorized("SharedKey", "uI33xdkLwKecL7CwSJl9UsJoT0Id6ZgD7gSKCf9y/ic=");
        assert_eq!(full.outcome(), Ok(Caller::Owner));
        let lite = tables().authorized("SharedKeyLite", "WGRvxByQwCznl06S7kopf5idKFGZq/VPEGgmLkRFYmo=");
        assert_eq!(lite.outcome(), Ok(Caller::Owner));
    }

    #[test]
    fn every_line_has_its_place() {
        let asked = Asked::new(
            Service::Blob,
            "/c/a%20b?b=2&A=3&a=1&comp=block",
            &[
                ("content-encoding", "gzip"),
                ("content-language", "en"),
                ("content-length", "11"),
                ("content-md5", "md5"),
                ("content-type", "text/plain"),
                ("date", THEN),
                ("if-modified-since", "ims"),
                ("if-match", "im"),
                ("if-none-match", "inm"),
                ("if-unmodified-since", "ius"),
                ("range", "bytes=0-1"),
                ("x-ms-range", "bytes=2-3"),
                ("x-ms-meta-e", ""),
                ("x-other", "no"),
            ],
        );
        let asked = asked.method("PUT").host_style();
        assert_eq!(
            asked.text(Scheme::Full),
            format!(
                "PUT\ngzip\nen\n11\nmd5\ntext/plain\n{THEN}\nims\nim\ninm\nius\nbytes=0-1\nx-ms-meta-e:\n\
                 x-ms-range:bytes=2-3\n/devstoreaccount1/c/a%20b\na:1,3\nb:2\ncomp:block"
            )
        );
        assert_eq!(
            asked.text(Scheme::Lite),
            format!(
                "PUT\nmd5\ntext/plain\n{THEN}\nx-ms-meta-e:\nx-ms-range:bytes=2-3\n/devstoreaccount1/c/a%20b?comp=block"
            )
        );
    }

    #[test]
    fn older_versions_sign_a_zero_length_and_no_empty_headers() {
        let text = |version| {
            let headers = [("content-length", "0"), ("x-ms-meta-e", ""), ("x-ms-version", version)];
            Asked::new(Service::Blob, "", &headers).host_style().text(Scheme::Full)
        };
        let tail = |version| format!("\n\n\n\n\n\n\n\n\nx-ms-version:{version}\n/devstoreaccount1/");
        assert_eq!(text("2014-02-14"), format!("GET\n\n\n0{}", tail("2014-02-14")));
        assert_eq!(text("2015-02-21"), format!("GET\n\n\n{}", tail("2015-02-21")));
        assert!(text("2016-05-31").contains("\nx-ms-meta-e:\n"));
    }

    #[test]
    fn white_space_is_folded_outside_quotes() {
        let mut out = Vec::new();
        push_folded(b"a \t b  \"c  d\"  e", &mut out);
        assert_eq!(out, b"a b \"c  d\" e");
    }

    #[test]
    fn headers_in_collation_order_or_in_byte_order() {
        let asked = || {
            let headers = [("x-ms-date", THEN), ("x-ms-meta-a-b", "1"), ("x-ms-meta-ab", "2"), ("x-ms-meta-a_b", "3")];
            Asked::new(Service::Blob, "/devstoreaccount1/c", &headers)
        };
        let text = |first: &str| {
            format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{THEN}\n{first}/devstoreaccount1/devstoreaccount1/c")
        };
        let collated = text("x-ms-meta-a_b:3\nx-ms-meta-ab:2\nx-ms-meta-a-b:1\n");
        let by_bytes = text("x-ms-meta-a-b:1\nx-ms-meta-a_b:3\nx-ms-meta-ab:2\n");
        assert_eq!(asked().text(Scheme::Full), collated);
        for text in [collated, by_bytes] {
            assert_eq!(asked().signed(&text).outcome(), Ok(Caller::Owner));
        }
        let neither = text("x-ms-meta-ab:2\nx-ms-meta-a_b:3\nx-ms-meta-a-b:1\n");
        assert!(asked().signed(&neither).outcome().is_err());
    }

    #[test]
    fn spaces_folded_or_as_sent() {
        for value in ["a b", "a  b"] {
            let asked = Asked::new(Service::Blob, "/c", &[("x-ms-date", THEN), ("x-ms-meta-m", "a  b")]).host_style();
            let text = format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{THEN}\nx-ms-meta-m:{value}\n/devstoreaccount1/c");
            assert_eq!(asked.signed(&text).outcome(), Ok(Caller::Owner), "{value:?}");
        }
    }

    #[test]
    fn the_secondary_endpoint_with_and_without_its_suffix() {
        let prefix = format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{THEN}\n");
        let asked = || Asked::new(Service::Blob, "/devstoreaccount1-secondary/c/b", &[("x-ms-date", THEN)]);
        for path in ["/devstoreaccount1-secondary/c/b", "/devstoreaccount1/c/b"] {
            let signed = asked().signed(&format!("{prefix}/devstoreaccount1{path}"));
            assert_eq!(signed.outcome(), Ok(Caller::Owner), "{path}");
        }
        let host_style = asked().host_style().signed(&format!("{prefix}/devstoreaccount1/devstoreaccount1/c/b"));
        assert!(host_style.outcome().is_err());
        let other = Asked::new(Service::Blob, "/devstoreaccount1-secondaryx/c", &[("x-ms-date", THEN)]);
        assert!(other.signed(&format!("{prefix}/devstoreaccount1/devstoreaccount1x/c")).outcome().is_err());
    }

    #[test]
    fn either_key_will_do() {
        let signature = key(OTHER_KEY).sign(LIST.as_bytes());
        assert_eq!(list().authorized("SharedKey", &signature).outcome(), Ok(Caller::Owner));
    }

    #[test]
    fn a_wrong_signature_is_told_what_was_signed() {
        for signature in ["AAAA", "not base64", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
            let fault = Fault::SharedKeyMismatch { signature: signature.into(), string_to_sign: LIST.into() };
            let refused = list().authorized("SharedKey", signature).outcome();
            assert_eq!(refused, Err(Refusal::AuthenticationFailed(fault)));
        }
        let lite = list().authorized("SharedKeyLite", "+xWkQ8oR0Y/2IjhX23i7OqwqZhkxoX/zAvcF1A73xis=");
        assert!(lite.outcome().is_err(), "each scheme has a text of its own");
    }

    #[test]
    fn malformed_headers() {
        for value in
            ["SharedKey", "SharedKey ", "SharedKey a", "SharedKey :s", "SharedKey a:", "Basic YTpi", "", "x y:z"]
        {
            let asked = Asked::new(Service::Blob, "/c", &[("authorization", value)]);
            assert_eq!(asked.outcome(), Err(Refusal::InvalidAuthenticationInfo), "{value:?}");
        }
        let twice = Asked::new(Service::Blob, "/c", &[("authorization", "SharedKey a:b"), ("authorization", "x")]);
        assert_eq!(twice.outcome(), Err(Refusal::InvalidAuthenticationInfo));
        for value in ["SharedKey other:c2ln", "Bearer token"] {
            let refused = Asked::new(Service::Blob, "/c", &[("authorization", value)]).outcome();
            assert!(matches!(refused, Err(Refusal::AuthenticationFailed(Fault::Other(_)))), "{value:?}");
        }
    }

    #[test]
    fn a_signed_header_comes_once() {
        for name in ["x-ms-date", "x-ms-meta-a", "if-match", "content-type", "range"] {
            let mut asked = list().signed(LIST);
            for value in ["1", "2"] {
                asked.headers.append(HeaderName::from_static(name), value.parse().expect("valid"));
            }
            assert_eq!(asked.outcome(), Err(Refusal::DuplicateHeader(name.into())));
        }
        let mut asked = list().signed(LIST);
        for value in ["1", "2"] {
            asked.headers.append("via", value.parse().expect("valid"));
        }
        assert_eq!(asked.outcome(), Ok(Caller::Owner));
    }

    #[test]
    fn the_clock_may_be_a_quarter_of_an_hour_off() {
        let outcome = |now: &str| identify(&list().signed(LIST).request(), &accounts(), at(now), |_| None);
        for now in ["2026-01-02T02:49:05Z", NOW, "2026-01-02T03:19:05Z"] {
            assert_eq!(outcome(now), Ok(Caller::Owner), "{now}");
        }
        for now in ["2026-01-02T02:49:04Z", "2026-01-02T03:19:05.0000001Z", "2027-01-02"] {
            let fault = Fault::DateTooOld { date: THEN.into() };
            assert_eq!(outcome(now), Err(Refusal::AuthenticationFailed(fault)), "{now}");
        }
    }

    #[test]
    fn a_bad_signature_is_found_before_an_old_date() {
        let asked = list().authorized("SharedKey", "AAAA");
        let refused = identify(&asked.request(), &accounts(), at("2027-01-02"), |_| None);
        assert!(matches!(refused, Err(Refusal::AuthenticationFailed(Fault::SharedKeyMismatch { .. }))));
    }

    #[test]
    fn a_date_is_required() {
        let text = "GET\n\n\n\n\n\n\n\n\n\n\n\n/devstoreaccount1/c";
        let asked = Asked::new(Service::Blob, "/c", &[]).host_style().signed(text);
        assert!(matches!(asked.outcome(), Err(Refusal::AuthenticationFailed(Fault::Other(_)))));
        let text = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:today\n/devstoreaccount1/c";
        let asked = Asked::new(Service::Blob, "/c", &[("x-ms-date", "today")]).host_style().signed(text);
        assert!(matches!(asked.outcome(), Err(Refusal::AuthenticationFailed(Fault::Other(_)))));
    }

    #[test]
    fn x_ms_date_wins_over_date() {
        let old = "Fri, 02 Jan 2015 03:04:05 GMT";
        let text = format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{THEN}\n/devstoreaccount1/c");
        let asked = Asked::new(Service::Blob, "/c", &[("date", old), ("x-ms-date", THEN)]).host_style();
        assert_eq!(asked.signed(&text).outcome(), Ok(Caller::Owner));
    }
}
