//! A proxy between engine and database that cuts connections where a test wants it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request contains that is to be cut.
pub const MARK: &[u8] = b"cut-me-if-you-can";

#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many more requests with the mark are cut.
    cuts_left: AtomicU64,
    marked: AtomicU64,
    cuts: AtomicU64,
    /// Nobody gets through.
    away: AtomicBool,
}

impl Proxy {
    /// In front of the database at `url`.
    pub async fn start(url: &str) -> Proxy {
        let target: SocketAddr = host(url).parse().expect("an address");
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

    /// The database's URL, through the proxy.
    pub fn url(&self, url: &str) -> String {
        url.replace(host(url), &self.address.to_string())
    }

    pub fn cut(&self, count: u64) {
        self.state.cuts_left.store(count, Ordering::Release);
    }

    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Acquire)
    }

    pub fn set_away(&self, away: bool) {
        self.state.away.store(away, Ordering::Release);
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
                let request = &up[..count];
                let is_marked = request.windows(MARK.len()).any(|part| part == MARK);
                // Two of three are cut, so that every commit meets some and none is cut for ever.
                let is_cut = is_marked && state.marked.fetch_add(1, Ordering::AcqRel) % 3 != 2;
                if is_cut && take_one(&state.cuts_left) {
                    let turn = state.cuts.fetch_add(1, Ordering::AcqRel) % 3;
                    if turn == 0 || server.write_all(request).await.is_err() || turn == 1 {
                        return;
                    }
                    swallow = true;
                } else if server.write_all(request).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if swallow || client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(std::time::Duration::from_millis(200)) => {}
        }
    }
}

fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
}
