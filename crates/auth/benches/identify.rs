//! What it costs to find out who calls: `cargo bench -p lazurite-auth --bench identify`.

#[allow(dead_code)]
#[path = "../src/bearer/tests/tokens.rs"]
mod tokens;

use std::hint::black_box;
use std::time::Instant;

use auth::{Account, AccountKey, Accounts, DelegationKey, Identifier, Key, KeySet, Request, Service, Tokens};

const NAME: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const SECRET: [u8; 32] = [7; 32];
const ROUNDS: u32 = 100;
const DATE: &str = "Fri, 02 Jan 2026 03:04:05 GMT";

struct Case {
    name: &'static str,
    path: &'static str,
    query: String,
    headers: Vec<(&'static str, String)>,
    runs: u32,
}

fn case(name: &'static str, path: &'static str, query: &str, headers: &[(&'static str, &str)]) -> Case {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Case { name, path, query: query.to_owned(), headers, runs: 2_000 }
}

fn cases() -> Vec<Case> {
    let version = ("x-ms-version", "2026-06-06");
    let list = "+xWkQ8oR0Y/2IjhX23i7OqwqZhkxoX/zAvcF1A73xis=";
    let list = format!("SharedKey {NAME}:{list}");
    let (oid, tid) = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222");
    let at = |text| wire::dates::parse_iso(text).expect("a date");
    let (start, expiry, newest) = ("2026-01-01T00:00:00Z", "2026-01-07T00:00:00Z", "2026-10-06");
    let derived = DelegationKey {
        account: NAME,
        oid,
        tid,
        start: at(start),
        expiry: at(expiry),
        service: Service::Blob,
        version: newest,
        delegated_tid: None,
    };
    let text = format!(
        "r\n\n2026-01-03\n/blob/{NAME}/c/b\n{oid}\n{tid}\n{start}\n{expiry}\nb\n{newest}\n\n\n\n\n\n\n\n{newest}\nb\n\n\n\n\n\n\n\n\n"
    );
    let key = Key::from_base64(&wire::base64::encode(&derived.value(&SECRET))).expect("a key");
    let signature = key.sign(text.as_bytes()).replace('+', "%2B");
    let delegated = format!(
        "sp=r&se=2026-01-03&sr=b&sv={newest}&skoid={oid}&sktid={tid}&skt={start}&ske={expiry}&sks=b&skv={newest}&sig={signature}"
    );
    let account = "sv=2026-10-06&ss=bqtf&srt=sco&sp=rwdlacup&st=2026-01-01T00:00:00Z&se=2030-01-01T00:00:00Z\
                   &spr=https,http&sig=/ZaF4fN7LtPcA6xGayMMybuySz05bUO9qDMfyGPCT%2Bg%3D";
    let service = "sp=r&sr=b&se=2030-01-01T00:00:00Z&sv=2026-10-06&sig=qFPboDo65YH1pOPgyfTKAMb932IQ0ZUlAxsoLrmg7PU%3D";
    let bearer = |name, token: &str| {
        let mut case =
            case(name, "/devstoreaccount1/c/b", "", &[version, ("authorization", &format!("Bearer {token}"))]);
        case.runs = 500;
        case
    };
    vec![
        case("nobody", "/devstoreaccount1/c/b", "", &[version]),
        case(
            "Shared Key",
            "/devstoreaccount1/cont1",
            "restype=container&comp=list",
            &[("x-ms-date", DATE), version, ("authorization", &list)],
        ),
        case("account signature", "/devstoreaccount1/c/b", account, &[version]),
        case("service signature", "/devstoreaccount1/cont1/dir/b%201.txt", service, &[version]),
        case("user delegation signature", "/devstoreaccount1/c/b", &delegated, &[version]),
        bearer("RS256 token", tokens::RS256),
        bearer("PS256 token", tokens::PS256),
        bearer("ES256 token", tokens::ES256),
    ]
}

fn main() {
    let accounts = Accounts::new([Account::new(NAME, vec![AccountKey::from_base64(KEY).expect("a key")])]);
    let keys = [tokens::KEY_TWO, tokens::KEY_ONE, tokens::KEY_CURVE].join(",");
    let verified = Tokens::verified(KeySet::parse(&format!("{{\"keys\":[{keys}]}}")).expect("keys"));
    let basic = Tokens::basic();
    let now = wire::dates::parse_iso("2026-01-02T03:04:05Z").expect("a date");
    for case in cases() {
        let pairs = wire::percent::query_pairs(&case.query).map(|pair| pair.expect("well-formed"));
        let query: Vec<_> = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let headers: http::HeaderMap = case
            .headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a value")))
            .collect();
        let request = Request {
            service: Service::Blob,
            method: "GET",
            account: NAME,
            path_style: true,
            path: case.path,
            query: &query,
            headers: &headers,
            https: true,
            peer: None,
        };
        let is_token = case.name.ends_with("token");
        for (way, tokens) in [("", &verified), (" (not verified)", &basic)].into_iter().take(1 + usize::from(is_token))
        {
            let identifier = Identifier::new(&accounts).tokens(tokens).delegation_secret(&SECRET);
            // The best of many short runs: whatever else the machine does only ever adds.
            let run = |_| {
                let began = Instant::now();
                for _ in 0..ROUNDS {
                    black_box(identifier.identify(black_box(&request), now, |_| None)).expect("let in");
                }
                began.elapsed().as_nanos() / u128::from(ROUNDS)
            };
            let each = (0..case.runs).map(run).min().expect("some runs");
            println!("{}{way}: {each} ns", case.name);
        }
    }
}
