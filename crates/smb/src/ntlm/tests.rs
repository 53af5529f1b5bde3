use super::client::{Client, FLAGS};
use super::*;
use crate::crypto::hex;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const OTHER: &str = "b3RoZXI=";

fn names() -> ServerNames {
    ServerNames {
        computer: "LAZURITE".into(),
        domain: "AZURE".into(),
        dns_computer: "lazurite".into(),
        dns_domain: "azure".into(),
        hosts: None,
    }
}

fn keys(user: &str) -> Vec<NtHash> {
    match user {
        "devstore" => vec![NtHash::of(KEY), NtHash::of(OTHER)],
        _ => Vec::new(),
    }
}

fn logon(client: &Client) -> Result<LoggedOn> {
    let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77)?;
    challenge.authenticate(&client.authenticate(challenge.message()).0, keys)
}

#[test]
fn either_key_logs_on_and_both_sides_have_one_session_key() {
    for password in [KEY, OTHER] {
        for domain in ["AZURE", "localhost", "", "Ünïcode"] {
            let client = Client { domain: domain.into(), ..Client::new("DevStore", password) };
            let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
            let (message, session_key, session) = client.authenticate(challenge.message());
            let logged_on = challenge.authenticate(&message, keys).unwrap();
            assert_eq!(logged_on.user, "devstore");
            assert!(logged_on.key.is(&NtHash::of(password)));
            assert_eq!(logged_on.session_key, session_key);
            assert!(logged_on.session.verify(b"list", &session.sign_as_client(b"list")));
            assert!(session.verify_as_client(b"list", &logged_on.session.sign(b"list")));
            assert!(!logged_on.session.verify(b"other", &session.sign_as_client(b"list")));
            assert!(!logged_on.session.verify(b"list", &[]));
        }
    }
}

#[test]
fn a_wrong_key_and_an_unknown_account_fail_alike() {
    for (user, password) in [("devstore", "wrong"), ("nobody", KEY), ("nobody", ""), ("devstore", "")] {
        assert_eq!(logon(&Client::new(user, password)).unwrap_err(), Status::LOGON_FAILURE, "{user}");
    }
}

/// The hash that stands in for a missing key must not be a key: a client that knows it could log on to any account.
#[test]
fn the_key_of_an_unknown_account_is_none() {
    let client = Client::new("nobody", "x");
    let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
    let (message, _, _) = client.authenticate(challenge.message());
    let answer = Authenticate::decode(&message).unwrap();
    let blob = answer.nt_response[16..].to_vec();
    let owf = NtHash(Zeroizing::new([0; 16])).with_user(&client.user, &client.domain);
    let proof = hmac_md5(&owf[..], &[&[3; 8], &blob]);
    let forged = client.message(&[&proof[..], &blob].concat(), &[0; 16], FLAGS);
    assert_eq!(challenge.authenticate(&forged, |_| Vec::new()).unwrap_err(), Status::LOGON_FAILURE);
    assert_eq!(challenge.authenticate(&forged, |_| vec![NtHash::of("y")]).unwrap_err(), Status::LOGON_FAILURE);
}

#[test]
fn anonymous_and_guest_and_old_responses_are_refused() {
    assert_eq!(logon(&Client::new("", "")).unwrap_err(), Status::LOGON_FAILURE);
    assert_eq!(logon(&Client::new("guest", "")).unwrap_err(), Status::LOGON_FAILURE);
    let client = Client::new("devstore", KEY);
    let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
    for response in [&[][..], &[0; 16], &[7; 24], &[0; 44]] {
        let message = client.message(response, &[0; 16], FLAGS);
        assert_eq!(challenge.authenticate(&message, keys).unwrap_err(), Status::LOGON_FAILURE, "{}", response.len());
    }
    let anonymous = Client { flags: FLAGS | flag::ANONYMOUS, ..client };
    let (mut message, _, _) = anonymous.authenticate(challenge.message());
    message[61] |= 0x08;
    assert_eq!(challenge.authenticate(&message, keys).unwrap_err(), Status::LOGON_FAILURE);
}

