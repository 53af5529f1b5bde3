use super::*;
use crate::account::Key;
use crate::grant::{Caller, Grant, Scope};
use crate::testing::{NAME, accounts, at, headers, pairs};
use crate::{Identifier, Tokens};

const NOW: &str = "2026-01-02T03:04:05Z";
const SECRET: [u8; 32] = [7; 32];
const OID: &str = "11111111-1111-1111-1111-111111111111";
const TID: &str = "22222222-2222-2222-2222-222222222222";
/// What every signature here has, beside a version.
const FIELDS: &str = "sp=rw&se=2026-01-03T00:00:00Z&skoid=11111111-1111-1111-1111-111111111111\
                      &sktid=22222222-2222-2222-2222-222222222222&skt=2026-01-01T00:00:00Z&ske=2026-01-07T00:00:00Z";

/// A request in the making.
struct Asked {
    service: Service,
    path: &'static str,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
    https: bool,
}

impl Asked {
    fn new(service: Service, path: &'static str, query: &str) -> Asked {
        let query = pairs(&format!("{FIELDS}&sks={}&{query}", char::from(service.letter())));
        Asked { service, path, query, headers: http::HeaderMap::new(), https: true }
    }

    /// For the blob `c/b`, in a version.
    fn blob(version: &str, more: &str) -> Asked {
        Asked::new(Service::Blob, "/devstoreaccount1/c/b", &format!("sr=b&sv={version}&skv={version}&{more}"))
    }

    fn request(&self) -> Request<'_> {
        Request {
            service: self.service,
            method: "PUT",
            account: NAME,
            path_style: true,
            path: self.path,
            query: &self.query,
            headers: &self.headers,
            https: self.https,
            peer: None,
        }
    }

    /// The text we would sign.
    fn text(&self) -> String {
        let mut unsigned = self.query.clone();
        unsigned.push(("sig".into(), "x".into()));
        let request = Request { query: &unsigned, ..self.request() };
        let tokens = Tokens::basic();
        let identifier = Identifier::new(&ACCOUNTS).tokens(&tokens).delegation_secret(&SECRET);
        match identifier.identify(&request, at(NOW), |_| None) {
            Err(Refusal::AuthenticationFailed(Fault::SasMismatch { string_to_sign })) => string_to_sign,
            other => panic!("a mismatch was expected, not {other:?}"),
        }
    }

    /// Signed with the key that the user was given.
    fn signed(mut self) -> Asked {
        let token = Token::of(&self.query).expect("well-formed");
        let key = key(&self.request(), &token).expect("a key").value(&SECRET);
        let text = self.text();
        self.query.push(("sig".into(), Key::from_bytes(&key).sign(text.as_bytes())));
        self
    }

    fn with_token_of(mut self, oid: &str, tid: &str) -> Asked {
        let claims = serde_json::json!({
            "aud": "https://storage.azure.com", "iss": "https://sts.windows.net/x/",
            "iat": 1_767_322_800, "exp": 1_767_326_400, "oid": oid, "tid": tid,
        });
        let claims = wire::base64::encode(claims.to_string().as_bytes());
        let claims = claims.trim_end_matches('=').replace('+', "-").replace('/', "_");
        let authorization = format!("Bearer e30.{claims}.");
        self.headers.extend(headers(&[("authorization", &authorization), ("x-ms-version", "2026-10-06")]));
        self
    }

    fn outcome_at(&self, now: &str) -> Result<Grant, Refusal> {
        let tokens = Tokens::basic();
        let identifier = Identifier::new(&ACCOUNTS).tokens(&tokens).delegation_secret(&SECRET);
        match identifier.identify(&self.request(), at(now), |_| None)? {
            Caller::Sas(grant) => Ok(grant),
            other => panic!("a signature was expected, not {other:?}"),
        }
    }

    fn outcome(&self) -> Result<Grant, Refusal> {
        self.outcome_at(NOW)
    }
}

static ACCOUNTS: std::sync::LazyLock<crate::Accounts> = std::sync::LazyLock::new(accounts);

fn is_field(outcome: Result<Grant, Refusal>, expected: &str) {
    match outcome {
        Err(Refusal::AuthenticationFailed(Fault::Field { name, .. })) => assert_eq!(name, expected),
        other => panic!("a fault of {expected} was expected, not {other:?}"),
    }
}

fn is_mismatch(outcome: Result<Grant, Refusal>) {
    assert!(matches!(outcome, Err(Refusal::AuthenticationFailed(Fault::SasMismatch { .. }))), "{outcome:?}");
}

fn is_other(outcome: Result<Grant, Refusal>) {
    assert!(matches!(outcome, Err(Refusal::AuthenticationFailed(Fault::Other(_)))), "{outcome:?}");
}

