//! What the listener knows of a connection: whether its client was let in, and since when it has been silent.
//!
//! A connection is nobody's until a request on it was signed, or served because what it asked for is public. Until then it may
//! be silent for [`Limits::first_request`](crate::Limits::first_request) at most. Until a request on it was signed, it gives
//! its place to others when places run short: a request that is refused costs its sender nothing, and one for what is public
//! hardly more, so neither must buy a place.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::Limits;

/// The state of one connection, shared by its task and by the places of its port.
#[derive(Debug)]
pub(crate) struct Activity {
    began: Instant,
    /// When the connection was made or its last answer ended, in milliseconds after `began`.
    silent_since: AtomicU64,
    /// Requests that have no answer yet.
    running: AtomicU64,
    may_stay: AtomicBool,
    keeps_place: AtomicBool,
    is_of_node: AtomicBool,
    is_displaced: AtomicBool,
    displacement: Notify,
}

impl Activity {
    /// Of a connection that was made just now.
    pub(crate) fn new(now: Instant) -> Activity {
        Activity {
            began: now,
            silent_since: AtomicU64::new(0),
            running: AtomicU64::new(0),
            may_stay: AtomicBool::new(false),
            keeps_place: AtomicBool::new(false),
            is_of_node: AtomicBool::new(false),
            is_displaced: AtomicBool::new(false),
            displacement: Notify::new(),
        }
    }

    /// A request has begun.
    pub(crate) fn begin(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// The answer to a request has ended.
    pub(crate) fn end(&self, now: Instant) {
        let millis = u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX);
        self.silent_since.store(millis, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// The client has shown that it may be here: its connection may be silent for longer, and it keeps its place.
    pub(crate) fn admit(&self) {
        self.keeps_place.store(true, Ordering::Relaxed);
        self.let_stay();
    }

    /// The connection may be silent for longer, but its place is still given away when places run short.
    pub(crate) fn let_stay(&self) {
        self.may_stay.store(true, Ordering::Relaxed);
    }

    /// Another node speaks on the connection for its clients, and has proved that it is one.
    pub(crate) fn is_of_node_now(&self) {
        self.is_of_node.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_of_node(&self) -> bool {
        self.is_of_node.load(Ordering::Relaxed)
    }

    pub(crate) fn may_stay(&self) -> bool {
        self.may_stay.load(Ordering::Relaxed)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// When the connection was made, or its last answer ended.
    pub(crate) fn silent_since(&self) -> Instant {
        self.began + Duration::from_millis(self.silent_since.load(Ordering::Relaxed))
    }

    /// For how long the connection has been silent, if its place may be given away. That depends on its age: a client that
    /// sends one refused request after another is hardly ever silent. A request that is running is not cut off, unless it
    /// takes long and will be refused: the client may refuse to read what refuses it.
    pub(crate) fn displaceable(&self, now: Instant, limits: &Limits) -> Option<Duration> {
        if self.keeps_place.load(Ordering::Relaxed) {
            return None;
        }
        let least_age = match (self.is_running(), self.may_stay()) {
            (false, _) => limits.displaced,
            (true, false) => limits.first_request,
            (true, true) => return None,
        };
        let is_old = now.saturating_duration_since(self.began) >= least_age;
        is_old.then(|| now.saturating_duration_since(self.silent_since()))
    }

    /// Has the connection closed, so that another gets its place.
    pub(crate) fn displace(&self) {
        self.is_displaced.store(true, Ordering::Relaxed);
        self.displacement.notify_one();
    }

    pub(crate) fn is_displaced(&self) -> bool {
        self.is_displaced.load(Ordering::Relaxed)
    }

    /// Resolves when the place of the connection was given away.
    pub(crate) async fn displaced(&self) {
        self.displacement.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_can_be_given_away_until_its_client_was_let_in() {
        let (began, seconds) = (Instant::now(), Duration::from_secs);
        let limits = Limits { displaced: seconds(1), first_request: seconds(10), ..Limits::default() };
        let activity = Activity::new(began);
        let silent = |after: u64| activity.displaceable(began + seconds(after), &limits);
        assert_eq!((silent(0), silent(3)), (None, Some(seconds(3))));
        activity.begin();
        assert_eq!(silent(3), None, "a request is running");
        assert_eq!(silent(10), Some(seconds(10)), "it takes too long");
        activity.end(began + seconds(10));
        assert_eq!(silent(10), Some(seconds(0)));
        activity.let_stay();
        assert!(activity.may_stay() && silent(11).is_some());
        activity.begin();
        assert_eq!(silent(3600), None, "what is public is sent to its end");
        activity.end(began + seconds(3600));
        assert!(silent(3600).is_some());
        activity.admit();
        assert_eq!(silent(3600), None);
    }
}
