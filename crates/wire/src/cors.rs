//! CORS: which pages of other origins may read an answer, by the rules in the service properties.
//!
//! The first rule that matches origin and method decides, even if it then refuses the headers; later rules are not
//! tried. The rules do not protect the server: they tell browsers what pages may see. A request that no rule matches is
//! answered like any other, without CORS headers.

use std::fmt::Write as _;

use crate::http::{HeaderMap, HeaderName, HeaderValue, Reply, StatusCode, header};
use crate::xml::CorsRule;

/// Why a preflight is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A required header is missing.
    Missing(&'static str),
    /// There are no rules, or the rule that matches does not allow the request.
    NotAllowed,
}

/// Answers a preflight: may a page of `origin` send this `method` with these `headers`? They are the values of
/// `Origin`, `Access-Control-Request-Method` and `Access-Control-Request-Headers`.
pub fn preflight(
    rules: &[CorsRule],
    origin: Option<&str>,
    method: Option<&str>,
    headers: Option<&str>,
) -> Result<Reply, Refused> {
    let origin = present(origin).ok_or(Refused::Missing("Origin"))?;
    let method = present(method).ok_or(Refused::Missing("Access-Control-Request-Method"))?;
    let headers = headers.unwrap_or_default();
    let rule = first_match(rules, Some(origin), method).map(|(rule, _)| rule);
    let is_allowed = |rule: &&CorsRule| names(headers).all(|name| covers(&rule.allowed_headers, name));
    let rule = rule.filter(is_allowed).ok_or(Refused::NotAllowed)?;
    let mut reply = Reply::new(StatusCode::OK)
        .with("access-control-allow-origin", origin)
        .with("access-control-allow-methods", method)
        .with("access-control-max-age", rule.max_age_seconds.to_string())
        .with("access-control-allow-credentials", "true");
    if !headers.is_empty() {
        reply.set("access-control-allow-headers", headers);
    }
    Ok(reply)
}

/// The CORS headers for the answer to an actual request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actual<'a> {
    pub sharing: Sharing<'a>,
    /// The answer depends on the origin, so caches must store one for each (`Vary: Origin`).
    pub varies: bool,
}

/// Which pages may read an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing<'a> {
    Nobody,
    Everybody(&'a CorsRule),
    /// Pages of the origin that sent the request.
    Origin(&'a str, &'a CorsRule),
}

/// Finds the CORS headers for an actual request; `origin` is the value of `Origin`, if there is one.
///
/// A read without an origin gets them too if every origin is allowed, because a cache may give the answer to a page
/// later.
pub fn actual<'a>(rules: &'a [CorsRule], origin: Option<&'a str>, method: &str) -> Actual<'a> {
    let origin = present(origin);
    let is_read = matches!(method, "GET" | "HEAD");
    let sharing = match (first_match(rules, origin, method), origin) {
        (Some((rule, Origins::Any)), origin) if origin.is_some() || is_read => Sharing::Everybody(rule),
        (Some((rule, Origins::Listed)), Some(origin)) => Sharing::Origin(origin, rule),
        _ => Sharing::Nobody,
    };
    let varies = is_read && !rules.is_empty() && !matches!(sharing, Sharing::Everybody(_));
    Actual { sharing, varies }
}

impl Actual<'_> {
    /// Adds the CORS headers to an answer. The answer's other headers must be complete: a rule may expose all headers
    /// with a certain prefix.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        let rule = match self.sharing {
            Sharing::Nobody => None,
            Sharing::Everybody(rule) => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
                Some(rule)
            }
            Sharing::Origin(origin, rule) => {
                if let Ok(origin) = HeaderValue::from_str(origin) {
                    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                }
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                Some(rule)
            }
        };
        let exposed = rule.map(|rule| exposed(rule, headers)).filter(|names| !names.is_empty());
        if let Some(names) = exposed.and_then(|names| HeaderValue::from_str(&names).ok()) {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
        }
        if self.varies {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
}

/// How a rule matched the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origins {
    Any,
    Listed,
}

fn first_match<'a>(rules: &'a [CorsRule], origin: Option<&str>, method: &str) -> Option<(&'a CorsRule, Origins)> {
    rules.iter().filter(|rule| rule.allowed_methods.iter().any(|allowed| allowed == method)).find_map(|rule| {
        if rule.allowed_origins.iter().any(|allowed| allowed == "*") {
            return Some((rule, Origins::Any));
        }
        let listed = origin.is_some_and(|origin| rule.allowed_origins.iter().any(|allowed| is_origin(allowed, origin)));
        listed.then_some((rule, Origins::Listed))
    })
}

