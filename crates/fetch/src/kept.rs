//! Connections that are kept for the next request to the same place, for a caller that asks one server again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Uri};
use hyper::client::conn::http1::SendRequest;
use tokio::time::timeout;

use crate::{Answer, Client, Connection, Endpoint, FetchError};

/// Connections without a request that are kept, to all places together.
const KEPT_MAX: usize = 64;
/// How long each is kept. Much shorter than servers keep them, so that a request seldom meets a connection that is being closed.
const KEPT_TIME_MAX: Duration = Duration::from_secs(10);

/// Passes requests on, over connections that are used again.
#[derive(Debug)]
pub struct KeepingClient<B> {
    client: Client,
    kept: Arc<Kept<B>>,
}

/// Those of which the last answer has ended, the latest one last.
#[derive(Debug)]
struct Kept<B>(Mutex<Vec<KeptConnection<B>>>);

#[derive(Debug)]
struct KeptConnection<B> {
    place: Place,
    since: Instant,
    sender: SendRequest<B>,
    connection: Connection,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    https: bool,
    host: String,
    port: u16,
}

impl<B> KeepingClient<B>
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub fn new(client: Client) -> KeepingClient<B> {
        KeepingClient { client, kept: Arc::new(Kept(Mutex::default())) }
    }

    /// Sends a request as it is, its headers and its body, to where the URL leads. `answer` is the limit of time until the head of
    /// the answer, the request's own body included. It is sent at most once: another connection is tried only if nothing of it was sent.
    pub async fn pass(&self, url: &Uri, mut request: Request<B>, answer: Duration) -> Result<Answer, FetchError> {
        let endpoint = Endpoint::of(url)?;
        let place = Place { https: endpoint.https, host: endpoint.host.to_owned(), port: endpoint.port };
        let until = tokio::time::Instant::now() + answer;
        loop {
            let (kept, is_new) = match self.kept.take(&place) {
                Some(kept) => (kept, false),
                None => (self.client.connect(&endpoint).await?, true),
            };
            let (mut sender, connection) = kept;
            let sent = timeout(until.saturating_duration_since(tokio::time::Instant::now()), async {
                let sent = sender.try_send_request(request);
                sent.await
            });
            let answered = match sent.await.map_err(|_| FetchError::Slow)? {
                Ok(answered) => answered,
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => {
                        request = unsent;
                        continue;
                    }
                    Some(_) | None => return Err(FetchError::Protocol(error.into_error())),
                },
            };
            let (kept, place) = (Arc::clone(&self.kept), place.clone());
            let keep = move |connection| kept.put(place, sender, connection);
            return Ok(self.client.answer(answered, connection, Some(Box::new(keep))));
        }
    }
}

#[cfg(test)]
impl<B> KeepingClient<B> {
    /// Waits until all connections that are kept can be used again, or until the other side has ended them.
    pub(crate) async fn settled(&self, ended: bool) {
        let is_settled = |sender: &SendRequest<B>| if ended { sender.is_closed() } else { sender.is_ready() };
        while !self.kept.lock().iter().all(|kept| is_settled(&kept.sender)) {
            tokio::task::yield_now().await;
        }
    }
}

impl<B> Kept<B> {
    /// The latest one to a place that can be used at once. Those that have ended or rested for too long go.
    fn take(&self, place: &Place) -> Option<(SendRequest<B>, Connection)> {
        let mut kept = self.lock();
        kept.retain(|kept| !kept.sender.is_closed() && kept.since.elapsed() < KEPT_TIME_MAX);
        let found = kept.iter().rposition(|kept| kept.place == *place && kept.sender.is_ready())?;
        let KeptConnection { sender, connection, .. } = kept.remove(found);
        Some((sender, connection))
    }

    fn put(&self, place: Place, sender: SendRequest<B>, connection: Connection) {
        let mut kept = self.lock();
        kept.retain(|kept| kept.since.elapsed() < KEPT_TIME_MAX);
        if kept.len() < KEPT_MAX {
            kept.push(KeptConnection { place, since: Instant::now(), sender, connection });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptConnection<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