/// Made by the vendor's client with the key below.
#[test]
fn known_signature_tied_to_headers_and_parameters() {
    let query = "comp=tags&sr=b&sv=2026-10-06&skv=2026-10-06&srh=x-ms-meta-a,x-ms-tags&srq=comp";
    let mut asked = Asked::new(Service::Blob, "/devstoreaccount1/cont1/b1", query);
    asked.headers = headers(&[("x-ms-meta-a", "1"), ("x-ms-tags", "z"), ("x-ms-other", "free")]);
    let text = "rw\n\n2026-01-03T00:00:00Z\n/blob/devstoreaccount1/cont1/b1\n11111111-1111-1111-1111-111111111111\n\
                22222222-2222-2222-2222-222222222222\n2026-01-01T00:00:00Z\n2026-01-07T00:00:00Z\nb\n2026-10-06\n\n\n\n\n\n\n\n\
                2026-10-06\nb\n\n\nx-ms-meta-a:1\nx-ms-tags:z\n\n\ncomp:tags\n\n\n\n\n";
    assert_eq!(asked.text(), text);
    let key = Key::from_bytes(b"0123456789abcdef0123456789abcdef");
    assert_eq!(key.sign(text.as_bytes()), "F8uUDL1+j8Y5tIjDmlZYEuoK4G2jQC9F094ujPWO338=");
}

#[test]
fn the_signed_fields_by_version() {
    let head = format!("rw\n\n2026-01-03T00:00:00Z\n/blob/devstoreaccount1/c/b\n{OID}\n{TID}\n2026-01-01T00:00:00Z\n");
    let text = |version: &str| {
        let more = "saoid=A&scid=C&skdutid=T&sduoid=U&sip=1.2.3.4&spr=https&ses=E&rscc=1&rscd=2&rsce=3&rscl=4&rsct=5";
        let more = format!("{more}&srh=x-ms-a&srq=comp&comp=x&snapshot=S");
        let mut asked = Asked::blob(version, &more);
        asked.query.iter_mut().filter(|(name, _)| name == "sr").for_each(|(_, value)| *value = "bs".into());
        asked.headers = headers(&[("x-ms-a", "h")]);
        let text = asked.text();
        let rest = text.strip_prefix(&head).expect("the same beginning");
        rest.strip_prefix(&format!("2026-01-07T00:00:00Z\nb\n{version}\n")).expect("the key").to_owned()
    };
    let rsc = "1\n2\n3\n4\n5";
    assert_eq!(text("2018-11-09"), format!("1.2.3.4\nhttps\n2018-11-09\nbs\nS\n{rsc}"));
    assert_eq!(text("2020-02-10"), format!("A\n\nC\n1.2.3.4\nhttps\n2020-02-10\nbs\nS\n{rsc}"));
    assert_eq!(text("2020-12-06"), format!("A\n\nC\n1.2.3.4\nhttps\n2020-12-06\nbs\nS\nE\n{rsc}"));
    assert_eq!(text("2025-07-05"), format!("A\n\nC\nT\nU\n1.2.3.4\nhttps\n2025-07-05\nbs\nS\nE\n{rsc}"));
    assert_eq!(
        text("2026-04-06"),
        format!("A\n\nC\nT\nU\n1.2.3.4\nhttps\n2026-04-06\nbs\nS\nE\nx-ms-a:h\n\n\ncomp:x\n{rsc}")
    );
}

#[test]
fn queues_and_files() {
    let fields = "sv=2025-07-05&skv=2025-07-05&skdutid=T&sduoid=U&sip=1.2.3.4&spr=https&rsct=5&saoid=A&ses=E";
    let tail = "2026-10-06";
    let key =
        |service| format!("{OID}\n{TID}\n2026-01-01T00:00:00Z\n2026-01-07T00:00:00Z\n{service}\n2025-07-05\nT\nU");
    let queue = Asked::new(Service::Queue, "/devstoreaccount1/queue1/messages", fields);
    assert_eq!(
        queue.text(),
        format!("rw\n\n2026-01-03T00:00:00Z\n/queue/devstoreaccount1/queue1\n{}\n1.2.3.4\nhttps\n2025-07-05", key('q'))
    );
    let file = Asked::new(Service::File, "/devstoreaccount1/share1/d/f", &format!("{fields}&sr=f"));
    assert_eq!(
        file.text(),
        format!(
            "rw\n\n2026-01-03T00:00:00Z\n/file/devstoreaccount1/share1/d/f\n{}\n1.2.3.4\nhttps\n2025-07-05\n\n\n\n\n5",
            key('f')
        )
    );
    let versions = format!("sv={tail}&skv={tail}");
    let queue = Asked::new(Service::Queue, "/devstoreaccount1/queue1/messages", &versions).signed();
    assert_eq!(queue.outcome().map(|grant| grant.kind), Ok(GrantKind::Service(Scope::Queue)));
    let share = Asked::new(Service::File, "/devstoreaccount1/share1/d/f", &format!("{versions}&sr=s")).signed();
    assert_eq!(share.outcome().map(|grant| grant.kind), Ok(GrantKind::Service(Scope::Share)));
}

