//! Ports and connections: accepting, limits and the orderly end, whatever protocol a port speaks.
//!
//! One task accepts per port; one task per connection has the port's [`Protocol`] converse on it. The listener sees to what
//! every protocol needs: how many connections a port and an address may have, that a client asks for something soon after it
//! has connected, that a panic ends one connection and no other, and the order of a shutdown: stop accepting, let every
//! request that has begun end (within a limit), close.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::panics::{Panicked, caught};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::activity::Activity;
use crate::connection_limits::{ConnectionLimits, ConnectionPermit, TooMany};
use crate::limits::{ACCEPT_PAUSE, BACKLOG, LARGE_BYTES, LOG_PAUSE, Limits, MEMORY_PAUSE};
use crate::log_throttle::LogThrottle;
use crate::metrics::Metrics;
use crate::socket::{Socket, Transport};
use crate::stream::UnfinishedHeads;

/// What is spoken on a port.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Converses with one client until it goes, is sent away, or the server ends.
    ///
    /// Tells [`Connection::activity`] when requests begin and end and when the client was let in, and ends soon after
    /// [`Connection::ending`]: what the client asked for before that is done and answered first. Time-outs within the
    /// conversation are the protocol's.
    fn converse(&self, socket: &mut Socket, connection: &Connection) -> impl Future<Output = ()> + Send;
}

/// What a protocol knows of the connection it converses on.
#[derive(Debug)]
pub(crate) struct Connection {
    pub peer: SocketAddr,
    pub limits: Limits,
    pub activity: Arc<Activity>,
    pub unfinished_heads: Arc<UnfinishedHeads>,
    connections: Connections,
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ByProtocol,
    /// Its client is silent for too long and was not let in, or shutdown has begun, or there was a panic.
    ByListener,
    /// Another gets its place.
    Displaced,
}

impl Connection {
    /// Resolves when shutdown has begun.
    pub(crate) async fn ending(&self) {
        self.connections.ending().await;
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.connections.is_ending()
    }

    /// Resolves when the connection must be closed, whatever the protocol thinks of it.
    async fn must_leave(&self) -> Ended {
        let activity = &*self.activity;
        while !activity.may_stay() {
            let due = match activity.is_running() {
                true => Instant::now() + self.limits.first_request,
                false => activity.silent_since() + self.limits.first_request,
            };
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = activity.displaced() => return Ended::Displaced,
                () = self.ending() => {
                    // What runs is answered first, and then the protocol ends.
                    if !activity.may_stay() && !activity.is_running() {
                        return Ended::ByListener;
                    }
                    break;
                }
            }
            let is_silent = !activity.may_stay() && !activity.is_running();
            if is_silent && activity.silent_since() + self.limits.first_request <= Instant::now() {
                return Ended::ByListener;
            }
        }
        activity.displaced().await;
        Ended::Displaced
    }
}

/// A port that is open, and how connections to it begin.
#[derive(Debug)]
pub(crate) struct Port {
    pub listener: TcpListener,
    pub transport: Transport,
    pub connection_limits: Arc<ConnectionLimits>,
    /// How long a connection may be silent between requests.
    pub idle: Duration,
}

/// Opens a port; 0 takes any that is free.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that restarts finds its own old connections in the way otherwise.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Counts connections and tells them when to end.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    limits: Limits,
    /// How many there are, on all ports.
    open: Arc<watch::Sender<usize>>,
    /// How many there are on the ports of a part, which can be waited for apart.
    of_part: Arc<watch::Sender<usize>>,
    ending: Arc<watch::Sender<bool>>,
    /// Of all connections.
    unfinished_heads: Arc<UnfinishedHeads>,
    metrics: Arc<Metrics>,
}

/// A connection that is counted until it is dropped.
struct Counted([Arc<watch::Sender<usize>>; 2]);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.iter().for_each(|open| open.send_modify(|open| *open -= 1));
    }
}

