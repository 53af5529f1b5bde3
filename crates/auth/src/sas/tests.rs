use super::*;
use crate::grant::{Caller, Need, ResourceType};
use crate::identify;
use crate::testing::*;

const NOW: &str = "2026-06-01T00:00:00Z";
const ACCOUNT: &str = "sv=2026-10-06&ss=bqtf&srt=sco&sp=rwdlacup&st=2026-01-01T00:00:00Z&se=2030-01-01T00:00:00Z\
                       &spr=https,http&sig=/ZaF4fN7LtPcA6xGayMMybuySz05bUO9qDMfyGPCT%2Bg%3D";

/// A request in the making: a URL on the development account, path style.
struct Asked {
    service: Service,
    path: String,
    path_style: bool,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
    https: bool,
    peer: Option<IpAddr>,
}

impl Asked {
    fn new(service: Service, url: &str) -> Asked {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let path = format!("/{NAME}{path}");
        let headers = http::HeaderMap::new();
        Asked { service, path, path_style: true, query: pairs(query), headers, https: false, peer: None }
    }

    fn blob(url: &str) -> Asked {
        Asked::new(Service::Blob, url)
    }

    /// A blob request signed here, over the text given.
    fn signed(url: &str, text: &str) -> Asked {
        let mut asked = Asked::blob(url);
        asked.query.push(("sig".into(), key(KEY).sign(text.as_bytes())));
        asked
    }

    fn host_style(mut self) -> Asked {
        self.path = self.path.trim_start_matches(&format!("/{NAME}")).to_owned();
        self.path_style = false;
        self
    }

    fn request(&self) -> Request<'_> {
        Request {
            service: self.service,
            method: "GET",
            account: NAME,
            path_style: self.path_style,
            path: &self.path,
            query: &self.query,
            headers: &self.headers,
            https: self.https,
            peer: self.peer,
        }
    }

    fn outcome_with(&self, now: &str, policy: Option<Policy>) -> Result<Grant, Refusal> {
        match identify(&self.request(), &accounts(), at(now), |_| policy.clone())? {
            Caller::Sas(grant) => Ok(grant),
            other => panic!("a signature was expected, not {other:?}"),
        }
    }

    fn outcome(&self) -> Result<Grant, Refusal> {
        self.outcome_with(NOW, None)
    }

    fn scope(&self) -> Result<Scope, Refusal> {
        match self.outcome()?.kind {
            GrantKind::Service(scope) => Ok(scope),
            other => panic!("a service signature was expected, not {other:?}"),
        }
    }

    /// The text we would have signed, from the refusal of a signature that is none.
    fn text(&self) -> String {
        match self.outcome() {
            Err(Refusal::AuthenticationFailed(Fault::SasMismatch { string_to_sign })) => string_to_sign,
            other => panic!("a mismatch was expected, not {other:?}"),
        }
    }
}

fn is_field(outcome: Result<Grant, Refusal>, expected: &str) {
    match outcome {
        Err(Refusal::AuthenticationFailed(Fault::Field { name, .. } | Fault::FieldInBoth { name })) => {
            assert_eq!(name, expected);
        }
        other => panic!("a fault of {expected} was expected, not {other:?}"),
    }
}

fn is_mismatch(outcome: Result<Grant, Refusal>) {
    assert!(matches!(outcome, Err(Refusal::AuthenticationFailed(Fault::SasMismatch { .. }))), "{outcome:?}");
}

#[test]
fn known_account_signature() {
    for url in ["", "/", "/c?restype=container", "/c/b"] {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let grant = Asked::blob(&format!("{path}?{query}&{ACCOUNT}")).outcome().expect("genuine");
        assert_eq!(grant.permissions, Permissions::of("rwdlacup"));
        assert_eq!(grant.kind, GrantKind::Account { services: SERVICES, resource_types: RESOURCE_TYPES });
        assert_eq!((grant.overrides, grant.encryption_scope), (None, None));
    }
    let wrong = ACCOUNT.replace("sig=/", "sig=x");
    assert_eq!(
        Asked::blob(&format!("/c?{wrong}")).text(),
        "devstoreaccount1\nrwdlacup\nbqtf\nsco\n2026-01-01T00:00:00Z\n2030-01-01T00:00:00Z\n\nhttps,http\n2026-10-06\n\n"
    );
}

