//! A client without a socket, for tests: it goes all the way from negotiation to signed or encrypted requests, in every dialect.
//!
//! It puts requests together by hand, so that a test can send what no client would.

use bytes::Bytes;

use crate::crypto::encryption::{Opener, Sealer};
use crate::crypto::kdf::{self, Algorithms, SessionKey};
use crate::crypto::preauth::Preauth;
use crate::crypto::signing::SigningKey;
use crate::ntlm::client::Client as Ntlm;
use crate::samples;
use crate::spnego::client as spnego;
use crate::status::Status;
use crate::wire::FileId;
use crate::wire::compound::{self, Outgoing};
use crate::wire::create_context::chain;
use crate::wire::cursor::{Put, len16, len32, to_utf16};
use crate::wire::frame;
use crate::wire::header::{Command, Flags, HEADER_BYTES, Header, Route};
use crate::wire::negotiate::Dialect;
use crate::wire::negotiate_context::{CipherId, SigningId};

/// The keys of a client.
pub(crate) struct ClientKeys {
    pub signing: SigningKey,
    pub sealer: Option<Sealer>,
    pub opener: Option<Opener>,
}

/// A NEGOTIATE that offers one dialect, and in 3.1.1 one cipher and one signature.
pub(crate) fn negotiate(algorithms: Algorithms) -> Vec<u8> {
    let mut message = samples::negotiate();
    let dialect = (algorithms.dialect as u16).to_le_bytes();
    for place in 0..5 {
        let at = 64 + 36 + place * 2;
        message[at..at + 2].copy_from_slice(&dialect);
    }
    let contexts = (64usize + 36 + 10).next_multiple_of(8);
    let cipher = algorithms.cipher.map_or(0, |cipher| cipher as u8);
    // The first of four ciphers behind a context of 8 + 38 bytes, aligned; the others become unknown ones.
    let ciphers = contexts + (8usize + 38).next_multiple_of(8) + 8 + 2;
    message[ciphers..ciphers + 8].copy_from_slice(&[cipher, 0, 99, 0, 99, 0, 99, 0]);
    let signings = ciphers + 8 + 6 + 8 + 2;
    message[signings..signings + 6].copy_from_slice(&[algorithms.signing as u8, 0, 99, 0, 99, 0]);
    message
}

/// The keys of a client, derived by its own hand: what the server decrypts with, the client encrypts with.
pub(crate) fn client_keys(algorithms: Algorithms, session_key: &SessionKey, preauth: &Preauth) -> ClientKeys {
    let old = algorithms.dialect != Dialect::Smb311;
    let labels: [(&[u8], &[u8]); 3] = match old {
        true => {
            [(b"SMB2AESCMAC\0", b"SmbSign\0"), (b"SMB2AESCCM\0", b"ServerIn \0"), (b"SMB2AESCCM\0", b"ServerOut\0")]
        }
        false => {
            [(b"SMBSigningKey\0", &preauth.0), (b"SMBC2SCipherKey\0", &preauth.0), (b"SMBS2CCipherKey\0", &preauth.0)]
        }
    };
    let signing = match algorithms.dialect {
        Dialect::Smb210 => **session_key,
        _ => *kdf::derive(&session_key[..], labels[0].0, labels[0].1),
    };
    let key = |(label, context): (&[u8], &[u8])| match algorithms.cipher {
        Some(CipherId::Aes256Ccm | CipherId::Aes256Gcm) => kdf::derive::<32>(&session_key[..], label, context).to_vec(),
        _ => kdf::derive::<16>(&session_key[..], label, context).to_vec(),
    };
    ClientKeys {
        signing: SigningKey::new(algorithms.signing, &signing),
        sealer: algorithms.cipher.map(|cipher| Sealer::new(cipher, &key(labels[1]), [0; 4])),
        opener: algorithms.cipher.map(|cipher| Opener::new(cipher, &key(labels[2]))),
    }
}