impl Connections {
    pub(crate) fn new(limits: Limits, metrics: Arc<Metrics>) -> Connections {
        let (open, of_part) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(0)));
        let ending = Arc::new(watch::Sender::new(false));
        Connections { limits, open, of_part, ending, unfinished_heads: Arc::default(), metrics }
    }

    /// The same, for ports whose connections are also counted apart.
    pub(crate) fn apart(&self) -> Connections {
        Connections { of_part: Arc::new(watch::Sender::new(0)), ..self.clone() }
    }

    /// Waits for the connections of the part, after the end has begun, for as long as connections have.
    pub(crate) async fn part_ended(&self) {
        let mut open = self.of_part.subscribe();
        let _ = tokio::time::timeout(self.limits.shutdown, open.wait_for(|open| *open == 0)).await;
    }

    /// Resolves when shutdown has begun.
    pub(crate) async fn ending(&self) {
        // The sender lives as long as we do, so waiting cannot fail.
        let _ = self.ending.subscribe().wait_for(|ending| *ending).await;
    }

    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Begins the end, and waits for the connections. Returns how many were still there when time was up.
    pub(crate) async fn end(&self) -> usize {
        self.ending.send_replace(true);
        let mut open = self.open.subscribe();
        let _ = tokio::time::timeout(self.limits.shutdown, open.wait_for(|open| *open == 0)).await;
        self.open()
    }

    /// How many connections there are.
    pub(crate) fn open(&self) -> usize {
        *self.open.borrow()
    }

    /// Gives back memory every few seconds, until the end begins.
    ///
    /// The allocator gives back what was freed when, a second later or more, another large piece is freed. A server that
    /// is asked nothing frees nothing, so it would keep for ever what thousands of connections or a few large queries
    /// once had.
    pub(crate) async fn give_memory_back(self) {
        loop {
            tokio::select! {
                () = self.ending() => return,
                () = tokio::time::sleep(MEMORY_PAUSE) => {}
            }
            drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
        }
    }

    /// How many connections a port of a service may have.
    pub(crate) fn service_limits(&self) -> Arc<ConnectionLimits> {
        ConnectionLimits::new(self.limits.connections, self.limits.connections_per_address, self.limits)
    }

    /// How many the admin port may have.
    pub(crate) fn admin_limits(&self) -> Arc<ConnectionLimits> {
        let all = self.limits.admin_connections;
        ConnectionLimits::new(all, all.div_ceil(2), self.limits)
    }

    /// Accepts at a port until shutdown begins.
    pub(crate) async fn accept<P: Protocol>(self, port: Port, protocol: P) {
        let (protocol, limits) = (Arc::new(protocol), Limits { idle: port.idle, ..self.limits });
        loop {
            tokio::select! {
                () = self.ending() => return,
                (tcp, peer, permit) = self.next(&port) => {
                    let (transport, protocol, counted) = (port.transport.clone(), Arc::clone(&protocol), self.count());
                    let (activity, connections) = (Arc::clone(&permit.activity), self.clone());
                    let unfinished_heads = Arc::clone(&self.unfinished_heads);
                    let connection = Connection { peer, limits, activity, unfinished_heads, connections };
                    tokio::spawn(async move {
                        connect(tcp, &transport, &*protocol, &connection).await;
                        drop((permit, counted));
                    });
                }
            }
        }
    }

    fn count(&self) -> Counted {
        let counted = [&self.open, &self.of_part].map(Arc::clone);
        counted.iter().for_each(|open| open.send_modify(|open| *open += 1));
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Counted(counted)
    }

    async fn next(&self, port: &Port) -> (TcpStream, SocketAddr, ConnectionPermit) {
        static REFUSED: LogThrottle = LogThrottle::new();
        static FAILED: LogThrottle = LogThrottle::new();
        loop {
            match port.listener.accept().await {
                // One connection waits here until another has gone; those behind it wait in the backlog and cost no memory.
                Ok((tcp, peer)) => match port.connection_limits.take(peer).await {
                    Ok(permit) => return (tcp, peer, permit),
                    Err(TooMany) => {
                        self.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
                        if let Some(count) = REFUSED.due(LOG_PAUSE) {
                            tracing::warn!(%peer, count, "connections were closed: their address has too many");
                        }
                    }
                },
                Err(error) => {
                    if let Some(count) = FAILED.due(LOG_PAUSE) {
                        tracing::warn!(%error, count, "a connection could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Runs one connection from its first byte to its end.
async fn connect<P: Protocol>(tcp: TcpStream, transport: &Transport, protocol: &P, connection: &Connection) {
    // Answers are written whole; waiting for more to send only delays them.
    let _ = tcp.set_nodelay(true);
    let metrics = &connection.connections.metrics;
    let socket = tokio::select! {
        socket = transport.accept(tcp, &connection.limits, &metrics.handshakes_failed) => socket.ok_or(Ended::ByProtocol),
        () = connection.ending() => Err(Ended::ByProtocol),
        () = connection.activity.displaced() => Err(Ended::Displaced),
    };
    let ended = match socket {
        Ok(mut socket) => {
            let ended = converse(protocol, &mut socket, connection).await;
            if ended == Ended::ByListener {
                let _ = tokio::time::timeout(connection.limits.linger, socket.shutdown()).await;
            }
            ended
        }
        Err(ended) => ended,
    };
    if ended == Ended::Displaced {
        static DISPLACED: LogThrottle = LogThrottle::new();
        metrics.connections_displaced.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = DISPLACED.due(LOG_PAUSE) {
            tracing::warn!(peer = %connection.peer, count, "connections without a credential were closed, because others had no place");
        }
    }
}

async fn converse<P: Protocol>(protocol: &P, socket: &mut Socket, connection: &Connection) -> Ended {
    let conversation = pin!(caught(protocol.converse(socket, connection)));
    tokio::select! {
        biased;
        outcome = conversation => match outcome {
            Ok(()) => Ended::ByProtocol,
            Err(Panicked) => {
                tracing::error!(peer = %connection.peer, "a connection panicked");
                Ended::ByListener
            }
        },
        ended = connection.must_leave() => {
            tracing::debug!(peer = %connection.peer, ?ended, "a connection is closed: its client was not let in");
            ended
        }
    }
}

#[cfg(test)]
mod tests;
