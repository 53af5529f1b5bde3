//! Who may come in changes while the server runs, and counts from the next request on.

mod support;

use auth::Tokens;
use support::{
    ACCOUNT, Choice, Client, OID, Running, TID, accounts, bearer, by_owner, element, escaped, now, put_blob, raw,
    service_sas, signed, start, start_as, with_query,
};

fn secure(tokens: Tokens) -> (Running, Client) {
    let server = start_as(Choice { tls: true, tokens, ..Choice::default() });
    let mut client = Client::secure(server.blob);
    assert_eq!(client.ask(&signed("PUT", "/acct/box?restype=container", "", b"")).status, 201);
    assert_eq!(client.ask(&put_blob("/acct/box/thing", b"hello")).status, 201);
    (server, client)
}

#[test]
fn a_key_that_is_taken_away_opens_nothing() {
    const OTHER: &str = "b3RoZXIga2V5IG90aGVyIGtleQ==";
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let get = signed("GET", "/acct/box/thing", "", b"");
    assert_eq!(client.ask(&get).status, 200);
    server.accounts.set(accounts([OTHER]));
    let answer = client.ask(&get);
    assert_eq!((answer.status, answer.code()), (403, "AuthenticationFailed"));
    assert_eq!(client.ask(&by_owner("GET", "/acct/box/thing", "", b"")).status, 403);
    // During a rotation both will do.
    server.accounts.set(accounts([OTHER, support::KEY]));
    assert_eq!(client.ask(&get).text(), "hello");
    assert_eq!(client.ask(&by_owner("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn accounts_come_and_go() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let get = signed("GET", "/acct/box/thing", "", b"");
    server.accounts.set(auth::Accounts::parse("newcomer:MDEyMzQ1Njc4OWFiY2RlZg==").unwrap());
    let answer = client.ask(&get);
    assert_eq!((answer.status, answer.code()), (404, "ResourceNotFound"));
    let anonymous = raw("GET", "/newcomer/box/thing", "x-ms-version: 2021-12-02\r\n", b"");
    assert_eq!(client.ask(&anonymous).status, 401);
    server.accounts.set(accounts([support::KEY]));
    assert_eq!(client.ask(&get).text(), "hello", "what an account had is still there when it comes back");
    assert_eq!(client.ask(&anonymous).status, 404);
}

#[test]
fn a_stored_policy_counts_from_the_next_request_on() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let get = raw("GET", &with_query("/acct/box/thing", &service_sas("c", "box", "", "one")), "", b"");
    let list = with_query("/acct/box?restype=container&comp=list", &service_sas("c", "box", "", "one"));
    let list = raw("GET", &list, "", b"");
    let mut set = |permission: &str, expiry: &str| {
        let policy = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{expiry}</Expiry>\
             <Permission>{permission}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        let policy = if permission.is_empty() { String::new() } else { policy };
        let request = by_owner("PUT", "/acct/box?restype=container&comp=acl", "", policy.as_bytes());
        assert_eq!(client.ask(&request).status, 200);
        [client.ask(&get), client.ask(&list)].map(|answer| (answer.status, answer.code().to_owned()))
    };
    let (fine, refused) = ((200, String::new()), |code: &str| (403, code.to_owned()));
    let mismatch = refused("AuthorizationPermissionMismatch");
    assert_eq!(set("", ""), [refused("AuthenticationFailed"), refused("AuthenticationFailed")]);
    for _ in 0..3 {
        assert_eq!(set("r", "2098-01-01"), [fine.clone(), mismatch.clone()]);
        assert_eq!(set("l", "2098-01-01"), [mismatch.clone(), fine.clone()]);
        assert_eq!(set("rl", "2020-01-01"), [refused("AuthenticationFailed"), refused("AuthenticationFailed")]);
    }
}

#[test]
fn public_access_counts_from_the_next_request_on() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let get = raw("GET", "/acct/box/thing", "x-ms-version: 2021-12-02\r\n", b"");
    for (access, status) in [("x-ms-blob-public-access: blob\r\n", 200), ("", 401)] {
        let set = by_owner("PUT", "/acct/box?restype=container&comp=acl", access, b"");
        assert_eq!(client.ask(&set).status, 200);
        assert_eq!(client.ask(&get).status, status);
    }
}

#[test]
fn tokens_are_taken_inside_tls_only() {
    let (server, mut client) = secure(Tokens::basic());
    let get = raw("GET", "/acct/box/thing", &bearer(), b"");
    assert_eq!(client.ask(&get).text(), "hello");
    server.tokens.set(Tokens::refused());
    let answer = client.ask(&get);
    assert_eq!((answer.status, answer.code()), (403, "AuthenticationFailed"));
    server.tokens.set(Tokens::basic());
    assert_eq!(client.ask(&get).text(), "hello");

    let plain = start_as(Choice { tokens: Tokens::basic(), ..Choice::default() }).with_blob(b"hello");
    let answer = plain.client().ask(&get);
    assert_eq!((answer.status, answer.code()), (403, "AuthenticationFailed"));
    assert!(answer.text().contains("Authentication scheme Bearer is not allowed with HTTP."), "{}", answer.text());
}

#[test]
fn a_bad_token_is_answered_with_where_to_get_a_better_one() {
    let (_server, mut client) = secure(Tokens::basic());
    let headers = "Authorization: Bearer nonsense\r\nx-ms-version: 2021-12-02\r\n";
    let answer = client.ask(&raw("GET", "/acct/box/thing", headers, b""));
    assert_eq!((answer.status, answer.code()), (401, "InvalidAuthenticationInfo"));
    assert!(answer.header("www-authenticate").contains("resource_id=https://storage.azure.com"));
}

#[test]
fn a_user_signs_with_the_key_he_was_given() {
    let (_server, mut client) = secure(Tokens::basic());
    let target = "/acct?restype=service&comp=userdelegationkey";
    let expiry = now().plus_ticks(3600 * 10_000_000);
    let info = format!("<KeyInfo><Expiry>{}</Expiry></KeyInfo>", wire::dates::iso_seconds(expiry));
    let answer = client.ask(&raw("POST", target, &bearer(), info.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = answer.text();
    assert_eq!((element(told, "SignedOid"), element(told, "SignedTid")), (OID, TID));
    let key = auth::Key::from_base64(element(told, "Value")).unwrap();
    let (skt, ske, skv) = (element(told, "SignedStart"), element(told, "SignedExpiry"), element(told, "SignedVersion"));
    let sign = |sp: &str, oid: &str| {
        let (sv, resource) = ("2021-12-02", format!("/blob/{ACCOUNT}/box/thing"));
        let fields = [sp, "", ske, &resource, oid, TID, skt, ske, "b", skv, "", "", "", "", "", sv, "b"];
        let text = fields.join("\n") + &"\n".repeat(7);
        let signature = escaped(&key.sign(text.as_bytes()));
        format!(
            "sv={sv}&sr=b&sp={sp}&se={ske}&skoid={oid}&sktid={TID}&skt={skt}&ske={ske}&sks=b&skv={skv}&sig={signature}"
        )
    };
    let mut ask = |method, query: String| {
        let answer = client.ask(&raw(method, &with_query("/acct/box/thing", &query), "", b""));
        (answer.status, answer.code().to_owned())
    };
    assert_eq!(ask("GET", sign("r", OID)), (200, String::new()));
    assert_eq!(ask("DELETE", sign("r", OID)), (403, "AuthorizationPermissionMismatch".into()));
    // The key was made for one user, and another one cannot sign with it.
    assert_eq!(ask("GET", sign("r", TID)), (403, "AuthenticationFailed".into()));
}

#[test]
fn a_key_needs_a_user_and_a_reasonable_time() {
    let (_server, mut client) = secure(Tokens::basic());
    let target = "/acct?restype=service&comp=userdelegationkey";
    let info = b"<KeyInfo><Expiry>2098-01-01T00:00:00Z</Expiry></KeyInfo>";
    let answer = client.ask(&by_owner("POST", target, "", info));
    assert_eq!((answer.status, answer.code()), (403, "AuthenticationFailed"));
    assert!(answer.text().contains("Only authentication scheme Bearer is supported"), "{}", answer.text());
    let answer = client.ask(&raw("POST", target, &bearer(), info));
    assert_eq!((answer.status, answer.code()), (400, "InvalidXmlNodeValue"));
    let answer = client.ask(&raw("POST", target, &bearer(), b"nonsense"));
    assert_eq!((answer.status, answer.code()), (400, "InvalidXmlDocument"));
    let long = [b'x'; 10_000];
    assert_eq!(client.ask(&raw("POST", target, &bearer(), &long)).status, 413);
}
