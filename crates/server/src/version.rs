//! Which version of the protocol a request runs under.
//!
//! Clients send versions newer than any server knows, so every date is taken; only what is no date, from before the
//! service spoke HTTP as it does now, or from a far future is refused.

use http::{HeaderMap, HeaderValue};
use wire::http::{ErrorReply, Query, find};

use crate::service::Service;

/// The newest version whose behaviour we know; what a request without a version gets.
pub const NEWEST: &str = "2026-10-06";
const LAST: &str = "2098-12-31";

/// `x-ms-version`; without it what a shared access signature says (`api-version`, then `sv`); without that the newest.
pub(crate) fn of(headers: &HeaderMap, query: &Query, service: Service) -> Result<HeaderValue, ErrorReply> {
    if let Some(sent) = find(headers, "x-ms-version") {
        return if is_spoken(sent.as_bytes(), service) { Ok(sent.clone()) } else { Err(bad_header(sent)) };
    }
    if let Some(sent) = query.get("api-version") {
        let value = HeaderValue::from_str(sent).ok().filter(|_| is_spoken(sent.as_bytes(), service));
        return value.ok_or_else(|| bad_query(sent));
    }
    // Whether `sv` is any good is for the signature check to say.
    let signed = query.get("sv").filter(|version| is_spoken(version.as_bytes(), service));
    Ok(signed.and_then(|version| HeaderValue::from_str(version).ok()).unwrap_or(HeaderValue::from_static(NEWEST)))
}

/// The text of a version that [`of`] returned.
pub(crate) fn text(version: &HeaderValue) -> &str {
    version.to_str().unwrap_or(NEWEST)
}

fn is_spoken(version: &[u8], service: Service) -> bool {
    let is_date = version.len() == 10
        && version
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() })
        && (b"01".as_slice()..=b"12".as_slice()).contains(&&version[5..7])
        && (b"01".as_slice()..=b"31".as_slice()).contains(&&version[8..10]);
    is_date && version >= service.oldest_version().as_bytes() && version <= LAST.as_bytes()
}

fn bad_header(sent: &HeaderValue) -> ErrorReply {
    ErrorReply::new(400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
        .detail("HeaderName", "x-ms-version")
        .detail("HeaderValue", String::from_utf8_lossy(sent.as_bytes()))
}

fn bad_query(sent: &str) -> ErrorReply {
    let message = "Value for one of the query parameters specified in the request URI is invalid.";
    ErrorReply::new(400, "InvalidQueryParameterValue", message)
        .detail("QueryParameterName", "api-version")
        .detail("QueryParameterValue", sent)
        .detail("Reason", "This version is not spoken here.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(header: Option<&str>, query: &str) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("x-ms-version", header.parse().unwrap());
        }
        let query = crate::target::query(&format!("/?{query}").parse().unwrap()).unwrap();
        of(&headers, &query, Service::Blob).map(|version| text(&version).to_owned()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn every_date_between_the_first_and_the_last_is_spoken() {
        for sent in ["2009-09-19", "2019-02-02", "2021-12-02", "2026-12-06", "2098-12-31"] {
            assert_eq!(version(Some(sent), ""), Ok(sent.to_owned()));
        }
    }

    #[test]
    fn what_is_no_date_or_out_of_range_is_refused() {
        for sent in [
            "",
            "latest",
            "2009-09-18",
            "2008-10-27",
            "2099-01-01",
            "2021-13-01",
            "2021-00-01",
            "2021-01-32",
            "2021-1-01",
            "2021/12/02",
            "2021-12-02 ",
            "20211202",
        ] {
            assert_eq!(version(Some(sent.trim_end()), "").is_err(), sent != "2021-12-02 ", "{sent:?}");
        }
        assert_eq!(version(Some("x"), ""), Err("InvalidHeaderValue"));
        assert_eq!(version(None, "api-version=x"), Err("InvalidQueryParameterValue"));
    }

    #[test]
    fn what_stands_in_for_the_header() {
        assert_eq!(version(None, ""), Ok(NEWEST.to_owned()));
        assert_eq!(version(None, "sv=2019-12-12"), Ok("2019-12-12".to_owned()));
        assert_eq!(version(None, "sv=2019-12-12&api-version=2020-02-10"), Ok("2020-02-10".to_owned()));
        assert_eq!(version(Some("2021-12-02"), "sv=2019-12-12&api-version=x"), Ok("2021-12-02".to_owned()));
        assert_eq!(version(None, "sv=x"), Ok(NEWEST.to_owned()));
    }

    #[test]
    fn the_file_service_is_younger() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-version", HeaderValue::from_static("2012-02-12"));
        assert!(of(&headers, &Query::default(), Service::File).is_err());
        assert!(of(&headers, &Query::default(), Service::Queue).is_ok());
    }
}
