//! SMB on a connection: frames in and out, and the limits of time around them. What is said in the frames is the business of the
//! crate `smb`.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ::smb::connection::Settings;
use ::smb::conversation::{Conversation, Watcher};
use ::smb::ntlm::ServerNames;
use ::smb::outbox::Outbox;
use ::smb::server::{Answered, Host, Server};
use ::smb::wire::frame::{self, FRAME_PREFIX_BYTES, Frame};
use bytes::{Bytes, BytesMut};
use concurrency::Timestamp;
use engine::{BoxFuture, EngineError};
use file::owner::TermId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::SmbEncryption;
use crate::limits::{
    Limits, SMB_FRAME_ROOM_BYTES, SMB_IDLE, SMB_KEYS_PAUSE, SMB_LOGON_TIME_MAX, SMB_WINDOW, SMB_WINDOW_BYTES_MIN,
};
use crate::listener::{Connection, Protocol};
use crate::nodes::{Nodes, SmbOwner};
use crate::pipeline::House;
use crate::relay::{self, Beginning};
use crate::socket::{Socket, notice_loss};

/// SMB over this server.
#[derive(Debug)]
pub(crate) struct Smb {
    pub server: Arc<Server>,
    pub local: SocketAddr,
    /// The other nodes, of which one serves SMB. `None`: there are none.
    pub nodes: Option<Arc<Nodes>>,
}

/// The term in which a connection is served. Without other nodes it never ends.
struct Term<'a>(Option<(&'a Nodes, TermId)>);

impl Term<'_> {
    fn lasts(&self) -> bool {
        self.0.is_none_or(|(nodes, term)| nodes.serves(term))
    }

    /// Resolves when the node has noticed that it serves SMB no longer.
    async fn ended(&self) {
        match self.0 {
            None => std::future::pending().await,
            // The sender lives as long as the nodes.
            Some((nodes, term)) => _ = nodes.owner().wait_for(|owner| *owner != SmbOwner::Here(term)).await,
        }
    }
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
    /// Another node serves SMB now.
    NotOwner,
}

impl Protocol for Smb {
    async fn converse(&self, socket: &mut Socket, connection: &Connection) {
        if let Socket::Plain(tcp) = socket {
            notice_loss(tcp);
        }
        match &self.nodes {
            None => self.serve(socket, &[], connection.peer, &Term(None), connection).await,
            Some(nodes) => self.serve_or_relay(nodes, socket, connection).await,
        }
    }
}

impl Smb {
    async fn serve_or_relay(&self, nodes: &Arc<Nodes>, socket: &mut Socket, connection: &Connection) {
        match relay::beginning(nodes, socket, connection).await {
            Some(Beginning::Client(first)) => match relay::serving(nodes, connection).await {
                SmbOwner::Here(term) => {
                    self.serve(socket, &first, connection.peer, &Term(Some((&**nodes, term))), connection).await;
                }
                SmbOwner::There(owner) => relay::relay(nodes, &owner, &first, socket, connection).await,
                SmbOwner::Nobody => {}
            },
            Some(Beginning::Relayed { client, term }) => {
                connection.activity.is_of_node_now();
                self.serve(socket, &[], client, &Term(Some((&**nodes, term))), connection).await;
            }
            None => {}
        }
    }

    /// Serves a client whose first bytes were read already.
    async fn serve(
        &self,
        socket: &mut Socket,
        first: &[u8],
        client: SocketAddr,
        term: &Term<'_>,
        connection: &Connection,
    ) {
        if !term.lasts() {
            return;
        }
        let conversation = Conversation::new(Arc::clone(&self.server), client, self.local);
        let outbox = conversation.outbox();
        let (reader, mut writer) = tokio::io::split(socket);
        talk(conversation, &mut first.chain(reader), &mut writer, term, connection).await;
        outbox.close();
        let _ = timeout(connection.limits.linger, writer.shutdown()).await;
    }
}

