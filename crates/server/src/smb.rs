//! SMB on a connection: frames in and out, and the limits of time around them. What is said in the frames is the business of the
//! crate `smb`.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use ::smb::connection::Settings;
use ::smb::conversation::Conversation;
use ::smb::ntlm::ServerNames;
use ::smb::outbox::Outbox;
use ::smb::server::{Answered, Host, Server};
use ::smb::wire::frame::{self, FRAME_PREFIX_BYTES, Frame};
use bytes::BytesMut;
use concurrency::Timestamp;
use engine::{BoxFuture, EngineError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::SmbEncryption;
use crate::limits::{Limits, SMB_FRAME_ROOM_BYTES, SMB_IDLE, SMB_KEYS_PAUSE, SMB_LOGON_TIME_MAX};
use crate::listener::{Connection, Protocol};
use crate::pipeline::House;
use crate::socket::Socket;

/// SMB over this server.
#[derive(Debug)]
pub(crate) struct Smb {
    pub server: Arc<Server>,
    pub local: SocketAddr,
}

/// Why a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ByClient,
    /// A frame that ends the connection.
    BadFrame,
    /// Nobody was logged on in time.
    NoLogon,
    /// A frame that began did not end in time.
    Stalled,
    Idle,
    Shutdown,
    /// A request panicked.
    Closed,
}

impl Protocol for Smb {
    async fn converse(&self, socket: &mut Socket, connection: &Connection) {
        let mut conversation = Conversation::new(Arc::clone(&self.server), connection.peer, self.local);
        let outbox = conversation.outbox();
        let (mut reader, mut writer) = tokio::io::split(socket);
        let ended = {
            let reading = Box::pin(read(&mut conversation, &mut reader, connection));
            let writing = write(&outbox, &mut writer, &connection.limits);
            tokio::select! {
                ended = reading => ended,
                () = writing => Ended::Closed,
            }
        };
        tracing::debug!(peer = %connection.peer, ?ended, "an SMB connection ends");
        // Requests that are at work are answered, files are closed; then what is left in the outbox goes out.
        let ending = async {
            conversation.end().await;
            outbox.close();
        };
        let writing = write(&outbox, &mut writer, &connection.limits);
        tokio::join!(ending, writing);
        let _ = timeout(connection.limits.linger, writer.shutdown()).await;
    }
}

/// Reads frames until the end.
async fn read(
    conversation: &mut Conversation,
    reader: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
) -> Ended {
    let limits = &connection.limits;
    let outbox = conversation.outbox();
    let logon_until = Instant::now() + SMB_LOGON_TIME_MAX;
    let mut silent_since = Instant::now();
    loop {
        let prefix = match next_prefix(conversation, reader, connection, silent_since, logon_until).await {
            Ok(prefix) => prefix,
            Err(ended) => return ended,
        };
        let length = match frame::decode(prefix, conversation.frame_bytes_max()) {
            Ok(Frame::KeepAlive) => continue,
            Ok(Frame::Message(length)) => length,
            Err(_) => return Ended::BadFrame,
        };
        connection.activity.begin();
        let taken = timeout(frame_time(length, limits), body(reader, length)).await;
        let taken = match taken {
            Ok(Ok(frame)) => {
                // A client that reads no answers gets no further: writing has a limit of time.
                outbox.has_room().await;
                conversation.receive(frame).await.map_err(|_| Ended::BadFrame)
            }
            Ok(Err(_)) => Err(Ended::ByClient),
            Err(_) => Err(Ended::Stalled),
        };
        connection.activity.end(tokio::time::Instant::now());
        if let Err(ended) = taken {
            return ended;
        }
        if outbox.is_closed() {
            return Ended::Closed;
        }
        match conversation.is_logged_on() {
            true => connection.activity.admit(),
            false if Instant::now() >= logon_until => return Ended::NoLogon,
            false => {}
        }
        silent_since = Instant::now();
    }
}