/// Whether a rule's origin matches, case-sensitively. A star stands for one or more labels of the host:
/// `https://*.example.com`.
fn is_origin(allowed: &str, origin: &str) -> bool {
    let Some((before, after)) = allowed.split_once('*') else { return allowed == origin };
    let middle = origin.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    middle.is_some_and(|labels| {
        !labels.is_empty() && labels.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    })
}

/// Whether a rule's list of header names contains this header. An element may be a name, a prefix with a star, or only
/// a star.
fn covers(list: &[String], name: &str) -> bool {
    list.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => allowed.eq_ignore_ascii_case(name),
    })
}

fn names(headers: &str) -> impl Iterator<Item = &str> {
    headers.split(',').map(str::trim_ascii).filter(|name| !name.is_empty())
}

/// The rule's exposed names, then the answer's headers that match one of its prefixes.
fn exposed(rule: &CorsRule, headers: &HeaderMap) -> String {
    let (prefixes, literals): (Vec<_>, Vec<_>) = rule.exposed_headers.iter().partition(|name| name.ends_with('*'));
    let mut list = literals.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",");
    let is_prefixed = |name: &&HeaderName| {
        let listed = literals.iter().any(|literal| literal.eq_ignore_ascii_case(name.as_str()));
        !listed && prefixes.iter().any(|prefix| covers(std::slice::from_ref(prefix), name.as_str()))
    };
    for name in headers.keys().filter(is_prefixed) {
        let comma = if list.is_empty() { "" } else { "," };
        _ = write!(list, "{comma}{name}");
    }
    list
}