#[test]
fn each_service_has_a_first_version() {
    for (service, version, is_known) in [
        (Service::Blob, "2018-03-28", false),
        (Service::Blob, "2018-11-09", true),
        (Service::Queue, "2025-05-05", false),
        (Service::Queue, "2025-07-05", true),
        (Service::File, "2025-05-05", false),
        (Service::File, "2025-07-05", true),
        (Service::Table, "2026-10-06", false),
    ] {
        let sr = if service == Service::File { "sr=f" } else { "sr=b" };
        let query = format!("{sr}&tn=c&sv={version}&skv={version}&sig=x");
        let outcome = Asked::new(service, "/devstoreaccount1/c/b", &query).outcome();
        if is_known { is_mismatch(outcome) } else { is_field(outcome, "sv") }
    }
}

#[test]
fn the_grant_says_on_whose_behalf() {
    let grant = Asked::blob("2026-10-06", "saoid=A&scid=C").signed().outcome().expect("genuine");
    assert_eq!((&grant.kind, grant.permissions), (&GrantKind::Service(Scope::Blob), crate::Permissions::of("rw")));
    let delegation = grant.delegation.expect("a delegation");
    assert_eq!((delegation.oid.as_str(), delegation.tid.as_str()), (OID, TID));
    assert_eq!((delegation.authorized_oid.as_deref(), delegation.unauthorized_oid), (Some("A"), None));
    assert_eq!(delegation.correlation_id.as_deref(), Some("C"));
    let grant = Asked::blob("2020-02-10", "suoid=U").signed().outcome().expect("genuine");
    assert_eq!(grant.delegation.expect("a delegation").unauthorized_oid.as_deref(), Some("U"));
    let grant = Asked::blob("2018-11-09", "saoid=A").signed().outcome().expect("genuine");
    assert_eq!(grant.delegation.expect("a delegation").authorized_oid, None, "it was not signed then");
    is_field(Asked::blob("2026-10-06", "saoid=A&suoid=U&sig=x").outcome(), "suoid");
}

#[test]
fn a_key_signs_only_inside_its_own_time() {
    let asked = |se: &str| {
        let mut asked = Asked::blob("2026-10-06", "");
        asked.query.iter_mut().filter(|(name, _)| name == "se").for_each(|(_, value)| *value = se.into());
        asked.signed()
    };
    for now in ["2026-01-01", "2026-01-06T23:59:59.9999999Z"] {
        assert!(asked("2030-01-01").outcome_at(now).is_ok(), "{now}");
    }
    for now in ["2025-12-31T23:59:59Z", "2026-01-07"] {
        let (start, expiry) = (at("2026-01-01"), at("2026-01-07"));
        let fault = Fault::OutsideKeyTimeFrame { start, expiry, now: at(now) };
        assert_eq!(asked("2030-01-01").outcome_at(now), Err(Refusal::AuthenticationFailed(fault)));
    }
    let own = asked("2026-01-03").outcome_at("2026-01-04");
    assert!(matches!(own, Err(Refusal::AuthenticationFailed(Fault::OutsideTimeFrame { .. }))), "{own:?}");
}

#[test]
fn a_signature_for_one_user_needs_his_token() {
    let asked = |more: &str| Asked::blob("2026-10-06", more);
    is_other(asked("sduoid=user").signed().outcome());
    assert!(asked("sduoid=user").with_token_of("USER", TID).signed().outcome().is_ok());
    is_other(asked("sduoid=user").with_token_of("other", TID).signed().outcome());
    is_other(asked("sduoid=user").with_token_of("user", "other").signed().outcome());
    assert!(asked("sduoid=user&skdutid=T").with_token_of("user", "t").signed().outcome().is_ok());
    is_other(asked("sduoid=user&skdutid=T").with_token_of("user", TID).signed().outcome());
    let mut over_http = asked("sduoid=user").with_token_of("user", TID).signed();
    over_http.https = false;
    is_other(over_http.outcome());
    let mut stripped = asked("sduoid=user").signed();
    stripped.query.retain(|(name, _)| name != "sduoid");
    is_mismatch(stripped.outcome());
    assert!(Asked::blob("2025-05-05", "sduoid=user").signed().outcome().is_ok(), "it was not signed then");
}

