//! A proxy before a database or a store that cuts connections where a test wants it, or makes every way longer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request contains that is to be cut.
pub const MARK: &[u8] = b"cut-me-if-you-can";

// Not every program of tests has a use for all of it.
#[allow(dead_code)]
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many requests with the mark are cut after they were sent on.
    wanted: AtomicU64,
    marked: AtomicU64,
    cuts: AtomicU64,
    /// No connection gets through.
    away: AtomicBool,
    /// How long what is sent is kept back, each way, in milliseconds.
    delay_ms: AtomicU64,
}

#[allow(dead_code)]
impl Proxy {
    /// In front of the database at `url`.
    pub async fn start(url: &str) -> Proxy {
        Proxy::before(host(url).parse().expect("an address")).await
    }

    /// In front of any server.
    pub async fn before(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !shared.away.load(Ordering::Acquire) {
                    tokio::spawn(pass(client, target, Arc::clone(&shared)));
                }
            }
        });
        Proxy { address, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The database's URL, through the proxy.
    pub fn url(&self, url: &str) -> String {
        url.replace(host(url), &self.address.to_string())
    }

    /// Cuts so many connections between a marked request and its answer, and half as many before the request arrives.
    pub fn cut(&self, count: u64) {
        self.state.wanted.store(count, Ordering::Release);
    }

    /// How many were cut after their request was sent on.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Acquire)
    }

    pub fn set_away(&self, away: bool) {
        self.state.away.store(away, Ordering::Release);
    }

    /// From here on what is sent is kept back this long, each way: a slow database, a slow store.
    pub fn set_delay(&self, delay: Duration) {
        self.state.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }
}

fn host(url: &str) -> &str {
    url.split_once('@').and_then(|(_, rest)| rest.split_once('/')).expect("postgres://user@host/...").0
}

/// Carries bytes both ways until one side ends, or a request is cut: before it arrives, right after, or when its answer
/// comes, in turn.
async fn pass(mut client: TcpStream, target: SocketAddr, state: Arc<State>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut swallow = false;
    loop {
        if state.away.load(Ordering::Acquire) {
            return;
        }
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                keep_back(&state).await;
                let request = &up[..count];
                let is_marked = request.windows(MARK.len()).any(|part| part == MARK);
                let is_wanted = state.cuts.load(Ordering::Acquire) < state.wanted.load(Ordering::Acquire);
                // Every second one gets through, so that every commit meets some cuts and none is cut for ever.
                let turn = if is_marked && is_wanted { state.marked.fetch_add(1, Ordering::AcqRel) % 6 } else { 1 };
                if turn == 0 || server.write_all(request).await.is_err() {
                    return;
                }
                if turn % 2 == 0 {
                    state.cuts.fetch_add(1, Ordering::AcqRel);
                    swallow = true;
                }
                if turn == 2 {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                keep_back(&state).await;
                if swallow || client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }
}

async fn keep_back(state: &State) {
    let delay = state.delay_ms.load(Ordering::Acquire);
    if delay > 0 {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
}