/// 3.1.1 with AES-128-GCM and AES-GMAC: what Windows and Samba agree on.
pub const USUAL: Algorithms =
    Algorithms { dialect: Dialect::Smb311, signing: SigningId::AesGmac, cipher: Some(CipherId::Aes128Gcm) };

/// A client.
pub struct Client {
    algorithms: Algorithms,
    preauth: Preauth,
    ntlm: Option<(Ntlm, Vec<u8>)>,
    session_key: Option<SessionKey>,
    keys: Option<ClientKeys>,
    /// Requests are encrypted once the client is logged on; else they are signed.
    pub encrypt: bool,
    pub next_id: u64,
    pub session_id: u64,
    pub tree_id: u32,
    /// Credits that the server granted and that were not used.
    pub credits: u64,
    /// The session that a logon replaces.
    pub previous_session: u64,
    /// Requests say that they were sent before.
    pub replays: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("next_id", &self.next_id).finish_non_exhaustive()
    }
}

/// Where SESSION_SETUP names the session that it replaces.
const PREVIOUS_SESSION: usize = HEADER_BYTES + 16;

/// One request of a frame.
#[derive(Clone, Debug)]
pub struct Asked {
    pub command: Command,
    pub body: Vec<u8>,
    pub related: bool,
    pub charge: u16,
}

impl Asked {
    /// A request that pays for up to 64 KiB.
    #[must_use]
    pub fn new(command: Command, body: Vec<u8>) -> Asked {
        Asked { command, body, related: false, charge: 1 }
    }

    /// The same with the session, tree and file of the request before.
    #[must_use]
    pub fn related(self) -> Asked {
        Asked { related: true, ..self }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Told {
    pub header: Header,
    /// With the header: offsets count from there.
    pub bytes: Bytes,
}

impl Told {
    /// What the answer says of its request.
    #[must_use]
    pub fn status(&self) -> Status {
        self.header.status
    }

    /// The file id in an answer of CREATE.
    #[must_use]
    pub fn file_id(&self) -> FileId {
        let number = |at: usize| u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"));
        FileId { persistent: number(HEADER_BYTES + 64), volatile: number(HEADER_BYTES + 72) }
    }

    /// The buffer that an answer of READ has.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let length = u32::from_le_bytes(self.bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].try_into().expect("four bytes"));
        &self.bytes[HEADER_BYTES + 16..HEADER_BYTES + 16 + length as usize]
    }

    /// The output that an answer of IOCTL has.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        let number = |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (offset, length) = (number(HEADER_BYTES + 32), number(HEADER_BYTES + 36));
        &self.bytes[offset..offset + length]
    }

    /// The buffer that an answer of QUERY_DIRECTORY, QUERY_INFO or CHANGE_NOTIFY has.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        let length = u32::from_le_bytes(self.bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].try_into().expect("four bytes"));
        &self.bytes[HEADER_BYTES + 8..HEADER_BYTES + 8 + length as usize]
    }
}

impl Client {
    /// A client that has not said anything.
    #[must_use]
    pub fn new(algorithms: Algorithms, encrypt: bool) -> Client {
        Client {
            algorithms,
            preauth: Preauth::default(),
            ntlm: None,
            session_key: None,
            keys: None,
            encrypt,
            next_id: 0,
            session_id: 0,
            tree_id: 0,
            credits: 1,
            previous_session: 0,
            replays: false,
        }
    }

