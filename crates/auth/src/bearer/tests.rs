mod tokens;

use super::*;
use crate::testing::*;
use crate::{Caller, Identifier};

const NOW: &str = "2026-01-02T03:04:05Z";
const OID: &str = "11111111-1111-1111-1111-111111111111";
const TID: &str = "22222222-2222-2222-2222-222222222222";

/// A request in the making, with a token.
struct Asked {
    service: Service,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
    https: bool,
}

impl Asked {
    fn with(token: &str) -> Asked {
        let authorization = format!("Bearer {token}");
        let headers = headers(&[("authorization", &authorization), ("x-ms-version", "2021-12-02")]);
        Asked { service: Service::Blob, query: Vec::new(), headers, https: true }
    }

    fn service(self, service: Service) -> Asked {
        Asked { service, ..self }
    }

    fn header(mut self, name: &'static str, value: &str) -> Asked {
        self.headers.insert(name, value.parse().expect("a header value"));
        self
    }

    fn version(self, version: &str) -> Asked {
        self.header("x-ms-version", version)
    }

    fn outcome(&self, tokens: &Tokens, now: &str) -> Result<Caller, Refusal> {
        let request = Request {
            service: self.service,
            method: "GET",
            account: NAME,
            path_style: true,
            path: "/devstoreaccount1/c/b",
            query: &self.query,
            headers: &self.headers,
            https: self.https,
            peer: None,
        };
        Identifier::new(&accounts()).tokens(tokens).identify(&request, at(now), |_| None)
    }

    fn fault(&self, tokens: &Tokens, now: &str) -> Result<Caller, TokenFault> {
        self.outcome(tokens, now).map_err(|refusal| match refusal {
            Refusal::InvalidToken { fault, challenge: true } => fault,
            other => panic!("a bad token was expected, not {other:?}"),
        })
    }
}

