//! SMB connections to a node that does not serve SMB: their bytes go to the node that does, and back.
//!
//! Before the client's bytes the owner gets a preamble with the client's address, signed under the nodes' common secret. Otherwise all
//! clients of a node would have one address, and one of them that guesses passwords would shut out the others. A preamble without a good
//! signature, or for another term, ends the connection. SMB itself never begins like one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::NodeKey;
use concurrency::Timestamp;
use file::owner::{Owner, TermId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{RELAY_BUFFER_BYTES, RELAY_CONNECT_TIME_MAX, SMB_LOGON_TIME_MAX, SMB_OWNER_WAIT_MAX};
use crate::listener::Connection;
use crate::nodes::{ClientNote, Nodes, SmbOwner};
use crate::socket::notice_loss;

/// The first bytes of a connection from another node. Frames of SMB begin with 0x00 or 0x85.
const MAGIC: [u8; 4] = *b"LZR1";
const TERM_BYTES: usize = 16;
const TAG_BYTES: usize = 32;
const REST_BYTES: usize = ClientNote::BYTES + TERM_BYTES + TAG_BYTES;
const PURPOSE: &str = "relayed SMB connection";

/// What a connection to the SMB port begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// A client's first bytes, which belong to SMB.
    Client([u8; MAGIC.len()]),
    /// Another node speaks for a client.
    Relayed { client: SocketAddr, term: TermId },
}

/// Reads how a connection begins. `None`: it ended, took too long, or says what no node has signed.
pub(crate) async fn beginning(
    nodes: &Nodes,
    reader: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
) -> Option<Beginning> {
    let read = async {
        let mut first = [0; MAGIC.len()];
        reader.read_exact(&mut first).await.ok()?;
        if first != MAGIC {
            return Some(Beginning::Client(first));
        }
        let mut rest = [0; REST_BYTES];
        reader.read_exact(&mut rest).await.ok()?;
        let (client, term) = verified(&nodes.key, &rest, nodes.now())?;
        Some(Beginning::Relayed { client, term })
    };
    tokio::select! {
        read = timeout(SMB_LOGON_TIME_MAX, read) => read.ok().flatten(),
        () = connection.ending() => None,
    }
}

fn verified(key: &NodeKey, rest: &[u8; REST_BYTES], now: Timestamp) -> Option<(SocketAddr, TermId)> {
    let (note, rest) = rest.split_first_chunk::<{ ClientNote::BYTES }>()?;
    let (term, tag) = rest.split_first_chunk::<TERM_BYTES>()?;
    let tag: &[u8; TAG_BYTES] = tag.try_into().ok()?;
    let is_signed = key.signed(PURPOSE, &[note, term], tag);
    let note = ClientNote::from_bytes(note);
    (is_signed && note.is_fresh(now)).then(|| (note.client, TermId::new(u128::from_be_bytes(*term))))
}

fn preamble(key: &NodeKey, note: ClientNote, term: TermId) -> Vec<u8> {
    let (note, term) = (note.to_bytes(), term.to_bytes());
    let tag = key.sign(PURPOSE, &[&note, &term]);
    [&MAGIC[..], &note, &term, &tag].concat()
}

/// Which node serves SMB, for a client that has come. Waits for a while if there is none.
pub(crate) async fn serving(nodes: &Nodes, connection: &Connection) -> SmbOwner {
    let mut owner = nodes.owner();
    // The client has asked for something: it is not silent.
    connection.activity.begin();
    let known = async { owner.wait_for(|owner| *owner != SmbOwner::Nobody).await.map(|owner| owner.clone()) };
    let known = tokio::select! {
        known = timeout(SMB_OWNER_WAIT_MAX, known) => known.ok().and_then(Result::ok).unwrap_or(SmbOwner::Nobody),
        () = connection.ending() => SmbOwner::Nobody,
    };
    connection.activity.end(tokio::time::Instant::now());
    known
}

