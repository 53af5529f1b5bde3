//! A client that goes all the way: negotiation, logon, signed and encrypted requests, with every dialect, cipher and signature.

use super::*;
use crate::crypto::kdf::Algorithms;
use crate::ntlm::NtHash;
use crate::ntlm::client::Client as Ntlm;
use crate::samples;
use crate::session::{Reply, frame_of};
use crate::spnego::client as spnego;
use crate::testing::{ClientKeys, client_keys, negotiate};
use crate::wire::compound::Outgoing;
use crate::wire::negotiate_context::{CipherId, SigningId};
use crate::wire::{Response, echo};

fn settings(encrypt: bool) -> Arc<Settings> {
    let names = ServerNames {
        computer: "LAZURITE".into(),
        domain: "AZURE".into(),
        dns_computer: "lazurite".into(),
        dns_domain: "azure".into(),
        hosts: None,
    };
    Arc::new(Settings { names, server_guid: 7, require_encryption: encrypt, require_signing: false, leasing: false })
}

const DRAWN: Drawn = Drawn { session_id: 0x55, challenge: [3; 8], salt: [5; 4], time: 77 };

fn keys(user: &str) -> Vec<NtHash> {
    if user == "devstore" { vec![NtHash::of("key")] } else { Vec::new() }
}

/// A client: the connection that it talks to, and what it knows.
struct Client {
    connection: Connection,
    preauth: Preauth,
    next_id: u64,
    session_id: u64,
    keys: Option<ClientKeys>,
}

impl Client {
    fn new(encrypt: bool) -> Client {
        Client {
            connection: Connection::new(settings(encrypt)),
            preauth: Preauth::default(),
            next_id: 0,
            session_id: 0,
            keys: None,
        }
    }