fn present(value: Option<&str>) -> Option<&str> {
    value.map(str::trim_ascii).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str, methods: &str, headers: &str, exposed: &str) -> CorsRule {
        let list = |text: &str| names(text).map(str::to_owned).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(headers),
            exposed_headers: list(exposed),
            max_age_seconds: 60,
        }
    }

    fn is_allowed(rules: &[CorsRule], origin: &str, method: &str, headers: &str) -> bool {
        match preflight(rules, Some(origin), Some(method), Some(headers)) {
            Ok(_) => true,
            Err(refused) => {
                assert_eq!(refused, Refused::NotAllowed);
                false
            }
        }
    }

    fn printed(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect();
        lines.sort();
        lines
    }

    #[test]
    fn a_preflight_that_matches_repeats_what_was_asked_for() {
        let rules = [rule("http://a,http://b", "GET,PUT", "x-ms-meta-*,Content-Type", "")];
        let reply =
            preflight(&rules, Some("http://b"), Some("PUT"), Some("x-ms-meta-k, content-type")).expect("allowed");
        assert_eq!(reply.status, StatusCode::OK);
        assert_eq!(
            printed(&reply.headers),
            [
                "access-control-allow-credentials: true",
                "access-control-allow-headers: x-ms-meta-k, content-type",
                "access-control-allow-methods: PUT",
                "access-control-allow-origin: http://b",
                "access-control-max-age: 60",
            ]
        );
        let reply = preflight(&rules, Some("http://a"), Some("GET"), None).expect("allowed");
        assert!(!reply.headers.contains_key("access-control-allow-headers"));
    }

    #[test]
    fn a_preflight_needs_its_two_headers() {
        let rules = [rule("*", "GET", "*", "")];
        for (origin, method) in [(None, Some("GET")), (Some("http://a"), None), (Some(" "), Some("GET")), (None, None)]
        {
            let refused = preflight(&rules, origin, method, None).expect_err("refused");
            assert!(matches!(refused, Refused::Missing(_)), "{origin:?} {method:?}");
        }
    }

    #[test]
    fn a_preflight_that_does_not_match_is_refused() {
        let refused = preflight(&[], Some("http://a"), Some("GET"), None).expect_err("refused");
        assert_eq!(refused, Refused::NotAllowed);
        let rules = [rule("http://a", "GET", "x-ms-meta-*,x-one", "")];
        for (origin, method, headers, expected) in [
            ("http://a", "GET", "", true),
            ("http://a", "GET", "X-MS-Meta-Key,X-ONE", true),
            ("http://a", "GET", " , ", true),
            ("HTTP://A", "GET", "", false),
            ("http://a:80", "GET", "", false),
            ("http://ab", "GET", "", false),
            ("http://a", "PUT", "", false),
            ("http://a", "get", "", false),
            ("http://a", "GET", "x-two", false),
            ("http://a", "GET", "x-one,x-two", false),
            ("http://a", "GET", "x-one-more", false),
            ("http://a", "GET", "x-ms-met", false),
        ] {
            assert_eq!(is_allowed(&rules, origin, method, headers), expected, "{origin} {method} {headers}");
        }
    }

    #[test]
    fn the_first_rule_for_origin_and_method_decides() {
        let rules = [rule("http://a", "GET", "x-one", ""), rule("*", "GET,PUT", "*", "")];
        assert!(!is_allowed(&rules, "http://a", "GET", "x-two"));
        assert!(is_allowed(&rules, "http://a", "PUT", "x-two"));
        assert!(is_allowed(&rules, "http://b", "GET", "x-two"));
    }

    #[test]
    fn a_star_in_an_origin_stands_for_labels() {
        for (origin, expected) in [
            ("https://x.example.com", true),
            ("https://x.y.example.com", true),
            ("https://example.com", false),
            ("https://.example.com", false),
            ("http://x.example.com", false),
            ("https://x.example.com:8080", false),
            ("https://evil/.example.com", false),
            ("https://evil#.example.com", false),
            ("https://user@x.example.com", false),
            ("https://x.EXAMPLE.com", false),
        ] {
            assert_eq!(is_origin("https://*.example.com", origin), expected, "{origin}");
        }
    }

    /// The published table: the origin sent, the rules; then whether the answer varies, the allowed origin, and whether
    /// headers are exposed.
    #[test]
    fn the_table_of_vary() {
        let none: &[CorsRule] = &[];
        let exact: &[CorsRule] = &[rule("http://a", "GET,HEAD", "", "x-e")];
        let star: &[CorsRule] = &[rule("*", "GET,HEAD", "", "x-e")];
        let table = [
            (None, none, false, None, false),
            (Some("http://a"), none, false, None, false),
            (None, exact, true, None, false),
            (None, star, false, Some("*"), true),
            (Some("http://a"), exact, true, Some("http://a"), true),
            (Some("http://b"), exact, true, None, false),
            (Some("http://a"), star, false, Some("*"), true),
        ];
        for (origin, rules, varies, allowed, exposes) in table {
            for method in ["GET", "HEAD"] {
                let mut headers = HeaderMap::new();
                actual(rules, origin, method).add_to(&mut headers);
                let text = |name: &str| headers.get(name).map(|value| value.to_str().expect("text"));
                let case = format!("{origin:?} {rules:?}");
                assert_eq!(text("vary"), varies.then_some("Origin"), "{case}");
                assert_eq!(text("access-control-allow-origin"), allowed, "{case}");
                assert_eq!(text("access-control-expose-headers"), exposes.then_some("x-e"), "{case}");
                let credentials = allowed.filter(|origin| *origin != "*").map(|_| "true");
                assert_eq!(text("access-control-allow-credentials"), credentials, "{case}");
            }
        }
    }

    #[test]
    fn writes_never_vary_and_are_shared_with_an_origin_only() {
        let star = [rule("*", "PUT", "", "")];
        assert_eq!(actual(&star, None, "PUT"), Actual { sharing: Sharing::Nobody, varies: false });
        let shared = Actual { sharing: Sharing::Everybody(&star[0]), varies: false };
        assert_eq!(actual(&star, Some("http://a"), "PUT"), shared);
        let exact = [rule("http://a", "PUT", "", "")];
        let shared = Actual { sharing: Sharing::Origin("http://a", &exact[0]), varies: false };
        assert_eq!(actual(&exact, Some("http://a"), "PUT"), shared);
        assert_eq!(actual(&exact, Some("http://b"), "PUT").sharing, Sharing::Nobody);
        let other_method = actual(&exact, Some("http://a"), "GET");
        assert_eq!(other_method, Actual { sharing: Sharing::Nobody, varies: true });
    }

    #[test]
    fn a_prefix_exposes_the_headers_that_are_there() {
        let rules = [rule("*", "GET", "", "ETag,x-ms-meta-*,x-ms-meta-a")];
        let mut headers = HeaderMap::new();
        for name in ["x-ms-meta-a", "x-ms-meta-b", "etag", "server"] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        actual(&rules, None, "GET").add_to(&mut headers);
        assert_eq!(headers["access-control-expose-headers"], "ETag,x-ms-meta-a,x-ms-meta-b");
        assert_eq!(headers.get_all(header::VARY).iter().count(), 1, "what was there stays");
        let rules = [rule("http://a", "GET", "", "")];
        actual(&rules, None, "GET").add_to(&mut headers);
        assert_eq!(headers.get_all(header::VARY).iter().count(), 2);
    }
}