#[test]
fn known_service_signatures() {
    let tail = "se=2030-01-01T00:00:00Z&sv=2026-10-06";
    let blob = format!("/cont1/dir/b%201.txt?sp=r&sr=b&{tail}&sig=qFPboDo65YH1pOPgyfTKAMb932IQ0ZUlAxsoLrmg7PU%3D");
    assert_eq!(Asked::blob(&blob).scope(), Ok(Scope::Blob));
    assert_eq!(Asked::blob(&blob).host_style().scope(), Ok(Scope::Blob));
    let snapshot = format!(
        "/cont1/b1?snapshot=2026-01-02T03:04:05.6789012Z&sp=r&sr=bs&{tail}&sig=VCkhwjflZ7wQEVF9M7lFCbEv1/dzqZxWIVs%2BJ0sjvs0%3D"
    );
    assert_eq!(Asked::blob(&snapshot).scope(), Ok(Scope::Snapshot));
    let queue = format!("/queue1/messages?sp=raup&{tail}&sig=g8YZfGmw/RJzXBh5SPc8S/RbY3M0aq7OKxU7fnzHK0g%3D");
    assert_eq!(Asked::new(Service::Queue, &queue).scope(), Ok(Scope::Queue));
    let file = format!("/share1/d1/f1.txt?sp=rcwd&sr=f&{tail}&sig=C1qDI8/CjcvbzX2dfFFHJFRb3sfK/Kpwlc55/awvrYw%3D");
    assert_eq!(Asked::new(Service::File, &file).scope(), Ok(Scope::File));
    let share = format!("/share1/d1/f1.txt?sp=rcwdl&sr=s&{tail}&sig=2rTzx%2BiryZ6apptbKu8maSepKpoJpgX9cYnTJPnG8jo%3D");
    assert_eq!(Asked::new(Service::File, &share).scope(), Ok(Scope::Share));
    let table = "tn=Tab1&sp=raud&se=2030-01-01T00:00:00Z&spk=a&srk=1&epk=b&erk=9&sv=2019-02-02\
                 &sig=DOpKj0Yx0vS4tUdz6AGxZWCuwvu47iaMKHPLxiXD5OU%3D";
    for path in ["/Tab1()", "/tab1(PartitionKey='a',RowKey='2')", "/$batch"] {
        let scope = Asked::new(Service::Table, &format!("{path}?{table}")).scope();
        let bound = |partition: &str, row: &str| KeyBound { partition: Some(partition.into()), row: Some(row.into()) };
        assert_eq!(scope, Ok(Scope::Table { name: "tab1".into(), start: bound("a", "1"), end: bound("b", "9") }));
    }
    is_field(Asked::new(Service::Table, &format!("/tab2()?{table}")).outcome(), "tn");
}