    /// Puts message id, session and flags into a message.
    fn stamped(&mut self, mut message: Vec<u8>, flags: Flags) -> Vec<u8> {
        message[16..20].copy_from_slice(&flags.0.to_le_bytes());
        message[24..32].copy_from_slice(&self.next_id.to_le_bytes());
        message[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        self.next_id += 1;
        message
    }

    fn receive(&mut self, message: &[u8]) -> std::result::Result<Vec<Incoming>, Disconnect> {
        match self.connection.receive(message.into())? {
            Received::Requests { requests, .. } => Ok(requests),
            Received::MultiProtocol => panic!("no SMB1 was sent"),
        }
    }

    fn negotiate(&mut self, algorithms: Algorithms) -> Arc<Negotiated> {
        let message = self.stamped(negotiate(algorithms), Flags::default());
        let incoming = self.receive(&message).unwrap();
        let answer = self.connection.negotiate(&incoming[0], [9; 32], 77).unwrap();
        self.preauth.update(&message);
        self.preauth.update(&answer.head);
        self.connection.negotiated().expect("the negotiation succeeds").clone()
    }

    fn session_setup(&mut self, token: &[u8]) -> (LogonAnswer, Vec<u8>) {
        let message = self.stamped(samples::session_setup(token), Flags::default());
        self.preauth.update(&message);
        let incoming = self.receive(&message).unwrap();
        let answer = self.connection.session_setup(&incoming[0], DRAWN, keys);
        let bytes = answer.reply.message.head.clone();
        (answer, bytes)
    }

    /// Logs on. The error is that of the last answer.
    fn log_on(&mut self, algorithms: Algorithms, password: &str) -> Result<LogonAnswer> {
        let ntlm = Ntlm::new("devstore", password);
        let (init, list) = spnego::init(0, Some(&ntlm.negotiate()));
        let (_, first) = self.session_setup(&init);
        self.preauth.update(&first);
        assert_eq!(Header::decode(&first).unwrap().status, Status::MORE_PROCESSING_REQUIRED);
        self.session_id = Header::decode(&first).unwrap().session_id;
        let crate::spnego::Token::Response(token) = crate::spnego::Token::decode(&first[72..]).unwrap() else {
            panic!()
        };
        let (message, session_key, session) = ntlm.authenticate(token.token.unwrap());
        let last = spnego::response(&message, Some(&session.sign_as_client(&list)));
        let (answer, bytes) = self.session_setup(&last);
        let status = Header::decode(&bytes).unwrap().status;
        if status != Status::SUCCESS {
            return Err(status);
        }
        self.keys = Some(client_keys(algorithms, &session_key, &self.preauth));
        Ok(answer)
    }

    fn keys(&self) -> &ClientKeys {
        self.keys.as_ref().expect("logged on")
    }

    fn signed(&mut self, message: Vec<u8>) -> Vec<u8> {
        let head = self.stamped(message, Flags::SIGNED);
        let mut message = Outgoing { head, data: Vec::new() };
        self.keys().signing.sign(&mut message);
        message.head
    }

    fn sealed(&mut self, message: Vec<u8>) -> Vec<u8> {
        let head = self.stamped(message, Flags::default());
        let sealer = self.keys().sealer.as_ref().expect("a cipher");
        sealer.seal(self.session_id, &[Outgoing { head, data: Vec::new() }])
    }
}

fn all_algorithms() -> Vec<Algorithms> {
    let old = |dialect, signing, cipher| Algorithms { dialect, signing, cipher };
    let mut all = vec![
        old(Dialect::Smb210, SigningId::HmacSha256, None),
        old(Dialect::Smb300, SigningId::AesCmac, Some(CipherId::Aes128Ccm)),
        old(Dialect::Smb302, SigningId::AesCmac, Some(CipherId::Aes128Ccm)),
    ];
    for cipher in [CipherId::Aes128Ccm, CipherId::Aes128Gcm, CipherId::Aes256Ccm, CipherId::Aes256Gcm] {
        for signing in [SigningId::HmacSha256, SigningId::AesCmac, SigningId::AesGmac] {
            all.push(old(Dialect::Smb311, signing, Some(cipher)));
        }
    }
    all
}

fn echo() -> Vec<u8> {
    samples::message(Command::Echo, |out| out.extend([4, 0, 0, 0]))
}

fn echoed(incoming: &Incoming, connection: &mut Connection) -> Reply {
    let header = incoming.header.answer(Status::SUCCESS, connection.grant(incoming.header.credits));
    let message = Outgoing::new(&header, &Response::Echo(echo::Response));
    Reply { message, sign: incoming.session.clone().filter(|_| incoming.sign) }
}

#[test]
fn every_dialect_signs() {
    for algorithms in all_algorithms() {
        let mut client = Client::new(false);
        let negotiated = client.negotiate(algorithms);
        assert_eq!(negotiated.algorithms, algorithms);
        let answer = client.log_on(algorithms, "key").unwrap();
        let parts = frame_of(vec![answer.reply], None).concat();
        assert!(client.keys().signing.verify(&parts[4..]), "{algorithms:?}: the last answer of a logon is signed");
        let session = answer.session.unwrap();
        assert_eq!((session.user.as_str(), session.encrypt), ("devstore", false));
        assert!(session.key_is_among(&[NtHash::of("other"), NtHash::of("key")]));
        assert!(!session.key_is_among(&[NtHash::of("rotated")]));
        let request = client.signed(echo());
        let incoming = client.receive(&request).unwrap().remove(0);
        assert_eq!(incoming.request, Ok(Request::Echo(echo::Request)));
        let reply = echoed(&incoming, &mut client.connection);
        let frame = frame_of(vec![reply], None).concat();
        assert!(client.keys().signing.verify(&frame[4..]), "{algorithms:?}");
    }
}

#[test]
fn every_cipher_encrypts() {
    for algorithms in all_algorithms() {
        let mut client = Client::new(true);
        client.negotiate(algorithms);
        if algorithms.cipher.is_none() {
            assert_eq!(client.log_on(algorithms, "key").unwrap_err(), Status::ACCESS_DENIED, "nothing to encrypt with");
            continue;
        }
        assert!(client.log_on(algorithms, "key").unwrap().session.unwrap().encrypt);
        let request = client.sealed(echo());
        let Ok(Received::Requests { requests, encrypted }) = client.connection.receive(request[..].into()) else {
            panic!("{algorithms:?}")
        };
        let reply = echoed(&requests[0], &mut client.connection);
        assert!(reply.sign.is_none(), "what is encrypted is not signed");
        let frame = frame_of(vec![reply], encrypted.as_deref()).concat();
        let opened = client.keys().opener.as_ref().unwrap().open(frame[4..].into()).unwrap();
        assert_eq!(Header::decode(&opened).unwrap().command(), Ok(Command::Echo));
        let signed = client.signed(echo());
        let refused = client.receive(&signed).unwrap().remove(0);
        assert_eq!(refused.request, Err(Status::ACCESS_DENIED), "{algorithms:?}: not encrypted");
    }
}

const GMAC: Algorithms =
    Algorithms { dialect: Dialect::Smb311, signing: SigningId::AesGmac, cipher: Some(CipherId::Aes128Gcm) };

fn logged_on() -> Client {
    let mut client = Client::new(false);
    client.negotiate(GMAC);
    client.log_on(GMAC, "key").unwrap();
    client
}

#[test]
fn a_wrong_key_has_no_session() {
    let mut client = Client::new(false);
    client.negotiate(GMAC);
    assert_eq!(client.log_on(GMAC, "wrong").unwrap_err(), Status::LOGON_FAILURE);
    assert_eq!(client.connection.sessions().count(), 0);
    let message = client.stamped(samples::close(), Flags::default());
    assert_eq!(client.receive(&message).unwrap()[0].request, Err(Status::USER_SESSION_DELETED));
}

/// A man in the middle who changes NEGOTIATE: both sides have other hashes, so other keys.
#[test]
fn a_changed_negotiation_shows_in_the_signature() {
    let mut client = Client::new(false);
    client.negotiate(GMAC);
    client.preauth.update(b"what the server did not see");
    let answer = client.log_on(GMAC, "key").unwrap();
    let parts = frame_of(vec![answer.reply], None).concat();
    assert!(!client.keys().signing.verify(&parts[4..]));
}

#[test]
fn a_wrong_signature_is_denied() {
    let mut client = logged_on();
    let mut request = client.signed(samples::close());
    request[70] ^= 1;
    assert_eq!(client.receive(&request).unwrap()[0].request, Err(Status::ACCESS_DENIED));
    let tree = client.stamped(samples::tree_connect(r"\\h\s"), Flags::default());
    assert_eq!(client.receive(&tree).unwrap_err(), Disconnect::BadMessage, "3.1.1 wants this one signed");
}

#[test]
fn the_connection_ends_after_messages_out_of_turn() {
    let mut client = Client::new(false);
    assert_eq!(client.receive(&echo()).unwrap_err(), Disconnect::OutOfTurn);
    let mut client = logged_on();
    let again = client.stamped(negotiate(GMAC), Flags::default());
    assert_eq!(client.receive(&again).unwrap_err(), Disconnect::OutOfTurn);
    let mut client = logged_on();
    let request = client.signed(echo());
    assert!(client.receive(&request).is_ok());
    assert_eq!(client.receive(&request).unwrap_err(), Disconnect::OutOfWindow, "a message id is used once");
    assert_eq!(client.receive(b"\xFDSMB").unwrap_err(), Disconnect::BadMessage);
    let mut sealed = logged_on().sealed(echo());
    sealed[60] ^= 1;
    assert_eq!(logged_on().receive(&sealed).unwrap_err(), Disconnect::BadMessage);
    let answer = client.stamped(echo(), Flags::RESPONSE);
    assert_eq!(client.receive(&answer).unwrap_err(), Disconnect::BadMessage);
}

#[test]
fn smb1_is_answered_once_and_only_with_smb2() {
    let packet = |names: &str| {
        let mut out = b"\xFFSMB\x72".to_vec();
        out.resize(33, 0);
        out.extend([names.len() as u8, 0]);
        out.extend(names.bytes());
        out
    };
    let mut client = Client::new(false);
    let any = packet("\x02NT LM 0.12\0\x02SMB 2.???\0");
    assert!(matches!(client.connection.receive(any[..].into()), Ok(Received::MultiProtocol)));
    let answer = client.connection.multi_protocol(77);
    assert_eq!(answer.head[68..70], [0xFF, 0x02]);
    assert_eq!(client.connection.receive(any[..].into()).unwrap_err(), Disconnect::OutOfTurn);
    client.next_id = 1;
    client.negotiate(GMAC);
    let old = packet("\x02NT LM 0.12\0\x02SMB 2.002\0");
    assert_eq!(Connection::new(settings(false)).receive(old[..].into()).unwrap_err(), Disconnect::OutOfTurn);
}

#[test]
fn related_requests_have_the_session_of_the_first() {
    let mut client = logged_on();
    client.connection.grant(10);
    let mut frame = Vec::new();
    for place in 0..2 {
        let flags = if place == 0 { Flags::SIGNED } else { Flags::SIGNED.with(Flags::RELATED) };
        let mut head = client.stamped(samples::query_info(), flags);
        head.resize(head.len().next_multiple_of(8), 0);
        if place == 0 {
            let next = u32::try_from(head.len()).unwrap();
            head[20..24].copy_from_slice(&next.to_le_bytes());
        } else {
            head[40..48].fill(0xFF);
        }
        let mut message = Outgoing { head, data: Vec::new() };
        client.keys().signing.sign(&mut message);
        frame.extend(message.head);
    }
    let requests = client.receive(&frame).unwrap();
    assert!(requests.iter().all(|incoming| incoming.request.is_ok() && incoming.sign));
    assert!(requests.iter().all(|incoming| incoming.session.as_ref().is_some_and(|session| session.id == 0x55)));
    let first = client.stamped(samples::close(), Flags::RELATED);
    assert_eq!(client.receive(&first).unwrap()[0].request, Err(Status::INVALID_PARAMETER));
}

#[test]
fn a_charge_must_pay_for_the_data() {
    let mut client = logged_on();
    let mut read = samples::read();
    read[68..72].copy_from_slice(&65_537u32.to_le_bytes());
    let request = client.signed(read);
    assert_eq!(client.receive(&request).unwrap()[0].request, Err(Status::INVALID_PARAMETER));
}

#[test]
fn logging_on_again_keeps_the_session() {
    let mut client = logged_on();
    let before = client.connection.session(0x55).unwrap().clone();
    client.log_on(GMAC, "key").unwrap();
    assert!(Arc::ptr_eq(&before, client.connection.session(0x55).unwrap()));
    assert_eq!(client.log_on(GMAC, "wrong").unwrap_err(), Status::LOGON_FAILURE);
}

#[test]
fn sessions_of_a_connection_are_limited() {
    let mut client = Client::new(false);
    client.negotiate(GMAC);
    let ntlm = Ntlm::new("devstore", "key");
    let (init, _) = spnego::init(0, Some(&ntlm.negotiate()));
    for count in 0..=LOGONS_BEFORE_LOGON_MAX as u64 {
        let message = client.stamped(samples::session_setup(&init), Flags::default());
        let incoming = client.receive(&message).unwrap();
        let drawn = Drawn { session_id: 100 + count, ..DRAWN };
        let answer = client.connection.session_setup(&incoming[0], drawn, keys);
        let status = Header::decode(&answer.reply.message.head).unwrap().status;
        let expected = if count < LOGONS_BEFORE_LOGON_MAX as u64 {
            Status::MORE_PROCESSING_REQUIRED
        } else {
            Status::INSUFFICIENT_RESOURCES
        };
        assert_eq!(status, expected, "{count}");
    }
}