/// Hands the client's connection on to the owner, until either side ends it, another node becomes the owner, or this server ends.
pub(crate) async fn relay(
    nodes: &Arc<Nodes>,
    owner: &Owner,
    first: &[u8],
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    connection: &Connection,
) {
    let (activity, place) = (&connection.activity, (owner.address.host.as_str(), owner.address.smb_port));
    // The owner sees who logs on. Its connection ends if nobody does, so one that lasts longer has a right to its place.
    activity.begin();
    let admitted = async {
        tokio::time::sleep(SMB_LOGON_TIME_MAX + RELAY_CONNECT_TIME_MAX).await;
        activity.admit();
        std::future::pending().await
    };
    let passing = async {
        let connected = timeout(RELAY_CONNECT_TIME_MAX, TcpStream::connect(place)).await;
        let Ok(Ok(mut upstream)) = connected else {
            tracing::debug!(peer = %connection.peer, ?place, "the node that serves SMB cannot be reached");
            return;
        };
        let _ = upstream.set_nodelay(true);
        notice_loss(&upstream);
        let note = ClientNote { client: connection.peer, at: nodes.now() };
        let greeting = [&preamble(&nodes.key, note, owner.id), first].concat();
        if upstream.write_all(&greeting).await.is_ok() {
            pass(socket, &mut upstream, connection.limits.write_pause, connection.limits.linger).await;
        }
    };
    let mut watched = nodes.owner();
    let is_other = |now: &SmbOwner| !matches!(now, SmbOwner::There(now) if now.id == owner.id);
    tokio::select! {
        () = passing => {}
        () = admitted => {}
        _ = watched.wait_for(is_other) => tracing::debug!(peer = %connection.peer, "another node serves SMB now"),
        () = connection.ending() => {}
    }
    activity.end(tokio::time::Instant::now());
}

/// Both ways at once. When the client has said its last, what the owner still answers gets through.
async fn pass(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    owner: &mut TcpStream,
    write_pause: Duration,
    linger: Duration,
) {
    let (mut client_reader, mut client_writer) = tokio::io::split(client);
    let (mut owner_reader, mut owner_writer) = owner.split();
    let mut back = Box::pin(copy(&mut owner_reader, &mut client_writer, write_pause));
    tokio::select! {
        () = copy(&mut client_reader, &mut owner_writer, write_pause) => {}
        () = &mut back => return,
    }
    let _ = timeout(linger, back).await;
}

/// Copies until the reader ends or the writer takes nothing for too long, then ends the writer.
async fn copy(reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin), write_pause: Duration) {
    let mut buffer = vec![0; RELAY_BUFFER_BYTES];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        let mut left = &buffer[..length];
        while !left.is_empty() {
            match timeout(write_pause, writer.write(left)).await {
                Ok(Ok(written @ 1..)) => left = &left[written..],
                Ok(Ok(0) | Err(_)) | Err(_) => return,
            }
        }
    }
    let _ = timeout(write_pause, writer.shutdown()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_is_believed_as_it_was_signed() {
        let (key, term) = (NodeKey::new(&[7; 32]), TermId::new(77));
        let client: SocketAddr = "10.1.2.3:4567".parse().unwrap();
        let now = Timestamp(1_000 * Timestamp::TICKS_PER_SECOND);
        let preamble = preamble(&key, ClientNote { client, at: now }, term);
        let (magic, rest) = preamble.split_first_chunk::<4>().unwrap();
        let rest: [u8; REST_BYTES] = rest.try_into().unwrap();
        assert_eq!(*magic, MAGIC);
        assert!(magic[0] != 0x00 && magic[0] != 0x85, "SMB begins otherwise");
        assert_eq!(verified(&key, &rest, now), Some((client, term)));
        assert_eq!(verified(&NodeKey::new(&[8; 32]), &rest, now), None);
        for place in 0..REST_BYTES {
            let mut other = rest;
            other[place] ^= 1;
            assert_eq!(verified(&key, &other, now), None, "byte {place}");
        }
        assert_eq!(verified(&key, &[0; REST_BYTES], now), None);
    }

    /// What is sent gets there whole, both ways, and the end of one side is the end of the other.
    #[tokio::test]
    async fn bytes_pass_both_ways_until_a_side_ends() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        let (mut client, mut relayed) = tokio::io::duplex(100);
        let limit = Duration::from_secs(60);
        let passing = tokio::spawn(async move { pass(&mut relayed, &mut near, limit, limit).await });
        let sent: Vec<u8> = (0..100_000_u32).map(|place| (place % 251) as u8).collect();
        let (there, back) = (sent.clone(), sent.clone());
        let owner = tokio::spawn(async move {
            let mut got = vec![0; there.len()];
            far.read_exact(&mut got).await.unwrap();
            assert!(got == there);
            far.write_all(&back).await.unwrap();
            assert_eq!(far.read(&mut got).await.unwrap(), 0, "the client has ended");
        });
        client.write_all(&sent).await.unwrap();
        let mut got = vec![0; sent.len()];
        client.read_exact(&mut got).await.unwrap();
        assert!(got == sent);
        drop(client);
        owner.await.unwrap();
        passing.await.unwrap();
    }
}