#[test]
fn known_signature_with_a_stored_policy() {
    let url = "/cont1/any/blob?si=pol1&sr=c&sv=2026-10-06&sig=EsdtWk1LTbwiYlA4UiXBNf5zkOKrHIWWTlROi8m%2Byh4%3D";
    let asked = Asked::blob(url);
    assert_eq!(policy_named(&asked.request()), Some("pol1"));
    let policy = |start: Option<&str>, expiry: Option<&str>, permission: Option<&str>| {
        Some(Policy { start: start.map(at), expiry: expiry.map(at), permission: permission.map(str::to_owned) })
    };
    let grant = asked.outcome_with(NOW, policy(Some("2026-01-01"), Some("2027-01-01"), Some("rl"))).expect("genuine");
    assert_eq!((grant.permissions, grant.kind), (Permissions::of("rl"), GrantKind::Service(Scope::Container)));
    is_field(asked.outcome_with(NOW, None), "si");
    is_field(asked.outcome_with(NOW, policy(None, None, Some("r"))), "se");
    is_field(asked.outcome_with(NOW, policy(None, Some("2027-01-01"), None)), "sp");
    let over = asked.outcome_with(NOW, policy(None, Some("2026-01-01"), Some("r")));
    assert!(matches!(over, Err(Refusal::AuthenticationFailed(Fault::OutsideTimeFrame { .. }))));
}

#[test]
fn a_policy_and_a_signature_share_the_fields_between_them() {
    let text = "r\n\n2030-01-01\n/blob/devstoreaccount1/c\np\n\n\n2020-12-06\nc\n\n\n\n\n\n\n";
    let asked = Asked::signed("/c?restype=container&si=p&sp=r&se=2030-01-01&sr=c&sv=2020-12-06", text);
    assert!(asked.outcome_with(NOW, Some(Policy::default())).is_ok());
    let expiry = Policy { expiry: Some(at("2027-01-01")), ..Policy::default() };
    is_field(asked.outcome_with(NOW, Some(expiry)), "se");
    let permission = Policy { permission: Some("r".into()), ..Policy::default() };
    is_field(asked.outcome_with(NOW, Some(permission)), "sp");
    let start = Policy { start: Some(at("2026-01-01")), ..Policy::default() };
    assert!(asked.outcome_with(NOW, Some(start)).is_ok());
}

#[test]
fn the_signed_fields_by_version() {
    let all = "sp=P&st=2026-01-01&se=2030-01-01&si=I&sip=1.2.3.4&spr=https&sr=bs&snapshot=SNAP&ses=E\
               &rscc=1&rscd=2&rsce=3&rscl=4&rsct=5&sig=x";
    let text = |service, version: &str| {
        let url = format!("/c/b?{}&spk=a&srk=b&epk=c&erk=d&tn=c&sv={version}", all.replace("sp=P", "sp=r"));
        let url = match service {
            Service::File => url.replace("sr=bs", "sr=f"),
            _ if version < "2018-11-09" => url.replace("sr=bs", "sr=b"),
            _ => url,
        };
        Asked::new(service, &url).text()
    };
    let head = "r\n2026-01-01\n2030-01-01\n";
    let rsc = "1\n2\n3\n4\n5";
    let blob = |version: &str| text(Service::Blob, version);
    assert_eq!(
        text(Service::Blob, "2020-12-06"),
        format!("{head}/blob/devstoreaccount1/c/b\nI\n1.2.3.4\nhttps\n2020-12-06\nbs\nSNAP\nE\n{rsc}")
    );
    assert_eq!(
        blob("2018-11-09"),
        format!("{head}/blob/devstoreaccount1/c/b\nI\n1.2.3.4\nhttps\n2018-11-09\nbs\nSNAP\n{rsc}")
    );
    assert_eq!(blob("2015-04-05"), format!("{head}/blob/devstoreaccount1/c/b\nI\n1.2.3.4\nhttps\n2015-04-05\n{rsc}"));
    assert_eq!(blob("2015-02-21"), format!("{head}/blob/devstoreaccount1/c/b\nI\n2015-02-21\n{rsc}"));
    assert_eq!(blob("2013-08-15"), format!("{head}/devstoreaccount1/c/b\nI\n2013-08-15\n{rsc}"));
    assert_eq!(blob("2012-02-12"), format!("{head}/devstoreaccount1/c/b\nI\n2012-02-12"));
    assert_eq!(blob(""), format!("{head}/devstoreaccount1/c/b\nI"));
    assert_eq!(
        text(Service::File, "2026-10-06"),
        format!("{head}/file/devstoreaccount1/c/b\nI\n1.2.3.4\nhttps\n2026-10-06\n{rsc}")
    );
    assert_eq!(
        text(Service::Queue, "2026-10-06"),
        format!("{head}/queue/devstoreaccount1/c\nI\n1.2.3.4\nhttps\n2026-10-06")
    );
    assert_eq!(text(Service::Queue, "2014-02-14"), format!("{head}/devstoreaccount1/c\nI\n2014-02-14"));
    assert_eq!(
        text(Service::Table, "2019-02-02"),
        format!("{head}/table/devstoreaccount1/c\nI\n1.2.3.4\nhttps\n2019-02-02\na\nb\nc\nd")
    );
    assert_eq!(text(Service::Table, "2014-02-14"), format!("{head}/devstoreaccount1/c\nI\n2014-02-14\na\nb\nc\nd"));
}