/// Reads and writes until the end, which is in good order: requests that are at work are answered, files are closed, and what is left in
/// the outbox goes out.
async fn talk(
    mut conversation: Conversation,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    term: &Term<'_>,
    connection: &Connection,
) {
    let outbox = conversation.outbox();
    // One future from beginning to end: the frame that is being sent is in it, and would be cut with it.
    let writes_for = conversation.watcher();
    let is_memory_short = || writes_for.is_memory_short();
    let mut writing = Box::pin(write(&outbox, writer, term, &connection.limits, &is_memory_short));
    let (ended, is_writing) = {
        let watcher = conversation.watcher();
        let silent_since = Mutex::new(Instant::now());
        let reading = Box::pin(read(&mut conversation, reader, term, connection, &silent_since));
        let watching = Box::pin(watch(&watcher, connection, &silent_since));
        tokio::select! {
            () = term.ended() => (Ended::NotOwner, true),
            ended = reading => (ended, true),
            ended = watching => (ended, true),
            () = &mut writing => (Ended::Closed, false),
        }
    };
    tracing::debug!(peer = %connection.peer, ?ended, "an SMB connection ends");
    if matches!(ended, Ended::NoLogon | Ended::NotOwner) {
        // Nobody in particular: a stranger who does not read does not keep the connection. And a node that serves SMB no longer answers
        // nothing more.
        outbox.abandon();
    }
    let ending = async {
        if ended == Ended::NotOwner {
            conversation.end_for_good().await;
        } else {
            conversation.end().await;
        }
        outbox.close();
    };
    match is_writing {
        true => drop(tokio::join!(ending, writing)),
        false => ending.await,
    }
}

