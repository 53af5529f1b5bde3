//! Pages of other sites, as browsers ask for them.

mod support;

use support::{Answer, Client, Running, raw, sas_for, signed, start, with_query};

/// Origins, methods, allowed headers and exposed headers of a rule.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a str);

fn set(client: &mut Client, rules: &[Rule<'_>]) {
    let rules = rules.iter().map(|(origins, methods, allowed, exposed)| {
        format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
             <AllowedHeaders>{allowed}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>\
             <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
        )
    });
    let rules: String = rules.collect();
    let document = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    let answer = client.ask(&signed("PUT", "/acct?restype=service&comp=properties", "", document.as_bytes()));
    assert_eq!(answer.status, 202, "{}", answer.text());
}

fn with_rules(rules: &[Rule<'_>]) -> (Running, Client) {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    set(&mut client, rules);
    (server, client)
}

fn lines(origin: &str, method: &str, headers: &str) -> String {
    [("Origin", origin), ("Access-Control-Request-Method", method), ("Access-Control-Request-Headers", headers)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect()
}

#[test]
fn preflights() {
    let (_server, mut client) = with_rules(&[
        ("http://a,https://*.example.com", "GET,PUT", "x-ms-*,content-type", "x-ms-*"),
        ("*", "GET", "x-other", ""),
    ]);
    let fail = (403, "CorsPreflightFailure");
    let bad = (400, "InvalidHeaderValue");
    for (origin, method, headers, expected) in [
        ("http://a", "PUT", "x-ms-blob-type,Content-Type", (200, "")),
        ("http://a", "GET", "", (200, "")),
        ("https://x.example.com", "PUT", "", (200, "")),
        ("http://b", "GET", "x-other", (200, "")),
        ("http://b", "PUT", "", fail),
        ("http://A", "PUT", "", fail),
        ("http://a", "DELETE", "", fail),
        // The first rule that matches decides.
        ("http://a", "GET", "x-other", fail),
        ("", "GET", "", bad),
        ("http://a", "", "", bad),
        ("", "", "", bad),
    ] {
        // Whether there is anything makes no difference, and neither do credentials, good or bad.
        for target in ["/acct/box/thing", "/acct/none/none", "/acct", "/acct/box/thing?sig=x", "/acct?comp=nonsense"] {
            let answer = client.ask(&raw("OPTIONS", target, &lines(origin, method, headers), b""));
            assert_eq!((answer.status, answer.code()), expected, "{origin} {method} {headers} at {target}");
            let told = |name| answer.header(name);
            if answer.status == 200 {
                assert_eq!(told("access-control-allow-origin"), origin);
                assert_eq!(told("access-control-allow-methods"), method);
                assert_eq!(told("access-control-allow-headers"), headers);
                assert_eq!(told("access-control-max-age"), "60");
                assert_eq!(told("access-control-allow-credentials"), "true");
                assert_eq!(answer.body, b"");
            } else {
                assert_eq!(told("access-control-allow-origin"), "");
            }
        }
    }
    let authorized = format!("{}Authorization: nonsense\r\n", lines("http://a", "GET", ""));
    assert_eq!(client.ask(&raw("OPTIONS", "/acct/box/thing", &authorized, b"")).status, 200);
    let unknown = client.ask(&raw("OPTIONS", "/nobody/box", &lines("http://a", "GET", ""), b""));
    assert_eq!((unknown.status, unknown.code()), (404, "ResourceNotFound"));
}

#[test]
fn without_rules_there_are_no_headers_and_no_preflights() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let answer = client.ask(&raw("OPTIONS", "/acct/box/thing", &lines("http://a", "GET", ""), b""));
    assert_eq!((answer.status, answer.code()), (403, "CorsPreflightFailure"));
    let answer = client.ask(&signed("GET", "/acct/box/thing", "Origin: http://a\r\n", b""));
    assert_eq!(shared(&answer), ("", "", "", ""));
}

/// Allowed origin, credentials, exposed headers, and what the answer varies with.
fn shared(answer: &Answer) -> (&str, &str, &str, &str) {
    let header = |name| answer.header(name);
    (
        header("access-control-allow-origin"),
        header("access-control-allow-credentials"),
        header("access-control-expose-headers"),
        header("vary"),
    )
}

/// The published table, and writes.
#[test]
fn actual_requests() {
    let exact = ("http://a", "GET,HEAD,PUT", "", "x-e");
    let star = ("*", "GET,HEAD,PUT", "", "x-e");
    let (_server, mut client) = with_rules(&[]);
    let (of_a, nobody) = (("http://a", "true", "x-e", "Origin"), ("", "", "", ""));
    for (rules, origin, method, expected) in [
        (&[][..], "", "GET", nobody),
        (&[], "http://a", "GET", nobody),
        (&[exact], "", "GET", ("", "", "", "Origin")),
        (&[star], "", "GET", ("*", "", "x-e", "")),
        (&[exact], "http://a", "GET", of_a),
        (&[exact], "http://a", "HEAD", of_a),
        (&[exact], "http://b", "GET", ("", "", "", "Origin")),
        (&[star], "http://a", "GET", ("*", "", "x-e", "")),
        (&[exact, star], "http://a", "GET", of_a),
        (&[exact, star], "http://b", "GET", ("*", "", "x-e", "")),
        (&[exact], "http://a", "PUT", ("http://a", "true", "x-e", "")),
        (&[exact], "http://b", "PUT", nobody),
        (&[star], "", "PUT", nobody),
        (&[star], "http://a", "PUT", ("*", "", "x-e", "")),
        (&[exact], "http://a", "DELETE", nobody),
    ] {
        set(&mut client, rules);
        let headers = format!("{}x-ms-blob-type: BlockBlob\r\n", lines(origin, "", ""));
        // The same on answers of every kind: a page must be able to read why it was refused.
        for (target, credentials) in [
            ("/acct/box/thing", sas_for("rwcd")),
            ("/acct/box/none?snapshot=nonsense", sas_for("rwcd")),
            ("/acct/box/thing", sas_for("l")),
            ("/acct/box/thing", "sig=x".to_owned()),
            ("/acct/box/thing?comp=nonsense", sas_for("rwcd")),
        ] {
            let answer = client.ask(&raw(method, &with_query(target, &credentials), &headers, b""));
            assert_eq!(shared(&answer), expected, "{rules:?} {origin} {method}: {} {}", answer.status, answer.code());
        }
        if method == "DELETE" {
            assert_eq!(client.ask(&support::put_blob("/acct/box/thing", b"hello")).status, 201);
        }
    }
}

#[test]
fn a_prefix_exposes_what_every_answer_carries_too() {
    let (_server, mut client) = with_rules(&[("*", "GET", "", "x-ms-*")]);
    let answer = client.ask(&signed("GET", "/acct/box/none", "Origin: http://a\r\n", b""));
    assert_eq!((answer.status, answer.code()), (404, "BlobNotFound"));
    let exposed: Vec<&str> = answer.header("access-control-expose-headers").split(',').collect();
    for name in ["x-ms-request-id", "x-ms-version", "x-ms-error-code"] {
        assert!(exposed.contains(&name), "{exposed:?}");
    }
}