#[test]
fn an_account_signature_gained_the_encryption_scope() {
    let text =
        |version: &str| Asked::blob(&format!("/c?sv={version}&ss=b&srt=o&sp=r&se=2030-01-01&ses=E&sig=x")).text();
    assert_eq!(text("2020-10-02"), "devstoreaccount1\nr\nb\no\n\n2030-01-01\n\n\n2020-10-02\n");
    assert_eq!(text("2020-12-06"), "devstoreaccount1\nr\nb\no\n\n2030-01-01\n\n\n2020-12-06\nE\n");
    let url = "/c?sv=2020-12-06&ss=b&srt=o&sp=r&se=2030-01-01&ses=E&rscc=no-store";
    let grant = Asked::signed(url, &text("2020-12-06")).outcome().expect("genuine");
    assert_eq!(grant.encryption_scope.as_deref(), Some("E"));
    assert_eq!(grant.overrides, None, "an account signature does not sign these");
    let old = Asked::signed(&url.replace("2020-12-06", "2020-10-02"), &text("2020-10-02")).outcome().expect("genuine");
    assert_eq!(old.encryption_scope, None, "nor did old ones sign the scope");
}

#[test]
fn the_resource_of_a_blob_signature() {
    let resource = |url: &str| {
        let asked = Asked::blob(&format!("{url}&sv=2020-02-10&sp=r&se=2030-01-01&sig=x"));
        let text = asked.text();
        assert_eq!(asked.host_style().text(), text);
        text.split('\n').nth(3).expect("the fourth line").to_owned()
    };
    assert_eq!(resource("/c/d/e/f?sr=b"), "/blob/devstoreaccount1/c/d/e/f");
    assert_eq!(resource("/c/d/e/f?sr=bv&versionid=v"), "/blob/devstoreaccount1/c/d/e/f");
    assert_eq!(resource("/c/d/e/f?sr=c"), "/blob/devstoreaccount1/c");
    assert_eq!(resource("/c?sr=c&restype=container"), "/blob/devstoreaccount1/c");
    assert_eq!(resource("/c/?sr=c&restype=Container"), "/blob/devstoreaccount1/c");
    assert_eq!(resource("/c/d/e/f?sr=d&sdd=0"), "/blob/devstoreaccount1/c");
    assert_eq!(resource("/c/d/e/f?sr=d&sdd=2"), "/blob/devstoreaccount1/c/d/e");
    assert_eq!(resource("/c/d?sr=d&sdd=5"), "/blob/devstoreaccount1/c/d");
    assert_eq!(resource("/b?sr=b"), "/blob/devstoreaccount1/$root/b");
    assert_eq!(resource("/b?sr=c"), "/blob/devstoreaccount1/$root");
    assert_eq!(resource("/c%5Cb?sr=b"), "/blob/devstoreaccount1/c/b");
    assert_eq!(resource("/c%5Cb?sr=c"), "/blob/devstoreaccount1/c");
    assert_eq!(resource("/c/%C3%A4%2Fb+c?sr=b"), "/blob/devstoreaccount1/c/ä/b+c");
}