/// Reads frames until the end.
async fn read(
    conversation: &mut Conversation,
    reader: &mut (impl AsyncRead + Unpin),
    term: &Term<'_>,
    connection: &Connection,
    silent_since: &Mutex<Instant>,
) -> Ended {
    let limits = &connection.limits;
    let outbox = conversation.outbox();
    loop {
        let mut prefix = [0; FRAME_PREFIX_BYTES];
        if reader.read_exact(&mut prefix).await.is_err() {
            return Ended::ByClient;
        }
        let length = match frame::decode(prefix, conversation.frame_bytes_max()) {
            Ok(Frame::KeepAlive) => continue,
            Ok(Frame::Message(length)) => length,
            Err(_) => return Ended::BadFrame,
        };
        *lock(silent_since) = Instant::now();
        connection.activity.begin();
        let taken = timeout(frame_time(length, limits), body(reader, length)).await;
        let taken = match taken {
            Ok(Ok(frame)) => {
                // A client that reads no answers gets no further: writing has a limit of time.
                outbox.has_room(conversation.outbox_bytes_max()).await;
                // A machine that stood still finds frames that came long ago.
                if !term.lasts() {
                    connection.activity.end(tokio::time::Instant::now());
                    return Ended::NotOwner;
                }
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
        if conversation.is_logged_on() {
            connection.activity.admit();
        }
        *lock(silent_since) = Instant::now();
    }
}

/// Looks after the connection, whatever its client does meanwhile: keys that were replaced, limits of time, the end of the service.
async fn watch(watcher: &Watcher, connection: &Connection, silent_since: &Mutex<Instant>) -> Ended {
    let mut logon_until = Instant::now() + SMB_LOGON_TIME_MAX;
    loop {
        tokio::select! {
            () = connection.ending() => return Ended::Shutdown,
            () = tokio::time::sleep(SMB_KEYS_PAUSE) => {}
        }
        let was_logged_on = watcher.is_logged_on();
        watcher.end_rotated_sessions().await;
        let now = Instant::now();
        match was_logged_on {
            // After LOGOFF there is as much time as at the beginning.
            true => logon_until = now + SMB_LOGON_TIME_MAX,
            false if now >= logon_until => return Ended::NoLogon,
            false => {}
        }
        let is_silent = lock(silent_since).elapsed() >= SMB_IDLE;
        if is_silent && !watcher.is_in_use() {
            return Ended::Idle;
        }
    }
}

fn lock(instant: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    instant.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a client took of late, and how long the server waited for it to do so.
#[derive(Default)]
struct Pace {
    waited: Duration,
    taken: usize,
}

impl Pace {
    /// Counts what the client took after so long. Whether it took too little in the whole of [`SMB_WINDOW`]; then the next one begins.
    fn is_too_slow(&mut self, waited: Duration, taken: usize) -> bool {
        self.waited += waited;
        self.taken += taken;
        self.waited >= SMB_WINDOW && std::mem::take(self).taken < SMB_WINDOW_BYTES_MIN
    }
}

/// Sends frames until the outbox is closed and empty, the term ends, or the client takes too little for too long.
async fn write(
    outbox: &Outbox,
    writer: &mut (impl AsyncWrite + Unpin),
    term: &Term<'_>,
    limits: &Limits,
    is_memory_short: &impl Fn() -> bool,
) {
    let mut pace = Pace::default();
    while let Some(mut frame) = outbox.next().await {
        // A machine that stood still finds answers that were made long ago.
        if !term.lasts() {
            outbox.abandon();
            return;
        }
        for part in &mut frame.parts {
            while !part.is_empty() {
                match write_some(writer, part, limits, is_memory_short, &mut pace).await {
                    Some(written) => outbox.sent(written),
                    None => {
                        outbox.abandon();
                        return;
                    }
                }
            }
        }
        let _ = writer.flush().await;
    }
}

/// How many bytes the client took; none if that took too long, or if it is too slow while others wait for the memory of what it does not
/// read.
async fn write_some(
    writer: &mut (impl AsyncWrite + Unpin),
    part: &mut Bytes,
    limits: &Limits,
    is_memory_short: &impl Fn() -> bool,
    pace: &mut Pace,
) -> Option<usize> {
    let mut writing = std::pin::pin!(writer.write_buf(part));
    let mut left = limits.write_pause;
    loop {
        let pause = left.min(SMB_WINDOW.saturating_sub(pace.waited));
        let began = tokio::time::Instant::now();
        let written = match timeout(pause, writing.as_mut()).await {
            Ok(Ok(written @ 1..)) => Some(written),
            Ok(Ok(0) | Err(_)) => return None,
            Err(_) if left == pause => return None,
            Err(_) => None,
        };
        if pace.is_too_slow(began.elapsed(), written.unwrap_or(0)) && is_memory_short() {
            return None;
        }
        if written.is_some() {
            return written;
        }
        left -= pause;
    }
}

/// Ends durable opens that have lost their connection and whose client has not come back in time, or whose account key was replaced. All
/// of them when another node serves SMB: their clients go there.
pub(crate) async fn look_after_disconnected(server: Arc<Server>, nodes: Option<Arc<Nodes>>) {
    let mut owner = nodes.as_ref().map(|nodes| nodes.owner());
    loop {
        let another_owner = async {
            match &mut owner {
                None => std::future::pending().await,
                // The sender lives as long as the nodes.
                Some(owner) => _ = owner.changed().await,
            }
        };
        tokio::select! {
            () = another_owner => server.end_all_disconnected(),
            () = tokio::time::sleep(SMB_KEYS_PAUSE) => server.end_disconnected(Instant::now()),
        }
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
        leasing: true,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends answers to a client that takes so many bytes each second. Whether it got all of them.
    async fn is_served(bytes_per_second: usize, is_memory_short: bool) -> bool {
        const FRAMES: usize = 64;
        const FRAME_BYTES: usize = 128 << 10;
        let (mut ours, mut theirs) = tokio::io::duplex(16 << 10);
        let outbox = Outbox::default();
        for _ in 0..FRAMES {
            outbox.push(vec![Bytes::from(vec![0; FRAME_BYTES])]);
        }
        outbox.close();
        let client = tokio::spawn(async move {
            let (mut part, mut taken) = (vec![0; bytes_per_second], 0);
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut second = 0;
                while second < bytes_per_second {
                    match theirs.read(&mut part[second..]).await {
                        Ok(0) | Err(_) => return taken,
                        Ok(count) => (second, taken) = (second + count, taken + count),
                    }
                }
            }
        });
        write(&outbox, &mut ours, &Term(None), &Limits::default(), &|| is_memory_short).await;
        drop(ours);
        client.await.expect("it only reads") == FRAMES * FRAME_BYTES
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_its_answers_slowly_is_given_up_when_memory_is_short() {
        assert!(is_served(4 << 10, false).await);
        assert!(!is_served(4 << 10, true).await, "it always makes progress, and keeps memory for half an hour");
        assert!(is_served(512 << 10, true).await);
    }
}
