//! What the crate `fuzzing` calls: every decoder with arbitrary bytes, and inputs to begin with.

use std::sync::Arc;

use bytes::Bytes;

use crate::connection::{Connection, Drawn, Received, Settings};
use crate::crypto::encryption::{Opener, Sealer};
use crate::crypto::signing::SigningKey;
use crate::logon::{Logon, Step};
use crate::ntlm::client::Client;
use crate::ntlm::{Challenge, NtHash, ServerNames};
use crate::pipe::Pipe;
use crate::pipe::srvsvc::{self, Server, Share, ShareKind};
use crate::samples;
use crate::spnego::{self, Token};
use crate::wire::compound::{self, Outgoing};
use crate::wire::create_context::RequestContexts;
use crate::wire::frame::{self, FRAME_BYTES_MAX};
use crate::wire::header::{Command, Header};
use crate::wire::info::quota::QuotaRequest;
use crate::wire::info::set::SetFile;
use crate::wire::negotiate_context::{CipherId, Contexts, SigningId};
use crate::wire::transform::Transform;
use crate::wire::{FileId, Request, fsctl, smb1, snapshot_token};

/// A frame: its prefix, its messages, and each of them as a request of its own and of every other command.
pub fn packet(bytes: &[u8]) {
    if let Some(prefix) = bytes.first_chunk() {
        let _ = frame::decode(*prefix, FRAME_BYTES_MAX);
    }
    let _ = (smb1::decode(bytes), Transform::decode(bytes));
    connection(bytes);
    let bytes = Bytes::copy_from_slice(bytes);
    for command in Command::ALL {
        request(*command, &bytes);
    }
    let Ok(messages) = compound::split(&bytes) else { return };
    let whole: usize = messages.iter().map(|message| message.bytes.len()).sum();
    assert_eq!(whole, bytes.len(), "the messages of a frame are all of it");
    for message in messages {
        let mut again = Vec::new();
        message.header.encode(&mut again);
        assert_eq!(Header::decode(&again), Ok(message.header), "a header that was read is written and read again");
        if let Ok(command) = message.header.command() {
            request(command, &message.bytes);
        }
    }
}

/// A frame as the first one of a connection, and after a negotiation.
fn connection(bytes: &[u8]) {
    let negotiate = samples::negotiate_first();
    for frames in [&[bytes][..], &[&negotiate, bytes]] {
        let settings = Settings {
            names: names(),
            server_guid: 7,
            require_encryption: false,
            require_signing: false,
            leasing: true,
        };
        let mut connection = Connection::new(Arc::new(settings));
        for frame in frames {
            let Ok(Received::Requests { requests, .. }) = connection.receive((*frame).into()) else { return };
            for incoming in &requests {
                let drawn = Drawn { session_id: 5, challenge: [3; 8], salt: [5; 4], time: 77 };
                let _ = connection.session_setup(incoming, drawn, |_| Vec::new());
                let _ = connection.negotiate(incoming, [0; 32], 77);
            }
        }
    }
}

fn request(command: Command, message: &Bytes) {
    let Ok(mut request) = Request::decode(command, message) else { return };
    let _ = request.payload_bytes();
    request.set_file_id(FileId::RELATED);
    assert!(request.file_id().is_none_or(|id| id == FileId::RELATED));
    match &request {
        Request::Write(write) => assert!(write.data.len() <= message.len()),
        Request::Ioctl(ioctl) => info(&ioctl.input),
        Request::SetInfo(set) => drop(SetFile::decode(set.class, &set.buffer)),
        Request::TreeConnect(tree) => drop(tree.share()),
        _ => {}
    }
}

/// Contexts of CREATE and of NEGOTIATE.
pub fn contexts(bytes: &[u8]) {
    let _ = RequestContexts::decode(bytes);
    for count in [1, 3, 8] {
        let _ = Contexts::decode(bytes, count);
    }
}

/// What SET_INFO, QUERY_INFO and IOCTL carry, and tokens of snapshots in paths.
pub fn info(bytes: &[u8]) {
    for class in 0..=u8::MAX {
        let _ = SetFile::decode(class, bytes);
    }
    let _ = (QuotaRequest::decode(bytes), fsctl::ValidateNegotiate::decode(bytes), fsctl::CopyChunks::decode(bytes));
    let _ = (fsctl::set_zero_data(bytes), fsctl::query_allocated_ranges(bytes), fsctl::pipe_wait(bytes));
    let _ = (fsctl::set_sparse(bytes), fsctl::set_compression(bytes), fsctl::DuplicateExtents::decode(bytes));
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (path, time) = snapshot_token::split(text);
        assert!(path.len() <= text.len());
        if let Some(again) = time.map(snapshot_token::of) {
            assert!(text.contains(&again), "a token that was read is written the same");
        }
    }
}