#[test]
fn a_signature_for_a_root_blob_does_not_open_the_container_of_that_name() {
    let text = "rl\n\n2030-01-01\n/blob/devstoreaccount1/$root/name\n\n\n\n2020-12-06\nb\n\n\n\n\n\n\n";
    let query = "sp=rl&se=2030-01-01&sr=b&sv=2020-12-06";
    assert_eq!(Asked::signed(&format!("/name?{query}"), text).scope(), Ok(Scope::Blob));
    is_mismatch(Asked::signed(&format!("/name?restype=container&comp=list&{query}"), text).outcome());
    let text = "rl\n\n2030-01-01\n/blob/devstoreaccount1/$root\n\n\n\n2020-12-06\nc\n\n\n\n\n\n\n";
    let query = "sp=rl&se=2030-01-01&sr=c&sv=2020-12-06";
    assert_eq!(Asked::signed(&format!("/name?{query}"), text).scope(), Ok(Scope::Container));
    is_mismatch(Asked::signed(&format!("/name%5Cblob?{query}"), text).outcome());
}

#[test]
fn a_signature_for_a_blob_is_none_for_a_directory_of_that_name() {
    let text = |version: &str| format!("r\n\n2030-01-01\n/blob/devstoreaccount1/c/x\n\n\n\n{version}\n");
    let old = text("2017-11-09") + "\n\n\n\n";
    let query = |version: &str| format!("sp=r&se=2030-01-01&sv={version}");
    assert_eq!(Asked::signed(&format!("/c/x?sr=b&{}", query("2017-11-09")), &old).scope(), Ok(Scope::Blob));
    is_field(Asked::signed(&format!("/c/x/y?sr=d&sdd=1&{}", query("2017-11-09")), &old).outcome(), "sr");
    let new = text("2020-12-06") + "b\n\n\n\n\n\n\n";
    assert_eq!(Asked::signed(&format!("/c/x?sr=b&{}", query("2020-12-06")), &new).scope(), Ok(Scope::Blob));
    is_mismatch(Asked::signed(&format!("/c/x/y?sr=d&sdd=1&{}", query("2020-12-06")), &new).outcome());
}

#[test]
fn the_account_stands_alone_in_its_segment() {
    let text = "r\n\n2030-01-01\n/blob/devstoreaccount1/$root/b\n\n\n\n2020-12-06\nb\n\n\n\n\n\n\n";
    let asked = |path: &str| {
        let mut asked = Asked::signed("/b?sp=r&se=2030-01-01&sr=b&sv=2020-12-06", text);
        asked.path = path.to_owned();
        asked.scope()
    };
    assert_eq!(asked("/devstoreaccount1/b"), Ok(Scope::Blob));
    assert_eq!(asked("/devstoreaccount1-secondary/b"), Ok(Scope::Blob));
    for path in ["/devstoreaccount1%2Fc/b", "/other/b", "//b", "/b"] {
        assert!(matches!(asked(path), Err(Refusal::AuthenticationFailed(Fault::Other(_)))), "{path}");
    }
}

#[test]
fn response_headers_come_with_a_service_signature() {
    let text = "r\n\n2030-01-01\n/blob/devstoreaccount1/c/b\n\n\n\n2020-12-06\nb\n\n\ncc\n\n\n\nct";
    let asked = Asked::signed("/c/b?sp=r&se=2030-01-01&sr=b&sv=2020-12-06&rscc=cc&rsct=ct", text);
    let overrides = asked.outcome().expect("genuine").overrides.expect("there are some");
    assert_eq!((overrides.cache_control.as_deref(), overrides.content_type.as_deref()), (Some("cc"), Some("ct")));
    assert_eq!(overrides.content_language, None);
}

