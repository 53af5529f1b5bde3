//! Who may have a connection: each port has places of its own, and no address gets all of them.
//!
//! So whoever opens connections and says nothing takes nothing from the other ports, and not everything from other clients
//! of the same port. (What it has, it loses soon: see `Limits::first_request`.)

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one port.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    all: Arc<Semaphore>,
    per_address: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    places: Arc<ConnectionLimits>,
    address: IpAddr,
    _place: OwnedSemaphorePermit,
}

/// The address of the peer has as many connections as one may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl ConnectionLimits {
    pub(crate) fn new(all: usize, per_address: usize) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits { all: Arc::new(Semaphore::new(all)), per_address, taken: Mutex::default() })
    }

    /// Waits until there is a place, unless the peer's address has its share already.
    pub(crate) async fn take(self: &Arc<ConnectionLimits>, peer: SocketAddr) -> Result<ConnectionPermit, TooMany> {
        let address = network_of(peer.ip());
        if self.has_its_share(address) {
            return Err(TooMany);
        }
        // Nobody closes it.
        let place = Arc::clone(&self.all).acquire_owned().await.map_err(|_| TooMany)?;
        *self.lock().entry(address).or_default() += 1;
        Ok(ConnectionPermit { places: Arc::clone(self), address, _place: place })
    }

    fn has_its_share(&self, address: IpAddr) -> bool {
        self.lock().get(&address).is_some_and(|taken| *taken >= self.per_address)
    }

    /// One entry for each address that has a connection, so no more than there are places.
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
                // A crowd that has left should leave its memory, too.
                if taken.capacity() > 1024 && taken.len() < taken.capacity() / 4 {
                    taken.shrink_to_fit();
                }
            }
        }
    }
}

/// What counts as one address: of version 6 a customer has 64 bits of his own.
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

    #[tokio::test]
    async fn an_address_gets_its_share_and_no_more() {
        let places = ConnectionLimits::new(3, 2);
        let first = places.take(peer("10.0.0.1")).await.unwrap();
        let second = places.take(peer("::ffff:10.0.0.1")).await.unwrap();
        assert_eq!(places.take(peer("10.0.0.1")).await.unwrap_err(), TooMany);
        let other = places.take(peer("10.0.0.2")).await.unwrap();
        drop(first);
        let again = places.take(peer("10.0.0.1")).await.unwrap();
        drop((second, other, again));
        assert!(places.lock().is_empty());
    }

    #[test]
    fn one_customer_of_version_six_is_one_address() {
        let network = |ip: &str| network_of(ip.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::2:3:4:5"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
    }
}