/// The first bytes of the next frame. Meanwhile the client may be silent, within limits.
async fn next_prefix(
    conversation: &Conversation,
    reader: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
    silent_since: Instant,
    logon_until: Instant,
) -> Result<[u8; FRAME_PREFIX_BYTES], Ended> {
    let mut prefix = [0; FRAME_PREFIX_BYTES];
    let mut read = std::pin::pin!(reader.read_exact(&mut prefix));
    loop {
        tokio::select! {
            read = read.as_mut() => {
                read.map_err(|_| Ended::ByClient)?;
                break;
            }
            () = connection.ending() => return Err(Ended::Shutdown),
            () = tokio::time::sleep(SMB_KEYS_PAUSE) => {
                conversation.end_rotated_sessions().await;
                if !conversation.is_logged_on() && Instant::now() >= logon_until {
                    return Err(Ended::NoLogon);
                }
                if silent_since.elapsed() >= SMB_IDLE && !conversation.is_in_use() {
                    return Err(Ended::Idle);
                }
            }
        }
    }
    Ok(prefix)
}

/// How long a frame may take: the usual pause for each part of it.
fn frame_time(length: usize, limits: &Limits) -> Duration {
    limits.body_pause * u32::try_from(1 + length / SMB_FRAME_ROOM_BYTES).unwrap_or(1)
}

/// The bytes of a frame. Room is made as they come, so that a length alone costs nothing.
async fn body(reader: &mut (impl AsyncRead + Unpin), length: usize) -> std::io::Result<BytesMut> {
    let mut frame = BytesMut::with_capacity(length.min(SMB_FRAME_ROOM_BYTES));
    while frame.len() < length {
        if frame.capacity() == frame.len() {
            frame.reserve((length - frame.len()).min(frame.len().max(SMB_FRAME_ROOM_BYTES)));
        }
        let left = length - frame.len();
        if (&mut *reader).take(left as u64).read_buf(&mut frame).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(frame)
}

/// Sends frames until the outbox is closed and empty, or the client takes nothing for too long.
async fn write(outbox: &Outbox, writer: &mut (impl AsyncWrite + Unpin), limits: &Limits) {
    while let Some(frame) = outbox.next().await {
        for mut part in frame {
            while !part.is_empty() {
                match timeout(limits.write_pause, writer.write_buf(&mut part)).await {
                    Ok(Ok(written @ 1..)) => outbox.sent(written),
                    Ok(Ok(0) | Err(_)) | Err(_) => {
                        outbox.close();
                        return;
                    }
                }
            }
        }
        let _ = writer.flush().await;
    }
}

/// What all SMB connections share.
pub(crate) fn server(house: &Arc<House>, encryption: SmbEncryption) -> Server {
    let names = ServerNames {
        computer: "LAZURITE".into(),
        domain: "AZURE".into(),
        dns_computer: "lazurite".into(),
        dns_domain: "lazurite".into(),
        hosts: None,
    };
    let settings = Settings {
        names,
        server_guid: random_guid(),
        require_encryption: encryption == SmbEncryption::Required,
        require_signing: true,
        leasing: false,
    };
    let host = Arc::new(SmbHost(Arc::clone(house)));
    Server::new(settings, house.services.file_door(), Arc::clone(&house.accounts), host)
}

/// Another one for each run. The hashers' keys are random; the number is public.
fn random_guid() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    half() << 64 | half()
}

/// What SMB connections ask of the server around them.
#[derive(Debug)]
pub(crate) struct SmbHost(pub Arc<House>);

impl Host for SmbHost {
    fn account_id<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<u64, EngineError>> {
        Box::pin(self.0.account_ids.of(name))
    }

    fn answered(&self, answered: &Answered<'_>) {
        self.0.metrics.smb.answered(answered);
        if let Some(log) = &self.0.access_log {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let at = Timestamp::from_unix_seconds(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX));
            log.write_smb(at, answered);
        }
    }

    fn logon_failed(&self, peer: SocketAddr, wait: Duration) {
        self.0.metrics.sign_ins_failed.fetch_add(1, Ordering::Relaxed);
        if !wait.is_zero() {
            self.0.metrics.sign_ins_slowed.fetch_add(1, Ordering::Relaxed);
        }
        tracing::debug!(%peer, ?wait, "an SMB logon failed");
    }
}
