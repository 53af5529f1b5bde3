//! How many connections a port and an address may have: each port has places of its own, and no address gets all of them.
//!
//! So a client that opens connections and says nothing takes nothing from the other ports, and not everything from other clients
//! of the same port. When places run short, the connection that has been silent longest gives its place away, unless its
//! client has signed a request (see [`Activity`]).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::activity::Activity;
use crate::limits::{Limits, PLACES_PAUSE};

/// The places of one port.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    all: usize,
    per_address: usize,
    limits: Limits,
    taken: Mutex<OpenConnections>,
    /// Rung when a place becomes free.
    freed: Notify,
}

/// No more entries than there are places.
#[derive(Debug, Default)]
struct OpenConnections {
    by_address: HashMap<IpAddr, usize>,
    connections: HashMap<u64, (IpAddr, Arc<Activity>)>,
    /// The number of the next connection.
    next: u64,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    places: Arc<ConnectionLimits>,
    address: IpAddr,
    number: u64,
    pub activity: Arc<Activity>,
}

/// The address of the peer has as many connections as one may have, and none that could be closed for another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl ConnectionLimits {
    pub(crate) fn new(all: usize, per_address: usize, limits: Limits) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits { all, per_address, limits, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Waits until there is a place, unless the peer's address has its share already.
    pub(crate) async fn take(self: &Arc<ConnectionLimits>, peer: SocketAddr) -> Result<ConnectionPermit, TooMany> {
        let address = network_of(peer.ip());
        loop {
            if let Some((number, activity)) = self.try_take(address, Instant::now())? {
                return Ok(ConnectionPermit { places: Arc::clone(self), address, number, activity });
            }
            // Until a place is free, or another connection has been silent for long enough.
            let _ = timeout(PLACES_PAUSE, self.freed.notified()).await;
        }
    }

    /// `None`: a place may become free soon.
    fn try_take(&self, address: IpAddr, now: Instant) -> Result<Option<(u64, Arc<Activity>)>, TooMany> {
        let mut taken = self.lock();
        let has_its_share = taken.by_address.get(&address).is_some_and(|count| *count >= self.per_address)
            && taken.of_clients(address) >= self.per_address;
        if !has_its_share && taken.connections.len() < self.all {
            return Ok(Some(taken.add(address, now)));
        }
        let is_coming = taken.displace_one(has_its_share.then_some(address), &self.limits, now);
        if has_its_share && !is_coming { Err(TooMany) } else { Ok(None) }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn add(&mut self, address: IpAddr, now: Instant) -> (u64, Arc<Activity>) {
        let (number, activity) = (self.next, Arc::new(Activity::new(now)));
        self.next += 1;
        *self.by_address.entry(address).or_default() += 1;
        self.connections.insert(number, (address, Arc::clone(&activity)));
        (number, activity)
    }

    /// Connections of an address. Those of other nodes do not count: each of those nodes has counted its own clients.
    fn of_clients(&self, address: IpAddr) -> usize {
        let is_client = |(of, activity): &&(IpAddr, Arc<Activity>)| *of == address && !activity.is_of_node();
        self.connections.values().filter(is_client).count()
    }

    /// Has the connection close that has been silent longest, of all or of one address. Whether one is on its way out.
    fn displace_one(&self, of: Option<IpAddr>, limits: &Limits, now: Instant) -> bool {
        let connections = self.connections.values().filter(|(address, _)| of.is_none_or(|of| of == *address));
        let mut longest: Option<(Duration, &Activity)> = None;
        for (_, activity) in connections {
            if activity.is_displaced() {
                return true;
            }
            if let Some(silent) = activity.displaceable(now, limits)
                && longest.is_none_or(|(longest, _)| silent > longest)
            {
                longest = Some((silent, activity));
            }
        }
        longest.inspect(|(_, activity)| activity.displace()).is_some()
    }

    fn remove(&mut self, number: u64, address: IpAddr) {
        self.connections.remove(&number);
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        // A crowd that has left should leave its memory, too.
        if self.connections.capacity() > 1024 && self.connections.len() < self.connections.capacity() / 4 {
            self.connections.shrink_to_fit();
            self.by_address.shrink_to_fit();
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.places.lock().remove(self.number, self.address);
        self.places.freed.notify_one();
    }
}

/// What counts as one address: an IPv6 customer has a network of 64 bits.
pub(crate) fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), 1)
    }

    fn places(all: usize, per_address: usize, displaced: Duration) -> Arc<ConnectionLimits> {
        ConnectionLimits::new(all, per_address, Limits { displaced, ..Limits::default() })
    }

    #[tokio::test]
    async fn an_address_gets_its_share_and_no_more() {
        let places = places(3, 2, Duration::from_secs(3600));
        let first = places.take(peer("10.0.0.1")).await.unwrap();
        let second = places.take(peer("::ffff:10.0.0.1")).await.unwrap();
        assert_eq!(places.take(peer("10.0.0.1")).await.unwrap_err(), TooMany);
        let other = places.take(peer("10.0.0.2")).await.unwrap();
        drop(first);
        let again = places.take(peer("10.0.0.1")).await.unwrap();
        drop((second, other, again));
        assert!(places.lock().by_address.is_empty() && places.lock().connections.is_empty());
    }

    #[test]
    fn who_was_silent_longest_and_was_not_let_in_makes_room() {
        let (places, began) = (places(3, 3, Duration::from_secs(1)), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        let take = |last: u8, seconds| places.try_take(IpAddr::from([10, 0, 0, last]), at(seconds));
        let taken: Vec<_> = [(1, 0), (2, 5), (3, 10)].map(|(last, when)| take(last, when).unwrap().unwrap()).into();
        taken[0].1.admit();
        for _ in 0..2 {
            assert!(take(4, 15).unwrap().is_none(), "there is no place yet");
            let told: Vec<bool> = taken.iter().map(|(_, activity)| activity.is_displaced()).collect();
            assert_eq!(told, [false, true, false]);
        }
        places.lock().remove(taken[1].0, IpAddr::from([10, 0, 0, 2]));
        assert!(take(4, 15).unwrap().is_some());
    }

    /// Each sends a request that is refused, and the next one as soon as it has the answer.
    #[test]
    fn who_is_refused_again_and_again_makes_room() {
        let (places, began) = (places(2, 2, Duration::from_secs(1)), Instant::now());
        let at = |millis| began + Duration::from_millis(millis);
        let take = |last: u8, millis| places.try_take(IpAddr::from([10, 0, 0, last]), at(millis));
        let strangers = [take(1, 0).unwrap().unwrap(), take(2, 0).unwrap().unwrap()];
        for millis in (0..5_000).step_by(100) {
            for (_, activity) in &strangers {
                activity.begin();
                activity.end(at(millis));
            }
        }
        assert!(take(3, 5_000).unwrap().is_none(), "there is no place yet");
        assert_eq!(strangers.iter().filter(|(_, activity)| activity.is_displaced()).count(), 1);
    }

    #[test]
    fn an_address_with_its_share_makes_room_for_itself_alone() {
        let (places, began) = (places(8, 2, Duration::from_secs(1)), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        let take = |last: u8, seconds| places.try_take(IpAddr::from([10, 0, 0, last]), at(seconds));
        let (_, other) = take(9, 0).unwrap().unwrap();
        let [(_, first), (_, second)] = [take(1, 5).unwrap().unwrap(), take(1, 5).unwrap().unwrap()];
        assert_eq!(take(1, 5).unwrap_err(), TooMany, "they have just come");
        second.admit();
        assert!(take(1, 10).unwrap().is_none());
        assert_eq!([&other, &first, &second].map(|activity| activity.is_displaced()), [false, true, false]);
    }

    #[test]
    fn connections_of_other_nodes_do_not_count() {
        let (places, now) = (places(8, 2, Duration::from_secs(3600)), Instant::now());
        let take = || places.try_take(IpAddr::from([10, 0, 0, 1]), now);
        let taken: Vec<_> = (0..2).map(|_| take().unwrap().unwrap()).collect();
        assert_eq!(take().unwrap_err(), TooMany);
        taken[0].1.is_of_node_now();
        assert!(take().unwrap().is_some());
        assert_eq!(take().unwrap_err(), TooMany, "two clients have come from there");
    }

    #[test]
    fn one_customer_of_version_six_is_one_address() {
        let network = |ip: &str| network_of(ip.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::2:3:4:5"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