#[test]
fn what_is_signed_cannot_be_changed() {
    for (from, to) in [
        ("sp=rwdlacup", "sp=rwdlacupx"),
        ("ss=bqtf", "ss=bqt"),
        ("srt=sco", "srt=sc"),
        ("se=2030", "se=2031"),
        ("st=2026", "st=2025"),
        ("sv=2026-10-06", "sv=2026-06-06"),
        ("spr=https,http", "spr="),
        ("sig=", "sip=1.2.3.4&sig="),
        ("sig=", "ses=scope&sig="),
        ("%3D", ""),
        ("sig=/", "sig=%2B"),
    ] {
        is_mismatch(Asked::blob(&format!("/c?{}", ACCOUNT.replace(from, to))).outcome());
    }
}

#[test]
fn a_plus_sign_that_was_not_encoded_is_understood() {
    assert!(Asked::blob(&format!("/c?{}", ACCOUNT.replace("%2B", "+"))).outcome().is_ok());
}

#[test]
fn the_time_frame_includes_its_start_and_not_its_end() {
    let asked = Asked::blob(&format!("/c?{ACCOUNT}"));
    for now in ["2026-01-01", "2029-12-31T23:59:59.9999999Z"] {
        assert!(asked.outcome_with(now, None).is_ok(), "{now}");
    }
    for now in ["2025-12-31T23:59:59.9999999Z", "2030-01-01"] {
        let fault = Fault::OutsideTimeFrame { start: Some(at("2026-01-01")), expiry: at("2030-01-01"), now: at(now) };
        assert_eq!(asked.outcome_with(now, None), Err(Refusal::AuthenticationFailed(fault)));
    }
}

#[test]
fn a_bad_signature_is_found_before_its_expiry() {
    is_mismatch(Asked::blob(&format!("/c?{}", ACCOUNT.replace("sig=/", "sig=x"))).outcome_with("2040-01-01", None));
}

fn limited(limits: &str, lines: &str) -> Asked {
    let text = format!("devstoreaccount1\nr\nb\no\n\n2030-01-01\n{lines}\n2019-02-02\n");
    Asked::signed(&format!("/c?ss=b&srt=o&sp=r&se=2030-01-01&sv=2019-02-02&{limits}"), &text)
}

#[test]
fn addresses_are_held_against_the_peer() {
    let from = |sip: &str, peer: Option<&str>| {
        let mut asked = limited(&format!("sip={sip}"), &format!("{sip}\n"));
        asked.peer = peer.map(|peer| peer.parse().expect("an address"));
        asked.outcome().map(|_| ())
    };
    for peer in ["10.0.0.5", "10.0.0.7", "10.0.0.9", "::ffff:10.0.0.7"] {
        assert_eq!(from("10.0.0.5-10.0.0.9", Some(peer)), Ok(()), "{peer}");
    }
    assert_eq!(from("10.0.0.5", Some("10.0.0.5")), Ok(()));
    for peer in [Some("10.0.0.4"), Some("10.0.0.10"), Some("::1"), None] {
        assert_eq!(from("10.0.0.5-10.0.0.9", peer), Err(Refusal::SourceIpMismatch), "{peer:?}");
    }
}

#[test]
fn the_protocol_is_held_against_the_connection() {
    let mut asked = limited("spr=https", "\nhttps");
    assert_eq!(asked.outcome(), Err(Refusal::ProtocolMismatch));
    asked.https = true;
    assert!(asked.outcome().is_ok());
    let mut both = limited("spr=https&sip=1.1.1.1", "1.1.1.1\nhttps");
    assert_eq!(both.outcome(), Err(Refusal::SourceIpMismatch), "the address comes first");
    both.peer = Some("1.1.1.1".parse().expect("an address"));
    assert_eq!(both.outcome(), Err(Refusal::ProtocolMismatch));
}

