//! Bearer tokens: who signs them, and that his keys change while the server runs.

use std::path::PathBuf;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

use crate::support::*;
use crate::tls::ask_https;

const ISSUER: &str = "https://login.example.org/tenant/";

pub struct Signer {
    pair: EcdsaKeyPair,
    kid: &'static str,
}

impl Signer {
    pub fn new(kid: &'static str) -> Signer {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Signer { pair, kid }
    }

    /// The key set of an issuer that has this key only.
    pub fn key_set(&self) -> String {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (url(&point[1..33]), url(&point[33..]));
        format!(
            "{{\"keys\":[{{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"sig\",\"kid\":\"{}\",\"x\":\"{x}\",\"y\":\"{y}\"}}]}}",
            self.kid
        )
    }

    pub fn token(&self, issuer: &str) -> String {
        let header = format!("{{\"alg\":\"ES256\",\"kid\":\"{}\"}}", self.kid);
        let text = unsigned_token(&header, issuer);
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", url(signature.as_ref()))
    }
}

pub fn unsigned_token(header: &str, issuer: &str) -> String {
    let now = now().unix_seconds();
    let claims = format!(
        "{{\"aud\":\"https://storage.azure.com\",\"iss\":\"{issuer}\",\"iat\":{now},\"nbf\":{now},\"exp\":{},\
          \"oid\":\"someone\",\"tid\":\"tenant\"}}",
        now + 3600
    );
    format!("{}.{}", url(header.as_bytes()), url(claims.as_bytes()))
}

fn url(bytes: &[u8]) -> String {
    wire::base64::encode(bytes).replace('+', "-").replace('/', "_").replace('=', "")
}

pub fn request(token: &str) -> String {
    format!(
        "GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: x\r\nx-ms-version: 2021-12-02\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
}

pub fn certificate(folder: &Folder) -> PathBuf {
    folder.data().join("tls/cert.pem")
}

#[test]
fn basic_takes_them_whoever_signed() {
    let folder = Folder::new("oauth-basic");
    let token = unsigned_token("{\"alg\":\"none\"}", "https://sts.windows.net/tenant/") + ".AAAA";
    for (options, status) in [(&["--tls", "auto", "--oauth", "basic"][..], "200"), (&["--tls", "auto"], "403")] {
        let program = Program::start(&folder, options);
        let answer = ask_https(program.address("Blob"), "localhost", &certificate(&folder), &request(&token)).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(program.said.iter().any(|line| line.starts_with("Bearer tokens: ")), status == "200");
        let said = program.stop().join("\n");
        assert!(!said.contains(&token));
    }
}

#[test]
fn basic_stays_on_loopback() {
    let folder = Folder::new("oauth-loopback");
    let own_key = |options: &[&str]| {
        let mut command = command(&folder, options);
        command.env("AZURITE_ACCOUNTS", "mine:c2VjcmV0");
        command
    };
    let said = refusal(&mut own_key(&["--host", "0.0.0.0", "--oauth", "basic"]));
    assert!(said.contains("--oauth basic") && said.contains("--azurite-compat") && said.lines().count() == 1, "{said}");
    let mut program = Program::spawn(&mut own_key(&["--host", "0.0.0.0", "--oauth", "basic", "--azurite-compat"]));
    program.wait_for("Ready.");
    program.stop();
}

#[test]
fn verified_ones_follow_the_keys_of_their_issuer() {
    let folder = Folder::new("oauth-jwks");
    let (first, second) = (Signer::new("first"), Signer::new("second"));
    let file = folder.0.join("keys.json");
    std::fs::write(&file, first.key_set()).unwrap();
    let issuer = format!("issuer={ISSUER}");
    let options = ["--tls", "auto", "--oauth-jwks", file.to_str().unwrap(), "--oauth", &issuer, "--silent"];
    let program = Program::start(&folder, &options);
    let asked = |token: String| {
        let (blob, certificate) = (program.address("Blob"), certificate(&folder));
        move || ask_https(blob, "localhost", &certificate, &request(&token)).unwrap()
    };
    assert!(asked(first.token(ISSUER))().starts_with("HTTP/1.1 200 "));
    assert!(asked(second.token(ISSUER))().starts_with("HTTP/1.1 401 "));
    assert!(asked(first.token("https://login.example.org/other/"))().starts_with("HTTP/1.1 401 "));
    std::fs::write(&file, second.key_set()).unwrap();
    ask_until("HTTP/1.1 200 ", asked(second.token(ISSUER)));
    assert!(asked(first.token(ISSUER))().starts_with("HTTP/1.1 401 "));
    program.stop();
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let folder = Folder::new("oauth-bad");
    std::fs::write(folder.0.join("keys.json"), "{}").unwrap();
    for (options, word) in
        [(&["--oauth-jwks", "keys.json"][..], "keys.json"), (&["--oauth-jwks", "nowhere.json"], "nowhere.json")]
    {
        let said = refusal(&mut command(&folder, options));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn the_secret_of_delegation_keys_is_made_once() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("delegation");
    Program::start(&folder, &[]).stop();
    let file = folder.data().join("delegation-secret");
    let first = std::fs::read(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    Program::start(&folder, &[]).stop();
    assert_eq!(std::fs::read(&file).unwrap(), first);
    std::fs::write(&file, "damaged").unwrap();
    let said = refusal(&mut command(&folder, &[]));
    assert!(said.contains("delegation-secret is damaged") && said.lines().count() == 1, "{said}");
}