/// Encrypted frames and signatures: nothing opens but what was sealed.
pub fn transform(bytes: &[u8]) {
    for (id, length) in
        [(CipherId::Aes128Ccm, 16), (CipherId::Aes128Gcm, 16), (CipherId::Aes256Ccm, 32), (CipherId::Aes256Gcm, 32)]
    {
        let key = vec![7; length];
        let opener = Opener::new(id, &key);
        let _ = opener.open(bytes.into());
        let sealed = Sealer::new(id, &key, [5; 4]).seal(5, &[Outgoing { head: bytes.to_vec(), data: Vec::new() }]);
        assert_eq!(opener.open(sealed[..].into()).as_deref(), Ok(bytes), "what was sealed opens");
    }
    for id in [SigningId::HmacSha256, SigningId::AesCmac, SigningId::AesGmac] {
        let key = SigningKey::new(id, &[7; 16]);
        let _ = key.verify(bytes);
        let mut answer = Outgoing { head: bytes.to_vec(), data: Vec::new() };
        key.sign(&mut answer);
        assert!(answer.head.len() < 64 || key.verify(&answer.head), "what was signed is right");
    }
}

fn names() -> ServerNames {
    ServerNames {
        computer: "SERVER".into(),
        domain: "AZURE".into(),
        dns_computer: "server".into(),
        dns_domain: "azure".into(),
        hosts: None,
    }
}

fn challenge() -> Challenge {
    let first = Client::new("devstore", "key").negotiate();
    Challenge::new(&first, &names(), [3; 8], 77).expect("a client's first message")
}

/// NTLM messages. Nothing logs on without the key.
pub fn ntlm(bytes: &[u8]) {
    let _ = Challenge::new(bytes, &names(), [3; 8], 77);
    assert!(challenge().authenticate(bytes, |_| vec![NtHash::of("another key")]).is_err());
    let _ = challenge().authenticate(bytes, |_| vec![NtHash::of("key")]);
}

/// Tokens, at each stage of a logon.
pub fn spnego(bytes: &[u8]) {
    let _ = Token::decode(bytes);
    let step = |logon: &mut Logon, token: &[u8]| logon.step(token, [3; 8], 77, |_| vec![NtHash::of("another key")]);
    let first = Client::new("devstore", "key").negotiate();
    for earlier in [&[][..], &[spnego::client::init(0, Some(&first)).0], std::slice::from_ref(&first)] {
        let mut logon = Logon::new(names());
        earlier.iter().for_each(|token| drop(step(&mut logon, token)));
        assert!(!matches!(step(&mut logon, bytes), Ok(Step::Done { .. })), "nobody has the key");
    }
}

/// DCE/RPC packets and the arguments of calls.
pub fn rpc(bytes: &[u8]) {
    let shares = [
        Share { name: "a".into(), kind: ShareKind::Disk, remark: String::new() },
        Share { name: "IPC$".into(), kind: ShareKind::Ipc, remark: "b".into() },
    ];
    let server = Server { name: "SERVER", comment: "", shares: &shares };
    for opnum in [15, 16, 21, 22] {
        let _ = srvsvc::call(opnum, bytes, &server);
    }
    let mut pipe = Pipe::default();
    for piece in bytes.chunks(bytes.len() / 3 + 1) {
        let _ = pipe.write(piece, &server);
    }
    while pipe.read(100).is_ok() {}
}

/// What mutation of [`packet`] begins with: a request of each command, a compound, and an SMB1 packet.
#[must_use]
pub fn packet_samples() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = samples::requests().into_iter().map(|(_, message)| message).collect();
    all.extend([samples::compound(), samples::smb1(), samples::negotiate_first()]);
    all
}

/// What mutation of [`contexts`] begins with.
#[must_use]
pub fn context_samples() -> Vec<Vec<u8>> {
    vec![samples::create_contexts(), samples::negotiate_contexts()]
}

/// What mutation of [`info`] begins with.
#[must_use]
pub fn info_samples() -> Vec<Vec<u8>> {
    let token = b"dir\\@GMT-2026.01.02-03.04.05\\file".to_vec();
    let extents = [1_i64, 2, 4_096, 0, 65_536].map(i64::to_le_bytes).concat();
    vec![
        samples::rename("dir\\new"),
        vec![0; 40],
        samples::validate_negotiate(),
        samples::copy_chunks(),
        extents,
        token,
    ]
}

/// What mutation of [`transform`] begins with.
#[must_use]
pub fn transform_samples() -> Vec<Vec<u8>> {
    let answer = Outgoing { head: samples::compound(), data: Vec::new() };
    vec![Sealer::new(CipherId::Aes128Gcm, &[7; 16], [5; 4]).seal(5, std::slice::from_ref(&answer)), answer.head]
}

/// What mutation of [`ntlm`] begins with.
#[must_use]
pub fn ntlm_samples() -> Vec<Vec<u8>> {
    let client = Client::new("devstore", "key");
    let challenge = challenge();
    let (answer, _, _) = client.authenticate(challenge.message());
    vec![client.negotiate(), answer, challenge.message().to_vec()]
}

/// What mutation of [`spnego`] begins with.
#[must_use]
pub fn spnego_samples() -> Vec<Vec<u8>> {
    let client = Client::new("devstore", "key");
    let (answer, _, session) = client.authenticate(challenge().message());
    let (init, list) = spnego::client::init(1, Some(&client.negotiate()));
    let response = spnego::client::response(&answer, Some(&session.sign_as_client(&list)));
    vec![init, response, answer, spnego::init2()]
}

/// What mutation of [`rpc`] begins with.
#[must_use]
pub fn rpc_samples() -> Vec<Vec<u8>> {
    let stub = samples::share_enum(1);
    let packets = [samples::rpc_bind(), samples::rpc_request(15, &stub)].concat();
    vec![packets, samples::rpc_bind(), stub]
}