#[test]
fn a_mic_that_is_announced_is_checked() {
    let client = Client::new("devstore", KEY);
    let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
    let (message, _, _) = client.authenticate(challenge.message());
    assert!(challenge.authenticate(&message, keys).is_ok());
    for at in [message::MIC.start, message::MIC.end - 1, 60, 88] {
        let mut other = message.clone();
        other[at] ^= 0x10;
        assert_eq!(challenge.authenticate(&other, keys).unwrap_err(), Status::LOGON_FAILURE, "byte {at}");
    }
    let without = Client { mic: false, ..Client::new("devstore", KEY) };
    assert!(logon(&without).is_ok(), "the Linux kernel sends none");
}

#[test]
fn proofs_that_were_made_for_others_are_refused() {
    let web = Client { target: Some("HTTP/server".into()), ..Client::new("devstore", KEY) };
    assert_eq!(logon(&web).unwrap_err(), Status::LOGON_FAILURE);
    // The same client challenged by another server: names and time differ, although the challenge is the same.
    let client = Client::new("devstore", KEY);
    let ours = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
    let theirs = ServerNames { computer: "EVIL".into(), ..names() };
    let theirs = Challenge::new(&client.negotiate(), &theirs, [3; 8], 77).unwrap();
    let without_mic = Client { mic: false, ..client };
    let (message, _, _) = without_mic.authenticate(theirs.message());
    assert_eq!(ours.authenticate(&message, keys).unwrap_err(), Status::LOGON_FAILURE);
}

#[test]
fn keys_need_not_be_exchanged() {
    for flags in [FLAGS & !flag::KEY_EXCH, FLAGS & !flag::BITS_128, FLAGS & !flag::BITS_128 & !flag::BITS_56] {
        let client = Client { flags, ..Client::new("devstore", KEY) };
        let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
        let (message, session_key, session) = client.authenticate(challenge.message());
        let logged_on = challenge.authenticate(&message, keys).unwrap();
        assert_eq!(logged_on.session_key, session_key);
        assert!(logged_on.session.verify(b"list", &session.sign_as_client(b"list")), "{flags:#x}");
    }
    let ascii = Client { flags: FLAGS & !flag::UNICODE, ..Client::new("devstore", KEY) };
    assert_eq!(logon(&ascii).unwrap_err(), Status::LOGON_FAILURE);
}

#[test]
fn messages_that_are_none_are_invalid_parameters() {
    let client = Client::new("devstore", KEY);
    let challenge = Challenge::new(&client.negotiate(), &names(), [3; 8], 77).unwrap();
    let (message, _, _) = client.authenticate(challenge.message());
    for length in 0..message.len() {
        assert!(challenge.authenticate(&message[..length], keys).is_err(), "{length}");
    }
    assert_eq!(challenge.authenticate(&client.negotiate(), keys).unwrap_err(), Status::INVALID_PARAMETER);
    assert_eq!(Challenge::new(b"NTLMSSP", &names(), [0; 8], 0).unwrap_err(), Status::INVALID_PARAMETER);
    let mut long = client.negotiate();
    long.resize(message::NEGOTIATE_BYTES_MAX + 1, 0);
    assert_eq!(Challenge::new(&long, &names(), [0; 8], 0).unwrap_err(), Status::INVALID_PARAMETER);
}

/// MS-NLMP 4.2.4.
#[test]
fn values_are_those_of_the_documents() {
    let owf = NtHash::of("Password").with_user("User", "Domain");
    assert_eq!(owf[..], hex("0c868a403bfd7a93a3001ef22ef02e3f"));
    let blob = hex("01010000000000000000000000000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d006100
                    69006e0001000c005300650072007600650072000000000000000000");
    let proof = hmac_md5(&owf[..], &[&hex("0123456789abcdef"), &blob]);
    assert_eq!(proof[..], hex("68cd0ab851e51c96aabc927bebef6a1c"));
    let base_key: SessionKey = Zeroizing::new(hmac_md5(&owf[..], &[&proof]));
    assert_eq!(base_key[..], hex("8de40ccadbc14a82f15cb0ad0de95ca3"));
    let key = exported(flag::KEY_EXCH, &base_key, &hex("c5dad2544fc9799094ce1ce90bc9d03e")).unwrap();
    assert_eq!(key[..], [0x55; 16]);
    let flags = u32::from_le_bytes([0x33, 0x82, 0x8a, 0xe2]);
    let (sign, seal) = NtlmSession::new(&key, flags).client_keys();
    assert_eq!(sign, hex("4788dc861b4782f35d43fd98fe1a2d39"));
    assert_eq!(seal, Some(hex("59f600973cc4960a25480a7c196e4c58")));
}