    fn stamped(&mut self, mut message: Vec<u8>, flags: Flags) -> Vec<u8> {
        message[16..20].copy_from_slice(&flags.0.to_le_bytes());
        message[24..32].copy_from_slice(&self.next_id.to_le_bytes());
        message[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        self.next_id += 1;
        message
    }

    /// NEGOTIATE.
    pub fn negotiate(&mut self) -> Vec<u8> {
        let message = self.stamped(negotiate(self.algorithms), Flags::default());
        self.preauth.update(&message);
        framed(&message)
    }

    /// The answer to NEGOTIATE is in; the first token of a logon follows.
    pub fn log_on(&mut self, answer: &[u8], user: &str, key: &str) -> Vec<u8> {
        self.preauth.update(&answer[4..]);
        self.log_on_again(user, key)
    }

    /// The first token of another logon.
    pub fn log_on_again(&mut self, user: &str, key: &str) -> Vec<u8> {
        let ntlm = Ntlm::new(user, key);
        let (init, list) = spnego::init(0, Some(&ntlm.negotiate()));
        self.ntlm = Some((ntlm, list));
        self.session_setup(&init)
    }

    /// The challenge is in; the proof follows.
    pub fn prove(&mut self, answer: &[u8]) -> Vec<u8> {
        let first = &answer[4..];
        self.preauth.update(first);
        self.session_id = Header::decode(first).expect("a header").session_id;
        let (ntlm, list) = self.ntlm.take().expect("a logon on its way");
        let Ok(crate::spnego::Token::Response(token)) = crate::spnego::Token::decode(&first[72..]) else {
            panic!("no token in the answer")
        };
        let (message, session_key, session) = ntlm.authenticate(token.token.expect("a challenge"));
        let last = spnego::response(&message, Some(&session.sign_as_client(&list)));
        self.session_key = Some(session_key);
        self.session_setup(&last)
    }

    /// SESSION_SETUP. A session that logs on again protects it.
    fn session_setup(&mut self, token: &[u8]) -> Vec<u8> {
        let mut message = samples::session_setup(token);
        message[PREVIOUS_SESSION..PREVIOUS_SESSION + 8].copy_from_slice(&self.previous_session.to_le_bytes());
        if self.keys.is_some() {
            return self.ask(Command::SessionSetup, message[HEADER_BYTES..].to_vec());
        }
        let message = self.stamped(message, Flags::default());
        self.preauth.update(&message);
        framed(&message)
    }

    /// The last answer of a logon is in.
    pub fn proven(&mut self, answer: &[u8]) -> Status {
        let status = Header::decode(&answer[4..]).expect("a header").status;
        if status == Status::SUCCESS {
            let session_key = self.session_key.take().expect("a key");
            self.keys = Some(client_keys(self.algorithms, &session_key, &self.preauth));
        }
        status
    }

    /// A frame of one request.
    pub fn ask(&mut self, command: Command, body: Vec<u8>) -> Vec<u8> {
        self.frame(vec![Asked::new(command, body)])
    }

    /// A frame of requests.
    pub fn frame(&mut self, asked: Vec<Asked>) -> Vec<u8> {
        let mut messages: Vec<Outgoing> = asked
            .into_iter()
            .map(|asked| {
                let flags = if asked.related { Flags::RELATED } else { Flags::default() };
                let flags = if self.replays { flags.with(Flags::REPLAY) } else { flags };
                let route = match asked.related {
                    true => Route::Tree { process: 0, tree: u32::MAX },
                    false => Route::Tree { process: 0xFEFF, tree: self.tree_id },
                };
                let header = Header {
                    credit_charge: asked.charge,
                    status: Status::SUCCESS,
                    command: asked.command as u16,
                    credits: 32,
                    flags: if self.encrypt { flags } else { flags.with(Flags::SIGNED) },
                    next: 0,
                    message_id: self.next_id,
                    route,
                    session_id: if asked.related { u64::MAX } else { self.session_id },
                    signature: [0; 16],
                };
                self.next_id += u64::from(asked.charge.max(1));
                let mut head = Vec::new();
                header.encode(&mut head);
                head.extend(asked.body);
                Outgoing { head, data: Vec::new() }
            })
            .collect();
        compound::join(&mut messages);
        self.protected(messages)
    }

    /// CANCEL of the request with this message id, or, with an asynchronous id, of that one.
    pub fn cancel(&mut self, message_id: u64, async_id: Option<u64>) -> Vec<u8> {
        let flags = if async_id.is_some() { Flags::ASYNC } else { Flags::default() };
        let header = Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command: Command::Cancel as u16,
            credits: 0,
            flags: if self.encrypt { flags } else { flags.with(Flags::SIGNED) },
            next: 0,
            message_id,
            route: async_id.map_or(Route::Tree { process: 0, tree: self.tree_id }, Route::Async),
            session_id: self.session_id,
            signature: [0; 16],
        };
        let mut head = Vec::new();
        header.encode(&mut head);
        head.put_u32(4);
        self.protected(vec![Outgoing { head, data: Vec::new() }])
    }