#[test]
fn without_a_name_in_it_both_must_hold_and_the_token_counts() {
    let outcome = |asked: Asked| {
        let tokens = Tokens::basic();
        let identifier = Identifier::new(&ACCOUNTS).tokens(&tokens).delegation_secret(&SECRET);
        identifier.identify(&asked.request(), at(NOW), |_| None)
    };
    let signed = || Asked::blob("2026-10-06", "").with_token_of("user", TID).signed();
    assert!(matches!(outcome(signed()), Ok(Caller::Bearer(_))));
    let mut tampered = signed();
    tampered.query.push(("saoid".into(), "x".into()));
    assert!(matches!(outcome(tampered), Err(Refusal::AuthenticationFailed(Fault::SasMismatch { .. }))));
}

#[test]
fn what_the_request_must_have() {
    let asked = |pairs_of_headers: &[(&str, &str)], more: &str| {
        let mut asked = Asked::blob("2026-10-06", more);
        asked.headers = headers(pairs_of_headers);
        asked
    };
    let mut genuine = asked(&[("x-ms-meta-a", "1")], "srh=x-ms-meta-a&srq=comp,Timeout&comp=tags&timeout=5").signed();
    assert!(genuine.outcome().is_ok());
    genuine.headers = headers(&[("x-ms-meta-a", "2")]);
    is_mismatch(genuine.outcome());
    genuine.headers = headers(&[("x-ms-meta-a", "1"), ("x-ms-meta-a", "2")]);
    assert_eq!(genuine.outcome(), Err(Refusal::DuplicateHeader("x-ms-meta-a".into())));
    genuine.headers = http::HeaderMap::new();
    is_field(genuine.outcome(), "srh");
    for (more, field) in [
        ("srh=a%20b&sig=x", "srh"),
        ("srh=,&sig=x", "srh"),
        ("srq=nothing&sig=x", "srq"),
        ("srq=comp&comp=a&comp=b&sig=x", "srq"),
        ("srq=comp&comp=a%0Ab&sig=x", "srq"),
        ("srq=a:b&a:b=c&sig=x", "srq"),
    ] {
        is_field(asked(&[], more).outcome(), field);
    }
}

/// Lines that were signed as headers and parameters of the request cannot be passed off as other fields.
#[test]
fn what_the_request_must_have_cannot_be_moved_into_other_fields() {
    let mut asked = Asked::blob("2026-10-06", "srh=x-ms-meta-a&srq=comp&comp=tags");
    asked.headers = headers(&[("x-ms-meta-a", "1")]);
    let mut asked = asked.signed();
    assert!(asked.outcome().is_ok());
    asked.query.retain(|(name, _)| name != "srh" && name != "srq");
    is_mismatch(asked.outcome());
    asked.query.push(("rscc".into(), "comp:tags".into()));
    asked.query.push(("ses".into(), "\nx-ms-meta-a:1".into()));
    is_field(asked.outcome(), "ses");
}

#[test]
fn malformed_fields() {
    for (change, field) in [
        (("skoid", ""), "sig"),
        (("sktid", ""), "sktid"),
        (("skt", ""), "skt"),
        (("skt", "today"), "skt"),
        (("ske", ""), "ske"),
        (("ske", "2026-13-01"), "ske"),
        (("sks", ""), "sks"),
        (("sks", "q"), "sks"),
        (("sks", "bq"), "sks"),
        (("skv", ""), "skv"),
        (("si", "policy"), "si"),
        (("sr", ""), "sr"),
    ] {
        let mut asked = Asked::blob("2026-10-06", "si=&sig=x");
        asked.query.iter_mut().filter(|(name, _)| name == change.0).for_each(|(_, value)| *value = change.1.into());
        // Without the user it is a service signature like any other.
        if field == "sig" { is_mismatch(asked.outcome()) } else { is_field(asked.outcome(), field) }
    }
}

#[test]
fn keys_are_for_one_account_and_one_server() {
    let asked = Asked::blob("2026-10-06", "").signed();
    let outcome = |identifier: Identifier<'_>| identifier.identify(&asked.request(), at(NOW), |_| None).map(|_| ());
    assert_eq!(outcome(Identifier::new(&ACCOUNTS).delegation_secret(&SECRET)), Ok(()));
    let other = outcome(Identifier::new(&ACCOUNTS).delegation_secret(&[8; 32]));
    assert!(matches!(other, Err(Refusal::AuthenticationFailed(Fault::SasMismatch { .. }))));
    let none = outcome(Identifier::new(&ACCOUNTS));
    assert!(matches!(none, Err(Refusal::AuthenticationFailed(Fault::Other(_)))));
}

#[test]
fn the_secret_is_not_printed() {
    let printed = format!("{:?}", Identifier::new(&ACCOUNTS).delegation_secret(&SECRET));
    assert!(printed.contains("Secret(..)") && !printed.contains("7, 7"), "{printed}");
}