#[test]
fn malformed_fields() {
    for (query, field) in [
        ("sv=newest", "sv"),
        ("sv=2026-13-01", "sv"),
        ("st=today", "st"),
        ("se=never", "se"),
        ("sp=rr", "sp"),
        ("sp=R", "sp"),
        ("sp=r1", "sp"),
        ("spr=http", "spr"),
        ("spr=ftp", "spr"),
        ("sip=1.2.3", "sip"),
        ("sip=2.2.2.2-1.1.1.1", "sip"),
        ("sip=1.1.1.1-", "sip"),
        ("sr=x", "sr"),
        ("sr=", "sr"),
        ("sv=2020-02-10&sr=d", "sdd"),
        ("sv=2020-02-10&sr=d&sdd=-1", "sdd"),
        ("sv=2020-02-10&sr=d&sdd=255", "sdd"),
        ("sv=2018-11-09&sr=d&sdd=1", "sr"),
        ("sv=2018-03-28&sr=bs&snapshot=s", "sr"),
        ("sv=2018-03-28&sr=bv&versionid=v", "sr"),
        ("ss=x&srt=o&sv=2019-02-02", "ss"),
        ("ss=b&srt=x&sv=2019-02-02", "srt"),
        ("ss=b&srt=o&sv=2014-02-14", "sv"),
        ("ss=b&srt=o&sv=2019-02-02&si=p", "si"),
        ("ss=b&srt=o", "sv"),
        ("sr=b&SR=c", "sr"),
        ("snapshot=1&SnapShot=2", "snapshot"),
    ] {
        is_field(Asked::blob(&format!("/c/b?{query}&sig=x")).outcome(), field);
    }
    is_field(Asked::blob(&format!("/c/b?si={}&sig=x", "i".repeat(65))).outcome(), "si");
    is_field(Asked::new(Service::Queue, "/q?sp=r&sig=x").outcome(), "sv");
    is_field(Asked::blob("/c/b?sr=b&sp=r%0A&sig=x").outcome(), "sp");
    is_field(Asked::new(Service::Table, "/t?sp=r&sig=x").outcome(), "tn");
    is_field(Asked::new(Service::Table, "/t?tn=t&srk=1&sig=x").outcome(), "srk");
    is_field(Asked::new(Service::File, "/s/f?sr=b&sig=x").outcome(), "sr");
    let missing = "/c/b?sr=b&sp=r&sv=2012-02-12";
    is_field(Asked::signed(missing, "r\n\n\n/devstoreaccount1/c/b\n\n2012-02-12").outcome(), "se");
    let missing = "/c/b?sr=b&se=2030-01-01&sv=2012-02-12";
    is_field(Asked::signed(missing, "\n\n2030-01-01\n/devstoreaccount1/c/b\n\n2012-02-12").outcome(), "sp");
    let delegated = Asked::blob("/c/b?skoid=x&sr=b&sv=2020-12-06&sig=x").outcome();
    assert!(matches!(delegated, Err(Refusal::AuthenticationFailed(Fault::Other(_)))));
    let path = Asked::blob("/c/%ff?sr=b&sv=2020-12-06&sig=x").outcome();
    assert!(matches!(path, Err(Refusal::AuthenticationFailed(Fault::Other(_)))));
}

#[test]
fn a_grant_speaks_for_its_caller() {
    let grant = Asked::blob(&format!("/c?{ACCOUNT}")).outcome().expect("genuine");
    assert_eq!(grant.may(&Need::new(Service::Blob, ResourceType::Object, "r")), Ok(()));
    let tags = Need::new(Service::Blob, ResourceType::Object, "t");
    assert_eq!(grant.may(&tags), Err(Refusal::PermissionMismatch));
}

#[test]
fn a_policy_is_only_named_by_a_signature() {
    let mut asked = Asked::blob("/c?si=p");
    assert_eq!(policy_named(&asked.request()), None);
    asked.query.push(("sig".into(), "x".into()));
    assert_eq!(policy_named(&asked.request()), Some("p"));
}