fn url(bytes: &[u8]) -> String {
    wire::base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

fn token(header: &Value, claims: &Value) -> String {
    format!("{}.{}.", url(header.to_string().as_bytes()), url(claims.to_string().as_bytes()))
}

/// What the tokens of the public clouds claim.
fn claims() -> Value {
    serde_json::json!({
        "aud": "https://storage.azure.com", "iss": format!("https://sts.windows.net/{TID}/"),
        "iat": 1_767_322_800, "nbf": 1_767_322_800, "exp": 1_767_326_400, "oid": OID, "tid": TID,
    })
}

/// A token that nobody has signed.
fn made_up(change: impl FnOnce(&mut Value)) -> Asked {
    let mut claims = claims();
    change(&mut claims);
    Asked::with(&token(&serde_json::json!({"typ": "JWT", "alg": "none"}), &claims))
}

fn bearer(oid: &str, tid: &str) -> Caller {
    Caller::Bearer(Bearer { oid: oid.into(), tid: tid.into() })
}

fn set(keys: &[&str]) -> KeySet {
    KeySet::parse(&format!("{{\"keys\":[{}]}}", keys.join(","))).expect("a key set")
}

fn all_keys() -> Tokens {
    Tokens::verified(set(&[tokens::KEY_ONE, tokens::KEY_TWO, tokens::KEY_CURVE]))
}

#[test]
fn a_token_says_who_calls() {
    assert_eq!(made_up(|_| ()).outcome(&Tokens::basic(), NOW), Ok(bearer(OID, TID)));
    let lower = made_up(|_| ());
    let value = lower.headers["authorization"].to_str().expect("text").replace("Bearer", "bearer ");
    assert_eq!(lower.header("authorization", &value).outcome(&Tokens::basic(), NOW), Ok(bearer(OID, TID)));
}

#[test]
fn known_signatures_of_every_algorithm() {
    for (name, token) in [
        ("RS256", tokens::RS256),
        ("RS384", tokens::RS384),
        ("RS512", tokens::RS512),
        ("PS256", tokens::PS256),
        ("ES256", tokens::ES256),
        ("RS256 with the second key", tokens::RS256_TWO),
        ("RS256 without a name", tokens::RS256_UNNAMED),
    ] {
        assert_eq!(Asked::with(token).outcome(&all_keys(), NOW), Ok(bearer(OID, TID)), "{name}");
        assert_eq!(Asked::with(token).outcome(&Tokens::basic(), NOW), Ok(bearer(OID, TID)), "{name}");
    }
}

#[test]
fn a_signed_token_cannot_be_changed() {
    for token in [tokens::RS256, tokens::PS256, tokens::ES256] {
        for at in (0..token.len()).step_by(7) {
            let old = token.as_bytes()[at];
            let new = if old == b'A' { 'B' } else { 'A' };
            let changed = format!("{}{new}{}", &token[..at], &token[at + 1..]);
            let refused = Asked::with(&changed).outcome(&all_keys(), NOW);
            assert!(matches!(refused, Err(Refusal::InvalidToken { .. })), "{at}: {refused:?}");
        }
    }
    let (signed, _) = tokens::RS256.rsplit_once('.').expect("a signature");
    let stripped = Asked::with(&format!("{signed}.")).fault(&all_keys(), NOW);
    assert_eq!(stripped, Err(TokenFault::Signature));
    let (_, signature) = tokens::RS512.rsplit_once('.').expect("a signature");
    assert_eq!(Asked::with(&format!("{signed}.{signature}")).fault(&all_keys(), NOW), Err(TokenFault::Signature));
}

#[test]
fn only_signatures_of_the_issuer_are_taken() {
    for algorithm in ["none", "None", "HS256", "HS512", "RS1", "ES384", "EdDSA", ""] {
        let header = serde_json::json!({"alg": algorithm, "kid": "one"});
        let asked = Asked::with(&token(&header, &claims()));
        assert_eq!(asked.fault(&all_keys(), NOW), Err(TokenFault::Algorithm), "{algorithm}");
    }
    let header = serde_json::json!({"alg": "RS256", "kid": "one", "crit": ["x"]});
    assert_eq!(Asked::with(&token(&header, &claims())).fault(&all_keys(), NOW), Err(TokenFault::Algorithm));
    let header = serde_json::json!({"kid": "one"});
    assert_eq!(Asked::with(&token(&header, &claims())).fault(&all_keys(), NOW), Err(TokenFault::Algorithm));
}

#[test]
fn a_key_signs_under_its_name_and_for_its_purpose() {
    let fault = |keys: &[&str], token: &str| Asked::with(token).fault(&Tokens::verified(set(keys)), NOW);
    assert_eq!(fault(&[tokens::KEY_TWO], tokens::RS256), Err(TokenFault::UnknownKey));
    assert_eq!(fault(&[tokens::KEY_TWO], tokens::RS256_UNNAMED), Err(TokenFault::Signature));
    assert_eq!(fault(&[tokens::KEY_TWO], tokens::PS256_TWO), Err(TokenFault::UnknownKey));
    assert_eq!(fault(&[tokens::KEY_ONE], tokens::ES256), Err(TokenFault::UnknownKey));
    let renamed = tokens::KEY_TWO.replace("\"two\"", "\"one\"");
    assert_eq!(fault(&[&renamed], tokens::RS256), Err(TokenFault::Signature));
    // While an issuer goes over from one key to the next, both may have the same name.
    assert_eq!(fault(&[&renamed, tokens::KEY_ONE], tokens::RS256), Ok(bearer(OID, TID)));
    let unnamed = tokens::KEY_ONE.replace("\"kid\":\"one\",", "");
    assert_eq!(fault(&[&unnamed], tokens::RS256), Ok(bearer(OID, TID)));
}

#[test]
fn key_sets() {
    let bad = |text: &str| KeySet::parse(text).map(|_| ()).expect_err("refused");
    for text in ["", "{}", "[]", "{\"keys\":{}}", "{\"keys\":[]"] {
        assert_eq!(bad(text), BadKeySet::Malformed, "{text}");
    }
    for keys in [
        "",
        "1",
        "{\"kty\":\"oct\",\"k\":\"AAAA\"}",
        "{\"kty\":\"RSA\",\"n\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"RSA\",\"n\":\"AAAA\",\"e\":\"AQAB\",\"use\":\"enc\"}",
        "{\"kty\":\"RSA\",\"n\":\"AAAA\",\"e\":\"AQAB\",\"alg\":\"RSA-OAEP\"}",
    ] {
        assert_eq!(bad(&format!("{{\"keys\":[{keys}]}}")), BadKeySet::NoKeys, "{keys}");
    }
    let many = vec![tokens::KEY_ONE; 101];
    assert_eq!(bad(&format!("{{\"keys\":[{}]}}", many.join(","))), BadKeySet::TooMany);
    assert_eq!(format!("{:?}", set(&[tokens::KEY_ONE, tokens::KEY_CURVE])), "[\"one\", \"curve\"]");
}

#[test]
fn tokens_are_not_for_everywhere() {
    let detail = |asked: Asked, tokens: &Tokens| {
        let refused = asked.outcome(tokens, NOW).expect_err("refused");
        assert_eq!((refused.status(), refused.code(), refused.challenge()), (403, "AuthenticationFailed", None));
        refused.detail().expect("a detail")
    };
    let over_http = || Asked { https: false, ..made_up(|_| ()) };
    assert_eq!(detail(over_http(), &Tokens::basic()), "Authentication scheme Bearer is not allowed with HTTP.");
    assert_eq!(detail(over_http(), &Tokens::refused()), "Authentication scheme Bearer is not allowed with HTTP.");
    assert_eq!(detail(made_up(|_| ()), &Tokens::refused()), "Authentication scheme Bearer is not supported.");
    let too_old = "Authentication scheme Bearer is not supported in this version.";
    assert_eq!(detail(made_up(|_| ()).version("2017-07-29"), &Tokens::basic()), too_old);
    let mut without = made_up(|_| ());
    without.headers.remove("x-ms-version");
    assert_eq!(detail(without, &Tokens::basic()), too_old);
    assert!(made_up(|_| ()).version("2017-11-09").outcome(&Tokens::basic(), NOW).is_ok());
    let file = || made_up(|_| ()).service(Service::File).header("x-ms-file-request-intent", "backup");
    assert_eq!(detail(file().version("2021-12-02"), &Tokens::basic()), too_old);
    assert!(file().version("2022-11-02").outcome(&Tokens::basic(), NOW).is_ok());
}

#[test]
fn files_want_to_know_the_intent() {
    let file = || made_up(|_| ()).service(Service::File).version("2025-07-05");
    let outcome = |asked: Asked| asked.outcome(&Tokens::basic(), NOW);
    assert_eq!(outcome(file()), Err(Refusal::MissingHeader("x-ms-file-request-intent")));
    let other = file().header("x-ms-file-request-intent", "restore");
    assert_eq!(outcome(other), Err(Refusal::InvalidHeader("x-ms-file-request-intent")));
    assert!(outcome(file().header("x-ms-file-request-intent", "Backup")).is_ok());
    let key = Asked { query: pairs("restype=service&comp=userdelegationkey"), ..file() };
    assert!(outcome(key).is_ok());
}

#[test]
fn times() {
    let (from, until) = ("2026-01-02T02:55:00Z", "2026-01-02T04:04:59.9Z");
    for now in [from, NOW, until] {
        assert!(made_up(|_| ()).outcome(&Tokens::basic(), now).is_ok(), "{now}");
        assert!(Asked::with(tokens::RS256).outcome(&all_keys(), now).is_ok(), "{now}");
    }
    for (now, fault) in [
        ("2026-01-02T02:54:59Z", TokenFault::NotYetValid),
        ("2026-01-02T04:05:00Z", TokenFault::Expired),
        ("2027-01-01", TokenFault::Expired),
    ] {
        assert_eq!(made_up(|_| ()).fault(&Tokens::basic(), now), Err(fault), "{now}");
        assert_eq!(Asked::with(tokens::RS256).fault(&all_keys(), now), Err(fault), "{now}");
    }
    let issued_later = made_up(|claims| claims["iat"] = 1_767_326_399.into());
    assert_eq!(issued_later.fault(&Tokens::basic(), NOW), Err(TokenFault::NotYetValid));
    let fraction = made_up(|claims| claims["exp"] = 1_767_326_400.5.into());
    assert!(fraction.outcome(&Tokens::basic(), NOW).is_ok());
    for extreme in [i64::MIN, i64::MAX] {
        let asked = made_up(|claims| claims["exp"] = extreme.into());
        assert_eq!(asked.outcome(&Tokens::basic(), NOW).is_ok(), extreme > 0);
    }
}

#[test]
fn audiences() {
    let is_taken = |audience: Value, service, tokens: &Tokens| {
        let asked = made_up(|claims| claims["aud"] = audience).service(service).version("2025-07-05");
        match asked.header("x-ms-file-request-intent", "backup").outcome(tokens, NOW) {
            Ok(_) => true,
            Err(Refusal::InvalidToken { fault: TokenFault::Audience, challenge: true }) => false,
            other => panic!("{other:?}"),
        }
    };
    for (audience, service, expected) in [
        ("https://storage.azure.com", Service::Blob, true),
        ("https://storage.azure.com/", Service::Table, true),
        ("e406a681-f3d4-42a8-90b6-c2b029497af1", Service::Queue, true),
        ("https://devstoreaccount1.blob.core.windows.net", Service::Blob, true),
        ("https://devstoreaccount1.dfs.core.windows.net/", Service::Blob, true),
        ("https://devstoreaccount1.queue.core.chinacloudapi.cn", Service::Queue, true),
        ("https://devstoreaccount1.table.core.usgovcloudapi.net/", Service::Table, true),
        ("https://devstoreaccount1.file.core.cloudapi.de", Service::File, true),
        ("https://devstoreaccount1.queue.core.windows.net", Service::Blob, false),
        ("https://other.blob.core.windows.net", Service::Blob, false),
        ("https://devstoreaccount1.blob.core.windows.net.evil.com", Service::Blob, false),
        ("https://devstoreaccount1.blob.evil.com", Service::Blob, false),
        ("http://devstoreaccount1.blob.core.windows.net", Service::Blob, false),
        ("https://storage.azure.com.evil.com", Service::Blob, false),
        ("https://storage.azure.com//", Service::Blob, false),
        ("https://management.azure.com/", Service::Blob, false),
        ("", Service::Blob, false),
    ] {
        assert_eq!(is_taken(audience.into(), service, &Tokens::basic()), expected, "{audience}");
    }
    let basic = Tokens::basic();
    assert!(is_taken(serde_json::json!(["x", "https://storage.azure.com"]), Service::Blob, &basic));
    for nothing in [serde_json::json!([]), serde_json::json!(1), serde_json::json!([1]), Value::Null] {
        assert!(!is_taken(nothing, Service::Blob, &basic));
    }
    let own = Tokens::basic().audience("lazurite");
    assert!(is_taken("lazurite".into(), Service::Blob, &own));
    assert!(is_taken("https://storage.azure.com".into(), Service::Blob, &own));
    assert!(!is_taken("other".into(), Service::Blob, &own));
}

#[test]
fn issuers() {
    let is_taken =
        |issuer: &str, tokens: &Tokens| match made_up(|claims| claims["iss"] = issuer.into()).fault(tokens, NOW) {
            Ok(_) => true,
            Err(TokenFault::Issuer) => false,
            other => panic!("{other:?}"),
        };
    let test = "https://sts.windows-ppe.net/any-tenant/";
    assert!(is_taken(test, &Tokens::basic_of_azurite()) && !is_taken(test, &Tokens::basic()));
    assert!(is_taken("https://sts.windows.net/any-tenant/", &Tokens::basic_of_azurite()));
    for (issuer, expected) in [
        ("https://sts.windows.net/any-tenant/", true),
        ("https://sts.microsoftonline.de/x/", true),
        ("https://sts.chinacloudapi.cn/x/", true),
        ("https://login.microsoftonline.com/x/v2.0", true),
        ("http://sts.windows.net/x/", false),
        ("https://sts.windows.net.evil.com/x/", false),
        ("https://evil.com/https://sts.windows.net/", false),
    ] {
        assert_eq!(is_taken(issuer, &Tokens::basic()), expected, "{issuer}");
    }
    let own = Tokens::basic().issuer("https://id.example.com/realm");
    assert!(is_taken("https://id.example.com/realm", &own) && is_taken("https://id.example.com/realm/", &own));
    assert!(!is_taken("https://sts.windows.net/x/", &own) && !is_taken("https://id.example.com/realm/x", &own));
    let other = all_keys().issuer("https://id.example.com/realm");
    assert_eq!(Asked::with(tokens::RS256).fault(&other, NOW), Err(TokenFault::Issuer));
    let tenant = all_keys().issuer(format!("https://sts.windows.net/{TID}/"));
    assert_eq!(Asked::with(tokens::RS256).fault(&tenant, NOW), Ok(bearer(OID, TID)));
}

#[test]
fn claims_that_are_missing() {
    let without = |name: &str| made_up(|claims| _ = claims.as_object_mut().expect("an object").remove(name));
    for name in ["aud", "iss", "iat", "exp"] {
        match without(name).fault(&Tokens::basic(), NOW) {
            Err(TokenFault::MissingClaim(found)) => assert_eq!(found, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // Made by hand, they often name nobody.
    assert_eq!(without("oid").outcome(&Tokens::basic(), NOW), Ok(bearer(NOBODY, TID)));
    assert_eq!(without("tid").outcome(&Tokens::basic(), NOW), Ok(bearer(OID, NOBODY)));
    assert!(without("nbf").outcome(&Tokens::basic(), NOW).is_ok());
    let subject = made_up(|claims| {
        claims.as_object_mut().expect("an object").remove("oid");
        claims["sub"] = "me".into();
    });
    assert_eq!(subject.outcome(&Tokens::basic(), NOW), Ok(bearer("me", TID)));
}

#[test]
fn verified_tokens_of_the_public_clouds_have_every_claim() {
    let strict = all_keys();
    let judged = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut all = claims();
        change(all.as_object_mut().expect("an object"));
        let Value::Object(all) = all else { panic!("an object") };
        let claims = Claims(all);
        strict.in_time(&claims, at(NOW)).and_then(|()| strict.bearer(&claims))
    };
    assert!(judged(&|_| ()).is_ok());
    for name in ["nbf", "oid", "tid"] {
        let missing = judged(&|claims| _ = claims.remove(name));
        assert!(matches!(missing, Err(TokenFault::MissingClaim(found)) if found == name), "{name}: {missing:?}");
    }
    assert!(strict.is_issuer(&format!("https://sts.windows.net/{TID}/"), TID));
    assert!(!strict.is_issuer("https://sts.windows.net/33333333-3333-3333-3333-333333333333/", TID));
}

#[test]
fn malformed_tokens() {
    let claims = url(b"{}");
    let long = "A".repeat(TOKEN_BYTES_MAX + 1);
    for token in [
        "x",
        "x.y",
        "..",
        "x.y.z",
        "e30.e30",
        "e30.e30.e30.e30",
        "e30.e30.=",
        "e30.W10.",
        "W10.e30.",
        "e30. .",
        &format!("e30.{claims}=."),
        &format!("e30.{}.", url(b"{\"a\":1")),
        &format!("e30.{}.", url(b"\xff")),
        &format!("e30.{}.", url("[".repeat(1_000).as_bytes())),
        &format!("e30.{long}."),
    ] {
        assert_eq!(Asked::with(token).fault(&Tokens::basic(), NOW), Err(TokenFault::Malformed), "{token}");
    }
    assert_eq!(Asked::with("").outcome(&Tokens::basic(), NOW), Err(Refusal::InvalidAuthenticationInfo));
}

#[test]
fn older_clients_get_no_challenge() {
    let expired = |service, version: &str| {
        let asked = made_up(|_| ()).service(service).version(version).header("x-ms-file-request-intent", "backup");
        let refused = asked.outcome(&Tokens::basic(), "2030-01-01").expect_err("expired");
        assert_eq!(refused.detail().as_deref(), Some("Lifetime validation failed. The token is expired."));
        (refused.status(), refused.code(), refused.challenge().is_some())
    };
    let (new, old) = ((401, "InvalidAuthenticationInfo", true), (403, "AuthenticationFailed", false));
    assert_eq!(expired(Service::Blob, "2019-12-12"), new);
    assert_eq!(expired(Service::Blob, "2019-10-10"), old);
    assert_eq!(expired(Service::Table, "2019-12-12"), old);
    assert_eq!(expired(Service::Table, "2020-12-06"), new);
    assert_eq!(expired(Service::File, "2022-11-02"), new);
    let challenge = Refusal::InvalidToken { fault: TokenFault::Issuer, challenge: true }.challenge();
    assert!(challenge.expect("a challenge").contains("resource_id=https://storage.azure.com"));
}

#[test]
fn no_part_of_a_token_is_printed() {
    let asked = Asked::with(tokens::RS256);
    let refused = asked.outcome(&all_keys(), "2030-01-01").expect_err("expired");
    let printed =
        format!("{refused:?} {refused} {:?} {:?}", refused.detail(), wire::http::ErrorReply::from(refused.clone()));
    let (signed, signature) = tokens::RS256.rsplit_once('.').expect("a signature");
    for part in signed.split('.').chain([signature]) {
        assert!(!printed.contains(part));
    }
}