    fn protected(&self, mut messages: Vec<Outgoing>) -> Vec<u8> {
        let keys = self.keys.as_ref().expect("logged on");
        if self.encrypt {
            return framed(&keys.sealer.as_ref().expect("a cipher").seal(self.session_id, &messages));
        }
        messages.iter_mut().for_each(|message| keys.signing.sign(message));
        framed(&messages.iter().flat_map(Outgoing::joined).collect::<Vec<u8>>())
    }

    /// The answers in a frame, decrypted, with their signatures checked.
    #[must_use]
    pub fn answers(&self, frame: &[u8]) -> Vec<Told> {
        let keys = self.keys.as_ref().expect("logged on");
        let bytes: Bytes = match (&keys.opener, frame[4]) {
            (Some(opener), 0xFD) => opener.open(frame[4..].into()).expect("encrypted for this client"),
            _ => Bytes::copy_from_slice(&frame[4..]),
        };
        let messages = compound::split(&bytes).expect("messages");
        let told = messages.into_iter().map(|message| {
            // Nothing can sign for a session that is not there.
            let is_signed = message.header.flags.has(Flags::SIGNED);
            if is_signed && message.header.status != Status::USER_SESSION_DELETED {
                assert!(keys.signing.verify(&message.bytes), "a wrong signature");
            }
            Told { header: message.header, bytes: message.bytes }
        });
        told.collect()
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&frame::prefix(message.len())[..], message].concat()
}

fn put_file(out: &mut Vec<u8>, id: FileId) {
    out.put_u64(id.persistent);
    out.put_u64(id.volatile);
}

/// Bodies of requests.
pub mod body {
    use super::{FileId, HEADER_BYTES, Put, chain, len16, len32, put_file, to_utf16};

    /// LOGOFF, TREE_DISCONNECT, ECHO.
    #[must_use]
    pub fn empty() -> Vec<u8> {
        vec![4, 0, 0, 0]
    }

    /// TREE_CONNECT to a share of 127.0.0.1.
    #[must_use]
    pub fn tree_connect(share: &str) -> Vec<u8> {
        let path = to_utf16(&format!(r"\\127.0.0.1\{share}"));
        let mut out = Vec::new();
        out.put_u16(9);
        out.put_u16(0);
        out.put_u16(72);
        out.put_u16(len16(path.len()));
        out.put(&path);
        out
    }

    /// CREATE.
    #[must_use]
    pub fn create(name: &str, access: u32, share: u32, disposition: u32, options: u32) -> Vec<u8> {
        let name = to_utf16(name);
        let mut out = Vec::new();
        out.put_u16(57);
        out.put(&[0, 0]);
        out.put_u32(2);
        out.put_zeros(16);
        [access, 0, share, disposition, options].into_iter().for_each(|number| out.put_u32(number));
        out.put_u16(120);
        out.put_u16(len16(name.len()));
        out.put_u32(0);
        out.put_u32(0);
        out.put(&name);
        out.put_zeros(2);
        out
    }

