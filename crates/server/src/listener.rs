//! Ports, connections and their end.
//!
//! One task accepts per port; one task per connection runs its requests one after another. Shutdown has an order: stop
//! accepting, let every request that has begun end (within a limit), close.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::body::AnswerBody;
use crate::connection_limits::{ConnectionLimits, ConnectionPermit, TooMany};
use crate::limits::{
    ACCEPT_PAUSE, BACKLOG, CONNECTION_BUFFER_BYTES, CROWD, LARGE_BYTES, LOG_PAUSE, Limits, MEMORY_PAUSE,
};
use crate::log_throttle::LogThrottle;
use crate::metrics::Metrics;
use crate::socket::{Socket, Transport};
use crate::stream::{TimedStream, Traffic};

/// Somebody who answers requests.
pub(crate) trait Answers: Send + Sync + 'static {
    /// `traffic` must hear of the end of the answer: put it into the answer's body.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        traffic: Arc<Traffic>,
    ) -> impl Future<Output = Response<AnswerBody>> + Send;
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
    /// How many there were at once, since memory was given back.
    most: Arc<AtomicUsize>,
    ending: Arc<watch::Sender<bool>>,
    metrics: Arc<Metrics>,
}

/// A connection that is counted until it is dropped.
struct Counted(Arc<watch::Sender<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Connections {
    pub(crate) fn new(limits: Limits, metrics: Arc<Metrics>) -> Connections {
        let (open, ending) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(false)));
        Connections { limits, open, most: Arc::default(), ending, metrics }
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

    /// Gives back memory whenever a crowd of connections has left, until the end begins.
    ///
    /// The allocator gives back what was freed when, a second later or more, another large piece is freed. A server that
    /// nobody asks anything frees nothing, so it would keep for ever what thousands of connections once had.
    pub(crate) async fn give_memory_back(self) {
        loop {
            tokio::select! {
                () = self.ending() => return,
                () = tokio::time::sleep(MEMORY_PAUSE) => {}
            }
            let (open, most) = (self.open(), self.most.load(Ordering::Relaxed));
            if most.saturating_sub(open) >= CROWD.max(most / 2) {
                drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
                self.most.store(open, Ordering::Relaxed);
            }
        }
    }

    /// The places of a port of a service.
    pub(crate) fn service_places(&self) -> Arc<ConnectionLimits> {
        ConnectionLimits::new(self.limits.connections, self.limits.connections_per_address)
    }

    /// Those of the admin port.
    pub(crate) fn admin_places(&self) -> Arc<ConnectionLimits> {
        ConnectionLimits::new(self.limits.admin_connections, self.limits.admin_connections.div_ceil(2))
    }

    /// Accepts until the end begins. `idle` is how long a connection may be silent between requests.
    pub(crate) async fn accept<A: Answers>(
        self,
        listener: TcpListener,
        places: Arc<ConnectionLimits>,
        transport: Transport,
        answers: Arc<A>,
        idle: Duration,
    ) {
        let limits = Limits { idle, ..self.limits };
        loop {
            tokio::select! {
                () = self.ending() => return,
                (tcp, peer, place) = self.next(&listener, &places) => {
                    let (transport, answers, connections) = (transport.clone(), Arc::clone(&answers), self.clone());
                    let counted = self.count();
                    tokio::spawn(async move {
                        connect(tcp, transport, peer, answers, limits, connections).await;
                        drop((place, counted));
                    });
                }
            }
        }
    }

    fn count(&self) -> Counted {
        self.open.send_modify(|open| *open += 1);
        self.most.fetch_max(self.open(), Ordering::Relaxed);
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.open))
    }

    async fn next(
        &self,
        listener: &TcpListener,
        places: &Arc<ConnectionLimits>,
    ) -> (TcpStream, SocketAddr, ConnectionPermit) {
        static REFUSED: LogThrottle = LogThrottle::new();
        static FAILED: LogThrottle = LogThrottle::new();
        loop {
            match listener.accept().await {
                // One connection waits here for its place; those behind it wait in the backlog and cost no memory.
                Ok((tcp, peer)) => match places.take(peer).await {
                    Ok(place) => return (tcp, peer, place),
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
async fn connect<A: Answers>(
    tcp: TcpStream,
    transport: Transport,
    peer: SocketAddr,
    answers: Arc<A>,
    limits: Limits,
    connections: Connections,
) {
    // Answers are written whole; waiting for more to send only delays them.
    let _ = tcp.set_nodelay(true);
    let socket = tokio::select! {
        socket = transport.accept(tcp, &limits, &connections.metrics.handshakes_failed) => socket,
        () = connections.ending() => None,
    };
    if let Some(socket) = socket {
        serve(socket, peer, answers, limits, connections).await;
    }
}

async fn serve<A: Answers>(
    socket: Socket,
    peer: SocketAddr,
    answers: Arc<A>,
    limits: Limits,
    connections: Connections,
) {
    let traffic = Arc::new(Traffic::new());
    let io = TokioIo::new(TimedStream::new(socket, Arc::clone(&traffic), limits));
    let service = service_fn(|request| {
        traffic.begin();
        let answer = answers.answer(request, peer, Arc::clone(&traffic));
        let (connections, traffic) = (&connections, &traffic);
        // Boxed: hyper keeps room for it as long as the connection lasts, and most connections are silent most of the time.
        Box::pin(async move {
            let mut response = answer.await;
            if traffic.answered.is_any() {
                traffic.earlier_answers_flushed().await;
            }
            // This task may hear of the end only after it has answered.
            if connections.is_ending() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, std::convert::Infallible>(response)
        })
    });
    let mut builder = http1::Builder::new();
    // Time-outs are the stream's; see there.
    builder.header_read_timeout(None).max_buf_size(CONNECTION_BUFFER_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = connections.ending() => {
            connection.as_mut().graceful_shutdown();
            // hyper would wait for the first request of a connection that never had one.
            if traffic.is_new() { Ok(()) } else { connection.await }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}