    /// CREATE of something that is there, in the snapshot that the context `TWrp` names by its FILETIME.
    #[must_use]
    pub fn create_in_snapshot(name: &str, access: u32, disposition: u32, time: i64) -> Vec<u8> {
        let mut out = create(name, access, 7, disposition, 0);
        out.align(0, 8);
        let offset = len32(HEADER_BYTES + out.len());
        out.replace(48, &offset.to_le_bytes());
        out.replace(52, &32_u32.to_le_bytes());
        out.put_u32(0);
        [16, 4, 0, 24].into_iter().for_each(|number| out.put_u16(number));
        out.put_u32(8);
        out.put(b"TWrp");
        out.put_u32(0);
        out.put(&time.to_le_bytes());
        out
    }

    /// A CREATE with an oplock level and contexts.
    #[must_use]
    pub fn with_contexts(mut create: Vec<u8>, oplock: u8, contexts: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
        let contexts: Vec<(&[u8], &[u8])> = contexts.iter().map(|(name, data)| (*name, &data[..])).collect();
        let chain = chain(&contexts);
        create[3] = oplock;
        create.align(0, 8);
        let at = len32(HEADER_BYTES + create.len());
        create.replace(48, &at.to_le_bytes());
        create.replace(52, &len32(chain.len()).to_le_bytes());
        create.put(&chain);
        create
    }

    /// The data of `DH2Q`.
    #[must_use]
    pub fn durable_v2(timeout_ms: u32, create_guid: u128) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(timeout_ms);
        out.put_zeros(12);
        out.put(&create_guid.to_le_bytes());
        out
    }

    /// The data of `DH2C`.
    #[must_use]
    pub fn reconnect_v2(id: FileId, create_guid: u128) -> Vec<u8> {
        let mut out = reconnect(id);
        out.put(&create_guid.to_le_bytes());
        out.put_u32(0);
        out
    }

    /// The data of `DHnC`.
    #[must_use]
    pub fn reconnect(id: FileId) -> Vec<u8> {
        let mut out = Vec::new();
        put_file(&mut out, id);
        out
    }

    /// CREATE with every right, sharing everything, of a file that is there or is made, with an oplock level.
    #[must_use]
    pub fn create_with_oplock(name: &str, level: u8) -> Vec<u8> {
        let mut out = create(name, 0x1F_01FF, 7, 3, 0);
        out[3] = level;
        out
    }

    /// The same with a lease, of version 2 if there is an epoch.
    #[must_use]
    pub fn create_with_lease(name: &str, key: [u8; 16], state: u32, epoch: Option<u16>) -> Vec<u8> {
        with_contexts(create_with_oplock(name, 0xFF), 0xFF, &[(b"RqLs", lease(key, state, epoch))])
    }

    /// The data of `RqLs`.
    #[must_use]
    pub fn lease(key: [u8; 16], state: u32, epoch: Option<u16>) -> Vec<u8> {
        let mut out = key.to_vec();
        out.put_u32(state);
        out.put_zeros(12);
        if let Some(epoch) = epoch {
            out.put_zeros(16);
            out.put_u16(epoch);
            out.put_u16(0);
        }
        out
    }

    /// OPLOCK_BREAK: the acknowledgement of an oplock break.
    #[must_use]
    pub fn oplock_ack(id: FileId, level: u8) -> Vec<u8> {
        let mut out = vec![24, 0, level, 0, 0, 0, 0, 0];
        put_file(&mut out, id);
        out
    }

    /// OPLOCK_BREAK: the acknowledgement of a lease break.
    #[must_use]
    pub fn lease_ack(key: [u8; 16], state: u32) -> Vec<u8> {
        let mut out = vec![36, 0, 0, 0, 0, 0, 0, 0];
        out.put(&key);
        out.put_u32(state);
        out.put_u64(0);
        out
    }

    /// CLOSE.
    #[must_use]
    pub fn close(id: FileId) -> Vec<u8> {
        let mut out = vec![24, 0, 0, 0, 0, 0, 0, 0];
        put_file(&mut out, id);
        out
    }

    /// FLUSH.
    #[must_use]
    pub fn flush(id: FileId) -> Vec<u8> {
        // The same fields as in CLOSE.
        close(id)
    }

    /// READ.
    #[must_use]
    pub fn read(id: FileId, offset: u64, length: u32) -> Vec<u8> {
        let mut out = vec![49, 0, 0, 0];
        out.put_u32(length);
        out.put_u64(offset);
        put_file(&mut out, id);
        out.put_zeros(17);
        out
    }

    /// WRITE.
    #[must_use]
    pub fn write(id: FileId, offset: u64, data: &[u8]) -> Vec<u8> {
        let mut out = vec![49, 0];
        out.put_u16(len16(HEADER_BYTES + 48));
        out.put_u32(len32(data.len()));
        out.put_u64(offset);
        put_file(&mut out, id);
        out.put_zeros(16);
        out.put(data);
        out
    }

    /// LOCK: offset, length, flags of each range.
    #[must_use]
    pub fn lock(id: FileId, ranges: &[(u64, u64, u32)]) -> Vec<u8> {
        lock_numbered(id, 0, ranges)
    }

    /// LOCK with a number, and the place of the number above its four bits.
    #[must_use]
    pub fn lock_numbered(id: FileId, sequence: u32, ranges: &[(u64, u64, u32)]) -> Vec<u8> {
        let mut out = vec![48, 0];
        out.put_u16(len16(ranges.len()));
        out.put_u32(sequence);
        put_file(&mut out, id);
        for (offset, length, flags) in ranges {
            out.put_u64(*offset);
            out.put_u64(*length);
            out.put_u32(*flags);
            out.put_u32(0);
        }
        out
    }

    /// CHANGE_NOTIFY.
    #[must_use]
    pub fn change_notify(id: FileId, filter: u32) -> Vec<u8> {
        let mut out = vec![32, 0, 0, 0];
        out.put_u32(4096);
        put_file(&mut out, id);
        out.put_u32(filter);
        out.put_u32(0);
        out
    }

    /// QUERY_DIRECTORY.
    #[must_use]
    pub fn query_directory(id: FileId, class: u8, flags: u8, output: u32, pattern: &str) -> Vec<u8> {
        let pattern = to_utf16(pattern);
        let mut out = vec![33, 0, class, flags, 0, 0, 0, 0];
        put_file(&mut out, id);
        out.put_u16(len16(HEADER_BYTES + 32));
        out.put_u16(len16(pattern.len()));
        out.put_u32(output);
        out.put(&pattern);
        out
    }

    /// QUERY_INFO.
    #[must_use]
    pub fn query_info(id: FileId, kind: u8, class: u8, output: u32) -> Vec<u8> {
        let mut out = vec![41, 0, kind, class];
        out.put_u32(output);
        out.put_zeros(8);
        out.put_zeros(8);
        put_file(&mut out, id);
        out
    }

    /// SET_INFO.
    #[must_use]
    pub fn set_info(id: FileId, kind: u8, class: u8, buffer: &[u8]) -> Vec<u8> {
        let mut out = vec![33, 0, kind, class];
        out.put_u32(len32(buffer.len()));
        out.put_u16(len16(HEADER_BYTES + 32));
        out.put_u16(0);
        out.put_u32(0);
        put_file(&mut out, id);
        out.put(buffer);
        out
    }

    /// IOCTL.
    #[must_use]
    pub fn ioctl(id: FileId, code: u32, input: &[u8], max_output: u32) -> Vec<u8> {
        let mut out = vec![57, 0, 0, 0];
        out.put_u32(code);
        put_file(&mut out, id);
        out.put_u32(len32(HEADER_BYTES + 56));
        out.put_u32(len32(input.len()));
        out.put_zeros(12);
        out.put_u32(max_output);
        out.put_u32(1);
        out.put_u32(0);
        out.put(input);
        out
    }
}
